//! The names in a database directory, and the pointer file `CURRENT`.
//!
//! 1. A number is printed with at least six digits and parsed with any number of digits.
//! 2. A name that does not parse belongs to another program: it is never touched and never an error.
//! 3. `CURRENT` is exactly `MANIFEST-<number>` and a newline.
//!
//! Source: RocksDB `file/filename.cc`.

#![deny(clippy::indexing_slicing)]

use ashlar_base::{FileNumber, Malformed};
use std::fmt;

/// What a file of a database directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// `000004.log`: a write-ahead log.
    Wal(FileNumber),
    /// `000005.sst`: a table.
    Table(FileNumber),
    /// `000005.ldb`: a table under LevelDB's name.
    LevelDbTable(FileNumber),
    /// `000006.blob`: a blob file.
    Blob(FileNumber),
    /// `MANIFEST-000005`: the log of version edits.
    Manifest(FileNumber),
    /// `CURRENT`: names the MANIFEST in use.
    Current,
    /// `IDENTITY`: the database id.
    Identity,
    /// `LOCK`: empty, locked while the database is open.
    Lock,
    /// `OPTIONS-000007`.
    Options(FileNumber),
    /// `OPTIONS-000007.dbtmp`: an OPTIONS file that is being written.
    OptionsTemp(FileNumber),
    /// `000005.dbtmp`: `CURRENT` being replaced, or, with number 0, `IDENTITY`.
    Temp(FileNumber),
    /// `LOG`: the info log.
    InfoLog,
    /// `LOG.old` or `LOG.old.<microseconds since 1970>`: a former info log.
    OldInfoLog(Option<u64>),
    /// `METADB-000001`: from old releases; always kept.
    MetaDb(FileNumber),
    /// `COMPACTION_PROGRESS-<timestamp>`: state of a remote compaction; kept and ignored.
    CompactionProgress(u64),
    /// `COMPACTION_PROGRESS-<timestamp>.dbtmp`: the same while it is being written.
    CompactionProgressTemp(u64),
}

impl FileKind {
    /// What `name` (without directory) is; `None` for a name that is not ours.
    pub fn parse(name: &str) -> Option<FileKind> {
        match name {
            "CURRENT" => return Some(FileKind::Current),
            "IDENTITY" => return Some(FileKind::Identity),
            "LOCK" => return Some(FileKind::Lock),
            "LOG" => return Some(FileKind::InfoLog),
            "LOG.old" => return Some(FileKind::OldInfoLog(None)),
            _ => {}
        }
        if let Some(rest) = name.strip_prefix("LOG.old.") {
            return Some(FileKind::OldInfoLog(Some(digits(rest)?)));
        }
        if let Some(rest) = name.strip_prefix("MANIFEST-") {
            return Some(FileKind::Manifest(number(rest)?));
        }
        if let Some(rest) = name.strip_prefix("METADB-") {
            return Some(FileKind::MetaDb(number(rest)?));
        }
        if let Some(rest) = name.strip_prefix("OPTIONS-") {
            return Some(match rest.strip_suffix(".dbtmp") {
                Some(rest) => FileKind::OptionsTemp(number(rest)?),
                None => FileKind::Options(number(rest)?),
            });
        }
        if let Some(rest) = name.strip_prefix("COMPACTION_PROGRESS-") {
            return Some(match rest.strip_suffix(".dbtmp") {
                Some(rest) => FileKind::CompactionProgressTemp(digits(rest)?),
                None => FileKind::CompactionProgress(digits(rest)?),
            });
        }
        let (stem, extension) = name.split_once('.')?;
        let n = number(stem)?;
        Some(match extension {
            "log" => FileKind::Wal(n),
            "sst" => FileKind::Table(n),
            "ldb" => FileKind::LevelDbTable(n),
            "blob" => FileKind::Blob(n),
            "dbtmp" => FileKind::Temp(n),
            _ => return None,
        })
    }

    /// As [`FileKind::parse`], of a name with exactly the digits that [`FileKind::name`] writes.
    pub fn parse_exact(name: &str) -> Option<FileKind> {
        FileKind::parse(name).filter(|kind| kind.name() == name)
    }

    /// The name to write, without directory. A file found on disk may carry fewer digits: keep its own name.
    pub fn name(self) -> String {
        self.to_string()
    }

