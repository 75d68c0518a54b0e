//! Commits of version edits: each makes a change of the trees durable in the MANIFEST, and installs it.
//!
//! A committing thread puts its `CommitRequest` into the queue. If no commit is running, that thread becomes the leader:
//! it takes the `ManifestState` (state and MANIFEST) and all queued requests. It plans, writes and syncs them without a
//! lock, installs the versions, and puts the manifest state back. The other threads wait on a signal.
//!
//! 1. No lock of the version set is held over I/O.
//! 2. A commit is answered after its records are durable and its versions are installed. Commits are installed one by one in the
//!    order of their records, also those that were written together: each shows its own change and no later one.
//! 3. A request that breaks a rule fails alone, before anything is written.
//! 4. After a failed append, no commit uses the MANIFEST again: the next one writes a new MANIFEST with the whole state. Until
//!    that is durable, [`VersionSet::may_unlink`] is false, because a crash may leave either MANIFEST in force.
//! 5. When a switch of `CURRENT` has an unknown outcome, every later commit fails: only a new open can find out.
//!
//! Source: RocksDB `db/version_set.cc` (`LogAndApply`, `ProcessManifestWrites`).

use super::leader::Leader;
use super::plan::{CommitRequest, NewFamily};
use super::queue::{CommitResult, Install, Ticket};
use super::{FamilyState, Tables, VersionSet};
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Level, Order, Result};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_sync::Waited;
use std::sync::Arc;

impl VersionSet {
    /// Commits `edits` as one: after `Ok` they are durable and installed. The commit adds next file number, last
    /// sequence number, epoch numbers and the atomic group. Without edits it writes a MANIFEST if none exists. Of
    /// edits for a dropped family only the parts about the whole database are used.
    ///
    /// # Errors
    /// `InvalidArgument`, `Corruption`: an edit breaks a rule of the tree; nothing was written. `Io`: the edits may or
    /// may not be found by a later open; files they name must not be unlinked before [`VersionSet::may_unlink`].
    pub fn commit(&self, edits: Vec<VersionEdit>) -> Result<()> {
        self.commit_with(edits, Box::new(|_| {}))
    }

    /// [`VersionSet::commit`], with a step that runs before any later commit is installed.
    pub fn commit_with(&self, edits: Vec<VersionEdit>, install: Install) -> Result<()> {
        self.submit(CommitRequest::Edits(edits), install).map(drop)
    }

    /// One commit for all families: the tables that a replay flushed, and the end of the need for WAL files older than
    /// `wal`.
    ///
    /// # Errors
    /// As [`VersionSet::commit`].
    pub fn commit_replayed(&self, mut edits: Vec<VersionEdit>, wal: FileNumber) -> Result<()> {
        for family in self.families() {
            match edits.iter_mut().find(|e| e.family == family.id) {
                Some(edit) => edit.log_number = Some(wal),
                None => edits.push(VersionEdit { log_number: Some(wal), ..VersionEdit::of(family.id) }),
            }
        }
        if let Some(first) = edits.first_mut() {
            first.min_log_to_keep = Some(wal);
            first.prev_log_number = Some(FileNumber(0));
        }
        self.commit(edits)
    }

    /// Creates a family with an id that was never used before.
    ///
    /// # Errors
    /// `InvalidArgument`: there is a family of that name. `Io` as [`VersionSet::commit`].
    pub fn create_family(
        &self,
        name: &str,
        order: Order,
        levels: usize,
        log_number: FileNumber,
    ) -> Result<Arc<FamilyState>> {
        self.create_family_of(name, order, levels, log_number, Vec::new())
    }

    /// [`VersionSet::create_family`] for a family that begins with these tables. After a crash there is the family with all of
    /// them, or no family. The commit raises the last sequence number to those of the tables.
    ///
    /// # Errors
    /// Also `Corruption`, `NotSupported`: the tables make no valid tree of `levels` levels.
    pub fn create_family_of(
        &self,
        name: &str,
        order: Order,
        levels: usize,
        log_number: FileNumber,
        files: Vec<(Level, NewFile)>,
    ) -> Result<Arc<FamilyState>> {
        let new = self.new_family((name, order, levels), log_number, files);
        let request = CommitRequest::Create(vec![new]);
        let created = self.submit(request, Box::new(|_| {}))?;
        created.into_iter().next().ok_or_else(|| Error::invalid("the family was dropped at once"))
    }

    /// Creates families, each with a name, an order and a number of levels, with one sync. A crash may leave some of them.
    ///
    /// # Errors
    /// As [`VersionSet::create_family`]; then none is created.
    pub fn create_families(&self, families: &[(&str, Order, usize)], log_number: FileNumber) -> Result<()> {
        let new = |family: &(&str, Order, usize)| self.new_family(family.clone(), log_number, Vec::new());
        if families.is_empty() {
            return Ok(());
        }
        let request = CommitRequest::Create(families.iter().map(new).collect());
        self.submit(request, Box::new(|_| {})).map(drop)
    }

    fn new_family(
        &self,
        (name, order, levels): (&str, Order, usize),
        log_number: FileNumber,
        files: Vec<(Level, NewFile)>,
    ) -> NewFamily {
        let tables = Tables::new(self.env.clone(), self.dir.clone(), Arc::clone(self.tables()), order);
        NewFamily { name: name.to_owned(), log_number, levels, tables, files }
    }

    /// Drops a family. Its files are obsolete once no reader uses them.
    ///
    /// # Errors
    /// `InvalidArgument`: no such family, or the default one. `Io` as [`VersionSet::commit`].
    pub fn drop_family(&self, id: FamilyId) -> Result<()> {
        self.submit(CommitRequest::Drop(id), Box::new(|_| {})).map(drop)
    }

    fn submit(&self, request: CommitRequest, install: Install) -> CommitResult {
        let mut queue = self.queue.lock();
        let id = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push_back(Ticket { id, request, install });
        drop(queue);
        loop {
            let seen = self.signal.seen();
            let mut queue = self.queue.lock();
            if let Some(answer) = queue.answers.remove(&id) {
                return answer;
            }
            if let Some(manifest_state) = queue.manifest_state.take() {
                let tickets = std::mem::take(&mut queue.waiting);
                let bound = queue.bound;
                drop(queue);
                Leader::new(self, manifest_state, &tickets).work(tickets, bound);
                continue;
            }
            drop(queue);
            if self.signal.wait(seen, None) == Waited::Stuck {
                return Err(Error::new(
                    ErrorKind::Aborted,
                    "a commit waits for another one that nothing can finish",
                ));
            }
        }
    }

    /// Releases the disk space that the MANIFEST has reserved ahead. For a close, when no thread commits any more.
    pub fn give_back_room(&self) {
        let log = {
            let queue = self.queue.lock();
            let manifest = queue.manifest_state.as_ref().and_then(|state| state.manifest.as_ref());
            manifest.map(|manifest| Arc::clone(manifest.log()))
        };
        if let Some(log) = log {
            log.give_back();
        }
    }
}
