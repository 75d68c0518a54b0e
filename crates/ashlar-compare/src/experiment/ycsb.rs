//! YCSB: records of 1060 bytes, loaded in key order; A, B, C, F, D on one load, E on a new one. One thread; the cache is a
//! tenth of the data.

use super::{Session, Size, settings};
use crate::job::{Step, TreeState, Workload};

/// Ten fields of 100 bytes, each with a name of two bytes and a length of four.
const RECORD: usize = 10 * (100 + 2 + 4);

pub fn sessions(size: Size) -> Vec<Session> {
    let keys = size.of(10_000, 1_000_000, 10_000_000);
    let data = keys * (24 + RECORD as u64);
    let memory = data / 10;
    let settings = settings(keys, [24, RECORD], memory * 3 / 4, (memory / 8).max(256 << 10));
    let load = || Step {
        title: "load".into(),
        measured: false,
        batch: 100,
        ..Step::new("load", Workload::Fillseq, keys)
    };
    let mix = |row: &str, workload, title: &str| Step {
        title: title.to_owned(),
        seconds: size.of(2.0, 30.0, 300.0),
        tree: TreeState::Idle,
        ..Step::new(row, workload, size.of(20_000, u64::MAX, u64::MAX))
    };
    let first = vec![
        load(),
        mix("A", Workload::YcsbA, "half reads, half updates"),
        mix("B", Workload::YcsbB, "95 % reads, 5 % updates"),
        mix("C", Workload::YcsbC, "reads"),
        mix("F", Workload::YcsbF, "half reads, half read and update"),
        mix("D", Workload::YcsbD, "95 % reads of the newest, 5 % inserts"),
    ];
    let second = vec![load(), mix("E", Workload::YcsbE, "95 % short scans, 5 % inserts")];
    [first, second].map(|steps| Session { settings: settings.clone(), keys, steps }).to_vec()
}
