//! Reads an SST file outside a database.
//!
//! 1. A reader has the options of a family: the order of keys, the merge operator, the environment.
//! 2. Its iterator shows the newest version of each key in the file, and no key whose newest version is a deletion. With a snapshot in
//!    the options, only versions up to the snapshot's sequence number count. As in RocksDB, range deletions of the file delete nothing.
//! 3. A value that the file keeps in a blob file is read from the file's directory.
//!
//! Source: RocksDB `table/sst_file_reader.cc` (behaviour).

use crate::calls::ReadOptions;
use crate::options::Options;
use ashlar_base::{Error, FileNumber, InternalIterator, InternalKeyBuf, Order, Result, SeqNum, Trailer};
use ashlar_cache::FramePool;
use ashlar_env::{Clock, Env, folder_of};
use ashlar_read::iter::KeyBounds;
use ashlar_read::merge::{Merger, Operands};
use ashlar_read::visibility::{EntryKind, entry_kind, is_visible};
use ashlar_table::{ReadHow, ReaderOptions, TableIter, TableReader};
use ashlar_tree::blobs::{BlobFiles, BlobMap};
use ashlardb::{Snapshot, StoredProperties};
use std::path::Path;
use std::sync::Arc;

/// The memory for cached blocks of a reader.
const POOL_BYTES: usize = 8 << 20;

/// An open SST file. Clones are the same file.
#[derive(Clone)]
pub struct SstReader {
    table: Arc<TableReader>,
    order: Order,
    merger: Merger,
    values: BlobFiles,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for SstReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.table.path().to_string_lossy())
    }
}

impl SstReader {
    /// Opens a file with the options of a family.
    ///
    /// # Errors
    /// `Io`: the file cannot be read. `Corruption`: the file is no table, or is damaged. `InvalidArgument`: its keys have another
    /// order. `NotSupported`: its keys have timestamps.
    pub fn open(options: &Options, path: &Path) -> Result<SstReader> {
        let env = options.env.clone().map_or_else(Env::os, Ok)?;
        let order = match (&options.comparator, options.descending) {
            (Some(comparator), _) => Order::of(Arc::clone(comparator)),
            (None, true) => Order::ReverseBytewise,
            (None, false) => Order::Bytewise,
        };
        if order.timestamp_len() > 0 {
            return Err(Error::not_supported("a reader of a file whose keys have timestamps"));
        }
        let file = env.fs.open_read(path)?;
        let bytes = file.len();
        let how = ReaderOptions::new(order.clone(), FramePool::new(POOL_BYTES), FileNumber(0));
        let table = TableReader::open(file, bytes, how)?;
        let merger = Merger::new("default", options.merge_operator.clone());
        let values = BlobFiles::new(env.fs, folder_of(path).to_path_buf(), BlobMap::new());
        Ok(SstReader { table, order, merger, values, clock: env.clock })
    }

    /// What the file says about itself.
    pub fn properties(&self) -> &StoredProperties {
        self.table.properties()
    }

    /// Reads the whole file and verifies it.
    ///
    /// # Errors
    /// `Corruption`, with the block's offset, for the first damage.
    pub fn verify(&self) -> Result<()> {
        self.table.verify().map(|_| ())
    }

    /// An iterator over the entries, within the bounds of the options.
    ///
    /// # Errors
    /// Those of [`ReadOptions::plain`].
    pub fn iterator(&self, options: &ReadOptions) -> Result<SstIterator> {
        let how = options.how(&self.clock)?;
        let (lower, upper) = (options.lower.clone(), options.upper.clone());
        let bounds = KeyBounds { lower, upper, ..KeyBounds::default() };
        let inner = self.table.iter(how.clone());
        Ok(SstIterator {
            open: self.clone(),
            inner,
            how,
            at: options.snapshot.as_ref().map_or(SeqNum::MAX, Snapshot::sequence),
            bounds,
            key: Vec::new(),
            value: Vec::new(),
            valid: false,
            status: None,
        })
    }
}

