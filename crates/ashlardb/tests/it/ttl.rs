//! Values with a time to live: hidden at once by every read, removed by compactions, in RocksDB's bytes.

use crate::store::{copy, files, listing};
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_testkit::golden::golden;
use ashlar_testkit::judge::{JudgeError, Opening, place};
use ashlar_testkit::ops::Op;
use ashlar_testkit::oracle::first_difference;
use ashlar_testkit::{Judge, JudgeVersion, Rng, report};
use ashlardb::{
    Builder, CompactRangeOptions, CompactionFilter, Db, Decision, ErrorKind, Family, FormatLevel,
    IngestOptions, MayExist, Read as _, SstWriter, StringAppend, UInt64Add, Write as _, WriteBatch,
    WriteOptions,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const NOW: u64 = 1_700_000_000;
const MINUTE: Duration = Duration::from_secs(60);

fn at(sim: &SimEnv, seconds: u64) {
    sim.clock().set_unix_micros((NOW + seconds) * 1_000_000);
}

fn on(sim: &SimEnv) -> Builder {
    Db::builder("/db").env(sim.env()).options("disable_auto_compactions=true")
}

fn joining(f: ashlardb::FamilyBuilder) -> ashlardb::FamilyBuilder {
    f.merge_operator(Arc::new(StringAppend::new(",")))
}

fn text(read: &impl ashlardb::Read) -> String {
    let lines = listing(read.scan(..));
    let mut back = listing(read.scan(..).rev());
    back.reverse();
    assert_eq!(lines, back, "backwards");
    let line = |(k, v): &(Vec<u8>, Vec<u8>)| format!("{}={}", k.escape_ascii(), v.escape_ascii());
    lines.iter().map(line).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_read_hides_what_is_over_and_shows_values_without_times() {
    for stored in ["memory", "tables", "blobs"] {
        let sim = SimEnv::new(3);
        at(&sim, 0);
        let blobs = |f: ashlardb::FamilyBuilder| if stored == "blobs" { f.blob_files(1) } else { f };
        let db = on(&sim).ttl(MINUTE).default_family(|f| joining(blobs(f))).open().unwrap();
        let long = "v".repeat(500);
        for key in ["a", "c", "e"] {
            db.put(key, "old").unwrap();
        }
        at(&sim, 40);
        db.put("b", "new").unwrap();
        db.put("d", &long).unwrap();
        db.put("f", "").unwrap();
        if stored != "memory" {
            db.flush().unwrap();
        }
        let snapshot = db.snapshot().unwrap();
        assert_eq!(text(&db), format!("a=old b=new c=old d={long} e=old f="));
        assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"old"[..]));
        at(&sim, 61);
        let left = format!("b=new d={long} f=");
        assert_eq!(text(&db), left, "{stored}");
        assert_eq!(text(&snapshot), left);
        assert!(db.get("a").unwrap().is_none() && snapshot.get("c").unwrap().is_none());
        assert_eq!(db.get("f").unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(db.get("d").unwrap().unwrap(), long.as_bytes());
        let many = db.multi_get(["a", "b", "d", "e"]).unwrap();
        let many: Vec<_> = many.iter().map(|value| value.as_ref().map(|view| view.len())).collect();
        assert_eq!(many, [None, Some(3), Some(500), None]);
        assert!(db.get_entity("a").unwrap().is_none());
        assert_eq!(db.get_entity("b").unwrap().unwrap().default_column(), Some(&b"new"[..]));
        match db.key_may_exist("b").unwrap() {
            MayExist::Value(value) => assert_eq!(value, b"new"),
            other => assert_eq!(other, MayExist::Maybe),
        }
        let mut cursor = db.scan(..).cursor().unwrap();
        cursor.seek("c").unwrap();
        assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"d"[..]));
        cursor.seek_for_prev("c").unwrap();
        assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"b"[..]));
        cursor.prev().unwrap();
        assert_eq!(cursor.entry().map(|(key, _)| key), None);
        let transaction = db.begin().unwrap();
        assert!(transaction.get("a").unwrap().is_none());
        assert_eq!(transaction.get("b").unwrap().as_deref(), Some(&b"new"[..]));
        transaction.put("a", "again").unwrap();
        transaction.merge("b", "er").unwrap();
        assert_eq!(text(&transaction), format!("a=again b=new,er d={long} f="));
        transaction.commit().unwrap();
        let batch = db.indexed_batch();
        batch.merge("a", "pending").unwrap();
        assert_eq!(batch.get("a").unwrap().as_deref(), Some(&b"again,pending"[..]));
        db.flush().unwrap();
        assert_eq!(text(&db), format!("a=again b=new,er d={long} f="));
        at(&sim, 122);
        assert_eq!(text(&db), "");
        drop((cursor, snapshot));
        db.compact().unwrap();
        assert_eq!(db.int_property("rocksdb.estimate-num-keys"), Some(0), "{stored}");
        assert!(db.ticker("rocksdb.compaction.key.drop.user").unwrap() >= 3);
        db.close().unwrap();
    }
}

