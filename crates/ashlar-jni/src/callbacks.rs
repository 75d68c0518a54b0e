//! Objects of Java that the engine calls: comparators, loggers, compaction filter factories.
//!
//! 1. The library keeps a reference to the Java object as long as a database or an options object uses it, also after `close()`.
//! 2. A call may come on any thread. A thread of the engine is attached to the JVM first, and stays so.
//! 3. An exception of the Java object never reaches engine or JVM as it is. A comparator's ends the operation with an error,
//!    because any order would be a wrong one; a logger's is ignored. After one of a filter factory the compaction runs without a
//!    filter, and the exception is printed to the error output, as RocksDB prints it.

use crate::classes::{Class, Method};
use crate::door::{Fail, Result};
use crate::env::{Env, Global, Local, boolean, byte, int, object, with_env};
use crate::handles::{self, Object};
use crate::metadata::table_properties;
use crate::parts::{FilterFactoryObject, FilterObject};
use crate::settings::{ComparatorOptionsObject, HasTexts, OptionsObject};
use ashlar_compat::calls::TableFilter;
use ashlar_compat::listener::{Listener, TableReport};
use ashlar_compat::logger::Logger;
use ashlar_compat::value::LOG_LEVEL;
use ashlardb::{CompactionFilter, CompactionFilterFactory, Comparator, Decision, Error, FilterContext};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The text of an exception: its class and message.
pub(crate) fn describe(env: Env<'_>, exception: Local<'_>) -> String {
    static OBJECT: Class = Class::new("java/lang/Object");
    static TO_STRING: Method = Method::new("toString", "()Ljava/lang/String;");
    let text = TO_STRING.of(env, &OBJECT).and_then(|id| env.call_object(exception, id, &[]));
    match text {
        Ok(text) if !text.is_null() => env.text(text),
        _ => {
            let _ = env.take_exception();
            "an exception of Java".to_owned()
        }
    }
}

