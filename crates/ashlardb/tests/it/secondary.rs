//! Views that follow a writer: each shows one moment, later ones show more, and earlier ones stay what they are.

use crate::judge::judge;
use ashlar_testkit::judge::{MERGING, Opening};
use ashlar_testkit::{Change, JudgeVersion, Op};
use ashlardb::{Db, ErrorKind, Follower, Read as _, Result, SeqNum, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The numbers from 0 on that the view has: all of them up to some number.
fn count(db: &Db) -> u64 {
    let mut next = 0u64;
    for entry in db.scan(..) {
        let (key, value) = entry.unwrap();
        assert_eq!(*key, next.to_be_bytes(), "a hole");
        assert_eq!(&value[..8], &next.to_be_bytes());
        next += 1;
    }
    next
}

/// Beside a writer that flushes and compacts without pause: every catch-up shows at least as much as the one before, and
/// views of earlier moments do not change, although the writer deletes their tables.
#[test]
fn views_follow_a_writer_and_stay_as_they_are() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let options = "write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=131072";
    let writer = Db::builder(&dir).options(options).open().unwrap();
    let secondary = Db::open_secondary(&dir).unwrap();
    let other = secondary.clone();
    let (done, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut views = vec![(secondary.db(), 0)];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..12_000u64 {
                writer.put(n.to_be_bytes(), n.to_be_bytes().repeat(30)).unwrap();
                if n % 3000 == 2999 {
                    writer.compact().unwrap();
                    while seen.load(Ordering::Acquire) < n - 1000 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut before = 0;
        loop {
            let last = done.load(Ordering::Acquire);
            let newest = secondary.catch_up().unwrap();
            let view = secondary.db();
            assert_eq!(
                (view.sequence(), other.db().sequence()),
                (newest, newest),
                "clones catch up together"
            );
            let now = count(&view);
            assert!(now >= before && now == newest.get(), "{before}, then {now} at {newest}");
            if now > before && views.last().is_some_and(|(_, then)| now > then + 1500) {
                views.push((view, now));
            }
            before = now;
            seen.store(now, Ordering::Release);
            if last {
                break;
            }
        }
        assert_eq!(before, 12_000);
    });
    writer.compact().unwrap();
    assert!(views.len() > 2, "{}", views.len());
    for (view, then) in &views {
        assert_eq!(count(view), *then, "a view of an earlier moment");
    }
    let e = secondary.db().put("k", "v").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotSupported, "{e}");
}

/// Families come and go with the writer's. A catch-up that fails leaves the view.
#[test]
fn families_follow_and_a_failed_catch_up_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let writer = Db::open(&dir).unwrap();
    writer.put("k", "v").unwrap();
    writer.put("k", "w").unwrap();
    let secondary = Db::open_secondary(&dir).unwrap();
    let other = writer.create_family("other").unwrap();
    let naming = Db::builder(&dir).family("other", |f| f).open_secondary().unwrap();
    writer.drop_family(&other).unwrap();
    // It refused every catch-up from here on.
    naming.catch_up().unwrap();
    assert!(naming.db().family("other").is_err());
    assert_eq!(naming.db().get("k").unwrap().as_deref(), Some(&b"w"[..]));
    let events = writer.create_family("events").unwrap();
    events.put("e", "1").unwrap();
    assert!(secondary.db().family("events").is_err(), "not caught up yet");
    secondary.catch_up().unwrap();
    let held = secondary.db().family("events").unwrap();
    assert_eq!(held.get("e").unwrap().as_deref(), Some(&b"1"[..]));
    writer.drop_family(&events).unwrap();
    secondary.catch_up().unwrap();
    assert!(secondary.db().family("events").is_err());
    assert_eq!(held.get("e").unwrap().as_deref(), Some(&b"1"[..]), "a family of an earlier view");
    writer.close().unwrap();
    std::fs::rename(&dir, temp.path().join("away")).unwrap();
    assert!(secondary.catch_up().is_err(), "the directory is gone");
    assert_eq!(secondary.db().get("k").unwrap().as_deref(), Some(&b"w"[..]));
    let another = Db::open(&dir).unwrap();
    another.put("k", "of another").unwrap();
    let e = secondary.catch_up().unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("new secondary"), "{e}");
    assert_eq!(secondary.db().get("k").unwrap().as_deref(), Some(&b"w"[..]));
    drop(another);
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::rename(temp.path().join("away"), &dir).unwrap();
    secondary.catch_up().unwrap();
    assert_eq!(Db::open_secondary(temp.path().join("none")).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// The first answer of an attempt that fits.
fn answered(follower: &Follower, fits: impl Fn(&Result<SeqNum>) -> bool) -> Result<SeqNum> {
    let begun = Instant::now();
    loop {
        match follower.last_catch_up().filter(&fits) {
            Some(answer) => return answer,
            None => assert!(begun.elapsed().as_secs() < 60, "{:?}", follower.last_catch_up()),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A failed attempt leaves its error, and later ones go on. Without the follower the view stays.
#[test]
fn a_follower_catches_up_by_itself() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let writer = Db::open(&dir).unwrap();
    let secondary = Db::open_secondary(&dir).unwrap();
    assert_eq!(secondary.follow(Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let follower = secondary.follow(Duration::from_millis(5)).unwrap();
    for n in 0..20u64 {
        writer.put(n.to_be_bytes(), n.to_be_bytes()).unwrap();
        answered(&follower, |answer| answer.as_ref().is_ok_and(|newest| newest.get() == n + 1)).unwrap();
        assert_eq!(count(&secondary.db()), n + 1);
    }
    writer.close().unwrap();
    std::fs::rename(&dir, temp.path().join("away")).unwrap();
    answered(&follower, Result::is_err).unwrap_err();
    assert_eq!(count(&secondary.db()), 20);
    std::fs::rename(temp.path().join("away"), &dir).unwrap();
    assert_eq!(answered(&follower, Result::is_ok).unwrap().get(), 20);
    // A drop wakes the thread out of a long pause.
    drop(follower);
    let slow = secondary.follow(Duration::from_secs(3600)).unwrap();
    answered(&slow, Result::is_ok).unwrap();
    ashlar_testkit::within(60, "the drop", move || drop(slow));
    let writer = Db::open(&dir).unwrap();
    writer.put(20u64.to_be_bytes(), 20u64.to_be_bytes()).unwrap();
    assert_eq!(count(&secondary.db()), 20);
}

/// RocksDB writes, we follow.
#[test]
fn a_view_follows_rocksdb() {
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, "a_view_follows_rocksdb") else { return };
        let dir = tempfile::tempdir().unwrap();
        judge.open(dir.path(), Opening::Create, MERGING).unwrap();
        let secondary = Db::open_secondary(dir.path()).unwrap();
        for round in 0..20 {
            let key = format!("k{round:02}").into_bytes();
            let put = Change::Put { family: "default".into(), key, value: b"v".to_vec() };
            judge.write(&[put], false).unwrap();
            if round % 5 == 4 {
                judge.apply(&[Op::Flush { family: "default".into() }]).unwrap();
            }
            secondary.catch_up().unwrap();
            assert_eq!(secondary.db().scan(..).count(), round + 1, "{}", version.name());
        }
        judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
        secondary.catch_up().unwrap();
        assert_eq!(secondary.db().scan(..).count(), 20);
        judge.close().unwrap();
    }
}
