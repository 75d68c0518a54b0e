//! Files that are written outside a database and taken into it, held against a model, beside writers, readers and compactions.

use ashlar_testkit::Rng;
use ashlardb::options::Order;
use ashlardb::prelude::*;
use ashlardb::{CompactRangeOptions, Env, IngestMode, IngestOptions, Result, SstWriter, StringAppend};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small tables on several levels, and merges that append.
fn open(env: &Env, reverse: bool) -> Db {
    let builder = Db::builder("/db").env(env.clone()).default_family(move |f| {
        let f = f.merge_operator(Arc::new(StringAppend::new(","))).tune(|family| {
            family.write_buffer_bytes = 64 << 10;
            family.table.block_size = 512;
            family.compaction.target_file_bytes = 8 << 10;
            family.compaction.base_level_bytes = 16 << 10;
            family.compaction.l0_trigger = 3;
        });
        if reverse { f.reverse_order() } else { f }
    });
    builder.open().unwrap()
}

fn key(n: usize) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

/// What one step of a history changes.
#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

fn apply(map: &mut Map, reverse: bool, change: &Change) {
    match change {
        Change::Put(key, value) => drop(map.insert(key.clone(), value.clone())),
        Change::Delete(key) => drop(map.remove(key)),
        Change::DeleteRange(begin, end) => map.retain(|key, _| match reverse {
            false => !(begin..end).contains(&key),
            true => !(key <= begin && key > end),
        }),
        Change::Merge(key, operand) => {
            let value = map.entry(key.clone()).or_default();
            if !value.is_empty() {
                value.push(b',');
            }
            value.extend_from_slice(operand);
        }
    }
}

fn draw(rng: &mut Rng, reverse: bool, keys: usize) -> Change {
    let at = rng.below(keys);
    let value = format!("value {} ", rng.next_u64()).repeat(1 + rng.below(6)).into_bytes();
    match rng.below(10) {
        0..6 => Change::Put(key(at), value),
        6 | 7 => Change::Merge(key(at), b"m".to_vec()),
        8 => Change::Delete(key(at)),
        _ => {
            let (low, high) = (key(at), key(at + rng.below(keys / 10)));
            if reverse { Change::DeleteRange(high, low) } else { Change::DeleteRange(low, high) }
        }
    }
}

/// Writes a file with changes near each other, and answers them in the order in which they count.
fn write_file(db: &Db, path: &Path, rng: &mut Rng, reverse: bool, keys: usize) -> Vec<Change> {
    let (from, count) = (rng.below(keys), 1 + rng.below(keys / 4));
    let mut points = BTreeMap::new();
    for _ in 0..1 + rng.below(30) {
        match draw(rng, reverse, count) {
            Change::DeleteRange(..) => {}
            change @ (Change::Put(..) | Change::Merge(..) | Change::Delete(..)) => {
                let at = from + rng.below(count);
                let change = match change {
                    Change::Put(_, value) => Change::Put(key(at), value),
                    Change::Merge(_, operand) => Change::Merge(key(at), operand),
                    _ => Change::Delete(key(at)),
                };
                points.insert(key(at), change);
            }
        }
    }
    let mut ranges = Vec::new();
    for _ in 0..rng.below(3) {
        let low = from + rng.below(count);
        let (low, high) = (key(low), key(low + 1 + rng.below(count)));
        ranges.push(if reverse { Change::DeleteRange(high, low) } else { Change::DeleteRange(low, high) });
    }
    let mut points: Vec<Change> = points.into_values().collect();
    if reverse {
        points.reverse();
    }
    if points.is_empty() && ranges.is_empty() {
        points.push(Change::Put(key(from), b"alone".to_vec()));
    }
    let mut writer = db.default_family().sst_writer(path).unwrap();
    // Range deletions of a file hide no key of the file, so they count first.
    let all: Vec<Change> = ranges.into_iter().chain(points).collect();
    all.iter().for_each(|change| add(&mut writer, change).unwrap());
    writer.finish().unwrap();
    all
}

fn add(writer: &mut SstWriter, change: &Change) -> Result<()> {
    match change {
        Change::Put(key, value) => writer.put(key, value),
        Change::Merge(key, operand) => writer.merge(key, operand),
        Change::Delete(key) => writer.delete(key),
        Change::DeleteRange(begin, end) => writer.delete_range(begin, end),
    }
}

