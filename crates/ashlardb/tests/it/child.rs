//! Child processes of this program: the test binary again, told by a variable what to do.
//!
//! ```text
//! write DIR LEVEL WRITE_BUFFER KIND SEED PROGRESS   obeys the list KIND SEED until killed; the number of operations that
//!                                                   returned stands in the file PROGRESS before the next one begins
//! fork WHAT DIR SAID                                takes the steps WHAT of `fork` on DIR; what came of it stands in SAID
//! crafted DIR SAID                                  takes the steps of `crafted` on DIR; what they said stands in SAID
//! transactions DIR                                  commits transactions of `transactions` in DIR until killed
//! families WHAT COUNT DIR SAID                      takes the steps WHAT of `many_families` on DIR; the figures stand in SAID
//! ```
//! Words are separated by tabs.

use crate::store::{FAMILIES, Shape, Store};
use ashlar_testkit::ops::{Mix, draw};
use ashlar_testkit::{Change, Op, Rng};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "ASHLAR_TEST_CHILD";

/// What a list of operations looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Puts of ascending keys, as db_bench's fillseq.
    Sequential,
    /// Puts of random keys out of 20,000, as fillrandom; some deletes and batches over families.
    Random,
    /// Everything a list can hold, with flushes, compactions and reopens.
    Mixed,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Sequential, Kind::Random, Kind::Mixed];

    fn word(self) -> &'static str {
        match self {
            Kind::Sequential => "sequential",
            Kind::Random => "random",
            Kind::Mixed => "mixed",
        }
    }

    /// The list: the same for the same seed, without end.
    pub fn ops(self, seed: u64) -> Box<dyn Iterator<Item = Op>> {
        let mut rng = Rng::new(seed);
        match self {
            Kind::Sequential => Box::new((0_u64..).map(move |i| one(put("default", i, &mut rng)))),
            Kind::Random => Box::new(std::iter::repeat_with(move || random(&mut rng))),
            Kind::Mixed => Box::new((0..).flat_map(move |part| draw(seed ^ part, 200, &mixed()))),
        }
    }
}

/// The mix of [`Kind::Mixed`].
pub fn mixed() -> Mix {
    let families = FAMILIES.map(String::from).to_vec();
    Mix { families, max_value_bytes: 6000, reopen_per_mille: 2, ..Mix::writes_only() }
}

fn one(change: Change) -> Op {
    Op::Write { changes: vec![change], sync: false }
}

fn put(family: &str, number: u64, rng: &mut Rng) -> Change {
    Change::Put { family: family.into(), key: format!("{number:016}").into_bytes(), value: rng.bytes(100) }
}

fn random(rng: &mut Rng) -> Op {
    let change = |rng: &mut Rng| {
        let family = FAMILIES[rng.below(FAMILIES.len())];
        let put = put(family, rng.below(20_000) as u64, rng);
        if rng.percent(10) { Change::Delete { family: family.into(), key: put.key().to_vec() } } else { put }
    };
    if rng.percent(10) {
        let many = rng.between(2, 8);
        return Op::Write { changes: (0..many).map(|_| change(rng)).collect(), sync: rng.percent(2) };
    }
    one(change(rng))
}

/// Not a test of its own: what child processes run. Without the variable it looks whether a child knows its words.
#[test]
fn entry() {
    let Ok(role) = std::env::var(ROLE) else {
        let unknown = command("dance").stderr(Stdio::null()).status().unwrap();
        assert!(!unknown.success(), "a child that does not know what to do must say so");
        return;
    };
    let words: Vec<&str> = role.split('\t').collect();
    match words.as_slice() {
        ["write", dir, level, buffer, kind, seed, progress] => {
            let shape = Shape { level: level.parse().unwrap(), write_buffer: buffer.parse().unwrap() };
            let kind = Kind::ALL.into_iter().find(|k| k.word() == *kind).unwrap();
            obey(Path::new(dir), shape, kind.ops(seed.parse().unwrap()), Path::new(progress));
        }
        ["fork", what, dir, said] => std::fs::write(said, crate::fork::steps(what, Path::new(dir))).unwrap(),
        ["crafted", dir, said] => std::fs::write(said, crate::crafted::steps(Path::new(dir))).unwrap(),
        ["families", what, count, dir, said] => {
            let figures = crate::many_families::steps(what, count.parse().unwrap(), Path::new(dir));
            std::fs::write(said, figures).unwrap();
        }
        ["transactions", dir] => crate::transactions::steps(Path::new(dir)),
        _ => panic!("no such role: {role}"),
    }
}

fn obey(dir: &Path, shape: Shape, ops: impl Iterator<Item = Op>, progress: &Path) {
    let mut store = Store::open(dir, shape);
    let progress = std::fs::File::create(progress).unwrap();
    for (done, op) in (1_u64..).zip(ops) {
        store.apply(&op);
        progress.write_all_at(&done.to_le_bytes(), 0).unwrap();
    }
}

fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::entry", "--nocapture"]).env(ROLE, role);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Starts a child that commits transactions in `dir` until it is killed.
pub fn transactions(dir: &Path) -> Child {
    command(&format!("transactions\t{}", dir.to_str().unwrap())).spawn().unwrap()
}

/// What a child may take.
#[derive(Clone, Copy, Debug)]
pub struct Limited {
    /// Bytes of address space.
    pub addresses: u64,
    pub time: Duration,
}

impl Limited {
    /// Runs a role whose last word is a file, and returns what the child wrote there.
    pub fn run(self, role: &str) -> String {
        let said = tempfile::NamedTempFile::new().unwrap();
        let plain = command(&format!("{role}\t{}", said.path().to_str().unwrap()));
        let mut limited = Command::new("sh");
        limited.arg("-c").arg(format!("ulimit -v {} && exec \"$0\" \"$@\"", self.addresses >> 10));
        limited.arg(plain.get_program()).args(plain.get_args());
        limited.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = limited.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > self.time {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{role}: does not end within {:?}", self.time);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{role}: {status}");
        std::fs::read_to_string(said.path()).unwrap()
    }
}

/// A child that writes.
pub struct Writer {
    child: Child,
    progress: tempfile::NamedTempFile,
}

impl Writer {
    /// Starts it.
    pub fn start(dir: &Path, shape: Shape, kind: Kind, seed: u64) -> Writer {
        let progress = tempfile::NamedTempFile::new().unwrap();
        let words = [
            "write",
            dir.to_str().unwrap(),
            &shape.level.to_string(),
            &shape.write_buffer.to_string(),
            kind.word(),
            &seed.to_string(),
            progress.path().to_str().unwrap(),
        ];
        let child = command(&words.join("\t")).spawn().unwrap();
        Writer { child, progress }
    }

    /// Operations that returned so far.
    pub fn acknowledged(&self) -> u64 {
        let mut count = [0; 8];
        // A file that is still empty counts as nothing.
        self.progress.as_file().read_exact_at(&mut count, 0).map_or(0, |()| u64::from_le_bytes(count))
    }

    /// Waits until the database is open and the first operation returned.
    pub fn wait_until_writing(&mut self) {
        let start = Instant::now();
        while self.acknowledged() == 0 {
            assert!(self.child.try_wait().unwrap().is_none(), "the writer ended by itself");
            assert!(start.elapsed() < Duration::from_secs(60), "the writer does not write");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets it work for a while, kills it with signal 9, and answers how many operations returned.
    pub fn kill_after(mut self, delay: Duration) -> u64 {
        std::thread::sleep(delay);
        assert!(self.child.try_wait().unwrap().is_none(), "the writer ended by itself");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.acknowledged()
    }
}
