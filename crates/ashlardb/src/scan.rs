//! Scans: ranges of keys, forward or backward, as iterators; and the cursor below them.

use crate::{Columns, Db, Error, Family, Result, ScanExplained, Snapshot};
use ashlar_base::Order;
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

/// A scan that is being described; `for` runs it. The calls that describe it may come in any order.
///
/// A scan holds its snapshot ([`Scan::at`]) until the scan itself is dropped.
#[derive(Clone, Debug)]
#[must_use = "a scan does nothing until it is iterated"]
pub struct Scan {
    db: Db,
    family: Family,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    prefix: Prefix,
    at: Option<ashlar_engine::snapshot::Snapshot>,
    reverse: bool,
}

/// The keys that all calls of [`Scan::prefix`] together leave.
#[derive(Clone, Debug)]
enum Prefix {
    Of(Vec<u8>),
    /// No key begins with all the prefixes.
    None,
}

impl Prefix {
    fn and(self, other: &[u8]) -> Prefix {
        match self {
            Prefix::Of(known) if other.starts_with(&known) => Prefix::Of(other.to_vec()),
            Prefix::Of(known) if known.starts_with(other) => Prefix::Of(known),
            _ => Prefix::None,
        }
    }
}

impl Scan {
    pub(crate) fn new(db: Db, family: Family, range: &impl ScanRange) -> Self {
        let (lower, upper) = range.bounds();
        Scan { db, family, lower, upper, prefix: Prefix::Of(Vec::new()), at: None, reverse: false }
    }

    /// From the last key to the first. Called twice, it changes nothing.
    pub fn rev(mut self) -> Self {
        self.reverse = !self.reverse;
        self
    }

    /// Only the keys of the range that begin with `prefix`; after a second call, that begin with both prefixes.
    ///
    /// Works in families in ascending and in descending byte order. In the order of a [`crate::Comparator`] keys with one
    /// prefix need not stand together: the scan is refused with `InvalidArgument` when it begins.
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.prefix = self.prefix.and(prefix.as_ref());
        self
    }

    /// As of a snapshot. The scan holds the snapshot from here on, also when `snapshot` itself is dropped. A snapshot of
    /// another database is refused with `InvalidArgument` when the scan begins.
    pub fn at(mut self, snapshot: &Snapshot) -> Self {
        self.at = Some(snapshot.inner.clone());
        self
    }

    /// In another family than `default`. A family of another database is refused with `InvalidArgument` when the scan
    /// begins.
    pub fn family(mut self, family: &Family) -> Self {
        self.family = family.clone();
        self
    }

    /// A cursor over the keys of the scan, which can go both ways. It is on no entry yet: [`Cursor::next`] goes to the
    /// first one, [`Cursor::prev`] to the last one.
    ///
    /// # Errors
    /// As [`Db::get`]. `InvalidArgument`: after [`Scan::rev`], because a cursor has no direction; a snapshot or family of
    /// another database; [`Scan::prefix`] in a family with a comparator.
    pub fn cursor(&self) -> Result<Cursor> {
        self.check_forward()?;
        self.open()
    }

    fn open(&self) -> Result<Cursor> {
        let inner = self.db.engine().iter(&self.family.inner, self.read_options()?)?;
        Ok(Cursor { inner, fresh: true, family: Arc::clone(&self.family.inner) })
    }

    fn check_forward(&self) -> Result<()> {
        match self.reverse {
            false => Ok(()),
            true => Err(Error::invalid("rev() together with cursor() or explain()")
                .hint("Leave out rev(). A cursor goes backward with last() and prev()")),
        }
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
    /// As [`Scan::cursor`].
    pub fn explain(&self, keys_max: u64) -> Result<ScanExplained> {
        self.check_forward()?;
        self.db.engine().explain_scan(&self.family.inner, self.read_options()?, keys_max)
    }

    fn read_options(&self) -> Result<ReadOptions> {
        if let Some(snapshot) = &self.at {
            self.db.engine().check_snapshot(snapshot)?;
        }
        let range = ReadOptions {
            at: self.at.as_ref().map(|snapshot| snapshot.seq()),
            lower: self.lower.clone(),
            upper: self.upper.clone(),
            ..ReadOptions::default()
        };
        match &self.prefix {
            Prefix::Of(prefix) if prefix.is_empty() => Ok(range),
            Prefix::Of(prefix) => self.narrowed(range, prefix),
            // No key is at or behind the empty key and before it, in any order.
            Prefix::None => Ok(ReadOptions { lower: Some(Vec::new()), upper: Some(Vec::new()), ..range }),
        }
    }

    /// The part of `range` whose keys begin with `prefix`.
    fn narrowed(&self, range: ReadOptions, prefix: &[u8]) -> Result<ReadOptions> {
        let ReadOptions { lower, upper, .. } = &range;
        let behind = behind_prefix(prefix);
        let prefix = Some(prefix.to_vec());
        Ok(match &self.family.inner.options().order {
            Order::Bytewise => {
                let upper = [upper.clone(), behind].into_iter().flatten().min();
                ReadOptions { lower: lower.clone().max(prefix), upper, ..range }
            }
            // Larger keys come first. `None` is less than every key.
            Order::ReverseBytewise => {
                let lower_open = behind.is_some() && (lower.is_none() || *lower >= behind);
                let upper_closed = *upper < prefix;
                ReadOptions {
                    lower: if lower_open { behind } else { lower.clone() },
                    lower_open,
                    upper: if upper_closed { prefix } else { upper.clone() },
                    upper_closed,
                    ..range
                }
            }
            Order::Custom(comparator) => {
                let (family, name) = (self.family.name(), comparator.name());
                let text = format!("prefix() in family {family:?}, whose order is the comparator {name:?}");
                return Err(Error::invalid(text).hint("Scan a range, and test each key for the prefix"));
            }
        })
    }
}

