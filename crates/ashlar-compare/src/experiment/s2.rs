//! RocksDB's benchmark.sh on NVMe, June 2020: a bulk load, and a database that is loaded in random order and compacted. That database is
//! overwritten, read beside a writer, and read.
//!
//! 1. 20-byte keys, 400-byte values. The block size is what most rows vary: 8 KiB, and 4 and 16 beside it; `DIO` goes around the
//!    system's cache, `2K` has values of 2 KiB.
//! 2. The script's bulk load has no log and no compactions; the compaction after it does not count. The rows after it need an engine
//!    with other settings, so they have a load of their own.
//! 3. 32 threads write and read, as published. Of 8 KiB blocks there are rows with one thread and, of reads, with two for each core.
//! 4. The script limits the writer beside the readers to 2 MiB/s, which was a seventeenth of its overwrites. Here the writer has the
//!    same part of the engine's own overwrites.

use super::{Session, Size, settings};
use crate::job::{Step, TreeState, Workload};
use ashlar_peers::settings::Settings;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const CLIENTS: u32 = 32;
/// The published MiB per second of the writer beside the readers, and of the overwrites.
const SHARE: f64 = 2.0 / 34.3;

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
    let variants = [
        ("8K", block(8), keys),
        ("4K", block(4), keys),
        ("16K", block(16), keys),
        ("DIO", direct, keys),
        ("2K", of(large, 2048, 8 * KIB), large),
    ];
    variants.into_iter().flat_map(|(variant, settings, keys)| pair(size, variant, &settings, keys)).collect()
}

/// The bulk load, and the rows on a database of the same keys.
fn pair(size: Size, variant: &str, settings: &Settings, keys: u64) -> [Session; 2] {
    let bulk = Settings { bulk: true, no_log: true, memory_limit_bytes: None, ..settings.clone() };
    let load = Step {
        ops: keys,
        seconds: 0.0,
        tree: TreeState::Loaded,
        ..step(size, "bulkload", variant, Workload::Fillrandom, 1)
    };
    let prepare = Step { measured: false, batch: 100, row: "load".into(), ..load.clone() };
    let mut steps = vec![prepare];
    // The bytes of a session are limited by the disk, so overwrites have a number too.
    steps.push(Step {
        ops: keys / 8,
        tree: TreeState::Settled,
        ..step(size, "overwrite", variant, Workload::Overwrite, CLIENTS)
    });
    let beside = |row: &str, threads| Step {
        tree: TreeState::Loaded,
        share: SHARE,
        ..step(size, "readwhilewriting", row, Workload::Readwhilewriting, threads)
    };
    let reads = |row: &str, threads| step(size, "readrandom", row, Workload::Readrandom, threads);
    steps.extend([beside(variant, CLIENTS), reads(variant, CLIENTS)]);
    if variant == "8K" {
        let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        for threads in [1, 2 * cores] {
            let row = format!("{variant}-{threads}-thread{}", if threads == 1 { "" } else { "s" });
            steps.extend([beside(&row, threads), reads(&row, threads)]);
        }
        let alone = step(size, "overwrite", &format!("{variant}-1-thread"), Workload::Overwrite, 1);
        steps.push(Step { ops: keys, ..alone });
    }
    [Session { settings: bulk, keys, steps: vec![load] }, Session { settings: settings.clone(), keys, steps }]
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
