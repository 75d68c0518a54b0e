//! What users ask for and cannot have: told by kind and in words, and nothing is left of the attempt.

use crate::integrity::files;
use crate::repair::forget_tree;
use crate::store::listing;
use ashlar_testkit::golden::golden;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion};
use ashlardb::{
    Builder, Comparator, Compression, Db, Env, ErrorKind, FormatLevel, Read as _, Scan, Write as _,
    check_database,
};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

fn says<T>(answer: ashlardb::Result<T>, kind: ErrorKind, message: &str) {
    let Err(e) = answer else { panic!("not refused: {message}") };
    assert_eq!((e.kind(), e.message()), (kind, message), "{e}");
}

/// Bytewise; the last bytes may be a timestamp.
#[derive(Debug)]
struct Mine {
    timestamp_len: usize,
}

impl Comparator for Mine {
    fn name(&self) -> &str {
        "test.Mine"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn timestamp_len(&self) -> usize {
        self.timestamp_len
    }
}

/// With a family in an order of the user's.
fn ordered(dir: &Path, timestamp_len: usize) -> Builder {
    Db::builder(dir).family("mine", |f| f.comparator(Arc::new(Mine { timestamp_len })))
}

#[test]
fn a_cap_below_the_least_is_refused_and_none_stands_for_the_default() {
    for bytes in [1, (16 << 20) - 1] {
        let dir = tempfile::tempdir().unwrap();
        let message = format!("memory_bytes is {bytes}, the least is 16777216 (or 0)");
        says(Db::builder(dir.path()).memory(bytes).open(), ErrorKind::InvalidArgument, &message);
    }
    let buffers = |set: fn(Builder) -> Builder| {
        let dir = tempfile::tempdir().unwrap();
        let db = set(Db::builder(dir.path())).open().unwrap();
        let cache = db.property("rocksdb.block-cache-capacity").unwrap();
        (cache, db.family("default").unwrap().options().write_buffer_bytes)
    };
    assert_eq!(buffers(|b| b.memory(0)), buffers(|b| b));
    assert_ne!(buffers(|b| b.memory(16 << 20)), buffers(|b| b));
}

#[test]
fn families_that_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    says(db.create_family(""), ErrorKind::InvalidArgument, "a column family needs a name");
    let events = db.create_family("events").unwrap();
    db.drop_family(&events).unwrap();
    let dropped = events.set_options(&[("write_buffer_size", "1M")]);
    says(dropped, ErrorKind::InvalidArgument, "column family \"events\" was dropped");
    db.close().unwrap();
    let there_only = Db::builder(dir.path()).tune(|db, _| db.create_missing_families = false);
    let missing = there_only.family("x", |f| f).open();
    says(missing, ErrorKind::InvalidArgument, "column family \"x\" does not exist");
    let timestamps = "families with user-defined timestamps (test.Mine)";
    says(ordered(dir.path(), 8).open(), ErrorKind::NotSupported, timestamps);
    let new = dir.path().join("new");
    let default = Db::builder(&new).default_family(|f| f.comparator(Arc::new(Mine { timestamp_len: 8 })));
    says(default.open(), ErrorKind::NotSupported, timestamps);
    let names = ashlardb::list_families(&Env::os().unwrap(), dir.path()).unwrap();
    assert_eq!(names, ["default"]);
    assert!(!new.join("CURRENT").exists());
}

#[test]
fn settings_out_of_range() {
    let dir = tempfile::tempdir().unwrap();
    let seldom = Db::builder(dir.path()).tune(|db, _| db.stats_dump_secs = 1 << 32).open();
    let range = "stats_dump_period_sec is 4294967296, the range is 0 to 4294967295";
    says(seldom, ErrorKind::InvalidArgument, range);
    for level in [FormatLevel::V6_29, FormatLevel::V7_8, FormatLevel::V9_11, FormatLevel::V11] {
        let name = level.to_string();
        assert_eq!(name.parse::<FormatLevel>().unwrap(), level);
        assert_eq!(name["rocksdb-".len()..].parse::<FormatLevel>().unwrap(), level);
    }
    for text in ["", "rocksdb-", "rocksdb-8", "7.8.3"] {
        let e = text.parse::<FormatLevel>().unwrap_err();
        assert_eq!(
            (e.kind(), e.message()),
            (ErrorKind::InvalidArgument, &*format!("unknown format level {text:?}"))
        );
        assert!(e.to_string().contains("The levels are rocksdb-6.29, rocksdb-7.8"), "{e}");
    }
}

