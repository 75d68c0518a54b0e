//! The trait with every method that writes, and the types that implement it.

use crate::{Db, Family, Result, WriteBatch};
use ashlar_base::{Error, ErrorKind, FamilyId};
use ashlar_engine::Db as Engine;
use ashlar_engine::batch::WriteBatch as EngineBatch;
use ashlar_options as engine;
use std::borrow::Borrow;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// The memory of a write with more bytes than this is freed after the write.
const KEEP_BYTES: usize = 16 << 10;

thread_local! {
    /// An empty batch for the next write of one operation of this thread, so that such a write allocates nothing.
    static SINGLE: Cell<Option<EngineBatch>> = const { Cell::new(None) };
}

/// Runs `write` with a batch of what `op` adds. A long copy is charged to `db` until then.
#[inline]
pub(crate) fn with_batch<T>(
    db: &Engine,
    op: impl FnOnce(&mut EngineBatch) -> Result<()>,
    write: impl FnOnce(&mut EngineBatch) -> Result<T>,
) -> Result<T> {
    // A write in a callback of a write, and one of a thread that is ending, get a new batch.
    let mut batch = SINGLE.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let done = op(&mut batch).and_then(|()| {
        let _charge = db.charge_copy(batch.byte_len());
        write(&mut batch)
    });
    if batch.byte_len() <= KEEP_BYTES {
        batch.clear();
        let _ = SINGLE.try_with(|single| single.set(Some(batch)));
    }
    done
}

/// Everything that can be written to: a [`Db`] (its family `default`), a [`Family`], a [`WriteBatch`], a [`Writer`]
/// with options, a [`crate::Transaction`], a [`crate::IndexedBatch`], and those of one family.
///
/// A batch keeps its operations until it is written, and a transaction until its commit. Every other write is done when the
/// call returns.
///
/// ```
/// use ashlardb::{Db, Read, Result, Write, WriteBatch};
///
/// fn register(to: &impl Write, user: &str, name: &str) -> Result<()> {
///     to.put(user, name)?;
///     to.delete(format!("waiting/{user}"))
/// }
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::open(dir.path().join("db"))?;
/// register(&db, "user:1", "Ada")?;                  // two writes
/// let batch = WriteBatch::new();
/// register(&batch, "user:2", "Grace")?;             // one write of both
/// db.write(batch)?;
/// assert_eq!(db.prefix("user:").count(), 2);
/// # Ok(())
/// # }
/// ```
pub trait Write: Writable {
    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// `InvalidArgument`: a key over 8 MiB, a value over 4 GiB - 1, a family of another database or one that was dropped,
    /// or [`WriteOptions`] that contradict each other. `NotSupported`: a value of 2 GiB or more; a database that is open
    /// for reading only. `Io`, `Indeterminate`: the log failed. `Busy`: see [`WriteOptions::no_slowdown`]. `Shutdown`.
    #[inline]
    fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(|batch, family| batch.put(family, key.as_ref(), value.as_ref()))
    }

    /// Sets `key` to `value` for the time `ttl`, which begins with the write. The write of a batch is [`Db::write`], that of a
    /// transaction its commit. The family must have a time to live itself; see [`crate::Builder::ttl`]. Part of a second counts as
    /// a whole second.
    ///
    /// The value is stored as if it had been written at another time, so RocksDB's `DBWithTTL` removes it at its end too. An
    /// open with another time to live of the family moves the end of all its values by the difference. A merge gives the key
    /// the time to live of the family, if that ends later.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # use std::time::Duration;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let day = Duration::from_secs(24 * 3600);
    /// let db = Db::builder(dir.path().join("db")).ttl(30 * day).open()?;
    /// db.put("user", "a month")?;
    /// db.put_with_ttl("visit", "a day", day)?;
    /// # assert!(db.get("visit")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Write::put`]. `InvalidArgument` also for a `ttl` of zero, in a family whose values never expire, and for a value that
    /// would end after January 2038. The same for a `ttl` that is shorter than that of the family by 13 years or more: the stored
    /// time would lie before May 2013.
    fn put_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
        self.add(|batch, family| batch.put_with_ttl(family, key.as_ref(), value.as_ref(), seconds))
    }

    /// Sets `key` to a row of named columns, in any order. The column with the empty name is what [`crate::Read::get`] answers.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put_entity("ada", &[("name", "Ada Lovelace"), ("born", "1815")])?;
    /// let columns = db.get_entity("ada")?.unwrap();
    /// assert_eq!(columns.get("born"), Some(&b"1815"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Write::put`]; `InvalidArgument` also when a name occurs twice, and below format level 7.8.
    fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        let columns: Vec<_> = columns.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        self.add(|batch, family| batch.put_entity(family, key.as_ref(), &columns))
    }

    /// Removes `key`, whether it exists or not.
    ///
    /// # Errors
    /// As [`Write::put`].
    #[inline]
    fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(|batch, family| batch.delete(family, key.as_ref()))
    }

    /// Removes `key`, which must have been put at most once since its last removal, and never merged. For any other key an
    /// older value may come back. The put and this deletion vanish in the first compaction where they meet. The tombstone of
    /// [`Write::delete`] stays until no older table can hold the key.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("job/17", "waiting")?;
    /// db.single_delete("job/17")?;
    /// assert!(db.get("job/17")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Write::put`].
    fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(|batch, family| batch.single_delete(family, key.as_ref()))
    }

    /// Adds a merge operand to `key`. The family's merge operator combines operands and value when the key is read or
    /// compacted.
    ///
    /// # Errors
    /// As [`Write::put`]; `InvalidArgument` also when the family has no merge operator.
    fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add(|batch, family| batch.merge(family, key.as_ref(), operand.as_ref()))
    }

    /// Removes every key in `begin..end`, `end` excluded, at the cost of one small record.
    ///
    /// # Errors
    /// As [`Write::put`]; `InvalidArgument` also when `begin` is after `end`. `NotSupported`: to a transaction or an indexed
    /// batch.
    fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.add(|batch, family| batch.delete_range(family, begin.as_ref(), end.as_ref()))
    }
}

