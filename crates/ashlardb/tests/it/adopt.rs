//! The settings of a directory that exists: adopted by an open, beaten by what the caller sets, kept for RocksDB.

use crate::judge::judge;
use crate::options::{newest, options_files, section};
use ashlar_format::options_file::{OptionsFile, SectionKind};
use ashlar_options::{CompactRangeOptions, FamilyOptions};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, report};
use ashlardb::{
    Builder, Compression, Db, ErrorKind, FormatLevel, MergeOperator, Read as _, StringAppend, UInt64Add,
    Write as _, WriteBatch,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Options of RocksDB 11.8.1 off their defaults, as far as they go together.
const ODD: &str = "max_total_wal_size=123456789;keep_log_file_num=77;stats_dump_period_sec=0;max_background_jobs=3;\
    max_open_files=500;avoid_flush_during_shutdown=true;avoid_flush_during_recovery=true;enable_pipelined_write=true;\
    write_dbid_to_manifest=false;max_manifest_file_size=1000000;WAL_ttl_seconds=60;WAL_size_limit_MB=5;\
    bytes_per_sync=1048576;delayed_write_rate=1000000;verify_manifest_content_on_close=true;\
    num_levels=5;write_buffer_size=1234567;max_write_buffer_number=4;compression=kZSTD;\
    compression_opts={level=4;strategy=1;window_bits=-13;parallel_threads=2;};ttl=777777;enable_blob_files=true;\
    min_blob_size=100;prefix_extractor=rocksdb.FixedPrefix.3;memtable_prefix_bloom_size_ratio=0.1;\
    compaction_pri=kRoundRobin;max_bytes_for_level_multiplier_additional=1:2:1;last_level_temperature=kCold;\
    preserve_internal_time_seconds=1000;min_tombstones_for_range_conversion=7;block_protection_bytes_per_key=8;\
    level_compaction_dynamic_level_bytes=false;target_file_size_multiplier=2;\
    compaction_options_universal={size_ratio=7;};compaction_options_fifo={max_table_files_size=999999;};\
    level0_file_num_compaction_trigger=3;level0_slowdown_writes_trigger=15;level0_stop_writes_trigger=30;\
    block_based_table_factory={block_size=8192;format_version=7;whole_key_filtering=false;\
    filter_policy=ribbonfilter:12:2;index_type=kHashSearch;data_block_index_type=kDataBlockBinaryAndHash;\
    data_block_hash_table_util_ratio=0.5;use_delta_encoding=false;index_shortening=kNoShortening;\
    enable_index_compression=false;cache_index_and_filter_blocks=true;metadata_block_size=2048;};";

fn put(judge: &mut Judge, family: &str, key: &str, value: &str) {
    let (family, key, value) = (family.to_owned(), key.into(), value.into());
    judge.write(&[Change::Put { family, key, value }], false).unwrap();
}

/// Every name of a file by its section, except the names that hold for one open only.
fn names(text: &str) -> BTreeMap<(String, String), String> {
    let file = OptionsFile::parse(text).unwrap();
    let title = |kind: &SectionKind| format!("{kind:?}");
    let all = file
        .sections
        .iter()
        .flat_map(|s| s.entries.iter().map(|(n, v)| ((title(&s.kind), n.clone()), v.clone())));
    all.filter(|((_, name), _)| {
        !matches!(name.as_str(), "create_if_missing" | "create_missing_column_families")
    })
    .collect()
}

/// What the second file lost or changed of the first.
fn lost(before: &str, after: &str) -> Vec<String> {
    let after = names(after);
    let differs = |(at, value): (&(String, String), &String)| {
        let now = after.get(at);
        (now != Some(value)).then(|| format!("{at:?}: {value} -> {now:?}"))
    };
    names(before).iter().filter_map(differs).collect()
}

/// round-trips C1, C2, C3: nothing that RocksDB stored is lost or changed, and it loads all of it.
#[test]
fn what_rocksdb_stored_comes_back_as_it_stood() {
    let Some(mut judge) = judge(JudgeVersion::V11, "what_rocksdb_stored_comes_back_as_it_stood") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    judge.open(dir.path(), Opening::Create, ODD).unwrap();
    judge.create_family("other").unwrap();
    put(&mut judge, "default", "key1", "v");
    judge.close().unwrap();
    let theirs = newest(dir.path());
    for round in 0..2 {
        let db = Db::open(dir.path()).unwrap();
        let family = db.default_family().options();
        assert_eq!((family.compaction.num_levels, family.write_buffer_bytes), (5, 1_234_567));
        assert_eq!((family.table.compression, family.table.block_size), (Compression::Zstd, 8192));
        assert_eq!(family.table.data_block_hash_ratio, Some(0.5));
        assert!(family.blob.enabled && family.blob.min_blob_bytes == 100);
        let told = db.recovery().unserved.join("\n");
        for part in [
            "index_type=kHashSearch",
            "last_level_temperature=kCold",
            "level_compaction_dynamic_level_bytes=false",
            "format_version=7",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(db.recovery().is_clean() && told.contains("families \"default\", \"other\""), "{told}");
        db.put("key2", "w").unwrap();
        db.close().unwrap();
        assert_eq!(lost(&theirs, &newest(dir.path())), Vec::<String>::new(), "round {round}");
    }
    judge.open(dir.path(), Opening::Stored, "").unwrap();
    assert_eq!(judge.get("default", b"key2").unwrap().as_deref(), Some(&b"w"[..]));
    judge.close().unwrap();
    assert_eq!(lost(&theirs, &newest(dir.path())), Vec::<String>::new());
    report::figure(&format!("rocksdb-11.8.1: {} stored names came back as they stood", names(&theirs).len()));
}

/// What 7.8.3 stored, 11.8.1 loads behind us; at its own level 7.8.3 does.
#[test]
fn an_older_file_is_carried_to_either_release() {
    let test = "an_older_file_is_carried_to_either_release";
    let Some(mut old) = judge(JudgeVersion::V7, test) else { return };
    let Some(mut new) = judge(JudgeVersion::V11, test) else { return };
    let dir = tempfile::tempdir().unwrap();
    old.open(dir.path(), Opening::Create, "num_levels=4;prefix_extractor=rocksdb.FixedPrefix.3;ttl=7")
        .unwrap();
    put(&mut old, "default", "k", "v");
    old.close().unwrap();
    let theirs = newest(dir.path());
    let level = |level| Db::builder(dir.path()).format_level(level).open().unwrap().close().unwrap();
    level(FormatLevel::V7_8);
    assert_eq!(lost(&theirs, &newest(dir.path())), Vec::<String>::new());
    old.open(dir.path(), Opening::Stored, "").unwrap();
    old.close().unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
    new.open(dir.path(), Opening::Stored, "").unwrap();
    new.close().unwrap();
    assert!(
        section(&newest(dir.path()), "CFOptions \"default\"")
            .contains(&"prefix_extractor=rocksdb.FixedPrefix.3")
    );
    // Back to 7.8.3 at its level: what it does not know stays out, and it loads the rest.
    level(FormatLevel::V7_8);
    assert!(!newest(dir.path()).contains("write_identity_file"));
    old.open(dir.path(), Opening::Stored, "").unwrap();
    assert_eq!(old.get("default", b"k").unwrap().as_deref(), Some(&b"v"[..]));
    old.close().unwrap();
    assert!(section(&newest(dir.path()), "CFOptions \"default\"").contains(&"num_levels=4"));
}

/// A newer member of a struct took the whole row with it. RocksDB 7.8.3 then deleted data beyond its FIFO default of 1 GiB.
#[test]
fn structs_reach_an_older_release_without_their_newer_members() {
    const STRUCTS: &str = "compaction_style=kCompactionStyleFIFO;\
        compaction_options_fifo={max_table_files_size=50000000000;allow_compaction=true;use_kv_ratio_compaction=true;};\
        compaction_options_universal={size_ratio=7;max_read_amp=9;};\
        compression_opts={level=4;strategy=1;window_bits=-13;checksum=true;};\
        bottommost_compression_opts={enabled=true;level=9;};sst_partitioner_factory={id=SstPartitionerFixedPrefixFactory;length=4;};\
        block_based_table_factory={metadata_cache_options={partition_pinning=kAll;};};";
    let test = "structs_reach_an_older_release_without_their_newer_members";
    let Some(mut old) = judge(JudgeVersion::V7, test) else { return };
    let Some(mut new) = judge(JudgeVersion::V11, test) else { return };
    for changed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        new.open(dir.path(), Opening::Create, STRUCTS).unwrap();
        put(&mut new, "default", "k", "v");
        new.close().unwrap();
        let db = Db::builder(dir.path()).format_level(FormatLevel::V7_8).open().unwrap();
        let told = db.recovery().unserved.join("\n");
        if changed {
            db.default_family().set_options(&[("compression_opts", "{level=5}")]).unwrap();
        }
        db.close().unwrap();
        assert!(told.contains("left out of the OPTIONS file for rocksdb-7.8: "), "{told}");
        for name in [
            "compaction_options_fifo.use_kv_ratio_compaction=true",
            "compaction_options_universal.max_read_amp=9",
            "compression_opts.checksum=true",
        ] {
            assert!(told.contains(name), "{name}: {told}");
        }
        let log = std::fs::read_to_string(dir.path().join("LOG")).unwrap();
        assert!(log.contains("compaction_options_universal.max_read_amp=9"), "{log}");
        let ours = newest(dir.path());
        let level = format!("level={};", if changed { 5 } else { 4 });
        old.open(dir.path(), Opening::Stored, "").unwrap();
        assert_eq!(old.get("default", b"k").unwrap().as_deref(), Some(&b"v"[..]));
        old.close().unwrap();
        let theirs = newest(dir.path());
        for (name, members) in [
            ("compaction_options_fifo", &["max_table_files_size=50000000000;", "allow_compaction=true;"][..]),
            ("compaction_options_universal", &["size_ratio=7;"]),
            ("compression_opts", &[&level, "strategy=1;", "window_bits=-13;"]),
            ("bottommost_compression_opts", &["enabled=true;", "level=9;"]),
            ("metadata_cache_options", &["partition_pinning=kAll;"]),
            ("sst_partitioner_factory", &["id=SstPartitionerFixedPrefixFactory;", "length=4;"]),
        ] {
            for (writer, text) in [("we", &ours), ("7.8.3", &theirs)] {
                let row =
                    text.lines().find(|line| line.trim().starts_with(&format!("{name}="))).unwrap_or("");
                let lost: Vec<_> = members.iter().filter(|member| !row.contains(**member)).collect();
                assert!(lost.is_empty(), "{writer} lost {lost:?}: {name}: {row}");
            }
        }
    }
}

/// newcomer 6: `.memory(64M).stored_options()` dropped the cap, and a family before `default` missed its settings.
#[test]
fn what_is_set_wins_in_whatever_order() {
    let dir = tempfile::tempdir().unwrap();
    let stored = Db::builder(dir.path())
        .options("write_buffer_size=1M;num_levels=5;max_open_files=77")
        .family("a", |f| f.options("write_buffer_size=2M"));
    stored.open().unwrap().close().unwrap();
    let open = |order: usize| {
        let builder = Db::builder(dir.path());
        let builder = match order {
            0 => builder
                .family("new", |f| f.compression(Compression::Zstd))
                .default_family(|f| f.write_buffer(3 << 20))
                .memory(64 << 20),
            _ => builder
                .memory(64 << 20)
                .default_family(|f| f.write_buffer(3 << 20))
                .family("new", |f| f.compression(Compression::Zstd)),
        };
        let db = builder.open().unwrap();
        let shown: Vec<_> = db
            .families()
            .iter()
            .map(|f| {
                let o = f.options();
                (f.name().to_owned(), o.write_buffer_bytes, o.compaction.num_levels, o.table.compression)
            })
            .collect();
        let text = newest(dir.path());
        db.drop_family(&db.family("new").unwrap()).unwrap();
        db.close().unwrap();
        (
            shown,
            text.contains("#@ memory_bytes=67108864"),
            section(&text, "DBOptions").contains(&"max_open_files=77"),
        )
    };
    let (shown, capped, kept) = open(0);
    assert_eq!(
        shown,
        [
            ("default".to_owned(), 3 << 20, 5, Compression::Lz4),
            ("a".to_owned(), 3 << 20, 5, Compression::Lz4),
            ("new".to_owned(), 3 << 20, 5, Compression::Zstd),
        ]
    );
    assert!(capped && kept);
    assert_eq!(open(1), (shown, true, true));
}

#[derive(Debug)]
struct Named(&'static str);

impl MergeOperator for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> ashlardb::Result<Vec<u8>> {
        Ok(operands.concat())
    }
}

/// round-trips B2: `default`'s comparator and operator went to every other family.
#[test]
fn each_family_has_its_own_comparator_and_operator() {
    let dir = tempfile::tempdir().unwrap();
    let made = Db::builder(dir.path())
        .default_family(|f| f.reverse_order().merge_operator(Arc::new(UInt64Add)))
        .family("max", |f| f.options("merge_operator=max;comparator=leveldb.BytewiseComparator"))
        .family("none", |f| f.options("merge_operator=nullptr;comparator=leveldb.BytewiseComparator"))
        .family("mine", |f| f.merge_operator(Arc::new(Named("mine"))));
    made.open().unwrap().close().unwrap();
    for explicit in [false, true] {
        let builder = Db::builder(dir.path());
        let builder = match explicit {
            true => builder.default_family(|f| f.merge_operator(Arc::new(UInt64Add))),
            false => builder,
        };
        let db = builder.open().unwrap();
        let shown = db
            .families()
            .iter()
            .map(|f| {
                let o = f.options();
                format!("{} {} {}", f.name(), o.order.name(), o.merge_operator_name().unwrap_or_default())
            })
            .collect::<Vec<_>>();
        assert_eq!(
            shown,
            [
                "default rocksdb.ReverseBytewiseComparator UInt64AddOperator",
                "max leveldb.BytewiseComparator MaxOperator",
                "mine rocksdb.ReverseBytewiseComparator mine",
                "none leveldb.BytewiseComparator ",
            ]
        );
        assert!(db.family("none").unwrap().merge("k", "v").is_err());
        db.close().unwrap();
    }
    // By the engine's own door as well.
    let family = made_options();
    let env = ashlardb::Env::os().unwrap();
    let engine = ashlar_engine::Db::open(env, dir.path(), Default::default(), Vec::new(), family).unwrap();
    let none = engine.family("none").unwrap();
    assert_eq!(none.options().merge_operator_name(), None);
    engine.close().unwrap();
}

fn made_options() -> FamilyOptions {
    let mut family = FamilyOptions::default();
    family.apply("merge_operator=uint64add;comparator=rocksdb.ReverseBytewiseComparator").unwrap();
    family
}

/// round-trips A5 and B3.
#[test]
fn the_number_of_levels_is_the_directorys() {
    let dir = tempfile::tempdir().unwrap();
    Db::builder(dir.path()).options("num_levels=12").open().unwrap().close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    let deep = CompactRangeOptions::new().target_level(ashlardb::Level(11));
    db.compact_range(.., deep).unwrap();
    db.close().unwrap();
    for read_only in [true, false] {
        let db = Db::builder(dir.path()).read_only(read_only).open().unwrap();
        assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
        assert!(db.recovery().unserved.is_empty(), "{}", db.recovery());
        db.close().unwrap();
    }
    assert!(section(&newest(dir.path()), "CFOptions \"default\"").contains(&"num_levels=12"));
    // Without an OPTIONS file the tables say how many there must be.
    options_files(dir.path()).into_iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    let told = db.recovery().unserved.join("\n");
    assert!(told.contains("num_levels=7: there are tables in level 11, so 12 levels are used"), "{told}");
    db.close().unwrap();
    assert!(section(&newest(dir.path()), "CFOptions \"default\"").contains(&"num_levels=12"));
}

/// A family that is made under the name of a dropped one starts anew.
#[test]
fn a_new_family_takes_over_nothing_of_a_dropped_one() {
    let dir = tempfile::tempdir().unwrap();
    Db::builder(dir.path()).family("f", |f| f).open().unwrap().close().unwrap();
    let file = options_files(dir.path()).pop().unwrap();
    let text = newest(dir.path());
    let head = "[CFOptions \"f\"]\n";
    std::fs::write(file, text.replace(head, &format!("{head}  sst_partitioner_factory=mine\n"))).unwrap();
    let db = Db::open(dir.path()).unwrap();
    let f = || section(&newest(dir.path()), "CFOptions \"f\"").contains(&"sst_partitioner_factory=mine");
    assert!(f(), "carried");
    db.create_family("g").unwrap();
    assert!(f() && newest(dir.path()).matches("sst_partitioner_factory").count() == 1);
    db.drop_family(&db.family("f").unwrap()).unwrap();
    db.create_family("f").unwrap();
    assert!(!f(), "{}", newest(dir.path()));
    db.close().unwrap();
}

/// What a caller gives by a name that has no effect here is stored for RocksDB, by option string and while open.
#[test]
fn given_names_without_effect_replace_the_stored_ones() {
    let dir = tempfile::tempdir().unwrap();
    let text = "bytes_per_sync=1M;arena_block_size=7;compression=kNoCompression;block_based_table_factory={block_align=true;}";
    let db = Db::builder(dir.path()).options(text).open().unwrap();
    let has = |title: &str, line: &str| section(&newest(dir.path()), title).contains(&line);
    assert!(has("DBOptions", "bytes_per_sync=1M") && has("CFOptions \"default\"", "arena_block_size=7"));
    assert!(has("TableOptions/BlockBasedTable \"default\"", "block_align=true"));
    db.default_family().set_options(&[("arena_block_size", "9")]).unwrap();
    db.close().unwrap();
    Db::builder(dir.path()).options("bytes_per_sync=2M").open().unwrap().close().unwrap();
    assert!(has("DBOptions", "bytes_per_sync=2M") && has("CFOptions \"default\"", "arena_block_size=9"));
}

/// Trees of other styles: RocksDB opens them again with its own options, after writes, flushes and what compacts.
#[test]
fn trees_of_other_styles_stay_open_to_rocksdb() {
    let test = "trees_of_other_styles_stay_open_to_rocksdb";
    for (options, is_compacted) in [
        ("compaction_style=kCompactionStyleFIFO;num_levels=1;", true),
        ("compaction_style=kCompactionStyleFIFO;", true),
        ("compaction_style=kCompactionStyleUniversal;num_levels=1;", true),
        ("compaction_style=kCompactionStyleNone;num_levels=1;", false),
        ("compaction_style=kCompactionStyleNone;", false),
        ("compaction_style=kCompactionStyleUniversal;num_levels=4;", true),
        ("compaction_style=kCompactionStyleUniversal;", true),
    ] {
        let Some(mut judge) = judge(JudgeVersion::V11, test) else { return };
        let dir = tempfile::tempdir().unwrap();
        judge.open(dir.path(), Opening::Create, options).unwrap();
        for n in 0..50 {
            put(&mut judge, "default", &format!("theirs{n}"), "v");
        }
        judge.close().unwrap();
        let theirs = newest(dir.path());
        let db = Db::open(dir.path()).unwrap();
        let told = db.recovery().unserved.join("\n");
        assert!(!told.contains("compaction_style="), "{options}: {told}");
        for round in 0..12 {
            for n in 0..50 {
                db.put(format!("key{n}"), format!("{round}")).unwrap();
            }
            db.flush().unwrap();
        }
        db.wait_for_background().unwrap();
        match (db.compact(), is_compacted) {
            (Ok(()), true) => {}
            (Err(e), false) => assert!(
                e.kind() == ErrorKind::NotSupported && e.to_string().contains("compaction_style"),
                "{e}"
            ),
            (other, _) => panic!("{options}: {other:?}"),
        }
        db.close().unwrap();
        assert_eq!(lost(&theirs, &newest(dir.path())), Vec::<String>::new(), "{options}");
        for opening in [Opening::Existing, Opening::Stored] {
            judge.open(dir.path(), opening, if opening == Opening::Stored { "" } else { options }).unwrap();
            assert_eq!(judge.dump("default").unwrap().len(), 100, "{options}");
            assert_eq!(judge.get("default", b"key7").unwrap().as_deref(), Some(&b"11"[..]), "{options}");
            judge.close().unwrap();
        }
    }
}

/// The caller may make such a tree a leveled one for good.
#[test]
fn a_given_style_beats_the_stored_one() {
    let dir = tempfile::tempdir().unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
    let file = options_files(dir.path()).pop().unwrap();
    let head = "[CFOptions \"default\"]\n";
    let none = newest(dir.path()).replace("kCompactionStyleLevel", "kCompactionStyleNone");
    assert!(none.contains(head) && none.contains("kCompactionStyleNone"));
    std::fs::write(file, none).unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert!(db.compact().is_err());
    db.close().unwrap();
    let db = Db::builder(dir.path()).options("compaction_style=kCompactionStyleLevel").open().unwrap();
    assert_eq!(db.recovery().unserved, Vec::<String>::new());
    db.compact().unwrap();
    db.close().unwrap();
    assert!(newest(dir.path()).contains("compaction_style=kCompactionStyleLevel"));
}

/// RocksDB opens no tree with more levels than the program's settings have.
#[test]
fn a_new_family_stays_in_level_0_as_default_does() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let style = "num_levels=1;compaction_style=kCompactionStyleUniversal";
    let rocksdb = |opening, families: &[&str]| -> Result<Judge, JudgeError> {
        let mut judge = Judge::spawn(JudgeVersion::V11)?;
        judge.prepare("with db ")?;
        families.iter().try_for_each(|family| judge.prepare(&format!("with family {family} {style}")))?;
        judge.open(&dir, opening, "")?;
        Ok(judge)
    };
    match rocksdb(Opening::Create, &["default"]).and_then(|mut judge| judge.close()) {
        Err(JudgeError::Skip(skip)) => return skip.announce("a_new_family_stays_in_level_0_as_default_does"),
        outcome => outcome.unwrap(),
    }
    let db = Db::builder(&dir).family("opened", |f| f).open().unwrap();
    let created = db.create_family("created").unwrap();
    for family in [&created, &db.family("opened").unwrap()] {
        for i in 0..6 {
            family.put(format!("k{i}"), "v").unwrap();
            family.flush().unwrap();
        }
    }
    db.close().unwrap();
    let mut judge = rocksdb(Opening::Existing, &["default", "opened", "created"]).unwrap();
    assert_eq!(judge.dump("created").unwrap().len(), 6);
    assert_eq!(judge.dump("opened").unwrap().len(), 6);
}

