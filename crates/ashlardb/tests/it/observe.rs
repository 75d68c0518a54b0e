//! What a database tells about itself, through the door: counts on small workloads, to the last one.

use ashlardb::{
    Builder, Db, Distribution, ErrorKind, Event, EventListener, MemoryClass, MergeOperator, Metric,
    PerfLevel, Read as _, Result, SizeOptions, StallCondition, Statistics, StatsLevel, Ticker,
    TransactionOptions, Write as _, WriteOptions,
};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A database that compacts only when told.
fn quiet(path: &Path) -> Builder {
    Db::builder(path).options("disable_auto_compactions=true")
}

fn shown<const N: usize>(db: &Db, names: [&str; N]) -> [u64; N] {
    names.map(|name| db.ticker(&format!("rocksdb.{name}")).unwrap())
}

#[test]
fn tickers_and_distributions_count_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let counted = Arc::new(Statistics::new());
    let db = quiet(dir.path()).statistics(Arc::clone(&counted)).open().unwrap();
    for n in 0..100_u32 {
        db.put(n.to_be_bytes(), [7; 10]).unwrap();
    }
    db.writing(WriteOptions::synced()).delete(5_u32.to_be_bytes()).unwrap();
    let writes = ["number.keys.written", "write.self", "write.wal", "wal.synced"];
    assert_eq!(shown(&db, writes), [101, 101, 101, 1]);
    db.flush().unwrap();
    db.put(200_u32.to_be_bytes(), b"memory").unwrap();
    for n in [200_u32, 1, 2, 5, 300] {
        db.get(n.to_be_bytes()).unwrap();
    }
    let reads = ["number.keys.read", "memtable.hit", "memtable.miss", "l0.hit", "bytes.read"];
    assert_eq!(shown(&db, reads), [5, 1, 4, 3, 6 + 10 + 10]);
    let gets = db.distribution("rocksdb.db.get.micros").unwrap();
    let bytes = db.distribution("rocksdb.bytes.per.read").unwrap();
    assert_eq!((gets.count(), bytes.count(), bytes.sum(), bytes.max()), (5, 5, 26, 10));
    assert_eq!(db.distribution("rocksdb.wal.file.sync.micros").unwrap().count(), 1);
    assert_eq!(
        (db.ticker("rocksdb.no.such.ticker"), db.distribution("rocksdb.db.get").is_some()),
        (None, false)
    );

    let text = counted.to_string();
    assert!(text.contains("\nrocksdb.number.keys.read COUNT : 5\n"), "{text}");
    assert_eq!(db.property("rocksdb.options-statistics"), Some(text));
    db.statistics().reset();
    assert_eq!(shown(&db, reads), [0; 5]);
    assert_eq!(counted.distribution(Distribution::DbGetMicros).count(), 0);
    // A level below the tickers counts nothing, and the level can change while the database is open.
    counted.set_level(StatsLevel::DisableAll);
    db.get(b"k").unwrap();
    assert_eq!(counted.ticker(Ticker::NumberKeysRead), 0);
    counted.set_level(StatsLevel::ExceptHistogramOrTimers);
    db.get(b"k").unwrap();
    assert_eq!(
        (counted.ticker(Ticker::NumberKeysRead), db.distribution("rocksdb.db.get.micros").unwrap().count()),
        (1, 0)
    );
}

#[derive(Default)]
struct Ear(Mutex<Vec<Event>>);

