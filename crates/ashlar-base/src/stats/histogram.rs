//! The histogram that RocksDB prints: coarse buckets, and percentiles by linear interpolation inside a bucket.
//!
//! [`Histogram`] belongs to one thread; many threads count into an [`AtomicHistogram`] at once.
//!
//! 1. Limits are 1, 2, then each 1.5 times the one before, printed with its two leading digits: 110, 170, 250 …
//! 2. A bucket counts the values above the limit before it and up to its own limit.
//!
//! Source: RocksDB `monitoring/histogram.cc`.

use super::counters::stripe;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A histogram: counts of numbers by magnitude, without a unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    min: u64,
    max: u64,
    sum: u64,
    sum_of_squares: f64,
}

fn limits() -> &'static [u64] {
    static LIMITS: OnceLock<Vec<u64>> = OnceLock::new();
    LIMITS.get_or_init(|| {
        let mut limits = vec![1, 2];
        let mut exact = 2.0_f64;
        loop {
            exact *= 1.5;
            if exact >= 1.8e19 {
                return limits;
            }
            // In range by the test above.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let whole = exact as u64;
            let mut unit = 1;
            while whole / unit >= 100 {
                unit *= 10;
            }
            limits.push(whole / unit * unit);
        }
    })
}

/// The bucket that counts `value`.
fn bucket_of(value: u64) -> usize {
    limits().partition_point(|&limit| limit < value).min(limits().len() - 1)
}

impl Histogram {
    /// Counts `value`.
    pub fn add(&mut self, value: u64) {
        if self.count == 0 {
            self.counts = vec![0; limits().len()];
            self.min = u64::MAX;
        }
        if let Some(count) = self.counts.get_mut(bucket_of(value)) {
            *count += 1;
        }
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value);
        self.sum_of_squares += value as f64 * value as f64;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(to, from)| *to += from);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares += other.sum_of_squares;
    }

    /// The number of counted values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest value; 0 if no value was counted.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The largest value; 0 if no value was counted.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 if no value was counted.
    pub fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The standard deviation; 0 if no value was counted.
    pub fn deviation(&self) -> f64 {
        let mean = self.average();
        if self.count == 0 {
            0.0
        } else {
            (self.sum_of_squares / self.count as f64 - mean * mean).max(0.0).sqrt()
        }
    }

    /// The value below which `percent` of the values lie: exact to the bucket, linear inside it, within min and max.
    pub fn percentile(&self, percent: f64) -> f64 {
        let wanted = self.count as f64 * percent / 100.0;
        let (mut below, mut left) = (0.0, 0.0);
        for (&count, &limit) in self.counts.iter().zip(limits()) {
            let (upto, right) = (below + count as f64, limit as f64);
            if upto >= wanted {
                let part = if count == 0 { 0.0 } else { (wanted - below) / count as f64 };
                return (left + (right - left) * part).clamp(self.min as f64, self.max as f64);
            }
            (below, left) = (upto, right);
        }
        self.max as f64
    }
}

/// How many buckets there are.
const BUCKETS: usize = 109;

/// Threads are spread over so many stripes.
const STRIPES: usize = 8;

/// Some threads' share. Relaxed throughout: they are counts, nothing is ordered by them.
#[repr(align(128))]
struct Stripe {
    counts: [AtomicU64; BUCKETS],
    min: AtomicU64,
    max: AtomicU64,
    sum: AtomicU64,
    sum_of_squares: AtomicU64,
}

impl Stripe {
    fn new() -> Stripe {
        Stripe {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            sum_of_squares: AtomicU64::new(0),
        }
    }

    fn reset(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.min.store(u64::MAX, Ordering::Relaxed);
        for cell in [&self.max, &self.sum, &self.sum_of_squares] {
            cell.store(0, Ordering::Relaxed);
        }
    }

    fn snapshot(&self) -> Histogram {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let count = counts.iter().sum();
        if count == 0 {
            return Histogram::default();
        }
        Histogram {
            counts,
            count,
            min: self.min.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
            sum: self.sum.load(Ordering::Relaxed),
            sum_of_squares: self.sum_of_squares.load(Ordering::Relaxed) as f64,
        }
    }
}

/// A histogram that many threads count into at once, without a lock. 8 KiB.
pub struct AtomicHistogram(Box<[Stripe]>);

impl AtomicHistogram {
    /// An empty one.
    pub fn new() -> AtomicHistogram {
        AtomicHistogram((0..STRIPES).map(|_| Stripe::new()).collect())
    }

