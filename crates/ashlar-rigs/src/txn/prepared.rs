//! Prepared transactions among the steps: they outlive their handles and the database, and are decided on once.

use super::model::{Open, Tracked, Verdict};
use super::steps::{CONFLICT, Parked, Running, World, expect, text};
use ashlardb::prelude::*;

impl World<'_> {
    /// Prepares a transaction. It may be in a conflict, as at a commit.
    pub(super) fn prepare(&mut self, at: usize) -> Result<(), String> {
        self.values += 1;
        let name = format!("t{}", self.values);
        let Running { real, model, .. } = &mut self.running[at];
        if !model.pessimistic {
            return expect("an optimistic prepare", &real.set_name(&name).is_err(), &true);
        }
        // A transaction whose prepare was a conflict before has a name.
        let name = real.name().map_or(name, |own| String::from_utf8_lossy(&own).into_owned());
        let (want, named) = (model.commit(&self.database), real.name().is_some());
        expect("a name is given once", &real.set_name(&name).is_err(), &named)?;
        let got = real.prepare().map_err(|e| e.kind());
        let right = match want {
            Verdict::No => got == Ok(()),
            Verdict::Yes => got == Err(CONFLICT),
            Verdict::Open => got == Ok(()) || got == Err(CONFLICT),
        };
        if !right {
            return Err(format!("prepare: {got:?}, and the model has {want:?} of {model:?}"));
        }
        if got.is_ok() {
            model.savepoints.clear();
            self.running[at].prepared = Some(name);
            self.report.count("prepared", 1);
        }
        Ok(())
    }

    /// Reads a prepared transaction, decides on it, or drops its handle.
    pub(super) fn act_on_a_prepared(&mut self, at: usize) -> Result<(), String> {
        match self.rng.below(8) {
            0..=2 => self.read(at),
            3..=4 => {
                let Running { real, prepared, mut model } = self.running.swap_remove(at);
                drop(real);
                (model.snapshot, model.snapshot_due) = (None, false);
                self.parked.extend(prepared.map(|name| Parked { name, model }));
                Ok(())
            }
            decision => {
                let Running { real, model, .. } = self.running.swap_remove(at);
                self.decide(&real, &model, decision < 7)
            }
        }
    }

    fn decide(&mut self, real: &Transaction, model: &Open, commit: bool) -> Result<(), String> {
        text(if commit { real.commit() } else { real.rollback() })?;
        if commit && !model.changes.is_empty() {
            self.database.write(&model.changes);
        }
        self.report.count("decisions", 1);
        Ok(())
    }

    /// Takes a transaction over whose handle was dropped.
    pub(super) fn take_over(&mut self) -> Result<(), String> {
        if self.parked.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.parked.len());
        let Parked { name, model } = self.parked.swap_remove(at);
        let found = text(self.db.transaction_by_name(&name))?;
        let real = found.ok_or_else(|| format!("the prepared transaction {name} is gone"))?;
        expect("operations of a prepared transaction", &real.len(), &model.changes.len())?;
        self.running.push(Running { real, model, prepared: Some(name) });
        Ok(())
    }

    /// Closes and opens the database: what is prepared stays, and has locked the keys of its changes.
    pub(super) fn reopen(&mut self) -> Result<(), String> {
        self.kept.clear();
        self.batches.clear();
        for Running { model, prepared, .. } in self.running.drain(..) {
            self.parked.extend(prepared.map(|name| Parked { name, model }));
        }
        text(self.db.close())?;
        (self.db, self.families) = text(Self::open(&self.env))?;
        self.report.count("reopens", 1);
        self.parked.sort_by(|a, b| a.name.cmp(&b.name));
        let found = text(self.db.prepared_transactions())?;
        let names = found.iter().filter_map(Transaction::name).collect::<Vec<_>>();
        drop(found);
        let want: Vec<_> = self.parked.iter().map(|parked| parked.name.clone().into_bytes()).collect();
        expect("undecided transactions", &names, &want)?;
        for at in 0..self.parked.len() {
            let (before, rest) = self.parked.split_at_mut(at);
            let Some(Parked { model, .. }) = rest.first_mut() else { continue };
            (model.snapshot, model.snapshot_due) = (None, false);
            model.tracked.clear();
            model.ranges.clear();
            for (place, _) in &model.changes {
                // Only untracked writes bring two prepared transactions to one key.
                if before.iter().all(|other| !other.model.tracked.contains_key(place)) {
                    let tracked = Tracked { exclusive: true, since: 0, present: false };
                    model.tracked.insert(place.clone(), tracked);
                }
            }
        }
        Ok(())
    }

    /// Whether a prepared transaction keeps an optimistic one from its commit.
    pub(super) fn is_guarded(&self, at: usize) -> bool {
        let own = &self.running[at].model;
        let prepared = self.running.iter().filter(|other| other.prepared.is_some()).map(|other| &other.model);
        let mut prepared = prepared.chain(self.parked.iter().map(|parked| &parked.model));
        !own.pessimistic
            && prepared.any(|other| {
                own.tracked.iter().any(|(place, tracked)| {
                    other.tracked.get(place).is_some_and(|theirs| theirs.exclusive || tracked.exclusive)
                })
            })
    }

    /// Decides on all that is prepared.
    pub(super) fn decide_on_all(&mut self) -> Result<(), String> {
        // Twice: the second open finds what the first one kept.
        self.reopen()?;
        self.reopen()?;
        while !self.parked.is_empty() {
            self.take_over()?;
            if let Some(Running { real, model, .. }) = self.running.pop() {
                let commit = self.rng.percent(60);
                self.decide(&real, &model, commit)?;
            }
        }
        Ok(())
    }
}
