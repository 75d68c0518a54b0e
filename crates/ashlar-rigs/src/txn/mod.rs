//! Transactions of both kinds beside each other, beside plain writes, flushes and compactions.
//!
//! A case is a seed. One case in eight runs in threads (`threads`): they add to counters in transactions, and every
//! committed addition counts. The others run in one thread (`steps`): several transactions are open at once, their calls
//! follow each other in the order that the seed draws, and a model (`model`) says what each call answers:
//!
//! 1. A read shows the transaction's changes over its snapshot, or over the newest state; so do scans of both directions.
//! 2. A lock is refused exactly when another open transaction holds the key, a key of the range, or a range that meets it, in a
//!    way that excludes it.
//! 3. A commit, or a lock beside a snapshot, is a conflict exactly when the key was written since, wherever the write is by
//!    now. One case is left open: a key that the transaction found absent, and that is absent again.
//! 4. A commit writes everything; a conflict, a rollback and a drop write nothing.
//! 5. After the last transaction no lock is left.
//! 6. A scan shows the moment of its making, also when it is read after a commit.
//! 7. A prepared transaction outlives its handle, flushes and opens, holds its locks, and is decided on once. No optimistic
//!    transaction commits a change of its keys meanwhile.
//!
//! Indexed batches are among them: transactions without locks and conflicts.

mod model;
mod prepared;
mod steps;
mod threads;

use ashlar_testkit::suite::{Budget, Report, Watchdog, guarded};
use std::time::Duration;

/// Cases of a quick run.
const CASES: u64 = 200;

/// Case after case.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("txn", budget);
    let watchdog = Watchdog::new("txn", Duration::from_secs(120));
    budget.each_seed(CASES, &mut report, |seed, report| {
        let _case = watchdog.begins(seed);
        let done = guarded(|| match seed % 8 {
            7 => threads::run(seed, report),
            _ => steps::run(seed, report),
        });
        report.count("cases", 1);
        if let Err(what) = done {
            report.fail(seed.to_string(), what);
        }
    });
    drop(watchdog);
    report.done(budget)
}
