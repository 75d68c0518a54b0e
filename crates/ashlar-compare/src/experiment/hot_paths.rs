//! The hot paths beside RocksDB: every path of a put, get, scan and compaction, on three shapes of keys.
//!
//! Everything is in the block cache, except in the rows `readrandom-pagecache`: their block cache holds 1 MiB, so a get finds
//! its block in the cache of the operating system. Rows of keys that are not integers have the shape in their name. What does
//! not depend on the shape (threads, syncs, sums, tombstones, the page cache) is measured on integers only.

use super::free::{Wanted, sessions as selected, suffixed};
use super::{Session, Size};
use crate::job::{Step, TreeState, Workload};
use ashlar_bench::KeyShape;
use ashlar_peers::settings::Settings;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const VALUE: usize = 100;
/// Bytes of a value in the page cache.
const CACHED_VALUE: usize = 400;
const SHAPES: [(KeyShape, &str); 3] =
    [(KeyShape::Integer, ""), (KeyShape::Url, "url"), (KeyShape::Prefix(300), "prefix300")];
/// On every shape.
const EVERYWHERE: [Workload; 12] = [
    Workload::Fillseq,
    Workload::Fillrandom,
    Workload::Fillbatch,
    Workload::Bulkload,
    Workload::Readrandom,
    Workload::Readmissing,
    Workload::Multireadrandom,
    Workload::Seekrandom,
    Workload::Readseq,
    Workload::Readreverse,
    Workload::Overwrite,
    Workload::Deleterandom,
];
const STATES: [TreeState; 3] = [TreeState::Loaded, TreeState::Idle, TreeState::Settled];

pub fn sessions(size: Size) -> Vec<Session> {
    let keys = size.of(5000, 1_000_000, 10_000_000);
    let reads = size.of(5000, 500_000, 1_000_000);
    let mut all = Vec::new();
    for (shape, name) in SHAPES {
        let settings = settings(size, keys, shape, VALUE);
        let wanted = wanted(&EVERYWHERE, &settings, keys, reads);
        let sessions = selected(&Wanted { states: &STATES, ..wanted });
        all.extend(sessions.into_iter().map(|session| named(session, name)));
    }
    let settings = settings(size, keys, KeyShape::Integer, VALUE);
    let of = |workloads| wanted(workloads, &settings, keys, reads);
    all.extend(selected(&Wanted { write_threads: &[2, 4, 32], ..of(&[Workload::Fillrandom]) }));
    all.extend(selected(&Wanted { write_threads: &[1, 8, 32], ..of(&[Workload::Fillsync]) }));
    all.extend(selected(&of(&[Workload::Compact, Workload::Counters])));
    let tombstones = [Workload::Rangetombstones, Workload::Scantombstones];
    all.extend(selected(&Wanted { states: &STATES[..2], ..of(&tombstones) }));
    all.extend(["none", "lz4"].map(|codec| page_cache(size, codec, keys, reads)));
    all
}

fn wanted<'a>(workloads: &'a [Workload], settings: &'a Settings, keys: u64, reads: u64) -> Wanted<'a> {
    let states = &[TreeState::Idle];
    Wanted { workloads, states, read_threads: &[1], write_threads: &[1], settings, keys, reads }
}

/// As a free run has them.
fn settings(size: Size, keys: u64, shape: KeyShape, value: usize) -> Settings {
    let lengths = [shape.bytes(16), value];
    let data = keys * (lengths[0] + lengths[1]) as u64;
    Settings {
        key_shape: shape,
        codec: "none".into(),
        write_buffers: 3,
        ..super::settings(keys, lengths, (2 * data).max(64 * MIB), size.of(256 * KIB, 64 * MIB, 64 * MIB))
    }
}

fn named(session: Session, name: &str) -> Session {
    let row = |step: Step| if name.is_empty() { step } else { suffixed(step, name) };
    Session { steps: session.steps.into_iter().map(row).collect(), ..session }
}

/// Gets by one thread and by eight.
fn page_cache(size: Size, codec: &str, keys: u64, reads: u64) -> Session {
    let settings = Settings {
        codec: codec.into(),
        // A mebibyte in every size: AshlarDB takes no smaller cache.
        cache_bytes: MIB * u64::from(size.parts()),
        ..settings(size, keys, KeyShape::Integer, CACHED_VALUE)
    };
    let wanted = wanted(&[Workload::Readrandom], &settings, keys, reads);
    let mut session = selected(&Wanted { read_threads: &[1, 8], ..wanted }).remove(0);
    for step in session.steps.iter_mut().filter(|step| step.measured) {
        let codec = if codec == "none" { String::new() } else { format!("-{codec}") };
        step.row = step.row.replacen("readrandom", &format!("readrandom-pagecache{codec}"), 1);
    }
    session
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn every_path_has_its_rows_in_every_size() {
        for size in [Size::Smoke, Size::Quarter, Size::Standard, Size::Large] {
            let sessions = Experiment::HotPaths.sessions(size);
            let of = |row: &str| {
                let has =
                    |session: &&Session| session.steps.iter().any(|step| step.measured && step.row == row);
                sessions.iter().find(has).unwrap_or_else(|| panic!("no row {row}"))
            };
            for row in ["readrandom-pagecache", "readrandom-pagecache-8", "readrandom-pagecache-lz4-8"] {
                assert_eq!((of(row).settings.cache_bytes, of(row).settings.value_bytes), (MIB, 400), "{row}");
            }
            assert_eq!(of("readmissing-loaded-url").settings.key_bytes, 55);
            assert_eq!(of("multireadrandom-settled-prefix300").settings.key_bytes, 300);
            for row in ["fillrandom-32", "fillsync-8", "scantombstones-loaded", "counters-1000", "compact"] {
                assert_eq!(of(row).settings.key_shape, KeyShape::Integer);
            }
        }
    }
}
