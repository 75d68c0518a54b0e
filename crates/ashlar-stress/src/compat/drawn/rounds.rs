//! One case: RocksDB creates a directory, then AshlarDB and RocksDB visit it in turns. Contents and OPTIONS are compared
//! after each visit.

use super::directory::{Folder, changed};
use super::options_file::OptionsFile;
use super::ours::{self, How, No, Shown};
use super::plan::{Plan, Step, Turn};
use super::theirs::{By, Theirs};
use super::words::{difference, kind_of, step_word, what_kind};
use ashlar_testkit::judge::JudgeError;
use ashlar_testkit::ops::BulkKind;
use ashlar_testkit::oracle::State;
use std::collections::BTreeMap;
use std::io;

/// Something that may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What kind: the same for every case that shows the same mistake. Without numbers and paths.
    pub(super) kind: String,
    pub(super) what: String,
}

/// How a case went.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) findings: Vec<Finding>,
    pub(super) counts: BTreeMap<String, u64>,
    /// RocksDB made the directory and can open it again: the settings count as covered.
    pub(super) made: bool,
    /// RocksDB refused the settings at the first open.
    pub(super) refused: Option<String>,
    /// There is no judge here.
    pub(super) skip: Option<String>,
}

/// Ends a case early.
enum Stop {
    /// RocksDB itself refuses, aborts or hangs.
    Theirs(String),
    /// We refused, or a finding makes the rest void.
    Ours,
    Machine(String),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Stop {
        Stop::Machine(e.to_string())
    }
}

struct Case<'a> {
    plan: &'a Plan,
    folder: &'a Folder,
    defaults: &'a OptionsFile,
    theirs: Theirs<'a>,
    /// What the directory holds, as RocksDB reads it.
    state: State,
    /// What it held before our visit.
    before: State,
    /// RocksDB can open it by its newest OPTIONS file.
    loads: bool,
    /// Our last visit was given all settings that no file tells of.
    given: bool,
    outcome: Outcome,
}

/// Plays a case; `defaults` is what RocksDB writes into an OPTIONS file without settings.
pub(super) fn play(plan: &Plan, defaults: &OptionsFile) -> Outcome {
    let folder = match Folder::new() {
        Ok(folder) => folder,
        Err(e) => return Outcome { skip: Some(e.to_string()), ..Outcome::default() },
    };
    let theirs = Theirs::new(plan, &folder);
    let outcome = Outcome::default();
    let folder = &folder;
    let (state, before) = (State::default(), State::default());
    let mut case = Case { plan, folder, defaults, theirs, state, before, loads: false, given: true, outcome };
    match case.play() {
        Ok(()) | Err(Stop::Ours) => {}
        Err(Stop::Theirs(why)) => case.count(&format!("RocksDB: {}", kind_of(&why))),
        Err(Stop::Machine(why)) => case.outcome.skip = Some(why),
    }
    let root = folder.root().display().to_string();
    for finding in &mut case.outcome.findings {
        finding.what = finding.what.replace(&root, "@");
    }
    case.outcome
}

