//! Work that only the clock makes due: dumps of statistics, compactions of old tables. On the simulated machine.

use super::Store;
use super::events::{Ear, text};
use ashlar_base::stats::{Statistics, Ticker};
use ashlar_engine::Db;
use ashlar_env::sim::SimEnv;
use ashlar_options::Event;
use ashlar_options::{CompactionStyle, DbOptions, FamilyOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Runs jobs, and thereby advances the clock, until `done`; returns the passed seconds.
fn until(sim: &SimEnv, mut done: impl FnMut() -> bool) -> u64 {
    let begun = ashlar_env::Clock::now(sim.clock());
    for _ in 0..10_000 {
        if done() {
            return (ashlar_env::Clock::now(sim.clock()) - begun).as_secs();
        }
        sim.env().jobs.drive(1);
    }
    panic!("it never happens")
}

fn open(sim: &SimEnv, change: impl FnOnce(&mut DbOptions, &mut FamilyOptions)) -> (Store, Arc<Ear>) {
    let ear = Arc::new(Ear::default());
    let (mut options, mut family) = (DbOptions::default(), FamilyOptions::default());
    options.listeners.add(ear.clone());
    change(&mut options, &mut family);
    let db = Db::open(sim.env(), Path::new("/db"), options, vec![], family).unwrap();
    (Store { family: db.family("default").unwrap(), db }, ear)
}

/// Reason, output level and whether it was a move, for every compaction that ended.
fn ended(ear: &Ear) -> Vec<(&'static str, u8, bool)> {
    let told = ear.0.lock().unwrap();
    let ended = told.iter().filter_map(|event| match event {
        Event::CompactionCompleted(c) => Some((c.reason, c.output_level.0, c.trivial_move)),
        _ => None,
    });
    ended.collect()
}

fn files(store: &Store) -> Vec<(u8, u64)> {
    store.db.live_files(&store.family).unwrap().iter().map(|f| (f.level.0, f.number.0)).collect()
}

#[test]
fn statistics_are_dumped_by_the_clock() {
    let _readers = crate::beside_others();
    let dumps = |sim: &SimEnv| text(&sim.env(), "LOG").matches("------- DUMPING STATS -------").count();
    let sim = SimEnv::new(21);
    let (store, _) = open(&sim, |options, _| options.stats_dump_secs = 60);
    store.put(b"k", b"v");
    assert_eq!(until(&sim, || dumps(&sim) == 1), 60);
    assert_eq!(until(&sim, || dumps(&sim) == 3), 120);
    let log = text(&sim.env(), "LOG");
    assert!(log.contains("Cumulative writes: 1 writes") && log.contains("** Compaction Stats [default] **"));
    assert!(log.contains("rocksdb.number.keys.written COUNT : 1"), "{log}");
    // The period can be changed while the database is open, also to none.
    store.db.set_db_options(&[("stats_dump_period_sec", "10")]).unwrap();
    assert_eq!(until(&sim, || dumps(&sim) == 5), 20);
    store.db.set_db_options(&[("stats_dump_period_sec", "0")]).unwrap();
    until(&sim, || sim.env().jobs.drive(1) == 0);
    assert_eq!(dumps(&sim), 5, "no setting needs a timer, so there is none");
    store.db.set_db_options(&[("stats_dump_period_sec", "7")]).unwrap();
    assert_eq!(until(&sim, || dumps(&sim) == 7), 14);
    store.db.close().unwrap();
}

#[test]
fn a_table_that_is_old_is_written_anew() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(22);
    let (store, ear) = open(&sim, |_, family| family.compaction.periodic_secs = 3600);
    store.put(b"a", b"1");
    store.compact();
    store.put(b"b", b"2");
    store.flush();
    let young = files(&store);
    assert_eq!(young.iter().map(|f| f.0).collect::<Vec<_>>(), [0, 6]);
    ear.forget();
    let took = until(&sim, || ended(&ear).len() == 2);
    assert!((3600..3700).contains(&took), "{took}");
    let old = files(&store);
    assert!(old.iter().all(|f| f.0 == 6 && !young.contains(f)), "{young:?} {old:?}");
    assert!(
        ended(&ear).iter().all(|(reason, _, moved)| *reason == "periodic" && !moved),
        "{:?}",
        ended(&ear)
    );
    assert_eq!((store.get(b"a"), store.get(b"b")), (Some(b"1".to_vec()), Some(b"2".to_vec())));
    // Each compaction ends: nothing happens until the next hour has passed.
    let took = until(&sim, || ended(&ear).len() == 3);
    assert!((3600..3700).contains(&took), "{took}");
    store.db.close().unwrap();
}

