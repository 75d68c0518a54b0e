//! Every byte of a table, a log and a MANIFEST damaged, one at a time, inside a database that is then opened and read.
//!
//! What may come of it: an error that names the damage; a shorter history, cut behind some batch, with a report that says
//! so; or the same answers as before. Never other answers, and nothing skipped in the middle.

use ashlar_base::{FamilyId, FileNumber, Order, Result};
use ashlar_cache::FramePool;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::options::{CompactionOptions, DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::jobs::InlineExecutor;
use ashlar_env::{Env, Fs, MemFs, SeededRand, VirtualClock};
use ashlar_table::{ReaderOptions, TableReader};
use ashlar_testkit::{KeyValue, Rng, report};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/db";
/// Flushes before the one compaction.
const FLUSHES: usize = 36;
/// Batches that stay in the log.
const LOGGED: usize = 40;

type State = BTreeMap<Vec<u8>, Vec<u8>>;
type Files = BTreeMap<String, Vec<u8>>;

/// A machine of which nothing is left but its memory; background work runs in the caller.
fn machine(seed: u64) -> Env {
    let clock = Arc::new(VirtualClock::new());
    let jobs = Arc::new(InlineExecutor::new(Arc::clone(&clock), SeededRand::new(2)));
    Env { fs: Arc::new(MemFs::new()), clock, rand: Arc::new(SeededRand::new(seed)), jobs }
}

fn open(env: &Env, create: bool) -> Result<Db> {
    let compaction = CompactionOptions { automatic: false, ..CompactionOptions::default() };
    let family = FamilyOptions { write_buffer_bytes: 1 << 20, compaction, ..FamilyOptions::default() };
    let options = DbOptions { create_if_missing: create, block_cache_bytes: 1 << 20, ..DbOptions::default() };
    let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
    Db::open(env.clone(), Path::new(DIR), options, vec![default], family)
}

fn contents(fs: &dyn Fs) -> Files {
    let mut files = Files::new();
    for entry in fs.list(Path::new(DIR)).unwrap() {
        let file = fs.open_read(&Path::new(DIR).join(&entry.name)).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        files.insert(entry.name, bytes);
    }
    files
}

/// A directory as a kill left it, and the state after each batch that was written.
struct Subject {
    files: Files,
    history: Vec<State>,
    /// States below this one are in the table.
    flushed: usize,
}

/// One table, one log, one MANIFEST, of about 4 KB each. Another seed makes another database of the same content.
fn subject(seed: u64) -> Subject {
    let env = machine(seed);
    let db = open(&env, true).unwrap();
    let family = db.family("default").unwrap();
    let mut rng = Rng::new(7);
    let mut history = vec![State::new()];
    let mut write = |rng: &mut Rng| {
        let (mut batch, mut state) = (WriteBatch::new(), history.last().cloned().unwrap());
        for _ in 0..rng.between(1, 3) {
            let key = format!("key{:03}", rng.below(90)).into_bytes();
            if rng.percent(15) {
                batch.delete(FamilyId::DEFAULT, &key).unwrap();
                state.remove(&key);
            } else {
                let len = rng.between(10, 60);
                let value = rng.bytes(len);
                batch.put(FamilyId::DEFAULT, &key, &value).unwrap();
                state.insert(key, value);
            }
        }
        db.write(&mut batch, WriteOptions::default()).unwrap();
        history.push(state);
    };
    for _ in 0..FLUSHES {
        (0..5).for_each(|_| write(&mut rng));
        db.flush(&[Arc::clone(&family)]).unwrap();
    }
    db.compact_range(&family, None, None).unwrap();
    db.wait_for_background().unwrap();
    let flushed = FLUSHES * 5;
    (0..LOGGED).for_each(|_| write(&mut rng));
    // What stands here is what a kill leaves: nothing of it depends on the close.
    let mut files = contents(&*env.fs);
    // The compaction's inputs are removed sooner or later, when the last reader is gone: here they are.
    let newest = files.keys().rfind(|name| name.ends_with(".sst")).cloned().unwrap();
    files.retain(|name, _| !name.ends_with(".sst") || *name == newest);
    Subject { files, history, flushed }
}

impl Subject {
    /// The one file of that kind that is not empty.
    fn name(&self, is: impl Fn(&str) -> bool) -> String {
        let found: Vec<_> = self.files.iter().filter(|(name, bytes)| is(name) && !bytes.is_empty()).collect();
        assert_eq!(found.len(), 1, "{:?}", self.files.keys());
        found[0].0.clone()
    }

    fn last(&self) -> &State {
        self.history.last().unwrap()
    }

    /// What becomes of the directory when one of its files has other bytes.
    fn outcome(&self, name: &str, bytes: &[u8]) -> std::result::Result<Outcome, String> {
        let env = machine(1);
        env.fs.create_dir_all(Path::new(DIR)).unwrap();
        for (own, kept) in &self.files {
            let content = if own == name { bytes } else { kept };
            env.fs.create(&Path::new(DIR).join(own)).unwrap().write_at(content, 0).unwrap();
        }
        let db = match open(&env, false) {
            Ok(db) => db,
            Err(e) if e.is_corruption() || e.kind() == ashlar_base::ErrorKind::NotSupported => {
                return Ok(Outcome::Refused);
            }
            Err(e) => return Err(format!("refused, but not for damage: {e}")),
        };
        let seen = See::all(&db, self.last())?;
        let Some(state) = seen.state else {
            return if seen.right(self.last()) {
                Ok(Outcome::ReadError)
            } else {
                Err("wrong answers".into())
            };
        };
        if state == *self.last() {
            if !verified(&env) {
                return Ok(Outcome::OnlyVerify);
            }
            let clean = db.recovery().is_clean();
            return Ok(if clean { Outcome::Identical } else { Outcome::IdenticalReported });
        }
        match self.history.iter().rposition(|past| *past == state) {
            None => Err("a state that never was".to_owned()),
            Some(_) if db.recovery().tail_dropped() => Ok(Outcome::CutReported),
            Some(past) if past >= self.flushed => Ok(Outcome::CutSilently),
            Some(past) => Err(format!("back at batch {past} without a word")),
        }
    }
}

/// True when every table there verifies.
fn verified(env: &Env) -> bool {
    let list = env.fs.list(Path::new(DIR)).unwrap();
    list.iter().filter(|entry| entry.name.ends_with(".sst")).all(|entry| {
        let file = env.fs.open_read(&Path::new(DIR).join(&entry.name)).unwrap();
        let options = ReaderOptions::new(Order::Bytewise, FramePool::new(1 << 20), FileNumber(9));
        TableReader::open(file, entry.len, options).and_then(|table| table.verify()).is_ok()
    })
}

/// What reading shows.
struct See {
    /// Everything, when every way to read it worked and agreed.
    state: Option<State>,
    /// What was shown before an error.
    shown: Vec<KeyValue>,
    /// Keys that were got, with the answer.
    got: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl See {
    /// Scans both ways and gets every key.
    fn all(db: &Db, known: &State) -> std::result::Result<See, String> {
        let (forwards, forwards_whole) = scan(db, false);
        let (mut backwards, backwards_whole) = scan(db, true);
        backwards.reverse();
        let family = db.family("default").unwrap();
        let (mut got, mut failed) = (Vec::new(), 0);
        for number in 0..90 {
            let key = format!("key{number:03}").into_bytes();
            match db.get(&family, &key, &ReadOptions::default()) {
                Ok(value) => got.push((key, value.map(|value| value.into_vec()))),
                Err(_) => failed += 1,
            }
        }
        assert!(known.keys().all(|key| key.starts_with(b"key")));
        if !forwards_whole || !backwards_whole || failed > 0 {
            let shown = [forwards, backwards].concat();
            return Ok(See { state: None, shown, got });
        }
        let state: State = forwards.iter().cloned().collect();
        if forwards != backwards || state.len() != forwards.len() {
            return Err("scans differ".to_owned());
        }
        match got.iter().find(|(key, value)| state.get(key) != value.as_ref()) {
            Some((key, _)) => Err(format!("{}: get says otherwise than the scans", key.escape_ascii())),
            None => Ok(See { state: Some(state), shown: Vec::new(), got }),
        }
    }

    /// Nothing shown is wrong.
    fn right(&self, known: &State) -> bool {
        self.shown.iter().all(|(key, value)| known.get(key) == Some(value))
            && self.got.iter().all(|(key, value)| known.get(key) == value.as_ref())
    }
}

/// The entries in one direction, and whether it came to the end.
fn scan(db: &Db, reverse: bool) -> (Vec<KeyValue>, bool) {
    let family = db.family("default").unwrap();
    let mut all = Vec::new();
    let Ok(mut iter) = db.iter(&family, ReadOptions::default()) else { return (all, false) };
    let mut moved = if reverse { iter.last() } else { iter.first() };
    while moved.is_ok() {
        let Some((key, value)) = iter.entry() else { return (all, true) };
        all.push((key.to_vec(), value.to_vec()));
        moved = if reverse { iter.prev() } else { iter.next() };
    }
    (all, false)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The open fails.
    Refused,
    /// A read fails; what other reads say is right.
    ReadError,
    /// All reads are right, and verification finds the damage.
    OnlyVerify,
    /// A shorter history, and the report says so.
    CutReported,
    /// A shorter log that ends with a whole record: nothing can tell.
    CutSilently,
    /// The same answers, and the report names what was dropped.
    IdenticalReported,
    /// Nothing to be seen.
    Identical,
}

impl Outcome {
    const ALL: [Outcome; 7] = [
        Outcome::Refused,
        Outcome::ReadError,
        Outcome::OnlyVerify,
        Outcome::CutReported,
        Outcome::CutSilently,
        Outcome::IdenticalReported,
        Outcome::Identical,
    ];
}

/// Counts outcomes and keeps the wrong ones.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<Outcome, usize>,
    wrong: Vec<String>,
    /// Where damage went unseen or a cut was silent.
    quiet: Vec<usize>,
}

impl Tally {
    fn add(&mut self, subject: &Subject, name: &str, bytes: &[u8], at: usize, what: &str) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| subject.outcome(name, bytes)));
        match outcome {
            Ok(Ok(outcome)) => {
                *self.counts.entry(outcome).or_default() += 1;
                if matches!(outcome, Outcome::CutSilently | Outcome::Identical) {
                    self.quiet.push(at);
                }
            }
            Ok(Err(wrong)) => self.wrong.push(format!("{name} {what} {at}: {wrong}")),
            Err(_) => self.wrong.push(format!("{name} {what} {at}: panic")),
        }
    }

    fn count(&self, outcomes: &[Outcome]) -> usize {
        outcomes.iter().filter_map(|outcome| self.counts.get(outcome)).sum()
    }

    fn line(&self) -> String {
        use Outcome::{
            CutReported, CutSilently, Identical, IdenticalReported, OnlyVerify, ReadError, Refused,
        };
        format!(
            "{} errors ({} at open, {} in reads, {} in verify), {} cut and reported, {} identical, {} shorter by whole records, {} wrong",
            self.count(&[Refused, ReadError, OnlyVerify]),
            self.count(&[Refused]),
            self.count(&[ReadError]),
            self.count(&[OnlyVerify]),
            self.count(&[CutReported]),
            self.count(&[Identical, IdenticalReported]),
            self.count(&[CutSilently]),
            self.wrong.len()
        )
    }
}

