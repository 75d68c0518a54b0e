//! Cursors and point reads against a model: random histories spread over memtables, level 0 and deeper levels.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use super::{DbIter, MergingIter, runs};
use crate::options::ReadOptions;
use crate::super_version::SuperVersion;
use crate::version::{FileMeta, Tables, Version};
use ashlar_base::{
    Comparator, ErrorKind, FileNumber, InternalIterator, InternalKeyBuf, Order, SeqNum, Trailer, ValueType,
};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::NewFile;
use ashlar_memtable::{MemtableRep, Op, WriterSlot, skiplist};
use ashlar_table::{ReadHow, TableBuilder, TableIdentity, TableOptions};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

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
}

fn memtable(order: &Order, entries: &[Written]) -> Arc<dyn MemtableRep> {
    let mem = skiplist(order.clone());
    let mut w = WriterSlot::default();
    for e in entries {
        let value_type = e.trailer.value_type().unwrap();
        let op = Op { key: &e.key, value: &e.value, value_type, seq_delta: 0 };
        let prepared = mem.prepare(&mut w, &mut std::iter::once(op)).unwrap();
        mem.insert(&mut w, prepared, e.trailer.seq());
    }
    mem
}

/// A family being built: entries go in oldest first.
pub(crate) struct Family {
    env: Env,
    order: Order,
    tables: Arc<Tables>,
    next_file: u64,
    pub(crate) history: Vec<Written>,
}

impl Family {
    pub(crate) fn new(order: Order) -> Family {
        let env = Env::mem();
        env.fs.create_dir_all(Path::new(DIR)).unwrap();
        let tables = Tables::new(env.clone(), DIR.into(), FramePool::new(1 << 20), order.clone());
        Family { env, order, tables, next_file: 1, history: Vec::new() }
    }

    pub(crate) fn write(&mut self, key: Vec<u8>, value_type: ValueType) {
        let seq = SeqNum::new(self.history.len() as u64 + 1).unwrap();
        let value = match value_type {
            ValueType::Put => format!("{seq}").repeat(self.history.len() % 30).into_bytes(),
            _ => vec![],
        };
        self.history.push(Written { key, trailer: Trailer::new(seq, value_type), value });
    }

    /// Random puts and deletes.
    pub(crate) fn grow(&mut self, random: &mut Random, count: usize) -> Vec<Written> {
        for _ in 0..count {
            let kind = match random.below(8) {
                0 | 1 => ValueType::Delete,
                2 => ValueType::SingleDelete,
                _ => ValueType::Put,
            };
            self.write(random.key(), kind);
        }
        self.history[self.history.len() - count..].to_vec()
    }

    fn table(&mut self, entries: &[&Written]) -> Arc<FileMeta> {
        let number = FileNumber(self.next_file);
        self.next_file += 1;
        let file = self.env.fs.create(&Path::new(DIR).join(FileKind::Table(number).name())).unwrap();
        let options = TableOptions { block_size: 100, order: self.order.clone(), ..TableOptions::default() };
        let identity = TableIdentity { number, ..TableIdentity::default() };
        let mut builder = TableBuilder::new(file, options, identity).unwrap();
        for e in entries {
            builder.add(InternalKeyBuf::new(&e.key, e.trailer).as_key(), &e.value).unwrap();
        }
        let made = builder.finish().unwrap();
        let bounds = (made.smallest.clone(), made.largest.clone());
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
        let mut version = Version::empty(levels.len(), Arc::clone(&self.tables));
        version.levels = levels;
        let mem = skiplist(self.order.clone());
        Arc::new(SuperVersion { mem, imm: Box::new([]), version: Arc::new(version), number: 1 })
    }

    /// Removes every file of the family that nobody has opened yet.
    pub(crate) fn lose_files(&self) {
        for entry in self.env.fs.list(Path::new(DIR)).unwrap() {
            self.env.fs.remove(&Path::new(DIR).join(&entry.name)).unwrap();
        }
    }

