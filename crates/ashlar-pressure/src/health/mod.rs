//! Which errors the database has, what still works, and when failed work is retried.
//!
//! | state | entered by | reads | writes | left by |
//! |---|---|---|---|---|
//! | healthy | | yes | yes | |
//! | soft | a failed compaction, purge or OPTIONS file; a failed flush, unless for lack of space; a next WAL file that cannot be created | yes | yes, those that need no new WAL file | the next success of that work |
//! | full | a flush that lacked space, a WAL that cannot reserve space ahead | yes | deletions; others refused with the cause | the next success of that flush; space for the WAL (`db`, room job) |
//! | hard | a failed WAL or MANIFEST | yes | refused with the cause | resuming (`db`, resume job) |
//! | fatal | a switch of `CURRENT` with an unknown outcome; a panic in background work | yes | refused | opening again |
//! | corrupt | corruption met by background work | yes | refused | the operator: quarantine of the damaged table (`ashlar-repair`), repair, restore |
//!
//! 1. Each source of errors (`Source`) has its own entry. Only a success of that source removes the entry or, after
//!    corruption, the quarantine of the damaged file. The database is in the state of its most severe entry.
//! 2. An entry's severity never falls before the entry is removed.
//! 3. On a full disk, work that may free space goes on: deletions, compactions, dropping families and whole files,
//!    purges. Deletions use WAL space that is kept for them or that a failed flush has released, and may exceed the
//!    limit of a full memtable by an eighth. Where no space can be reserved ahead, a write of the WAL itself may lack
//!    space; the state is then hard. Only dropping and purges go on in that state, because they need no WAL.
//! 4. A retry comes after a pause, which doubles with each failure: up to a minute, or up to ten seconds while the
//!    cause is a lack of space, which may end at any moment.
//!
//! Independently of these states a database may be *read-only* from the open on, by request or because it has data that
//! this engine could not preserve. It then refuses writes and does no background work.
//!
//! Source: RocksDB `db/error_handler.cc` (behaviour).

use ashlar_base::Error;

mod entries;
#[cfg(test)]
mod tests;

pub use entries::{Failing, HealthState, Source, lacks_space};

/// The health of a database.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Health {
    /// The severity of the most severe error that is not cleared.
    pub severity: Severity,
    /// That error; `None` exactly if the severity is [`Severity::Healthy`].
    pub cause: Option<Error>,
}

impl Health {
    /// A database that only a new open helps, because of `cause`.
    pub fn fatal(cause: Error) -> Health {
        Health { severity: Severity::Fatal, cause: Some(cause) }
    }
}

/// How far an error restricts the database. A later variant restricts it more: `Corrupt` is above `Fatal`, because a new
/// open does not clear it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// Nothing is wrong.
    #[default]
    Healthy,
    /// Background work failed and is retried.
    Soft,
    /// A flush found the disk full, or the WAL cannot reserve space ahead; both are retried. Deletions are accepted and
    /// compactions go on; other writes are refused until the retry succeeds.
    Full,
    /// Writes are refused until the engine has resumed, which it tries by itself.
    Hard,
    /// Writes are refused until the database is opened again, and no file is removed.
    Fatal,
    /// Background work met corruption; writes are refused until the damaged table is quarantined or repaired.
    Corrupt,
}

impl Severity {
    fn from_u8(n: u8) -> Severity {
        match n {
            0 => Severity::Healthy,
            1 => Severity::Soft,
            2 => Severity::Full,
            3 => Severity::Hard,
            4 => Severity::Fatal,
            _ => Severity::Corrupt,
        }
    }
}
