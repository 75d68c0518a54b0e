//! `ReadOptions`: snapshots, bounds, timestamps and filters of tables.

use crate::callbacks::TableFilterObject;
use crate::door::{Result, object_if};
use crate::handles::{self, Lent};
use crate::settings::{HasTexts, ReadObject, Shared, Shown};
use crate::slices::SliceObject;
use crate::snapshots::SnapshotObject;

// Each function below is the body of the natives that the description names.

/// Options of a read with two of them set.
pub fn new_read_options(verify: bool, fill: bool) -> Result<i64> {
    let object = ReadObject::default();
    object.change(|texts| {
        texts.set("verify_checksums", verify);
        texts.set("fill_cache", fill);
    });
    Ok(handles::keep(object)?)
}

/// A copy.
pub fn copy_read_options(from: &ReadObject) -> Result<i64> {
    let own = from.1.read();
    let (timestamp, start) = ((own.timestamp.0.clone(), None), (own.start.0.clone(), None));
    let shown = Shown { snapshot: own.snapshot, timestamp, start, ..Shown::default() };
    drop(own);
    Ok(handles::keep(ReadObject(Shared::new(from.0.read().clone()), Shared::new(shown)))?)
}

/// The snapshot that reads see; 0: the newest writes.
///
/// # Errors
/// Those of [`handles::get`].
pub fn set_snapshot(object: &ReadObject, handle: i64) -> Result<()> {
    let snapshot = object_if::<SnapshotObject>(handle)?;
    object.0.write().snapshot = snapshot.map(|snapshot| snapshot.0.clone());
    object.1.write().snapshot = handle;
    Ok(())
}

/// The handle of the snapshot that was set; 0: none.
pub fn snapshot_of_read(object: &ReadObject) -> Result<i64> {
    Ok(object.1.read().snapshot)
}

/// The handle of a bound, the same one until the bound changes; 0: none.
fn bound(shown: &mut Option<Lent>, bytes: Option<&Vec<u8>>) -> Result<i64> {
    let Some(bytes) = bytes else { return Ok(0) };
    if let Some(lent) = shown {
        return Ok(lent.handle());
    }
    Ok(shown.insert(Lent::new(SliceObject::of(bytes.clone()))?).handle())
}

/// The first key behind an iterator.
pub fn set_iterate_upper_bound(object: &ReadObject, slice: Option<&SliceObject>) -> Result<()> {
    object.0.write().upper = slice.map(SliceObject::bytes);
    object.1.write().upper = None;
    Ok(())
}

/// A handle of the first key behind an iterator; 0: none.
pub fn iterate_upper_bound(object: &ReadObject) -> Result<i64> {
    bound(&mut object.1.write().upper, object.0.read().upper.as_ref())
}

/// The first key of an iterator.
pub fn set_iterate_lower_bound(object: &ReadObject, slice: Option<&SliceObject>) -> Result<()> {
    object.0.write().lower = slice.map(SliceObject::bytes);
    object.1.write().lower = None;
    Ok(())
}

/// A handle of the first key of an iterator; 0: none.
pub fn iterate_lower_bound(object: &ReadObject) -> Result<i64> {
    bound(&mut object.1.write().lower, object.0.read().lower.as_ref())
}

/// Reads with a timestamp are refused.
fn refuse_timestamps(object: &ReadObject) {
    let shown = object.1.read();
    let part = match (&shown.timestamp.0, &shown.start.0) {
        (Some(_), _) => Some("timestamp"),
        (None, Some(_)) => Some("iter_start_ts"),
        (None, None) => None,
    };
    object.0.write().refuse(part);
}

/// A read at a timestamp is refused; 0: none.
pub fn set_timestamp(object: &ReadObject, slice: Option<&SliceObject>) -> Result<()> {
    object.1.write().timestamp = (slice.map(SliceObject::bytes), None);
    refuse_timestamps(object);
    Ok(())
}

/// A handle of the timestamp that was set; 0: none.
pub fn timestamp(object: &ReadObject) -> Result<i64> {
    let (bytes, lent) = &mut object.1.write().timestamp;
    bound(lent, bytes.as_ref())
}

/// A read from a timestamp on is refused; 0: none.
pub fn set_iter_start_ts(object: &ReadObject, slice: Option<&SliceObject>) -> Result<()> {
    object.1.write().start = (slice.map(SliceObject::bytes), None);
    refuse_timestamps(object);
    Ok(())
}

/// A handle of the timestamp that was set; 0: none.
pub fn iter_start_ts(object: &ReadObject) -> Result<i64> {
    let (bytes, lent) = &mut object.1.write().start;
    bound(lent, bytes.as_ref())
}

/// Which tables iterators read.
pub fn set_table_filter(object: &ReadObject, filter: &TableFilterObject) -> Result<()> {
    object.0.write().filter_tables(Some(filter.0.clone()));
    Ok(())
}
