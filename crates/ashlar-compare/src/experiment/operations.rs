//! The operations beside RocksDB that are more than puts, gets and scans: transactions, universal compaction, ingestion,
//! checkpoints and backups, scans of a prefix, compaction filters.
//!
//! Other engines lack these, or do not offer them in the same sense. Everything is in the block cache, except in the sessions of a
//! gibibyte, whose cache holds 64 MiB: files are copied there, and entries are not read.

use super::{Session, Size, settings};
use crate::job::{Step, TreeState, Workload};
use ashlar_peers::settings::{Settings, Transactions};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of a value in the sessions of a gibibyte.
const LARGE_VALUE: usize = 400;
/// Keys that contended transactions share.
const HOT: u64 = 64;
const THREADS: u32 = 4;
/// More tables of level 0 than there will be: no compaction begins by itself.
const NEVER: u32 = 10_000_000;
/// Puts in a batch of a load that is not measured.
const BATCH: u64 = 1000;

pub fn sessions(size: Size) -> Vec<Session> {
    let mut all =
        vec![transactions(size, Transactions::Pessimistic), transactions(size, Transactions::Optimistic)];
    all.push(universal(size));
    all.extend([Workload::Ingest, Workload::Ingestunverified].map(|workload| ingest(size, workload)));
    all.extend([copies(size), prefixes(size), filter(size)]);
    all
}

/// Settings of `keys` keys with 16 + 100 bytes, all of which fit in the cache.
fn small(keys: u64, write_buffer: u64) -> Settings {
    let cache = (keys * 2 * 116).max(64 * MIB);
    Settings { codec: "none".into(), write_buffers: 3, ..settings(keys, [16, 100], cache, write_buffer) }
}

/// Settings of a gibibyte at standard size, and its number of keys.
fn large(size: Size) -> (Settings, u64) {
    let keys = size.of(4 * MIB, 1024 * MIB, 8192 * MIB) / (16 + LARGE_VALUE as u64);
    let s = settings(keys, [16, LARGE_VALUE], size.of(8, 64, 64) * MIB, size.of(MIB / 2, 64 * MIB, 64 * MIB));
    (Settings { codec: "none".into(), write_buffers: 3, ..s }, keys)
}

fn load(workload: Workload, ops: u64, batch: u64) -> Step {
    Step { measured: false, batch, ..Step::new("load", workload, ops) }
}

fn titled(row: &str, title: &str, workload: Workload, ops: u64) -> Step {
    Step { title: title.to_owned(), tree: TreeState::Idle, ..Step::new(row, workload, ops) }
}

/// By one thread, by several over all keys, by several over few keys.
fn transactions(size: Size, kind: Transactions) -> Session {
    let keys = size.of(5000, 1_000_000, 10_000_000);
    let ops = size.of(1000, 200_000, 2_000_000);
    let name = match kind {
        Transactions::Pessimistic => "pessimistic",
        Transactions::Optimistic => "optimistic",
    };
    let step = |suffix: &str, what: &str, threads: u32, hot_keys: u64| {
        let (row, title) = (format!("txn-{name}{suffix}"), format!("{name} transactions, {what}"));
        let step = titled(&row, &title, Workload::Transactions, (ops / u64::from(threads)).max(1));
        Step { threads, hot_keys, ..step }
    };
    let steps = vec![
        load(Workload::Fillseq, keys, BATCH),
        step("", "1 thread", 1, 0),
        step("-4", "4 threads", THREADS, 0),
        step("-4-hot", "4 threads on 64 keys", THREADS, HOT),
    ];
    let settings =
        Settings { transactions: Some(kind), ..small(keys, size.of(256 * KIB, 64 * MIB, 64 * MIB)) };
    Session { settings, keys, steps }
}

/// Many memtables, so that there is something to merge. The rate includes the debt that the puts leave.
fn universal(size: Size) -> Session {
    let keys = size.of(5000, 2_000_000, 20_000_000);
    let settings = Settings { universal: true, ..small(keys, size.of(64 * KIB, 8 * MIB, 64 * MIB)) };
    let step = |row: &str, title: &str, workload| Step {
        tree: TreeState::Loaded,
        counts_settling: true,
        ..titled(row, title, workload, keys)
    };
    let steps = vec![
        step("universal-fillrandom", "universal, fillrandom and its debt", Workload::Fillrandom),
        step("universal-overwrite", "universal, overwrite and its debt", Workload::Overwrite),
    ];
    Session { settings, keys, steps }
}