#[test]
fn a_merge_renews_its_key() {
    for compacts in [false, true] {
        let sim = SimEnv::new(4);
        at(&sim, 0);
        let db = on(&sim).ttl(MINUTE).default_family(joining).open().unwrap();
        db.put("k", "1").unwrap();
        at(&sim, 50);
        db.merge("k", "2").unwrap();
        for seconds in [61, 90, 110] {
            at(&sim, seconds);
            if compacts {
                db.compact().unwrap();
            }
            assert_eq!(text(&db), "k=1,2");
        }
        at(&sim, 111);
        db.flush().unwrap();
        assert_eq!(text(&db), "");
        db.merge("k", "3").unwrap();
        assert_eq!(text(&db), "k=3", "a merge revives nothing");
    }
}

#[test]
fn the_users_filter_sees_values_without_times() {
    #[derive(Debug)]
    struct Shortens;
    impl CompactionFilter for Shortens {
        fn name(&self) -> &str {
            "test.Shortens"
        }
        fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
            match value {
                b"gone" => Decision::Remove,
                [first, _, ..] => Decision::Change(vec![*first]),
                _ => Decision::Keep,
            }
        }
    }
    let sim = SimEnv::new(5);
    at(&sim, 0);
    let open =
        || on(&sim).ttl(MINUTE).default_family(|f| f.compaction_filter(Arc::new(Shortens))).open().unwrap();
    let db = open();
    db.put("a", "gone").unwrap();
    db.put("b", "long").unwrap();
    at(&sim, 30);
    db.put("c", "x").unwrap();
    db.compact().unwrap();
    assert_eq!(text(&db), "b=l c=x");
    at(&sim, 61);
    assert_eq!(text(&db), "c=x", "a changed value keeps its time");
    db.close().unwrap();
    let db = open();
    assert!(db.recovery().unserved.is_empty(), "{}", db.recovery());
    db.compact().unwrap();
    assert_eq!(db.int_property("rocksdb.estimate-num-keys"), Some(1));
}

#[test]
fn an_open_must_know_whether_values_have_times() {
    let sim = SimEnv::new(6);
    at(&sim, 0);
    let db = on(&sim).ttl(MINUTE).open().unwrap();
    db.put("k", "v").unwrap();
    db.create_family("made").unwrap().put("k", "v").unwrap();
    db.close().unwrap();
    let db = on(&sim).open().unwrap();
    assert!(
        db.recovery().read_only.iter().any(|why| why.contains("open it with ttl()")),
        "{}",
        db.recovery()
    );
    assert_eq!(db.put("k", "w").unwrap_err().kind(), ErrorKind::NotSupported);
    assert_eq!(db.get("k").unwrap().unwrap().len(), 1 + 4);
    db.close().unwrap();
    let db = on(&sim).ttl(MINUTE).read_only(true).open().unwrap();
    assert_eq!(text(&db), "k=v");
    at(&sim, 61);
    assert_eq!(text(&db), "");
    db.close().unwrap();
    let db = on(&sim).ttl(Duration::ZERO).open().unwrap();
    at(&sim, 1_000_000);
    assert_eq!((text(&db), text(&db.family("made").unwrap())), ("k=v".to_owned(), "k=v".to_owned()));
    db.put("k", "w").unwrap();
    db.compact().unwrap();
    assert_eq!(text(&db), "k=w");
    db.close().unwrap();

    let plain = SimEnv::new(7);
    at(&plain, 0);
    on(&plain).open().unwrap().put("k", "v").unwrap();
    let e = on(&plain).ttl(MINUTE).open().unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("have no write times"), "{e}");
    // A new family beside it may have one.
    let db = on(&plain).family("sessions", |f| f.ttl(MINUTE)).open().unwrap();
    let sessions = db.family("sessions").unwrap();
    sessions.put("s", "1").unwrap();
    at(&plain, 61);
    assert_eq!((text(&db), text(&sessions)), ("k=v".to_owned(), String::new()));
    db.close().unwrap();
    let db = on(&plain).family("sessions", |f| f.ttl(MINUTE)).open().unwrap();
    assert!(db.recovery().read_only.is_empty(), "{}", db.recovery());
    assert_eq!(text(&db), "k=v");
}

