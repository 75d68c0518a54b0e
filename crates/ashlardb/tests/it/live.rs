//! The files that a program copies by the list of `Db::live_files` are a database of one moment, here and in RocksDB, whatever the
//! database does meanwhile.

use ashlar_testkit::judge::{JudgeError, MERGING, Opening};
use ashlar_testkit::{Judge, JudgeVersion};
use ashlardb::prelude::*;
use ashlardb::{
    CompactRangeOptions, ErrorKind, FormatLevel, LiveFiles, ShutdownKind, StorageFile, StorageKind,
    WriteOptions,
};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Copies as another program would, in the order of the list.
fn copy(live: &LiveFiles, into: &Path) {
    fs::create_dir(into).unwrap();
    for file in live.iter() {
        let mut bytes = file.content.clone().unwrap_or_default();
        if file.content.is_none() {
            fs::File::open(file.path()).unwrap().take(file.bytes).read_to_end(&mut bytes).unwrap();
        }
        assert_eq!(bytes.len() as u64, file.bytes, "{file:?}");
        fs::write(into.join(&file.name), bytes).unwrap();
    }
}

fn open(path: &Path, level: FormatLevel) -> Db {
    let builder =
        Db::builder(path).format_level(level).family("other", |f| f.options("enable_blob_files=true"));
    builder.tune(|_, family| family.write_buffer_bytes = 64 << 10).open().unwrap()
}

fn of_kind(live: &LiveFiles, kind: StorageKind) -> Vec<&StorageFile> {
    live.iter().filter(|file| file.kind == kind).collect()
}

#[test]
fn copies_by_the_list_are_whole_while_writes_and_compactions_go_on() {
    let home = tempfile::tempdir().unwrap();
    let db = open(&home.path().join("db"), FormatLevel::V9_11);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = db.family("other").unwrap();
            for n in 0_u64.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let batch = WriteBatch::new();
                batch.put(n.to_be_bytes(), vec![b'x'; 200]).unwrap();
                batch.family(&other).put(n.to_be_bytes(), vec![b'y'; 200]).unwrap();
                batch.put("newest", n.to_be_bytes()).unwrap();
                db.writing(WriteOptions::new().disable_wal(n % 50 == 0)).write(&batch).unwrap();
            }
        });
        while db.get("newest").unwrap().is_none() {
            std::thread::yield_now();
        }
        let mut before = 0;
        for n in 0..6 {
            let live = db.live_files().unwrap();
            // All listed tables become obsolete before they are copied.
            db.compact_range(.., CompactRangeOptions::default()).unwrap();
            let into = home.path().join(format!("copy{n}"));
            copy(&live, &into);
            let made = open(&into, FormatLevel::V9_11);
            assert!(made.recovery().is_clean(), "{}", made.recovery());
            let newest = made.get("newest").unwrap().unwrap();
            let newest = u64::from_be_bytes(newest.as_ref().try_into().unwrap());
            assert_eq!(
                live.sequence().get(),
                3 * (newest + 1),
                "the writes up to the number, and no later one"
            );
            assert_eq!(made.scan(..).count() as u64, newest + 2);
            assert_eq!(made.family("other").unwrap().scan(..).count() as u64, newest + 1);
            assert!(newest >= before);
            before = newest;
            made.verify_db(|_| ()).unwrap();
        }
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_list_tells_what_the_manifest_says_of_each_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("db");
    let wal_dir = home.path().join("wal");
    let db = Db::builder(&path)
        .wal_dir(&wal_dir)
        .family("other", |f| f.options("enable_blob_files=true"))
        .options("file_checksum_gen_factory=FileChecksumGenCrc32cFactory")
        .open()
        .unwrap();
    let other = db.family("other").unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    other.put("k", vec![7; 5000]).unwrap();
    db.flush().unwrap();
    db.put("in the WAL", "3").unwrap();
    let live = db.live_files().unwrap();
    assert_eq!(live.sequence().get(), 4);
    let tables = of_kind(&live, StorageKind::Table);
    assert_eq!(tables.len(), 2);
    let table = tables.iter().find(|file| file.family.as_deref() == Some("default")).unwrap();
    let listed = &db.default_family().live_files().unwrap()[0];
    assert_eq!((table.level, table.sequences), (Some(listed.level), Some(listed.sequences)));
    assert_eq!(table.keys, Some((b"a".to_vec(), b"b".to_vec())));
    assert_eq!((table.bytes, table.name.clone()), (listed.bytes, format!("{:06}.sst", listed.number.0)));
    let (function, sum) = table.checksum.clone().unwrap();
    assert_eq!((function.as_str(), sum.len()), ("FileChecksumCrc32c", 4));
    let [blob] = of_kind(&live, StorageKind::Blob)[..] else { panic!("{live:?}") };
    assert!(blob.family.as_deref() == Some("other") && blob.bytes > 5000 && blob.level.is_none());
    let wal: u64 = of_kind(&live, StorageKind::Wal).iter().map(|file| file.bytes).sum();
    assert!(wal > 0 && of_kind(&live, StorageKind::Wal).iter().all(|file| file.dir == wal_dir));
    let [manifest] = of_kind(&live, StorageKind::Manifest)[..] else { panic!("{live:?}") };
    assert!(fs::metadata(manifest.path()).unwrap().len() >= manifest.bytes);
    let current = live.last().unwrap();
    assert_eq!((current.kind, current.name.as_str()), (StorageKind::Current, "CURRENT"));
    assert_eq!(current.content.as_deref(), Some(format!("{}\n", manifest.name).as_bytes()));
    assert_eq!(of_kind(&live, StorageKind::Options).len(), 1);
    // The copy has all in one directory.
    let into = home.path().join("copy");
    copy(&live, &into);
    drop((live, other));
    db.close().unwrap();
    let before = fs::read_dir(&wal_dir).unwrap().count();
    let made = Db::open(&into).unwrap();
    assert_eq!(made.get("in the WAL").unwrap().as_deref(), Some(&b"3"[..]));
    made.put("k", "v").unwrap();
    made.close().unwrap();
    assert_eq!(fs::read_dir(&wal_dir).unwrap().count(), before, "the copy has its own WAL files");
}

