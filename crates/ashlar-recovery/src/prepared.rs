//! The undecided transactions of an open database: prepared, and neither committed nor rolled back.
//!
//! ```text
//! each new WAL file:  LogData link   0C x  09 data of x 0A x   0C y  09 data of y 0A y   …   one batch, synced
//! ```
//! 1. The current WAL file has the data of every undecided transaction: the file in which the transaction was prepared has
//!    it, and each later file begins with a copy. So the decision stands in the same file as the data, and a WAL file is
//!    obsolete when its memtables are in tables, whatever it prepares. Copies, checkpoints and purges need no rule of their
//!    own.
//! 2. A copy is durable before the engine uses its file: the older file may be removed from then on.
//! 3. A rollback in front of each copy cancels the data of an older WAL file, if that is replayed too. RocksDB expects a
//!    name to be prepared once.
//! 4. Only the leader of the writers changes the set, in the order of the WAL.
//!
//! The price: an undecided transaction is written again with each new WAL file. RocksDB keeps the old WAL file instead.

use ashlar_base::error::BusyKind;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_format::write_batch::BatchEncoder;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// The data of all undecided transactions together, in bytes: each new WAL file has a copy.
pub const MAX_PREPARED_BYTES: usize = 1 << 30;

/// The longest name of a transaction, in bytes. (RocksDB: the same.)
pub const MAX_NAME_BYTES: usize = 512;

/// The undecided transactions by name. A clone shares their data.
#[derive(Clone, Debug, Default)]
pub struct PreparedSet {
    by_name: BTreeMap<Vec<u8>, Arc<Undecided>>,
    /// The size of their data together.
    bytes: usize,
    /// The database has had a prepared transaction since its open.
    used: bool,
}

/// The operations of an undecided transaction, with the charge for their memory.
#[derive(Debug)]
pub struct Undecided {
    data: BatchEncoder,
    _charge: MemoryCharge,
}

impl Undecided {
    /// `charge`: for as many bytes as `data` has.
    pub fn new(data: BatchEncoder, charge: MemoryCharge) -> Arc<Undecided> {
        Arc::new(Undecided { data, _charge: charge })
    }
}

impl Deref for Undecided {
    type Target = BatchEncoder;

    fn deref(&self) -> &BatchEncoder {
        &self.data
    }
}

impl PreparedSet {
    /// Whether no transaction is undecided.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether there was a transaction in the set since the open.
    pub fn was_used(&self) -> bool {
        self.used
    }

    /// The names, ascending.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.by_name.keys().map(Vec::as_slice)
    }

    /// The operations of the transaction of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Undecided>> {
        self.by_name.get(name)
    }

    /// Whether a transaction of this name with `bytes` of data may be added.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty, too long, or that of an undecided transaction. `Busy(Memory)`: the undecided
    /// transactions would have more than [`MAX_PREPARED_BYTES`].
    pub fn check(&self, name: &[u8], bytes: usize) -> Result<()> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            let what =
                format!("a transaction name of {} bytes; 1 to {MAX_NAME_BYTES} are possible", name.len());
            return Err(Error::invalid(what));
        }
        if self.by_name.contains_key(name) {
            let name = name.escape_ascii();
            return Err(Error::invalid(format!("a transaction '{name}' is prepared and not decided on"))
                .hint("Commit it or roll it back, or choose another name"));
        }
        let all = self.bytes;
        if all.saturating_add(bytes) > MAX_PREPARED_BYTES {
            let what = format!("{all} bytes of undecided transactions, and {bytes} more");
            return Err(Error::new(ErrorKind::Busy(BusyKind::Memory), what)
                .hint("Commit prepared transactions or roll them back, then prepare this one again"));
        }
        Ok(())
    }

    /// Adds a transaction, or replaces the one of its name.
    pub fn insert(&mut self, name: &[u8], data: Arc<Undecided>) {
        self.used = true;
        self.remove(name);
        self.bytes = self.bytes.saturating_add(data.byte_len());
        self.by_name.insert(name.to_vec(), data);
    }

    /// Removes a transaction, which is decided on.
    pub fn remove(&mut self, name: &[u8]) {
        if let Some(data) = self.by_name.remove(name) {
            self.bytes = self.bytes.saturating_sub(data.byte_len());
        }
    }

    /// Appends a copy of each transaction to the first batch of a WAL file.
    ///
    /// # Errors
    /// `InvalidArgument`: more operations than a batch may have.
    pub fn copy_to(&self, batch: &mut BatchEncoder) -> Result<()> {
        if planted(Bug::PreparedForgotten) {
            return Ok(());
        }
        for (name, data) in &self.by_name {
            batch.rollback(name);
            put_prepared(batch, name, data)?;
        }
        Ok(())
    }
}

/// Appends the operations of a transaction between the marks that prepare it.
///
/// # Errors
/// `InvalidArgument`: more operations than a batch may have.
pub fn put_prepared(batch: &mut BatchEncoder, name: &[u8], data: &BatchEncoder) -> Result<()> {
    batch.begin_prepare();
    batch.append_records(data)?;
    batch.end_prepare(name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{FamilyId, SeqNum};
    use ashlar_format::write_batch::{BatchOp, BatchReader};

    fn data(key: &[u8]) -> Arc<Undecided> {
        let mut data = BatchEncoder::new();
        data.put(FamilyId::DEFAULT, key, b"v").unwrap();
        Undecided::new(data, MemoryCharge::none())
    }

    #[test]
    fn names_are_checked() {
        let mut set = PreparedSet::default();
        set.insert(b"x", data(b"k"));
        let full = set.clone();
        let kind = |name: &[u8], bytes| full.check(name, bytes).map_err(|e| e.kind());
        assert_eq!(kind(b"y", 100), Ok(()));
        assert_eq!(kind(b"", 100), Err(ErrorKind::InvalidArgument));
        assert_eq!(kind(b"x", 100), Err(ErrorKind::InvalidArgument));
        assert_eq!(kind(&[b'n'; MAX_NAME_BYTES], 100), Ok(()));
        assert_eq!(kind(&[b'n'; MAX_NAME_BYTES + 1], 100), Err(ErrorKind::InvalidArgument));
        assert_eq!(kind(b"y", MAX_PREPARED_BYTES), Err(ErrorKind::Busy(BusyKind::Memory)));
        set.insert(b"x", data(b"k"));
        set.remove(b"x");
        set.remove(b"x");
        assert_eq!((set.check(b"y", MAX_PREPARED_BYTES).is_ok(), set.bytes), (true, 0));
    }

    #[test]
    fn a_copy_cancels_what_an_older_file_prepares() {
        let mut set = PreparedSet::default();
        set.insert(b"y", data(b"k"));
        set.insert(b"x", data(b"l"));
        set.remove(b"y");
        assert!(set.was_used() && !set.is_empty());
        let mut batch = BatchEncoder::new();
        set.copy_to(&mut batch).unwrap();
        let bytes = batch.finish(SeqNum::ZERO).to_vec();
        let ops: Vec<_> = BatchReader::new(&bytes).unwrap().iter().map(Result::unwrap).collect();
        let put = BatchOp::Put { family: FamilyId::DEFAULT, key: b"l", value: b"v" };
        let xid = &b"x"[..];
        assert_eq!(ops, [BatchOp::Rollback { xid }, BatchOp::BeginPrepare, put, BatchOp::EndPrepare { xid }]);
    }
}
