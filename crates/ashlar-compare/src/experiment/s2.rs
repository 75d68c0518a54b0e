//! RocksDB's benchmark.sh on NVMe, June 2020: one database, loaded in random order, overwritten, read beside a writer, read.
//!
//! 20-byte keys, 400-byte values; the block size is what the rows vary: 8 KiB, and 4 and 16 beside it; one set of rows has
//! values of 2 KiB. The script's overwrite has 32 writers; here it is one, as for every engine of this program.

use super::{Session, Size, settings};
use crate::job::{Before, Step, Workload};
use crate::settings::Settings;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const READERS: u32 = 32;

pub fn sessions(size: Size) -> Vec<Session> {
    let small = size.of(100_000, 4_500_000, 45_000_000);
    let large = size.of(10_000, 500_000, 5_000_000);
    let blocks: &[(&str, u64)] =
        if size == Size::Smoke { &[("8K", 8)] } else { &[("8K", 8), ("4K", 4), ("16K", 16)] };
    let mut all: Vec<_> =
        blocks.iter().map(|&(name, kib)| session(size, name, small, 400, kib * KIB)).collect();
    all.push(session(size, "2K", large, 2048, 8 * KIB));
    all
}

fn session(size: Size, variant: &str, keys: u64, value: usize, block_bytes: u64) -> Session {
    let buffer = size.of(256 * KIB, 2 * MIB, 8 * MIB);
    let settings = Settings {
        block_bytes,
        codec: "lz4".into(),
        file_bytes: Some(buffer),
        base_bytes: Some(size.of(MIB, 8 * MIB, 64 * MIB)),
        ..settings(keys, [20, value], size.of(MIB, 32 * MIB, 320 * MIB), buffer)
    };
    let step = |test: &str, workload, threads| Step {
        title: format!("{test}, {variant}"),
        threads,
        seconds: size.of(2.0, 60.0, 300.0),
        ..Step::new(&format!("{test}-{variant}"), workload, keys)
    };
    let steps = vec![
        Step { seconds: 0.0, ..step("bulkload", Workload::Fillrandom, 1) },
        Step { before: Before::Settle, ..step("overwrite", Workload::Overwrite, 1) },
        step("readwhilewriting", Workload::Readwhilewriting, READERS),
        Step { before: Before::Settle, ..step("readrandom", Workload::Readrandom, READERS) },
    ];
    Session { settings, keys, steps }
}
