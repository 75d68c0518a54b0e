//! `kill -9` while we write: what comes back is a gapless prefix that holds every acknowledged write.

use crate::child::{HELD_BACK, Kind, Writer};
use crate::judge::{Judges, Looked, expect_state, follow};
use crate::store::{Shape, Store, copy, files, state_of};
use ashlar_testkit::oracle::State;
use ashlar_testkit::{Model, Op, Rng, report};
use ashlardb::{Db, FormatLevel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Default)]
struct Tally {
    kills: usize,
    acknowledged: usize,
    torn: usize,
    tables: usize,
    looked: Looked,
}

/// One directory under killed writers. There is more than one history it may show when a writer was killed while it
/// recovered: the write that was under way at the kill before is then followed by others, and is in or out.
struct Victim<'a> {
    dir: tempfile::TempDir,
    shape: Shape,
    histories: Vec<Model>,
    rng: Rng,
    judges: &'a mut Option<Judges>,
    tally: &'a mut Tally,
}

impl Victim<'_> {
    fn writes_until_killed(&mut self, kind: Kind, wait: bool, delay: (usize, usize)) {
        let list = self.rng.next_u64();
        let mut writer = Writer::start(self.dir.path(), self.shape, kind, list);
        if wait {
            writer.wait_until_writing();
        }
        let returned = writer.kill_after(Duration::from_millis(self.rng.between(delay.0, delay.1) as u64));
        let mut acknowledged = 0;
        for model in &mut self.histories {
            acknowledged = follow(model, kind, list, returned);
        }
        self.tally.kills += 1;
        self.tally.acknowledged += acknowledged;
    }

    /// The last write of each history: out, or in.
    fn split_histories(&mut self) {
        let mut split = Vec::new();
        for model in self.histories.drain(..) {
            let (mut without, mut with) = (model.clone(), model);
            without.truncate(without.writes() - 1);
            with.acknowledge(with.writes());
            split.extend([without, with]);
        }
        self.histories = split;
    }

    fn check(&mut self, what: &str) {
        let for_judges = copy(self.dir.path());
        let before = files(self.dir.path());
        let mut store = Store::open(self.dir.path(), self.shape);
        self.tally.torn += usize::from(only_a_torn_tail(store.db(), &before));
        let state = state_of(store.db());
        self.settle(&state, store.db(), what);
        store.close();
        if let Some(judges) = self.judges {
            self.tally.looked.add(judges.read(for_judges.path(), self.shape.level, &state, what));
        }
        // What we left behind after the recovery, closed in order, is the same again.
        let mut store = Store::open(self.dir.path(), self.shape);
        assert!(store.db().recovery().is_clean(), "{what}: {}", store.db().recovery());
        expect_state(&state, &state_of(store.db()), what);
        store.close();
        self.tally.tables += tables(self.dir.path());
    }

    /// Finds the history that was recovered, and where it was cut: the state must be that of the cut, and the sequence
    /// number too, so that a hole cannot hide behind a later write to the same key.
    fn settle(&mut self, state: &State, db: &Db, what: &str) {
        let found = self.histories.iter().map(|model| model.match_prefix(state)).collect::<Vec<_>>();
        for (model, cut) in self.histories.iter().zip(&found) {
            let Ok(cut) = cut else { continue };
            // The write under way at the kill may have changed nothing; then both cuts show this state.
            for cut in [*cut, cut.saturating_sub(1)] {
                let mut model = model.clone();
                model.truncate(cut);
                if model.sequence() == db.sequence().get() && model.now() == state {
                    self.histories = vec![model];
                    return;
                }
            }
        }
        panic!("{what}: sequence {}, {found:?}\n{}", db.sequence(), db.recovery());
    }
}

