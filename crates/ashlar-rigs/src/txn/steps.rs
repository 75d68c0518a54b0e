//! Several transactions in one thread, their calls in a random order, beside the model.

use super::model::{Change, Database, Lock, LockedRange, Open, Place, State, Verdict};
use ashlar_testkit::Rng;
use ashlar_testkit::suite::Report;
use ashlardb::prelude::*;
use ashlardb::{
    BusyKind, Env, ErrorKind, IndexedBatch, IndexedBatchOptions, Read, Result, Scan, StringAppend, Write,
};
use std::sync::Arc;
use std::time::Duration;

const KEYS: usize = 8;
const FAMILIES: usize = 2;
pub(super) const CONFLICT: ErrorKind = ErrorKind::Busy(BusyKind::Conflict);

/// An open transaction and its model.
pub(super) struct Running {
    pub(super) real: Transaction,
    pub(super) model: Open,
    /// The name, once it is prepared.
    pub(super) prepared: Option<String>,
}

/// A prepared transaction without a handle.
pub(super) struct Parked {
    pub(super) name: String,
    pub(super) model: Open,
}

/// A scan that was made earlier, and what it has to show.
pub(super) struct Kept {
    scan: Scan,
    want: Vec<(Vec<u8>, Vec<u8>)>,
}

pub(super) struct World<'a> {
    pub(super) env: Env,
    pub(super) db: Db,
    pub(super) families: Vec<Family>,
    pub(super) database: Database,
    pub(super) running: Vec<Running>,
    pub(super) parked: Vec<Parked>,
    pub(super) batches: Vec<(IndexedBatch, Open)>,
    pub(super) kept: Vec<Kept>,
    pub(super) rng: Rng,
    pub(super) values: u64,
    pub(super) report: &'a mut Report,
}

/// The case of a seed.
pub fn run(seed: u64, report: &mut Report) -> Result<(), String> {
    let env = Env::mem();
    let (db, families) = text(World::open(&env))?;
    let mut world = World {
        env,
        db,
        families,
        database: Database::new(),
        running: Vec::new(),
        parked: Vec::new(),
        batches: Vec::new(),
        kept: Vec::new(),
        rng: Rng::new(seed),
        values: 0,
        report,
    };
    for step in 0..220 {
        world.step().map_err(|e| format!("step {step}: {e}"))?;
    }
    world.finish()
}

pub(super) fn text<T>(answer: Result<T>) -> Result<T, String> {
    answer.map_err(|e| e.to_string())
}

pub(super) fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, want: &T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?}, and the model has {want:?}")) }
}

