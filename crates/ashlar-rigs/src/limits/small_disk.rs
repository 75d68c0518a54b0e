//! Writers fill a small file system, which then gets free space again. Meanwhile deletions are accepted. Afterwards writes
//! resume in the same handle, every acknowledged write is there, and RocksDB reads the closed database.

use super::store::{Known, open};
use super::{Case, SKIPPED, expect};
use ashlar_base::ErrorKind;
use ashlar_base::error::IoKind;
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::health::{Health, Severity};
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_testkit::ext4::Ext4;
use ashlar_testkit::harm::PANIC;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, Rng};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const WRITERS: u64 = 3;
const DELETIONS: usize = 300;

/// A file system of its own in memory; gone when dropped.
pub(super) struct Mounted(PathBuf);

impl Mounted {
    /// Mounts the disk in a folder. An error is a skip: only root can mount.
    pub(super) fn new(folder: &Path, options: &str) -> Result<Mounted, String> {
        let at = folder.join("disk");
        std::fs::create_dir_all(&at).map_err(|e| e.to_string())?;
        mount(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&at))?;
        Ok(Mounted(at))
    }

    /// Changes its options. Files that a close gave back are closed a moment later.
    pub(super) fn remount(&self, options: &str) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let done = mount(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0));
            if done.is_ok() || began.elapsed() > Duration::from_secs(10) {
                return done;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

fn mount(command: &mut Command) -> Result<(), String> {
    let why = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(e) => e.to_string(),
    };
    Err(format!("{SKIPPED}no file system can be mounted: {why}"))
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

impl Known {
    /// On a full disk deletions are taken, some of them synced. Only where compactions that lack room hold up all writers
    /// they wait too, and are refused in the end. The number of those that were taken.
    fn delete(&mut self, db: &Db, count: usize) -> Result<usize, String> {
        let family = db.family("default").ok_or("no default family")?;
        for taken in 0..count {
            let key = self.there.pop_first().ok_or("nothing to delete")?;
            let mut batch = WriteBatch::new();
            batch.delete(family.id(), &key).map_err(|e| e.to_string())?;
            let was = db.health().severity;
            if let Err(e) =
                db.write(&mut batch, WriteOptions { sync: taken % 50 == 0, ..WriteOptions::default() })
            {
                let lawful = e.kind() == ErrorKind::Io(IoKind::NoSpace) && was < Severity::Full;
                expect(lawful, || format!("deletion {taken} on a full disk, {was:?}: {e}"))?;
                self.there.insert(key);
                return Ok(taken);
            }
            let found = db.get(&family, &key, ReadOptions::default()).map_err(|e| e.to_string())?;
            expect(found.is_none(), || format!("{} is there", key.escape_ascii()))?;
        }
        Ok(count)
    }
}

/// Writes until the disk is full for more than the moment that a compaction takes: what it gives back ends that.
fn fill(db: &Db, known: &mut [Known], seed: u64, round: usize) -> Result<(), String> {
    for attempt in 0..20 {
        fill_once(db, known, seed, &format!("{round}/{attempt}"))?;
        if db.health().severity >= Severity::Soft {
            break;
        }
    }
    let Health { severity, cause, .. } = db.health();
    expect((Severity::Soft..=Severity::Full).contains(&severity), || format!("{severity:?}: {cause:?}"))
}

/// Each writer writes until it is refused, for want of room.
fn fill_once(db: &Db, known: &mut [Known], seed: u64, name: &str) -> Result<(), String> {
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .zip(known.iter_mut())
            .map(|(writer, known)| {
                scope.spawn(move || {
                    let mut rng = Rng::new(seed * WRITERS + writer);
                    (0..1_000_000)
                        .find_map(|i| known.put(db, format!("fill {name} {writer} {i:06}"), &mut rng).err())
                })
            })
            .collect();
        for writer in writers {
            let refused = writer.join().map_err(|_| format!("{PANIC}a writer"))?;
            let lawful = refused.as_ref().is_some_and(|e| e.kind() == ErrorKind::Io(IoKind::NoSpace));
            expect(lawful, || format!("a full disk: {refused:?}"))?;
        }
        Ok(())
    })
}

fn check(db: &Db, known: &[Known]) -> Result<(), String> {
    known.iter().try_for_each(|known| known.check(db))
}

