//! Flink's compaction filter: it removes state whose time to live (TTL) is over.
//!
//! 1. A value begins with its timestamp: 8 bytes, big-endian, behind `offset` bytes. It is expired if `timestamp + ttl <= now`.
//! 2. The value of a list is its elements, each with a timestamp. The filter removes the expired elements at the head of the list, up
//!    to the first unexpired one. A list of which nothing stays is removed.
//! 3. Elements of one length are stepped over here. For others a filter of Java answers the offset of the first unexpired element.
//! 4. The program configures a factory once, before or after its first filters. A filter without a configuration keeps all.
//! 5. The clock is an object of Java. A filter asks it at its first entry, and again after the configured number of entries.
//! 6. A callback that throws, or answers an offset that cannot be, keeps the entry. The first such error of each filter is printed to
//!    the error output and logged.
//!
//! ```text
//! ttl 100, now 150:   list  [40 a] , [49 b] , [60 c] , [45 d]     becomes     [60 c] , [45 d]
//! ```

use crate::callbacks::{LoggerObject, contained};
use crate::classes::{Class, Method};
use crate::door::Result;
use crate::env::{Env, Global, Local, long, object};
use crate::handles::{self, Object};
use crate::parts::FilterObject;
use ashlardb::{CompactionFilter, Decision, Error};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Where the values of a family have their timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nowhere: the family keeps all.
    Disabled,
    /// At one place of each value. Merge operands are kept.
    Value,
    /// In each element of a list, which may be a value or a merge operand.
    List,
}

/// Where the elements of a list begin.
#[derive(Debug)]
enum Elements {
    /// Unknown: the first timestamp decides about the whole list.
    Whole,
    /// Each has so many bytes, the delimiter among them.
    Fixed(usize),
    /// A `ListElementFilter` of this `ListElementFilterFactory` knows.
    Java(Global),
}

/// `FlinkCompactionFilter.Config`.
#[derive(Debug)]
struct Config {
    kind: Kind,
    /// Bytes before the timestamp.
    offset: usize,
    /// Milliseconds.
    ttl: i64,
    /// Entries for which one answer of the clock serves.
    every: i64,
    elements: Elements,
}

/// `FlinkCompactionFilter.ConfigHolder`: the configuration that a factory and its filters share.
#[derive(Debug, Default)]
pub struct ConfigObject(Arc<OnceLock<Config>>);

impl Object for ConfigObject {
    const NAME: &'static str = "FlinkCompactionFilter.ConfigHolder";
}

/// A filter without a configuration.
pub fn new_config() -> Result<i64> {
    Ok(handles::keep(ConfigObject::default())?)
}

