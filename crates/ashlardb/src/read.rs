//! The trait with every method that reads, and the types that implement it.

use crate::overlay::Overlay;
use crate::range::KeyRange;
use crate::{Columns, Db, Family, GetExplained, MayExist, Result, Scan, Snapshot, View};
use ashlar_options as engine;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use engine::ReadTier;

/// Everything that can be read: a [`Db`] (its family `default`), a [`Family`], a [`Snapshot`], a [`crate::Transaction`], a
/// [`crate::IndexedBatch`], and a [`Reader`] over one of them.
///
/// A `Db` and a `Family` read the newest state. A snapshot reads the state of its moment. A transaction and an indexed batch
/// show their own changes over it.
///
/// ```
/// use ashlardb::{Db, Read, Result, Write};
///
/// fn greeting(from: &impl Read, user: &str) -> Result<String> {
///     let name = from.get(user)?;
///     Ok(name.map_or("hello".into(), |name| format!("hello, {}", name.escape_ascii())))
/// }
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::open(dir.path().join("db"))?;
/// db.put("user:1", "Ada")?;
/// let snapshot = db.snapshot()?;
/// db.put("user:1", "Grace")?;
/// assert_eq!(greeting(&db, "user:1")?, "hello, Grace");
/// assert_eq!(greeting(&snapshot, "user:1")?, "hello, Ada");
/// # Ok(())
/// # }
/// ```
pub trait Read: Sealed {
    /// The value of `key`, or `None` when the key does not exist. The view derefs to bytes and does not borrow the handle.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be read; this is never taken for absence. `InvalidArgument`: a family of another
    /// database. `Busy(Memory)`: no memory for a block or value. `Shutdown`. Those of the [`ReadOptions`].
    #[inline]
    fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        let at = self.readable();
        match at.overlay {
            Some(over) if Self::OVERLAID => over.get(at.family, key.as_ref(), at.engine_options()),
            _ => at.db.engine().get(at.family, key.as_ref(), at.engine_options()),
        }
    }

    /// The columns of `key`, or `None` when the key does not exist. A plain value is one column with the empty name.
    ///
    /// # Errors
    /// As [`Read::get`].
    fn get_entity(&self, key: impl AsRef<[u8]>) -> Result<Option<Columns>> {
        let at = self.readable();
        match at.overlay {
            Some(over) if Self::OVERLAID => over.get_entity(at.family, key.as_ref(), at.engine_options()),
            _ => at.db.engine().get_entity(at.family, key.as_ref(), at.engine_options()),
        }
    }

    /// The values of `keys`, in their order, from one moment. Costs less than as many gets: each block is looked up or read
    /// once.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let values = db.multi_get(["c", "b", "a"])?;
    /// let found: Vec<_> = values.iter().map(|value| value.is_some()).collect();
    /// assert_eq!(found, [true, false, true]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Read::get`], of the first key that cannot be read.
    fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<View>>> {
        self.multi_get_each(keys)?.into_iter().collect()
    }

    /// [`Read::multi_get`] with the error of each key: a damaged block fails the keys in it, and no others.
    ///
    /// # Errors
    /// Those that concern all keys: `Shutdown`, `InvalidArgument`, an option that no read can keep.
    fn multi_get_each<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Result<Option<View>>>> {
        let at = self.readable();
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        match at.overlay {
            Some(over) if Self::OVERLAID => over.multi_get(at.family, &keys, at.engine_options()),
            _ => at.db.engine().multi_get(at.family, &keys, at.engine_options()),
        }
    }

    /// Whether `key` may have a value. Asks memtables and filters, and reads no data block. `No` is certain, `Maybe` is not.
    ///
    /// ```
    /// # use ashlardb::{Db, MayExist, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("a", "1")?;
    /// assert!(matches!(db.key_may_exist("a")?, MayExist::Value(v) if *v == *b"1"));
    /// assert_eq!(db.key_may_exist("b")?, MayExist::No);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be opened. `TimedOut`: see [`ReadOptions::deadline`].
    fn key_may_exist(&self, key: impl AsRef<[u8]>) -> Result<MayExist> {
        let at = self.readable();
        match at.overlay {
            Some(over) if Self::OVERLAID => over.key_may_exist(at.family, key.as_ref(), at.engine_options()),
            _ => at.db.engine().key_may_exist(at.family, key.as_ref(), at.engine_options()),
        }
    }

    /// The entries of `range`, an iterator from both ends: `db.scan("a".."b")`, `db.scan(..).rev().take(10)`. See [`KeyRange`].
    fn scan(&self, range: impl KeyRange) -> Scan {
        Scan::new(&self.readable(), &range)
    }

    /// The entries whose keys begin with `prefix`: [`Read::scan`] of everything, [narrowed](Scan::prefix).
    fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.scan(..).prefix(prefix)
    }

    /// Gets `key` and explains the read: the memtables and tables it asked, their answers, and the cost. [`Scan::explain`] does
    /// the same for a scan.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("k", "v")?;
    /// let explained = db.explain_get("k")?;
    /// assert_eq!((explained.steps().len(), explained.value_bytes()), (1, Some(1)));
    /// println!("{explained}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Read::get`].
    fn explain_get(&self, key: impl AsRef<[u8]>) -> Result<GetExplained> {
        let at = self.readable();
        let mut options = at.engine_options();
        if let Some(over) = at.overlay
            && let (_, Some(snapshot)) = over.view(at.family)?
        {
            options.at = options.at.or(Some(snapshot.seq()));
        }
        at.db.engine().explain_get(at.family, key.as_ref(), options)
    }

    /// The same target, read with `options`. Costs nothing.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, ReadOptions, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// # db.put("a", "1")?;
    /// let once = db.reading(ReadOptions::new().fill_cache(false));
    /// assert_eq!(once.scan(..).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    fn reading(&self, options: ReadOptions) -> Reader<'_> {
        Reader { target: Readable { options, ..self.readable() } }
    }
}

