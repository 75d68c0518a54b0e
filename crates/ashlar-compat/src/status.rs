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

/// Part of the engine's message, and of RocksDB's.
const OTHER_COMPARATOR: &str = ": does not match existing comparator ";

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
        (ErrorKind::InvalidArgument, _) if e.message().contains(OTHER_COMPARATOR) => {
            format!("Invalid argument: {}", e.message())
        }
        // What the caller named is not there; a missing file has a path.
        (ErrorKind::Io(IoKind::NotFound), Some((_, rest))) if e.path().is_none() => {
            format!("NotFound:{rest}")
        }
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
