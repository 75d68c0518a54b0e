//! The job of one process: a load and some rows on one database.

use crate::config::Config;
use crate::kv::Mode;
use ashlar_peers::engine::EngineName;
use ashlar_peers::settings::Settings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the configuration comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// A property file of the original program; `None`: the built-in workload.
    pub file: Option<PathBuf>,
    /// Where relative names in the file start.
    pub home: PathBuf,
    /// `key=value` of the command line.
    pub overrides: Vec<String>,
    /// Whether the original is followed where it differs from its words.
    pub as_java: bool,
}

impl Source {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Those of [`Config::read`].
    pub fn config(&self) -> Result<Config, String> {
        match &self.file {
            Some(file) => Config::read(file, &self.home, &self.overrides, self.as_java),
            None => Config::builtin(&self.overrides, self.as_java),
        }
    }
}

/// One row after the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The name of the row.
    pub row: String,
    /// In a few words.
    pub title: String,
    /// Requesters.
    pub clients: u32,
    /// Operations of each at most.
    pub requests: u64,
    /// Seconds at most; 0: no limit.
    pub seconds: f64,
    /// Operations a second of all clients together; 0: as fast as they can.
    pub rate: f64,
}

/// The work of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
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
    /// The configuration.
    pub source: Source,
    /// `smoke`, `quarter`, `standard`; `None` with a property file.
    pub size: Option<String>,
    /// Where the data fits: the head of the rows' names.
    pub case: String,
    /// How writes are atomic.
    pub mode: Mode,
    /// Whether the row of the load is wanted.
    pub loads: bool,
    /// In this order, on one database.
    pub steps: Vec<Step>,
    /// The folder of the CSV files.
    pub csv: Option<PathBuf>,
}

impl Job {
    /// The name of the load's row.
    pub fn load_row(&self) -> String {
        format!("{}-load", self.case)
    }

    /// Threads that use the database at the same time: those of the load are its loaders and one for the nodes.
    pub fn clients(&self, loaders: u32) -> u32 {
        self.steps.iter().map(|step| step.clients).max().unwrap_or(1).max(loaders + 1)
    }
}
