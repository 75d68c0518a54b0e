//! Logged and unlogged writes to one key: which of them a kill may take.

use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_stress::sim::plan::Setup;
use ashlar_stress::sim::store::{Store, open};
use ashlar_testkit::Rng;
use ashlar_testkit::turns::beside_others;

fn put(db: &Db, value: &str, disable_wal: bool, sync: bool) {
    let family = db.family("default").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(family.id(), b"key", value.as_bytes()).unwrap();
    db.write(&mut batch, WriteOptions { sync, disable_wal, ..WriteOptions::default() }).unwrap();
}

fn found(store: &Store, mode: CrashMode) -> String {
    let db = open(&store.sim.crash(mode), &store.setup).unwrap();
    let family = db.family("default").unwrap();
    let value = db.get(&family, b"key", ReadOptions::default()).unwrap();
    String::from_utf8(value.unwrap().into_vec()).unwrap()
}

#[test]
fn an_unlogged_write_may_go_and_the_logged_one_shows() {
    let _readers = beside_others();
    let setup = Setup { unlogged: false, ..Setup::draw(&mut Rng::new(1)) };
    let store = Store::new(SimEnv::new(1), setup).unwrap();
    let modes = [CrashMode::KILL, CrashMode::DROP_ALL];
    put(&store.db, "logged", false, true);
    put(&store.db, "unlogged", true, false);
    assert_eq!(modes.map(|mode| found(&store, mode)), ["logged", "logged"]);
    put(&store.db, "logged again", false, true);
    assert_eq!(modes.map(|mode| found(&store, mode)), ["logged again", "logged again"]);
    put(&store.db, "unlogged again", true, false);
    let family = store.db.family("default").unwrap();
    store.db.flush(&[family]).unwrap();
    assert_eq!(modes.map(|mode| found(&store, mode)), ["unlogged again", "unlogged again"]);
}
