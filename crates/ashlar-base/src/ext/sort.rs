//! Sorting by an order that may be a user's.
//!
//! A comparator can be no total order: serial numbers that wrap around, a comparison of floats with NaN, an answer that
//! changes between calls. The sorts of the standard library panic when they notice it, in the thread of the caller.
//! [`Order::sort_by`] does not. The built-in orders are total and are sorted by the standard library.

use super::comparator::Order;
use crate::{Error, Result};
use std::cmp::Ordering;

/// What to do about keys of a file that are out of order in an order of a user.
pub const CHECK_THE_COMPARATOR: &str = "Run a check of the tables with their checksums; if they are sound, the comparator \
     contradicts itself, or is another than the tables were written with: correct it";

impl Order {
    /// Sorts `items` by `compare`, which compares by this order. Stable. Never panics: if the order is no total one, the
    /// items come out in some order in which each was at or before the next when the two were compared.
    pub fn sort_by<T>(&self, items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
        match self {
            Order::Bytewise | Order::ReverseBytewise => items.sort_by(compare),
            Order::Custom(_) if items.is_sorted_by(|a, b| compare(a, b).is_le()) => {}
            Order::Custom(_) => *items = merge_sorted(std::mem::take(items), &compare),
        }
    }

    /// Checks that an order of a user does not contradict itself on `sorted`, which are user keys after
    /// [`Order::sort_by`]: each key is compared with its predecessor and with the first key, both ways.
    ///
    /// # Errors
    /// `InvalidArgument` with two keys.
    pub fn check_sorted<'k>(&self, sorted: impl IntoIterator<Item = &'k [u8]>) -> Result<()> {
        let Order::Custom(comparator) = self else { return Ok(()) };
        let mut sorted = sorted.into_iter();
        let Some(first) = sorted.next() else { return Ok(()) };
        let mut before = first;
        for key in sorted {
            for earlier in [before, first] {
                let said = comparator.compare(earlier, key);
                if said.is_gt() || comparator.compare(key, earlier) != said.reverse() {
                    return Err(contradiction(earlier, key));
                }
            }
            before = key;
        }
        Ok(())
    }
}

fn merge_sorted<T>(mut left: Vec<T>, compare: &impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if left.len() < 2 {
        return left;
    }
    let mut sorted = Vec::with_capacity(left.len());
    let right = left.split_off(left.len() / 2);
    let mut left = merge_sorted(left, compare).into_iter().peekable();
    let mut right = merge_sorted(right, compare).into_iter().peekable();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        sorted.extend(if compare(a, b).is_gt() { right.next() } else { left.next() });
    }
    sorted.extend(left);
    sorted.extend(right);
    sorted
}

/// The error for two keys on which the comparator contradicts itself.
#[cold]
#[track_caller]
pub fn contradiction(last: &[u8], next: &[u8]) -> Error {
    let (last, next) = (last.escape_ascii(), next.escape_ascii());
    Error::invalid(format!("the comparator contradicts itself on the keys {last} and {next}"))
        .hint("Correct the comparator, and open the database again: the tables are not damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comparator, splitmix};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn mix(mut number: u64) -> u64 {
        splitmix::next(&mut number)
    }

    /// Checks the answers of an invalid order and of a valid one.
    #[derive(Debug)]
    enum Answers {
        Bytes,
        FirstByte,
        Less,
        Greater,
        Serial,
        Random(AtomicU64),
    }

    impl Comparator for Answers {
        fn name(&self) -> &str {
            "answers"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            let number = |k: &[u8]| u32::from_be_bytes(k.try_into().unwrap());
            match self {
                Answers::Bytes => a.cmp(b),
                Answers::FirstByte => a[0].cmp(&b[0]),
                Answers::Less => Ordering::Less,
                Answers::Greater => Ordering::Greater,
                Answers::Serial => number(a).wrapping_sub(number(b)).cast_signed().cmp(&0),
                Answers::Random(calls) => (mix(calls.fetch_add(1, Relaxed)) % 3).cmp(&1),
            }
        }
    }

    fn keys(count: u64) -> Vec<[u8; 4]> {
        (0..count).map(|n| *mix(n).to_be_bytes().first_chunk().unwrap()).collect()
    }

    #[test]
    fn no_comparator_makes_a_sort_panic_or_lose_an_item() {
        for count in if cfg!(miri) { 0..30 } else { 0..300 } {
            for answers in [Answers::Less, Answers::Greater, Answers::Serial, Answers::Random(0.into())] {
                let name = format!("{answers:?}");
                let order = Order::Custom(Arc::new(answers));
                let mut sorted = keys(count);
                order.sort_by(&mut sorted, |a, b| order.compare(a, b));
                let checked = order.check_sorted(sorted.iter().map(|key| &key[..]));
                assert!(count < 30 || checked.is_err(), "{name} of {count}");
                sorted.sort_unstable();
                let mut all = keys(count);
                all.sort_unstable();
                assert_eq!(sorted, all, "{name} of {count}");
            }
        }
    }

    #[test]
    fn a_total_order_is_sorted_as_the_standard_library_does_and_stays_stable() {
        for answers in [Answers::Bytes, Answers::FirstByte] {
            let order = Order::Custom(Arc::new(answers));
            for count in [0, 1, 2, 3, 30, 301] {
                let (mut sorted, mut expected) = (keys(count), keys(count));
                order.sort_by(&mut sorted, |a, b| order.compare(a, b));
                expected.sort_by(|a, b| order.compare(a, b));
                assert_eq!(sorted, expected);
                order.check_sorted(sorted.iter().map(|key| &key[..])).unwrap();
            }
        }
    }
}
