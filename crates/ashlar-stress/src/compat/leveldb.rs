//! A directory that LevelDB 1.23 writes with random settings and then closes, or leaves by a kill.
//!
//! 1. AshlarDB reads and checks the directory without a change, and LevelDB continues with it.
//! 2. Then come the turns of every case (see [`super::game`]), between AshlarDB and RocksDB.
//! 3. AshlarDB's first write cannot be undone, and the report says so. Afterwards LevelDB may refuse the directory, but it
//!    never shows fewer entries.

use super::game::Game;
use crate::contents::{same, theirs};
use crate::sim::plan::DEFAULT;
use ashlar_testkit::judge::{JudgeError, Opening, copy_flat};
use ashlar_testkit::ops::{Bulk, BulkKind, BulkWrite, MERGE_OPERATOR, Op};
use ashlar_testkit::oracle::State;
use ashlar_testkit::suite::Report;
use ashlar_testkit::{Judge, JudgeVersion, Rng};
use ashlardb::{Db, Env, Read as _, check_database};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// LevelDB's settings with values at, between and beyond their bounds; it moves what is beyond into them.
const SETTINGS: &[(&str, &[u32])] = &[
    ("write_buffer_size", &[1, 65_536, 100_000, 4 << 20]),
    ("block_size", &[1, 1024, 4096, 100_000, 8 << 20]),
    ("block_restart_interval", &[1, 2, 16, 1000]),
    ("max_file_size", &[1, 1 << 20, 4 << 20]),
    ("max_open_files", &[1, 74, 1000]),
    ("compression", &[0, 1]),
    ("bloom_bits", &[1, 10, 30]),
];

/// Plays the case of a seed.
///
/// # Errors
/// What does not hold.
pub(super) fn play(seed: u64, report: &mut Report) -> Result<(), String> {
    let mut rng = Rng::new(seed ^ 0x1eef);
    let settings = draw_settings(&mut rng);
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let state = match write(dir.path(), &settings, &mut rng) {
        Ok(state) => state,
        Err(JudgeError::Skip(skip)) => {
            report.skip(format!("directories of LevelDB: {skip}"));
            return Ok(());
        }
        Err(e) => return Err(format!("LevelDB with {settings}: {e}")),
    };
    look(dir.path(), &settings, &state).map_err(|e| format!("LevelDB with {settings}: {e}"))?;
    report.count("directories made by LevelDB", 1);
    let mut game = Game::begin(seed, (dir, state), MERGE_OPERATOR, report);
    game.play().map_err(|e| format!("LevelDB with {settings}: {e}"))?;
    let (dir, state) = game.end();
    match read(dir.path(), &settings) {
        Ok(found) => same(&state, &found).map_err(|e| format!("read by LevelDB, after us: {e}")),
        Err(JudgeError::Refused(_)) => {
            report.count("directories refused by LevelDB after us", 1);
            Ok(())
        }
        Err(e) => Err(format!("LevelDB, after us: {e}")),
    }
}

fn draw_settings(rng: &mut Rng) -> String {
    let mut settings = String::new();
    for (name, values) in SETTINGS {
        if let Some(value) = rng.pick(values).copied().filter(|_| rng.percent(60)) {
            settings += &format!("{name}={value};");
        }
    }
    settings
}

/// LevelDB's history; answers what the directory holds.
fn write(dir: &Path, settings: &str, rng: &mut Rng) -> Result<State, JudgeError> {
    let mut entries = BTreeMap::new();
    let mut judge = Judge::spawn(JudgeVersion::LevelDb)?;
    judge.open(dir, Opening::Create, settings)?;
    for _ in 0..rng.between(1, 10) {
        match rng.below(10) {
            0 => judge.apply(&[Op::Compact { family: DEFAULT.to_owned() }])?,
            1 => {
                judge.close()?;
                judge.open(dir, Opening::Existing, settings)?;
            }
            2 => {
                judge.kill();
                judge = Judge::spawn(JudgeVersion::LevelDb)?;
                judge.open(dir, Opening::Existing, settings)?;
            }
            kind => {
                let bulk = draw_bulk(if kind == 3 { BulkKind::Delete } else { BulkKind::Put }, rng);
                judge.bulk(&bulk)?;
                match bulk.kind {
                    BulkKind::Put => entries.extend(bulk.entries()),
                    _ => bulk.keys().for_each(|key| drop(entries.remove(&key))),
                }
            }
        }
    }
    if rng.percent(50) {
        judge.kill();
    } else {
        judge.close()?;
    }
    Ok(State::of([(DEFAULT.to_owned(), entries.into_iter().collect())]))
}

fn draw_bulk(kind: BulkKind, rng: &mut Rng) -> Bulk {
    let number = |n: usize| u32::try_from(n).unwrap_or(0);
    let count = [1, 30, 500, 4000][rng.below(4)];
    Bulk {
        kind,
        family: DEFAULT.to_owned(),
        first: number(rng.below(3000)),
        count: number(rng.between(1, count)),
        bytes: [0, 1, 20, 300, 40_000][rng.below(if count > 30 { 4 } else { 5 })],
        seed: rng.next_u64() % 100_000,
        write: BulkWrite::Plain,
    }
}

/// What LevelDB shows of a copy.
fn read(dir: &Path, settings: &str) -> Result<State, JudgeError> {
    let copy = copied(dir)?;
    let mut judge = Judge::spawn(JudgeVersion::LevelDb)?;
    judge.open(copy.path(), Opening::Existing, settings)?;
    theirs(&mut judge)
}

fn copied(dir: &Path) -> Result<TempDir, JudgeError> {
    let died = |e: std::io::Error| JudgeError::Died(format!("a copy of {}: {e}", dir.display()));
    let copy = tempfile::tempdir().map_err(died)?;
    copy_flat(dir, copy.path()).map_err(died)?;
    Ok(copy)
}

/// Our reading and our check change nothing, and LevelDB shows the same before and after them.
fn look(dir: &Path, settings: &str, state: &State) -> Result<(), String> {
    let by_leveldb = |when: &str| {
        let found = read(dir, settings).map_err(|e| format!("{when}: {e}"))?;
        same(state, &found).map_err(|e| format!("read by LevelDB, {when}: {e}"))
    };
    by_leveldb("before us")?;
    let failed = |e: ashlardb::Error| format!("read-only: {e}");
    let db = Db::builder(dir).create(false).read_only(true).open().map_err(failed)?;
    let found = db.scan(..).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    same(state, &State::of([(DEFAULT.to_owned(), found)])).map_err(|e| format!("read-only: {e}"))?;
    if !db.recovery().is_clean() {
        return Err(format!("alarm on a healthy directory: {}", db.recovery()));
    }
    db.close().map_err(failed)?;
    let report = check_database(&Env::os().map_err(failed)?, dir, &mut |_| ()).map_err(failed)?;
    if !report.is_sound() {
        return Err(format!("check finds damage: {report}"));
    }
    by_leveldb("after our reading")
}
