//! Directories of RocksDB 7.8.3 and LevelDB 1.23 are read correctly, and read again after this engine's first MANIFEST.

use super::*;
use ashlar_format::table::{BlockHandle, Footer};

struct Case {
    name: &'static str,
    shape: &'static [&'static str],
    manifest_seq: u64,
    /// The number of batches, then the applied operations; the last sequence.
    batches: usize,
    ops: &'static [&'static str],
    last_seq: u64,
}

const CASES: &[Case] = &[
    Case {
        name: "rocksdb-7.8.3/column_families",
        shape: &["0 default: log 0", "1 one: L0 15 log 14", "2 two: log 4"],
        manifest_seq: 2,
        batches: 5,
        ops: &["0:d1@1", "2:t1@3", "0:d2@5", "1:o2@6", "1:o1@7", "2:cnt@8", "2:s1@9", "2:s1@10", "2:t0@11"],
        last_seq: 11,
    },
    Case {
        name: "rocksdb-7.8.3/compressions",
        shape: &[
            "0 default: L0 21 log 20",
            "1 snappy: L0 23 log 22",
            "2 zlib: L0 25 log 24",
            "3 bzip2: L0 27 log 26",
            "4 lz4: L0 29 log 28",
            "5 lz4hc: L0 31 log 30",
            "6 zstd: L0 33 log 32",
        ],
        manifest_seq: 280,
        batches: 0,
        ops: &[],
        last_seq: 280,
    },
    Case {
        name: "rocksdb-7.8.3/manifest_history",
        shape: &["0 default: L0 15 L1 9 11 13 log 14"],
        manifest_seq: 16,
        batches: 1,
        ops: &["0:wal@17"],
        last_seq: 17,
    },
    Case {
        name: "rocksdb-7.8.3/wal_ops",
        shape: &["0 default: log 0"],
        manifest_seq: 0,
        batches: 6,
        ops: &[
            "0:a@1", "0:b@2", "0:a@3", "0:c@4", "0:c@5", "0:n@6", "0:k1@7", "0:k5@8", "0:k9@9", "0:k0@10",
            "0:n@11", "0:@12", "0:ev@13",
        ],
        last_seq: 13,
    },
    Case {
        name: "rocksdb-7.8.3/wal_frag",
        shape: &["0 default: log 0"],
        manifest_seq: 0,
        batches: 3,
        ops: &["0:small@1", "0:big@2", "0:after@3"],
        last_seq: 3,
    },
];

#[test]
fn rocksdb_directories() {
    for case in CASES {
        let env = golden(case.name);
        let before = contents(&env);
        let mut r = recover(&env).unwrap();
        assert_eq!(shape(&r.versions), case.shape, "{}", case.name);
        assert_eq!(r.versions.last_sequence(), seq(case.manifest_seq), "{}", case.name);
        assert!(r.missing.is_empty());
        let (outcome, notes) = replay_into(&env, &mut r, RecoveryMode::PointInTime).unwrap();
        assert_eq!(notes.batches.len(), case.batches, "{}", case.name);
        assert_eq!(notes.ops, case.ops, "{}", case.name);
        assert_eq!((outcome.last_seq, outcome.cut), (seq(case.last_seq), false), "{}", case.name);
        assert!(r.report.is_clean() && r.report.foreign.is_empty(), "{}\n{}", case.name, r.report);
        assert_eq!(contents(&env), before, "{}: recovery changes nothing", case.name);

        // This engine's MANIFEST gives the same state.
        let identity = ashlar_tree::version::read_identity(&*env.fs, dir()).unwrap();
        r.versions.commit(Vec::new()).unwrap();
        let again = recover(&env).unwrap();
        assert_eq!(again.report.manifest, r.versions.manifest_number());
        assert_ne!(again.report.manifest, r.report.manifest);
        assert_eq!(shape(&again.versions), case.shape, "{}", case.name);
        assert_eq!(again.versions.last_sequence(), seq(case.last_seq), "{}", case.name);
        assert!(again.versions.next_file_number() >= r.versions.next_file_number());
        assert_eq!(again.versions.db_facts().db_id, identity);
        assert_eq!(again.versions.db_facts().max_family, r.versions.db_facts().max_family);
        for (ours, theirs) in again.versions.families().iter().zip(r.versions.families()) {
            let files = |f: &ashlar_tree::version::FamilyState| {
                f.version.files().map(|(l, f)| (l, f.file.clone())).collect::<Vec<_>>()
            };
            assert_eq!(files(ours), files(&theirs));
            assert!(files(ours).iter().all(|(_, f)| f.epoch != 0 && f.unique_id.is_some()));
        }
    }
}

