//! The loop against a model: reads at every live snapshot give the same result before and after.

use super::*;
use crate::rewrite::retention::Beneath;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::range_del::{FragmentedTombstones, RangeTombstone};
use ashlar_base::{Comparator, ErrorKind, InternalKey, LookupKey, SeqNum, ValueType, Window};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Version = (Vec<u8>, Trailer, Vec<u8>);

/// A run in memory that hands out windows of `width` entries.
pub(crate) struct MemoryRun {
    pub(crate) entries: Vec<Version>,
    pub(crate) at: usize,
    pub(crate) width: usize,
}

impl RunCursor for MemoryRun {
    fn seek(&mut self, _: Option<&LookupKey<'_>>) -> Result<()> {
        self.at = 0;
        Ok(())
    }
    fn window(&mut self, window: &mut Window) -> Result<bool> {
        window.clear();
        while window.len() < self.width && !window.is_full() {
            let Some((key, trailer, value)) = self.entries.get(self.at) else { break };
            window.push_parts(key, *trailer, value);
            self.at += 1;
        }
        Ok(!window.is_empty())
    }
}

/// Collects survivors and checks order and the `first` mark.
#[derive(Default)]
pub(crate) struct Collect {
    pub(crate) entries: Vec<Version>,
    finished: bool,
}

impl EntrySink for Collect {
    fn add(&mut self, key: InternalKey<'_>, value: &[u8], first: bool) -> Result<()> {
        let (user_key, trailer) = key.split();
        let new = self.entries.last().is_none_or(|(k, ..)| k != user_key);
        assert_eq!(first, new, "first mark at {key:?}");
        self.entries.push((user_key.to_vec(), trailer, value.to_vec()));
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        assert!(!self.finished);
        self.finished = true;
        Ok(())
    }
}

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
    pub(crate) fn index(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap()
    }
}

/// Longer keys first, then bytewise: differs from every built-in order.
#[derive(Debug)]
struct LongFirst;

impl Comparator for LongFirst {
    fn name(&self) -> &str {
        "test.LongFirst"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.len().cmp(&a.len()).then_with(|| a.cmp(b))
    }
}

pub(crate) fn orders() -> [Order; 3] {
    [Order::Bytewise, Order::ReverseBytewise, Order::Custom(Arc::new(LongFirst))]
}

pub(crate) fn sorted(order: &Order, mut entries: Vec<Version>) -> Vec<Version> {
    entries.sort_by(|a, b| order.compare_parts(&a.0, a.1, &b.0, b.1));
    entries
}

fn rewrite(
    order: &Order,
    skip: usize,
    runs: &[Vec<Version>],
    width: usize,
    keep: &Retention,
) -> Vec<Version> {
    let cursors = runs
        .iter()
        .map(|run| Box::new(MemoryRun { entries: run.clone(), at: 0, width }) as Box<dyn RunCursor>)
        .collect();
    let mut work = start(order, skip, cursors, keep.clone(), Collect::default()).unwrap();
    while work.step(17 + width).unwrap() == Progress::More {}
    assert_eq!(work.step(100).unwrap(), Progress::Done);
    let c = work.counters();
    assert_eq!(c.entries_in, c.entries_out + c.dropped_hidden + c.dropped_tombstones + c.folded);
    assert_eq!(c.entries_out, work.sink().entries.len() as u64);
    assert!(work.sink().finished);
    std::mem::take(&mut work.sink().entries)
}

/// Entries and range tombstones of one or several levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub(crate) versions: Vec<Version>,
    pub(crate) tombstones: Vec<RangeTombstone>,
}

impl Data {
    pub(crate) fn and(&self, deeper: &Data) -> Data {
        Data {
            versions: [&self.versions[..], &deeper.versions].concat(),
            tombstones: [&self.tombstones[..], &deeper.tombstones].concat(),
        }
    }

