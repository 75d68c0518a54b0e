//! Errors in RocksDB's words.

use ashlardb::{BusyKind, Error, ErrorKind, IoKind};

/// What the caller named is not there.
pub fn not_found(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io(IoKind::NotFound), what)
}

/// What a batch alone cannot say: its merge operands apply to a value of the database.
const MERGE_IN_PROGRESS: &str = "the value of the key is in the database";

/// RocksDB's status of a key that has merge operands only.
pub fn merge_in_progress() -> Error {
    Error::not_supported(MERGE_IN_PROGRESS)
}

/// A request was cancelled before its beginning.
const PAUSED: &str = "Manual compaction paused";

/// RocksDB's status of a compaction that its caller has cancelled.
pub fn paused() -> Error {
    Error::new(ErrorKind::Aborted, PAUSED)
}

/// Whether an error is that of [`paused`].
pub fn is_paused(e: &Error) -> bool {
    e.kind() == ErrorKind::Aborted && e.message() == PAUSED
}

/// Backups were stopped.
const STOPPED: &str = "Backup stopped";

/// RocksDB's status of a backup that is stopped.
pub fn stopped() -> Error {
    Error::new(ErrorKind::Aborted, STOPPED)
}

/// RocksDB's text for a family `default` that is stored in another order, from the engine's message: the comparator that was given
/// is another one, or none was given.
fn other_comparator(message: &str) -> Option<String> {
    let needs = message.strip_prefix("family \"default\" needs the comparator ");
    let text = match needs.and_then(|rest| rest.strip_suffix(", which was not given")) {
        Some(stored) => format!("leveldb.BytewiseComparator: does not match existing comparator {stored}"),
        None => {
            let text = message.strip_suffix(" of family \"default\"")?;
            text.contains(": does not match existing comparator ").then(|| text.to_owned())?
        }
    };
    Some(format!("Invalid argument: {text}"))
}

/// A batch may have no more bytes.
const FULL: &str = "Memory limit reached";

/// RocksDB's status of an operation that would make a batch larger than it may be.
pub fn batch_is_full() -> Error {
    Error::new(ErrorKind::Aborted, FULL)
}

/// An error as RocksDB's functions answer it: the sentence of the error, with RocksDB's words before the first colon.
pub fn text(e: &Error) -> String {
    let said = e.to_string();
    match (e.kind(), said.split_once(':')) {
        // RocksDB takes a lock that is held for an error of the system.
        // Programs look for the file.
        (ErrorKind::Busy(BusyKind::Locked), Some((_, rest))) => match e.path() {
            Some(path) if path.ends_with("LOCK") => format!("IO error: {}:{rest}", path.display()),
            _ => format!("IO error:{rest}"),
        },
        (ErrorKind::NotSupported, Some((_, rest))) if e.message() == MERGE_IN_PROGRESS => {
            format!("Merge in progress:{rest}")
        }
        (ErrorKind::Aborted, Some((_, rest))) if [PAUSED, STOPPED].contains(&e.message()) => {
            format!("Result incomplete:{rest}")
        }
        // Programs compare the whole text.
        (ErrorKind::InvalidArgument, _) => other_comparator(e.message()).unwrap_or(said),
        // What the caller named is not there; a missing file has a path.
        (ErrorKind::Io(IoKind::NotFound), Some((_, rest))) if e.path().is_none() => {
            format!("NotFound:{rest}")
        }
        _ => said,
    }
}

/// A status of RocksDB in parts, as its Java classes have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// RocksDB's number of the code.
    pub code: i8,
    /// RocksDB's number of the sub-code; 0: none.
    pub sub_code: i8,
    /// The text behind the code's words.
    pub state: Option<String>,
}

impl Status {
    /// No error.
    pub const OK: Status = Status { code: 0, sub_code: 0, state: None };
}

/// RocksDB's numbers of codes, by the words before the first colon.
const CODES: [(&str, i8); 15] = [
    ("NotFound", 1),
    ("Corruption", 2),
    ("Not implemented", 3),
    ("Invalid argument", 4),
    ("IO error", 5),
    ("Merge in progress", 6),
    ("Result incomplete", 7),
    ("Shutdown in progress", 8),
    ("Operation timed out", 9),
    ("Operation aborted", 10),
    ("Resource busy", 11),
    ("Operation expired", 12),
    ("Operation failed. Try again.", 13),
    ("Compaction too large", 14),
    ("Column family dropped", 15),
];
/// RocksDB's number of a code that it does not have.
const UNDEFINED: i8 = 0x7f;

/// An error in parts: the code and the text of [`text`], and the sub-code.
pub fn status(e: &Error) -> Status {
    let said = text(e);
    let (words, state) = said.split_once(':').unwrap_or((&said, ""));
    let code = CODES.iter().find(|(known, _)| *known == words).map_or(UNDEFINED, |(_, code)| *code);
    let sub_code = match e.kind() {
        ErrorKind::TimedOut => 2,
        ErrorKind::Busy(BusyKind::LockLimit) => 3,
        ErrorKind::Io(IoKind::NoSpace) => 4,
        ErrorKind::Busy(BusyKind::Deadlock) => 5,
        ErrorKind::Busy(BusyKind::Memory) => 7,
        ErrorKind::Aborted if e.message() == FULL => 7,
        _ => 0,
    };
    Status { code, sub_code, state: Some(state.trim_start().to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_code_of_its_words() {
        let of = |kind| status(&Error::new(kind, "why"));
        let state = Some("why".to_owned());
        assert_eq!(of(ErrorKind::Corruption), Status { code: 2, sub_code: 0, state: state.clone() });
        assert_eq!(of(ErrorKind::Io(IoKind::NoSpace)), Status { code: 5, sub_code: 4, state: state.clone() });
        assert_eq!(of(ErrorKind::Busy(BusyKind::Memory)), Status { code: 13, sub_code: 7, state });
    }

    #[test]
    fn a_held_lock_is_an_error_of_the_system() {
        let busy = |kind| text(&Error::new(ErrorKind::Busy(kind), "LOCK is held"));
        assert_eq!(busy(BusyKind::Locked), "IO error: LOCK is held");
        assert_eq!(busy(BusyKind::Conflict), "Resource busy: LOCK is held");
        assert_eq!(text(&not_found("backup 7")), "NotFound: backup 7");
        assert_eq!(text(&not_found("gone").at_path("/a".as_ref())), "IO error: gone: /a");
        assert!(text(&merge_in_progress()).starts_with("Merge in progress: "));
        assert_eq!(text(&paused()), "Result incomplete: Manual compaction paused");
        assert_eq!(text(&Error::invalid("a: b")), "Invalid argument: a: b");
    }
}
