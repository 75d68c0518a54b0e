//! The driver's pure parts. Whole runs are in `tests/it`.

use super::*;

#[test]
fn engines_take_turns() {
    let (a, b) = (EngineName::Ashlardb, EngineName::Rocksdb);
    let order: Vec<_> = (1..=4).flat_map(|rep| turns(&[a, b], rep)).collect();
    assert_eq!(order, [a, b, b, a, a, b, b, a]);
}

#[test]
fn workloads_share_a_load() {
    use Workload::{Fillrandom, Fillseq, Openloop, Overwrite, Readrandom, Readseq, Seekrandom};
    assert_eq!(
        sessions(&Workload::ALL),
        [vec![Fillseq], vec![Fillrandom, Readrandom, Seekrandom, Readseq, Overwrite], vec![Openloop]]
    );
    assert_eq!(sessions(&[Overwrite, Readrandom]), [vec![Readrandom, Overwrite]]);
}