    /// The result of reading a key at `seq`: merge operands joined behind the base value, or behind the default column
    /// of an entity; an entity's other column comes second.
    pub(crate) fn read(&self, order: &Order, key: &[u8], seq: SeqNum) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let covers = |t: &&RangeTombstone| {
            t.seq <= seq && order.compare(&t.begin, key).is_le() && order.compare(key, &t.end).is_lt()
        };
        let deleted = self.tombstones.iter().filter(covers).map(|t| t.seq).max();
        let sees = |v: &&Version| v.0 == key && v.1.seq() <= seq && deleted.is_none_or(|d| v.1.seq() >= d);
        let mut mine: Vec<_> = self.versions.iter().filter(sees).collect();
        mine.sort_by_key(|v| std::cmp::Reverse(v.1));
        let (mut parts, mut column) = (Vec::<&[u8]>::new(), None);
        for (_, trailer, value) in mine {
            match trailer.value_type().unwrap() {
                ValueType::Delete | ValueType::SingleDelete => break,
                ValueType::Entity => {
                    let entity = Entity::decode(value).unwrap();
                    let inline = |name: &[u8]| match entity.get(name) {
                        Some(ColumnValue::Inline(value)) => Some(value),
                        _ => None,
                    };
                    parts.push(inline(b"").unwrap_or_default());
                    column = inline(b"c").map(<[u8]>::to_vec);
                }
                _ => parts.push(value),
            }
            if trailer.value_type() != Some(ValueType::Merge) {
                break;
            }
        }
        parts.reverse();
        (!parts.is_empty()).then(|| (parts.join(&b','), column))
    }
}

pub(crate) fn draw_key(dice: &mut Dice) -> Vec<u8> {
    let n = dice.roll(12);
    if dice.roll(2) == 0 {
        format!("shared/prefix/{n:02}").into_bytes()
    } else {
        format!("shared/{n}").into_bytes()
    }
}

/// What a rewrite must keep: fewer than `snapshots` snapshots, and everything that `deeper` may need.
pub(crate) fn draw_retention(
    dice: &mut Dice,
    order: &Order,
    snapshots: u64,
    deeper: &[Version],
    data: &Data,
) -> Retention {
    let mut snapshots: Vec<SeqNum> =
        (0..dice.roll(snapshots)).map(|_| SeqNum::new(dice.roll(130)).unwrap()).collect();
    snapshots.sort_unstable();
    Retention {
        snapshots,
        beneath: ranges_of(order, deeper, dice),
        tombstones: Arc::new(FragmentedTombstones::new(order, &data.tombstones)),
        operator: (dice.roll(3) > 0).then(|| standard_operator("stringappend").unwrap()),
        blobs: None,
    }
}

/// Random range tombstones among the sequences `1..=total`: those up to `deep` on the deeper level.
pub(crate) fn draw_tombstones(dice: &mut Dice, order: &Order, total: u64, deep: u64) -> (Data, Data) {
    let (mut upper, mut lower) = (Data::default(), Data::default());
    for _ in 0..dice.roll(2) * dice.roll(9) {
        let (a, b, seq) = (draw_key(dice), draw_key(dice), 1 + dice.roll(total));
        let (begin, end) = if order.compare(&a, &b).is_lt() { (a, b) } else { (b, a) };
        let home = if seq <= deep { &mut lower } else { &mut upper };
        home.tombstones.push(RangeTombstone { begin, end, seq: SeqNum::new(seq).unwrap() });
    }
    (upper, lower)
}

/// An entity of two columns, or one without the default column.
pub(crate) fn entity(seq: u64) -> Vec<u8> {
    let text = format!("v{seq}");
    let column = |name| Column { name, value: ColumnValue::Inline(text.as_bytes()) };
    let columns = if seq.is_multiple_of(3) { vec![column(b"c")] } else { vec![column(b""), column(b"c")] };
    let mut encoded = Vec::new();
    Entity::new(columns).unwrap().encode(&mut encoded);
    encoded
}

/// Random versions with sequences from 1 on: the oldest tenth on a deeper level, the others spread over `runs` by age.
fn draw(dice: &mut Dice, order: &Order) -> (Vec<Vec<Version>>, Vec<Version>) {
    let total = 1 + dice.roll(120);
    let deep = total / 10 * dice.roll(3);
    let count = 1 + dice.index(6);
    let (mut runs, mut deeper) = (vec![vec![]; count], vec![]);
    for seq in 1..=total {
        let kind = [
            ValueType::Put,
            ValueType::Put,
            ValueType::Delete,
            ValueType::Merge,
            ValueType::SingleDelete,
            ValueType::Entity,
            ValueType::TimedPut,
        ][dice.index(7)];
        let value = match kind {
            ValueType::Delete | ValueType::SingleDelete => vec![],
            ValueType::Entity => entity(seq),
            _ => format!("v{seq}").into_bytes(),
        };
        let version = (draw_key(dice), Trailer::new(SeqNum::new(seq).unwrap(), kind), value);
        if seq <= deep { deeper.push(version) } else { runs[dice.index(count)].push(version) }
    }
    (runs.into_iter().map(|r| sorted(order, r)).collect(), sorted(order, deeper))
}