/// `kill -9` of writers that flush their log by hand: what comes back is a gapless prefix that holds all that was flushed,
/// and RocksDB finds the same in it.
#[test]
fn what_a_log_flushed_by_hand_leaves_is_a_prefix() {
    let mut judges = Judges::start().inspect_err(|skip| {
        skip.announce("what_a_log_flushed_by_hand_leaves_is_a_prefix, the part of the judges");
    });
    let kills = report::scale(10, 60);
    let (mut flushed, mut kept, mut lost, mut looked) = (0, 0, 0, Looked::default());
    for seed in 0..kills as u64 {
        let mut rng = Rng::new(seed);
        let level = if seed.is_multiple_of(2) { FormatLevel::V7_8 } else { FormatLevel::V9_11 };
        let shape = if rng.percent(50) { Shape::small(level) } else { Shape::large(level) };
        let shape = Shape { manual_wal_flush: true, ..shape };
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(dir.path(), shape, Kind::Random, seed);
        writer.wait_until_writing();
        let delay = Duration::from_millis(rng.between(1, 200) as u64);
        let floor = writer.kill_after(delay);
        let mut model = Model::new();
        // Behind what it flushed it may have flushed once more, and written on.
        for (index, op) in (0..floor + 2 * HELD_BACK).zip(Kind::Random.ops(seed)) {
            if let Op::Write { changes, .. } = op {
                let number = model.apply(&changes);
                if index < floor {
                    model.acknowledge(number);
                }
            }
        }
        let for_judges = copy(dir.path());
        let mut store = Store::open(dir.path(), shape);
        let state = state_of(store.db());
        let what = format!("seed {seed}, {shape:?}");
        let cut =
            model.match_prefix(&state).unwrap_or_else(|e| panic!("{what}: {e}\n{}", store.db().recovery()));
        store.close();
        if let Ok(judges) = &mut judges {
            looked.add(judges.read(for_judges.path(), level, &state, &what));
        }
        (flushed, kept) = (flushed + floor, kept + cut);
        lost += model.writes() - cut;
    }
    report::figure(&format!(
        "manual_wal_flush: {kills} kills -9, {flushed} writes flushed, {kept} found, 0 holes ({lost} of the {HELD_BACK} and \
         {HELD_BACK} behind each flush not in); 7.8.3 agrees on {}, 11.8.1 on {} directories",
        looked.directories[0], looked.directories[1]
    ));
    assert!(flushed > 0);
}

fn tables(dir: &Path) -> usize {
    files(dir).keys().filter(|path| path.extension().is_some_and(|ext| ext == "sst")).count()
}

/// Nothing but the end of the newest log or of the MANIFEST may have been dropped; whether something was.
fn only_a_torn_tail(db: &Db, before: &BTreeMap<PathBuf, u64>) -> bool {
    let report = db.recovery();
    let newest = before.keys().rfind(|path| path.extension().is_some_and(|ext| ext == "log"));
    for dropped in &report.dropped {
        let path = PathBuf::from(&dropped.file);
        let to_the_end = before.get(&path) == Some(&(dropped.offset + dropped.bytes));
        let may_be_torn = Some(&path) == newest || dropped.file.starts_with("MANIFEST");
        assert!(to_the_end && may_be_torn, "more than a torn tail: {report}");
    }
    assert!(report.regenerated.is_empty(), "{report}");
    assert!(report.lost.is_empty() || report.tail_dropped(), "{report}");
    report.tail_dropped()
}

fn one_directory(seed: u64, judges: &mut Option<Judges>, tally: &mut Tally) {
    let mut rng = Rng::new(seed);
    let level = if rng.percent(60) { FormatLevel::V7_8 } else { FormatLevel::V9_11 };
    let shape = if seed.is_multiple_of(2) { Shape::small(level) } else { Shape::large(level) };
    let (dir, histories) = (tempfile::tempdir().unwrap(), vec![Model::new()]);
    let mut victim = Victim { dir, shape, histories, rng, judges, tally };
    for round in 0..2 {
        // As fillseq into the empty database, then as fillrandom; or the other way around.
        let kind = [Kind::Sequential, Kind::Random][(seed as usize / 2 + round) % 2];
        victim.writes_until_killed(kind, true, (5, 300));
        if victim.rng.percent(30) {
            victim.split_histories();
            victim.writes_until_killed(Kind::Random, false, (1, 25));
        }
        victim.check(&format!("seed {seed}, round {round}, {shape:?}"));
    }
}

#[test]
fn every_acknowledged_write_survives_kill_9() {
    let mut judges = match Judges::start() {
        Ok(judges) => Some(judges),
        Err(skip) => {
            skip.announce("every_acknowledged_write_survives_kill_9, the part of the judges");
            None
        }
    };
    let mut tally = Tally::default();
    let wanted = report::scale(50, 100);
    let mut directories = 0;
    while tally.kills < wanted {
        one_directory(directories, &mut judges, &mut tally);
        directories += 1;
    }
    report::figure(&format!(
        "kill: {} kills -9 in {directories} directories, {} writes acknowledged, 0 lost, 0 holes; {} torn tails, {} tables; \
         both RocksDB agree: 7.8.3 on {}, 11.8.1 on {} states",
        tally.kills,
        tally.acknowledged,
        tally.torn,
        tally.tables,
        tally.looked.directories[0],
        tally.looked.directories[1]
    ));
    assert!(tally.acknowledged > 1000 && tally.tables > 0);
}
