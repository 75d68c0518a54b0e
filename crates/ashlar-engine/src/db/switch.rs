//! What a leader does before it commits a group: back-pressure, and the switch to a new memtable and WAL file.
//!
//! No write is in progress meanwhile. The WAL file is closed, full memtables are sealed at the last sequence, a new WAL
//! file and new memtables are installed, and flushes are submitted. A WAL file in which nothing was logged stays. The closed
//! WAL file is synced by the next synced write, or by the next flush if there are several families.

use super::core::{Core, State};
use super::pins::Retired;
use crate::column_family::{LiveFamily, Reads, new_memtable};
use crate::health::{Severity, Source, lacks_space};
use crate::pressure::{Deadline, DiskSpace, Memory, Pace, Pressure, largest};
use crate::wal::{ROOM_FOR_DELETIONS, Wal};
use crate::write::{Asked, FamilySlot, Unfit, WriteHost, WriteSet};
use ashlar_base::memory::{MemoryCharge, MemoryUse};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Error, FamilyId, FileNumber, Result, SeqNum};
use ashlar_sync::Waited;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The longest single delay of a writer: compaction debt may shrink sooner than predicted.
pub(super) const LONGEST_DELAY: Duration = Duration::from_millis(100);

/// How long a write waits for readers that hold old memtables: gets end by themselves.
const READERS_WAIT: Duration = Duration::from_millis(100);
/// How often it looks, at all families. The end of a reader wakes no writer.
const READERS_LOOK: Duration = Duration::from_millis(5);
/// For so long after a refusal other writes do not wait: cursors may stand for hours.
const REFUSED_FOR: Duration = Duration::from_secs(1);

impl Core {
    /// Whether a write would have to wait for background work now.
    pub(super) fn would_wait(&self) -> bool {
        self.pressure.pace() != Pace::Free
            || self.pressure.is_holding()
            || self.committer.current().any_full()
                && matches!(self.full_families(&self.state()), Room::AfterFlush)
    }

    /// The write set of the live families with `wal`.
    pub(crate) fn write_set(state: &State, memory: &Memory, wal: Arc<Wal>) -> WriteSet {
        let slot = |f: &LiveFamily| {
            let mem = Arc::clone(&f.memtables.current().rep);
            FamilySlot::new(f.family.id(), mem, f.family.write_limit())
        };
        let families = state.families.iter().map(slot).collect();
        WriteSet::new(wal, families, memory.active_limit(state.live_memtable_bytes()))
    }

    /// Seals the non-empty memtables of `families` and begins a new WAL file, unless nothing was logged in the present one. Called by a
    /// leader.
    pub(crate) fn switch(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        let all: Vec<FamilyId>;
        let families = match self.options().atomic_flush {
            false => families,
            true => {
                all = self.state().families.iter().map(|f| f.family.id()).collect();
                &all
            }
        };
        let last = self.visible();
        let next = last.checked_add(1).unwrap_or(last);
        let before = self.committer.current();
        // Only the current WAL file may buffer records.
        self.committer.flush()?;
        // A new file asks the limits on disk space, so under a limit each switch begins one.
        let wal = match before.wal.is_unused() && !self.disk.is_limited() {
            true => Arc::clone(&before.wal),
            false => self.next_wal(&before.wal, next)?,
        };
        let number = wal.number();
        let sealed;
        {
            let mut state = self.state();
            sealed = Self::sealed_events(&state, families, last);
            self.seal_memtables(&mut state, families, number, last);
            let set = Core::write_set(&state, &self.memory, wal);
            if number != before.wal.number() {
                self.committer.wals().closed(Arc::clone(&before.wal));
            }
            self.committer.install(set);
            for family in families {
                self.publish(&mut state, *family, Reads::AsBefore);
            }
        }
        sealed.iter().for_each(|event| self.events.tell(event));
        self.health.succeeded(Source::NextLog);
        self.schedule();
        Ok(())
    }

