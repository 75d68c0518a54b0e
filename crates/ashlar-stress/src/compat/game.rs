//! A case: one directory, and the engines that write to it in turns.

use crate::contents::{ours, same, theirs};
use crate::sim::plan::{DEFAULT, Setup};
use crate::sim::store::batch;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, WriteOptions};
use ashlar_repair::check_level;
use ashlar_testkit::golden::{DIRECTORIES, golden};
use ashlar_testkit::judge::{JudgeError, Opening, copy_flat};
use ashlar_testkit::ops::{MERGE_OPERATOR, Mix, draw};
use ashlar_testkit::oracle::State;
use ashlar_testkit::suite::Report;
use ashlar_testkit::{Judge, JudgeVersion, Op, Rng};
use std::path::Path;
use tempfile::TempDir;

const LEVELS: [FormatLevel; 4] =
    [FormatLevel::V6_29, FormatLevel::V7_8, FormatLevel::V9_11, FormatLevel::V11];
/// Operations of a turn.
const OPERATIONS: usize = 120;

/// Versions that a level promises to be read by. None of 6.29 is here; the next one stands in for it.
fn promised(level: FormatLevel) -> &'static [JudgeVersion] {
    if level <= FormatLevel::V7_8 { &JudgeVersion::ALL } else { &[JudgeVersion::V11] }
}

#[derive(Clone, Copy, Debug)]
enum Player {
    We,
    RocksDb(JudgeVersion),
}

pub(super) struct Game<'a> {
    dir: TempDir,
    /// The expected content.
    state: State,
    level: FormatLevel,
    /// The merge operator of all engines.
    operator: &'static str,
    rng: Rng,
    /// Those that were started, as [`JudgeVersion::ALL`] has them.
    judges: [Option<Judge>; 2],
    report: &'a mut Report,
}

/// Plays a case.
///
/// # Errors
/// What does not hold, in which turn.
pub(super) fn play(case: u64, report: &mut Report) -> Result<(), String> {
    let mut game = Game::new(case, report)?;
    if game.dir.path().join("CURRENT").exists() {
        game.report.count("golden directories", 1);
    }
    game.play()
}

fn copied(dir: &Path) -> Result<TempDir, String> {
    let copy = tempfile::tempdir().map_err(|e| e.to_string())?;
    copy_flat(dir, copy.path()).map_err(|e| format!("a copy of {}: {e}", dir.display()))?;
    Ok(copy)
}

