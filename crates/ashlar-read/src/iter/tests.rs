//! Cursors and point reads against a model: random histories spread over memtables, level 0 and deeper levels.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use super::merging::Stepped;
use super::{DbIter, KeyBounds, MergingIter, RunContext, runs};
use crate::merge::Merger;
use crate::super_version::SuperVersion;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::range_del::{FragmentedTombstones, RangeTombstone};
use ashlar_base::{
    Comparator, ErrorKind, FamilyId, FileNumber, InternalKeyBuf, MergeOperator, Order, SeqNum, Trailer,
    ValueType,
};
use ashlar_blob::{BlobOptions, BlobWriter};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::blob::BlobIndex;
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::NewFile;
use ashlar_memtable::{MemtableRep, Op, WriterSlot};
use ashlar_options::{ReadOptions, ReadTier};
use ashlar_table::{ReadHow, TableBuilder, TableIdentity, TableOptions};
use ashlar_tree::blobs::{BlobMap, add_blob_file};
use ashlar_tree::version::{FileMeta, OpenTables, Tables, Version};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

mod deletions;

const DIR: &str = "/db";

/// A small generator: the same histories in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
    /// One of about sixty keys: prefixes of each other, the empty one, zero and high bytes; some keys often.
    pub(crate) fn key(&mut self) -> Vec<u8> {
        match self.below(6) {
            0 => b"hot".to_vec(),
            1 => b"hot\x00".to_vec(),
            _ => (0..self.below(4)).map(|_| b"\x00am\xff"[self.below(4)]).collect(),
        }
    }
}

#[derive(Debug)]
struct BackToFront;

impl Comparator for BackToFront {
    fn name(&self) -> &str {
        "test.BackToFront"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.iter().rev().cmp(b.iter().rev()).then(a.len().cmp(&b.len()))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) key: Vec<u8>,
    pub(crate) trailer: Trailer,
    pub(crate) value: Vec<u8>,
    /// What a read answers where that is not the value as it is stored.
    plain: Option<Vec<u8>>,
}

fn memtable(order: &Order, entries: &[Written]) -> Arc<dyn MemtableRep> {
    let mem = ashlar_memtable::memtable(order.clone());
    let mut w = WriterSlot::default();
    for e in entries {
        let value_type = e.trailer.value_type().unwrap();
        let op = Op { key: &e.key, value: &e.value, value_type, seq_delta: 0 };
        let prepared = mem.prepare(&mut w, &mut std::iter::once(op)).unwrap();
        mem.insert(&mut w, prepared, e.trailer.seq());
    }
    mem
}

/// What [`Family::grow`] writes besides puts and deletes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Diet {
    Plain,
    /// Merge operands, range deletions, and values that their entries only point to, too, in tables that may be cut between
    /// versions of a key.
    Rich,
}

/// How the tables of a [`Family`] are laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    restart_interval: usize,
    block_size: usize,
    /// Every so many values are longer than a block.
    long_each: usize,
}

impl Layout {
    const SMALL: Layout = Layout { restart_interval: 16, block_size: 100, long_each: usize::MAX };

    /// One of eight layouts.
    fn number(n: usize) -> Layout {
        Layout {
            restart_interval: [16, 1, 2, 256][n % 4],
            block_size: [100, 2000][n / 4 % 2],
            long_each: [usize::MAX, 41][n / 2 % 2],
        }
    }
}

/// A family being built: entries go in oldest first. Of a range deletion the value is the end.
pub(crate) struct Family {
    env: Env,
    order: Order,
    tables: Arc<Tables>,
    next_file: u64,
    blobs: BlobMap,
    diet: Diet,
    layout: Layout,
    /// The beginning of all random keys.
    begin: Vec<u8>,
    pub(crate) history: Vec<Written>,
}

/// Where a table of a level ends and the next one begins: the next one's first key.
type Border<'a> = Option<&'a [u8]>;

impl Family {
    pub(crate) fn new(order: Order) -> Family {
        let env = Env::mem();
        env.fs.create_dir_all(Path::new(DIR)).unwrap();
        let tables =
            Tables::new(env.clone(), DIR.into(), OpenTables::new(FramePool::new(1 << 20)), order.clone());
        Family {
            env,
            order,
            tables,
            next_file: 1,
            blobs: BlobMap::new(),
            diet: Diet::Plain,
            layout: Layout::SMALL,
            begin: Vec::new(),
            history: Vec::new(),
        }
    }

