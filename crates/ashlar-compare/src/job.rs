//! The job of one process: steps on one database.

use ashlar_peers::engine::EngineName;
use ashlar_peers::settings::Settings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The measured work.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Puts in key order into an empty database.
    Fillseq,
    /// Puts of keys drawn with replacement into an empty database.
    Fillrandom,
    /// The same in batches of 100.
    Fillbatch,
    /// The same, and each put waits for the device; at most five seconds.
    Fillsync,
    /// A bulk load: puts in key order, without the WAL, compacted once at the end. Flush and compaction count.
    Bulkload,
    /// Gets of drawn keys.
    Readrandom,
    /// Gets of drawn keys that do not exist, each directly behind a key that may exist.
    Readmissing,
    /// Gets of drawn keys, 64 in a call.
    Multireadrandom,
    /// A cursor to a drawn key and ten steps; a new cursor each time.
    Seekrandom,
    /// All entries in order.
    Readseq,
    /// All entries in reverse order.
    Readreverse,
    /// Puts of drawn keys over the loaded data.
    Overwrite,
    /// Deletes of drawn keys.
    Deleterandom,
    /// Compacts everything, after a random load and as many overwrites that no compaction has seen. Counts the entries that
    /// remain.
    Compact,
    /// Gets of sums of 100 merge operands and of 1000 (counters-1000): half flushed, half in the memtable.
    Counters,
    /// Gets among 100,000 range tombstones over the loaded data.
    Rangetombstones,
    /// A new cursor to the first entry, behind the tombstones of all but the last thousand keys.
    Scantombstones,
    /// Gets of drawn keys by many threads, beside one that puts.
    Readwhilewriting,
    /// YCSB A: half gets, half puts.
    #[value(skip)]
    YcsbA,
    /// YCSB B: 95 % gets, 5 % puts.
    #[value(skip)]
    YcsbB,
    /// YCSB C: gets.
    #[value(skip)]
    YcsbC,
    /// YCSB D: 95 % gets of new entries, 5 % inserts.
    #[value(skip)]
    YcsbD,
    /// YCSB E: 95 % short scans, 5 % inserts.
    #[value(skip)]
    YcsbE,
    /// YCSB F: half gets, half a get and a put of the same key.
    #[value(skip)]
    YcsbF,
    /// Puts at a fixed rate that does not depend on the engine.
    Openloop,
    /// Transactions that read two drawn keys for update and put both, over the loaded data.
    #[value(skip)]
    Transactions,
    /// Ten puts for each of the drawn prefixes, into an empty database.
    #[value(skip)]
    Fillprefixes,
    /// A new cursor over all entries of a prefix.
    #[value(skip)]
    Prefixscan,
    /// The same, of prefixes without entries.
    #[value(skip)]
    Prefixmissing,
    /// As [`Workload::Compact`], with a compaction filter that removes one value of ten.
    #[value(skip)]
    Compactfilter,
    /// Sixteen SST files, written outside the database.
    #[value(skip)]
    Sstwrite,
    /// These files taken into the database, in one call that verifies each block before.
    #[value(skip)]
    Ingest,
    /// The same without verification of the blocks.
    #[value(skip)]
    Ingestunverified,
    /// Checkpoints of the database, each a new directory.
    #[value(skip)]
    Checkpoint,
    /// A backup of the database into an empty directory.
    #[value(skip)]
    Backup,
    /// A further backup, after as many overwrites as a tenth of the keys.
    #[value(skip)]
    Backupagain,
}

impl Workload {
    /// The workloads of a free run that names none.
    pub const USUAL: [Workload; 6] = [
        Workload::Fillseq,
        Workload::Fillrandom,
        Workload::Overwrite,
        Workload::Readrandom,
        Workload::Readseq,
        Workload::Seekrandom,
    ];

