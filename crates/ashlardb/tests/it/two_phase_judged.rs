//! Two-phase commit beside RocksDB 7.8.3 and 11.8.1, whose `TransactionDB` takes our undecided transactions over as we take
//! over its own.

use crate::judge::judge;
use crate::store::listing;
use ashlar_testkit::judge::Opening;
use ashlar_testkit::ops::{Bulk, BulkKind, BulkWrite};
use ashlar_testkit::{Judge, JudgeVersion, Rng};
use ashlardb::FormatLevel;
use ashlardb::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

const FAMILIES: [&str; 2] = ["default", "other"];

type State = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

fn ours(dir: &Path) -> Db {
    let builder = Db::builder(dir).format_level(FormatLevel::V7_8).family("other", |f| f);
    let db = builder.tune(|_, family| family.write_buffer_bytes = 64 << 10).open().unwrap();
    assert!(db.recovery().is_clean() && db.recovery().read_only.is_empty(), "{}", db.recovery());
    db
}

fn theirs(version: JudgeVersion, dir: &Path, opening: Opening) -> Judge {
    let mut judge = Judge::spawn(version).unwrap();
    for line in ["without", "with db ", "with family default ", "with family other ", "with transactions"] {
        judge.prepare(line).unwrap();
    }
    judge.open(dir, opening, "").unwrap();
    judge
}

fn state_of(db: &Db) -> State {
    let entries = |at: usize| {
        listing(db.family(FAMILIES[at]).unwrap().scan(..)).into_iter().map(move |(k, v)| ((at, k), v))
    };
    (0..FAMILIES.len()).flat_map(entries).collect()
}

fn state_at(judge: &mut Judge) -> State {
    let mut state = State::new();
    for (at, name) in FAMILIES.iter().enumerate() {
        state.extend(judge.dump(name).unwrap().into_iter().map(|(k, v)| ((at, k), v)));
    }
    state
}

fn names(db: &Db) -> Vec<Vec<u8>> {
    db.prepared_transactions().unwrap().iter().map(|t| t.name().unwrap()).collect()
}

/// A copy of the directory as a kill leaves it. No background work runs meanwhile.
fn killed(db: &Db, dir: &Path, into: &Path) {
    db.pause_background_work().unwrap();
    std::fs::create_dir(into).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() && entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), into.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn rocksdb_decides_on_what_we_prepared() {
    for version in [JudgeVersion::V7, JudgeVersion::V11] {
        if judge(version, "rocksdb_decides_on_what_we_prepared").is_none() {
            return;
        }
        for kill in [false, true] {
            let home = tempfile::tempdir().unwrap();
            let mut dir = home.path().join("db");
            let db = ours(&dir);
            let other = db.family("other").unwrap();
            let mut want = State::new();
            for at in 0..6_u8 {
                let t = db.begin().unwrap();
                t.set_name([b'x', at]).unwrap();
                t.put([at], "mine").unwrap();
                t.family(&other).put([at], "mine too").unwrap();
                t.prepare().unwrap();
                // The WAL file changes, also between prepare and commit.
                if at % 2 == 0 {
                    other.put("plain", [at]).unwrap();
                    want.insert((1, b"plain".to_vec()), vec![at]);
                    if at == 2 { db.flush() } else { other.flush() }.unwrap();
                }
                if at == 3 {
                    t.commit().unwrap();
                    want.insert((0, vec![at]), b"mine".to_vec());
                    want.insert((1, vec![at]), b"mine too".to_vec());
                } else if at == 4 {
                    t.rollback().unwrap();
                }
            }
            assert_eq!(state_of(&db), want);
            if kill {
                let copy = home.path().join("copy");
                killed(&db, &dir, &copy);
                dir = copy;
            }
            db.close().unwrap();
            drop((other, db));

            let mut judge = theirs(version, &dir, Opening::Existing);
            let undecided: Vec<Vec<u8>> = [0, 1, 2, 5].map(|at| vec![b'x', at]).to_vec();
            assert_eq!(judge.undecided().unwrap(), undecided, "{version:?}, {kill}");
            assert_eq!(state_at(&mut judge), want);
            judge.decide(true, b"x\x00").unwrap();
            judge.decide(false, b"x\x01").unwrap();
            want.insert((0, vec![0]), b"mine".to_vec());
            want.insert((1, vec![0]), b"mine too".to_vec());
            assert_eq!(state_at(&mut judge), want);
            judge.close().unwrap();

            let db = ours(&dir);
            assert_eq!((names(&db), state_of(&db)), (undecided[2..].to_vec(), want.clone()));
            db.transaction_by_name(b"x\x02").unwrap().unwrap().commit().unwrap();
            db.transaction_by_name(b"x\x05").unwrap().unwrap().rollback().unwrap();
            want.insert((0, vec![2]), b"mine".to_vec());
            want.insert((1, vec![2]), b"mine too".to_vec());
            db.close().unwrap();
            // All are decided on: it opens as a plain database.
            let mut plain = Judge::spawn(version).unwrap();
            plain.open(&dir, Opening::Existing, "").unwrap();
            assert_eq!(state_at(&mut plain), want);
            plain.close().unwrap();
        }
    }
}