#[test]
fn leveldb_directories() {
    for name in ["leveldb-1.23/plain", "leveldb-1.23/snappy"] {
        let env = golden(name);
        let before = contents(&env);
        let mut r = recover(&env).unwrap();
        assert_eq!(shape(&r.versions), ["0 default: L2 5 log 7"]);
        let family = r.versions.family(FamilyId::DEFAULT).unwrap();
        let file = &family.version.levels[2][0].file;
        assert_eq!((file.smallest_seq, file.largest_seq, file.epoch), (seq(0), seq(31), 1));
        assert!(!file.sequences_unknown);
        let (outcome, notes) = replay_into(&env, &mut r, RecoveryMode::PointInTime).unwrap();
        assert_eq!(notes.ops.first().unwrap(), "0:key00@32");
        assert_eq!(outcome.last_seq, seq(62), "{}", r.report);
        assert_eq!(contents(&env), before);
        assert!(r.report.is_clean(), "{}", r.report);

        r.versions.commit(Vec::new()).unwrap();
        let settled = settle_identity(&*env.fs, &r.versions).unwrap();
        assert_eq!(settled, Settled::Missing("IDENTITY, which was missing".to_owned()));
        let again = recover(&env).unwrap();
        assert_eq!(shape(&again.versions), ["0 default: L2 5 log 7"]);
        assert_eq!(again.versions.db_facts().db_id, r.versions.db_facts().db_id);
        assert_eq!(settle_identity(&*env.fs, &again.versions).unwrap(), Settled::Agreed);
        assert!(again.report.is_clean(), "{}", again.report);
    }
}

#[test]
fn leveldb_tables_are_told_where_rocksdb_cannot_read_them() {
    let env = golden("leveldb-1.23/plain");
    let tables = OpenTables::new(FramePool::new(1 << 20));
    let r = recover_manifest(&env, dir(), FormatLevel::V11, &tables, &every_family()).unwrap();
    let [way, tables] = &r.report.foreign[..] else { panic!("{}", r.report) };
    assert!(way.contains("LevelDB no longer opens it"), "{way}");
    assert!(tables.contains("LevelDB"), "{tables}");
}

/// The golden table of format 7 replaces one of format 5.
#[test]
fn tables_above_the_level_are_told() {
    let env = golden("rocksdb-7.8.3/manifest_history");
    let foreign = |level| {
        let tables = OpenTables::new(FramePool::new(1 << 20));
        recover_manifest(&env, dir(), level, &tables, &every_family()).map(|r| r.report.foreign)
    };
    assert!(foreign(FormatLevel::V6_29).unwrap().is_empty());
    let newer = include_bytes!("../../../../golden/sst/v7_large_values.sst");
    let mut table = get(&*env.fs, &dir().join("000015.sst"));
    // Recovery compares sizes: only the footer is exchanged, and its position in the file fits.
    let at = table.len() - 53;
    table[at..].copy_from_slice(&newer[newer.len() - 53..]);
    put(&env, "000015.sst", &table);
    let line = foreign(FormatLevel::V9_11).unwrap();
    assert!(line.is_empty(), "a footer in a wrong place does not count: {line:?}");
    let (footer, _) = Footer::decode(&newer[newer.len() - 53..], newer.len() as u64).unwrap();
    table[at..].copy_from_slice(&moved(footer, at as u64));
    put(&env, "000015.sst", &table);
    for level in [FormatLevel::V6_29, FormatLevel::V7_8, FormatLevel::V9_11] {
        let lines = foreign(level).unwrap();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let told = lines[0].contains("format 7") && lines[0].contains("1 of 4 looked at, first 15");
        assert!(told && lines[0].contains(&level.to_string()), "{lines:?}");
    }
    assert!(foreign(FormatLevel::V11).unwrap().is_empty());
}

/// The footer, adjusted to position `start` of another file.
fn moved(footer: Footer, start: u64) -> Vec<u8> {
    let size = footer.metaindex.size.min(start - 5);
    let metaindex = BlockHandle { offset: start - size - 5, size };
    Footer { metaindex, ..footer }.encode(start).unwrap()
}

#[test]
fn families_are_listed() {
    let env = golden("rocksdb-7.8.3/column_families");
    assert_eq!(list_families(&env, dir()).unwrap(), ["default", "one", "two"]);
    assert!(list_families(&Env::mem(), dir()).is_err());
}

#[test]
fn families_are_chosen() {
    let env = golden("rocksdb-7.8.3/column_families");
    let spec = |name: &str, order: Order| FamilySpec {
        name: name.to_string(),
        order,
        levels: 7,
        only_if_there: false,
        timed: false,
    };
    let listed = vec![spec("default", Order::Bytewise), spec("new", Order::Bytewise)];
    let families = |others| Families { listed: listed.clone(), others };

    let e = recover_with(&env, &families(Others::Refuse)).unwrap_err();
    assert_eq!(e.kind(), ashlar_base::ErrorKind::InvalidArgument);
    assert!(e.to_string().contains("Column families not opened: one, two"), "{e}");

    let some = recover_with(&env, &families(Others::Skip)).unwrap();
    assert_eq!(shape(&some.versions), ["0 default: log 0"]);
    assert_eq!(some.missing.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["new"]);

    let all = recover_with(&env, &families(Others::Open { levels: 7 })).unwrap();
    assert_eq!(all.versions.families().len(), 3);

    let wrong = Families { listed: vec![spec("one", Order::ReverseBytewise)], others: Others::Skip };
    let e = recover_with(&env, &wrong).unwrap_err();
    assert!(e.to_string().contains("does not match existing comparator leveldb.BytewiseComparator"), "{e}");

    let few = Families { listed: Vec::new(), others: Others::Open { levels: 1 } };
    let env = golden("rocksdb-7.8.3/manifest_history");
    let deeper = recover_with(&env, &few).unwrap();
    assert!(deeper.versions.families()[0].version.levels.len() > 1, "as many levels as the tables need");
}