pub(crate) fn ranges_of(order: &Order, deeper: &[Version], dice: &mut Dice) -> Beneath {
    if dice.roll(4) == 0 {
        return Beneath::Unknown;
    }
    let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = vec![];
    for (key, ..) in deeper {
        match ranges.last_mut() {
            Some(last) if dice.roll(2) == 0 || last.1 == *key => last.1.clone_from(key),
            _ => ranges.push((key.clone(), key.clone())),
        }
    }
    assert!(ranges.windows(2).all(|w| order.compare(&w[0].1, &w[1].0).is_lt()));
    Beneath::Ranges(ranges)
}

#[test]
fn every_live_reader_sees_the_same() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for case in 0..3000 {
        let order = orders()[case % 3].clone();
        let (runs, deeper) = draw(&mut dice, &order);
        let deep = deeper.iter().map(|v| v.1.seq().get()).max().unwrap_or(0);
        let (mut data, mut below) = draw_tombstones(&mut dice, &order, 121, deep);
        (data.versions, below.versions) = (runs.concat(), deeper.clone());
        let keep = draw_retention(&mut dice, &order, 4, &deeper, &data);
        let width = 1 + dice.index(Window::CAPACITY);
        let skip = if dice.roll(2) == 0 { 0 } else { "shared/".len() };
        let after = rewrite(&order, skip, &runs, width, &keep);
        assert_eq!(after, sorted(&order, after.clone()), "case {case}: out of order");

        let tombstones = keep.survivors(&order);
        let fragments: Vec<_> = tombstones.collect();
        let tombstones = fragments.iter().flat_map(|f| {
            f.seqs.iter().map(|s| RangeTombstone { begin: f.begin.clone(), end: f.end.clone(), seq: *s })
        });
        let left = Data { versions: after.clone(), tombstones: tombstones.collect() };
        let (before, left) = (data.and(&below), left.and(&below));
        for (key, ..) in &before.versions {
            for seq in keep.snapshots.iter().copied().chain([SeqNum::MAX]) {
                assert_eq!(
                    before.read(&order, key, seq),
                    left.read(&order, key, seq),
                    "case {case}: {} at {seq}, {keep:?}\n{before:?}\n{left:?}",
                    key.escape_ascii()
                );
            }
        }
        check_nothing_useless(&after, &keep, case);
    }
}

/// Checks that all unneeded entries are dropped: hidden versions and, in the bottommost level, tombstones without an
/// older version.
fn check_nothing_useless(after: &[Version], keep: &Retention, case: usize) {
    let stripe = |t: Trailer| keep.snapshots.partition_point(|s| *s < t.seq());
    let decides = |t: Trailer| !matches!(t.value_type(), Some(ValueType::Merge));
    let mut keys: BTreeMap<&[u8], Vec<Trailer>> = BTreeMap::new();
    for (key, trailer, _) in after {
        keys.entry(key).or_default().push(*trailer);
    }
    for (key, trailers) in keys {
        for pair in trailers.windows(2) {
            let hidden = decides(pair[0]) && stripe(pair[0]) == stripe(pair[1]);
            let single = pair[1].value_type() == Some(ValueType::SingleDelete);
            assert!(!hidden || single, "case {case}: {pair:?} of {}", key.escape_ascii());
            let base =
                matches!(pair[1].value_type(), Some(ValueType::Put | ValueType::Delete | ValueType::Entity));
            let folds = base && pair[0].value_type() == Some(ValueType::Merge);
            let may_fold = keep.operator.is_some() && stripe(pair[0]) == stripe(pair[1]);
            assert!(!(folds && may_fold), "case {case}: {pair:?} of {} not folded", key.escape_ascii());
            let operands = pair.iter().all(|t| t.value_type() == Some(ValueType::Merge));
            assert!(!(operands && may_fold), "case {case}: {pair:?} of {} not combined", key.escape_ascii());
        }
        let last = trailers.last().unwrap();
        let tombstone = matches!(last.value_type(), Some(ValueType::Delete | ValueType::SingleDelete));
        assert!(!(tombstone && keep.beneath.is_nothing()), "case {case}: {last:?} at the bottom");
    }
}

