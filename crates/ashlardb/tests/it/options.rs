//! Settings by RocksDB's names: stored, loaded, changed while open, judged by RocksDB.

use crate::store::copy;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, report};
use ashlardb::{
    Builder, Compression, Db, Env, ErrorKind, FormatLevel, LastPut, MergeOperator, Read as _, UInt64Add,
    Write as _, check_database,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The OPTIONS files of a directory, oldest first.
pub fn options_files(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        all.filter(|p| p.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-")).collect();
    files.sort();
    files
}

pub fn newest(dir: &Path) -> String {
    std::fs::read_to_string(options_files(dir).last().unwrap()).unwrap()
}

/// The lines of a section of an OPTIONS file.
pub fn section<'a>(text: &'a str, title: &str) -> Vec<&'a str> {
    let behind = text.split_once(&format!("[{title}]\n")).unwrap_or_else(|| panic!("no {title} in {text}")).1;
    behind
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with('['))
        .filter(|l| !l.is_empty())
        .collect()
}

fn tuned(dir: &Path) -> Builder {
    Db::builder(dir)
        .format_level(FormatLevel::V7_8)
        .options(
            "max_total_wal_size=64M;write_buffer_size=1M;level0_stop_writes_trigger=40;compression=kZSTD",
        )
        .options("block_based_table_factory={block_size=8K;filter_policy=ribbonfilter:12:0;block_cache=32M;}")
        .family("counts", |f| {
            f.merge_operator(Arc::new(UInt64Add)).options("compression_opts={level=5;max_dict_bytes=4K;}")
        })
        .family("blobs", |f| f.options("enable_blob_files=true;min_blob_size=512;num_levels=5"))
        .family("odd: name", |f| f.reverse_order())
}

#[test]
fn settings_are_stored_and_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let db = tuned(dir.path()).open().unwrap();
    db.close().unwrap();
    let text = newest(dir.path());
    assert!(text.contains("\n#@ block_cache_bytes=33554432\n"), "{text}");
    let db = Db::builder(dir.path()).format_level(FormatLevel::V7_8).open().unwrap();
    assert_eq!(db.recovery().unserved, Vec::<String>::new());
    db.family("counts").unwrap().merge("n", 7u64.to_le_bytes()).unwrap();
    assert_eq!(newest(dir.path()), text, "what was loaded is stored again");
    db.close().unwrap();
    // Our defaults are taken when asked for only; merge operators and orders come back all the same.
    let fresh = Db::builder(dir.path()).format_level(FormatLevel::V7_8).fresh_options();
    fresh.family("odd: name", |f| f.reverse_order()).open().unwrap().close().unwrap();
    let plain = newest(dir.path());
    assert!(section(&plain, "CFOptions \"default\"").contains(&"compression=kLZ4Compression"), "{plain}");
    assert!(section(&plain, "CFOptions \"counts\"").contains(&"merge_operator=UInt64AddOperator"), "{plain}");
}

#[test]
fn two_files_are_kept_and_a_damaged_one_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..4 {
        let db = Db::open(dir.path()).unwrap();
        db.create_family("f").map(|f| db.drop_family(&f).unwrap()).unwrap();
        db.wait_for_background().unwrap();
        db.close().unwrap();
    }
    let files = options_files(dir.path());
    assert_eq!(files.len(), 2, "{files:?}");
    std::fs::write(&files[1], "[DBOptions]\nno statement\n").unwrap();
    let name = files[1].file_name().unwrap().to_str().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let report = db.recovery();
    assert!(!report.is_clean() && report.damaged[0].file == name, "{report}");
    assert!(report.lost.iter().any(|lost| lost == name), "{report}");
    assert!(dir.path().join("lost").join(name).exists() && !files[1].exists());
    db.close().unwrap();
    assert!(Db::open(dir.path()).unwrap().recovery().is_clean());
}

/// A file that ends within the section of a family names no merge operator, and any other one was taken.
#[test]
fn a_file_without_its_end_is_damaged_and_the_older_one_holds() {
    let dir = tempfile::tempdir().unwrap();
    let counts = |operator: Arc<dyn MergeOperator>| {
        Db::builder(dir.path()).default_family(|f| f.merge_operator(operator))
    };
    for _ in 0..2 {
        let db = counts(Arc::new(UInt64Add)).open().unwrap();
        db.merge("k", 1u64.to_le_bytes()).unwrap();
        db.create_family("f").map(|f| db.drop_family(&f).unwrap()).unwrap();
        db.close().unwrap();
    }
    let files = options_files(dir.path());
    let text = std::fs::read_to_string(&files[1]).unwrap();
    let (before, _) = text.split_once("  merge_operator=").unwrap();
    std::fs::write(&files[1], before).unwrap();
    let checked = check_database(&Env::os().unwrap(), dir.path(), &mut |_| {}).unwrap();
    assert_eq!(checked.damages.len(), 1, "{checked}");
    let e = counts(Arc::new(LastPut)).open().unwrap_err();
    assert!(e.to_string().contains("has the merge operator"), "{e}");
    let db = counts(Arc::new(UInt64Add)).open().unwrap();
    assert!(!db.recovery().is_clean());
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&2u64.to_le_bytes()[..]));
}