fn flips(subject: &Subject, name: &str, patterns: &[u8]) -> Tally {
    let mut tally = Tally::default();
    let good = &subject.files[name];
    for at in 0..good.len() {
        for pattern in patterns {
            let mut bytes = good.clone();
            bytes[at] ^= pattern;
            tally.add(subject, name, &bytes, at, "flipped at");
        }
    }
    let (bytes, flips) = (good.len(), good.len() * patterns.len());
    report::figure(&format!("flips: {name}, {bytes} bytes, {flips} flips: {}", tally.line()));
    tally
}

fn cuts(subject: &Subject, name: &str) -> Tally {
    let mut tally = Tally::default();
    let good = &subject.files[name];
    for len in 0..good.len() {
        tally.add(subject, name, &good[..len], len, "cut to");
    }
    report::figure(&format!("cuts: {name}, every length below {}: {}", good.len(), tally.line()));
    tally
}

/// All single bits in the heavy suites, and all bits of a byte at once, which is all that an ordinary run does.
fn patterns() -> &'static [u8] {
    if report::scale(0, 1) == 1 { &[1, 2, 4, 8, 16, 32, 64, 128, 255] } else { &[255] }
}

fn none_wrong(tallies: &[&Tally]) {
    let wrong: Vec<&String> = tallies.iter().flat_map(|tally| &tally.wrong).collect();
    assert!(wrong.is_empty(), "{} wrong, such as {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

#[test]
fn a_damaged_table_is_an_error_or_no_matter() {
    let _readers = crate::beside_others();
    let subject = subject(1);
    let name = subject.name(|name| name.ends_with(".sst"));
    let (flips, cuts) = (flips(&subject, &name, patterns()), cuts(&subject, &name));
    none_wrong(&[&flips, &cuts]);
    assert!(flips.quiet.is_empty(), "unseen at {:?}", flips.quiet);
    assert_eq!(cuts.count(&[Outcome::Refused]), subject.files[&name].len(), "its size is known");
}

#[test]
fn a_damaged_log_ends_there_and_says_so() {
    let _readers = crate::beside_others();
    let subject = subject(1);
    let name = subject.name(|name| name.ends_with(".log"));
    let (flips, cuts) = (flips(&subject, &name, patterns()), cuts(&subject, &name));
    none_wrong(&[&flips, &cuts]);
    assert!(flips.quiet.is_empty(), "unseen at {:?}", flips.quiet);
    // Cut between two records a log looks like one that was never longer.
    assert!(cuts.quiet.len() <= LOGGED + 2, "{} silent cuts", cuts.quiet.len());
}

#[test]
fn a_damaged_manifest_is_an_error() {
    let _readers = crate::beside_others();
    let subject = subject(1);
    let name = subject.name(|name| name.starts_with("MANIFEST-"));
    let (flips, cuts) = (flips(&subject, &name, patterns()), cuts(&subject, &name));
    none_wrong(&[&flips, &cuts]);
    assert_eq!(flips.count(&[Outcome::Refused]), flips.count(&Outcome::ALL), "{}", flips.line());
    assert!(cuts.quiet.is_empty(), "unseen at {:?}", cuts.quiet);
}

#[test]
fn another_table_in_the_place_of_one_is_told() {
    let _readers = crate::beside_others();
    let (subject, twin) = (subject(1), subject(2));
    let name = subject.name(|name| name.ends_with(".sst"));
    let (own, other) = (&subject.files[&name], &twin.files[&name]);
    assert!(own != other && own.len() == other.len(), "the same entries, made elsewhere");
    assert_eq!(subject.outcome(&name, own), Ok(Outcome::Identical));
    assert_eq!(subject.outcome(&name, other), Ok(Outcome::ReadError));
}
