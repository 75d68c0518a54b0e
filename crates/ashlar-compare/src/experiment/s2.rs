//! RocksDB's benchmark.sh on NVMe, June 2020: one database, loaded in random order, overwritten, read beside a writer, read.
//!
//! 20-byte keys, 400-byte values. The block size is what most rows vary: 8 KiB, and 4 and 16 beside it; `DIO` goes around the
//! system's cache, `2K` has values of 2 KiB. 32 threads read, as published; of 8 KiB blocks there are rows with one thread and
//! with two for each core too. The script's overwrite has 32 writers; here it is one, as for every engine of this program.

use super::{Session, Size, settings};
use crate::job::{Step, TreeState, Workload};
use ashlar_peers::settings::Settings;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const READERS: u32 = 32;

pub fn sessions(size: Size) -> Vec<Session> {
    let keys = size.of(100_000, 4_500_000, 45_000_000);
    let large = size.of(10_000, 500_000, 5_000_000);
    let buffer = size.of(256 * KIB, 2 * MIB, 8 * MIB);
    let of = |keys, value, block_bytes| Settings {
        block_bytes,
        codec: "lz4".into(),
        file_bytes: Some(buffer),
        base_bytes: Some(size.of(MIB, 8 * MIB, 64 * MIB)),
        memory_limit_bytes: size.of(None, Some(160 * MIB), Some(1640 * MIB)),
        ..settings(keys, [20, value], size.of(MIB, 32 * MIB, 320 * MIB), buffer)
    };
    let block = |kib| of(keys, 400, kib * KIB);
    let direct = Settings { direct_io: true, ..block(8) };
    vec![
        Session { settings: block(8), keys, steps: [rows(size, "8K", keys), threads(size)].concat() },
        Session { settings: block(4), keys, steps: rows(size, "4K", keys) },
        Session { settings: block(16), keys, steps: rows(size, "16K", keys) },
        Session { settings: direct, keys, steps: rows(size, "DIO", keys) },
        Session { settings: of(large, 2048, 8 * KIB), keys: large, steps: rows(size, "2K", large) },
    ]
}

fn step(size: Size, test: &str, variant: &str, workload: Workload, threads: u32) -> Step {
    Step {
        title: format!("{test}, {variant}"),
        threads,
        seconds: size.of(0.3, 60.0, 300.0),
        tree: TreeState::Idle,
        ..Step::new(&format!("{test}-{variant}"), workload, u64::MAX)
    }
}

/// The script's four, in its order.
fn rows(size: Size, variant: &str, keys: u64) -> Vec<Step> {
    let step = |test, workload, threads| step(size, test, variant, workload, threads);
    let load = step("bulkload", Workload::Fillrandom, 1);
    vec![
        Step { ops: keys, seconds: 0.0, tree: TreeState::Loaded, ..load },
        Step { ops: keys, ..step("overwrite", Workload::Overwrite, 1) },
        Step { tree: TreeState::Loaded, ..step("readwhilewriting", Workload::Readwhilewriting, READERS) },
        step("readrandom", Workload::Readrandom, READERS),
    ]
}

/// Reads by fewer threads than published.
fn threads(size: Size) -> Vec<Step> {
    let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let tests = [("readwhilewriting", Workload::Readwhilewriting), ("readrandom", Workload::Readrandom)];
    let of = |(test, workload)| {
        [(1, "8K-1-thread".to_owned()), (2 * cores, format!("8K-{}-threads", 2 * cores))]
            .map(|(threads, variant)| step(size, test, &variant, workload, threads))
    };
    tests.into_iter().flat_map(of).collect()
}
