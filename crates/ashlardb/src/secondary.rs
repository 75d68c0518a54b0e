//! A secondary: a view of a database that another process writes, which catches up on request or by a follower.
//!
//! 1. A view is a read-only database of one moment. It has every table and blob file open, so the writer may delete their names.
//! 2. A catch-up opens a new view and puts it in the place of the old one. What was made from the old one, cursors and
//!    snapshots, goes on to show the old moment.
//! 3. A catch-up that fails leaves the view as it was.
//! 4. The newest sequence number may go back: a flush of RocksDB leaves out what a later write has undone.
//!
//! Nothing is written into the directory, and no lock is taken: any number of secondaries follow one writer, RocksDB or
//! AshlarDB.

use crate::follower::Follower;
use crate::{Builder, Db, Error, Result, SeqNum};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// A view of a database that another process writes. Made by [`Db::open_secondary`]; cheap to clone, and all clones catch up
/// together.
#[derive(Clone, Debug)]
pub struct Secondary {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    builder: Builder,
    /// The database id in the IDENTITY file at the open; `None`: the file was missing, or could not be read.
    identity: Option<String>,
    view: RwLock<Db>,
    /// One catch-up at a time, so that a later moment is never replaced by an earlier one.
    catching_up: Mutex<()>,
}

impl Secondary {
    pub(crate) fn open(builder: Builder) -> Result<Secondary> {
        let builder = builder.read_only(true);
        let identity = builder.identity();
        let view = RwLock::new(builder.clone().open()?);
        let catching_up = Mutex::new(());
        Ok(Secondary { shared: Arc::new(Shared { builder, identity, view, catching_up }) })
    }

    /// The view of the last catch-up, or of the open. It stays as it is; ask again after a catch-up.
    pub fn db(&self) -> Db {
        self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Catches up on a thread of its own, at once and then after each `period`, until the follower is dropped. (RocksDB:
    /// `OpenAsFollower`, `follower_refresh_catchup_period_ms`.)
    ///
    /// # Errors
    /// `InvalidArgument`: `period` is zero. `Io`: no thread can be started. [`Follower::last_catch_up`] has the errors of the
    /// attempts.
    /// # Cost
    /// That of [`Secondary::catch_up`] for each attempt, also if nothing was written.
    pub fn follow(&self, period: Duration) -> Result<Follower> {
        Follower::start(self.clone(), period)
    }

    /// Makes the newest writes visible to [`Secondary::db`]. Returns the newest sequence number that the files hold.
    ///
    /// A family that the writer creates or drops during the call may be missing from the view, or still be in it. A dropped
    /// family is missing from later views, also if the builder names it.
    ///
    /// # Errors
    /// Those of [`Db::open_read_only`]. `InvalidArgument` also when the IDENTITY file of the directory is that of another
    /// database. The view stays as it was.
    /// # Cost
    /// That of an open: the MANIFEST and the needed WAL files are read, and the tables are opened. Until the old view is
    /// dropped, both take memory: give them [`Builder::resources`] to share one cap.
    pub fn catch_up(&self) -> Result<SeqNum> {
        let _alone = self.shared.catching_up.lock().unwrap_or_else(PoisonError::into_inner);
        let builder = &self.shared.builder;
        let (identity, new) = (builder.identity(), builder.clone().for_later_view().open()?);
        if identity.is_some() && self.shared.identity.is_some() && identity != self.shared.identity {
            let e = Error::invalid("another database is in the directory now: its IDENTITY is another");
            return Err(e.at_path(new.engine().path()).hint("Open a new secondary"));
        }
        let newest = new.sequence();
        *self.shared.view.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(newest)
    }
}