/// round-trips B6. RocksDB prints the delimiter as it is, and an empty one not at all.
#[test]
fn every_joining_operator_comes_back_with_its_delimiter() {
    let given = ["--", ",", "{;}", "{ }", "{}", "{a;b}", ", "];
    let there = [";--;}", ";,;}", ";;;}", "; ;}", "", ";a;b;}", ";, ;}"];
    for id in ["StringAppendOperator", "StringAppendTESTOperator"] {
        for (given, there) in given.iter().zip(there) {
            let dir = tempfile::tempdir().unwrap();
            let text = format!("merge_operator={{id={id};delimiter={given};}}");
            let db = Db::builder(dir.path()).options(&text).open().unwrap();
            db.merge("k", "a").unwrap();
            db.merge("k", "b").unwrap();
            let delimiter = given.trim_start_matches('{').trim_end_matches('}');
            let joined = format!("a{delimiter}b");
            assert_eq!(db.get("k").unwrap().as_deref(), Some(joined.as_bytes()), "{text}");
            db.close().unwrap();
            let members =
                if there.is_empty() { id.to_owned() } else { format!("{{id={id};delimiter={}", &there[1..]) };
            let line = format!("\n  merge_operator={members}\n");
            assert!(newest(dir.path()).contains(&line), "{line}: {}", newest(dir.path()));
            let db = Db::open(dir.path()).unwrap();
            assert_eq!(db.get("k").unwrap().as_deref(), Some(joined.as_bytes()), "{text}");
            db.close().unwrap();
        }
    }
}

