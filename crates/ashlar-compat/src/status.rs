//! Errors in RocksDB's words.

use ashlardb::{BusyKind, Error, ErrorKind};

/// An error as RocksDB's functions answer it: the sentence of the error, with RocksDB's words before the first colon.
pub fn text(e: &Error) -> String {
    let said = e.to_string();
    match (e.kind(), said.split_once(':')) {
        // RocksDB takes a lock that is held for an error of the system.
        (ErrorKind::Busy(BusyKind::Locked), Some((_, rest))) => format!("IO error:{rest}"),
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
        assert_eq!(text(&Error::invalid("a: b")), "Invalid argument: a: b");
    }
}
