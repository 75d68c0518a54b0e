//! Closing: stops writers, flushes data that only memory holds, stops background work, removes obsolete files, releases
//! the LOCK.
//!
//! This order makes closing safe beside running threads. Once the LOCK is released another process may own the
//! directory, so neither an earlier writer nor a job of this handle may write to it.

use super::core::{Core, State};
use super::pins::Retired;
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
    /// Runs [`Core::close`] on another thread. Used when the last handle is dropped inside a callback: the callback's
    /// thread cannot wait for the work that called it.
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

    /// Handles a last handle that is dropped in a forked child of the process that opened the database. Nothing is
    /// closed, freed or removed, because threads of the parent may have held locks at the fork. Only the child's
    /// descriptors of the LOCK are closed: the parent keeps the LOCK, and a dead parent does not keep it.
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
            // Ends all pauses: a pause that was never continued must not keep unlogged writes from their flush.
            (state.pauses, state.closing) = (0, true);
        }
        // A writer that waits for background work is refused here, because that work may be paused or aborted.
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
        // Settings that were changed on a full disk.
        let stored = self.renew_stale_options();
        self.leave_logs();
        self.leave_manifest();
        self.leave_files();
        let there = self.look_for_files();
        self.release_readers();
        self.events.close();
        drop(std::mem::take(&mut *self.joined.lock()));
        self.memory.leave();
        drop(hold.take());
        flushed.and(stored).and(there)
    }

    /// Stops writers, and flushes the data that only memtables hold. Logged data is in the WAL once the WAL has handed
    /// over its buffered records; it is flushed too if RocksDB would not read the WAL. RocksDB opens a WAL with prepared
    /// transactions only as a `TransactionDB`, so a close flushes if all of them are decided on.
    fn stop_writers(self: &Arc<Self>) -> Result<()> {
        let mut handed_over = Ok(());
        let (mut has_unlogged, mut for_rocksdb) = (false, false);
        let immutable: Vec<FamilyId> = self.committer.close(|| {
            handed_over = self.committer.current().wal.flush();
            has_unlogged = self.committer.has_unlogged();
            let needed = has_unlogged || self.passes_over_logs();
            for_rocksdb = !needed && self.leaves_decided();
            if !needed && !for_rocksdb {
                return Ok(Vec::new());
            }
            if let Err(cause) = self.health.check_working() {
                let holds =
                    |f: &LiveFamily| f.memtables.immutable_len() > 0 || !f.memtables.current().rep.is_empty();
                if has_unlogged && self.state().families.iter().any(holds) {
                    handed_over = Err(unlogged_lost(cause));
                }
                return Ok(Vec::new());
            }
            let families: Vec<FamilyId> = self.state().families.iter().map(|f| f.family.id()).collect();
            match self.seal(&families) {
                Err(e) if !for_rocksdb => Err(e),
                sealed => Ok(if sealed.is_ok() { families } else { Vec::new() }),
            }
        })?;
        // A flush that waits to retry runs at once; the close reports its outcome.
        self.wake_jobs();
        let flushed = if immutable.is_empty() { Ok(()) } else { self.flush_immutable(&immutable) };
        // What is in the WAL is not lost: RocksDB then needs its `TransactionDB`.
        let flushed = if for_rocksdb { Ok(()) } else { flushed };
        let flushed = flushed.map_err(|cause| if has_unlogged { unlogged_lost(cause) } else { cause });
        handed_over.and(flushed)
    }

    /// Whether RocksDB would not replay the WAL under the stored settings: its own logged writes are lost there, ours are not.
    fn passes_over_logs(&self) -> bool {
        self.options().kept.get("best_efforts_recovery").as_deref() == Some("true")
    }

    /// Releases the space reserved ahead in the WAL, and removes the remains of failed attempts to create the next WAL
    /// file. If the remains stay, the next open finds a torn beginning and reports it.
    fn leave_logs(&self) {
        let current = self.committer.current();
        current.wal.log().give_back();
        if let Some(number) = self.committer.wals().begun_in_vain(current.wal.number()) {
            let _ = self.env.fs.remove(&self.dir.join(FileKind::Wal(number).name()));
        }
    }

    /// Releases the space reserved ahead in the MANIFEST. If the last record of the MANIFEST failed and its outcome is
    /// unknown, a new MANIFEST replaces it where possible. Otherwise the next open reports a torn end, or finds a
    /// family whose creation failed.
    fn leave_manifest(&self) {
        if self.versions.fatal().is_none() && !self.versions.may_unlink() {
            let _ = self.versions.commit(Vec::new());
        }
        self.versions.give_back_room();
    }

    /// Removes the files that became obsolete since the last purge, except those that iterators still read. Without
    /// this step a directory could keep twice its size until the next open, which removes the remaining files.
    fn leave_files(&self) {
        // A read-only handle beside other processes owns no files of the directory.
        if self.health.severity() >= Severity::Fatal || self.health.is_read_only() {
            return;
        }
        if self.state().file_holds > 0 {
            return;
        }
        if let Err(cause) = self.purge() {
            self.events.tell(&Event::BackgroundError { work: Source::Purge.name(), cause });
        }
    }

    /// Checks that the files the next open needs still exist: syncing a file whose name was removed reports no error.
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

    /// Removes memtables and tables from the families, so that a remaining handle does not keep them alive. The super
    /// versions are dropped here, because a thread that later frees deferred memory may hold locks. Super versions that
    /// iterators still read stay until the last handle is dropped.
    fn release_readers(&self) {
        self.snapshots.forget_views();
        let mut retired = {
            let mut state = self.state();
            let State { families, retired, .. } = &mut *state;
            retired.extend(families.iter().map(|family| Retired::new(family.retire())));
            std::mem::take(retired)
        };
        ReadPin::settle();
        retired.retain(|version| version.readers() > 0);
        self.state().retired = retired;
    }
}

/// The error of a close that could not flush unlogged data because of `cause`.
fn unlogged_lost(cause: Error) -> Error {
    let lost = Error::new(cause.kind(), "the close could not flush: writes without the WAL may be lost");
    let lost = cause.path().map_or_else(|| lost.clone(), |path| lost.clone().at_path(path));
    lost.because(cause.without_hint()).hint("Open the database again, and repeat the writes that are missing")
}
