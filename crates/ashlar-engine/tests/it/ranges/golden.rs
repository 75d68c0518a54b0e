//! RocksDB's directories with range deletions and merges in WAL files and tables: read, replayed, flushed, compacted.

use super::store::{all_backward, all_forward};
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_engine::Db;
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::golden::{Golden, golden};
use ashlar_testkit::judge::Tools;
use ashlar_testkit::report;

fn open(golden: &Golden) -> Db {
    let options = DbOptions { format_level: FormatLevel::V7_8, ..DbOptions::default() };
    let family = FamilyOptions { merge_operator: standard_operator("uint64add"), ..FamilyOptions::default() };
    Db::open(Env::os().unwrap(), golden.path(), options, vec![], family).unwrap()
}

fn compare(db: &Db, golden: &Golden, what: &str) -> usize {
    let mut entries = 0;
    for want in &golden.families {
        let family = db.family(&want.family).unwrap_or_else(|| panic!("{what}: no family {}", want.family));
        let mut it = db.iter(&family, KeyBounds::default(), ReadOptions::default()).unwrap();
        assert_eq!(all_forward(&mut it), want.visible, "{what} {}", want.family);
        let mut back = all_backward(&mut it);
        back.reverse();
        assert_eq!(back, want.visible, "{what} {} backward", want.family);
        for (key, value) in &want.visible {
            let got = db.get(&family, key, ReadOptions::default()).unwrap();
            assert_eq!(got.as_deref(), Some(&value[..]), "{what} {}", want.family);
        }
        // A key that only covered versions mention is deleted for every reader.
        for key in want.internal.iter().map(|e| &e.key) {
            let shown = want.visible.iter().find(|(k, _)| k == key).map(|(_, v)| &v[..]);
            assert_eq!(db.get(&family, key, ReadOptions::default()).unwrap().as_deref(), shown, "{what}");
        }
        entries += want.visible.len();
    }
    entries
}

#[test]
fn directories_of_rocksdb_read_equal_to_their_listings() {
    let _readers = crate::beside_others();
    for (name, least) in [("wal_ops", 5), ("column_families", 3), ("range_del", 6), ("merge_flushed", 2)] {
        let name = format!("rocksdb-7.8.3/{name}");
        let golden = golden(&name).unwrap_or_else(|skip| panic!("{skip}"));
        let db = open(&golden);
        assert!(compare(&db, &golden, &name) >= least, "{name}");
        db.close().unwrap();
        let db = open(&golden);
        compare(&db, &golden, &format!("{name} reopened"));
        for family in db.families() {
            db.compact_range(&family, None, None).unwrap();
        }
        compare(&db, &golden, &format!("{name} compacted"));
        db.close().unwrap();
        let Ok(tools) = Tools::available() else {
            report::skipped(&name, "no ldb");
            continue;
        };
        tools.check_consistency(golden.path()).unwrap();
        tools.check_tables(golden.path()).unwrap();
        if name.ends_with("range_del") {
            assert_eq!(tools.scan(golden.path(), "default").unwrap(), golden.families[0].visible);
        }
    }
}

#[test]
fn operands_need_the_operator_and_nothing_else_does() {
    let _readers = crate::beside_others();
    let golden = golden("rocksdb-7.8.3/merge_flushed").unwrap_or_else(|skip| panic!("{skip}"));
    // An open takes the operator that the OPTIONS file names; without the file it has none.
    let env = Env::os().unwrap();
    for file in env.fs.list(golden.path()).unwrap().iter().filter(|f| f.name.starts_with("OPTIONS-")) {
        env.fs.remove(&golden.path().join(&file.name)).unwrap();
    }
    let options = DbOptions { format_level: FormatLevel::V7_8, ..DbOptions::default() };
    let db = Db::open(Env::os().unwrap(), golden.path(), options, vec![], FamilyOptions::default()).unwrap();
    let family = db.family("default").unwrap();
    let refused = db.get(&family, b"base", ReadOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("no merge operator, which key 'base' needs"), "{refused}");
    assert!(db.get(&family, b"other", ReadOptions::default()).unwrap().is_none());
    db.compact_range(&family, None, None).unwrap();
    db.close().unwrap();
    // The operands were carried through a compaction that could not fold them.
    compare(&open(&golden), &golden, "merge_flushed");
}