/// A release that prints no delimiter leaves open which one it was.
#[test]
fn a_joining_operator_of_an_old_release_must_be_given() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path())
        .default_family(|f| f.merge_operator(Arc::new(StringAppend::new("+"))))
        .open()
        .unwrap();
    db.merge("k", "a").unwrap();
    db.merge("k", "b").unwrap();
    db.close().unwrap();
    let file = options_files(dir.path()).pop().unwrap();
    let old = newest(dir.path()).replace("{id=StringAppendOperator;delimiter=+;}", "StringAppendOperator");
    let release = old.lines().find(|line| line.contains("rocksdb_version=")).unwrap();
    std::fs::write(file, old.replace(release, "  rocksdb_version=6.20.3")).unwrap();
    let db = Db::open(dir.path()).unwrap();
    let e = db.get("k").unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("merge operator"), "{e}");
    db.close().unwrap();
    let db = Db::builder(dir.path())
        .default_family(|f| f.merge_operator(Arc::new(StringAppend::new("+"))))
        .open()
        .unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"a+b"[..]));
    db.close().unwrap();
}

/// RocksDB writes a new family to the MANIFEST first, so a crash leaves an OPTIONS file without it.
#[test]
fn a_family_that_the_options_file_does_not_name_takes_no_operator_of_default() {
    let dir = tempfile::tempdir().unwrap();
    let opened = || Db::builder(dir.path()).default_family(|f| f.merge_operator(Arc::new(UInt64Add)));
    let joining = || opened().family("words", |f| f.merge_operator(Arc::new(StringAppend::new(","))));
    let db = joining().open().unwrap();
    for word in ["b", "a", "c"] {
        db.family("words").unwrap().merge("k", word).unwrap();
    }
    db.close().unwrap();
    let text = newest(dir.path());
    let mut files = options_files(dir.path());
    let last = files.pop().unwrap();
    files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    // RocksDB writes none of this engine's own lines.
    let text = &text[..text.find("[CFOptions \"words\"]").unwrap()];
    let theirs: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    std::fs::write(last, theirs.join("\n")).unwrap();
    let db = opened().open().unwrap();
    assert!(db.recovery().foreign.iter().any(|line| line.contains("\"words\"")), "{}", db.recovery());
    let words = db.family("words").unwrap();
    let refused = |e: ashlardb::Error| {
        e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("merge operator")
    };
    assert!(refused(words.get("k").unwrap_err()));
    db.compact().unwrap();
    assert!(refused(words.get("k").unwrap_err()));
    db.close().unwrap();
    let db = joining().open().unwrap();
    assert_eq!(db.family("words").unwrap().get("k").unwrap().as_deref(), Some(&b"b,a,c"[..]));
}

