//! The only interface for writes: a queue and a leader. Its implementation may change without changes of callers.

use super::queue::{Group, Place, Queue, Receipt, Scratch, Turn, Waiter};
use super::refusal::Refusal;
use super::rounds::{Lead as SyncLead, Part, Rounds};
use super::{GroupSize, WriteSet, WriteTally};
use crate::batch::{collect_families, family_ops, only_deletes};
use crate::identity::{DatabaseId, Inside};
use crate::wal::{ROOM_FOR_DELETIONS, WalSet};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::stats::Distribution;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Error, ErrorKind, FamilyId, Result, SeqNum};
use ashlar_env::Env;
use ashlar_format::write_batch::{BatchEncoder, BatchReader};
use ashlar_log::{LogRange, LogWriter};
use ashlar_options::WriteOptions;
use ashlar_sync::EpochCell;
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The largest payload of a group in bytes: a larger group would make its last writer wait too long.
const GROUP_BYTES: usize = 1 << 20;

/// What the committer needs from the database around it.
pub(crate) trait WriteHost: Send + Sync {
    /// Called by a leader before a group of `bytes`: waits out back-pressure and switches full memtables.
    fn make_room(&self, bytes: usize) -> Result<()>;
    /// Called by a caller that has to wait for the lead.
    fn waits_for_lead(&self);
    /// Called when a leader panicked between the WAL and the memtables; the committer refuses all further commits.
    fn panicked(&self, cause: &Error);
    /// Called when the WAL failed; nothing more is committed until the database has resumed.
    fn log_failed(&self, cause: &Error);
    /// True when the leader must call [`WriteHost::make_room`].
    fn wants_room(&self) -> bool;
    /// Called when the WAL cannot reserve disk space ahead. Returns the error for writes other than deletions.
    fn log_lacks_room(&self, cause: Error) -> Error;
}

/// The commit state. See the module for the protocol.
pub(crate) struct Committer {
    env: Env,
    database: DatabaseId,
    queue: Queue,
    syncs: Rounds,
    set: EpochCell<WriteSet>,
    wals: WalSet,
    /// The last reserved sequence. Only leaders write it.
    reserved: AtomicU64,
    /// Stored with Release by the leader after its inserts; loaded with Acquire by readers, which then see every entry
    /// at or below it.
    visible: AtomicU64,
    durable: AtomicU64,
    /// Some write skipped the WAL: a close must flush.
    unlogged: AtomicBool,
    tally: WriteTally,
    host: OnceLock<Box<dyn WriteHost>>,
    /// Why commits are refused.
    refusal: Refusal,
}

/// The lead of a caller that commits nothing. Dropping it hands the lead over, so that a panic does not stop the
/// writers.
pub(crate) struct Lead<'a> {
    queue: &'a Queue,
    _inside: Inside,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.queue.hand_over();
    }
}

/// A group between the WAL and the memtables. If the leader panics, this value is dropped before [`Unfinished::done`]
/// and ends committing: the WAL may have records that the memtables lack, and the memtables may have part of a batch,
/// beyond the visible sequence. The next open replays the WAL.
struct Unfinished<'a> {
    committer: &'a Committer,
    /// The last sequence that a record of the group may carry.
    last: u64,
}

impl Unfinished<'_> {
    fn done(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.committer.reserved.store(self.last, Ordering::Relaxed);
        let cause = Error::new(ErrorKind::Aborted, "a write panicked")
            .hint("Close the database and open it again: the WAL has all acknowledged writes");
        self.committer.refusal.fail_for_good(&cause);
        if let Some(host) = self.committer.host.get() {
            host.panicked(&cause);
        }
    }
}

/// One batch of a group while it is being committed.
struct Member<'a> {
    batch: &'a mut BatchEncoder,
    options: WriteOptions,
    count: u64,
    outcome: Option<Result<Receipt>>,
}

impl<'a> Member<'a> {
    fn new(batch: &'a mut BatchEncoder, options: WriteOptions) -> Self {
        Member { batch, options, count: 0, outcome: None }
    }
}

impl Committer {
    pub(crate) fn new(
        (env, database): (Env, DatabaseId),
        set: Arc<WriteSet>,
        last: SeqNum,
        tally: WriteTally,
    ) -> Self {
        Committer {
            env,
            database,
            queue: Queue::new(),
            syncs: Rounds::new(),
            set: EpochCell::new(set),
            wals: WalSet::new(),
            reserved: AtomicU64::new(last.get()),
            visible: AtomicU64::new(last.get()),
            durable: AtomicU64::new(last.get()),
            unlogged: AtomicBool::new(false),
            tally,
            host: OnceLock::new(),
            refusal: Refusal::new(),
        }
    }

