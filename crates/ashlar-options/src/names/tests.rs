//! The table against RocksDB's own OPTIONS files, and against the settings it speaks of.

use super::apply::find;
use super::row::{Answer, AnswerKind, Group, Range, Row};
use super::*;
use crate::{CompactRangeOptions, FormatLevel, Options, ReadOptions, WriteOptions};
use ashlar_base::ErrorKind;
use ashlar_base::FilterSource;
use ashlar_base::Level;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::options_file::{OptionsFile, SectionKind, split_object};
use ashlar_testkit::report::figure;
use std::collections::BTreeSet;

const OF_7_8: &str = include_str!("../../tests/golden/OPTIONS-7.8.3");
const OF_11_8: &str = include_str!("../../tests/golden/OPTIONS-11.8.1");

/// Group, name and value of everything in an OPTIONS file, structs inside values included.
fn entries(text: &str) -> Vec<(Group, String, String)> {
    let inside = |name: &str| match name {
        "compression_opts" => Some(Group::Compression),
        "compaction_options_universal" => Some(Group::Universal),
        "compaction_options_fifo" => Some(Group::Fifo),
        "metadata_cache_options" => Some(Group::MetadataCache),
        _ => None,
    };
    let mut all = Vec::new();
    for section in OptionsFile::parse(text).unwrap().sections {
        let group = match section.kind {
            SectionKind::Version => continue,
            SectionKind::Db => Group::Database,
            SectionKind::Family { .. } => Group::Family,
            SectionKind::Table { .. } => Group::Table,
        };
        for (name, value) in section.entries {
            if let Some(inner) = inside(&name) {
                all.extend(split_object(&value).unwrap().into_iter().map(|(n, v)| (inner, n, v)));
            }
            all.push((group, name, value));
        }
    }
    all
}

#[test]
fn every_name_of_both_releases_has_an_answer() {
    for text in [OF_7_8, OF_11_8] {
        for (group, name, _) in entries(text) {
            assert!(find(&[group], &name).is_some(), "{group:?} {name}");
        }
    }
}

#[test]
fn the_defaults_of_rocksdb_are_those_of_its_file() {
    for (group, name, value) in entries(OF_11_8) {
        let row = find(&[group], &name).unwrap();
        // What was asked for when the file was made.
        let want = if name == "create_if_missing" { "false" } else { value.as_str() };
        assert_eq!(row.default, want, "{group:?} {name}");
    }
}

#[test]
fn no_name_stands_twice_and_every_one_says_something() {
    let all = option_names();
    let names: BTreeSet<_> = all.iter().map(|o| (o.group, o.name)).collect();
    assert_eq!(names.len(), all.len());
    for o in &all {
        assert!(o.text.ends_with('.') && o.text.len() > 15, "{}", o.name);
    }
    let counts = AnswerKind::ALL.map(|kind| (kind.word(), all.iter().filter(|o| o.answer == kind).count()));
    assert!(counts.iter().all(|(_, count)| *count > 0));
    let counts = counts.map(|(word, count)| format!("{count} {word}")).join(", ");
    figure(&format!("option names of RocksDB: {}: {counts}", all.len()));
}

/// Taken at both ends of its range, refused beyond them.
#[test]
fn ranges_are_those_of_the_settings() {
    let level = FormatLevel::V11;
    let takes = |row: &Row<Options>, value: &str| {
        let mut options = Options::default();
        options.family.compaction.l0_trigger = 1;
        if row.name == "level0_file_num_compaction_trigger" {
            (options.family.compaction.l0_slowdown, options.family.compaction.l0_stop) = (1 << 30, 1 << 30);
        }
        if row.name == "level0_slowdown_writes_trigger" {
            options.family.compaction.l0_stop = 1 << 30;
        }
        if row.name == "level0_stop_writes_trigger" {
            options.family.compaction.l0_slowdown = 1;
        }
        options.family.table.data_block_hash_ratio = Some(1.0);
        row.set(&mut options, value).is_ok()
            && options.db.validate().is_ok()
            && options.family.validate(level).is_ok()
    };
    let groups = [Group::Database, Group::Family, Group::Table, Group::Compression];
    for name in option_names().into_iter().filter(|o| groups.contains(&o.group)) {
        let row = find(&[name.group], name.name).unwrap();
        let Some(setting) = row.setting() else { continue };
        match setting.range {
            Range::Flag => assert!(takes(row, "true") && takes(row, "0") && !takes(row, "2"), "{}", row.name),
            Range::Whole(least, most, _) => {
                assert!(takes(row, &least.to_string()) && takes(row, &most.to_string()), "{}", row.name);
                assert!(least == 0 || !takes(row, &(least - 1).to_string()), "{} below {least}", row.name);
                let above = i128::from(most) + 1;
                assert!(!takes(row, &above.to_string()) || most == 1 << 30, "{} above {most}", row.name);
            }
            Range::Real(least, most) => {
                assert!(takes(row, &least.to_string()) && takes(row, &most.to_string()), "{}", row.name);
                let beyond = [least - 0.005, most + 1.0].map(|value| takes(row, &value.to_string()));
                assert_eq!(beyond, [false, false], "{}", row.name);
            }
            Range::Text(_) => {}
        }
    }
}

