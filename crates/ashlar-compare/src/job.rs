//! The job of one process: steps on one database.

use crate::engine::EngineName;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Puts in key order into an empty database.
    Fillseq,
    /// Puts of keys drawn with replacement into an empty database.
    Fillrandom,
    /// Gets of drawn keys.
    Readrandom,
    /// A cursor to a drawn key and ten steps; a new cursor each time.
    Seekrandom,
    /// All entries in order.
    Readseq,
    /// Puts of drawn keys over the loaded data.
    Overwrite,
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
    /// YCSB D: 95 % gets of what is new, 5 % inserts.
    #[value(skip)]
    YcsbD,
    /// YCSB E: 95 % short scans, 5 % inserts.
    #[value(skip)]
    YcsbE,
    /// YCSB F: half gets, half a get and a put of the same key.
    #[value(skip)]
    YcsbF,
    /// Puts at a fixed rate, whatever the engine does meanwhile.
    Openloop,
}

impl Workload {
    /// Those of a free run, in the order in which a table lists them.
    pub const FREE: [Workload; 8] = [
        Workload::Fillseq,
        Workload::Fillrandom,
        Workload::Overwrite,
        Workload::Readrandom,
        Workload::Readseq,
        Workload::Seekrandom,
        Workload::Readwhilewriting,
        Workload::Openloop,
    ];

    /// As command lines and tables print it.
    pub fn text(self) -> &'static str {
        match self {
            Workload::Fillseq => "fillseq",
            Workload::Fillrandom => "fillrandom",
            Workload::Readrandom => "readrandom",
            Workload::Seekrandom => "seekrandom",
            Workload::Readseq => "readseq",
            Workload::Overwrite => "overwrite",
            Workload::Readwhilewriting => "readwhilewriting",
            Workload::YcsbA => "ycsb-a",
            Workload::YcsbB => "ycsb-b",
            Workload::YcsbC => "ycsb-c",
            Workload::YcsbD => "ycsb-d",
            Workload::YcsbE => "ycsb-e",
            Workload::YcsbF => "ycsb-f",
            Workload::Openloop => "openloop",
        }
    }

    /// True for the ones that do nothing but write.
    pub fn writes(self) -> bool {
        matches!(self, Workload::Fillseq | Workload::Fillrandom | Workload::Overwrite | Workload::Openloop)
    }

    /// True for the ones that begin with an empty database.
    pub fn fills(self) -> bool {
        matches!(self, Workload::Fillseq | Workload::Fillrandom | Workload::Openloop)
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
    /// Memory is written out and background work done.
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
    /// Threads that read.
    pub threads: u32,
    /// Of the rate that the session's last overwrite reached, what the writer of [`Workload::Readwhilewriting`] may put; 0: as
    /// fast as it can.
    pub share: f64,
    /// No longer than this; 0: as long as it takes. A fill that is cut off is completed in batches that do not count, so that
    /// what follows finds the same data on every engine.
    pub seconds: f64,
    /// False: a load that only prepares.
    pub measured: bool,
    /// What is done to the tree before.
    pub tree: TreeState,
    /// Every block is brought into the cache before, as far as it holds them.
    pub warm: bool,
    /// Behind writes memory is written out and background work done, and the record says how long that took. False: the next
    /// step finds the tree as the writes left it.
    pub settles: bool,
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
            share: 0.0,
            seconds: 0.0,
            measured: true,
            tree: TreeState::Loaded,
            warm: false,
            settles: true,
        }
    }
}

/// What one process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// `s0`, `s2`, `s3`, `ycsb`, `free`.
    pub experiment: String,
    /// `smoke`, `quarter`, `standard`, `large`.
    pub size: Option<String>,
    /// On which engine.
    pub engine: EngineName,
    /// The engine's shared object, when it needs one.
    pub shared_object: Option<String>,
    /// Where the database is made.
    pub dir: String,
    /// The memory control group to enter first.
    pub group: Option<PathBuf>,
    /// How it is opened.
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
