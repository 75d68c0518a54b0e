//! The tables of one family at one moment, and its blob files.
//!
//! 1. Level 0 is sorted newest first (the rule is [`newest_first`]); its files may overlap.
//! 2. Every deeper level is sorted by smallest key and its files are disjoint by internal key.
//! 3. A file number occurs once in the whole tree.
//! 4. A version never changes; [`Version::apply`](super::Version::apply) makes a new one.
//!
//! Source: RocksDB `db/version_set.cc`, `db/version_builder.cc`.

use super::{FileMeta, TableCounts, Tables};
use crate::blobs::{BlobFiles, BlobMap};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Level, LookupKey, Order, Result, Trailer};
use ashlar_format::version_edit::NewFile;
use ashlar_table::TableReader;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The tables of one family, level by level.
pub struct Version {
    /// The family's key order.
    pub order: Order,
    /// The files: level 0 newest first, deeper levels ascending and disjoint. As long as the family has levels.
    pub levels: Vec<Vec<Arc<FileMeta>>>,
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
        Version { order: tables.order().clone(), levels: vec![Vec::new(); levels], tables, blobs }
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
    pub fn find_file(&self, level: Level, key: &LookupKey<'_>) -> Option<&Arc<FileMeta>> {
        let files = self.level(level);
        let at = files.partition_point(|f| {
            let (user, trailer) = f.largest().split();
            match self.order.compare(user, key.user_key) {
                Ordering::Less => true,
                // Larger trailers come first; an end that is outside comes before them all.
                Ordering::Equal => trailer > key.trailer() || trailer == Trailer::RANGE_END,
                Ordering::Greater => false,
            }
        });
        let file = files.get(at)?;
        (self.order.compare(file.smallest().user_key(), key.user_key) != Ordering::Greater).then_some(file)
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
