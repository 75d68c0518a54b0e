//! Transactions in a history.
//!
//! The model has the undecided transactions as entries of a family [`PREPARED`]. The prepare puts the name with the operations. The
//! decision deletes it, and a commit does so in one write with the operations. So a crash must leave transactions as it leaves
//! writes: a prepare that was acknowledged is there, and no decision is there by half.
//!
//! After every open, the keys of what is undecided are locked.

use super::store::{Store, add, model_name};
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, FamilyId, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::{DEFAULT_FAMILY, Family};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_options::WriteOptions;
use ashlar_testkit::KeyValue;
use ashlar_testkit::ops::Change;
use ashlar_txn::two_phase::transaction_by_name;
use ashlar_txn::{Kind, Settings, Transaction};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The model's family of undecided transactions.
pub(super) const PREPARED: &str = "prepared transactions";

/// How many keys of a transaction are asked for their locks after an open.
const ASKED: usize = 3;

const CONFLICT: ErrorKind = ErrorKind::Busy(BusyKind::Conflict);

/// A family, by the model's name, and a key.
type Place = (String, Vec<u8>);

/// The undecided transactions of a database: names and operations.
pub(super) fn prepared(db: &Db) -> Vec<KeyValue> {
    let set = db.prepared();
    let all = set.names().filter_map(|name| Some((name.to_vec(), bytes_of(set.get(name)?))));
    all.collect()
}

fn bytes_of(operations: &BatchEncoder) -> Vec<u8> {
    operations.clone().finish(SeqNum::ZERO).to_vec()
}

fn begin(db: &Db, kind: Kind, write: WriteOptions) -> Result<Transaction, Error> {
    let family = db.family(DEFAULT_FAMILY).ok_or_else(Error::closed)?;
    let lock_timeout = Some(Duration::ZERO);
    Transaction::begin(db, &family, Settings { kind, lock_timeout, write, ..Settings::default() })
}