#[test]
fn an_options_file_that_no_memory_should_hold() {
    let dir = tempfile::tempdir().unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
    let path = dir.path().join("OPTIONS-999999");
    // All of it a hole.
    std::fs::File::create(&path).unwrap().set_len((256 << 20) + 1).unwrap();
    let db = Db::open(dir.path()).unwrap();
    let told = db.recovery().damaged.iter().any(|file| file.cause.contains("too long for an OPTIONS file"));
    assert!(told, "{}", db.recovery());
    db.close().unwrap();
}

#[test]
fn what_cannot_be_repaired() {
    let temp = tempfile::tempdir().unwrap();
    let none = temp.path().join("none");
    says(Db::builder(&none).repair(|_| {}), ErrorKind::InvalidArgument, "there is no such directory");
    assert!(!none.exists());

    let dir = temp.path().join("db");
    let db = ordered(&dir, 0).open().unwrap();
    db.family("mine").unwrap().put("k", "v").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let unlisted = "family \"mine\" needs the comparator test.Mine, which was not given";
    says(Db::builder(&dir).repair(|_| {}), ErrorKind::InvalidArgument, unlisted);
    let report = check_database(&Env::os().unwrap(), &dir, &mut |_| {}).unwrap();
    let unknown = "family \"mine\": its tables cannot be checked without the comparator test.Mine";
    assert_eq!(report.unchecked, [unknown], "{report}");
    assert!(report.is_sound(), "{report}");
    assert!(ordered(&dir, 0).repair(|_| {}).unwrap().is_lossless());

    let prepared = golden("rocksdb-7.8.3/txn_2pc").unwrap_or_else(|skip| panic!("{skip}"));
    let report = Db::builder(prepared.path()).repair(|_| {}).unwrap();
    assert!(report.is_lossless() && report.remarks.iter().any(|r| r.contains("'tx-pending'")), "{report}");
    let db = Db::open(prepared.path()).unwrap();
    db.transaction_by_name("tx-pending").unwrap().expect("a repair keeps it").commit().unwrap();
    assert!(db.get("k-tx-pending").unwrap().is_some());
}

#[test]
fn the_order_of_a_family_is_taken_over_where_none_is_given() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let reverse = Db::builder(&dir).default_family(|f| f.reverse_order());
    let db = reverse.family("also", |f| f).open().unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "v").unwrap();
        db.family("also").unwrap().put(key, "v").unwrap();
    }
    db.close().unwrap();
    let descending = |scan: Scan| {
        let keys: Vec<_> = listing(scan).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"c", b"b", b"a"]);
    };
    for builder in
        [Db::builder(&dir), Db::builder(&dir).family("also", |f| f), Db::builder(&dir).read_only(true)]
    {
        let db = builder.open().unwrap();
        descending(db.scan(..));
        descending(db.family("also").unwrap().scan(..));
        if db.recovery().read_only.is_empty() {
            // Memtable and table are in that order too.
            db.put("b", "new").unwrap();
            db.flush().unwrap();
            db.compact().unwrap();
            descending(db.scan(..));
            assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"new"[..]));
        }
        db.close().unwrap();
    }
}

#[test]
fn a_default_family_with_an_unknown_comparator_is_an_argument_that_lacks() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let mine = || Db::builder(&dir).default_family(|f| f.comparator(Arc::new(Mine { timestamp_len: 0 })));
    mine().open().unwrap().close().unwrap();
    let lacks = "family \"default\" needs the comparator test.Mine, which was not given";
    says(Db::open(&dir), ErrorKind::InvalidArgument, lacks);
    says(Db::open_read_only(&dir), ErrorKind::InvalidArgument, lacks);
    mine().read_only(true).open().unwrap().close().unwrap();
}

