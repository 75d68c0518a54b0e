//! Runs the list of writes repeatedly in child processes, each time with another refused large allocation: it is refused
//! once, or from then on always.
//!
//! 1. Where the engine asks whether there is memory, the call says so and nothing happened. Where it does not ask, the
//!    process ends, as programs do then: that is a kill, and what was acknowledged is there.
//! 2. Background work goes on inside the calls, so that the same allocation is refused when a case is replayed.
//! 3. Reads always ask: what a block or a blob needs is refused without harm (`read_without`).
//!
//! A file outside the directory has the outcome of each write, one byte each, and survives the process.

use crate::sim::plan::{DEFAULT, Setup};
use crate::sim::store::{batch, listing};
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_blob::BlobOptions;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::SimEnv;
use ashlar_env::{Env, OsFs};
use ashlar_format::compress::Compression;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_testkit::children;
use ashlar_testkit::heap;
use ashlar_testkit::ops::{Mix, Op, draw};
use ashlar_testkit::oracle::{Model, State};
use ashlar_testkit::suite::{Budget, Length, Report, Watchdog, guarded};
use ashlar_testkit::{Rng, report};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A large allocation has at least so many bytes: what the size of data decides, not what the shape of code does.
const LARGE_BYTES: usize = 4 << 10;
/// Operations of a list.
const LENGTH: usize = 250;
/// Cases of a quick run.
const CASES: usize = 24;

/// A value whose block, and whose blob, is a large allocation by any measure, and what the measure is then.
const VALUE_BYTES: usize = 300 << 10;
const VALUE_LARGE_BYTES: usize = 128 << 10;

/// What became of a write; no byte: it was never begun.
const BEGUN: u8 = b'?';
const IN: u8 = b'+';
const OUT: u8 = b'-';

fn list(seed: u64) -> (Setup, Vec<Op>) {
    let mut rng = Rng::new(seed);
    let mut setup = Setup::draw(&mut rng);
    setup.family.write_buffer_bytes = 64 << 10;
    setup.db.manual_wal_flush = false;
    setup.unlogged = false;
    let mix = Mix {
        families: vec![DEFAULT.to_owned()],
        flush_per_mille: 15,
        compact_per_mille: 10,
        reopen_per_mille: 10,
        max_value_bytes: 12 << 10,
        ..Mix::default()
    };
    (setup, draw(rng.next_u64(), LENGTH, &mix))
}

fn open(env: &Env, dir: &Path, setup: &Setup) -> Result<Db, Error> {
    let default = OpenFamily { name: DEFAULT.to_owned(), options: setup.family.clone() };
    Db::open(env.clone(), dir, setup.db.clone(), vec![default], setup.family.clone())
}

/// Refuses the large allocations of a list in turn; `--replay=memory-CASE` is one of them.
pub(super) fn sweep(budget: &Budget, watchdog: &Watchdog, report: &mut Report) {
    let only = budget.replayed("memory-");
    if only.is_none()
        && let Err(e) = children::answer(budget, &["sweep-reads"])
    {
        report.fail("memory-reads", e);
    }
    let mut allocations = 0;
    if let Err(e) = guarded(|| case(budget, None, report).map(|counted| allocations = counted)) {
        return report.fail("memory-0", format!("nothing is refused: {e}"));
    }
    report.count("large allocations", allocations);
    let quick = report::scale(CASES, 4 * CASES) as u64;
    // Even cases refuse one allocation, odd ones all from there on.
    let step = match budget.length {
        Length::Quick => (2 * allocations / quick).max(1) | 1,
        Length::For(_) => 1,
    };
    let cases = (2..2 * allocations + 2).filter(|case| only.map_or(case % step == 0, |only| only == *case));
    for number in cases {
        if budget.is_enough(report) || budget.is_over() {
            break;
        }
        let _case = watchdog.begins(format!("memory-{number}"));
        let last = if number % 2 == 0 { number / 2 } else { u64::MAX };
        report.count("allocations refused", 1);
        if let Err(e) = guarded(|| case(budget, Some((number / 2, last)), report)) {
            report.fail(format!("memory-{number}"), e);
        }
    }
}

