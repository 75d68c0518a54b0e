//! A process killed with a long WAL: measures the time and the memory of the next open.
//!
//! The memtable of the writing process is larger than the requested WAL, so nothing is flushed. The next open has ordinary
//! settings: it replays the WAL into memtables and flushes them as they fill up. A plain pass, for comparison, reads the
//! WAL and inserts into memtables of the same size, which are dropped.
//!
//! 1. The open takes less than twice the plain pass.
//! 2. Its memory is bounded by the settings, and not by the log.
//! 3. Everything acknowledged is there, and nothing is missing in between.

use super::Budget;
use ashlar_base::{FamilyId, FileNumber, Order, SeqNum, ValueType};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogReader, RecoveryMode};
use ashlar_memtable::{Op, WriterSlot, memtable};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::children::{Ended, Running, answer};
use ashlar_testkit::harm::LOST_WRITE;
use ashlar_testkit::suite::{Harm, Report, guarded};
use ashlar_testkit::turns;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Entries of a batch.
const BATCH: u64 = 16;
/// Bytes of an entry in the WAL: a key of 16 bytes, a value of 100, and their encoding.
const ENTRY_BYTES: u64 = 120;
const VALUE_BYTES: usize = 100;
/// The memory that an open may use besides memtables and the current block: code, heap, unfinished tables.
const SPARE_BYTES: u64 = 128 << 20;

