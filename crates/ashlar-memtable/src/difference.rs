//! The place where a key first differs from a smaller key, and the bytes there, in 32 bits.
//!
//! `lcp` is the number of bytes that both keys begin with; the digits are the key's bytes from there on.
//! ```text
//! lcp 0 to 239:         | lcp: 8 bits                    | digits: 24 bits |
//! lcp 240 to 4,079:     | 240 * 256 + (lcp - 240): 16 bits        | digits: 16 bits |
//! lcp 4,080 to 69,614:  | 255: 8 bits | lcp - 4,080: 16 bits               | digits: 8 bits |
//! beyond, or the keys do not differ: all ones
//! ```
//! 1. Most keys begin with few common bytes, so three digits are kept for them. Where more bytes are common, `lcp` takes
//!    the room of one digit or two.
//! 2. Differences are ordered as (`lcp`, digits).
//! 3. A key counts as continued by endless zeros. If two keys differ in this view, the difference orders them as the full
//!    comparison does.
//! 4. The digits are in an order-preserving form: complements where the order is reversed. A custom order has none: all
//!    its differences are zero.

use ashlar_base::ext::comparator::KeyOrder;

/// From this `lcp` on, two digits are kept.
const TWO: u32 = 240;
/// From this `lcp` on, one digit is kept.
const ONE: u32 = TWO + 15 * 256;

/// The common bytes of two keys that do not differ.
pub(crate) const ALL: u32 = u32::MAX;

/// Where and how a key differs from a smaller key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Difference(u32);

impl Difference {
    /// From this `lcp` on, a difference only tells that it is not smaller.
    pub(crate) const BEYOND: u32 = ONE + 0xffff;
    /// At [`Difference::BEYOND`] or later, or nowhere.
    pub(crate) const UNTOLD: Difference = Difference(u32::MAX);

    /// The difference of `key` from a smaller key with which it shares `lcp` bytes.
    #[inline]
    pub(crate) fn of<C: KeyOrder>(order: &C, key: &[u8], lcp: u32) -> Difference {
        match lcp {
            _ if !C::WORDS => Difference(0),
            0..TWO => Difference(lcp << 24 | (order.word(key, lcp as usize) >> 40) as u32),
            _ => Self::far(order, key, lcp),
        }
    }

    fn far<C: KeyOrder>(order: &C, key: &[u8], lcp: u32) -> Difference {
        let digit = |bits: u32| (order.word(key, lcp as usize) >> 32) as u32 >> (32 - bits);
        match lcp {
            ..ONE => Difference(((TWO << 8) + (lcp - TWO)) << 16 | digit(16)),
            ONE..Self::BEYOND => Difference(0xff << 24 | (lcp - ONE) << 8 | digit(8)),
            _ => Self::UNTOLD,
        }
    }

    /// The difference as a word.
    #[inline]
    pub(crate) fn word(self) -> u32 {
        self.0
    }

    /// The difference of a word.
    #[inline]
    pub(crate) fn from_word(word: u32) -> Difference {
        Difference(word)
    }

    /// Two differences have the same `lcp` if the bits in which they are [unlike](Difference::unlike) are below the span
    /// of either.
    #[inline]
    pub(crate) fn span(self) -> u32 {
        1 << self.digit_bits()
    }

    /// The bits in which two differences differ.
    #[inline]
    pub(crate) fn unlike(self, other: Difference) -> u32 {
        self.0 ^ other.0
    }

    /// How many digits are the same, in differences with the same `lcp` that are not equal.
    #[inline]
    pub(crate) fn same_digits(self, other: Difference) -> u32 {
        // Of the 32 bits, those before the digits are equal.
        (self.unlike(other).leading_zeros() - (32 - self.digit_bits())) / 8
    }

    #[inline]
    fn digit_bits(self) -> u32 {
        match self.0 >> 24 {
            0..TWO => 24,
            0xff => 8,
            _ => 16,
        }
    }
}

/// Bytes compared at once.
const BLOCK: usize = 32;

