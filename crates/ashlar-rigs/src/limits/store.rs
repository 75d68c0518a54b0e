//! A small database whose writers know the expected content.

use ashlar_base::{Error, ErrorKind};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions};
use ashlar_testkit::Rng;
use ashlar_testkit::harm::LOST_WRITE;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than the longest pause between two tries of the engine.
const PATIENCE: Duration = Duration::from_secs(120);

fn options() -> (DbOptions, FamilyOptions) {
    let family = FamilyOptions { write_buffer_bytes: 512 << 10, ..FamilyOptions::default() };
    (DbOptions { format_level: FormatLevel::V7_8, ..DbOptions::default() }, family)
}

pub(super) fn open(dir: &Path) -> Result<Db, Error> {
    let (db, family) = options();
    Db::open(Env::os()?, dir, db, Vec::new(), family)
}

pub(super) fn open_read_only(dir: &Path) -> Result<Db, Error> {
    let (db, family) = options();
    Db::open_read_only(Env::os()?, dir, db, Vec::new(), family)
}

pub(super) fn flush(db: &Db) -> Result<(), Error> {
    db.flush(&db.families())
}

/// What a writer knows of its keys: those that must be there, and those that may.
#[derive(Default)]
pub(super) struct Known {
    pub(super) there: BTreeSet<Vec<u8>>,
    pub(super) maybe: BTreeSet<Vec<u8>>,
}

impl Known {
    /// A kilobyte that does not shrink.
    pub(super) fn put(&mut self, db: &Db, key: String, rng: &mut Rng) -> Result<(), Error> {
        let family = db.family("default").ok_or_else(Error::closed)?;
        let mut batch = WriteBatch::new();
        batch.put(family.id(), key.as_bytes(), &rng.bytes(1024))?;
        let sync = rng.percent(2);
        match db.write(&mut batch, WriteOptions { sync, ..WriteOptions::default() }) {
            Ok(_) => {
                self.there.insert(key.into_bytes());
                Ok(())
            }
            Err(e) => {
                if e.kind() == ErrorKind::Indeterminate {
                    self.maybe.insert(key.into_bytes());
                }
                Err(e)
            }
        }
    }

    /// Puts `count` keys that begin with `name`.
    pub(super) fn fill(&mut self, db: &Db, name: &str, count: usize, rng: &mut Rng) -> Result<(), Error> {
        (0..count).try_for_each(|number| self.put(db, format!("{name} {number:06}"), rng))
    }

    /// Tries to write until it is taken.
    ///
    /// # Errors
    /// Writes do not resume within the longest pause of the engine.
    pub(super) fn until_taken(&mut self, db: &Db, name: &str, rng: &mut Rng) -> Result<(), String> {
        let began = Instant::now();
        for tries in 0.. {
            match self.put(db, format!("{name} {tries:06}"), rng) {
                Ok(()) => break,
                Err(e) if began.elapsed() > PATIENCE => return Err(format!("writes do not resume: {e}")),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        Ok(())
    }

    /// Everything acknowledged is there?
    pub(super) fn check(&self, db: &Db) -> Result<(), String> {
        let family = db.family("default").ok_or("no default family")?;
        for key in &self.there {
            let found = db.get(&family, key, ReadOptions::default());
            match found.map_err(|e| format!("a read: {e}"))? {
                Some(_) => {}
                None => {
                    let (key, count) = (key.escape_ascii(), self.there.len());
                    return Err(format!("{LOST_WRITE}{key}, one of {count} acknowledged writes"));
                }
            }
        }
        Ok(())
    }
}