    /// Creates the WAL file that continues `before` with the sequence `next`.
    fn next_wal(self: &Arc<Self>, before: &Wal, next: SeqNum) -> Result<Arc<Wal>> {
        // The space reserved ahead is released for the next file.
        before.log().give_back();
        let undecided = self.prepared();
        if !undecided.is_empty() {
            // The next file begins with a synced copy of them: no earlier byte may be lost behind it.
            self.committer.sync_files()?;
        }
        let wal = self.tables.give_way_to(|| {
            let draw = || self.versions.new_file_number();
            let number = self.committer.wals().number_after(before.number(), draw);
            Wal::create_after(&self.env, before, number, (next, &undecided)).map(Arc::new)
        })?;
        if let Err(e) = wal.log().ask_room(0, ROOM_FOR_DELETIONS) {
            self.log_lacks_room(&e);
        }
        Ok(wal)
    }

    /// Records that the next WAL file cannot be created for full memtables: writes fail until one of them creates it. A failed
    /// WAL is recorded already.
    fn next_log_failed(&self, cause: &Error) {
        if self.health.severity() < Severity::Hard && !self.health.is_failing(Source::NextLog) {
            self.report(Source::NextLog, cause);
        }
    }

    /// Records that the WAL cannot reserve space on the disk: all writes except deletions are refused until the room
    /// job has reserved it.
    fn log_lacks_room(self: &Arc<Self>, cause: &Error) {
        if !self.health.is_failing(Source::LogRoom) {
            self.report(Source::LogRoom, cause);
            self.schedule();
            self.progress.notify();
        }
    }

    /// Seals the non-empty memtables of `families` at `last`; the data of the new memtables starts in `wal`.
    pub(super) fn seal_memtables(
        &self,
        state: &mut State,
        families: &[FamilyId],
        wal: FileNumber,
        last: SeqNum,
    ) {
        for family in state.families.iter_mut() {
            if families.contains(&family.family.id()) && family.memtables.current().is_used() {
                let next = new_memtable(&family.family.options(), Some(self.memory.account()));
                family.memtables.switch(next, wal, last);
            } else {
                family.memtables.advance_empty(wal);
            }
        }
        self.note_waiting(state);
    }

    /// Shows readers the current memtables and version of a family.
    pub(crate) fn publish(&self, state: &mut State, family: FamilyId, reads: Reads) {
        if let Some(family) = state.families.get(family) {
            let before = Retired::new(family.publish(reads));
            state.retired.push(before);
        }
    }

    /// The families whose memtables are full, if each of them may get a new memtable now. When all memtables together
    /// are full, the largest count as full.
    fn full_families(&self, state: &State) -> Room {
        let mut full = Vec::new();
        let active = |f: &LiveFamily| f.memtables.current().rep.held();
        let together: usize = state.families.iter().map(active).sum();
        if self.committer.current().limit.is_reached(together) {
            if self.memory.memtables_full() && state.families.iter().any(|f| f.memtables.immutable_len() > 0)
            {
                return Room::AfterFlush;
            }
            let used = state.families.iter().filter(|f| f.memtables.current().is_used());
            full.extend(largest(used.map(|f| (active(f), f.family.id())).collect(), together / 8));
        }
        for f in state.families.iter() {
            let options = f.family.options();
            if f.memtables.current().rep.filled() < options.write_buffer_bytes {
                continue;
            }
            if f.memtables.immutable_len() + 1 >= options.max_write_buffers {
                return Room::AfterFlush;
            }
            if !full.contains(&f.family.id()) {
                full.push(f.family.id());
            }
        }
        if full.is_empty() { Room::Enough } else { Room::AfterSwitch(full) }
    }

    /// Whether a group fits. A large one also waits while flushes have to make room for all memtables together.
    fn room_for(&self, group: &Asked, state: &State) -> Room {
        let flushes = || state.families.iter().any(|f| f.memtables.immutable_len() > 0);
        match group.is_large && self.memory.memtables_full() && flushes() {
            true => Room::AfterFlush,
            false => self.full_families(state),
        }
    }

    /// Switches full memtables, if none of them has to wait for a flush. The caller holds the lead.
    ///
    /// # Errors
    /// The WAL file cannot be created. The error is recorded, and the next write tries again.
    fn seal_full(self: &Arc<Self>) -> Result<()> {
        let room = self.full_families(&self.state());
        let Room::AfterSwitch(families) = room else { return Ok(()) };
        self.note_full(&families);
        self.switch(&families).inspect_err(|e| self.next_log_failed(e))
    }