/// How many bytes both keys share from `at` on, rounded down to whole blocks.
pub(crate) fn shared_blocks(a: &[u8], b: &[u8], at: usize) -> usize {
    let (Some(a), Some(b)) = (a.get(at..), b.get(at..)) else { return 0 };
    let (a, b) = (a.as_chunks::<BLOCK>().0, b.as_chunks::<BLOCK>().0);
    a.iter().zip(b).take_while(|(a, b)| a == b).count() * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ext::comparator::{BytewiseOrder, ReverseBytewiseOrder};

    const EDGES: [u32; 14] = [
        0,
        1,
        TWO - 1,
        TWO,
        TWO + 1,
        255,
        256,
        TWO + 256,
        ONE - 1,
        ONE,
        ONE + 256,
        Difference::BEYOND - 1,
        Difference::BEYOND,
        ALL,
    ];

    impl Difference {
        /// The common bytes; [`Difference::BEYOND`] when there are as many or more.
        fn lcp(self) -> u32 {
            match self.0 >> 24 {
                lcp @ 0..TWO => lcp,
                0xff => ONE + (self.0 >> 8 & 0xffff),
                _ => TWO + ((self.0 >> 16) - (TWO << 8)),
            }
        }
    }

    /// A key whose byte at `lcp` and two bytes behind it are known.
    fn key(lcp: u32, digits: [u8; 3]) -> Vec<u8> {
        let mut key = vec![7; lcp.min(Difference::BEYOND) as usize];
        key.extend(digits);
        key
    }

    fn differences<C: KeyOrder>(order: &C) -> Vec<(u32, Difference)> {
        let digits = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0xff, 0xff, 0xff]];
        let of = |lcp| digits.map(|digits| (lcp, Difference::of(order, &key(lcp, digits), lcp)));
        EDGES.into_iter().flat_map(of).collect()
    }

    #[test]
    fn differences_are_ordered_by_the_common_bytes_first() {
        let (up, down) = (differences(&BytewiseOrder), differences(&ReverseBytewiseOrder));
        for all in [&up, &down] {
            for (lcp, difference) in all {
                assert_eq!(difference.lcp(), (*lcp).min(Difference::BEYOND));
                assert_eq!(*difference == Difference::UNTOLD, *lcp >= Difference::BEYOND);
                for (other_lcp, other) in all {
                    let (a, b) = (difference.lcp(), other.lcp());
                    let same = difference.unlike(*other) < difference.span();
                    assert_eq!(same, a == b, "{lcp} {other_lcp}");
                    assert!(a == b || a.cmp(&b) == difference.cmp(other), "{lcp} {other_lcp}");
                }
            }
        }
        assert!(up.is_sorted());
        for (a, b) in up.iter().zip(&down) {
            assert!(a == b || a.1.word() ^ b.1.word() == (1 << a.1.digit_bits()) - 1);
        }
    }

    #[test]
    fn digits_that_are_the_same_are_counted() {
        let same = |lcp, a, b| {
            let of = |digits| Difference::of(&BytewiseOrder, &key(lcp, digits), lcp);
            of(a).same_digits(of(b))
        };
        for (lcp, kept) in [(3, 3), (TWO, 2), (ONE, 1)] {
            for (at, other) in (0..).zip([*b"bbc", *b"adc", *b"abd"]).take(kept) {
                assert_eq!(same(lcp, *b"abc", other), at);
            }
        }
    }

    #[test]
    fn blocks_end_before_the_first_difference() {
        let a: Vec<u8> = (0..=255).collect();
        for at in [0, 1, 16, 250, 256, 300] {
            for differs in 0..256 {
                let mut b = a.clone();
                b[differs] ^= 1;
                let shared = shared_blocks(&a, &b, at);
                let all = 256_usize.saturating_sub(at) / BLOCK * BLOCK;
                let want = if differs < at { all } else { (differs - at) / BLOCK * BLOCK };
                assert_eq!(shared, want.min(all), "from {at}, differing at {differs}");
            }
            assert_eq!(shared_blocks(&a, &a[..at.min(256)], at), 0);
        }
    }
}
