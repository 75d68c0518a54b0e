//! The pending changes of a batch, by family and key, in the order of the family.
//!
//! 1. A key has one change: what all its operations so far amount to. A change either decides the value of the key by
//!    itself, or applies merge operands to what the database has.
//! 2. A scan keeps the map as it was when the scan was made. The next change then copies the map, once per scan; values
//!    and keys are shared.
//! 3. A change can be taken back: each returns what it replaced.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Order, Result};
use ashlar_engine::column_family::Family;
use ashlar_format::entity::{ColumnValue, Entity};
use ashlar_format::write_batch::BatchOp;
use ashlar_read::merge::Merger;
use ashlar_tree::columns::Columns;
use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// A key of the map. It carries its order, because the order of a family is known at run time only.
#[derive(Clone)]
pub(crate) struct Key {
    order: Order,
    bytes: Arc<[u8]>,
}

impl Key {
    fn new(order: &Order, bytes: &[u8]) -> Key {
        Key { order: order.clone(), bytes: bytes.into() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A key that is stored, or one that is looked for.
trait Ordered {
    fn parts(&self) -> (&Order, &[u8]);
}

impl Ordered for Key {
    fn parts(&self) -> (&Order, &[u8]) {
        (&self.order, &self.bytes)
    }
}

impl Ordered for (&Order, &[u8]) {
    fn parts(&self) -> (&Order, &[u8]) {
        *self
    }
}

impl<'a> Borrow<dyn Ordered + 'a> for Key {
    fn borrow(&self) -> &(dyn Ordered + 'a) {
        self
    }
}

fn compare(a: &dyn Ordered, b: &dyn Ordered) -> Ordering {
    let ((order, a), (_, b)) = (a.parts(), b.parts());
    order.compare(a, b)
}

impl PartialEq for dyn Ordered + '_ {
    fn eq(&self, other: &Self) -> bool {
        compare(self, other).is_eq()
    }
}

impl Eq for dyn Ordered + '_ {}

impl PartialOrd for dyn Ordered + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Ordered + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        compare(self, other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}

/// What the operands of a change apply to; without operands, the change itself.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    /// What the database has.
    Database,
    /// No value: the key was deleted.
    Nothing,
    /// This value.
    Value(Arc<[u8]>),
    /// These columns.
    Row(Arc<Columns>),
}

/// What the operations of a batch on one key amount to.
#[derive(Clone, Debug)]
pub struct Change {
    base: Base,
    /// Oldest first.
    operands: Vec<Arc<[u8]>>,
}

impl Change {
    fn of(base: Base) -> Change {
        Change { base, operands: Vec::new() }
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
            Base::Nothing => None,
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
            Base::Nothing => None,
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

/// The changes of one family, in its order.
pub(crate) type Map = BTreeMap<Key, Change>;

/// What a change replaced.
pub(crate) enum Undo {
    /// The key had this change before, or none.
    Set(Key, Option<Change>),
    /// An operand was added behind others.
    Operand(Key),
}

/// The pending changes of one family.
#[derive(Clone)]
pub(crate) struct FamilyChanges {
    pub(crate) family: Arc<Family>,
    order: Order,
    map: Arc<Map>,
}

impl FamilyChanges {
    pub(crate) fn new(family: &Arc<Family>) -> FamilyChanges {
        FamilyChanges {
            family: Arc::clone(family),
            order: family.options().order.clone(),
            map: Arc::default(),
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Change> {
        self.map.get::<dyn Ordered>(&(&self.order, key))
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
            BatchOp::Put { key, value, .. } => Some(self.set(key, Base::Value(value.into()))),
            BatchOp::Entity { key, entity, .. } => Some(self.set(key, Base::Row(row(key, entity)?))),
            BatchOp::Delete { key, .. } | BatchOp::SingleDelete { key, .. } => {
                Some(self.set(key, Base::Nothing))
            }
            BatchOp::Merge { key, value, .. } => Some(self.merge(key, value)),
            _ => None,
        })
    }

    fn set(&mut self, key: &[u8], base: Base) -> Undo {
        let key = Key::new(&self.order, key);
        let before = Arc::make_mut(&mut self.map).insert(key.clone(), Change::of(base));
        Undo::Set(key, before)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Undo {
        let map = Arc::make_mut(&mut self.map);
        let key = Key::new(&self.order, key);
        if let Some(change) = map.get_mut(&key) {
            if planted(Bug::MergeBelowADeletion) && matches!(change.base, Base::Nothing) {
                change.base = Base::Database;
            }
            change.operands.push(operand.into());
            return Undo::Operand(key);
        }
        map.insert(key.clone(), Change { base: Base::Database, operands: vec![operand.into()] });
        Undo::Set(key, None)
    }

    /// Takes a change back. Changes are taken back in the reverse of their order.
    pub(crate) fn undo(&mut self, undo: Undo) {
        let map = Arc::make_mut(&mut self.map);
        match undo {
            Undo::Set(key, Some(before)) => drop(map.insert(key, before)),
            Undo::Set(key, None) => drop(map.remove(&key)),
            Undo::Operand(key) => {
                if let Some(change) = map.get_mut(&key) {
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
        FamilyChanges::new(family).view()
    }

    pub(crate) fn family(&self) -> &Family {
        &self.changes.family
    }

    pub(crate) fn order(&self) -> &Order {
        &self.changes.order
    }

    /// The first change in this range of keys; the range has one end, so it is never out of order.
    pub(crate) fn first_from(&self, from: Bound<&[u8]>) -> Option<(Key, Change)> {
        let order = &self.changes.order;
        let from = from.map(|key| (order, key));
        let from = from.as_ref().map(|key| key as &dyn Ordered);
        let found = self.changes.map.range::<dyn Ordered, _>((from, Bound::Unbounded)).next();
        found.map(|(key, change)| (key.clone(), change.clone()))
    }

    /// The last change in this range of keys.
    pub(crate) fn last_to(&self, to: Bound<&[u8]>) -> Option<(Key, Change)> {
        let order = &self.changes.order;
        let to = to.map(|key| (order, key));
        let to = to.as_ref().map(|key| key as &dyn Ordered);
        let found = self.changes.map.range::<dyn Ordered, _>((Bound::Unbounded, to)).next_back();
        found.map(|(key, change)| (key.clone(), change.clone()))
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} changes of {:?})", self.changes.map.len(), self.changes.family)
    }
}
