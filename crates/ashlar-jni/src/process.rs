//! What a program asks about its process: memory and threads.

use crate::classes::{Class, Method, boxed_long, hash_map};
use crate::db::DbObject;
use crate::door::{Result, array_of};
use crate::env::{Env, Local, byte, long, object};
use crate::parts::{CacheObject, EnvObject};
use std::collections::BTreeMap;
use std::sync::Arc;

// Each function below is the body of the natives that the description names.

/// The bytes of databases and caches, by Java's numbers of their kinds. A kind that no object was given for is left out.
pub fn memory<'a>(
    env: Env<'a>,
    databases: &[Arc<DbObject>],
    caches: &[Arc<CacheObject>],
) -> Result<Local<'a>> {
    const MEMTABLES: i8 = 0;
    const UNFLUSHED: i8 = 1;
    const READERS: i8 = 2;
    const CACHES: i8 = 3;
    let mut sums: BTreeMap<i8, u64> = BTreeMap::new();
    for db in databases {
        let sum = |name| db.database.db().aggregated_int_property(name).unwrap_or(0);
        *sums.entry(MEMTABLES).or_default() += sum("rocksdb.size-all-mem-tables");
        *sums.entry(UNFLUSHED).or_default() += sum("rocksdb.cur-size-all-mem-tables");
        *sums.entry(READERS).or_default() += sum("rocksdb.estimate-table-readers-mem");
    }
    for cache in caches {
        *sums.entry(CACHES).or_default() += cache.0.usage();
    }
    let entry = |(kind, bytes): (&i8, &u64)| {
        let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
        Ok((boxed_byte(env, *kind)?, boxed_long(env, bytes)?))
    };
    hash_map(env, sums.iter().map(entry))
}

/// A new `java.lang.Byte`.
fn boxed_byte(env: Env<'_>, value: i8) -> Result<Local<'_>> {
    static BYTE: Class = Class::new("java/lang/Byte");
    static VALUE_OF: Method = Method::fixed("valueOf", "(B)Ljava/lang/Byte;");
    env.call_static_object(BYTE.get(env)?, VALUE_OF.of(env, &BYTE)?, &[byte(value)])
}

/// Java's numbers of the kinds of threads.
const HIGH: i8 = 0;
const LOW: i8 = 1;
const USER: i8 = 2;

/// The calling thread and the threads of the engine in this process, each a `ThreadStatus`. As in RocksDB without
/// `enable_thread_tracking`, it says of no thread what the thread does.
pub fn threads<'a>(env: Env<'a>, _: &EnvObject) -> Result<Local<'a>> {
    static STATUS: Class = Class::new("org/rocksdb/ThreadStatus");
    static NEW: Method = Method::constructor("(JBLjava/lang/String;Ljava/lang/String;BJB[JB)V");
    array_of(env, STATUS.get(env)?, &threads_of_process(), |(id, kind)| {
        let (no_text, nothing) = (object(Local::NULL), byte(0));
        let values = object(env.new_longs(&[0; PROPERTIES])?);
        let given = [long(*id), byte(*kind), no_text, no_text, nothing, long(0), nothing, values, nothing];
        STATUS.make(env, &NEW, &given)
    })
}

/// The system's numbers of threads, and their kinds.
fn threads_of_process() -> Vec<(i64, i8)> {
    let number = |path: &std::path::Path| path.file_name()?.to_str()?.parse().ok();
    let own = std::fs::read_link("/proc/thread-self").ok().and_then(|path| number(&path));
    #[allow(clippy::disallowed_methods, reason = "the system's list of threads is no file of a database")]
    let all = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_engine = all.filter_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        let kind = match name {
            _ if name.starts_with("ashlar-high") => HIGH,
            _ if name.starts_with("ashlar-low") => LOW,
            _ => return None,
        };
        Some((number(&entry.path())?, kind))
    });
    // Without `/proc` the own thread has no number.
    std::iter::once((own.unwrap_or(0), USER)).chain(of_engine).collect()
}

/// The text of a number; `None`: the number has no text.
fn named(names: &[&str], number: i8) -> Result<Option<String>> {
    let name = usize::try_from(number).ok().and_then(|at| names.get(at));
    Ok(name.filter(|name| !name.is_empty()).map(|name| (*name).to_owned()))
}

/// RocksDB's name of a kind of threads.
pub fn thread_type(number: i8) -> Result<Option<String>> {
    named(&["High Pri", "Low Pri", "User", "Bottom Pri"], number)
}

