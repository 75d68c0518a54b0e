//! The commit state, and the callers that lead without a batch: switches, closes, resumes.

use super::WriteSet;
use super::queue::{self, Ended, Limit, Place, Queue, Waiter};
use super::refusal::{Refusal, stalled};
use super::rounds::Rounds;
use crate::pressure::Deadline;
use crate::wal::WalSet;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::{Error, Result, SeqNum};
use ashlar_env::{DatabaseId, Env, Inside};
use ashlar_memtable::{Op, Prepared, WriterSlot};
use ashlar_observe::WriteTally;
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::{CachePadded, EpochCell};
use std::sync::{Arc, OnceLock};

/// What the committer needs from the database around it.
pub(crate) trait WriteHost: Send + Sync {
    /// Called by a leader before its group: waits out back-pressure and switches full memtables. Before a wait, the host calls
    /// `refuse`, which refuses members of the group, and fails if no member is left. The host fails with `TimedOut`
    /// instead of a wait beyond the group's deadline.
    fn make_room(&self, group: &Asked, refuse: &mut dyn FnMut(Unfit) -> Result<()>) -> Result<()>;
    /// Called by a leader after a large group, when some memtable is full: switches it, so that it does not stay until the next
    /// write, unless a flush must end before. If that fails, the next write tries again.
    fn seal_full(&self) {}
    /// Called when the lead was released, and some memtable is full: a flush may have ended meanwhile, and left the switch to
    /// the leader.
    fn seal_waiting(&self) {}
    /// Charges memory that a large group takes on its way.
    fn charge_batches(&self, _bytes: usize) -> MemoryCharge {
        MemoryCharge::none()
    }
    /// Called by a caller that has to wait for the lead and may be refused meanwhile.
    fn waits_for_lead(&self);
    /// Whether a leader waits for background work.
    fn is_holding(&self) -> bool;
    /// Called when a leader panicked between the WAL and the memtables; the committer refuses all further commits.
    fn panicked(&self, cause: &Error);
    /// Called when the WAL failed; nothing more is committed until the database has resumed.
    fn log_failed(&self, cause: &Error);
    /// True when the leader must call [`WriteHost::make_room`].
    fn wants_room(&self) -> bool;
    /// Whether there is a limit on disk space, so that [`WriteHost::check_unlogged`] is called.
    fn limits_disk(&self) -> bool;
    /// Called before `bytes` that skip the WAL are copied into memtables.
    ///
    /// # Errors
    /// `Io(NoSpace)`: a limit on disk space has no room for the table that they will be part of.
    fn check_unlogged(&self, bytes: usize) -> Result<()>;
    /// Called when the WAL cannot reserve disk space ahead. Returns the error for writes other than deletions.
    fn log_lacks_room(&self, cause: Error) -> Error;
}

/// What a group needs.
pub(crate) struct Asked {
    /// The payload of all batches.
    pub(crate) bytes: usize,
    /// Some batch is so large that it also waits for running flushes.
    pub(crate) is_large: bool,
    /// Until when the group waits for background work. Only a group of one has a deadline.
    pub(crate) deadline: Option<Deadline>,
}

/// Members of a group that are refused before their leader waits for room.
pub(crate) enum Unfit {
    /// Those that must not wait.
    Hurried,
    /// Those that do more than delete, because the disk is full: the cause.
    Growing(Error),
}

/// What belongs to the leader. It passes from leader to leader.
#[derive(Default)]
pub(super) struct LeaderState {
    /// The current write set, for leaders of groups. `None`: the next group loads it. It is emptied before anything runs
    /// that may install another set, so a replaced set is never kept alive here.
    pub(super) set: Option<Arc<WriteSet>>,
    pub(super) scratch: Scratch,
    /// The group has left a full memtable. Its leader looks again after it has released the lead.
    pub(super) left_full: bool,
}

impl LeaderState {
    /// Whether the group has left a full memtable. Called once for each group.
    #[inline]
    pub(super) fn take_left_full(&mut self) -> bool {
        std::mem::take(&mut self.left_full)
    }
}

