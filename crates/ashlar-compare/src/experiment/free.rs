//! A selection of workloads. Those that share a load share a session; those that need settings or a load of their own are in
//! [`super::special`].

use super::{Session, special};
use crate::job::{Step, TreeState, Workload};
use ashlar_peers::settings::Settings;

/// The selection.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The workloads.
    pub workloads: &'a [Workload],
    /// The trees that reads find.
    pub states: &'a [TreeState],
    /// Numbers of threads of readrandom.
    pub read_threads: &'a [u32],
    /// Numbers of threads of fillrandom and fillsync.
    pub write_threads: &'a [u32],
    /// The settings that the sessions share.
    pub settings: &'a Settings,
    /// Keys.
    pub keys: u64,
    /// Operations of random reads.
    pub reads: u64,
}

/// Workloads that only read, and so can be repeated on another state of the tree.
const READS: [Workload; 6] = [
    Workload::Readrandom,
    Workload::Readmissing,
    Workload::Multireadrandom,
    Workload::Seekrandom,
    Workload::Readseq,
    Workload::Readreverse,
];
/// Puts in a batch of fillbatch.
const BATCH: u64 = 100;

impl Wanted<'_> {
    /// Whether `workload` is one of them.
    pub fn has(&self, workload: Workload) -> bool {
        self.workloads.contains(&workload)
    }

    /// A session with the shared settings.
    pub fn session(&self, steps: Vec<Step>) -> Session {
        Session { settings: self.settings.clone(), keys: self.keys, steps }
    }

    /// A load that is not measured.
    pub fn load(&self, workload: Workload) -> Step {
        Step { measured: false, ..Step::new("load", workload, self.keys) }
    }

    /// The steps of `workload`, one for each number of threads.
    fn steps(&self, workload: Workload) -> Vec<Step> {
        let threads = match workload {
            _ if !self.has(workload) => return Vec::new(),
            Workload::Readrandom => self.read_threads,
            Workload::Fillrandom if !self.write_threads.contains(&1) => return Vec::new(),
            _ => &[1],
        };
        threads.iter().map(|&threads| by(threads, self.step(workload))).collect()
    }

    fn step(&self, workload: Workload) -> Step {
        let (ops, tree, warm) = match workload {
            // Fast scans are repeated, or there would be nothing to measure.
            Workload::Readseq | Workload::Readreverse => {
                ((self.keys * 2).max(3_000_000.min(self.keys * 20)), TreeState::Idle, true)
            }
            Workload::Readwhilewriting => (self.reads, TreeState::Idle, true),
            _ if READS.contains(&workload) => (self.reads, TreeState::Idle, true),
            Workload::Overwrite | Workload::Deleterandom => (self.keys, TreeState::Idle, false),
            _ => (self.keys, TreeState::Loaded, false),
        };
        let batch = if workload == Workload::Fillbatch { BATCH } else { 1 };
        Step { tree, warm, batch, ..Step::new(workload.text(), workload, ops) }
    }

    /// The steps of `workloads` on a tree in `state`.
    fn in_state(&self, state: TreeState) -> Vec<Step> {
        let wanted = READS.into_iter().flat_map(|workload| self.steps(workload));
        let named = |(index, step): (usize, Step)| Step {
            // Reads change nothing: the first one finds the tree made, the others find it as it is.
            tree: if index == 0 { state } else { TreeState::Loaded },
            ..suffixed(step, state.text())
        };
        wanted.enumerate().map(named).collect()
    }

    /// The states that are not the usual one, each once.
    fn other_states(&self) -> Vec<TreeState> {
        let mut others: Vec<TreeState> =
            self.states.iter().copied().filter(|state| *state != TreeState::Idle).collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    fn idle(&self) -> bool {
        self.states.contains(&TreeState::Idle)
    }
}

/// `step` by `threads` threads that share its operations.
pub fn by(threads: u32, step: Step) -> Step {
    if threads == 1 {
        return step;
    }
    let ops = (step.ops / u64::from(threads)).max(1);
    Step { threads, ops, ..suffixed(step, &threads.to_string()) }
}

/// `step` in a row with `suffix` at the end of its name.
pub fn suffixed(step: Step, suffix: &str) -> Step {
    Step { row: format!("{}-{suffix}", step.row), title: format!("{}, {suffix}", step.title), ..step }
}

