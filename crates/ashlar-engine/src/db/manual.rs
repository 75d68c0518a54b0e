//! Compaction on request: of a range of keys, or of files by their numbers.
//!
//! The caller picks, claims, submits and waits; the jobs are ordinary compaction jobs.

use super::Db;
use super::candidate::{Candidate, Choice, Report, is_busy, running_of};
use super::compaction_job::{CompactionJob, aborted};
use super::core::{Core, State};
use super::job::JobShell;
use super::schedule::pick_input;
use crate::column_family::Family;
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result};
use ashlar_compaction::picker::{ManualPick, ManualRange, Shape, Style, pick_chosen, pick_refit};
use ashlar_compaction::{Action, Compaction, Running};
use ashlar_env::JobKind;
use ashlar_options::{CompactFilesOptions, CompactRangeOptions, CompactionEvent};
use std::sync::Arc;

impl Db {
    /// Compacts the user keys `begin..=end` (`None`: unbounded) down to the deepest level that has any of them. A universal
    /// tree is merged whole; a FIFO tree deletes the tables that are due.
    /// Rewrites tables of that level that no compaction reached, so that no deleted entry is left. A compaction of the family that
    /// becomes due meanwhile lets the request go first. While writers are stopped and the request is blocked, one after the other may go
    /// before, and the request looks for its tables in between. Waits for all of it, and for the removal of the files that it
    /// replaced. Files that readers use are removed later; so are the others if background work is paused meanwhile, or a file
    /// cannot be removed.
    ///
    /// # Errors
    /// `Io`, `Corruption`: a table could not be read or written. `Aborted`: compactions were aborted, or background
    /// work is paused. `InvalidArgument`: the family was dropped, or belongs to another database. `Shutdown`.
    pub fn compact_range(&self, family: &Family, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.compact_range_with(family, begin, end, CompactRangeOptions::default())
    }

    /// [`Db::compact_range`] with options.
    ///
    /// # Errors
    /// As there; `InvalidArgument`: the target level does not exist, or levels on the way to it are not empty. `NotSupported`:
    /// the tree has no levels below level 0.
    pub fn compact_range_with(
        &self,
        family: &Family,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: CompactRangeOptions,
    ) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("compact_range()")?;
        core.check_live(family)?;
        core.health.check_working()?;
        core.flush(&[family.id()])?;
        let asks = if options.target_level.is_some() { Asks::Target } else { Asks::Range };
        check_style(family, asks)?;
        let filtered = options.rewrite_deepest_if_filtered && family.options().has_filter();
        let range = ManualRange::new(begin, end, options.rewrite_deepest || filtered);
        if !options.exclusive {
            return core.compact_range(family, range, options);
        }
        core.state().exclusive += 1;
        let done = core
            .wait_until(|state| state.compactors == 0)
            .and_then(|()| core.compact_range(family, range, options));
        core.state().exclusive -= 1;
        core.schedule();
        done
    }

    /// Compacts tables by their numbers into the level `output`, and waits as [`Db::compact_range`] does. Includes
    /// further tables where an older version would otherwise end above a newer one. If a listed table is gone when the
    /// compaction begins, the call fails; retry with current numbers. Returns what the compaction did; `None`: there was nothing
    /// to do.
    ///
    /// # Errors
    /// `InvalidArgument`: a table that is not in the tree or is deeper than `output`, no such level. Else as
    /// [`Db::compact_range`].
    pub fn compact_files(
        &self,
        family: &Family,
        numbers: &[FileNumber],
        output: Level,
        how: CompactFilesOptions,
    ) -> Result<Option<CompactionEvent>> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("compact_files()")?;
        core.check_live(family)?;
        core.health.check_working()?;
        check_style(family, Asks::Target)?;
        let report = Report::default();
        core.compact_one(family, Some(&report), |from| {
            let options = from.family.options();
            let shape = Shape::within(&from.version, &options.compaction);
            let picked = pick_chosen(&shape, &options.compaction, &from.running, numbers, output)?;
            Ok(picked.map(|plan| Compaction {
                parts_max: how.max_subcompactions,
                target_file_bytes: how.file_bytes.unwrap_or(plan.target_file_bytes),
                compression: how.compression,
                ..plan
            }))
        })?;
        Ok(report.get().cloned())
    }
}

/// What a request asks of the style of a tree.
#[derive(Clone, Copy)]
enum Asks {
    /// The compaction of a range.
    Range,
    /// Tables or a level that the caller names.
    Target,
}

