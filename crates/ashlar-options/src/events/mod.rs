//! Events of background work, as values, and the listeners that receive them.
//!
//! Source: RocksDB `include/rocksdb/listener.h`, `logging/event_logger.h` (names of events and fields).

mod event;
mod info_log;
mod json;

pub use event::{CompactionEvent, Event, FileEvent, FlushEvent, StallCondition};
pub use info_log::{InfoLogLevel, InfoLogOptions};

use std::fmt;
use std::sync::Arc;

/// Is called when something happens in a database.
pub trait EventListener: Send + Sync {
    /// The thread that caused the event makes this call and waits for it, so it should be quick. No lock is held.
    ///
    /// Some events are told by a thread that leads the writers, and every other writer of the database waits with it until
    /// the call returns: [`Event::MemtableSealed`] always, [`Event::StallConditionsChanged`], [`Event::BackgroundError`] and
    /// [`Event::ErrorRecovered`] when a write causes them. All other events hold up background work alone, until writers
    /// have to wait for that work. Reads never wait for a listener. For longer work hand the event to a thread of your own.
    ///
    /// The call may read the database. Calls that write to it, change it, wait for it or close it are refused with
    /// `InvalidArgument`, because the work that they would wait for may be waiting for this call. The same holds for other
    /// databases that share the [`Env`](ashlar_env::Env). The last handle may be dropped here: another thread then closes the database.
    ///
    /// A panic in here ends this call only. It is noted in the info log.
    fn on_event(&self, event: &Event);
}

/// The listeners of a database. Clones share them.
#[derive(Clone, Default)]
pub struct Listeners(Vec<Arc<dyn EventListener>>);

impl Listeners {
    /// Adds one; it is called after those before it.
    pub fn add(&mut self, listener: Arc<dyn EventListener>) {
        self.0.push(listener);
    }

    /// In the order in which they are called.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn EventListener>> {
        self.0.iter()
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}