/// Configures a factory. `false`: it was configured before, and that configuration stays. The first pair is the state type and the
/// offset of the timestamp. The second is the TTL and the entries per question to the clock. The third is the length of an element
/// and the factory of filters for elements.
///
/// # Errors
/// `InvalidArgument`: there is no such state type, or the offset is negative.
pub fn configure(
    env: Env<'_>,
    config: &ConfigObject,
    (kind, offset): (i32, i32),
    (ttl, every): (i64, i64),
    (length, factory): (i32, Local<'_>),
) -> Result<bool> {
    let kind = match kind {
        0 => Kind::Disabled,
        1 => Kind::Value,
        2 => Kind::List,
        _ => return Err(Error::invalid(format!("there is no state type {kind}")).into()),
    };
    let offset = usize::try_from(offset)
        .map_err(|_| Error::invalid(format!("the offset of the timestamp is {offset}")))?;
    let elements = match usize::try_from(length) {
        Ok(length) if length > 0 => Elements::Fixed(length),
        _ if factory.is_null() => Elements::Whole,
        _ => Elements::Java(env.global(factory)?),
    };
    Ok(config.0.set(Config { kind, offset, ttl, every, elements }).is_ok())
}

/// A filter, which serves one compaction.
///
/// # Errors
/// `InvalidArgument`: the time provider is null.
pub fn new_filter(
    env: Env<'_>,
    config: &ConfigObject,
    clock: Local<'_>,
    logger: Option<&LoggerObject>,
) -> Result<i64> {
    if clock.is_null() {
        return Err(Error::invalid("timeProvider is null").into());
    }
    let filter = FlinkFilter {
        config: Arc::clone(&config.0),
        clock: env.global(clock)?,
        logger: logger.cloned(),
        now: AtomicI64::new(0),
        left: AtomicI64::new(0),
        elements: OnceLock::new(),
        has_failed: AtomicBool::new(false),
    };
    Ok(handles::keep(FilterObject(Arc::new(filter)))?)
}

#[derive(Debug)]
struct FlinkFilter {
    config: Arc<OnceLock<Config>>,
    clock: Global,
    logger: Option<LoggerObject>,
    /// The clock's last answer.
    now: AtomicI64,
    /// Entries for which that answer still serves.
    left: AtomicI64,
    /// The filter for the elements of lists, made at the first list.
    elements: OnceLock<Global>,
    has_failed: AtomicBool,
}

impl CompactionFilter for FlinkFilter {
    fn name(&self) -> &str {
        "FlinkCompactionFilter"
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        self.decided(key, value, false)
    }

    fn filter_merge_operand(&self, key: &[u8], operand: &[u8]) -> Decision {
        self.decided(key, operand, true)
    }
}

impl FlinkFilter {
    fn decided(&self, key: &[u8], value: &[u8], is_operand: bool) -> Decision {
        let Some(config) = self.config.get().filter(|config| config.kind != Kind::Disabled) else {
            return Decision::Keep;
        };
        let decision = self.decide(config, value, is_operand).unwrap_or_else(|why| {
            self.report(&why);
            Decision::Keep
        });
        self.debug(key, value, config, &decision);
        decision
    }

    /// The decision, or why a callback gave no answer that serves.
    fn decide(
        &self,
        config: &Config,
        value: &[u8],
        is_operand: bool,
    ) -> std::result::Result<Decision, String> {
        let now = self.now(config.every)?;
        let is_expired =
            timestamp(value, config.offset).is_some_and(|written| expired(written, config.ttl, now));
        if !is_expired || (is_operand && config.kind == Kind::Value) {
            return Ok(Decision::Keep);
        }
        let first = match (config.kind, &config.elements) {
            (Kind::List, Elements::Fixed(length)) => first_unexpired(value, *length, config, now),
            (Kind::List, Elements::Java(factory)) => self.ask(factory, value, config.ttl, now)?,
            _ => return Ok(Decision::Remove),
        };
        Ok(match value.get(first..) {
            _ if first == 0 => Decision::Keep,
            Some(rest) if !rest.is_empty() => Decision::Change(rest.to_vec()),
            _ => Decision::Remove,
        })
    }

    /// Milliseconds, by the clock of Java; one answer serves for `every` entries.
    fn now(&self, every: i64) -> std::result::Result<i64, String> {
        static PROVIDER: Class = Class::new("org/rocksdb/FlinkCompactionFilter$TimeProvider");
        static CURRENT: Method = Method::new("currentTimestamp", "()J");
        if self.left.load(Relaxed) > 0 {
            self.left.fetch_sub(1, Relaxed);
            return Ok(self.now.load(Relaxed));
        }
        let now = contained(|env| env.call_long(self.clock.local(env), CURRENT.of(env, &PROVIDER)?, &[]))?;
        self.now.store(now, Relaxed);
        self.left.store(every.saturating_sub(1), Relaxed);
        Ok(now)
    }

    /// The offset of the first unexpired element, by a filter of Java.
    fn ask(&self, factory: &Global, list: &[u8], ttl: i64, now: i64) -> std::result::Result<usize, String> {
        static FILTER: Class = Class::new("org/rocksdb/FlinkCompactionFilter$ListElementFilter");
        static NEXT: Method = Method::new("nextUnexpiredOffset", "([BJJ)I");
        let offset = contained(|env| {
            let filter = self.element_filter(env, factory)?;
            let given = [object(env.new_bytes(list)?), long(ttl), long(now)];
            env.call_int(filter, NEXT.of(env, &FILTER)?, &given)
        })?;
        usize::try_from(offset).map_err(|_| {
            format!("the list element filter answers the offset {offset} of {} bytes", list.len())
        })
    }

    fn element_filter<'a>(&'a self, env: Env<'a>, factory: &'a Global) -> Result<Local<'a>> {
        static FACTORY: Class = Class::new("org/rocksdb/FlinkCompactionFilter$ListElementFilterFactory");
        static CREATE: Method =
            Method::new("createListElementFilter", "()Lorg/rocksdb/FlinkCompactionFilter$ListElementFilter;");
        if let Some(made) = self.elements.get() {
            return Ok(made.local(env));
        }
        let made = env.call_object(factory.local(env), CREATE.of(env, &FACTORY)?, &[])?;
        if made.is_null() {
            return Err(Error::invalid("createListElementFilter() answers null").into());
        }
        let made = env.global(made)?;
        Ok(self.elements.get_or_init(|| made).local(env))
    }

    fn report(&self, why: &str) {
        if self.has_failed.swap(true, Relaxed) {
            return;
        }
        let line = format!("FlinkCompactionFilter keeps an entry: {why}");
        // RocksDB prints exceptions of callbacks there. A closed error output is no reason to fail.
        let _ = writeln!(std::io::stderr(), "{line}");
        if let Some(logger) = &self.logger {
            logger.log(LoggerObject::ERROR, &line);
        }
    }

    fn debug(&self, key: &[u8], value: &[u8], config: &Config, decision: &Decision) {
        let Some(logger) = self.logger.as_ref().filter(|logger| logger.takes(LoggerObject::DEBUG)) else {
            return;
        };
        let written = timestamp(value, config.offset);
        let (now, ttl) = (self.now.load(Relaxed), config.ttl);
        logger.log(
            LoggerObject::DEBUG,
            &format!("key {key:02x?}: written {written:?}, ttl {ttl}, now {now}: {decision:?}"),
        );
    }
}