/// Unknown names, values out of range, and options that are not built: each is reported, none keeps the database shut.
#[test]
fn a_strange_file_never_fails_an_open() {
    let dir = tempfile::tempdir().unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
    let last = options_files(dir.path()).pop().unwrap();
    let text = "[Version]\n rocksdb_version=12.1.0\n options_file_version=1.1\n[DBOptions]\n brand_new=7\n \
        max_total_wal_size=lots\n error_if_exists=true\n[CFOptions \"default\"]\n write_buffer_size=1\n \
        compaction_style=kCompactionStyleUniversal\n level0_slowdown_writes_trigger=1\n num_levels=1\n\
        [TableOptions/BlockBasedTable \"default\"]\n format_version=9\n block_size=16384\n";
    std::fs::write(last, text).unwrap();
    let db = Db::open(dir.path()).unwrap();
    let notices = &db.recovery().unserved;
    for part in [
        "brand_new=7",
        "max_total_wal_size=lots",
        "write_buffer_size=1: the range is bytes, 65536",
        "out of order",
        "num_levels=1",
        "format_version",
    ] {
        assert!(notices.iter().any(|notice| notice.contains(part)), "{part}: {notices:#?}");
    }
    db.close().unwrap();
    let stored = newest(dir.path());
    for kept in ["brand_new=7", "max_total_wal_size=lots", "error_if_exists=true"] {
        assert!(section(&stored, "DBOptions").contains(&kept), "{kept}: {stored}");
    }
    for kept in ["write_buffer_size=1", "compaction_style=kCompactionStyleUniversal", "num_levels=1"] {
        assert!(section(&stored, "CFOptions \"default\"").contains(&kept), "{kept}: {stored}");
    }
    assert!(
        section(&stored, "TableOptions/BlockBasedTable \"default\"").contains(&"block_size=16384"),
        "{stored}"
    );
}

#[derive(Debug)]
struct Mine;

impl MergeOperator for Mine {
    fn name(&self) -> &str {
        "mine"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> ashlardb::Result<Vec<u8>> {
        Ok(operands.concat())
    }
}

#[test]
fn merge_operators_are_remembered_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let open = |operator: Option<Arc<dyn MergeOperator>>| {
        Db::builder(dir.path())
            .family("f", |f| operator.into_iter().fold(f, |f, operator| f.merge_operator(operator)))
            .open()
    };
    let db = open(Some(Arc::new(UInt64Add))).unwrap();
    db.family("f").unwrap().merge("n", 2u64.to_le_bytes()).unwrap();
    db.close().unwrap();
    // A built-in one comes back by its name; a different one is refused, and nothing changed.
    let error = open(Some(Arc::new(Mine))).unwrap_err();
    assert!(
        error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("UInt64AddOperator"),
        "{error}"
    );
    let db = open(None).unwrap();
    let f = db.family("f").unwrap();
    f.merge("n", 3u64.to_le_bytes()).unwrap();
    assert_eq!(f.get("n").unwrap().as_deref(), Some(&5u64.to_le_bytes()[..]));
    db.drop_family(&f).unwrap();
    db.close().unwrap();
    // One of the user's is known by its name only: the database opens, what needs it is refused, the name stays.
    let db = open(Some(Arc::new(Mine))).unwrap();
    db.family("f").unwrap().merge("k", "a").unwrap();
    db.close().unwrap();
    for _ in 0..2 {
        let db = open(None).unwrap();
        assert!(db.family("f").unwrap().get("k").is_err());
        db.close().unwrap();
    }
    assert!(open(Some(Arc::new(UInt64Add))).is_err());
    let db = open(Some(Arc::new(Mine))).unwrap();
    assert_eq!(db.family("f").unwrap().get("k").unwrap().as_deref(), Some(&b"a"[..]));
}

