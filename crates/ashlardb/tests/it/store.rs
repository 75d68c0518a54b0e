//! Our side of the comparisons: a database that obeys operation lists, and directories seen from outside.

use ashlar_testkit::ops::MERGE_OPERATOR;
use ashlar_testkit::oracle::{State, first_difference};
use ashlar_testkit::{Change, KeyValue, Op};
use ashlardb::{
    Builder, CompactRangeOptions, Db, FormatLevel, Read as _, Write as _, WriteBatch, WriteOptions,
    standard_operator,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The families every list writes to.
pub const FAMILIES: [&str; 3] = ["default", "one", "two"];

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub level: FormatLevel,
    pub write_buffer: usize,
}

impl Shape {
    /// Nothing is flushed unless a list says so.
    pub fn large(level: FormatLevel) -> Shape {
        Shape { level, write_buffer: 4 << 20 }
    }

    /// Flushes and compactions are under way most of the time.
    pub fn small(level: FormatLevel) -> Shape {
        Shape { level, write_buffer: 128 << 10 }
    }

    pub fn builder(self, dir: &Path) -> Builder {
        let builder = Db::builder(dir).format_level(self.level);
        let builder = builder.tune(move |_, family| {
            family.write_buffer_bytes = self.write_buffer;
            family.merge_operator = standard_operator(MERGE_OPERATOR);
            family.compaction.target_file_bytes = 64 << 10;
            family.compaction.base_level_bytes = 256 << 10;
        });
        FAMILIES.iter().fold(builder, |builder, name| builder.family(name, |f| f))
    }
}

/// An open database that obeys operations.
pub struct Store {
    dir: PathBuf,
    shape: Shape,
    db: Option<Db>,
}

impl Store {
    pub fn open(dir: &Path, shape: Shape) -> Store {
        let db = shape.builder(dir).open().unwrap_or_else(|e| panic!("{}: {e:?}", dir.display()));
        Store { dir: dir.to_path_buf(), shape, db: Some(db) }
    }

    pub fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    pub fn close(&mut self) {
        self.db.take().unwrap().close().unwrap();
    }

    /// Does writes, flushes, compactions and reopens; reads and snapshots are passed over.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { changes, sync } => write(self.db(), changes, *sync),
            Op::Flush { family } => {
                self.db().family(family).unwrap().flush().unwrap();
            }
            Op::Compact { family } => {
                let family = self.db().family(family).unwrap();
                family.compact_range(.., CompactRangeOptions::default()).unwrap();
            }
            Op::Reopen => {
                self.close();
                *self = Store::open(&self.dir, self.shape);
            }
            Op::Get { .. } | Op::Scan { .. } | Op::Snapshot { .. } | Op::Release { .. } => {}
        }
    }
}

/// One atomic write.
pub fn write(db: &Db, changes: &[Change], sync: bool) {
    db.writing(WriteOptions::new().sync(sync)).write(batch(db, changes)).unwrap();
}

fn batch(db: &Db, changes: &[Change]) -> WriteBatch {
    let batch = WriteBatch::new();
    for change in changes {
        let family = db.family(change.family()).unwrap();
        let to = batch.family(&family);
        let added = match change {
            Change::Put { key, value, .. } => to.put(key, value),
            Change::Delete { key, .. } => to.delete(key),
            Change::SingleDelete { key, .. } => to.single_delete(key),
            Change::Merge { key, operand, .. } => to.merge(key, operand),
            Change::DeleteRange { from, to: end, .. } => to.delete_range(from, end),
        };
        added.unwrap();
    }
    batch
}

/// The entries of a scan.
pub fn listing(scan: impl Iterator<Item = ashlardb::Result<KeyValue>>) -> Vec<KeyValue> {
    scan.map(|entry| entry.unwrap_or_else(|e| panic!("{e:?}"))).collect()
}

/// Everything in the database; forward and backward scans agree.
pub fn state_of(db: &Db) -> State {
    State::of(db.families().iter().map(|family| {
        let forward = listing(family.scan(..));
        let mut backward = listing(family.scan(..).rev());
        backward.reverse();
        assert_eq!(first_difference(&forward, &backward), None, "family {} backwards", family.name());
        (family.name().to_owned(), forward)
    }))
}

/// Copies a directory's plain files, as a backup of a closed or killed database would. The LOCK of the copy is a new one:
/// reading the LOCK of a database that this process has open would give the lock up. An open database removes files that
/// it no longer needs; then the copy begins again.
pub fn copy(from: &Path) -> tempfile::TempDir {
    loop {
        let to = tempfile::tempdir().unwrap();
        match copy_files(from, to.path()) {
            Ok(()) => return to,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => panic!("{}: {e}", from.display()),
        }
    }
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    assert!(from.is_dir(), "{}", from.display());
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_name() == "LOCK" {
            std::fs::write(target, "")?;
        } else if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Names and lengths of a directory's plain files.
pub fn files(dir: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name().into(), entry.metadata().unwrap().len())).collect()
}

/// Everything below a directory: paths, contents, times of change. Equal when nothing was touched.
pub fn fingerprint(dir: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let about = std::fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            all.push((path.clone(), Vec::new(), about.modified().unwrap()));
            all.extend(fingerprint(&path));
        } else {
            all.push((path.clone(), std::fs::read(&path).unwrap_or_default(), about.modified().unwrap()));
        }
    }
    all.sort();
    all
}