/// Options of a write. Every option is off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a write gets them"]
pub struct WriteOptions {
    inner: engine::WriteOptions,
}

impl WriteOptions {
    /// The defaults: a returned write survives a killed process. It survives a power cut once a later sync or flush has
    /// returned.
    pub fn new() -> Self {
        Self::default()
    }

    /// [`WriteOptions::new`] with [`WriteOptions::sync`].
    pub fn synced() -> Self {
        Self::new().sync(true)
    }

    /// Returns only after the write has been synced to the device, so that it survives a power cut. Costs one `fsync`, which
    /// concurrent writers share.
    pub fn sync(mut self, yes: bool) -> Self {
        self.inner.sync = yes;
        self
    }

    /// Writes to the memtable only, not to the WAL. A crash loses the write unless its memtable was flushed before. Use
    /// it for loads that can be repeated. Together with [`WriteOptions::sync`] the write answers `InvalidArgument`.
    pub fn disable_wal(mut self, yes: bool) -> Self {
        self.inner.disable_wal = yes;
        self
    }

    /// Answers `Busy(Stalled)` instead of waiting for background work.
    pub fn no_slowdown(mut self, yes: bool) -> Self {
        self.inner.no_slowdown = yes;
        self
    }

    /// Answers `TimedOut` when the write would have to wait longer than `longest` for background work; nothing was written then.
    /// The limit covers waiting for compactions and flushes, also behind other writers that wait for them, and the delay of
    /// [`WriteOptions::low_priority`]. It does not cover the write itself: once it has begun, `write` and `fsync` take as long
    /// as the device needs. Nor does it cover the steps of a two-phase commit. With [`WriteOptions::no_slowdown`] a write does
    /// not wait at all, and answers `Busy(Stalled)`. A write with a limit shares no group with other writes, so many
    /// threads that write with limits are slower than without.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.inner.timeout = Some(longest);
        self
    }

    pub(crate) fn engine(self) -> engine::WriteOptions {
        self.inner
    }

    /// Lets other writes go first while compactions are behind.
    pub fn low_priority(mut self, yes: bool) -> Self {
        self.inner.low_priority = yes;
        self
    }
}

/// A [`Write`] with options: see [`Db::writing`]. It borrows the database.
///
/// ```
/// # use ashlardb::{Db, Read, Write, WriteBatch, WriteOptions};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// # let events = db.create_family("events")?;
/// let synced = db.writing(WriteOptions::synced());
/// synced.put("k", "v")?;                            // on the device when it returns
/// synced.family(&events).put("k", "v")?;
/// let batch = WriteBatch::new();
/// batch.delete("k")?;
/// synced.write(batch)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a writer does nothing until it is asked"]
pub struct Writer<'a> {
    db: &'a Db,
    family: &'a Arc<ashlar_engine::column_family::Family>,
    options: WriteOptions,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        db: &'a Db,
        family: &'a Arc<ashlar_engine::column_family::Family>,
        options: WriteOptions,
    ) -> Self {
        Writer { db, family, options }
    }

    /// The same writer for `family`. The first write answers `InvalidArgument` if the family belongs to another database.
    pub fn family(self, family: &'a Family) -> Writer<'a> {
        Writer { family: &family.inner, ..self }
    }

    /// [`Db::write`] with these options.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        let write = |batch: &mut EngineBatch| self.db.engine().write(batch, self.options.inner).map(drop);
        batch.borrow().written(self.db.default().database(), write)
    }
}

mod sealed {
    use super::{EngineBatch, FamilyId, Result};

    /// Only this crate implements the trait.
    pub trait Writable {
        /// Applies the operation that `op` adds to a batch.
        fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()>;
    }
}
pub(crate) use sealed::Writable;

impl Write for Db {}
impl Writable for Db {
    #[inline]
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        self.writing(WriteOptions::default()).add(op)
    }
}

impl Write for Family {}
impl Writable for Family {
    #[inline]
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        self.writing(WriteOptions::default()).add(op)
    }
}

impl Write for Writer<'_> {}
impl Writable for Writer<'_> {
    #[inline]
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        if self.family.database() != self.db.default().database() {
            return Err(Error::invalid("the family belongs to another open database")
                .hint("Take the family of the database that is written to"));
        }
        let (db, family) = (self.db.engine(), self.family.id());
        let written = with_batch(db, |batch| op(batch, family), |batch| db.write(batch, self.options.inner));
        written.map(drop).map_err(|e| {
            // The engine knows the family of an operation by its number.
            match self.family.is_dropped() && e.kind() == ErrorKind::InvalidArgument {
                true => Error::invalid(format!("column family {:?} was dropped", self.family.name())),
                false => e,
            }
        })
    }
}
