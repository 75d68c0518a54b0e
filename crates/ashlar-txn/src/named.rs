//! Named and prepared transactions of one database: which handle has which, and what is left of those without a handle.
//!
//! 1. A name belongs to one transaction until that ends.
//! 2. A prepared transaction outlives its handle: the dropped handle leaves its locks here (*parked*), ranges included, and another
//!    handle can take them over. After an open, the undecided transactions of the WAL are parked, and their locks are taken before any
//!    other transaction begins: those of the keys that they write, as the WAL has no ranges.
//! 3. The data of a prepared transaction is in the engine (`PreparedSet`). Nothing here holds a handle of the database, so
//!    the last handle that is dropped closes it.
//! 4. The keys of prepared transactions are *guarded* from the prepare on: an optimistic transaction, which takes no locks,
//!    must not commit a change of them. They become guarded under the lead of the writers.
//!
//! Source: RocksDB `utilities/transactions/pessimistic_transaction_db.cc` (`Initialize`, `RegisterTransaction`).

use crate::locks::{LockKey, LockTable, Mode, RangeId, Request, TransactionId};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, Result, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::column_family::Family;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_options::WriteOptions;
use ashlar_recovery::MAX_NAME_BYTES;
use ashlar_sync::{Mutex, Rank};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A key that the transaction tracks.
pub(crate) struct Tracked {
    pub(crate) family: Arc<Family>,
    pub(crate) mode: Mode,
    /// A write after this is a conflict.
    pub(crate) since: Cell<SeqNum>,
    /// The family's count of replaced tables and memtables, from before `since`.
    pub(crate) installations: Cell<u64>,
    /// The transaction has read a value of the key from the database.
    pub(crate) present: Cell<bool>,
}

impl Tracked {
    pub(crate) fn new(family: &Arc<Family>, mode: Mode) -> Tracked {
        Tracked {
            family: Arc::clone(family),
            mode,
            since: Cell::new(SeqNum::MAX),
            installations: Cell::new(0),
            present: Cell::new(false),
        }
    }
}

/// The tracked keys of a transaction.
pub(crate) type TrackedKeys = HashMap<LockKey, Tracked>;

pub(crate) fn lock_key(family: FamilyId, user_key: &[u8]) -> LockKey {
    let mut bytes = Vec::with_capacity(4 + user_key.len());
    bytes.extend_from_slice(&family.0.to_le_bytes());
    bytes.extend_from_slice(user_key);
    bytes.into()
}

pub(crate) fn user_key(key: &LockKey) -> &[u8] {
    key.get(4..).unwrap_or_default()
}

/// What is left of a prepared transaction without a handle.
pub(crate) struct Parked {
    pub(crate) id: TransactionId,
    pub(crate) write: WriteOptions,
    pub(crate) tracked: TrackedKeys,
    pub(crate) ranges: Vec<RangeId>,
}

/// The transaction that has a name.
enum Holder {
    Handle,
    Parked(Parked),
}

#[derive(Default)]
struct Names {
    holders: BTreeMap<Vec<u8>, Holder>,
    /// The keys of prepared transactions, how they lock them, and how many do.
    guarded: HashMap<LockKey, (Mode, usize)>,
}

/// What the transactions of one open database share.
pub(crate) struct Shared {
    pub(crate) locks: Arc<LockTable>,
    names: Mutex<Names>,
}

/// Ends the waits for locks of a database that was closed: they answer `Shutdown`. Does nothing if the database is open.
pub fn end_waits(db: &Db) {
    // In a forked child a thread of the parent may hold the locks of the table.
    let is_closed = db.check_open().is_err_and(|e| e.kind() == Error::closed().kind());
    if let Some(shared) = db.attachment::<Arc<Shared>>().filter(|_| is_closed) {
        shared.locks.close();
    }
}

impl Shared {
    /// That of `db`, with the undecided transactions that the open found.
    ///
    /// # Errors
    /// `NotSupported`: another feature uses the place for it.
    pub(crate) fn of(db: &Db) -> Result<&Arc<Shared>> {
        db.attached(|| Arc::new(Shared::recovered(db)))
            .ok_or_else(|| Error::not_supported("transactions beside another feature of this handle"))
    }

    fn recovered(db: &Db) -> Shared {
        let locks = Arc::new(LockTable::new());
        let (mut names, prepared, families) = (Names::default(), db.prepared(), db.families());
        for (name, data) in prepared.names().filter_map(|name| Some((name, prepared.get(name)?))) {
            let id = locks.next_transaction();
            let tracked = lock_all(&locks, id, data, &families, db);
            names.guard(&tracked);
            let parked = Parked { id, write: WriteOptions::default(), tracked, ranges: Vec::new() };
            names.holders.insert(name.to_vec(), Holder::Parked(parked));
        }
        Shared { locks, names: Mutex::new(Rank::Leaf, names) }
    }