fn write(db: &Db, change: &Change) {
    match change {
        Change::Put(key, value) => db.put(key, value),
        Change::Merge(key, operand) => db.merge(key, operand),
        Change::Delete(key) => db.delete(key),
        Change::DeleteRange(begin, end) => db.delete_range(begin, end),
    }
    .unwrap();
}

fn listing<'a>(scan: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + 'a) -> Map {
    scan.map(|entry| entry.unwrap()).collect()
}

fn all_of(reader: &impl ashlardb::Read) -> Map {
    listing(reader.scan(..).map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec()))))
}

fn expect(found: &Map, expected: &Map, context: &str) {
    let differs = |(key, value): &(&Vec<u8>, &Vec<u8>)| expected.get(*key) != Some(*value);
    let wrong = found.iter().find(differs).map(|(key, _)| key.clone());
    let missing = expected.keys().find(|key| !found.contains_key(*key)).cloned();
    let shown = |key: Option<Vec<u8>>| key.map(|key| String::from_utf8_lossy(&key).into_owned());
    assert!(found == expected, "{context}: wrong {:?}, missing {:?}", shown(wrong), shown(missing));
}

fn history(seed: u64) {
    let mut rng = Rng::new(seed);
    let (reverse, keys) = (seed % 3 == 2, 200 + rng.below(400));
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/out")).unwrap();
    let mut db = open(&env, reverse);
    let mut model = Map::new();
    let mut snapshots: Vec<(Snapshot, Map)> = Vec::new();
    let mut files = 0;
    for step in 0..120 {
        let context = format!("seed {seed}, step {step}");
        match rng.below(12) {
            0..4 => {
                for _ in 0..rng.below(60) {
                    let change = draw(&mut rng, reverse, keys);
                    write(&db, &change);
                    apply(&mut model, reverse, &change);
                }
            }
            4..8 => {
                let mut paths = Vec::new();
                for _ in 0..1 + rng.below(3) {
                    files += 1;
                    let path = PathBuf::from(format!("/out/{files}.sst"));
                    let changes = write_file(&db, &path, &mut rng, reverse, keys);
                    changes.iter().for_each(|change| apply(&mut model, reverse, change));
                    paths.push(path);
                }
                let modes = [IngestMode::Link, IngestMode::Copy, IngestMode::Move];
                let mode = modes[rng.below(3)];
                let options = IngestOptions::new().mode(mode).verify(rng.below(2) == 0);
                let mut cursor = db.scan(..);
                let first = cursor.next();
                let before = all_of(&db);
                let done = db.ingest(&paths, options).unwrap_or_else(|e| panic!("{context}: {e}"));
                let cursor =
                    first.into_iter().chain(cursor).map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())));
                expect(&listing(cursor), &before, &format!("{context}, a scan from before"));
                assert!(done.windows(2).all(|w| w[0].sequence < w[1].sequence), "{context}");
                for path in &paths {
                    let there = env.fs.metadata(path).unwrap().is_some();
                    assert_eq!(there, mode != IngestMode::Move, "{context}");
                }
            }
            8 => db.flush().unwrap(),
            9 => {
                let from = rng.below(keys);
                let (low, high) = (key(from), key(from + rng.below(keys)));
                let range = if reverse { high..low } else { low..high };
                db.default_family().compact_range(range, CompactRangeOptions::default()).unwrap();
            }
            10 => snapshots.push((db.snapshot().unwrap(), model.clone())),
            _ if rng.below(3) == 0 => {
                snapshots.clear();
                db.close().unwrap();
                db = open(&env, reverse);
            }
            _ if !snapshots.is_empty() => drop(snapshots.swap_remove(rng.below(snapshots.len()))),
            _ => {}
        }
        if step % 5 == 0 {
            expect(&all_of(&db), &model, &context);
            let at = key(rng.below(keys));
            assert_eq!(db.get(&at).unwrap().map(|v| v.to_vec()), model.get(&at).cloned(), "{context}");
            for (snapshot, state) in &snapshots {
                expect(&all_of(snapshot), state, &format!("{context}, a snapshot"));
            }
        }
    }
    db.compact().unwrap();
    expect(&all_of(&db), &model, &format!("seed {seed}, at the end"));
    db.verify_db(|_| ()).unwrap();
    db.close().unwrap();
}

