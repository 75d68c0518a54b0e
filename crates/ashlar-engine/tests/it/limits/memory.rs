//! The memory cap, compared with the operating system's figures: values are loaded, overwritten and scanned with 64
//! open iterators in a child process whose resident size is sampled throughout.
//!
//! `ASHLAR_MEMORY_BYTES=n` loads that much (heavy: 256 MiB), `ASHLAR_MEMORY_CAP=n` sets the cap (32 MiB). The promise
//! is the cap, plus a tenth of it, plus 32 MiB for the rest of the process. The figures are the peak of each phase, and
//! a curve with the peak of each of several equal parts of the run.

use ashlar_base::ErrorKind;
use ashlar_base::error::BusyKind;
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_env::Env;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::DbIter;
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::{Rng, report};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const TEST: &str = "limits::memory::memory_stays_within_its_cap";
const CHILD: &str = "ASHLAR_MEMORY_CHILD";
const VALUE: usize = 1000;
const ITERATORS: usize = 64;
const PHASES: [&str; 4] = ["open", "load", "overwrite", "scan"];
/// Points of the curve.
const POINTS: usize = 32;

/// One line of the child: phase, milliseconds since its start, resident bytes.
type Sample = (usize, usize, usize);

fn samples(text: &str) -> Vec<Sample> {
    let sample = |line: &str| {
        let mut fields = line.split(' ').map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??, fields.next()??))
    };
    text.lines().filter_map(|line| line.strip_prefix("SAMPLE ")).filter_map(sample).collect()
}

/// The peak of each part of the run, and the length of a part.
fn curve(samples: &[Sample]) -> (Vec<usize>, usize) {
    let begun = samples.first().map_or(0, |s| s.1);
    let part = (samples.last().map_or(0, |s| s.1) - begun) / POINTS + 1;
    let mut peaks = vec![0; POINTS];
    for (_, at, bytes) in samples {
        let peak = &mut peaks[(at - begun) / part];
        *peak = (*bytes).max(*peak);
    }
    (peaks, part)
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn sizes() -> (usize, usize) {
    let bytes = number("ASHLAR_MEMORY_BYTES", report::scale(24 << 20, 256 << 20));
    (bytes, number("ASHLAR_MEMORY_CAP", 32 << 20))
}

/// Resident bytes of this process.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? << 10)
}

struct Load<'a> {
    db: &'a Db,
    family: std::sync::Arc<Family>,
    rng: Rng,
    refused: usize,
}

impl Load<'_> {
    fn put(&mut self, key: usize) {
        let value: Vec<u8> = (0..VALUE / 8).flat_map(|_| self.rng.next_u64().to_le_bytes()).collect();
        let mut batch = WriteBatch::new();
        batch.put(self.family.id(), format!("{key:016}").as_bytes(), &value).expect("small");
        match self.db.write(&mut batch, WriteOptions::default()) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Busy(BusyKind::Memory) => self.refused += 1,
            Err(e) => panic!("{e}"),
        }
    }

    fn iterators(&self, keys: usize) -> Vec<DbIter> {
        let at = |i: usize| {
            let mut iter =
                self.db.iter(&self.family, KeyBounds::default(), ReadOptions::default()).expect("opens");
            iter.seek(format!("{:016}", keys / ITERATORS * i).as_bytes()).expect("reads");
            iter
        };
        (0..ITERATORS).map(at).collect()
    }
}

/// Prints the charged memory.
fn charged(db: &Db) {
    let family = db.family("default").expect("always there");
    let text = db.property(&family, "rocksdb.dbstats").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("Memory: ")).for_each(|line| println!("CHARGED {line}"));
}

