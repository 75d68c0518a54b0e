//! One directory, several players: we and two versions of RocksDB write to it in turns, end in order or by `kill -9`, and
//! after every turn all of them must read the same from it, with their checks on.
//!
//! At level rocksdb-7.8 all three play; RocksDB 11.8.1 writes table format 5, as the test sets it. At rocksdb-9.11 the older one sits
//! out: it cannot read table format 6. Every reading is of a copy, so that a reader's recovery does not help the next.

use crate::child::{Kind, Writer, mixed};
use crate::store::{FAMILIES, Shape, Store, copy, state_of};
use ashlar_testkit::judge::{JudgeError, MERGING, Opening, digest};
use ashlar_testkit::ops::draw;
use ashlar_testkit::oracle::{State, first_difference};
use ashlar_testkit::{Judge, JudgeVersion, Model, Op, Rng, Skip, Tools, report};
use ashlardb::FormatLevel;
use std::path::Path;
use std::time::Duration;

/// Both versions of RocksDB, and Debian's tools.
pub struct Judges {
    tools: Tools,
    running: [Judge; 2],
}

/// What the judges looked at, 7.8.3 first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Directories read.
    pub directories: [usize; 2],
    /// Tables whose every block was verified.
    pub tables: [usize; 2],
}

impl Looked {
    pub fn add(&mut self, other: Looked) {
        for version in 0..2 {
            self.directories[version] += other.directories[version];
            self.tables[version] += other.tables[version];
        }
    }
}

fn spawn(version: JudgeVersion) -> Result<Judge, Skip> {
    Judge::spawn(version).map_err(|e| match e {
        JudgeError::Skip(skip) => skip,
        other => panic!("{}: {other}", version.name()),
    })
}

/// RocksDB beside the test; without RocksDB the test is skipped.
pub fn judge(version: JudgeVersion, test: &str) -> Option<Judge> {
    spawn(version).map_err(|skip| skip.announce(test)).ok()
}

/// The newest level that a version reads.
pub fn level_of(version: JudgeVersion) -> FormatLevel {
    if version == JudgeVersion::V7 { FormatLevel::V7_8 } else { FormatLevel::V11 }
}

/// The versions that can read a level's tables.
fn readers(level: FormatLevel) -> &'static [JudgeVersion] {
    if level <= FormatLevel::V7_8 { &JudgeVersion::ALL } else { &[JudgeVersion::V11] }
}

fn at(version: JudgeVersion) -> usize {
    usize::from(version == JudgeVersion::V11)
}

impl Judges {
    pub fn start() -> Result<Judges, Skip> {
        let running = [spawn(JudgeVersion::V7)?, spawn(JudgeVersion::V11)?];
        Ok(Judges { tools: Tools::available()?, running })
    }

    /// Has every version that can read `level` read copies of `dir`; they must find `expected`.
    pub fn read(&mut self, dir: &Path, level: FormatLevel, expected: &State, what: &str) -> Looked {
        let mut looked = Looked::default();
        for &version in readers(level) {
            let copy = copy(dir);
            let tables =
                self.read_with(version, copy.path(), expected, &format!("{what}, {}", version.name()));
            looked.directories[at(version)] += 1;
            looked.tables[at(version)] += tables;
        }
        looked
    }

    fn read_with(&mut self, version: JudgeVersion, dir: &Path, expected: &State, what: &str) -> usize {
        let judge = &mut self.running[at(version)];
        judge.open(dir, Opening::Existing, MERGING).unwrap_or_else(|e| panic!("{what}: {e}"));
        let verified = judge.verify().unwrap_or_else(|e| panic!("{what}: {e}"));
        let found = State::of(judge.families().unwrap().into_iter().map(|name| {
            let forward = judge.dump(&name).unwrap_or_else(|e| panic!("{what}, family {name}: {e}"));
            let mut backward = judge.dump_backwards(&name).unwrap();
            backward.reverse();
            assert_eq!(first_difference(&forward, &backward), None, "{what}, family {name} backwards");
            assert_eq!(judge.digest(&name).unwrap(), digest(&forward));
            (name, forward)
        }));
        expect_state(expected, &found, what);
        judge.close().unwrap();
        // What the older one cannot do itself its tools do. They look behind its close, when only live tables are left.
        verified.unwrap_or_else(|| self.check_with_tools(dir, what))
    }

