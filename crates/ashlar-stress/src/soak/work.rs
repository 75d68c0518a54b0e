//! The process that works: rounds of writes over the same keys under readers, then a rest in which it counts what it has.

use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::filename::FileKind::{self, Blob, Manifest, Table, Wal};
use ashlar_options::{BlobOptions, CompactionOptions, DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_sync::ReadPin;
use ashlar_testkit::Rng;
use ashlar_testkit::harm::HANG;
use ashlar_testkit::harm::PANIC;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const KEYS: usize = 10_000;
/// Batches of a writer in a round.
const BATCHES: usize = 1000;
const WRITERS: usize = 2;
/// Rounds between two opens.
const ROUNDS: u64 = 16;
/// Rounds at the least, however little time there is: so many have quarters.
const LEAST: u64 = 8;
/// How long files may stay, and blocks be held, after their last use.
const REST: Duration = Duration::from_secs(10);
/// How long a close may take.
const CLOSE: Duration = Duration::from_secs(5);

fn open(dir: &Path) -> Result<Db, String> {
    let family = FamilyOptions {
        write_buffer_bytes: 512 << 10,
        compaction: CompactionOptions {
            target_file_bytes: 256 << 10,
            base_level_bytes: 1 << 20,
            ..CompactionOptions::default()
        },
        blob: BlobOptions {
            enabled: true,
            min_blob_bytes: 1000,
            file_bytes: 512 << 10,
            collect_garbage: true,
            age_cutoff: 0.5,
            ..BlobOptions::default()
        },
        ..FamilyOptions::default()
    };
    let options = DbOptions { block_cache_bytes: 4 << 20, ..DbOptions::default() };
    let env = Env::os().map_err(|e| e.to_string())?;
    Db::open(env, dir, options, Vec::new(), family).map_err(|e| format!("open: {e}"))
}

/// `DIR SEED SECONDS`: a line per round: milliseconds since the start, and what it has then, as the suite lists it.
///
/// # Errors
/// What fails, or does not come to rest.
pub(crate) fn play(words: &[&str]) -> Result<(), String> {
    let [dir, seed, seconds] = words else { return Err(format!("{words:?}")) };
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("no number: {word}"));
    let (dir, mut rng, time) =
        (Path::new(dir), Rng::new(number(seed)?), Duration::from_secs(number(seconds)?));
    let began = Instant::now();
    let mut db = open(dir)?;
    for round in 1.. {
        work(&db, &mut rng)?;
        let counts = at_rest(&db)?;
        println!("{} {}", began.elapsed().as_millis(), counts.map(|count| count.to_string()).join(" "));
        let over = began.elapsed() >= time && round >= LEAST;
        if over || round % ROUNDS == 0 {
            close(&db)?;
            drop(db);
            if over {
                break;
            }
            db = open(dir)?;
        }
    }
    Ok(())
}

fn close(db: &Db) -> Result<(), String> {
    let began = Instant::now();
    db.close().map_err(|e| format!("close: {e}"))?;
    if began.elapsed() > CLOSE { Err(format!("{HANG}the close took {:?}", began.elapsed())) } else { Ok(()) }
}

fn key(number: usize) -> String {
    format!("key{number:06}")
}

/// Writers, and a reader that looks at an old state.
fn work(db: &Db, rng: &mut Rng) -> Result<(), String> {
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..WRITERS {
            let rng = rng.fork();
            threads.push(scope.spawn(move || write(db, rng)));
        }
        let rng = rng.fork();
        threads.push(scope.spawn(move || read(db, rng)));
        let panicked = || Err(format!("{PANIC}in a round"));
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| panicked()))
    })
}

fn write(db: &Db, mut rng: Rng) -> Result<(), String> {
    let family = db.family("default").ok_or("no default family")?;
    for _ in 0..BATCHES {
        let mut batch = WriteBatch::new();
        let key = key(rng.below(KEYS));
        let added = match rng.below(100) {
            0..10 => batch.delete(family.id(), key.as_bytes()),
            10 => batch.delete_range(family.id(), key.as_bytes(), format!("{key}~").as_bytes()),
            _ => {
                let len = if rng.percent(5) { rng.between(1000, 4000) } else { rng.between(0, 200) };
                batch.put(family.id(), key.as_bytes(), &[key.as_bytes(), &rng.bytes(len)].concat())
            }
        };
        let options = WriteOptions { sync: rng.percent(1), ..WriteOptions::default() };
        added.and_then(|()| db.write(&mut batch, options)).map_err(|e| format!("write: {e}"))?;
    }
    Ok(())
}

