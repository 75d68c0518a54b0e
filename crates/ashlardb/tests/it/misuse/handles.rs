//! Handles of another database, of a family that was dropped, and on a thread that is ending.

use super::kind;
use crate::store::listing;
use ashlardb::{
    CompactRangeOptions, Compression, Db, ErrorKind, FileNumber, Level, Read as _, ReadOptions, SizeOptions,
    Write as _, WriteBatch, WriteOptions,
};
use std::cell::RefCell;
use tempfile::TempDir;

const INVALID: Option<ErrorKind> = Some(ErrorKind::InvalidArgument);

/// Two databases whose families have the same names and ids. Each holds its own name under `k` everywhere.
fn two() -> (TempDir, Db, Db) {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let db = Db::open(dir.path().join(name)).unwrap();
        db.put("k", name).unwrap();
        db.create_family("f").unwrap().put("k", name).unwrap();
        db
    };
    let (a, b) = (open("a"), open("b"));
    assert_eq!(a.family("f").unwrap().id(), b.family("f").unwrap().id());
    (dir, a, b)
}

fn value(db: &Db) -> Vec<u8> {
    db.family("f").unwrap().get("k").unwrap().unwrap().to_vec()
}

#[test]
fn a_family_of_another_database_is_not_dropped() {
    let (_dir, a, b) = two();
    assert_eq!(kind(a.drop_family(&b.family("f").unwrap())), INVALID);
    assert_eq!((value(&a), value(&b)), (b"a".to_vec(), b"b".to_vec()));
}

#[test]
fn a_batch_for_a_family_of_another_database_is_refused() {
    let (_dir, a, b) = two();
    let [fa, fb] = [&a, &b].map(|db| db.family("f").unwrap());
    let batch = WriteBatch::new();
    batch.family(&fb).put("k", "x").unwrap();
    assert_eq!(kind(a.write(&batch)), INVALID);
    assert_eq!(kind(batch.family(&fa).put("k", "x")), INVALID);
    assert_eq!(batch.len(), 1, "a refused operation is not in the batch");
    assert_eq!((value(&a), value(&b)), (b"a".to_vec(), b"b".to_vec()));
    // Cleared, it is a batch of no database.
    batch.clear();
    batch.family(&fa).put("k", "y").unwrap();
    a.write(&batch).unwrap();
    assert_eq!((value(&a), batch.len()), (b"y".to_vec(), 0));
    // So it is when it was written.
    batch.family(&fb).put("k", "z").unwrap();
    b.write(batch).unwrap();
    assert_eq!(value(&b), b"z");
}

#[test]
fn a_writer_with_a_family_of_another_database_is_refused() {
    let (_dir, a, b) = two();
    let fb = b.family("f").unwrap();
    assert_eq!(kind(a.writing(WriteOptions::new()).family(&fb).put("k", "x")), INVALID);
    assert_eq!((value(&a), value(&b)), (b"a".to_vec(), b"b".to_vec()));
}

#[test]
fn a_snapshot_of_another_database_shows_nothing_of_this_one() {
    let (_dir, a, b) = two();
    let (of_a, fb) = (a.snapshot().unwrap(), b.family("f").unwrap());
    for n in 0..20 {
        b.put(format!("more{n}"), "x").unwrap();
    }
    let reader = of_a.family(&fb);
    let answers = [
        kind(reader.get("k")),
        kind(reader.get_entity("k")),
        kind(reader.multi_get(["k"])),
        kind(reader.key_may_exist("k")),
        kind(reader.explain_get("k")),
        kind(reader.scan(..).cursor()),
        kind(reader.scan(..).explain(10)),
        reader.scan(..).next().map(|entry| entry.unwrap_err().kind()),
        reader.scan(..).next_back().map(|entry| entry.unwrap_err().kind()),
    ];
    assert_eq!(answers, [INVALID; 9]);
}

#[test]
fn a_reader_with_a_family_of_another_database_is_refused() {
    let (_dir, a, b) = two();
    let fb = b.family("f").unwrap();
    let reader = a.reading(ReadOptions::new()).family(&fb);
    assert_eq!(kind(reader.get("k")), INVALID);
    assert_eq!(kind(reader.scan(..).cursor()), INVALID);
}

