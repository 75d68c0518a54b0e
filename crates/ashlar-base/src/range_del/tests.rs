use super::*;
use crate::ext::comparator::Comparator;

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

/// Longer keys come first, and keys of one length from the last to the first.
#[derive(Debug)]
struct LongestFirst;

impl Comparator for LongestFirst {
    fn name(&self) -> &str {
        "test.LongestFirst"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (b.len(), b).cmp(&(a.len(), a))
    }
}

/// Keys made of a number: those that one byte tells apart, those that are equal but for bytes behind their words,
/// and those that are equal but for zeros at the end.
const SHAPES: [fn(u8) -> Vec<u8>; 4] = [
    |n| vec![n],
    |n| [b"begin alike", &[n / 6; 8][..], &[n]].concat(),
    |n| [&[n / 6; 9][..], b"tail", &[n % 6]].concat(),
    |n| [b"zeros", &vec![0; usize::from(n)][..]].concat(),
];

#[test]
fn equals_the_plain_form() {
    for order in [Order::Bytewise, Order::ReverseBytewise, Order::Custom(Arc::new(LongestFirst))] {
        for shape in SHAPES {
            equals_the_plain_form_of(&order, shape);
        }
    }
}

/// Sets of tombstones over twenty keys of a shape, asked for these keys and for keys elsewhere.
fn equals_the_plain_form_of(order: &Order, shape: fn(u8) -> Vec<u8>) {
    let mut state = 7u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    let elsewhere = [&b""[..], b"\0", b"begin", b"begin alikf", b"ze", b"zeros!", &[0xff; 12]];
    let keys: Vec<_> = (0..=21).map(shape).chain(elsewhere.map(<[u8]>::to_vec)).collect();
    for round in 0..if cfg!(miri) { 20 } else { 150 } {
        let all: Vec<_> = (0..round % 9)
            .map(|_| {
                let mut key = || shape(draw(20).to_le_bytes()[0]);
                let (begin, end) = (key(), key());
                RangeTombstone { begin, end, seq: SeqNum::new(1 + draw(12)).unwrap() }
            })
            .collect();
        let cut = FragmentedTombstones::new(order, &all);
        let again: Vec<_> = cut.tombstones().collect();
        assert_eq!(owned(&FragmentedTombstones::new(order, &again)), owned(&cut));
        assert_eq!(owned(&cut), plainly(order, &all), "{all:?}");
        let snapshots: Vec<_> = (0..13).filter(|_| draw(3) == 0).map(|s| SeqNum::new(s).unwrap()).collect();
        for f in cut.fragments() {
            let stripe = |seq: SeqNum| snapshots.partition_point(|s| *s < seq);
            let mut newest = f.seqs();
            newest.dedup_by_key(|seq| stripe(*seq));
            assert_eq!(f.newest_per_stripe(&snapshots), newest, "{all:?} {snapshots:?}");
        }
        for key in &keys {
            let over = |t: &&RangeTombstone| {
                order.compare(&t.begin, key).is_le() && order.compare(key, &t.end).is_lt()
            };
            let behind = cut.fragments().filter(|f| order.compare(f.end, key).is_le()).count();
            let found = cut.find(key);
            assert_eq!(found.unwrap_or_else(|next| next), behind, "{all:?} key {key:?}");
            assert_eq!(found.is_ok(), all.iter().any(|t| over(&t)), "{all:?} key {key:?}");
            for read in (0..14).map(|read| SeqNum::new(read).unwrap()) {
                let seqs = || all.iter().filter(over).map(|t| t.seq);
                let plain = seqs().filter(|seq| *seq <= read).max();
                assert_eq!(cut.covering_seq(key, read), plain, "{all:?} key {key:?} at {read}");
                let above = cut.fragment_over(key).and_then(|f| f.oldest_above(read));
                assert_eq!(above, seqs().filter(|seq| *seq > read).min());
            }
        }
    }
}

/// The order of bytes, which notes the most that is charged while keys are compared.
#[derive(Debug)]
struct Watching {
    budget: Arc<MemoryBudget>,
    most: std::sync::atomic::AtomicUsize,
}

impl Comparator for Watching {
    fn name(&self) -> &str {
        "test.Watching"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let held = self.budget.held(MemoryUse::Buffers);
        self.most.fetch_max(held, std::sync::atomic::Ordering::Relaxed);
        a.cmp(b)
    }
}

/// Regression: the copies of the keys, and half of the rest, were under no cap while 100,000 tombstones were cut.
#[test]
fn a_cut_charges_what_it_takes() {
    let budget = MemoryBudget::new(1 << 30);
    let watching = Arc::new(Watching { budget: Arc::clone(&budget), most: 0.into() });
    let tombstone = |n: u64| RangeTombstone {
        begin: [vec![7; 40], (2 * n).to_be_bytes().to_vec()].concat(),
        end: [vec![7; 40], (2 * n + 1).to_be_bytes().to_vec()].concat(),
        seq: SeqNum::new(n).unwrap(),
    };
    let all: Vec<_> = (0..1000).map(tombstone).collect();
    let cut = FragmentedTombstones::cut(&Order::Custom(watching.clone()), &all, Some(&budget));
    let list = size_of_val(&*all);
    let most = watching.most.load(std::sync::atomic::Ordering::Relaxed) - list;
    assert!((cut.memory()..2 * cut.memory()).contains(&most), "{most} where the result has {}", cut.memory());
    assert_eq!(budget.held(MemoryUse::Buffers), 0);
}
