//! Estimates how many entries are before a key.
//!
//! The nodes of a few levels below the root are counted one by one. Deeper nodes are not: there a node counts as if each
//! of its children were like the one in the middle. Nodes before and after the key are estimated alike, and the result is
//! their ratio times the number of all entries.

use super::node::{Below, Child};
use super::read::Tree;
use super::search::Probe;
use ashlar_base::ext::comparator::KeyOrder;

/// At most so many nodes of one level are counted: with 14 slots, three levels below the root.
const NODES: usize = 4096;

/// The number of entries before the probe's target, of `all` entries.
pub(super) fn before<C: KeyOrder + 'static, const N: usize>(
    tree: &Tree<C, N>,
    probe: &Probe<'_, C>,
    all: u64,
) -> u64 {
    let Some((mut level, mut at)) = tree.root() else { return 0 };
    let (mut before, mut after, mut exact) = (0, 0, NODES.ilog(N));
    loop {
        match at.below(level + 1) {
            Below::Leaf(leaf) => {
                let leaf = tree.leaf(leaf);
                let (slots, here) = (leaf.slots(), probe.entry(leaf, leaf.slots()).before);
                before += here as u64;
                after += slots.count().saturating_sub(here) as u64;
                let scaled = u128::from(before) * u128::from(all) / u128::from((before + after).max(1));
                return u64::try_from(scaled).unwrap_or(all);
            }
            Below::Inner(inner) => {
                let inner = tree.inner(inner);
                let (slots, position, child) = inner.child(|slots| probe.child(&inner.node, slots));
                (level, exact) = (level - 1, exact.saturating_sub(1));
                let weight = |at| weigh(tree, inner.child_in(slots.at(at)), level, exact);
                before += (0..position).map(weight).sum::<u64>();
                after += (position + 1..slots.count()).map(weight).sum::<u64>();
                at = child;
            }
        }
    }
}

/// The number of entries below a node of a level, with `exact` levels counted exactly.
fn weigh<C: KeyOrder + 'static, const N: usize>(tree: &Tree<C, N>, at: Child, level: u32, exact: u32) -> u64 {
    match at.below(level + 1) {
        Below::Leaf(leaf) => tree.leaf(leaf).slots().count() as u64,
        Below::Inner(inner) => {
            let inner = tree.inner(inner);
            let slots = inner.node.slots();
            let child = |position| inner.child_in(slots.at(position));
            match exact.checked_sub(1) {
                Some(exact) => (0..slots.count()).map(|at| weigh(tree, child(at), level - 1, exact)).sum(),
                None => slots.count() as u64 * weigh(tree, child(slots.count() / 2), level - 1, 0),
            }
        }
    }
}
