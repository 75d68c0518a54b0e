//! Directories to recover: golden ones, and ones that tests build.

mod before_commit;
mod commits;
mod crashes;
mod damage;
mod golden;
mod replay;
mod torn;
mod two_phase;

use super::*;
use ashlar_base::{FamilyId, FileNumber, Level, Order, Result, SeqNum};
use ashlar_cache::FramePool;
use ashlar_env::{Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::BatchReader;
use ashlar_log::RecoveryMode;
use ashlar_options::FormatLevel;
use ashlar_tree::files::{DirState, Settled, create_database, settle_identity, survey};
use ashlar_tree::version::{OpenTables, VersionSet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const DIR: &str = "/db";

fn dir() -> &'static Path {
    Path::new(DIR)
}

fn seq(n: u64) -> SeqNum {
    SeqNum::new(n).unwrap()
}

/// A golden directory as a memory file system.
fn golden(name: &str) -> Env {
    let (os, mem) = (Env::os().unwrap(), Env::mem());
    mem.fs.create_dir_all(dir()).unwrap();
    for (file, from) in ashlar_testkit::golden::files(name).unwrap() {
        put(&mem, &file, &get(&*os.fs, &from));
    }
    mem
}

fn get(fs: &dyn Fs, path: &Path) -> Vec<u8> {
    let file = fs.open_read(path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(env: &Env, name: &str, bytes: &[u8]) {
    env.fs.create(&dir().join(name)).unwrap().write_at(bytes, 0).unwrap();
}

/// Every file with its content.
fn contents(env: &Env) -> BTreeMap<String, Vec<u8>> {
    let list = env.fs.list(dir()).unwrap();
    list.into_iter().map(|e| (e.name.clone(), get(&*env.fs, &dir().join(&e.name)))).collect()
}

fn every_family() -> Families {
    Families { listed: Vec::new(), others: Others::Open { levels: 7 } }
}

fn recover_with(env: &Env, families: &Families) -> Result<Recovered> {
    recover_manifest(env, dir(), FormatLevel::V9_11, &OpenTables::new(FramePool::new(1 << 20)), families)
}

fn recover(env: &Env) -> Result<Recovered> {
    recover_with(env, &every_family())
}

/// A new database and its recovery.
fn fresh(env: &Env) -> Recovered {
    create_database(env, dir(), &Order::Bytewise).unwrap();
    recover(env).unwrap()
}

/// A database whose families need the WAL files from 20 on, sequences after 5. WAL file 10 is kept for the transaction
/// prepared in it.
fn log_10_kept_for_what_it_prepares() -> Env {
    let env = Env::mem();
    let r = fresh(&env);
    let edit = VersionEdit {
        log_number: Some(FileNumber(20)),
        min_log_to_keep: Some(FileNumber(10)),
        last_seq: Some(seq(5)),
        ..VersionEdit::of(FamilyId::DEFAULT)
    };
    r.versions.raise_last_sequence(seq(5));
    r.versions.commit(vec![edit]).unwrap();
    env
}

/// A table file as far as recovery checks it: 100 bytes under the right name.
fn table_file(env: &Env, number: FileNumber) -> Result<()> {
    let file = env.fs.create(&dir().join(FileKind::Table(number).name()))?;
    file.write_at(&[0; 100], 0)?;
    file.sync_all()?;
    env.fs.sync_dir(dir())
}

/// A database that needs a WAL file, and has no OPTIONS file, must have it.
fn empty_log(env: &Env, number: FileNumber) {
    env.fs.create(&dir().join(FileKind::Wal(number).name())).unwrap();
}

/// An edit that adds table `number` with one key to level 0.
fn flush_edit(number: FileNumber, key: &str, at: u64) -> VersionEdit {
    let key = |s| {
        let trailer = ashlar_base::Trailer::new(seq(s), ashlar_base::ValueType::Put);
        ashlar_base::InternalKeyBuf::new(key.as_bytes(), trailer)
    };
    let file = ashlar_format::version_edit::NewFile::new(number, 100, (key(at), key(at)), (seq(at), seq(at)));
    VersionEdit { added: vec![(Level(0), file)], ..VersionEdit::default() }
}

/// Writes a table and commits it, like a flush.
fn flush(env: &Env, versions: &VersionSet, key: &str, at: u64) -> Result<FileNumber> {
    let number = versions.new_file_number();
    table_file(env, number)?;
    versions.commit(vec![flush_edit(number, key, at)])?;
    Ok(number)
}

/// `0 default: L0 15 | L1 9 11` per family.
fn shape(versions: &VersionSet) -> Vec<String> {
    let mut lines = Vec::new();
    for family in versions.families() {
        let mut line = format!("{} {}:", family.id.0, family.name);
        for (n, files) in family.version.levels.iter().enumerate().filter(|(_, f)| !f.is_empty()) {
            line += &format!(" L{n}");
            for f in files {
                line += &format!(" {}", f.number().0);
            }
        }
        lines.push(format!("{line} log {}", family.log_number.0));
    }
    lines
}

/// Records what a replay delivers and the filter accepts: `family:key@sequence`.
#[derive(Debug, Default)]
struct Notes {
    ops: Vec<String>,
    batches: Vec<(u64, u64)>,
}

impl ReplaySink for Notes {
    fn apply(&mut self, place: BatchPlace, batch: &BatchReader<'_>, filter: &FamilyFilter<'_>) -> Result<()> {
        use ashlar_format::write_batch::BatchOp;
        self.batches.push((place.wal.0, place.offset));
        for op in sequenced_ops(batch) {
            let (seq, op) = op?;
            let family = op.family().unwrap_or_default();
            if filter.takes(family) {
                let (BatchOp::Put { key, .. }
                | BatchOp::Delete { key, .. }
                | BatchOp::SingleDelete { key, .. }
                | BatchOp::Merge { key, .. }
                | BatchOp::DeleteRange { begin: key, .. }) = op
                else {
                    panic!("{op:?}")
                };
                self.ops.push(format!("{}:{}@{seq}", family.0, key.escape_ascii()));
            }
        }
        Ok(())
    }
}

fn replay_into(env: &Env, r: &mut Recovered, mode: RecoveryMode) -> Result<(ReplayOutcome, Notes)> {
    let mut notes = Notes::default();
    let outcome = replay_wals(env, dir(), &r.versions, mode, &mut notes, &mut r.report)?;
    Ok((outcome, notes))
}
