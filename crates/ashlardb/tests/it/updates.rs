//! The writes since a sequence number: whole, in order, and never with a silent hole.

use crate::judge::judge;
use crate::store::{FAMILIES, state_of, write};
use ashlar_env::Env;
use ashlar_format::log_record::LogLink;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::{Framing, LogWriter};
use ashlar_testkit::judge::{MERGING, Opening};
use ashlar_testkit::ops::{MERGE_OPERATOR, Mix, draw};
use ashlar_testkit::oracle::{Model, State};
use ashlar_testkit::{JudgeVersion, Op};
use ashlardb::{
    Builder, Change, Db, ErrorKind, FamilyId, FileNumber, FormatLevel, IngestOptions, IoKind, SeqNum, Update,
    Write as _, WriteOptions, standard_operator,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn builder(dir: &Path, archive: &str) -> Builder {
    let builder = Db::builder(dir).options(archive).tune(|_, family| {
        family.write_buffer_bytes = 64 << 10;
        family.merge_operator = standard_operator(MERGE_OPERATOR);
    });
    FAMILIES.iter().fold(builder, |builder, name| builder.family(name, |f| f))
}

fn seq(n: u64) -> SeqNum {
    SeqNum::new(n).unwrap()
}

/// A copy that follows by the batches alone.
struct Follower<'a> {
    families: Vec<(FamilyId, &'a str)>,
    copy: Model,
    next: u64,
}

impl<'a> Follower<'a> {
    fn of(db: &Db) -> Follower<'a> {
        let families = FAMILIES.iter().map(|name| (db.family(name).unwrap().id(), *name)).collect();
        Follower { families, copy: Model::new(), next: 1 }
    }

    fn apply(&mut self, update: &Update) {
        assert!(update.sequence().get() >= self.next, "{} comes again", update.sequence());
        let name = |id| self.families.iter().find(|(family, _)| *family == id).unwrap().1.to_owned();
        let changes: Vec<_> = update
            .changes()
            .unwrap()
            .into_iter()
            .map(|change| match change {
                Change::Put { family, key, value } => {
                    ashlar_testkit::Change::Put { family: name(family), key: key.into(), value: value.into() }
                }
                Change::Delete { family, key } => {
                    ashlar_testkit::Change::Delete { family: name(family), key: key.into() }
                }
                Change::SingleDelete { family, key } => {
                    ashlar_testkit::Change::SingleDelete { family: name(family), key: key.into() }
                }
                Change::Merge { family, key, operand } => ashlar_testkit::Change::Merge {
                    family: name(family),
                    key: key.into(),
                    operand: operand.into(),
                },
                Change::DeleteRange { family, begin, end } => ashlar_testkit::Change::DeleteRange {
                    family: name(family),
                    from: begin.into(),
                    to: end.into(),
                },
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(changes.len(), update.len() as usize);
        self.copy.apply(&changes);
        self.next = update.sequence().get() + u64::from(update.len());
    }

    /// Reads what is new. Answers how many batches that were.
    fn catch_up(&mut self, db: &Db) -> usize {
        let updates = db.updates_since(seq(self.next)).unwrap();
        updates.map(|update| self.apply(&update.unwrap())).count()
    }
}

/// Random writes to three families with flushes, compactions and reopens: a follower that only reads batches has the same
/// content at every stop, also one that begins at the end.
#[test]
fn a_follower_has_what_was_written() {
    for (seed, options) in [
        (1, "WAL_ttl_seconds=86400"),
        (2, "WAL_size_limit_MB=1000;wal_compression=kZSTD"),
        (3, "WAL_ttl_seconds=86400;manual_wal_flush=true"),
        (4, "WAL_ttl_seconds=86400;mapped_wal=false"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let options = options.replace(";mapped_wal=false", "");
        let mut db = builder(dir.path(), &options).mapped_wal(seed != 4).open().unwrap();
        let mut model = Model::new();
        let mut follower = Follower::of(&db);
        let mix = Mix {
            families: FAMILIES.map(String::from).to_vec(),
            max_value_bytes: 4000,
            flush_per_mille: 60,
            compact_per_mille: 5,
            reopen_per_mille: 15,
            ..Mix::writes_only()
        };
        for (at, op) in draw(seed, 500, &mix).into_iter().enumerate() {
            match op {
                Op::Write { changes, sync } => {
                    model.apply(&changes);
                    write(&db, &changes, sync);
                }
                Op::Flush { family } => db.family(&family).unwrap().flush().unwrap(),
                Op::Compact { .. } => db.compact().unwrap(),
                Op::Reopen => {
                    db.close().unwrap();
                    db = builder(dir.path(), &options).mapped_wal(seed != 4).open().unwrap();
                }
                _ => {}
            }
            if at % 37 == 0 {
                follower.catch_up(&db);
                assert!(*follower.copy.now() == *model.now(), "seed {seed}, operation {at}");
            }
        }
        assert!(state_of(&db) == *model.now());
        let mut late = Follower::of(&db);
        assert!(late.catch_up(&db) > 300);
        assert!(*late.copy.now() == *model.now(), "seed {seed}: from the beginning");
        assert_eq!(late.catch_up(&db), 0, "nothing is new");
        // From the middle of a batch on, the whole batch comes.
        let middle = db.updates_since(seq(late.next - 1)).unwrap().next().unwrap().unwrap();
        assert_eq!(middle.sequence().get() + u64::from(middle.len()), late.next);
        let e = db.updates_since(seq(late.next + 1)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    }
}

/// Beside four writers and their flushes, a follower sees every batch once, in order, and none by halves.
#[test]
fn a_follower_beside_writers_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = builder(dir.path(), "WAL_ttl_seconds=86400").open().unwrap();
    let mut follower = Follower::of(&db);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let db = &db;
                scope.spawn(move || {
                    for n in 0..600u32 {
                        let batch = ashlardb::WriteBatch::new();
                        for part in 0..3 {
                            batch.put(format!("{writer}/{part}"), n.to_be_bytes().repeat(50)).unwrap();
                        }
                        db.write(batch).unwrap();
                    }
                })
            })
            .collect();
        let (done, db) = (&done, &db);
        scope.spawn(move || {
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Release);
        });
        let mut rounds = 0;
        loop {
            let last = done.load(Ordering::Acquire);
            follower.catch_up(db);
            for writer in 0..4 {
                let parts: Vec<_> = (0..3)
                    .map(|part| follower.copy.now().get("default", format!("{writer}/{part}").as_bytes()))
                    .collect();
                assert!(parts.iter().all(|part| *part == parts[0]), "half a batch of writer {writer}");
            }
            rounds += 1;
            if last {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(rounds > 3);
    });
    assert_eq!(follower.next, 4 * 600 * 3 + 1);
    assert!(*follower.copy.now() == state_of(&db));
}