    /// The MANIFEST against the files, and all blocks of all tables, by 7.8.3's tools. The number of tables.
    pub fn check_with_tools(&self, dir: &Path, what: &str) -> usize {
        self.tools.check_consistency(dir).unwrap_or_else(|e| panic!("{what}: {e}"));
        self.tools.check_tables(dir).unwrap_or_else(|e| panic!("{what}: {e}"))
    }

    fn respawn(&mut self, version: JudgeVersion) -> Judge {
        std::mem::replace(&mut self.running[at(version)], spawn(version).unwrap())
    }
}

/// Both states hold the same, or the first difference.
pub fn expect_state(expected: &State, found: &State, what: &str) {
    let names: std::collections::BTreeSet<&str> = expected.names().chain(found.names()).collect();
    for name in names {
        let difference = first_difference(&expected.entries(name), &found.entries(name));
        assert_eq!(difference, None, "{what}, family {name}");
    }
}

/// Adds to the model what a killed writer of ours did: everything that returned, and perhaps the operation after that.
/// Answers how many writes were acknowledged.
pub fn follow(model: &mut Model, kind: Kind, seed: u64, returned: u64) -> usize {
    let mut acknowledged = 0;
    for (index, op) in (0..=returned).zip(kind.ops(seed)) {
        if let Op::Write { changes, .. } = op {
            let number = model.apply(&changes);
            if index < returned {
                model.acknowledge(number);
                acknowledged += 1;
            }
        }
    }
    acknowledged
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Player {
    We,
    They(JudgeVersion),
}

#[derive(Default)]
struct Tally {
    rounds: usize,
    operations: usize,
    kills: usize,
    looked: Looked,
}

/// One directory and what it should hold.
struct Game<'a> {
    dir: tempfile::TempDir,
    shape: Shape,
    model: Model,
    rng: Rng,
    judges: &'a mut Judges,
    tally: &'a mut Tally,
}