#[test]
fn a_family_of_an_earlier_open_is_of_another_database() {
    let (dir, a, b) = two();
    let before = a.family("f").unwrap();
    a.close().unwrap();
    let a = Db::open(dir.path().join("a")).unwrap();
    assert_eq!(kind(a.drop_family(&before)), INVALID);
    assert_eq!(kind(a.reading(ReadOptions::new()).family(&before).scan(..).cursor()), INVALID);
    assert_eq!(kind(a.snapshot().unwrap().family(&before).get("k")), INVALID);
    let batch = WriteBatch::new();
    batch.family(&before).put("k", "x").unwrap();
    assert_eq!(kind(a.write(batch)), INVALID);
    assert_eq!(value(&a), b"a");
    drop(b);
}

/// What may change something is refused. Reads go on: the handle shows the family as it was when it was dropped.
#[test]
fn a_dropped_family_is_read_as_it_was_and_takes_no_change() {
    let (_dir, a, _) = two();
    let old = a.family("f").unwrap();
    a.drop_family(&old).unwrap();
    let new = a.create_family("f").unwrap();
    new.put("k", "new").unwrap();
    let batch = WriteBatch::new();
    batch.put("k", "x").unwrap();
    batch.family(&old).put("k", "x").unwrap();
    let answers = [
        kind(old.put("k", "x")),
        kind(old.delete("k")),
        kind(old.delete_range("a", "z")),
        kind(a.write(batch)),
        kind(a.drop_family(&old)),
        kind(old.flush()),
        kind(old.compact_range(.., CompactRangeOptions::default())),
        kind(old.compact_files(&[FileNumber(1)], Level(1))),
        kind(old.delete_files_in_ranges(&["a".."z"])),
        kind(old.set_options(&[("write_buffer_size", "1000000")])),
    ];
    assert_eq!(answers, [INVALID; 10]);
    assert_eq!(old.get("k").unwrap().as_deref(), Some(&b"a"[..]));
    assert_eq!(listing(old.scan(..)), [(b"k".to_vec(), b"a".to_vec())]);
    assert_eq!(listing(new.scan(..)), [(b"k".to_vec(), b"new".to_vec())]);
    assert_eq!(a.get("k").unwrap().as_deref(), Some(&b"a"[..]), "a refused batch changes nothing");
    assert!(old.approximate_sizes(&[("a", "z")], SizeOptions::default()).is_ok());
}

#[test]
fn a_synced_write_that_skips_the_log_is_refused() {
    let (dir, a, _) = two();
    let both = WriteOptions::synced().disable_wal(true);
    let family = a.family("f").unwrap();
    let answers = [
        kind(a.writing(both).put("s", "x")),
        kind(a.writing(both).family(&family).put("s", "x")),
        kind(family.writing(both).put("s", "x")),
        kind(a.writing(both).write(WriteBatch::new())),
    ];
    assert_eq!(answers, [INVALID; 4]);
    assert!(a.get("s").unwrap().is_none());
    a.writing(both.sync(false)).put("s", "x").unwrap();
    a.close().unwrap();
    assert!(Db::open(dir.path().join("a")).unwrap().get("s").unwrap().is_some());
}

/// A handle that works when its thread ends, after the engine's own data of the thread are gone.
struct AtTheEnd(Db);

thread_local! {
    static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// Reads of each key, and a write of as many bytes as it has keys, on the calling thread.
fn worked(db: &Db) -> usize {
    let found = (0..400).filter(|key| db.get(format!("{key:03}")).unwrap().is_some()).count();
    assert_eq!((listing(db.scan(..)).len(), db.multi_get(["000", "001"]).unwrap().len()), (400, 2));
    db.transaction(|t| t.put("399", vec![b'x'; found])).unwrap();
    db.put("398", "y").unwrap();
    db.flush().unwrap();
    found
}

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        worked(&self.0);
    }
}

/// The reads panicked, which ends the process.
#[test]
fn a_thread_that_is_ending_reads_and_writes() {
    let dir = tempfile::tempdir().unwrap();
    let opened = || Db::builder(dir.path()).default_family(|f| f.compression(Compression::Zstd));
    let db = opened().open().unwrap();
    for key in 0..400 {
        db.put(format!("{key:03}"), [b'v'; 200]).unwrap();
    }
    db.close().unwrap();
    let db = opened().open().unwrap();
    let kept = db.clone();
    std::thread::spawn(move || {
        AT_THE_END.set(Some(AtTheEnd(kept.clone())));
        worked(&kept);
    })
    .join()
    .unwrap();
    db.close().unwrap();
    assert_eq!(opened().open().unwrap().get("399").unwrap().unwrap().len(), 400);
}
