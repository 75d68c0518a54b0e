//! Errors in RocksDB's words.

use ashlardb::{BusyKind, Error, ErrorKind, IoKind, Reason};

/// What the caller named is not there.
pub fn not_found(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io(IoKind::NotFound), what)
}

/// RocksDB's status of a key that has merge operands only.
pub fn merge_in_progress() -> Error {
    Error::not_supported("the value of the key is in the database").about(Reason::MergeInProgress)
}

/// RocksDB's status of a compaction that its caller has cancelled.
pub fn paused() -> Error {
    Error::new(ErrorKind::Aborted, "Manual compaction paused").about(Reason::CompactionsPaused)
}

/// Whether an error is that of [`paused`].
pub fn is_paused(e: &Error) -> bool {
    e.reason() == Some(&Reason::CompactionsPaused)
}

/// RocksDB's status of a backup that is stopped.
pub fn stopped() -> Error {
    Error::new(ErrorKind::Aborted, "Backup stopped").about(Reason::BackupsStopped)
}

/// A code of RocksDB: its number, and the words before the first colon.
type Code = (i8, &'static str);

const NOT_FOUND: Code = (1, "NotFound");
const CORRUPTION: Code = (2, "Corruption");
const NOT_SUPPORTED: Code = (3, "Not implemented");
const INVALID_ARGUMENT: Code = (4, "Invalid argument");
const IO_ERROR: Code = (5, "IO error");
const MERGE_IN_PROGRESS: Code = (6, "Merge in progress");
const INCOMPLETE: Code = (7, "Result incomplete");
const SHUTDOWN: Code = (8, "Shutdown in progress");
const TIMED_OUT: Code = (9, "Operation timed out");
const ABORTED: Code = (10, "Operation aborted");
const BUSY: Code = (11, "Resource busy");
const TRY_AGAIN: Code = (13, "Operation failed. Try again.");
/// RocksDB's number of a code that it does not have.
const UNDEFINED: i8 = 0x7f;

/// The code of an error, and the number of its sub-code; 0: none.
fn code(e: &Error) -> (Code, i8) {
    use ErrorKind as Kind;
    match (e.reason(), e.kind()) {
        (Some(Reason::MergeInProgress), _) => (MERGE_IN_PROGRESS, 0),
        (Some(Reason::CompactionsPaused | Reason::BackupsStopped), _) => (INCOMPLETE, 0),
        (Some(Reason::BatchFull), _) => (ABORTED, 7),
        (Some(Reason::LockTimeout), _) => (TIMED_OUT, 2),
        // What the caller named is not there; a missing file has a path.
        (_, Kind::Io(IoKind::NotFound)) if e.path().is_none() => (NOT_FOUND, 0),
        // RocksDB takes a lock that is held for an error of the system.
        (_, Kind::Busy(BusyKind::Locked) | Kind::Io(_) | Kind::Indeterminate) => {
            (IO_ERROR, if e.kind() == Kind::Io(IoKind::NoSpace) { 4 } else { 0 })
        }
        (_, Kind::Corruption) => (CORRUPTION, 0),
        (_, Kind::NotSupported) => (NOT_SUPPORTED, 0),
        (_, Kind::InvalidArgument) => (INVALID_ARGUMENT, 0),
        (_, Kind::Shutdown(_)) => (SHUTDOWN, 0),
        (_, Kind::TimedOut) => (TIMED_OUT, 0),
        (_, Kind::Aborted) => (ABORTED, 0),
        (_, Kind::Busy(BusyKind::Memory)) => (TRY_AGAIN, 7),
        (_, Kind::Busy(BusyKind::Stalled | BusyKind::NotCached)) => (INCOMPLETE, 0),
        (_, Kind::Busy(BusyKind::LockLimit)) => (BUSY, 3),
        (_, Kind::Busy(BusyKind::Deadlock)) => (BUSY, 5),
        (_, Kind::Busy(_)) => (BUSY, 0),
        (_, other) => ((UNDEFINED, other.status_name()), 0),
    }
}

/// What stands behind the words of the code.
fn state(e: &Error) -> String {
    // Programs compare the whole text.
    if let Some(Reason::OtherComparator { family, stored, given }) = e.reason()
        && family == "default"
    {
        // A program that gives no comparator has RocksDB's default.
        let given = given.as_deref().unwrap_or("leveldb.BytewiseComparator");
        return format!("{given}: does not match existing comparator {stored}");
    }
    let said = e.to_string();
    let words = e.kind().status_name();
    let rest = said.strip_prefix(words).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&said);
    match e.path() {
        // Programs look for the file.
        Some(path) if e.kind() == ErrorKind::Busy(BusyKind::Locked) && path.ends_with("LOCK") => {
            format!("{}: {rest}", path.display())
        }
        _ => rest.to_owned(),
    }
}

/// An error as RocksDB's functions answer it: the sentence of the error, with RocksDB's words before the first colon.
pub fn text(e: &Error) -> String {
    let ((_, words), _) = code(e);
    format!("{words}: {}", state(e))
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

/// An error in parts: the code and the text of [`text`], and the sub-code.
pub fn status(e: &Error) -> Status {
    let ((code, _), sub_code) = code(e);
    Status { code, sub_code, state: Some(state(e)) }
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

    /// A message of the caller, or of another error, decides nothing.
    #[test]
    fn a_reason_decides_and_not_a_sentence() {
        let sub_code = |e: &Error| status(e).sub_code;
        let words = Error::new(ErrorKind::Aborted, "Memory limit reached");
        assert_eq!((sub_code(&words.clone().about(Reason::BatchFull)), sub_code(&words)), (7, 0));
        let words = Error::new(ErrorKind::Aborted, paused().message());
        assert_eq!(
            (text(&words), is_paused(&words)),
            ("Operation aborted: Manual compaction paused".into(), false)
        );
        let words = Error::not_supported(merge_in_progress().message());
        assert!(text(&words).starts_with("Not implemented: "));
        let late = Error::new(ErrorKind::TimedOut, "the deadline of the read has passed");
        assert_eq!((sub_code(&late), sub_code(&late.clone().about(Reason::LockTimeout))), (0, 2));
    }

    #[test]
    fn another_comparator_has_rocksdbs_sentence_for_the_family_default() {
        let of = |family, given| text(&Error::other_comparator(family, "mine", given).hint("Give it"));
        let told = |given| format!("Invalid argument: {given}: does not match existing comparator mine");
        assert_eq!(of("default", None), told("leveldb.BytewiseComparator"));
        assert_eq!(of("default", Some("theirs")), told("theirs"));
        assert!(
            of("other", None).starts_with("Invalid argument: family \"other\" needs the comparator mine")
        );
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