/// What is set for `default` reaches other families, but not their operators.
#[test]
fn a_delimiter_set_for_default_does_not_reach_another_family() {
    let dir = tempfile::tempdir().unwrap();
    let joined = |with: &str| Arc::new(StringAppend::new(with)) as Arc<dyn MergeOperator>;
    let db = Db::builder(dir.path()).family("f", |f| f.merge_operator(joined(";"))).open().unwrap();
    let f = db.family("f").unwrap();
    f.merge("k", "a").unwrap();
    f.merge("k", "b").unwrap();
    db.close().unwrap();
    for named in [false, true] {
        let builder = Db::builder(dir.path()).default_family(|f| f.merge_operator(joined(",")));
        let db = if named { builder.family("f", |f| f).open() } else { builder.open() }.unwrap();
        assert_eq!(db.family("f").unwrap().get("k").unwrap().as_deref(), Some(&b"a;b"[..]));
        db.close().unwrap();
    }
}

/// misuse 12, and a newcomer's `block_cache`.
#[test]
fn wrong_values_and_places_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let e = db.set_db_options(&[("max_open_files", "-2")]).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("-1"), "{e}");
    let e = Db::builder(dir.path().join("x")).options("block_cache=64M").open().unwrap_err();
    assert!(e.to_string().contains("block_based_table_factory={block_cache=VALUE;}"), "{e}");
    db.close().unwrap();
}