    pub(crate) fn of_diet(order: Order, diet: Diet) -> Family {
        Family { diet, ..Family::new(order) }
    }

    fn laid_out(self, layout: Layout) -> Family {
        Family { layout, ..self }
    }

    /// The family, with keys that begin with `bytes` common bytes.
    pub(crate) fn with_common_prefix(self, bytes: usize) -> Family {
        Family { begin: vec![b'p'; bytes], ..self }
    }

    fn key(&self, random: &mut Random) -> Vec<u8> {
        [&self.begin[..], &random.key()].concat()
    }

    pub(crate) fn write(&mut self, key: Vec<u8>, value_type: ValueType) {
        let seq = SeqNum::new(self.history.len() as u64 + 1).unwrap();
        let count = self.history.len();
        let long = count % self.layout.long_each == self.layout.long_each - 1;
        let text = format!("{seq}").repeat(if long { 1500 } else { count % 30 }).into_bytes();
        let (value, plain) = match value_type {
            ValueType::Put | ValueType::Merge => (text, None),
            ValueType::TimedPut => ([&text[..], &[7; 8]].concat(), Some(text)),
            ValueType::BlobIndex => (self.blob(&key, &text), Some(text)),
            ValueType::Entity => {
                let column = |name, value| Column { name, value: ColumnValue::Inline(value) };
                let mut columns = vec![column(b"column", b"other")];
                if !text.is_empty() {
                    columns.push(column(b"", &text));
                }
                let mut stored = Vec::new();
                Entity::new(columns).unwrap().encode(&mut stored);
                (stored, Some(text))
            }
            _ => (vec![], None),
        };
        self.history.push(Written { key, trailer: Trailer::new(seq, value_type), value, plain });
    }

    /// A blob file with one value; the index to it.
    fn blob(&mut self, key: &[u8], value: &[u8]) -> Vec<u8> {
        let number = FileNumber(self.next_file);
        self.next_file += 1;
        let file = self.env.fs.create(&Path::new(DIR).join(FileKind::Blob(number).name())).unwrap();
        let mut writer = BlobWriter::new(file, number, FamilyId::DEFAULT, &BlobOptions::default()).unwrap();
        let place = writer.add(key, value).unwrap();
        add_blob_file(&mut self.blobs, &writer.finish().unwrap().addition()).unwrap();
        let mut index = Vec::new();
        BlobIndex::Blob(place).encode(&mut index);
        index
    }

    fn write_range(&mut self, begin: Vec<u8>, end: Vec<u8>) {
        let (begin, end) = if self.order.compare(&begin, &end).is_le() { (begin, end) } else { (end, begin) };
        self.write(begin, ValueType::RangeDelete);
        self.history.last_mut().unwrap().value = end;
    }

    /// Random entries.
    pub(crate) fn grow(&mut self, random: &mut Random, count: usize) -> Vec<Written> {
        for _ in 0..count {
            let kind = match random.below(if self.diet == Diet::Rich { 17 } else { 8 }) {
                8 | 9 => {
                    self.write_range(self.key(random), self.key(random));
                    continue;
                }
                10..14 => ValueType::Merge,
                14 => ValueType::BlobIndex,
                15 => ValueType::Entity,
                16 => ValueType::TimedPut,
                0 | 1 => ValueType::Delete,
                2 => ValueType::SingleDelete,
                _ => ValueType::Put,
            };
            self.write(self.key(random), kind);
        }
        self.history[self.history.len() - count..].to_vec()
    }