impl Case<'_> {
    fn count(&mut self, what: &str) {
        *self.outcome.counts.entry(what.to_owned()).or_default() += 1;
    }

    fn find(&mut self, kind: impl AsRef<str>, what: impl Into<String>) {
        let (kind, what) = (kind_of(kind.as_ref()), what.into());
        if self.outcome.findings.iter().all(|finding| finding.kind != kind) {
            self.outcome.findings.push(Finding { kind, what });
        }
    }

    fn play(&mut self) -> Result<(), Stop> {
        self.make()?;
        self.outcome.made = true;
        self.count("directories made by RocksDB");
        self.we_look()?;
        for (at, (ours, theirs)) in self.plan.rounds.iter().enumerate() {
            self.count("rounds");
            let mode = if ours.stored { "stored" } else { "default" };
            self.folder.keep_before()?;
            self.before = self.state.clone();
            self.given = ours.stored;
            self.we_write(ours)?;
            self.they_check(&format!("round {at}, behind our {mode} open"))?;
            self.they_write(theirs)?;
        }
        Ok(())
    }

    /// RocksDB's history; what single steps are refused is left out.
    fn make(&mut self) -> Result<(), Stop> {
        if let Err(e) = self.theirs.open(By::Original, true) {
            return Err(match e {
                JudgeError::Skip(skip) => Stop::Machine(skip.to_string()),
                JudgeError::Refused(why) => {
                    self.outcome.refused = Some(why.clone());
                    Stop::Theirs(format!("refused at open: {why}"))
                }
                JudgeError::Died(why) => Stop::Theirs(format!("died at open: {why}")),
            });
        }
        let history = &self.plan.history;
        for (at, step) in history.iter().enumerate() {
            self.they_do(step)?;
            if matches!(step, Step::Close | Step::Kill) && at + 1 < history.len() {
                self.theirs.open(By::Original, false).map_err(|e| Stop::Theirs(format!("reopen: {e}")))?;
            }
        }
        self.theirs.kill();
        self.remember()?;
        // Some settings make OPTIONS files that RocksDB itself does not load, or not to the same contents.
        // A program that loads OPTIONS has no `db_paths`, and finds tables in the first of them at best.
        self.loads = match self.theirs.look(By::Stored) {
            _ if self.plan.has_places() => false,
            Ok(seen) => self.plan.wrapper.is_empty() && difference(&self.state, &seen, &[]).is_none(),
            Err(_) => false,
        };
        Ok(())
    }

    /// What the directory holds now, by RocksDB.
    fn remember(&mut self) -> Result<(), Stop> {
        let seen = self.theirs.look(By::Original).map_err(|e| Stop::Theirs(format!("reopen: {e}")))?;
        self.state = seen;
        if !self.plan.wrapper.starts_with("ttl") {
            return Ok(());
        }
        // What a program without the wrapper reads, as we are one: values with their times.
        let plain = Plan { wrapper: String::new(), ..self.plan.clone() };
        let mut theirs = Theirs::new(&plain, self.folder);
        self.state = theirs.look(By::Original).map_err(|e| Stop::Theirs(format!("plain reopen: {e}")))?;
        Ok(())
    }

    fn they_do(&mut self, step: &Step) -> Result<(), Stop> {
        match self.theirs.step(step) {
            Ok(()) => self.count("steps of RocksDB"),
            Err(JudgeError::Refused(_)) => self.count("steps refused by RocksDB"),
            Err(e) => return Err(Stop::Theirs(format!("{}: {e}", step_word(step)))),
        }
        Ok(())
    }

    /// Read-only open and check: contents are the same, nothing is damaged, nothing changes. Where tables are in directories
    /// that no OPTIONS file names, once without and once with them.
    fn we_look(&mut self) -> Result<(), Stop> {
        self.we_look_as(false)?;
        if self.plan.has_places() { self.we_look_as(true) } else { Ok(()) }
    }

    fn we_look_as(&mut self, stored: bool) -> Result<(), Stop> {
        let before = self.folder.listing()?;
        let how = How { folder: self.folder, plan: self.plan, stored };
        match how.open(true) {
            Ok((db, _)) => {
                self.count("directories read by us");
                self.compare(ours::show(&db, self.plan), "read-only");
                let _ = db.close();
            }
            Err(no) => self.said_no(no, "read-only open")?,
        }
        match how.damage() {
            Ok(None) => self.count("directories checked"),
            Ok(Some(report)) => {
                let line = report.lines().find(|line| line.contains("at risk")).unwrap_or(&report).to_owned();
                self.find(format!("check: {line}"), format!("check finds damage: {report}"));
            }
            Err(no) => self.said_no(no, "check")?,
        }
        match changed(&before, &self.folder.listing()?) {
            Some(what) => {
                self.find("reading changes the directory", what);
                Err(Stop::Ours)
            }
            None => Ok(()),
        }
    }

    /// A refusal is counted by its reason; anything else from a healthy directory is a finding.
    fn said_no(&mut self, no: No, doing: &str) -> Result<(), Stop> {
        match no {
            No::Refused(why) => self.count(&format!("{doing} refused: {}", kind_of(&why))),
            No::Failed(why) if self.reads_over_damage() && why.contains("WAL file damaged") => {
                self.count(&format!("{doing} refused beside paranoid_checks=false: {}", kind_of(&why)));
            }
            No::Failed(why) => {
                let doing = doing.trim_start_matches("default ").trim_start_matches("read-only ");
                self.find(format!("{doing}: {why}"), format!("{doing}: {why}"));
            }
        }
        Ok(())
    }

    fn compare(&mut self, shown: Result<Shown, String>, doing: &str) {
        let shown = match shown {
            Ok(shown) => shown,
            Err(why) => return self.find(format!("{doing}: {why}"), why),
        };
        let unserved: Vec<String> = shown.unserved.keys().cloned().collect();
        for (family, no) in shown.unserved {
            match no {
                No::Refused(why) => self.count(&format!("family refused: {}", kind_of(&why))),
                No::Failed(why) => {
                    self.find(format!("scan: {why}"), format!("{doing}: scan of {family}: {why}"));
                }
            }
        }
        if let Some(what) = difference(&self.state, &shown.state, &unserved) {
            self.find(what_kind(&what, "ours"), format!("{doing}: {what}"));
        }
    }

    fn we_write(&mut self, turn: &Turn) -> Result<(), Stop> {
        let mode = if turn.stored { "stored" } else { "default" };
        let (before, options) = (self.folder.listing()?, OptionsFile::newest(&self.folder.db()));
        let how = How { folder: self.folder, plan: self.plan, stored: turn.stored };
        let (db, told) = match how.open(false) {
            Ok(opened) => opened,
            Err(no) => {
                self.said_no(no, &format!("{mode} open"))?;
                self.unchanged(&before, "a refused open")?;
                return Err(Stop::Ours);
            }
        };
        if !db.recovery().read_only.is_empty() {
            for why in db.recovery().read_only.clone() {
                self.count(&format!("opened read-only: {}", kind_of(&why)));
            }
            self.compare(ours::show(&db, self.plan), "opened read-only");
            let _ = db.close();
            drop(db);
            self.unchanged(&before, "an open that became read-only")?;
            return Err(Stop::Ours);
        }
        self.count(&format!("directories opened by us, {mode}"));
        let found = db.recovery();
        // AshlarDB rewrites a missing IDENTITY without an alarm: `write_identity_file` may be off.
        let alarm = found.tail_dropped() || !found.lost.is_empty();
        if alarm && !self.may_be_torn() {
            let why = found.dropped.first().map_or("", |dropped| dropped.reason.as_str()).to_owned();
            self.find(format!("alarm on a healthy directory: {why}"), format!("{mode} open: {found}"));
        }
        self.compare(ours::show(&db, self.plan), &format!("{mode} open"));
        let mut state = self.state.clone();
        let worked = ours::work(&db, turn, &mut state);
        self.state = state;
        match worked {
            Ok(refused) => {
                for why in refused {
                    self.count(&format!("step refused by us: {}", kind_of(&why)));
                }
            }
            Err(why) => self.find(format!("work: {why}"), format!("{mode}: {why}")),
        }
        self.compare(ours::show(&db, self.plan), &format!("{mode}, behind our work"));
        self.end(db, turn.killed)?;
        let after = OptionsFile::newest(&self.folder.db());
        if let (Some(before), Some(after)) = (options, after) {
            // The logs are in the database directory with and without its name.
            let own = self.folder.db().display().to_string();
            let losses = before.lost_in(&after, self.defaults, &told).into_iter();
            for loss in losses.filter(|loss| !(loss.name == "wal_dir" && loss.before == own)) {
                let now = loss.after.unwrap_or_else(|| "nothing".to_owned());
                self.find(
                    format!("option lost, {mode}: {}", loss.name),
                    format!("{mode} open: [{}] {}: {} became {now}", loss.section, loss.name, loss.before),
                );
            }
        }
        Ok(())
    }

    fn end(&mut self, db: ashlardb::Db, killed: bool) -> Result<(), Stop> {
        if !killed {
            if let Err(e) = db.close() {
                self.find(format!("close: {e}"), format!("close: {e}"));
            }
            return Ok(());
        }
        // A kill: what lies in the folder at this moment. Records that wait in the process are flushed, as others would
        // be lost by right.
        let _ = db.flush_wal(false);
        let _ = db.wait_for_background();
        self.folder.keep()?;
        drop(db);
        self.folder.restore()?;
        Ok(())
    }

    fn unchanged(&mut self, before: &super::directory::Listing, what: &str) -> Result<(), Stop> {
        if let Some(change) = changed(before, &self.folder.listing()?) {
            self.find(
                format!("{what} changes the directory"),
                format!("{what} changes the directory: {change}"),
            );
        }
        Ok(())
    }

    /// The end of a log that RocksDB left by a kill in the middle of a buffer, or with room mapped ahead; or a record that
    /// RocksDB logs, refuses to its caller, and stops at when it replays: a range that ends before it begins.
    fn may_be_torn(&self) -> bool {
        let reverse = |name: &str| {
            let family = self.plan.families.iter().find(|family| family.name == name);
            family.is_some_and(|family| family.settings.iter().any(|own| own.value.contains("Reverse")))
        };
        let mut ranges = self.plan.bulks().filter(|bulk| bulk.kind == BulkKind::DeleteRange);
        if ranges.any(|bulk| reverse(&bulk.family)) {
            return true;
        }
        let loose = ["manual_wal_flush", "allow_mmap_writes", "writable_file_max_buffer_size"];
        self.plan.db.iter().any(|setting| loose.contains(&setting.name.as_str()))
    }

    /// With `paranoid_checks=false` RocksDB reads over a torn end that its recovery mode refuses. We refuse it.
    fn reads_over_damage(&self) -> bool {
        let set = self.plan.db.iter().any(|s| s.name == "paranoid_checks" && s.value == "false");
        set && self.may_be_torn()
    }

    /// RocksDB reads what we left, by its original settings and by the newest OPTIONS file.
    fn they_check(&mut self, when: &str) -> Result<(), Stop> {
        if self.loads {
            self.they_read(By::Stored, &format!("{when}, loading the newest OPTIONS file"))?;
        }
        if self.plan.wrapper.starts_with("ttl") {
            let seen = self.theirs.look(By::Original);
            if let Err(JudgeError::Refused(why)) = seen {
                self.find(format!("RocksDB with TTL: {why}"), format!("{when}, with TTL: {why}"));
            }
            return Err(Stop::Ours);
        }
        self.they_read(By::Original, &format!("{when}, with its original settings"))?;
        self.count("directories read by RocksDB");
        Ok(())
    }

    fn they_read(&mut self, by: By, when: &str) -> Result<(), Stop> {
        let seen = self.theirs.look(by);
        let Some((kind, what)) = wrong(seen, &self.state)? else { return Ok(()) };
        // RocksDB in our place may come to the same end.
        let (theirs, before) = (&mut self.theirs, &self.before);
        let alone = self.folder.as_before(|| {
            theirs.open(By::Original, false)?;
            theirs.step(&Step::Close)?;
            theirs.look(by)
        })?;
        // Nothing in a directory tells of `cf_paths` before there is a table in them.
        let untold = !self.given && self.plan.has_places() && what.contains("No such file");
        if untold {
            self.count("RocksDB misses a table: cf_paths that no file tells of were not given to us");
        } else if wrong(alone, before).is_ok_and(|own| own.is_some_and(|(own, _)| own == kind)) {
            self.count(&format!("RocksDB alone: {kind}"));
        } else {
            self.find(kind, format!("{when}: {what}"));
        }
        Err(Stop::Ours)
    }

    fn they_write(&mut self, turn: &Turn) -> Result<(), Stop> {
        let by = if turn.stored && self.loads { By::Stored } else { By::Original };
        self.theirs.open(by, false).map_err(|e| Stop::Theirs(format!("reopen: {e}")))?;
        for step in &turn.steps {
            self.they_do(step)?;
        }
        self.they_do(if turn.killed { &Step::Kill } else { &Step::Close })?;
        self.remember()?;
        self.we_look()
    }
}

/// What is wrong with a reading of RocksDB's: its kind and in words. A judge that died answers nothing.
fn wrong(seen: Result<State, JudgeError>, expected: &State) -> Result<Option<(String, String)>, Stop> {
    match seen {
        Ok(seen) => {
            let different = difference(expected, &seen, &[]);
            Ok(different.map(|what| (what_kind(&what, "RocksDB's"), what)))
        }
        // RocksDB cannot flush a blob that bzip2 or zlib does not shrink, in any program.
        Err(JudgeError::Refused(why)) if why.contains("Error compressing blob") => Err(Stop::Theirs(why)),
        Err(JudgeError::Refused(why)) => {
            let what = format!("RocksDB: {why}");
            Ok(Some((kind_of(&what), what)))
        }
        Err(e) => Err(Stop::Theirs(e.to_string())),
    }
}