/// The remarks do not ask for a comparator that the builder has.
#[test]
fn a_comparator_given_for_the_default_family_serves_repair_and_salvage() {
    for (manifest, options) in [(true, true), (false, true), (false, false)] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("db");
        let mine = |dir: &Path| {
            let comparator = || Arc::new(Mine { timestamp_len: 0 });
            let builder = Db::builder(dir).default_family(|f| f.comparator(comparator()));
            builder.family("mine", |f| f.comparator(comparator()))
        };
        let db = mine(&dir).open().unwrap();
        db.put("a", "in a table").unwrap();
        db.flush().unwrap();
        db.put("b", "in the log").unwrap();
        db.close().unwrap();
        if !manifest {
            forget_tree(&dir);
        }
        for file in files(&dir, "").into_iter().filter(|_| !options) {
            if file.file_name().unwrap().to_string_lossy().starts_with("OPTIONS-") {
                std::fs::remove_file(file).unwrap();
            }
        }
        let copy = temp.path().join("copy");
        for (account, dir) in
            [(mine(&dir).salvage(&copy, |_| {}).unwrap(), &copy), (mine(&dir).repair(|_| {}).unwrap(), &dir)]
        {
            assert!(account.losses.is_empty(), "{account}");
            assert!(!account.remarks.iter().any(|r| r.contains("is not built in")), "{account}");
            let db = mine(dir).open().unwrap();
            assert_eq!(listing(db.scan(..)).len(), 2);
            db.close().unwrap();
        }
        let lacks = "family \"default\" needs the comparator test.Mine, which was not given";
        says(Db::builder(&dir).repair(|_| {}), ErrorKind::InvalidArgument, lacks);
    }
}

/// `leveldb.BytewiseComparator` is what a family has that says nothing of its comparator; an option that names it says so.
#[test]
fn a_comparator_that_an_option_names_is_held_against_the_stored_one() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let reverse = Db::builder(&dir).default_family(|f| f.reverse_order());
    reverse.family("also", |f| f).open().unwrap().close().unwrap();
    let bytewise = "comparator=leveldb.BytewiseComparator";
    let other = |family: &str| {
        format!(
            "leveldb.BytewiseComparator: does not match existing comparator rocksdb.ReverseBytewiseComparator of \
             family {family:?}"
        )
    };
    let default = || Db::builder(&dir).default_family(|f| f.options(bytewise));
    let also = || Db::builder(&dir).family("also", |f| f.options(bytewise));
    for (builder, family) in [
        (default(), "default"),
        (default().read_only(true), "default"),
        (Db::builder(&dir).options(bytewise), "default"),
        (also(), "also"),
        (also().read_only(true), "also"),
    ] {
        says(builder.open(), ErrorKind::InvalidArgument, &other(family));
    }
    let same = "comparator=rocksdb.ReverseBytewiseComparator";
    let db = Db::builder(&dir).default_family(|f| f.options(same)).family("also", |f| f.options(same)).open();
    db.unwrap().close().unwrap();
    Db::open(&dir).unwrap().close().unwrap();
}

/// Settings of the database and of a family with which RocksDB opens nothing, and what our error names.
const REFUSED_TOGETHER: [([&str; 2], [&str; 2]); 7] = [
    (
        ["", "compression=kLZ4Compression;block_based_table_factory={block_align=true;}"],
        ["block_align=true", "compression=kLZ4Compression"],
    ),
    (
        ["", "block_based_table_factory={no_block_cache=true;cache_index_and_filter_blocks=true;}"],
        ["no_block_cache=true", "cache_index_and_filter_blocks=true"],
    ),
    (
        ["enable_pipelined_write=true;atomic_flush=true", ""],
        ["enable_pipelined_write=true", "atomic_flush=true"],
    ),
    (
        ["unordered_write=true;allow_concurrent_memtable_write=false", ""],
        ["unordered_write=true", "allow_concurrent_memtable_write=false"],
    ),
    (
        ["unordered_write=1;enable_pipelined_write=1", ""],
        ["unordered_write=true", "enable_pipelined_write=true"],
    ),
    (
        ["", "inplace_update_support=1"],
        ["inplace_update_support=true", "allow_concurrent_memtable_write=true"],
    ),
    (["", "block_protection_bytes_per_key=3"], ["block_protection_bytes_per_key is 3", "0, 1, 2, 4 or 8"]),
];

/// The OPTIONS file is RocksDB's too.
#[test]
fn settings_that_rocksdb_refuses_together_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (there, new) = (temp.path().join("there"), temp.path().join("new"));
    Db::open(&there).unwrap().close().unwrap();
    for (settings, named) in REFUSED_TOGETHER {
        let text = settings.join(";");
        let text = text.trim_matches(';');
        for dir in [&there, &new] {
            let Err(e) = Db::builder(dir).options(text).open() else { panic!("not refused: {text}") };
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
            assert!(named.iter().all(|name| e.message().contains(name)), "{text}: {e}");
        }
        assert!(!new.exists(), "{text}");
    }
    // The order of the calls does not matter.
    let aligned = Db::builder(&there).options("block_based_table_factory={block_align=true;}");
    aligned.default_family(|f| f.compression(Compression::None)).open().unwrap().close().unwrap();
}

