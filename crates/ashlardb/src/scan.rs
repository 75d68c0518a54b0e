//! Scans: ranges of keys, forward or backward, as iterators; and the cursor below them.

use crate::{Columns, Db, Family, Result, ScanExplained, Snapshot};
use ashlar_base::SeqNum;
use ashlar_engine::iter::{CursorPins, DbIter};
use ashlar_engine::options::ReadOptions;
use std::ops::{Range, RangeFrom, RangeFull, RangeTo};
use std::sync::Arc;

/// What can be scanned: `..`, `a..b`, `a..`, `..b` with keys that are bytes.
pub trait ScanRange {
    /// The first key shown, and the first not shown any more.
    fn bounds(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>);
}

impl ScanRange for RangeFull {
    fn bounds(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (None, None)
    }
}

impl<K: AsRef<[u8]>> ScanRange for Range<K> {
    fn bounds(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (Some(self.start.as_ref().to_vec()), Some(self.end.as_ref().to_vec()))
    }
}

impl<K: AsRef<[u8]>> ScanRange for RangeFrom<K> {
    fn bounds(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (Some(self.start.as_ref().to_vec()), None)
    }
}

impl<K: AsRef<[u8]>> ScanRange for RangeTo<K> {
    fn bounds(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (None, Some(self.end.as_ref().to_vec()))
    }
}

/// A scan that is being described; `for` runs it.
#[derive(Clone, Debug)]
pub struct Scan {
    db: Db,
    family: Family,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    at: Option<SeqNum>,
    reverse: bool,
}

impl Scan {
    pub(crate) fn new(db: Db, family: Family, range: &impl ScanRange) -> Self {
        let (lower, upper) = range.bounds();
        Scan { db, family, lower, upper, at: None, reverse: false }
    }

    /// From the last key to the first.
    pub fn rev(mut self) -> Self {
        self.reverse = !self.reverse;
        self
    }

    /// Only keys that begin with `prefix`. Replaces the range.
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        self.lower = Some(prefix.to_vec());
        // The first key behind all that begin with the prefix; all of 0xff has none.
        let end = prefix.iter().rposition(|&b| b != 0xff);
        self.upper = end.map(|last| {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        });
        self
    }

    /// As of a snapshot.
    pub fn at(mut self, snapshot: &Snapshot) -> Self {
        self.at = Some(snapshot.sequence());
        self
    }

    /// In another family than `default`.
    pub fn family(mut self, family: &Family) -> Self {
        self.family = family.clone();
        self
    }

    /// The cursor of the scan, not positioned: for who wants to seek, or to look without copying.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn cursor(&self) -> Result<Cursor> {
        let inner = self.db.engine().iter(&self.family.inner, self.read_options())?;
        Ok(Cursor { inner, family: Arc::clone(&self.family.inner) })
    }

    /// Scans forward over `keys_max` keys at most and tells how: the tables within the bounds, the entries passed that were
    /// not shown, and what it cost.
    ///
    /// ```
    /// # use ashlardb::Db;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put(b"a", b"1")?;
    /// db.put(b"b", b"2")?;
    /// let told = db.scan(b"a"..b"b").explain(1000)?;
    /// assert_eq!(told.keys(), 1);
    /// println!("{told}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn explain(&self, keys_max: u64) -> Result<ScanExplained> {
        self.db.engine().explain_scan(&self.family.inner, self.read_options(), keys_max)
    }

    fn read_options(&self) -> ReadOptions {
        ReadOptions {
            at: self.at,
            lower: self.lower.clone(),
            upper: self.upper.clone(),
            ..ReadOptions::default()
        }
    }
}

impl IntoIterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = Entries;

    fn into_iter(self) -> Entries {
        let reverse = self.reverse;
        match self.cursor() {
            Ok(cursor) => Entries { state: State::Start(cursor), reverse },
            Err(e) => Entries { state: State::Failed(Some(e)), reverse },
        }
    }
}

enum State {
    Start(Cursor),
    On(Cursor),
    Failed(Option<ashlar_base::Error>),
}

/// The entries of a scan: owned keys and values. Ends after the first error.
pub struct Entries {
    state: State,
    reverse: bool,
}

impl Iterator for Entries {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let state = std::mem::replace(&mut self.state, State::Failed(None));
        let moved = match state {
            State::Failed(e) => return e.map(Err),
            State::Start(mut c) => if self.reverse { c.last() } else { c.first() }.map(|()| c),
            State::On(mut c) => if self.reverse { c.prev() } else { c.next() }.map(|()| c),
        };
        match moved {
            Err(e) => Some(Err(e)),
            Ok(cursor) => {
                let entry = cursor.entry().map(|(k, v)| (k.to_vec(), v.to_vec()))?;
                self.state = State::On(cursor);
                Some(Ok(entry))
            }
        }
    }
}

/// A position in a family: on an entry, or off the end. After an error it is off the end until the next positioning.
pub struct Cursor {
    inner: DbIter,
    // Not the handle of the door: a cursor keeps no database open.
    family: Arc<ashlar_engine::column_family::Family>,
}

impl Cursor {
    /// To the first entry.
    ///
    /// # Errors
    /// Of every move: `Corruption`, `Io`: a table cannot be read.
    pub fn first(&mut self) -> Result<()> {
        self.inner.first()
    }

    /// To the last entry.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn last(&mut self) -> Result<()> {
        self.inner.last()
    }

    /// To the first entry at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.seek(key.as_ref())
    }

    /// To the last entry at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.seek_for_prev(key.as_ref())
    }

    /// To the next entry.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    #[allow(clippy::should_implement_trait)] // a cursor lends its entries; see `Entries` for the iterator
    pub fn next(&mut self) -> Result<()> {
        self.inner.next()
    }

    /// To the entry before.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn prev(&mut self) -> Result<()> {
        self.inner.prev()
    }

    /// What it keeps alive: memtables that are in tables by now, files that a compaction has replaced, the blocks it stands
    /// in. Close cursors that hold much, and open them anew at the same key.
    pub fn pins(&self) -> CursorPins {
        self.inner.pins(&self.family)
    }

    /// Key and value under the cursor; `None` off the end.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.inner.entry()
    }

    /// The columns under the cursor: of a plain value the default column alone. `None` off the end.
    ///
    /// # Errors
    /// `Corruption`, `Io`: the entity, or a blob file that it points to, cannot be read.
    pub fn columns(&self) -> Result<Option<Columns>> {
        self.inner.columns()
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.entry() {
            Some((key, _)) => write!(f, "Cursor(on {})", key.escape_ascii()),
            None => f.write_str("Cursor(off the end)"),
        }
    }
}