#[test]
fn histories_with_ingestions_equal_a_model() {
    (0..ashlar_testkit::report::scale(8, 24) as u64).for_each(history);
}

/// Writers, readers and compactions go on; each ingestion overwrites one block of keys with one value.
#[test]
fn beside_writers_and_compactions_every_reader_sees_whole_files() {
    const BLOCK: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path().join("db"))
        .tune(|_, family| {
            family.write_buffer_bytes = 64 << 10;
            family.compaction.target_file_bytes = 16 << 10;
            family.compaction.base_level_bytes = 32 << 10;
        })
        .open()
        .unwrap();
    let other = db.create_family("other").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (db, over) = (&db, &over);
            scope.spawn(move || {
                let mut rng = Rng::new(writer);
                while !over.load(Ordering::Relaxed) {
                    // Keys between those of the blocks, in their ranges.
                    let name = format!("b{:02}-{:04}w{writer}", rng.below(4), rng.below(BLOCK));
                    db.put(name, rng.bytes(100)).unwrap();
                }
            });
        }
        let (db, other, over) = (&db, &other, &over);
        scope.spawn(move || {
            let mut rng = Rng::new(7);
            while !over.load(Ordering::Relaxed) {
                let block = rng.below(4);
                let snapshot = db.snapshot().unwrap();
                let read = |family: Option<&Family>| -> Vec<Option<Vec<u8>>> {
                    let get = |n: usize| {
                        let key = format!("b{block:02}-{n:04}");
                        let found = match family {
                            Some(family) => snapshot.family(family).get(key),
                            None => snapshot.get(key),
                        };
                        found.unwrap().map(|value| value.to_vec())
                    };
                    (0..BLOCK).map(get).collect()
                };
                let (first, second) = (read(None), read(Some(other)));
                assert!(first.iter().all(|value| *value == first[0]), "a part of a file is seen");
                assert_eq!(first, second, "one family without the other");
            }
        });
        for round in 0..40 {
            let block = round % 4;
            let paths = [dir.path().join(format!("a{round}")), dir.path().join(format!("b{round}"))];
            for (family, path) in [(&db.default_family(), &paths[0]), (other, &paths[1])] {
                let mut writer = family.sst_writer(path).unwrap();
                for n in 0..BLOCK {
                    writer.put(format!("b{block:02}-{n:04}"), format!("round {round}")).unwrap();
                }
                writer.finish().unwrap();
            }
            let (default, options) = (db.default_family(), IngestOptions::new().mode(IngestMode::Move));
            db.ingest_families(&[(&default, &paths[..1]), (other, &paths[1..])], options).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    for n in 0..BLOCK {
        let found = db.get(format!("b03-{n:04}")).unwrap();
        assert_eq!(found.as_deref(), Some(&b"round 39"[..]));
    }
    db.compact().unwrap();
    db.verify_db(|_| ()).unwrap();
    db.close().unwrap();
}

/// The orders of a writer and a family must agree; a file may be ingested into several databases.
#[test]
fn one_file_serves_many_databases() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file.sst");
    let mut writer = SstWriter::create_with(&path, |f| f.reverse_order()).unwrap();
    writer.put("b", "2").unwrap();
    writer.put_entity("a", &[("", "1"), ("name", "x")]).unwrap();
    assert!(writer.file_size() > 0);
    let written = writer.finish().unwrap();
    assert_eq!((written.smallest.as_slice(), written.largest.as_slice()), (&b"b"[..], &b"a"[..]));
    for name in ["one", "two"] {
        let db = Db::builder(dir.path().join(name)).default_family(|f| f.reverse_order()).open().unwrap();
        assert!(matches!(db.default_family().options().order, Order::ReverseBytewise));
        db.ingest(&[&path], IngestOptions::new()).unwrap();
        // Again: newer entries with the same bytes.
        let again = db.ingest(&[&path], IngestOptions::new()).unwrap();
        assert_eq!(again[0].sequence.get(), 2);
        assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(db.get_entity("a").unwrap().unwrap().get("name"), Some(&b"x"[..]));
        db.close().unwrap();
    }
    assert!(path.exists());
}