/// The timestamp behind `offset` bytes; `None`: the value is too short for one.
fn timestamp(value: &[u8], offset: usize) -> Option<i64> {
    let bytes = value.get(offset..)?.first_chunk::<8>()?;
    Some(i64::from_be_bytes(*bytes))
}

fn expired(written: i64, ttl: i64, now: i64) -> bool {
    written.saturating_add(ttl) <= now
}

/// The offset of the first unexpired element of `length` bytes. A rest that is too short for a timestamp counts as unexpired.
fn first_unexpired(list: &[u8], length: usize, config: &Config, now: i64) -> usize {
    let is_expired =
        |element: &&[u8]| timestamp(element, config.offset).is_some_and(|at| expired(at, config.ttl, now));
    list.chunks(length).take_while(is_expired).map(<[u8]>::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(elements: &[i64]) -> Vec<u8> {
        let texts: Vec<Vec<u8>> = elements.iter().map(|at| [&at.to_be_bytes()[..], b"ab"].concat()).collect();
        texts.join(&b',')
    }

    fn config() -> Config {
        Config { kind: Kind::List, offset: 0, ttl: 100, every: 1, elements: Elements::Fixed(11) }
    }

    #[test]
    fn a_value_expires_when_its_time_is_over() {
        assert!(!expired(50, 100, 149) && expired(50, 100, 150));
        assert!(!expired(50, i64::MAX, i64::MAX - 1), "the sum does not wrap");
        assert!(expired(i64::MIN, 100, 0) && expired(-1, 0, -1));
    }

    #[test]
    fn a_timestamp_lies_behind_its_offset() {
        let value = [&[1, 2][..], &(-3_i64).to_be_bytes()].concat();
        assert_eq!(
            (timestamp(&value, 2), timestamp(&value, 3), timestamp(&value, 99)),
            (Some(-3), None, None)
        );
    }

    #[test]
    fn expired_elements_leave_the_head_of_a_list() {
        let first = |elements: &[i64]| first_unexpired(&list(elements), 11, &config(), 150);
        assert_eq!([first(&[60, 40]), first(&[40, 60]), first(&[40, 49, 60, 45])], [0, 11, 22]);
        assert_eq!(first(&[40, 50]), list(&[40, 50]).len());
        let cut = &list(&[40, 50])[..15];
        assert_eq!(first_unexpired(cut, 11, &config(), 150), 11, "a rest without a timestamp stays");
    }
}