/// A value begins with its key, at whatever time it is read.
fn read(db: &Db, mut rng: Rng) -> Result<(), String> {
    let family = db.family("default").ok_or("no default family")?;
    let failed = |e: ashlar_base::Error| format!("read: {e}");
    for _ in 0..20 {
        let snapshot = db.snapshot().map_err(failed)?;
        let mut iter = db.iter(&family, KeyBounds::default(), ReadOptions::default()).map_err(failed)?;
        iter.seek(key(rng.below(KEYS)).as_bytes()).map_err(failed)?;
        for _ in 0..200 {
            let Some((found, value)) = iter.entry() else { break };
            if !value.starts_with(found) {
                return Err(format!("{} has the value of another", found.escape_ascii()));
            }
            iter.next().map_err(failed)?;
        }
        drop(snapshot);
    }
    Ok(())
}

/// Waits until nothing is under way and nothing is held, and counts.
fn at_rest(db: &Db) -> Result<[u64; 4], String> {
    let failed = |e: ashlar_base::Error| format!("at rest: {e}");
    db.flush(&db.families()).map_err(failed)?;
    db.wait_for_background().map_err(failed)?;
    let began = Instant::now();
    loop {
        ReadPin::settle();
        match unrest(db)? {
            None => break,
            Some(what) if began.elapsed() > REST => return Err(format!("does not come to rest: {what}")),
            Some(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    let kept = |kind| matches!(kind, Table(_) | Blob(_) | Wal(_) | Manifest(_));
    let bytes: u64 = files(db.path())?.into_iter().filter(|(kind, _)| kept(*kind)).map(|(_, len)| len).sum();
    Ok([resident()?, listed("/proc/self/task")?.len() as u64, descriptors(db.path())?, bytes >> 10])
}

/// Blocks that are pinned without a reader, or files without a reference.
fn unrest(db: &Db) -> Result<Option<String>, String> {
    let failed = |e: ashlar_base::Error| format!("at rest: {e}");
    let pins = db.pins().map_err(failed)?;
    if pins.snapshots != 0 || pins.memtable_bytes != 0 || pins.obsolete_files != 0 || pins.block_bytes != 0 {
        return Ok(Some(pins.to_string()));
    }
    let (mut tables, mut blobs) = (0, 0);
    for family in db.families() {
        tables += db.live_files(&family).map_err(failed)?.len();
        blobs += db.property_int(&family, "rocksdb.num-blob-files").unwrap_or_default();
    }
    let (mut tables_there, mut blobs_there) = (0, 0);
    for (kind, _) in files(db.path())? {
        tables_there += usize::from(matches!(kind, Table(_)));
        blobs_there += u64::from(matches!(kind, Blob(_)));
    }
    let same = (tables, blobs) == (tables_there, blobs_there);
    let what = format!("{tables_there} tables, {blobs_there} blob files; live are {tables} and {blobs}");
    Ok((!same).then_some(what))
}

/// Kinds and lengths.
fn files(dir: &Path) -> Result<Vec<(FileKind, u64)>, String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| e.to_string())?.flatten() {
        // One that is gone meanwhile has no length any more.
        let len = entry.metadata().map_or(0, |about| about.len());
        files.extend(FileKind::parse(&entry.file_name().to_string_lossy()).map(|kind| (kind, len)));
    }
    Ok(files)
}

fn listed(dir: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{dir}: {e}"))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Open descriptors but those of tables and blob files, which come and go; a file that is removed counts.
fn descriptors(dir: &Path) -> Result<u64, String> {
    let live = |path: &PathBuf| {
        let target = std::fs::read_link(path).unwrap_or_default();
        let kind = target.file_name().and_then(|name| FileKind::parse(&name.to_string_lossy()));
        target.starts_with(dir) && matches!(kind, Some(Table(_) | Blob(_)))
    };
    Ok(listed("/proc/self/fd")?.iter().filter(|path| !live(path)).count() as u64)
}

/// KiB.
fn resident() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    number.ok_or_else(|| "no VmRSS in /proc/self/status".to_owned())
}
