//! Reads of a database.

use crate::classes::BYTES;
use crate::db::{DbObject, FamilyObject};
use crate::door::{Result, Room, array_of, object_if};
use crate::env::{Env, Local};
use crate::exception::status_object;
use crate::options::copied_to;
use crate::settings::ReadObject;
use ashlar_compat::calls::ReadOptions;
use ashlar_compat::many::{FamilyKey, Found};
use ashlar_compat::status::{self, Status, not_found};
use ashlardb::{Error, MayExist, Read, View};
use std::sync::Arc;

/// Calls `read` with the options, or with all defaults.
#[inline]
fn with_options<T>(options: Option<&ReadObject>, read: impl FnOnce(&ReadOptions) -> Result<T>) -> Result<T> {
    match options {
        Some(options) => read(&options.0.read().clone()),
        None => read(&ReadOptions::default()),
    }
}

// Each function below is the body of the natives that the description names.

/// The value of a key.
///
/// # Errors
/// Those of [`Read::get`].
pub fn get(
    db: &DbObject,
    options: Option<&ReadObject>,
    family: Option<&FamilyObject>,
    key: &[u8],
) -> Result<Option<View>> {
    let family = db.family(family)?;
    match options {
        None => Ok(family.get(key)?),
        Some(options) => Ok(options.0.read().of(&family)?.get(key)?),
    }
}

/// Copies the value of a key into a place. Answers the length of the whole value, or -1 without one.
///
/// # Errors
/// Those of [`Read::get`].
pub fn get_into(
    env: Env<'_>,
    db: &DbObject,
    options: Option<&ReadObject>,
    family: Option<&FamilyObject>,
    key: &[u8],
    value: &Room<'_>,
) -> Result<i32> {
    Ok(copied_to(env, value, get(db, options, family, key)?.as_deref()))
}

/// The families of keys: those of the handles, one for each key and 0 for the family `default`, or `default` for all.
///
/// # Errors
/// `InvalidArgument`: fewer handles than keys, or one that is not that of a family.
pub(crate) fn families_of(handles: Option<&[i64]>, keys: usize) -> Result<Vec<Option<Arc<FamilyObject>>>> {
    let Some(handles) = handles else { return Ok(vec![None; keys]) };
    if handles.len() < keys {
        return Err(Error::invalid("fewer families than keys").into());
    }
    handles.iter().take(keys).map(|handle| object_if(*handle)).collect()
}

/// Keys with their families.
pub(crate) fn with_families<'a>(
    families: &'a [Option<Arc<FamilyObject>>],
    keys: &'a [Vec<u8>],
) -> Vec<FamilyKey<'a>> {
    let family = |family: &'a Option<Arc<FamilyObject>>| family.as_ref().map(|family| &family.family);
    families.iter().map(family).zip(keys.iter().map(Vec::as_slice)).collect()
}

/// An array of values, with null for each key without one.
///
/// # Errors
/// The first error of a key.
pub(crate) fn values_or_null(env: Env<'_>, found: Vec<Found>) -> Result<Local<'_>> {
    let values = found.into_iter().collect::<ashlardb::Result<Vec<Option<View>>>>()?;
    array_of(env, BYTES.get(env)?, &values, |value| match value {
        Some(value) => env.new_bytes(value),
        None => Ok(Local::NULL),
    })
}

/// The values of keys: an array with null for each key without one.
///
/// # Errors
/// Those of [`Read::multi_get`].
pub fn multi_get<'a>(
    env: Env<'a>,
    db: &DbObject,
    options: Option<&ReadObject>,
    families: Option<&[i64]>,
    keys: &[Vec<u8>],
) -> Result<Local<'a>> {
    let families = families_of(families, keys.len())?;
    let keys = with_families(&families, keys);
    let found = with_options(options, |options| Ok(db.database.multi_get_each(options, &keys)?))?;
    values_or_null(env, found)
}

