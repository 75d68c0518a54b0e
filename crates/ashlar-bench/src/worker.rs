//! The work of one thread.

use crate::budget::Budget;
use crate::keys::{KeyMaker, KeyOrder, KeyStream};
use crate::lengths::Lengths;
use crate::meter::Meter;
use crate::pace::Pace;
use crate::plan::{Beside, Plan, Ranges, Work};
use crate::random::Random;
use crate::stats::OpKind;
use crate::store::{Store, Walk, Writer};
use crate::values::Values;
use ashlar_base::Result;
use ashlar_env::Clock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of one thread.
pub(crate) struct Worker<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) plan: &'a Plan,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) random: Random,
    pub(crate) values: Values,
    pub(crate) lengths: Lengths,
    /// The pace of writes, in bytes.
    pub(crate) pace: &'a Pace,
    /// The pace of reads.
    pub(crate) read_pace: &'a Pace,
    /// Operations from one read of the clock to the next.
    pub(crate) check_every: u64,
    pub(crate) seek_nexts: u64,
    pub(crate) step_back: bool,
    /// The cursors of seeks are bounded this many numbers after the sought key. 0: no bound.
    pub(crate) scan_distance: u64,
    /// The distance of the keys of a multi-get, in numbers. 0: each key is drawn.
    pub(crate) multiread_stride: u64,
    /// Bytes of a block under a measured function.
    pub(crate) block_size: usize,
    /// The measured codec.
    pub(crate) codec: &'a str,
    /// The number of writes of the writer beside readers. `None`: it writes until the readers end.
    pub(crate) beside_count: Option<u64>,
    /// Upper bound of the numbers of merged keys, excluded.
    pub(crate) merge_keys: u64,
    pub(crate) meter: Meter<'a>,
}