    /// A table between two borders. Range deletions go in whole, as RocksDB has it; the bounds are cut.
    fn table(
        &mut self,
        entries: &[&Written],
        ranges: &FragmentedTombstones,
        (from, to): (Border<'_>, Border<'_>),
    ) -> Arc<FileMeta> {
        let number = FileNumber(self.next_file);
        self.next_file += 1;
        let file = self.env.fs.create(&Path::new(DIR).join(FileKind::Table(number).name())).unwrap();
        let options = TableOptions {
            block_size: self.layout.block_size,
            block_restart_interval: self.layout.restart_interval,
            order: self.order.clone(),
            ..TableOptions::default()
        };
        let identity = TableIdentity { number, ..TableIdentity::default() };
        let mut builder = TableBuilder::new(file, options, identity).unwrap();
        for e in entries {
            builder.add(InternalKeyBuf::new(&e.key, e.trailer).as_key(), &e.value).unwrap();
        }
        let less = |a: &[u8], b: &[u8]| self.order.compare(a, b) == Ordering::Less;
        let within = |t: &RangeTombstone| {
            from.is_none_or(|from| less(from, &t.end)) && to.is_none_or(|to| !less(to, &t.begin))
        };
        let pieces = ranges.fragments().flat_map(|f| {
            let of = |seq| RangeTombstone { begin: f.begin.to_vec(), end: f.end.to_vec(), seq };
            f.seqs().into_iter().map(of).collect::<Vec<_>>()
        });
        for t in pieces.filter(within) {
            builder.add_range_tombstone(&t.begin, &t.end, t.seq).unwrap();
        }
        let made = builder.finish().unwrap();
        let mut bounds = (made.smallest.clone(), made.largest.clone());
        if let Some(from) = from.filter(|from| less(bounds.0.as_key().user_key(), from)) {
            let first = entries.first().filter(|e| e.key == from).map(|e| e.trailer);
            let over = ranges.fragment_over(from).map(|f| Trailer::new(f.seqs()[0], ValueType::RangeDelete));
            bounds.0 = InternalKeyBuf::new(from, first.max(over).unwrap());
        }
        if let Some(to) = to.filter(|to| !less(bounds.1.as_key().user_key(), to)) {
            let last = entries.last().filter(|e| e.key == to).map(|e| e.trailer);
            bounds.1 = InternalKeyBuf::new(to, last.unwrap_or(Trailer::RANGE_END));
        }
        FileMeta::new(NewFile::new(number, made.size, bounds, (made.smallest_seq, made.largest_seq)))
    }