    /// Counts `value`: a search among the buckets and five atomic additions.
    pub fn add(&self, value: u64) {
        let Some(part) = self.0.get(stripe() % STRIPES) else { return };
        part.min.fetch_min(value, Ordering::Relaxed);
        part.max.fetch_max(value, Ordering::Relaxed);
        part.sum.fetch_add(value, Ordering::Relaxed);
        part.sum_of_squares.fetch_add(value.wrapping_mul(value), Ordering::Relaxed);
        if let Some(count) = part.counts.get(bucket_of(value)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted so far; what is being counted meanwhile may be in it in part.
    pub fn snapshot(&self) -> Histogram {
        let mut all = Histogram::default();
        self.0.iter().for_each(|part| all.merge(&part.snapshot()));
        all
    }

    /// Forgets what was counted; what is being counted meanwhile may stay in part.
    pub fn reset(&self) {
        self.0.iter().for_each(Stripe::reset);
    }
}

impl Default for AtomicHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AtomicHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AtomicHistogram({} values)", self.snapshot().count())
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = |percent| self.percentile(percent);
        writeln!(f, "Count: {} Average: {:.4}  StdDev: {:.2}", self.count, self.average(), self.deviation())?;
        writeln!(f, "Min: {}  Median: {:.4}  Max: {}", self.min, p(50.0), self.max)?;
        writeln!(
            f,
            "Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}",
            p(50.0),
            p(75.0),
            p(99.0),
            p(99.9),
            p(99.99)
        )?;
        writeln!(f, "{}", "-".repeat(54))?;
        let (mut left, mut seen) = (0, 0);
        for (&count, &limit) in self.counts.iter().zip(limits()) {
            if count > 0 {
                seen += count;
                let share = |n: u64| n as f64 * 100.0 / self.count as f64;
                let open = if left == 0 { '[' } else { '(' };
                // One mark per 5 %, rounded; at most 20.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let marks = "#".repeat((share(count) / 5.0).round() as usize);
                let (part, total) = (share(count), share(seen));
                writeln!(f, "{open} {left:7}, {limit:7} ] {count:8} {part:7.3}% {total:7.3}% {marks}")?;
            }
            left = limit;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_known_ones() {
        let known = [
            1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580, 870, 1300, 1900, 2900, 4400,
            6600, 9900, 14000, 22000,
        ];
        assert_eq!(&limits()[..known.len()], known);
        assert!(limits().is_sorted());
    }

    /// The counts and what RocksDB 7.8.3's tool printed for three values of 1, 3 and 7.
    #[test]
    fn prints_as_the_tool_does() {
        let mut h = Histogram::default();
        [3, 1, 7].into_iter().for_each(|v| h.add(v));
        assert_eq!(
            h.to_string(),
            "Count: 3 Average: 3.6667  StdDev: 2.49\n\
             Min: 1  Median: 2.5000  Max: 7\n\
             Percentiles: P50: 2.50 P75: 7.00 P99: 7.00 P99.9: 7.00 P99.99: 7.00\n\
             ------------------------------------------------------\n\
             [       0,       1 ]        1  33.333%  33.333% #######\n\
             (       2,       3 ]        1  33.333%  66.667% #######\n\
             (       6,      10 ]        1  33.333% 100.000% #######\n"
        );
    }

    #[test]
    fn counting_together_is_counting_alone() {
        assert_eq!(limits().len(), BUCKETS);
        let (together, mut alone) = (AtomicHistogram::new(), Histogram::default());
        std::thread::scope(|scope| {
            for from in 0..20u64 {
                let together = &together;
                scope.spawn(move || (from..from + 500).for_each(|v| together.add(v * v)));
            }
        });
        (0..20u64).for_each(|from| (from..from + 500).for_each(|v| alone.add(v * v)));
        assert_eq!(together.snapshot(), alone);
        together.reset();
        assert_eq!(together.snapshot(), Histogram::default());
    }

    #[test]
    fn merging_is_adding() {
        let (mut one, mut two, mut all) = (Histogram::default(), Histogram::default(), Histogram::default());
        for v in [0, 1, 5, 900, u64::MAX] {
            one.add(v);
            two.add(v / 2);
            all.add(v);
            all.add(v / 2);
        }
        let mut merged = Histogram::default();
        merged.merge(&one);
        merged.merge(&two);
        merged.merge(&Histogram::default());
        assert_eq!(
            (merged.counts, merged.count, merged.min, merged.max),
            (all.counts, all.count, all.min, all.max)
        );
    }

    #[test]
    fn nothing_prints_as_zeros() {
        assert!(
            Histogram::default()
                .to_string()
                .starts_with("Count: 0 Average: 0.0000  StdDev: 0.00\nMin: 0  Median: 0.0000")
        );
    }
}
