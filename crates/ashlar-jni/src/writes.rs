//! Writes of a database.
//!
//! A plain write of a database with pessimistic transactions takes the locks of its keys.

use crate::batch::BatchObject;
use crate::db::{DbObject, FamilyObject};
use crate::door::Result;
use crate::indexed::IndexedObject;
use crate::settings::WriteObject;
use ashlar_compat::transactions::plain;
use ashlardb::{Error, Write, WriteBatch, WriteOptions};

/// The engine's options.
#[inline]
fn options_of(options: Option<&WriteObject>) -> WriteOptions {
    options.map_or_else(WriteOptions::new, WriteObject::write)
}

macro_rules! writes {
    ($($name:ident($($arg:ident),*) = $call:ident;)*) => { $(
        #[doc = concat!("Writes to a family: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of [`Write::put`], and of [`ashlardb::Db::locking`].
        pub fn $name(
            db: &DbObject,
            options: Option<&WriteObject>,
            family: Option<&FamilyObject>,
            $($arg: &[u8]),*
        ) -> Result<()> {
            let (family, options) = (db.family(family)?, options_of(options));
            match &db.locking {
                None => family.writing(options).$call($($arg),*)?,
                Some(locking) => {
                    let db = db.database.db();
                    db.locking(plain(locking, options)).family(&family).$call($($arg),*)?;
                }
            }
            Ok(())
        }
    )* };
}
writes! {
    put(key, value) = put;
    merged(key, value) = merge;
    delete(key) = delete;
    single_delete(key) = single_delete;
}

/// Adds an operand.
///
/// # Errors
/// Those of [`Write::merge`]. `NotSupported`: the family has no merge operator.
pub fn merge(
    db: &DbObject,
    options: Option<&WriteObject>,
    family: Option<&FamilyObject>,
    key: &[u8],
    value: &[u8],
) -> Result<()> {
    if db.family(family)?.options().merge_operator.is_none() {
        return Err(Error::not_supported("Provide a merge_operator when opening DB").into());
    }
    merged(db, options, family, key, value)
}

/// Deletes a range of keys. As in RocksDB, the range has its first key and not its last, and takes no locks.
///
/// # Errors
/// Those of [`Write::delete_range`].
pub fn delete_range(
    db: &DbObject,
    options: Option<&WriteObject>,
    family: Option<&FamilyObject>,
    begin: &[u8],
    end: &[u8],
) -> Result<()> {
    Ok(db.family(family)?.writing(options_of(options)).delete_range(begin, end)?)
}

/// Writes a batch.
fn written(db: &DbObject, options: &WriteObject, batch: &WriteBatch) -> Result<()> {
    let own = db.database.db();
    // RocksDB leaves the batch as it is.
    match &db.locking {
        None => own.writing(options.write()).write(batch.clone())?,
        Some(locking) => own.locking(plain(locking, options.write())).write(batch.clone())?,
    }
    Ok(())
}

/// Writes a batch, which keeps its operations.
///
/// # Errors
/// Those of [`ashlardb::Db::write`].
pub fn write(db: &DbObject, options: &WriteObject, batch: &BatchObject) -> Result<()> {
    let copy = batch.lock().clone();
    written(db, options, &copy)
}

/// Writes a batch that is read back, which keeps its operations.
///
/// # Errors
/// Those of [`ashlardb::Db::write`].
pub fn write_indexed(db: &DbObject, options: &WriteObject, batch: &IndexedObject) -> Result<()> {
    let copy = batch.lock()?.batch().clone();
    written(db, options, &copy)
}