#[test]
fn checksums_over_files_hold_for_ingested_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file.sst");
    let mut writer = SstWriter::create(&path).unwrap();
    writer.put("a", "1").unwrap();
    writer.finish().unwrap();
    let open = || Db::builder(dir.path().join("db")).tune(|db, _| db.file_checksums = true).open().unwrap();
    let db = open();
    let ingested = db.ingest(&[&path], IngestOptions::new()).unwrap();
    assert!(!ingested[0].copied && ingested[0].source_kept.is_none());
    db.verify_db(|_| ()).unwrap();
    db.close().unwrap();
    let db = open();
    db.verify_db(|_| ()).unwrap();
    assert_eq!(db.default_family().live_files().unwrap().len(), 1);
}

/// The sequence number of an ingested table is in the MANIFEST alone. A repair without one places it by its file number.
#[test]
fn a_repair_without_a_manifest_keeps_ingested_tables_and_tells_what_it_cannot_know() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = (dir.path().join("db"), dir.path().join("file.sst"));
    let db = Db::open(&path).unwrap();
    db.put("a", "old").unwrap();
    db.put("b", "old").unwrap();
    db.flush().unwrap();
    let mut writer = SstWriter::create(&file).unwrap();
    writer.put("a", "ingested").unwrap();
    writer.put("c", "ingested").unwrap();
    writer.finish().unwrap();
    db.ingest(&[&file], IngestOptions::new()).unwrap();
    db.put("c", "new").unwrap();
    db.close().unwrap();
    for entry in std::fs::read_dir(&path).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            std::fs::remove_file(path.join(name)).unwrap();
        }
    }
    let report = Db::builder(&path).repair(|_| ()).unwrap();
    assert!(report.remarks.iter().any(|remark| remark.contains("was ingested")), "{report}");
    let db = Db::open(&path).unwrap();
    let found = |key: &str| String::from_utf8(db.get(key).unwrap().unwrap().to_vec()).unwrap();
    assert_eq!([found("a"), found("b"), found("c")], ["ingested", "old", "new"]);
    assert_eq!(db.families().len(), 1);
}

/// Reads pass the keys at the head of a queue that earlier reads have found deleted. A file may bring such a key back.
#[test]
fn a_file_in_front_of_a_queue_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (Db::open(dir.path().join("db")).unwrap(), dir.path().join("file.sst"));
    let key = |n: u32| format!("{n:04}");
    (0..1000).for_each(|n| db.put(key(n), "v").unwrap());
    (0..900).for_each(|n| db.delete(key(n)).unwrap());
    let first = || db.scan(..).next().unwrap().unwrap().0.to_vec();
    for _ in 0..2 {
        assert_eq!(first(), b"0900");
    }
    db.flush().unwrap();
    assert_eq!(first(), b"0900");
    let mut writer = SstWriter::create(&file).unwrap();
    writer.put(key(450), "ingested").unwrap();
    writer.finish().unwrap();
    db.ingest(&[&file], IngestOptions::new()).unwrap();
    assert_eq!(first(), b"0450");
    db.delete(key(450)).unwrap();
    assert_eq!(first(), b"0900");
    db.flush().unwrap();
    db.put(key(3), "v").unwrap();
    assert_eq!(first(), b"0003");
}

/// What another program did to the tables between the close and the repair.
#[derive(Clone, Copy, Debug)]
enum Touched {
    Not,
    /// Bytes stand behind each table.
    Lengthened,
    /// The ingested table has its sequence number, as RocksDB's `write_global_seqno` stores it.
    Numbered,
}

impl Touched {
    /// Whether the table was changed.
    fn touch(self, table: &Path) -> bool {
        let mut bytes = std::fs::read(table).unwrap();
        let name = b"external_sst_file.global_seqno";
        let is_changed = match self {
            Touched::Not => false,
            Touched::Lengthened => {
                bytes.extend(b"garbage");
                true
            }
            Touched::Numbered => match bytes.windows(name.len()).position(|at| at == name) {
                Some(at) => {
                    bytes[at + name.len()..][..8].copy_from_slice(&7_u64.to_le_bytes());
                    true
                }
                None => false,
            },
        };
        std::fs::write(table, bytes).unwrap();
        is_changed
    }
}

/// Regression: the entries went to the family `default`, where a range deletion among them deleted other keys. Without OPTIONS files only
/// a later table of a third family shows that there are several; that table may be damaged at its end.
#[test]
fn a_repair_without_a_manifest_does_not_guess_the_family_of_an_ingested_table() {
    let lost = [&["MANIFEST", "CURRENT"][..], &["MANIFEST", "CURRENT", "OPTIONS"]];
    for touched in [Touched::Not, Touched::Lengthened, Touched::Numbered] {
        lost.iter().for_each(|names| families_with_an_ingested_table(names, touched));
    }
}

