//! What happens in the background, told to listeners and to the info log.
//!
//! ```text
//! site -> Events::tell(event) -> every listener, in the order they were given
//!                             -> the log, as a line `EVENT_LOG_v1 {json}`
//! ```
//! 1. Events are told outside every lock, after what they tell of is durable or has failed.
//! 2. The log never fails the database: a line that cannot be written is counted and left out.
//!
//! Source: RocksDB `include/rocksdb/listener.h`, `logging/event_logger.h` (names of events and fields).

mod event;
mod info_log;
mod json;
mod lines;

pub use event::{CompactionEvent, Event, FileEvent, FlushEvent, StallCondition};
pub use info_log::{InfoLog, InfoLogLevel, InfoLogOptions};

use crate::identity::DatabaseId;
use ashlar_env::Env;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    /// databases that share the [`Env`]. The last handle may be dropped here: another thread then closes the database.
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
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}

/// Where events go.
pub(crate) struct Events {
    database: DatabaseId,
    listeners: Listeners,
    log: Option<InfoLog>,
    env: Env,
}

impl Events {
    pub(crate) fn new(env: &Env, listeners: Listeners, log: Option<InfoLog>, database: DatabaseId) -> Events {
        Events { database, listeners, log, env: env.clone() }
    }

    /// Writes a text to the log. Not under a lock.
    pub(crate) fn note(&self, text: &str) {
        if let Some(log) = self.log.as_ref().filter(|log| log.takes(InfoLogLevel::Info)) {
            log.write(&self.env, InfoLogLevel::Info, text);
        }
    }

    /// The log ends here: the directory may have another owner from now on.
    pub(crate) fn close(&self) {
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// Tells an event. Not under a lock.
    pub(crate) fn tell(&self, event: &Event) {
        debug_assert!(ashlar_sync::holds_no_lock(), "{} is told under a lock", event.name());
        for listener in &self.listeners.0 {
            let _inside = self.database.enter();
            // A listener only looks on: the work that it looks on at goes on without it.
            if catch_unwind(AssertUnwindSafe(|| listener.on_event(event))).is_err() {
                self.note(&format!("a listener panicked at the event {}", event.name()));
            }
        }
        let Some(log) = self.log.as_ref().filter(|log| log.takes(event.level())) else { return };
        let micros = self.env.clock.unix_micros();
        let text = match event {
            Event::BackgroundError { work, cause } => format!("{work} failed: {cause}"),
            _ => format!("EVENT_LOG_v1 {}", event.json(micros)),
        };
        log.write(&self.env, event.level(), &text);
    }
}
