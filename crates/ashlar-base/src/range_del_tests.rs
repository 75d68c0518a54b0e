use super::*;

fn tombstone(begin: u8, end: u8, seq: u64) -> RangeTombstone {
    RangeTombstone { begin: vec![begin], end: vec![end], seq: SeqNum::new(seq).unwrap() }
}

fn owned(cut: &FragmentedTombstones) -> Vec<Fragment> {
    let owned = |f: FragmentRef<'_>| Fragment { begin: f.begin.into(), end: f.end.into(), seqs: f.seqs() };
    cut.fragments().map(owned).collect()
}

/// Fragments as the definition has them, in square time.
fn plainly(order: &Order, tombstones: &[RangeTombstone]) -> Vec<Fragment> {
    let live = || tombstones.iter().filter(|t| order.compare(&t.begin, &t.end).is_lt());
    let mut borders: Vec<&Vec<u8>> = live().flat_map(|t| [&t.begin, &t.end]).collect();
    borders.sort_by(|a, b| order.compare(a, b));
    borders.dedup();
    let mut fragments = Vec::new();
    for pair in borders.windows(2) {
        let over = |t: &&RangeTombstone| {
            order.compare(&t.begin, pair[0]).is_le() && order.compare(pair[1], &t.end).is_le()
        };
        let mut seqs: Vec<SeqNum> = live().filter(over).map(|t| t.seq).collect();
        seqs.sort_unstable_by(|a, b| b.cmp(a));
        seqs.dedup();
        if !seqs.is_empty() {
            fragments.push(Fragment { begin: pair[0].clone(), end: pair[1].clone(), seqs });
        }
    }
    fragments
}

/// Both ways in which every tombstone overlaps every other one.
#[test]
fn overlapping_tombstones_take_little_more_memory_than_disjoint_ones() {
    let count: u64 = if cfg!(miri) { 100 } else { 50_000 };
    let key = |n: u64| n.to_be_bytes().to_vec();
    let seq = |n: u64| SeqNum::new(n + 1).unwrap();
    let nested = |n: u64| RangeTombstone { begin: key(n), end: key(4 * count - n), seq: seq(n) };
    let moving = |n: u64| RangeTombstone { begin: key(0), end: key(n + 1), seq: seq(n) };
    for make in [&nested as &dyn Fn(u64) -> RangeTombstone, &moving] {
        let all: Vec<_> = (0..count).map(make).collect();
        let cut = FragmentedTombstones::new(&Order::Bytewise, &all);
        assert!(cut.memory() / all.len() < 500, "{} bytes for each tombstone", cut.memory() / all.len());
        assert_eq!(cut.tombstones().count(), all.len());
        for (at, tombstone) in all.iter().enumerate().step_by(1 + all.len() / 97) {
            let covering = |read| cut.covering_seq(&tombstone.begin, read);
            let (before, newest) = (covering(SeqNum::new(at as u64).unwrap()), covering(tombstone.seq));
            assert_eq!(newest, Some(tombstone.seq));
            assert_eq!(before, SeqNum::new(at as u64).filter(|_| at > 0));
        }
    }
}

#[test]
fn equals_the_plain_form() {
    let mut state = 7u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    for order in [Order::Bytewise, Order::ReverseBytewise] {
        for round in 0..200 {
            let all: Vec<_> = (0..round % 9)
                .map(|_| tombstone(draw(20).to_le_bytes()[0], draw(20).to_le_bytes()[0], 1 + draw(12)))
                .collect();
            let cut = FragmentedTombstones::new(&order, &all);
            let again: Vec<_> = cut.tombstones().collect();
            assert_eq!(owned(&FragmentedTombstones::new(&order, &again)), owned(&cut));
            assert_eq!(owned(&cut), plainly(&order, &all), "{all:?}");
            let snapshots: Vec<_> =
                (0..13).filter(|_| draw(3) == 0).map(|s| SeqNum::new(s).unwrap()).collect();
            for f in cut.fragments() {
                let stripe = |seq: SeqNum| snapshots.partition_point(|s| *s < seq);
                let mut newest = f.seqs();
                newest.dedup_by_key(|seq| stripe(*seq));
                assert_eq!(f.newest_per_stripe(&snapshots), newest, "{all:?} {snapshots:?}");
            }
            for key in 0..=21u8 {
                for read in 0..14 {
                    let read = SeqNum::new(read).unwrap();
                    let covers = |t: &&RangeTombstone| {
                        t.seq <= read
                            && order.compare(&t.begin, &[key]) != Ordering::Greater
                            && order.compare(&[key], &t.end) == Ordering::Less
                    };
                    let plain = all.iter().filter(covers).map(|t| t.seq).max();
                    assert_eq!(cut.covering_seq(&[key], read), plain, "{all:?} key {key} at {read}");
                    let over = all.iter().filter(|t| {
                        t.seq > read
                            && order.compare(&t.begin, &[key]) != Ordering::Greater
                            && order.compare(&[key], &t.end) == Ordering::Less
                    });
                    let above = cut.fragment_over(&[key]).and_then(|f| f.oldest_above(read));
                    assert_eq!(above, over.map(|t| t.seq).min());
                }
            }
        }
    }
}
