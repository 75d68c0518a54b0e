//! Quarantine: replaces a damaged table or blob file of an open database by its readable part.
//!
//! ```text
//! claimed, as by a compaction -> read and copied, as by a repair -> the account in lost/ -> one commit
//!                             -> a purge moves the original to lost/, once no reader holds it
//! ```
//! 1. Until the commit nothing is changed. A file without damage stays. So does a file of which a read fails (`Io`),
//!    because that proves no damage.
//! 2. The original is never removed (`files/quarantine`), nor are blob files that no other table needs.
//! 3. A table's readable blocks take its place. A blob file is emptied: each table that refers to it is rewritten
//!    without the lost values, and the readable values move to another blob file. The rest of the blob file is garbage.
//! 4. Background work that failed because of the damage starts again, and writes that were refused because of it are
//!    accepted. Other errors stay.

use super::RepairReport;
use super::tables::{BadBlobs, Copied, Outputs, Replaced, file_name};
use crate::column_family::Family;
use crate::db::Db;
use crate::db::claim::Claim;
use crate::db::core::Core;
use crate::db::install::Change;
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, FileNumber, Level, Result};
use ashlar_blob::LiveBlobFile;
use ashlar_compaction::output_numbers;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::{BlobGarbage, VersionEdit};
use ashlar_tree::blobs::BlobFiles;
use ashlar_tree::check::{Damage, Risk};
use ashlar_tree::files::leave_account;
use ashlar_tree::version::{FileMeta, Tables, Version};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

impl Db {
    /// Takes a damaged table or blob file, named as damage reports name it (`000012.sst`, `000013.blob`), out of the
    /// open database. Its readable part replaces it. The original moves to `lost/`, with the returned account, as soon
    /// as no reader holds it. The newest versions of the keys in the account are lost; older versions may show. If
    /// background work had stopped for this damage, it starts again, and writes are accepted.
    ///
    /// # Errors
    /// `InvalidArgument`: the database has no such file, or the file is not damaged. `Busy`: a compaction has claimed
    /// the file, or a table that may refer to it. `NotSupported`: the database is read-only. `Io`: the file could not
    /// be read or replaced; the next open may find that it was. The cause, when the database has other errors than
    /// corruption.
    /// # Cost
    /// In the calling thread. For a table: two passes over it. For a blob file: one pass over it, two over each table
    /// that may refer to it, and the rewriting of those tables.
    pub fn quarantine(&self, file: &str) -> Result<RepairReport> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("quarantine()")?;
        core.health.check_mendable()?;
        match FileKind::parse(file) {
            Some(FileKind::Table(number) | FileKind::LevelDbTable(number)) => {
                Claimed::table(core, number)?.mend(number)
            }
            Some(FileKind::Blob(number)) => Claimed::pointing_into(core, number)?.empty(number),
            _ => {
                let e = Error::invalid(format!("{file:?} is not the name of a table or blob file"));
                Err(e.hint("Name it as accounts of damage do, as in 000012.sst"))
            }
        }
    }
}

/// A table and its level.
type Placed = (Level, Arc<FileMeta>);

/// Tables of a family that are to be replaced where they are damaged.
struct Claimed {
    core: Arc<Core>,
    _claim: Claim,
    family: Arc<Family>,
    // The tables alone, not the version: only readers may keep a version alive.
    tables: Arc<Tables>,
    blobs: Arc<BlobFiles>,
    files: Vec<Placed>,
}

impl Claimed {
    fn table(core: &Arc<Core>, number: FileNumber) -> Result<Claimed> {
        let find = |version: &Version| {
            let (level, file) = version.files().find(|(_, file)| file.number() == number)?;
            Some(vec![(level, Arc::clone(file))])
        };
        Self::claim(core, &format!("table {number}"), find)
    }

    /// The tables that may refer to a blob file.
    fn pointing_into(core: &Arc<Core>, number: FileNumber) -> Result<Claimed> {
        let find = |version: &Version| {
            version.blobs().files().get(&number)?;
            let may = |file: &FileMeta| (FileNumber(1)..=number).contains(&file.file.oldest_blob_file);
            let pointing = version.files().filter(|(_, file)| may(file));
            Some(pointing.map(|(level, file)| (level, Arc::clone(file))).collect())
        };
        Self::claim(core, &format!("blob file {number}"), find)
    }

