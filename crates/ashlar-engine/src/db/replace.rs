//! Replaces tables and blob files of an open database, in the calling thread.
//!
//! The tables are claimed as a compaction claims its inputs. One commit, through [`Core::apply`], puts others in their place.
//! What takes their place is up to the caller.

use super::Db;
use super::claim::Claim;
use super::core::Core;
use super::install::Change;
use crate::column_family::Family;
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, FileNumber, Level, Result};
use ashlar_compaction::{Writer, output_numbers};
use ashlar_env::Fs;
use ashlar_format::version_edit::VersionEdit;
use ashlar_tree::blobs::BlobFiles;
use ashlar_tree::files::Numbers;
use ashlar_tree::version::{FileMeta, TableCounts, Tables, Version};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A table and its level.
pub type Placed = (Level, Arc<FileMeta>);

/// Tables of a family that the caller may replace. Until this value is dropped, no compaction takes them, and a close
/// waits.
pub struct Claimed {
    core: Arc<Core>,
    _claim: Claim,
    family: Arc<Family>,
    // The tables alone, not the version: only readers may keep a version alive.
    tables: Arc<Tables>,
    blobs: Arc<BlobFiles>,
    files: Vec<Placed>,
}

impl Claimed {
    /// Checks that the public function `call` may replace files of the database.
    ///
    /// # Errors
    /// `Shutdown`; `InvalidArgument`: a listener, merge operator or comparator of the database makes the call;
    /// `NotSupported`: the database is read-only. The cause, when the database has other errors than corruption.
    pub fn check(db: &Db, call: &str) -> Result<()> {
        let core = db.core();
        core.check_open()?;
        core.check_outside(call)?;
        core.health.check_mendable()
    }

    /// Claims tables. `find` gets the version of each family in turn; its first list holds the tables to claim. `what`
    /// names them in errors.
    ///
    /// # Errors
    /// `InvalidArgument`: `find` returned no list. `Busy`: a compaction has claimed one of the tables. `Shutdown`.
    pub fn claim(db: &Db, what: &str, find: impl Fn(&Version) -> Option<Vec<Placed>>) -> Result<Claimed> {
        let core = db.core();
        let mut state = core.state();
        let found = state.families.iter().find_map(|live| Some((find(&live.version)?, live)));
        let Some((files, live)) = found else {
            let e = Error::invalid(format!("the database has no {what}"));
            return Err(e.hint("A compaction may have replaced it: see what live_files lists"));
        };
        if let Some((_, file)) = files.iter().find(|(_, file)| file.is_compacting()) {
            let busy = ErrorKind::Busy(BusyKind::Locked);
            let e = Error::new(busy, format!("a compaction works on table {}", file.number()));
            return Err(e.hint("Try again when it is over, or abort compactions first"));
        }
        let (family, tables) = (Arc::clone(&live.family), Arc::clone(live.version.tables()));
        let blobs = Arc::clone(live.version.blobs());
        let metas = files.iter().map(|(_, file)| Arc::clone(file)).collect();
        let claim = Claim::new(core, &mut state, metas)?;
        drop(state);
        Ok(Claimed { core: Arc::clone(core), _claim: claim, family, tables, blobs, files })
    }

    /// The file system of the database.
    pub fn fs(&self) -> &dyn Fs {
        &*self.core.env.fs
    }

    /// The database directory.
    pub fn dir(&self) -> &Path {
        &self.core.dir
    }

    /// The family of the tables.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The claimed tables.
    pub fn files(&self) -> &[Placed] {
        &self.files
    }

    /// Opens tables of the family.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The blob files of the family when the tables were claimed.
    pub fn blobs(&self) -> &Arc<BlobFiles> {
        &self.blobs
    }

    /// How the database writes tables.
    pub fn writer(&self) -> &Writer {
        &self.core.writer
    }

    /// Numbers for new files.
    pub fn numbers(&self) -> Numbers {
        output_numbers(&self.core.versions, &self.core.pending)
    }

    /// The number of the MANIFEST in use.
    pub fn manifest(&self) -> FileNumber {
        self.core.versions.manifest_number()
    }

    /// The blob files that no table needs after the edit.
    ///
    /// # Errors
    /// `InvalidArgument`: the family was dropped. `Corruption`: the edit breaks a rule of the tree.
    pub fn blobs_gone(&self, edit: &VersionEdit) -> Result<Vec<FileNumber>> {
        let live = self.core.state().families.get(self.family.id()).map(|live| Arc::clone(&live.version));
        let dropped = || Error::invalid(format!("the family {:?} was dropped", self.family.name()));
        let version = live.ok_or_else(dropped)?;
        let after = version.apply(std::slice::from_ref(edit))?;
        let (before, after) = (version.blobs().files().keys(), after.blobs().files());
        Ok(before.filter(|number| !after.contains_key(number)).copied().collect())
    }

    /// Commits `edit`, whose tables have `counts`. The files `going` move to `lost/` instead of being removed, as soon as
    /// no reader holds them. Background work that failed because of one of the files `removed` starts again.
    ///
    /// # Errors
    /// Those of [`VersionSet::commit`](ashlar_tree::version::VersionSet::commit).
    pub fn replace(
        &self,
        edit: &VersionEdit,
        counts: Vec<(FileNumber, TableCounts)>,
        going: &BTreeSet<FileNumber>,
        removed: &[String],
    ) -> Result<()> {
        let core = &self.core;
        core.state().quarantined.extend(going);
        let done = core.apply(Change { edits: vec![edit.clone()], counts, ..Change::default() });
        done.inspect_err(|e| core.commit_failed(e))?;
        core.notify_created(edit);
        removed.iter().for_each(|name| core.file_removed(self.family.id(), name));
        Ok(())
    }
}
