//! What one process is told to do.

use crate::engine::EngineName;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};

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
    /// Gets of drawn keys; the data was loaded at random, settled and brought into the cache.
    Readrandom,
    /// A cursor to a drawn key and ten steps; a new cursor each time.
    Seekrandom,
    /// All entries in order.
    Readseq,
    /// Puts of drawn keys over the loaded data.
    Overwrite,
    /// Puts at a fixed rate, whatever the engine does meanwhile.
    Openloop,
}

impl Workload {
    /// All of them, in the order in which a table lists them.
    pub const ALL: [Workload; 7] = [
        Workload::Fillseq,
        Workload::Fillrandom,
        Workload::Overwrite,
        Workload::Readrandom,
        Workload::Readseq,
        Workload::Seekrandom,
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
            Workload::Openloop => "openloop",
        }
    }

    /// True for the ones that write.
    pub fn writes(self) -> bool {
        matches!(self, Workload::Fillseq | Workload::Fillrandom | Workload::Overwrite | Workload::Openloop)
    }
}

/// What one process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// On which engine.
    pub engine: EngineName,
    /// RocksDB's shared object, when the engine needs it.
    pub library: Option<String>,
    /// An empty directory for the database.
    pub dir: String,
    /// How it is opened.
    pub settings: Settings,
    /// The workloads, in this order, on one database. Loading is done first when the first of them needs data.
    pub workloads: Vec<Workload>,
    /// Keys.
    pub keys: u64,
    /// Operations of the random reads.
    pub reads: u64,
    /// Writes per second of [`Workload::Openloop`].
    pub rate: f64,
}