    /// Switches full memtables that waited for a flush. Called after each flush, and by a leader after it released the lead.
    pub(super) fn seal_waiting(self: &Arc<Self>) {
        // Again after each release: a flush that ended before it has left its switch to this thread.
        while self.committer.current().any_full()
            && matches!(self.full_families(&self.state()), Room::AfterSwitch(_))
        {
            let Some(lead) = self.committer.try_lead() else { return };
            let sealed = self.committer.check().and_then(|()| self.seal_full());
            drop(lead);
            if sealed.is_err() {
                return;
            }
        }
    }

    /// Records that writers filled the memtables of `families`.
    fn note_full(&self, families: &[FamilyId]) {
        let now = self.env.clock.now();
        let mut state = self.state();
        for id in families {
            if let Some(family) = state.families.get_mut(*id) {
                family.flush_rate.note(now);
            }
        }
    }

    /// Whether full memtables accept deletions. On a full disk only deletions get this far, and deletions must not wait
    /// for the space that they are meant to free.
    fn takes_more_deletions(&self) -> bool {
        let is_full = self.health.severity() == Severity::Full
            || self.pressure.pace() == Pace::Stop && self.health.out_of_space().is_some();
        is_full && self.has_spare_room(&self.state())
    }

    /// Whether no full memtable is over its limit by more than an eighth.
    fn has_spare_room(&self, state: &State) -> bool {
        let active = |f: &LiveFamily| f.memtables.current().rep.memory();
        let within = |bytes: usize, limit: usize| bytes < limit.saturating_add(limit / 8);
        let together = state.families.iter().map(|f| f.memtables.current().rep.held()).sum();
        within(together, self.committer.current().limit.bytes)
            && state.families.iter().all(|f| within(active(f), f.family.options().write_buffer_bytes))
    }

