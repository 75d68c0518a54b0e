//! Directories of this engine with range deletions, read by RocksDB 7.8.3's `ldb` and checked by its `sst_dump`.

use super::store::{Change, Store, key, settings};
use ashlar_base::Order;
use ashlar_env::Env;
use ashlar_testkit::judge::Tools;
use ashlar_testkit::report::{figure, scale, skipped};
use ashlar_testkit::{KeyValue, Rng};

#[test]
fn rocksdb_reads_what_we_delete_by_the_range() {
    let _readers = crate::beside_others();
    let Ok(tools) = Tools::available() else { return skipped("ranges judge", "no ldb or sst_dump") };
    let (mut directories, mut tables) = (0, 0);
    for seed in 0..scale(4, 40) as u64 {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(seed);
        // No merges: the tool has no operator.
        let mut store = Store::open(Env::os().unwrap(), folder.path(), settings(&Order::Bytewise));
        for round in 0..6 {
            for _ in 0..rng.between(5, 60) {
                let changes: Vec<Change> = (0..rng.between(1, 8)).map(|_| change(&mut rng)).collect();
                store.write(&changes);
            }
            match rng.below(4) {
                0 => store.hold_snapshot(),
                1 => store.db.compact_range(&store.family(), None, None).unwrap(),
                _ => store.db.flush(&[store.family()]).unwrap(),
            }
            store.db.wait_for_background().unwrap();
            let want: Vec<KeyValue> = store.state.clone().into_iter().collect();
            let found = tools.scan(folder.path(), "default");
            assert_eq!(found.unwrap(), want, "seed {seed} round {round}");
            directories += 1;
        }
        store.db.close().unwrap();
        tools.check_consistency(folder.path()).unwrap();
        tables += tools.check_tables(folder.path()).unwrap();
    }
    figure(&format!("ranges judge: {directories} directories and {tables} tables, 0 differences"));
}

fn change(rng: &mut Rng) -> Change {
    let len = rng.below(60);
    match rng.below(10) {
        0..7 => Change::Put(key(rng), rng.bytes(len)),
        7 => Change::Delete(key(rng)),
        _ => {
            let (a, b) = (key(rng), key(rng));
            Change::DeleteRange(a.clone().min(b.clone()), a.max(b))
        }
    }
}