/// Without an archive, or when it was trimmed, the missing writes are named. The newest are still there.
#[test]
fn writes_that_are_gone_are_named() {
    for options in ["", "WAL_size_limit_MB=1"] {
        let dir = tempfile::tempdir().unwrap();
        let db = builder(dir.path(), options).open().unwrap();
        for n in 0..3000u32 {
            db.put(format!("{n}"), vec![b'v'; 1000]).unwrap();
        }
        db.flush().unwrap();
        db.wait_for_background().unwrap();
        db.put("last", "one").unwrap();
        let e = db.updates_since(seq(1)).unwrap_err();
        assert!(
            e.kind() == ErrorKind::Io(IoKind::NotFound) && e.to_string().contains("WAL_ttl_seconds"),
            "{e}"
        );
        let last: Vec<_> = db.updates_since(seq(3001)).unwrap().map(Result::unwrap).collect();
        assert_eq!(last.len(), 1);
        let archive = dir.path().join("archive");
        let bytes: u64 = std::fs::read_dir(&archive)
            .map(|files| files.map(|file| file.unwrap().metadata().unwrap().len()).sum())
            .unwrap_or(0);
        assert!(bytes <= 1 << 20 && (bytes > 0) != options.is_empty(), "{options}: {bytes}");
        // A file that is missing in the middle is named too.
        if bytes > 0 {
            let mut files: Vec<_> =
                std::fs::read_dir(&archive).unwrap().map(|file| file.unwrap().path()).collect();
            files.sort();
            assert!(files.len() > 2);
            let first = db.updates_since(seq(3001)).unwrap().next().unwrap().unwrap().sequence();
            std::fs::remove_file(&files[files.len() - 1]).unwrap();
            let oldest = (1..3001).rev().take_while(|n| db.updates_since(seq(*n)).is_ok()).last();
            let told: Vec<_> = db.updates_since(seq(oldest.unwrap_or(first.get()))).unwrap().collect();
            assert!(told.iter().any(|item| item.as_ref().is_err_and(|e| e.to_string().contains("is gone"))));
        }
    }
}