    /// # Errors
    /// `Busy(Memory)`: readers hold so much memory that another memtable could exceed the cap.
    pub(super) fn check_memory(&self) -> Result<()> {
        if !self.is_memory_scarce() {
            return Ok(());
        }
        // Refuses only when readers hold the memory. Memory of running jobs and of pending purges is freed without the
        // caller's help. The look frees replaced super versions without a reader, which may be enough.
        let old = self.held_memtables();
        let refusal = self.memory.refusal(old.held_bytes(), old.readers);
        drop(old);
        if self.is_memory_scarce() { refusal.map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// Whether a write was refused for the readers' memory a moment ago.
    fn has_refused_lately(&self) -> bool {
        self.state().refused_at.is_some_and(|at| self.env.clock.now() < at + REFUSED_FOR)
    }

    /// [`Core::check_memory`], after some time in which readers may end.
    ///
    /// # Errors
    /// As [`Core::check_memory`]. `TimedOut`: the deadline came first.
    fn wait_for_readers(&self, deadline: Option<Deadline>) -> Result<()> {
        let _step = perf::time_of_waiting(Metric::WriteDelayTime);
        let longest = self.env.clock.now() + READERS_WAIT;
        let end = deadline.map_or(longest, |deadline| deadline.at().min(longest));
        loop {
            let seen = self.progress.seen();
            let Err(refusal) = self.check_memory() else { return Ok(()) };
            let now = self.env.clock.now();
            let waited = |left| self.progress.wait(seen, Some(READERS_LOOK.min(left)));
            if now < end && waited(end - now) != Waited::Stuck {
                continue;
            }
            if let Some(deadline) = deadline.filter(|deadline| deadline.at() <= now) {
                return Err(deadline.passed_waiting_for("readers").because(refusal));
            }
            // After the whole wait only: a hurried write says nothing of the readers.
            self.state().refused_at = Some(now);
            return Err(refusal);
        }
    }

    /// Whether the cap has no room for another memtable, and no flush will make any.
    fn is_memory_scarce(&self) -> bool {
        let live = {
            let state = self.state();
            if state.families.iter().any(|f| f.memtables.immutable_len() > 0) {
                return false;
            }
            state.live_memtable_bytes()
        };
        self.memory.is_scarce(live)
    }

    /// Waits as long as `bytes` cost at `pace`, or until `over` returns true.
    ///
    /// # Errors
    /// `TimedOut`, at once: the wait would pass the deadline.
    pub(super) fn slow_down(
        &self,
        pace: Pace,
        (bytes, deadline): (usize, Option<Deadline>),
        over: impl Fn() -> bool,
    ) -> Result<()> {
        let _step = perf::time_of_waiting(Metric::WriteDelayTime);
        let start = self.env.clock.now();
        let until = start + pace.delay(bytes).min(LONGEST_DELAY);
        deadline.map_or(Ok(()), |deadline| deadline.check(until))?;
        loop {
            let seen = self.progress.seen();
            let now = self.env.clock.now();
            if now >= until || over() {
                break;
            }
            if self.progress.wait(seen, Some(until - now)) == Waited::Stuck {
                break;
            }
        }
        self.held(false, pace, start);
        Ok(())
    }

    /// Begins a wait of the leader for background work, or such work of its own: writers behind it that must not wait are refused,
    /// and those with a deadline leave at their deadline. `stalled`: the leader waits for flushes if true, for compactions
    /// if false; `None`: for neither.
    pub(super) fn hold_writers(&self, stalled: Option<bool>) -> Holding<'_> {
        self.pressure.hold(true);
        if stalled.is_some() {
            self.state().stalled = stalled;
        }
        self.refuse_waiting();
        Holding { core: self, stalls: stalled.is_some() }
    }

    /// Waits until `done` returns true: for flushes if `by_memtables`, otherwise for compactions.
    ///
    /// # Errors
    /// `TimedOut`: the deadline has passed. `Shutdown`. Those of [`Core::wait_patiently`].
    fn stop_until(
        &self,
        by_memtables: bool,
        deadline: Option<Deadline>,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Result<()> {
        let _step = perf::time_of_waiting(Metric::WriteDelayTime);
        let start = self.env.clock.now();
        if let Some(deadline) = deadline
            && deadline.left(start).is_zero()
        {
            return Err(deadline.passed());
        }
        let holding = self.hold_writers(Some(by_memtables));
        let mut is_over = false;
        let outcome = self.wait_patiently_until(deadline.map(Deadline::at), |state| {
            is_over = state.closing || done(state);
            is_over
        });
        drop(holding);
        let closing = self.state().closing;
        self.held(by_memtables, Pace::Stop, start);
        match deadline {
            _ if closing => Err(Error::closed()),
            Some(deadline) if !is_over && outcome.is_ok() => Err(deadline.passed()),
            _ => outcome,
        }
    }

    /// When the live WAL files exceed their size limit: the families that need the oldest one.
    fn holders_of_full_logs(&self, state: &State) -> Vec<FamilyId> {
        if self.committer.wals().closed_bytes() <= self.wal_limit(state) {
            return Vec::new();
        }
        let oldest = state.families.first_wal();
        let holds = |f: &&LiveFamily| {
            let current = f.memtables.current();
            Some(current.first_wal) == oldest && !current.rep.is_empty()
        };
        state.families.iter().filter(holds).map(|f| f.family.id()).collect()
    }

    fn wal_limit(&self, state: &State) -> u64 {
        let limit = self.options().max_total_wal_bytes;
        if limit > 0 {
            return limit;
        }
        let buffers = |f: &LiveFamily| {
            let options = f.family.options();
            (options.write_buffer_bytes as u64).saturating_mul(options.max_write_buffers as u64)
        };
        let sum = state.families.iter().map(buffers).fold(0, u64::saturating_add);
        // All memtables together have a limit too, however many families there are.
        sum.saturating_mul(4).min((self.memory.memtables_max() as u64).saturating_mul(4))
    }
}

/// Whether a write fits the memtables.
enum Room {
    Enough,
    AfterSwitch(Vec<FamilyId>),
    AfterFlush,
}

/// The committer's view of the database. It is a weak reference, so that only jobs and handles keep the database alive.
/// The pressure, which each write asks, is shared, so that no write counts a reference.
pub(crate) struct Host {
    core: Weak<Core>,
    pressure: Arc<Pressure>,
    disk: Arc<DiskSpace>,
}

impl Host {
    pub(super) fn new(core: Weak<Core>, pressure: Arc<Pressure>, disk: Arc<DiskSpace>) -> Host {
        Host { core, pressure, disk }
    }
}

/// A wait of the leader, until the drop.
pub(super) struct Holding<'a> {
    core: &'a Core,
    stalls: bool,
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        if self.stalls {
            self.core.state().stalled = None;
        }
        self.core.pressure.hold(false);
    }
}

impl WriteHost for Host {
    fn wants_room(&self) -> bool {
        self.pressure.pace() != Pace::Free
    }

    fn is_holding(&self) -> bool {
        self.pressure.is_holding()
    }

