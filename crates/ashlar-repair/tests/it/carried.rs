//! Every kind of data that other programs leave in a directory, carried through this engine's flush and compaction, and
//! read again by RocksDB.
//!
//! The judge writes puts and deletes only. So the test puts a WAL file with the other kinds (merge operands, range and
//! single deletions, entities, timed puts) into a closed directory. RocksDB replays that file into its own tables and
//! blob files when it opens the directory. What RocksDB then reads is the expected state.

use ashlar_base::bytes::{put_slice, put_varint32};
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::{Error, FamilyId, FileNumber, SeqNum};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::Framing;
use ashlar_log::LogWriter;
use ashlar_options::{
    BlobOptions, CompactionOptions, DbOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions,
};
use ashlar_repair::{Shape, check_level};
use ashlar_testkit::judge::{JudgeError, Opening, Tools};
use ashlar_testkit::{Judge, JudgeVersion, KeyValue, Op, Rng, report};
use std::collections::BTreeMap;
use std::path::Path;

const PUT: u8 = 0x01;
const DELETE: u8 = 0x00;
const MERGE: u8 = 0x02;
const SINGLE_DELETE: u8 = 0x07;
const RANGE_DELETE: u8 = 0x0f;
const ENTITY: u8 = 0x16;
const TIMED_PUT: u8 = 0x18;

const ROUNDS: u64 = 8;

/// What a directory holds, and which release reads it.
#[derive(Clone, Copy, Debug)]
struct Scene {
    seed: u64,
    /// Only data that RocksDB 7.8 reads too: no timed puts, small columns, no operands over entities.
    old: bool,
}

/// A batch under construction, byte by byte.
struct Batch {
    bytes: Vec<u8>,
    count: u32,
}

impl Batch {
    fn new(seq: u64) -> Batch {
        Batch { bytes: [&seq.to_le_bytes()[..], &[0; 4]].concat(), count: 0 }
    }

    fn add(&mut self, tag: u8, key: &[u8], value: Option<&[u8]>) {
        self.bytes.push(tag);
        put_slice(&mut self.bytes, key);
        if let Some(value) = value {
            put_slice(&mut self.bytes, value);
        }
        self.count += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes[8..12].copy_from_slice(&self.count.to_le_bytes());
        self.bytes
    }
}

/// An entity of version 1: a default column, and two others.
fn entity(rng: &mut Rng, longest: usize) -> Vec<u8> {
    let names: [&[u8]; 3] = [b"", b"city", b"note"];
    let values: Vec<Vec<u8>> = names.iter().map(|_| text(rng, longest)).collect();
    let mut bytes = vec![1, 3];
    for (name, value) in names.iter().zip(&values) {
        put_slice(&mut bytes, name);
        put_varint32(&mut bytes, value.len() as u32);
    }
    values.iter().for_each(|value| bytes.extend_from_slice(value));
    bytes
}

fn text(rng: &mut Rng, longest: usize) -> Vec<u8> {
    let len = rng.between(0, longest);
    (0..len).map(|_| b'a' + rng.below(26) as u8).collect()
}

/// One round of changes. Keys of different kinds stay separate where RocksDB leaves a mixture undefined.
fn round(scene: Scene, round: u64, rng: &mut Rng, seq: u64) -> Batch {
    let mut batch = Batch::new(seq);
    for _ in 0..60 {
        let key = format!("k{:03}", rng.below(120)).into_bytes();
        match rng.below(12) {
            0 => batch.add(DELETE, &key, None),
            1 => {
                let end = format!("k{:03}", rng.below(120)).into_bytes();
                batch.add(RANGE_DELETE, &key.clone().min(end.clone()), Some(&key.max(end)));
            }
            2..6 => batch.add(MERGE, &key, Some(&text(rng, 80))),
            _ => batch.add(PUT, &key, Some(&text(rng, 200))),
        }
        let longest = if scene.old { 19 } else { 120 };
        let key = format!("e{:02}", rng.below(40)).into_bytes();
        match rng.below(6) {
            0 => batch.add(DELETE, &key, None),
            1 if !scene.old => batch.add(MERGE, &key, Some(&text(rng, 30))),
            _ => batch.add(ENTITY, &key, Some(&entity(rng, longest))),
        }
        if !scene.old && rng.percent(30) {
            let key = format!("t{:02}", rng.below(30)).into_bytes();
            let timed = [&text(rng, 60)[..], &(1_700_000_000 + seq).to_le_bytes()].concat();
            batch.add(TIMED_PUT, &key, Some(&timed));
        }
    }
    // One put for each single delete: put in the even rounds, a third deleted in the odd ones.
    for n in (0..30).filter(|n| round.is_multiple_of(2) || n % 3 == (round / 2) % 3) {
        let key = format!("s{:02}", n + 30 * (round / 2)).into_bytes();
        match round % 2 {
            0 => batch.add(PUT, &key, Some(&text(rng, 90))),
            _ => batch.add(SINGLE_DELETE, &key, None),
        }
    }
    batch
}

