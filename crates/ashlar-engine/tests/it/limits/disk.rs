//! A small file system that writers fill, and that is given room again: writes resume in the same handle, everything
//! acknowledged is there, and RocksDB reads what a close leaves.

use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::health::Severity;
use ashlar_engine::options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions};
use ashlar_env::Env;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, Rng, report};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TEST: &str = "limits::disk::a_small_disk_fills_and_is_freed";
const BALLAST: usize = 6 << 20;
const WRITERS: u64 = 3;

/// A file system of 16 MiB; gone when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Result<SmallDisk, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(dir.path()).output();
        match done {
            Ok(output) if output.status.success() => Ok(SmallDisk(dir)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(e) => Err(e.to_string()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn open(env: &Env, dir: &Path) -> Db {
    let options = DbOptions { format_level: FormatLevel::V7_8, ..DbOptions::default() };
    let family = FamilyOptions { write_buffer_bytes: 512 << 10, ..FamilyOptions::default() };
    Db::open(env.clone(), dir, options, Vec::new(), family).expect("opens")
}

/// What a writer knows of its keys: those that must be there, and those that may.
#[derive(Default)]
struct Known {
    there: BTreeSet<Vec<u8>>,
    maybe: BTreeSet<Vec<u8>>,
}

impl Known {
    fn put(&mut self, db: &Db, key: String, rng: &mut Rng) -> Result<(), Error> {
        let family = db.family("default").expect("always there");
        // Bytes that do not shrink.
        let value: Vec<u8> = (0..128).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        let mut batch = WriteBatch::new();
        batch.put(family.id(), key.as_bytes(), &value)?;
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
}

impl Known {
    /// On a full disk that holds up flushes a deletion is taken, unless the log is full as well.
    fn delete_one(&mut self, db: &Db) -> bool {
        let was = db.health().0;
        let (Some(key), Some(family)) = (self.there.pop_first(), db.family("default")) else { return false };
        let mut batch = WriteBatch::new();
        batch.delete(family.id(), &key).expect("small enough");
        let deleted = db.write(&mut batch, WriteOptions::default());
        match &deleted {
            Ok(_) => return true,
            Err(e) if e.kind() == ErrorKind::Indeterminate => drop(self.maybe.insert(key)),
            Err(_) => drop(self.there.insert(key)),
        }
        assert!(was != Severity::Full || db.health().0 == Severity::Hard, "{deleted:?}");
        false
    }
}

/// Each writer writes until it is refused.
fn fill(db: &Db, known: &mut [Known]) {
    std::thread::scope(|scope| {
        for (writer, known) in (0..WRITERS).zip(known.iter_mut()) {
            scope.spawn(move || {
                let mut rng = Rng::new(writer);
                let refused = (0..1_000_000)
                    .find_map(|i| known.put(db, format!("fill {writer} {i:06}"), &mut rng).err())
                    .expect("16 MiB are not that large");
                let kinds = [ErrorKind::Io(IoKind::NoSpace), ErrorKind::Indeterminate];
                assert!(kinds.contains(&refused.kind()), "{refused}");
            });
        }
    });
}

fn check(db: &Db, known: &[Known]) {
    let family = db.family("default").expect("always there");
    for key in known.iter().flat_map(|k| &k.there) {
        let found = db.get(&family, key, &ReadOptions::default()).expect("reads work");
        assert!(found.is_some(), "{} is lost", key.escape_ascii());
    }
}

#[test]
fn a_small_disk_fills_and_is_freed() {
    let _readers = crate::beside_others();
    let disk = match SmallDisk::mount() {
        Ok(disk) => disk,
        Err(why) => return report::skipped(TEST, &format!("no small file system can be mounted: {why}")),
    };
    let env = Env::os().expect("a machine");
    let ballast = disk.path("ballast");
    env.fs.create(&ballast).expect("a file").write_at(&vec![7; BALLAST], 0).expect("room");
    let dir = disk.path("db");
    let db = open(&env, &dir);
    let mut known: Vec<Known> = (0..WRITERS).map(|_| Known::default()).collect();
    let mut rng = Rng::new(99);
    let (mut resumed, mut deletions) = (0, 0);
    for round in 0..2 {
        fill(&db, &mut known);
        assert!(db.health().0 >= Severity::Soft, "{:?}", db.health());
        check(&db, &known);
        deletions += u32::from(known[1].delete_one(&db));
        // Once by removing a file, once by a larger disk.
        if round == 0 {
            env.fs.remove(&ballast).expect("it is there");
        } else {
            let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(disk.0.path()).status();
            assert!(grown.is_ok_and(|s| s.success()));
        }
        let begun = env.clock.now();
        let mut tries = 0;
        while let Err(e) = known[0].put(&db, format!("again {round} {tries:06}"), &mut rng) {
            tries += 1;
            assert!(env.clock.now() - begun < Duration::from_secs(120), "writes do not resume: {e}");
            env.clock.sleep(Duration::from_millis(50));
        }
        resumed += 1;
        for i in 0..500 {
            known[0].put(&db, format!("more {round} {i:06}"), &mut rng).expect("there is room");
        }
        check(&db, &known);
    }
    db.resume().expect("there is room");
    db.wait_for_background().expect("there is room");
    assert_eq!(db.health().0, Severity::Well);
    db.close().expect("closes");
    let read = judge(&dir, &known);
    let there: usize = known.iter().map(|k| k.there.len()).sum();
    report::figure(&format!(
        "small disk: filled twice, writes resumed {resumed} times in the same handle, {there} acknowledged writes there, \
         {deletions} deletions taken while it was full, {read}"
    ));
}

/// Both RocksDBs find what was acknowledged, and nothing that was refused.
fn judge(dir: &Path, known: &[Known]) -> String {
    let mut said = Vec::new();
    for version in JudgeVersion::ALL {
        let mut judge = match Judge::spawn(version) {
            Ok(judge) => judge,
            Err(JudgeError::Skip(skip)) => {
                said.push(format!("not read by {}: {skip}", version.name()));
                continue;
            }
            Err(e) => panic!("{e}"),
        };
        judge.open(dir, Opening::Existing, "").expect("RocksDB opens it");
        let found: BTreeSet<Vec<u8>> =
            judge.dump("default").expect("RocksDB reads it").into_iter().map(|(key, _)| key).collect();
        judge.close().expect("closes");
        for known in known {
            assert!(known.there.is_subset(&found), "RocksDB {} misses keys", version.name());
        }
        let allowed = |key: &Vec<u8>| known.iter().any(|k| k.there.contains(key) || k.maybe.contains(key));
        assert!(found.iter().all(allowed), "RocksDB {} finds what was refused", version.name());
        said.push(format!("read by {}", version.name()));
    }
    said.join(", ")
}