impl EventListener for Ear {
    fn on_event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

#[test]
fn listeners_hear_what_happened_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (Arc::new(Ear::default()), Arc::new(Ear::default()));
    // Stored settings take neither listeners nor statistics away.
    quiet(dir.path()).open().unwrap().close().unwrap();
    let builder = quiet(dir.path()).listener(first.clone()).listener(second.clone());
    let db = builder.open().unwrap();
    assert!(db.recovery().unserved.is_empty(), "{}", db.recovery());
    for _ in 0..2 {
        db.put(b"a", b"1").unwrap();
        db.put(b"b", b"2").unwrap();
        db.flush().unwrap();
        // A call that waits for a flush returns once the flush is installed, before all listeners were called.
        db.wait_for_background().unwrap();
    }
    db.compact().unwrap();
    let tables = db.default_family().properties_of_all_tables().unwrap();
    let weak = db.downgrade();
    db.close().unwrap();
    assert!(weak.upgrade().is_some(), "a closed handle is one still");
    drop(db);
    assert!(weak.upgrade().is_none());
    let events = first.0.lock().unwrap();
    let names: Vec<_> = events.iter().map(Event::name).collect();
    let flush = ["memtable_sealed", "flush_started", "table_file_creation", "flush_finished"];
    assert_eq!((&names[..4], &names[4..8]), (&flush[..], &flush[..]), "{names:?}");
    assert_eq!(
        names[8..11],
        ["compaction_started", "table_file_creation", "compaction_finished"],
        "{names:?}"
    );
    let Event::FlushCompleted(flushed) = &events[3] else { panic!("{:?}", events[3]) };
    assert_eq!((flushed.family.as_str(), flushed.memtables, flushed.entries), ("default", 1, 2));
    let (smallest, largest) = flushed.sequences;
    assert_eq!((flushed.tables.len(), flushed.blobs.len(), largest.get() - smallest.get()), (1, 0, 1));
    let begun = |event: &Event| match event {
        Event::FlushBegin(flush) => (flush.job, flush.tables.len()),
        Event::CompactionBegin(compaction) => (compaction.job, compaction.output_tables.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!((begun(&events[1]), begun(&events[5]), flushed.job), ((1, 0), (2, 0), 1));
    let Event::CompactionCompleted(done) = &events[10] else { panic!("{:?}", events[10]) };
    assert_eq!((done.reason, (done.input_entries, done.output_entries), done.outputs), ("manual", (4, 2), 1));
    assert_eq!((begun(&events[8]), done.job, done.hidden_entries), ((3, 0), 3, 2));
    assert_eq!(done.output_tables, tables.iter().map(|table| table.number).collect::<Vec<_>>());
    let stalls = events
        .iter()
        .filter(|e| matches!(e, Event::StallConditionsChanged { now, .. } if *now != StallCondition::Normal));
    assert_eq!(stalls.count(), 0);
    assert_eq!(names, second.0.lock().unwrap().iter().map(Event::name).collect::<Vec<_>>());
}

#[test]
fn properties_have_three_forms_and_sums() {
    let dir = tempfile::tempdir().unwrap();
    let db = quiet(dir.path()).open().unwrap();
    let events = db.create_family("events").unwrap();
    for n in 0..10_u32 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
        events.put(n.to_be_bytes(), [2; 100]).unwrap();
    }
    db.flush().unwrap();
    for n in 0..3_u32 {
        events.put(n.to_be_bytes(), [3; 100]).unwrap();
    }
    let entries = "rocksdb.num-entries-active-mem-table";
    assert_eq!((db.int_property(entries), events.int_property(entries)), (Some(0), Some(3)));
    assert_eq!(
        (db.aggregated_int_property(entries), events.property(entries).as_deref()),
        (Some(3), Some("3"))
    );
    assert_eq!(db.aggregated_int_property("rocksdb.estimate-num-keys"), Some(23));
    let levels = "Level Files Size(MB)\n--------------------\n  0        1        0\n  1        0        0\n";
    let told = db.property("rocksdb.levelstats").unwrap();
    assert!(told.starts_with(levels), "{told}");
    let stats = db.property("rocksdb.stats").unwrap();
    assert!(stats.contains("** Compaction Stats [default] **"), "{stats}");
    assert!(stats.contains("Cumulative writes: 23 writes, 23 keys, 23 commit groups"), "{stats}");
    assert!(events.property("rocksdb.cfstats").unwrap().contains("** Compaction Stats [events] **"));
    let writes = db.map_property("rocksdb.dbstats").unwrap();
    assert_eq!(
        (writes["db.user_keys_written"].as_str(), writes["db.user_writes_with_wal"].as_str()),
        ("23", "23")
    );
    let tables = events.map_property("rocksdb.aggregated-table-properties").unwrap();
    assert_eq!(tables["num_entries"], "10");
    // A form that a property does not have, an unknown name, and one that says why it is not answered.
    assert_eq!((db.int_property("rocksdb.stats"), db.map_property(entries)), (None, None));
    assert_eq!(
        (db.aggregated_int_property("rocksdb.levelstats"), db.property("rocksdb.nothing")),
        (None, None)
    );
    assert_eq!(Db::check_property("rocksdb.nothing").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let why = Db::check_property("rocksdb.blob-cache-usage").unwrap_err();
    assert_eq!((why.kind(), db.property("rocksdb.blob-cache-usage")), (ErrorKind::NotSupported, None));
    assert!(Db::check_property("rocksdb.stats").is_ok());
}

/// The check let every number pass.
#[test]
fn a_property_of_a_level_that_no_family_can_have_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let set = "num_levels=64;level_compaction_dynamic_level_bytes=true";
    let deep = Db::builder(dir.path()).options(set).open().unwrap();
    let name = |level| format!("rocksdb.aggregated-table-properties-at-level{level}");
    for level in [0, 6, 63, 64, 99] {
        let checked = Db::check_property(&name(level));
        assert_eq!(checked.is_ok(), deep.property(&name(level)).is_some(), "{level}: {checked:?}");
    }
    let refused = Db::check_property("rocksdb.num-files-at-level64").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    // Temperatures are no levels.
    assert!(Db::check_property("rocksdb.live-sst-files-size-at-temperature99").is_ok());
}

#[test]
fn an_operation_tells_its_cost_and_a_read_its_way() {
    let dir = tempfile::tempdir().unwrap();
    let db = quiet(dir.path()).open().unwrap();
    for n in 0..100_u32 {
        db.put(n.to_be_bytes(), [7; 100]).unwrap();
    }
    db.compact().unwrap();
    for n in 0..10_u32 {
        db.delete(n.to_be_bytes()).unwrap();
    }
    db.put(50_u32.to_be_bytes(), b"new").unwrap();
    db.flush().unwrap();

    let (value, first) = db.perf_context(PerfLevel::EnableTime, || db.get(20_u32.to_be_bytes()).unwrap());
    let [misses, bytes, memtables] =
        [Metric::BlockCacheMissCount, Metric::GetReadBytes, Metric::GetFromMemtableCount]
            .map(|m| first.get(m));
    assert_eq!((value.unwrap().len(), misses >= 1, bytes, memtables), (100, true, 100, 1), "{first}");
    assert!(first.get(Metric::GetFromOutputFilesTime) > 0, "{first}");
    let (_, again) = db.perf_context(PerfLevel::EnableCount, || db.get(20_u32.to_be_bytes()).unwrap());
    assert_eq!(
        (again.get(Metric::BlockCacheMissCount), again.get(Metric::BlockReadCount)),
        (0, 0),
        "{again}"
    );
    assert_eq!(again.get(Metric::GetFromOutputFilesTime), 0, "no time at this level: {again}");
    let (count, scan) = db.perf_context(PerfLevel::EnableCount, || db.scan(..).count());
    // Ten tombstones and what lies under them; the older value of key 50.
    let skipped = [Metric::InternalDeleteSkippedCount, Metric::InternalKeySkippedCount].map(|m| scan.get(m));
    assert_eq!((count, skipped), (90, [20, 1]), "{scan}");
    let (_, nothing) = db.perf_context(PerfLevel::Disable, || db.get(20_u32.to_be_bytes()).unwrap());
    assert_eq!(nothing.to_string(), "");

    let told = db.explain_get(50_u32.to_be_bytes()).unwrap();
    assert_eq!((told.steps().len(), told.value_bytes()), (2, Some(3)), "{told}");
    let text = told.to_string();
    assert!(
        text.contains("value of 3 bytes at sequence 111")
            && text.contains("blocks: 1 from the cache, 0 read"),
        "{text}"
    );
    let gone = db.explain_get(3_u32.to_be_bytes()).unwrap();
    assert!(gone.value_bytes().is_none() && gone.to_string().contains("tombstone at sequence 104"), "{gone}");
    let scan = db.scan(0_u32.to_be_bytes()..60_u32.to_be_bytes());
    let told = scan.explain(u64::MAX).unwrap();
    assert_eq!(told.keys(), 50);
    assert!(told.to_string().contains("passed: 1 older versions, 20 deleted"), "{told}");
    assert!(scan.explain(7).unwrap().to_string().contains("shown: 7 keys"));
    let sizes = SizeOptions::new();
    let whole = db.default_family().approximate_sizes(&[([0; 4], [255; 4])], sizes).unwrap()[0];
    assert_eq!(db.int_property("rocksdb.live-sst-files-size").map(|live| live >= whole), Some(true));
}

/// What counting costs a get in memory: the levels of the statistics in turns, a few milliseconds each, the medians.
#[test]
fn what_counting_costs_a_get() {
    const KEYS: u64 = 100_000;
    const TURN: u64 = 2_000;
    let turns = if std::env::var_os("ASHLAR_HEAVY").is_some() { 1500 } else { 20 };
    let dir = tempfile::tempdir().unwrap();
    let counted = Arc::new(Statistics::new());
    let db = quiet(dir.path()).statistics(Arc::clone(&counted)).open().unwrap();
    for n in 0..KEYS {
        db.put(n.to_be_bytes(), [7; 100]).unwrap();
    }
    db.compact().unwrap();
    let levels = [
        StatsLevel::DisableAll,
        StatsLevel::ExceptHistogramOrTimers,
        StatsLevel::ExceptTimers,
        StatsLevel::ExceptDetailedTimers,
    ];
    let mut micros: [Vec<f64>; 5] = Default::default();
    let mut key = 1_u64;
    for turn in 0..turns {
        for at in 0..micros.len() {
            // No level is always the first behind the same other one.
            let at = (at + turn) % micros.len();
            counted.set_level(levels.get(at).copied().unwrap_or(StatsLevel::DisableAll));
            let perf = if at < levels.len() { PerfLevel::Disable } else { PerfLevel::EnableCount };
            let start = std::time::Instant::now();
            let (found, _) = db.perf_context(perf, || {
                (0..TURN)
                    .filter(|_| {
                        key = key
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        db.get(((key >> 33) % KEYS).to_be_bytes()).unwrap().is_some()
                    })
                    .count()
            });
            micros[at].push(start.elapsed().as_secs_f64() * 1e6 / TURN as f64);
            assert_eq!(found as u64, TURN);
        }
    }
    let medians = micros.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    let part = |at: usize| (medians[at] / medians[0] - 1.0) * 100.0;
    ashlar_testkit::report::figure(&format!(
        "a get of {:.3} us that counts nothing takes {:+.1} % with tickers, {:+.1} % with sizes, {:+.1} % with times, {:+.1} % with \
         the perf context counting; medians of {turns} turns",
        medians[0],
        part(1),
        part(2),
        part(3),
        part(4)
    ));
}

/// Joins operands, and notes how much memory the report gives to operands meanwhile.
#[derive(Debug, Default)]
struct Weighs {
    db: Mutex<Option<Db>>,
    operands: AtomicU64,
}

impl MergeOperator for Weighs {
    fn name(&self) -> &str {
        "Weighs"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let bytes =
            self.db.lock().unwrap().as_ref().map_or(0, |db| db.memory_report().of(MemoryClass::Operands));
        self.operands.fetch_max(bytes, Ordering::Relaxed);
        Ok(operands.concat())
    }
}

#[test]
fn operands_are_in_the_report_of_memory_while_a_read_folds_them() {
    const OPERANDS: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let weighs = Arc::new(Weighs::default());
    let db = quiet(dir.path()).default_family(|family| family.merge_operator(weighs.clone())).open().unwrap();
    (0..OPERANDS).for_each(|_| db.merge(b"k", [7; 1000]).unwrap());
    db.flush().unwrap();
    *weighs.db.lock().unwrap() = Some(db.clone());
    let least = OPERANDS as u64 * 1000;
    let told = || weighs.operands.swap(0, Ordering::Relaxed);
    assert_eq!(db.get(b"k").unwrap().unwrap().len(), OPERANDS * 1000);
    let by_get = told();
    assert_eq!(db.scan(..).map(|entry| entry.unwrap().1.len()).sum::<usize>(), OPERANDS * 1000);
    let by_scan = told();
    for bytes in [by_get, by_scan] {
        assert!((least..3 * least).contains(&bytes), "{bytes} of {least} bytes");
    }
    assert_eq!(db.memory_report().of(MemoryClass::Operands), 0);
    *weighs.db.lock().unwrap() = None;
}

#[test]
fn the_tables_that_versions_know_are_in_the_report_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let db = quiet(dir.path()).open().unwrap();
    let told = || db.memory_report().of(MemoryClass::Files);
    let family = told();
    assert!((1000..20_000).contains(&family), "{family} bytes for a family");
    let told = || told() - family;
    let long_key = |n: u8| [vec![n], vec![0; 10_000]].concat();
    for n in 0..20 {
        db.put(long_key(n), b"v").unwrap();
        db.flush().unwrap();
    }
    // Each table has a smallest and a largest key.
    let many = told();
    assert!((400_000..500_000).contains(&many), "{many} bytes for 20 tables");
    db.compact().unwrap();
    let few = told();
    assert!((20_000..30_000).contains(&few), "{few} bytes for one table");
}

