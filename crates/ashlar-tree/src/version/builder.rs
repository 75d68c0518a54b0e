//! Applies version edits. While edits come in, the tree is an unordered set of files; it is checked as a whole at the
//! end.
//!
//! An edit's deletions come before its additions, so a trivial move is a deletion and an addition of one number. A
//! failed check is an error that names the file:
//! 1. a deleted file is in the tree, at the level the edit names;
//! 2. an added file's number is not in the tree and fits 62 bits, its level exists, its smallest key is not above its
//!    largest, its smallest sequence not above its largest;
//! 3. files of level 1 and deeper are disjoint by internal key;
//! 4. files of level 0 with one epoch number do not overlap;
//! 5. an added blob file is new; garbage is reported only for an existing blob file, and never more than the file
//!    holds.
//!
//! At the end the builder drops blob files that no table can need.
//!
//! Source: RocksDB `db/version_builder.cc`.

use super::epoch;
use super::levels::newest_first;
use super::{FileMeta, Tables, Version};
use crate::blobs::{BlobMap, add_blob_file, add_blob_garbage, drop_obsolete};
use ashlar_base::ext::sort::CHECK_THE_COMPARATOR;
use ashlar_base::{Error, ErrorKind, FileNumber, InternalIterator, Level, Order, Result, SeqNum};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_table::ReadHow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A tree while edits are applied to it.
#[derive(Clone, Debug, Default)]
pub struct TreeBuilder {
    files: BTreeMap<FileNumber, (Level, Arc<FileMeta>)>,
    /// Files that the current edit removed: a move adds the same value again.
    moved: BTreeMap<FileNumber, Arc<FileMeta>>,
    blobs: BlobMap,
}

impl TreeBuilder {
    /// Starts from a finished tree.
    pub(crate) fn from_version(version: &Version) -> TreeBuilder {
        let files = version.files().map(|(level, f)| (f.number(), (level, Arc::clone(f)))).collect();
        TreeBuilder { files, moved: BTreeMap::new(), blobs: version.blobs().files().clone() }
    }

