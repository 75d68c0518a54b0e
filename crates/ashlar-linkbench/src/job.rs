//! The job of one process: a load and some rows on one database.

use crate::config::Config;
use crate::kv::Mode;
use ashlar_peers::engine::EngineName;
use ashlar_peers::settings::Settings;
use ashlar_report::record::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// What the process prints, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// A row, when it is measured.
    Row(Box<Record>),
    /// The directory had the whole graph, so there is no row of the load.
    AlreadyLoaded,
    /// The check after the last row.
    Checked(Checked),
}

/// The outcome of the check after the last row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Link lists that were checked.
    pub fans: u64,
    /// The faults, in words. `None`: there are none.
    pub why: Option<String>,
    /// Whether the driver knows the rows and digests that must be there.
    pub totals: bool,
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
    /// The experiment's name in records: rows of one name may be compared ([`crate::cli`]).
    pub experiment: String,
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
    /// `cached`, `device` or `file`; row names begin with this word.
    pub case: String,
    /// How writes are atomic. A server runs each operation as a transaction.
    pub mode: Mode,
    /// Load the graph first and record it. False with `-r`.
    pub loads: bool,
    /// Read everything once before each row, so that every engine begins with filled caches.
    pub warm: bool,
    /// In this order, on one database.
    pub steps: Vec<Step>,
    /// The user's own overrides, as `key=value`.
    pub define: Vec<String>,
}

impl Job {
    /// The job as `engine` does it.
    pub fn on(&self, engine: EngineName) -> Job {
        let mode = match self.mode {
            // The statements of one operation are one transaction, as in the original program.
            Mode::Batch if engine.is_server() => Mode::Txn,
            mode => mode,
        };
        Job { engine, mode, ..self.clone() }
    }

    /// The name of the load's row.
    pub fn load_row(&self) -> String {
        format!("{}-load", self.case)
    }

    /// What distinguishes this job from one with the default options, for the records.
    pub fn described(&self) -> BTreeMap<String, String> {
        let file = self.source.file.as_ref().map(|path| path.display().to_string());
        let all = [
            ("mode", Some(self.mode.text().to_owned())),
            ("form", self.engine.is_server().then(|| "sql".to_owned())),
            ("configuration", file),
            ("overrides", (!self.define.is_empty()).then(|| self.define.join(" "))),
            ("intended", (!self.source.as_java).then(|| "true".to_owned())),
        ];
        all.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
    }

    /// Threads that use the database at the same time: those of the load are its loaders and one for the nodes.
    pub fn clients(&self, loaders: u32) -> u32 {
        self.steps.iter().map(|step| step.clients).max().unwrap_or(1).max(loaders + 1)
    }
}
