//! The pending changes of a batch, by family and key, in the order of the family.
//!
//! 1. A key has one change: what all its operations so far amount to. A change either decides the value of the key by
//!    itself, or applies merge operands to what the database has.
//! 2. A scan keeps the map as it was when the scan was made. The next change then copies the map, once per scan; values
//!    and keys are shared.
//! 3. A change can be taken back: each returns what it replaced.
//! 4. Where every operation is kept, a change also has the operations of its key that no read needs. They, the base and the
//!    operands are all operations on the key, oldest first.

use crate::merged::{Below, Changes, MergedIter};
use crate::ordered::{Key, OrderedMap};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Order, Result};
use ashlar_engine::column_family::Family;
use ashlar_format::entity::{ColumnValue, Entity};
use ashlar_format::write_batch::BatchOp;
use ashlar_options::ReadOptions;
use ashlar_read::iter::{DbIter, KeyBounds};
use ashlar_read::merge::Merger;
use ashlar_tree::columns::Columns;
use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// What the operands of a change apply to; without operands, the change itself.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    /// What the database has.
    Database,
    /// No value: the key was deleted; `single`: by a single deletion.
    Nothing { single: bool },
    /// This value.
    Value(Arc<[u8]>),
    /// These columns.
    Row(Arc<Columns>),
}

/// One operation of a batch on a key. Copies share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// The key gets this value.
    Put(Arc<[u8]>),
    /// The key gets these columns.
    Entity(Arc<Columns>),
    /// This merge operand is added.
    Merge(Arc<[u8]>),
    /// The key is deleted.
    Delete,
    /// The key, which was put once, is deleted.
    SingleDelete,
}

/// What the operations of a batch on one key amount to.
#[derive(Clone, Debug)]
pub struct Change {
    base: Base,
    /// Oldest first.
    operands: Vec<Arc<[u8]>>,
    /// The operations before the base, oldest first, if every operation is kept and there are some.
    older: Option<Arc<Vec<Operation>>>,
}

impl Change {
    fn of(base: Base) -> Change {
        Change { base, operands: Vec::new(), older: None }
    }

    /// The operations that reads need, oldest first.
    fn needed(&self) -> impl DoubleEndedIterator<Item = Operation> + '_ {
        let base = match &self.base {
            Base::Database => None,
            Base::Nothing { single: false } => Some(Operation::Delete),
            Base::Nothing { single: true } => Some(Operation::SingleDelete),
            Base::Value(value) => Some(Operation::Put(Arc::clone(value))),
            Base::Row(row) => Some(Operation::Entity(Arc::clone(row))),
        };
        base.into_iter().chain(self.operands.iter().map(|operand| Operation::Merge(Arc::clone(operand))))
    }

    /// The operations on the key, newest first: all that are kept, or those that reads need.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let older = self.older.iter().flat_map(|older| older.iter().rev().cloned());
        self.needed().rev().chain(older).collect()
    }

    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    pub(crate) fn operands(&self) -> &[Arc<[u8]>] {
        &self.operands
    }

    /// Whether the value of the key depends on what the database has.
    pub(crate) fn needs_database(&self) -> bool {
        matches!(self.base, Base::Database)
    }

    /// The value of `key` after the change; `below` is the value in the database, asked for only if the change needs it.
    ///
    /// # Errors
    /// Those of the merge operator.
    pub(crate) fn value<'a>(
        &'a self,
        family: &Family,
        key: &[u8],
        below: Option<&'a [u8]>,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let base = match &self.base {
            Base::Database => below,
            Base::Nothing { .. } => None,
            Base::Value(value) => Some(&**value),
            Base::Row(row) => Some(row.default_column().unwrap_or_default()),
        };
        if self.operands.is_empty() {
            return Ok(base.map(Cow::Borrowed));
        }
        self.fold(family, key, base).map(|value| Some(Cow::Owned(value)))
    }

    /// The columns of `key` after the change; `below` are those in the database.
    ///
    /// # Errors
    /// As [`Change::value`].
    pub(crate) fn columns(
        &self,
        family: &Family,
        key: &[u8],
        below: Option<Columns>,
    ) -> Result<Option<Columns>> {
        let mut columns = match &self.base {
            Base::Database => below,
            Base::Nothing { .. } => None,
            Base::Value(value) => Some(Columns::of_value(value)),
            Base::Row(row) => Some(Columns::clone(row)),
        };
        if !self.operands.is_empty() {
            let base = columns.as_ref().map(|columns| columns.default_column().unwrap_or_default());
            let value = self.fold(family, key, base)?;
            columns.get_or_insert_with(|| Columns::new(Vec::new())).set_default(&value);
        }
        Ok(columns)
    }

    fn fold(&self, family: &Family, key: &[u8], base: Option<&[u8]>) -> Result<Vec<u8>> {
        merger(family).fold(key, base, self.operands.iter().map(|operand| &**operand))
    }
}

