//! RocksDB beside LevelDB on flash, 2013 and 2014: 10-byte keys, 800-byte values; loads, overwrites, 32 threads that read.
//!
//! The document loads without a log and with zlib; LevelDB has neither class, so those rows leave it out and a `-log` row
//! with the log and Snappy beside each holds all three.

use super::{Session, Size, settings};
use crate::job::{Before, Step, Workload};
use crate::settings::Settings;
use ashlar_report::history;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const BIG_BLOCK: u64 = 64 * KIB;
const READERS: u32 = 32;

pub fn sessions(size: Size) -> Vec<Session> {
    let keys = size.of(50_000, 2_500_000, 20_000_000);
    let buffer = size.of(256 * KIB, 4 * MIB, 16 * MIB);
    let cache = size.of(64 * KIB, MIB, MIB);
    let base = Settings {
        block_bytes: BIG_BLOCK,
        write_buffers: 3,
        file_bytes: Some(buffer),
        base_bytes: Some(4 * buffer),
        ..settings(keys, [10, 800], cache, buffer)
    };
    let published = Settings { codec: "zlib".into(), no_log: true, ..base.clone() };
    let plain = Settings { codec: "none".into(), block_bytes: 4 * KIB, ..base.clone() };
    let beside = Settings { cache_bytes: size.of(MIB, 40 * MIB, 320 * MIB), ..plain.clone() };
    let at = |row: &str, workload, ops| {
        let name = row.strip_suffix("-log").unwrap_or(row);
        let title = history::title("s0", name).unwrap_or(name).to_owned();
        let title = if name == row { title } else { format!("{title}, log, Snappy") };
        Step { title, seconds: size.of(2.0, 300.0, 1800.0), ..Step::new(row, workload, ops) }
    };
    let load = |workload| Step { measured: false, seconds: 0.0, batch: 100, ..at("load", workload, keys) };
    let again = |row: &str| Step {
        seconds: size.of(2.0, 60.0, 300.0),
        before: Before::Settle,
        ..at(row, Workload::Overwrite, keys)
    };
    let threads = |row: &str, workload| Step {
        threads: READERS,
        seconds: size.of(2.0, 60.0, 300.0),
        before: Before::Settle,
        ..at(row, workload, keys)
    };
    let session = |settings: &Settings, steps: Vec<Step>| Session { settings: settings.clone(), keys, steps };
    vec![
        session(&published, vec![at("T1", Workload::Fillrandom, keys)]),
        session(&base, vec![at("T1-log", Workload::Fillrandom, keys)]),
        session(&published, vec![at("T2", Workload::Fillseq, keys)]),
        session(&base, vec![at("T2-log", Workload::Fillseq, keys)]),
        session(&published, vec![load(Workload::Fillseq), again("T3")]),
        session(&base, vec![load(Workload::Fillseq), again("T3-log")]),
        session(&plain, vec![load(Workload::Fillseq), threads("T4", Workload::Readrandom)]),
        session(&beside, vec![load(Workload::Fillseq), threads("T5", Workload::Readwhilewriting)]),
    ]
}
