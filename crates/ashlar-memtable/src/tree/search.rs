//! Searches in a node: first among the words, then among the keys with the same word.

use super::node::{Key, Node, first_word};
use super::slots::Slots;
use crate::arena::Arena;
use crate::index::Target;
use ashlar_base::ext::comparator::KeyOrder;
use std::cmp::Ordering;

/// A target on its way through the nodes.
#[derive(Clone, Copy)]
pub(super) struct Probe<'k, C> {
    pub(super) order: &'k C,
    pub(super) arena: &'k Arena,
    pub(super) target: &'k Target<'k>,
}

/// The place of a target in a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rank {
    /// The number of keys before the target.
    pub(super) before: usize,
    /// The word of the next key is the target's, so the keys may be equal.
    pub(super) same_word: bool,
    /// The target begins like the node's keys, so the node may take it.
    pub(super) fits: bool,
}

impl<C: KeyOrder> Probe<'_, C> {
    /// The position of the child for the target in an inner node with these slots.
    #[inline]
    pub(super) fn child<const N: usize>(&self, node: &Node<N>, slots: Slots) -> usize {
        self.rank::<true, N>(node, slots, 1).before - 1
    }

    /// The place of the target in a leaf with these slots.
    #[inline]
    pub(super) fn entry<const N: usize>(&self, node: &Node<N>, slots: Slots) -> Rank {
        self.rank::<false, N>(node, slots, 0)
    }

    /// The place among the positions from `from` on. `SEPARATORS`: a key that is equal is before the target.
    #[inline]
    fn rank<const SEPARATORS: bool, const N: usize>(
        &self,
        node: &Node<N>,
        slots: Slots,
        from: usize,
    ) -> Rank {
        let count = slots.count();
        if node.is_edge() {
            match self.beginning(node) {
                Ordering::Less => return Rank { before: from, same_word: false, fits: false },
                Ordering::Greater => return Rank { before: count.max(from), same_word: false, fits: false },
                Ordering::Equal => {}
            }
        }
        let word = first_word(self.order, self.target.user_key, node.skip());
        let at = |position| node.word(slots.at(position));
        let (mut low, mut left) = (from, count.saturating_sub(from));
        while left > 1 {
            let half = left / 2;
            low = if at(low + half - 1) < word { low + half } else { low };
            left -= half;
        }
        low += usize::from(left == 1 && at(low) < word);
        if low == count || at(low) != word {
            return Rank { before: low, same_word: false, fits: true };
        }
        let (before, same_word) = self.among_equals::<SEPARATORS, N>(node, slots, low);
        Rank { before, same_word, fits: true }
    }

    /// The place among the keys from position `low` on that have the target's word.
    #[inline]
    fn among_equals<const SEPARATORS: bool, const N: usize>(
        &self,
        node: &Node<N>,
        slots: Slots,
        mut low: usize,
    ) -> (usize, bool) {
        let word = node.word(slots.at(low));
        let end =
            (low + 1..slots.count()).find(|at| node.word(slots.at(*at)) != word).unwrap_or(slots.count());
        let mut high = end;
        while low < high {
            let middle = usize::midpoint(low, high);
            let key = node.key(slots.at(middle));
            let before = match self.compare(key, node.skip()) {
                Ordering::Less => true,
                Ordering::Equal => SEPARATORS,
                Ordering::Greater => false,
            };
            (low, high) = if before { (middle + 1, high) } else { (low, middle) };
        }
        (low, low < end)
    }

    /// Whether all keys of the node are before the target, which may lie outside of the node's bounds. If not, `child`
    /// and `entry` may search the node: the target begins like the node's keys, or it is before all of them.
    pub(super) fn is_behind<const N: usize>(&self, node: &Node<N>, slots: Slots) -> bool {
        self.compare(node.key(slots.at(slots.count() - 1)), 0) == Ordering::Less
    }

    /// How the beginning of the target relates to that of the node's keys.
    fn beginning<const N: usize>(&self, node: &Node<N>) -> Ordering {
        let skip = node.skip();
        let like = node.key(0).entry(self.arena).user_key();
        let (like, key) = (like.get(..skip).unwrap_or(like), self.target.user_key);
        self.order.cmp(key.get(..skip).unwrap_or(key), like)
    }

    /// Whether the target begins like the node's keys, so that the node may take it.
    pub(super) fn fits<const N: usize>(&self, node: &Node<N>) -> bool {
        !node.is_edge() || self.beginning(node) == Ordering::Equal
    }

    /// The relation of a key to the target; they share `from` bytes.
    #[inline]
    pub(super) fn compare(&self, key: Key, from: usize) -> Ordering {
        let (user_key, trailer) = key.entry(self.arena).key();
        let by_key = compare_from(self.order, user_key, self.target.user_key, from);
        match by_key {
            Ordering::Equal if key.is_whole() => Ordering::Less,
            Ordering::Equal => self.target.trailer.cmp(&trailer),
            _ => by_key,
        }
    }
}

/// Compares two keys that share `from` bytes.
#[inline]
fn compare_from<C: KeyOrder>(order: &C, a: &[u8], b: &[u8], from: usize) -> Ordering {
    let (wa, wb) = (order.word(a, from), order.word(b, from));
    match wa.cmp(&wb) {
        Ordering::Equal => order.cmp(a.get(from..).unwrap_or(&[]), b.get(from..).unwrap_or(&[])),
        differs => differs,
    }
}