/// The link at the beginning of a WAL file says which file came before. One that cannot be read is damage, not a file without a link.
#[test]
fn a_damaged_link_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let db = builder(dir.path(), "WAL_ttl_seconds=1000").open().unwrap();
    for _ in 0..3 {
        db.put("k", "v").unwrap();
        db.flush().unwrap();
    }
    db.wait_for_background().unwrap();
    assert_eq!(db.updates_since(seq(1)).unwrap().filter(Result::is_ok).count(), 3);
    let archive = std::fs::read_dir(dir.path().join("archive")).unwrap();
    let newest = archive.map(|file| file.unwrap().path()).max().unwrap();
    let number = FileNumber(newest.file_stem().unwrap().to_str().unwrap().parse().unwrap());
    let link = LogLink { number, end: 0 }.encode();
    let mut batch = BatchEncoder::new();
    batch.log_data(&link[..link.len() - 1]).unwrap();
    let log = LogWriter::create(Env::os().unwrap().fs, &newest, number, Framing::Legacy).unwrap();
    log.append(batch.finish(seq(3)), true).unwrap();
    let last = db.updates_since(seq(1)).unwrap().last().unwrap().unwrap_err();
    assert!(last.is_corruption() && last.to_string().contains("log link"), "{last}");
}

/// After a flush and a new open, no WAL file has a write: a follower that lacks some is not left in the belief that it has all.
#[test]
fn an_open_without_wal_files_names_what_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let db = builder(dir.path(), "").open().unwrap();
    (0..10).for_each(|n| db.put(format!("{n}"), "v").unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    let db = builder(dir.path(), "").open().unwrap();
    let e = db.updates_since(seq(1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io(IoKind::NotFound), "{e}");
    assert_eq!(db.updates_since(seq(11)).unwrap().count(), 0, "nothing is newer");
}

/// What is not in the WAL leaves a gap in the numbers and nothing else. A damaged file ends the reading with its name.
#[test]
fn ingestions_and_unlogged_writes_leave_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let db = builder(&dir.path().join("db"), "WAL_ttl_seconds=86400").open().unwrap();
    db.put("a", "1").unwrap();
    let file = dir.path().join("b.sst");
    let mut writer = db.default_family().sst_writer(&file).unwrap();
    writer.put("b", "2").unwrap();
    writer.finish().unwrap();
    db.ingest(&[&file], IngestOptions::new()).unwrap();
    db.writing(WriteOptions::new().disable_wal(true)).put("c", "3").unwrap();
    db.put("d", "4").unwrap();
    let numbers = |db: &Db| -> Vec<u64> {
        db.updates_since(seq(1)).unwrap().map(|update| update.unwrap().sequence().get()).collect()
    };
    let tables = db.default_family().live_files().unwrap().len();
    let found = numbers(&db);
    assert_eq!((found.len(), found[0]), (2, 1));
    assert!(found[1] > 3, "{found:?}");
    assert_eq!(numbers(&db), found, "a reading changes nothing for the next one");
    assert_eq!(db.default_family().live_files().unwrap().len(), tables, "nor does it flush");
    db.close().unwrap();
    assert_eq!(
        db.updates_since(seq(1)).unwrap_err().kind(),
        ErrorKind::Shutdown(ashlardb::ShutdownKind::Closed)
    );
    let read_only = Db::open_read_only(dir.path().join("db")).unwrap();
    assert_eq!(read_only.updates_since(seq(1)).unwrap_err().kind(), ErrorKind::NotSupported);
}