    /// Gives a name to a transaction of a handle.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty, too long, or belongs to another transaction.
    pub(crate) fn enter(&self, name: &[u8]) -> Result<()> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            let what =
                format!("a transaction name of {} bytes; 1 to {MAX_NAME_BYTES} are possible", name.len());
            return Err(Error::invalid(what));
        }
        let mut names = self.names.lock();
        if names.holders.contains_key(name) {
            let name = name.escape_ascii();
            return Err(Error::invalid(format!("another transaction has the name '{name}'"))
                .hint("Choose another name, or take the prepared transaction of this name and end it"));
        }
        names.holders.insert(name.to_vec(), Holder::Handle);
        Ok(())
    }

    /// The transaction of this name has ended.
    pub(crate) fn leave(&self, name: &[u8]) {
        self.names.lock().holders.remove(name);
    }

    /// Keeps what is left of a prepared transaction whose handle is dropped.
    pub(crate) fn park(&self, name: &[u8], parked: Parked) {
        self.names.lock().holders.insert(name.to_vec(), Holder::Parked(parked));
    }

    /// The parked transaction of this name, for a handle. `None`: no transaction has the name.
    ///
    /// # Errors
    /// `InvalidArgument`: a handle has the transaction.
    pub(crate) fn take(&self, name: &[u8]) -> Result<Option<Parked>> {
        let mut names = self.names.lock();
        let Some(holder) = names.holders.get_mut(name) else { return Ok(None) };
        match std::mem::replace(holder, Holder::Handle) {
            Holder::Parked(parked) => Ok(Some(parked)),
            Holder::Handle => {
                let what = format!("a handle has the transaction '{}'", name.escape_ascii());
                Err(Error::invalid(what).hint("Use that handle, or drop it first"))
            }
        }
    }

    /// The names of the parked transactions, ascending.
    pub(crate) fn parked(&self) -> Vec<Vec<u8>> {
        let names = self.names.lock();
        let parked = names.holders.iter().filter(|(_, holder)| matches!(holder, Holder::Parked(_)));
        parked.map(|(name, _)| name.clone()).collect()
    }

    /// Guards the keys of a transaction that has just been prepared.
    pub(crate) fn guard(&self, tracked: &TrackedKeys) {
        self.names.lock().guard(tracked);
    }

    /// Ends that.
    pub(crate) fn unguard(&self, tracked: &TrackedKeys) {
        let mut names = self.names.lock();
        for key in tracked.keys() {
            if let Some((_, count)) = names.guarded.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    names.guarded.remove(key);
                }
            }
        }
    }

    /// A key of `tracked` that a prepared transaction excludes.
    pub(crate) fn guarded<'k>(&self, tracked: &'k TrackedKeys) -> Option<(&'k LockKey, &'k Tracked)> {
        let names = self.names.lock();
        if names.guarded.is_empty() {
            return None;
        }
        let excludes = |key: &LockKey, own: Mode| {
            let theirs = names.guarded.get(key).map(|(mode, _)| *mode);
            theirs.is_some_and(|theirs| own.max(theirs) == Mode::Exclusive)
        };
        tracked.iter().find(|(key, tracked)| excludes(key, tracked.mode))
    }
}

impl Names {
    fn guard(&mut self, tracked: &TrackedKeys) {
        for (key, tracked) in tracked {
            let (mode, count) = self.guarded.entry(Arc::clone(key)).or_insert((tracked.mode, 0));
            (*mode, *count) = ((*mode).max(tracked.mode), *count + 1);
        }
    }
}

/// Locks all keys of a recovered transaction. Families that were dropped since have no keys. Nothing else holds locks yet,
/// except recovered transactions: of two with one key, which only RocksDB without locks leaves, the first has the lock.
fn lock_all(
    locks: &LockTable,
    id: TransactionId,
    data: &BatchEncoder,
    families: &[Arc<Family>],
    db: &Db,
) -> TrackedKeys {
    let mut tracked = TrackedKeys::new();
    if planted(Bug::PreparedUnlocked) {
        return tracked;
    }
    for op in data.reader().iter().flatten() {
        let (Some(id_of), Some(bytes)) = (op.family(), op.key()) else { continue };
        let Some(family) = families.iter().find(|family| family.id() == id_of) else { continue };
        let key = lock_key(family.id(), bytes);
        let request = Request {
            transaction: id,
            key: &key,
            shown: (bytes, family.name()),
            mode: Mode::Exclusive,
            timeout: Some(Duration::ZERO),
            detect: false,
        };
        if locks.acquire(&request, db.env()).is_ok() {
            tracked.insert(key, Tracked::new(family, Mode::Exclusive));
        }
    }
    tracked
}