/// What a Java method answered, or the text of the exception that it threw.
pub(crate) fn contained<T>(work: impl FnOnce(Env<'_>) -> Result<T>) -> std::result::Result<T, String> {
    let answer = with_env(|env| {
        Ok(work(env).map_err(|fail| match fail {
            Fail::Error(e) | Fail::Misuse(e) => e.to_string(),
            Fail::Thrown => env.take_exception().map_or_else(String::new, |thrown| describe(env, thrown)),
        }))
    });
    answer.unwrap_or_else(|_| Err("the JVM refuses the thread".to_owned()))
}

/// The text of a method of Java that takes nothing.
fn name_of(env: Env<'_>, of: Local<'_>, class: &'static Class, name: &Method) -> Result<String> {
    let text = env.call_object(of, name.of(env, class)?, &[])?;
    if text.is_null() { Err(Error::invalid("name() answers null").into()) } else { Ok(env.text(text)) }
}

static COMPARATOR: Class = Class::new("org/rocksdb/AbstractComparator");

/// A comparator of Java.
#[derive(Debug)]
struct JavaComparator {
    object: Global,
    name: String,
    direct: bool,
    buffers: Mutex<Pool<Buffers>>,
}

/// Buffers that no comparison uses at present. Running comparisons take a pair each.
#[derive(Debug)]
struct Pool<T> {
    kept: Vec<T>,
    /// The capacity of new buffers: room for the longest key so far that kept buffers may have.
    capacity: usize,
    /// The most bytes of a kept buffer. Buffers for longer keys serve one comparison.
    most: usize,
}

impl<T> Pool<T> {
    /// The most pairs that are kept: more comparisons than that seldom run at once.
    const MOST_PAIRS: usize = 64;
    /// Buffers of so many bytes are kept, whatever `max_reused_buffer_size` says.
    const LEAST_KEPT: usize = 64 << 10;

    /// Keeps buffers of `reused` bytes, the option `max_reused_buffer_size`.
    fn new(reused: usize) -> Pool<T> {
        Pool { kept: Vec::new(), capacity: reused, most: reused.max(Self::LEAST_KEPT) }
    }

    /// A kept pair for keys of `longest` bytes, or the capacity of a new one. In the error, `Some` is a kept pair that is too small: a
    /// larger one takes its place.
    fn take(
        &mut self,
        longest: usize,
        capacity_of: impl Fn(&T) -> usize,
    ) -> std::result::Result<T, (usize, Option<T>)> {
        if longest > self.most {
            return Err((longest, None));
        }
        self.capacity = self.capacity.max(longest);
        match self.kept.pop() {
            Some(kept) if capacity_of(&kept) >= longest => Ok(kept),
            small => Err((self.capacity, small)),
        }
    }

    /// Takes a pair of this capacity back. `Some`: the pair is not kept.
    fn give(&mut self, pair: T, capacity: usize) -> Option<T> {
        if capacity > self.most || self.kept.len() >= Self::MOST_PAIRS {
            return Some(pair);
        }
        self.kept.push(pair);
        None
    }
}

/// Two buffers of Java for the keys of a comparison, each with its capacity.
#[derive(Debug)]
struct Buffers {
    objects: [Global; 2],
    direct: bool,
    capacity: usize,
}

impl Buffers {
    fn new(env: Env<'_>, direct: bool, capacity: usize) -> Result<Buffers> {
        static BUFFER: Class = Class::new("java/nio/ByteBuffer");
        static DIRECT: Method = Method::fixed("allocateDirect", "(I)Ljava/nio/ByteBuffer;");
        static HEAP: Method = Method::fixed("allocate", "(I)Ljava/nio/ByteBuffer;");
        let allocate = if direct { &DIRECT } else { &HEAP }.of(env, &BUFFER)?;
        let length = int(i32::try_from(capacity).unwrap_or(i32::MAX));
        let new = || env.global(env.call_static_object(BUFFER.get(env)?, allocate, &[length])?);
        Ok(Buffers { objects: [new()?, new()?], direct, capacity })
    }

    fn fill(&self, env: Env<'_>, at: usize, key: &[u8]) -> Result<()> {
        static BUFFER: Class = Class::new("java/nio/ByteBuffer");
        static ARRAY: Method = Method::new("array", "()[B");
        let Some(buffer) = self.objects.get(at) else { return Ok(()) };
        let buffer = buffer.local(env);
        let len = i32::try_from(key.len()).unwrap_or(i32::MAX);
        if self.direct {
            crate::door::room_direct(env, buffer, 0, len, "key")?.fill(env, key);
            return Ok(());
        }
        let array = env.call_object(buffer, ARRAY.of(env, &BUFFER)?, &[])?;
        crate::door::room(env, array, 0, len, "key")?.fill(env, key);
        env.forget(array);
        Ok(())
    }
}

impl JavaComparator {
    fn ask(&self, env: Env<'_>, a: &[u8], b: &[u8]) -> Result<i32> {
        static BRIDGE: Class = Class::new("org/rocksdb/AbstractComparatorJniBridge");
        static COMPARE: Method = Method::fixed(
            "compareInternal",
            "(Lorg/rocksdb/AbstractComparator;Ljava/nio/ByteBuffer;ILjava/nio/ByteBuffer;I)I",
        );
        // A nested comparison takes another pair.
        let kept = self.pool().take(a.len().max(b.len()), |kept| kept.capacity);
        let buffers = kept.or_else(|(capacity, small)| {
            // Outside the lock, because the end of a reference calls the JVM.
            drop(small);
            Buffers::new(env, self.direct, capacity)
        })?;
        buffers.fill(env, 0, a)?;
        buffers.fill(env, 1, b)?;
        let len = |key: &[u8]| int(i32::try_from(key.len()).unwrap_or(i32::MAX));
        let [first, second] = buffers.objects.each_ref().map(|buffer| object(buffer.local(env)));
        let given = [object(self.object.local(env)), first, len(a), second, len(b)];
        let order = env.call_static_int(BRIDGE.get(env)?, COMPARE.of(env, &BRIDGE)?, &given);
        let capacity = buffers.capacity;
        let unkept = self.pool().give(buffers, capacity);
        // Outside the lock, because the end of a reference calls the JVM.
        drop(unkept);
        order
    }

    fn pool(&self) -> MutexGuard<'_, Pool<Buffers>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Comparator for JavaComparator {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match contained(|env| self.ask(env, a, b)) {
            Ok(order) => order.cmp(&0),
            // Any order would be a wrong one. The engine ends the operation, as for each comparator that panics.
            Err(said) => std::panic::panic_any(format!("the comparator {} threw {said}", self.name)),
        }
    }
}

/// `AbstractComparator`.
#[derive(Debug)]
pub struct ComparatorObject(Arc<JavaComparator>);

impl Object for ComparatorObject {
    const NAME: &'static str = "AbstractComparator";
}

impl ComparatorObject {
    /// For the engine.
    pub fn comparator(&self) -> Arc<dyn Comparator> {
        Arc::<JavaComparator>::clone(&self.0)
    }
}

/// A comparator of Java.
///
/// # Errors
/// `Thrown`: its `name()` threw. `InvalidArgument`: the name is null.
pub fn new_comparator(env: Env<'_>, this: Local<'_>, options: &ComparatorOptionsObject) -> Result<i64> {
    static NAME: Method = Method::new("name", "()Ljava/lang/String;");
    let name = name_of(env, this, &COMPARATOR, &NAME)?;
    let (direct, reused) =
        options.with(|texts| (texts.get("use_direct_buffer"), texts.get::<i32>("max_reused_buffer_size")));
    let buffers = Mutex::new(Pool::new(usize::try_from(reused).unwrap_or(0)));
    let comparator = JavaComparator { object: env.global(this)?, name, direct, buffers };
    Ok(handles::keep(ComparatorObject(Arc::new(comparator)))?)
}

