//! A thread that catches up a secondary again and again.
//!
//! 1. Attempts are a period apart, from the end of one to the begin of the next.
//! 2. A failed attempt leaves the view as it was, and the next one comes as usual.
//! 3. The thread ends with the follower. An attempt under way is finished before.

use crate::{Error, ErrorKind, Result, Secondary, SeqNum};
use ashlar_base::panics::contained;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Catches up a [`Secondary`] until the follower is dropped. Made by [`Secondary::follow`].
#[derive(Debug)]
#[must_use = "a follower stops when it is dropped"]
pub struct Follower {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The follower is dropped.
    dropped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    last: Option<Result<SeqNum>>,
}

impl Follower {
    pub(crate) fn start(secondary: Secondary, period: Duration) -> Result<Follower> {
        if period.is_zero() {
            let e = Error::invalid("a follower without a pause between its attempts");
            return Err(e.hint("Give a period above zero; RocksDB's default is ten seconds"));
        }
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let followed = secondary.db();
        let thread = thread::Builder::new()
            .name("ashlar-follow".to_owned())
            .spawn(move || own.run(&secondary, period))
            .map_err(|e| Error::io("cannot start a thread to follow", followed.engine().path(), &e))?;
        Ok(Follower { shared, thread: Some(thread) })
    }

    /// What the last attempt answered: the newest sequence number that the files held, or why the view did not change.
    /// `None`: the first attempt has not ended.
    pub fn last_catch_up(&self) -> Option<Result<SeqNum>> {
        self.shared.lock().last.clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.dropped.notify_all();
        if let Some(thread) = self.thread.take()
            // A callback of an attempt may drop the follower.
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, secondary: &Secondary, period: Duration) {
        while !self.lock().stop {
            let done = contained(|| secondary.catch_up());
            let done = done.unwrap_or_else(|| Err(panicked()));
            let mut state = self.lock();
            state.last = Some(done);
            let waited = self.dropped.wait_timeout_while(state, period, |state| !state.stop);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

#[cold]
fn panicked() -> Error {
    Error::new(ErrorKind::Aborted, "a catch-up panicked").hint("A callback of the database panics in an open")
}