    /// Tables of about `per_file` entries, never cut between versions of a key.
    pub(crate) fn tables(&mut self, entries: &[Written], per_file: usize) -> Vec<Arc<FileMeta>> {
        let order = self.order.clone();
        let mut sorted: Vec<&Written> = entries.iter().collect();
        sorted.sort_by(|a, b| order.compare_parts(&a.key, a.trailer, &b.key, b.trailer));
        let (mut files, mut part) = (vec![], vec![]);
        for e in sorted {
            if part.len() >= per_file && part.last().is_some_and(|last: &&Written| last.key != e.key) {
                files.push(self.table(&part));
                part.clear();
            }
            part.push(e);
        }
        if !part.is_empty() {
            files.push(self.table(&part));
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
        Arc::new(SuperVersion { mem, imm, version: Arc::new(version), number: 1 })
    }

    /// What a read at `seq` sees, in order.
    pub(crate) fn seen(&self, seq: SeqNum) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut keys: Vec<&Vec<u8>> = self.history.iter().map(|e| &e.key).collect();
        keys.sort_by(|a, b| self.order.compare(a, b));
        keys.dedup();
        let newest =
            |key: &Vec<u8>| self.history.iter().rev().find(|e| e.key == *key && e.trailer.seq() <= seq);
        keys.into_iter()
            .filter_map(newest)
            .filter(|e| e.trailer.value_type() == Some(ValueType::Put))
            .map(|e| (e.key.clone(), e.value.clone()))
            .collect()
    }
}

pub(crate) fn orders() -> [Order; 3] {
    [Order::Bytewise, Order::ReverseBytewise, Order::Custom(Arc::new(BackToFront))]
}

