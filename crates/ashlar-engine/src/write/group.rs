//! A group of writers: the leader prepares, logs, inserts and shows all their batches.

use super::committer::{Asked, Committer, LeaderState, Scratch};
use super::queue::{self, Ended, Follower, Group, Place, Receipt, Waiter};
use super::refusal::{deletions_used_up, full, given_up, indeterminate, stalled, unknown_family};
use super::{Unfit, WriteSet};
use crate::batch::{each_op, only_deletes, sole_op};
use crate::pressure::Deadline;
use crate::wal::ROOM_FOR_DELETIONS;
use ashlar_base::error::IoKind;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Error, ErrorKind, Result, SeqNum};
use ashlar_format::write_batch::{BatchEncoder, BatchReader};
use ashlar_log::{LogGroup, LogRange, LogWriter};
use ashlar_memtable::Op;
use ashlar_observe::GroupSize;
use ashlar_options::WriteOptions;
use ashlar_sync::atomic::Ordering;
use std::sync::Arc;

/// The largest payload of a group in bytes: a larger group would make its last writer wait too long.
const GROUP_BYTES: usize = 1 << 20;

/// How many bytes of other writers a leader with these options takes. A leader with `no_slowdown` or a `timeout` takes no
/// followers, because it fails instead of waiting for background work.
fn group_bytes(options: WriteOptions) -> usize {
    if options.no_slowdown || options.timeout.is_some() { 0 } else { GROUP_BYTES }
}

/// A group with a batch of this many bytes is large: its memory is charged, and a memtable that it fills is switched at once.
const LARGE_BYTES: usize = 256 << 10;

/// Memory for more parsed operations than this is freed after their batch.
const KEEP_OPS: usize = 4096;

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
    /// `None`: the leader.
    waiter: Option<&'a Waiter>,
    count: u64,
    outcome: Option<Result<Receipt>>,
}

impl<'a> Member<'a> {
    fn new(batch: &'a mut BatchEncoder, options: WriteOptions) -> Self {
        Member { batch, options, waiter: None, count: 0, outcome: None }
    }

    fn of(follower: &'a mut Follower) -> Self {
        Member { waiter: Some(&follower.waiter), ..Member::new(&mut follower.batch, follower.options) }
    }

    /// Ends the member's write, at once if it is a follower's.
    fn refuse(&mut self, cause: Error) {
        if let Some(waiter) = self.waiter {
            waiter.refuse(self.batch, cause.clone());
        }
        self.outcome = Some(Err(cause));
    }

    fn outcome(self) -> Result<Receipt> {
        self.outcome.unwrap_or_else(|| Err(Error::closed()))
    }
}

impl Committer {
    /// Commits a batch, whose `options` have no `timeout`. Returns its last sequence.
    ///
    /// # Errors
    /// `InvalidArgument`: a family that does not exist. `Busy(Memory)`. `Indeterminate`: the WAL failed. The cause of
    /// an earlier failure, once there was one.
    /// # Cost
    /// Without other writers: no allocation, and four atomic operations beside those of the memtable.
    pub(crate) fn commit(&self, batch: &mut BatchEncoder, options: WriteOptions) -> Result<SeqNum> {
        let given_up = || given_up(self.check());
        let receipt = match self.queue.try_lead() {
            Some(lead) => self.commit_group(lead.group(group_bytes(options), &given_up), batch, options)?,
            None => self.commit_behind(batch, options)?,
        };
        self.synced(receipt, options)
    }

    /// Commits a batch after `check`, which runs while no write is in progress: no other write comes between the check and
    /// the batch. The writer waits for the lead and leads a group of its own, until its deadline if it has one. A check that
    /// fails concerns no other writer: the lead goes to the next one. `done` runs after the batch was committed, still under
    /// the lead. Returns the last sequence of the batch.
    ///
    /// # Errors
    /// Those of `check`: nothing was written. `TimedOut`: nothing was written. Those of [`Committer::commit`].
    pub(crate) fn commit_checked(
        &self,
        batch: &mut BatchEncoder,
        (options, deadline): (WriteOptions, Option<Deadline>),
        check: &mut dyn FnMut() -> Result<()>,
        done: &mut dyn FnMut(),
    ) -> Result<SeqNum> {
        let given_up = || given_up(self.check());
        let lead = match self.queue.try_lead() {
            Some(lead) => lead,
            None => {
                let _step = perf::time_of_waiting(Metric::WriteThreadWaitNanos);
                self.wait_for_lead(Waiter::alone_with(options, self.env.jobs.signal()), deadline)?
            }
        };
        let checked = {
            let _inside = self.database.enter();
            self.check().and_then(|()| check())
        };
        if let Err(e) = checked {
            drop(lead);
            self.seal_waiting();
            return Err(e);
        }
        let mut group = lead.group(group_bytes(options), &given_up);
        let outcome = self.commit_within(&mut group, batch, (options, deadline)).inspect(|_| done());
        let left_full = group.parts().1.take_left_full();
        drop(group);
        if left_full {
            self.seal_waiting();
        }
        self.synced(outcome?, options)
    }