/// One run, and what it left. Answers how many large allocations there were, as far as it came.
fn case(budget: &Budget, refused: Option<(u64, u64)>, report: &mut Report) -> Result<u64, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let progress = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let (dir, seed) = (folder.path().join("db"), budget.seed.to_string());
    let (first, last) = refused.unwrap_or((u64::MAX, u64::MAX));
    let (path, file) = (dir.to_string_lossy(), progress.path().to_string_lossy());
    let role = ["sweep-memory", &path, &seed, &file, &first.to_string(), &last.to_string()];
    let mut counted = 0;
    match children::answer_or_want_of_memory(budget, &role)? {
        None if refused.is_none() => return Err("the process ended for want of memory".to_owned()),
        None => report.count("processes ended for want of memory", 1),
        Some(said) => {
            let mut numbers = said.split_whitespace().map(|word| word.parse().unwrap_or(0));
            counted = numbers.next().unwrap_or(0);
            let told = numbers.next().unwrap_or(0);
            if told > 0 && refused.is_none() {
                return Err(format!("{told} calls failed"));
            }
            report.count("calls that said there is no memory", told);
        }
    }
    let mut marks = vec![0; LENGTH];
    progress.as_file().read_at(&mut marks, 0).map_err(|e| e.to_string())?;
    judge(&dir, budget.seed, &marks).map(|()| counted)
}

/// Opens the directory as a user does: it holds the list up to the failure, and its entries read.
fn judge(dir: &Path, seed: u64, marks: &[u8]) -> Result<(), String> {
    let (setup, ops) = list(seed);
    let mut model = Model::new();
    for (op, mark) in ops.iter().zip(marks) {
        let Op::Write { changes, .. } = op else { continue };
        if *mark == IN || *mark == BEGUN {
            let number = model.apply(changes);
            model.acknowledge(if *mark == IN { number } else { 0 });
        }
    }
    let env = Env::os().map_err(|e| e.to_string())?;
    let db = open(&env, dir, &setup).map_err(|e| format!("does not open: {e}"))?;
    let family = db.family(DEFAULT).ok_or("no default family")?;
    let listed = listing(&db, &family, ReadOptions::default(), false);
    let found = listed.map_err(|e| format!("scan: {e}"))?;
    let state = State::of([(DEFAULT.to_owned(), found)]);
    model.match_prefix(&state).map_err(|e| format!("{e}\nreport of the open: {}", db.recovery()))?;
    db.verify_checksums(|_| ()).map_err(|e| format!("verification: {e}"))?;
    db.close().map_err(|e| format!("close: {e}"))
}

/// `DIR SEED PROGRESS FIRST LAST`: does the list, while the large allocations from the first to the last are refused. Says
/// how many there were, and how many calls failed.
///
/// # Errors
/// A failure that no refusal explains.
pub(crate) fn child(words: &[&str]) -> Result<(), String> {
    let [dir, seed, progress, first, last] = words else { return Err(format!("{words:?}")) };
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("no number: {word}"));
    let (setup, ops) = list(number(seed)?);
    let progress = File::options().write(true).open(progress).map_err(|e| e.to_string())?;
    let env = Env { fs: Arc::new(OsFs::new()), ..SimEnv::new(number(seed)?).env() };
    heap::refuse(LARGE_BYTES, number(first)?..=number(last)?);
    let told = play(&env, Path::new(dir), &setup, &ops, &progress)?;
    println!("{} {told}", heap::large_allocations());
    Ok(())
}