/// Options of a read. Every option has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a read gets them"]
pub struct ReadOptions(engine::ReadOptions);

impl ReadOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether data blocks read from files enter the block cache. Default: true. Turn it off for a large scan, whose blocks
    /// would evict those of other reads.
    pub fn fill_cache(self, yes: bool) -> Self {
        ReadOptions(engine::ReadOptions { fill_cache: yes, ..self.0 })
    }

    /// Whether checksums of data blocks and blobs are compared when the read brings them in from a file. Default: true.
    ///
    /// Off, a damaged block can give wrong keys and values. A block that was read without its checksum does not enter the block
    /// cache, because later reads count on checked blocks. Blocks of indexes and filters stay in memory, so their checksums are
    /// compared in any case.
    pub fn verify_checksums(self, yes: bool) -> Self {
        ReadOptions(engine::ReadOptions { verify_checksums: yes, ..self.0 })
    }

    /// Where the read looks. Default: [`ReadTier::All`].
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::{BusyKind, ErrorKind, ReadTier};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("k", "v")?;
    /// db.flush()?;
    /// let cached = db.reading(ReadOptions::new().read_tier(ReadTier::BlockCache));
    /// let missed = cached.get("k").unwrap_err();
    /// assert_eq!(missed.kind(), ErrorKind::Busy(BusyKind::NotCached));
    /// assert!(db.get("k")?.is_some());               // reads the file, and fills the cache
    /// assert!(cached.get("k")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// With [`ReadTier::BlockCache`], a read whose answer needs a file answers `Busy(NotCached)`, and a scan ends there.
    /// [`Read::key_may_exist`] answers [`MayExist::Maybe`] instead.
    pub fn read_tier(self, tier: ReadTier) -> Self {
        ReadOptions(engine::ReadOptions { tier, ..self.0 })
    }

    /// When the read gives up. Default: never.
    ///
    /// The deadline is one moment for all calls of a scan or cursor. It is compared with the clock before each read of a file,
    /// and at each block of a scan; answers from memory alone do not look at it. A read of a file that has begun is not
    /// interrupted. The wall clock is read when a get or scan begins, so its later jumps do not move the deadline.
    ///
    /// # Errors
    /// A read whose deadline has passed answers `TimedOut`, and a scan ends there.
    pub fn deadline(self, at: SystemTime) -> Self {
        // A time before 1970 has passed.
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        ReadOptions(engine::ReadOptions { deadline: Some(since), ..self.0 })
    }

    /// The longest time for one read of a file; opening a table or blob file counts as one. Default: any time.
    ///
    /// The system gives no way to interrupt the read of a file. A read that took longer answers `TimedOut` when it ends, and
    /// its block does not enter the block cache.
    ///
    /// # Errors
    /// `TimedOut`, as for [`ReadOptions::deadline`]. `InvalidArgument`, from the first read: the time is zero.
    pub fn io_timeout(self, each: Duration) -> Self {
        ReadOptions(engine::ReadOptions { io_timeout: Some(each), ..self.0 })
    }

    /// The same options for a read of `snapshot`.
    #[inline]
    pub(crate) fn at(self, snapshot: Option<&ashlar_read::snapshot::Snapshot>) -> engine::ReadOptions {
        engine::ReadOptions { at: snapshot.map(|snapshot| snapshot.seq()), ..self.0 }
    }
}

