//! Each rule speaks where it should; our defaults are silent.

use super::*;
use crate::{DbOptions, FamilyOptions, options_file};
use std::collections::BTreeSet;

const MUCH: u64 = 100 << 30;

/// Our defaults with lines of a section replaced or added: `family: name=value`, `db: …`, `table: …`, `own: …`.
fn with(changes: &[&str]) -> OptionsFile {
    let mut file = options_file(&DbOptions::default(), &[("default", &FamilyOptions::default())]);
    for change in changes {
        let (place, line) = change.split_once(": ").unwrap();
        let (name, value) = line.split_once('=').unwrap();
        if place == "own" {
            file.own = vec![(name.to_owned(), value.to_owned())];
            continue;
        }
        let fits = |kind: &SectionKind| match kind {
            SectionKind::Db => place == "db",
            SectionKind::Family { .. } => place == "family",
            SectionKind::Table { .. } => place == "table",
            SectionKind::Version => false,
        };
        let section = file.sections.iter_mut().find(|s| fits(&s.kind)).unwrap();
        section.entries.retain(|(n, _)| n != name);
        section.push(name, value);
    }
    file
}

fn rules_of(file: &OptionsFile, table_bytes: u64) -> Vec<&'static str> {
    let facts = Facts { table_bytes, by_family: BTreeMap::new() };
    lint(file, &facts).into_iter().map(|f| f.rule).collect()
}

#[test]
fn every_rule_speaks_alone_where_it_should() {
    let cases: &[(&str, &[&str])] = &[
        ("one-background-job", &["db: max_background_jobs=1"]),
        ("logs-bound-below-a-memtable", &["db: max_total_wal_size=1000000"]),
        (
            "logs-without-bound",
            &[
                "family: max_write_buffer_number=8",
                "family: write_buffer_size=1G",
                "family: max_bytes_for_level_base=4G",
                "db: db_write_buffer_size=1G",
            ],
        ),
        (
            "memtables-may-take-much",
            &[
                "family: max_write_buffer_number=64",
                "family: write_buffer_size=256M",
                "db: max_total_wal_size=20G",
            ],
        ),
        ("cache-small-for-the-data", &["own: block_cache_bytes=8388608"]),
        ("holes-after-recovery", &["db: wal_recovery_mode=kSkipAnyCorruptedRecords"]),
        ("damage-read-over", &["db: paranoid_checks=false"]),
        ("unordered-writes", &["db: unordered_write=true"]),
        ("writes-lost-with-the-process", &["db: manual_wal_flush=true"]),
        ("mapped-writes", &["db: allow_mmap_writes=true"]),
        ("few-open-files", &["db: max_open_files=100"]),
        ("logs-kept", &["db: WAL_ttl_seconds=3600"]),
        ("no-filter", &["table: filter_policy=nullptr"]),
        ("filter-too-large", &["table: filter_policy=bloomfilter:40:false"]),
        ("filter-too-small", &["table: filter_policy=ribbonfilter:2:0"]),
        ("blocks-too-large", &["table: block_size=1M"]),
        ("blocks-too-small", &["table: block_size=512"]),
        ("no-checksums", &["table: checksum=kNoChecksum"]),
        (
            "metadata-outside-the-cache",
            &["table: cache_index_and_filter_blocks=false", "db: max_open_files=-1"],
        ),
        ("level0-out-of-order", &["family: level0_slowdown_writes_trigger=36"]),
        ("debt-bounds-out-of-order", &["family: soft_pending_compaction_bytes_limit=0"]),
        ("compactions-off", &["family: disable_auto_compactions=true"]),
        ("memtable-too-small", &["family: write_buffer_size=65536"]),
        (
            "level0-larger-than-base",
            &["family: level0_file_num_compaction_trigger=19", "family: write_buffer_size=64M"],
        ),
        ("tables-larger-than-base", &["family: target_file_size_base=1G"]),
        ("levels-grow-too-fast", &["family: max_bytes_for_level_multiplier=40"]),
        ("fixed-level-sizes", &["family: level_compaction_dynamic_level_bytes=false"]),
        ("universal-takes-twice-the-space", &["family: compaction_style=kCompactionStyleUniversal"]),
        ("nothing-compressed", &["family: compression=kNoCompression"]),
        ("hard-compression-everywhere", &["family: compression=kZSTD"]),
        ("prefix-scans-lose-keys", &["family: prefix_extractor=rocksdb.FixedPrefix.8"]),
        ("blobs-never-collected", &["family: enable_blob_files=true", "family: min_blob_size=1024"]),
        (
            "blobs-too-small",
            &[
                "family: enable_blob_files=true",
                "family: enable_blob_garbage_collection=true",
                "family: min_blob_size=16",
            ],
        ),
    ];
    for (rule, changes) in cases {
        let mut changes = changes.to_vec();
        if *rule != "cache-small-for-the-data" {
            changes.push("own: block_cache_bytes=8589934592");
        }
        assert_eq!(rules_of(&with(&changes), MUCH), [*rule], "{changes:?}");
    }
    let in_parts = [
        "family: compaction_style=kCompactionStyleUniversal",
        "family: compaction_options_universal={size_ratio=1;incremental=true;}",
        "own: block_cache_bytes=8589934592",
    ];
    assert_eq!(rules_of(&with(&in_parts), MUCH), [""; 0]);
    let spoken: BTreeSet<_> = cases.iter().map(|(rule, _)| *rule).collect();
    let all: BTreeSet<_> = rules::RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(spoken, all);
    assert_eq!(all.len(), rules::RULES.len());
}