/// A damaged OPTIONS file costs the settings, and the report says so.
#[test]
fn a_file_that_does_not_read_leaves_our_defaults() {
    let dir = tempfile::tempdir().unwrap();
    Db::builder(dir.path()).options("write_buffer_size=1M").open().unwrap().close().unwrap();
    let files = options_files(dir.path());
    files.iter().for_each(|file| std::fs::write(file, "[DBOptions]\nno statement\n").unwrap());
    let db = Db::open(dir.path()).unwrap();
    assert!(db.recovery().to_string().contains("\ndamaged: OPTIONS-"), "{}", db.recovery());
    assert_eq!(db.default_family().options().write_buffer_bytes, 64 << 20);
    db.close().unwrap();
}

/// newcomer 7: `Db::open` replaced what was stored by our defaults.
#[test]
fn an_open_does_not_change_the_settings_of_a_directory() {
    let dir: tempfile::TempDir = tempfile::tempdir().unwrap();
    let path: &Path = dir.path();
    Db::builder(path)
        .options("write_buffer_size=1M;compression=kZSTD")
        .memory(96 << 20)
        .open()
        .unwrap()
        .close()
        .unwrap();
    let before = newest(path);
    for _ in 0..2 {
        let db = Db::open(path).unwrap();
        db.put("k", "v").unwrap();
        db.close().unwrap();
        assert_eq!(newest(path), before);
    }
}