fn judge_options(scene: Scene) -> String {
    // A flush turns timed puts into plain ones unless it keeps times; a flush during recovery always does.
    let (version, keep_times) = if scene.old { (5, 0) } else { (6, 3600) };
    format!(
        "merge_operator=stringappend;preserve_internal_time_seconds={keep_times};\
         avoid_flush_during_recovery=true;enable_blob_files=true;min_blob_size=60;blob_file_size=4000;\
         block_based_table_factory={{format_version={version};block_size=512}};disable_auto_compactions=true"
    )
}

/// Adds a WAL file with one batch, numbered after every file of a closed directory.
fn lay_log(dir: &Path, batch: &[u8]) {
    let env = Env::os().unwrap();
    let names = env.fs.list(dir).unwrap();
    let number = |name: &str| match FileKind::parse(name)? {
        FileKind::Table(n) | FileKind::Blob(n) | FileKind::Wal(n) => Some(n.0),
        FileKind::Manifest(n) | FileKind::Options(n) => Some(n.0),
        _ => None,
    };
    let last = names.iter().filter_map(|e| number(&e.name)).max().unwrap_or(0);
    let number = FileNumber(last + 1);
    let path = dir.join(FileKind::Wal(number).name());
    LogWriter::create(env.fs, &path, number, Framing::Legacy).unwrap().append(batch, true).unwrap();
}

/// A directory that RocksDB wrote: some data compacted, some in level 0, the newest in the WAL. Returns what RocksDB
/// reads from it.
fn foreign(dir: &Path, scene: Scene) -> Result<Vec<KeyValue>, JudgeError> {
    let mut rng = Rng::new(scene.seed);
    let options = judge_options(scene);
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir, Opening::Create, &options)?;
    judge.close()?;
    for n in 0..ROUNDS {
        lay_log(dir, &round(scene, n, &mut rng, 1 + n * 1000).finish());
        if n == ROUNDS - 1 {
            break;
        }
        judge.open(dir, Opening::Existing, &options)?;
        let family = "default".to_owned();
        let compact = n == ROUNDS / 2;
        judge.apply(&[if compact { Op::Compact { family } } else { Op::Flush { family } }])?;
        judge.close()?;
    }
    judge.open(dir, Opening::ReadOnly, &options)?;
    let want = judge.dump("default")?;
    judge.close()?;
    has_everything(dir, scene);
    Ok(want)
}

/// Asserts that the tables and the WAL have the kinds of data that the scene promises.
fn has_everything(dir: &Path, scene: Scene) {
    let report = check_level(&*Env::os().unwrap().fs, dir).unwrap();
    let has = |shape, end: &str| report.found.iter().any(|f| f.shape == shape && f.file.ends_with(end));
    let shapes: &[Shape] = match scene.old {
        true => &[Shape::Entity],
        false => &[Shape::Entity, Shape::EntityWithBlobs, Shape::TimedPut],
    };
    for shape in shapes {
        assert!(has(*shape, ".sst"), "no {shape:?} in tables: {:?}", report.found);
    }
    assert!(has(Shape::Entity, ".log") && (scene.old || has(Shape::TimedPut, ".log")), "{:?}", report.found);
    let mut above = report.above(FormatLevel::V7_8);
    above.retain(|found| !found.file.starts_with("MANIFEST"));
    assert!(!scene.old || above.is_empty(), "{above:?}");
}

/// How this engine treats the directory.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Nothing is separated, collected or folded.
    Carry,
    /// Operands are folded.
    Fold,
    /// Values stay in blob files and move out of old ones.
    Collect,
    /// Values move from old blob files into the tables.
    Inline,
}

