//! Loggers of the caller: they get the lines of the info log that tell events.
//!
//! The file `LOG` has these lines too, and those that no event makes.

use ashlardb::{Env, Event, EventListener};
use std::fmt;
use std::sync::Arc;

/// Takes a line and RocksDB's number of its level.
type Sink = Arc<dyn Fn(u32, &str) + Send + Sync>;

/// A logger, which takes lines of a level or above. Clones are the same logger.
#[derive(Clone)]
pub struct Logger {
    least: u32,
    sink: Sink,
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("least", &self.least).finish_non_exhaustive()
    }
}

impl Logger {
    /// A logger whose lines are of level `least` or above, by RocksDB's numbers: 0 debug, 1 info, 2 warn, 3 error, 4 fatal,
    /// 5 header.
    pub fn new(least: u32, sink: impl Fn(u32, &str) + Send + Sync + 'static) -> Logger {
        Logger { least, sink: Arc::new(sink) }
    }

    /// Passes a line on, if its level is one that the logger takes.
    pub fn log(&self, level: u32, line: &str) {
        if level >= self.least {
            (self.sink)(level, line);
        }
    }

    /// A listener that passes the events of a database on.
    pub(crate) fn listener(&self, env: &Env) -> Arc<dyn EventListener> {
        Arc::new(Telling { logger: self.clone(), env: env.clone() })
    }
}

/// A logger of one database, whose clock stamps the lines.
struct Telling {
    logger: Logger,
    env: Env,
}

impl EventListener for Telling {
    fn on_event(&self, event: &Event) {
        let level = event.level() as u32;
        // A line that is not wanted is not made.
        if level >= self.logger.least {
            self.logger.log(level, &event.line(self.env.clock.unix_micros()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlardb::Error;
    use std::sync::Mutex;

    #[test]
    fn a_logger_takes_lines_of_its_level_and_above() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&lines);
        let logger = Logger::new(3, move |level, line| into.lock().unwrap().push((level, line.to_owned())));
        let listener = logger.listener(&Env::mem());
        listener.on_event(&Event::ErrorRecovered);
        listener.on_event(&Event::BackgroundError { work: "flush", cause: Error::invalid("no room") });
        let said = (3, "flush failed: Invalid argument: no room".to_owned());
        assert_eq!(*lines.lock().unwrap(), [said]);
        let all = Logger::new(0, |level, line| assert!(level == 1 && line.starts_with("EVENT_LOG_v1 {")));
        all.listener(&Env::mem()).on_event(&Event::ErrorRecovered);
    }
}