/// Whether the keys come in direct buffers.
pub fn using_direct_buffers(comparator: &ComparatorObject) -> Result<bool> {
    Ok(comparator.0.direct)
}

/// `Logger`: one of Java, or one that writes to the error output. Clones are the same logger.
#[derive(Clone, Debug)]
pub struct LoggerObject {
    level: Arc<AtomicU32>,
    logger: Logger,
}

impl Object for LoggerObject {
    const NAME: &'static str = "Logger";
}

impl LoggerObject {
    /// RocksDB's number of the level `DEBUG_LEVEL`.
    pub const DEBUG: u32 = 0;
    /// RocksDB's number of the level `ERROR_LEVEL`.
    pub const ERROR: u32 = 3;

    fn new(level: u32, sink: impl Fn(u32, &str) + Send + Sync + 'static) -> LoggerObject {
        let level = Arc::new(AtomicU32::new(level));
        let least = Arc::clone(&level);
        // The level may change later, so the logger takes all lines.
        let logger = Logger::new(0, move |at, line| {
            if at >= least.load(Relaxed) {
                sink(at, line);
            }
        });
        LoggerObject { level, logger }
    }

    /// For the engine.
    pub fn logger(&self) -> Logger {
        self.logger.clone()
    }

    /// Whether the logger takes lines of this level.
    pub fn takes(&self, level: u32) -> bool {
        level >= self.level.load(Relaxed)
    }

    /// Logs a line, if the logger takes its level.
    pub fn log(&self, level: u32, line: &str) {
        self.logger.log(level, line);
    }
}

/// A logger of Java with the level of these options.
pub fn new_logger_of(env: Env<'_>, this: Local<'_>, options: &OptionsObject) -> Result<i64> {
    let level = options.with(|texts| texts.get_named("info_log_level", LOG_LEVEL));
    new_logger(env, this, level.into())
}

/// A logger of Java.
pub fn new_logger(env: Env<'_>, this: Local<'_>, level: i64) -> Result<i64> {
    static LOGGER: Class = Class::new("org/rocksdb/Logger");
    static LOG: Method = Method::new("log", "(Lorg/rocksdb/InfoLogLevel;Ljava/lang/String;)V");
    static LEVEL: Class = Class::new("org/rocksdb/InfoLogLevel");
    static GET: Method = Method::fixed("getInfoLogLevel", "(B)Lorg/rocksdb/InfoLogLevel;");
    let logger = env.global(this)?;
    let sink = move |level: u32, line: &str| {
        // An exception of the logger is ignored: the line is lost.
        let _ = contained(|env| {
            let number = byte(i8::try_from(level).unwrap_or(0));
            let level = env.call_static_object(LEVEL.get(env)?, GET.of(env, &LEVEL)?, &[number])?;
            let line = env.new_text(line)?;
            let done =
                env.call_void(logger.local(env), LOG.of(env, &LOGGER)?, &[object(level), object(line)]);
            env.forget(level);
            env.forget(line);
            done
        });
    };
    Ok(handles::keep(LoggerObject::new(u32::try_from(level).unwrap_or(0), sink))?)
}

/// A logger that writes to the error output.
pub fn new_stderr_logger(level: i8, prefix: Option<&str>) -> Result<i64> {
    let prefix = prefix.unwrap_or_default().to_owned();
    #[allow(clippy::print_stderr, reason = "what the logger is for")]
    let sink = move |_: u32, line: &str| eprintln!("{prefix}{line}");
    Ok(handles::keep(LoggerObject::new(u32::try_from(level).unwrap_or(0), sink))?)
}

/// Changes the least level.
pub fn set_info_log_level(logger: &LoggerObject, level: i8) -> Result<()> {
    logger.level.store(u32::try_from(level).unwrap_or(0), Relaxed);
    Ok(())
}

/// The least level.
pub fn info_log_level(logger: &LoggerObject) -> Result<i8> {
    Ok(i8::try_from(logger.level.load(Relaxed)).unwrap_or(0))
}

/// `AbstractEventListener`.
#[derive(Debug)]
pub struct ListenerObject(pub Arc<dyn Listener>);

impl Object for ListenerObject {
    const NAME: &'static str = "AbstractEventListener";
}

impl ListenerObject {
    /// For the engine.
    pub fn listener(&self) -> Arc<dyn Listener> {
        Arc::clone(&self.0)
    }
}

/// `AbstractTableFilter`.
#[derive(Debug)]
pub struct TableFilterObject(pub TableFilter);

impl Object for TableFilterObject {
    const NAME: &'static str = "AbstractTableFilter";
}