    /// A file with these bytes, claimed to span the keys "a" to "zz".
    pub(crate) fn foreign_table(&mut self, bytes: &[u8]) -> Arc<FileMeta> {
        let number = FileNumber(self.next_file);
        self.next_file += 1;
        let path = Path::new(DIR).join(FileKind::Table(number).name());
        self.env.fs.create(&path).unwrap().write_at(bytes, 0).unwrap();
        let bound = |key: &[u8], seq| {
            InternalKeyBuf::new(key, Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put))
        };
        let seqs = (SeqNum::new(1).unwrap(), SeqNum::new(1000).unwrap());
        FileMeta::new(NewFile::new(number, bytes.len() as u64, (bound(b"a", 1000), bound(b"zz", 1)), seqs))
    }

    /// Only the tables given, by level, with an empty memtable.
    pub(crate) fn holding(&self, levels: Vec<Vec<Arc<FileMeta>>>) -> Arc<SuperVersion> {
        let mut version =
            Version::empty(levels.len(), Arc::clone(&self.tables)).with_blobs(self.blobs.clone());
        version.levels = levels;
        let mem = ashlar_memtable::memtable(self.order.clone());
        let (imm, merger) = (Box::new([]), Arc::new(Merger::new("lone", None)));
        Arc::new(SuperVersion {
            mem,
            imm,
            version: Arc::new(version),
            merger,
            expiry: None,
            number: 1,
            contents: 1,
        })
    }

    /// Removes every file of the family that are not open yet.
    pub(crate) fn lose_files(&self) {
        for entry in self.env.fs.list(Path::new(DIR)).unwrap() {
            self.env.fs.remove(&Path::new(DIR).join(&entry.name)).unwrap();
        }
    }

    /// Tables of about `per_file` entries, cut between versions of a key on rich diet only.
    pub(crate) fn tables(&mut self, entries: &[Written], per_file: usize) -> Vec<Arc<FileMeta>> {
        let order = self.order.clone();
        let is_range = |e: &Written| e.trailer.value_type() == Some(ValueType::RangeDelete);
        let ranges: Vec<_> = entries.iter().filter(|e| is_range(e)).map(tombstone).collect();
        let ranges = FragmentedTombstones::new(&order, &ranges);
        let mut sorted: Vec<&Written> = entries.iter().filter(|e| !is_range(e)).collect();
        sorted.sort_by(|a, b| order.compare_parts(&a.key, a.trailer, &b.key, b.trailer));
        let (mut files, mut part, mut from): (_, Vec<&Written>, Border<'_>) = (vec![], vec![], None);
        for e in sorted {
            let may_cut = part.last().is_some_and(|l| l.key != e.key || self.diet == Diet::Rich);
            if part.len() >= per_file && may_cut {
                files.push(self.table(&part, &ranges, (from, Some(&e.key))));
                part.clear();
                from = Some(&e.key);
            }
            part.push(e);
        }
        if !part.is_empty() || !ranges.is_empty() {
            files.push(self.table(&part, &ranges, (from, None)));
        }
        files
    }

    /// Spreads a random history: the oldest part in level 2, then levels 1 and 0, immutable and active memtable.
    pub(crate) fn spread(&mut self, random: &mut Random) -> Arc<SuperVersion> {
        let mut version = Version::empty(4, Arc::clone(&self.tables));
        for level in [2, 1] {
            let part = self.grow(random, 150);
            version.levels[level] = self.tables(&part, 1 + level * 20);
        }
        for _ in 0..2 {
            let part = self.grow(random, 40);
            let files = self.tables(&part, usize::MAX);
            version.levels[0].splice(0..0, files);
        }
        let part = self.grow(random, 40);
        let old = memtable(&self.order, &part);
        let part = self.grow(random, 40);
        let imm = Box::new([memtable(&self.order, &part), old]);
        let part = self.grow(random, 60);
        let mem = memtable(&self.order, &part);
        let merger = Arc::new(Merger::new("rich", Some(operator())));
        Arc::new(SuperVersion {
            mem,
            imm,
            version: Arc::new(version.with_blobs(self.blobs.clone())),
            merger,
            expiry: None,
            number: 1,
            contents: 1,
        })
    }

    /// What a read at `seq` sees, in order.
    pub(crate) fn seen(&self, seq: SeqNum) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut keys: Vec<&Vec<u8>> = self.history.iter().map(|e| &e.key).collect();
        keys.sort_by(|a, b| self.order.compare(a, b));
        keys.dedup();
        keys.into_iter().filter_map(|key| Some((key.clone(), self.seen_of(key, seq)?))).collect()
    }

    fn seen_of(&self, key: &[u8], seq: SeqNum) -> Option<Vec<u8>> {
        let (mut operands, mut base) = (vec![], None);
        for e in self.history.iter().rev().filter(|e| e.trailer.seq() <= seq) {
            match e.trailer.value_type() {
                Some(ValueType::RangeDelete) => {
                    let from_begin = self.order.compare(&e.key, key).is_le();
                    if from_begin && self.order.compare(key, &e.value).is_lt() {
                        break;
                    }
                }
                _ if e.key != key => {}
                Some(ValueType::Merge) => operands.push(&e.value[..]),
                Some(ValueType::Put) => {
                    base = Some(e.value.clone());
                    break;
                }
                Some(ValueType::BlobIndex | ValueType::Entity | ValueType::TimedPut) => {
                    base = e.plain.clone();
                    break;
                }
                _ => break,
            }
        }
        operands.reverse();
        if operands.is_empty() {
            return base;
        }
        Some(operator().full_merge(key, base.as_deref(), &operands).unwrap())
    }
}

fn tombstone(e: &Written) -> RangeTombstone {
    RangeTombstone { begin: e.key.clone(), end: e.value.clone(), seq: e.trailer.seq() }
}

fn operator() -> Arc<dyn MergeOperator> {
    standard_operator("stringappend").unwrap()
}

pub(crate) fn orders() -> [Order; 3] {
    [Order::Bytewise, Order::ReverseBytewise, Order::Custom(Arc::new(BackToFront))]
}

/// Random moves of a cursor and of an index into what it should show; both in step at all times.
fn wander(it: &mut DbIter, want: &[(Vec<u8>, Vec<u8>)], order: &Order, random: &mut Random, moves: usize) {
    let mut at: Option<usize> = None;
    for _ in 0..moves {
        let key = match want.len() {
            some if some > 0 && random.below(2) == 0 => want[random.below(some)].0.clone(),
            _ => random.key(),
        };
        let less = |e: &(Vec<u8>, Vec<u8>)| order.compare(&e.0, &key) == Ordering::Less;
        let what = random.below(14);
        match what {
            0 => (at, ()) = ((!want.is_empty()).then_some(0), it.first().unwrap()),
            1 => (at, ()) = (want.len().checked_sub(1), it.last().unwrap()),
            2 => (at, ()) = (Some(want.partition_point(less)), it.seek(&key).unwrap()),
            3 => {
                let behind = want.partition_point(|e| order.compare(&e.0, &key) != Ordering::Greater);
                (at, ()) = (behind.checked_sub(1), it.seek_for_prev(&key).unwrap());
            }
            4..9 => (at, ()) = (at.map(|i| i + 1), it.next().unwrap()),
            _ => (at, ()) = (at.and_then(|i| i.checked_sub(1)), it.prev().unwrap()),
        }
        at = at.filter(|i| *i < want.len());
        let shown = at.map(|i| (&want[i].0[..], &want[i].1[..]));
        assert_eq!(it.entry(), shown, "after move {what}, key {}", key.escape_ascii());
        assert_eq!(
            (it.is_valid(), it.key(), it.value()),
            (at.is_some(), shown.map(|s| s.0), shown.map(|s| s.1))
        );
    }
}