    fn claim(
        core: &Arc<Core>,
        what: &str,
        find: impl Fn(&Version) -> Option<Vec<Placed>>,
    ) -> Result<Claimed> {
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

    /// Replaces the table, if it is damaged.
    fn mend(&self, number: FileNumber) -> Result<RepairReport> {
        let (mut report, path) = (RepairReport::default(), self.tables.path_of(number));
        let edited = self.copy(&BadBlobs::default(), &mut report)?;
        if edited.edit.deleted.is_empty() {
            return Err(is_sound(&path));
        }
        self.install(edited, None, report)
    }

    /// Empties the blob file, if it is damaged.
    fn empty(&self, number: FileNumber) -> Result<RepairReport> {
        let (core, name, mut bad) = (&self.core, FileKind::Blob(number).name(), BadBlobs::default());
        let Some(known) = self.blobs.files().get(&number) else { return Err(is_sound(&core.dir.join(name))) };
        let Some(wrong) = bad.look(&*core.env.fs, &core.dir, number, Some(known.added.bytes))? else {
            return Err(is_sound(&core.dir.join(name)));
        };
        let damage = Damage::of(&name, &wrong, Risk::Nothing).in_family(self.family.name());
        let mut report = RepairReport { losses: vec![damage], ..RepairReport::default() };
        let mut edited = self.copy(&bad.emptying(number, Arc::clone(&self.blobs)), &mut report)?;
        let LiveBlobFile { total, garbage, .. } = known.live();
        let (count, bytes) =
            (total.count.saturating_sub(garbage.count), total.bytes.saturating_sub(garbage.bytes));
        edited.edit.blob_garbage.push(BlobGarbage { number, count, bytes, ..BlobGarbage::default() });
        self.install(edited, Some(name), report)
    }

    /// Rewrites the tables that cannot stay as they are.
    fn copy(&self, bad: &BadBlobs, report: &mut RepairReport) -> Result<Edited> {
        let core = &self.core;
        report.manifest = core.versions.manifest_number();
        let options = self.family.options();
        let family = (self.family.id(), self.family.name(), &*options);
        let numbers = output_numbers(&core.versions, &core.pending);
        let outputs = Outputs { writer: &core.writer, numbers, dir: &core.dir };
        let edit = VersionEdit::of(self.family.id());
        let mut edited = Edited { edit, copies: Vec::new(), damaged: Vec::new() };
        for (level, file) in &self.files {
            let kept = outputs.see_to(file, family, &self.tables, bad, report)?;
            let Replaced::By { copy, damaged } = kept else { continue };
            edited.edit.delete_file(*level, file.number());
            edited.damaged.extend(damaged.then(|| file.number()));
            if let Some(copy) = copy {
                edited.edit.added.push((*level, copy.output.file.clone()));
                edited.edit.blob_added.extend(copy.blobs.added.iter().cloned());
                edited.copies.push(*copy);
            }
        }
        Ok(edited)
    }

    /// Commits the copies, once the account is in `lost/`. Damaged originals move to `lost/`.
    fn install(
        &self,
        edited: Edited,
        blob_file: Option<String>,
        mut report: RepairReport,
    ) -> Result<RepairReport> {
        let (core, Edited { edit, copies, damaged }) = (&self.core, edited);
        let tables = damaged.iter().map(|number| file_name(&self.tables.path_of(*number)));
        let names: Vec<String> = tables.chain(blob_file).collect();
        report.to_move.clear();
        let remark = |name: &String| format!("{name} goes to lost/ as soon as no reader holds it");
        report.remarks.extend(names.iter().map(remark));
        let going: BTreeSet<_> = self.blobs_gone(&edit)?.into_iter().chain(damaged).collect();
        for &number in &going {
            leave_account(&*core.env.fs, &core.dir, number, &report.to_string())?;
        }
        core.state().quarantined.extend(&going);
        let counts: Vec<_> =
            copies.iter().map(|copy| (copy.output.file.number, copy.output.counts)).collect();
        let done = core.apply(Change { edits: vec![edit.clone()], counts, ..Change::default() });
        done.inspect_err(|e| core.commit_failed(e))?;
        core.tell_created(&edit);
        names.iter().for_each(|name| core.mended(self.family.id(), name));
        Ok(report)
    }

    /// The blob files that no table needs after the edit.
    fn blobs_gone(&self, edit: &VersionEdit) -> Result<Vec<FileNumber>> {
        let live = self.core.state().families.get(self.family.id()).map(|live| Arc::clone(&live.version));
        let dropped = || Error::invalid(format!("the family {:?} was dropped", self.family.name()));
        let version = live.ok_or_else(dropped)?;
        let after = version.apply(std::slice::from_ref(edit))?;
        let (before, after) = (version.blobs().files().keys(), after.blobs().files());
        Ok(before.filter(|number| !after.contains_key(number)).copied().collect())
    }
}

/// The replacements of tables, not yet installed.
struct Edited {
    edit: VersionEdit,
    /// Files that the edit adds: pending until the commit.
    copies: Vec<Copied>,
    /// The tables that are damaged themselves.
    damaged: Vec<FileNumber>,
}

fn is_sound(path: &Path) -> Error {
    Error::invalid("nothing in the file is damaged, and nothing was changed").at_path(path)
}