/// [`Db::builder`] with `fresh_options` does not read the file; the engine keeps its texts for RocksDB.
#[test]
fn stored_settings_give_way_to_a_fresh_open_where_rocksdb_refuses_both() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let stored =
        "compression=kNoCompression;unordered_write=true;block_based_table_factory={block_align=true;}";
    Db::builder(&dir).options(stored).open().unwrap().close().unwrap();
    let options = || {
        let newest = files(&dir, "").into_iter().filter(|f| f.to_str().unwrap().contains("OPTIONS-")).max();
        std::fs::read_to_string(newest.unwrap()).unwrap()
    };
    assert!(["unordered_write=true", "block_align=true"].iter().all(|text| options().contains(text)));
    let fresh = Db::builder(&dir).fresh_options().options("enable_pipelined_write=true").open().unwrap();
    let report = fresh.recovery().to_string();
    assert!(
        report.contains("block_align is false again") && report.contains("unordered_write is false again"),
        "{report}"
    );
    fresh.close().unwrap();
    let now =
        ["unordered_write=false", "block_align=false", "enable_pipelined_write=true", "compression=kLZ4"];
    assert!(now.iter().all(|text| options().contains(text)), "{}", options());
}

#[test]
fn rocksdb_refuses_what_we_call_refused_together() {
    for ([db, family], _) in REFUSED_TOGETHER {
        let mut judge = match Judge::spawn(JudgeVersion::V11) {
            Err(JudgeError::Skip(skip)) => {
                return skip.announce("rocksdb_refuses_what_we_call_refused_together");
            }
            judge => judge.unwrap(),
        };
        let temp = tempfile::tempdir().unwrap();
        judge.prepare("without").unwrap();
        judge.prepare(&format!("with db create_if_missing=true;{db}")).unwrap();
        let opened = match judge.prepare(&format!("with family default {family}")) {
            Ok(()) => judge.open(&temp.path().join("db"), Opening::Create, ""),
            refused => refused,
        };
        assert!(matches!(opened, Err(JudgeError::Refused(_))), "{db} {family}: {opened:?}");
    }
}

#[test]
fn settings_that_rocksdb_refuses_together_meet_by_changes_and_by_inheritance_and_are_refused() {
    let aligned = "block_based_table_factory={block_align=true;}";
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let plain = || Db::builder(&dir).default_family(|f| f.compression(Compression::None));
    let db = plain().family("packed", |f| f.compression(Compression::Zstd)).open().unwrap();
    let both = "block_align=true does not go with compression=kZSTD: RocksDB opens no database with both";
    let align = [("block_based_table_factory", "{block_align=true;}")];
    let [default, packed] = &db.families()[..] else { panic!("{:?}", db.families()) };
    says(packed.set_options(&align), ErrorKind::InvalidArgument, both);
    default.set_options(&align).unwrap();
    says(default.set_options(&[("compression", "kZSTD")]), ErrorKind::InvalidArgument, both);
    default.set_options(&[("write_buffer_size", "1M")]).unwrap();
    db.close().unwrap();
    Db::open(&dir).unwrap().close().unwrap();
    // `default` has no compression; the setting reaches "packed" as well.
    says(Db::builder(&dir).default_family(|f| f.options(aligned)).open(), ErrorKind::InvalidArgument, both);
    let pipelined = Db::builder(&dir).options("enable_pipelined_write=true").open().unwrap();
    let other = [("block_protection_bytes_per_key", "3")];
    let range = "block_protection_bytes_per_key is 3, it can be 0, 1, 2, 4 or 8";
    says(pipelined.families()[0].set_options(&other), ErrorKind::InvalidArgument, range);
    pipelined.close().unwrap();
    let flushing =
        "enable_pipelined_write=true does not go with atomic_flush=true: RocksDB opens no database with both";
    says(Db::builder(&dir).tune(|db, _| db.atomic_flush = true).open(), ErrorKind::InvalidArgument, flushing);
    // What stands in the file fails no open, whatever else is set.
    for file in files(&dir, "").into_iter().filter(|f| f.to_str().unwrap().contains("OPTIONS-")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("block_align=false", "block_align=true");
        std::fs::write(&file, text.replace("atomic_flush=false", "atomic_flush=true")).unwrap();
    }
    let db = Db::builder(&dir).options("max_open_files=100").family("new", |f| f).open().unwrap();
    db.family("packed").unwrap().set_options(&[("write_buffer_size", "1M")]).unwrap();
    db.close().unwrap();
}