/// What an option prints, it takes; and it is then what it was.
#[test]
fn stored_values_return() {
    let mut options = Options::default();
    options.apply("compression=kZSTD;compression_opts={level=5;max_dict_bytes=16K;};compression_per_level=kNoCompression:kLZ4Compression;block_based_table_factory={filter_policy=ribbonfilter:12:-1;data_block_index_type=kDataBlockBinaryAndHash;index_type=kTwoLevelIndexSearch;};disable_auto_compactions=true").unwrap();
    for group in [Group::Database, Group::Family, Group::Table] {
        let stored = options.stored(group);
        let mut again = Options::default();
        for (name, value) in &stored {
            again.set_in(&[group], name, value).unwrap();
        }
        assert_eq!(again.stored(group), stored);
        assert!(!stored.is_empty());
    }
}

#[test]
fn option_strings_set_the_settings() {
    let mut o = Options::default();
    let text = "write_buffer_size=64K; max_total_wal_size=1G;compression=kZSTD;compression_opts=-14:7:0:1024;\
                block_based_table_factory={block_size=16K;filter_policy=bloomfilter:12:false;block_cache=64M;\
                checksum=kCRC32c;metadata_cache_options={partition_pinning=kAll;};};merge_operator={id=uint64add};\
                comparator=rocksdb.ReverseBytewiseComparator;level0_stop_writes_trigger=50;disable_auto_compactions=1;";
    let notices = o.apply(text).unwrap();
    assert_eq!(notices, []);
    assert_eq!((o.family.write_buffer_bytes, o.db.max_total_wal_bytes), (64 << 10, 1 << 30));
    assert_eq!(o.family.table.compression, Compression::Zstd);
    assert_eq!((o.family.table.compression_level, o.family.table.max_dict_bytes), (Some(7), 1024));
    assert_eq!((o.family.table.block_size, o.db.block_cache_bytes), (16 << 10, 64 << 20));
    assert_eq!(o.family.table.filter, Some(FilterPolicy::Bloom { bits_per_key: 12.0 }));
    assert_eq!(o.family.merge_operator.as_ref().unwrap().name(), "UInt64AddOperator");
    assert_eq!(o.family.order.name(), "rocksdb.ReverseBytewiseComparator");
    assert!(!o.family.compaction.automatic && o.family.compaction.l0_stop == 50);
    o.set("block_based_table_factory.block_size", "8K").unwrap();
    o.set("compression_opts.level", "32767").unwrap();
    assert_eq!(
        o.apply("block_based_table_factory={};compression_opts={}").unwrap(),
        [],
        "no member, no change"
    );
    assert_eq!((o.family.table.block_size, o.family.table.compression_level), (8 << 10, None));
}

#[test]
fn names_without_effect_are_told() {
    let mut o = Options::default();
    let notices = o.apply("write_thread_max_yield_usec=7;compaction_filter=nullptr;use_fsync=1").unwrap();
    assert_eq!(notices.len(), 2);
    assert!(notices[0].to_string().starts_with("write_thread_max_yield_usec=7: Writers wait on signals"));
    let mut family = o.family.clone();
    let notices = family.apply("block_based_table_factory={block_cache=1G;}").unwrap();
    assert!(notices[0].why.contains("database's"), "{notices:?}");
}

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let mut o = Options::default();
    let mut fails = |text: &str| {
        let before = format!("{o:?}");
        let error = o.apply(text).unwrap_err();
        assert_eq!(format!("{o:?}"), before, "{text}");
        (error.kind(), error.to_string())
    };
    let (kind, text) = fails("max_open_files=5;write_bufer_size=1");
    assert!(kind == ErrorKind::InvalidArgument && text.contains("Did you mean write_buffer_size?"), "{text}");
    let (kind, text) = fails("write_buffer_size=64M;enable_blob_direct_write=true");
    assert!(kind == ErrorKind::NotSupported && text.contains("enable_blob_direct_write=true"), "{text}");
    for (text, part) in [
        ("write_buffer_size=64MB", "whole number"),
        ("use_fsync=maybe", "neither true nor false"),
        ("compression=lz4", "kLZ4Compression"),
        ("compression_opts={levle=3;}", "no member levle"),
        ("block_based_table_factory={user_defined_index_factory=mine;}", "is refused"),
        ("table_factory=PlainTable", "PlainTable"),
        ("table_factory={id=PlainTable}", "PlainTable"),
        ("comparator=mine", "hand the comparator over"),
        ("merge_operator=mine", "hand the operator over"),
        ("compaction_filter=mine", "give it when you open the family"),
        ("compaction_filter_factory=mine", "give it when you open the family"),
        ("bottommost_compression_opts={enabled=true;level=9;}", "bottommost_compression_opts="),
        ("just words", "option string"),
        ("a={b=1", "option string"),
    ] {
        let (_, said) = fails(text);
        assert!(said.contains(part), "{text}: {said}");
    }
}