fn families_with_an_ingested_table(lost: &[&str], touched: Touched) {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = (dir.path().join("db"), dir.path().join("file.sst"));
    let db = Db::builder(&path)
        .options("disable_auto_compactions=true")
        .family("other", |f| f)
        .family("third", |f| f)
        .open()
        .unwrap();
    db.put("a", "of default").unwrap();
    db.flush().unwrap();
    let mut writer = SstWriter::create(&file).unwrap();
    writer.delete_range("a", "z").unwrap();
    writer.put("a", "ingested").unwrap();
    writer.finish().unwrap();
    let other = db.family("other").unwrap();
    other.ingest(&[&file], IngestOptions::new()).unwrap();
    assert!(other.get("a").unwrap().is_some());
    let third = db.family("third").unwrap();
    third.put("b", "of third").unwrap();
    third.flush().unwrap();
    db.close().unwrap();
    let mut changed = 0;
    for entry in std::fs::read_dir(&path).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if lost.iter().any(|begin| name.starts_with(begin)) {
            std::fs::remove_file(path.join(name)).unwrap();
        } else if name.ends_with(".sst") {
            changed += usize::from(touched.touch(&path.join(name)));
        }
    }
    let expected = match touched {
        Touched::Not => 0,
        Touched::Lengthened => 3,
        Touched::Numbered => 1,
    };
    assert_eq!(changed, expected, "{touched:?}");
    let report = Db::builder(&path).repair(|_| ()).unwrap().to_string();
    assert!(report.contains("was ingested") && report.contains("ingest lost/"), "{touched:?}: {report}");
    let db = Db::open(&path).unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"of default"[..]), "{touched:?}: {report}");
    let third = db.families().into_iter().find(|family| family.get("b").unwrap().is_some());
    assert!(third.is_some(), "{touched:?}: {report}");
    if matches!(touched, Touched::Not) {
        let (_, advice) = report.split_once("ingest lost/").unwrap();
        let table = path.join("lost").join(advice.split(' ').next().unwrap());
        // Nothing else was in the family.
        let other = db.create_family("other").unwrap();
        other.ingest(&[&table], IngestOptions::new()).unwrap();
        assert_eq!(other.get("a").unwrap().as_deref(), Some(&b"ingested"[..]));
    }
}

#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<String>>);

impl ashlardb::EventListener for Heard {
    fn on_event(&self, event: &ashlardb::Event) {
        if let ashlardb::Event::FileIngested(file) = event {
            let text = format!("{} {} at {} in {}", file.family, file.source, file.sequence, file.level);
            self.0.lock().unwrap().push(text);
        }
    }
}

#[test]
fn listeners_hear_of_each_file() {
    let dir = tempfile::tempdir().unwrap();
    let heard = Arc::new(Heard::default());
    let db = Db::builder(dir.path().join("db")).listener(heard.clone()).open().unwrap();
    let one = db.create_family("one").unwrap();
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    for path in &paths {
        let mut writer = one.sst_writer(path).unwrap();
        writer.put("k", "v").unwrap();
        writer.finish().unwrap();
    }
    one.ingest(&paths, IngestOptions::new()).unwrap();
    let heard = heard.0.lock().unwrap().clone();
    let [a, b] = paths.map(|path| path.display().to_string());
    assert_eq!(heard, [format!("one {a} at 1 in L6"), format!("one {b} at 2 in L0")]);
}

/// Several threads may write files, each with its writer, and one of them takes all.
#[test]
fn threads_write_the_files_of_one_ingestion() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let paths: Vec<PathBuf> = (0..4).map(|n| dir.path().join(format!("{n}.sst"))).collect();
    std::thread::scope(|scope| {
        for (n, path) in paths.iter().enumerate() {
            let mut writer = SstWriter::create(path).unwrap();
            scope.spawn(move || {
                (0..100).for_each(|i| writer.put(format!("{n}{i:03}"), "v").unwrap());
                writer.finish().unwrap();
            });
        }
    });
    let done = db.ingest(&paths, IngestOptions::new()).unwrap();
    assert!(done.iter().all(|file| file.level.0 == 6), "side by side in the last level: {done:?}");
    assert_eq!(all_of(&db).len(), 400);
}
