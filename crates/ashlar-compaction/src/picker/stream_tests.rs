//! The cost of the pickers: streams of writes through the real pickers and the real cut rule, without any file data.
//!
//! A key is a number, a table is the ascending list of its numbers, and every entry has the same size. Time is counted
//! in entries that the writer puts; there is no other clock, so every run is the same. At most one flush and one
//! compaction run at a time.

use super::{Shape, pick_overfull};
use crate::rewrite::Cut;
use crate::{Action, Compaction};
use ashlar_base::{FileNumber, InternalKeyBuf, Level, Order, SeqNum, Trailer, ValueType};
use ashlar_format::version_edit::NewFile;
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How keys are drawn.
#[derive(Clone, Copy)]
enum Draw {
    Uniform,
    Zipf,
    Ascending,
}

/// A database and its writer.
struct Stream {
    options: CompactionOptions,
    keys: u32,
    draw: Draw,
    memtable: usize,
    entry_bytes: u64,
    /// The time of writing an entry to a table.
    flush_cost: f64,
    compaction_cost: f64,
    /// Whether the picker learns that a table is expected.
    tells: bool,
    levels: Vec<Vec<Arc<FileMeta>>>,
    contents: BTreeMap<u64, Vec<u32>>,
    now: f64,
    dice: u64,
    put: u64,
    flushed: u64,
    compacted: u64,
    next_number: u64,
    flushing: Option<(f64, Vec<u32>)>,
    compacting: Option<(f64, Compaction, Vec<Vec<u32>>)>,
    /// The largest number of level-0 tables when a memtable was full.
    level0_most: usize,
}

impl Stream {
    fn new(options: CompactionOptions, keys: u32, memtable: usize, entry_bytes: u64, draw: Draw) -> Stream {
        let levels = vec![vec![]; options.num_levels];
        Stream {
            options,
            keys,
            draw,
            memtable,
            entry_bytes,
            flush_cost: 0.1,
            compaction_cost: 0.1,
            tells: true,
            levels,
            contents: BTreeMap::new(),
            now: 0.0,
            dice: 0x9e37_79b9_7f4a_7c15,
            put: 0,
            flushed: 0,
            compacted: 0,
            next_number: 1,
            flushing: None,
            compacting: None,
            level0_most: 0,
        }
    }