    /// Applies the file changes of one edit.
    pub fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        self.moved.clear();
        for &(level, number) in &edit.deleted {
            self.delete(level, number)?;
        }
        for (level, file) in &edit.added {
            self.add(*level, file)?;
        }
        edit.blob_added.iter().try_for_each(|added| add_blob_file(&mut self.blobs, added))?;
        edit.blob_garbage.iter().try_for_each(|more| add_blob_garbage(&mut self.blobs, more))
    }

    fn delete(&mut self, level: Level, number: FileNumber) -> Result<()> {
        match self.files.get(&number) {
            None => Err(Error::corruption(format!(
                "version edit deletes table {number}, which is not in the tree"
            ))),
            Some((at, _)) if *at != level => Err(Error::corruption(format!(
                "version edit deletes table {number} from {level}, but it is in {at}"
            ))),
            Some(_) => {
                if let Some((_, file)) = self.files.remove(&number) {
                    self.moved.insert(number, file);
                }
                Ok(())
            }
        }
    }

    fn add(&mut self, level: Level, file: &NewFile) -> Result<()> {
        let number = file.number;
        if let Some((at, _)) = self.files.get(&number) {
            return Err(Error::corruption(format!(
                "version edit adds table {number} to {level}, but it is in the tree already, in {at}"
            )));
        }
        if number > FileNumber::MAX {
            return Err(Error::corruption(format!(
                "version edit adds table {number}, a number over 62 bits"
            )));
        }
        let meta = match self.moved.remove(&number) {
            Some(old) if old.file == *file => old,
            Some(old) => {
                let new = FileMeta::new(file.clone());
                new.note_counts(old.counts.get().copied());
                new
            }
            None => FileMeta::new(file.clone()),
        };
        self.files.insert(number, (level, meta));
        Ok(())
    }

    /// Reads the sequence ranges of level-0 tables whose MANIFEST entry has none, as LevelDB leaves them. RocksDB
    /// before 7.10 orders level 0 by these ranges and refuses equal ones. An unreadable table keeps an unknown range,
    /// and a read of its keys gets the error.
    ///
    /// # Errors
    /// `Io`: the machine failed, which tells nothing about the table.
    /// # Cost
    /// One pass over each such table.
    pub fn learn_sequences(&mut self, tables: &Tables) -> Result<()> {
        let unknown =
            |entry: &&mut (Level, Arc<FileMeta>)| entry.0 == Level::ZERO && entry.1.file.sequences_unknown;
        for (_, file) in self.files.values_mut().filter(unknown) {
            match sequences_of(tables, file) {
                Ok(Some((smallest, largest))) => {
                    let mut known = file.file.clone();
                    (known.smallest_seq, known.largest_seq, known.sequences_unknown) =
                        (smallest, largest, false);
                    *file = FileMeta::new(known);
                }
                Ok(None) => {}
                Err(e) if matches!(e.kind(), ErrorKind::Io(_)) && !e.is_not_found() => return Err(e),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Gives files with an unknown sequence range the widest range, gives every file an epoch number if any has none,
    /// and adds stripped timestamps to the bounds. `order` is the order of the family.
    pub fn complete(&mut self, order: &Order, last_seq: SeqNum) {
        epoch::complete(&mut self.files, order, last_seq);
    }

    /// Its tables with their levels, by number.
    pub fn tables(&self) -> impl Iterator<Item = (Level, &NewFile)> {
        self.files.values().map(|(level, file)| (*level, &file.file))
    }

    /// The numbers of its tables.
    pub fn table_numbers(&self) -> impl Iterator<Item = FileNumber> + '_ {
        self.files.keys().copied()
    }

    /// The numbers of its blob files.
    pub fn blob_numbers(&self) -> impl Iterator<Item = FileNumber> + '_ {
        self.blobs.keys().copied()
    }

    /// The checksum that the MANIFEST has for a table or blob file: its function and its value.
    pub fn recorded_checksum(&self, number: FileNumber) -> Option<(&[u8], &[u8])> {
        if let Some((_, table)) = self.files.get(&number) {
            return table.file.checksum_function.as_deref().zip(table.file.checksum.as_deref());
        }
        self.blobs.get(&number).map(|blob| (&*blob.added.checksum_method, &*blob.added.checksum))
    }

    /// The numbers of the blob files that a version has. The MANIFEST does not say when a blob file becomes obsolete, so
    /// [`TreeBuilder::blob_numbers`] may have more.
    pub fn live_blob_numbers(&self) -> Vec<FileNumber> {
        self.live_blobs().into_keys().collect()
    }

    fn live_blobs(&self) -> BlobMap {
        let mut blobs = self.blobs.clone();
        let linked = self.files.values().map(|(_, f)| f.file.oldest_blob_file).filter(|n| n.0 != 0).collect();
        drop_obsolete(&mut blobs, &linked);
        blobs
    }

    /// The largest sequence number of the tables. `unknown` is used for a table whose number the MANIFEST does not
    /// have.
    pub fn largest_seq(&self, unknown: SeqNum) -> Option<SeqNum> {
        let largest = |file: &NewFile| if file.sequences_unknown { unknown } else { file.largest_seq };
        self.files.values().map(|(_, file)| largest(&file.file)).max()
    }

    /// A table whose index in the list of directories is not below `count`, with that index.
    pub fn beyond_path(&self, count: usize) -> Option<(FileNumber, u8)> {
        let mut files = self.files.values().map(|(_, f)| (f.number(), f.file.path_id));
        files.find(|(_, id)| usize::from(*id) >= count)
    }

    /// Records that all tables are in one directory from now on.
    pub fn gather_in_one_directory(&mut self) {
        for (_, file) in self.files.values_mut().filter(|(_, f)| f.file.path_id != 0) {
            *file = FileMeta::new(NewFile { path_id: 0, ..file.file.clone() });
        }
    }

    /// Drops a blob file that is no longer needed.
    pub fn forget_blob_file(&mut self, number: FileNumber) {
        self.blobs.remove(&number);
    }

    /// The largest epoch number in use.
    pub fn max_epoch(&self) -> u64 {
        self.files.values().map(|(_, f)| f.file.epoch).max().unwrap_or(0)
    }

    /// The smallest epoch number among the files named; `None` when none of them is in the tree.
    pub(crate) fn min_epoch_of(&self, numbers: impl Iterator<Item = FileNumber>) -> Option<u64> {
        numbers.filter_map(|n| self.files.get(&n)).map(|(_, f)| f.file.epoch).min()
    }

    /// The number of files without a sequence range in the MANIFEST, as LevelDB leaves them.
    pub fn count_of_unknown_sequences(&self) -> usize {
        self.files.values().filter(|(_, f)| f.file.sequences_unknown).count()
    }

    /// The deepest level that has a table.
    pub fn deepest(&self) -> usize {
        self.files.values().map(|(level, _)| level.index()).max().unwrap_or(0)
    }

    /// Sorts the levels and checks every invariant.
    pub fn finish(&self, levels: usize, tables: &Arc<Tables>) -> Result<Version> {
        let order = tables.order().clone();
        let mut sorted: Vec<Vec<Arc<FileMeta>>> = vec![Vec::new(); levels];
        for (number, (level, file)) in &self.files {
            check_file(&order, file)?;
            let Some(home) = sorted.get_mut(level.index()) else {
                return Err(Error::not_supported(format!(
                    "table {number} is in {level}, but a family has {levels} levels at most: its num_levels is at \
                     least {}",
                    level.index() + 1
                ))
                .hint(format!(
                    "Let RocksDB compact the family into a level below {levels} and open it with num_levels={levels} \
                     or less; then open it here"
                )));
            };
            if let Some(budget) = tables.budget() {
                file.charge_to(budget);
            }
            home.push(Arc::clone(file));
        }
        for (n, files) in sorted.iter_mut().enumerate() {
            if n == 0 {
                files.sort_by(|a, b| newest_first(&a.file, &b.file));
                check_level_zero(&order, files)?;
            } else {
                order.sort_by(files, |a, b| order.compare_internal(a.smallest(), b.smallest()));
                check_disjoint(&order, n, files)?;
            }
        }
        let (fences, tables) = (OnceLock::new(), Arc::clone(tables));
        let blobs = tables.blob_files(self.live_blobs());
        let version = Version { order, levels: sorted, fences, tables, blobs };
        // Made here, so that no read has to.
        version.fences();
        Ok(version)
    }
}