#[test]
fn cursors_show_what_the_model_shows() {
    for (seed, order) in (1..13).flat_map(|seed| orders().map(|order| (seed, order))) {
        let mut random = Random::new(seed);
        let diet = [Diet::Plain, Diet::Rich][seed as usize % 2];
        let layout = Layout::number(seed as usize / 2);
        let mut family = Family::of_diet(order.clone(), diet).laid_out(layout);
        let from = family.spread(&mut random);
        for round in 0..12 {
            let seq = SeqNum::new(random.below(family.history.len() + 20) as u64).unwrap();
            let options = ReadOptions { fill_cache: round % 2 == 0, ..ReadOptions::default() };
            let mut range = KeyBounds {
                lower: (round % 3 == 1).then(|| random.key()),
                upper: (round % 4 > 1).then(|| random.key()),
                ..KeyBounds::default()
            };
            if round == 4 {
                // The one key of a level-0 table that is within the bounds is its last.
                range.lower = Some(from.version.levels[0][0].largest().user_key().to_vec());
            }
            let mut want = family.seen(seq);
            want.retain(|(key, _)| {
                range.lower.as_ref().is_none_or(|l| order.compare(key, l) != Ordering::Less)
                    && range.upper.as_ref().is_none_or(|u| order.compare(key, u) == Ordering::Less)
            });
            let mut it = DbIter::new(Arc::clone(&from), seq, range, options).unwrap();
            assert!(!it.is_valid());
            wander(&mut it, &want, &order, &mut random, 400);
        }
    }
}

/// Most keys have one version, so that going backward most entries are shown in place. Every 50th key is deleted or
/// has a second version, in another run.
#[test]
fn cursors_over_single_versions_show_what_the_model_shows() {
    for n in 0..8 {
        let (mut random, order) = (Random::new(n as u64), orders()[n % 3].clone());
        let mut family = Family::new(order.clone()).laid_out(Layout::number(n));
        let mut parts = Vec::new();
        for part in 0..4 {
            let begin = family.history.len();
            for i in 0..200 {
                let key = format!("{:05}", if i % 50 == 49 { 7 * i } else { 4 * (7 * i) + part });
                let kind = if i % 100 == 99 { ValueType::Delete } else { ValueType::Put };
                family.write(key.into_bytes(), kind);
            }
            parts.push(family.history[begin..].to_vec());
        }
        let from = match n / 2 % 3 {
            // One run.
            0 => {
                let levels = vec![vec![], vec![], family.tables(&parts[0], 90)];
                family.history.truncate(parts[0].len());
                family.holding(levels)
            }
            1 => {
                let (deep, upper) = (family.tables(&parts[0], 90), family.tables(&parts[1], 70));
                let newer = family.tables(&parts[3], usize::MAX);
                let older = family.tables(&parts[2], usize::MAX);
                family.holding(vec![[newer, older].concat(), upper, deep])
            }
            _ => {
                let levels = vec![vec![], family.tables(&parts[1], 70), family.tables(&parts[0], 90)];
                let held = family.holding(levels);
                let imm = Box::new([memtable(&order, &parts[2])]);
                let (mem, version) = (memtable(&order, &parts[3]), Arc::clone(&held.version));
                Arc::new(SuperVersion {
                    mem,
                    imm,
                    version,
                    merger: Arc::clone(&held.merger),
                    expiry: None,
                    number: 1,
                    contents: 1,
                })
            }
        };
        for seq in [family.history.len() as u64, 150, 500] {
            let seq = SeqNum::new(seq).unwrap();
            let want = family.seen(seq);
            let mut it = DbIter::new(
                Arc::clone(&from),
                seq,
                KeyBounds::default(),
                ReadOptions { fill_cache: n % 2 == 0, ..ReadOptions::default() },
            )
            .unwrap();
            wander(&mut it, &want, &order, &mut random, 1500);
            it.last().unwrap();
            for (key, value) in want.iter().rev() {
                assert_eq!(it.entry(), Some((&key[..], &value[..])));
                it.prev().unwrap();
            }
            assert!(!it.is_valid());
        }
    }
}