/// The sessions of a selection. A fill begins with an empty database; overwrites and deletes come last, because reads want what
/// the load left. Reads find everything in the cache. The idle tree is that behind the fill; each other state has a load of its
/// own, and its rows have the name of the state.
pub fn sessions(wanted: &Wanted<'_>) -> Vec<Session> {
    let loaded = [
        Workload::Fillrandom,
        Workload::Readrandom,
        Workload::Readmissing,
        Workload::Multireadrandom,
        Workload::Seekrandom,
        Workload::Readseq,
        Workload::Readreverse,
        Workload::Readwhilewriting,
        Workload::Overwrite,
        Workload::Deleterandom,
    ];
    let groups: [&[Workload]; 4] =
        [&[Workload::Fillseq], &[Workload::Fillbatch], &loaded, &[Workload::Openloop]];
    let there = |workload: &&Workload| wanted.idle() || !READS.contains(workload);
    let group =
        |group: &[Workload]| group.iter().filter(there).flat_map(|w| wanted.steps(*w)).collect::<Vec<_>>();
    let others = wanted.other_states().into_iter().map(|state| wanted.in_state(state));
    let session = |mut steps: Vec<Step>| {
        let settles = steps[0].tree != TreeState::Loaded;
        if !steps[0].workload.fills() {
            steps.insert(0, Step { settles, ..wanted.load(Workload::Fillrandom) });
        }
        wanted.session(steps)
    };
    let all = groups.into_iter().map(group).chain(others);
    let mut sessions: Vec<_> = all.filter(|steps| !steps.is_empty()).map(session).collect();
    sessions.extend(special::sessions(wanted));
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<'a>(workloads: &'a [Workload], states: &'a [TreeState], settings: &'a Settings) -> Wanted<'a> {
        Wanted { workloads, states, read_threads: &[1], write_threads: &[1], settings, keys: 10, reads: 10 }
    }

    #[test]
    fn workloads_share_a_load() {
        use Workload::{Fillrandom, Fillseq, Openloop, Overwrite, Readrandom, Readseq, Seekrandom};
        let of = |workloads: &[Workload]| {
            let settings = Settings::default();
            let sessions = sessions(&wanted(workloads, &[TreeState::Idle], &settings));
            sessions
                .iter()
                .map(|s| s.steps.iter().filter(|s| s.measured).map(|s| s.workload).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let all = [Openloop, Overwrite, Fillseq, Readseq, Seekrandom, Readrandom, Fillrandom];
        let loaded = vec![Fillrandom, Readrandom, Seekrandom, Readseq, Overwrite];
        assert_eq!(of(&all), [vec![Fillseq], loaded, vec![Openloop]]);
        assert_eq!(of(&[Overwrite, Readrandom]), [vec![Readrandom, Overwrite]]);
        let settings = Settings::default();
        let session = &sessions(&wanted(&[Overwrite], &[TreeState::Idle], &settings))[0];
        assert_eq!((session.steps.len(), session.steps[0].measured), (2, false));
    }

    /// Each further state has a load of its own; only the loaded one is left as the load leaves it.
    #[test]
    fn reads_are_repeated_on_other_states_of_the_tree() {
        use TreeState::{Idle, Loaded, Settled};
        use Workload::{Fillrandom, Overwrite, Readrandom, Readseq};
        let of = |workloads: &[Workload], states: &[TreeState]| {
            sessions(&wanted(workloads, states, &Settings::default()))
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
    #[test]
    fn each_number_of_threads_has_a_row() {
        use Workload::{Fillrandom, Fillsync, Readrandom};
        let settings = Settings::default();
        let of = |read_threads, write_threads| {
            let workloads = &[Fillrandom, Fillsync, Readrandom];
            let one = wanted(workloads, &[TreeState::Idle, TreeState::Settled], &settings);
            let sessions = sessions(&Wanted { read_threads, write_threads, ..one });
            let steps = sessions.iter().flat_map(|s| &s.steps).filter(|s| s.measured);
            steps.map(|s| format!("{} {}", s.row, s.ops)).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            of(&[1, 5], &[1, 2]),
            "fillrandom 10, readrandom 10, readrandom-5 2, readrandom-settled 10, readrandom-5-settled 2, \
             fillrandom-2 5, fillsync 10, fillsync-2 5"
        );
        assert_eq!(
            of(&[2], &[2]),
            "readrandom-2 5, readrandom-2-settled 5, fillrandom-2 5, fillsync-2 5",
            "the load is not measured"
        );
    }
}
