//! The report of a check: each damage with its file, offset and cause, and the keys at risk.

use ashlar_base::{Error, ErrorKind, FileNumber, SeqNum};
use ashlar_format::filename::FileKind;
use std::fmt;

/// Keys that are named of one damage in a log at most.
pub const KEYS_NAMED: usize = 100;

/// How far a verification has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Tables and blob files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries and blobs in them.
    pub entries: u64,
    /// Files there are to read, all together.
    pub files_total: u64,
    /// Their bytes.
    pub bytes_total: u64,
}

/// User keys from one to another, both ends inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpan {
    /// The first key.
    pub from: Vec<u8>,
    /// The last key.
    pub to: Vec<u8>,
}

impl KeySpan {
    /// One key.
    pub fn key(key: &[u8]) -> KeySpan {
        KeySpan { from: key.to_vec(), to: key.to_vec() }
    }
}

/// What a damage puts at risk: read wrongly it is never, but it may not be read at all, or an older value in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Risk {
    /// Nothing: reads go around it, or the file is made anew.
    Nothing,
    /// These keys of the family.
    Keys(Vec<KeySpan>),
    /// Writes of a log.
    Writes {
        /// The first sequence that is gone.
        from: SeqNum,
        /// The last one, where the logs go on behind.
        to: Option<SeqNum>,
        /// The last write that can be read behind, if there is any.
        last: Option<SeqNum>,
        /// Keys of the writes behind, which recovery to a point in time gives up as well.
        behind: Vec<Vec<u8>>,
        /// How many more such keys there are.
        more: u64,
    },
    /// Keys, but nothing tells which.
    UnknownKeys,
    /// Everything: it is not known what belongs to the database.
    Database,
}

impl Risk {
    /// Of writes of a log whose sequences are used already: they are at risk themselves, and nothing before them is missing.
    pub fn goes_back(&self) -> bool {
        matches!(self, Risk::Writes { from, to: Some(to), .. } if to.checked_add(1).is_some_and(|next| next < *from))
    }
}

/// One damage, or a hole, which may be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file's name.
    pub file: String,
    /// Where in it, if that is known.
    pub offset: Option<u64>,
    /// What is wrong.
    pub cause: String,
    /// The family whose keys are at risk; `None`: more than one, or none.
    pub family: Option<String>,
    /// What it puts at risk.
    pub risk: Risk,
}

impl Damage {
    /// As an error tells it, of a file.
    pub fn of(file: &str, e: &Error, risk: Risk) -> Damage {
        Damage {
            file: file.to_owned(),
            offset: e.offset(),
            cause: e.message().to_owned(),
            family: None,
            risk,
        }
    }

    /// In a log: writes from `from` on are missing.
    pub fn of_log(log: FileNumber, offset: Option<u64>, cause: String, from: SeqNum) -> Damage {
        let risk = Risk::Writes { from, to: None, last: None, behind: Vec::new(), more: 0 };
        Damage { file: FileKind::Wal(log).name(), offset, cause, family: None, risk }
    }

    /// Of a family.
    pub fn in_family(mut self, family: &str) -> Damage {
        self.family = Some(family.to_owned());
        self
    }
}

/// What a check found. Prints as a line per damage, hole and remark, and a sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Everything that is proved to be wrong.
    pub damages: Vec<Damage>,
    /// Holes in logs: writes follow what is missing, and nothing proves that it had ever been durable. A power cut leaves
    /// that of writes that were not synced, and a damage of such writes looks no different. An open drops what is behind
    /// the first hole, and says so.
    pub holes: Vec<Damage>,
    /// What could not be checked, and why: tables of a kind that is not read, families whose comparator is not known
    /// here, blocks that there is no memory for. Not known to be damaged, and not known to be sound.
    pub unchecked: Vec<String>,
    /// What is worth knowing and no damage: torn tails, files that the database does not need.
    pub remarks: Vec<String>,
    /// Tables read.
    pub tables: u64,
    /// Blob files read.
    pub blob_files: u64,
    /// Logs read.
    pub logs: u64,
    /// Entries of tables, blobs, and operations in logs.
    pub entries: u64,
    /// Bytes of the files read.
    pub bytes: u64,
    /// Files whose recorded checksum was compared.
    pub checksums: u64,
}

impl CheckReport {
    /// Nothing is proved to be wrong in what was checked: an open takes everything but what holes and remarks tell of.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }

    /// Adds what an error tells.
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
            Risk::UnknownKeys => f.write_str("at risk: keys that nothing tells any more"),
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
        for remark in &self.remarks {
            writeln!(f, "remark: {remark}")?;
        }
        let sum = match (self.damages.len(), self.holes.len()) {
            (0, 0) if !self.unchecked.is_empty() => "no damage in what could be checked".to_owned(),
            (0, 0) => "sound".to_owned(),
            (0, holes) => format!("no damage, {}", counted(holes, "hole")),
            (damages, 0) => counted(damages, "damage"),
            (damages, holes) => format!("{}, {}", counted(damages, "damage"), counted(holes, "hole")),
        };
        writeln!(
            f,
            "{} tables, {} blob files, {} logs with {} entries in {} bytes read, {} file checksums compared: {sum}",
            self.tables, self.blob_files, self.logs, self.entries, self.bytes, self.checksums,
        )
    }
}