    /// The number taken from the counter that all files of a database share; `None` for files outside it.
    pub fn number(self) -> Option<FileNumber> {
        match self {
            FileKind::Wal(n)
            | FileKind::Table(n)
            | FileKind::LevelDbTable(n)
            | FileKind::Blob(n)
            | FileKind::Manifest(n)
            | FileKind::Options(n)
            | FileKind::OptionsTemp(n)
            | FileKind::Temp(n)
            | FileKind::MetaDb(n) => Some(n),
            _ => None,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileKind::Wal(n) => write!(f, "{n}.log"),
            FileKind::Table(n) => write!(f, "{n}.sst"),
            FileKind::LevelDbTable(n) => write!(f, "{n}.ldb"),
            FileKind::Blob(n) => write!(f, "{n}.blob"),
            FileKind::Manifest(n) => write!(f, "MANIFEST-{n}"),
            FileKind::Current => f.write_str("CURRENT"),
            FileKind::Identity => f.write_str("IDENTITY"),
            FileKind::Lock => f.write_str("LOCK"),
            FileKind::Options(n) => write!(f, "OPTIONS-{n}"),
            FileKind::OptionsTemp(n) => write!(f, "OPTIONS-{n}.dbtmp"),
            FileKind::Temp(n) => write!(f, "{n}.dbtmp"),
            FileKind::InfoLog => f.write_str("LOG"),
            FileKind::OldInfoLog(None) => f.write_str("LOG.old"),
            FileKind::OldInfoLog(Some(micros)) => write!(f, "LOG.old.{micros}"),
            FileKind::MetaDb(n) => write!(f, "METADB-{n}"),
            FileKind::CompactionProgress(t) => write!(f, "COMPACTION_PROGRESS-{t}"),
            FileKind::CompactionProgressTemp(t) => write!(f, "COMPACTION_PROGRESS-{t}.dbtmp"),
        }
    }
}

/// Decimal digits and nothing else (`str::parse` would take a sign).
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn number(text: &str) -> Option<FileNumber> {
    digits(text).map(FileNumber)
}

/// The content of a `CURRENT` file that names this MANIFEST.
pub fn current_content(manifest: FileNumber) -> String {
    format!("{}\n", FileKind::Manifest(manifest))
}

/// The MANIFEST that the content of a `CURRENT` file names.
///
/// # Errors
/// `Malformed` when the final newline is missing or the text is no MANIFEST's name.
pub fn parse_current(content: &[u8]) -> Result<FileNumber, Malformed> {
    let wrong = |what| Malformed { field: "CURRENT", at: 0, what };
    let line = content.strip_suffix(b"\n").ok_or_else(|| wrong("no newline at the end"))?;
    let name = std::str::from_utf8(line).map_err(|_| wrong("not text"))?;
    match FileKind::parse(name) {
        Some(FileKind::Manifest(n)) => Ok(n),
        _ => Err(wrong("not the name of a MANIFEST")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back() {
        let n = FileNumber(12);
        let all = [
            (FileKind::Wal(n), "000012.log"),
            (FileKind::Table(n), "000012.sst"),
            (FileKind::LevelDbTable(n), "000012.ldb"),
            (FileKind::Blob(n), "000012.blob"),
            (FileKind::Manifest(n), "MANIFEST-000012"),
            (FileKind::Current, "CURRENT"),
            (FileKind::Identity, "IDENTITY"),
            (FileKind::Lock, "LOCK"),
            (FileKind::Options(n), "OPTIONS-000012"),
            (FileKind::OptionsTemp(n), "OPTIONS-000012.dbtmp"),
            (FileKind::Temp(FileNumber(0)), "000000.dbtmp"),
            (FileKind::InfoLog, "LOG"),
            (FileKind::OldInfoLog(None), "LOG.old"),
            (FileKind::OldInfoLog(Some(1_795_236_261_000_001)), "LOG.old.1795236261000001"),
            (FileKind::MetaDb(n), "METADB-000012"),
            (FileKind::CompactionProgress(7), "COMPACTION_PROGRESS-7"),
            (FileKind::CompactionProgressTemp(7), "COMPACTION_PROGRESS-7.dbtmp"),
            (FileKind::Table(FileNumber(1_234_567)), "1234567.sst"),
        ];
        for (kind, name) in all {
            assert_eq!(kind.name(), name);
            assert_eq!(FileKind::parse(name), Some(kind), "{name}");
        }
        assert_eq!(FileKind::parse("4.log"), Some(FileKind::Wal(FileNumber(4))));
    }

    #[test]
    fn foreign_names_stay_foreign() {
        for name in [
            "",
            "foo",
            ".log",
            "+4.log",
            "-4.log",
            "4.LOG",
            "000012.sst.trash",
            "000012",
            "MANIFEST",
            "MANIFEST-",
            "MANIFEST-3x",
            "OPTIONS-1.dbtmp2",
            "OPTIONS-",
            "LOG.old.",
            "LOG.old.x",
            "LOG.older",
            "18446744073709551616.log",
            "archive",
            "current",
        ] {
            assert_eq!(FileKind::parse(name), None, "{name}");
        }
    }

    #[test]
    fn current_names_one_manifest() {
        assert_eq!(current_content(FileNumber(5)), "MANIFEST-000005\n");
        assert_eq!(parse_current(b"MANIFEST-000005\n"), Ok(FileNumber(5)));
        for bad in [&b""[..], b"\n", b"MANIFEST-000005", b"MANIFEST-000005\r\n", b"000005.log\n", b"\xff\n"] {
            assert!(parse_current(bad).is_err());
        }
    }
}