impl Game<'_> {
    /// Golden directories come in turn, and behind them none; so do levels.
    fn new(case: u64, report: &mut Report) -> Result<Game<'_>, String> {
        let number = usize::try_from(case).map_err(|e| e.to_string())?;
        let mut operator = MERGE_OPERATOR;
        let mut state = State::of([(DEFAULT.to_owned(), Vec::new())]);
        let dir = match DIRECTORIES.get(number % (DIRECTORIES.len() + 1)) {
            Some((name, adds)) => {
                let golden = golden(name).map_err(|skip| skip.to_string())?;
                if *adds {
                    operator = "uint64add";
                }
                state =
                    State::of(golden.families.iter().map(|own| (own.family.clone(), own.visible.clone())));
                copied(golden.path())?
            }
            None => tempfile::tempdir().map_err(|e| e.to_string())?,
        };
        Ok(Game::begin(case, (dir, state), operator, report))
    }

    /// A directory and what it holds; the number of the case decides the level.
    pub(super) fn begin<'a>(
        case: u64,
        (dir, state): (TempDir, State),
        operator: &'static str,
        report: &'a mut Report,
    ) -> Game<'a> {
        let level = LEVELS[usize::try_from(case % LEVELS.len() as u64).unwrap_or(0)];
        Game { dir, state, level, operator, rng: Rng::new(case), judges: [None, None], report }
    }

    /// All turns.
    ///
    /// # Errors
    /// What does not hold, in which turn.
    pub(super) fn play(&mut self) -> Result<(), String> {
        let level = self.level;
        if self.dir.path().join("CURRENT").exists() {
            self.we_read().map_err(|e| format!("as it was left: {e}"))?;
        }
        let players: Vec<Player> =
            std::iter::once(Player::We).chain(promised(level).iter().copied().map(Player::RocksDb)).collect();
        for turn in 0..self.rng.between(2, 4) {
            let player = players[turn % players.len()];
            let killed = self.rng.percent(40);
            let done = match player {
                Player::We => self.we_write(killed, turn == 0),
                Player::RocksDb(version) => self.they_write(version, killed),
            };
            done.and_then(|()| self.everybody_reads())
                .map_err(|e| format!("{level}, turn {turn}, {player:?}, killed {killed}: {e}"))?;
            self.report.count("turns", 1);
            self.report.count("turns ended by a kill", u64::from(killed));
        }
        self.report.count(&format!("cases at {level}"), 1);
        Ok(())
    }

    /// What the turns left.
    pub(super) fn end(self) -> (TempDir, State) {
        (self.dir, self.state)
    }

    fn open(&mut self, dir: &Path) -> Result<Db, String> {
        let env = Env::os().map_err(|e| e.to_string())?;
        let Setup { db, family, .. } = Setup::draw(&mut self.rng);
        let mut db = DbOptions { format_level: self.level, manual_wal_flush: false, ..db };
        if self.level < FormatLevel::V7_8 {
            db.wal_compression = Compression::None;
        }
        let family = FamilyOptions { merge_operator: standard_operator(self.operator), ..family };
        let named = |name: &str| OpenFamily { name: name.to_owned(), options: family.clone() };
        let families = self.state.names().map(named).collect();
        Db::open(env, dir, db, families, family).map_err(|e| format!("open: {e}"))
    }

    fn we_read(&mut self) -> Result<(), String> {
        let copy = copied(self.dir.path())?;
        let db = self.open(copy.path())?;
        same(&self.state, &ours(&db)?).map_err(|e| format!("read by us: {e}"))?;
        db.verify_checksums(|_| ()).map_err(|e| format!("verified by us: {e}"))?;
        db.close().map_err(|e| format!("closed by us: {e}"))?;
        self.report.count("directories read by us", 1);
        Ok(())
    }

    /// What a player writes. Numbers that are added up are no operands of a list.
    fn draw(&mut self) -> Vec<Op> {
        let merge_percent = if self.operator == MERGE_OPERATOR { 8 } else { 0 };
        let families = self.state.names().map(str::to_owned).collect();
        let mix = Mix { families, merge_percent, max_value_bytes: 6000, ..Mix::writes_only() };
        draw(self.rng.next_u64(), OPERATIONS, &mix)
    }

    fn note(&mut self, ops: &[Op]) {
        for op in ops {
            if let Op::Write { changes, .. } = op {
                self.state.apply(changes);
            }
        }
    }

    /// What a kill leaves is what stands in the directory behind the last write. The first turn takes out what others left
    /// that the level does not have; after it nothing above the level is there.
    fn we_write(&mut self, killed: bool, first: bool) -> Result<(), String> {
        let dir = self.dir.path().to_owned();
        let foreign = first && self.above(&dir)?.is_some();
        let db = self.open(&dir)?;
        if foreign {
            self.report.count("golden directories brought to the level", 1);
            db.flush(&db.families()).map_err(|e| format!("flush: {e}"))?;
            for family in db.families() {
                db.compact_range(&family, None, None).map_err(|e| format!("compaction: {e}"))?;
            }
        }
        let ops = self.draw();
        for op in &ops {
            apply(&db, op).map_err(|e| format!("{op}: {e}"))?;
        }
        self.note(&ops);
        if killed {
            db.wait_for_background().map_err(|e| e.to_string())?;
            self.dir = copied(&dir)?;
        } else {
            db.close().map_err(|e| format!("close: {e}"))?;
        }
        match self.above(self.dir.path())? {
            Some(above) if first => Err(format!("what we left is above the level: {above}")),
            _ => Ok(()),
        }
    }

    /// What stands in the directory and the level's RocksDB does not read, or the newest one not any more.
    fn above(&self, dir: &Path) -> Result<Option<String>, String> {
        if !dir.join("CURRENT").exists() {
            return Ok(None);
        }
        let fs = Env::os().map_err(|e| e.to_string())?.fs;
        let report = check_level(&*fs, dir).map_err(|e| format!("level check: {e}"))?;
        let above = [report.above(self.level), report.above(FormatLevel::V11)].concat();
        Ok((!above.is_empty()).then(|| format!("{above:?}")))
    }

    fn they_write(&mut self, version: JudgeVersion, killed: bool) -> Result<(), String> {
        let compression =
            self.rng.pick(&["kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD"]);
        let options = format!(
            "block_based_table_factory={{format_version={};filter_policy=bloomfilter:10:false}};\
             write_buffer_size=131072;target_file_size_base=65536;compression={};{}",
            self.level.max_table_version(),
            compression.unwrap_or(&"kZSTD"),
            self.merging()
        );
        let dir = self.dir.path().to_owned();
        let ops = self.draw();
        let Some(mut judge) = self.judge(version)? else { return Ok(()) };
        let said = |e: JudgeError| format!("{}: {e}", version.name());
        judge.open(&dir, Opening::Existing, &options).map_err(said)?;
        judge.apply(&ops).map_err(said)?;
        self.note(&ops);
        if killed {
            judge.kill();
            return Ok(());
        }
        judge.close().map_err(said)?;
        self.keep(version, judge);
        Ok(())
    }

    fn everybody_reads(&mut self) -> Result<(), String> {
        self.we_read()?;
        for version in JudgeVersion::ALL {
            let copy = copied(self.dir.path())?;
            let Some(mut judge) = self.judge(version)? else { continue };
            let name = version.name();
            let found = judge.open(copy.path(), Opening::Existing, &self.merging()).and_then(|()| {
                let found = theirs(&mut judge)?;
                judge.verify()?;
                judge.close()?;
                Ok(found)
            });
            match found {
                Ok(found) => {
                    same(&self.state, &found).map_err(|e| format!("read by {name}: {e}"))?;
                    self.report.count(&format!("directories read by {name}"), 1);
                    self.keep(version, judge);
                }
                Err(e) if promised(self.level).contains(&version) => return Err(format!("{name}: {e}")),
                Err(_) => self.report.count(&format!("directories above its level refused by {name}"), 1),
            }
        }
        Ok(())
    }

    fn merging(&self) -> String {
        format!("merge_operator={}", self.operator)
    }

    /// A RocksDB that runs on this machine, if there is one.
    fn judge(&mut self, version: JudgeVersion) -> Result<Option<Judge>, String> {
        if let Some(judge) = self.judges[place(version)].take() {
            return Ok(Some(judge));
        }
        match Judge::spawn(version) {
            Ok(judge) => Ok(Some(judge)),
            Err(JudgeError::Skip(skip)) => {
                self.report.skip(format!("turns and readings of {}: {skip}", version.name()));
                Ok(None)
            }
            Err(e) => Err(format!("{}: {e}", version.name())),
        }
    }

    fn keep(&mut self, version: JudgeVersion, judge: Judge) {
        self.judges[place(version)] = Some(judge);
    }
}

fn place(version: JudgeVersion) -> usize {
    usize::from(version == JudgeVersion::V11)
}

/// One operation of a list of writes.
fn apply(db: &Db, op: &Op) -> Result<(), String> {
    let family = |name: &str| db.family(name).ok_or_else(|| format!("family {name} is gone"));
    let failed = |e: ashlar_base::Error| e.to_string();
    match op {
        Op::Write { changes, sync } => {
            let options = WriteOptions { sync: *sync, ..WriteOptions::default() };
            db.write(&mut batch(db, changes)?, options).map(drop).map_err(failed)
        }
        Op::Flush { family: name } => db.flush(&[family(name)?]).map_err(failed),
        Op::Compact { family: name } => db.compact_range(&*family(name)?, None, None).map_err(failed),
        _ => Ok(()),
    }
}