#[test]
fn what_readers_copy_is_in_the_report_of_memory_while_they_have_it() {
    const LONG: usize = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let db = quiet(dir.path()).default_family(|family| family.blob_files(1000)).open().unwrap();
    let told = || usize::try_from(db.memory_report().of(MemoryClass::HeldValues)).unwrap();
    let key = |n: u8| [vec![7; LONG], vec![n]].concat();
    for flushed in [false, true] {
        db.put(b"k", vec![1; LONG]).unwrap();
        (0..20).for_each(|n| db.put(key(n), b"short").unwrap());
        if flushed {
            db.flush().unwrap();
        }
        let view = db.get(b"k").unwrap().unwrap();
        let twin = view.clone();
        assert_eq!((told(), view.len()), (LONG, LONG), "flushed: {flushed}");
        drop(view);
        assert_eq!(told(), LONG, "the clone holds the copy");
        assert_eq!(twin.into_vec(), vec![1; LONG]);
        assert_eq!(told(), 0);
        db.put(b"l", vec![2; LONG]).unwrap();
        let two = db.multi_get([&b"k"[..], b"l"]).unwrap();
        assert_eq!((told(), two.len()), (2 * LONG, 2));
        drop(two);

        let mut cursor = db.scan(..).cursor().unwrap();
        cursor.seek(key(10)).unwrap();
        assert!((LONG..5 * LONG).contains(&told()), "{} bytes for the target of a seek", told());
        cursor.prev().unwrap();
        assert!(told() >= 2 * LONG, "{} bytes for the target and the shown key", told());
        drop(cursor);
        assert_eq!(told(), 0);
    }
}