/// An iterator of an [`SstReader`]. [`crate::iterator::Iterator`] describes the calls.
#[derive(Debug)]
pub struct SstIterator {
    open: SstReader,
    inner: TableIter,
    how: ReadHow,
    /// Newer versions are not shown.
    at: SeqNum,
    bounds: KeyBounds,
    key: Vec<u8>,
    value: Vec<u8>,
    valid: bool,
    status: Option<Error>,
}

impl SstIterator {
    fn moved(&mut self, step: impl FnOnce(&mut SstIterator) -> Result<bool>) {
        let moved = step(self);
        self.valid = *moved.as_ref().unwrap_or(&false);
        self.status = moved.err();
    }

    /// Whether the iterator is on an entry.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.moved(|this| {
            match this.bounds.lower.clone() {
                Some(lower) => this.inner.seek(InternalKeyBuf::new(&lower, Trailer::FIRST).as_key())?,
                None => this.inner.first()?,
            }
            this.settle_forward()
        });
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.moved(|this| {
            match this.bounds.upper.clone() {
                Some(upper) => {
                    this.inner.seek_for_prev(InternalKeyBuf::new(&upper, Trailer::FIRST).as_key())?
                }
                None => this.inner.last()?,
            }
            this.settle_backward()
        });
    }

    /// To the first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        if self.bounds.is_before(&self.open.order, key) {
            return self.seek_to_first();
        }
        self.moved(|this| {
            this.inner.seek(InternalKeyBuf::new(key, Trailer::FIRST).as_key())?;
            this.settle_forward()
        });
    }

    /// To the last entry at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        if self.bounds.is_behind(&self.open.order, key) {
            return self.seek_to_last();
        }
        self.moved(|this| {
            this.inner.seek_for_prev(InternalKeyBuf::new(key, Trailer::LAST).as_key())?;
            this.settle_backward()
        });
    }

    /// To the next entry. Off the entries the iterator stays there.
    pub fn next(&mut self) {
        if self.valid {
            self.moved(|this| {
                pass(&mut this.inner, &this.open.order, &this.key)?;
                this.settle_forward()
            });
        }
    }

    /// To the entry before. Off the entries the iterator stays there.
    pub fn prev(&mut self) {
        if self.valid {
            self.moved(|this| {
                this.inner.seek_for_prev(InternalKeyBuf::new(&this.key, Trailer::FIRST).as_key())?;
                this.settle_backward()
            });
        }
    }

    /// Key and value; `None` off the entries.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.valid.then_some((&self.key, &self.value))
    }

    /// The error that ended the iterator.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.status.clone().map_or(Ok(()), Err)
    }

    /// From the newest version of a key on, to the first key that has a value. False: no such key is within the bounds.
    fn settle_forward(&mut self) -> Result<bool> {
        loop {
            let Some(at) = self.inner.key() else { return Ok(false) };
            if self.bounds.is_behind(&self.open.order, at.user_key()) {
                return Ok(false);
            }
            if self.resolve()? {
                return Ok(true);
            }
            pass(&mut self.inner, &self.open.order, &self.key)?;
        }
    }

    /// From any version of a key back, to the last key that has a value. False: no such key is within the bounds.
    fn settle_backward(&mut self) -> Result<bool> {
        loop {
            let Some(at) = self.inner.key() else { return Ok(false) };
            if self.bounds.is_before(&self.open.order, at.user_key()) {
                return Ok(false);
            }
            let newest = InternalKeyBuf::new(at.user_key(), Trailer::FIRST);
            self.inner.seek(newest.as_key())?;
            if self.resolve()? {
                return Ok(true);
            }
            self.inner.seek_for_prev(newest.as_key())?;
        }
    }

    /// Takes key and value of the visible versions, of all that begin at the cursor. False: the key is deleted, or has none.
    fn resolve(&mut self) -> Result<bool> {
        let mut operands = Operands::default();
        self.key.clear();
        if let Some(first) = self.inner.key() {
            self.key.extend_from_slice(first.user_key());
        }
        while let Some(version) = self.inner.entry() {
            let (user_key, trailer) = version.key.split();
            if self.open.order.compare(user_key, &self.key).is_ne() {
                break;
            }
            if !is_visible(trailer, self.at) {
                self.inner.next()?;
                continue;
            }
            match entry_kind(trailer, &self.key)? {
                EntryKind::Operand => operands.push(version.value),
                EntryKind::Deleted => break,
                EntryKind::Value | EntryKind::Wrapped => {
                    let (kind, stored) = (trailer.value_type(), version.value);
                    let value = self.open.values.value(&self.key, kind, stored, &self.how)?;
                    self.value = match operands.is_empty() {
                        true => value.into_owned(),
                        false => self.open.merger.fold(&self.key, Some(&value), operands.iter().rev())?,
                    };
                    return Ok(true);
                }
            }
            self.inner.next()?;
        }
        if operands.is_empty() {
            return Ok(false);
        }
        self.value = self.open.merger.fold(&self.key, None, operands.iter().rev())?;
        Ok(true)
    }
}