/// Reads large values, out of blocks and of blob files in every compression, while no large allocation is granted.
///
/// # Errors
/// A read that does not say so, or that fails when memory is there.
pub(crate) fn read_without() -> Result<(), String> {
    let kinds =
        [Compression::None, Compression::Snappy, Compression::Zlib, Compression::Lz4, Compression::Zstd];
    let families: Vec<OpenFamily> = kinds
        .into_iter()
        .flat_map(|compression| [false, true].map(|enabled| (compression, enabled)))
        .map(|(compression, enabled)| {
            let mut options = FamilyOptions::default();
            options.table.compression = compression;
            options.blob = BlobOptions { enabled, compression, ..BlobOptions::default() };
            OpenFamily { name: format!("{compression:?} {enabled}"), options }
        })
        .collect();
    let (env, said) = (SimEnv::new(1).env(), |e: Error| e.to_string());
    let options = DbOptions { create_missing_families: true, ..DbOptions::default() };
    let open = || {
        let (dir, others) = (Path::new("/db"), FamilyOptions::default());
        Db::open(env.clone(), dir, options.clone(), families.clone(), others).map_err(said)
    };
    let value: Vec<u8> = (0..=250).cycle().take(VALUE_BYTES).collect();
    let db = open()?;
    for family in db.families() {
        let mut batch = WriteBatch::new();
        batch.put(family.id(), b"key", &value).map_err(said)?;
        db.write(&mut batch, WriteOptions::default()).map_err(said)?;
    }
    db.flush(&db.families()).map_err(said)?;
    db.close().map_err(said)?;
    let db = open()?;
    for family in db.families().iter().filter(|family| family.name() != DEFAULT) {
        let get = || db.get(family, b"key", ReadOptions::default());
        heap::refuse(VALUE_LARGE_BYTES, 1..=u64::MAX);
        let refused = [get().map(drop), listing(&db, family, ReadOptions::default(), false).map(drop)];
        heap::refuse(usize::MAX, u64::MAX..=u64::MAX);
        for read in refused {
            if read.as_ref().err().map(Error::kind) != Some(ErrorKind::Busy(BusyKind::Memory)) {
                return Err(format!("{}: no memory, and the read says {read:?}", family.name()));
            }
        }
        if get().map_err(said)?.as_deref() != Some(&value[..]) {
            return Err(format!("{}: another value, once there is memory", family.name()));
        }
    }
    Ok(())
}

/// How many calls failed; with the first whose outcome is unknown, or after which nothing is open, it ends.
fn play(env: &Env, dir: &Path, setup: &Setup, ops: &[Op], progress: &File) -> Result<u64, String> {
    let mut told = 0;
    let mut tell = |done: Result<(), Error>| match done {
        Ok(()) => Ok(true),
        Err(e) if heap::has_refused() => {
            told += 1;
            Ok(e.kind() != ErrorKind::Indeterminate)
        }
        Err(e) => Err(e.to_string()),
    };
    let mut db = match open(env, dir, setup) {
        Ok(db) => db,
        Err(e) => return tell(Err(e)).map(|_| told),
    };
    for (at, op) in (0..).zip(ops) {
        let mark = |mark: u8| progress.write_all_at(&[mark], at).map_err(|e| e.to_string());
        let family = db.family(DEFAULT).ok_or("no default family")?;
        let goes_on = match op {
            Op::Write { changes, sync } => {
                mark(BEGUN)?;
                let mut batch = batch(&db, changes)?;
                let done = db.write(&mut batch, setup.how_to_write(*sync)).map(drop);
                let is_in = done.is_ok();
                let known = tell(done)?;
                if known {
                    mark(if is_in { IN } else { OUT })?;
                }
                known
            }
            Op::Flush { .. } => tell(db.flush(&db.families()))?,
            Op::Compact { .. } => tell(db.compact_range(&family, None, None).map(drop))?,
            Op::Get { key, .. } => tell(db.get(&family, key, ReadOptions::default()).map(drop))?,
            Op::Scan { .. } => tell(listing(&db, &family, ReadOptions::default(), false).map(drop))?,
            Op::Reopen => {
                tell(db.close())?;
                match open(env, dir, setup) {
                    Ok(opened) => {
                        db = opened;
                        true
                    }
                    Err(e) => tell(Err(e)).map(|_| false)?,
                }
            }
            Op::Snapshot { .. } | Op::Release { .. } => true,
        };
        if !goes_on {
            return Ok(told);
        }
        env.jobs.drive(4);
    }
    tell(db.close())?;
    Ok(told)
}