#[test]
fn the_merge_goes_both_ways_over_every_entry() {
    for order in orders() {
        let mut random = Random::new(11);
        let mut family = Family::new(order.clone());
        let from = family.spread(&mut random);
        let mut all = family.history.clone();
        all.sort_by(|a, b| order.compare_parts(&a.key, a.trailer, &b.key, b.trailer));
        let mut cx = RunContext::new(Arc::clone(&from), ReadHow::default(), SeqNum::MAX);
        let runs = runs(&mut cx, &KeyBounds::default(), ReadTier::All);
        let mut merge = MergingIter::new(order.clone(), runs);
        let mut at: Option<usize> = None;
        let mut unknown = 0;
        for _ in 0..20_000 {
            let (key, seq) = (random.key(), SeqNum::new(random.below(all.len() + 2) as u64).unwrap());
            let target = InternalKeyBuf::new(&key, Trailer::seek(seq));
            let side = |e: &Written| order.compare_parts(&e.key, e.trailer, &key, Trailer::seek(seq));
            let (left, mut stepped) = (at, Stepped::Unknown);
            match random.below(40) {
                0 => (at, ()) = (Some(0), merge.first(&mut cx).unwrap()),
                1 => (at, ()) = (Some(all.len() - 1), merge.last(&mut cx).unwrap()),
                2 => {
                    merge.seek(&mut cx, target.as_key()).unwrap();
                    at = Some(all.partition_point(|e| side(e) == Ordering::Less));
                }
                3 => {
                    merge.seek_for_prev(&mut cx, target.as_key()).unwrap();
                    at = all.partition_point(|e| side(e) != Ordering::Greater).checked_sub(1);
                }
                4..22 => (at, stepped) = (at.map(|i| i + 1), merge.next(&mut cx).unwrap()),
                _ => (at, stepped) = (at.and_then(|i| i.checked_sub(1)), merge.prev(&mut cx).unwrap()),
            }
            at = at.filter(|i| *i < all.len());
            match stepped {
                Stepped::Off => assert_eq!(at, None),
                Stepped::Same => assert_eq!(all[left.unwrap()].key, all[at.unwrap()].key),
                Stepped::Later => assert_ne!(all[left.unwrap()].key, all[at.unwrap()].key),
                Stepped::Misplaced => panic!("no run is damaged"),
                Stepped::Unknown => unknown += 1,
            }
            let got = merge.entry().map(|e| (e.key.split(), e.value));
            assert_eq!(got, at.map(|i| ((&all[i].key[..], all[i].trailer), &all[i].value[..])));
        }
        assert!(unknown < 15_000 || matches!(order, Order::Custom(_)), "{unknown} steps said nothing");
    }
}

#[test]
fn an_empty_family_shows_nothing() {
    let family = Family::new(Order::Bytewise);
    let from = family.holding(vec![vec![]; 7]);
    let mut it = DbIter::new(from, SeqNum::MAX, KeyBounds::default(), ReadOptions::default()).unwrap();
    wander(&mut it, &[], &Order::Bytewise, &mut Random::new(1), 100);
}

/// A type that is not served is an error exactly when its entry counts, in both directions, and names key and file.
#[test]
fn unserved_entries_are_errors_only_where_they_count() {
    let mut family = Family::new(Order::Bytewise);
    for (key, value_type) in [
        ("a", ValueType::Put),
        ("b", ValueType::DeleteWithTimestamp),
        ("b", ValueType::Put),
        ("c", ValueType::Put),
        ("c", ValueType::DeleteWithTimestamp),
        ("d", ValueType::Put),
    ] {
        family.write(key.into(), value_type);
    }
    let entries = family.history.clone();
    let files = family.tables(&entries, usize::MAX);
    let from = family.holding(vec![vec![], files]);
    let at = |seq| {
        DbIter::new(
            Arc::clone(&from),
            SeqNum::new(seq).unwrap(),
            KeyBounds::default(),
            ReadOptions::default(),
        )
        .unwrap()
    };
    let mut it = at(6);
    it.seek(b"b").unwrap();
    assert_eq!(it.key(), Some(&b"b"[..]));
    for refused in [it.next().unwrap_err(), at(6).seek_for_prev(b"c").unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::NotSupported);
        let text = refused.to_string();
        assert!(text.contains("timestamps: key 'c' at sequence 5") && text.contains("000001.sst"), "{text}");
    }
    assert!(!it.is_valid());
    it.next().unwrap();
    assert!(!it.is_valid(), "an error stays until the next positioning call");
    it.last().unwrap();
    assert_eq!(it.key(), Some(&b"d"[..]));
    assert!(it.prev().is_err());
    let mut before = at(4);
    before.seek(b"b").unwrap();
    before.next().unwrap();
    assert_eq!(before.key(), Some(&b"c"[..]));
}

