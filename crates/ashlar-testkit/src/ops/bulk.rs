//! Many operations of one kind in one line, for histories that are too long to spell out.
//!
//! ```text
//! bulk KIND FAMILY FIRST COUNT BYTES SEED [nowal|sync|low_pri|hint]
//! ```
//! Key number `n` is [`Bulk::key`]; values and operands have BYTES bytes that SEED decides. Kinds: `put`, `merge`, `delete`,
//! `single_delete`, `delete_range` (from key FIRST to key FIRST + COUNT), `entity`, `ingest` (an SST file with these keys),
//! and the transactions `prepared`, `committed`, `rolled_back`. The last word is a write option: without the log, synced, at
//! low priority, with an insert hint for the memtable.

use super::Change;
use crate::Rng;
use std::fmt;
use std::str::FromStr;

/// What a [`Bulk`] does to its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the module's text describes them")]
pub enum BulkKind {
    Put,
    Merge,
    Delete,
    SingleDelete,
    DeleteRange,
    Entity,
    Ingest,
    Prepared,
    Committed,
    RolledBack,
}

impl BulkKind {
    /// All kinds.
    pub const ALL: [BulkKind; 10] = [
        BulkKind::Put,
        BulkKind::Merge,
        BulkKind::Delete,
        BulkKind::SingleDelete,
        BulkKind::DeleteRange,
        BulkKind::Entity,
        BulkKind::Ingest,
        BulkKind::Prepared,
        BulkKind::Committed,
        BulkKind::RolledBack,
    ];

    /// Its word in a line.
    pub fn name(self) -> &'static str {
        match self {
            BulkKind::Put => "put",
            BulkKind::Merge => "merge",
            BulkKind::Delete => "delete",
            BulkKind::SingleDelete => "single_delete",
            BulkKind::DeleteRange => "delete_range",
            BulkKind::Entity => "entity",
            BulkKind::Ingest => "ingest",
            BulkKind::Prepared => "prepared",
            BulkKind::Committed => "committed",
            BulkKind::RolledBack => "rolled_back",
        }
    }
}

/// The write option of a [`Bulk`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the module's text describes them")]
pub enum BulkWrite {
    #[default]
    Plain,
    WithoutLog,
    Synced,
    LowPriority,
    Hinted,
}

impl BulkWrite {
    /// All of them.
    pub const ALL: [BulkWrite; 5] = [
        BulkWrite::Plain,
        BulkWrite::WithoutLog,
        BulkWrite::Synced,
        BulkWrite::LowPriority,
        BulkWrite::Hinted,
    ];

    /// Its word in a line; none for a plain write.
    pub fn word(self) -> &'static str {
        match self {
            BulkWrite::Plain => "",
            BulkWrite::WithoutLog => "nowal",
            BulkWrite::Synced => "sync",
            BulkWrite::LowPriority => "low_pri",
            BulkWrite::Hinted => "hint",
        }
    }
}

/// Many operations of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// What is done.
    pub kind: BulkKind,
    /// Name of the family.
    pub family: String,
    /// Number of the first key.
    pub first: u32,
    /// How many keys.
    pub count: u32,
    /// Bytes of each value.
    pub bytes: u32,
    /// Decides the values and how many changes a batch has.
    pub seed: u64,
    /// With which write option.
    pub write: BulkWrite,
}

impl Bulk {
    /// Key number `n`: 10 bytes, 50 different prefixes of 3 bytes.
    pub fn key(n: u32) -> Vec<u8> {
        format!("{:03}k{n:06}", n % 50).into_bytes()
    }

    /// The keys, as they are written one after another.
    pub fn keys(&self) -> impl Iterator<Item = Vec<u8>> {
        (self.first..self.first.saturating_add(self.count)).map(Bulk::key)
    }

    /// Keys with their values. A value is half random, half repetition, so that every codec has something to do. Those of 20
    /// bytes or more differ in length, so that records of a log end everywhere in a block.
    pub fn entries(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let mut rng = Rng::new(self.seed);
        let bytes = usize::try_from(self.bytes).unwrap_or(0);
        self.keys().map(move |key| {
            let bytes = bytes + if bytes < 20 { 0 } else { rng.below(16) };
            let mut value = rng.bytes(bytes.div_ceil(2));
            value.resize(bytes, b'=');
            (key, value)
        })
    }

    /// The columns of an entity whose default column is `value`, ascending by name.
    pub fn columns(value: &[u8]) -> [(&[u8], &[u8]); 2] {
        [(b"", value), (b"more", b"column")]
    }

    /// The changes of the kinds that are plain writes, in batches; `None` for the others.
    pub fn batches(&self) -> Option<Vec<Vec<Change>>> {
        let family = || self.family.clone();
        let changes: Vec<Change> = match self.kind {
            BulkKind::Put => {
                self.entries().map(|(key, value)| Change::Put { family: family(), key, value }).collect()
            }
            BulkKind::Merge => self
                .entries()
                .map(|(key, operand)| Change::Merge { family: family(), key, operand })
                .collect(),
            BulkKind::Delete => self.keys().map(|key| Change::Delete { family: family(), key }).collect(),
            BulkKind::SingleDelete => {
                self.keys().map(|key| Change::SingleDelete { family: family(), key }).collect()
            }
            BulkKind::DeleteRange => {
                let (from, to) = (Bulk::key(self.first), Bulk::key(self.first.saturating_add(self.count)));
                let (from, to) = if from <= to { (from, to) } else { (to, from) };
                vec![Change::DeleteRange { family: family(), from, to }]
            }
            _ => return None,
        };
        let size = 1 + usize::try_from(self.seed % 5).unwrap_or(0);
        Some(changes.chunks(size).map(<[Change]>::to_vec).collect())
    }
}

impl fmt::Display for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bulk { kind, family, first, count, bytes, seed, write } = self;
        write!(f, "bulk {} {family} {first} {count} {bytes} {seed}", kind.name())?;
        match write {
            BulkWrite::Plain => Ok(()),
            other => write!(f, " {}", other.word()),
        }
    }
}

impl FromStr for Bulk {
    type Err = String;

    fn from_str(line: &str) -> Result<Bulk, String> {
        let wrong = || format!("not a bulk: {line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let option = BulkWrite::ALL.into_iter().find(|write| words.last() == Some(&write.word()));
        let (words, write) = match (words.as_slice(), option) {
            ([rest @ .., _], Some(write)) => (rest, write),
            (all, _) => (all, BulkWrite::Plain),
        };
        let ["bulk", kind, family, first, count, bytes, seed] = words else { return Err(wrong()) };
        let kind = BulkKind::ALL.into_iter().find(|k| k.name() == *kind).ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (first, count, bytes) = (number(first)?, number(count)?, number(bytes)?);
        let seed = seed.parse().map_err(|_| wrong())?;
        Ok(Bulk { kind, family: (*family).to_owned(), first, count, bytes, seed, write })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_back() {
        for kind in BulkKind::ALL {
            for write in BulkWrite::ALL {
                let (family, seed) = ("one".to_owned(), 9);
                let bulk = Bulk { kind, family, first: 7, count: 12, bytes: 30, seed, write };
                assert_eq!(bulk.to_string().parse(), Ok(bulk));
            }
        }
        assert!("bulk dance one 1 2 3 4".parse::<Bulk>().is_err());
    }

    #[test]
    fn batches_hold_every_key() {
        let bulk: Bulk = "bulk put one 5 100 20 3".parse().unwrap();
        let batches = bulk.batches().unwrap();
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 100);
        assert_eq!(batches[0][0].key(), Bulk::key(5));
    }
}