fn settings(way: Way) -> FamilyOptions {
    let collect_garbage = matches!(way, Way::Collect | Way::Inline);
    FamilyOptions {
        merge_operator: (!matches!(way, Way::Carry)).then(|| standard_operator("stringappend").unwrap()),
        blob: BlobOptions {
            enabled: matches!(way, Way::Collect),
            min_blob_bytes: 60,
            file_bytes: 4000,
            collect_garbage,
            age_cutoff: 1.0,
            ..BlobOptions::default()
        },
        compaction: CompactionOptions {
            target_file_bytes: 4 << 10,
            base_level_bytes: 8 << 10,
            level_multiplier: 2.0,
            ..CompactionOptions::default()
        },
        ..FamilyOptions::default()
    }
}

/// Opens, flushes and compacts the directory with this engine. With `change` the test writes to it while it holds a
/// snapshot.
fn take_through(
    dir: &Path,
    way: Way,
    level: FormatLevel,
    change: bool,
    want: &[KeyValue],
) -> Result<Vec<KeyValue>, JudgeError> {
    let what = format!("{way:?}, changed {change}");
    let db = open(dir, level, settings(way)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let family = db.family("default").unwrap();
    let reads = !matches!(way, Way::Carry);
    if reads {
        compare(&db, want, &format!("{what}: as found"));
    }
    let mut state: BTreeMap<Vec<u8>, Vec<u8>> = want.iter().cloned().collect();
    let snapshot = change.then(|| db.snapshot().unwrap());
    if change {
        let mut batch = WriteBatch::new();
        for (n, (key, _)) in want.iter().enumerate().filter(|(n, (key, _))| n % 3 == 0 && key[0] != b's') {
            match n % 2 {
                0 => {
                    batch.delete(FamilyId::DEFAULT, key).unwrap();
                    state.remove(key);
                }
                _ => {
                    let value = vec![b'N'; n % 130];
                    batch.put(FamilyId::DEFAULT, key, &value).unwrap();
                    state.insert(key.clone(), value);
                }
            }
        }
        db.write(&mut batch, WriteOptions::default()).unwrap();
    }
    db.compact_range(&family, None, None).unwrap_or_else(|e| panic!("{what}: {e}"));
    let state: Vec<KeyValue> = state.into_iter().collect();
    if reads {
        compare(&db, &state, &format!("{what}: compacted"));
        if let Some(snapshot) = &snapshot {
            let seen = rows(&db, Some(snapshot.seq()));
            assert!(seen.iter().all(|rows| rows == want), "{what}: the snapshot shows other values");
        }
    }
    drop(snapshot);
    if change {
        db.compact_range(&family, None, None).unwrap();
    }
    if reads {
        compare(&db, &state, &format!("{what}: compacted without a snapshot"));
    }
    db.close().unwrap();
    if matches!(way, Way::Inline) {
        // Readers in other tests may have delayed the removal of files; the next open removes them.
        open(dir, level, settings(way)).unwrap().close().unwrap();
        assert_eq!(blob_files(dir), 0, "{what}");
    }
    Ok(state)
}

fn open(dir: &Path, format_level: FormatLevel, family: FamilyOptions) -> Result<Db, Error> {
    let options = DbOptions { format_level, ..DbOptions::default() };
    let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
    Db::open(Env::os().unwrap(), dir, options, vec![default], family)
}

fn blob_files(dir: &Path) -> usize {
    let names = Env::os().unwrap().fs.list(dir).unwrap();
    names.iter().filter(|entry| entry.name.ends_with(".blob")).count()
}

/// The rows of the default family, now or at a snapshot, that a cursor finds forward and backward; both in the order of
/// keys.
fn rows(db: &Db, at: Option<SeqNum>) -> [Vec<KeyValue>; 2] {
    let family = db.family("default").unwrap();
    let mut it = db.iter(&family, Default::default(), ReadOptions { at, ..ReadOptions::default() }).unwrap();
    let (mut forward, mut backward) = (vec![], vec![]);
    it.first().unwrap();
    while let Some((key, value)) = it.entry() {
        forward.push((key.to_vec(), value.to_vec()));
        it.next().unwrap();
    }
    it.last().unwrap();
    while let Some((key, value)) = it.entry() {
        backward.push((key.to_vec(), value.to_vec()));
        it.prev().unwrap();
    }
    backward.reverse();
    [forward, backward]
}

/// Reads the default family by a cursor and by gets: all must agree with `want`.
fn compare(db: &Db, want: &[KeyValue], what: &str) {
    for found in rows(db, None) {
        assert!(found == want, "{what}: {} keys, {} wanted", found.len(), want.len());
    }
    let family = db.family("default").unwrap();
    for (key, value) in want {
        let got = db.get(&family, key, ReadOptions::default()).unwrap();
        assert_eq!(got.as_deref(), Some(&value[..]), "{what}: {}", key.escape_ascii());
    }
}

/// The newest entity of each key, as stored, that RocksDB 7.8 finds.
fn entities(tools: &Tools, dir: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut newest = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for line in tools.internal(dir, "default").unwrap() {
        let first = seen.insert(line.key.clone());
        if first && line.value_type == u32::from(ENTITY) {
            newest.insert(line.key, line.value);
        }
    }
    newest
}

fn carry(scene: Scene, way: Way, change: bool) -> Result<usize, JudgeError> {
    let what = format!("{scene:?}, {way:?}, changed {change}");
    let dir = tempfile::tempdir().unwrap();
    let want = foreign(dir.path(), scene)?;
    assert!(blob_files(dir.path()) > 4 && want.len() > 60, "{what}: too little to carry");
    let level = if scene.old { FormatLevel::V7_8 } else { FormatLevel::V11 };
    let tools = Tools::available().ok().filter(|_| scene.old);
    let before = tools.as_ref().map(|tools| entities(tools, dir.path()));
    let state = take_through(dir.path(), way, level, change, &want)?;
    let readers = [JudgeVersion::V7, JudgeVersion::V11];
    for version in readers.into_iter().filter(|version| scene.old || *version == JudgeVersion::V11) {
        let mut judge = Judge::spawn(version)?;
        judge.open(dir.path(), Opening::ReadOnly, "merge_operator=stringappend")?;
        assert!(judge.dump("default")? == state, "{what}: {} reads other values", version.name());
        judge.close()?;
    }
    if let (Some(tools), Some(mut before)) = (tools, before) {
        tools.check_consistency(dir.path()).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(before.len() > 10, "{what}: {} entities", before.len());
        if change {
            let same = |key: &[u8], value: &Vec<u8>| state.iter().any(|(k, v)| k == key && v == value);
            let kept: Vec<_> = want.iter().filter(|(k, v)| same(k, v)).map(|(k, _)| k).collect();
            before.retain(|key, _| kept.contains(&key));
        }
        let mut after = entities(&tools, dir.path());
        after.retain(|key, _| before.contains_key(key));
        assert_eq!(after, before, "{what}: columns");
    }
    // The reverse: RocksDB compacts what this engine left.
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Existing, &judge_options(scene))?;
    judge.apply(&[Op::Compact { family: "default".into() }])?;
    assert!(judge.dump("default")? == state, "{what}: after RocksDB's compaction");
    judge.close()?;
    Ok(want.len())
}