/// Keys in no order; each comes once.
fn key(number: u64) -> Vec<u8> {
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

/// Begins with the number; half of it can be compressed.
fn value(number: u64) -> Vec<u8> {
    let mut value = vec![b'-'; VALUE_BYTES];
    let mut state = number;
    for word in value[..48].chunks_exact_mut(8) {
        word.copy_from_slice(&state.to_le_bytes());
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    value
}

fn open(dir: &Path, family: FamilyOptions) -> Result<Db, String> {
    let env = Env::os().map_err(|e| e.to_string())?;
    Db::open(env, dir, DbOptions::default(), Vec::new(), family).map_err(|e| e.to_string())
}

/// `DIR PROGRESS`: writes until it is killed; as many entries as the file says were acknowledged.
///
/// # Errors
/// Any of a write.
pub(crate) fn write(words: &[&str]) -> Result<(), String> {
    let [dir, progress] = words else { return Err(format!("{words:?}")) };
    let family = FamilyOptions { write_buffer_bytes: 4 << 30, ..FamilyOptions::default() };
    let db = open(Path::new(dir), family)?;
    let progress = File::options().write(true).open(progress).map_err(|e| e.to_string())?;
    let mut number = 0_u64;
    loop {
        let mut batch = WriteBatch::new();
        for _ in 0..BATCH {
            batch.put(FamilyId::DEFAULT, &key(number), &value(number)).map_err(|e| e.to_string())?;
            number += 1;
        }
        db.write(&mut batch, WriteOptions::default()).map_err(|e| e.to_string())?;
        progress.write_all_at(&number.to_le_bytes(), 0).map_err(|e| e.to_string())?;
    }
}

/// `DIR`: the plain pass. Prints the milliseconds.
///
/// # Errors
/// Any of a read.
pub(crate) fn pass(words: &[&str]) -> Result<(), String> {
    let [dir] = words else { return Err(format!("{words:?}")) };
    let began = Instant::now();
    let fs = Env::os().map_err(|e| e.to_string())?.fs;
    let fail = |e: ashlar_base::Error| e.to_string();
    let most = FamilyOptions::default().write_buffer_bytes;
    let (mut table, mut slot) = (memtable(Order::Bytewise), WriterSlot::default());
    for entry in fs.list(Path::new(dir)).map_err(fail)? {
        let Some(FileKind::Wal(number)) = FileKind::parse(&entry.name) else { continue };
        let file = fs.open_read(&Path::new(dir).join(&entry.name)).map_err(fail)?;
        let mut reader = LogReader::open(file, FileNumber(number.0), RecoveryMode::PointInTime);
        while let Some(record) = reader.next().map_err(fail)? {
            let batch = BatchReader::new(record.payload).map_err(|e| e.to_string())?;
            let mut seq = batch.seq().get();
            for op in batch.iter() {
                let BatchOp::Put { key, value, .. } = op.map_err(|e| e.to_string())? else { continue };
                let op = Op { key, value, value_type: ValueType::Put, seq_delta: 0 };
                let prepared =
                    table.prepare(&mut slot, &mut std::iter::once(op)).map_err(|e| e.to_string())?;
                table.insert(&mut slot, prepared, SeqNum::new(seq).unwrap_or_default());
                seq += 1;
            }
            if table.filled() >= most {
                table = memtable(Order::Bytewise);
            }
        }
    }
    println!("{}", began.elapsed().as_millis());
    Ok(())
}

/// `DIR`: opens under ordinary settings. Prints the milliseconds, and the most memory that was resident, in bytes.
///
/// # Errors
/// The open's.
pub(crate) fn reopen(words: &[&str]) -> Result<(), String> {
    let [dir] = words else { return Err(format!("{words:?}")) };
    let began = Instant::now();
    let db = open(Path::new(dir), FamilyOptions::default())?;
    let took = began.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    println!("{} {}", took.as_millis(), peak.unwrap_or_default() << 10);
    db.close().map_err(|e| e.to_string())
}

/// Writes a WAL of this many bytes, kills the process, and opens the database again. `--replay=BYTES` sets the size.
pub fn run(budget: &Budget, log_bytes: u64) -> Report {
    let _turn = turns::beside_others();
    let mut report = Report::new("torture --wal", budget);
    let log_bytes = budget.replayed("").unwrap_or(log_bytes);
    if let Err(e) = guarded(|| one(budget, log_bytes, &mut report)) {
        report.fail(log_bytes.to_string(), e);
    }
    report.done(budget)
}

fn one(budget: &Budget, log_bytes: u64, report: &mut Report) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = dir.path().to_string_lossy().into_owned();
    let acknowledged = killed(budget, &path, log_bytes)?;
    report.count("kills", 1);
    report.count("writes acknowledged", acknowledged);
    let numbers = |role: &str| -> Result<Vec<u64>, String> {
        let said = answer(budget, &[role, &path])?;
        said.split_whitespace().map(|word| word.parse().map_err(|_| format!("{role} said: {said}"))).collect()
    };
    // The first reads the log into the system's memory.
    let passes = [numbers("log-pass")?, numbers("log-pass")?];
    let plain = passes.iter().filter_map(|pass| pass.first()).min().copied().unwrap_or_default();
    let opened = numbers("log-open")?;
    let [took, peak] = opened[..] else { return Err(format!("{opened:?}")) };
    report.time("plain pass over the log", Duration::from_millis(plain));
    report.time("open with the log", Duration::from_millis(took));
    report.count("MiB of log", log_bytes >> 20);
    report.count("MiB resident at most", peak >> 20);
    compare(dir.path(), acknowledged, report)?;
    let family = FamilyOptions::default();
    let bound = 2 * family.write_buffer_bytes as u64 + SPARE_BYTES;
    if took >= 2 * plain {
        let what = format!("the open took {took} ms, a plain pass over the log {plain} ms");
        report.fail_as(Harm::WrongAnswer, log_bytes.to_string(), what);
    }
    if peak > bound {
        let what = format!("the open took {peak} bytes of memory, more than {bound}");
        report.fail_as(Harm::WrongAnswer, log_bytes.to_string(), what);
    }
    Ok(())
}

/// The number of entries acknowledged by a process that was killed with this many bytes in its WAL.
fn killed(budget: &Budget, dir: &str, log_bytes: u64) -> Result<u64, String> {
    let progress = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let count = || {
        let mut count = [0; 8];
        // A file that is still empty counts as nothing.
        progress.as_file().read_exact_at(&mut count, 0).map_or(0, |()| u64::from_le_bytes(count))
    };
    let mut running = Running::start(budget, &["log-write", dir, &progress.path().to_string_lossy()])?;
    while count() * ENTRY_BYTES < log_bytes {
        if running.wait(Duration::from_millis(20))? == Ended::Killed {
            return Err("another process killed a child".to_owned());
        }
    }
    running.kill()?;
    Ok(count())
}

/// All numbers up to some last one are there, and `acknowledged` of them at least.
fn compare(dir: &Path, acknowledged: u64, report: &mut Report) -> Result<(), String> {
    let db = open(dir, FamilyOptions::default())?;
    let family = db.family("default").ok_or("no default family")?;
    let mut iter =
        db.iter(&family, KeyBounds::default(), ReadOptions::default()).map_err(|e| e.to_string())?;
    let (mut found, mut largest) = (0, 0);
    iter.first().map_err(|e| e.to_string())?;
    while let Some((found_key, found_value)) = iter.entry() {
        let first = found_value.first_chunk().ok_or("a value without a number")?;
        let number = u64::from_le_bytes(*first);
        if found_key != key(number) || found_value != value(number) {
            return Err(format!("{} holds what was not written", found_key.escape_ascii()));
        }
        found += 1;
        largest = largest.max(number + 1);
        iter.next().map_err(|e| e.to_string())?;
    }
    report.count("keys compared", found);
    match (found == largest, found < acknowledged) {
        (_, true) => Err(format!("{LOST_WRITE}recovered {found} of {acknowledged} acknowledged writes")),
        (false, _) => Err(format!("{found} entries are there, but the last is number {largest}")),
        _ => db.close().map_err(|e| e.to_string()),
    }
}
