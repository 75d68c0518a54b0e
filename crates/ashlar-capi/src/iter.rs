//! Iterators, and values that stay in memory.

use crate::db::{DbObject, FamilyObject};
use crate::options::ReadObject;
use ashlar_compat::over::AnyIterator;
use ashlardb::{Result, View};

/// `rocksdb_iterator_t`.
#[derive(Debug)]
pub struct IterObject(pub(crate) AnyIterator);

/// `rocksdb_pinnableslice_t`.
#[derive(Debug)]
pub struct PinnedObject(pub(crate) View);

// Each function below is the body of the C function of its name.

/// Over the family `default`.
pub fn create_iterator(db: &DbObject, options: &ReadObject) -> IterObject {
    IterObject(db.0.iterator(None, &options.0).into())
}

/// Over a family.
pub fn create_iterator_cf(db: &DbObject, options: &ReadObject, family: &FamilyObject) -> IterObject {
    IterObject(db.0.iterator(Some(&family.family), &options.0).into())
}

/// Whether the iterator is on an entry.
#[inline]
pub fn iter_valid(iter: &IterObject) -> bool {
    iter.0.is_valid()
}

/// To the first entry.
pub fn iter_seek_to_first(iter: &mut IterObject) {
    iter.0.seek_to_first();
}

/// To the last entry.
pub fn iter_seek_to_last(iter: &mut IterObject) {
    iter.0.seek_to_last();
}

/// To the first entry at or after a key.
pub fn iter_seek(iter: &mut IterObject, key: &[u8]) {
    iter.0.seek(key);
}

/// To the last entry at or before a key.
pub fn iter_seek_for_prev(iter: &mut IterObject, key: &[u8]) {
    iter.0.seek_for_prev(key);
}

/// To the next entry.
#[inline]
pub fn iter_next(iter: &mut IterObject) {
    iter.0.next();
}

/// To the entry before.
#[inline]
pub fn iter_prev(iter: &mut IterObject) {
    iter.0.prev();
}

/// The key, valid until the iterator moves.
#[inline]
pub fn iter_key(iter: &IterObject) -> Option<&[u8]> {
    iter.0.entry().map(|(key, _)| key)
}

/// The value, valid until the iterator moves.
#[inline]
pub fn iter_value(iter: &IterObject) -> Option<&[u8]> {
    iter.0.entry().map(|(_, value)| value)
}

/// The timestamp of the key: keys here have none, so it is empty.
pub fn iter_timestamp(_: &IterObject) -> Option<&[u8]> {
    Some(&[])
}

/// The error that ended the iterator.
///
/// # Errors
/// That error.
pub fn iter_get_error(iter: &IterObject) -> Result<()> {
    iter.0.status()
}

/// Shows the present state from now on.
///
/// # Errors
/// Those of a new iterator.
pub fn iter_refresh(iter: &mut IterObject) -> Result<()> {
    iter.0.refresh(None)
}

/// The bytes, valid until the object is destroyed; none of no object.
pub fn pinnableslice_value(v: Option<&PinnedObject>) -> Option<&[u8]> {
    v.map(|v| &v.0[..])
}
