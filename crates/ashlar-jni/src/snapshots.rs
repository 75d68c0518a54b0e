//! Snapshots.

use crate::db::DbObject;
use crate::door::Result;
use crate::handles::{self, Object};
use ashlardb::Snapshot;

/// `Snapshot`.
#[derive(Clone, Debug)]
pub struct SnapshotObject(pub Snapshot);

impl Object for SnapshotObject {
    const NAME: &'static str = "Snapshot";
}

// Each function below is the body of the natives that the description names.

/// A snapshot of a database.
///
/// # Errors
/// Those of [`ashlardb::Db::snapshot`].
pub fn take(db: &DbObject) -> Result<i64> {
    Ok(handles::keep(SnapshotObject(db.database.db().snapshot()?))?)
}

/// Gives a snapshot back.
pub fn release(snapshot: i64) -> Result<()> {
    handles::close(snapshot);
    Ok(())
}

/// Its sequence number.
pub fn sequence(snapshot: &SnapshotObject) -> Result<i64> {
    Ok(i64::try_from(snapshot.0.sequence().get()).unwrap_or(i64::MAX))
}