/// Given room once by removing a file, once by making the file system larger.
pub(super) fn filled_and_enlarged(case: &mut Case<'_>) -> Result<(), String> {
    let disk = Mounted::new(case.folder, "size=16m")?;
    let ballast = ballast(disk.path("ballast"), 6 << 20)?;
    filled(case, &disk.path("db"), &[&ballast, &|| disk.remount("size=64m")])
}

/// On ext4, which allocates late and reserves what it finds; given room by removing a file.
pub(super) fn filled_ext4(case: &mut Case<'_>) -> Result<(), String> {
    let disk = Ext4::new(48, "").map_err(|skip| format!("{SKIPPED}{skip}"))?;
    let ballast = ballast(disk.path().join("ballast"), 28 << 20)?;
    filled(case, &disk.path().join("db"), &[&ballast])
}

/// Makes a file that is in the way; to be called to remove it.
fn ballast(path: PathBuf, bytes: usize) -> Result<impl Fn() -> Result<(), String>, String> {
    std::fs::write(&path, vec![7; bytes]).map_err(|e| e.to_string())?;
    Ok(move || std::fs::remove_file(&path).map_err(|e| e.to_string()))
}

type MakeRoom<'a> = &'a dyn Fn() -> Result<(), String>;

/// Filled as often as there are ways to make room, and given room in these ways.
fn filled(case: &mut Case<'_>, dir: &Path, make_room: &[MakeRoom<'_>]) -> Result<(), String> {
    let db = open(dir).map_err(|e| e.to_string())?;
    let mut known: Vec<Known> = (0..WRITERS).map(|_| Known::default()).collect();
    let mut rng = Rng::new(case.seed);
    for (round, make_room) in make_room.iter().enumerate() {
        fill(&db, &mut known, case.seed, round)?;
        check(&db, &known)?;
        // On a busy machine a writer may have begun when the disk was full.
        let most = known.iter_mut().max_by_key(|writer| writer.there.len()).ok_or("no writer")?;
        let deleted = most.delete(&db, DELETIONS)?;
        case.report.count("deletions taken by a full disk", deleted as u64);
        make_room()?;
        known[0].until_taken(&db, &format!("again {round}"), &mut rng)?;
        case.report.count("times writes resumed on a disk that was full", 1);
        let more = known[0].fill(&db, &format!("more {round}"), 500, &mut rng);
        if let Err(e) = more {
            // The room may be less than compactions need beside: the disk is full once more, and that heals too.
            expect(e.kind() == ErrorKind::Io(IoKind::NoSpace), || format!("there is room: {e}"))?;
            known[0].until_taken(&db, &format!("once more {round}"), &mut rng)?;
        }
        check(&db, &known)?;
    }
    db.resume().map_err(|e| format!("there is room: {e}"))?;
    db.wait_for_background().map_err(|e| format!("there is room: {e}"))?;
    expect(db.health().severity == Severity::Healthy, || format!("{:?}", db.health()))?;
    db.close().map_err(|e| e.to_string())?;
    drop(db);
    check(&open(dir).map_err(|e| format!("opened again: {e}"))?, &known)?;
    let there: usize = known.iter().map(|known| known.there.len()).sum();
    case.report.count("writes acknowledged on disks that were full", there as u64);
    JudgeVersion::ALL.into_iter().try_for_each(|version| judge(case, version, dir, &known))
}

/// RocksDB finds what was acknowledged, and nothing that was refused.
fn judge(case: &mut Case<'_>, version: JudgeVersion, dir: &Path, known: &[Known]) -> Result<(), String> {
    let said = |e: JudgeError| format!("{}: {e}", version.name());
    let mut judge = match Judge::spawn(version) {
        Ok(judge) => judge,
        Err(JudgeError::Skip(skip)) => {
            case.report.skip(format!("a disk that was full, read by {}: {skip}", version.name()));
            return Ok(());
        }
        Err(e) => return Err(said(e)),
    };
    judge.open(dir, Opening::Existing, "").map_err(said)?;
    let found: BTreeSet<Vec<u8>> =
        judge.dump("default").map_err(said)?.into_iter().map(|(key, _)| key).collect();
    judge.close().map_err(said)?;
    let whole = known.iter().all(|known| known.there.is_subset(&found));
    expect(whole, || format!("{} misses keys", version.name()))?;
    let allowed = |key: &Vec<u8>| known.iter().any(|k| k.there.contains(key) || k.maybe.contains(key));
    expect(found.iter().all(allowed), || format!("{} finds what was refused", version.name()))?;
    case.report.count("disks that were full, read by RocksDB", 1);
    Ok(())
}