#[test]
fn expired_data_goes_down_to_the_last_level() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(23);
    let (store, ear) = open(&sim, |_, _| ());
    (0..100u32).for_each(|n| store.put(&n.to_be_bytes(), &[7; 100]));
    store.compact();
    (0..50u32)
        .for_each(|n| store.write(|b| b.delete(ashlar_base::FamilyId::DEFAULT, &n.to_be_bytes()).unwrap()));
    store.flush();
    ear.forget();
    sim.clock().advance(Duration::from_secs(100_000));
    store.db.wait_for_background().unwrap();
    assert_eq!(ended(&ear), [], "no age counts");
    store.db.set_options(&store.family, &[("ttl", "86400")]).unwrap();
    store.db.wait_for_background().unwrap();
    assert_eq!(ended(&ear), [("ttl", 6, false)]);
    assert_eq!(files(&store).iter().map(|f| f.0).collect::<Vec<_>>(), [6]);
    sim.clock().advance(Duration::from_secs(200_000));
    sim.env().jobs.drive(100);
    assert_eq!(ended(&ear).len(), 1, "data at the bottom may be as old as it likes");
    store.db.close().unwrap();
}

#[test]
fn a_universal_tree_with_an_old_table_is_merged_whole() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(27);
    let (store, ear) = open(&sim, |_, family| {
        family.compaction.style = CompactionStyle::Universal;
        family.compaction.periodic_secs = 3600;
    });
    store.put(b"a", b"1");
    store.compact();
    store.put(b"b", b"2");
    store.flush();
    ear.forget();
    let took = until(&sim, || ended(&ear).len() == 1);
    assert!((3600..3700).contains(&took), "{took}");
    assert_eq!(ended(&ear), [("periodic", 6, false)]);
    assert_eq!(files(&store).iter().map(|f| f.0).collect::<Vec<_>>(), [6]);
    let took = until(&sim, || ended(&ear).len() == 2);
    assert!((3600..3700).contains(&took), "the next one is an hour later: {took}");
    store.db.close().unwrap();
}

/// Tables are deleted when their age reaches the ttl, the newer ones stay; the files go too.
#[test]
fn a_fifo_tree_deletes_what_has_reached_the_ttl() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(28);
    let (store, ear) = open(&sim, |_, family| {
        family.compaction.style = CompactionStyle::Fifo;
        family.compaction.ttl_secs = 3600;
    });
    for key in [b"a", b"b", b"c"] {
        store.put(key, b"1");
        store.flush();
        sim.clock().advance(Duration::from_secs(1000));
    }
    ear.forget();
    let mut took = 0;
    for (gone, left) in [(1, [b"b", b"c"].as_slice()), (2, [b"c"].as_slice()), (3, [].as_slice())] {
        took += until(&sim, || ended(&ear).len() == gone);
        let seen: Vec<_> = [b"a", b"b", b"c"].into_iter().filter(|key| store.get(*key).is_some()).collect();
        assert_eq!(seen, left, "after {took} seconds");
    }
    assert!(ended(&ear).iter().all(|(reason, _, _)| *reason == "ttl"), "{:?}", ended(&ear));
    assert!((2600..2700).contains(&took), "{took}");
    assert_eq!(files(&store), []);
    store.db.close().unwrap();
}

#[test]
fn a_move_is_told_as_one() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(24);
    let (store, ear) = open(&sim, |_, family| family.compaction.l0_trigger = 1);
    store.put(b"k", b"v");
    store.flush();
    store.db.wait_for_background().unwrap();
    assert_eq!(ended(&ear), [("level0", 6, true)]);
    let names = ear.names();
    assert!(names.ends_with(&["compaction_started", "trivial_move"]), "{names:?}");
    let told = ear.0.lock().unwrap();
    let Some(Event::CompactionCompleted(moved)) = told.last() else { panic!("{told:?}") };
    assert_eq!(
        (moved.outputs, moved.output_bytes, (moved.input_entries, moved.output_entries), moved.levels[6]),
        (1, 0, (0, 0), 1)
    );
    assert!(moved.input_bytes > 0);
    assert!(
        text(&sim.env(), "LOG")
            .contains("\"event\": \"trivial_move\", \"destination_level\": 6, \"files\": 1")
    );
}

#[test]
fn the_limit_on_background_writing_is_counted() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(25);
    let statistics = Arc::new(Statistics::new());
    let (store, _) = open(&sim, |options, family| {
        options.statistics = Some(Arc::clone(&statistics));
        options.rate_limit_bytes = 100_000;
        family.compaction.automatic = false;
        family.table.compression = ashlar_format::compress::Compression::None;
    });
    (0..1000u32).for_each(|n| store.put(&n.to_be_bytes(), &[7; 1000]));
    let before = ashlar_env::Clock::now(sim.clock());
    store.flush();
    let took = ashlar_env::Clock::now(sim.clock()) - before;
    let counted = [
        Ticker::RateLimiterBytesWrite,
        Ticker::RateLimiterRequestsWrite,
        Ticker::RateLimiterDelayedRequestsWrite,
        Ticker::RateLimiterTotalWaitMicrosWrite,
    ];
    let [bytes, requests, delayed, waited] = counted.map(|ticker| statistics.ticker(ticker));
    assert!(bytes > 1_000_000 && bytes <= statistics.ticker(Ticker::FlushWriteBytes), "{bytes}");
    assert!(requests >= bytes / (1 << 20) && (1..=requests).contains(&delayed), "{delayed} of {requests}");
    assert!(waited > 0 && u128::from(waited) <= took.as_micros() + 2_000_000, "{waited} us of {took:?}");
    assert_eq!(statistics.ticker(Ticker::NumberRateLimiterDrains), delayed);
}