/// The merge operator of a family, with its name for messages.
pub(crate) fn merger(family: &Family) -> Merger {
    Merger::new(family.name(), family.options().merge_operator.clone())
}

/// What a change replaced.
pub(crate) enum Undo {
    /// The key had this change before, or none. Its older operations are in the change that replaced it.
    Set(Key, Option<Change>),
    /// An operand was added behind others.
    Operand(Key),
}

/// The pending changes of one family.
#[derive(Clone)]
pub(crate) struct FamilyChanges {
    pub(crate) family: Arc<Family>,
    map: Arc<OrderedMap<Change>>,
    /// Every operation is kept.
    keeps_all: bool,
}

impl FamilyChanges {
    pub(crate) fn new(family: &Arc<Family>, keeps_all: bool) -> FamilyChanges {
        let map = Arc::new(OrderedMap::new(family.options().order.clone()));
        FamilyChanges { family: Arc::clone(family), map, keeps_all }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Change> {
        self.map.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// The changes as they are at this moment.
    pub(crate) fn view(&self) -> View {
        View { changes: self.clone() }
    }

    /// Adds an operation on one key. Returns what it replaced; `None` for an operation that changes no single key.
    ///
    /// # Errors
    /// `Corruption`: an entity does not decode.
    pub(crate) fn apply(&mut self, op: &BatchOp<'_>) -> Result<Option<Undo>> {
        Ok(match *op {
            BatchOp::Put { key, value, .. } | BatchOp::TimedPut { key, value, .. } => {
                Some(self.set(key, Base::Value(value.into())))
            }
            BatchOp::Entity { key, entity, .. } => Some(self.set(key, Base::Row(row(key, entity)?))),
            BatchOp::Delete { key, .. } => Some(self.set(key, Base::Nothing { single: false })),
            BatchOp::SingleDelete { key, .. } => Some(self.set(key, Base::Nothing { single: true })),
            BatchOp::Merge { key, value, .. } => Some(self.merge(key, value)),
            _ => None,
        })
    }

    fn set(&mut self, key: &[u8], base: Base) -> Undo {
        let (key, map) = (self.map.key(key), Arc::make_mut(&mut self.map));
        if self.keeps_all
            && let Some(change) = map.get_mut(key.bytes())
        {
            let mut before = std::mem::replace(change, Change::of(base));
            let mut older = before.older.take().unwrap_or_default();
            Arc::make_mut(&mut older).extend(before.needed());
            change.older = Some(older);
            return Undo::Set(key, Some(before));
        }
        let before = map.insert(key.clone(), Change::of(base));
        Undo::Set(key, before)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Undo {
        let (key, map) = (self.map.key(key), Arc::make_mut(&mut self.map));
        if let Some(change) = map.get_mut(key.bytes()) {
            if planted(Bug::MergeBelowADeletion) && matches!(change.base, Base::Nothing { .. }) {
                change.base = Base::Database;
            }
            change.operands.push(operand.into());
            return Undo::Operand(key);
        }
        let first = Change { operands: vec![operand.into()], ..Change::of(Base::Database) };
        map.insert(key.clone(), first);
        Undo::Set(key, None)
    }

    /// Takes a change back. Changes are taken back in the reverse of their order.
    pub(crate) fn undo(&mut self, undo: Undo) {
        let map = Arc::make_mut(&mut self.map);
        match undo {
            Undo::Set(key, Some(mut before)) => {
                if let Some(change) = map.get_mut(key.bytes()) {
                    if let Some(mut older) = change.older.take() {
                        let left = older.len().saturating_sub(before.needed().count());
                        Arc::make_mut(&mut older).truncate(left);
                        before.older = Some(older);
                    }
                    *change = before;
                }
            }
            Undo::Set(key, None) => drop(map.remove(key.bytes())),
            Undo::Operand(key) => {
                if let Some(change) = map.get_mut(key.bytes()) {
                    change.operands.pop();
                }
            }
        }
    }
}

fn row(key: &[u8], entity: &[u8]) -> Result<Arc<Columns>> {
    let entity = Entity::decode(entity).map_err(|e| e.into_error())?;
    let columns = entity.columns().iter().map(|column| match column.value {
        ColumnValue::Inline(value) => Ok((column.name.to_vec(), value.to_vec())),
        ColumnValue::Blob(_) => {
            Err(Error::corruption(format!("entity of key '{}' in a batch has a blob", key.escape_ascii())))
        }
    });
    columns.collect::<Result<_>>().map(|columns| Arc::new(Columns::new(columns)))
}

/// The pending changes of one family at one moment, for a scan.
#[derive(Clone)]
pub struct View {
    changes: FamilyChanges,
}

impl View {
    /// No changes of `family`.
    pub(crate) fn empty(family: &Arc<Family>) -> View {
        FamilyChanges::new(family, false).view()
    }

    /// The order of the keys.
    pub(crate) fn order(&self) -> &Order {
        self.changes.map.order()
    }

    /// The first change in this range of keys; the range has one end, so it is never out of order.
    pub(crate) fn first_from(&self, from: Bound<&[u8]>) -> Option<(Key, Change)> {
        self.changes.map.first_from(from).map(|(key, change)| (key.clone(), change.clone()))
    }

    /// The last change in this range of keys.
    pub(crate) fn last_to(&self, to: Bound<&[u8]>) -> Option<(Key, Change)> {
        self.changes.map.last_to(to).map(|(key, change)| (key.clone(), change.clone()))
    }

    /// The columns of `key` after `change`; `below` are those in the database.
    ///
    /// # Errors
    /// Those of the merge operator.
    pub(crate) fn columns(
        &self,
        key: &Key,
        change: &Change,
        below: Option<Columns>,
    ) -> Result<Option<Columns>> {
        change.columns(&self.changes.family, key.bytes(), below)
    }
}

impl Changes for View {
    type Change = Change;

    fn order(&self) -> &Order {
        self.order()
    }

    fn first_from(&self, from: Bound<&[u8]>) -> Result<Option<(Key, Change)>> {
        Ok(self.first_from(from))
    }

    fn last_to(&self, to: Bound<&[u8]>) -> Result<Option<(Key, Change)>> {
        Ok(self.last_to(to))
    }

    fn value<'a>(
        &self,
        key: &Key,
        change: &'a Change,
        below: Option<&'a [u8]>,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        change.value(&self.changes.family, key.bytes(), below)
    }
}

impl Below for DbIter {
    fn first(&mut self) -> Result<()> {
        self.first()
    }

    fn last(&mut self) -> Result<()> {
        self.last()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.seek(key)
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.seek_for_prev(key)
    }

    fn next(&mut self) -> Result<()> {
        self.next()
    }

    fn prev(&mut self) -> Result<()> {
        self.prev()
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.entry()
    }

    fn key(&self) -> Option<&[u8]> {
        self.key()
    }
}

/// A cursor over the keys of a family of a database, with the pending changes of a batch over them.
pub type ChangedIter = MergedIter<DbIter, View>;

impl ChangedIter {
    /// Another cursor over the same state, off the end.
    ///
    /// # Errors
    /// As [`DbIter::beside`].
    pub fn beside(&self, bounds: KeyBounds, options: ReadOptions) -> Result<ChangedIter> {
        let below = self.below().beside(bounds.clone(), options)?;
        Ok(MergedIter::new(below, self.changes().clone(), bounds))
    }

    /// The columns of the shown entry; a plain value is one column with the empty name. `None` off the end.
    ///
    /// # Errors
    /// As [`DbIter::columns`].
    pub fn columns(&self) -> Result<Option<Columns>> {
        match self.shown_change() {
            Some((key, change, over)) => {
                let below = if over && change.needs_database() { self.below().columns()? } else { None };
                self.changes().columns(key, change, below)
            }
            None if self.key().is_some() => self.below().columns(),
            None => Ok(None),
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} changes of {:?})", self.changes.map.len(), self.changes.family)
    }
}
