//! Scans: the entries of a range of keys, from both ends.

use crate::overlay::Walk;
use crate::range::{KeyRange, Keys};
use crate::read::{ReadOptions, Readable};
use crate::{Cursor, Db, Result, ScanExplained, StoredProperties};
use ashlar_base::Error;
use ashlar_base::planted::{Bug, planted};
use ashlar_engine::column_family::Family;
use ashlar_options as engine;
use ashlar_read::iter::{DbIter, KeyBounds, TableFilter};
use ashlar_read::snapshot;
use ashlar_txn::ChangesView;
use std::sync::Arc;

/// The entries of a range of keys, an iterator from both ends. Nothing is read before the first entry is asked for.
///
/// Each entry is a copy; a [`Scan::cursor`] lends its entries without a copy. The scan shows one moment: that of its snapshot, or
/// that of its first entry. It keeps its snapshot until it is dropped. After an error,
/// or a panic in a callback, it ends.
///
/// ```
/// # use ashlardb::{Db, Read, Write};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// for day in ["2026-11-21", "2026-11-22", "2026-11-23"] {
///     db.put(day, "sunny")?;
/// }
/// for entry in db.scan("2026-11-22"..) {
///     let (day, weather) = entry?;
///     println!("{}: {}", day.escape_ascii(), weather.escape_ascii());
/// }
/// let (latest, _) = db.scan(..).next_back().unwrap()?;
/// assert_eq!(latest, b"2026-11-23");
/// # Ok(())
/// # }
/// ```
#[must_use = "a scan does nothing until it is iterated"]
pub struct Scan {
    db: Db,
    family: Arc<Family>,
    keys: Keys,
    prefix: Prefix,
    at: Option<snapshot::Snapshot>,
    options: ReadOptions,
    /// Which tables are read.
    tables: Option<TableFilter>,
    /// The pending changes over the database, or why they cannot be read.
    changes: Option<Result<ChangesView>>,
    front: Option<Walk>,
    back: Option<Walk>,
    ended: bool,
}

/// The keys that are left after all calls of [`Scan::prefix`].
#[derive(Debug)]
enum Prefix {
    Of(Vec<u8>),
    /// No key begins with all the prefixes, of which this is one.
    None(Vec<u8>),
}

impl Prefix {
    fn and(self, other: &[u8]) -> Prefix {
        match self {
            Prefix::Of(known) if other.starts_with(&known) => Prefix::Of(other.to_vec()),
            Prefix::Of(known) if known.starts_with(other) => Prefix::Of(known),
            Prefix::Of(known) | Prefix::None(known) => Prefix::None(known),
        }
    }
}

impl Scan {
    pub(crate) fn new(from: &Readable<'_>, range: &impl KeyRange) -> Self {
        let (mut at, mut changes) = (from.at.cloned(), None);
        if let Some(over) = from.overlay {
            let view = over.view(from.family).and_then(|(view, snapshot)| {
                at = at.take().or(snapshot);
                // The changes and what is below them are of one moment: later, the changes may be below too.
                if at.is_none() {
                    at = Some(from.db.engine().snapshot()?);
                }
                Ok(view)
            });
            changes = Some(view);
        }
        Scan {
            db: from.db.clone(),
            family: Arc::clone(from.family),
            keys: Keys::of(range),
            prefix: Prefix::Of(Vec::new()),
            at,
            options: from.options,
            tables: None,
            changes,
            front: None,
            back: None,
            ended: false,
        }
    }

