//! Deletes whole tables by key range: frees space at once, without a compaction and without the WAL.

use super::Db;
use super::claim::Claim;
use super::core::Core;
use super::install::Change;
use crate::column_family::Family;
use ashlar_base::{FamilyId, Result};
use ashlar_format::version_edit::VersionEdit;
use ashlar_tree::files::{KeyRange, tables_within};
use std::sync::Arc;

impl Db {
    /// Deletes the tables below level 0 whose keys all lie in one of `ranges`, and returns their number. Range ends are
    /// included if `include_end` is set. Keys of the ranges in other tables or in memtables stay; remove them with a
    /// range deletion or a compaction. Snapshots lose the deleted keys too. Tables of a running compaction stay.
    ///
    /// # Errors
    /// `InvalidArgument`: the family was dropped, or belongs to another database. `Io`: nothing was deleted, or the
    /// outcome is unknown until the next open. `NotSupported`: read-only. `Shutdown`.
    pub fn delete_files_in_ranges(
        &self,
        family: &Family,
        ranges: &[KeyRange<'_>],
        include_end: bool,
    ) -> Result<usize> {
        self.core().check_open()?;
        self.core().check_outside("delete_files_in_ranges()")?;
        self.core().check_live(family)?;
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
        let (picked, _claim) = loop {
            let version = self.state().families.get(family).map(|live| Arc::clone(&live.version));
            let Some(version) = version else { return Ok(0) };
            // Without the state lock: this may call a comparator.
            let picked = {
                let _inside = self.database.enter();
                tables_within(&version, ranges, include_end)
            };
            if picked.is_empty() {
                return Ok(0);
            }
            let mut state = self.state();
            let current = state.families.get(family).is_some_and(|live| Arc::ptr_eq(&live.version, &version));
            // A compaction may have taken a table, or changed the tree, since the tables were picked.
            if current && !picked.iter().any(|(_, file)| file.is_compacting()) {
                let files = picked.iter().map(|(_, file)| Arc::clone(file)).collect();
                break (picked, Claim::new(self, &mut state, files)?);
            }
        };
        let mut edit = VersionEdit::of(family);
        edit.deleted = picked.iter().map(|(level, file)| (*level, file.number())).collect();
        let done = self.apply(Change { edits: vec![edit], ..Change::default() });
        done.inspect_err(|e| self.commit_failed(e)).map(|()| picked.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::WriteBatch;
    use ashlar_env::{Clock, Env, OsClock};
    use ashlar_options::{DbOptions, FamilyOptions, WriteOptions};
    use ashlar_tree::version::FileMeta;
    use std::path::Path;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// After a close returns, another process may own the directory: no commit may follow.
    #[test]
    fn a_close_waits_for_what_is_being_dropped() {
        let (db_options, options) = (DbOptions::default(), FamilyOptions::default());
        let db = Db::open(Env::mem(), Path::new("/db"), db_options, Vec::new(), options).unwrap();
        let family = db.family("default").unwrap();
        let mut batch = WriteBatch::new();
        batch.put(family.id(), b"key", b"value").unwrap();
        db.write(&mut batch, WriteOptions::default()).unwrap();
        db.compact_range(&family, None, None).unwrap();
        let ((inside, entered), (go_on, wait)) = (channel(), channel());
        let (db, family) = (&db, &family);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let stopped = Box::new(move |_: &[_]| {
                    inside.send(()).unwrap();
                    wait.recv().unwrap();
                });
                db.core().versions.commit_with(vec![VersionEdit::of(FamilyId::DEFAULT)], stopped).unwrap();
            });
            entered.recv().unwrap();
            let dropping = scope.spawn(|| db.delete_files_in_ranges(family, &[(None, None)], true));
            let taken = |file: &FileMeta| file.is_compacting();
            while !db.core().state().families.iter().any(|f| f.version.files().any(|(_, f)| taken(f))) {
                std::thread::yield_now();
            }
            let closing = scope.spawn(|| db.close());
            // Long enough for a close to finish if it wrongly waits for nothing.
            OsClock::new().sleep(Duration::from_millis(50));
            let too_early = closing.is_finished();
            go_on.send(()).unwrap();
            assert_eq!(dropping.join().unwrap().unwrap(), 1);
            closing.join().unwrap().unwrap();
            assert!(!too_early, "closed before the files were dropped");
        });
    }
}