/// Java's numbers of operations with properties.
const COMPACTION: i8 = 1;
const FLUSH: i8 = 2;

/// RocksDB's name of an operation.
pub fn operation(number: i8) -> Result<Option<String>> {
    named(&["", "Compaction", "Flush", "DBOpen"], number)
}

/// RocksDB's name of a stage of an operation: its own function.
pub fn stage(number: i8) -> Result<Option<String>> {
    let names = [
        "",
        "FlushJob::Run",
        "FlushJob::WriteLevel0Table",
        "CompactionJob::Prepare",
        "CompactionJob::Run",
        "CompactionJob::ProcessKeyValueCompaction",
        "CompactionJob::Install",
        "CompactionJob::FinishCompactionOutputFile",
        "MemTableList::PickMemtablesToFlush",
        "MemTableList::RollbackMemtableFlush",
        "MemTableList::TryInstallMemtableFlushResults",
    ];
    named(&names, number)
}

/// RocksDB's name of a state.
pub fn state(number: i8) -> Result<Option<String>> {
    named(&["", "Mutex Wait"], number)
}

/// The number of properties of an operation.
const PROPERTIES: usize = 6;

/// RocksDB's name of a property of an operation.
pub fn property(operation: i8, at: i32) -> Result<Option<String>> {
    let names: &[&str] = match operation {
        COMPACTION => &[
            "JobID",
            "InputOutputLevel",
            "Manual/Deletion/Trivial",
            "TotalInputBytes",
            "BytesRead",
            "BytesWritten",
        ],
        FLUSH => &["JobID", "BytesMemtables", "BytesWritten"],
        _ => &[],
    };
    named(names, i8::try_from(at).unwrap_or(-1))
}

/// The properties of an operation by their names, as a `Map`.
pub fn interpreted<'a>(env: Env<'a>, operation: i8, values: &[i64]) -> Result<Local<'a>> {
    let value = |at: usize| values.get(at).copied().unwrap_or(0);
    // As in RocksDB, bit 0 has no meaning.
    let flag = |bit: u32| (value(2) >> bit) & 1;
    let all: Vec<(&str, i64)> = match operation {
        COMPACTION => vec![
            ("JobID", value(0)),
            ("BaseInputLevel", (value(1) >> 32) & i64::from(u32::MAX)),
            ("OutputLevel", value(1) & i64::from(u32::MAX)),
            ("IsManual", flag(1)),
            ("IsDeletion", flag(2)),
            ("IsTrivialMove", flag(3)),
            ("TotalInputBytes", value(3)),
            ("BytesRead", value(4)),
            ("BytesWritten", value(5)),
        ],
        FLUSH => vec![("JobID", value(0)), ("BytesMemtables", value(1)), ("BytesWritten", value(2))],
        _ => Vec::new(),
    };
    hash_map(env, all.iter().map(|(name, value)| Ok((env.new_text(name)?, boxed_long(env, *value)?))))
}

/// Microseconds for a reader, rounded as RocksDB rounds them; `None`: below one.
#[allow(clippy::cast_precision_loss, reason = "as RocksDB converts them")]
pub fn duration(micros: i64) -> Result<Option<String>> {
    const SECOND: i64 = 1_000_000;
    let seconds = micros / SECOND;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let thousandths = |of: i64, unit: i64| format!("{:.3}", of as f64 / unit as f64);
    // The seconds of a minute have no zero in front, as in RocksDB.
    let rest = thousandths(micros % (60 * SECOND), SECOND);
    Ok(match micros {
        ..=0 => None,
        _ if micros < 10_000 => Some(format!("{micros} us")),
        _ if seconds < 10 => Some(format!("{} ms", thousandths(micros, 1000))),
        _ if minutes == 0 => Some(format!("{rest} sec")),
        _ if hours == 0 => Some(format!("{minutes:02}:{rest} M:S")),
        _ => Some(format!("{hours:02}:{:02}:{rest} H:M:S", minutes % 60)),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_rocksdb() {
        let said = |micros| duration(micros).unwrap().unwrap_or_default();
        let all = [0, 999, 1000, 12_345, 1_000_000, 12_345_678, 61_000_000, 3_661_123_456, 90_061_123_567]
            .map(said);
        let expected = [
            "",
            "999 us",
            "1000 us",
            "12.345 ms",
            "1000.000 ms",
            "12.346 sec",
            "01:1.000 M:S",
            "01:01:1.123 H:M:S",
            "25:01:1.124 H:M:S",
        ];
        assert_eq!(all, expected);
    }
}
