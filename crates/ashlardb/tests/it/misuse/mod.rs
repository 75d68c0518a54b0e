//! Wrong use of the public API: it ends in an error or in the right answer; never in a wrong answer, a loss or a hang.
//!
//! | module | what is misused |
//! |---|---|
//! | `exports` | exports that cannot be made, and imports of what is no such family |
//! | `handles` | handles of another database, of a dropped family, and on a thread that is ending; sync without a log |
//! | `ingestion` | files that cannot be ingested, and lists of them that make no sense |
//! | `locks` | locks of the engine while it calls comparators and merge operators |
//! | `names` | comparators and operators that files cannot tell apart, comparators that contradict themselves, misplaced settings |
//! | `panics` | comparators, merge operators and listeners that panic |
//! | `pauses` | requests for background work while none is done |
//! | `reentry` | calls of the database, and the end of its last handle, inside its own callbacks |
//! | `transactions` | transactions that have ended, of other databases, inside each other, in callbacks, and closures that panic |
//! | `scans` | the order of the calls that describe a scan; prefixes in orders that are not bytewise |

mod callbacks;
mod exports;
mod handles;
mod ingestion;
mod locks;
mod names;
mod panics;
mod pauses;
mod reentry;
mod scans;
mod transactions;

use ashlardb::{ErrorKind, Result};

/// The kind of error, `None` of a success.
fn kind<T>(answer: Result<T>) -> Option<ErrorKind> {
    answer.err().map(|e| e.kind())
}
