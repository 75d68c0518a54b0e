//! RocksDB's figures at the workloads that a judge can do: its peak, and what families cost. It runs in a child process, with a block
//! cache of three quarters of the cap that holds indexes and filters too, and memtables of a quarter in all. Figures to compare with;
//! no row fails by them.

use super::families::{self, Cost, since, timed};
use super::gauge::{Over, resident};
use ashlar_testkit::judge::{Judge, JudgeError, JudgeVersion, MERGING, Opening};
use ashlar_testkit::ops::{Bulk, BulkKind, BulkWrite, Op};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A judge makes the operations of a line before it does the first; a line has about so many bytes of values, so that the peak is
/// RocksDB's.
const LINE: u32 = 1 << 20;

/// What a row does.
#[derive(Clone, Copy)]
enum Steps {
    /// Writes all `keys` in each of `rounds`. `compacts`: compacts everything in the end.
    Writes { kind: BulkKind, bytes: u32, keys: u32, rounds: u32, compacts: bool },
    /// Makes so many families; see [`families`].
    Families(u32),
}

fn steps(row: &str) -> Option<Steps> {
    let put =
        |bytes, keys, rounds| Steps::Writes { kind: BulkKind::Put, bytes, keys, rounds, compacts: false };
    let load = |bytes, keys| Steps::Writes { kind: BulkKind::Put, bytes, keys, rounds: 1, compacts: true };
    let merge =
        |bytes, keys, rounds| Steps::Writes { kind: BulkKind::Merge, bytes, keys, rounds, compacts: true };
    Some(match row {
        "values-1k" => put(1000, 200_000, 2),
        "values-100k" => put(100_000, 2000, 2),
        "values-1m" => put(1_000_000, 200, 2),
        "merges-1-key" => merge(100, 1, 100_000),
        "merges-1000-keys" => merge(100, 1000, 100),
        "merges-10-keys-1k" => merge(1000, 10, 10_000),
        "compaction" => load(1000, 400_000),
        "index-17m" => load(100, 5_000_000),
        "families-100" => Steps::Families(100),
        "families-300" => Steps::Families(300),
        "families-1000" => Steps::Families(1000),
        "families-10000" => Steps::Families(10_000),
        _ => return None,
    })
}

/// RocksDB's figures.
pub(super) struct Theirs {
    /// The largest resident size, in bytes.
    pub(super) peak: u64,
    /// What families cost, in a row of families.
    pub(super) families: Option<Cost>,
}

/// RocksDB's figures at the row under a cap in bytes. `None`: the row is not for a judge, or there is no library.
pub(super) fn figures(row: &str, cap: u64, folder: &Path) -> Option<Theirs> {
    let steps = steps(row)?;
    let mut judge = Judge::spawn(JudgeVersion::V11).ok()?;
    let (id, over, peak) = (judge.id(), AtomicBool::new(false), AtomicU64::new(0));
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(resident(&id.to_string()).map_or(0, |(rss, _)| rss), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let _over = Over(&over);
        work(&mut judge, cap, folder, steps)
    });
    done.ok().map(|families| Theirs { peak: peak.load(Ordering::Relaxed), families })
}

fn work(judge: &mut Judge, cap: u64, folder: &Path, steps: Steps) -> Result<Option<Cost>, JudgeError> {
    let options = format!(
        "{MERGING};write_buffer_size={};db_write_buffer_size={};\
         block_based_table_factory={{block_cache={};cache_index_and_filter_blocks=true}}",
        cap / 12,
        cap / 4,
        cap / 4 * 3
    );
    let dir = folder.join("rocksdb");
    judge.open(&dir, Opening::Create, &options)?;
    let cost = match steps {
        Steps::Families(count) => Some(with_families(judge, &dir, &options, count)?),
        Steps::Writes { kind, bytes, keys, rounds, compacts } => {
            let family = || "default".to_owned();
            let line = (LINE / bytes).max(1);
            for (seed, first) in passes(rounds, keys, line) {
                let count = line.min(keys - first);
                let write = BulkWrite::Plain;
                judge.bulk(&Bulk { kind, family: family(), first, count, bytes, seed, write })?;
            }
            if compacts {
                judge.apply(&[Op::Compact { family: family() }])?;
            }
            judge.close()?;
            None
        }
    };
    Ok(cost)
}

/// The seed and the first key of each line, `rounds` times over all keys.
fn passes(rounds: u32, keys: u32, line: u32) -> impl Iterator<Item = (u64, u32)> {
    (0..u64::from(rounds))
        .flat_map(move |seed| (0..keys).step_by(line as usize).map(move |first| (seed, first)))
}

/// See [`super::families`]. The judge takes longer to read a put than RocksDB to do it, so that the time of a put stays unknown.
fn with_families(judge: &mut Judge, dir: &Path, options: &str, count: u32) -> Result<Cost, JudgeError> {
    let mut cost = Cost::default();
    let id = judge.id().to_string();
    let anonymous = || resident(&id).map_or(0, |(_, anon)| anon);
    let name = |n: u32| format!("family{n}");
    let (before, began) = (anonymous(), Instant::now());
    match count <= families::ONE_BY_ONE {
        true => (0..count).try_for_each(|n| judge.create_family(&name(n)))?,
        false => judge.create_families("family", count)?,
    }
    cost.create = since(began) / u64::from(count);
    cost.idle = anonymous().saturating_sub(before) / u64::from(count);
    cost.one_more = timed(|| judge.create_family(&name(count)))?;
    let mut turns = |first: u32, keys: u32| {
        (0..=count).try_for_each(|n| {
            let (kind, bytes, write) = (BulkKind::Put, families::VALUE, BulkWrite::Plain);
            judge.bulk(&Bulk { kind, family: name(n), first, count: keys, bytes, seed: 0, write })
        })
    };
    (0..20_000 / count + 10).try_for_each(|round| turns(round, 1))?;
    turns(0, families::TURN)?;
    cost.close = timed(|| judge.close())?;
    cost.open = timed(|| judge.open(dir, Opening::Existing, options))?;
    judge.close().map(|()| cost)
}
