//! The listings in a golden directory's `expected.txt`.
//!
//! ```text
//! Column family NAME: ldb scan --hex            (LevelDB: "ldb scan --hex …:", the family is default)
//!   0xKEY : 0xVALUE                             what a reader sees
//! Column family NAME: ldb idump --hex
//!   'KEY' seq:N, type:T => VALUE                every entry, newest version of a key first
//! ```
//! A line of another form ends a listing; what is outside listings is passed over. A long value of one repeated byte is
//! cut short, `5858… (N hex digits in line)`, where N counts the whole line without its indent; it is written out here.

use crate::KeyValue;
use crate::text::{from_bare_hex, from_hex};

/// One entry with its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalEntry {
    /// The user key.
    pub key: Vec<u8>,
    /// Its sequence number.
    pub sequence: u64,
    /// Its value type, as the byte on disk.
    pub kind: u8,
    /// Its value.
    pub value: Vec<u8>,
}

/// What one family must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Name of the family.
    pub family: String,
    /// What a reader sees, in key order.
    pub visible: Vec<KeyValue>,
    /// All versions, in internal order.
    pub internal: Vec<InternalEntry>,
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    Outside,
    Visible,
    Internal,
}

impl Listing {
    /// All families listed in an `expected.txt`, in its order.
    pub fn parse(text: &str) -> Vec<Listing> {
        let mut families: Vec<Listing> = Vec::new();
        let (mut section, mut current) = (Section::Outside, 0);
        for line in text.lines() {
            if let Some((family, kind)) = heading(line) {
                section = kind;
                current = families.iter().position(|f| f.family == family).unwrap_or_else(|| {
                    families.push(Listing { family: family.to_owned(), ..Listing::default() });
                    families.len() - 1
                });
                continue;
            }
            let Some(listing) = families.get_mut(current) else { continue };
            match section {
                Section::Visible => match visible(line) {
                    Some(entry) => listing.visible.push(entry),
                    None => section = Section::Outside,
                },
                Section::Internal => match internal(line) {
                    Some(entry) => listing.internal.push(entry),
                    None => section = Section::Outside,
                },
                Section::Outside => {}
            }
        }
        families
    }
}

/// All entries of a table's listing whose lines begin with `mark`: nothing for point entries, `R ` for range tombstones.
pub fn entries(text: &str, mark: &str) -> Vec<InternalEntry> {
    text.lines().filter_map(|line| internal(line.strip_prefix(mark)?)).collect()
}

fn heading(line: &str) -> Option<(&str, Section)> {
    let (family, rest) = match line.strip_prefix("Column family ") {
        Some(rest) => rest.split_once(": ")?,
        None => ("default", line),
    };
    if rest.starts_with("ldb scan --hex") {
        Some((family, Section::Visible))
    } else if rest.starts_with("ldb idump --hex") {
        Some((family, Section::Internal))
    } else {
        None
    }
}

fn visible(line: &str) -> Option<KeyValue> {
    let line = line.trim_start();
    let (key, value) = line.split_once(" : 0x")?;
    Some((from_hex(key)?, digits(line, value)?))
}

fn internal(line: &str) -> Option<InternalEntry> {
    let line = line.trim_start();
    let (key, rest) = line.strip_prefix('\'')?.split_once("' seq:")?;
    let (sequence, rest) = rest.split_once(", type:")?;
    let (kind, value) = rest.split_once(" => ").or_else(|| rest.split_once(" =>"))?;
    Some(InternalEntry {
        key: from_bare_hex(key)?,
        sequence: sequence.parse().ok()?,
        kind: kind.parse().ok()?,
        value: digits(line, value)?,
    })
}

/// The digits that end `line`, written out when they were cut short.
fn digits(line: &str, value: &str) -> Option<Vec<u8>> {
    let Some((head, rest)) = value.split_once("... (") else { return from_bare_hex(value.trim()) };
    let whole: usize = rest.strip_suffix(" hex digits in line)")?.parse().ok()?;
    let count = whole.checked_sub(line.len() - value.len())?;
    let pattern = head.get(..2)?;
    let shown = head.len() / 2 * 2;
    (head[..shown] == pattern.repeat(shown / 2)).then(|| from_bare_hex(&pattern.repeat(count / 2)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_writers_forms() {
        let text = "words\n\nColumn family one: ldb scan --hex\n  0x : 0x76\n\nColumn family one: ldb idump --hex\n  \
                    '' seq:7, type:1 => 76\n  '6B' seq:3, type:0 => \n  Internal keys in range: 2\n  '6C' seq:9, type:1 => 00\n\
                    ldb scan --hex (RocksDB 7.8.3, read-only):\n0x6B : 0x\n";
        let families = Listing::parse(text);
        assert_eq!(families.len(), 2);
        assert_eq!(families[0].visible, [(vec![], b"v".to_vec())]);
        let kinds: Vec<_> = families[0].internal.iter().map(|e| (e.sequence, e.kind)).collect();
        assert_eq!(kinds, [(7, 1), (3, 0)], "what follows the count is no entry");
        let cut = "0x78 : 0x5858585858... (19 hex digits in line)";
        assert_eq!(visible(cut), Some((b"x".to_vec(), b"XXXXX".to_vec())));
        assert_eq!(visible("0x78 : 0x585859... (19 hex digits in line)"), None, "not one byte repeated");
        assert_eq!((families[1].family.as_str(), families[1].visible.len()), ("default", 1));
    }
}