    fn roll(&mut self) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice >> 11
    }

    fn key(&mut self) -> u32 {
        let keys = u64::from(self.keys);
        let drawn = match self.draw {
            Draw::Uniform => self.roll() % keys,
            Draw::Ascending => self.put % keys,
            Draw::Zipf => {
                // Each halving of the range is equally likely; a multiplication spreads the numbers over all keys.
                let bits = 64 - keys.leading_zeros() as u64;
                let rank = (self.roll() % keys) >> (self.roll() % bits);
                rank.wrapping_mul(2_654_435_761) % keys
            }
        };
        self.put += 1;
        u32::try_from(drawn).unwrap()
    }

    fn file(&mut self, keys: Vec<u32>) -> Arc<FileMeta> {
        let number = self.next_number;
        self.next_number += 1;
        let end = |key: u32| {
            let trailer = Trailer::new(SeqNum::new(number).unwrap(), ValueType::Put);
            InternalKeyBuf::new(&key.to_be_bytes(), trailer)
        };
        let seqs = (SeqNum::new(number).unwrap(), SeqNum::new(number).unwrap());
        let ends = (end(keys[0]), end(keys[keys.len() - 1]));
        let size = keys.len() as u64 * self.entry_bytes;
        let mut new = NewFile::new(FileNumber(number), size, ends, seqs);
        new.epoch = number;
        self.contents.insert(number, keys);
        FileMeta::new(new)
    }

    /// Puts `puts` entries, and runs the flushes and compactions that follow.
    fn run(&mut self, puts: usize) {
        let mut left = puts;
        while left > 0 {
            let some = left.min(self.memtable);
            left -= some;
            let mut table: Vec<u32> = (0..some).map(|_| self.key()).collect();
            table.sort_unstable();
            table.dedup();
            self.pass_until(self.now + some as f64);
            while self.flushing.is_some() || self.levels[0].len() >= self.options.l0_slowdown {
                self.next_event().expect("a writer waits for ever");
            }
            self.level0_most = self.level0_most.max(self.levels[0].len());
            self.flushing = Some((self.now + table.len() as f64 * self.flush_cost, table));
        }
        while self.flushing.is_some() {
            self.next_event();
        }
    }

    /// Runs all remaining work without further writes.
    fn settle(&mut self) {
        self.tells = false;
        self.pick();
        while self.next_event().is_some() {}
        self.tells = true;
    }

    fn pass_until(&mut self, then: f64) {
        while let Some(at) = self.event_time()
            && at <= then
        {
            self.next_event();
        }
        self.now = self.now.max(then);
    }

    fn event_time(&self) -> Option<f64> {
        let flush = self.flushing.as_ref().map(|f| f.0);
        let compaction = self.compacting.as_ref().map(|c| c.0);
        [flush, compaction].into_iter().flatten().reduce(f64::min)
    }

    fn next_event(&mut self) -> Option<()> {
        let at = self.event_time()?;
        self.now = self.now.max(at);
        if self.flushing.as_ref().is_some_and(|f| f.0 <= at) {
            let (_, table) = self.flushing.take()?;
            self.flushed += table.len() as u64;
            let file = self.file(table);
            self.levels[0].insert(0, file);
        } else {
            let (_, plan, outputs) = self.compacting.take()?;
            self.install(&plan, outputs);
        }
        self.pick();
        Some(())
    }

    fn pick(&mut self) {
        while self.compacting.is_none() {
            let arriving = self.tells;
            let shape = Shape {
                order: &Order::Bytewise,
                levels: &self.levels,
                table: None,
                paths: &[],
                partitioner: None,
                arriving,
                unflushed_since: None,
                behind: false,
            };
            let Some(plan) = pick_overfull(&shape, &self.options, &[]) else { return };
            if plan.action == Action::Move {
                self.relevel(&plan);
                continue;
            }
            plan.set_compacting(true);
            let outputs = self.merge(&plan);
            let written: u64 = outputs.iter().map(|o| o.len() as u64).sum();
            self.compacted += written;
            self.compacting = Some((self.now + written as f64 * self.compaction_cost, plan, outputs));
        }
    }

    fn merge(&self, plan: &Compaction) -> Vec<Vec<u32>> {
        let mut all: Vec<u32> =
            plan.files().flat_map(|(_, f)| self.contents[&f.number().0].iter().copied()).collect();
        all.sort();
        all.dedup();
        let mut cut = Cut::new(plan.cut_limits(), Order::Bytewise);
        let mut outputs = vec![vec![]];
        for key in all {
            let size = outputs.last().unwrap().len() as u64 * self.entry_bytes;
            if cut.before(&key.to_be_bytes(), size) {
                outputs.push(vec![]);
            }
            outputs.last_mut().unwrap().push(key);
        }
        outputs
    }

    fn relevel(&mut self, plan: &Compaction) {
        self.drop_inputs(plan);
        for (_, file) in plan.files() {
            self.insert(plan.output_level, Arc::clone(file));
        }
    }

    fn drop_inputs(&mut self, plan: &Compaction) {
        for (level, file) in plan.files() {
            self.levels[level.index()].retain(|f| f.number() != file.number());
        }
    }

    fn insert(&mut self, level: Level, file: Arc<FileMeta>) {
        let files = &mut self.levels[level.index()];
        if level == Level::ZERO {
            // The result of a merge within level 0 is older than tables that came meanwhile.
            let at = files.partition_point(|f| f.file.epoch > file.file.epoch);
            return files.insert(at, file);
        }
        let at = files.partition_point(|f| f.smallest().user_key() < file.smallest().user_key());
        files.insert(at, file);
    }

    fn install(&mut self, plan: &Compaction, outputs: Vec<Vec<u32>>) {
        self.drop_inputs(plan);
        let epoch = plan.files().map(|(_, f)| f.file.epoch).min().unwrap();
        for keys in outputs {
            let file = self.file(keys);
            let file = FileMeta::new(NewFile { epoch, ..file.file.clone() });
            self.insert(plan.output_level, file);
        }
        for (_, file) in plan.files() {
            self.contents.remove(&file.number().0);
        }
    }

    /// Entries written to tables per put entry, since the last call.
    fn amplification(&mut self) -> f64 {
        let written = (self.flushed + self.compacted) as f64 / self.put as f64;
        (self.put, self.flushed, self.compacted) = (0, 0, 0);
        written
    }

    /// As many puts as there are keys, and the work that follows; returns the amplification.
    fn round(&mut self) -> f64 {
        self.run(self.keys as usize);
        self.settle();
        self.amplification()
    }
}