#[test]
fn settings_change_while_open() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let default = db.default_family();
    let tables = || db.property("rocksdb.num-files-at-level0").unwrap();
    default.set_options(&[("disable_auto_compactions", "true"), ("write_buffer_size", "64K")]).unwrap();
    for n in 0..2000u32 {
        db.put(n.to_be_bytes(), [b'x'; 200]).unwrap();
    }
    db.flush().unwrap();
    assert!(tables().parse::<u32>().unwrap() > 3, "{}", tables());
    let before = newest(dir.path());
    for (name, value, part) in [
        ("num_levels", "9", "does not change while the database is open"),
        ("comparator", "leveldb.BytewiseComparator", "does not change"),
        ("block_based_table_factory", "{block_cache=1G;}", "block_cache does not change"),
        ("write_buffer_size", "1", "65536"),
        ("write_bufer_size", "1M", "Did you mean write_buffer_size?"),
        ("level0_stop_writes_trigger", "1", "ascend"),
    ] {
        let error = default.set_options(&[("target_file_size_base", "8M"), (name, value)]).unwrap_err();
        assert!(error.to_string().contains(part), "{name}: {error}");
    }
    assert_eq!(newest(dir.path()), before, "a refused change changes nothing");
    // Compactions begin at once, with the new compression.
    let told = default
        .set_options(&[
            ("disable_auto_compactions", "false"),
            ("level0_file_num_compaction_trigger", "2"),
            ("compression", "kNoCompression"),
            ("block_based_table_factory", "{block_size=1K;}"),
            ("arena_block_size", "7"),
        ])
        .unwrap();
    assert!(told.len() == 1 && told[0].starts_with("arena_block_size=7: "), "{told:?}");
    db.wait_for_background().unwrap();
    assert_eq!(tables(), "0");
    let after = newest(dir.path());
    for line in
        ["level0_file_num_compaction_trigger=2", "compression=kNoCompression", "write_buffer_size=65536"]
    {
        assert!(section(&after, "CFOptions \"default\"").contains(&line), "{line}: {after}");
    }
    assert!(section(&after, "TableOptions/BlockBasedTable \"default\"").contains(&"block_size=1024"));
    assert_eq!(default.get(5u32.to_be_bytes()).unwrap().as_deref(), Some(&[b'x'; 200][..]));
    db.set_db_options(&[("max_total_wal_size", "1M"), ("max_background_jobs", "3")]).unwrap();
    assert!(section(&newest(dir.path()), "DBOptions").contains(&"max_total_wal_size=1048576"));
    assert!(db.set_db_options(&[("wal_compression", "kZSTD")]).is_err());
    db.close().unwrap();
    assert!(default.set_options(&[("ttl", "1")]).is_err());
}

/// Writers, and changes of the settings they write by, at the same time; nothing is lost.
#[test]
fn settings_change_under_writers() {
    let dir = tempfile::tempdir().unwrap();
    let db =
        Db::builder(dir.path()).options("write_buffer_size=64K;target_file_size_base=64K").open().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u32)
            .map(|thread| {
                let db = &db;
                scope.spawn(move || {
                    for n in 0..1500u32 {
                        db.put((thread << 16 | n).to_be_bytes(), [b'v'; 100]).unwrap();
                    }
                })
            })
            .collect();
        for thread in 0..2usize {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                let family = db.default_family();
                let mut round = thread;
                while !done.load(Ordering::Relaxed) {
                    let buffer = ["64K", "256K", "1M"][round % 3];
                    let trigger = ["2", "4", "8"][round % 3];
                    let changes =
                        [("write_buffer_size", buffer), ("level0_file_num_compaction_trigger", trigger)];
                    family.set_options(&changes).unwrap();
                    db.set_db_options(&[("max_total_wal_size", buffer)]).unwrap();
                    round += 1;
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    db.flush().unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.scan(..).map(Result::unwrap).count(), 4500);
    assert!(options_files(dir.path()).len() <= 3);
}

/// The flush slept to the end of a pause of hours.
#[test]
fn a_flush_that_waits_for_the_rate_goes_on_when_the_rate_is_raised() {
    for rate in ["0", "64M"] {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::builder(dir.path()).options("rate_limiter_bytes_per_sec=1").open().unwrap();
        (0..1000_u32).for_each(|n| db.put(n.to_be_bytes(), [b'v'; 100]).unwrap());
        let flushing = db.clone();
        let flush = std::thread::spawn(move || flushing.flush());
        // Time for the flush to reach its pause. A flush that is slower meets the new rate, and passes all the same.
        std::thread::sleep(std::time::Duration::from_millis(500));
        db.set_db_options(&[("rate_limiter_bytes_per_sec", rate)]).unwrap();
        ashlar_testkit::within(30, "a flush", move || flush.join()).unwrap().unwrap();
        db.close().unwrap();
    }
}