#[test]
fn a_family_that_takes_no_writes_refuses_them_also_by_its_stored_setting() {
    let dir = tempfile::tempdir().unwrap();
    let sealed = |b: Builder| b.family("sealed", |f| f.options("disallow_memtable_writes=true"));
    for builder in [sealed(Db::builder(dir.path())), Db::builder(dir.path())] {
        let db = builder.open().unwrap();
        let family = db.family("sealed").unwrap();
        let both = WriteBatch::new();
        both.put("k", "both").unwrap();
        both.family(&family).put("k", "both").unwrap();
        for refused in [family.put("k", "v"), family.delete("k"), db.write(both)] {
            let e = refused.unwrap_err();
            assert!(e.kind() == ErrorKind::InvalidArgument, "{e}");
            assert!(e.to_string().contains("family \"sealed\" has disallow_memtable_writes"), "{e}");
        }
        assert_eq!((db.get("k").unwrap(), family.get("k").unwrap()), (None, None));
        db.put("other", "v").unwrap();
        db.close().unwrap();
    }
}

/// Each open reported the missing file as a repair.
#[test]
fn an_identity_that_rocksdb_left_out_on_request_is_no_repair() {
    let test = "write_identity_file=false";
    let Some(mut judge) = judge(JudgeVersion::V11, test) else { return };
    let dir = tempfile::tempdir().unwrap();
    judge.open(dir.path(), Opening::Create, "write_identity_file=false;write_dbid_to_manifest=true").unwrap();
    put(&mut judge, "default", "k", "v");
    judge.close().unwrap();
    assert!(!dir.path().join("IDENTITY").exists());
    let db = Db::open(dir.path()).unwrap();
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    db.close().unwrap();
    std::fs::remove_file(dir.path().join("IDENTITY")).unwrap();
    assert!(Db::open(dir.path()).unwrap().recovery().is_clean());
}

/// RocksDB replays no log in this mode, and our writes were gone there.
#[test]
fn a_close_flushes_where_rocksdb_replays_no_log() {
    let test = "best_efforts_recovery";
    let Some(mut judge) = judge(JudgeVersion::V11, test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = "best_efforts_recovery=true";
    judge.open(dir.path(), Opening::Create, settings).unwrap();
    put(&mut judge, "default", "a", "v");
    judge.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("c", "v").unwrap();
    db.close().unwrap();
    judge.open(dir.path(), Opening::Existing, settings).unwrap();
    assert!(judge.dump("default").unwrap().iter().any(|(key, _)| *key == b"c"));
    judge.close().unwrap();
}