#[test]
fn options_of_one_call() {
    let mut read = ReadOptions::default();
    assert_eq!(read.set("fill_cache", "false").unwrap(), None);
    assert!(!read.fill_cache && read.set("total_order_seek", "true").unwrap().is_some());
    for (name, value) in [("deadline", "1500"), ("io_timeout", "7"), ("read_tier", "kBlockCacheTier")] {
        assert_eq!(read.set(name, value).unwrap(), None);
    }
    assert_eq!(read.set("verify_checksums", "0").unwrap(), None);
    let micros = |n| Some(std::time::Duration::from_micros(n));
    assert_eq!((read.deadline, read.io_timeout), (micros(1500), micros(7)));
    assert_eq!((read.tier, read.verify_checksums), (crate::ReadTier::BlockCache, false));
    assert!(read.set("io_timeout", "0").is_ok() && read.io_timeout.is_none());
    assert!(read.set("read_tier", "kNowhere").unwrap_err().to_string().contains("kMemtableTier"));
    assert_eq!(read.set("tailing", "true").unwrap_err().kind(), ErrorKind::NotSupported);
    let mut compact = CompactRangeOptions::default();
    compact.set("target_level", "3").unwrap();
    compact.set("bottommost_level_compaction", "kSkip").unwrap();
    assert!(compact.target_level == Some(Level(3)) && !compact.rewrite_deepest);
    compact.set("bottommost_level_compaction", "kIfHaveCompactionFilter").unwrap();
    assert!(compact.rewrite_deepest_if_filtered && !compact.rewrite_deepest);
    compact.set("bottommost_level_compaction", "kForce").unwrap();
    assert!(compact.rewrite_deepest && !compact.rewrite_deepest_if_filtered);
    assert!(compact.set("target_level", "-2").is_err() && compact.set("canceled", "it").is_err());
    let mut write = WriteOptions::default();
    assert!(write.set("disableWAL", "1").is_ok() && write.disable_wal);
    let error = write.set("disable_WAL", "1").unwrap_err().to_string();
    assert!(error.contains("Did you mean disableWAL?"), "{error}");
}

/// Whatever RocksDB writes by itself is taken without a word, except where its default asks for what is not there.
#[test]
fn rocksdbs_own_files_are_taken() {
    for text in [OF_7_8, OF_11_8] {
        for (group, name, value) in entries(text) {
            let row = find(&[group], &name).unwrap();
            let mut options = Options::default();
            let taken = row.set(&mut options, &value);
            assert!(taken.is_ok(), "{group:?} {name}={value}: {taken:?}");
            assert!(!matches!(row.answer, Answer::Refused(_)) || taken.is_ok());
        }
    }
}

#[test]
fn a_time_to_live_is_stored_as_rocksdbs_wrapper_stores_it() {
    use ashlar_base::ext::compaction_filter::standard_filter;
    use ashlar_base::ext::merge_operator::standard_operator;
    let shown = |options: &Options| {
        let all = options.stored(crate::Group::Family);
        let names = ["compaction_filter", "compaction_filter_factory", "merge_operator"];
        names.map(|name| all.iter().find(|(n, _)| *n == name).unwrap().1.clone())
    };
    let mut options = Options::default();
    assert_eq!(shown(&options), ["nullptr"; 3]);
    options.family.value_ttl_secs = Some(60);
    let factory = "{id=TtlCompactionFilterFactory;user_filter_factory=nullptr;ttl=60;}";
    assert_eq!(shown(&options), ["nullptr", factory, "nullptr"]);
    options.family.merge_operator = standard_operator("uint64add");
    let filter = standard_filter("RemoveEmptyValueCompactionFilter").unwrap();
    options.family.compaction_filter = Some(FilterSource::Filter(filter));
    let [filter, factory, operator] = shown(&options);
    assert_eq!(filter, "{id=TtlCompactionFilter;user_filter=RemoveEmptyValueCompactionFilter;ttl=60;}");
    assert_eq!(factory, "nullptr");
    assert_eq!(operator, "{id=TtlMergeOperator;user_operator=UInt64AddOperator;}");
}
