//! Closing: stop writers, keep what only memory holds, stop background work, remove what nobody needs, let go of the LOCK.
//!
//! The order is what makes it safe among busy threads: once the LOCK is gone another process may own the directory, so
//! nothing of this handle may write to it any more, neither a writer that was let in before nor a job.

use super::core::{Core, State};
use crate::column_family::LiveFamily;
use crate::health::{Severity, Source};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, Result};
use ashlar_format::filename::FileKind;
use ashlar_options::Event;
use ashlar_sync::atomic::Ordering;
use ashlar_sync::{ReadPin, Waited, thread};
use ashlar_tree::files::check_there;
use std::sync::Arc;

impl Core {
    /// [`Core::close`] on another thread: for a last handle that ends inside a callback, whose thread cannot wait for the
    /// work that called it.
    pub(super) fn close_elsewhere(self: &Arc<Self>) {
        let core = Arc::clone(self);
        let closing =
            thread::Builder::new().name("ashlar-close".to_owned()).spawn(move || drop(core.close()));
        if closing.is_err() {
            self.events.note(
                "no thread to close the database, whose last handle ended inside a callback: it stays open",
            );
        }
    }

    /// The last handle ends in a child of the process that opened the database: nothing is closed, freed or removed, as
    /// locks may be held by threads that are not there. Only the LOCK's descriptors are let go, which leaves it with the
    /// parent, and does not keep it when the parent has died.
    pub(super) fn leave_to_parent(self: &Arc<Self>) {
        std::mem::forget(Arc::clone(self));
        if let Some(mut hold) = self.hold.try_lock() {
            drop(hold.take());
        }
    }

    /// See [`super::Db::close`]. A second close waits for the first.
    pub(super) fn close(self: &Arc<Self>) -> Result<()> {
        let mut hold = self.hold.lock();
        if hold.is_none() {
            return Ok(());
        }
        {
            let mut state = self.state();
            // A pause that was never continued must not keep unlogged writes in memory.
            (state.pauses, state.closing) = (0, true);
        }
        // A writer that waits for background work is refused now: it may wait for work that is paused or aborted.
        self.progress.notify();
        let flushed = self.stop_writers();
        {
            let _state = self.state();
            self.closed.store(true, Ordering::Release);
        }
        // Jobs look at `closed` at their next step.
        self.wake_jobs();
        loop {
            let seen = self.progress.seen();
            if self.state().is_quiet()
                || planted(Bug::CloseWaitsForNobody)
                || self.progress.wait(seen, None) == Waited::Stuck
            {
                break;
            }
        }
        self.leave_logs();
        self.leave_manifest();
        self.leave_files();
        let there = self.look_for_files();
        self.release_readers();
        self.events.close();
        drop(std::mem::take(&mut *self.joined.lock()));
        drop(hold.take());
        flushed.and(there)
    }

    /// Lets no writer in any more, and flushes what they left in memory alone: logged data is in the log already, once the
    /// log has handed over what it held back.
    fn stop_writers(self: &Arc<Self>) -> Result<()> {
        let mut handed_over = Ok(());
        let unlogged: Vec<FamilyId> = self.committer.close(|| {
            handed_over = self.committer.current().wal.flush();
            if !self.committer.has_unlogged() {
                return Ok(Vec::new());
            }
            if let Err(cause) = self.health.check_working() {
                let holds =
                    |f: &LiveFamily| f.memtables.sealed_len() > 0 || !f.memtables.current().rep.is_empty();
                if self.state().families.iter().any(holds) {
                    handed_over = Err(unlogged_lost(cause));
                }
                return Ok(Vec::new());
            }
            let families: Vec<FamilyId> = self.state().families.iter().map(|f| f.family.id()).collect();
            self.seal(&families)?;
            Ok(families)
        })?;
        // A flush that waits to try again tries now: the close is told what comes of it.
        self.wake_jobs();
        let flushed = if unlogged.is_empty() { Ok(()) } else { self.flush_sealed(&unlogged) };
        let flushed = flushed.map_err(unlogged_lost);
        handed_over.and(flushed)
    }

    /// Gives back the room that the log has ahead, and removes what attempts to begin a next one left: where it stays the next
    /// open finds a torn beginning, and says so.
    fn leave_logs(&self) {
        let current = self.committer.current();
        current.wal.log().give_back();
        if let Some(number) = self.committer.wals().begun_in_vain(current.wal.number()) {
            let _ = self.env.fs.remove(&self.dir.join(FileKind::Wal(number).name()));
        }
    }

    /// Gives back the room that the MANIFEST has ahead. Where one is in doubt still, whose last record failed, a new one takes
    /// its place, if it can: otherwise the next open finds a torn end, or a family that could not be made, and says so.
    fn leave_manifest(&self) {
        if self.versions.fatal().is_none() && !self.versions.may_unlink() {
            let _ = self.versions.commit(Vec::new());
        }
        self.versions.give_back_room();
    }

    /// Removes what became obsolete since the last purge, but for what cursors still read: otherwise a directory may keep
    /// twice its size until the next open, which removes what this one could not.
    fn leave_files(&self) {
        // Who reads beside others owns nothing here.
        if self.health.severity() >= Severity::Fatal || self.health.is_read_only() {
            return;
        }
        if let Err(cause) = self.purge() {
            self.events.tell(&Event::BackgroundError { work: Source::Purge.name(), cause });
        }
    }

    /// Looks whether what the next open needs is there still: a sync of a file that has lost its name is no error.
    fn look_for_files(&self) -> Result<()> {
        if self.health.is_read_only() {
            return Ok(());
        }
        let mut needed = vec![FileKind::Current, FileKind::Manifest(self.versions.manifest_number())];
        let current = self.committer.current();
        if current.wal.log().position() > 0 {
            needed.push(FileKind::Wal(current.wal.number()));
        }
        check_there(&*self.env.fs, &self.dir, &needed)
    }

    /// Takes memtables and tables away from the families, so that whoever holds a handle on does not hold them. The
    /// super versions are dropped here and not by whatever thread frees what the epoch holds back: that one may hold
    /// locks. Those that cursors still read stay until the last handle goes.
    fn release_readers(&self) {
        let mut retired = {
            let mut state = self.state();
            let State { families, retired, .. } = &mut *state;
            retired.extend(families.iter().map(LiveFamily::retire));
            std::mem::take(retired)
        };
        ReadPin::settle();
        retired.retain(|version| Arc::strong_count(version) > 1);
        self.state().retired = retired;
    }
}

/// What a close answers when it could not flush, for `cause`.
fn unlogged_lost(cause: Error) -> Error {
    let lost = Error::new(cause.kind(), "the close could not flush: writes without the log may be lost");
    let lost = cause.path().map_or_else(|| lost.clone(), |path| lost.clone().at_path(path));
    lost.because(cause.without_hint()).hint("Open the database again, and repeat the writes that are missing")
}
