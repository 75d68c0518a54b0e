//! Workloads that need settings, or a load, of their own: a session for each row.

use super::Session;
use super::free::{Wanted, by, suffixed};
use crate::job::{Step, TreeState, Workload};
use ashlar_peers::settings::Settings;

/// Entries in a batch of a bulk load.
const BULK_BATCH: u64 = 1000;
/// Seconds of fillsync at most.
const SYNC_SECONDS: f64 = 5.0;
/// More tables of level 0 than there will be: no compaction begins by itself.
const NEVER: u32 = 10_000_000;
/// Merge operands of a counter.
const OPERANDS: [u64; 2] = [100, 1000];
/// Bytes of a sum.
const SUM_BYTES: usize = 8;
/// Scans behind tombstones: each passes all of them.
const SCANS: u64 = 5;

/// The sessions of the selected workloads of this kind.
pub fn sessions(wanted: &Wanted<'_>) -> Vec<Session> {
    let mut all = Vec::new();
    if wanted.has(Workload::Bulkload) {
        all.push(bulk(wanted));
    }
    if wanted.has(Workload::Fillrandom) {
        let several = wanted.write_threads.iter().filter(|&&threads| threads > 1);
        all.extend(
            several.map(|&threads| wanted.session(vec![by(threads, plain(wanted, Workload::Fillrandom))])),
        );
    }
    if wanted.has(Workload::Fillsync) {
        all.extend(wanted.write_threads.iter().map(|&threads| synced(wanted, threads)));
    }
    if wanted.has(Workload::Compact) {
        all.push(compact(wanted));
    }
    if wanted.has(Workload::Counters) {
        all.extend(OPERANDS.map(|operands| counters(wanted, operands)));
    }
    for (workload, load, ops) in [
        (Workload::Rangetombstones, Workload::Fillseq, wanted.reads),
        (Workload::Scantombstones, Workload::Fillseq, SCANS),
    ] {
        let states = wanted.states.iter().filter(|_| wanted.has(workload));
        all.extend(states.map(|&state| {
            let step = Step { ops, tree: state, ..plain(wanted, workload) };
            let step = if state == TreeState::Idle { step } else { suffixed(step, state.text()) };
            wanted.session(vec![Step { batch: 100, ..wanted.load(load) }, step])
        }));
    }
    all
}

fn plain(wanted: &Wanted<'_>, workload: Workload) -> Step {
    Step::new(workload.text(), workload, wanted.keys)
}

/// The load compacts nothing until all is there; the rate includes flush and compaction.
fn bulk(wanted: &Wanted<'_>) -> Session {
    let settings = Settings { bulk: true, no_log: true, sync: false, ..wanted.settings.clone() };
    let step = plain(wanted, Workload::Bulkload);
    let step = Step { batch: BULK_BATCH, counts_settling: true, ..step };
    Session { settings, ..wanted.session(vec![step]) }
}

fn synced(wanted: &Wanted<'_>, threads: u32) -> Session {
    let settings = Settings { sync: true, no_log: false, ..wanted.settings.clone() };
    let step = Step { seconds: SYNC_SECONDS, ..by(threads, plain(wanted, Workload::Fillsync)) };
    Session { settings, ..wanted.session(vec![step]) }
}

/// Flushes make tables of level 0 only, so both engines have about the same to compact.
fn compact(wanted: &Wanted<'_>) -> Session {
    let settings = Settings { l0_triggers: Some([NEVER; 3]), ..wanted.settings.clone() };
    let steps = vec![
        wanted.load(Workload::Fillrandom),
        wanted.load(Workload::Overwrite),
        plain(wanted, Workload::Compact),
    ];
    Session { settings, ..wanted.session(steps) }
}

fn counters(wanted: &Wanted<'_>, operands: u64) -> Session {
    let settings = Settings { merges: true, value_bytes: SUM_BYTES, ..wanted.settings.clone() };
    // Each get reads every operand.
    let ops = (wanted.reads / (operands / OPERANDS[0]).max(1) / 5).max(1);
    let step = Step { ops, operands, ..plain(wanted, Workload::Counters) };
    let step = if operands == OPERANDS[0] { step } else { suffixed(step, &operands.to_string()) };
    Session { settings, ..wanted.session(vec![step]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_own_settings() {
        let settings = Settings::default();
        let workloads = [
            Workload::Bulkload,
            Workload::Fillsync,
            Workload::Compact,
            Workload::Counters,
            Workload::Rangetombstones,
        ];
        let states = [TreeState::Loaded, TreeState::Idle];
        let wanted = Wanted {
            workloads: &workloads,
            states: &states,
            read_threads: &[1],
            write_threads: &[8],
            settings: &settings,
            keys: 1000,
            reads: 1000,
        };
        let sessions = sessions(&wanted);
        let rows: Vec<_> = sessions.iter().map(|s| s.steps.last().unwrap().row.as_str()).collect();
        assert_eq!(
            rows,
            [
                "bulkload",
                "fillsync-8",
                "compact",
                "counters",
                "counters-1000",
                "rangetombstones-loaded",
                "rangetombstones"
            ]
        );
        let of = |row: usize| &sessions[row].settings;
        assert!(of(0).bulk && of(0).durability() == "nolog" && of(1).durability() == "sync");
        assert!(of(2).l0_triggers == Some([NEVER; 3]) && of(3).merges && of(3).value_bytes == SUM_BYTES);
        assert!(sessions.iter().all(|session| session.steps[0].workload.fills()));
    }
}
