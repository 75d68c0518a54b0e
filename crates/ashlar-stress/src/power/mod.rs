//! Power cuts of a real ext4 under a database, and devices that fail.
//!
//! | rig | what happens | `--replay` |
//! |---|---|---|
//! | `cut` | ext4 hands nothing more to its device from one moment on | `cut-SEED` |
//! | `record` | a device records its writes; any place of the record is a cut, with any part of what was not flushed | `record-SEED` |
//! | `journal` | such a device refuses writes of the journal under plain files, with no database | `journal-SEED` |
//! | `failing` | such a device answers writes and flushes with errors, for a while | `failing-SEED` |
//!
//! In each rig, writers add numbered batches to two families and sync some of them (`batches`). Afterwards ext4 replays its
//! journal, and the database is opened. Each writer's batches must form a prefix of whole batches that includes the last
//! durable one. The next case of a seed continues with the directory that the cut left. A seed repeats settings and moments,
//! but not the cut itself, because it does not control threads and the kernel.

mod batches;
mod cut;
mod failing;
mod journal;
mod machine;
mod record;

use ashlar_testkit::suite::{Budget, Report, Watchdog, guarded};
use ashlar_testkit::turns;
use std::time::Duration;

/// Lives of a quick run, of each rig: some twenty seconds together.
const LIVES: u64 = 1;
/// How file systems are mounted.
const MOUNTS: [&str; 3] = ["", "data=writeback", "nodelalloc"];

/// Whether the machine lets a rig work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// It worked.
    Life,
    /// It does not; the report has the reason.
    Skipped,
}

type Rig = fn(u64, &Budget, &mut Report) -> Result<Done, String>;

const RIGS: [(&str, Rig); 4] = [
    ("cut-", cut::life),
    ("record-", record::life),
    ("journal-", journal::life),
    ("failing-", failing::life),
];

/// Life after life, of each rig in turn.
pub fn run(budget: &Budget) -> Report {
    let _turn = turns::beside_others();
    let mut report = Report::new("power", budget);
    let watchdog = Watchdog::new("power", Duration::from_secs(300));
    let mut rigs = RIGS.to_vec();
    rigs.retain(|(word, _)| budget.replay.is_none() || budget.replayed(word).is_some());
    for seed in budget.seeds(LIVES) {
        rigs.retain(|(word, rig)| {
            if budget.is_enough(&report) || budget.is_over() {
                return false;
            }
            let seed = budget.replayed(word).unwrap_or(seed);
            let case = format!("{word}{seed}");
            let _case = watchdog.begins(&case);
            let done = guarded(|| rig(seed, budget, &mut report));
            done.map_err(|e| report.fail(case, e)) != Ok(Done::Skipped)
        });
        if rigs.is_empty() || budget.replay.is_some() {
            break;
        }
    }
    drop(watchdog);
    report.done(budget)
}
