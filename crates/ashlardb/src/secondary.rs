//! A secondary: a view of a database that another process writes, which catches up on request.
//!
//! 1. A view is a read-only database of one moment. It has every table and blob file open, so the writer may delete their names.
//! 2. A catch-up opens a new view and puts it in the place of the old one. What was made from the old one, cursors and
//!    snapshots, goes on to show the old moment.
//! 3. A catch-up that fails leaves the view as it was.
//!
//! Nothing is written into the directory, and no lock is taken: any number of secondaries follow one writer, RocksDB or
//! AshlarDB.

use crate::{Builder, Db, Error, ErrorKind, Result, SeqNum};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A view of a database that another process writes. Made by [`Db::open_secondary`]; cheap to clone, and all clones catch up
/// together.
#[derive(Clone, Debug)]
pub struct Secondary {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    builder: Builder,
    view: RwLock<Db>,
    /// One catch-up at a time, so that a later moment is never replaced by an earlier one.
    catching_up: Mutex<()>,
}

impl Secondary {
    pub(crate) fn open(builder: Builder) -> Result<Secondary> {
        let builder = builder.read_only(true);
        let view = RwLock::new(builder.clone().open()?);
        Ok(Secondary { shared: Arc::new(Shared { builder, view, catching_up: Mutex::new(()) }) })
    }

    /// The view of the last catch-up, or of the open. It stays as it is; ask again after a catch-up.
    pub fn db(&self) -> Db {
        self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the newest writes visible to [`Secondary::db`]. Returns the sequence number of the newest one.
    ///
    /// # Errors
    /// Those of [`Db::open_read_only`]. `InvalidArgument` also when the newest write is older than before, because the directory
    /// holds another database now. The view stays as it was.
    /// # Cost
    /// That of an open: the MANIFEST and the needed WAL files are read, and the tables are opened. Until the old view is
    /// dropped, both take memory: give them [`Builder::resources`] to share one cap.
    pub fn catch_up(&self) -> Result<SeqNum> {
        let _alone = self.shared.catching_up.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = (self.db(), self.shared.builder.clone().open()?);
        if new.sequence() < old.sequence() {
            let what = format!(
                "the database has sequence number {}, and had {} before: it is another one, or lost writes that were not durable",
                new.sequence(),
                old.sequence()
            );
            return Err(Error::new(ErrorKind::InvalidArgument, what)
                .at_path(old.engine().path())
                .hint("Open a new secondary"));
        }
        let newest = new.sequence();
        *self.shared.view.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(newest)
    }
}