#[test]
fn cursors_are_in_the_report_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let db = quiet(dir.path()).open().unwrap();
    let told = || db.memory_report().of(MemoryClass::Cursors);
    assert_eq!(told(), 0);
    let open = || db.scan(..).cursor().unwrap();
    let first: Vec<_> = (0..10).map(|_| open()).collect();
    assert_eq!(told(), 10 * 4096);
    db.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    // The old ones read no table.
    let second: Vec<_> = (0..10).map(|_| open()).collect();
    assert!((20 * 4096..21 * 5000).contains(&told()), "{}", told());
    drop((first, second));
    assert_eq!(told(), 0);
}

#[test]
fn prepared_transactions_are_in_the_report_of_memory_until_they_are_decided_on() {
    const LONG: usize = 300_000;
    let dir = tempfile::tempdir().unwrap();
    let told = |db: &Db| usize::try_from(db.memory_report().of(MemoryClass::Prepared)).unwrap();
    let db = quiet(dir.path()).open().unwrap();
    for name in ["commits", "rolls back", "stays"] {
        let t = db.begin_with(TransactionOptions::new()).unwrap();
        t.set_name(name).unwrap();
        t.put(name, vec![7; LONG]).unwrap();
        t.prepare().unwrap();
    }
    let three = told(&db);
    assert!((3 * LONG..3 * LONG + 1000).contains(&three), "{three}");
    let by_name = |name: &str| db.transaction_by_name(name).unwrap().unwrap();
    by_name("commits").commit().unwrap();
    by_name("rolls back").rollback().unwrap();
    let one = told(&db);
    assert!((LONG..LONG + 1000).contains(&one), "{one}");
    db.close().unwrap();
    let db = quiet(dir.path()).open().unwrap();
    assert!((LONG..LONG + 1000).contains(&told(&db)), "{} after an open", told(&db));
    db.transaction_by_name("stays").unwrap().unwrap().commit().unwrap();
    assert_eq!(told(&db), 0);
}

