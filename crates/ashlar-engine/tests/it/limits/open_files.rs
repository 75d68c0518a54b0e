//! The limit on open tables: a tree of many small tables read through few file descriptors, on the real machine and on
//! the simulated one, where the process can also run out of descriptors.

use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, Result};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_env::Env;
use ashlar_env::sim::SimEnv;
use ashlar_options::{CompactionOptions, DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::{Rng, report};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const VALUE: usize = 500;

fn family_options() -> FamilyOptions {
    let compaction = CompactionOptions {
        target_file_bytes: 4096,
        base_level_bytes: 1 << 20,
        l0_trigger: 100,
        l0_slowdown: 200,
        l0_stop: 300,
        automatic: false,
        ..CompactionOptions::default()
    };
    FamilyOptions { compaction, ..FamilyOptions::default() }
}

/// The value of a key: determined by the key, and incompressible.
fn value(key: usize) -> Vec<u8> {
    let mut rng = Rng::new(key as u64);
    (0..VALUE / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

fn name(key: usize) -> Vec<u8> {
    format!("{key:08}").into_bytes()
}

struct Tree {
    db: Db,
    family: Arc<Family>,
    keys: usize,
}

impl Tree {
    /// Builds tables of about eight keys.
    fn build(env: Env, dir: &Path, max_open_files: i64, keys: usize) -> Tree {
        let options = DbOptions { max_open_files, ..DbOptions::default() };
        let db = Db::open(env, dir, options, Vec::new(), family_options()).expect("opens");
        let family = db.family("default").expect("always there");
        let tree = Tree { db, family, keys };
        for key in 0..keys {
            let mut batch = WriteBatch::new();
            batch.put(tree.family.id(), &name(key), &value(key)).expect("small");
            tree.db.write(&mut batch, WriteOptions::default()).expect("a write");
        }
        tree.compact();
        tree
    }

    fn compact(&self) {
        self.try_compact().expect("flushes and compacts");
    }

    fn try_compact(&self) -> Result<()> {
        self.db.flush(std::slice::from_ref(&self.family))?;
        self.db.compact_range(&self.family, None, None)
    }

    fn tables(&self) -> usize {
        self.db.shape(&self.family).tables()
    }

    /// Reads a key; returns the error if it cannot be read, and asserts that the value is never wrong.
    fn check(&self, key: usize) -> Result<(), ErrorKind> {
        match self.db.get(&self.family, &name(key), ReadOptions::default()) {
            Ok(found) => {
                assert_eq!(found.as_deref(), Some(&*value(key)), "key {key}");
                Ok(())
            }
            Err(e) => Err(e.kind()),
        }
    }

    fn scan(&self) {
        let mut iter =
            self.db.iter(&self.family, KeyBounds::default(), ReadOptions::default()).expect("opens");
        iter.first().expect("reads");
        for key in 0..self.keys {
            assert_eq!(iter.entry(), Some((&*name(key), &*value(key))));
            iter.next().expect("reads");
        }
        assert!(iter.entry().is_none());
    }
}

/// The number of this process's descriptors for tables in `dir`.
fn descriptors(dir: &Path) -> Option<usize> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
    let files = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    Some(files.filter(|path| path.starts_with(dir) && path.extension().is_some_and(|e| e == "sst")).count())
}

#[test]
fn a_thousand_tables_are_read_through_few_descriptors() {
    const LIMIT: usize = 64;
    const READERS: usize = 3;
    const CURSORS: usize = 8;
    let _readers = crate::beside_others();
    // The test does not need a thousand real syncs, so it uses a memory file system where there is one.
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = made.expect("a directory");
    let dir = dir.path().canonicalize().expect("a path");
    if descriptors(&dir).is_none() {
        return report::skipped("open_files", "the system does not list a process's descriptors");
    }
    let env = Env::os().expect("a machine");
    let tree = Tree::build(env.clone(), &dir, LIMIT as i64, 8000);
    let tables = tree.tables();
    assert!(tables >= 900, "{tables} tables");
    let (most, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let look = || most.fetch_max(descriptors(&dir).unwrap_or(0), Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                look();
                env.clock.sleep(Duration::from_millis(2));
            }
        });
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                let tree = &tree;
                scope.spawn(move || {
                    let mut rng = Rng::new(n as u64);
                    (0..3000).for_each(|_| tree.check(rng.below(tree.keys)).expect("reads"));
                })
            })
            .collect();
        tree.scan();
        let mut cursors: Vec<_> = (0..CURSORS)
            .map(|n| {
                let mut iter =
                    tree.db.iter(&tree.family, KeyBounds::default(), ReadOptions::default()).expect("opens");
                iter.seek(&name(n * 1000)).expect("reads");
                iter
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().expect("reads right"));
        // An iterator continues at its position, however many other tables are read.
        (0..tree.keys).step_by(8).for_each(|key| tree.check(key).expect("reads"));
        for (n, iter) in cursors.iter_mut().enumerate() {
            assert_eq!(iter.entry(), Some((&*name(n * 1000), &*value(n * 1000))));
            iter.next().expect("reads");
            assert_eq!(iter.entry().map(|e| e.0.to_vec()), Some(name(n * 1000 + 1)));
        }
        drop(cursors);
        tree.compact();
        over.store(true, Ordering::Relaxed);
    });
    (0..tree.keys).step_by(8).for_each(|key| tree.check(key).expect("reads"));
    look();
    let reached = most.load(Ordering::Relaxed);
    // A reading thread has at most one more open table, wherever its iterators are; so has the compaction.
    let allowed = LIMIT + READERS + 2;
    tree.db.set_db_options(&[("max_open_files", "20")]).expect("changes while open");
    let lowered = descriptors(&dir).unwrap_or(0);
    report::figure(&format!(
        "open files: {tables} tables, max_open_files {LIMIT}: {reached} descriptors at most, {lowered} after the limit went to 20"
    ));
    assert!((LIMIT / 2..=allowed).contains(&reached), "{reached} where {allowed} are allowed");
    assert_eq!(lowered, 20);
    tree.db.set_db_options(&[("max_open_files", "-1")]).expect("changes while open");
    (0..tree.keys / 4).for_each(|key| tree.check(key).expect("reads"));
    assert!(descriptors(&dir).unwrap_or(0) > 200, "nothing is closed without a limit");
}

