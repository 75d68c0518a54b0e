//! Prefix extractors of the user's own: answers are right with every extractor, also with one that fails.

use crate::options::{newest, section};
use crate::store::listing;
use ashlar_base::Order;
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_table::{ReaderOptions, TableReader};
use ashlar_testkit::{KeyValue, Rng};
use ashlardb::{
    Builder, Cursor, Db, ErrorKind, LiveFile, Metric, PrefixExtractor, PrefixTransform, Read as _, Write as _,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Prefixes end behind the first `:`. Keys without one are outside of the domain.
#[derive(Debug, Default)]
struct Colon {
    /// A key with `!` makes the rule panic.
    panics: AtomicBool,
    /// A key with `!` gets a prefix longer than itself.
    exceeds: bool,
}

impl PrefixTransform for Colon {
    fn name(&self) -> &str {
        "test.Colon"
    }
    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        let wrong = key.contains(&b'!');
        assert!(!(wrong && self.panics.load(Ordering::Relaxed)), "on purpose");
        let end = key.iter().position(|byte| *byte == b':')? + 1;
        Some(if wrong && self.exceeds { key.len() + 1 } else { end })
    }
    fn is_prefix_of_all(&self, prefix: &[u8]) -> bool {
        prefix.ends_with(b":")
    }
}

/// Keys of an even length have their first byte for a prefix. So keys of one prefix lie between keys without one, and the rule
/// says of no prefix that all keys with its bytes have it.
#[derive(Debug)]
struct Even;

impl PrefixTransform for Even {
    fn name(&self) -> &str {
        "test.Even"
    }
    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        (!key.is_empty() && key.len().is_multiple_of(2)).then_some(1)
    }
}

