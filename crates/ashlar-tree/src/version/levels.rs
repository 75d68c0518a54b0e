//! The tables of one family at one moment, and its blob files.
//!
//! 1. Level 0 is sorted newest first (the rule is [`newest_first`]); its files may overlap.
//! 2. Every deeper level is sorted by smallest key and its files are disjoint by internal key.
//! 3. A file number occurs once in the whole tree.
//! 4. A version never changes; [`Version::apply`](super::Version::apply) makes a new one.
//!
//! Source: RocksDB `db/version_set.cc`, `db/version_builder.cc`.

use super::fences::{Fences, find_by_keys};
use super::{FileMeta, TableCounts, Tables};
use crate::blobs::{BlobFiles, BlobMap};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Level, LookupKey, Order, Result};
use ashlar_format::version_edit::NewFile;
use ashlar_table::TableReader;
use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The tables of one family, level by level.
pub struct Version {
    /// The family's key order.
    pub order: Order,
    /// The files: level 0 newest first, deeper levels ascending and disjoint. As long as the family has levels.
    /// They do not change after the first search for a file.
    pub levels: Vec<Vec<Arc<FileMeta>>>,
    pub(super) fences: OnceLock<Box<[Fences]>>,
    pub(super) tables: Arc<Tables>,
    pub(super) blobs: Arc<BlobFiles>,
}

/// Whether `a` comes before `b` in level 0: by epoch number, then largest sequence, smallest sequence and file number,
/// all descending. Where an epoch is missing the sequences decide alone.
pub fn newest_first(a: &NewFile, b: &NewFile) -> Ordering {
    let epochs = if a.epoch == 0 || b.epoch == 0 { Ordering::Equal } else { b.epoch.cmp(&a.epoch) };
    epochs
        .then_with(|| b.largest_seq.cmp(&a.largest_seq))
        .then_with(|| b.smallest_seq.cmp(&a.smallest_seq))
        .then_with(|| b.number.cmp(&a.number))
}

impl Version {
    /// A family without tables, with `levels` levels.
    pub fn empty(levels: usize, tables: Arc<Tables>) -> Version {
        let blobs = tables.blob_files(BlobMap::new());
        let (order, levels) = (tables.order().clone(), vec![Vec::new(); levels]);
        Version { order, levels, fences: OnceLock::new(), tables, blobs }
    }

    /// The files of a level; nothing for a level the family does not have.
    pub fn level(&self, level: Level) -> &[Arc<FileMeta>] {
        self.levels.get(level.index()).map_or(&[], Vec::as_slice)
    }

    /// The opened table of `f`, opened now if it is not. Concurrent first uses may open it twice; one stays.
    ///
    /// # Errors
    /// `Io` when the file cannot be opened or read, `Corruption` when it is not the table the MANIFEST means.
    pub fn table(&self, f: &FileMeta) -> Result<Arc<TableReader>> {
        match f.open_table() {
            Some(open) => Ok(open.share()),
            None => self.tables.open_to_keep(f),
        }
    }

    /// The blob files that its entries point to.
    pub fn blobs(&self) -> &Arc<BlobFiles> {
        &self.blobs
    }

    /// With these blob files, whatever the tables name.
    pub fn with_blobs(self, files: BlobMap) -> Version {
        Version { blobs: self.tables.blob_files(files), ..self }
    }

    /// The table of `f` for one pass over it: the open one, or one that is closed when the caller lets go of it.
    ///
    /// # Errors
    /// As [`Version::table`].
    pub fn table_for_pass(&self, f: &FileMeta) -> Result<Arc<TableReader>> {
        match f.open_table() {
            Some(open) => Ok(open.share()),
            None => self.tables.open(&f.file),
        }
    }

    /// The range tombstones of `f`, as stored, without opening the table; takes over what else it says about itself.
    ///
    /// # Errors
    /// As [`Version::table`].
    pub fn survey(&self, f: &FileMeta) -> Result<FragmentedTombstones> {
        let survey = self.tables.survey(&f.file)?;
        f.note_counts(TableCounts::of(&survey.properties));
        Ok(survey.tombstones)
    }

    /// How this family's tables are opened.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// The files of `level` that may hold user keys in `smallest..=largest`, in the level's order.
    /// Deeper levels: two binary searches. Level 0: every file is looked at.
    pub fn overlapping(&self, level: Level, smallest: &[u8], largest: &[u8]) -> Vec<Arc<FileMeta>> {
        let files = self.level(level);
        let begins_after =
            |f: &FileMeta| self.order.compare(f.smallest().user_key(), largest) == Ordering::Greater;
        let ends_before = |f: &FileMeta| f.ends_before(&self.order, smallest);
        if level == Level::ZERO {
            return files.iter().filter(|f| !begins_after(f) && !ends_before(f)).map(Arc::clone).collect();
        }
        let from = files.partition_point(|f| ends_before(f));
        let rest = files.get(from..).unwrap_or(&[]);
        rest.iter().take_while(|f| !begins_after(f)).map(Arc::clone).collect()
    }

    /// The one file of a level below 0 that can hold what `key` looks for. One binary search.
    /// When versions of one user key span a file border, this is the file of the newest version the key may see.
    #[inline]
    pub fn find_file(&self, level: Level, key: &LookupKey<'_>) -> Option<&Arc<FileMeta>> {
        let files = self.level(level);
        match self.fences().get(level.index()) {
            Some(fences) => fences.find(&self.order, files, key),
            None => find_by_keys(&self.order, files, key),
        }
    }

    /// The files of level 0 within whose bounds `user_key` is, newest first.
    #[inline]
    pub fn level_zero_of<'v>(&'v self, user_key: &'v [u8]) -> impl Iterator<Item = &'v Arc<FileMeta>> {
        let files = self.level(Level::ZERO).iter().enumerate();
        files.filter(|(at, file)| self.level_zero_holds(*at, file, user_key)).map(|(_, file)| file)
    }

    /// Whether `user_key` is within the bounds of `file`, which is file `at` of level 0.
    #[inline]
    pub fn level_zero_holds(&self, at: usize, file: &FileMeta, user_key: &[u8]) -> bool {
        match self.fences().first() {
            Some(fences) => fences.holds(&self.order, at, file, user_key),
            None => file.holds(&self.order, user_key),
        }
    }

    /// The bounds of the files as words, made by the first call.
    #[inline]
    pub(super) fn fences(&self) -> &[Fences] {
        self.fences.get_or_init(|| Fences::of_levels(&self.order, &self.levels))
    }

    /// Bytes of a level's files.
    pub fn level_bytes(&self, level: Level) -> u64 {
        self.level(level).iter().map(|f| f.size()).fold(0, u64::saturating_add)
    }

    /// Every file with its level, level 0 first.
    pub fn files(&self) -> impl Iterator<Item = (Level, &Arc<FileMeta>)> {
        (0u8..).zip(&self.levels).flat_map(|(n, files)| files.iter().map(move |f| (Level(n), f)))
    }

    /// The number of files in all levels.
    pub fn file_count(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (n, files) in self.levels.iter().enumerate().filter(|(_, files)| !files.is_empty()) {
            map.entry(&format_args!("L{n}"), files);
        }
        map.finish()
    }
}