impl World<'_> {
    pub(super) fn open(env: &Env) -> Result<(Db, Vec<Family>)> {
        let merges = |f: ashlardb::FamilyBuilder| f.merge_operator(Arc::new(StringAppend::new(",")));
        let db = Db::builder("/db").env(env.clone()).options("disable_auto_compactions=true");
        let db = db.default_family(merges).family("other", merges).open()?;
        let families = vec![db.default_family(), db.family("other")?];
        Ok((db, families))
    }

    fn key(&mut self) -> Vec<u8> {
        vec![b'a' + u8::try_from(self.rng.below(KEYS)).unwrap_or_default()]
    }

    fn place(&mut self) -> Place {
        (self.rng.below(FAMILIES), self.key())
    }

    fn change(&mut self) -> Change {
        self.values += 1;
        let value = format!("v{}", self.values).into_bytes();
        match self.rng.below(4) {
            0 => Change::Delete,
            1 => Change::Merge(value),
            _ => Change::Put(value),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.below(20) {
            0..=1 if self.running.len() < 4 => self.begin(),
            2..=3 => self.write_plainly(),
            4 => match self.rng.below(3) {
                0..=1 => text(self.db.compact()),
                _ => text(self.db.flush()),
            },
            5..=6 => self.act_on_a_batch(),
            7 => self.look_at_a_kept_scan(),
            8 => match self.rng.below(30) {
                0 => self.reopen(),
                _ => self.take_over(),
            },
            _ if self.running.is_empty() => self.begin(),
            _ => {
                let at = self.rng.below(self.running.len());
                self.act(at)
            }
        }
    }

    /// An indexed batch is a transaction without locks and without conflicts.
    fn act_on_a_batch(&mut self) -> Result<(), String> {
        if self.batches.is_empty() || self.batches.len() < 2 && self.rng.percent(10) {
            // Of two batches, one keeps every operation: both answer the same.
            let options = IndexedBatchOptions::new().keep_operations(self.batches.len() == 1);
            self.batches.push((self.db.indexed_batch_with(options), Open::default()));
        }
        let at = self.rng.below(self.batches.len());
        let ((family, key), change) = (self.place(), self.change());
        let (batch, model) = &mut self.batches[at];
        let of = batch.family(&self.families[family]);
        match self.rng.below(10) {
            0..=4 => {
                text(write(&of, &key, &change))?;
                model.changes.push(((family, key), change));
            }
            5..=6 => {
                let view = model.view(&self.database);
                let got = text(of.get(&key))?.map(|value| value.to_vec());
                expect("get of a batch", &got.as_ref(), &view.get(&(family, key)))?;
                compare(&mut self.rng, &of, &view, family)?;
                self.kept.push(Kept { scan: of.scan(..), want: entries(&view, family) });
            }
            7 => {
                text(batch.set_savepoint())?;
                model.set_savepoint();
            }
            8 => expect(
                "rollback of a batch",
                &batch.rollback_to_savepoint().is_ok(),
                &model.rollback_to_savepoint(),
            )?,
            _ => {
                let (batch, model) = self.batches.swap_remove(at);
                text(batch.write())?;
                if !model.changes.is_empty() {
                    self.database.write(&model.changes);
                }
                self.report.count("batches written", 1);
            }
        }
        Ok(())
    }

    /// A scan shows the moment of its making, whatever came after.
    fn look_at_a_kept_scan(&mut self) -> Result<(), String> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.kept.len());
        let Kept { scan, want } = self.kept.swap_remove(at);
        self.report.count("kept scans compared", 1);
        expect("a kept scan", &text(scan.collect::<Result<Vec<_>>>())?, &want)
    }

    fn begin(&mut self) -> Result<(), String> {
        let (pessimistic, snapshot) = (self.rng.percent(60), self.rng.percent(30));
        let options = if pessimistic { TransactionOptions::new() } else { TransactionOptions::optimistic() };
        let options = options.lock_timeout(Duration::ZERO).snapshot(snapshot);
        let real = text(self.db.begin_with(options))?;
        let snapshot = snapshot.then(|| self.database.now());
        self.running.push(Running {
            real,
            model: Open { pessimistic, snapshot, ..Open::default() },
            prepared: None,
        });
        self.report.count("transactions", 1);
        Ok(())
    }

    /// A plain write: one operation, or a deletion of a range.
    fn write_plainly(&mut self) -> Result<(), String> {
        let (family, key) = self.place();
        if self.rng.percent(15) {
            let to = self.key().max(key.clone());
            text(self.families[family].delete_range(&key, &to))?;
            if key < to {
                let all = (key[0]..to[0]).map(|byte| (family, vec![byte]));
                self.database.delete(all);
            }
            return Ok(());
        }
        let change = self.change();
        text(write(&self.families[family], &key, &change))?;
        self.database.write(&[((family, key), change)]);
        Ok(())
    }

    fn act(&mut self, at: usize) -> Result<(), String> {
        if self.running[at].prepared.is_some() {
            return self.act_on_a_prepared(at);
        }
        match self.rng.below(28) {
            26..=27 => self.lock_range(at),
            24..=25 => self.prepare(at),
            0..=6 => self.write(at),
            7..=11 => self.read_for_update(at),
            12..=15 => self.read(at),
            16 => {
                text(self.running[at].real.set_savepoint())?;
                self.running[at].model.set_savepoint();
                Ok(())
            }
            17 => {
                let Running { real, model, .. } = &mut self.running[at];
                expect(
                    "rollback to a savepoint",
                    &real.rollback_to_savepoint().is_ok(),
                    &model.rollback_to_savepoint(),
                )
            }
            18 => {
                let Running { real, model, .. } = &mut self.running[at];
                expect("pop of a savepoint", &real.pop_savepoint().is_ok(), &model.savepoints.pop().is_some())
            }
            19 => self.change_snapshot(at),
            20..=21 => self.commit(at),
            22 => {
                let Running { real, .. } = self.running.swap_remove(at);
                text(real.rollback())
            }
            _ => {
                self.running.swap_remove(at);
                Ok(())
            }
        }
    }

    fn change_snapshot(&mut self, at: usize) -> Result<(), String> {
        let now = self.database.now();
        let Running { real, model, .. } = &mut self.running[at];
        match self.rng.below(3) {
            0 => {
                text(real.set_snapshot())?;
                (model.snapshot, model.snapshot_due) = (Some(now), false);
            }
            1 => {
                text(real.set_snapshot_on_next_operation())?;
                model.snapshot_due = true;
            }
            _ => {
                text(real.clear_snapshot())?;
                (model.snapshot, model.snapshot_due) = (None, false);
            }
        }
        Ok(())
    }

    /// Whether the lock is given, as the model says; `answer` is that of the call.
    fn locked<T>(
        &mut self,
        at: usize,
        place: &Place,
        exclusive: bool,
        answer: &Result<T>,
    ) -> Result<bool, String> {
        let others = self.others(at);
        let want = self.running[at].model.lock(&self.database, &others, place, exclusive);
        let got = answer.as_ref().err().map(ashlardb::Error::kind);
        let right = match want {
            Lock::Held => got == Some(ErrorKind::TimedOut),
            Lock::Conflict(Verdict::No) => got.is_none(),
            Lock::Conflict(Verdict::Yes) => got == Some(CONFLICT),
            Lock::Conflict(Verdict::Open) => got.is_none() || got == Some(CONFLICT),
        };
        self.report.count(if got.is_none() { "locks given" } else { "locks refused" }, 1);
        if !right {
            return Err(format!(
                "lock of {place:?}, exclusive {exclusive}: {got:?}, and the model has {want:?}"
            ));
        }
        if got.is_none() {
            let model = &mut self.running[at].model;
            model.track(&self.database, place, exclusive);
        }
        Ok(got.is_none())
    }

    /// The models of all open transactions but one, prepared ones without a handle included.
    fn others(&self, at: usize) -> Vec<&Open> {
        let others = self.running.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.map(|(_, other)| &other.model);
        others.chain(self.parked.iter().map(|parked| &parked.model)).collect()
    }

    /// A range of keys is locked exactly when no other transaction holds a key of it, or a range that meets it.
    fn lock_range(&mut self, at: usize) -> Result<(), String> {
        let (family, exclusive) = (self.rng.below(FAMILIES), self.rng.percent(60));
        let start = self.key()[0];
        let keys = start..start + 1 + u8::try_from(self.rng.below(4)).unwrap_or_default();
        let range = LockedRange { family, keys, exclusive };
        let of = self.running[at].real.family(&self.families[family]);
        let bounds = [range.keys.start]..[range.keys.end];
        let got = if exclusive { of.lock_range(bounds) } else { of.lock_range_shared(bounds) };
        let got = got.map_err(|e| e.kind());
        let model = &self.running[at].model;
        let want = match model.pessimistic {
            false => Err(ErrorKind::NotSupported),
            true if model.may_lock_range(&self.others(at), &range) => Ok(()),
            true => Err(ErrorKind::TimedOut),
        };
        let what = match want {
            Ok(()) => "ranges locked",
            Err(ErrorKind::TimedOut) => "ranges refused",
            Err(_) => "ranges of optimistic transactions refused",
        };
        self.report.count(what, 1);
        expect(&format!("a lock of {range:?}"), &got, &want)?;
        if got.is_ok() {
            self.running[at].model.lock_range(&self.database, range);
        }
        Ok(())
    }

    fn write(&mut self, at: usize) -> Result<(), String> {
        let ((family, key), change) = (self.place(), self.change());
        let place = (family, key);
        let of = self.running[at].real.family(&self.families[family]);
        if self.rng.percent(10) {
            text(write(&of.untracked(), &place.1, &change))?;
        } else {
            let answer = write(&of, &place.1, &change);
            if !self.locked(at, &place, true, &answer)? {
                return Ok(());
            }
        }
        self.running[at].model.changes.push((place, change));
        Ok(())
    }

    fn read_for_update(&mut self, at: usize) -> Result<(), String> {
        let (place, exclusive) = (self.place(), self.rng.percent(50));
        let of = self.running[at].real.family(&self.families[place.0]);
        let answer = if exclusive { of.get_for_update(&place.1) } else { of.get_for_share(&place.1) };
        if self.locked(at, &place, exclusive, &answer)? {
            let want = self.running[at].model.read(&self.database, &place);
            let got = text(answer)?.map(|value| value.to_vec());
            expect(&format!("get for update of {place:?}"), &got, &want)?;
        }
        Ok(())
    }

    pub(super) fn read(&mut self, at: usize) -> Result<(), String> {
        let place = self.place();
        let Running { real, model, .. } = &mut self.running[at];
        let of = real.family(&self.families[place.0]);
        let got = text(of.get(&place.1))?.map(|value| value.to_vec());
        expect(&format!("get of {place:?}"), &got, &model.read(&self.database, &place))?;
        let view = model.view(&self.database);
        compare(&mut self.rng, &of, &view, place.0)?;
        self.kept.push(Kept { scan: of.scan(..), want: entries(&view, place.0) });
        self.report.count("scans compared", 1);
        Ok(())
    }

    fn commit(&mut self, at: usize) -> Result<(), String> {
        let guarded = self.is_guarded(at);
        let Running { real, model, .. } = &self.running[at];
        let want = if guarded { Verdict::Yes } else { model.commit(&self.database) };
        let got = real.commit().map_err(|e| e.kind());
        let right = match want {
            Verdict::No => got == Ok(()),
            Verdict::Yes => got == Err(CONFLICT),
            Verdict::Open => got == Ok(()) || got == Err(CONFLICT),
        };
        self.report.count(if got.is_ok() { "commits" } else { "conflicts" }, 1);
        if !right {
            return Err(format!("commit: {got:?}, and the model has {want:?} of {model:?}"));
        }
        // A transaction that failed goes on now and then.
        if got.is_ok() || self.rng.percent(70) {
            let Running { model, .. } = self.running.swap_remove(at);
            if got.is_ok() && !model.changes.is_empty() {
                self.database.write(&model.changes);
            }
        }
        let now = self.database.at(self.database.now()).clone();
        (0..FAMILIES).try_for_each(|family| compare(&mut self.rng, &self.families[family], &now, family))
    }

    /// The end: all that was committed is there, and no lock is left.
    fn finish(mut self) -> Result<(), String> {
        while !self.kept.is_empty() {
            self.look_at_a_kept_scan()?;
        }
        self.decide_on_all()?;
        let now = self.database.at(self.database.now()).clone();
        let last = text(self.db.begin_with(TransactionOptions::new().lock_timeout(Duration::ZERO)))?;
        for family in 0..FAMILIES {
            compare(&mut self.rng, &self.families[family], &now, family)?;
            for byte in (b'a'..).take(KEYS) {
                let of = last.family(&self.families[family]);
                of.put([byte], "").map_err(|e| format!("a lock is left: {e}"))?;
            }
        }
        text(last.rollback())?;
        text(self.db.close())
    }
}