/// Memory that is allocated once and reused by every group.
#[derive(Default)]
pub(super) struct Scratch {
    /// Write hints, one per family of the set.
    pub(super) slots: Vec<WriterSlot>,
    /// The operations of one batch, each with the index of its family in the set. Empty between batches.
    pub(super) ops: Vec<(usize, Op<'static>)>,
    /// The families of one batch, as indexes in the set.
    pub(super) touched: Vec<usize>,
    /// The prepared entries of a group: the index of the batch in the group, that of the family in the write set.
    pub(super) prepared: Vec<(usize, usize, Prepared)>,
}

/// The commit state. See the module for the protocol.
pub(crate) struct Committer {
    pub(super) env: Env,
    pub(super) database: DatabaseId,
    pub(super) queue: Queue<LeaderState>,
    pub(super) syncs: Rounds,
    set: EpochCell<WriteSet>,
    pub(super) wals: WalSet,
    /// The last reserved sequence. Only leaders write it.
    pub(super) reserved: AtomicU64,
    /// Stored with Release by the leader after its inserts; loaded with Acquire by readers, which then see every entry
    /// at or below it. Readers load it all the time, so nothing else on its cache line may change.
    pub(super) visible: CachePadded<AtomicU64>,
    pub(super) durable: AtomicU64,
    /// Some write skipped the WAL: a close must flush.
    pub(super) unlogged: AtomicBool,
    pub(super) tally: WriteTally,
    pub(super) host: OnceLock<Box<dyn WriteHost>>,
    /// Why commits are refused.
    pub(super) refusal: Refusal,
}

/// The lead of a caller that commits nothing. Dropping it hands the lead over, so that a panic does not stop the
/// writers.
pub(crate) struct Lead<'a> {
    _lead: queue::Lead<'a, LeaderState>,
    _inside: Inside,
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
            queue: Queue::new(LeaderState::default()),
            syncs: Rounds::new(),
            set: EpochCell::new(set),
            wals: WalSet::new(),
            reserved: AtomicU64::new(last.get()),
            visible: CachePadded::new(AtomicU64::new(last.get())),
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
        let lead = self.take_lead(false)?;
        let out = self.check().and_then(|()| work());
        self.release(lead);
        out
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
        let lead = self.take_lead(false)?;
        let out = self.refusal.check_closed().and_then(|()| work());
        self.release(lead);
        out
    }

    fn release(&self, lead: Lead<'_>) {
        drop(lead);
        self.seal_waiting();
    }

    /// Lets the host look for memtables that a flush has made room for. The caller has released the lead.
    pub(super) fn seal_waiting(&self) {
        if let Some(host) = self.host.get()
            && self.current().any_full()
        {
            host.seal_waiting();
        }
    }

    /// The lead, if it is free: for jobs, which must not wait for writers.
    pub(crate) fn try_lead(&self) -> Option<Lead<'_>> {
        self.queue.try_lead().map(|lead| self.lead_of_one(lead))
    }

    /// Refuses writes with `cause` until [`Committer::resume`]. The caller holds the lead.
    pub(crate) fn refuse(&self, cause: &Error) {
        self.refusal.fail(cause, self.refusal.resumes());
    }

    /// The last sequence that any record may carry, records of failed writes included.
    pub(crate) fn last_reserved(&self) -> SeqNum {
        SeqNum::new(self.reserved.load(Ordering::Relaxed)).unwrap_or(SeqNum::MAX)
    }

    /// Takes the sequence numbers up to `last` for tables whose entries have them: the next write comes after `last`, and
    /// reads see the tables. The caller holds the lead, and readers have the tables.
    pub(crate) fn take_sequences(&self, last: SeqNum) {
        self.reserved.fetch_max(last.get(), Ordering::Relaxed);
        self.visible.fetch_max(last.get(), Ordering::Release);
        self.durable.fetch_max(last.get(), Ordering::Release);
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

    fn lead_of_one<'a>(&'a self, mut lead: queue::Lead<'a, LeaderState>) -> Lead<'a> {
        lead.set = None;
        Lead { _lead: lead, _inside: self.database.enter() }
    }

    fn take_lead(&self, patient: bool) -> Result<Lead<'_>> {
        let lead = match self.queue.try_lead() {
            Some(lead) => lead,
            None => self.wait_for_lead(Waiter::alone(patient, self.env.jobs.signal()), None)?,
        };
        Ok(self.lead_of_one(lead))
    }

    /// Waits for the lead in the queue, for a caller that leads alone.
    ///
    /// # Errors
    /// Why the waiter was refused. `TimedOut`: the deadline has passed, and a leader waits for background work.
    pub(super) fn wait_for_lead(
        &self,
        waiter: Arc<Waiter>,
        deadline: Option<Deadline>,
    ) -> Result<queue::Lead<'_, LeaderState>> {
        let soon = match self.queue.enqueue(&waiter) {
            Place::Leads(lead) => return Ok(lead),
            Place::Waits { soon } => soon,
        };
        let host = self.host.get();
        if waiter.may_be_refused()
            && let Some(host) = host
        {
            host.waits_for_lead();
        }
        let ended = match deadline {
            None => self.queue.wait(&waiter, soon, None),
            Some(deadline) => {
                let left = || deadline.left(self.env.clock.now());
                let is_held = || host.is_some_and(|host| host.is_holding());
                self.queue.wait(&waiter, soon, Some(&Limit { left: &left, is_held: &is_held }))
            }
        };
        match (ended, deadline) {
            (Ended::Leads(lead), _) => Ok(lead),
            (Ended::Left, Some(deadline)) => Err(deadline.passed()),
            (Ended::Left, None) => Err(queue::not_handed()),
            (Ended::Done(done), _) => Err(done.err().unwrap_or_else(queue::not_handed)),
        }
    }

    /// Refuses the calls of [`Committer::lead_alone`] and [`Committer::lead_unlogged`] that wait for the lead.
    pub(crate) fn refuse_waiting(&self, cause: &Error) {
        self.queue.refuse(cause, Waiter::is_impatient);
    }

    /// Refuses the queued writers that must not wait for background work, or whose deadline has passed. A leader waits for it.
    pub(crate) fn refuse_hurried(&self) {
        self.queue.refuse_hurried(&stalled());
    }

    /// True when some write of this session skipped the WAL.
    pub(crate) fn has_unlogged(&self) -> bool {
        self.unlogged.load(Ordering::Relaxed)
    }

    /// Records that a WAL file failed; `resumes` is the count from before the attempt. False when the database has
    /// resumed since: then all data of that file is durable in tables.
    pub(super) fn fail(&self, cause: &Error, resumes: u64) -> bool {
        if !self.refusal.fail(cause, resumes) {
            return false;
        }
        if let Some(host) = self.host.get() {
            host.log_failed(cause);
        }
        true
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.refusal.check()
    }

    /// The newest sequence that reads may see.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNum {
        SeqNum::new(self.visible.load(Ordering::Acquire)).unwrap_or(SeqNum::MAX)
    }

    /// The newest sequence that survives a power cut.
    pub(crate) fn durable(&self) -> SeqNum {
        SeqNum::new(self.durable.load(Ordering::Acquire)).unwrap_or(SeqNum::MAX)
    }
}
