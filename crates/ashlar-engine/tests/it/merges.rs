//! Merges and wide-column entities compared with a model and RocksDB: each engine reads what the other has written,
//! folded and combined.

use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::{ErrorKind, FamilyId, MergeOperator};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::judge::{JudgeError, Opening, copy_flat};
use ashlar_testkit::{Judge, JudgeVersion, KeyValue, Op, Rng, report};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Columns by name; a plain value has only the column with the empty name.
type Row = BTreeMap<Vec<u8>, Vec<u8>>;
type State = BTreeMap<Vec<u8>, Row>;

fn settings(operator: &Arc<dyn MergeOperator>) -> (DbOptions, FamilyOptions) {
    let mut family = FamilyOptions { merge_operator: Some(Arc::clone(operator)), ..FamilyOptions::default() };
    family.table.block_size = 256;
    family.compaction.num_levels = 4;
    family.compaction.l0_trigger = 2;
    family.compaction.target_file_bytes = 4096;
    family.compaction.base_level_bytes = 4096;
    family.compaction.level_multiplier = 2.0;
    (DbOptions { format_level: FormatLevel::V7_8, ..DbOptions::default() }, family)
}

fn open(dir: &Path, operator: &Arc<dyn MergeOperator>) -> Db {
    let (db, family) = settings(operator);
    Db::open(Env::os().unwrap(), dir, db, vec![], family).unwrap()
}

/// Compares every key by iterator, in both directions, and by point reads: values and columns.
fn compare(db: &Db, state: &State, what: &str) {
    let family = db.family("default").unwrap();
    let columns = |found: ashlar_tree::columns::Columns| -> Row {
        found.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
    };
    for forward in [true, false] {
        let mut it = db.iter(&family, KeyBounds::default(), ReadOptions::default()).unwrap();
        if forward { it.first() } else { it.last() }.unwrap();
        let mut expected: Vec<_> = state.iter().collect();
        if !forward {
            expected.reverse();
        }
        for (key, row) in expected {
            let default = row.get(&b""[..]).cloned().unwrap_or_default();
            let shown = it.entry().map(|(key, value)| (key.to_vec(), value.to_vec()));
            assert_eq!(shown, Some((key.clone(), default)), "{what}");
            assert_eq!(it.columns().unwrap().map(columns).as_ref(), Some(row), "{what}");
            if forward { it.next() } else { it.prev() }.unwrap();
        }
        assert!(!it.is_valid() && it.columns().unwrap().is_none(), "{what}");
    }
    for i in 0..KEYS {
        let (key, how) = (key(i), ReadOptions::default());
        let row = state.get(&key);
        let value = db.get(&family, &key, how).unwrap().map(|value| value.to_vec());
        assert_eq!(value, row.map(|row| row.get(&b""[..]).cloned().unwrap_or_default()), "{what}");
        assert_eq!(db.get_entity(&family, &key, how).unwrap().map(columns).as_ref(), row, "{what}");
    }
}

/// The changes besides puts of values. RocksDB 7.8 does not merge into entities.
#[derive(Clone, Copy, PartialEq)]
enum Mix {
    Merges,
    Entities,
    Both,
}

const KEYS: usize = 24;

fn key(i: usize) -> Vec<u8> {
    format!("key{i:02}").into_bytes()
}

fn operand(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 => vec![],
        1 => rng.bytes(3),
        _ => rng.between(0, 1 << 40).to_le_bytes().to_vec(),
    }
}

/// Makes one change, in the batch and in the state.
fn change(rng: &mut Rng, mix: Mix, operator: &dyn MergeOperator, batch: &mut WriteBatch, state: &mut State) {
    let (key, value) = (key(rng.below(KEYS)), operand(rng));
    match rng.below(20) {
        0 => {
            batch.delete(FamilyId::DEFAULT, &key).unwrap();
            state.remove(&key);
        }
        1..4 => {
            batch.put(FamilyId::DEFAULT, &key, &value).unwrap();
            state.insert(key, Row::from([(vec![], value)]));
        }
        4..6 if mix != Mix::Merges => {
            let names: &[&[u8]] = if rng.percent(50) { &[b"city", b"", b"age"] } else { &[b"city", b"zip"] };
            let columns: Vec<(&[u8], &[u8])> = names.iter().map(|name| (*name, &value[..])).collect();
            batch.put_entity(FamilyId::DEFAULT, &key, &columns).unwrap();
            let row = columns.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            state.insert(key, row);
        }
        6 => {
            let end = [&key[..], b"\0"].concat();
            batch.delete_range(FamilyId::DEFAULT, &key, &end).unwrap();
            state.remove(&key);
        }
        _ if mix == Mix::Entities => {}
        _ => {
            batch.merge(FamilyId::DEFAULT, &key, &value).unwrap();
            // A merge into an entity without the default column finds the empty value.
            let existing = state.get(&key).map(|row| row.get(&b""[..]).cloned().unwrap_or_default());
            let merged = operator.full_merge(&key, existing.as_deref(), &[&value]).unwrap();
            state.entry(key).or_default().insert(vec![], merged);
        }
    }
}

struct Tally {
    directories: usize,
    keys: usize,
}

