//! Reads of a database.

use crate::classes::BYTES;
use crate::db::{DbObject, FamilyObject};
use crate::door::{Result, Room, array_of};
use crate::env::{Env, Local};
use crate::exception::status_object;
use crate::handles;
use crate::options::copied_to;
use crate::settings::ReadObject;
use ashlar_compat::calls::ReadOptions;
use ashlar_compat::status::{self, Status, not_found};
use ashlardb::{MayExist, Read, View};
use std::collections::BTreeMap;

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

/// The values of keys, which are those of `families`, one for each key, or of the family `default`.
fn values(
    db: &DbObject,
    options: &ReadOptions,
    families: Option<&[i64]>,
    keys: &[Vec<u8>],
) -> Result<Vec<Option<View>>> {
    let Some(families) = families else {
        return Ok(options.of(&*db.family(None)?)?.multi_get(keys)?);
    };
    if families.len() < keys.len() {
        return Err(ashlardb::Error::invalid("fewer families than keys").into());
    }
    let mut places: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    families.iter().take(keys.len()).enumerate().for_each(|(at, of)| places.entry(*of).or_default().push(at));
    let mut options = options.clone();
    if places.len() > 1 && options.snapshot.is_none() {
        // All families at one moment.
        options.snapshot = Some(db.database.db().snapshot()?);
    }
    let mut found: Vec<Option<View>> = keys.iter().map(|_| None).collect();
    for (handle, places) in places {
        let family = handles::get_if::<FamilyObject>(handle)?;
        let family = db.family(family.as_deref())?;
        let of: Vec<&[u8]> = places.iter().filter_map(|at| keys.get(*at).map(Vec::as_slice)).collect();
        let values = options.of(&family)?.multi_get(of)?;
        for (at, value) in places.into_iter().zip(values) {
            if let Some(place) = found.get_mut(at) {
                *place = value;
            }
        }
    }
    Ok(found)
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
    let found = with_options(options, |options| values(db, options, families, keys))?;
    array_of(env, BYTES.get(env)?, &found, |value| match value {
        Some(value) => env.new_bytes(value),
        None => Ok(Local::NULL),
    })
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
        return Err(ashlardb::Error::invalid("arrays of fewer elements than keys").into());
    }
    let mut all = Vec::with_capacity(count);
    for (at, (start, len)) in offsets.iter().zip(lens).take(count).enumerate() {
        let buffer = env.element(keys, at)?;
        all.push(crate::door::direct(env, buffer, *start, *len, "key")?.to_vec());
        env.forget(buffer);
    }
    let found = with_options(Some(options), |options| values(db, options, families, &all));
    let mut lengths = vec![0; count];
    for (at, length) in lengths.iter_mut().enumerate() {
        let value = match &found {
            Ok(values) => Ok(values.get(at).and_then(Option::as_deref)),
            Err(crate::door::Fail::Error(e) | crate::door::Fail::Misuse(e)) => Err(status::status(e)),
            Err(crate::door::Fail::Thrown) => return Err(crate::door::Fail::Thrown),
        };
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
            Err(status) => status,
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
