//! What one thread does.

use crate::budget::Budget;
use crate::keys::{KeyMaker, KeyOrder, KeyStream};
use crate::meter::Meter;
use crate::pace::Pace;
use crate::plan::{Plan, Work};
use crate::random::Random;
use crate::stats::OpKind;
use crate::store::Store;
use crate::values::Values;
use ashlar_base::Result;
use ashlar_env::Clock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A thread with all it needs.
pub(crate) struct Worker<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) plan: &'a Plan,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) random: Random,
    pub(crate) values: Values,
    pub(crate) pace: &'a Pace,
    /// How often the clock is looked at, in operations.
    pub(crate) check_every: u64,
    pub(crate) seek_nexts: u64,
    pub(crate) step_back: bool,
    pub(crate) meter: Meter<'a>,
}

impl Worker<'_> {
    /// Does the plan's work.
    ///
    /// # Errors
    /// The engine's first.
    pub(crate) fn run(&mut self) -> Result<()> {
        match self.plan.work {
            Work::Put(order) => self.write(order, OpKind::Write),
            Work::Delete(order) => self.write(order, OpKind::Delete),
            Work::Get => self.get(),
            Work::Scan { backward } => self.scan(backward),
            Work::Seek => self.seek(),
            Work::Compact => self.once(self.store.compact()),
            Work::Flush => self.once(self.store.flush()),
            Work::Wait => self.once(self.store.wait_for_background()),
            Work::Print(_) => Ok(()),
        }
    }

    fn once(&mut self, done: Result<()>) -> Result<()> {
        done?;
        self.meter.finished(1, OpKind::Other);
        Ok(())
    }

    fn budget(&self) -> Budget {
        Budget::new(self.plan, self.check_every, self.clock)
    }

    fn write(&mut self, order: KeyOrder, kind: OpKind) -> Result<()> {
        let plan = self.plan;
        let mut writer = self.store.writer(plan.how);
        let mut maker = KeyMaker::new(plan.key_size);
        let mut numbers = KeyStream::new(order, plan.keys);
        let mut budget = self.budget();
        let entry = (plan.key_size + plan.value_size) as u64;
        loop {
            let entries = budget.take(plan.batch, self.clock);
            if entries == 0 {
                return Ok(());
            }
            for _ in 0..entries {
                let key = maker.key(numbers.next(&mut self.random));
                match kind {
                    OpKind::Delete => writer.delete(key),
                    _ => writer.put(key, self.values.next(plan.value_size)),
                }
            }
            if kind == OpKind::Write {
                self.pace.take(entries * entry, self.clock);
                self.meter.stats.bytes += entries * entry;
            }
            writer.commit()?;
            self.meter.finished(entries, kind);
        }
    }

    fn get(&mut self) -> Result<()> {
        let mut maker = KeyMaker::new(self.plan.key_size);
        let mut budget = self.budget();
        let (mut found, mut read) = (0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(self.random.below(self.plan.keys));
            read += 1;
            if let Some(len) = self.store.get(key)? {
                found += 1;
                self.meter.stats.bytes += (key.len() + len) as u64;
            }
            self.meter.finished(1, OpKind::Read);
        }
        self.meter.stats.message = Some(format!("({found} of {read} found)"));
        Ok(())
    }

    fn scan(&mut self, backward: bool) -> Result<()> {
        let mut budget = self.budget();
        let mut walk = self.store.cursor()?;
        if backward { walk.last() } else { walk.first() }?;
        while let Some((key, value)) = walk.entry() {
            if budget.take(1, self.clock) == 0 {
                break;
            }
            self.meter.stats.bytes += (key.len() + value.len()) as u64;
            if backward { walk.prev() } else { walk.next() }?;
            self.meter.finished(1, OpKind::Read);
        }
        Ok(())
    }

    fn seek(&mut self) -> Result<()> {
        let mut maker = KeyMaker::new(self.plan.key_size);
        let mut budget = self.budget();
        let (mut found, mut read) = (0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(self.random.below(self.plan.keys));
            let mut walk = self.store.cursor()?;
            walk.seek(key)?;
            read += 1;
            found += u64::from(walk.entry().is_some_and(|(at, _)| at == key));
            for _ in 0..self.seek_nexts {
                let Some((key, value)) = walk.entry() else { break };
                self.meter.stats.bytes += (key.len() + value.len()) as u64;
                if self.step_back { walk.prev() } else { walk.next() }?;
            }
            self.meter.finished(1, OpKind::Seek);
        }
        self.meter.stats.message = Some(format!("({found} of {read} found)"));
        Ok(())
    }

    /// Puts random keys until `stop`: the thread beside the readers.
    ///
    /// # Errors
    /// The engine's first.
    pub(crate) fn write_until(&mut self, stop: &AtomicBool) -> Result<()> {
        let plan = self.plan;
        let mut writer = self.store.writer(plan.how);
        let mut maker = KeyMaker::new(plan.key_size);
        // Relaxed: nothing else is told by it.
        while !stop.load(Ordering::Relaxed) {
            writer.put(maker.key(self.random.below(plan.writer_keys)), self.values.next(plan.value_size));
            writer.commit()?;
            self.meter.finished(1, OpKind::Write);
            self.pace.take((plan.key_size + plan.value_size) as u64, self.clock);
        }
        Ok(())
    }
}
