//! Iterators.
//!
//! An iterator takes one call at a time; calls of several threads wait for each other. Off its entries, a call
//! that asks for a key answers an error.

use crate::db::{DbObject, FamilyObject};
use crate::door::{Fail, Result, Room};
use crate::env::{Env, Local};
use crate::handles::{self, Object};
use crate::settings::ReadObject;
use crate::snapshots::SnapshotObject;
use ashlar_compat::calls::ReadOptions;
use ashlar_compat::over::AnyIterator;
use ashlar_compat::turn::{Taken, Turn};
use ashlardb::Error;
use std::sync::Arc;

/// `RocksIterator`.
#[derive(Debug)]
pub struct IterObject(Turn<AnyIterator>);

impl Object for IterObject {
    const NAME: &'static str = "RocksIterator";
}

impl IterObject {
    /// Over these entries.
    pub fn new(iterator: AnyIterator) -> IterObject {
        IterObject(Turn::new(iterator))
    }

    /// For one call.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call on the iterator makes this call.
    #[inline]
    pub fn lock(&self) -> Result<Taken<'_, AnyIterator>> {
        Ok(self.0.take()?)
    }
}

#[cold]
pub(crate) fn off() -> Fail {
    Fail::Misuse(Error::invalid("the iterator is on no entry").hint("Ask isValid() first"))
}

// Each function below is the body of the natives that the description names.

/// Over a family.
pub fn over(db: &DbObject, family: Option<&FamilyObject>, options: Option<&ReadObject>) -> Result<i64> {
    let options = options.map_or_else(ReadOptions::default, |options| options.0.read().clone());
    let iterator = db.database.iterator(family.map(|family| &family.family), &options);
    Ok(handles::keep(IterObject::new(iterator.into()))?)
}

/// Over each of the families, at one moment.
///
/// # Errors
/// Those of [`ashlardb::Db::snapshot`].
pub fn over_each(db: &DbObject, families: &[Arc<FamilyObject>], options: &ReadObject) -> Result<Vec<i64>> {
    let mut options = options.0.read().clone();
    if !options.flag("tailing") {
        options = options.at_one_moment(&db.database)?;
    }
    let over = |family: &Arc<FamilyObject>| {
        let iterator = db.database.iterator(Some(&family.family), &options);
        Ok(handles::keep(IterObject::new(iterator.into()))?)
    };
    families.iter().map(over).collect()
}

/// Whether it is on an entry.
#[inline]
pub fn is_valid(iterator: &IterObject) -> Result<bool> {
    Ok(iterator.lock()?.is_valid())
}

macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[inline]
        pub fn $name(iterator: &IterObject) -> Result<()> {
            iterator.lock()?.$name();
            Ok(())
        }
    )* };
}
moves! {
    /// To the first entry.
    seek_to_first;
    /// To the last entry.
    seek_to_last;
    /// To the next entry.
    next;
    /// To the entry before.
    prev;
}

/// To the first entry at or after a key.
pub fn seek(iterator: &IterObject, key: &[u8]) -> Result<()> {
    iterator.lock()?.seek(key);
    Ok(())
}

/// To the last entry at or before a key.
pub fn seek_for_prev(iterator: &IterObject, key: &[u8]) -> Result<()> {
    iterator.lock()?.seek_for_prev(key);
    Ok(())
}

/// Shows the newest state from now on.
///
/// # Errors
/// Those of [`AnyIterator::refresh`].
pub fn refresh(iterator: &IterObject) -> Result<()> {
    refresh_at(iterator, None)
}

/// Shows the state of a snapshot from now on.
///
/// # Errors
/// Those of [`AnyIterator::refresh`].
pub fn refresh_at(iterator: &IterObject, snapshot: Option<&SnapshotObject>) -> Result<()> {
    Ok(iterator.lock()?.refresh(snapshot.map(|snapshot| snapshot.0.clone()))?)
}

/// The error that ended it.
///
/// # Errors
/// That error.
pub fn status(iterator: &IterObject) -> Result<()> {
    Ok(iterator.lock()?.status()?)
}

/// The key.
///
/// # Errors
/// `InvalidArgument`: it is on no entry.
pub fn key<'a>(env: Env<'a>, iterator: &IterObject) -> Result<Local<'a>> {
    env.new_bytes(iterator.lock()?.entry().ok_or_else(off)?.0)
}

/// The value.
///
/// # Errors
/// `InvalidArgument`: it is on no entry.
pub fn value<'a>(env: Env<'a>, iterator: &IterObject) -> Result<Local<'a>> {
    env.new_bytes(iterator.lock()?.entry().ok_or_else(off)?.1)
}

/// Copies the key into a place; answers its whole length.
///
/// # Errors
/// `InvalidArgument`: it is on no entry.
pub fn key_into(env: Env<'_>, iterator: &IterObject, into: &Room<'_>) -> Result<i32> {
    Ok(into.fill(env, iterator.lock()?.entry().ok_or_else(off)?.0))
}

/// Copies the value into a place; answers its whole length.
///
/// # Errors
/// `InvalidArgument`: it is on no entry.
pub fn value_into(env: Env<'_>, iterator: &IterObject, into: &Room<'_>) -> Result<i32> {
    Ok(into.fill(env, iterator.lock()?.entry().ok_or_else(off)?.1))
}