fn write(to: &impl Write, key: &[u8], change: &Change) -> Result<()> {
    match change {
        Change::Put(value) => to.put(key, value),
        Change::Delete => to.delete(key),
        Change::Merge(operand) => to.merge(key, operand),
    }
}

/// The entries of a family, in order.
fn entries(state: &State, family: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let of = state.iter().filter(|((at, _), _)| *at == family);
    of.map(|((_, key), value)| (key.clone(), value.clone())).collect()
}

/// Compares a scan, in a random direction, and a walk that turns around with the model.
fn compare(rng: &mut Rng, from: &impl Read, state: &State, family: usize) -> Result<(), String> {
    let want = entries(state, family);
    let got: Vec<_> = if rng.percent(50) {
        text(from.scan(..).collect::<Result<_>>())?
    } else {
        let mut got: Vec<_> = text(from.scan(..).rev().collect::<Result<_>>())?;
        got.reverse();
        got
    };
    expect("a scan", &got, &want)?;
    let (mut cursor, mut at) = (text(from.scan(..).cursor())?, 0);
    let mut shown = text(cursor.first())?.map(|(key, _)| key.to_vec());
    for _ in 0..8 {
        expect("a cursor", &shown.as_ref(), &want.get(at).map(|(key, _)| key))?;
        if want.is_empty() {
            return Ok(());
        }
        let forward = at == 0 || at + 1 < want.len() && rng.percent(50);
        if forward && at + 1 == want.len() {
            return Ok(());
        }
        let moved = if forward { cursor.next() } else { cursor.prev() };
        shown = text(moved)?.map(|(key, _)| key.to_vec());
        at = if forward { at + 1 } else { at - 1 };
    }
    Ok(())
}
