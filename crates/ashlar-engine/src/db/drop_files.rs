//! Deleting whole tables by range: space back at once, without a compaction, and without the log.

use super::Db;
use super::core::{Core, State};
use crate::column_family::Family;
use crate::files::{KeyRange, tables_within};
use crate::version::FileMeta;
use ashlar_base::{FamilyId, Level, Result};
use ashlar_format::version_edit::VersionEdit;
use std::sync::Arc;

impl Db {
    /// Deletes the tables below level 0 whose keys all lie in one of `ranges`, ends included if `include_end` says so, and
    /// answers how many. What of the ranges lies in other tables or in memtables stays; to be followed by a range deletion
    /// or a compaction. Snapshots lose those keys too. Tables that a compaction works on stay.
    ///
    /// # Errors
    /// `Io`: nothing was deleted, or a later open may find it so. `NotSupported`: read-only. `Shutdown`.
    pub fn delete_files_in_ranges(
        &self,
        family: &Family,
        ranges: &[KeyRange<'_>],
        include_end: bool,
    ) -> Result<usize> {
        self.core().check_open()?;
        self.core().health.check_dropping()?;
        self.core().delete_files(family.id(), ranges, include_end)
    }
}

impl Core {
    fn delete_files(
        self: &Arc<Self>,
        family: FamilyId,
        ranges: &[KeyRange<'_>],
        include_end: bool,
    ) -> Result<usize> {
        let picked = pick(&mut self.state(), family, ranges, include_end);
        if picked.is_empty() {
            return Ok(0);
        }
        let mut edit = VersionEdit::of(family);
        edit.deleted = picked.iter().map(|(level, file)| (*level, file.number())).collect();
        let installer = Arc::clone(self);
        let install = Box::new(move |changed: &[_]| installer.install(changed, &[]));
        let outcome = self.versions.commit_with(vec![edit], install);
        {
            let _state = self.state();
            picked.iter().for_each(|(_, file)| file.set_compacting(false));
        }
        self.update_pressure();
        self.schedule();
        outcome.map(|()| picked.len())
    }
}

/// Takes the tables, as a compaction would, so that none begins to work on them.
fn pick(
    state: &mut State,
    family: FamilyId,
    ranges: &[KeyRange<'_>],
    include_end: bool,
) -> Vec<(Level, Arc<FileMeta>)> {
    let Some(live) = state.families.get(family) else { return Vec::new() };
    let picked = tables_within(&live.version, ranges, include_end);
    picked.iter().for_each(|(_, file)| file.set_compacting(true));
    picked
}