/// Random moves of a cursor and of an index into what it should show; both in step at all times.
fn wander(it: &mut DbIter, want: &[(Vec<u8>, Vec<u8>)], order: &Order, random: &mut Random, moves: usize) {
    let mut at: Option<usize> = None;
    for _ in 0..moves {
        let key = random.key();
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
    for (seed, order) in (1..7).flat_map(|seed| orders().map(|order| (seed, order))) {
        let mut random = Random::new(seed);
        let mut family = Family::new(order.clone());
        let from = family.spread(&mut random);
        for round in 0..12 {
            let seq = SeqNum::new(random.below(family.history.len() + 20) as u64).unwrap();
            let mut options = ReadOptions { fill_cache: round % 2 == 0, ..ReadOptions::default() };
            options.lower = (round % 3 == 1).then(|| random.key());
            options.upper = (round % 4 > 1).then(|| random.key());
            if round == 4 {
                // The one key of a level-0 table that is within the bounds is its last.
                options.lower = Some(from.version.levels[0][0].largest().user_key().to_vec());
            }
            let mut want = family.seen(seq);
            want.retain(|(key, _)| {
                options.lower.as_ref().is_none_or(|l| order.compare(key, l) != Ordering::Less)
                    && options.upper.as_ref().is_none_or(|u| order.compare(key, u) == Ordering::Less)
            });
            let mut it = DbIter::new(Arc::clone(&from), seq, options).unwrap();
            assert!(!it.is_valid());
            wander(&mut it, &want, &order, &mut random, 400);
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
        let runs = runs(&from, &ReadOptions::default(), ReadHow::default()).unwrap();
        let mut merge = MergingIter::new(order.clone(), runs);
        let mut at: Option<usize> = None;
        for _ in 0..20_000 {
            let (key, seq) = (random.key(), SeqNum::new(random.below(all.len() + 2) as u64).unwrap());
            let target = InternalKeyBuf::new(&key, Trailer::seek(seq));
            let side = |e: &Written| order.compare_parts(&e.key, e.trailer, &key, Trailer::seek(seq));
            match random.below(40) {
                0 => (at, ()) = (Some(0), merge.first().unwrap()),
                1 => (at, ()) = (Some(all.len() - 1), merge.last().unwrap()),
                2 => {
                    merge.seek(target.as_key()).unwrap();
                    at = Some(all.partition_point(|e| side(e) == Ordering::Less));
                }
                3 => {
                    merge.seek_for_prev(target.as_key()).unwrap();
                    at = all.partition_point(|e| side(e) != Ordering::Greater).checked_sub(1);
                }
                4..22 => (at, ()) = (at.map(|i| i + 1), merge.next().unwrap()),
                _ => (at, ()) = (at.and_then(|i| i.checked_sub(1)), merge.prev().unwrap()),
            }
            at = at.filter(|i| *i < all.len());
            let got = merge.entry().map(|e| (e.key.split(), e.value));
            assert_eq!(got, at.map(|i| ((&all[i].key[..], all[i].trailer), &all[i].value[..])));
        }
    }
}

#[test]
fn an_empty_family_shows_nothing() {
    let family = Family::new(Order::Bytewise);
    let from = family.holding(vec![vec![]; 7]);
    let mut it = DbIter::new(from, SeqNum::MAX, ReadOptions::default()).unwrap();
    wander(&mut it, &[], &Order::Bytewise, &mut Random::new(1), 100);
}

/// A type that is not served is an error exactly when its entry counts, in both directions, and names key and file.
#[test]
fn unserved_entries_are_errors_only_where_they_count() {
    let mut family = Family::new(Order::Bytewise);
    for (key, value_type) in [
        ("a", ValueType::Put),
        ("b", ValueType::Merge),
        ("b", ValueType::Put),
        ("c", ValueType::Put),
        ("c", ValueType::Merge),
        ("d", ValueType::Put),
    ] {
        family.write(key.into(), value_type);
    }
    let entries = family.history.clone();
    let files = family.tables(&entries, usize::MAX);
    let from = family.holding(vec![vec![], files]);
    let at = |seq| DbIter::new(Arc::clone(&from), SeqNum::new(seq).unwrap(), ReadOptions::default()).unwrap();
    let mut it = at(6);
    it.seek(b"b").unwrap();
    assert_eq!(it.key(), Some(&b"b"[..]));
    for refused in [it.next().unwrap_err(), at(6).seek_for_prev(b"c").unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::NotSupported);
        let text = refused.to_string();
        assert!(
            text.contains("merge operands: key 'c' at sequence 5") && text.contains("000001.sst"),
            "{text}"
        );
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

/// A table of RocksDB 11.8 with range tombstones: refused on sight, wherever a cursor would have to enter it.
pub(crate) const RANGE_DELETIONS: &[u8] =
    include_bytes!("../../tests/golden/sst/v7_db_merge_rangedel_versions.sst");

#[test]
fn tables_with_range_deletions_are_refused_by_name() {
    let mut family = Family::new(Order::Bytewise);
    let table = family.foreign_table(RANGE_DELETIONS);
    family.write(b"B".to_vec(), ValueType::Put);
    let own = family.tables(&family.history.clone(), 1).remove(0);
    let refused = |e: ashlar_base::Error| {
        assert_eq!(e.kind(), ErrorKind::NotSupported);
        assert!(e.to_string().contains("range deletions") && e.to_string().contains("000001.sst"), "{e}");
    };
    let iter = |levels, options| DbIter::new(family.holding(levels), SeqNum::MAX, options);
    refused(iter(vec![vec![Arc::clone(&table)]], ReadOptions::default()).unwrap_err());
    let outside = ReadOptions { upper: Some(b"a".to_vec()), ..ReadOptions::default() };
    assert!(iter(vec![vec![Arc::clone(&table)]], outside).is_ok());
    let mut it = iter(vec![vec![], vec![own, table]], ReadOptions::default()).unwrap();
    it.first().unwrap();
    assert_eq!(it.key(), Some(&b"B"[..]));
    refused(it.next().unwrap_err());
    refused(it.last().unwrap_err());
    refused(it.seek(b"k").unwrap_err());
    it.seek_for_prev(b"Z").unwrap();
    assert_eq!(it.key(), Some(&b"B"[..]));
}

#[test]
fn a_lost_file_is_an_error_that_the_cursor_survives() {
    let mut family = Family::new(Order::Bytewise);
    for key in [b"a", b"b", b"c"] {
        family.write(key.to_vec(), ValueType::Put);
    }
    let files = family.tables(&family.history.clone(), 1);
    let from = family.holding(vec![vec![], files]);
    let mut it = DbIter::new(Arc::clone(&from), SeqNum::MAX, ReadOptions::default()).unwrap();
    it.first().unwrap();
    family.lose_files();
    assert!(it.next().unwrap_err().is_not_found());
    assert!(!it.is_valid() && it.last().is_err() && it.seek(b"b").is_err());
    it.first().unwrap();
    assert_eq!(it.key(), Some(&b"a"[..]));
    it.prev().unwrap();
    assert!(!it.is_valid());
}