/// The first key in byte order behind all that begin with `prefix`. A prefix of 0xff only has none.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl IntoIterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = Entries;

    fn into_iter(self) -> Entries {
        let reverse = self.reverse;
        match self.open() {
            Ok(cursor) => Entries { state: State::Start(cursor), reverse },
            Err(e) => Entries { state: State::Failed(Some(e)), reverse },
        }
    }
}

enum State {
    Start(Cursor),
    On(Cursor),
    Failed(Option<Error>),
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

/// A position in a family: on an entry, or off the end. After an error it is off the end until the next positioning. It
/// goes on when the database is closed or its family dropped. When the directory is opened again after a close, the open
/// removes replaced tables, and a cursor that needs one answers `Io(NotFound)`.
pub struct Cursor {
    inner: DbIter,
    /// No call has moved it yet.
    fresh: bool,
    // The engine's family, not the handle of this crate: a cursor keeps no database open.
    family: Arc<ashlar_engine::column_family::Family>,
}

impl Cursor {
    /// To the first entry.
    ///
    /// # Errors
    /// Of every move: `Corruption`, `Io`: a table cannot be read.
    pub fn first(&mut self) -> Result<()> {
        self.fresh = false;
        self.inner.first()
    }

    /// To the last entry.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn last(&mut self) -> Result<()> {
        self.fresh = false;
        self.inner.last()
    }

    /// To the first entry at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.fresh = false;
        self.inner.seek(key.as_ref())
    }

    /// To the last entry at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.fresh = false;
        self.inner.seek_for_prev(key.as_ref())
    }

    /// To the next entry; of a new cursor, to the first one. Off the end it stays there.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    #[allow(clippy::should_implement_trait)] // a cursor lends its entries; see `Entries` for the iterator
    pub fn next(&mut self) -> Result<()> {
        if self.fresh { self.first() } else { self.inner.next() }
    }

    /// To the entry before; of a new cursor, to the last one. Off the end it stays there.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn prev(&mut self) -> Result<()> {
        if self.fresh { self.last() } else { self.inner.prev() }
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