#[test]
fn files_stay_while_the_list_lives_and_go_afterwards() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("db");
    let db = open(&path, FormatLevel::V9_11);
    for n in 0..500_u32 {
        db.put(n.to_be_bytes(), vec![1; 100]).unwrap();
    }
    db.flush().unwrap();
    let (live, second) = (db.live_files().unwrap(), db.live_files().unwrap());
    let table = of_kind(&live, StorageKind::Table)[0].path();
    db.delete_range(0_u32.to_be_bytes(), 400_u32.to_be_bytes()).unwrap();
    db.compact_range(.., CompactRangeOptions::default()).unwrap();
    drop(live);
    db.wait_for_background().unwrap();
    assert!(table.exists(), "another list has it");
    drop(second);
    // Readers of other tests in this process may keep the replaced version in the epoch for a while.
    let is_gone = |_: u32| db.wait_for_background().is_ok() && !table.exists();
    assert!((0..100).any(is_gone), "the last list is gone");
    // Neither a close nor the last handle waits for a list.
    let live = db.live_files().unwrap();
    let table = of_kind(&live, StorageKind::Table)[0].path();
    db.delete_range(0_u32.to_be_bytes(), 450_u32.to_be_bytes()).unwrap();
    db.compact_range(.., CompactRangeOptions::default()).unwrap();
    db.close().unwrap();
    assert!(table.exists());
    let e = db.live_files().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shutdown(ShutdownKind::Closed), "{e}");
    drop((db, live));
    let db = open(&path, FormatLevel::V9_11);
    assert!(!table.exists(), "the next open removes it");
    assert_eq!(db.scan(..).count(), 50);
    let live = db.live_files().unwrap();
    drop(db);
    drop(live);
    let reading = Db::open_read_only(&path).unwrap();
    assert_eq!(reading.live_files().unwrap_err().kind(), ErrorKind::NotSupported);
}

#[test]
fn rocksdb_opens_a_copy_by_the_list() {
    for version in JudgeVersion::ALL {
        let mut judge = match Judge::spawn(version) {
            Err(JudgeError::Skip(skip)) => return skip.announce("rocksdb_opens_a_copy_by_the_list"),
            judge => judge.unwrap(),
        };
        let level = if version == JudgeVersion::V7 { FormatLevel::V7_8 } else { FormatLevel::V11 };
        let home = tempfile::tempdir().unwrap();
        let db = open(&home.path().join("db"), level);
        for n in 0..2000_u32 {
            db.put(n.to_be_bytes(), vec![b'v'; 100]).unwrap();
        }
        let live = db.live_files().unwrap();
        db.put("later", "1").unwrap();
        let into = home.path().join("copy");
        copy(&live, &into);
        judge.open(&into, Opening::Existing, MERGING).unwrap();
        judge.verify().unwrap();
        assert_eq!(judge.dump("default").unwrap().len(), 2000, "{}", version.name());
        judge.close().unwrap();
    }
}

#[test]
fn tables_name_the_open_that_wrote_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let db = open(dir.path(), FormatLevel::V7_8);
        let session = db.session_id().to_owned();
        assert!(session.len() == 20 && !seen.contains(&session), "{session}");
        db.put("k", "v").unwrap();
        db.flush().unwrap();
        let live = db.live_files().unwrap();
        let named = of_kind(&live, StorageKind::Table).into_iter().filter(|file| {
            let bytes = fs::read(file.path()).unwrap();
            bytes.windows(20).any(|window| window == session.as_bytes())
        });
        assert_eq!(named.count(), 1, "the new table alone");
        db.close().unwrap();
        seen.push(session);
    }
}
