//! Writes after a check: no other write comes between the check and the batch, and a check that fails or panics concerns no
//! other writer.

use ashlar_base::{Error, ErrorKind, FamilyId, Result, SeqNum};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

fn open() -> Db {
    let families = vec![OpenFamily { name: "default".to_owned(), options: FamilyOptions::default() }];
    Db::open(Env::mem(), Path::new("/db"), DbOptions::default(), families, FamilyOptions::default()).unwrap()
}

fn batch(key: &str, value: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, key.as_bytes(), &value.to_le_bytes()).unwrap();
    batch
}

fn put(db: &Db, key: &str, value: u64) {
    db.write(&mut batch(key, value), WriteOptions::default()).unwrap();
}

fn number(db: &Db, key: &str) -> u64 {
    let found = db.get(&db.family("default").unwrap(), key.as_bytes(), ReadOptions::default()).unwrap();
    found.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap()))
}

fn checked(db: &Db, key: &str, value: u64, check: &mut dyn FnMut() -> Result<()>) -> Result<SeqNum> {
    db.write_checked(&mut batch(key, value), WriteOptions::default(), check)
}

/// Writers read, compute and write if nothing was written since, beside plain writers: each increment counts.
#[test]
fn nothing_comes_between_the_check_and_the_batch() {
    let _readers = crate::beside_others();
    let db = open();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..200 {
                    loop {
                        let seen = db.visible();
                        let family = db.family("default").unwrap();
                        let n = number(&db, "n");
                        let mut check = || match db.newest_sequence(&family, b"n", seen)? {
                            None => Ok(()),
                            Some(_) => Err(Error::new(ErrorKind::Aborted, "written meanwhile")),
                        };
                        match checked(&db, "n", n + 1, &mut check) {
                            Ok(last) => break assert!(last <= db.visible()),
                            Err(e) => assert_eq!(e.message(), "written meanwhile"),
                        }
                    }
                }
            });
        }
        scope.spawn(|| (0..2000).for_each(|n| put(&db, "other", n)));
    });
    assert_eq!((number(&db, "n"), number(&db, "other")), (600, 1999));
}

#[test]
fn a_check_that_fails_or_panics_writes_nothing_and_hands_the_lead_over() {
    let _readers = crate::beside_others();
    let db = open();
    put(&db, "k", 1);
    let before = db.visible();
    let refused = checked(&db, "k", 2, &mut || Err(Error::new(ErrorKind::Aborted, "no")));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Aborted);
    let panicked = catch_unwind(AssertUnwindSafe(|| checked(&db, "k", 3, &mut || panic!("on purpose"))));
    assert!(panicked.is_err());
    assert_eq!((number(&db, "k"), db.visible()), (1, before));
    // Inside a check, writes are refused like inside every callback; reads are served.
    let inside = checked(&db, "k", 4, &mut || {
        assert_eq!(number(&db, "k"), 1);
        db.write(&mut batch("k", 9), WriteOptions::default()).map(drop)
    });
    assert_eq!(inside.unwrap_err().kind(), ErrorKind::InvalidArgument);
    thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..100 {
                    match (thread + n) % 3 {
                        0 => put(db, "k", n),
                        1 => drop(checked(db, "k", n, &mut || Ok(())).unwrap()),
                        _ => assert!(checked(db, "bad", n, &mut || Err(Error::closed())).is_err()),
                    }
                }
            });
        }
    });
    assert_eq!(number(&db, "bad"), 0);
    assert!(number(&db, "k") > 90);
    db.close().unwrap();
    let closed = checked(&db, "k", 1, &mut || panic!("not asked")).unwrap_err();
    assert!(matches!(closed.kind(), ErrorKind::Shutdown(_)));
}
