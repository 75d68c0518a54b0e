//! The handle of a snapshot.

use crate::read::{ReadOptions, Readable};
use crate::{Family, Reader, Result, SnapshotPins};
use ashlar_base::SeqNum;
use std::sync::Arc;

/// The state of all families at one moment, read with the methods of [`crate::Read`]. Until its last clone is dropped,
/// compactions keep the versions that it shows, and the directory stays open and locked.
///
/// ```
/// # use ashlardb::{Db, Read, Write};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// let events = db.create_family("events")?;
/// events.put("k", "old")?;
/// let before = db.snapshot()?;
/// events.put("k", "new")?;
/// assert_eq!(before.family(&events).get("k")?.as_deref(), Some(&b"old"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) db: crate::Db,
    /// Shared by clones: the database counts them as one snapshot.
    pub(crate) inner: Arc<ashlar_read::snapshot::Snapshot>,
}

impl Snapshot {
    /// The snapshot's state of `family`. A family of another database is refused with `InvalidArgument` by the first read.
    pub fn family<'a>(&'a self, family: &'a Family) -> Reader<'a> {
        let (family, options) = (&family.inner, ReadOptions::default());
        Reader::new(Readable { db: &self.db, family, at: Some(&*self.inner), options, overlay: None })
    }

    /// The sequence number of the snapshot: it shows every write up to this one.
    pub fn sequence(&self) -> SeqNum {
        self.inner.seq()
    }

    /// The age of the snapshot, the number of changes since, and the approximate bytes of older versions that it keeps.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn pins(&self) -> Result<SnapshotPins> {
        self.db.engine().snapshot_pins(&self.inner)
    }
}