/// The row of the writers is in the session whose ingestion verifies.
fn ingest(size: Size, workload: Workload) -> Session {
    let (settings, keys) = large(size);
    let verified = workload == Workload::Ingest;
    let write = titled("sst-write", "16 SST files written", Workload::Sstwrite, keys);
    let (row, title) = match verified {
        true => ("ingest", "16 SST files ingested, blocks verified"),
        false => ("ingest-unverified", "16 SST files ingested"),
    };
    let steps = vec![Step { measured: verified, ..write }, titled(row, title, workload, keys)];
    Session { settings, keys, steps }
}

/// Checkpoints, a backup of everything, and one after a tenth of the entries was overwritten.
fn copies(size: Size) -> Session {
    let (settings, keys) = large(size);
    let steps = vec![
        load(Workload::Fillrandom, keys, BATCH),
        titled("checkpoint", "checkpoint", Workload::Checkpoint, size.of(2, 10, 10)),
        titled("backup", "backup, the first", Workload::Backup, 1),
        titled("backup-again", "backup after overwrites of a tenth", Workload::Backupagain, 1),
    ];
    Session { settings, keys, steps }
}

/// Some twenty runs in level 0, which no compaction merges.
fn prefixes(size: Size) -> Session {
    let keys = size.of(10_000, 1_000_000, 10_000_000);
    let ops = size.of(2000, 200_000, 1_000_000);
    let settings = Settings {
        prefix_bytes: 8,
        l0_triggers: Some([NEVER; 3]),
        ..small(keys, size.of(128 * KIB, 8 * MIB, 64 * MIB))
    };
    let scan = |row: &str, title: &str, workload| titled(row, title, workload, ops);
    let steps = vec![
        load(Workload::Fillprefixes, keys, 1),
        scan("prefixscan", "scan of a prefix of 10 entries", Workload::Prefixscan),
        scan("prefixscan-missing", "scan of a missing prefix", Workload::Prefixmissing),
    ];
    Session { settings, keys, steps }
}

/// A random load and as many overwrites in tables of level 0, compacted with a filter that removes one value of ten.
fn filter(size: Size) -> Session {
    let keys = size.of(5000, 1_000_000, 10_000_000);
    let settings = Settings {
        filters: true,
        l0_triggers: Some([NEVER; 3]),
        ..small(keys, size.of(128 * KIB, 16 * MIB, 64 * MIB))
    };
    let steps = vec![
        load(Workload::Fillrandom, keys, 1),
        load(Workload::Overwrite, keys, 1),
        titled("compact-filter", "compaction with a filter", Workload::Compactfilter, keys),
    ];
    Session { settings, keys, steps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_peers::engine::EngineName;

    #[test]
    fn other_engines_do_not_offer_them() {
        for session in sessions(Size::Smoke) {
            let s = &session.settings;
            let special = s.transactions.is_some() || s.universal || s.prefix_bytes > 0 || s.filters;
            assert_eq!(EngineName::Fjall.lacks(s).is_some(), special, "{:?}", session.steps);
            assert_eq!((EngineName::Rocksdb.lacks(s), EngineName::Ashlardb.lacks(s)), (None, None));
        }
    }

    #[test]
    fn standard_size_has_a_gibibyte_to_copy() {
        let of = |row: &str| {
            let has = |session: &Session| session.steps.iter().any(|step| step.row == row);
            sessions(Size::Standard).into_iter().find(has).unwrap()
        };
        for row in ["backup", "ingest"] {
            let bytes = of(row).settings.data_bytes;
            assert!(bytes <= 1 << 30 && bytes > (1 << 30) - 1000, "{row}: {bytes}");
        }
        let hot = of("txn-optimistic-4-hot");
        let step = hot.steps.last().unwrap();
        assert_eq!((step.threads, step.hot_keys, step.ops), (4, 64, 50_000));
    }
}