/// A crash at any moment leaves no family whose values have times that the next open does not know of.
#[test]
fn a_family_made_with_a_time_to_live_is_known_after_a_crash() {
    let sim = SimEnv::new(10);
    at(&sim, 0);
    let db = on(&sim).open().unwrap();
    db.put("k", "v").unwrap();
    db.sync().unwrap();
    let from = sim.calls_of(CallClass::Change);
    for call in 1..=200 {
        sim.photograph_at(from + call, CrashMode::DROP_ALL);
        sim.photograph_at(from + call, CrashMode::KILL);
    }
    let made = db.create_family_with("made", |f| f.ttl(MINUTE)).unwrap();
    db.writing(WriteOptions::synced()).put("k2", "v").unwrap();
    made.writing(WriteOptions::synced()).put("s", "1").unwrap();
    db.flush().unwrap();
    at(&sim, 61);
    assert_eq!((text(&db), text(&made)), ("k=v k2=v".to_owned(), String::new()));
    let (mut with, mut without) = (0, 0);
    for (call, mode, crashed) in sim.photographs() {
        let db = Db::builder("/db").env(crashed.env()).open().unwrap();
        match db.family("made") {
            Ok(made) => {
                // Nothing was written to it before the OPTIONS file had its settings.
                let known = db.recovery().read_only.iter().any(|why| why.contains("family \"made\""));
                let is_empty = made.scan(..).next().is_none();
                assert!(known || is_empty, "call {call}, {mode:?}: {}", db.recovery());
                with += usize::from(made.get("s").unwrap().is_some());
            }
            Err(_) => {
                assert!(db.recovery().read_only.is_empty(), "call {call}, {mode:?}: {}", db.recovery());
                without += 1;
            }
        }
    }
    assert!(with > 0 && without > 0, "{with} with, {without} without");
}

/// The OPTIONS file has the operator inside the one of the TTL wrapper.
#[test]
fn the_stored_operator_is_found_and_no_other_is_taken() {
    let sim = SimEnv::new(9);
    at(&sim, 0);
    let db = on(&sim).ttl(MINUTE).default_family(joining).open().unwrap();
    db.put("k", "1").unwrap();
    db.merge("k", "2").unwrap();
    db.close().unwrap();
    let db = on(&sim).ttl(MINUTE).open().unwrap();
    assert!(db.recovery().unserved.is_empty(), "{}", db.recovery());
    db.merge("k", "3").unwrap();
    assert_eq!(text(&db), "k=1,2,3");
    db.close().unwrap();
    let other = on(&sim).ttl(MINUTE).default_family(|f| f.merge_operator(Arc::new(UInt64Add)));
    assert_eq!(other.open().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn what_has_no_place_for_a_time_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path().join("db")).ttl(MINUTE).open().unwrap();
    let e = db.put_entity("k", &[("column", "v")]).unwrap_err();
    assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("whose values expire"), "{e}");
    let path = dir.path().join("file.sst");
    let mut writer = SstWriter::create(&path).unwrap();
    writer.put("k", "v").unwrap();
    writer.finish().unwrap();
    let e = db.ingest(&[&path], IngestOptions::new()).unwrap_err();
    assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("whose values expire"), "{e}");
    assert_eq!(text(&db), "");
}