/// Holds flushes back until the test drops its end.
struct HoldsFlushes(Mutex<Receiver<()>>);

impl EventListener for HoldsFlushes {
    fn on_event(&self, event: &Event) {
        if matches!(event, Event::FlushBegin(_)) {
            let _ = self.0.lock().unwrap().recv();
        }
    }
}

/// Regression: 48 threads that put values of 8 MiB had 400 MiB of copies under a cap of 16 MiB, and no class had them.
#[test]
fn a_long_value_that_waits_for_its_write_is_in_the_report_of_memory() {
    const LONG: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let (hold, release) = channel();
    let listener = Arc::new(HoldsFlushes(Mutex::new(release)));
    let db = quiet(dir.path()).memory(16 << 20).listener(listener).open().unwrap();
    let told = || db.memory_report().of(MemoryClass::Batches);
    std::thread::scope(|scope| {
        let hold = hold;
        let waits = WriteOptions::new().timeout(Duration::from_millis(100));
        // Each waits a moment, and fails once the memtables are full.
        while db.writing(waits).put(b"k", vec![7; LONG]).is_ok() {}
        let writer = scope.spawn(|| db.put(b"k", vec![8; LONG]));
        while told() < LONG as u64 {
            std::thread::yield_now();
        }
        assert!(told() < LONG as u64 + 100, "{}", told());
        drop(hold);
        writer.join().unwrap().unwrap();
    });
    assert_eq!(told(), 0);
}
