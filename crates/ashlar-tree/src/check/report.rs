//! The report of a check: each damage with its file, offset and cause, and the keys at risk.

use ashlar_base::{Error, ErrorKind, FileNumber, SeqNum};
use ashlar_format::filename::FileKind;
use std::fmt;

/// The most keys that the report names for one damage in a WAL file.
pub const KEYS_NAMED: usize = 100;

/// The progress of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Tables and blob files read.
    pub files: u64,
    /// The bytes of the files read.
    pub bytes: u64,
    /// The entries and blobs in the files read.
    pub entries: u64,
    /// The number of all files to read.
    pub files_total: u64,
    /// The bytes of all files to read.
    pub bytes_total: u64,
}

/// A range of user keys, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeySpan {
    /// The first key.
    pub from: Vec<u8>,
    /// The last key.
    pub to: Vec<u8>,
}

impl KeySpan {
    /// The range from one key to another, both included.
    pub fn new(from: Vec<u8>, to: Vec<u8>) -> KeySpan {
        KeySpan { from, to }
    }

    /// The range of one key.
    pub fn key(key: &[u8]) -> KeySpan {
        KeySpan { from: key.to_vec(), to: key.to_vec() }
    }
}

/// What a damage puts at risk. A read never returns a wrong value. It may fail, or return an older value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Risk {
    /// Nothing: reads do not need the damaged bytes, or the engine creates the file again.
    Nothing,
    /// These keys of the family.
    Keys(Vec<KeySpan>),
    /// Writes in a WAL file.
    Writes {
        /// The sequence number of the first missing write.
        from: SeqNum,
        /// The sequence number of the last missing write, if the WAL goes on after the gap.
        to: Option<SeqNum>,
        /// The sequence number of the last readable write after the gap, if there is one.
        last: Option<SeqNum>,
        /// Keys of the readable writes after the gap. Recovery to a point in time drops these writes too.
        behind: Vec<Vec<u8>>,
        /// The number of further such keys that are not listed.
        more: u64,
    },
    /// Some keys; it is not known which.
    UnknownKeys,
    /// All keys: it is not known which files belong to the database.
    Database,
}

impl Risk {
    /// Whether the sequence numbers of the WAL go back at this place. The writes from there on are then at risk, and
    /// none is missing before them.
    pub fn goes_back(&self) -> bool {
        matches!(self, Risk::Writes { from, to: Some(to), .. } if to.checked_add(1).is_some_and(|next| next < *from))
    }
}

/// One damage, or a hole in a WAL file, which may be a damage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file's name.
    pub file: String,
    /// The offset in the file, if it is known.
    pub offset: Option<u64>,
    /// What is wrong.
    pub cause: String,
    /// The family whose keys are at risk; `None`: more than one, or none.
    pub family: Option<String>,
    /// What the damage puts at risk.
    pub risk: Risk,
}

impl Damage {
    /// A damage of no one family.
    #[doc(hidden)]
    pub fn new(file: String, offset: Option<u64>, cause: String, risk: Risk) -> Damage {
        Damage { file, offset, cause, family: None, risk }
    }

    /// The damage that an error about a file describes.
    #[doc(hidden)]
    pub fn of(file: &str, e: &Error, risk: Risk) -> Damage {
        Damage::new(file.to_owned(), e.offset(), e.message().to_owned(), risk)
    }

    /// A damage in a WAL file: the writes from the sequence number `from` on are missing.
    #[doc(hidden)]
    pub fn of_log(log: FileNumber, offset: Option<u64>, cause: String, from: SeqNum) -> Damage {
        let risk = Risk::Writes { from, to: None, last: None, behind: Vec::new(), more: 0 };
        Damage::new(FileKind::Wal(log).name(), offset, cause, risk)
    }

    /// Sets the family.
    #[doc(hidden)]
    pub fn in_family(mut self, family: &str) -> Damage {
        self.family = Some(family.to_owned());
        self
    }
}