impl Game<'_> {
    fn turn(&mut self, player: Player, killed: bool, operations: usize, what: &str) {
        let seed = self.rng.next_u64();
        match player {
            Player::We if killed => self.we_write_and_are_killed(seed),
            Player::We => {
                let mut store = Store::open(self.dir.path(), self.shape);
                for op in draw(seed, operations, &mixed()) {
                    self.note(&op);
                    store.apply(&op);
                }
                store.close();
            }
            Player::They(version) => self.they_write(version, seed, killed, operations, what),
        }
        self.tally.rounds += 1;
        self.tally.kills += usize::from(killed);
        self.everybody_reads(what, player == Player::We && !killed);
    }

    fn note(&mut self, op: &Op) {
        self.tally.operations += 1;
        if let Op::Write { changes, .. } = op {
            let number = self.model.apply(changes);
            self.model.acknowledge(number);
        }
    }

    fn we_write_and_are_killed(&mut self, seed: u64) {
        let mut writer = Writer::start(self.dir.path(), self.shape, Kind::Mixed, seed);
        writer.wait_until_writing();
        let returned = writer.kill_after(Duration::from_millis(self.rng.between(5, 150) as u64));
        follow(&mut self.model, Kind::Mixed, seed, returned);
        self.tally.operations += returned as usize;
    }

    fn they_write(&mut self, version: JudgeVersion, seed: u64, killed: bool, operations: usize, what: &str) {
        let format = if self.shape.level <= FormatLevel::V7_8 { 5 } else { 6 };
        let compression =
            ["kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD", "kZlibCompression"];
        let options = format!(
            "block_based_table_factory={{format_version={format};filter_policy=bloomfilter:10:false}};\
             write_buffer_size=131072;target_file_size_base=65536;compression={};{}",
            self.rng.pick(&compression).unwrap(),
            MERGING
        );
        let fail = |e: JudgeError| panic!("{what}: {e}");
        let judge = &mut self.judges.running[at(version)];
        judge.open(self.dir.path(), Opening::Create, &options).unwrap_or_else(fail);
        for family in FAMILIES {
            if !judge.families().unwrap().iter().any(|name| name == family) {
                judge.create_family(family).unwrap_or_else(fail);
            }
        }
        let ops = draw(seed, operations, &mixed());
        judge.apply(&ops).unwrap_or_else(fail);
        ops.iter().for_each(|op| self.note(op));
        if killed {
            self.judges.respawn(version).kill();
        } else {
            self.judges.running[at(version)].close().unwrap_or_else(fail);
        }
    }

    /// We read a copy first and say where a killed writer's list was cut; then the judges must find exactly that.
    fn everybody_reads(&mut self, what: &str, ours_is_closed: bool) {
        let copy = copy(self.dir.path());
        let mut store = Store::open(copy.path(), self.shape);
        let state = state_of(store.db());
        let recovered = self.model.match_prefix(&state);
        let recovered = recovered.unwrap_or_else(|e| panic!("{what}: {e}\n{}", store.db().recovery()));
        self.model.truncate(recovered);
        store.close();
        if ours_is_closed && self.shape.level <= FormatLevel::V7_8 {
            // Exactly the files that we left, before anybody else opened them.
            self.judges.check_with_tools(self.dir.path(), what);
        }
        self.tally.looked.add(self.judges.read(self.dir.path(), self.shape.level, &state, what));
    }
}

fn play(level: FormatLevel, games: usize, turns: usize, seed: u64, tally: &mut Tally) -> Result<(), Skip> {
    let mut judges = Judges::start()?;
    let players: Vec<Player> =
        std::iter::once(Player::We).chain(readers(level).iter().copied().map(Player::They)).collect();
    for game in 0..games {
        let mut rng = Rng::new(seed + game as u64);
        let shape = if rng.percent(50) { Shape::small(level) } else { Shape::large(level) };
        let (dir, model) = (tempfile::tempdir().unwrap(), Model::new());
        let mut game_state = Game { dir, shape, model, rng, judges: &mut judges, tally: &mut *tally };
        for turn in 0..turns {
            // Each engine begins some game, and each follows on each.
            let player = players[(game + turn + turn / players.len()) % players.len()];
            let killed = game_state.rng.percent(40);
            let what = format!("{level}, game {game}, turn {turn}, {player:?}, killed: {killed}");
            game_state.turn(player, killed, 150, &what);
        }
    }
    Ok(())
}

fn played(test: &str, level: FormatLevel, seed: u64) {
    let mut tally = Tally::default();
    if let Err(skip) = play(level, report::scale(2, 15), 7, seed, &mut tally) {
        return skip.announce(test);
    }
    let Tally { rounds, operations, kills, looked } = tally;
    report::figure(&format!(
        "judge at {level}: {rounds} rounds ({kills} ended by kill -9), {operations} operations, tables verified: \
         7.8.3 {}, 11.8.1 {}, directories read: 7.8.3 {}, 11.8.1 {}, 0 differences",
        looked.tables[0], looked.tables[1], looked.directories[0], looked.directories[1]
    ));
    assert!(looked.tables[1] > 0 && kills > 0 && kills < rounds);
    assert_eq!(looked.directories[0] > 0, level <= FormatLevel::V7_8);
}

#[test]
fn three_engines_share_one_directory_at_level_7_8() {
    played("three_engines_share_one_directory_at_level_7_8", FormatLevel::V7_8, 1);
}

#[test]
fn two_engines_share_one_directory_at_level_9_11() {
    played("two_engines_share_one_directory_at_level_9_11", FormatLevel::V9_11, 1000);
}
