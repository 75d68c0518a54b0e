//! A custom selection of workloads. Workloads that share a load share a session.

use super::Session;
use crate::job::{Step, TreeState, Workload};
use crate::settings::Settings;

/// Workloads that only read, and so can be repeated on another state of the tree.
const READS: [Workload; 3] = [Workload::Readrandom, Workload::Seekrandom, Workload::Readseq];

/// The sessions of `workloads`. A fill begins with an empty database; the overwrite comes last, because reads want what the
/// load left. Reads find everything in the cache, and the tree in each of `states`: idle behind the fill, the others behind a
/// load of their own, in rows with the state's name.
pub fn sessions(
    workloads: &[Workload],
    states: &[TreeState],
    settings: &Settings,
    keys: u64,
    reads: u64,
) -> Vec<Session> {
    let idle = states.contains(&TreeState::Idle);
    let has = |w: &Workload| workloads.contains(w) && (idle || !READS.contains(w));
    let loaded = [
        Workload::Fillrandom,
        Workload::Readrandom,
        Workload::Seekrandom,
        Workload::Readseq,
        Workload::Readwhilewriting,
        Workload::Overwrite,
    ];
    let groups: [&[Workload]; 3] = [&[Workload::Fillseq], &loaded, &[Workload::Openloop]];
    let step = |workload| step(workload, keys, reads);
    let groups = groups.map(|group| group.iter().copied().filter(has).map(step).collect::<Vec<_>>());
    let in_state = |state| in_state(state, workloads, keys, reads);
    let mut others: Vec<TreeState> = states.iter().copied().filter(|s| *s != TreeState::Idle).collect();
    others.sort_unstable();
    others.dedup();
    let session = |mut steps: Vec<Step>| {
        let settles = steps[0].tree != TreeState::Loaded;
        if !steps[0].workload.fills() {
            let load = Step::new("load", Workload::Fillrandom, keys);
            steps.insert(0, Step { measured: false, settles, ..load });
        }
        Session { settings: settings.clone(), keys, steps }
    };
    let all = groups.into_iter().chain(others.into_iter().map(in_state));
    all.filter(|steps| !steps.is_empty()).map(session).collect()
}

/// The reads on a tree in `state`.
fn in_state(state: TreeState, workloads: &[Workload], keys: u64, reads: u64) -> Vec<Step> {
    let wanted = READS.into_iter().filter(|workload| workloads.contains(workload));
    let named = |(index, workload): (usize, Workload)| Step {
        row: format!("{}-{}", workload.text(), state.text()),
        title: format!("{}, {}", workload.text(), state.text()),
        // Reads change nothing: the first one finds the tree made, the others find it as it is.
        tree: if index == 0 { state } else { TreeState::Loaded },
        ..step(workload, keys, reads)
    };
    wanted.enumerate().map(named).collect()
}

fn step(workload: Workload, keys: u64, reads: u64) -> Step {
    let (ops, tree, warm) = match workload {
        Workload::Readrandom | Workload::Seekrandom => (reads, TreeState::Idle, true),
        // Fast scans are repeated, or there would be nothing to measure.
        Workload::Readseq => ((keys * 2).max(3_000_000.min(keys * 20)), TreeState::Idle, true),
        Workload::Readwhilewriting => (reads, TreeState::Idle, true),
        Workload::Overwrite => (keys, TreeState::Idle, false),
        _ => (keys, TreeState::Loaded, false),
    };
    Step { tree, warm, ..Step::new(workload.text(), workload, ops) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_share_a_load() {
        use Workload::{Fillrandom, Fillseq, Openloop, Overwrite, Readrandom, Readseq, Seekrandom};
        let of = |workloads: &[Workload]| {
            let sessions = sessions(workloads, &[TreeState::Idle], &Settings::default(), 10, 10);
            sessions
                .iter()
                .map(|s| s.steps.iter().filter(|s| s.measured).map(|s| s.workload).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let all = [Openloop, Overwrite, Fillseq, Readseq, Seekrandom, Readrandom, Fillrandom];
        let loaded = vec![Fillrandom, Readrandom, Seekrandom, Readseq, Overwrite];
        assert_eq!(of(&all), [vec![Fillseq], loaded, vec![Openloop]]);
        assert_eq!(of(&[Overwrite, Readrandom]), [vec![Readrandom, Overwrite]]);
        let session = &sessions(&[Overwrite], &[TreeState::Idle], &Settings::default(), 10, 10)[0];
        assert_eq!((session.steps.len(), session.steps[0].measured), (2, false));
    }

    /// Each further state has a load of its own; only the loaded one is left as the load leaves it.
    #[test]
    fn reads_are_repeated_on_other_states_of_the_tree() {
        use TreeState::{Idle, Loaded, Settled};
        use Workload::{Fillrandom, Overwrite, Readrandom, Readseq};
        let of = |workloads: &[Workload], states: &[TreeState]| {
            sessions(workloads, states, &Settings::default(), 10, 10)
                .iter()
                .map(|s| {
                    s.steps
                        .iter()
                        .map(|s| format!("{} {:?} {}", s.row, s.tree, s.settles))
                        .collect::<Vec<_>>()
                        .join(", ")
                })
                .collect::<Vec<_>>()
        };
        let all = of(&[Overwrite, Readseq, Readrandom, Fillrandom], &[Settled, Idle, Loaded]);
        assert_eq!(
            all,
            [
                "fillrandom Loaded true, readrandom Idle true, readseq Idle true, overwrite Idle true",
                "load Loaded false, readrandom-loaded Loaded true, readseq-loaded Loaded true",
                "load Loaded true, readrandom-settled Settled true, readseq-settled Loaded true",
            ]
        );
        assert_eq!(of(&[Fillrandom, Readseq], &[Settled, Settled])[0], "fillrandom Loaded true");
        assert_eq!(of(&[Fillrandom], &[Loaded, Settled]).len(), 1, "no reads, no further load");
    }
}