    /// Sets the database around the committer. Called once, before the first commit.
    pub(crate) fn attach(&self, host: Box<dyn WriteHost>) {
        let _ = self.host.set(host);
    }

    /// The counts of committed writes.
    pub(crate) fn tally(&self) -> &WriteTally {
        &self.tally
    }

    pub(crate) fn wals(&self) -> &WalSet {
        &self.wals
    }

    /// The current WAL file and memtables.
    pub(crate) fn current(&self) -> Arc<WriteSet> {
        self.set.get()
    }

    /// Replaces the WAL file and memtables. Only inside [`Committer::lead_alone`] or [`WriteHost::make_room`].
    pub(crate) fn install(&self, set: WriteSet) {
        self.set.set(Arc::new(set));
    }

    /// Runs `work` while no write is in progress: for switches that no full memtable caused.
    ///
    /// # Errors
    /// The error that refuses writes, also after [`Committer::close`]; else those of `work`.
    pub(crate) fn lead_alone<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let _lead = self.take_lead(false)?;
        self.check()?;
        work()
    }

    /// Runs `last` while no write is in progress, and refuses all later writes with `Shutdown`.
    pub(crate) fn close<T>(&self, last: impl FnOnce() -> Result<T>) -> Result<T> {
        let _lead = self.take_lead(true)?;
        let out = last();
        self.refusal.close();
        out
    }

    /// Like [`Committer::lead_alone`], but also while writes are refused: for changes that write no WAL record.
    ///
    /// # Errors
    /// `Shutdown` after [`Committer::close`]; else those of `work`.
    pub(crate) fn lead_unlogged<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let _lead = self.take_lead(false)?;
        self.refusal.check_closed()?;
        work()
    }

    /// The lead, if it is free: for jobs, which must not wait for writers.
    pub(crate) fn try_lead(&self) -> Option<Lead<'_>> {
        self.queue.try_lead().then(|| self.lead_of_one())
    }

    /// Refuses writes with `cause` until [`Committer::resume`]. The caller holds the lead.
    pub(crate) fn refuse(&self, cause: &Error) {
        self.refusal.fail(cause, self.refusal.resumes());
    }

    /// The last sequence that any record may carry, records of failed writes included.
    pub(crate) fn last_reserved(&self) -> SeqNum {
        SeqNum::new(self.reserved.load(Ordering::Relaxed)).unwrap_or(SeqNum::MAX)
    }

    /// Continues with `set`, whose WAL file is new. Everything in earlier memtables is durable in tables. Sequences
    /// that failed writes may have used are skipped. The caller holds the lead.
    pub(crate) fn resume(&self, set: WriteSet) {
        self.wals.forget_below(set.wal.number());
        self.install(set);
        let last = self.reserved.load(Ordering::Relaxed);
        self.visible.store(last, Ordering::Release);
        self.durable.fetch_max(last, Ordering::Release);
        self.refusal.lift();
    }

    fn lead_of_one(&self) -> Lead<'_> {
        Lead { queue: &self.queue, _inside: self.database.enter() }
    }

    fn take_lead(&self, patient: bool) -> Result<Lead<'_>> {
        if !self.queue.try_lead() {
            let waiter = Waiter::alone(patient, self.env.jobs.signal());
            if let Place::Waits { soon } = self.queue.enqueue(&waiter) {
                if let Some(host) = self.host.get() {
                    host.waits_for_lead();
                }
                if let Turn::Done(Err(e)) = waiter.wait(soon) {
                    return Err(e.clone());
                }
            }
        }
        Ok(self.lead_of_one())
    }

    /// Refuses the calls of [`Committer::lead_alone`] and [`Committer::lead_unlogged`] that wait for the lead.
    pub(crate) fn refuse_waiting(&self, cause: &Error) {
        self.queue.refuse_waiting(cause);
    }

    /// True when some write of this session skipped the WAL.
    pub(crate) fn has_unlogged(&self) -> bool {
        self.unlogged.load(Ordering::Relaxed)
    }

    /// Hands all committed records that the WAL buffers to the operating system.
    pub(crate) fn flush(&self) -> Result<()> {
        self.check()?;
        let resumes = self.refusal.resumes();
        match self.current().wal.flush() {
            Err(e) if self.fail(&e, resumes) => Err(e),
            _ => Ok(()),
        }
    }

    /// Makes everything committed so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.check()?;
        let seq = self.visible();
        let set = self.current();
        self.sync_at(Receipt { last: seq, log_end: (set.wal.number(), set.wal.log().position()) })
    }

    /// Makes every closed WAL file durable. After a failure nothing more is committed: the data of those files, and
    /// everything written after them, can become durable only in tables.
    pub(crate) fn sync_closed(&self) -> Result<()> {
        let resumes = self.refusal.resumes();
        match self.wals.sync_closed() {
            Ok(syncs) => self.tally.synced(syncs),
            Err(e) if self.fail(&e, resumes) => return Err(e),
            Err(_) => {}
        }
        Ok(())
    }

    /// Returns when the record of `receipt` is durable.
    ///
    /// # Errors
    /// `Indeterminate`: the sync failed.
    fn sync_at(&self, receipt: Receipt) -> Result<()> {
        let step = perf::time_of_waiting(Metric::WriteThreadWaitNanos);
        let part = self.syncs.join(receipt);
        drop(step);
        match part {
            Part::Served(outcome) => outcome,
            Part::Leads(lead) => {
                let outcome = self.sync_for(&lead);
                lead.end(outcome.clone());
                outcome
            }
        }
    }

    /// Makes the records of a round durable.
    fn sync_for(&self, lead: &SyncLead<'_>) -> Result<()> {
        let Receipt { last, log_end } = *lead.furthest();
        let _time = self.tally.statistics().time(Distribution::WalFileSyncMicros);
        // Read when the round takes no more members: the records of all of them are older than a resume after it.
        let resumes = self.refusal.resumes();
        match self.wals.sync(&self.current().wal, log_end) {
            Ok(syncs) => self.tally.synced(syncs),
            Err(e) if self.fail(&e, resumes) => return Err(indeterminate(&e)),
            Err(_) => {}
        }
        self.durable.fetch_max(last.get(), Ordering::Release);
        Ok(())
    }

    /// Records that a WAL file failed; `resumes` is the count from before the attempt. False when the database has
    /// resumed since: then all data of that file is durable in tables.
    fn fail(&self, cause: &Error, resumes: u64) -> bool {
        if !self.refusal.fail(cause, resumes) {
            return false;
        }
        if let Some(host) = self.host.get() {
            host.log_failed(cause);
        }
        true
    }

    fn check(&self) -> Result<()> {
        self.refusal.check()
    }

    /// Commits the leader's batch and those of its group, and hands the lead over. If the leader panics, the waiting
    /// writers still get an error and the lead is handed over.
    fn commit_group(
        &self,
        mut group: Group<'_>,
        batch: &mut BatchEncoder,
        options: WriteOptions,
    ) -> Result<Receipt> {
        let _inside = self.database.enter();
        let (followers, scratch) = group.parts();
        let own = Member::new(batch, options);
        if followers.is_empty() {
            let mut alone = [own];
            self.run_group(&mut alone, scratch);
            let [own] = alone;
            return own.outcome.unwrap_or_else(|| Err(Error::closed()));
        }
        let others = followers.iter_mut().map(|f| Member::new(&mut f.batch, f.options));
        let mut members: Vec<_> = std::iter::once(own).chain(others).collect();
        self.run_group(&mut members, scratch);
        let mut outcomes = members.into_iter().map(|m| m.outcome.unwrap_or_else(|| Err(Error::closed())));
        let own = outcomes.next().unwrap_or_else(|| Err(Error::closed()));
        let outcomes: Vec<_> = outcomes.collect();
        for (follower, outcome) in followers.iter_mut().zip(outcomes) {
            follower.outcome = Some(outcome);
        }
        own
    }

    /// The error for writers whose leader panicked.
    fn given_up(&self) -> Error {
        match self.check() {
            Ok(()) => Error::new(
                ErrorKind::Aborted,
                "the leader of this write's group panicked; nothing was written",
            ),
            Err(cause) => Error::new(
                ErrorKind::Indeterminate,
                "the leader of this write's group panicked; the write may or may not be in the WAL",
            )
            .because(cause.without_hint())
            .hint("Close the database, open it again and read the write back"),
        }
    }

    fn run_group(&self, group: &mut [Member<'_>], scratch: &mut Scratch) {
        let ready = self.check().and_then(|()| self.make_room(group));
        if let Err(e) = ready {
            return group.iter_mut().for_each(|m| m.outcome = Some(Err(e.clone())));
        }
        let set = self.set.get();
        scratch.slots.resize_with(set.families.len(), Default::default);
        scratch.prepared.clear();
        for (at, member) in group.iter_mut().enumerate() {
            if let Err(e) = prepare(&set, scratch, at, member) {
                member.outcome = Some(Err(e));
            }
        }
        self.write_group(&set, scratch, group);
    }

    fn make_room(&self, group: &[Member<'_>]) -> Result<()> {
        let Some(host) = self.host.get() else { return Err(Error::closed()) };
        if host.wants_room() || self.set.load(&ashlar_sync::ReadPin::enter()).any_full() {
            host.make_room(group.iter().map(|m| m.batch.byte_len()).sum())?;
        }
        Ok(())
    }

    /// Frames a batch behind `end` in the WAL file. A failure leaves no trace in the file.
    #[inline]
    fn fill(&self, log: &LogWriter, batch: &mut BatchEncoder, first: SeqNum, end: u64) -> Result<LogRange> {
        let batch = batch.finish(first);
        let payload = log.stored(batch)?;
        let range = log.layout(end, payload.len() as u64);
        let range = range.ok_or_else(|| Error::invalid("the batch is too large for the WAL"))?;
        if let Err(e) = log.make_room(range.end, ROOM_FOR_DELETIONS) {
            self.without_room(e, batch, || log.reaches(range.end))?;
        }
        log.fill(&range, &payload);
        Ok(range)
    }

    /// The WAL cannot reserve disk space ahead: deletions may use the space reserved for them. `suffices` says whether
    /// the batch fits.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the batch is not logged.
    #[cold]
    fn without_room(&self, cause: Error, batch: &[u8], suffices: impl FnOnce() -> bool) -> Result<()> {
        let refusal = match self.host.get() {
            Some(host) => host.log_lacks_room(cause.clone()),
            None => Error::closed(),
        };
        match only_deletes(&BatchReader::new(batch).map_err(|e| e.into_error())?)? {
            true if suffices() => Ok(()),
            true => Err(deletions_used_up(cause)),
            false => Err(refusal),
        }
    }

    /// Whether the WAL file has space for deletions of `bytes`, or can reserve it now. The caller does not hold the
    /// lead, so other writes may use the space first.
    ///
    /// # Errors
    /// `cause`, with what to do, when there is no space.
    pub(crate) fn check_room_for_deletions(&self, bytes: usize, cause: Error) -> Result<()> {
        let set = self.current();
        let log = set.wal.log();
        let fits = log.layout(log.position(), bytes as u64).is_some_and(|range| log.reaches(range.end));
        if fits { Ok(()) } else { Err(deletions_used_up(cause)) }
    }

    /// Reserves, fills, publishes, inserts, and makes the group visible.
    fn write_group(&self, set: &Arc<WriteSet>, scratch: &mut Scratch, group: &mut [Member<'_>]) {
        let mut next = self.reserved.load(Ordering::Relaxed);
        let all: u64 = group.iter().map(|m| m.count).sum();
        let last = next.saturating_add(all).min(SeqNum::MAX.get());
        let unfinished = Unfinished { committer: self, last };
        let log = set.wal.log();
        let mut end = log.position();
        let (mut logged, mut size) = (None, GroupSize::default());
        let step = perf::time(Metric::WriteWalTime);
        for m in group.iter_mut().filter(|m| m.outcome.is_none()) {
            let Some(first) = SeqNum::new(next + 1).filter(|f| f.checked_add(m.count).is_some()) else {
                m.outcome = Some(Err(full()));
                continue;
            };
            if m.options.disable_wal {
                self.unlogged.store(true, Ordering::Relaxed);
            } else {
                let range = match self.fill(log, m.batch, first, end) {
                    Ok(range) => range,
                    Err(e) => {
                        m.outcome = Some(Err(e));
                        continue;
                    }
                };
                end = range.end;
                let start = logged.map_or(range.start, |r: LogRange| r.start);
                logged = Some(LogRange { start, end });
                (size.logged, size.wal_bytes) = (size.logged + 1, end - start);
            }
            next += m.count;
            (size.writes, size.keys) = (size.writes + 1, size.keys + m.count);
            size.bytes += m.batch.byte_len() as u64;
            let last = SeqNum::new(next).unwrap_or(SeqNum::MAX);
            let log_end = (set.wal.number(), end);
            m.outcome = Some(Ok(Receipt { last, log_end }));
        }
        if let Some(range) = logged
            && let Err(e) = log.publish(&range)
            && !planted(Bug::FailedLogAcknowledged)
        {
            // A later record must not carry a sequence that this group may have written to the file.
            self.reserved.store(next, Ordering::Relaxed);
            unfinished.done();
            self.fail(&e, self.refusal.resumes());
            return group.iter_mut().for_each(|m| m.outcome = Some(Err(indeterminate(&e))));
        }
        drop(step);
        if planted(Bug::VisibleBeforeInserted) {
            self.visible.store(next, Ordering::Release);
        }
        let _step = perf::time(Metric::WriteMemtableTime);
        for (member, at, prepared) in scratch.prepared.drain(..) {
            let Some(Member { outcome: Some(Ok(receipt)), count, .. }) = group.get(member) else { continue };
            let first = SeqNum::new(receipt.last.get() - count + 1).unwrap_or(SeqNum::MAX);
            if let (Some(slot), Some(family)) = (scratch.slots.get_mut(at), set.families.get(at)) {
                family.mem.insert(slot, prepared, first);
            }
        }
        self.reserved.store(next, Ordering::Relaxed);
        self.visible.store(next, Ordering::Release);
        unfinished.done();
        if size.writes > 0 {
            self.tally.group(size);
        }
    }
}

/// Copies the operations of the group's batch `index` into the arenas of their families. A failure changes nothing that
/// readers see.
fn prepare(set: &WriteSet, scratch: &mut Scratch, index: usize, member: &mut Member<'_>) -> Result<()> {
    let reader = member.batch.checked_reader()?;
    let Scratch { slots, families, prepared } = scratch;
    collect_families(&reader, families)?;
    for family in families.iter().copied() {
        let at = set.find(family).ok_or_else(|| unknown_family(family))?;
        let (Some(slot), Some(target)) = (slots.get_mut(at), set.families.get(at)) else {
            return Err(unknown_family(family));
        };
        let mut ops = family_ops(&reader, family);
        prepared.push((index, at, target.mem.prepare(slot, &mut ops)?));
    }
    member.count = u64::from(reader.count());
    Ok(())
}

fn unknown_family(family: FamilyId) -> Error {
    Error::invalid(format!("column family {} does not exist (any more)", family.0))
}

fn deletions_used_up(cause: Error) -> Error {
    cause.hint(
        "The space that the WAL reserves for deletions is used up. Drop families or whole files, or free disk space; \
         writes resume by themselves",
    )
}

fn indeterminate(cause: &Error) -> Error {
    Error::new(
        ErrorKind::Indeterminate,
        "the WAL failed during this write; the write may or may not be in the WAL",
    )
    .because(cause)
    .hint("Read it back once writes have resumed, or write it again")
}

/// The error of a batch when no sequence numbers are left.
#[cold]
fn full() -> Error {
    Error::not_supported("more than 2^56 writes in one database").hint(
        "Copy its keys and values into a new database; if the MANIFEST records more writes than there were, a repair \
         recounts them",
    )
}

impl Committer {
    /// Commits a batch. Returns its last sequence.
    ///
    /// # Errors
    /// `InvalidArgument`: a family that does not exist. `Busy(Memory)`. `Indeterminate`: the WAL failed. The cause of
    /// an earlier failure, once there was one.
    pub(crate) fn commit(&self, batch: &mut BatchEncoder, options: WriteOptions) -> Result<SeqNum> {
        let given_up = || self.given_up();
        let receipt = match self.queue.try_lead_group(&given_up) {
            Some(group) => self.commit_group(group, batch, options)?,
            None => self.commit_behind(batch, options)?,
        };
        if options.sync && !options.disable_wal && !planted(Bug::WriteUnsynced) {
            self.sync_at(receipt)?;
        }
        Ok(receipt.last)
    }

    /// Lends the batch to a leader, or leads when the lead comes to this writer.
    fn commit_behind(&self, batch: &mut BatchEncoder, options: WriteOptions) -> Result<Receipt> {
        let waiter = Waiter::new(batch.lend(), options, self.env.jobs.signal());
        let step = perf::time_of_waiting(Metric::WriteThreadWaitNanos);
        let turn = match self.queue.enqueue(&waiter) {
            Place::Leads => &Turn::Lead,
            Place::Waits { soon } => waiter.wait(soon),
        };
        drop(step);
        *batch = waiter.take_batch().unwrap_or_default();
        if let Turn::Done(outcome) = turn {
            return outcome.clone();
        }
        let given_up = || self.given_up();
        let limit_bytes = GROUP_BYTES.saturating_sub(batch.byte_len());
        self.commit_group(self.queue.lead(limit_bytes, &given_up), batch, options)
    }

    /// The newest sequence that reads may see.
    pub(crate) fn visible(&self) -> SeqNum {
        SeqNum::new(self.visible.load(Ordering::Acquire)).unwrap_or(SeqNum::MAX)
    }

    /// The newest sequence that survives a power cut.
    pub(crate) fn durable(&self) -> SeqNum {
        SeqNum::new(self.durable.load(Ordering::Acquire)).unwrap_or(SeqNum::MAX)
    }
}
