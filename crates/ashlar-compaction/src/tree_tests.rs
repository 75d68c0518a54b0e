//! A whole tree under random writes, flushes, snapshots, and several concurrent compactions, against a model.
//!
//! Readers search from level 0 down and use the first version they find. So the test detects a compaction that leaves
//! an older version above a newer one, drops data that a snapshot needs, or writes over another job's range.

use super::*;
use crate::picker::{ManualPick, ManualRange, Shape, Targets, debt, pick_overfull, pick_tombstones};
use crate::rewrite::fixture::{TestDir, trailer};
use crate::rewrite::{CutLimits, EntrySink, Progress, TableOutputs};
use ashlar_base::{FamilyId, FileNumber, InternalKeyBuf, Level, LookupKey, Order, SeqNum, ValueType};
use ashlar_env::Env;
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::CompactionOptions;
use ashlar_tree::version::{FileMeta, TableCounts, Version};
use std::collections::BTreeMap;
use std::sync::Arc;

const KEYS: u64 = 150;

struct World {
    place: TestDir,
    version: Arc<Version>,
    /// By key and descending sequence: whether there is a value.
    model: BTreeMap<(String, std::cmp::Reverse<u64>), bool>,
    snapshots: Vec<u64>,
    seq: u64,
    epoch: u64,
    dice: u64,
    running: Vec<Under>,
    manual: Option<ManualRange>,
    compactions: u64,
    reasons: BTreeMap<&'static str, u64>,
    /// The number of compactions that were cut into parts.
    cut: u64,
    most_at_once: usize,
}

/// A running compaction.
struct Under {
    plan: Compaction,
    claim: Running,
    parts: Vec<CompactionPart>,
    done: Vec<CompactionPart>,
}

fn options() -> CompactionOptions {
    CompactionOptions {
        target_file_bytes: 700,
        base_level_bytes: 4000,
        level_multiplier: 3.0,
        max_compaction_bytes: 20_000,
        ..CompactionOptions::default()
    }
}

impl World {
    fn new(order: Order, seed: u64) -> World {
        let place = TestDir::new(Env::mem(), order);
        let version = Arc::new(place.empty());
        World {
            place,
            version,
            model: BTreeMap::new(),
            snapshots: vec![],
            seq: 0,
            epoch: 0,
            dice: seed,
            running: vec![],
            manual: None,
            compactions: 0,
            reasons: BTreeMap::new(),
            cut: 0,
            most_at_once: 0,
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) % sides
    }

    /// Writes a table of some new versions directly into level 0.
    fn flush(&mut self) {
        let mut entries = vec![];
        let (start, width) = (self.roll(KEYS), 1 + self.roll(KEYS));
        for _ in 0..1 + self.roll(30) {
            let key = format!("key{:04}", (start + self.roll(width)) % KEYS);
            self.seq += 1;
            let put = self.roll(3) > 0;
            self.model.insert((key.clone(), std::cmp::Reverse(self.seq)), put);
            let kind = if put { ValueType::Put } else { ValueType::Delete };
            entries.push((key, trailer(self.seq, kind)));
        }
        let order = self.place.order.clone();
        entries.sort_by(|a, b| order.compare_parts(a.0.as_bytes(), a.1, b.0.as_bytes(), b.1));
        let mut sink = TableOutputs::new(self.place.plan(), CutLimits::none(), self.place.numbers());
        for (i, (key, trailer)) in entries.iter().enumerate() {
            let internal = InternalKeyBuf::new(key.as_bytes(), *trailer);
            let first = i == 0 || entries[i - 1].0 != *key;
            sink.add(internal.as_key(), &[b'v'; 40], first).unwrap();
        }
        sink.finish().unwrap();
        let mut edit = VersionEdit::default();
        let output = sink.take().pop().unwrap();
        let counts = (output.file.number, output.counts);
        edit.add_file(Level::ZERO, output.file);
        self.epoch += 1;
        self.install(edit, self.epoch, &[counts]);
    }

    fn install(&mut self, mut edit: VersionEdit, epoch: u64, counts: &[(FileNumber, TableCounts)]) {
        for (_, file) in &mut edit.added {
            file.epoch = epoch;
        }
        self.version = Arc::new(self.version.apply(&[edit]).unwrap());
        for (_, file) in self.version.files() {
            let found = counts.iter().find(|(number, _)| *number == file.number());
            file.note_counts(found.map(|(_, counts)| *counts));
        }
    }

    fn pick(&mut self) -> Option<Compaction> {
        let shape = Shape::of(&self.version);
        let claims: Vec<Running> = self.running.iter().map(|u| u.claim.clone()).collect();
        if let Some(mut manual) = self.manual.take() {
            let picked = manual.pick(&shape, &options(), &claims, self.place.next_file());
            self.manual = (!matches!(picked, ManualPick::Done)).then_some(manual);
            if let ManualPick::Run(plan) = picked {
                *self.reasons.entry("manual").or_default() += 1;
                return Some(*plan);
            }
        }
        let oldest = self.snapshots.first().map(|s| SeqNum::new(*s).unwrap());
        pick_overfull(&shape, &options(), &claims)
            .or_else(|| pick_tombstones(&shape, &options(), &claims, oldest))
            .inspect(|plan| *self.reasons.entry(plan.reason.name()).or_default() += 1)
    }