#[derive(Debug)]
struct Named(&'static str);

impl PrefixTransform for Named {
    fn name(&self) -> &str {
        self.0
    }
    fn prefix_len(&self, _: &[u8]) -> Option<usize> {
        None
    }
}

fn key(rng: &mut Rng) -> Vec<u8> {
    (0..rng.below(6)).map(|_| *rng.pick(b"ab::!\xff").unwrap()).collect()
}

fn opened(dir: &Path, extractor: Option<&PrefixExtractor>, options: &str) -> Builder {
    let builder = Db::builder(dir).options("disable_auto_compactions=true").options(options);
    match extractor.cloned() {
        Some(extractor) => builder.default_family(move |f| f.prefix_extractor(extractor)),
        None => builder,
    }
}

fn work(db: &Db, model: &mut Map, rng: &mut Rng) {
    for n in 0..200 {
        let (at, value) = (key(rng), rng.bytes(20));
        if rng.below(8) == 0 {
            db.delete(&at).unwrap();
            model.remove(&at);
        } else {
            db.put(&at, &value).unwrap();
            model.insert(at, value);
        }
        if n % 25 == 24 {
            db.flush().unwrap();
        }
    }
}

/// The rest of a prefix from a key on, as a cursor of the total order shows it.
fn rest(cursor: &mut Cursor, from: &[u8], prefix: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut at = cursor.seek(from).unwrap().map(|(key, _)| key.to_vec());
    while let Some(key) = at.filter(|key| key.starts_with(prefix)) {
        found.push(key);
        at = cursor.next().unwrap().map(|(key, _)| key.to_vec());
    }
    found
}

fn agrees(db: &Db, model: &Map, rng: &mut Rng, what: &str) {
    let known = |keep: &dyn Fn(&[u8]) -> bool| -> Vec<KeyValue> {
        model.iter().filter(|(key, _)| keep(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    assert_eq!(listing(db.scan(..)), known(&|_| true), "{what}");
    let mut cursor = db.scan(..).cursor().unwrap();
    for _ in 0..60 {
        let (prefix, from) = (key(rng), key(rng));
        let expected = known(&|key| key.starts_with(&prefix));
        assert_eq!(listing(db.prefix(&prefix)), expected, "{what}: {prefix:?}");
        let mut backward = listing(db.prefix(&prefix).rev());
        backward.reverse();
        assert_eq!(backward, expected, "{what}: {prefix:?} backward");
        let begin = [prefix.clone(), key(rng)].concat();
        let behind = known(&|key| key.starts_with(&prefix) && key >= &*begin);
        let behind: Vec<_> = behind.into_iter().map(|(key, _)| key).collect();
        assert_eq!(rest(&mut cursor, &begin, &prefix), behind, "{what}: {prefix:?} from {begin:?}");
        if from <= prefix {
            let expected = known(&|key| key >= &*from && key <= &*prefix);
            let found = listing(db.scan(from.as_slice()..=prefix.as_slice()));
            assert_eq!(found, expected, "{what}: {from:?}..={prefix:?}");
            let expected = known(&|key| key >= &*from && key < &*prefix);
            let found = listing(db.scan(from.as_slice()..prefix.as_slice()));
            assert_eq!(found, expected, "{what}: {from:?}..{prefix:?}");
        }
        let found = db.get(&from).unwrap();
        assert_eq!(found.as_deref(), model.get(&from).map(Vec::as_slice), "{what}: {from:?}");
    }
}

const TABLES: [&str; 3] = [
    "",
    "block_based_table_factory={whole_key_filtering=false;}",
    "block_based_table_factory={index_type=kTwoLevelIndexSearch;partition_filters=true;metadata_block_size=128;block_size=256;whole_key_filtering=false;}",
];

/// From open to open the extractor changes: a user's, another user's, a failing one, a built-in one, none.
#[test]
fn answers_agree_with_a_model_whatever_the_extractor() {
    let failing = Colon { panics: AtomicBool::new(true), exceeds: false };
    let exceeding = Colon { panics: AtomicBool::new(false), exceeds: true };
    let extractors = [
        Some(PrefixExtractor::Custom(Arc::new(Colon::default()))),
        Some(PrefixExtractor::Custom(Arc::new(Even))),
        Some(PrefixExtractor::Custom(Arc::new(failing))),
        Some(PrefixExtractor::Custom(Arc::new(exceeding))),
        Some(PrefixExtractor::Fixed(1)),
        None,
    ];
    for seed in 0..ashlar_testkit::report::scale(2, 5) as u64 {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let mut model = Map::new();
        for part in 0..8 {
            let extractor = rng.pick(&extractors).unwrap().as_ref();
            let options = *rng.pick(&TABLES).unwrap();
            let db = opened(dir.path(), extractor, options).open().unwrap();
            let what = format!("seed {seed}, part {part}, {extractor:?}, {options}");
            agrees(&db, &model, &mut rng, &format!("{what}, opened"));
            work(&db, &mut model, &mut rng);
            agrees(&db, &model, &mut rng, &what);
            if part % 3 == 2 {
                db.compact().unwrap();
                agrees(&db, &model, &mut rng, &format!("{what}, compacted"));
            }
            db.verify_checksums(|_| ()).unwrap();
            db.close().unwrap();
        }
    }
}

/// The name that each table has for its extractor, and whether its filter holds prefixes.
fn stored(db: &Db, dir: &Path) -> Vec<(String, String)> {
    let one = |table: &LiveFile| {
        let path = dir.join(FileKind::Table(table.number).name());
        let file = Env::os().unwrap().fs.open_read(&path).unwrap();
        let options = ReaderOptions::new(Order::Bytewise, FramePool::new(1 << 20), table.number);
        let read = TableReader::open(file, table.bytes, options).unwrap();
        let of = read.properties();
        (of.prefix_extractor_name.clone().unwrap(), of.prefix_filtering.clone().unwrap())
    };
    db.default_family().live_files().unwrap().iter().map(one).collect()
}

/// Twenty tables, each with a prefix of its own between keys of all.
fn fill(db: &Db) {
    for table in 0..20u32 {
        for n in 0..10u32 {
            db.put(format!("p{table}:{n}"), "v").unwrap();
        }
        db.put("a", "first").unwrap();
        db.put("z", "last").unwrap();
        db.flush().unwrap();
    }
}

fn runs_entered(db: &Db, prefix: &str) -> u64 {
    assert_eq!(db.get("p7:3").unwrap().as_deref(), Some(&b"v"[..]), "opens the tables");
    assert_eq!(db.scan(..).count(), 202);
    let explained = db.prefix(prefix).explain(1000).unwrap();
    assert_eq!(explained.keys(), 10);
    explained.cost().get(Metric::SeekChildSeekCount)
}

#[test]
fn a_scan_skips_tables_only_by_the_extractor_that_they_name() {
    let dir = tempfile::tempdir().unwrap();
    let colon = PrefixExtractor::Custom(Arc::new(Colon::default()));
    let db = opened(dir.path(), Some(&colon), "").open().unwrap();
    fill(&db);
    let few = runs_entered(&db, "p7:");
    assert!(few <= 3, "{few}");
    assert_eq!(stored(&db, dir.path()), vec![("test.Colon".to_owned(), "1".to_owned()); 20]);
    db.close().unwrap();
    let written = || section(&newest(dir.path()), "CFOptions \"default\"").join("\n");
    assert!(written().contains("prefix_extractor=test.Colon"));

    let db = opened(dir.path(), Some(&colon), "").open().unwrap();
    let few = runs_entered(&db, "p7:");
    assert!(few <= 3, "{few} after an open");
    assert!(!db.recovery().unserved.join("\n").contains("prefix_extractor"), "{:?}", db.recovery().unserved);
    db.close().unwrap();

    let even = PrefixExtractor::Custom(Arc::new(Even));
    let db = opened(dir.path(), Some(&even), "").open().unwrap();
    assert_eq!(runs_entered(&db, "p7:"), 20, "another extractor");
    db.close().unwrap();
    assert!(written().contains("prefix_extractor=test.Even"));

    let db = opened(dir.path(), None, "").open().unwrap();
    assert_eq!(runs_entered(&db, "p7:"), 20, "no extractor");
    let report = db.recovery().unserved.join("\n");
    assert!(report.contains("\"test.Even\" is not built in"), "{report}");
    db.close().unwrap();
    assert!(
        written().contains("prefix_extractor=test.Even"),
        "the name stays for an open that has the extractor"
    );
}

/// The table with a key for which the rule panics has no prefixes. A panic while reading spares no table.
#[test]
fn a_panicking_extractor_leaves_its_table_without_prefixes() {
    for whole_keys in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let colon = Arc::new(Colon { panics: AtomicBool::new(true), exceeds: false });
        let extractor = PrefixExtractor::Custom(Arc::clone(&colon) as _);
        let options = format!("block_based_table_factory={{whole_key_filtering={whole_keys};}}");
        let db = opened(dir.path(), Some(&extractor), &options).open().unwrap();
        for (key, value) in [("a:1", "1"), ("b:!", "2"), ("c:1", "3")] {
            db.put(key, value).unwrap();
        }
        db.flush().unwrap();
        assert_eq!(stored(&db, dir.path()), [("nullptr".to_owned(), "0".to_owned())]);
        db.put("d:1", "4").unwrap();
        db.put("e:1", "5").unwrap();
        db.flush().unwrap();
        assert_eq!(stored(&db, dir.path()).iter().filter(|(name, _)| name == "test.Colon").count(), 1);
        for panics in [true, false] {
            colon.panics.store(panics, Ordering::Relaxed);
            for key in ["a:1", "b:!", "c:1", "d:1", "e:1"] {
                assert!(db.get(key).unwrap().is_some(), "{key}");
                assert_eq!(db.prefix(&key[..2]).count(), 1, "{key}");
                assert_eq!(db.scan(key.as_bytes()..=key.as_bytes()).count(), 1, "{key}");
            }
            assert!(db.get("d:!").unwrap().is_none());
            assert_eq!(db.prefix("d:!").count(), 0);
        }
        db.compact().unwrap();
        assert_eq!(db.scan(..).count(), 5);
        assert_eq!(
            stored(&db, dir.path()),
            [("test.Colon".to_owned(), "1".to_owned())],
            "the rule panics for no key"
        );
        db.close().unwrap();
    }
}

/// A change of another option keeps the rule. A built-in extractor may take its place while the database is open.
#[test]
fn options_change_beside_an_own_extractor() {
    let dir = tempfile::tempdir().unwrap();
    let colon = PrefixExtractor::Custom(Arc::new(Colon::default()));
    let db = opened(dir.path(), Some(&colon), "").open().unwrap();
    fill(&db);
    let names = || stored(&db, dir.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    db.default_family().set_options(&[("write_buffer_size", "1234567")]).unwrap();
    db.put("q:1", "v").unwrap();
    db.flush().unwrap();
    assert!(names().iter().all(|name| name == "test.Colon"), "{:?}", names());
    db.default_family().set_options(&[("prefix_extractor", "fixed:2")]).unwrap();
    db.put("q:2", "v").unwrap();
    db.flush().unwrap();
    assert_eq!(names().iter().filter(|name| *name == "rocksdb.FixedPrefix.2").count(), 1);
    assert_eq!(db.prefix("q:").count(), 2);
    for table in 0..20 {
        assert_eq!(db.prefix(format!("p{table}:")).count(), 10, "{table}");
    }
    db.close().unwrap();
}

#[test]
fn names_of_built_in_extractors_are_refused() {
    for name in ["", "nullptr", "rocksdb.Noop", "rocksdb.FixedPrefix.3", "a\nb"] {
        let dir = tempfile::tempdir().unwrap();
        let own = PrefixExtractor::Custom(Arc::new(Named(name)));
        let e = opened(dir.path(), Some(&own), "").open().unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("prefix extractor"), "{e}");
    }
}