/// A value that has no time is `Corruption` in every read, as in RocksDB. No OPTIONS file says that there are such values.
#[test]
fn a_value_without_a_time_is_corruption() {
    let sim = SimEnv::new(8);
    at(&sim, 0);
    let db = on(&sim).open().unwrap();
    for (key, value) in [("k1", "abc"), ("k2", "ends in zeros\0\0\0\0")] {
        db.put(key, value).unwrap();
    }
    db.close().unwrap();
    for entry in sim.env().fs.list(Path::new("/db")).unwrap() {
        if entry.name.starts_with("OPTIONS") {
            sim.env().fs.remove(&Path::new("/db").join(entry.name)).unwrap();
        }
    }
    let db = on(&sim).ttl(MINUTE).open().unwrap();
    for _ in 0..2 {
        for key in ["k1", "k2"] {
            let e = db.get(key).unwrap_err();
            assert!(e.is_corruption() && e.to_string().contains(key), "{e}");
        }
        assert!(db.multi_get(["k1"]).is_err());
        assert!(db.scan(..).next().unwrap().unwrap_err().is_corruption());
        assert!(db.scan(..).next_back().unwrap().unwrap_err().is_corruption());
        // A compaction keeps it.
        db.compact().unwrap();
    }
    // What could not be read again is not written, nor what would be over at once: times have 31 bits.
    for seconds in [1, (1 << 31) + 5] {
        sim.clock().set_unix_micros(seconds * 1_000_000);
        let e = db.put("k3", "v").unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("clock"), "{e}");
    }
}

#[test]
fn directories_of_rocksdbs_wrapper_take_writes() {
    for (name, keys) in [("rocksdb-11.8.1/ttl", 25), ("rocksdb-7.8.3/ttl", 2)] {
        let golden = golden(name).unwrap_or_else(|skip| panic!("{skip}"));
        let db = Db::builder(golden.path()).ttl(Duration::ZERO).open().unwrap();
        assert!(db.recovery().read_only.is_empty(), "{}", db.recovery());
        let before = listing(db.scan(..));
        assert_eq!(before.len(), keys);
        db.put("ours", "too").unwrap();
        db.compact().unwrap();
        assert_eq!(listing(db.scan(..)).len(), keys + 1);
        db.close().unwrap();
        // An hour is long over for what they wrote in the past.
        let db = Db::builder(golden.path()).ttl(Duration::from_secs(3600)).open().unwrap();
        assert!(db.get("ours").unwrap().is_some());
        db.close().unwrap();
    }
}

fn ldb(program: &Path, dir: &Path, words: &[&str]) -> String {
    let db = format!("--db={}", dir.display());
    let done = Command::new(program).args([&*db, "--ttl"]).args(words).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    // On every existing directory the tool does its work, and then fails with this complaint.
    let done = done.status.success() || err.contains("doesn't support TTL DB with multiple column families");
    assert!(done, "{words:?}: {out}{err}");
    out.into_owned()
}

/// RocksDB's tools open our directory with `--ttl`, and we open theirs.
#[test]
fn rocksdbs_wrapper_reads_ours_and_we_read_its_values() {
    let program: PathBuf = match place("ldb") {
        Ok(program) => program,
        Err(skip) => return skip.announce("rocksdbs_wrapper_reads_ours_and_we_read_its_values"),
    };
    let dir = tempfile::tempdir().unwrap();
    let open = |dir: &Path| {
        let builder = Db::builder(dir).format_level(FormatLevel::V7_8).ttl(Duration::from_secs(3600));
        builder.default_family(joining).open().unwrap()
    };
    let db = open(dir.path());
    for n in 0..50 {
        db.put(format!("k{n:02}"), format!("value {n}")).unwrap();
    }
    db.compact().unwrap();
    db.put("logged", "too").unwrap();
    db.merge("k00", "more").unwrap();
    db.compact().unwrap();
    let ours = listing(db.scan(..));
    db.close().unwrap();
    let theirs = copy(dir.path());
    let found = ldb(&program, theirs.path(), &["scan"]);
    let lines: Vec<&str> =
        found.lines().filter(|line| line.contains(" : ") || line.contains(" ==> ")).collect();
    assert_eq!(lines.len(), ours.len(), "{found}");
    for ((key, value), line) in ours.iter().zip(lines) {
        let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        assert!(line.starts_with(&*key) && line.ends_with(&*value), "{key}={value}: {line}");
    }
    // Both versions load our OPTIONS file, and see each value with its time.
    for version in JudgeVersion::ALL {
        let mut judge = Judge::spawn(version).unwrap();
        let stored = copy(dir.path());
        judge.open(stored.path(), Opening::Stored, "").unwrap_or_else(|e| panic!("{}: {e}", version.name()));
        let raw = judge.dump("default").unwrap();
        assert_eq!(raw.len(), ours.len());
        for ((key, value), (same, plain)) in raw.iter().zip(&ours) {
            assert!(key == same && value[..value.len() - 4] == plain[..], "{}", version.name());
        }
        judge.close().unwrap();
        // Without its wrapper, RocksDB stores no name of it. Then only the caller can say that values have times.
        for name in
            files(stored.path()).into_keys().filter(|name| name.to_string_lossy().starts_with("OPTIONS"))
        {
            std::fs::remove_file(stored.path().join(name)).unwrap();
        }
        let db = open(stored.path());
        assert_eq!(listing(db.scan(..)), ours, "after {}", version.name());
        db.close().unwrap();
    }
    let theirs = tempfile::tempdir().unwrap();
    ldb(&program, theirs.path(), &["--create_if_missing", "put", "theirs", "value"]);
    let db = open(theirs.path());
    assert!(db.recovery().read_only.is_empty(), "{}", db.recovery());
    assert_eq!(text(&db), "theirs=value");
}

