//! What is wrong with the database as a whole, what still works, and what is tried again when.
//!
//! | state | entered by | reads | writes | left by |
//! |---|---|---|---|---|
//! | well | | yes | yes | |
//! | soft | a failed compaction, purge or OPTIONS file; a failed flush, unless for lack of space | yes | yes | the next success of that work |
//! | full | a flush that lacked space, a log that has no room ahead | yes | deletions; others refused with the cause | the next success of that flush; room for the log (`db`, room job) |
//! | hard | a failed log or MANIFEST | yes | refused with the cause | resuming (`db`, resume job) |
//! | fatal | a switch of `CURRENT` with an unknown outcome; a panic in background work | yes | refused | opening again |
//! | corrupt | wrong bytes met by background work | yes | refused | the operator: quarantine of the damaged table (`db/repair`), repair, restore |
//!
//! 1. Each source of errors (`Source`) has its own entry, which only its own success removes, or, where it met wrong
//!    bytes, the quarantine of the file they were in; the database is as ill as its worst entry.
//! 2. An entry's severity only rises while it stands.
//! 3. On a full disk whatever may make room goes on: deletions, while the log has room for them (it keeps some for them, and
//!    a flush that failed has given back what it wrote) and a full memtable an eighth more, compactions, dropping families and
//!    whole files, purges. When a write of the log itself lacked space, where no room can be kept ahead, the state is hard,
//!    and of all that dropping and purges are left: they need no log.
//! 4. What is tried again pauses first, twice as long after each failure: up to a minute, up to ten seconds while the
//!    cause is a lack of space, which may end at any moment.
//!
//! Beside all this a database may be *read-only* from the open on, by request or because it holds what could not be
//! carried along: well or not, it refuses writes and does no background work.
//!
//! Source: RocksDB `db/error_handler.cc` (behaviour).

mod entries;
#[cfg(test)]
mod tests;

pub(crate) use entries::{Failing, Health, Source, lacks_space};

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is wrong.
    #[default]
    Well,
    /// Background work failed and is tried again.
    Soft,
    /// A flush found the disk full, or the log has no room ahead of it; that is tried again. Deletions are taken and
    /// compactions go on; other writes are refused until it has succeeded.
    Full,
    /// Writes are refused until the engine has resumed, which it tries by itself.
    Hard,
    /// Writes are refused until the database is opened again, and no file is removed any more.
    Fatal,
    /// Background work met wrong bytes; writes are refused until the damaged table is in quarantine, or repaired.
    Corrupt,
}

impl Severity {
    fn from_u8(n: u8) -> Severity {
        match n {
            0 => Severity::Well,
            1 => Severity::Soft,
            2 => Severity::Full,
            3 => Severity::Hard,
            4 => Severity::Fatal,
            _ => Severity::Corrupt,
        }
    }
}