/// Copies the values of keys in direct buffers into direct buffers, with the whole length and a status of each.
///
/// # Errors
/// `InvalidArgument`: arrays of different lengths, or a buffer that is not direct. What a read of a key fails with is its status.
pub fn multi_get_direct(
    env: Env<'_>,
    db: &DbObject,
    options: &ReadObject,
    families: Option<&[i64]>,
    (keys, offsets, lens): (Local<'_>, &[i32], &[i32]),
    (buffers, sizes, statuses): (Local<'_>, Local<'_>, Local<'_>),
) -> Result<()> {
    let count = if keys.is_null() { 0 } else { env.array_len(keys) };
    let too_short = |array: Local<'_>| array.is_null() || env.array_len(array) < count;
    if [buffers, sizes, statuses].into_iter().any(too_short) || offsets.len() < count || lens.len() < count {
        return Err(Error::invalid("arrays of fewer elements than keys").into());
    }
    let mut all = Vec::with_capacity(count);
    for (at, (start, len)) in offsets.iter().zip(lens).take(count).enumerate() {
        let buffer = env.element(keys, at)?;
        all.push(crate::door::direct(env, buffer, *start, *len, "key")?.to_vec());
        env.forget(buffer);
    }
    // One family stands for all keys.
    let repeated =
        families.and_then(|handles| if let [one] = handles { Some(vec![*one; count]) } else { None });
    let families = families_of(repeated.as_deref().or(families), count)?;
    let given = with_families(&families, &all);
    let found = with_options(Some(options), |options| Ok(db.database.multi_get_each(options, &given)?))?;
    let mut lengths = vec![0; count];
    for (at, (length, value)) in lengths.iter_mut().zip(&found).enumerate() {
        let status = match value {
            Ok(Some(value)) => {
                let buffer = env.element(buffers, at)?;
                let capacity = if buffer.is_null() { None } else { env.direct(buffer) };
                let room = i32::try_from(capacity.map_or(0, |(_, capacity)| capacity)).unwrap_or(i32::MAX);
                *length = crate::door::room_direct(env, buffer, 0, room, "value")?.fill(env, value);
                env.forget(buffer);
                Status::OK
            }
            Ok(None) => Status { state: None, ..status::status(&not_found("")) },
            Err(e) => status::status(e),
        };
        let status = status_object(env, &status)?;
        env.set_element(statuses, at, status)?;
        env.forget(status);
    }
    env.set_ints(sizes, &lengths);
    Ok(())
}

/// Whether a key has a value.
///
/// # Errors
/// Those of [`Read::get`].
pub fn key_exists(
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&ReadObject>,
    key: &[u8],
) -> Result<bool> {
    Ok(get(db, options, family, key)?.is_some())
}

fn may_exist(
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&ReadObject>,
    key: &[u8],
) -> Result<MayExist> {
    with_options(options, |options| Ok(options.of(&*db.family(family)?)?.key_may_exist(key)?))
}

/// Whether a key may have a value, as far as memory says.
///
/// # Errors
/// Those of [`Read::key_may_exist`].
pub fn key_may_exist(
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&ReadObject>,
    key: &[u8],
) -> Result<bool> {
    Ok(may_exist(db, family, options, key)? != MayExist::No)
}

/// Java's numbers: the key has no value, may have one, or has one that is known.
const ABSENT: u8 = 0;
const PERHAPS: u8 = 1;
const PRESENT: u8 = 2;

/// The same with the value: an array of the number, and of the value if it is known.
///
/// # Errors
/// Those of [`Read::key_may_exist`].
pub fn key_may_exist_value<'a>(
    env: Env<'a>,
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&ReadObject>,
    key: &[u8],
) -> Result<Local<'a>> {
    let (number, value) = match may_exist(db, family, options, key)? {
        MayExist::No => (ABSENT, None),
        MayExist::Maybe => (PERHAPS, None),
        MayExist::Value(value) => (PRESENT, Some(value)),
    };
    let array = env.new_objects(BYTES.get(env)?, 2)?;
    env.set_element(array, 0, env.new_bytes(&[number])?)?;
    if let Some(value) = value {
        env.set_element(array, 1, env.new_bytes(&value)?)?;
    }
    Ok(array)
}

/// The same with the value in a buffer: an array of the number, and of the length of the whole value.
///
/// # Errors
/// Those of [`Read::key_may_exist`].
pub fn key_may_exist_into(
    env: Env<'_>,
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&ReadObject>,
    key: &[u8],
    value: &Room<'_>,
) -> Result<Vec<i32>> {
    Ok(match may_exist(db, family, options, key)? {
        MayExist::No => vec![ABSENT.into(), 0],
        MayExist::Maybe => vec![PERHAPS.into(), 0],
        MayExist::Value(found) => vec![PRESENT.into(), value.fill(env, &found)],
    })
}
