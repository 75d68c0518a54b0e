//! The plan of a case, drawn from its seed, so that the killed process and the checking one agree.
//!
//! Every writer has separate keys, which begin with its digit. After a kill, a writer's keys show a prefix of its list. The
//! sequence number counts all prefixes together.

use crate::sim::plan::Setup;
use ashlar_base::Error;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FormatLevel};
use ashlar_testkit::ops::draw_value;
use ashlar_testkit::{Change, Op, Rng};
use std::path::Path;

/// The families of a case.
pub(super) const FAMILIES: [&str; 3] = ["default", "one", "two"];
/// Keys of a writer.
const KEYS: usize = 2000;
const MAX_VALUE_BYTES: usize = 16 << 10;

/// A case: one directory, killed some times.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    seed: u64,
    /// The oldest RocksDB that has to read it.
    pub(super) level: FormatLevel,
    /// Threads that write.
    pub(super) writers: usize,
    /// Threads that read meanwhile.
    pub(super) readers: usize,
    /// Times that writers are started, and killed.
    pub(super) rounds: u64,
    unlogged: bool,
    /// Writes are acknowledged one by one: the writing program knows no more of the settings.
    one_by_one: bool,
}

impl Plan {
    pub(super) fn draw(seed: u64) -> Plan {
        let mut rng = Rng::new(seed);
        Plan {
            seed,
            level: if rng.percent(60) { FormatLevel::V7_8 } else { FormatLevel::V9_11 },
            writers: rng.between(1, 4),
            readers: rng.between(0, 2),
            rounds: rng.between(2, 4) as u64,
            unlogged: rng.percent(15),
            one_by_one: false,
        }
    }

    /// The same case for writers of another program.
    pub(super) fn behind_a_door(self) -> Plan {
        Plan { level: FormatLevel::V9_11, readers: 0, unlogged: false, one_by_one: true, ..self }
    }

    fn rng(&self, round: u64, stream: u64) -> Rng {
        Rng::new(self.seed.wrapping_mul(1 << 20) + (round << 8) + stream)
    }

    /// The settings of a round: each time others, but for what decides what may be lost.
    pub(super) fn setup(&self, round: u64) -> Setup {
        let setup = Setup::draw(&mut self.rng(round, 0));
        let manual_wal_flush = setup.db.manual_wal_flush && !self.one_by_one;
        let level = self.level;
        let db =
            DbOptions { format_level: level, create_missing_families: true, manual_wal_flush, ..setup.db };
        Setup { db, unlogged: self.unlogged, ..setup }
    }

    /// The choices made during the run: delays, points, readers.
    pub(super) fn chances(&self) -> Rng {
        self.rng(255, 255)
    }

    /// The families written to. Without a log each keeps a prefix of its own: then there is one only.
    pub(super) fn families(&self) -> &'static [&'static str] {
        if self.unlogged { &FAMILIES[..1] } else { &FAMILIES }
    }

    /// A writer acknowledges after so many operations: with `manual_wal_flush` when it has flushed the log, without a log
    /// when it has flushed the memtable.
    pub(super) fn stride(&self, setup: &Setup) -> u64 {
        match (setup.unlogged, setup.holds_back()) {
            (true, _) => 200,
            (false, true) => 100,
            (false, false) => 1,
        }
    }

    /// The endless list of a writer's operations in a round.
    pub(super) fn list(&self, round: u64, writer: usize) -> impl Iterator<Item = Op> + use<> {
        let mut rng = self.rng(round, 1 + writer as u64);
        let families = self.families();
        std::iter::repeat_with(move || {
            let many = if rng.percent(10) { rng.between(2, 8) } else { 1 };
            let changes = (0..many).map(|_| change(&mut rng, families, writer)).collect();
            Op::Write { changes, sync: rng.percent(2) }
        })
    }

    /// Whose key that is.
    pub(super) fn writer_of(key: &[u8]) -> Option<usize> {
        key.first().filter(|digit| digit.is_ascii_digit()).map(|digit| usize::from(digit - b'0'))
    }
}

fn change(rng: &mut Rng, families: &[&str], writer: usize) -> Change {
    let family = (*rng.pick(families).unwrap_or(&"default")).to_owned();
    let number = rng.below(KEYS);
    let key = |number: usize| format!("{writer}{number:05}").into_bytes();
    match rng.below(1000) {
        0..120 => Change::Delete { family, key: key(number) },
        120..170 => Change::Merge { family, key: key(number), operand: rng.bytes(9) },
        170..180 => Change::DeleteRange { family, from: key(number), to: key(number + rng.between(1, 20)) },
        _ => Change::Put { family, key: key(number), value: draw_value(rng, MAX_VALUE_BYTES) },
    }
}

/// Opens the directory of a case under the settings of a round.
///
/// # Errors
/// The engine's.
pub(super) fn open(env: Env, dir: &Path, plan: &Plan, setup: &Setup) -> Result<Db, Error> {
    let family = |name: &&str| OpenFamily { name: (*name).to_owned(), options: setup.family.clone() };
    let families = plan.families().iter().map(family).collect();
    Db::open(env, dir, setup.db.clone(), families, setup.family.clone())
}