/// Passes all versions of a key. Most keys have one version, which the cursor is on.
fn pass(cursor: &mut TableIter, order: &Order, user_key: &[u8]) -> Result<()> {
    while cursor.key().is_some_and(|key| order.compare(key.user_key(), user_key).is_eq()) {
        cursor.next()?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use ashlar_base::ValueType;
    use ashlar_table::{TableBuilder, TableIdentity};
    use ashlardb::{Db, StringAppend, Write};

    fn all(iterator: &mut SstIterator) -> Vec<String> {
        let mut seen = Vec::new();
        iterator.seek_to_first();
        while let Some((key, value)) = iterator.entry() {
            seen.push(format!("{}={}", key.escape_ascii(), value.escape_ascii()));
            iterator.next();
        }
        let mut back = Vec::new();
        iterator.seek_to_last();
        while let Some((key, value)) = iterator.entry() {
            back.push(format!("{}={}", key.escape_ascii(), value.escape_ascii()));
            iterator.prev();
        }
        back.reverse();
        assert_eq!(seen, back);
        iterator.status().unwrap();
        seen
    }

    /// The only table of a database of several versions.
    fn table(dir: &Path) -> std::path::PathBuf {
        let operator = Arc::new(StringAppend::new(","));
        let db = Db::builder(dir).default_family(|family| family.merge_operator(operator)).open().unwrap();
        db.put("a", "1").unwrap();
        // Older versions stay in the table as long as a snapshot needs them.
        let old = db.snapshot().unwrap();
        db.put("a", "2").unwrap();
        db.put("b", "3").unwrap();
        let older = db.snapshot().unwrap();
        db.delete("b").unwrap();
        for (key, operand) in [("a", "4"), ("c", "5"), ("c", "6")] {
            db.merge(key, operand).unwrap();
        }
        let newer = db.snapshot().unwrap();
        db.put("d", "7").unwrap();
        db.flush().unwrap();
        drop((old, older, newer));
        let files = db.default_family().live_files().unwrap();
        files.first().unwrap().path()
    }

    #[test]
    fn the_newest_version_of_each_key_is_shown_in_both_directions() {
        let dir = tempfile::tempdir().unwrap();
        let path = table(dir.path());
        let operator: Arc<dyn ashlardb::MergeOperator> = Arc::new(StringAppend::new(","));
        let options = Options { merge_operator: Some(operator), ..Options::default() };
        let reader = SstReader::open(&options, &path).unwrap();
        reader.verify().unwrap();
        let mut iterator = reader.iterator(&ReadOptions::default()).unwrap();
        assert_eq!(all(&mut iterator), ["a=2,4", "c=5,6", "d=7"]);
        iterator.seek(b"b");
        assert_eq!(iterator.entry(), Some((&b"c"[..], &b"5,6"[..])));
        iterator.seek_for_prev(b"b");
        assert_eq!(iterator.entry(), Some((&b"a"[..], &b"2,4"[..])));
        iterator.prev();
        assert!(!iterator.is_valid());
        let mut within = ReadOptions::default();
        (within.lower, within.upper) = (Some(b"b".to_vec()), Some(b"d".to_vec()));
        let mut iterator = reader.iterator(&within).unwrap();
        assert_eq!(all(&mut iterator), ["c=5,6"]);
        iterator.seek(b"a");
        assert!(iterator.is_valid());
        iterator.seek(b"d");
        assert!(!iterator.is_valid());
        iterator.seek_for_prev(b"a");
        assert!(!iterator.is_valid());
    }

    #[test]
    fn merge_operands_without_an_operator_end_the_iterator() {
        let dir = tempfile::tempdir().unwrap();
        let reader = SstReader::open(&Options::default(), &table(dir.path())).unwrap();
        let mut iterator = reader.iterator(&ReadOptions::default()).unwrap();
        iterator.seek_to_first();
        assert!(!iterator.is_valid() && iterator.status().is_err());
        iterator.seek(b"d");
        assert!(iterator.is_valid() && iterator.status().is_ok());
        assert!(SstReader::open(&Options::default(), &dir.path().join("none.sst")).is_err());
    }

    /// Regression: an iterator showed what is newer than the snapshot of its options, and took options that no read keeps.
    #[test]
    fn an_iterator_keeps_its_options_or_refuses_them() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.put("a", "1").unwrap();
        db.put("b", "2").unwrap();
        let old = db.snapshot().unwrap();
        db.put("a", "3").unwrap();
        db.delete("b").unwrap();
        db.put("c", "4").unwrap();
        db.flush().unwrap();
        let path = db.default_family().live_files().unwrap().first().unwrap().path();
        let reader = SstReader::open(&Options::default(), &path).unwrap();
        let newest = ReadOptions::default();
        assert_eq!(all(&mut reader.iterator(&newest).unwrap()), ["a=3", "c=4"]);
        let mut before = ReadOptions::default();
        before.snapshot = Some(old);
        assert_eq!(all(&mut reader.iterator(&before).unwrap()), ["a=1", "b=2"]);
        let with = |name: &str, number: u64| {
            let mut options = ReadOptions::default();
            options.change(|texts| texts.set(name, number));
            options
        };
        let refused = reader.iterator(&with("max_skippable_internal_keys", 1)).unwrap_err();
        assert!(refused.to_string().contains("max_skippable_internal_keys"), "{refused}");
        let mut late = reader.iterator(&with("deadline", 1)).unwrap();
        late.seek_to_first();
        assert!(!late.is_valid() && late.status().is_err());
    }

    /// Regression: an entry of a kind that no read serves was shown as a value.
    #[test]
    fn an_entry_of_an_unknown_kind_ends_the_iterator() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.sst");
        let file = Env::os().unwrap().fs.create(&path).unwrap();
        let mut builder =
            TableBuilder::new(file, ashlar_table::TableOptions::default(), TableIdentity::default()).unwrap();
        for (key, kind) in [(b"a", ValueType::Put), (b"b", ValueType::DeleteWithTimestamp)] {
            let key = InternalKeyBuf::new(key, Trailer::new(SeqNum::ZERO, kind));
            builder.add(key.as_key(), b"1").unwrap();
        }
        builder.finish().unwrap();
        let reader = SstReader::open(&Options::default(), &path).unwrap();
        let mut iterator = reader.iterator(&ReadOptions::default()).unwrap();
        iterator.seek_to_first();
        assert_eq!(iterator.entry(), Some((&b"a"[..], &b"1"[..])));
        iterator.next();
        let e = iterator.status().unwrap_err();
        assert_eq!(e.kind(), ashlardb::ErrorKind::NotSupported, "{e}");
    }
}