    fn compact(&mut self) {
        let Some(plan) = self.pick() else { return };
        self.compactions += 1;
        assert!(plan.files().all(|(_, f)| !f.is_compacting()), "{plan}: taken already");
        if let Some(edit) = edit_without_io(FamilyId::DEFAULT, &plan) {
            let epoch = edit.added.iter().map(|(_, f)| f.epoch).min().unwrap();
            return self.install(edit, epoch, &[]);
        }
        plan.set_compacting(true);
        let claim = plan.running(&self.version.order).unwrap();
        let parts = CompactionPart::start(CompactionInput {
            plan: plan.clone(),
            version: Arc::clone(&self.version),
            snapshots: self.snapshots.iter().map(|s| SeqNum::new(*s).unwrap()).collect(),
            filter: None,
            partitioner: None,
            output: self.place.plan(),
            numbers: self.place.numbers(),
            parts_max: 1 + usize::try_from(self.roll(4)).unwrap(),
        });
        let parts = parts.unwrap();
        self.cut += u64::from(parts.len() > 1);
        self.running.push(Under { plan, claim, parts, done: vec![] });
        self.most_at_once = self.most_at_once.max(self.running.len());
    }

    fn step(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let at = usize::try_from(self.roll(self.running.len() as u64)).unwrap();
        let part = usize::try_from(self.roll(self.running[at].parts.len() as u64)).unwrap();
        if self.running[at].parts[part].step(400).unwrap() == Progress::More {
            return;
        }
        let done = self.running[at].parts.swap_remove(part);
        self.running[at].done.push(done);
        if !self.running[at].parts.is_empty() {
            return;
        }
        let Under { plan, done, .. } = self.running.swap_remove(at);
        let outcome = CompactionPart::finish(FamilyId::DEFAULT, &plan, done).unwrap();
        let epoch = plan.files().map(|(_, f)| f.file.epoch).min().unwrap();
        self.install(outcome.edit, epoch, &outcome.counts);
        plan.set_compacting(false);
    }

    fn check(&self) {
        for seq in self.snapshots.iter().copied().chain([self.seq]) {
            for i in 0..KEYS {
                let key = format!("key{i:04}");
                let expected = self
                    .model
                    .range((key.clone(), std::cmp::Reverse(seq))..)
                    .next()
                    .is_some_and(|((k, _), put)| *k == key && *put);
                let lookup = LookupKey::new(key.as_bytes(), SeqNum::new(seq).unwrap());
                assert_eq!(self.read(&lookup), expected, "{key} at {seq} in {:?}", self.version);
            }
        }
    }

    fn read(&self, key: &LookupKey<'_>) -> bool {
        let look = |file: &FileMeta| {
            let found = self.version.table(file).unwrap().get(key).unwrap()?;
            Some(found.trailer.value_type() == Some(ValueType::Put))
        };
        let in_level0 = self.version.level(Level::ZERO).iter().find_map(|f| look(f));
        let deeper = || (1..7).find_map(|level| look(self.version.find_file(Level(level), key)?));
        in_level0.or_else(deeper).unwrap_or(false)
    }

    fn turn(&mut self) {
        match self.roll(20) {
            0..=2 => self.flush(),
            3 | 4 if self.running.len() < 4 => self.compact(),
            5 if self.roll(4) == 0 => self.snapshots.push(self.seq),
            6 if self.roll(4) == 0 => {
                self.snapshots.pop();
            }
            7 if self.roll(20) == 0 && self.manual.is_none() => {
                let (a, b) = (format!("key{:04}", self.roll(KEYS)), format!("key{:04}", self.roll(KEYS)));
                let ordered = self.place.order.compare(a.as_bytes(), b.as_bytes()).is_le();
                let (begin, end) = if ordered { (a, b) } else { (b, a) };
                let deepest = self.roll(2) == 0;
                self.manual = Some(ManualRange::new(Some(begin.as_bytes()), Some(end.as_bytes()), deepest));
            }
            _ => self.step(),
        }
    }

    fn debt(&self) -> u64 {
        let shape = Shape::of(&self.version);
        let bytes: Vec<u64> = (0..7).map(|level| shape.bytes(level)).collect();
        debt(&shape, &Targets::new(&bytes, &options()), &options())
    }
}

#[test]
fn readers_of_a_busy_tree_see_the_model() {
    let mut reasons: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (order, seed) in [(Order::Bytewise, 1), (Order::ReverseBytewise, 2), (Order::Bytewise, 3)] {
        let mut world = World::new(order, 0x9e37_79b9_7f4a_7c15 >> seed);
        for turn in 0..3000 {
            world.turn();
            if turn % 100 == 0 {
                world.check();
            }
        }
        let (all, cut) = (world.compactions, world.cut);
        assert!(all > 60 && cut > 10 && world.most_at_once > 1, "{all} compactions, {cut} of them cut");
        for (reason, times) in &world.reasons {
            *reasons.entry(reason).or_default() += times;
        }
        // Without further writes the tree settles within its limits and without debt; then a full range compaction
        // leaves one level.
        world.snapshots.clear();
        world.settle();
        world.check();
        assert_eq!(world.debt(), 0);
        world.manual = Some(ManualRange::new(None, None, true));
        world.settle();
        world.check();
        let live = world.version.files().map(|(level, _)| level).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(live.len(), 1, "{:?}", world.version);
        let tombstones = world.version.files().map(|(_, f)| deletions(&world.version, f)).sum::<u64>();
        assert_eq!(tombstones, 0);
    }
    for reason in ["level0", "within-level0", "level-size", "manual", "tombstones", "bottommost-files"] {
        assert!(reasons.contains_key(reason), "no {reason} among {reasons:?}");
    }
}

fn deletions(version: &Version, file: &FileMeta) -> u64 {
    version.table(file).unwrap().properties().num_deletions.unwrap()
}

impl World {
    fn settle(&mut self) {
        for _ in 0..20_000 {
            let before = self.compactions;
            self.compact();
            if self.running.is_empty() && self.compactions == before && self.manual.is_none() {
                return;
            }
            self.step();
        }
        panic!("the tree does not come to rest: {:?}", self.version);
    }
}
