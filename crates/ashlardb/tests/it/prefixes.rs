//! Filters that hold prefixes: scans of one prefix are right with every extractor, and skip the tables without it.

use crate::judge::judge;
use ashlar_testkit::judge::{MERGING, Opening};
use ashlar_testkit::{JudgeVersion, KeyValue, Rng};
use ashlardb::{Builder, Db, FormatLevel, PrefixExtractor, Read as _, Write as _};
use std::collections::BTreeMap;
use std::path::Path;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A key of a few bytes, most of them of few prefixes.
fn key(rng: &mut Rng) -> Vec<u8> {
    let alphabet = [b'a', b'b', b'c', 0, 255];
    (0..rng.below(6)).map(|_| *rng.pick(&alphabet).unwrap()).collect()
}

fn builder(dir: &Path, options: &str) -> Builder {
    Db::builder(dir).options("write_buffer_size=65536;level0_file_num_compaction_trigger=3").options(options)
}

/// Some writes of all kinds, with flushes.
fn work(db: &Db, model: &mut Map, rng: &mut Rng) {
    for n in 0..400 {
        let (at, value) = (key(rng), rng.bytes(40));
        match rng.below(20) {
            0..3 => {
                db.delete(&at).unwrap();
                model.remove(&at);
            }
            3 => {
                let end = [at.as_slice(), b"b"].concat();
                db.delete_range(at.as_slice(), end.as_slice()).unwrap();
                model.retain(|key, _| *key < at || *key >= end);
            }
            _ => {
                db.put(&at, &value).unwrap();
                model.insert(at, value);
            }
        }
        if n % 60 == 59 {
            db.flush().unwrap();
        }
    }
}

fn entries(scan: impl Iterator<Item = ashlardb::Result<KeyValue>>) -> Vec<KeyValue> {
    scan.map(Result::unwrap).collect()
}