    /// Keeps only the keys of the range that begin with `prefix`. After several calls, a key must begin with every prefix.
    ///
    /// Works in ascending and descending byte order. Under a [`crate::Comparator`], keys with one prefix need not be neighbours:
    /// the scan answers `InvalidArgument` when it begins.
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.prefix = self.prefix.and(prefix.as_ref());
        self
    }

    /// Reads only the tables whose properties `filter` accepts, beside the memtables. Keys of the other
    /// tables are missing, and an older value of a key may show where the newer one is left out. Range deletions count, whichever
    /// table has them. Gets have no such filter. (RocksDB: `ReadOptions::table_filter`.)
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("old", "1")?;
    /// db.flush()?;
    /// db.put("new", "2")?;
    /// let unflushed = db.scan(..).filter_tables(|_| false);
    /// assert_eq!(unflushed.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cost
    /// The scan calls the filter when it comes to a table for the first time, without a lock, and on its own thread.
    pub fn filter_tables(
        mut self,
        filter: impl Fn(&StoredProperties) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.tables = Some(Arc::new(filter));
        self
    }

    /// A cursor over the keys of the scan. It moves both ways and lends its entries. It starts on no entry: [`Cursor::next`]
    /// moves to the first one, [`Cursor::prev`] to the last one.
    ///
    /// # Errors
    /// Those of [`crate::Read::get`]. `InvalidArgument`: a range that begins after its end, a family of another database, or
    /// [`Scan::prefix`] in a family with a comparator.
    pub fn cursor(&self) -> Result<Cursor> {
        Ok(Cursor::new(self.open()?, Arc::clone(&self.family)))
    }

    /// A tailing cursor over the keys of the scan: it follows the writes to the database. See [`Cursor`] for its calls.
    ///
    /// [`Cursor::first`], [`Cursor::last`] and the seeks show the newest state. From there `next` and `prev` move within that
    /// state. At its end, and off the end, `next` looks for newer keys behind the last one that it has shown. Where a positioning
    /// call has found no key, `next` repeats the call; after [`Cursor::seek_for_prev`] it stays off the end. A key that is
    /// written before the cursor's position is shown by the next positioning call. `prev` off the beginning, and an error, leave
    /// the cursor off the end until it is positioned.
    ///
    /// The cursor keeps no database open: after the close, moves to a newer state answer `Shutdown`. A dropped family has no newer
    /// state.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("job/1", "")?;
    /// let mut jobs = db.prefix("job/").tailing()?;
    /// assert!(jobs.next()?.is_some());
    /// assert!(jobs.next()?.is_none());       // the end, for the moment
    /// db.put("job/2", "")?;
    /// assert_eq!(jobs.next()?.map(|(key, _)| key), Some(&b"job/2"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Scan::cursor`]. `InvalidArgument`: the scan is over a snapshot, a transaction or an indexed batch.
    /// # Cost
    /// A look for newer keys that finds no write at all: two loads. While the family has the same memtables and tables, a move to
    /// the newest state costs a few loads beside the seek; after a flush, a compaction or a range deletion, that of a new
    /// cursor. An idle cursor keeps the memtables and files of its state: see [`Cursor::pins`].
    pub fn tailing(&self) -> Result<Cursor> {
        let over = match (&self.changes, &self.at) {
            (Some(_), _) => Some("a transaction or an indexed batch"),
            (None, Some(_)) => Some("a snapshot"),
            (None, None) => None,
        };
        if let Some(over) = over {
            return Err(Error::invalid(format!("a tailing cursor over {over}, which shows no later writes"))
                .hint("Scan the database or a family"));
        }
        let mut newest = self.db.engine().tailing_iter(&self.family, self.range()?, self.options.at(None))?;
        if let Some(filter) = &self.tables {
            newest.filter_tables(Arc::clone(filter));
        }
        Ok(Cursor::new(Walk::tailing(newest), Arc::clone(&self.family)))
    }

    /// Scans forward over at most `keys_max` keys and explains the scan: the tables within the bounds, the entries it skipped,
    /// and the cost.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let explained = db.scan("a".."b").explain(1000)?;
    /// assert_eq!(explained.keys(), 1);
    /// println!("{explained}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Scan::cursor`].
    pub fn explain(&self, keys_max: u64) -> Result<ScanExplained> {
        if let Some(changes) = &self.changes {
            changes.clone()?;
        }
        if self.tables.is_some() {
            return Err(Error::not_supported("explain of a scan with a filter of tables")
                .hint("Explain the scan without the filter"));
        }
        self.db.engine().explain_scan(&self.family, self.range()?, self.engine_options(), keys_max)
    }

    fn engine_options(&self) -> engine::ReadOptions {
        self.options.at(self.at.as_ref())
    }

    fn range(&self) -> Result<KeyBounds> {
        let order = &self.family.options().order;
        self.keys.check(order)?;
        let keys = match &self.prefix {
            Prefix::Of(prefix) if prefix.is_empty() => self.keys.clone(),
            Prefix::Of(prefix) => self.keys.clone().narrowed(prefix, order, self.family.name())?,
            Prefix::None(first) => {
                self.keys.clone().narrowed(first, order, self.family.name())?;
                Keys::none()
            }
        };
        Ok(keys.0)
    }

    #[inline]
    fn iter(&self, range: KeyBounds, options: engine::ReadOptions) -> Result<DbIter> {
        let iter = self.db.engine().iter(&self.family, range, options);
        match &self.tables {
            // The large value is not moved.
            None => iter,
            Some(filter) => iter.map(|mut iter| {
                iter.filter_tables(Arc::clone(filter));
                iter
            }),
        }
    }

    fn open(&self) -> Result<Walk> {
        let (range, options) = (self.range()?, self.engine_options());
        match (self.front.as_ref().or(self.back.as_ref()), &self.changes) {
            // Both ends show one moment.
            (Some(other), _) => other.beside(range, options),
            (None, None) => Ok(Walk::Plain(self.iter(range, options)?)),
            (None, Some(changes)) => {
                let changes = changes.clone()?;
                let below = self.iter(range.clone(), options)?;
                Ok(Walk::merged(below, changes, range))
            }
        }
    }

    /// Moves one end of the scan and copies the entry there. `None`: the two ends have met.
    fn step(&mut self, end: End) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut cursor = match end {
            End::Front => self.front.take(),
            End::Back => self.back.take(),
        };
        match (&mut cursor, end) {
            (Some(cursor), End::Front) => cursor.next()?,
            (Some(cursor), End::Back) => cursor.prev()?,
            (None, _) => {
                let mut fresh = self.open()?;
                match end {
                    End::Front => fresh.first()?,
                    End::Back => fresh.last()?,
                }
                cursor = Some(fresh);
            }
        }
        let Some((key, value)) = cursor.as_ref().and_then(Walk::entry) else { return Ok(None) };
        let (other, sound) = match end {
            End::Front => (&self.back, std::cmp::Ordering::Less),
            End::Back => (&self.front, std::cmp::Ordering::Greater),
        };
        if let Some(met) = other.as_ref().and_then(Walk::key)
            && self.family.options().order.compare(key, met) != sound
            && !planted(Bug::ScanEndsCross)
        {
            return Ok(None);
        }
        let entry = (key.to_vec(), value.to_vec());
        match end {
            End::Front => self.front = cursor,
            End::Back => self.back = cursor,
        }
        Ok(Some(entry))
    }

    fn entry(&mut self, end: End) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        // A panic in a callback leaves it so.
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        let entry = self.step(end).transpose();
        match entry {
            Some(Ok(_)) => self.ended = false,
            _ => (self.front, self.back) = (None, None),
        }
        entry
    }
}

/// An end of a scan.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

impl Iterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entry(End::Front)
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entry(End::Back)
    }
}

impl std::iter::FusedIterator for Scan {}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Scan { keys, prefix, ended, .. } = self;
        f.debug_struct("Scan").field("keys", keys).field("prefix", prefix).field("ended", ended).finish()
    }
}