/// The work of the child. Prints a line per sample: phase, milliseconds, bytes.
fn child(dir: &Path) {
    let (bytes, cap) = sizes();
    let keys = bytes / VALUE;
    let env = Env::os().expect("a machine");
    let (phase, over, opened) = (AtomicUsize::new(0), AtomicBool::new(false), OnceLock::new());
    std::thread::scope(|scope| {
        let clock = &env.clock;
        let (phase, over, opened) = (&phase, &over, &opened);
        scope.spawn(move || {
            let mut peak = 0;
            while !over.load(Ordering::Relaxed) {
                if let Some(bytes) = resident() {
                    println!("SAMPLE {} {} {bytes}", phase.load(Ordering::Relaxed), clock.now().as_millis());
                    if bytes > peak + (1 << 20) {
                        peak = bytes;
                        opened.get().into_iter().for_each(charged);
                    }
                }
                clock.sleep(Duration::from_millis(10));
            }
        });
        let options = DbOptions { memory_bytes: cap as u64, ..DbOptions::default() };
        let db = Db::open(env.clone(), dir, options, Vec::new(), FamilyOptions::default()).expect("opens");
        let db = opened.get_or_init(|| db);
        let family = db.family("default").expect("always there");
        let mut load = Load { db, family, rng: Rng::new(5), refused: 0 };
        phase.store(1, Ordering::Relaxed);
        // Every key once, in an order without locality.
        let step = (keys * 5 / 8) | 1;
        (0..keys).for_each(|i| load.put(i * step % keys));
        let iterators = load.iterators(keys);
        phase.store(2, Ordering::Relaxed);
        for _ in 0..keys {
            let key = load.rng.below(keys);
            load.put(key);
        }
        phase.store(3, Ordering::Relaxed);
        let mut seen = 0;
        for mut iter in iterators.into_iter().chain(load.iterators(keys)) {
            for _ in 0..keys / ITERATORS {
                let Some((_, value)) = iter.entry() else { break };
                assert_eq!(value.len(), VALUE);
                seen += 1;
                iter.next().expect("reads");
            }
        }
        assert!(seen > keys, "{seen} of {keys} entries seen twice");
        println!("REFUSED {}", load.refused);
        load.db.close().expect("closes");
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn memory_stays_within_its_cap() {
    if let Some(dir) = std::env::var_os(CHILD) {
        return child(Path::new(&dir));
    }
    if resident().is_none() {
        return report::skipped(TEST, "the system does not say how large a process is");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let this = std::env::current_exe().expect("a program");
    let mut run = Command::new(this);
    run.args([TEST, "--exact", "--nocapture"]).env(CHILD, dir.path());
    let run = run.output().expect("the child runs");
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}\n{}", String::from_utf8_lossy(&run.stderr));
    let mut peaks = [0; PHASES.len()];
    let seen = samples(&text);
    let samples = seen.len();
    for (phase, _, bytes) in &seen {
        peaks[*phase] = peaks[*phase].max(*bytes);
    }
    let (bytes, cap) = sizes();
    let promise = cap + cap / 10 + (32 << 20);
    let mib = |bytes: usize| format!("{:.1}", bytes as f64 / 1_048_576.0);
    let peaks_text: Vec<String> =
        PHASES.iter().zip(peaks).map(|(phase, peak)| format!("{phase} {}", mib(peak))).collect();
    let refused = text.lines().find_map(|l| l.strip_prefix("REFUSED ")).unwrap_or("?");
    let charged = text.lines().filter_map(|l| l.strip_prefix("CHARGED Memory: ")).next_back();
    report::figure(&format!("memory charged when most was resident: {}", charged.unwrap_or("?")));
    report::figure(&format!(
        "memory: {} MiB of {VALUE} B values, {ITERATORS} iterators, cap {} MiB, promise {} MiB: peaks of {samples} samples, MiB: {}; writes refused {refused}",
        mib(bytes),
        mib(cap),
        mib(promise),
        peaks_text.join(", "),
    ));
    let (points, part) = curve(&seen);
    let points: Vec<String> = points.into_iter().map(|bytes| (bytes >> 20).to_string()).collect();
    report::figure(&format!(
        "memory curve: cap {} MiB, promise {} MiB; peak of every {part} ms, MiB: {}",
        mib(cap),
        mib(promise),
        points.join(" "),
    ));
    assert!(samples > 10, "{samples} samples");
    assert_eq!(refused, "0", "iterators of one moment leave room for smaller memtables");
    let peak = peaks.into_iter().max().unwrap_or(0);
    assert!(peak <= promise, "{} MiB where {} MiB are promised", mib(peak), mib(promise));
}

/// Regression: an open under a small cap replayed a WAL of many families into memory, whatever their number.
#[test]
fn a_replay_for_many_families_stays_within_the_cap() {
    let _readers = crate::beside_others();
    const FAMILIES: usize = 24;
    let sim = SimEnv::new(31);
    let open = |sim: &SimEnv, memory_bytes: u64, create_missing_families: bool| {
        let options = DbOptions { memory_bytes, create_missing_families, ..DbOptions::default() };
        let family = FamilyOptions { write_buffer_bytes: 64 << 20, ..FamilyOptions::default() };
        let named = |n| ashlar_engine::OpenFamily { name: format!("f{n}"), options: family.clone() };
        let families = (0..FAMILIES).map(named).collect();
        Db::open(sim.env(), Path::new("/data/db"), options, families, family.clone()).expect("opens")
    };
    let db = open(&sim, 1 << 30, true);
    let families: Vec<_> = (0..FAMILIES).map(|n| db.family(&format!("f{n}")).expect("created")).collect();
    for key in 0..1000u32 {
        let mut batch = WriteBatch::new();
        families.iter().for_each(|f| batch.put(f.id(), &key.to_be_bytes(), &[7; VALUE]).expect("small"));
        db.write(&mut batch, WriteOptions::default()).expect("a write");
    }
    let killed = sim.crash(CrashMode::KILL);
    drop((families, db));
    let db = open(&killed, 16 << 20, false);
    let families: Vec<_> = (0..FAMILIES).map(|n| db.family(&format!("f{n}")).expect("there")).collect();
    let tables: usize = families.iter().map(|family| db.shape(family).tables()).sum();
    // Memtables have a quarter of the cap: the 24 MB are written in six parts at least, each of several families.
    assert!(tables >= 3 * FAMILIES, "{tables} tables: too much was in memory at once");
    for family in &families {
        let found = db.get(family, &999u32.to_be_bytes(), ReadOptions::default()).expect("reads");
        assert_eq!(found.as_deref(), Some(&[7; VALUE][..]));
    }
}
