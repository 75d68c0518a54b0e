//! Callbacks that panic: no call hangs, and nothing that was acknowledged is lost.

use super::callbacks::{Callback, Trap, trapped};
use crate::store::listing;
use ashlar_testkit::within;
use ashlardb::{
    CompactRangeOptions, Db, ErrorKind, Read as _, Severity, Write as _, WriteBatch, WriteOptions,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tempfile::TempDir;

const SECONDS: u64 = 30;

fn opened(callback: Callback) -> (TempDir, Arc<Trap>, Db) {
    let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let db = trapped(dir.path(), callback, &trap).open().unwrap();
    (dir, trap, db)
}

fn panics(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// Closes, opens with callbacks that do nothing, and lists the keys.
fn keys_after_reopen(dir: &TempDir, callback: Callback, db: Db) -> Vec<String> {
    within(SECONDS, "close", move || drop(db.close()));
    let db = trapped(dir.path(), callback, &Arc::default()).open().unwrap();
    assert!(db.recovery().is_clean(), "{:?}", db.recovery());
    listing(db.scan(..)).into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

/// Writers, flushes and the close waited for a leader that was gone.
#[test]
fn a_comparator_that_panics_in_a_write_stops_writes_and_nothing_else() {
    let (dir, trap, db) = opened(Callback::Comparator);
    for n in 0..10 {
        db.put(format!("k{n}"), "v").unwrap();
    }
    trap.panics();
    let batch = WriteBatch::new();
    for key in ["j1", "trap", "z1"] {
        batch.put(key, "v").unwrap();
    }
    let writer = db.clone();
    assert!(panics(|| writer.write(batch).unwrap()));
    let other = db.clone();
    let refused = within(SECONDS, "a put", move || other.put("good", "v")).unwrap_err();
    assert!(refused.to_string().contains("panicked"), "{refused}");
    let other = db.clone();
    assert!(within(SECONDS, "a flush", move || other.flush()).is_err());
    let other = db.clone();
    assert!(within(SECONDS, "a new family", move || other.create_family("f")).is_err());
    assert_eq!(db.get("k3").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(listing(db.scan(..)).len(), 10, "no part of the batch shows");
    assert_eq!(db.health().severity, Severity::Fatal);
    // The log has the batch. It is there whole after the next open, or not at all.
    let keys = keys_after_reopen(&dir, Callback::Comparator, db);
    let logged = ["j1", "trap", "z1"].map(|key| keys.iter().any(|k| k == key));
    assert!(logged == [true; 3] || logged == [false; 3], "{keys:?}");
    assert!((0..10).all(|n| keys.contains(&format!("k{n}"))), "{keys:?}");
    assert!(!keys.contains(&"good".to_owned()));
}

#[test]
fn writers_of_one_group_all_return_when_their_leader_panics() {
    for round in 0..20 {
        let (dir, trap, db) = opened(Callback::Comparator);
        db.put("a", "v").unwrap();
        trap.panics();
        let done: Vec<String> = within(SECONDS, "the writers", {
            let db = db.clone();
            move || {
                std::thread::scope(|scope| {
                    let writers: Vec<_> = (0..8)
                        .map(|n| {
                            let db = &db;
                            let key = if n == round % 8 { "trap".to_owned() } else { format!("w{n}") };
                            scope.spawn(move || {
                                let put = catch_unwind(AssertUnwindSafe(|| db.put(&key, "v")));
                                put.is_ok_and(|answer| answer.is_ok()).then_some(key)
                            })
                        })
                        .collect();
                    writers.into_iter().filter_map(|w| w.join().unwrap()).collect()
                })
            }
        });
        let keys = keys_after_reopen(&dir, Callback::Comparator, db);
        assert!(done.iter().all(|key| keys.contains(key)), "{done:?} acknowledged, {keys:?} found");
        assert!(keys.contains(&"a".to_owned()));
    }
}

#[test]
fn a_merge_operator_that_panics_in_a_read_fails_that_read_only() {
    let (dir, trap, db) = opened(Callback::MergeOperator);
    db.put("k", "0").unwrap();
    db.merge("k", "1").unwrap();
    trap.panics();
    assert!(panics(|| drop(db.get("k"))));
    trap.panics();
    assert!(panics(|| drop(db.scan(..).next())));
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"1"[..]));
    db.merge("k", "2").unwrap();
    within(SECONDS, "a flush", {
        let db = db.clone();
        move || db.flush()
    })
    .unwrap();
    assert_eq!(keys_after_reopen(&dir, Callback::MergeOperator, db), ["k"]);
}

/// The close advised to close the database.
/// The scan began again from its first entry.
#[test]
fn a_scan_ends_at_a_merge_operator_that_panics() {
    let (_dir, trap, db) = opened(Callback::MergeOperator);
    (0..9).for_each(|n| db.merge(format!("k{n}"), "v").unwrap());
    let cut = |step: &mut dyn FnMut() -> Option<Vec<u8>>, seen: [&[u8]; 2]| {
        for key in seen {
            assert_eq!(step().unwrap(), key);
        }
        trap.panics();
        assert!(panics(|| drop(step())));
        assert!(step().is_none() && step().is_none());
    };
    let mut scan = db.scan(..);
    cut(&mut || scan.next().map(|entry| entry.unwrap().0), [b"k0", b"k1"]);
    assert!(scan.next_back().is_none());
    let mut scan = db.scan(..);
    cut(&mut || scan.next_back().map(|entry| entry.unwrap().0), [b"k8", b"k7"]);
    assert!(scan.next().is_none());
    // A cursor is off the end, and goes on from where it is put.
    let mut cursor = db.scan(..).cursor().unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().0, b"k0");
    trap.panics();
    assert!(panics(|| drop(cursor.next())));
    assert!(cursor.entry().is_none() && cursor.next().unwrap().is_none());
    assert_eq!(cursor.seek("k4").unwrap().unwrap().0, b"k4");
    assert_eq!(cursor.next().unwrap().unwrap().0, b"k5");
}

#[test]
fn a_flush_that_panics_in_a_close_is_an_error_that_names_the_loss() {
    let (_dir, trap, db) = opened(Callback::MergeOperator);
    db.put("logged", "v").unwrap();
    let fast = db.writing(WriteOptions::new().disable_wal(true));
    fast.put("k", "0").unwrap();
    fast.merge("k", "1").unwrap();
    trap.panics();
    let e = within(SECONDS, "close", move || db.close()).unwrap_err();
    let text = e.to_string();
    assert!(text.contains("panicked") && text.contains("without the WAL"), "{text}");
    assert!(!text.contains("Close the database"), "{text}");
}

/// A close with writes refused said nothing of what only memory held.
#[test]
fn a_close_after_a_panic_says_that_unlogged_writes_are_lost() {
    let (_dir, trap, db) = opened(Callback::Comparator);
    db.writing(WriteOptions::new().disable_wal(true)).put("unlogged", "v").unwrap();
    trap.panics();
    assert!(panics(|| drop(db.put("trap", "v"))));
    let e = within(SECONDS, "close", move || db.close()).unwrap_err();
    assert!(e.to_string().contains("without the WAL"), "{e}");
}

#[test]
fn a_callback_that_panics_in_the_background_stops_writes_and_the_next_open_heals() {
    for (callback, compaction) in
        [(Callback::MergeOperator, false), (Callback::MergeOperator, true), (Callback::Comparator, true)]
    {
        let (dir, trap, db) = opened(callback);
        let snapshot = db.snapshot().unwrap();
        db.put("trap", "0").unwrap();
        if callback == Callback::MergeOperator {
            db.merge("trap", "1").unwrap();
        }
        drop(snapshot);
        if compaction {
            db.flush().unwrap();
            // An operand alone in a table: only the compaction finds its base.
            match callback {
                Callback::MergeOperator => db.merge("trap", "2").unwrap(),
                _ => db.put("trap", "2").unwrap(),
            }
            db.flush().unwrap();
        }
        // What the second panic carries ended the thread of a job, and the calls waited for the job.
        match callback {
            Callback::MergeOperator => trap.panics_twice(),
            _ => trap.panics(),
        }
        let what = format!("{callback:?}, compaction: {compaction}");
        let other = db.clone();
        let refused = within(SECONDS, &what, move || {
            catch_unwind(AssertUnwindSafe(|| match compaction {
                true => other.compact_range(.., CompactRangeOptions::default()),
                false => other.flush(),
            }))
        });
        assert!(refused.is_err() || refused.unwrap().is_err(), "{what}");
        assert!(trap.is_sprung(), "{what}");
        let other = db.clone();
        within(SECONDS, &what, move || drop((other.put("later", "v"), other.flush(), other.compact())));
        assert!(db.get("trap").unwrap().is_some(), "{what}");
        let keys = keys_after_reopen(&dir, callback, db);
        assert!(keys.contains(&"trap".to_owned()), "{what}: {keys:?}");
    }
}

/// A compaction that fails changes nothing, so nothing has to stop.
#[test]
fn a_filter_that_panics_fails_its_compaction_and_nothing_else() {
    let (dir, trap, db) = opened(Callback::CompactionFilter);
    for n in 0..3 {
        db.put(format!("k{n}"), "v").unwrap();
    }
    db.flush().unwrap();
    trap.panics_twice();
    let other = db.clone();
    let e = within(SECONDS, "a compaction", move || other.compact()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aborted);
    let named = "the compaction filter \"Trapped\" of family \"default\" panicked at key 'k0'";
    assert!(e.to_string().contains(named), "{e}");
    let health = db.health();
    assert_eq!(health.severity, Severity::Soft);
    assert!(health.cause.unwrap().to_string().contains(named));
    db.put("later", "v").unwrap();
    db.flush().unwrap();
    assert_eq!(listing(db.scan(..)).len(), 4);
    let other = db.clone();
    within(SECONDS, "a second compaction", move || other.compact()).unwrap();
    assert_eq!(db.health().severity, Severity::Healthy);
    assert_eq!(keys_after_reopen(&dir, Callback::CompactionFilter, db), ["k0", "k1", "k2", "later"]);
}

/// It unwound through the flush that told of the event, and took the database out of service.
#[test]
fn a_listener_that_panics_disturbs_nothing() {
    for event in [
        "memtable_sealed",
        "flush_started",
        "flush_finished",
        "table_file_creation",
        "compaction_started",
        "compaction_finished",
        "table_file_deletion",
    ] {
        let (dir, trap, db) = opened(Callback::Listener(event));
        trap.panics_twice();
        let (other, sprung) = (db.clone(), Arc::clone(&trap));
        within(SECONDS, event, move || {
            for n in 0..3 {
                other.put(format!("k{n}"), "v").unwrap();
                other.flush().unwrap();
            }
            other.compact().unwrap();
            other.put("last", "v").unwrap();
            other.wait_for_background().unwrap();
            // A replaced table stays while a reader of any database of this process, of another test too, is in an epoch.
            while !sprung.is_sprung() {
                other.compact().unwrap();
            }
        });
        assert!(trap.is_sprung(), "{event} was not told");
        assert_eq!(db.health().severity, Severity::Healthy, "{event}");
        assert_eq!(keys_after_reopen(&dir, Callback::Listener(event), db), ["k0", "k1", "k2", "last"]);
    }
}

#[test]
fn a_progress_callback_that_panics_leaves_the_database_in_service() {
    let (dir, _, db) = opened(Callback::Listener("none"));
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    assert!(panics(|| drop(db.verify_checksums(|_| panic!("on purpose")))));
    assert!(panics(|| drop(db.verify_db(|_| panic!("on purpose")))));
    db.put("later", "v").unwrap();
    assert_eq!(keys_after_reopen(&dir, Callback::Listener("none"), db), ["k", "later"]);
    // A repair holds the LOCK while it calls: a panic lets go of it.
    assert!(panics(|| drop(Db::builder(dir.path()).repair(|_| panic!("on purpose")))));
    let db =
        within(SECONDS, "open", move || (Db::open(dir.path()).map(|db| listing(db.scan(..)).len()), dir));
    assert_eq!(db.0.map_err(|e| e.kind()), Ok::<usize, ErrorKind>(2));
}