/// RocksDB's archive, and its WAL files, are read too; RocksDB opens a directory with our archive.
#[test]
fn rocksdbs_archive_is_read() {
    for (version, level) in [(JudgeVersion::V7, FormatLevel::V7_8), (JudgeVersion::V11, FormatLevel::V11)] {
        let Some(mut judge) = judge(version, "rocksdbs_archive_is_read") else { return };
        let dir = tempfile::tempdir().unwrap();
        let options = format!("WAL_ttl_seconds=86400;{MERGING}");
        let mut model = Model::new();
        judge.open(dir.path(), Opening::Create, &options).unwrap();
        let mix = Mix { families: vec!["default".into()], flush_per_mille: 100, ..Mix::writes_only() };
        for op in draw(9, 200, &mix) {
            match &op {
                Op::Write { changes, sync } => {
                    model.apply(changes);
                    judge.write(changes, *sync).unwrap();
                }
                Op::Flush { .. } => judge.apply(std::slice::from_ref(&op)).unwrap(),
                _ => {}
            }
        }
        judge.close().unwrap();
        let db = builder(dir.path(), "").format_level(level).open().unwrap();
        let mut follower = Follower::of(&db);
        assert!(follower.catch_up(&db) > 100, "{}", version.name());
        let of_default = |state: &State| state.entries("default");
        assert!(of_default(follower.copy.now()) == of_default(model.now()), "{}", version.name());
        db.put("ours", "1").unwrap();
        db.flush().unwrap();
        assert_eq!(follower.catch_up(&db), 1);
        db.close().unwrap();
        judge.open(dir.path(), Opening::Existing, &options).unwrap();
        assert_eq!(judge.get("default", b"ours").unwrap().as_deref(), Some(&b"1"[..]));
        judge.close().unwrap();
    }
}

/// The list has the archive first, the file that is written last, and says which writes a file begins with.
#[test]
fn wal_files_are_listed_with_their_first_writes() {
    let dir = tempfile::tempdir().unwrap();
    let open = || builder(dir.path(), "WAL_ttl_seconds=1000").open().unwrap();
    let db = open();
    let empty = db.wal_files().unwrap();
    assert_eq!(empty.iter().map(|file| (file.archived, file.first)).collect::<Vec<_>>(), [(false, None)]);
    db.put("a", "one").unwrap();
    db.put("b", "two").unwrap();
    db.flush().unwrap();
    // The new file begins with a record, but has no write yet.
    assert_eq!(db.wal_files().unwrap().last().unwrap().first, None);
    db.put("c", "three").unwrap();
    // The purge moves the obsolete file.
    db.wait_for_background().unwrap();
    let files = db.wal_files().unwrap();
    let told: Vec<_> = files.iter().map(|file| (file.archived, file.first)).collect();
    assert_eq!(told, [(true, Some(seq(1))), (false, Some(seq(3)))]);
    assert!(files[0].number < files[1].number && files[0].bytes > 0 && files[1].bytes > 0);
    // The bytes end with the last record, whatever room the file has ahead.
    let before = files[1].bytes;
    db.put("d", "four").unwrap();
    assert!((before + 1..before + 200).contains(&db.wal_files().unwrap()[1].bytes));
    db.close().unwrap();
    assert_eq!(open().wal_files().unwrap()[0].first, Some(seq(1)), "the archive outlives the open");
    let reader = builder(dir.path(), "").read_only(true).open().unwrap();
    assert!(matches!(reader.wal_files().unwrap_err().kind(), ErrorKind::NotSupported));
}