/// `AbstractWalFilter`. Options refuse it.
#[derive(Debug)]
pub struct WalFilterObject;

impl Object for WalFilterObject {
    const NAME: &'static str = "AbstractWalFilter";
}

/// A filter of tables. After an exception of the filter the table is read, so that no entry is missing.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn new_table_filter(env: Env<'_>, this: Local<'_>) -> Result<i64> {
    static FILTER: Class = Class::new("org/rocksdb/TableFilter");
    static KEEPS: Method = Method::new("filter", "(Lorg/rocksdb/TableProperties;)Z");
    let filter = env.global(this)?;
    let keeps = move |table: &TableReport| {
        let answer = contained(|env| {
            let family = table.stored.column_family_name.as_deref().unwrap_or_default();
            let properties = table_properties(env, family, &table.stored)?;
            env.call_bool(filter.local(env), KEEPS.of(env, &FILTER)?, &[object(properties)])
        });
        answer.unwrap_or_else(|thrown| {
            #[allow(clippy::print_stderr, reason = "RocksDB prints exceptions of callbacks there")]
            {
                eprintln!("the table filter threw {thrown}; the table is read");
            }
            true
        })
    };
    Ok(handles::keep(TableFilterObject(TableFilter::new(keeps)))?)
}

/// A filter of WAL records, which options refuse.
pub fn new_wal_filter() -> Result<i64> {
    Ok(handles::keep(WalFilterObject)?)
}

/// A compaction filter factory of Java.
#[derive(Debug)]
struct JavaFactory {
    object: Global,
    name: String,
}

/// A filter of a factory, which the program may hold too.
#[derive(Debug)]
struct Made(Arc<dyn CompactionFilter>);

impl CompactionFilter for Made {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        self.0.filter(key, value)
    }

    fn filter_merge_operand(&self, key: &[u8], operand: &[u8]) -> Decision {
        self.0.filter_merge_operand(key, operand)
    }
}

static FACTORY: Class = Class::new("org/rocksdb/AbstractCompactionFilterFactory");

impl CompactionFilterFactory for JavaFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self, context: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>> {
        static CREATE: Method = Method::new("createCompactionFilter", "(ZZ)J");
        let made = contained(|env| {
            let given = [boolean(context.is_full), boolean(context.is_manual)];
            let handle = env.call_long(self.object.local(env), CREATE.of(env, &FACTORY)?, &given)?;
            let filter = crate::door::object::<FilterObject>(handle)?;
            // The factory no longer owns the filter, so nothing else closes it.
            handles::close(handle);
            Ok(Arc::clone(&filter.0))
        });
        match made {
            Ok(filter) => Some(Box::new(Made(filter))),
            Err(thrown) => {
                #[allow(clippy::print_stderr, reason = "RocksDB prints exceptions of callbacks there")]
                {
                    eprintln!("{} threw {thrown}; the compaction runs without a filter", self.name);
                }
                None
            }
        }
    }
}

/// A compaction filter factory of Java.
///
/// # Errors
/// `Thrown`: its `name()` threw. `InvalidArgument`: the name is null.
pub fn new_filter_factory(env: Env<'_>, this: Local<'_>) -> Result<i64> {
    static NAME: Method = Method::new("name", "()Ljava/lang/String;");
    let name = name_of(env, this, &FACTORY, &NAME)?;
    let factory = JavaFactory { object: env.global(this)?, name };
    Ok(handles::keep(FilterFactoryObject(Arc::new(factory)))?)
}

#[cfg(test)]
mod tests {
    use super::Pool;

    /// A pair is its capacity.
    fn used(pool: &mut Pool<usize>, longest: usize) -> usize {
        let pair = pool.take(longest, |pair| *pair).unwrap_or_else(|(capacity, _)| capacity);
        pool.give(pair, pair);
        pair
    }

    #[test]
    fn a_pool_keeps_few_buffers_and_no_large_ones() {
        let mut pool = Pool::new(64);
        assert_eq!(used(&mut pool, 1), 64);
        assert_eq!(pool.take(100, |pair| *pair), Err((100, Some(64))), "the caller drops the small pair");
        assert_eq!([100, 30].map(|longest| used(&mut pool, longest)), [100, 100]);
        assert_eq!(used(&mut pool, 10 << 20), 10 << 20);
        assert_eq!((used(&mut pool, 1), pool.kept.len()), (100, 1), "a long key leaves the kept pair");
        assert_eq!((0..1000).filter(|_| pool.give(100, 100).is_some()).count(), 1000 - 63);
    }

    #[test]
    fn a_larger_size_for_reuse_keeps_larger_buffers() {
        let mut pool = Pool::new(1 << 20);
        assert_eq!((used(&mut pool, 1), used(&mut pool, 1 << 19)), (1 << 20, 1 << 20));
    }
}
