//! Keeps every file of the database on disk while a caller copies them, and names one moment of all of them.
//!
//! 1. While the files are held, no purge begins, and a purge that had begun has ended. Flushes and compactions go on, and
//!    the files that they make obsolete stay until the release.
//! 2. A moment is the length of the MANIFEST and of the current WAL file, both read under the lead. No write is in
//!    progress then, and no family is between its creation and its first write. So the MANIFEST and the WAL files up to
//!    these lengths hold exactly the writes up to one sequence number, over all families.
//! 3. Writes that skipped the WAL are flushed under the lead, before the lengths are read: a flush beside writers would
//!    have a part of a later batch, in one of its families. Writers wait meanwhile, but only in such a session.
//! 4. A flush may be committed between two moments: a table then has what the WAL files have too. Replay skips it there by
//!    the log numbers of the same MANIFEST.
//!
//! Source: RocksDB `db/db_filesnapshot.cc` (`DisableFileDeletions`, `GetLiveFilesStorageInfo`).

use super::Db;
use super::claim::Claim;
use super::core::Core;
use super::parts::wal_dir_of;
use super::work::Work;
use crate::column_family::Family;
use ashlar_base::{Error, FileNumber, Result, SeqNum};
use ashlar_options::FormatLevel;
use ashlar_tree::version::Version;
use std::path::PathBuf;
use std::sync::Arc;

/// One of the counts that keep the files of a database.
struct Hold(Arc<Core>);

/// The files of an open database, none of which is removed while this value lives. It counts as running work: a close and
/// a pause of background work wait until it is dropped. [`HeldFiles::without_claim`] makes a value that they do not wait for.
pub struct HeldFiles {
    hold: Hold,
    // Dropped after the hold, and schedules the purge.
    _claim: Claim,
}

/// The files of a database as [`HeldFiles`], in a value that a caller may keep and hand to another thread. A close does not wait
/// for it, and removes no file; the next open does.
pub struct KeptFiles(Option<Hold>);

/// The lengths of the growing files at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The MANIFEST in use.
    pub manifest: FileNumber,
    /// Its durable length in bytes.
    pub manifest_bytes: u64,
    /// The WAL files of this session that may be needed, ascending, each with the end of its last record. Later writes go
    /// behind the end of the last one or into files with higher numbers. The bytes may not be durable.
    pub wals: Vec<(FileNumber, u64)>,
    /// The directory of the WAL files.
    pub wal_dir: PathBuf,
    /// The newest write.
    pub sequence: SeqNum,
}

impl Db {
    /// Holds all files, for the call `what`.
    ///
    /// # Errors
    /// `NotSupported`: the database is open for reading only. `InvalidArgument`: the call comes from a callback of the
    /// database. `Shutdown`; the background error that keeps a running purge from its end.
    pub fn hold_files(&self, what: &str) -> Result<HeldFiles> {
        let core = self.core();
        core.check_outside(what)?;
        if core.health.is_read_only() {
            return core.health.check_writable().and(Err(Error::closed()));
        }
        let claim = core.claim()?;
        core.state().file_holds += 1;
        let held = HeldFiles { hold: Hold(Arc::clone(core)), _claim: claim };
        core.wait_until(|state| !state.work.is_awaited(Work::Purge))?;
        Ok(held)
    }

    /// Whether writes of this session skipped the WAL: a [`HeldFiles::moment`] then flushes. A flush before it shortens the
    /// time that writers wait.
    pub fn has_unlogged(&self) -> bool {
        self.core().committer.has_unlogged()
    }
}

impl HeldFiles {
    /// The present moment. Records that `manual_wal_flush` keeps in the process are handed to the operating system first, and
    /// writes that skipped the WAL to tables.
    ///
    /// # Errors
    /// `Aborted`: background work is paused, and a flush is needed or writers wait for it. `Io`: a table could not be
    /// written. The error that refuses writes. `Shutdown`.
    pub fn moment(&self) -> Result<Moment> {
        self.moment_after(|| match self.hold.0.committer.has_unlogged() {
            true => self.flush_as_leader(),
            false => Ok(()),
        })
    }

    /// [`HeldFiles::moment`] for readers of the WAL: writes that skipped the WAL stay in memory.
    ///
    /// # Errors
    /// As [`HeldFiles::moment`], without those of a flush.
    pub fn moment_of_log(&self) -> Result<Moment> {
        self.moment_after(|| Ok(()))
    }

    fn moment_after(&self, prepare: impl FnOnce() -> Result<()>) -> Result<Moment> {
        let core = &self.hold.0;
        core.committer.lead_alone(|| {
            prepare()?;
            let set = core.committer.current();
            set.wal.flush()?;
            let (manifest, bytes) = core.versions.manifest_durable();
            let Some(manifest_bytes) = bytes else {
                return Err(Error::not_supported("this session has not written a MANIFEST"));
            };
            let mut wals = core.committer.wals().closed_sizes();
            wals.push((set.wal.number(), set.wal.log().position()));
            let wal_dir = wal_dir_of(&core.options(), &core.dir).to_path_buf();
            Ok(Moment { manifest, manifest_bytes, wals, wal_dir, sequence: core.visible() })
        })
    }

    /// The same files, in a value that a caller may keep.
    pub fn without_claim(self) -> KeptFiles {
        KeptFiles(Some(self.hold))
    }

    /// The present tables of a family.
    ///
    /// # Errors
    /// `InvalidArgument`: the family was dropped, or belongs to another database.
    pub fn version(&self, family: &Family) -> Result<Arc<Version>> {
        self.hold.0.check_live(family)?;
        let live = self.hold.0.state().families.get(family.id()).map(|live| Arc::clone(&live.version));
        live.ok_or_else(|| Error::invalid(format!("column family {:?} was dropped", family.name())))
    }

    /// The format level of the database.
    pub fn format_level(&self) -> FormatLevel {
        self.hold.0.options().format_level
    }

    /// Writes all memtables to tables. The caller leads the writers.
    fn flush_as_leader(&self) -> Result<()> {
        let core = &self.hold.0;
        Core::check_unpaused(core.state().pauses)?;
        let families: Vec<_> = core.state().families.iter().map(|f| f.family.id()).collect();
        core.seal(&families)?;
        let _holding = core.hold_writers(None);
        core.flush_immutable(&families)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.0.database.is_inherited() {
            // A thread of the parent may have held the lock at the fork.
            return;
        }
        let mut state = self.0.state();
        state.file_holds -= 1;
        state.purge_wanted = true;
    }
}

impl Drop for KeptFiles {
    fn drop(&mut self) {
        let Some(hold) = self.0.take() else { return };
        let core = Arc::clone(&hold.0);
        drop(hold);
        if !core.database.is_inherited() && !core.is_closed() {
            core.after_job();
        }
    }
}