#[test]
fn window_width_does_not_matter() {
    let mut dice = Dice(77);
    for order in orders() {
        for _ in 0..4 {
            let (runs, _) = draw(&mut dice, &order);
            let keep = Retention::above_unknown(vec![SeqNum::new(40).unwrap()], Default::default());
            let expected = rewrite(&order, 0, &runs, 1, &keep);
            for width in 2..=Window::CAPACITY {
                assert_eq!(rewrite(&order, 7, &runs, width, &keep), expected);
            }
        }
    }
}

#[test]
fn one_run_ahead_of_the_others() {
    let put =
        |k: String, s: u64| (k.into_bytes(), Trailer::new(SeqNum::new(s).unwrap(), ValueType::Put), vec![1]);
    let runs: Vec<Vec<Version>> = (0..5u64)
        .map(|r| (0..300u64).map(|i| put(format!("{:06}", r * 290 + i), 10 - r)).collect())
        .collect();
    let after =
        rewrite(&Order::Bytewise, 0, &runs, 64, &Retention::above_unknown(vec![], Default::default()));
    let keys: Vec<String> = after.iter().map(|v| String::from_utf8(v.0.clone()).unwrap()).collect();
    assert_eq!(keys, (0..1460).map(|i| format!("{i:06}")).collect::<Vec<_>>());
    assert_eq!(after[295].1.seq().get(), 10, "the newest run wins where two overlap");
}

#[test]
fn of_two_equal_internal_keys_the_newest_run_speaks() {
    let version = |value: &[u8]| (b"k".to_vec(), Trailer::new(SeqNum::ZERO, ValueType::Put), value.to_vec());
    for order in orders() {
        let runs = [vec![version(b"newest")], vec![version(b"older")], vec![version(b"oldest")]];
        let after = rewrite(&order, 0, &runs, 8, &Retention::above_unknown(vec![], Default::default()));
        assert_eq!(after, [version(b"newest")]);
    }
}

fn one_run(entries: Vec<Version>) -> Result<Vec<Version>> {
    one_run_under(Retention::above_unknown(vec![], Default::default()), entries)
}

fn one_run_under(keep: Retention, entries: Vec<Version>) -> Result<Vec<Version>> {
    let run = Box::new(MemoryRun { entries, at: 0, width: 64 }) as Box<dyn RunCursor>;
    let mut work = start(&Order::Bytewise, 0, vec![run], keep, Collect::default())?;
    while work.step(1)? == Progress::More {}
    Ok(std::mem::take(&mut work.sink().entries))
}

#[test]
fn damage_stops_the_rewrite() {
    let v = |k: &[u8], s: u64, kind| (k.to_vec(), Trailer::new(SeqNum::new(s).unwrap(), kind), vec![]);
    let (put, merge) = (ValueType::Put, ValueType::Merge);
    assert!(one_run(vec![v(b"b", 1, put), v(b"a", 1, put)]).unwrap_err().is_corruption());
    assert!(one_run(vec![v(b"a", 1, put), v(b"a", 2, put)]).unwrap_err().is_corruption());
    assert_eq!(one_run(vec![v(b"a", 1, merge), v(b"a", 1, merge)]).unwrap().len(), 1);
    let range = one_run(vec![v(b"a", 1, ValueType::RangeDelete)]).unwrap_err();
    assert!(range.to_string().contains("RangeDelete"), "{range}");
    // An unknown kind is kept, unless the entry above it got sequence 0.
    let unknown = vec![v(b"a", 2, put), (b"a".to_vec(), Trailer::from_raw(0x17f), vec![])];
    assert_eq!(one_run(unknown.clone()).unwrap(), unknown);
    let bottom = Retention {
        beneath: Beneath::Ranges(vec![]),
        ..Retention::above_unknown(vec![], Default::default())
    };
    let e = one_run_under(bottom, unknown).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::NotSupported, "value type 0x7f in compaction"));
    assert_eq!(one_run(vec![]).unwrap(), vec![]);
}