/// Refuses what the style of the tree does not do. RocksDB would not open a tree that it keeps in level 0 with a table in
/// another level.
fn check_style(family: &Family, asks: Asks) -> Result<()> {
    let options = family.options();
    let compaction = &options.compaction;
    let style = Style::of(compaction);
    let allowed = match asks {
        Asks::Range => style.allows_requests(),
        Asks::Target => style.allows_targets() && !compaction.single_level,
    };
    if allowed {
        return Ok(());
    }
    let stored = |name: &str, default: &str| options.kept.get(name).unwrap_or_else(|| default.to_owned());
    let refused =
        if style == Style::Level0Only { "is not compacted" } else { "has no level to compact into" };
    Err(Error::not_supported(format!(
        "family {:?} has compaction_style={} and num_levels={} and {refused}: its tables stay in level 0",
        family.name(),
        compaction.style,
        stored("num_levels", "7"),
    ))
    .hint(
        "To make it a leveled tree for good, open it with compaction_style=kCompactionStyleLevel and num_levels=7",
    ))
}

/// The error when no compaction can be chosen because the tables' ranges contradict each other, and no running
/// compaction can change that.
fn no_order(family: &str, order: &Order) -> Error {
    let what = format!(
        "no compaction of family {family:?} can be chosen: its comparator, {}, contradicts itself",
        order.name()
    );
    Error::invalid(what).hint("Correct the comparator: of two keys one is less, or both are equal, whatever their order in the call")
}

/// What a request does next.
enum Next {
    /// With the claim to list while it runs, if it has one.
    Run(Box<CompactionJob>, Option<Running>),
    Blocked,
    Over,
}

/// The turn of a request among the compactions of its family.
struct Turn<'a> {
    core: &'a Arc<Core>,
    family: FamilyId,
    /// The claim of the last piece.
    own: Option<Running>,
    /// Whether the family counts the request as waiting.
    waits: bool,
}

impl Turn<'_> {
    /// Whether a compaction has gone before the request, and has ended. Asked before the request looks for its tables.
    fn passer_has_ended(&self) -> bool {
        let state = self.core.state();
        let passed = state.families.get(self.family).and_then(|live| live.passed_request.as_ref());
        passed.is_some_and(|claim| !running_of(&state.running, self.family).contains(claim))
    }

    /// Counts the request as waiting if it is blocked, and not by its own piece. At the end of a wait, schedules the compactions that
    /// have let the request go first. If the request is still blocked when `passer_has_ended`, some other compaction has its tables, so
    /// the next one may pass.
    fn waits_if(&mut self, is_blocked: bool, passer_has_ended: bool) {
        let mut state = self.core.state();
        let is_own = |own: &Running| running_of(&state.running, self.family).contains(own);
        let waits = is_blocked && !self.own.as_ref().is_some_and(is_own);
        let waited = std::mem::replace(&mut self.waits, waits);
        let has_looked = waited && passer_has_ended;
        if waits == waited && !has_looked {
            return;
        }
        if let Some(live) = state.families.get_mut(self.family) {
            match (waited, waits) {
                (false, true) => live.waiting_requests += 1,
                (true, false) => live.waiting_requests = live.waiting_requests.saturating_sub(1),
                (true, true) | (false, false) => {}
            }
            if waited && !waits || has_looked {
                live.passed_request = None;
            }
        }
        drop(state);
        if waited {
            self.core.schedule();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.waits_if(false, false);
    }
}

impl Core {
    /// Runs the pieces of a manual compaction one after the other.
    fn compact_range(
        self: &Arc<Self>,
        family: &Family,
        mut range: ManualRange,
        options: CompactRangeOptions,
    ) -> Result<()> {
        self.run_pieces(family, &mut range, None, |range, from| {
            let settings = from.family.options();
            let input = pick_input(from, &settings, &self.look(self.health.severity()));
            let style = Style::of(&settings.compaction);
            Ok(match style.pick_requested(range, &input, self.versions.next_file_number()) {
                ManualPick::Run(plan) => {
                    // A request has each entry filtered, so no table moves unread.
                    let action = match plan.action {
                        Action::Move if settings.has_filter() => Action::Rewrite,
                        planned => planned,
                    };
                    let parts_max = options.max_subcompactions;
                    ManualPick::Run(Box::new(Compaction { parts_max, action, ..*plan }))
                }
                ManualPick::Done if !from.running.is_empty() => ManualPick::Blocked,
                other => other,
            })
        })?;
        match options.target_level {
            Some(target) => self.compact_one(family, None, |from| {
                let settings = from.family.options();
                let shape = Shape::within(&from.version, &settings.compaction);
                pick_refit(&shape, &settings.compaction, &from.running, target)
            }),
            None => Ok(()),
        }
    }

