//! A directory to damage: the files of a small database after a kill, and every state that the database had.
//!
//! The directory has tables, blob files, a WAL file and a MANIFEST, of some kilobytes each, and the other files of a
//! database. The database was closed and opened once before the kill: [`Subject::older`] is the directory at that moment.

use super::look::State;
use ashlar_base::{Error, FamilyId, Result};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::jobs::InlineExecutor;
use ashlar_env::{EntryKind, Env, Fs, MemFs, SeededRand, VirtualClock};
use ashlar_format::filename::FileKind;
use ashlar_options::{BlobOptions, CompactionOptions, DbOptions, FamilyOptions, FormatLevel, WriteOptions};
use ashlar_testkit::Rng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(super) const DIR: &str = "/db";
/// Keys there are at most.
pub(super) const KEYS: usize = 90;
/// Batches before each of the two compactions.
const FLUSHED: usize = 90;
/// Batches that stay in the log.
const LOGGED: usize = 40;

/// Names and bytes.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) struct Subject {
    pub(super) files: Files,
    pub(super) older: Files,
    /// The state after each batch.
    pub(super) history: Vec<State>,
    /// States below this one are in the table.
    pub(super) flushed: usize,
    pub(super) level: FormatLevel,
}

pub(super) fn key(number: usize) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

/// A machine of which nothing is left but its memory; background work runs in the caller.
pub(super) fn machine(seed: u64) -> Env {
    let clock = Arc::new(VirtualClock::new());
    let jobs = Arc::new(InlineExecutor::new(Arc::clone(&clock), SeededRand::new(2)));
    Env { fs: Arc::new(MemFs::new()), clock, rand: Arc::new(SeededRand::new(seed)), jobs }
}

pub(super) fn open(env: &Env, level: FormatLevel) -> Result<Db> {
    let mut family = FamilyOptions {
        write_buffer_bytes: 1 << 20,
        compaction: CompactionOptions { automatic: false, ..CompactionOptions::default() },
        blob: BlobOptions { enabled: true, min_blob_bytes: 40, ..BlobOptions::default() },
        ..FamilyOptions::default()
    };
    family.table.block_size = 512;
    let options = DbOptions { block_cache_bytes: 1 << 20, format_level: level, ..DbOptions::default() };
    let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
    Db::open(env.clone(), Path::new(DIR), options, vec![default], family)
}

fn contents(fs: &dyn Fs) -> Result<Files> {
    let mut files = Files::new();
    for entry in fs.list(Path::new(DIR))?.into_iter().filter(|entry| entry.kind == EntryKind::File) {
        let file = fs.open_read(&Path::new(DIR).join(&entry.name))?;
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        files.insert(entry.name, bytes);
    }
    Ok(files)
}

/// One batch, into the database and behind the history.
fn write(db: &Db, rng: &mut Rng, history: &mut Vec<State>) -> Result<()> {
    let (mut batch, mut state) = (WriteBatch::new(), history.last().cloned().unwrap_or_default());
    for _ in 0..rng.between(1, 3) {
        let key = key(rng.below(KEYS));
        match rng.below(100) {
            0..12 => {
                batch.delete(FamilyId::DEFAULT, &key)?;
                state.remove(&key);
            }
            12..16 => {
                let to = [key.as_slice(), b"~"].concat();
                batch.delete_range(FamilyId::DEFAULT, &key, &to)?;
                state.remove(&key);
            }
            _ => {
                let len = rng.between(10, 60);
                let value = rng.bytes(len);
                batch.put(FamilyId::DEFAULT, &key, &value)?;
                state.insert(key, value);
            }
        }
    }
    db.write(&mut batch, WriteOptions::default())?;
    history.push(state);
    Ok(())
}

/// Batches, flushed now and then, and all of it compacted. A snapshot keeps the last range deletion in the table.
fn fill(db: &Db, rng: &mut Rng, history: &mut Vec<State>) -> Result<()> {
    let family = db.family("default").ok_or_else(Error::closed)?;
    for at in 0..FLUSHED {
        write(db, rng, history)?;
        if at % 5 == 4 {
            db.flush(&[Arc::clone(&family)])?;
        }
    }
    let _seen = db.snapshot()?;
    let mut batch = WriteBatch::new();
    batch.delete_range(FamilyId::DEFAULT, b"key010", b"key013")?;
    db.write(&mut batch, WriteOptions::default())?;
    let mut state = history.last().cloned().unwrap_or_default();
    state.retain(|key, _| !(b"key010".as_slice()..b"key013").contains(&key.as_slice()));
    history.push(state);
    db.flush(&[Arc::clone(&family)])?;
    db.compact_range(&family, None, None)?;
    db.wait_for_background()
}

/// Another seed makes another database of the same content.
pub(super) fn subject(seed: u64, level: FormatLevel) -> Result<Subject> {
    let env = machine(seed);
    let (mut rng, mut history) = (Rng::new(7), vec![State::new()]);
    let db = open(&env, level)?;
    fill(&db, &mut rng, &mut history)?;
    for _ in 0..LOGGED / 4 {
        write(&db, &mut rng, &mut history)?;
    }
    let older = living(&env, &db)?;
    db.close()?;
    drop(db);
    let db = open(&env, level)?;
    fill(&db, &mut rng, &mut history)?;
    let flushed = history.len() - 1;
    for _ in 0..LOGGED {
        write(&db, &mut rng, &mut history)?;
    }
    // What stands here is what a kill leaves: nothing of it depends on the close.
    let files = living(&env, &db)?;
    Ok(Subject { files, older, history, flushed, level })
}

/// What stands in the directory. A compaction's inputs are removed sooner or later, when the last reader is gone: here
/// they are.
fn living(env: &Env, db: &Db) -> Result<Files> {
    let family = db.family("default").ok_or_else(Error::closed)?;
    let live: Vec<_> =
        db.live_files(&family)?.into_iter().map(|file| FileKind::Table(file.number).name()).collect();
    let mut files = contents(&*env.fs)?;
    files.retain(|name, _| !name.ends_with(".sst") || live.contains(name));
    Ok(files)
}

impl Subject {
    pub(super) fn last(&self) -> State {
        self.history.last().cloned().unwrap_or_default()
    }
}
