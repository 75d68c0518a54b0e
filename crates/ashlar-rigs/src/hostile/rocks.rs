//! RocksDB's peak at the workloads that a judge can do: in a child process, with a block cache of three quarters of the cap
//! and memtables of a twelfth. A figure to compare with; no row fails by it.

use super::gauge::{Over, resident};
use ashlar_testkit::judge::{Judge, JudgeError, JudgeVersion, MERGING, Opening};
use ashlar_testkit::ops::{Bulk, BulkKind, BulkWrite};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The operations of a row: kind, bytes of a value, count; twice for an overwrite.
fn operations(row: &str) -> Option<(BulkKind, u32, u32, u32)> {
    Some(match row {
        "values-1k" => (BulkKind::Put, 1000, 200_000, 2),
        "values-100k" => (BulkKind::Put, 100_000, 2000, 2),
        "values-1m" => (BulkKind::Put, 1_000_000, 200, 2),
        "merges-1000-keys" => (BulkKind::Merge, 100, 1000, 100),
        "merges-10-keys-1k" => (BulkKind::Merge, 1000, 10, 10_000),
        _ => return None,
    })
}

/// The largest resident size of RocksDB at the row under a cap in MiB, in bytes. `None`: the row is not for a judge, the cap is
/// the default, or there is no library.
pub(super) fn peak(row: &str, cap: u64, folder: &Path) -> Option<u64> {
    let (kind, bytes, count, rounds) = operations(row)?;
    let cap = (cap << 20 > 0).then_some(cap << 20)?;
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
        work(&mut judge, cap, folder, (kind, bytes, count, rounds))
    });
    done.ok().map(|()| peak.load(Ordering::Relaxed))
}

fn work(
    judge: &mut Judge,
    cap: u64,
    folder: &Path,
    (kind, bytes, count, rounds): (BulkKind, u32, u32, u32),
) -> Result<(), JudgeError> {
    let options = format!(
        "{MERGING};write_buffer_size={};block_based_table_factory={{block_cache={}}}",
        cap / 12,
        cap / 4 * 3
    );
    judge.open(&folder.join("rocksdb"), Opening::Create, &options)?;
    for seed in 0..u64::from(rounds) {
        let family = "default".to_owned();
        judge.bulk(&Bulk { kind, family, first: 0, count, bytes, seed, write: BulkWrite::Plain })?;
    }
    judge.close()
}
