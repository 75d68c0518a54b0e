//! New nodes in the place of full ones, and of nodes whose keys began alike until now.

use super::insert::{Few, Step, Steps};
use super::node::{Bounds, Child, Inner, Key, LeafAt, Node, Skip};
use super::read::Tree;
use super::search::Probe;
use crate::arena::Turn;
use crate::index::Target;
use crate::stored::Stored;
use ashlar_base::ext::comparator::KeyOrder;

/// A separator and the child to its right.
type Branch = (Key, Child);

/// What a parent gets when a child is split.
struct Split {
    /// The child's place is taken by this one; `None`: it stays.
    left: Option<Child>,
    /// Comes after the child.
    right: Branch,
}

impl<C: KeyOrder + 'static, const N: usize> Tree<C, N> {
    /// A leaf. `like`: at an edge of the tree, a key from which the first one differs as much as the following ones may.
    pub(super) fn new_leaf(&self, turn: &Turn<'_>, bounds: Bounds, like: Key, keys: &[Key]) -> LeafAt {
        let last = keys.last().copied().unwrap_or(like);
        let skip = Skip::new(&self.arena, bounds, (like, last));
        self.writer.blocks.leaf(turn, Node::<N>::new(&self.order, &self.arena, skip, keys))
    }

    fn new_inner(&self, turn: &Turn<'_>, bounds: Bounds, like: Key, branches: &[Branch]) -> Child {
        let (mut keys, mut children) = (Few::new(Key(0)), Few::new(Child::from_raw(0)));
        for (key, child) in branches {
            keys.push(*key);
            children.push(*child);
        }
        let last = keys.all().last().copied().unwrap_or(like);
        let skip = Skip::new(&self.arena, bounds, (like, last));
        let inner = Inner::<N>::new(&self.order, &self.arena, skip, keys.all(), children.all());
        self.writer.blocks.inner(turn, inner).into()
    }

    /// Inserts into a leaf that is full, or whose keys begin otherwise.
    pub(super) fn make_room<'a>(
        &'a self,
        turn: &Turn<'a>,
        probe: &Probe<'_, C>,
        (at, bounds): (LeafAt, Bounds),
        path: Steps<'_>,
        entry: Stored<'a>,
    ) {
        let (leaf, key) = (self.leaf(at), Key::of(entry));
        let slots = leaf.slots();
        let position = probe.entry(leaf, slots).before;
        let before = position.checked_sub(1).map(|before| leaf.key(slots.at(before)));
        let ascends = before.is_some_and(|before| self.writer.is_last(before));
        let next = leaf.next();
        if slots.count() == N && position == N && (ascends || next.is_none()) {
            return self.begin_after(turn, (at, bounds), path, key);
        }
        let mut keys = Few::new(key);
        for (number, old) in leaf.keys(slots).enumerate() {
            if number == position {
                keys.push(key);
            }
            keys.push(old);
        }
        if position == slots.count() {
            keys.push(key);
        }
        let keys = keys.all();
        let first = keys.first().copied().unwrap_or(key);
        if keys.len() <= N {
            let new = self.new_leaf(turn, bounds, first, keys);
            self.leaf(new).set_next(turn, next);
            self.relink(turn, path, new);
            self.replace_child(turn, path, new.into());
            self.writer.remember(new, bounds);
        } else {
            let cut = if ascends { position } else { keys.len() / 2 };
            self.halve(turn, (bounds, path), keys.split_at(cut), (next, key));
        }
        leaf.publish(turn, slots.dead());
    }

    /// Begins a leaf with `key` after a full one, which stays.
    fn begin_after(&self, turn: &Turn<'_>, (at, bounds): (LeafAt, Bounds), path: Steps<'_>, key: Key) {
        let leaf = self.leaf(at);
        let slots = leaf.slots();
        let (first, last) = (leaf.key(slots.at(0)), leaf.key(slots.at(N - 1)));
        let (separator, straddles) = self.separator(last, key);
        let new_bounds = Bounds { low: Some(separator), ..bounds };
        let new = self.new_leaf(turn, new_bounds, first, &[key]);
        self.leaf(new).set_next(turn, leaf.next());
        leaf.set_next(turn, Some((new, straddles)));
        self.add_child(turn, path, &Split { left: None, right: (separator, new.into()) });
        self.writer.remember(new, new_bounds);
    }

    /// Two leaves in the place of one; the new key is among `keys`.
    fn halve(
        &self,
        turn: &Turn<'_>,
        (bounds, path): (Bounds, Steps<'_>),
        (left, right): (&[Key], &[Key]),
        (next, key): (Option<(LeafAt, bool)>, Key),
    ) {
        let (Some(last), Some(first), Some(lowest)) = (left.last(), right.first(), left.first()) else {
            return;
        };
        let (separator, straddles) = self.separator(*last, *first);
        let left_bounds = Bounds { high: Some(separator), ..bounds };
        let right_bounds = Bounds { low: Some(separator), ..bounds };
        let left_at = self.new_leaf(turn, left_bounds, *lowest, left);
        let right_at = self.new_leaf(turn, right_bounds, *first, right);
        self.leaf(right_at).set_next(turn, next);
        self.leaf(left_at).set_next(turn, Some((right_at, straddles)));
        self.relink(turn, path, left_at);
        let split = Split { left: Some(left_at.into()), right: (separator, right_at.into()) };
        self.add_child(turn, path, &split);
        match left.contains(&key) {
            true => self.writer.remember(left_at, left_bounds),
            false => self.writer.remember(right_at, right_bounds),
        }
    }

    /// The separator between two keys that follow each other, and whether they have the same user key.
    fn separator(&self, last: Key, first: Key) -> (Key, bool) {
        let straddles = last.entry(&self.arena).user_key() == first.entry(&self.arena).user_key();
        (if straddles { first } else { first.whole() }, straddles)
    }

    /// Makes the leaf before the path's leaf lead to `new`.
    fn relink(&self, turn: &Turn<'_>, path: Steps<'_>, new: LeafAt) {
        // The deepest inner node in which the path does not take the first child has the leaf before.
        for (level, step) in (0..).zip(path.iter().rev().flatten()) {
            if let Some(before) = step.child.checked_sub(1) {
                let inner = self.inner(step.inner);
                let child = inner.child_in(inner.node.slots().at(before));
                let leaf = self.leaf(self.last_leaf(child, level));
                let straddles = leaf.next().is_some_and(|(_, straddles)| straddles);
                return leaf.set_next(turn, Some((new, straddles)));
            }
        }
    }

    /// Puts a node in the place of the path's child.
    fn replace_child(&self, turn: &Turn<'_>, path: Steps<'_>, new: Child) {
        match path.last() {
            Some(Some(step)) => {
                let inner = self.inner(step.inner);
                inner.set_child(turn, inner.node.slots().at(step.child), new);
            }
            _ => self.set_root(turn, self.root().map_or(0, |(level, _)| level), new),
        }
    }

    /// Changes the inner nodes of `path` after a split of its child.
    fn add_child(&self, turn: &Turn<'_>, path: Steps<'_>, split: &Split) {
        let Some((Some(step), above)) = path.split_last() else { return self.add_level(turn, split) };
        let inner = self.inner(step.inner);
        let (node, slots, (separator, child)) = (&inner.node, inner.node.slots(), split.right);
        let (position, separated) = (step.child + 1, Target::of(separator.entry(&self.arena)));
        if slots.count() < N && self.probe(&separated).fits(node) {
            let slot = slots.count();
            node.fill(turn, &self.order, slot, (separator, separated.user_key));
            inner.set_child(turn, slot, child);
            node.publish(turn, slots.with(position));
            if let Some(left) = split.left {
                inner.set_child(turn, slots.at(step.child), left);
            }
            return;
        }
        if slots.count() == N && position == N && split.left.is_none() {
            // Ascending: the full node stays.
            let bounds = Bounds { low: Some(separator), ..step.bounds };
            let new = self.new_inner(turn, bounds, node.key(slots.at(0)), &[split.right]);
            return self.add_child(turn, above, &Split { left: None, right: (separator, new) });
        }
        self.rebuild(turn, (step, above), split);
    }

    /// One inner node or two in the place of one that is full, or whose keys begin otherwise.
    fn rebuild(&self, turn: &Turn<'_>, (step, above): (&Step, Steps<'_>), split: &Split) {
        let inner = self.inner(step.inner);
        let slots = inner.node.slots();
        let mut branches = Few::new(split.right);
        // Without a lower bound, the key at position 0 is any that was there once. The next one tells how keys begin.
        let first = match (step.bounds.low, step.child) {
            (None, 0) => split.right.0,
            (None, _) => inner.node.key(slots.at(1)),
            (Some(_), _) => inner.node.key(slots.at(0)),
        };
        for position in 0..slots.count() {
            let slot = slots.at(position);
            let (key, old) = (if position == 0 { first } else { inner.node.key(slot) }, inner.child_in(slot));
            match position == step.child {
                true => {
                    branches.push((key, split.left.unwrap_or(old)));
                    branches.push(split.right);
                }
                false => branches.push((key, old)),
            }
        }
        let branches = branches.all();
        if branches.len() <= N {
            let like = branches.first().map_or(split.right.0, |(key, _)| *key);
            let new = self.new_inner(turn, step.bounds, like, branches);
            return self.replace_child(turn, above, new);
        }
        let (left, right) = branches.split_at(branches.len() / 2);
        let (Some((lowest, _)), Some((separator, _))) = (left.first(), right.first()) else { return };
        let left_bounds = Bounds { high: Some(*separator), ..step.bounds };
        let right_bounds = Bounds { low: Some(*separator), ..step.bounds };
        let left = self.new_inner(turn, left_bounds, *lowest, left);
        let right = self.new_inner(turn, right_bounds, *separator, right);
        self.add_child(turn, above, &Split { left: Some(left), right: (*separator, right) });
    }

    /// A new root over the split one.
    fn add_level(&self, turn: &Turn<'_>, split: &Split) {
        let Some((level, root)) = self.root() else { return };
        // The separator at position 0 separates nothing; it tells what the keys have in common.
        let first = match self.descend(|_, _| 0) {
            Some(leaf) => self.leaf(leaf).key(self.leaf(leaf).slots().at(0)),
            None => split.right.0,
        };
        let branches = [(first, split.left.unwrap_or(root)), split.right];
        let new = self.new_inner(turn, Bounds::default(), first, &branches);
        self.set_root(turn, level + 1, new);
    }
}
