//! Background events, reported to listeners and to the info log.
//!
//! ```text
//! site -> Events::tell(event) -> every listener, in the order they were given
//!                             -> the log, as a line `EVENT_LOG_v1 {json}`
//! ```
//! 1. An event is reported outside every lock, after the change it describes is durable or has failed.
//! 2. The log never fails the database: a line that cannot be written is counted and left out.
//!
//! Source: RocksDB `include/rocksdb/listener.h`, `logging/event_logger.h` (names of events and fields).

use crate::info_log::InfoLog;
use ashlar_base::panics::contained;
use ashlar_env::{DatabaseId, Env};
use ashlar_options::{Event, InfoLogLevel, Listeners};

/// The receivers of events.
pub struct Events {
    database: DatabaseId,
    listeners: Listeners,
    log: Option<InfoLog>,
    env: Env,
}

impl Events {
    /// The receivers of a database's events.
    pub fn new(env: &Env, listeners: Listeners, log: Option<InfoLog>, database: DatabaseId) -> Events {
        Events { database, listeners, log, env: env.clone() }
    }

    /// Writes a text to the log. Never called under a lock.
    pub fn note(&self, text: &str) {
        if let Some(log) = self.log.as_ref().filter(|log| log.takes(InfoLogLevel::Info)) {
            log.write(&self.env, InfoLogLevel::Info, text);
        }
    }

    /// Writes each text to the log as a line. Never called under a lock.
    pub fn note_lines(&self, texts: &[String]) {
        if let Some(log) = self.log.as_ref().filter(|log| log.takes(InfoLogLevel::Header)) {
            log.write_lines(&self.env, InfoLogLevel::Header, texts);
        }
    }

    /// Ends the log: another process may own the directory after this call.
    pub fn close(&self) {
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// Reports an event. Never called under a lock.
    pub fn tell(&self, event: &Event) {
        debug_assert!(ashlar_sync::holds_no_lock(), "{} is reported under a lock", event.name());
        for listener in self.listeners.iter() {
            let _inside = self.database.enter();
            // A listener that panics does not stop the work it listens to.
            if contained(|| listener.on_event(event)).is_none() {
                self.note(&format!("a listener panicked at the event {}", event.name()));
            }
        }
        let Some(log) = self.log.as_ref().filter(|log| log.takes(event.level())) else { return };
        log.write(&self.env, event.level(), &event.line(self.env.clock.unix_micros()));
    }
}