/// A key of the model: its value, and the time of its newest part.
type Modelled = BTreeMap<Vec<u8>, (Vec<u8>, i64)>;

fn shown(model: &Modelled, ttl: i64, now: i64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let live = model.iter().filter(|(_, (_, time))| time + ttl >= now);
    live.map(|(key, (value, _))| (key.clone(), value.clone())).collect()
}

#[test]
fn histories_read_as_the_model() {
    let mut compared = 0;
    for seed in 0..report::scale(12, 200) as u64 {
        let (sim, mut rng, mut now) = (SimEnv::new(seed), Rng::new(seed), 0);
        at(&sim, 0);
        let ttl = 30;
        let given = |f: ashlardb::FamilyBuilder| {
            let f = joining(f).ttl(Duration::from_secs(30));
            if seed % 2 == 0 { f.blob_files(20) } else { f }
        };
        let open = || on(&sim).default_family(given).open().unwrap();
        let (mut db, mut model) = (open(), Modelled::new());
        let mut snapshots: Vec<(ashlardb::Snapshot, Modelled)> = vec![];
        for step in 0..600 {
            let key = format!("k{:02}", rng.below(30)).into_bytes();
            let value = format!("v{step}").repeat(if rng.percent(20) { 8 } else { 1 }).into_bytes();
            match rng.below(40) {
                0 => {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                1..=8 => {
                    db.merge(&key, &value).unwrap();
                    let before = model.remove(&key).filter(|(_, time)| time + ttl >= now);
                    let before_time = before.as_ref().map(|(_, time)| *time);
                    let merged = before.map_or(value.clone(), |(before, _)| [before, value].join(&b','));
                    let newest = before_time.map_or(now, |time| now.max(time));
                    model.insert(key, (merged, newest));
                }
                9..=13 => {
                    now += rng.below(6) as i64;
                    at(&sim, now.unsigned_abs());
                }
                14 => db.flush().unwrap(),
                15 => db.compact().unwrap(),
                16 if snapshots.len() < 3 => snapshots.push((db.snapshot().unwrap(), model.clone())),
                17 if !snapshots.is_empty() => drop(snapshots.remove(0)),
                18 if rng.percent(20) => {
                    snapshots.clear();
                    db.close().unwrap();
                    db = open();
                }
                19..=24 => {
                    let own = rng.between(1, 80);
                    db.put_with_ttl(&key, &value, Duration::from_secs(own as u64)).unwrap();
                    model.insert(key, (value, now + own as i64 - ttl));
                }
                _ => {
                    db.put(&key, &value).unwrap();
                    model.insert(key, (value, now));
                }
            }
            if step % 10 == 0 {
                compare(&db.default_family(), &shown(&model, ttl, now), &format!("seed {seed}, step {step}"));
                for (snapshot, model) in &snapshots {
                    assert_eq!(
                        listing(snapshot.scan(..)),
                        shown(model, ttl, now),
                        "seed {seed}, step {step}"
                    );
                }
                compared += 1;
            }
        }
    }
    report::figure(&format!("ttl: {compared} states as the model"));
}

fn compare(family: &Family, expected: &[(Vec<u8>, Vec<u8>)], what: &str) {
    assert_eq!(first_difference(&listing(family.scan(..)), expected), None, "{what}");
    let mut back = listing(family.scan(..).rev());
    back.reverse();
    assert_eq!(back, expected, "{what}, backwards");
    for n in 0..30 {
        let key = format!("k{n:02}").into_bytes();
        let want = expected.iter().find(|(k, _)| *k == key).map(|(_, value)| &value[..]);
        assert_eq!(family.get(&key).unwrap().as_deref(), want, "{what}: k{n:02}");
    }
}

/// Each value ends at its own time, whichever way it was written, and after a reopen and a compaction too.
#[test]
fn a_put_may_have_a_time_to_live_of_its_own() {
    let sim = SimEnv::new(42);
    at(&sim, 0);
    let open =
        || on(&sim).family("days", |f| joining(f).ttl(10 * MINUTE)).family("plain", |f| f).open().unwrap();
    let mut db = open();
    let (days, plain) = (db.family("days").unwrap(), db.family("plain").unwrap());
    days.put("a plain", "600").unwrap();
    days.put_with_ttl("b", "60", MINUTE).unwrap();
    days.writing(WriteOptions::synced()).put_with_ttl("c", "61", Duration::from_millis(60_001)).unwrap();
    let batch = WriteBatch::protected();
    batch.family(&days).put_with_ttl("d", "120", 2 * MINUTE).unwrap();
    batch.family(&plain).put_entity("row", &[("column", "beside")]).unwrap();
    batch.put_log_data("beside").unwrap();
    db.write(WriteBatch::from_data(&batch.data().unwrap()).unwrap()).unwrap();
    at(&sim, 30);
    let transaction = db.begin().unwrap();
    transaction.family(&days).put_with_ttl("e", "30 + 60", MINUTE).unwrap();
    assert_eq!(transaction.family(&days).get("e").unwrap().as_deref(), Some(&b"30 + 60"[..]));
    let indexed = db.indexed_batch();
    indexed.family(&days).put_with_ttl("f", "30 + 1200", 20 * MINUTE).unwrap();
    assert_eq!(indexed.family(&days).get("f").unwrap().as_deref(), Some(&b"30 + 1200"[..]));
    transaction.commit().unwrap();
    indexed.write().unwrap();
    days.put_with_ttl("g", "short", MINUTE).unwrap();
    days.merge("g", "renewed").unwrap();
    days.put_with_ttl("h", "long", 21 * MINUTE).unwrap();
    days.merge("h", "still").unwrap();
    let ends =
        [("b", 60), ("c", 61), ("e", 90), ("d", 120), ("a plain", 600), ("g", 630), ("f", 1230), ("h", 1290)];
    for (n, (_, end)) in ends.iter().enumerate() {
        let days = db.family("days").unwrap();
        let shown = || listing(days.scan(..)).into_iter().map(|(key, _)| String::from_utf8(key).unwrap());
        let left =
            |from: u64| ends.iter().filter(move |(_, end)| *end >= from).map(|(key, _)| (*key).to_owned());
        for seconds in [*end, *end + 1] {
            at(&sim, seconds);
            let mut expected: Vec<String> = left(seconds).collect();
            expected.sort();
            assert_eq!(shown().collect::<Vec<_>>(), expected, "{seconds}");
        }
        match n % 3 {
            0 => days.compact_range(.., CompactRangeOptions::new()).unwrap(),
            1 => days.flush().unwrap(),
            _ => {
                db.close().unwrap();
                db = open();
            }
        }
    }
    let days = db.family("days").unwrap();
    days.compact_range(.., CompactRangeOptions::new()).unwrap();
    assert_eq!(days.int_property("rocksdb.estimate-num-keys"), Some(0));
}

/// A value with a long life of its own, then operands whose lives end before the next one is written: all of them count, whether
/// or not a compaction has combined some of them.
#[test]
fn operands_that_are_over_leave_a_value_that_lives_longer() {
    for compacts in [false, true] {
        let sim = SimEnv::new(44);
        at(&sim, 0);
        let db = on(&sim).ttl(MINUTE).default_family(joining).open().unwrap();
        db.put_with_ttl("k", "long", 10 * MINUTE).unwrap();
        for (second, operand) in [(10, "a"), (200, "b"), (400, "c")] {
            at(&sim, second);
            db.merge("k", operand).unwrap();
            if compacts {
                db.compact().unwrap();
            }
        }
        at(&sim, 600);
        assert_eq!(text(&db), "k=long,a,b,c");
        at(&sim, 601);
        assert_eq!(text(&db), "");
    }
}

#[test]
fn a_time_to_live_that_no_value_can_have_is_refused() {
    let sim = SimEnv::new(43);
    at(&sim, 0);
    let years = |n: u64| Duration::from_secs(n * 365 * 24 * 3600);
    let db = on(&sim).family("days", |f| f.ttl(MINUTE)).family("ages", |f| f.ttl(years(60))).open().unwrap();
    let never = db.create_family_with("never", |f| f.ttl(Duration::ZERO)).unwrap();
    let (days, ages) = (db.family("days").unwrap(), db.family("ages").unwrap());
    let refused = |done: ashlardb::Result<()>, what: &str| {
        let e = done.unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(what), "{e}");
    };
    refused(db.put_with_ttl("k", "v", MINUTE), "\"default\", whose values never expire");
    refused(never.put_with_ttl("k", "v", MINUTE), "\"never\", whose values never expire");
    refused(days.put_with_ttl("k", "v", Duration::ZERO), "a time to live of 0");
    refused(days.put_with_ttl("k", "v", Duration::MAX), "billion years");
    refused(days.put_with_ttl("k", "v", years(60)), "January 2038");
    refused(ages.put_with_ttl("k", "v", MINUTE), "May 2013");
    let transaction = db.begin().unwrap();
    transaction.put_with_ttl("k", "v", MINUTE).unwrap();
    refused(transaction.commit(), "\"default\", whose values never expire");
    let batch = WriteBatch::new();
    batch.family(&days).put("k", "v").unwrap();
    batch.put_with_ttl("k", "v", MINUTE).unwrap();
    refused(db.write(&batch), "\"default\", whose values never expire");
    assert_eq!(
        (batch.len(), text(&db), text(&days)),
        (2, String::new(), String::new()),
        "nothing of it was written"
    );
}

