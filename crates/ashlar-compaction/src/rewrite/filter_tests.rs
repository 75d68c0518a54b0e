//! The filter in the loop: every decision, and random runs against a model in which the filter is a pure function.

use super::super::drive::tests::{
    Collect, Data, Dice, MemoryRun, Version, draw_key, draw_retention, draw_tombstones, entity, orders,
    sorted,
};
use super::super::retention::{Beneath, Retention};
use super::super::{Progress, RewriteCounters, start_filtered};
use super::*;
use ashlar_base::ext::compaction_filter::CompactionFilterFactory;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::range_del::RangeTombstone;
use ashlar_base::{FamilyId, FileNumber, Level, Order, RunCursor};
use ashlar_env::sim::SimEnv;
use ashlar_format::blob::{BlobIndex, BlobPlace};
use ashlar_format::entity::{ColumnValue, Entity};
use ashlar_tree::blobs::BlobMap;
use std::fmt;

type Decide = fn(&[u8], &[u8]) -> Decision;

/// Decides by functions of key and value: values, operands, and the default column of entities.
#[derive(Clone, Copy)]
struct By {
    value: Decide,
    operand: Decide,
    blob: fn(&[u8]) -> Option<Decision>,
}

impl fmt::Debug for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("By")
    }
}

const KEEPS: By = By { value: |_, _| Decision::Keep, operand: |_, _| Decision::Keep, blob: |_| None };

impl CompactionFilter for By {
    fn name(&self) -> &str {
        "by"
    }
    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        (self.value)(key, value)
    }
    fn filter_blob_by_key(&self, key: &[u8]) -> Option<Decision> {
        (self.blob)(key)
    }
    fn filter_merge_operand(&self, key: &[u8], operand: &[u8]) -> Decision {
        (self.operand)(key, operand)
    }
    fn filters_entities(&self) -> bool {
        true
    }
    fn filter_entity(&self, key: &[u8], columns: &[(&[u8], &[u8])]) -> Decision {
        let default = columns.iter().find(|(name, _)| name.is_empty());
        (self.value)(key, default.map(|(_, value)| *value).unwrap_or_default())
    }
}

