//! Copies the files of a run from its simulated machine to a real disk, where RocksDB reads them.
//!
//! Both versions read what is at level 7.8, the newer one the rest. Half of the stores are closed first, the others are
//! left as a kill leaves them, so that RocksDB replays our logs. A store that has prepared transactions is read as a
//! transaction database, which must have the same undecided ones.

use super::expiring::is_timed;
use super::places::Places;
use super::plan::DEFAULT;
use super::store::{DIR, Store, model_name};
use super::transactions::PREPARED;
use ashlar_env::EntryKind;
use ashlar_options::FormatLevel;
use ashlar_testkit::judge::{JudgeError, MERGING, Opening};
use ashlar_testkit::oracle::first_difference;
use ashlar_testkit::text::to_hex;
use ashlar_testkit::{Judge, JudgeVersion, Skip};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Both versions, running.
pub struct Judges {
    running: [Judge; 2],
}

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looked {
    /// Directories read by 7.8.3, and by 11.8.1.
    pub directories: [u64; 2],
    /// Those of them that were not closed before.
    pub unclosed: u64,
    /// Undecided transactions that were found there.
    pub undecided: u64,
    /// Stores that RocksDB cannot open.
    pub orphaned: u64,
    pub entries: u64,
}

impl Judges {
    pub fn start() -> Result<Judges, Skip> {
        let spawn = |version| {
            Judge::spawn(version).map_err(|e| match e {
                JudgeError::Skip(skip) => skip,
                other => panic!("{other}"),
            })
        };
        Ok(Judges { running: [spawn(JudgeVersion::V7)?, spawn(JudgeVersion::V11)?] })
    }

    /// Compares what RocksDB reads with the model. RocksDB crashes if an undecided transaction has changes of a dropped family, so
    /// such a store is left out.
    pub fn read(&mut self, store: &Store, closed: bool, looked: &mut Looked) -> Result<(), String> {
        if store.has_orphans() {
            looked.orphaned += 1;
            return Ok(());
        }
        if closed {
            store.db.close().map_err(|e| format!("close: {e}"))?;
        } else if store.setup.holds_back() {
            store.db.flush_wal(false).map_err(|e| format!("flush_wal: {e}"))?;
        }
        for (at, version) in JudgeVersion::ALL.into_iter().enumerate() {
            let setup = &store.setup;
            // The older library has no call that sets `cf_paths`.
            let of_families = !setup.places.cf_paths.is_empty();
            if version == JudgeVersion::V7 && (of_families || setup.db.format_level > FormatLevel::V7_8) {
                continue;
            }
            let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
            copy_out(store, folder.path())?;
            let read = self.prepare(at, store, folder.path());
            let read = read.and_then(|()| self.read_one(at, store, folder.path(), looked));
            read.map_err(|e| format!("{}, closed {closed}: {e}", version.name()))?;
            looked.directories[at] += 1;
            looked.unclosed += u64::from(!closed);
        }
        Ok(())
    }

    /// Tells RocksDB where the copies of the places are, because its OPTIONS files do not, and that there are transactions.
    fn prepare(&mut self, at: usize, store: &Store, to: &Path) -> Result<(), String> {
        let judge = &mut self.running[at];
        let mut prepare = |line: String| judge.prepare(&line).map_err(|e| format!("{line}: {e}"));
        prepare("without".to_owned())?;
        let Places { db_paths, cf_paths, .. } = &store.setup.places;
        if !needs_words(store) {
            return Ok(());
        }
        prepare(match store.setup.places.are_any() {
            true => format!("with db wal_dir={}", copy_of(to, &store.wal_dir()).display()),
            false => "with db ".to_owned(),
        })?;
        for name in store.promise.names.keys() {
            prepare(format!("with family {name} {MERGING}"))?;
        }
        let others = store.promise.names.keys().filter(|name| *name != DEFAULT);
        let of_families = others.flat_map(|name| cf_paths.iter().map(move |path| (name.as_str(), path)));
        for (name, path) in db_paths.iter().map(|path| ("*", path)).chain(of_families) {
            let copy = to_hex(copy_of(to, &path.path).as_os_str().as_encoded_bytes());
            prepare(format!("with path {name} {copy} {}", path.target_bytes))?;
        }
        if store.has_prepared() { prepare("with transactions".to_owned()) } else { Ok(()) }
    }

    fn read_one(&mut self, at: usize, store: &Store, dir: &Path, looked: &mut Looked) -> Result<(), String> {
        let judge = &mut self.running[at];
        let said = |e: JudgeError| e.to_string();
        let options = if needs_words(store) { "" } else { MERGING };
        judge.open(&copy_of(dir, Path::new(DIR)), Opening::Existing, options).map_err(said)?;
        if store.has_prepared() {
            let found = judge.undecided().map_err(said)?;
            let expected = store.model.now().entries(PREPARED);
            if !found.iter().eq(expected.iter().map(|(name, _)| name)) {
                return Err(format!("undecided transactions {found:?}, expected {expected:?}"));
            }
            looked.undecided += found.len() as u64;
        }
        let found = judge.families().map_err(said)?;
        if !found.iter().eq(store.promise.names.keys()) {
            return Err(format!("families {found:?}, expected {:?}", store.promise.names));
        }
        for (name, generation) in &store.promise.names {
            let mut expected =
                store.setup.entries(store.model.now(), &model_name(name, *generation), &store.db);
            let mut forward = judge.dump(name).map_err(said)?;
            let mut backward = judge.dump_backwards(name).map_err(said)?;
            backward.reverse();
            if is_timed(name) {
                // Without its wrapper, RocksDB shows values with their times, and those that are over.
                let keys = expected.iter().map(|(key, _)| key.clone()).collect::<BTreeSet<_>>();
                for list in [&mut expected, &mut forward, &mut backward] {
                    list.retain(|(key, _)| keys.contains(key));
                    list.iter_mut().for_each(|(_, value)| value.clear());
                }
            }
            for (way, found) in [("forward", forward), ("backward", backward)] {
                if let Some(difference) = first_difference(&expected, &found) {
                    return Err(format!("family {name} {way}: {difference}"));
                }
            }
            looked.entries += expected.len() as u64;
        }
        judge.close().map_err(said)
    }
}

/// Whether the opening needs lines of preparation beside its options.
fn needs_words(store: &Store) -> bool {
    store.setup.places.are_any() || store.has_prepared()
}

/// The files of the simulated directories, as they are now.
fn copy_out(store: &Store, to: &Path) -> Result<(), String> {
    let fs = store.sim.env().fs;
    for dir in store.setup.places.dirs() {
        let copy = copy_of(to, &dir);
        std::fs::create_dir_all(&copy).map_err(|e| e.to_string())?;
        // A place that no open was given yet is not there.
        let entries = fs.list(&dir).unwrap_or_default();
        for entry in entries.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            let file = fs.open_read(&dir.join(&entry.name)).map_err(|e| e.to_string())?;
            let mut bytes = vec![0; usize::try_from(file.len()).map_err(|e| e.to_string())?];
            file.read_exact_at(&mut bytes, 0).map_err(|e| e.to_string())?;
            std::fs::write(copy.join(&entry.name), bytes).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Where a simulated directory lies below `to`.
fn copy_of(to: &Path, dir: &Path) -> PathBuf {
    to.join(dir.strip_prefix("/").unwrap_or(dir))
}