/// RocksDB reads a copy and compacts it, and this engine reads the result.
fn judged(
    version: JudgeVersion,
    dir: &Path,
    state: &State,
    operator: &Arc<dyn MergeOperator>,
    tally: &mut Tally,
) -> Result<(), JudgeError> {
    let copy = tempfile::tempdir().unwrap();
    copy_flat(dir, copy.path()).unwrap();
    let what = format!("{}, {}", operator.name(), version.name());
    let want: Vec<KeyValue> = state
        .iter()
        .map(|(key, row)| (key.clone(), row.get(&b""[..]).cloned().unwrap_or_default()))
        .collect();
    let mut judge = Judge::spawn(version)?;
    let options = format!(
        "merge_operator={};block_based_table_factory={{format_version=5}};disable_auto_compactions=true;num_levels=4",
        operator.name()
    );
    let mut run = || {
        judge.open(copy.path(), Opening::Existing, &options)?;
        assert!(judge.dump("default")? == want, "{what} reads other values");
        assert!(judge.dump_backwards("default")?.iter().rev().eq(&want), "{what} backwards");
        judge.apply(&[Op::Compact { family: "default".into() }])?;
        assert!(judge.dump("default")? == want, "{what} reads other values after its compaction");
        judge.close()
    };
    match run() {
        Err(skip @ JudgeError::Skip(_)) => return Err(skip),
        done => done.unwrap_or_else(|e| panic!("{what}: {e}")),
    }
    let db = open(copy.path(), operator);
    compare(&db, state, &format!("{what}, compacted by it"));
    db.close().unwrap();
    tally.directories += 1;
    tally.keys += want.len();
    Ok(())
}

fn history(id: &str, mix: Mix, judges: &[JudgeVersion], tally: &mut Tally) -> Result<(), JudgeError> {
    let operator = standard_operator(id).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (mut rng, mut state) = (Rng::new(0x6d ^ id.len() as u64), State::new());
    let db = open(dir.path(), &operator);
    let mut held = Vec::new();
    for round in 0..12 {
        for _ in 0..rng.between(4, 30) {
            let mut batch = WriteBatch::new();
            for _ in 0..rng.between(1, 5) {
                change(&mut rng, mix, &*operator, &mut batch, &mut state);
            }
            db.write(&mut batch, WriteOptions::default()).unwrap();
        }
        compare(&db, &state, id);
        match rng.below(5) {
            0 => held.push(db.snapshot().unwrap()),
            1 => drop(held.pop()),
            2 => db.compact_range(&db.family("default").unwrap(), None, None).unwrap(),
            _ => db.flush(&[db.family("default").unwrap()]).unwrap(),
        }
        db.wait_for_background().unwrap();
        compare(&db, &state, id);
        if round % 6 == 5 {
            db.sync_wal().unwrap();
            for version in judges {
                judged(*version, dir.path(), &state, &operator, tally)?;
            }
        }
    }
    drop(held);
    db.close().unwrap();
    compare(&open(dir.path(), &operator), &state, id);
    Ok(())
}

#[test]
fn merges_and_entities_go_both_ways() {
    let _readers = crate::beside_others();
    let mut tally = Tally { directories: 0, keys: 0 };
    let ids = ["uint64add", "stringappend", "max", "put", "bytesxor"];
    let mut run = || {
        for id in ids {
            history(id, Mix::Merges, &JudgeVersion::ALL, &mut tally)?;
            history(id, Mix::Both, &[JudgeVersion::V11], &mut tally)?;
        }
        history("put", Mix::Entities, &JudgeVersion::ALL, &mut tally)?;
        Ok::<_, JudgeError>(())
    };
    match run() {
        Err(JudgeError::Skip(skip)) => skip.announce("merges_and_entities_go_both_ways"),
        Err(e) => panic!("{e}"),
        Ok(()) => report::figure(&format!(
            "merges and entities: {} operators, {} directories read and compacted by RocksDB 7.8.3 and 11.8.1 and read by us \
             again, {} keys, 0 differences",
            ids.len(),
            tally.directories,
            tally.keys
        )),
    }
}

#[test]
fn entities_are_refused_where_the_level_or_a_name_does() {
    let _readers = crate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let options = DbOptions { format_level: FormatLevel::V6_29, ..DbOptions::default() };
    let db = Db::open(Env::os().unwrap(), dir.path(), options, vec![], FamilyOptions::default()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, b"a", b"1").unwrap();
    batch.put_entity(FamilyId::DEFAULT, b"k", &[(b"c", b"v")]).unwrap();
    let refused = db.write(&mut batch, WriteOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("rocksdb-6.29"), "{refused}");
    let default = db.family("default").unwrap();
    assert!(db.get(&default, b"a", ReadOptions::default()).unwrap().is_none(), "the whole batch is refused");
    let twice = batch.put_entity(FamilyId::DEFAULT, b"k", &[(b"c", b"1"), (b"", b"2"), (b"c", b"3")]);
    let twice = twice.unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InvalidArgument);
    assert!(twice.to_string().contains("a column name occurs twice"), "{twice}");
    assert_eq!(batch.len(), 2, "a refused operation leaves the batch as it was");
}