    /// The name on command lines and in tables.
    pub fn text(self) -> &'static str {
        match self {
            Workload::Fillseq => "fillseq",
            Workload::Fillrandom => "fillrandom",
            Workload::Fillbatch => "fillbatch",
            Workload::Fillsync => "fillsync",
            Workload::Bulkload => "bulkload",
            Workload::Readrandom => "readrandom",
            Workload::Readmissing => "readmissing",
            Workload::Multireadrandom => "multireadrandom",
            Workload::Seekrandom => "seekrandom",
            Workload::Readseq => "readseq",
            Workload::Readreverse => "readreverse",
            Workload::Overwrite => "overwrite",
            Workload::Deleterandom => "deleterandom",
            Workload::Compact => "compact",
            Workload::Counters => "counters",
            Workload::Rangetombstones => "rangetombstones",
            Workload::Scantombstones => "scantombstones",
            Workload::Readwhilewriting => "readwhilewriting",
            Workload::YcsbA => "ycsb-a",
            Workload::YcsbB => "ycsb-b",
            Workload::YcsbC => "ycsb-c",
            Workload::YcsbD => "ycsb-d",
            Workload::YcsbE => "ycsb-e",
            Workload::YcsbF => "ycsb-f",
            Workload::Openloop => "openloop",
            Workload::Transactions => "transactions",
            Workload::Fillprefixes => "fillprefixes",
            Workload::Prefixscan => "prefixscan",
            Workload::Prefixmissing => "prefixmissing",
            Workload::Compactfilter => "compactfilter",
            Workload::Sstwrite => "sstwrite",
            Workload::Ingest => "ingest",
            Workload::Ingestunverified => "ingestunverified",
            Workload::Checkpoint => "checkpoint",
            Workload::Backup => "backup",
            Workload::Backupagain => "backupagain",
        }
    }

    /// True for workloads that only write.
    pub fn writes(self) -> bool {
        self.loads()
            || matches!(
                self,
                Workload::Fillsync
                    | Workload::Overwrite
                    | Workload::Deleterandom
                    | Workload::Compact
                    | Workload::Openloop
                    | Workload::Transactions
                    | Workload::Compactfilter
                    | Workload::Sstwrite
                    | Workload::Ingest
                    | Workload::Ingestunverified
            )
    }

    /// True for workloads that count the entries which the loads before them left.
    pub fn compacts(self) -> bool {
        matches!(self, Workload::Compact | Workload::Compactfilter)
    }

    /// True for workloads of few long calls: the driver's part of them is nothing.
    pub fn calls_long(self) -> bool {
        self.compacts()
            || matches!(
                self,
                Workload::Sstwrite
                    | Workload::Ingest
                    | Workload::Ingestunverified
                    | Workload::Checkpoint
                    | Workload::Backup
                    | Workload::Backupagain
            )
    }

    /// True for fills after which every engine has the same data, even if the clock ended the fill: the rest is then written
    /// in batches that do not count.
    pub fn loads(self) -> bool {
        matches!(
            self,
            Workload::Fillseq
                | Workload::Fillrandom
                | Workload::Fillbatch
                | Workload::Bulkload
                | Workload::Fillprefixes
        )
    }

    /// True for workloads that begin with an empty database.
    pub fn fills(self) -> bool {
        self.loads()
            || matches!(
                self,
                Workload::Fillsync | Workload::Counters | Workload::Openloop | Workload::Sstwrite
            )
    }
}

/// The tree that a step finds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum TreeState {
    /// As the writes before left it, in memory and in level 0 too; what they left to do is done meanwhile.
    #[default]
    Loaded,
    /// Memtables are flushed and background work is finished.
    Idle,
    /// Everything is compacted, and background work done.
    Settled,
}

impl TreeState {
    /// As command lines and rows name it.
    pub fn text(self) -> &'static str {
        match self {
            TreeState::Loaded => "loaded",
            TreeState::Idle => "idle",
            TreeState::Settled => "settled",
        }
    }
}

/// One workload on the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The experiment's name for it, as `1A` of `s3`.
    pub row: String,
    /// In a few words.
    pub title: String,
    /// The loop.
    pub workload: Workload,
    /// Operations; of a scan the least entries. Per thread.
    pub ops: u64,
    /// Entries per write.
    pub batch: u64,
    /// Threads that do it.
    pub threads: u32,
    /// Merge operands of a key of [`Workload::Counters`].
    pub operands: u64,
    /// Keys that the threads of [`Workload::Transactions`] share; 0: all keys.
    pub hot_keys: u64,
    /// The pace of the writer of [`Workload::Readwhilewriting`], as a part of the rate of the session's last overwrite. 0: full
    /// speed.
    pub share: f64,
    /// The time limit; 0: no limit. A fill that exceeds the limit is completed in batches that do not count, so that later steps
    /// find the same data on every engine.
    pub seconds: f64,
    /// False: a load that only prepares.
    pub measured: bool,
    /// The preparation of the tree.
    pub tree: TreeState,
    /// Whether the cache is filled with blocks first.
    pub warm: bool,
    /// Whether the memtables are flushed and background work is finished after writes; the record has the time. False: the next
    /// step finds the tree as the writes left it.
    pub settles: bool,
    /// Whether the time of that counts in the rate.
    pub counts_settling: bool,
}

impl Step {
    /// One thread, no batches, no limit of time.
    pub fn new(row: &str, workload: Workload, ops: u64) -> Step {
        Step {
            row: row.to_owned(),
            title: workload.text().to_owned(),
            workload,
            ops,
            batch: 1,
            threads: 1,
            operands: 0,
            hot_keys: 0,
            share: 0.0,
            seconds: 0.0,
            measured: true,
            tree: TreeState::Loaded,
            warm: false,
            settles: true,
            counts_settling: false,
        }
    }
}

/// The work of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// `s0`, `s2`, `s3`, `ycsb`, `free`.
    pub experiment: String,
    /// `smoke`, `quarter`, `standard`, `large`.
    pub size: Option<String>,
    /// The engine.
    pub engine: EngineName,
    /// The engine's shared object, if the engine needs one.
    pub shared_object: Option<String>,
    /// The directory of the database.
    pub dir: String,
    /// The memory control group to enter first.
    pub group: Option<PathBuf>,
    /// The settings of the open.
    pub settings: Settings,
    /// In this order, on one database.
    pub steps: Vec<Step>,
    /// Keys.
    pub keys: u64,
    /// Writes per second of [`Workload::Openloop`], and of the writer that a step slows down.
    pub rate: f64,
    /// Another process counts the system calls: the process runs the steps and nothing else.
    pub probe: bool,
}

/// A small one for tests.
#[cfg(test)]
pub fn sample() -> Job {
    Job {
        experiment: "free".into(),
        size: None,
        engine: EngineName::Ashlardb,
        shared_object: None,
        dir: String::new(),
        group: None,
        settings: Settings::default(),
        steps: Vec::new(),
        keys: 5000,
        rate: 0.0,
        probe: false,
    }
}