    /// Runs the one compaction that `pick` finds (`None`: not possible now), to its end. `report` gets what it did.
    fn compact_one(
        self: &Arc<Self>,
        family: &Family,
        report: Option<&Report>,
        pick: impl Fn(&Candidate) -> Result<Option<Compaction>>,
    ) -> Result<()> {
        let mut started: Option<Running> = None;
        self.run_pieces(family, &mut started, report, |started, from| {
            if let Some(claim) = started {
                let runs = from.running.contains(claim);
                return Ok(if runs { ManualPick::Blocked } else { ManualPick::Done });
            }
            Ok(match pick(from)? {
                None => ManualPick::Blocked,
                // Nothing to compact.
                Some(plan) if plan.inputs.is_empty() => ManualPick::Done,
                Some(plan) => {
                    *started = plan.running(&from.version.order);
                    ManualPick::Run(Box::new(plan))
                }
            })
        })
    }

    /// Picks the next piece, runs it, and waits while it is blocked, until all pieces are done and a purge has removed what
    /// they replaced. `pick` writes its choices into `progress`; a choice that was not claimed is taken out again.
    fn run_pieces<P: Clone>(
        self: &Arc<Self>,
        family: &Family,
        progress: &mut P,
        report: Option<&Report>,
        pick: impl Fn(&mut P, &Candidate) -> Result<ManualPick>,
    ) -> Result<()> {
        let work = (family.id(), JobKind::Compaction);
        let before = self.state().failures(work);
        let mut turn = Turn { core: self, family: family.id(), own: None, waits: false };
        let mut replaced = false;
        loop {
            let mut next = Ok(Next::Blocked);
            let waited = self.contained("choosing a compaction", || {
                self.wait_outside(|| {
                    let failure = self.state().failed_since(work, before);
                    let passer_has_ended = turn.passer_has_ended();
                    next = failure.map_or_else(|| self.next_piece(family, progress, report, &pick), Err);
                    let is_blocked = matches!(next, Ok(Next::Blocked));
                    turn.waits_if(is_blocked, passer_has_ended);
                    !is_blocked
                })
            });
            // After a panic the health state has the cause.
            waited.unwrap_or_else(|| self.health.check_writable())?;
            match next? {
                Next::Over => {
                    if replaced {
                        self.await_purge();
                    }
                    return Ok(());
                }
                Next::Blocked => {}
                Next::Run(job, own) => {
                    (replaced, turn.own) = (true, own);
                    self.submit(JobShell::due(self, *job));
                }
            }
        }
    }

    fn next_piece<P: Clone>(
        self: &Arc<Self>,
        family: &Family,
        progress: &mut P,
        report: Option<&Report>,
        pick: &impl Fn(&mut P, &Candidate) -> Result<ManualPick>,
    ) -> Result<Next> {
        loop {
            let (from, was_busy) = {
                let state = self.state();
                if !self.may_choose(&state)? {
                    return Ok(Next::Blocked);
                }
                let Some(live) = state.families.get(family.id()) else {
                    return self.check_live(family).map(|()| Next::Over);
                };
                (Candidate::of(live, &state.running, None), is_busy(&live.version))
            };
            let mut noted = progress.clone();
            let picked = pick(&mut noted, &from)?;
            let choice = match picked {
                ManualPick::Run(plan) => {
                    Some(Choice { report: report.cloned(), ..Choice::new(*plan, &from) })
                }
                ManualPick::Blocked => None,
                ManualPick::Done => return Ok(Next::Over),
            };
            let mut state = self.state();
            if !self.may_choose(&state)? {
                return Ok(Next::Blocked);
            }
            if !from.is_current(&state) {
                continue;
            }
            match choice {
                Some(choice) if choice.is_taken() => return Ok(Next::Blocked),
                Some(choice) => {
                    *progress = noted;
                    let own = choice.claim.clone();
                    let job = CompactionJob::claim(self, &mut state, &from, choice);
                    return Ok(Next::Run(Box::new(job), own));
                }
                None if !from.running.is_empty() || is_busy(&from.version) => {
                    *progress = noted;
                    return Ok(Next::Blocked);
                }
                // The job that had the tables has ended since.
                None if was_busy => {}
                None => return Err(no_order(from.family.name(), &from.version.order)),
            }
        }
    }