/// Every prefix of up to three bytes, drawn ranges, and gets of all kinds agree with the model.
fn agrees(db: &Db, model: &Map, rng: &mut Rng, what: &str) {
    let known = |keep: &dyn Fn(&[u8]) -> bool| -> Vec<KeyValue> {
        model.iter().filter(|(key, _)| keep(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    for _ in 0..80 {
        let prefix = key(rng);
        let expected = known(&|key| key.starts_with(&prefix));
        assert_eq!(entries(db.prefix(&prefix)), expected, "{what}: {prefix:?}");
        let mut backward = entries(db.prefix(&prefix).rev());
        backward.reverse();
        assert_eq!(backward, expected, "{what}: {prefix:?} backward");
        let (from, to) = (key(rng), key(rng));
        if from <= to {
            let expected = known(&|key| key >= &*from && key < &*to);
            assert_eq!(
                entries(db.scan(from.as_slice()..to.as_slice())),
                expected,
                "{what}: {from:?}..{to:?}"
            );
            let expected = known(&|key| key >= &*from && key <= &*to);
            assert_eq!(
                entries(db.scan(from.as_slice()..=to.as_slice())),
                expected,
                "{what}: {from:?}..={to:?}"
            );
        }
        let asked: Vec<_> = (0..5).map(|_| key(rng)).collect();
        for (key, found) in asked.iter().zip(db.multi_get(&asked).unwrap()) {
            assert_eq!(found.as_deref(), model.get(key).map(Vec::as_slice), "{what}: {key:?}");
            assert_eq!(db.get(key).unwrap().as_deref(), model.get(key).map(Vec::as_slice), "{what}: {key:?}");
        }
    }
}

const EXTRACTORS: [&str; 5] = ["fixed:2", "capped:3", "rocksdb.Noop", "nullptr", "fixed:1"];
const TABLES: [&str; 5] = [
    "",
    "block_based_table_factory={whole_key_filtering=false;}",
    "block_based_table_factory={index_type=kTwoLevelIndexSearch;partition_filters=true;metadata_block_size=128;block_size=256;}",
    "block_based_table_factory={index_type=kTwoLevelIndexSearch;partition_filters=true;metadata_block_size=128;block_size=256;whole_key_filtering=false;}",
    "block_based_table_factory={filter_policy=ribbonfilter:10;block_size=128;}",
];

/// The extractor, the filters and the format of the tables change from open to open, so a tree has tables of several kinds.
#[test]
fn scans_of_a_prefix_agree_with_a_model() {
    for seed in 0..ashlar_testkit::report::scale(2, 4) as u64 {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let mut model = Map::new();
        for part in 0..5 {
            let options = format!(
                "prefix_extractor={};{};block_based_table_factory.format_version={}",
                rng.pick(&EXTRACTORS).unwrap(),
                rng.pick(&TABLES).unwrap(),
                rng.pick(&[6, 6, 5, 4]).unwrap(),
            );
            let db = builder(dir.path(), &options).open().unwrap();
            let what = format!("seed {seed}, part {part}, {options}");
            agrees(&db, &model, &mut rng, &format!("{what}, opened"));
            work(&db, &mut model, &mut rng);
            db.flush().unwrap();
            agrees(&db, &model, &mut rng, &what);
            if part % 2 == 1 {
                db.compact().unwrap();
                agrees(&db, &model, &mut rng, &format!("{what}, compacted"));
            }
            db.verify_checksums(|_| ()).unwrap();
            db.close().unwrap();
        }
    }
}

/// Twenty tables, each with a prefix of its own between keys of all: a scan of a prefix enters one table.
#[test]
fn a_scan_of_a_prefix_skips_tables_without_it() {
    let runs_entered = |extractor: Option<PrefixExtractor>| -> u64 {
        let dir = tempfile::tempdir().unwrap();
        let builder = builder(dir.path(), "disable_auto_compactions=true");
        let builder = builder.default_family(|f| extractor.map_or(f.clone(), |e| f.prefix_extractor(e)));
        let db = builder.open().unwrap();
        for table in 0..20u32 {
            for n in 0..10u32 {
                db.put(format!("p{table:03}/{n}"), "v").unwrap();
            }
            db.put("a", "first").unwrap();
            db.put("z", "last").unwrap();
            db.flush().unwrap();
        }
        assert_eq!(db.get("p007/3").unwrap().as_deref(), Some(&b"v"[..]), "opens the tables");
        assert_eq!(db.scan(..).count(), 202);
        let explained = db.prefix("p007/").explain(1000).unwrap();
        assert_eq!(explained.keys(), 10);
        explained.cost().get(ashlardb::Metric::SeekChildSeekCount)
    };
    let all = runs_entered(None);
    let few = runs_entered(Some(PrefixExtractor::Fixed(4)));
    assert!(all == 20 && few <= 3, "{all} runs without prefixes, {few} with them");
}

/// RocksDB writes tables with prefixes in every form: we read them as it does, and verify each filter. Then the other way
/// round, with its prefix mode.
#[test]
fn rocksdb_and_we_read_each_others_prefixes() {
    for version in JudgeVersion::ALL {
        for (n, table) in TABLES.into_iter().enumerate() {
            let Some(mut judge) = judge(version, "rocksdb_and_we_read_each_others_prefixes") else { return };
            let dir = tempfile::tempdir().unwrap();
            let extractor = EXTRACTORS[n % 2];
            let format = if version == JudgeVersion::V7 { 5 } else { 6 };
            let both =
                format!("prefix_extractor={extractor};block_based_table_factory.format_version={format}");
            let theirs = format!(
                "prefix_extractor={extractor};{}{MERGING};disable_auto_compactions=true",
                match table {
                    "" => format!(
                        "block_based_table_factory={{filter_policy=bloomfilter:10;format_version={format};}};"
                    ),
                    table => table
                        .replace('}', &format!("filter_policy=bloomfilter:10;format_version={format};}};")),
                }
            );
            let what = format!("{} {theirs}", version.name());
            let (mut rng, mut model) = (Rng::new(90 + n as u64), Map::new());
            let put = |key: &[u8], value: &[u8]| ashlar_testkit::Change::Put {
                family: "default".into(),
                key: key.to_vec(),
                value: value.to_vec(),
            };
            judge.open(dir.path(), Opening::Create, &theirs).unwrap_or_else(|e| panic!("{what}: {e}"));
            for _ in 0..4 {
                for _ in 0..150 {
                    let (at, value) = (key(&mut rng), rng.bytes(40));
                    judge.write(&[put(&at, &value)], false).unwrap();
                    model.insert(at, value);
                }
                judge.apply(&[ashlar_testkit::Op::Flush { family: "default".into() }]).unwrap();
            }
            judge.close().unwrap();
            let level = if version == JudgeVersion::V7 { FormatLevel::V7_8 } else { FormatLevel::V11 };
            let db = builder(dir.path(), &both).options(MERGING).format_level(level).open().unwrap();
            db.verify_checksums(|_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
            agrees(&db, &model, &mut rng, &what);
            work(&db, &mut model, &mut rng);
            db.flush().unwrap();
            agrees(&db, &model, &mut rng, &what);
            db.compact().unwrap();
            agrees(&db, &model, &mut rng, &what);
            db.close().unwrap();
            judge.open(dir.path(), Opening::Existing, &theirs).unwrap_or_else(|e| panic!("{what}: {e}"));
            let dumped = judge.dump("default").unwrap();
            assert!(dumped.iter().map(|(k, v)| (k.clone(), v.clone())).eq(model), "{what}");
            judge.probe("default").unwrap_or_else(|e| panic!("{what}: {e}"));
            judge.close().unwrap();
        }
    }
}