/// A key with operands in a family without an operator is an error that names both, in both directions.
#[test]
fn operands_without_an_operator_are_refused() {
    let mut family = Family::new(Order::Bytewise);
    for (key, value_type) in [("a", ValueType::Put), ("b", ValueType::Put), ("b", ValueType::Merge)] {
        family.write(key.into(), value_type);
    }
    let files = family.tables(&family.history.clone(), usize::MAX);
    let from = family.holding(vec![vec![], files]);
    let mut it =
        DbIter::new(Arc::clone(&from), SeqNum::MAX, KeyBounds::default(), ReadOptions::default()).unwrap();
    it.first().unwrap();
    for refused in [it.next().unwrap_err(), it.last().unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(
            refused.to_string().contains("family \"lone\" has no merge operator, which key 'b'"),
            "{refused}"
        );
        assert!(!it.is_valid());
    }
    let mut before =
        DbIter::new(from, SeqNum::new(2).unwrap(), KeyBounds::default(), ReadOptions::default()).unwrap();
    before.last().unwrap();
    assert_eq!(before.key(), Some(&b"b"[..]));
}

/// A table of RocksDB 11.8 with range tombstones; its bounds are claimed to be "a" to "zz".
pub(crate) const RANGE_DELETIONS: &[u8] =
    include_bytes!("../../../../golden/sst/v7_db_merge_rangedel_versions.sst");

/// Tombstones k03..k05@40, k05..k06@46 and @40, k06..k09@46, z0..z9@48 over our keys at sequence 1 to 4, one level below.
#[test]
fn tombstones_of_rocksdb_hide_what_is_below() {
    let mut family = Family::new(Order::Bytewise);
    let table = family.foreign_table(RANGE_DELETIONS);
    for key in ["k02x", "k08x", "k09", "z5"] {
        family.write(key.into(), ValueType::Put);
    }
    let own = family.tables(&family.history.clone(), 1);
    let from = family.holding(vec![vec![], vec![table], own]);
    let shown = |seq| {
        let mut it = DbIter::new(
            Arc::clone(&from),
            SeqNum::new(seq).unwrap(),
            KeyBounds::default(),
            ReadOptions::default(),
        )
        .unwrap();
        ["k02x", "k08x", "k09", "z5"].map(|key| {
            it.seek(key.as_bytes()).unwrap();
            let forward = it.key() == Some(key.as_bytes());
            it.seek_for_prev(key.as_bytes()).unwrap();
            assert_eq!(it.key() == Some(key.as_bytes()), forward, "{key}");
            forward
        })
    };
    assert_eq!(shown(45), [true, true, true, true]);
    assert_eq!(shown(46), [true, false, true, true]);
    assert_eq!(shown(48), [true, false, true, false]);
}

#[test]
fn a_lost_file_is_an_error_that_the_cursor_survives() {
    let mut family = Family::new(Order::Bytewise);
    for key in [b"a", b"b", b"c"] {
        family.write(key.to_vec(), ValueType::Put);
    }
    let files = family.tables(&family.history.clone(), 1);
    let from = family.holding(vec![vec![], files]);
    let mut it =
        DbIter::new(Arc::clone(&from), SeqNum::MAX, KeyBounds::default(), ReadOptions::default()).unwrap();
    it.first().unwrap();
    family.lose_files();
    assert!(it.next().unwrap_err().is_not_found());
    assert!(!it.is_valid() && it.last().is_err() && it.seek(b"b").is_err());
    it.first().unwrap();
    assert_eq!(it.key(), Some(&b"a"[..]));
    it.prev().unwrap();
    assert!(!it.is_valid());
}