/// RocksDB's wrapper removes each value at its own end, as we do.
#[test]
fn rocksdb_removes_values_at_their_own_end() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).format_level(FormatLevel::V7_8).ttl(60 * MINUTE).open().unwrap();
    db.put_with_ttl("second", "v", Duration::from_secs(1)).unwrap();
    db.put_with_ttl("day", "v", 24 * 60 * MINUTE).unwrap();
    db.put("hour", "v").unwrap();
    assert_eq!(text(&db), "day=v hour=v second=v");
    db.compact().unwrap();
    db.close().unwrap();
    std::thread::sleep(Duration::from_millis(2_100));
    for version in JudgeVersion::ALL {
        let mut judge = match Judge::spawn(version) {
            Ok(judge) => judge,
            Err(JudgeError::Skip(skip)) => return skip.announce("rocksdb_removes_values_at_their_own_end"),
            Err(e) => panic!("{e}"),
        };
        let stored = copy(dir.path());
        ["with ttl 3600", "with family default"].iter().for_each(|line| judge.prepare(line).unwrap());
        judge.open(stored.path(), Opening::Existing, "").unwrap();
        judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
        let keys: Vec<_> = judge.dump("default").unwrap().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"day".to_vec(), b"hour".to_vec()], "{}", version.name());
        judge.close().unwrap();
    }
}

/// A time to live of `default` holds for `default`: another family of the builder has none, at its first open as at the next.
#[test]
fn a_named_family_has_no_time_to_live_of_defaults() {
    let sim = SimEnv::new(41);
    at(&sim, 0);
    let open = || on(&sim).default_family(|f| f.ttl(MINUTE)).family("f", |f| f.write_buffer(1 << 20)).open();
    for round in 0..2 {
        let db = open().unwrap();
        let f = db.family("f").unwrap();
        assert_eq!(f.get("k").unwrap().is_some(), round == 1);
        let g = if round == 0 { db.create_family("g") } else { db.family("g") }.unwrap();
        g.put("k", "v").unwrap();
        f.put("k", "v").unwrap();
        db.put("k", "v").unwrap();
        at(&sim, 100 * (round + 1));
        assert_eq!((f.get("k").unwrap().as_deref(), db.get("k").unwrap()), (Some(&b"v"[..]), None));
        db.close().unwrap();
    }
}
