//! Comparators and merge operators with names that files cannot tell apart, and comparators that contradict themselves.

use ashlar_env::sim::{CallClass, Repeat, SimEnv};
use ashlardb::prelude::*;
use ashlardb::{Builder, Comparator, ErrorKind, IoKind, MergeOperator, Result, UInt64Add};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A comparator of that name, with these answers.
#[derive(Debug)]
struct Named(&'static str, fn(&[u8], &[u8]) -> Ordering);

impl Comparator for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.1)(a, b)
    }
}

/// A merge operator of that name that keeps the newest operand.
#[derive(Debug)]
struct Newest(&'static str);

impl MergeOperator for Newest {
    fn name(&self) -> &str {
        self.0
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(operands.last().map(|last| last.to_vec()).unwrap_or_default())
    }
}

fn ordered(dir: &Path, name: &'static str, by: fn(&[u8], &[u8]) -> Ordering) -> Builder {
    Db::builder(dir).default_family(move |f| f.comparator(Arc::new(Named(name, by))))
}

fn merging(dir: &Path, operator: Arc<dyn MergeOperator>) -> Builder {
    Db::builder(dir).default_family(move |f| f.merge_operator(operator))
}

#[test]
fn names_of_built_ins_and_names_that_no_options_file_holds_are_refused_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    // Neither of the built-in orders.
    let by_length = |a: &[u8], b: &[u8]| a.len().cmp(&b.len()).then(a.cmp(b));
    let names = [
        "",
        "leveldb.BytewiseComparator",
        "rocksdb.ReverseBytewiseComparator",
        "leveldb.BytewiseComparator.u64ts",
    ];
    let mut builders: Vec<(&str, Builder)> = names.map(|name| (name, ordered(&dir, name, by_length))).into();
    builders.extend(
        ["", "UInt64AddOperator", "max", " lead", "trail\n"]
            .map(|name| (name, merging(&dir, Arc::new(Newest(name))))),
    );
    for (name, builder) in builders {
        let e = builder.open().unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("name"), "{name:?}: {e}");
        assert!(!dir.exists(), "{name:?}");
    }
    let db = merging(&dir, Arc::new(UInt64Add)).open().unwrap();
    db.merge("k", 7u64.to_le_bytes()).unwrap();
    db.close().unwrap();
    let db = Db::open(&dir).unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&7u64.to_le_bytes()[..]));
}

#[test]
fn a_compaction_under_a_comparator_that_contradicts_itself_ends_and_names_it() {
    for answer in [Ordering::Less, Ordering::Greater] {
        let home = tempfile::tempdir().unwrap();
        let always: fn(&[u8], &[u8]) -> Ordering = match answer {
            Ordering::Less => |_, _| Ordering::Less,
            _ => |_, _| Ordering::Greater,
        };
        let db = ordered(home.path(), "contradicts", always).open().unwrap();
        for key in 0..10u8 {
            db.put([key], "v").unwrap();
        }
        let flushed = db.flush();
        let (done, ended) = channel();
        let other = db.clone();
        let thread = std::thread::spawn(move || done.send(other.compact()).unwrap());
        let compacted = ended.recv_timeout(Duration::from_secs(60)).expect("the compaction ends");
        for e in [flushed.err(), compacted.err()].into_iter().flatten() {
            let text = e.to_string();
            assert!(
                text.contains("contradicts itself") && !text.contains("quarantine"),
                "{answer:?}: {text}"
            );
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{text}");
        }
        thread.join().unwrap();
        let _ = db.close();
    }
}

/// Serial numbers that wrap around (RFC 1982): an order within half of the circle, and a ring beyond.
fn serial(a: &[u8], b: &[u8]) -> Ordering {
    let number = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap());
    number(a).wrapping_sub(number(b)).cast_signed().cmp(&0)
}

#[test]
fn reads_and_range_deletions_under_a_comparator_that_contradicts_itself_panic_nowhere() {
    let home = tempfile::tempdir().unwrap();
    let db = ordered(home.path(), "serial", serial).open().unwrap();
    let key = |n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes();
    let keys: Vec<[u8; 4]> = (1..1500).map(key).collect();
    for many in [2, 25, 300, keys.len()] {
        let Err(e) = db.multi_get(&keys[..many]) else {
            assert_eq!(many, 2);
            continue;
        };
        let text = e.to_string();
        assert!(text.contains("contradicts itself") && text.contains("Correct the comparator"), "{text}");
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{text}");
    }
    let near: Vec<[u8; 4]> = (u32::MAX - 50..=u32::MAX).chain(0..50).map(u32::to_be_bytes).collect();
    for key in &near {
        db.put(key, key).unwrap();
    }
    let found = db.multi_get(&near).unwrap();
    assert!(near.iter().zip(&found).all(|(key, value)| value.as_deref() == Some(&key[..])));
    for pair in keys.windows(2) {
        let _ = db.delete_range(pair[0], pair[1]);
    }
    for done in [db.flush(), db.compact(), db.get(key(7)).map(drop)] {
        let Err(e) = done else { continue };
        assert!(!e.to_string().contains("panic"), "{e}");
    }
    let _ = db.close();
}

#[test]
fn a_write_to_a_dropped_family_names_the_family() {
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(home.path()).unwrap();
    let family = db.create_family("invoices").unwrap();
    db.drop_family(&family).unwrap();
    let e = family.put("k", "v").unwrap_err();
    assert!(
        e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("\"invoices\" was dropped"),
        "{e}"
    );
}

#[test]
fn a_setting_of_the_database_among_those_of_a_family_is_named_as_such() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let e = Db::builder(&dir).default_family(|f| f.options("wal_dir=elsewhere")).open().unwrap_err();
    assert!(e.to_string().contains("setting of the database"), "{e}");
    assert!(!dir.exists());
}

#[test]
fn an_open_that_finds_the_disk_full_says_that_reading_needs_no_room() {
    let sim = SimEnv::new(7);
    let open = || Db::builder("/db").env(sim.env()).open();
    open().unwrap().close().unwrap();
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::NoSpace);
    let e = open().unwrap_err();
    assert!(e.kind() == ErrorKind::Io(IoKind::NoSpace) && e.to_string().contains("read-only"), "{e}");
    open().unwrap();
}