#[test]
fn without_descriptors_reads_are_right_or_refused() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(11);
    let tree = Tree::build(sim.env(), Path::new("/data/db"), -1, 800);
    assert!(tree.tables() > 90, "{} tables", tree.tables());
    let others = 12;
    let most = sim.open_files() + others;
    sim.set_open_files(most);
    // More tables than descriptors: idle tables give theirs up.
    for round in 0..3 {
        (0..tree.keys).step_by(1 + round).for_each(|key| tree.check(key).expect("others give way"));
    }
    tree.scan();
    // Idle iterators hold no descriptor: more iterators than descriptors, each in a table of its own.
    let mut cursors = Vec::new();
    for n in 0..2 * others {
        let mut iter = tree
            .db
            .iter(&tree.family, KeyBounds::default(), ReadOptions::default())
            .expect("no table to open yet");
        iter.seek(&name(n * 30)).expect("others give way");
        cursors.push(iter);
    }
    for (n, iter) in cursors.iter_mut().enumerate() {
        for key in n * 30..n * 30 + 30 {
            assert_eq!(iter.entry(), Some((&*name(key), &*value(key))));
            iter.next().expect("others give way");
        }
    }
    // A table that cannot be opened gives an error, and no read returns a wrong value.
    tree.db.set_db_options(&[("max_open_files", "0")]).expect("changes while open");
    sim.set_open_files(sim.open_files());
    let refused = (0..tree.keys).filter(|key| tree.check(*key) == Err(ErrorKind::Io(IoKind::TooManyFiles)));
    assert!(refused.count() > 0, "no descriptor is left to open a table");
    let failed = cursors.iter_mut().filter_map(|iter| iter.seek(&name(1)).err());
    assert!(failed.into_iter().all(|e| e.kind() == ErrorKind::Io(IoKind::TooManyFiles)));
    sim.set_open_files(most);
    tree.db.set_db_options(&[("max_open_files", "-1")]).expect("changes while open");
    for iter in &mut cursors {
        iter.seek(&name(1)).expect("the descriptors are free again");
        assert_eq!(iter.entry(), Some((&*name(1), &*value(1))));
    }
    report::figure(&format!("open files: {} cursors where {others} descriptors were left", cursors.len()));
    drop(cursors);
    (0..tree.keys).for_each(|key| tree.check(key).expect("the descriptors are free again"));
    // Background work without a free descriptor closes cached tables, and continues by itself.
    for key in 0..tree.keys {
        let mut batch = WriteBatch::new();
        batch.put(tree.family.id(), &name(key), &value(key)).expect("small");
        tree.db.write(&mut batch, WriteOptions::default()).expect("a write");
    }
    let compacted = (0..3).fold(tree.try_compact(), |done, _| done.or_else(|_| tree.try_compact()));
    compacted.expect("tables gave way each time");
    tree.scan();
}

#[test]
fn a_new_log_finds_its_descriptor_at_the_tables() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(12);
    let tree = Tree::build(sim.env(), Path::new("/data/db"), -1, 800);
    (0..tree.keys).for_each(|key| tree.check(key).expect("there are enough"));
    sim.set_open_files(sim.open_files());
    let mut batch = WriteBatch::new();
    batch.put(tree.family.id(), &name(0), &value(0)).expect("small");
    tree.db.write(&mut batch, WriteOptions::default()).expect("the log is open");
    tree.db.flush(std::slice::from_ref(&tree.family)).expect("tables give way to the next log");
    tree.scan();
}