    fn make_room(&self, group: &Asked, refuse: &mut dyn FnMut(Unfit) -> Result<()>) -> Result<()> {
        let core = self.core.upgrade().ok_or_else(Error::closed)?;
        let Asked { bytes, deadline, .. } = *group;
        match core.pressure.pace() {
            Pace::Free => {}
            pace @ Pace::Slow { .. } => {
                refuse(Unfit::Hurried)?;
                let _holding = core.hold_writers(None);
                core.slow_down(pace, (bytes, deadline), || core.pressure.pace() == Pace::Free)?;
            }
            Pace::Stop => {
                // Without space no compaction ends the stop, and only deletions make space.
                let full = || core.health.out_of_space().filter(|_| !core.disk.refuses_compaction());
                if full().is_none() {
                    refuse(Unfit::Hurried)?;
                    core.begin_beyond_limits();
                    core.stop_until(false, deadline, |_| {
                        core.pressure.pace() != Pace::Stop || full().is_some()
                    })?;
                }
                if let Some(cause) = full().filter(|_| core.pressure.pace() == Pace::Stop) {
                    refuse(Unfit::Growing(cause))?;
                }
            }
        }
        loop {
            let room = core.room_for(group, &core.state());
            match room {
                Room::Enough => break,
                Room::AfterSwitch(mut families) => {
                    if let Err(refusal) = core.check_memory() {
                        if core.has_refused_lately() {
                            return Err(refusal);
                        }
                        refuse(Unfit::Hurried)?;
                        let _holding = core.hold_writers(None);
                        core.wait_for_readers(deadline)?;
                    }
                    core.note_full(&families);
                    families.extend(core.holders_of_full_logs(&core.state()));
                    match core.switch(&families) {
                        Err(e) if lacks_space(&e) && core.takes_more_deletions() => break,
                        switched => switched.inspect_err(|e| core.next_log_failed(e))?,
                    }
                }
                Room::AfterFlush => {
                    // The flush cannot succeed before there is space, and only deletions make space.
                    let full = core.health.severity() == Severity::Full;
                    if full && let Err(cause) = core.health.check_writable() {
                        refuse(Unfit::Growing(cause))?;
                    }
                    if core.takes_more_deletions() {
                        break;
                    }
                    core.schedule();
                    refuse(Unfit::Hurried)?;
                    core.stop_until(true, deadline, |state| {
                        !matches!(core.room_for(group, state), Room::AfterFlush)
                            || !full && core.health.severity() == Severity::Full
                    })?;
                }
            }
        }
        Ok(())
    }

    fn seal_full(&self) {
        if let Some(core) = self.core.upgrade() {
            // Recorded, and the writes of the group are not concerned.
            let _ = core.seal_full();
        }
    }

    fn seal_waiting(&self) {
        if let Some(core) = self.core.upgrade() {
            core.seal_waiting();
        }
    }

    fn charge_batches(&self, bytes: usize) -> MemoryCharge {
        let core = self.core.upgrade();
        core.map_or_else(MemoryCharge::none, |core| core.memory.account().charge(MemoryUse::Batches, bytes))
    }

    fn limits_disk(&self) -> bool {
        self.disk.is_limited()
    }

    fn check_unlogged(&self, bytes: usize) -> Result<()> {
        self.core.upgrade().map_or(Ok(()), |core| core.check_unlogged(bytes as u64))
    }

    fn log_lacks_room(&self, cause: Error) -> Error {
        let Some(core) = self.core.upgrade() else { return Error::closed() };
        if core.refuses_this_write_only() {
            return cause.hint(
                "Write less at once, delete data and call compact(), free disk space, or raise the limit",
            );
        }
        core.log_lacks_room(&cause);
        core.health.check_writable().err().unwrap_or(cause)
    }

    fn waits_for_lead(&self) {
        if let Some(core) = self.core.upgrade() {
            core.refuse_waiting();
        }
    }

    fn panicked(&self, cause: &Error) {
        if let Some(core) = self.core.upgrade() {
            core.report(Source::Panic, cause);
            core.progress.notify();
        }
    }

    fn log_failed(&self, cause: &Error) {
        if let Some(core) = self.core.upgrade() {
            core.report(Source::Log, cause);
            core.schedule();
            core.progress.notify();
        }
    }
}

#[cfg(test)]
#[path = "switch_tests.rs"]
mod tests;