fn bulk(kind: BulkKind, family: &str, first: u32) -> Bulk {
    let (count, bytes, seed, write) = (4, 30, u64::from(first), BulkWrite::Plain);
    Bulk { kind, family: family.to_owned(), first, count, bytes, seed, write }
}

fn apply(state: &mut State, bulk: &Bulk) {
    let at = FAMILIES.iter().position(|name| *name == bulk.family).unwrap();
    state.extend(bulk.entries().map(|(key, value)| ((at, key), value)));
}

/// RocksDB and we in turns: each prepares, decides on what the other prepared, flushes, and is closed or killed.
#[test]
fn we_decide_on_what_rocksdb_prepared() {
    for (seed, version) in
        [(1, JudgeVersion::V7), (2, JudgeVersion::V11), (3, JudgeVersion::V7), (4, JudgeVersion::V11)]
    {
        if judge(version, "we_decide_on_what_rocksdb_prepared").is_none() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let mut dir = home.path().join("db");
        let (mut rng, mut want) = (Rng::new(seed), State::new());
        let mut undecided: BTreeMap<Vec<u8>, Vec<Bulk>> = BTreeMap::new();
        let mut first = 0;
        for turn in 0..14 {
            let what = format!("seed {seed}, {version:?}, turn {turn}");
            if turn % 2 == 0 {
                let opening = if turn == 0 { Opening::Create } else { Opening::Existing };
                let mut judge = theirs(version, &dir, opening);
                assert_eq!(
                    judge.undecided().unwrap(),
                    undecided.keys().cloned().collect::<Vec<_>>(),
                    "{what}"
                );
                assert!(state_at(&mut judge) == want, "{what}");
                while rng.percent(50)
                    && let Some(name) = undecided.keys().nth(rng.below(undecided.len().max(1))).cloned()
                {
                    let commits = rng.percent(60);
                    judge.decide(commits, &name).unwrap_or_else(|e| panic!("{what}: {e}"));
                    let bulks = undecided.remove(&name).unwrap();
                    bulks.iter().filter(|_| commits).for_each(|bulk| apply(&mut want, bulk));
                }
                for _ in 0..rng.below(6) {
                    first += 10;
                    let family = FAMILIES[rng.below(2)];
                    let kinds =
                        [BulkKind::Put, BulkKind::Prepared, BulkKind::Committed, BulkKind::RolledBack];
                    let bulk = bulk(kinds[rng.below(4)], family, first);
                    judge.bulk(&bulk).unwrap();
                    match bulk.kind {
                        BulkKind::Prepared => {
                            let name = format!("{}-{}", bulk.kind.name(), bulk.seed).into_bytes();
                            undecided.insert(name, vec![bulk]);
                        }
                        BulkKind::RolledBack => {}
                        _ => apply(&mut want, &bulk),
                    }
                    if rng.percent(30) {
                        judge.apply(&[ashlar_testkit::Op::Flush { family: family.to_owned() }]).unwrap();
                    }
                }
                assert!(state_at(&mut judge) == want, "{what}");
                if rng.percent(50) {
                    judge.kill()
                } else {
                    judge.close().unwrap()
                }
                continue;
            }
            let db = ours(&dir);
            assert_eq!(names(&db), undecided.keys().cloned().collect::<Vec<_>>(), "{what}");
            assert!(state_of(&db) == want, "{what}");
            while rng.percent(60)
                && let Some(name) = undecided.keys().nth(rng.below(undecided.len().max(1))).cloned()
            {
                let (commits, t) = (rng.percent(60), db.transaction_by_name(&name).unwrap().unwrap());
                if commits { t.commit() } else { t.rollback() }.unwrap();
                let bulks = undecided.remove(&name).unwrap();
                bulks.iter().filter(|_| commits).for_each(|bulk| apply(&mut want, bulk));
            }
            for _ in 0..rng.below(4) {
                first += 10;
                let t = db.begin().unwrap();
                let name = format!("ours-{first}").into_bytes();
                t.set_name(&name).unwrap();
                let bulks: Vec<Bulk> = FAMILIES.iter().map(|name| bulk(BulkKind::Put, name, first)).collect();
                for bulk in &bulks {
                    let family = db.family(&bulk.family).unwrap();
                    bulk.entries().for_each(|(k, v)| t.family(&family).put(k, v).unwrap());
                }
                t.prepare().unwrap();
                match rng.below(3) {
                    0 => drop(undecided.insert(name, bulks)),
                    1 => {
                        t.commit().unwrap();
                        bulks.iter().for_each(|bulk| apply(&mut want, bulk));
                    }
                    _ => t.rollback().unwrap(),
                }
                if rng.percent(40) {
                    let filler = bulk(BulkKind::Put, "other", first);
                    let family = db.family("other").unwrap();
                    filler.entries().for_each(|(k, v)| family.put(k, v).unwrap());
                    apply(&mut want, &filler);
                    if rng.percent(50) { db.flush() } else { family.flush() }.unwrap();
                }
            }
            assert!(state_of(&db) == want, "{what}");
            if rng.percent(50) {
                let copy = home.path().join(format!("copy {turn}"));
                killed(&db, &dir, &copy);
                dir = copy;
            }
            db.close().unwrap();
        }
    }
}