impl CompactionFilterFactory for By {
    fn name(&self) -> &str {
        "maker"
    }
    fn create(&self, _: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>> {
        panic!("on purpose")
    }
}

fn filtering(source: &FilterSource) -> Result<Option<Filtering>> {
    let blobs = BlobFiles::new(SimEnv::new(1).env().fs, "/".into(), BlobMap::default());
    Filtering::new(source, &FilterContext::new(FamilyId(0), "events", Level(1)), Arc::new(blobs))
}

fn rewritten(
    order: &Order,
    runs: &[Vec<Version>],
    keep: &Retention,
    by: By,
) -> Result<(Vec<Version>, RewriteCounters)> {
    let run = |run: &Vec<Version>| {
        Box::new(MemoryRun { entries: run.clone(), at: 0, width: 5 }) as Box<dyn RunCursor>
    };
    let filter = filtering(&FilterSource::Filter(Arc::new(by)))?;
    let cursors = runs.iter().map(run).collect();
    let mut work = start_filtered(order, 0, cursors, keep.clone(), filter, Collect::default())?;
    while work.step(64)? == Progress::More {}
    let counters = work.counters();
    Ok((std::mem::take(&mut work.sink().entries), counters))
}

fn at(key: &str, seq: u64, kind: ValueType, value: &str) -> Version {
    (key.into(), Trailer::new(SeqNum::new(seq).unwrap(), kind), value.into())
}

fn keep(snapshots: &[u64], beneath: Beneath) -> Retention {
    let snapshots = snapshots.iter().map(|s| SeqNum::new(*s).unwrap()).collect();
    let above = Retention::above_unknown(snapshots, Arc::default());
    Retention { beneath, operator: standard_operator("stringappend"), ..above }
}

fn bottom() -> Beneath {
    Beneath::Ranges(vec![])
}

/// The survivors of one run as `key#seq=value`, `key#seq-` for tombstones, `key#seq+operand`; and how many were removed.
fn left(by: By, keep: &Retention, run: &[Version]) -> (String, u64) {
    let (entries, counters) = rewritten(&Order::Bytewise, &[run.to_vec()], keep, by).unwrap();
    let line = |(key, trailer, value): &Version| {
        let sign = match trailer.value_type().unwrap() {
            Delete | SingleDelete => "-",
            Merge => "+",
            _ => "=",
        };
        let (key, value) = (key.escape_ascii(), value.escape_ascii());
        format!("{key}#{}{sign}{value}", trailer.seq())
    };
    (entries.iter().map(line).collect::<Vec<_>>().join(" "), counters.filtered)
}

/// `old` goes, `c…` changes, `skip…` goes with all keys before what follows.
fn word(_: &[u8], value: &[u8]) -> Decision {
    match value {
        b"old" => Decision::Remove,
        [b'c', rest @ ..] => Decision::Change([b"d", rest].concat()),
        _ => value.strip_prefix(b"skip").map_or(Decision::Keep, |to| Decision::RemoveAndSkipUntil(to.into())),
    }
}

const WORDS: By = By { value: word, operand: word, blob: |_| None };

use ValueType::{BlobIndex as Blob, Delete, Merge, Put, SingleDelete, TimedPut};

#[test]
fn a_removed_value_leaves_a_tombstone_while_something_may_lie_beneath() {
    let run =
        [at("a", 9, Put, "old"), at("a", 3, Put, "older"), at("b", 8, Put, "new"), at("c", 7, Put, "c1")];
    assert_eq!(left(WORDS, &keep(&[], Beneath::Unknown), &run), ("a#9- b#8=new c#7=d1".into(), 1));
    let beneath = |from: &str, to: &str| Beneath::Ranges(vec![(from.into(), to.into())]);
    assert_eq!(left(WORDS, &keep(&[], beneath("a", "a")), &run), ("a#9- b#8=new c#7=d1".into(), 1));
    assert_eq!(left(WORDS, &keep(&[], beneath("b", "c")), &run), ("b#8=new c#7=d1".into(), 1));
    assert_eq!(left(WORDS, &keep(&[], bottom()), &run), ("b#0=new c#0=d1".into(), 1));
    // The snapshot needs the older version, so newer reads need the tombstone.
    assert_eq!(left(WORDS, &keep(&[5], bottom()), &run).0, "a#9- a#0=older b#8=new c#7=d1");
}

#[test]
fn what_a_snapshot_sees_is_not_asked_about() {
    let run =
        [at("a", 9, Put, "old"), at("a", 3, Put, "old"), at("b", 4, Put, "c1"), at("c", 5, Merge, "old")];
    assert_eq!(left(WORDS, &keep(&[9], bottom()), &run), ("a#0=old b#0=c1 c#0=old".into(), 0));
    assert_eq!(left(WORDS, &keep(&[5], bottom()), &run), ("a#9- a#0=old b#0=c1 c#0=old".into(), 1));
    assert_eq!(left(WORDS, &keep(&[3, 8], Beneath::Unknown), &run).0, "a#9- a#3=old b#4=c1 c#5+old");
}

#[test]
fn deletions_are_not_asked_about() {
    let all = By { value: |_, _| Decision::Remove, operand: |_, _| Decision::Remove, blob: |_| None };
    let run =
        [at("a", 9, Delete, ""), at("a", 3, Put, "x"), at("b", 8, SingleDelete, ""), at("c", 1, Put, "x")];
    assert_eq!(left(all, &keep(&[], Beneath::Unknown), &run), ("a#9- b#8- c#1-".into(), 1));
}

#[test]
fn a_skip_removes_without_tombstones_and_leaves_tombstones() {
    let run = [
        at("a", 9, Put, "skipd"),
        at("a", 2, Put, "older"),
        at("b", 8, Delete, ""),
        at("c", 7, Merge, "1"),
        at("c", 1, Put, "0"),
        at("ca", 1, Put, "seen"),
        at("d", 6, Put, "new"),
        at("e", 5, Put, "skipe"),
        at("f", 4, Put, "skipa"),
    ];
    let (unknown, seen) = (keep(&[], Beneath::Unknown), keep(&[1], Beneath::Unknown));
    assert_eq!(left(WORDS, &unknown, &run), ("b#8- d#6=new e#5=skipe f#4=skipa".into(), 4));
    assert_eq!(left(WORDS, &seen, &run).0, "b#8- c#1=0 ca#1=seen d#6=new e#5=skipe f#4=skipa");
    let operand = [at("a", 9, Merge, "skipz"), at("a", 8, Put, "new"), at("b", 7, Put, "x")];
    assert_eq!(left(WORDS, &unknown, &operand), (String::new(), 3));
}

#[test]
fn operands_go_one_by_one_and_cover_their_base() {
    let run =
        [at("a", 9, Merge, "old"), at("a", 8, Merge, "c1"), at("a", 7, Merge, "2"), at("a", 6, Put, "old")];
    // The base is not asked about: the operands apply to it.
    assert_eq!(left(WORDS, &keep(&[], Beneath::Unknown), &run), ("a#8=old,2,d1".into(), 1));
    let alone = [at("a", 9, Merge, "old"), at("a", 6, Put, "old"), at("b", 5, Put, "new")];
    assert_eq!(left(WORDS, &keep(&[], Beneath::Unknown), &alone), ("a#6- b#5=new".into(), 2));
    let no_operator = Retention { operator: None, ..keep(&[], Beneath::Unknown) };
    assert_eq!(left(WORDS, &no_operator, &run).0, "a#8+d1 a#7+2 a#6=old");
}

#[test]
fn a_folded_value_is_asked_about() {
    let joined = By { value: |_, v| if v == b"1,2" { Decision::Remove } else { Decision::Keep }, ..KEEPS };
    let run = [at("a", 9, Merge, "2"), at("a", 8, Put, "1"), at("a", 3, Put, "0"), at("b", 2, Put, "x")];
    assert_eq!(left(joined, &keep(&[], Beneath::Unknown), &run), ("a#9- b#2=x".into(), 1));
    assert_eq!(left(joined, &keep(&[], bottom()), &run), ("b#0=x".into(), 1));
    assert_eq!(left(joined, &keep(&[3], bottom()), &run).0, "a#9- a#0=0 b#0=x");
    assert_eq!(left(joined, &keep(&[9], bottom()), &run), ("a#0=1,2 b#0=x".into(), 0));
    let other = By {
        value: |_, v| if v == b"1,2" { Decision::Change(b"3".into()) } else { Decision::Keep },
        ..KEEPS
    };
    assert_eq!(left(other, &keep(&[], bottom()), &run).0, "a#0=3 b#0=x");
    let gone = By {
        value: |_, v| if v == b"1,2" { Decision::RemoveAndSkipUntil(b"c".into()) } else { Decision::Keep },
        ..KEEPS
    };
    assert_eq!(left(gone, &keep(&[], Beneath::Unknown), &run), (String::new(), 2));
}

#[test]
fn values_elsewhere_and_values_with_times() {
    // No such blob file: the value cannot be read, and a filter that needs it keeps it.
    let mut index = Vec::new();
    BlobIndex::Blob(BlobPlace { file: FileNumber(77), offset: 40, size: 3, compression: 0 })
        .encode(&mut index);
    let lost = (b"a".to_vec(), Trailer::new(SeqNum::new(3).unwrap(), Blob), index);
    let (run, unknown) = ([lost], keep(&[], Beneath::Unknown));
    let all = By { value: |_, _| Decision::Remove, ..KEEPS };
    assert_eq!(left(all, &unknown, &run).1, 0);
    let by_key = By { blob: |_| Some(Decision::Remove), ..KEEPS };
    assert_eq!(left(by_key, &unknown, &run), ("a#3-".into(), 1));
    let changes = By { blob: |_| Some(Decision::Change(b"new".into())), ..KEEPS };
    let (entries, _) = rewritten(&Order::Bytewise, &[run.to_vec()], &unknown, changes).unwrap();
    assert_eq!(entries, [at("a", 3, Put, "new")]);
    let timed = at("t", 4, TimedPut, "c1\0\0\0\0\0\0\0\x07");
    let (entries, _) = rewritten(&Order::Bytewise, &[vec![timed]], &unknown, WORDS).unwrap();
    assert_eq!(entries, [at("t", 4, TimedPut, "d1\0\0\0\0\0\0\0\x07")]);
}

#[test]
fn a_panic_is_an_error_that_names_filter_family_and_key() {
    let bad = By { value: |_, _| panic!("on purpose"), ..KEEPS };
    let run = vec![at("k1", 3, Put, "v")];
    let e = rewritten(&Order::Bytewise, &[run], &keep(&[], bottom()), bad).unwrap_err();
    let text = "the compaction filter \"by\" of family \"events\" panicked at key 'k1'";
    assert_eq!((e.kind(), e.message()), (ErrorKind::Aborted, text));
    let e = filtering(&FilterSource::Factory(Arc::new(KEEPS))).unwrap_err();
    let text = "the compaction filter factory \"maker\" of family \"events\" panicked";
    assert_eq!((e.kind(), e.message()), (ErrorKind::Aborted, text));
}

/// What the filter of the model says of `v7`, `m8`: a fifth goes, a fifth changes. Folded values contain an `m`, and stay.
fn drawn(_: &[u8], value: &[u8]) -> Decision {
    let number = value.get(1..).and_then(|n| std::str::from_utf8(n).ok()).and_then(|n| n.parse::<u64>().ok());
    match number.map(|n| n % 5) {
        Some(0) => Decision::Remove,
        Some(1) => Decision::Change([b"c", value].concat()),
        _ => Decision::Keep,
    }
}

const DRAWN: By = By {
    value: |key, value| if value.contains(&b'm') { Decision::Keep } else { drawn(key, value) },
    operand: drawn,
    blob: |_| None,
};

fn draw(dice: &mut Dice, order: &Order) -> (Vec<Vec<Version>>, Vec<Version>, u64) {
    let total = 1 + dice.roll(120);
    let deep = total / 10 * dice.roll(3);
    let count = 1 + dice.index(4);
    let (mut runs, mut deeper) = (vec![vec![]; count], vec![]);
    for seq in 1..=total {
        let kind = [Put, Put, Put, Delete, Merge, SingleDelete, ValueType::Entity][dice.index(7)];
        let value = match kind {
            Delete | SingleDelete => vec![],
            ValueType::Entity => entity(seq),
            Merge => format!("m{seq}").into_bytes(),
            _ => format!("v{seq}").into_bytes(),
        };
        let version = (draw_key(dice), Trailer::new(SeqNum::new(seq).unwrap(), kind), value);
        if seq <= deep { deeper.push(version) } else { runs[dice.index(count)].push(version) }
    }
    (runs.into_iter().map(|r| sorted(order, r)).collect(), sorted(order, deeper), deep)
}

/// The newest state of a key when the filter has seen the versions above `deep` that no snapshot sees.
fn filtered_read(
    data: &Data,
    order: &Order,
    key: &[u8],
    is_asked: impl Fn(SeqNum) -> bool,
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let covers =
        |t: &&RangeTombstone| order.compare(&t.begin, key).is_le() && order.compare(key, &t.end).is_lt();
    let deleted = data.tombstones.iter().filter(covers).map(|t| t.seq).max();
    let sees = |v: &&Version| v.0 == key && deleted.is_none_or(|d| v.1.seq() >= d);
    let mut mine: Vec<_> = data.versions.iter().filter(sees).collect();
    mine.sort_by_key(|v| std::cmp::Reverse(v.1));
    let (mut parts, mut column, mut covered) = (Vec::<Vec<u8>>::new(), None, false);
    for (_, trailer, value) in mine {
        let (kind, asked) = (trailer.value_type().unwrap(), is_asked(trailer.seq()));
        if matches!(kind, Delete | SingleDelete) {
            break;
        }
        if kind == Merge {
            match if asked { drawn(key, value) } else { Decision::Keep } {
                Decision::Remove => continue,
                Decision::Change(new) => parts.push(new),
                _ => parts.push(value.clone()),
            }
            covered |= asked;
            continue;
        }
        let entity = (kind == ValueType::Entity).then(|| Entity::decode(value).unwrap());
        let inline = |name: &[u8]| match entity.as_ref()?.get(name) {
            Some(ColumnValue::Inline(value)) => Some(value.to_vec()),
            _ => None,
        };
        let plain = if entity.is_some() { inline(b"").unwrap_or_default() } else { value.clone() };
        match if asked && !covered { drawn(key, &plain) } else { Decision::Keep } {
            Decision::Remove => {}
            Decision::Change(new) => parts.push(new),
            _ => {
                parts.push(plain);
                column = inline(b"c");
            }
        }
        break;
    }
    parts.reverse();
    (!parts.is_empty()).then(|| (parts.join(&b','), column))
}

#[test]
fn random_runs_read_as_the_model() {
    let mut dice = Dice(0x51ed_270b_7f4a_7c15);
    for case in 0..3000 {
        let order = orders()[case % 3].clone();
        let (runs, deeper, deep) = draw(&mut dice, &order);
        let (mut data, mut below) = draw_tombstones(&mut dice, &order, 121, deep);
        (data.versions, below.versions) = (runs.concat(), deeper.clone());
        let keep = draw_retention(&mut dice, &order, 3, &deeper, &data);
        let (after, counters) = rewritten(&order, &runs, &keep, DRAWN).unwrap();
        assert_eq!(counters.entries_out, after.len() as u64, "case {case}");
        let tombstones = keep.survivors(&order);
        let fragments: Vec<_> = tombstones.collect();
        let tombstones = fragments.iter().flat_map(|f| {
            f.seqs.iter().map(|s| RangeTombstone { begin: f.begin.clone(), end: f.end.clone(), seq: *s })
        });
        let left = Data { versions: after.clone(), tombstones: tombstones.collect() };
        let (before, left) = (data.and(&below), left.and(&below));
        let is_asked =
            |seq: SeqNum| seq.get() > deep && keep.snapshots.last().is_none_or(|newest| seq > *newest);
        for (key, ..) in &before.versions {
            let what = || format!("case {case}: {}, {keep:?}\n{before:?}\n{left:?}", key.escape_ascii());
            for seq in keep.snapshots.iter().copied() {
                assert_eq!(left.read(&order, key, seq), before.read(&order, key, seq), "{seq} {}", what());
            }
            let expected = filtered_read(&before, &order, key, is_asked);
            assert_eq!(left.read(&order, key, SeqNum::MAX), expected, "{}", what());
        }
    }
}