/// Adds a tombstone over the keys from `first` on, or a delete for each of them.
fn delete_range(writer: &mut dyn Writer, maker: &mut KeyMaker, first: u64, ranges: Ranges) {
    let end = first.saturating_add(ranges.width);
    if ranges.expanded {
        (first..end).for_each(|number| writer.delete(maker.key(number)));
    } else {
        let begin = maker.key(first).to_vec();
        writer.delete_range(&begin, maker.key(end));
    }
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
            Work::Merge => self.merge(),
            Work::Get => self.get(),
            Work::MultiGet => self.multi_get(),
            Work::Update => self.update(),
            Work::ReadWrite => self.read_write(),
            Work::ReadMerge => self.read_merge(),
            Work::Scan { backward } => self.scan(backward),
            Work::Transactions => self.transactions(),
            Work::Seek => self.seek(),
            Work::SeekOrdered => self.seek_ordered(),
            Work::PutThenSeek => self.put_then_seek(),
            Work::NewCursor => self.new_cursor(),
            Work::Micro(function) => self.micro(function),
            Work::CompactLevel(level) => self.once(self.store.compact_level(level)),
            Work::Verify => self.once(self.store.verify()),
            Work::VerifyFiles => self.once(self.store.verify_files()),
            Work::ApproximateSize => self.approximate_size(),
            Work::Compact => self.once(self.store.compact()),
            Work::Flush => self.once(self.store.flush()),
            Work::Wait => self.once(self.store.wait_for_background()),
            Work::Print(_) | Work::ResetStats => Ok(()),
        }
    }

    /// Runs one operation without a histogram: db_bench has none of compactions, flushes and waits either.
    fn once(&mut self, done: Result<()>) -> Result<()> {
        done?;
        self.meter.finished_once();
        Ok(())
    }

    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.plan, self.check_every, self.clock)
    }

    /// The numbers of random reads and writes.
    pub(crate) fn numbers(&self, below: u64) -> KeyStream {
        KeyStream::new(KeyOrder::Random, below, self.plan.access)
    }

    /// Writes one entry as one batch.
    fn put(&mut self, writer: &mut dyn Writer, key: &[u8], kind: OpKind) -> Result<()> {
        let value = self.values.next(self.lengths.next());
        let bytes = (key.len() + value.len()) as u64;
        match kind {
            OpKind::Merge => writer.merge(key, value),
            _ => writer.put(key, value),
        }
        self.pace.take(bytes, self.clock);
        self.meter.stats.bytes += bytes;
        writer.commit()
    }

    /// Reads one entry. True if it exists.
    #[inline]
    fn read(&mut self, key: &[u8]) -> Result<bool> {
        self.read_pace.take(1, self.clock);
        let len = self.store.get(key)?;
        self.meter.stats.bytes += len.map_or(0, |len| (key.len() + len) as u64);
        Ok(len.is_some())
    }

    fn write(&mut self, order: KeyOrder, kind: OpKind) -> Result<()> {
        let plan = self.plan;
        let mut writer = self.store.writer(plan.how);
        let mut maker = plan.maker();
        let mut numbers = KeyStream::new(order, plan.keys, plan.access);
        let mut budget = self.budget();
        let ranges = plan.ranges.filter(|_| kind == OpKind::Write);
        let mut written = 0;
        loop {
            let entries = budget.take(plan.batch, self.clock);
            if entries == 0 {
                return Ok(());
            }
            let mut bytes = 0;
            for _ in 0..entries {
                let key = maker.key(numbers.next(&mut self.random));
                match kind {
                    OpKind::Delete => writer.delete(key),
                    _ => {
                        let value = self.values.next(self.lengths.next());
                        bytes += (key.len() + value.len()) as u64;
                        writer.put(key, value);
                    }
                }
                written += 1;
                if let Some(ranges) = ranges.filter(|ranges| ranges.due(written)) {
                    delete_range(&mut *writer, &mut maker, numbers.next(&mut self.random), ranges);
                }
            }
            if kind == OpKind::Write {
                self.pace.take(bytes, self.clock);
                self.meter.stats.bytes += bytes;
            }
            writer.commit()?;
            self.meter.finished(entries, kind);
        }
    }

    fn merge(&mut self) -> Result<()> {
        let mut writer = self.store.writer(self.plan.how);
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(self.merge_keys);
        let mut budget = self.budget();
        let mut updates = 0_u64;
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(numbers.next(&mut self.random));
            self.put(&mut *writer, key, OpKind::Merge)?;
            updates += 1;
            self.meter.finished(1, OpKind::Merge);
        }
        self.meter.stats.message = Some(format!("( updates:{updates})"));
        Ok(())
    }

    fn get(&mut self) -> Result<()> {
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(self.plan.keys);
        let mut budget = self.budget();
        let (mut found, mut read) = (0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(numbers.next(&mut self.random));
            read += 1;
            found += u64::from(self.read(key)?);
            self.meter.finished(1, OpKind::Read);
        }
        self.meter.stats.message = Some(format!("({found} of {read} found)"));
        Ok(())
    }

    fn multi_get(&mut self) -> Result<()> {
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(self.plan.keys);
        let mut budget = self.budget();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let (mut found, mut read) = (0_u64, 0_u64);
        loop {
            let entries = budget.take(self.plan.batch, self.clock);
            if entries == 0 {
                break;
            }
            keys.resize_with(usize::try_from(entries).unwrap_or(usize::MAX), Vec::new);
            let first = numbers.next(&mut self.random);
            for (at, key) in (0_u64..).zip(&mut keys) {
                let number = match self.multiread_stride {
                    _ if at == 0 => first,
                    0 => numbers.next(&mut self.random),
                    stride => first.wrapping_add(at.wrapping_mul(stride)) % self.plan.keys.max(1),
                };
                key.clear();
                key.extend_from_slice(maker.key(number));
            }
            self.read_pace.take(entries, self.clock);
            let (there, bytes) = self.store.multi_get(&keys)?;
            (found, read) = (found + there, read + entries);
            self.meter.stats.bytes += bytes + there * keys.first().map_or(0, Vec::len) as u64;
            self.meter.finished(entries, OpKind::Read);
        }
        self.meter.stats.message = Some(format!("({found} of {read} found)"));
        Ok(())
    }

    fn update(&mut self) -> Result<()> {
        let mut writer = self.store.writer(self.plan.how);
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(self.plan.keys);
        let mut budget = self.budget();
        let (mut found, mut updates) = (0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(numbers.next(&mut self.random));
            found += u64::from(self.read(key)?);
            self.put(&mut *writer, key, OpKind::Write)?;
            updates += 1;
            self.meter.finished(1, OpKind::Update);
        }
        self.meter.stats.message = Some(format!("( updates:{updates} found:{found})"));
        Ok(())
    }

    fn read_write(&mut self) -> Result<()> {
        let mut writer = self.store.writer(self.plan.how);
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(self.plan.keys);
        let mut budget = self.budget();
        let (mut found, mut reads, mut writes) = (0_u64, 0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(numbers.next(&mut self.random));
            if (reads + writes) % 100 < self.plan.percent {
                found += u64::from(self.read(key)?);
                reads += 1;
                self.meter.finished(1, OpKind::Read);
            } else {
                self.put(&mut *writer, key, OpKind::Write)?;
                writes += 1;
                self.meter.finished(1, OpKind::Write);
            }
        }
        let total = reads + writes;
        self.meter.stats.message =
            Some(format!("( reads:{reads} writes:{writes} total:{total} found:{found})"));
        Ok(())
    }

    fn read_merge(&mut self) -> Result<()> {
        let mut writer = self.store.writer(self.plan.how);
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(self.merge_keys);
        let mut budget = self.budget();
        let (mut found, mut reads, mut merges) = (0_u64, 0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(numbers.next(&mut self.random));
            if self.random.below(100) < self.plan.percent {
                self.put(&mut *writer, key, OpKind::Merge)?;
                merges += 1;
                self.meter.finished(1, OpKind::Merge);
            } else {
                found += u64::from(self.read(key)?);
                reads += 1;
                self.meter.finished(1, OpKind::Read);
            }
        }
        let total = reads + merges;
        self.meter.stats.message =
            Some(format!("(reads:{reads} merges:{merges} total:{total} hits:{found})"));
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
        let bounds = (self.scan_distance, self.step_back);
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(self.plan.keys);
        let mut budget = self.budget();
        let (mut found, mut read) = (0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let number = numbers.next(&mut self.random);
            self.read_pace.take(1, self.clock);
            let mut walk = cursor_at(self.store, self.plan, number, bounds)?;
            let key = maker.key(number);
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

    fn seek_ordered(&mut self) -> Result<()> {
        let mut maker = self.plan.maker();
        let mut budget = self.budget();
        let mut walk = self.store.cursor()?;
        let (mut number, mut found, mut read) = (0_u64, 0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            let key = maker.key(number);
            walk.seek(key)?;
            read += 1;
            found += u64::from(walk.entry().is_some_and(|(at, _)| at == key));
            number = (number + self.random.below(100)) % self.plan.keys.max(1);
            self.meter.finished(1, OpKind::Seek);
        }
        self.meter.stats.message = Some(format!("({found} of {read} found)"));
        Ok(())
    }

    /// Seeks each key twice, with steps in between.
    fn put_then_seek(&mut self) -> Result<()> {
        self.write(KeyOrder::Sequential, OpKind::Write)?;
        self.meter.restart();
        let mut maker = self.plan.maker();
        let mut budget = self.budget();
        let mut walk = self.store.cursor()?;
        let mut number = 0;
        while budget.take(1, self.clock) > 0 {
            walk.seek(maker.key(number))?;
            self.meter.finished(1, OpKind::Seek);
            for _ in 0..self.seek_nexts.min(self.plan.keys.saturating_sub(number + 1)) {
                if self.step_back { walk.prev() } else { walk.next() }?;
                number += 1;
                budget.take(1, self.clock);
                self.meter.finished(1, OpKind::Seek);
            }
            walk.seek(maker.key(number))?;
            self.meter.finished(1, OpKind::Seek);
            number += 1;
        }
        Ok(())
    }

    /// Asks for the size of ranges; reads no entry.
    fn approximate_size(&mut self) -> Result<()> {
        let (mut lower, mut upper) = (self.plan.maker(), self.plan.maker());
        let mut numbers = self.numbers(self.plan.keys);
        let mut budget = self.budget();
        let mut total = 0_u64;
        while budget.take(1, self.clock) > 0 {
            let (one, other) = (numbers.next(&mut self.random), numbers.next(&mut self.random));
            let range = (lower.key(one.min(other)), upper.key(one.max(other)));
            total = total.saturating_add(self.store.approximate_size(range.0, range.1)?);
            self.meter.finished(1, OpKind::Other);
        }
        self.meter.stats.message = Some(format!("(Size: {total} bytes)"));
        Ok(())
    }

    fn new_cursor(&mut self) -> Result<()> {
        let mut budget = self.budget();
        while budget.take(1, self.clock) > 0 {
            drop(self.store.cursor()?);
            self.meter.finished(1, OpKind::Other);
        }
        Ok(())
    }

    /// Runs the unmeasured thread until `stop`.
    ///
    /// # Errors
    /// The engine's first.
    pub(crate) fn beside(&mut self, stop: &AtomicBool) -> Result<()> {
        match self.plan.beside {
            Beside::Nothing => Ok(()),
            Beside::Writer => self.write_until(stop, OpKind::Write, self.plan.writer_keys),
            Beside::Merger => self.write_until(stop, OpKind::Merge, self.merge_keys),
            Beside::Scanner => self.scan_until(stop),
        }
    }

    fn write_until(&mut self, stop: &AtomicBool, kind: OpKind, keys: u64) -> Result<()> {
        let mut writer = self.store.writer(self.plan.how);
        let mut maker = self.plan.maker();
        let mut numbers = self.numbers(keys);
        let mut left = self.beside_count;
        // Relaxed: no other data depends on the flag.
        while left.map_or_else(|| !stop.load(Ordering::Relaxed), |left| left > 0) {
            left = left.map(|left| left - 1);
            let key = maker.key(numbers.next(&mut self.random));
            self.put(&mut *writer, key, kind)?;
            self.meter.finished(1, kind);
        }
        Ok(())
    }

    fn scan_until(&mut self, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let mut walk = self.store.cursor()?;
            walk.first()?;
            while walk.entry().is_some() && !stop.load(Ordering::Relaxed) {
                walk.next()?;
                self.meter.finished(1, OpKind::Read);
            }
        }
        Ok(())
    }
}

/// A cursor bounded `distance` numbers after the key of `number`, or before it when it goes backward. 0: no bound.
fn cursor_at<'s>(
    store: &'s dyn Store,
    plan: &Plan,
    number: u64,
    (distance, backward): (u64, bool),
) -> Result<Box<dyn Walk + 's>> {
    if distance == 0 {
        return store.cursor();
    }
    let mut maker = plan.maker();
    if backward {
        return store.cursor_within(Some(maker.key(number.saturating_sub(distance))), None);
    }
    store.cursor_within(None, Some(maker.key(number.saturating_add(distance).min(plan.keys))))
}