/// A million keys of 116 bytes, scaled down: an eighth as many keys, each eight times as large; in tables of
/// `memtable_kib`.
fn million(memtable_kib: usize, draw: Draw) -> Stream {
    Stream::new(CompactionOptions::default(), 125_000, entries(memtable_kib, 8), 8 * 123, draw)
}

/// How many entries of 116 bytes times `scale` a memtable holds.
fn entries(memtable_kib: usize, scale: usize) -> usize {
    memtable_kib * 1024 * 84 / 100 / 116 / scale
}

/// The bound for a tree of one level: the level is rewritten each time level 0 goes down with `tables` tables.
fn one_level_bound(s: &Stream, tables: usize) -> f64 {
    1.0 + f64::from(s.keys) / (tables * s.memtable) as f64
}

#[test]
fn level0_goes_down_at_the_price_of_many_tables() {
    for (memtable_kib, tables) in [(4096, 8), (1024, 12)] {
        let mut s = million(memtable_kib, Draw::Uniform);
        s.compaction_cost = 0.02;
        let bound = one_level_bound(&s, tables);
        let (filled, over, again) = (s.round(), s.round(), s.round());
        assert!(filled < bound && over < bound && again < bound * 1.02, "{filled} {over} {again}: {bound}");
    }
}

#[test]
fn without_a_writer_level0_goes_down_at_its_trigger() {
    let mut s = million(4096, Draw::Uniform);
    s.tells = false;
    s.compaction_cost = 0.02;
    s.run(125_000);
    assert!(s.level0_most <= s.options.l0_trigger, "{}", s.level0_most);
}

#[test]
fn a_writer_that_outruns_compaction_costs_no_more() {
    let (mut even, mut behind) = (million(1024, Draw::Uniform), million(1024, Draw::Uniform));
    (even.compaction_cost, behind.compaction_cost) = (0.02, 0.3);
    even.round();
    behind.round();
    let (even, slow) = (even.round(), behind.round());
    assert!(slow < even * 1.1 && behind.level0_most <= behind.options.l0_slowdown, "{slow} {even}");
}

#[test]
fn two_levels_cost_little_more_than_one() {
    // Ten million keys: 256 MiB in the base level, ten tables of it in a memtable's range.
    let options = CompactionOptions::default();
    let mut s = Stream::new(options, 625_000, entries(64 << 10, 16), 16 * 123, Draw::Uniform);
    s.compaction_cost = 0.02;
    let (filled, over, again) = (s.round(), s.round(), s.round());
    assert!(filled < 2.5 && over < 3.45 && again < 3.6, "{filled:.2} {over:.2} {again:.2}");
}

#[test]
fn ascending_keys_are_only_moved() {
    let mut s = million(4096, Draw::Ascending);
    assert_eq!(s.round(), 1.0);
}

#[test]
fn skewed_keys_cost_less_than_even_ones() {
    let mut s = million(4096, Draw::Zipf);
    let (filled, over) = (s.round(), s.round());
    let bound = one_level_bound(&s, 8);
    assert!(filled < bound / 2.0 && over < bound / 2.0, "{filled:.2} {over:.2}: {bound:.2}");
}
