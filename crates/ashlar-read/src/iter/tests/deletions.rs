//! Cursors over long series of deletions.

use super::*;
use ashlar_base::stats::perf::{self, Level, Metric};
use ashlar_base::stats::{Statistics, Ticker};

const KEYS: usize = 600;

fn key(number: usize) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

/// Series of one kind over the keys, each of random length.
fn series(family: &mut Family, random: &mut Random, kinds: &[ValueType]) -> Vec<Written> {
    let (begin, mut number) = (family.history.len(), 0);
    while number < KEYS {
        let end = KEYS.min(number + 1 + random.below(120));
        let step = [1, 1, 1, 7, 40][random.below(5)];
        let kind = random.below(kinds.len() + 1);
        if let Some(&kind) = kinds.get(kind) {
            for number in (number..end).step_by(step) {
                family.write(key(number), kind);
                if random.below(60) == 0 {
                    // A second version in the same run.
                    family.write(key(number), [kind, ValueType::Put][random.below(2)]);
                }
            }
        }
        number = end;
    }
    family.history[begin..].to_vec()
}

fn deleted_series(family: &mut Family, random: &mut Random) -> Arc<SuperVersion> {
    use ValueType::{Delete, Put, SingleDelete};
    let mut levels = vec![vec![]; 4];
    for (level, kinds, per_file) in [
        (3, &[Put][..], 90),
        (2, &[Delete, Delete, Delete, SingleDelete][..], 70),
        (1, &[Put, Delete, Delete][..], 50),
        (0, &[Delete, Delete][..], usize::MAX),
    ] {
        if random.below(4) > 0 {
            let part = series(family, random, kinds);
            levels[level] = family.tables(&part, per_file);
        }
    }
    let mem = match random.below(2) {
        0 => Vec::new(),
        _ => series(family, random, &[Delete, Delete, Put]),
    };
    let held = family.holding(levels);
    let (version, merger) = (Arc::clone(&held.version), Arc::clone(&held.merger));
    Arc::new(SuperVersion {
        mem: memtable(&family.order, &mem),
        imm: Box::new([]),
        version,
        merger,
        expiry: None,
        number: 1,
        contents: 1,
    })
}

#[test]
fn cursors_over_series_of_deletions_show_what_the_model_shows() {
    for n in 0..24 {
        let (mut random, order) = (Random::new(n as u64), orders()[n % 3].clone());
        let diet = [Diet::Plain, Diet::Rich][n / 3 % 2];
        let mut family = Family::of_diet(order.clone(), diet).laid_out(Layout::number(n % 8));
        let from = deleted_series(&mut family, &mut random);
        let less = |a: &[u8], b: &[u8]| order.compare(a, b).is_lt();
        for round in 0..6 {
            let last = family.history.len();
            let seq = if round < 2 { last } else { random.below(last + 1) };
            let seq = SeqNum::new(seq as u64).unwrap();
            let range = KeyBounds {
                lower: (round % 3 == 1).then(|| key(random.below(KEYS))),
                upper: (round % 2 == 1).then(|| key(random.below(KEYS))),
                ..KeyBounds::default()
            };
            let mut want = family.seen(seq);
            want.retain(|(key, _)| {
                range.lower.as_ref().is_none_or(|lower| !less(key, lower))
                    && range.upper.as_ref().is_none_or(|upper| less(key, upper))
            });
            let mut it = DbIter::new(Arc::clone(&from), seq, range, ReadOptions::default()).unwrap();
            for backward in [false, true] {
                let ((), mut seen) = (if backward { it.last() } else { it.first() }.unwrap(), vec![]);
                while let Some((key, value)) = it.entry() {
                    seen.push((key.to_vec(), value.to_vec()));
                    if backward { it.prev() } else { it.next() }.unwrap();
                }
                if backward {
                    seen.reverse();
                }
                assert!(seen == want, "history {n}, round {round}, backward: {backward}");
            }
            wander(&mut it, &want, &order, &mut random, 200);
        }
    }
}

/// The blocks that a cursor reads, and the deletions that it steps over, on its way from one value to the next.
fn effort(from: &Arc<SuperVersion>, seq: u64) -> (u64, u64) {
    let seq = SeqNum::new(seq).unwrap();
    let mut it = DbIter::new(Arc::clone(from), seq, KeyBounds::default(), ReadOptions::default()).unwrap();
    it.first().unwrap();
    perf::set_level(Level::EnableCount, None);
    let before = perf::Context::now();
    it.next().unwrap();
    let seen = perf::Context::now().since(&before);
    perf::set_level(Level::Disable, None);
    assert_eq!(it.key(), Some(&b"99999"[..]));
    let blocks = seen.get(Metric::BlockReadCount) + seen.get(Metric::BlockCacheHitCount);
    (blocks, seen.get(Metric::InternalDeleteSkippedCount))
}

/// A table of deletions that a read sees is passed at once. A read that does not see one of them meets each.
#[test]
fn a_table_of_deletions_is_passed_without_its_blocks() {
    let mut family = Family::new(Order::Bytewise).laid_out(Layout::number(4));
    for key in [&b""[..], b"99999"] {
        family.write(key.to_vec(), ValueType::Put);
    }
    let values = family.history.clone();
    for number in 0..2000 {
        family.write(key(number), ValueType::Delete);
    }
    let deletions = family.history[2..].to_vec();
    let levels = vec![vec![], family.tables(&deletions, 1000), family.tables(&values, usize::MAX)];
    let from = family.holding(levels);
    let last = family.history.len() as u64;
    let (blocks, steps) = effort(&from, last);
    assert!(blocks < 10 && steps < 400, "{blocks} blocks, {steps} deletions");
    let (blocks, steps) = effort(&from, last - 1);
    assert!(blocks > 5 && steps > 900, "{blocks} blocks, {steps} deletions");
}

/// Values that deletions hide are read into no place of the cache by a seek, which notes the range. The values behind them are, and so is
/// all that a step passes.
#[test]
fn hidden_blocks_stay_out_of_the_cache() {
    let mut family = Family::new(Order::Bytewise).laid_out(Layout::number(4));
    let statistics = Arc::new(Statistics::new());
    family.tables.count_into(&statistics);
    (0..4000).for_each(|number| family.write(key(number), ValueType::Put));
    let values = family.history.clone();
    (100..3000).for_each(|number| family.write(key(number), ValueType::Delete));
    let deletions = family.history[4000..].to_vec();
    let levels = vec![vec![], family.tables(&deletions, usize::MAX), family.tables(&values, usize::MAX)];
    let from = family.holding(levels);
    let seq = SeqNum::new(family.history.len() as u64).unwrap();
    let open = || DbIter::new(Arc::clone(&from), seq, KeyBounds::default(), ReadOptions::default()).unwrap();
    let added = || statistics.ticker(Ticker::BlockCacheAdd);
    let mut it = open();
    it.seek(&key(100)).unwrap();
    assert_eq!(it.key(), Some(&key(3000)[..]));
    let hidden = added();
    while it.key().is_some() {
        it.next().unwrap();
    }
    let shown = added() - hidden;
    assert!(hidden < 10 && shown > 20, "{hidden} blocks of hidden values, {shown} of others");
    let mut it = open();
    it.seek(&key(99)).unwrap();
    let before = added();
    it.next().unwrap();
    assert_eq!(it.key(), Some(&key(3000)[..]));
    assert!(added() - before > 50, "{} blocks that a step passed", added() - before);
}
