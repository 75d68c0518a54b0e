//! Events of background work, as values, and the listeners that receive them.
//!
//! Source: RocksDB `include/rocksdb/listener.h`, `logging/event_logger.h` (names of events and fields).

mod event;
mod info_log;
mod json;

pub use event::{BlobsEvent, CompactionEvent, Event, FileEvent, FlushEvent, IngestEvent, StallCondition};
pub use info_log::{InfoLogLevel, InfoLogOptions};

use std::fmt;
use std::sync::Arc;

/// Receives the events of a database. The engine calls it after each event is durable.
pub trait EventListener: Send + Sync {
    /// Handles one event. The thread that caused the event makes this call and waits for it, so it should be quick. No lock is
    /// held.
    ///
    /// For some events that thread leads the writers, and every other writer of the database waits until the call
    /// returns: [`Event::MemtableSealed`] always, [`Event::StallConditionsChanged`], [`Event::BackgroundError`] and
    /// [`Event::ErrorRecovered`] when a write causes them. All other events delay background work only, until writers
    /// have to wait for that work. Reads never wait for a listener. For longer work, hand the event to a thread of your
    /// own.
    ///
    /// The call may read the database. Inside it, calls that write, change, wait or close answer `InvalidArgument`, because
    /// their work may be waiting for this call. The same holds for other databases with the same `Resources` or a clone of
    /// the same [`Env`](ashlar_env::Env); an open to which none is given makes its own. If the call drops the last handle, another thread closes the database.
    ///
    /// A panic ends this call only. The info log notes it.
    fn on_event(&self, event: &Event);
}

/// The listeners of a database. Clones share them.
#[derive(Clone, Default)]
pub struct Listeners(Vec<Arc<dyn EventListener>>);

impl Listeners {
    /// Adds a listener, which is called after those added before it.
    pub fn add(&mut self, listener: Arc<dyn EventListener>) {
        self.0.push(listener);
    }

    /// The listeners, in the order of their calls.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn EventListener>> {
        self.0.iter()
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}