/// The smallest and the largest sequence in a table; `None` for an empty one.
fn sequences_of(tables: &Tables, file: &FileMeta) -> Result<Option<(SeqNum, SeqNum)>> {
    let table = tables.open(&file.file)?;
    let mut range: Option<(SeqNum, SeqNum)> = None;
    let mut entries = table.iter(ReadHow { fill_cache: false, ..ReadHow::default() });
    entries.first()?;
    while let Some(entry) = entries.entry() {
        let seq = entry.key.trailer().seq();
        let (smallest, largest) = range.unwrap_or((seq, seq));
        range = Some((smallest.min(seq), largest.max(seq)));
        entries.next()?;
    }
    Ok(range)
}

fn check_file(order: &Order, f: &FileMeta) -> Result<()> {
    let number = f.number();
    if order.compare_internal(f.smallest(), f.largest()) == Ordering::Greater {
        return Err(Error::corruption(format!(
            "table {number}: its smallest key {:?} is above its largest {:?}",
            f.smallest(),
            f.largest()
        )));
    }
    if f.file.smallest_seq > f.file.largest_seq {
        return Err(Error::corruption(format!(
            "table {number}: its smallest sequence {} is above its largest {}",
            f.file.smallest_seq, f.file.largest_seq
        )));
    }
    Ok(())
}

fn check_disjoint(order: &Order, level: usize, files: &[Arc<FileMeta>]) -> Result<()> {
    for (a, b) in files.iter().zip(files.iter().skip(1)) {
        if order.compare_internal(a.largest(), b.smallest()) != Ordering::Less {
            return Err(overlap(order, format!("tables overlap in L{level}: {a:?} and {b:?}")));
        }
    }
    Ok(())
}

/// The error for tables that overlap. Under a custom order the comparator may be the cause.
#[track_caller]
fn overlap(order: &Order, what: String) -> Error {
    match order {
        Order::Custom(_) => Error::corruption(what).hint(CHECK_THE_COMPARATOR),
        Order::Bytewise | Order::ReverseBytewise => Error::corruption(what),
    }
}

/// Files of one epoch are neighbours in the level's order; each run of them is sorted by key and checked once.
fn check_level_zero(order: &Order, files: &[Arc<FileMeta>]) -> Result<()> {
    for run in files.chunk_by(|a, b| a.file.epoch == b.file.epoch) {
        if run.first().is_none_or(|f| f.file.epoch == 0) || run.len() < 2 {
            continue;
        }
        let mut by_key: Vec<&Arc<FileMeta>> = run.iter().collect();
        order.sort_by(&mut by_key, |a, b| order.compare_internal(a.smallest(), b.smallest()));
        for (a, b) in by_key.iter().zip(by_key.iter().skip(1)) {
            if !a.ends_before(order, b.smallest().user_key()) {
                let epoch = a.file.epoch;
                return Err(overlap(
                    order,
                    format!("tables of epoch {epoch} overlap in L0: {a:?} and {b:?}"),
                ));
            }
        }
    }
    Ok(())
}

impl Version {
    /// A new version: this one with the file changes of `edits`, in order. The families in the edits are ignored.
    ///
    /// # Errors
    /// `Corruption` naming the rule an edit breaks; see the module's list.
    pub fn apply(&self, edits: &[VersionEdit]) -> Result<Version> {
        let mut builder = TreeBuilder::from_version(self);
        for edit in edits {
            builder.apply(edit)?;
        }
        builder.finish(self.levels.len(), &self.tables)
    }
}

#[cfg(test)]
#[path = "builder_tests.rs"]
pub(super) mod tests;