    /// Whether a request may choose a compaction now: no as long as the database closes.
    ///
    /// # Errors
    /// `Aborted`: background work is paused, or compactions are aborted. The background error.
    fn may_choose(&self, state: &State) -> Result<bool> {
        if self.is_closed() {
            return Ok(false);
        }
        if self.compactions_aborted() {
            return Err(aborted());
        }
        Self::check_unpaused(state.pauses)?;
        // A compaction that panicked ends the request, because the next one could panic too.
        self.health.check_dropping()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::WriteBatch;
    use ashlar_base::ErrorKind;
    use ashlar_env::Env;
    use ashlar_options::{
        CompactionStyle, DbOptions, Event, EventListener, FamilyOptions, ReadOptions, WriteOptions,
    };
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    /// Notes why compactions begin. Each waits until the test lets it go on, or has dropped its end.
    #[derive(Debug)]
    struct Held(Mutex<(Sender<&'static str>, Receiver<()>)>);

    impl EventListener for Held {
        fn on_event(&self, event: &Event) {
            if let Event::CompactionBegin(compaction) = event {
                let ends = self.0.lock().unwrap();
                let _ = ends.0.send(compaction.reason);
                let _ = ends.1.recv();
            }
        }
    }

    /// Once it is armed, holds the next compaction into a level until the test lets it go on.
    #[derive(Debug, Default)]
    struct HoldsOne(Mutex<Option<(Level, Receiver<()>)>>);

    impl HoldsOne {
        fn arm(&self, into: Level) -> Sender<()> {
            let (go_on, wait) = channel();
            *self.0.lock().unwrap() = Some((into, wait));
            go_on
        }

        fn is_armed(&self) -> bool {
            self.0.lock().unwrap().is_some()
        }
    }

    impl EventListener for HoldsOne {
        fn on_event(&self, event: &Event) {
            if let Event::CompactionBegin(compaction) = event {
                let armed = self.0.lock().unwrap().take_if(|(into, _)| *into == compaction.output_level);
                let _ = armed.map(|(_, wait)| wait.recv());
            }
        }
    }

    fn opened(listener: Arc<dyn EventListener>) -> Db {
        let mut options = DbOptions { max_background_jobs: 8, ..DbOptions::default() };
        options.listeners.add(listener);
        let mut family = FamilyOptions::default();
        family.compaction.l0_trigger = 2;
        (family.compaction.l0_slowdown, family.compaction.l0_stop) = (8, 8);
        Db::open(Env::mem(), Path::new("/db"), options, Vec::new(), family).unwrap()
    }

    fn write_table(db: &Db, family: &Arc<Family>, key: &[u8], value: &[u8]) {
        let mut batch = WriteBatch::new();
        batch.put(family.id(), key, value).unwrap();
        db.write(&mut batch, WriteOptions::default()).unwrap();
        db.flush(std::slice::from_ref(family)).unwrap();
    }

    fn wait_for(what: impl Fn() -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        while !what() && Instant::now() < end {
            std::thread::yield_now();
        }
        what()
    }

    /// Regression: while a request waited for a long compaction of its tables, one other compaction passed, and then writers stood still.
    #[test]
    fn writers_go_on_while_a_request_waits_for_another_compaction() {
        let listener = Arc::new(HoldsOne::default());
        let db = opened(listener.clone());
        let family = db.family("default").unwrap();
        write_table(&db, &family, b"a", b"");
        db.compact_range(&family, None, None).unwrap();
        let find = || {
            let state = db.core().state();
            let levels = state.families.get(family.id()).unwrap().version.levels.clone();
            levels.iter().zip(0..).find_map(|(files, level)| Some((files.first()?.number(), Level(level))))
        };
        let (number, level) = find().unwrap();
        let go_on = listener.arm(level);
        std::thread::scope(|scope| {
            let files =
                scope.spawn(|| db.compact_files(&family, &[number], level, CompactFilesOptions::default()));
            assert!(wait_for(|| !listener.is_armed()));
            let request = scope.spawn(|| db.compact_range(&family, Some(b"a"), Some(b"b")));
            let waits = || db.core().state().families.get(family.id()).unwrap().waiting_requests > 0;
            assert!(wait_for(waits));
            let writer = scope.spawn(|| (0..40).for_each(|_| write_table(&db, &family, b"x", b"")));
            let went_on = wait_for(|| writer.is_finished());
            go_on.send(()).unwrap();
            files.join().unwrap().unwrap();
            request.join().unwrap().unwrap();
            writer.join().unwrap();
            assert!(went_on, "writers stood still until the other compaction ended");
        });
        db.close().unwrap();
    }

    /// Regression: a compaction of newer tables ended below the level to which the old ones moved up, and reads found the old value.
    #[test]
    fn no_newer_table_comes_to_lie_below_tables_that_move_up() {
        let listener = Arc::new(HoldsOne::default());
        let db = opened(listener.clone());
        let mut options = FamilyOptions::default();
        (options.compaction.style, options.compaction.l0_trigger) = (CompactionStyle::Universal, 2);
        let family = db.create_family("universal", options).unwrap();
        write_table(&db, &family, b"a", b"1");
        db.compact_range(&family, None, None).unwrap();
        let mut up = CompactRangeOptions::default();
        up.target_level = Some(Level(2));
        let go_on = listener.arm(Level(2));
        std::thread::scope(|scope| {
            let request = scope.spawn(|| db.compact_range_with(&family, None, None, up));
            assert!(wait_for(|| !listener.is_armed()));
            write_table(&db, &family, b"a", b"2");
            write_table(&db, &family, b"a", b"3");
            let moved = || {
                let state = db.core().state();
                let levels = &state.families.get(family.id()).unwrap().version.levels;
                levels.iter().take(6).skip(1).any(|files| !files.is_empty())
            };
            let end = Instant::now() + Duration::from_millis(300);
            while !moved() && Instant::now() < end {
                std::thread::yield_now();
            }
            let was_moved = moved();
            go_on.send(()).unwrap();
            request.join().unwrap().unwrap();
            assert!(!was_moved, "newer tables are below level 2");
        });
        db.wait_for_background().unwrap();
        let value = db.get(&family, b"a", ReadOptions::default()).unwrap();
        assert_eq!(value.as_deref(), Some(&b"3"[..]));
        db.close().unwrap();
    }

    /// Regression: the request answered that compactions were aborted, or that all was done.
    #[test]
    fn a_request_in_vain_names_the_dropped_family() {
        let listener = Arc::new(HoldsOne::default());
        let db = opened(listener.clone());
        let family = db.create_family("gone", FamilyOptions::default()).unwrap();
        write_table(&db, &family, b"a", b"1");
        write_table(&db, &family, b"a", b"2");
        let go_on = listener.arm(Level(6));
        std::thread::scope(|scope| {
            let request = scope.spawn(|| db.compact_range(&family, None, None));
            assert!(wait_for(|| !listener.is_armed()));
            db.drop_family(&family).unwrap();
            go_on.send(()).unwrap();
            let refused = request.join().unwrap().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
            assert!(refused.to_string().contains("gone"), "{refused}");
        });
        db.close().unwrap();
    }

    /// Regression: under writes, level 0 had its next compaction claimed whenever one ended, and the request ran after the writes.
    #[test]
    fn a_request_goes_before_the_next_compaction_of_its_family() {
        let ((tell, begun), (go_on, wait)) = (channel(), channel());
        let db = opened(Arc::new(Held(Mutex::new((tell, wait)))));
        let family = db.family("default").unwrap();
        let table = |value: &[u8]| write_table(&db, &family, b"key", value);
        let own = |reason: &str| reason.contains("anual");
        table(b"1");
        table(b"2");
        assert!(!own(begun.recv().unwrap()), "two tables are due");
        std::thread::scope(|scope| {
            let go_on = go_on;
            let request = scope.spawn(|| db.compact_range(&family, None, None));
            let core = db.core();
            while core.state().families.get(family.id()).unwrap().waiting_requests == 0 {
                std::thread::yield_now();
            }
            // Further compactions are due meanwhile.
            (0..4).for_each(|_| table(b"3"));
            go_on.send(()).unwrap();
            let next = begun.recv().unwrap();
            assert!(own(next), "the next compaction is {next}");
            assert_eq!(core.state().families.get(family.id()).unwrap().waiting_requests, 0);
            drop(go_on);
            request.join().unwrap().unwrap();
        });
        db.close().unwrap();
    }
}