/// The result of a check. Prints a line for each damage, hole and remark, and the totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Proved damages.
    pub damages: Vec<Damage>,
    /// Holes in WAL files: writes are missing, later writes follow, and nothing proves that the missing writes were
    /// durable. A power cut leaves such a hole if the writes were not synced; damage of unsynced writes looks the same.
    /// An open drops the writes after the first hole, and its report says so.
    pub holes: Vec<Damage>,
    /// Parts that the check could not read, and why: tables of another kind, families with an unknown comparator,
    /// blocks for which there was no memory. They may be sound or damaged.
    pub unchecked: Vec<String>,
    /// Tables and blob files that no record of the MANIFEST names and that an open moves to `lost/`, because they may hold
    /// data: the open drops the end of the MANIFEST or of a WAL file, or the files are those of a repair or quarantine.
    /// A crash in a flush leaves such files too, and their data is then in the WAL.
    pub unknown: Vec<String>,
    /// Notices that are no damage: torn tails, files that the database does not need.
    pub remarks: Vec<String>,
    /// The number of tables read.
    pub tables: u64,
    /// The number of blob files read.
    pub blob_files: u64,
    /// The number of WAL files read.
    pub logs: u64,
    /// The number of table entries, blobs, and operations in WAL files.
    pub entries: u64,
    /// The bytes of the files read.
    pub bytes: u64,
    /// The number of files whose recorded checksum was compared.
    pub checksums: u64,
}

impl CheckReport {
    /// Nothing is proved to be wrong in what was checked: an open takes everything but what holes, unknown files and remarks
    /// tell of.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }

    /// Adds what an error tells.
    #[doc(hidden)]
    pub fn tell(&mut self, e: &Error, damage: Damage) {
        match e.kind() {
            ErrorKind::Busy(_) | ErrorKind::NotSupported => {
                let place = damage.offset.map(|offset| format!(" at {offset}")).unwrap_or_default();
                self.unchecked.push(format!("{}{place}: {}", damage.file, damage.cause));
            }
            _ => self.damages.push(damage),
        }
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn quoted(key: &[u8]) -> String {
    format!("'{}'", key.escape_ascii())
}

impl fmt::Display for KeySpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from == self.to {
            true => write!(f, "{}", quoted(&self.from)),
            false => write!(f, "{} to {}", quoted(&self.from), quoted(&self.to)),
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Risk::Nothing => f.write_str("no key is at risk"),
            Risk::Keys(ranges) => {
                let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
                write!(f, "at risk: keys {}", ranges.join(", "))
            }
            Risk::Writes { from, to, last, behind, more } => {
                match to.filter(|to| to >= from) {
                    None if self.goes_back() => {
                        f.write_str("at risk: all writes that stand from there on")?
                    }
                    Some(to) => write!(f, "at risk: writes {from} to {to}")?,
                    None => write!(f, "at risk: writes from {from} on")?,
                }
                if let Some(last) = last {
                    write!(f, "; behind them stand writes up to {last}")?;
                }
                if !behind.is_empty() {
                    let keys: Vec<String> = behind.iter().map(|key| quoted(key)).collect();
                    write!(f, " of keys {}", keys.join(", "))?;
                }
                if *more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
            Risk::UnknownKeys => f.write_str("at risk: keys that no file names any more"),
            Risk::Database => f.write_str("at risk: the whole database"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(offset) = self.offset {
            write!(f, " at {offset}")?;
        }
        write!(f, ": {}; ", self.cause)?;
        if let Some(family) = &self.family {
            write!(f, "family {family:?}: ")?;
        }
        write!(f, "{}", self.risk)
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for damage in &self.damages {
            writeln!(f, "{damage}")?;
        }
        for hole in &self.holes {
            writeln!(f, "hole: {hole}")?;
        }
        for what in &self.unchecked {
            writeln!(f, "not checked: {what}")?;
        }
        for name in &self.unknown {
            writeln!(f, "not in the MANIFEST: {name}; an open moves the file to lost/")?;
        }
        for remark in &self.remarks {
            writeln!(f, "remark: {remark}")?;
        }
        let sum = match (self.damages.len(), self.holes.len()) {
            (0, 0) if !self.unchecked.is_empty() => "no damage in what could be checked".to_owned(),
            (0, 0) if !self.unknown.is_empty() => {
                format!("no damage, {} not in the MANIFEST", counted(self.unknown.len(), "file"))
            }
            (0, 0) => "sound".to_owned(),
            (0, holes) => format!("no damage, {}", counted(holes, "hole")),
            (damages, 0) => counted(damages, "damage"),
            (damages, holes) => format!("{}, {}", counted(damages, "damage"), counted(holes, "hole")),
        };
        writeln!(
            f,
            "{} tables, {} blob files, {} WAL files with {} entries in {} bytes read, {} file checksums compared: {sum}",
            self.tables, self.blob_files, self.logs, self.entries, self.bytes, self.checksums,
        )
    }
}
