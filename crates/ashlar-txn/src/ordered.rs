//! A map of keys in the order of a family.

use ashlar_base::Order;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// A key of an [`OrderedMap`]. It carries its order, because the order of a family is known at run time only.
#[derive(Clone)]
pub struct Key {
    order: Order,
    bytes: Arc<[u8]>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes.escape_ascii())
    }
}

impl Key {
    fn new(order: &Order, bytes: &[u8]) -> Key {
        Key { order: order.clone(), bytes: bytes.into() }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
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

/// Values by key, in one order.
#[derive(Clone)]
pub struct OrderedMap<V> {
    order: Order,
    map: BTreeMap<Key, V>,
}

impl<V> OrderedMap<V> {
    /// An empty map.
    pub fn new(order: Order) -> Self {
        OrderedMap { order, map: BTreeMap::new() }
    }

    /// The order of the keys.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// A key for this map.
    pub fn key(&self, bytes: &[u8]) -> Key {
        Key::new(&self.order, bytes)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the map has no key.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        self.map.get::<dyn Ordered>(&(&self.order, key))
    }

    /// The value of a key, for a change.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        self.map.get_mut::<dyn Ordered>(&(&self.order, key))
    }

    /// Sets the value of a key, and returns the one before.
    pub fn insert(&mut self, key: Key, value: V) -> Option<V> {
        self.map.insert(key, value)
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        self.map.remove::<dyn Ordered>(&(&self.order, key))
    }

    /// The first key in this range; the range has one end, so it is never out of order.
    pub fn first_from(&self, from: Bound<&[u8]>) -> Option<(&Key, &V)> {
        let from = from.map(|key| (&self.order, key));
        let from = from.as_ref().map(|key| key as &dyn Ordered);
        self.map.range::<dyn Ordered, _>((from, Bound::Unbounded)).next()
    }

    /// The last key in this range.
    pub fn last_to(&self, to: Bound<&[u8]>) -> Option<(&Key, &V)> {
        let to = to.map(|key| (&self.order, key));
        let to = to.as_ref().map(|key| key as &dyn Ordered);
        self.map.range::<dyn Ordered, _>((Bound::Unbounded, to)).next_back()
    }
}

impl<V> fmt::Debug for OrderedMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderedMap({} keys)", self.len())
    }
}