#[test]
fn our_defaults_are_silent_and_rocksdbs_are_not() {
    assert_eq!(rules_of(&with(&[]), 1 << 30), Vec::<&str>::new());
    let theirs = OptionsFile::parse(include_str!("../../tests/golden/OPTIONS-11.8.1")).unwrap();
    assert_eq!(rules_of(&theirs, MUCH), ["no-filter", "metadata-outside-the-cache"]);
    let older = OptionsFile::parse(include_str!("../../tests/golden/OPTIONS-7.8.3")).unwrap();
    assert_eq!(rules_of(&older, MUCH), ["no-filter", "metadata-outside-the-cache", "fixed-level-sizes"]);
}

#[test]
fn findings_name_family_reason_and_advice() {
    let small = FamilyOptions { write_buffer_bytes: 64 << 10, ..FamilyOptions::default() };
    let file = options_file(
        &DbOptions { max_background_jobs: 1, ..DbOptions::default() },
        &[("default", &FamilyOptions::default()), ("events", &small)],
    );
    let told: Vec<String> = lint(&file, &Facts::default()).iter().map(Finding::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("one-background-job: max_background_jobs=1: "), "{told:?}");
    assert!(
        told[1].starts_with("family \"events\": memtable-too-small: write_buffer_size=65536: "),
        "{told:?}"
    );
    assert!(told[1].ends_with("Use 16 MiB or more."));
}

/// Damaged or strange files are linted without harm.
#[test]
fn any_file_can_be_linted() {
    for text in [
        "[DBOptions]\n[CFOptions \"default\"]",
        "[DBOptions]\nmax_background_jobs=x\n[CFOptions \"default\"]\nwrite_buffer_size=99999999999999999999T\nmax_write_buffer_number=9223372036854775807",
        "[DBOptions]\nmax_total_wal_size=0\n[CFOptions \"default\"]\nwrite_buffer_size=18446744073709551615\nmax_write_buffer_number=18446744073709551615",
    ] {
        let _ = lint(
            &OptionsFile::parse(&format!("{text}\n[TableOptions/BlockBasedTable \"default\"]")).unwrap(),
            &Facts::default(),
        );
    }
}
