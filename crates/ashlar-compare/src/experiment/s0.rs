//! RocksDB beside LevelDB on flash, 2013 and 2014: 10-byte keys, 800-byte values; loads, overwrites, 32 threads that read.
//!
//! The document loads without a log and with zlib; LevelDB has neither class, so those rows leave it out, and a `-log` row
//! with the log and Snappy beside each holds all three. The document contradicts itself on the overwrite: the text keeps the
//! log, the command line does not; `T3` is the command line, `T3-walon` the text. The bulk load of `T1` compacts nothing until
//! all is there. Reads have as much memory for the data as there: a fifth to a sixth of it, the system's cache included.

use super::{Session, Size, settings};
use crate::job::{Step, TreeState, Workload};
use ashlar_peers::settings::Settings;
use ashlar_report::history;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const BIG_BLOCK: u64 = 64 * KIB;
const READERS: u32 = 32;
/// The part of the writer's own peak, in the row that limits the writer.
const SHARE: f64 = 0.1;

pub fn sessions(size: Size) -> Vec<Session> {
    let rows = Rows { size, keys: size.of(50_000, 2_500_000, 20_000_000) };
    let buffer = size.of(256 * KIB, 4 * MIB, 16 * MIB);
    let base = Settings {
        block_bytes: BIG_BLOCK,
        write_buffers: 3,
        file_bytes: Some(buffer),
        base_bytes: Some(4 * buffer),
        l0_triggers: Some([4, 8, 12]),
        ..settings(rows.keys, [10, 800], size.of(64 * KIB, MIB, MIB), buffer)
    };
    let walon = Settings { codec: "zlib".into(), ..base.clone() };
    let published = Settings { no_log: true, ..walon.clone() };
    let bulk = Settings { bulk: true, ..published.clone() };
    let plain = Settings {
        codec: "none".into(),
        block_bytes: 4 * KIB,
        memory_limit_bytes: size.of(None, Some(360 * MIB), Some(2970 * MIB)),
        ..base.clone()
    };
    let beside = Settings { cache_bytes: size.of(MIB, 40 * MIB, 320 * MIB), ..plain.clone() };
    let slowed = Step { share: SHARE, ..rows.threads("T5-limited", Workload::Readwhilewriting) };
    let alone = Step { measured: false, seconds: size.of(0.5, 15.0, 60.0), ..rows.again("load") };
    vec![
        rows.session(&bulk, vec![rows.fill("T1", Workload::Fillrandom)]),
        rows.session(&base, vec![rows.fill("T1-log", Workload::Fillrandom)]),
        rows.session(&published, vec![rows.fill("T2", Workload::Fillseq)]),
        rows.session(&base, vec![rows.fill("T2-log", Workload::Fillseq)]),
        rows.session(&published, vec![rows.load(), rows.again("T3")]),
        rows.session(&walon, vec![rows.load(), rows.again("T3-walon")]),
        rows.session(&base, vec![rows.load(), rows.again("T3-log")]),
        rows.session(&plain, vec![rows.load(), rows.threads("T4", Workload::Readrandom)]),
        rows.session(&beside, vec![rows.load(), rows.threads("T5", Workload::Readwhilewriting)]),
        rows.session(&beside, vec![rows.load(), alone, slowed]),
    ]
}

struct Rows {
    size: Size,
    keys: u64,
}

impl Rows {
    fn session(&self, settings: &Settings, steps: Vec<Step>) -> Session {
        Session { settings: settings.clone(), keys: self.keys, steps }
    }

    fn step(&self, row: &str, workload: Workload, seconds: f64) -> Step {
        let (name, variant) = row.split_once('-').unwrap_or((row, ""));
        let title = history::title("s0", name).unwrap_or(name);
        let what = match variant {
            "log" => ", log, Snappy",
            "walon" => ", log",
            "limited" => " at a tenth of its rate",
            _ => "",
        };
        Step { title: format!("{title}{what}"), seconds, ..Step::new(row, workload, self.keys) }
    }

    fn fill(&self, row: &str, workload: Workload) -> Step {
        self.step(row, workload, self.size.of(2.0, 300.0, 1800.0))
    }

    fn load(&self) -> Step {
        Step { measured: false, batch: 100, ..self.step("load", Workload::Fillseq, 0.0) }
    }

    fn again(&self, row: &str) -> Step {
        let seconds = self.size.of(0.5, 60.0, 300.0);
        Step { tree: TreeState::Idle, ..self.step(row, Workload::Overwrite, seconds) }
    }

    fn threads(&self, row: &str, workload: Workload) -> Step {
        let seconds = self.size.of(0.5, 60.0, 300.0);
        let step = Step { threads: READERS, tree: TreeState::Idle, ..self.step(row, workload, seconds) };
        // The page gives a count per thread; here the clock ends the step.
        Step { ops: u64::MAX, ..step }
    }
}