/// Other transactions are refused the keys of what is undecided.
///
/// # Errors
/// The key that is not locked.
pub(super) fn holds_its_locks(db: &Db) -> Result<(), String> {
    let set = db.prepared();
    if set.is_empty() {
        return Ok(());
    }
    let begun = begin(db, Kind::Pessimistic, WriteOptions::default());
    let mut other = begun.map_err(|e| format!("a transaction beside those that are prepared: {e}"))?;
    let families = db.families();
    for name in set.names() {
        let Some(operations) = set.get(name) else { continue };
        let keys =
            operations.reader().iter().flatten().filter_map(|op| Some((op.family()?, op.key()?.to_vec())));
        let alive = |id: FamilyId| families.iter().find(move |family| family.id() == id);
        let keys = keys.filter_map(|(id, key)| Some((alive(id)?, key)));
        for (family, key) in keys.take(ASKED) {
            let asked = other.write(family, false, |batch, id| batch.delete(id, &key));
            let kind = asked.err().map(|e| e.kind());
            if kind != Some(ErrorKind::TimedOut) {
                let (name, family) = (name.escape_ascii(), family.name());
                return Err(format!(
                    "key {key:02x?} of {family} is not locked by the prepared transaction {name}: {kind:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The changes that a transaction has taken.
struct Filled {
    batch: WriteBatch,
    modelled: Vec<Change>,
    /// An undecided transaction has locked one of the keys.
    guarded: bool,
}

impl Store {
    /// The keys that undecided transactions hold.
    fn locked(&self) -> BTreeSet<Place> {
        let undecided = self.model.now().entries(PREPARED);
        let names = undecided.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned());
        let changes = names.filter_map(|name| self.features.prepared.get(&name)).flatten();
        changes.map(|change| (change.family().to_owned(), change.key().to_vec())).collect()
    }

    /// The changes of families that are there.
    pub(super) fn live(&self, changes: &[Change]) -> Result<Vec<(Arc<Family>, Change, Change)>, String> {
        let mut live = Vec::new();
        for change in changes {
            let Some(generation) = self.promise.names.get(change.family()) else { continue };
            let family = self.db.family(change.family());
            let family = family.ok_or_else(|| format!("family {} is gone", change.family()))?;
            let modelled = change.in_family(model_name(change.family(), *generation));
            live.push((family, change.clone(), modelled));
        }
        Ok(live)
    }

    /// Gives a transaction the changes. A pessimistic one must be refused the keys that are locked. `None`: a call failed, and
    /// calls are made to fail.
    fn fill(
        &mut self,
        real: &mut Transaction,
        kind: Kind,
        changes: &[Change],
    ) -> Result<Option<Filled>, String> {
        let locked = self.locked();
        let (mut batch, mut modelled, mut guarded) = (WriteBatch::new(), Vec::new(), false);
        for (family, change, named) in self.live(changes)? {
            let taken = locked.contains(&(named.family().to_owned(), named.key().to_vec()));
            let asked = real.write(&family, false, |batch, id| add(batch, id, &change));
            let refused = taken && kind == Kind::Pessimistic;
            match asked {
                Ok(()) if refused => {
                    return Err(format!("the lock of {:02x?} was given twice", change.key()));
                }
                Err(e) if refused && e.kind() == ErrorKind::TimedOut => {
                    self.features.count("locks refused");
                    continue;
                }
                asked => {
                    if self.passed("a write of a transaction", asked)?.is_none() {
                        return Ok(None);
                    }
                }
            }
            guarded |= taken;
            add(&mut batch, family.id(), &change).map_err(|e| e.to_string())?;
            modelled.push(named);
        }
        Ok(Some(Filled { batch, modelled, guarded }))
    }

    /// A transaction that is begun and filled. `None`: there is nothing to write, or a call failed.
    fn begun(
        &mut self,
        kind: Kind,
        changes: &[Change],
        sync: bool,
    ) -> Result<Option<(Transaction, Filled)>, String> {
        if !self.may_write()? || self.doubt.is_some() {
            return Ok(None);
        }
        let begun = begin(&self.db, kind, self.setup.how_to_write(sync));
        let Some(mut real) = self.passed("begin", begun)? else { return Ok(None) };
        let filled = self.fill(&mut real, kind, changes)?;
        Ok(filled.filter(|filled| !filled.modelled.is_empty()).map(|filled| (real, filled)))
    }

    /// Begins and commits a transaction. One that is disturbed by a plain write must not commit, nor an optimistic one with a
    /// key that is guarded.
    pub(super) fn transact(
        &mut self,
        kind: Kind,
        changes: &[Change],
        sync: bool,
        disturbed: bool,
    ) -> Result<(), String> {
        let Some((mut real, filled)) = self.begun(kind, changes, sync)? else { return Ok(()) };
        let disturbed = disturbed && !self.faulty;
        let live = changes.iter().filter_map(|change| {
            let generation = self.promise.names.get(change.family())?;
            Some((change, model_name(change.family(), *generation)))
        });
        if let Some((first, named)) = { live }.next().filter(|_| disturbed) {
            let (family, key) = (first.family().to_owned(), first.key().to_vec());
            let is_in = filled.modelled.iter().any(|change| change.family() == named && change.key() == key);
            // A key that is deleted singly is put once.
            if !is_in || key.starts_with(b"once/") {
                return Ok(());
            }
            self.write(&[Change::Put { family, key, value: b"between".to_vec() }], false)?;
        }
        if disturbed || filled.guarded {
            return match real.commit().err().map(|e| e.kind()) {
                Some(CONFLICT) => {
                    self.features.count("conflicts");
                    Ok(())
                }
                Some(_) if self.faulty => Ok(()),
                kind => Err(format!("a commit that is in conflict: {kind:?}")),
            };
        }
        let number = self.model.apply(&filled.modelled);
        let done = real.commit();
        if self.logged("commit", number, sync, done)? {
            self.features.count("transactions committed");
        }
        Ok(())
    }

    /// Prepares a transaction, whose handle is dropped then.
    pub(super) fn prepare(&mut self, changes: &[Change], sync: bool) -> Result<(), String> {
        let Some((mut real, mut filled)) = self.begun(Kind::Pessimistic, changes, sync)? else {
            return Ok(());
        };
        let name = format!("t{}", self.features.prepared.len());
        let named = real.set_name(name.as_bytes());
        if self.passed("set_name", named)?.is_none() {
            return Ok(());
        }
        let (family, value) = (PREPARED.to_owned(), filled.batch.data().to_vec());
        self.features.prepared.insert(name.clone(), filled.modelled);
        let number = self.model.apply(&[Change::Put { family, key: name.into_bytes(), value }]);
        let done = real.prepare();
        if self.logged("prepare", number, sync, done)? {
            self.features.count("transactions prepared");
        }
        Ok(())
    }

    /// Commits or rolls back one of those that are prepared.
    pub(super) fn decide(&mut self, which: usize, commit: bool) -> Result<(), String> {
        if !self.may_write()? || self.doubt.is_some() {
            return Ok(());
        }
        let undecided = self.model.now().entries(PREPARED);
        let Some((key, _)) = undecided.get(which % undecided.len().max(1)) else { return Ok(()) };
        let name = String::from_utf8_lossy(key).into_owned();
        let found = transaction_by_name(&self.db, key);
        let Some(found) = self.passed("transaction_by_name", found)? else { return Ok(()) };
        let mut real = found.ok_or_else(|| format!("the prepared transaction {name} is gone"))?;
        let mut changes = vec![Change::Delete { family: PREPARED.to_owned(), key: key.clone() }];
        if commit {
            changes.extend(self.features.prepared.get(&name).into_iter().flatten().cloned());
        }
        let number = self.model.apply(&changes);
        let done = if commit { real.commit() } else { real.rollback() };
        // After an open the handle has default options: its decision waits for no device.
        if self.logged("a decision", number, false, done)? {
            self.features.count(if commit { "prepared ones committed" } else { "prepared ones rolled back" });
        }
        Ok(())
    }

    /// Whether a transaction was ever prepared.
    pub(super) fn has_prepared(&self) -> bool {
        !self.features.prepared.is_empty()
    }

    /// Whether an undecided transaction has changes of a family that was dropped.
    pub(super) fn has_orphans(&self) -> bool {
        let live = |name: &str| {
            self.promise.names.iter().any(|(known, generation)| model_name(known, *generation) == name)
        };
        self.locked().iter().any(|(family, _)| !live(family))
    }
}