    /// Syncs a committed batch if its options say so. Returns its last sequence.
    #[inline]
    fn synced(&self, receipt: Receipt, options: WriteOptions) -> Result<SeqNum> {
        if options.sync && !options.disable_wal && !planted(Bug::WriteUnsynced) {
            self.sync_at(receipt)?;
        }
        Ok(receipt.last)
    }

    /// Lends the batch to a leader, or leads when the lead comes to this writer.
    #[inline(never)]
    fn commit_behind(&self, batch: &mut BatchEncoder, options: WriteOptions) -> Result<Receipt> {
        let waiter = Waiter::new(batch.lend(), options, self.env.jobs.signal());
        let step = perf::time_of_waiting(Metric::WriteThreadWaitNanos);
        let ended = match self.queue.enqueue(&waiter) {
            Place::Leads(lead) => Ended::Leads(lead),
            Place::Waits { soon } => {
                if waiter.may_be_refused()
                    && let Some(host) = self.host.get()
                {
                    host.waits_for_lead();
                }
                self.queue.wait(&waiter, soon, None)
            }
        };
        drop(step);
        *batch = waiter.take_batch().unwrap_or_default();
        match ended {
            Ended::Done(outcome) => outcome,
            Ended::Left => Err(queue::not_handed()),
            Ended::Leads(lead) => {
                let given_up = || given_up(self.check());
                let limit_bytes = group_bytes(options).saturating_sub(batch.byte_len());
                self.commit_group(lead.group(limit_bytes, &given_up), batch, options)
            }
        }
    }

    /// Commits the leader's batch and those of its group, and hands the lead over. If the leader panics, the waiting
    /// writers still get an error and the lead is handed over.
    fn commit_group(
        &self,
        mut group: Group<'_, LeaderState>,
        batch: &mut BatchEncoder,
        options: WriteOptions,
    ) -> Result<Receipt> {
        let outcome = self.commit_within(&mut group, batch, (options, None));
        let left_full = group.parts().1.take_left_full();
        drop(group);
        if left_full {
            self.seal_waiting();
        }
        outcome
    }

    /// Commits the leader's batch and those of its group. The caller hands the lead over. A group waits for background work until
    /// `deadline`; only a group of one has a deadline.
    #[inline]
    fn commit_within(
        &self,
        group: &mut Group<'_, LeaderState>,
        batch: &mut BatchEncoder,
        (options, deadline): (WriteOptions, Option<Deadline>),
    ) -> Result<Receipt> {
        let _inside = self.database.enter();
        let (followers, state) = group.parts();
        let own = Member::new(batch, options);
        if followers.is_empty() {
            let mut alone = [own];
            self.run_group(&mut alone, state, deadline);
            let [own] = alone;
            return own.outcome();
        }
        let others = followers.iter_mut().map(Member::of);
        let mut members: Vec<_> = std::iter::once(own).chain(others).collect();
        self.run_group(&mut members, state, deadline);
        let mut outcomes = members.into_iter().map(Member::outcome);
        let own = outcomes.next().unwrap_or_else(|| Err(Error::closed()));
        let outcomes: Vec<_> = outcomes.collect();
        for (follower, outcome) in followers.iter_mut().zip(outcomes) {
            follower.outcome = Some(outcome);
        }
        own
    }

