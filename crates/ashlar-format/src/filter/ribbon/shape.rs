//! Reads a filter: finds the segments of a key's equation.

use super::{BLOCK_SLOTS, Equation, SEGMENT, seed_of};

/// More columns than bits in a result have no meaning.
const MAX_COLUMNS: u32 = 32;

/// A decoded Ribbon filter, without its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ribbon {
    /// Blocks of 128 slots, at least 2.
    pub blocks: u32,
    /// Columns of the blocks from `upper_start` on, 1 to 32; one less before.
    pub columns: u8,
    /// The first block with all columns.
    pub upper_start: u32,
    /// The hash seed.
    seed: u32,
}

impl Ribbon {
    /// The filter of that many whole segments; `None` for shapes that hold nothing.
    pub(in crate::filter) fn new(ordinal_seed: u8, blocks: u32, segments: usize) -> Option<Ribbon> {
        let segments = u64::try_from(segments).ok()?;
        let columns = segments.div_ceil(u64::from(blocks.max(1)));
        if !(2..1 << 24).contains(&blocks) || columns == 0 {
            return None;
        }
        let (columns, upper_start) = match u8::try_from(columns) {
            Ok(columns) if u32::from(columns) <= MAX_COLUMNS => {
                (columns, u64::from(columns) * u64::from(blocks) - segments)
            }
            _ => (32, 0),
        };
        Some(Ribbon {
            blocks,
            columns,
            upper_start: u32::try_from(upper_start).ok()?,
            seed: seed_of(ordinal_seed),
        })
    }

    /// Slots at which a key's coefficients may start.
    fn starts(self) -> u32 {
        self.blocks * BLOCK_SLOTS - (BLOCK_SLOTS - 1)
    }

    /// What the filter asks of a key of this hash.
    #[inline]
    pub(super) fn equation(self, hash: u64) -> Equation {
        Equation::new(hash, self.seed, self.starts())
    }

    /// Columns of a block.
    #[inline]
    pub(super) fn columns_of(self, block: u32) -> usize {
        usize::from(self.columns) - usize::from(block < self.upper_start)
    }

    /// The first segment of a block.
    #[inline]
    pub(super) fn first_segment(self, block: u32) -> usize {
        usize::from(self.columns) * block as usize - block.min(self.upper_start) as usize
    }

    /// True unless the filter proves that a key of this hash was not added.
    #[inline]
    pub(in crate::filter) fn may_match(self, filter: &[u8], hash: u64) -> bool {
        let equation = self.equation(hash);
        let (block, bit) = (equation.start / BLOCK_SLOTS, equation.start % BLOCK_SLOTS);
        let columns = self.columns_of(block);
        let at = self.first_segment(block) * SEGMENT;
        let Some(first) = filter.get(at..at + columns * SEGMENT) else { return true };
        let low = equation.coefficients << bit;
        let first = first.as_chunks::<SEGMENT>().0;
        if bit == 0 {
            return (0..).zip(first).all(|(i, segment)| agrees(word(segment) & low, equation.result, i));
        }
        let high = equation.coefficients >> (BLOCK_SLOTS - bit);
        let next = at + columns * SEGMENT;
        let Some(second) = filter.get(next..next + columns * SEGMENT) else { return true };
        let both = first.iter().zip(second.as_chunks::<SEGMENT>().0);
        (0..).zip(both).all(|(i, (a, b))| agrees(word(a) & low ^ word(b) & high, equation.result, i))
    }
}

#[inline]
fn word(segment: &[u8; SEGMENT]) -> u128 {
    u128::from_le_bytes(*segment)
}

/// Whether the sum of the chosen slots of a column is the bit that the key asks for.
#[inline]
fn agrees(chosen: u128, result: u32, column: u32) -> bool {
    chosen.count_ones() & 1 == result >> column & 1
}
