//! RocksDB's part of a case.

use super::directory::Folder;
use super::plan::{Plan, Step, is_place, option_string, places};
use ashlar_testkit::Judge;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::ops::Op;
use ashlar_testkit::oracle::State;
use ashlar_testkit::text::to_hex;
use std::time::Duration;

/// The longest that RocksDB may take for a command: some settings stop writes for good.
const LONGEST: Duration = Duration::from_secs(8);

/// How the directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Its first program: the settings as they were drawn.
    Original,
    /// A program that loads the newest OPTIONS file.
    Stored,
}

/// RocksDB at work in the folder of a case.
pub(super) struct Theirs<'a> {
    pub(super) plan: &'a Plan,
    pub(super) folder: &'a Folder,
    judge: Option<Judge>,
}

impl<'a> Theirs<'a> {
    pub(super) fn new(plan: &'a Plan, folder: &'a Folder) -> Theirs<'a> {
        Theirs { plan, folder, judge: None }
    }

    pub(super) fn judge(&mut self) -> Result<&mut Judge, JudgeError> {
        if self.judge.is_none() {
            self.judge = Some(Judge::spawn_impatient(self.plan.version, LONGEST)?);
        }
        self.judge.as_mut().ok_or_else(|| JudgeError::Died("no judge".to_owned()))
    }

    /// The preparation of an opening.
    fn lines(&self) -> Vec<String> {
        let root = self.folder.root().display().to_string();
        let placed = |text: &str| text.replace('@', &root);
        let plan = self.plan;
        let mut lines = vec!["without".to_owned()];
        let always = "create_if_missing=true;create_missing_column_families=true";
        lines.push(format!("with db {always};{}", placed(&option_string(&plan.db))));
        for family in &plan.families {
            lines.push(format!("with family {} {}", family.name, placed(&option_string(&family.settings))));
        }
        let of_db = plan.db.iter().map(|setting| ("*", setting));
        let of_families =
            plan.families.iter().flat_map(|family| family.settings.iter().map(|s| (family.name.as_str(), s)));
        for (whose, setting) in of_db.chain(of_families).filter(|(_, setting)| is_place(&setting.name)) {
            for (path, size) in places(&setting.value) {
                lines.push(format!("with path {whose} {} {size}", to_hex(placed(path).as_bytes())));
            }
        }
        if !plan.wrapper.is_empty() {
            lines.push(format!("with {}", plan.wrapper));
        }
        if !plan.reads.is_empty() {
            lines.push(format!("with read {}", plan.reads.join(" ")));
        }
        lines
    }

    /// Asks for something; a judge that died is forgotten.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut Judge) -> Result<T, JudgeError>) -> Result<T, JudgeError> {
        let answer = self.judge().and_then(ask);
        if matches!(answer, Err(JudgeError::Died(_))) {
            self.judge = None;
        }
        answer
    }

    pub(super) fn open(&mut self, by: By, create: bool) -> Result<(), JudgeError> {
        let (dir, lines) = (self.folder.db(), self.lines());
        let opening = match by {
            By::Original if create => Opening::Create,
            By::Original => Opening::Existing,
            By::Stored => Opening::Stored,
        };
        self.ask(|judge| {
            lines.iter().try_for_each(|line| judge.prepare(line))?;
            judge.open(&dir, opening, "")
        })
    }

    pub(super) fn step(&mut self, step: &Step) -> Result<(), JudgeError> {
        let op = match step {
            Step::Bulk(bulk) => return self.ask(|judge| judge.bulk(bulk)),
            Step::Flush(family) => Op::Flush { family: family.clone() },
            Step::Compact(family) => Op::Compact { family: family.clone() },
            Step::Close => return self.ask(Judge::close),
            Step::Kill => {
                self.kill();
                return Ok(());
            }
        };
        self.ask(|judge| judge.apply(&[op]))
    }

    pub(super) fn kill(&mut self) {
        if let Some(judge) = self.judge.take() {
            judge.kill();
        }
    }

    /// What the open database shows to scans; gets and seeks must find the same.
    pub(super) fn read(&mut self) -> Result<State, JudgeError> {
        self.ask(|judge| {
            let mut listings = Vec::new();
            for name in judge.families()? {
                let listing = judge.dump(&name)?;
                judge.probe(&name)?;
                listings.push((name, listing));
            }
            Ok(State::of(listings))
        })
    }

    /// Opens, reads, verifies every checksum and closes; the folder is put back.
    pub(super) fn look(&mut self, by: By) -> Result<State, JudgeError> {
        let failed = |e: std::io::Error| JudgeError::Died(e.to_string());
        self.folder.keep().map_err(failed)?;
        let seen = self.open(by, false).and_then(|()| self.read());
        if self.ask(Judge::close).is_err() {
            self.kill();
        }
        self.folder.restore().map_err(failed)?;
        seen
    }
}

impl Drop for Theirs<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}