/// A [`Read`] with options or a family chosen: see [`Read::reading`] and [`Snapshot::family`]. It borrows what it reads.
#[derive(Clone, Copy, Debug)]
#[must_use = "a reader does nothing until it is asked"]
pub struct Reader<'a> {
    target: Readable<'a>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(target: Readable<'a>) -> Self {
        Reader { target }
    }

    /// The same reader for `family`. The first read answers `InvalidArgument` if the family belongs to another database.
    pub fn family(self, family: &'a Family) -> Reader<'a> {
        Reader { target: Readable { family: &family.inner, ..self.target } }
    }

    /// The same reader with `options`. Unlike [`Read::reading`], its result may outlive this reader:
    ///
    /// ```
    /// # use ashlardb::{Db, Read, ReadOptions, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// # db.put("a", "1")?;
    /// # let family = db.default_family();
    /// let snapshot = db.snapshot()?;
    /// let once = snapshot.family(&family).reading(ReadOptions::new().fill_cache(false));
    /// assert_eq!(once.scan(..).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reading(self, options: ReadOptions) -> Reader<'a> {
        Reader { target: Readable { options, ..self.target } }
    }
}

/// The family, the snapshot and the options of a read.
#[derive(Clone, Copy, Debug)]
pub struct Readable<'a> {
    pub(crate) db: &'a Db,
    pub(crate) family: &'a Arc<ashlar_engine::column_family::Family>,
    pub(crate) at: Option<&'a ashlar_read::snapshot::Snapshot>,
    pub(crate) options: ReadOptions,
    pub(crate) overlay: Option<Overlay<'a>>,
}

impl Readable<'_> {
    #[inline]
    pub(crate) fn engine_options(&self) -> engine::ReadOptions {
        self.options.at(self.at)
    }
}

mod sealed {
    /// Only this crate implements the trait.
    pub trait Sealed {
        /// Whether reads may have pending changes over them. A constant, so that reads of a database do not ask.
        const OVERLAID: bool = false;
        fn readable(&self) -> super::Readable<'_>;
    }
}
pub(crate) use sealed::Sealed;

impl Read for Db {}
impl Sealed for Db {
    #[inline]
    fn readable(&self) -> Readable<'_> {
        Readable {
            db: self,
            family: self.default(),
            at: None,
            options: ReadOptions::default(),
            overlay: None,
        }
    }
}

impl Read for Family {}
impl Sealed for Family {
    #[inline]
    fn readable(&self) -> Readable<'_> {
        Readable {
            db: &self.db,
            family: &self.inner,
            at: None,
            options: ReadOptions::default(),
            overlay: None,
        }
    }
}

impl Read for Snapshot {}
impl Sealed for Snapshot {
    #[inline]
    fn readable(&self) -> Readable<'_> {
        let (family, options) = (self.db.default(), ReadOptions::default());
        Readable { db: &self.db, family, at: Some(&*self.inner), options, overlay: None }
    }
}

impl Read for Reader<'_> {}
impl Sealed for Reader<'_> {
    const OVERLAID: bool = true;

    #[inline]
    fn readable(&self) -> Readable<'_> {
        self.target
    }
}