#[test]
fn what_rocksdb_left_goes_through_our_hands_and_back() {
    let (mut directories, mut keys) = (0, 0);
    let all = report::scale(0, 1) == 1;
    for seed in 0..report::scale(1, 12) as u64 {
        for old in [true, false] {
            for (n, way) in [Way::Carry, Way::Fold, Way::Collect, Way::Inline].into_iter().enumerate() {
                // The ordinary stage runs half of the pairs.
                for change in [false, true].into_iter().filter(|c| all || *c == ((n % 2 == 0) == old)) {
                    let scene = Scene { seed: seed * 2 + u64::from(old), old };
                    match carry(scene, way, change) {
                        Err(JudgeError::Skip(skip)) => {
                            return skip.announce("what_rocksdb_left_goes_through_our_hands_and_back");
                        }
                        done => keys += done.unwrap_or_else(|e| panic!("{scene:?}, {way:?}, {change}: {e}")),
                    }
                    directories += 1;
                }
            }
        }
    }
    report::figure(&format!(
        "carried: {directories} directories of RocksDB 11.8.1 with blobs, entities, single and range deletions, merge operands \
         and timed puts, {keys} keys; compacted by us with and without snapshots, read by 7.8.3 and 11.8.1, compacted by \
         11.8.1: 0 differences"
    ));
}
