//! Quarantine: a damaged table of an open database, replaced in its place by one of its readable blocks.
//!
//! ```text
//! claimed, as by a compaction -> read and copied, as by a repair -> the account in lost/ -> one commit
//!                             -> a purge moves the original to lost/, once no reader holds it
//! ```
//! 1. Until the commit nothing is changed. A table in which no damage is found stays, and so does one of which a read
//!    fails (`Io`): that proves none.
//! 2. The original is never removed (`files/quarantine`), nor are blob files that no other table needs.
//! 3. Background work that failed for the damage begins again, and writes that were refused for it are taken. Whatever
//!    else is wrong stays so.

use super::RepairReport;
use super::tables::{BadBlobs, Outputs, Replaced, file_name};
use crate::column_family::Family;
use crate::db::Db;
use crate::db::claim::Claim;
use crate::db::core::Core;
use crate::db::install::note_counts;
use crate::db::output::numbers;
use crate::files::leave_account;
use crate::rewrite::Output;
use crate::version::{FamilyState, FileMeta, Tables};
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, FileNumber, Level, Result};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Db {
    /// Takes a damaged table, named as accounts of damage name it (`000012.sst`), out of the open database: what can be read
    /// of it takes its place, and the original goes to `lost/`, with the account that is answered, as soon as no reader
    /// holds it. Of the keys that the account names the newest versions are gone; older ones may show. If background work
    /// had stopped for this damage, it begins again, and writes are taken.
    ///
    /// # Errors
    /// `InvalidArgument`: the database has no such table, or nothing in it is damaged. `Busy`: a compaction works on it.
    /// `NotSupported`: blob files, which want a repair; the database is read-only. `Io`: the table could not be read or
    /// replaced; a later open may find that it was. The cause, when more is wrong with the database than wrong bytes.
    /// # Cost
    /// Two passes over the table, in the calling thread.
    pub fn quarantine(&self, file: &str) -> Result<RepairReport> {
        let core = self.core();
        core.check_open()?;
        core.health.check_mendable()?;
        let number = match FileKind::parse(file) {
            Some(FileKind::Table(number) | FileKind::LevelDbTable(number)) => number,
            Some(FileKind::Blob(_)) => {
                let e = Error::not_supported(format!("the quarantine of a blob file ({file})"));
                return Err(e.hint("Close the database and repair it, in its place or in a copy"));
            }
            _ => {
                let e = Error::invalid(format!("{file:?} is not the name of a table"));
                return Err(e.hint("Name it as accounts of damage do, as in 000012.sst"));
            }
        };
        Damaged::claim(core, number)?.replace()
    }
}

/// A table that is to be replaced.
struct Damaged {
    core: Arc<Core>,
    _claim: Claim,
    family: Arc<Family>,
    // Not the version: readers alone are to keep that.
    tables: Arc<Tables>,
    level: Level,
    file: Arc<FileMeta>,
}

impl Damaged {
    fn claim(core: &Arc<Core>, number: FileNumber) -> Result<Damaged> {
        let mut state = core.state();
        let found = state.families.iter().find_map(|live| {
            let (level, file) = live.version.files().find(|(_, file)| file.number() == number)?;
            Some((Arc::clone(&live.family), Arc::clone(live.version.tables()), level, Arc::clone(file)))
        });
        let Some((family, tables, level, file)) = found else {
            let e = Error::invalid(format!("no table of the database has the number {number}"));
            return Err(e.hint("A compaction may have replaced it: see what live_files lists"));
        };
        if file.is_compacting() {
            let busy = ErrorKind::Busy(BusyKind::Locked);
            let e = Error::new(busy, format!("a compaction works on table {number}"));
            return Err(e.hint("Try again when it is over, or abort compactions first"));
        }
        let claim = Claim::new(core, &mut state, vec![Arc::clone(&file)])?;
        drop(state);
        Ok(Damaged { core: Arc::clone(core), _claim: claim, family, tables, level, file })
    }

    fn replace(&self) -> Result<RepairReport> {
        let core = &self.core;
        let mut report =
            RepairReport { manifest: core.versions.manifest_number(), ..RepairReport::default() };
        let options = self.family.options();
        let family = (self.family.id(), self.family.name(), &*options);
        let numbers = numbers(&core.versions, &core.pending);
        let outputs = Outputs { writer: &core.writer, numbers, dir: &core.dir };
        let path = self.tables.path_of(self.file.number());
        let kept = outputs.see_to(&self.file, family, &self.tables, &BadBlobs::default(), &mut report)?;
        let Replaced::By(copy) = kept else {
            let e = Error::invalid("nothing in the table is damaged, and nothing was changed");
            return Err(e.at_path(&path));
        };
        let name = file_name(&path);
        report.to_move.clear();
        report.remarks.push(format!("{name} goes to lost/ as soon as no reader holds it"));
        self.install(copy, &report)?;
        core.mended(self.family.id(), &name);
        Ok(report)
    }

    /// Makes the copy count in place of the table, once the account is there.
    fn install(&self, copy: Option<Box<Output>>, report: &RepairReport) -> Result<()> {
        let core = &self.core;
        let mut edit = VersionEdit::of(self.family.id());
        edit.delete_file(self.level, self.file.number());
        edit.added.extend(copy.iter().map(|copy| (self.level, copy.file.clone())));
        let going = self.going(&edit)?;
        for &number in &going {
            leave_account(&*core.env.fs, &core.dir, number, &report.to_string())?;
        }
        core.state().quarantined.extend(&going);
        let counts: Vec<_> = copy.iter().map(|copy| (copy.file.number, copy.counts)).collect();
        let installer = Arc::clone(core);
        let install = move |changed: &[Arc<FamilyState>]| {
            note_counts(changed, &counts);
            installer.install(changed, &[]);
        };
        let done = core.versions.commit_with(vec![edit.clone()], Box::new(install));
        done.inspect_err(|e| core.commit_failed(e))?;
        core.tell_created(&edit);
        Ok(())
    }

    /// The table, and the blob files that no table needs after the edit.
    fn going(&self, edit: &VersionEdit) -> Result<BTreeSet<FileNumber>> {
        let live = self.core.state().families.get(self.family.id()).map(|live| Arc::clone(&live.version));
        let dropped = || Error::invalid(format!("the family {:?} was dropped", self.family.name()));
        let version = live.ok_or_else(dropped)?;
        let after = version.apply(std::slice::from_ref(edit))?;
        let (before, after) = (version.blobs().files().keys(), after.blobs().files());
        let blobs = before.filter(|number| !after.contains_key(number)).copied();
        Ok(blobs.chain([self.file.number()]).collect())
    }
}
