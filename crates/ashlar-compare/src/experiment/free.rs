//! A choice of one's own: workloads that share a load share a session.

use super::Session;
use crate::job::{Before, Step, Workload};
use crate::settings::Settings;

/// The sessions of `workloads`. A fill begins with an empty database; the overwrite comes last, because reads want what the
/// load left. Reads find everything settled and in the cache.
pub fn sessions(workloads: &[Workload], settings: &Settings, keys: u64, reads: u64) -> Vec<Session> {
    let has = |w: &Workload| workloads.contains(w);
    let loaded = [
        Workload::Fillrandom,
        Workload::Readrandom,
        Workload::Seekrandom,
        Workload::Readseq,
        Workload::Readwhilewriting,
        Workload::Overwrite,
    ];
    let groups: [&[Workload]; 3] = [&[Workload::Fillseq], &loaded, &[Workload::Openloop]];
    let wanted = groups.map(|group| group.iter().copied().filter(has).collect::<Vec<_>>());
    let session = |group: Vec<Workload>| {
        let mut steps: Vec<Step> = group.into_iter().map(|w| step(w, keys, reads)).collect();
        if !steps[0].workload.fills() {
            let load = Step::new("load", Workload::Fillrandom, keys);
            steps.insert(0, Step { measured: false, ..load });
        }
        Session { settings: settings.clone(), keys, steps }
    };
    wanted.into_iter().filter(|group| !group.is_empty()).map(session).collect()
}

fn step(workload: Workload, keys: u64, reads: u64) -> Step {
    let (ops, before) = match workload {
        Workload::Readrandom | Workload::Seekrandom => (reads, Before::Warm),
        // Fast scans are repeated, or there would be nothing to measure.
        Workload::Readseq => ((keys * 2).max(3_000_000.min(keys * 20)), Before::Warm),
        Workload::Readwhilewriting => (reads, Before::Warm),
        Workload::Overwrite => (keys, Before::Settle),
        _ => (keys, Before::Nothing),
    };
    Step { before, ..Step::new(workload.text(), workload, ops) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_share_a_load() {
        use Workload::{Fillrandom, Fillseq, Openloop, Overwrite, Readrandom, Readseq, Seekrandom};
        let of = |workloads: &[Workload]| {
            let sessions = sessions(workloads, &Settings::default(), 10, 10);
            sessions
                .iter()
                .map(|s| s.steps.iter().filter(|s| s.measured).map(|s| s.workload).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let all = [Openloop, Overwrite, Fillseq, Readseq, Seekrandom, Readrandom, Fillrandom];
        let loaded = vec![Fillrandom, Readrandom, Seekrandom, Readseq, Overwrite];
        assert_eq!(of(&all), [vec![Fillseq], loaded, vec![Openloop]]);
        assert_eq!(of(&[Overwrite, Readrandom]), [vec![Readrandom, Overwrite]]);
        let session = &sessions(&[Overwrite], &Settings::default(), 10, 10)[0];
        assert_eq!((session.steps.len(), session.steps[0].measured), (2, false));
    }
}