/// The reader listed an OPTIONS file that the writer then renamed or removed.
#[test]
fn a_read_only_open_beside_a_writer_that_changes_settings_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let size = ["64K", "256K"][round % 2];
                db.default_family().set_options(&[("write_buffer_size", size)]).unwrap();
            }
        });
        for _ in 0..300 {
            let opened = Db::builder(dir.path()).read_only(true).open();
            let found = opened.and_then(|reader| reader.get("k"));
            if !matches!(&found, Ok(Some(_))) {
                done.store(true, Ordering::Relaxed);
                panic!("{found:?}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// RocksDB loads our OPTIONS file with every name known to it, opens with it, and then stores the same values.
#[test]
fn rocksdb_loads_what_we_store() {
    for version in JudgeVersion::ALL {
        let mut judge = match Judge::spawn(version) {
            Ok(judge) => judge,
            Err(JudgeError::Skip(skip)) => return skip.announce("rocksdb_loads_what_we_store"),
            Err(other) => panic!("{other}"),
        };
        let dir = tempfile::tempdir().unwrap();
        let db = tuned(dir.path()).open().unwrap();
        db.put("k", "v").unwrap();
        db.family("counts").unwrap().merge("n", 1u64.to_le_bytes()).unwrap();
        db.close().unwrap();
        let ours = newest(dir.path());
        let copy = copy(dir.path());
        match judge.open(copy.path(), Opening::Stored, "") {
            Err(JudgeError::Refused(text)) if text.contains("open create|existing|readonly 0xPATH") => {
                report::skipped("rocksdb_loads_what_we_store", "the judge is older: run `cargo xtask setup`");
                return;
            }
            opened => opened.unwrap_or_else(|e| panic!("{}: {e}", version.name())),
        }
        assert_eq!(judge.families().unwrap().len(), 4);
        judge.close().unwrap();
        let theirs = newest(copy.path());
        let titles = [
            "DBOptions",
            "CFOptions \"default\"",
            "CFOptions \"counts\"",
            "CFOptions \"blobs\"",
            "CFOptions \"odd\\: name\"",
            "TableOptions/BlockBasedTable \"counts\"",
            "TableOptions/BlockBasedTable \"default\"",
        ];
        let mut same = 0;
        for title in titles {
            let kept = section(&theirs, title);
            for line in section(&ours, title) {
                let (name, value) = line.split_once('=').unwrap();
                // Structs come back with all their members; RocksDB opens what is there, and fills in what 0 stands for.
                // RocksDB 7.8 loses `write_dbid_to_manifest`.
                let is_lost = name == "write_dbid_to_manifest" && version == JudgeVersion::V7;
                if value.starts_with('{')
                    || is_lost
                    || matches!(name, "create_if_missing" | "max_compaction_bytes")
                {
                    continue;
                }
                let found = kept.iter().find_map(|kept| kept.strip_prefix(name)?.strip_prefix('='));
                // Objects by their ids.
                let plain = |value: &str| {
                    let id = value.strip_prefix("{id=").and_then(|object| object.split_once(';'));
                    id.map_or(value, |(id, _)| id).replace('\\', "")
                };
                assert_eq!(found.map(plain), Some(plain(value)), "{} {title}: {line}", version.name());
                same += 1;
            }
        }
        report::figure(&format!(
            "{}: {same} stored settings loaded and stored again the same",
            version.name()
        ));
        // And the other way.
        let db = Db::builder(copy.path()).format_level(FormatLevel::V7_8).open().unwrap();
        let told: Vec<_> = db.recovery().unserved.iter().filter(|n| !n.contains("format_version")).collect();
        assert!(told.is_empty(), "{told:#?}");
        db.close().unwrap();
        assert!(section(&newest(copy.path()), "CFOptions \"default\"").contains(&"compression=kZSTD"));
    }
}

#[test]
fn an_open_advises() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path())
        .options("level0_slowdown_writes_trigger=36")
        .default_family(|f| f.compression(Compression::None))
        .open()
        .unwrap();
    let text = db.recovery().to_string();
    assert!(text.contains("advice: family \"default\": level0-out-of-order: "), "{text}");
    assert!(db.recovery().is_clean());
    db.close().unwrap();
    // The settings are the directory's; without them there is nothing to advise.
    let stored = Db::open(dir.path()).unwrap();
    assert_eq!(stored.recovery().advice.len(), 1, "{}", stored.recovery());
    stored.close().unwrap();
    let fresh = Db::builder(dir.path()).fresh_options().open().unwrap();
    assert_eq!(fresh.recovery().advice, Vec::<String>::new());
}