    fn run_group(&self, group: &mut [Member<'_>], state: &mut LeaderState, deadline: Option<Deadline>) {
        let LeaderState { set: kept, scratch, left_full } = state;
        let bytes: usize = group.iter().map(|m| m.batch.byte_len()).sum();
        let is_large = bytes >= LARGE_BYTES && group.iter().any(|m| m.batch.byte_len() >= LARGE_BYTES);
        let asked = Asked { bytes, is_large, deadline };
        let set = match self.check().and_then(|()| self.room_for(group, &asked, kept)) {
            Ok(set) => set,
            Err(e) => {
                // A flush that ended meanwhile found the lead taken, and left the switch to this thread.
                *left_full = self.current().any_full();
                group
                    .iter_mut()
                    .filter(|m| m.outcome.is_none())
                    .for_each(|m| m.outcome = Some(Err(e.clone())));
                return;
            }
        };
        if is_large {
            self.ask_room(set, group);
        }
        self.ask_limits(group);
        let charge = is_large.then(|| self.charge_batches(bytes));
        scratch.slots.resize_with(set.families.len(), Default::default);
        scratch.prepared.clear();
        for (at, member) in group.iter_mut().enumerate().filter(|(_, member)| member.outcome.is_none()) {
            if let Err(e) = prepare(set, scratch, at, member) {
                member.outcome = Some(Err(e));
            }
        }
        self.write_group(set, scratch, group);
        if let Some(charge) = charge {
            drop(charge);
            *left_full = self.seal_full(kept);
        }
    }

    /// Refuses large batches for which the WAL gets no room, before they are copied into memtables.
    #[cold]
    fn ask_room(&self, set: &WriteSet, group: &mut [Member<'_>]) {
        let asks = |m: &&mut Member<'_>| {
            m.outcome.is_none() && !m.options.disable_wal && m.batch.byte_len() >= LARGE_BYTES
        };
        for member in group.iter_mut().filter(asks) {
            let bytes = member.batch.byte_len() as u64;
            let Err(lack) = set.wal.log().ask_room(bytes, ROOM_FOR_DELETIONS) else { continue };
            if let Err(refusal) = self.check_without_room(&lack, &member.batch.reader()) {
                member.outcome = Some(Err(refusal));
            }
        }
    }

    /// Refuses batches that skip the WAL and for which the limits on disk space have no room, before they are copied into memtables.
    fn ask_limits(&self, group: &mut [Member<'_>]) {
        let Some(host) = self.host.get().filter(|host| host.limits_disk()) else { return };
        let mut bytes = 0;
        for member in group.iter_mut().filter(|m| m.outcome.is_none() && m.options.disable_wal) {
            let with = bytes + member.batch.byte_len();
            match host.check_unlogged(with) {
                Ok(()) => bytes = with,
                Err(lack) => {
                    if let Err(refusal) = self.check_without_room(&lack, &member.batch.reader()) {
                        member.outcome = Some(Err(refusal));
                    }
                }
            }
        }
    }

    /// Charges what a large group takes beside its batches: frames for the WAL.
    #[cold]
    fn charge_batches(&self, bytes: usize) -> MemoryCharge {
        self.host.get().map_or_else(MemoryCharge::none, |host| host.charge_batches(bytes))
    }

    /// Switches memtables that a large group has filled. True: some memtable is still full.
    #[cold]
    fn seal_full(&self, kept: &mut Option<Arc<WriteSet>>) -> bool {
        if kept.as_ref().is_some_and(|set| set.any_full())
            && let Some(host) = self.host.get()
        {
            *kept = None;
            host.seal_full();
            return self.current().any_full();
        }
        false
    }

    /// The write set with space for the group of so many bytes. `kept` is the leader's.
    fn room_for<'s>(
        &self,
        group: &mut [Member<'_>],
        asked: &Asked,
        kept: &'s mut Option<Arc<WriteSet>>,
    ) -> Result<&'s WriteSet> {
        let Some(host) = self.host.get() else { return Err(Error::closed()) };
        let wanted = asked.is_large || host.wants_room();
        if wanted || kept.get_or_insert_with(|| self.current()).any_full() {
            *kept = None;
            host.make_room(asked, &mut |unfit| refuse(group, &unfit))?;
            let set = kept.get_or_insert_with(|| self.current());
            if set.any_full() {
                // No switch was due: a limit was raised since the last looks.
                set.look_again();
            }
        }
        Ok(kept.get_or_insert_with(|| self.current()))
    }

    /// Reserves, logs, inserts, and makes the group visible.
    fn write_group(&self, set: &WriteSet, scratch: &mut Scratch, group: &mut [Member<'_>]) {
        let before = self.reserved.load(Ordering::Relaxed);
        let all: u64 = group.iter().map(|m| m.count).sum();
        let last = before.saturating_add(all).min(SeqNum::MAX.get());
        let unfinished = Unfinished { committer: self, last };
        let step = perf::time(Metric::WriteWalTime);
        let (records, size) = self.log_group(set, group, before);
        let last = before + size.keys;
        if let Some(records) = records
            && let Err(e) = records.publish()
            && !planted(Bug::FailedLogAcknowledged)
        {
            // A later record must not carry a sequence that this group may have written to the file.
            self.reserved.store(last, Ordering::Relaxed);
            unfinished.done();
            self.fail(&e, self.refusal.resumes());
            return group.iter_mut().for_each(|m| m.outcome = Some(Err(indeterminate(&e))));
        }
        drop(step);
        if planted(Bug::VisibleBeforeInserted) {
            self.visible.store(last, Ordering::Release);
        }
        insert(set, scratch, group);
        self.reserved.store(last, Ordering::Relaxed);
        self.visible.store(last, Ordering::Release);
        unfinished.done();
        if size.writes > 0 {
            self.tally.group(size);
        }
    }

    /// Numbers the batches of the group from `before` on, and frames them for the WAL. Returns the records that are to be
    /// published.
    fn log_group<'l>(
        &self,
        set: &'l WriteSet,
        group: &mut [Member<'_>],
        before: u64,
    ) -> (Option<LogGroup<'l>>, GroupSize) {
        let log = set.wal.log();
        let (mut records, mut size) = (None, GroupSize::default());
        let mut end = log.position();
        for m in group.iter_mut().filter(|m| m.outcome.is_none()) {
            let first = SeqNum::new(before + size.keys + 1);
            let Some(first) = first.filter(|first| first.checked_add(m.count).is_some()) else {
                m.outcome = Some(Err(full()));
                continue;
            };
            if m.options.disable_wal {
                self.unlogged.store(true, Ordering::Relaxed);
            } else {
                match self.log_one(log, &mut records, m.batch.finish(first)) {
                    Ok(range) => {
                        size.logged += 1;
                        size.wal_bytes += range.end - range.start;
                        end = range.end;
                    }
                    Err(e) => {
                        m.outcome = Some(Err(e));
                        continue;
                    }
                }
            }
            (size.writes, size.keys) = (size.writes + 1, size.keys + m.count);
            size.bytes += m.batch.byte_len() as u64;
            let last = SeqNum::new(before + size.keys).unwrap_or(SeqNum::MAX);
            m.outcome = Some(Ok(Receipt { last, log_end: (set.wal.number(), end) }));
        }
        (records, size)
    }

    /// Frames a batch for the WAL file. A failure leaves no trace in the file.
    #[inline]
    fn log_one<'l>(
        &self,
        log: &'l LogWriter,
        records: &mut Option<LogGroup<'l>>,
        batch: &[u8],
    ) -> Result<LogRange> {
        match records.get_or_insert_with(|| log.begin()).add_with_spare(batch, ROOM_FOR_DELETIONS) {
            Err(e) if e.kind() == ErrorKind::Io(IoKind::NoSpace) => {
                // The database takes locks of earlier ranks than the log's.
                drop(records.take());
                let admitted = BatchReader::new(batch)
                    .map_err(|e| e.into_error())
                    .and_then(|r| self.check_without_room(&e, &r));
                // Begun again in any case: the records that were added before must be published.
                let records = records.insert(log.begin());
                admitted?;
                records.add_into_spare(batch).map_err(|_| deletions_used_up(e))
            }
            other => other,
        }
    }

    /// The WAL cannot reserve disk space ahead, because of `cause`: deletions may use the space reserved for them.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the batch has other operations.
    #[cold]
    fn check_without_room(&self, cause: &Error, batch: &BatchReader<'_>) -> Result<()> {
        let refusal = match self.host.get() {
            Some(host) => host.log_lacks_room(cause.clone()),
            None => Error::closed(),
        };
        if only_deletes(batch)? { Ok(()) } else { Err(refusal) }
    }

    /// Whether the WAL file has space for deletions of `bytes`, or can reserve it now. The caller does not hold the
    /// lead, so other writes may use the space first.
    ///
    /// # Errors
    /// `cause`, with what to do, when there is no space.
    pub(crate) fn check_room_for_deletions(&self, bytes: usize, cause: Error) -> Result<()> {
        let fits = self.current().wal.log().fits(bytes as u64);
        if fits { Ok(()) } else { Err(deletions_used_up(cause)) }
    }
}

/// Refuses members of a group.
///
/// # Errors
/// No member is left: the error of the first one.
#[cold]
fn refuse(group: &mut [Member<'_>], unfit: &Unfit) -> Result<()> {
    for member in group.iter_mut().filter(|member| member.outcome.is_none()) {
        let refused = match unfit {
            Unfit::Hurried => member.options.no_slowdown.then(stalled),
            Unfit::Growing(cause) => (!only_deletes(&member.batch.reader())?).then(|| cause.clone()),
        };
        if let Some(cause) = refused {
            member.refuse(cause);
        }
    }
    match group.first().and_then(|first| first.outcome.as_ref()) {
        Some(Err(e)) if group.iter().all(|member| member.outcome.is_some()) => Err(e.clone()),
        _ => Ok(()),
    }
}

/// Copies the operations of the group's batch `index` into the arenas of their families. A failure changes nothing that
/// readers see.
fn prepare(set: &WriteSet, scratch: &mut Scratch, index: usize, member: &mut Member<'_>) -> Result<()> {
    let reader = member.batch.checked_reader()?;
    let Scratch { slots, ops, touched, prepared } = scratch;
    let batch = &*member.batch;
    let find = |family| match set.find(family) {
        // What a prepared transaction wrote to a family that was dropped since is left out, as in a replay.
        None if !batch.is_split() => Err(unknown_family(family)),
        found => Ok(found),
    };
    let mut prepare_in = |at: usize, ops: &mut dyn Iterator<Item = Op<'_>>| -> Result<()> {
        if let (Some(slot), Some(family)) = (slots.get_mut(at), set.families.get(at)) {
            let copied = family.mem.prepare(slot, ops).inspect_err(|_| set.look(at))?;
            prepared.push((index, at, copied));
        }
        Ok(())
    };
    if let Some((family, op)) = sole_op(&reader)? {
        if let Some(at) = find(family)? {
            prepare_in(at, &mut std::iter::once(op))?;
        }
    } else {
        touched.clear();
        let mut parsed = recycled(std::mem::take(ops));
        each_op(&reader, |family, op| {
            let Some(at) = find(family)? else { return Ok(()) };
            if touched.last() != Some(&at) && !touched.contains(&at) {
                touched.push(at);
            }
            parsed.push((at, op));
            Ok(())
        })?;
        for at in touched.iter().copied() {
            prepare_in(at, &mut parsed.iter().filter(|(of, _)| *of == at).map(|(_, op)| *op))?;
        }
        *ops = recycled(parsed);
    }
    member.count = u64::from(reader.count());
    Ok(())
}

/// An empty vector for operations of another batch. It reuses the memory if there is not too much of it: a collection
/// from a vector's own iterator happens in place.
fn recycled<'b>(used: Vec<(usize, Op<'_>)>) -> Vec<(usize, Op<'b>)> {
    if used.capacity() > KEEP_OPS { Vec::new() } else { used.into_iter().map_while(|_| None).collect() }
}

/// Inserts the prepared entries of the batches that were logged, and looks at all memtables that have grown.
fn insert(set: &WriteSet, scratch: &mut Scratch, group: &[Member<'_>]) {
    let _step = perf::time(Metric::WriteMemtableTime);
    for (member, at, prepared) in scratch.prepared.drain(..) {
        let (Some(slot), Some(family)) = (scratch.slots.get_mut(at), set.families.get(at)) else { continue };
        if let Some(Member { outcome: Some(Ok(receipt)), count, .. }) = group.get(member) {
            let first = SeqNum::new(receipt.last.get() - count + 1).unwrap_or(SeqNum::MAX);
            family.mem.insert(slot, prepared, first);
        }
        set.look(at);
    }
}

#[cfg(all(test, not(loom)))]
#[path = "group_tests.rs"]
mod tests;
