//! Hit ratios on drawn traces: of the rule for admission, and of a pool that admits every block that is read.

use crate::{FramePool, SlotArray};

const BLOCKS: u32 = 4000;
/// Bytes of a block, and with its overhead.
const LEN: usize = 1000;
const CHARGE: usize = LEN + 160;

/// Numbers below a bound, the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Blocks with a popularity of 1 / rank^skew; neighbours in rank are no neighbours in the table.
fn zipfian(skew: f64, len: usize) -> Vec<u32> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=BLOCKS)
        .map(|rank| {
            sum += f64::from(rank).powf(-skew);
            sum
        })
        .collect();
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let one = |_| {
        let at = draw.below(1 << 50) as f64 / (1_u64 << 50) as f64 * sum;
        let rank = sums.partition_point(|sum| *sum < at) as u32;
        rank.wrapping_mul(2741) % BLOCKS
    };
    (0..len).map(one).collect()
}

/// Hits per thousand reads in a pool for `cached` blocks. The first tenth of the trace fills the pool and does not count.
fn hits(trace: &[u32], cached: usize, admit_all: bool) -> usize {
    let pool = FramePool::new(cached * CHARGE);
    let slots = SlotArray::new(pool, BLOCKS);
    let (block, fill) = (vec![7_u8; LEN], trace.len() / 10);
    let mut hits = 0;
    for (at, ordinal) in trace.iter().enumerate() {
        if slots.hit(*ordinal).is_some() {
            hits += usize::from(at >= fill);
        } else if admit_all || slots.admits(*ordinal, LEN).is_some() {
            drop(slots.insert(*ordinal, block[..].into(), &[]));
        }
    }
    hits * 1000 / (trace.len() - fill)
}

/// The ratios of both: (every block, the rule).
fn both(trace: &[u32], cached: usize) -> (usize, usize) {
    (hits(trace, cached, true), hits(trace, cached, false))
}

#[test]
fn skewed_reads_hit_at_least_as_often() {
    for (skew, cached) in [(0.6, 200), (0.8, 400), (0.99, 40), (0.99, 400), (0.99, 2000), (1.2, 100)] {
        let (all, rule) = both(&zipfian(skew, 100_000), cached);
        println!("zipfian {skew}, {cached} of {BLOCKS} blocks: {all} -> {rule} per thousand");
        assert!(rule >= all, "zipfian {skew}, {cached} blocks: {all} {rule}");
    }
}

/// Every third read is of a scan over the whole table, which never comes back in time.
#[test]
fn a_scan_evicts_less() {
    let mut trace = zipfian(0.99, 100_000);
    for (at, ordinal) in trace.iter_mut().step_by(3).enumerate() {
        *ordinal = at as u32 % BLOCKS;
    }
    for cached in [40, 400, 1500] {
        let (all, rule) = both(&trace, cached);
        println!("a scan beside zipfian 0.99, {cached} blocks: {all} -> {rule} per thousand");
        assert!(rule > all + 10, "{cached} blocks: {all} {rule}");
    }
}

/// The blocks that are read change: every 5,000 reads, 300 others of the table.
#[test]
fn other_blocks_enter_when_the_reads_change() {
    let mut draw = Draw(5);
    let trace: Vec<u32> =
        (0..100_000).map(|at| (at / 5000 * 300 + draw.below(300)) as u32 % BLOCKS).collect();
    let (all, rule) = both(&trace, 400);
    println!("a working set that changes: {all} -> {rule} per thousand");
    assert!(rule + 70 > all, "each block is read from its file once more: {all} {rule}");
}
