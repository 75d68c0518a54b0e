//! Eviction: a second-chance clock over all frames of a pool.
//!
//! 1. A frame in a slot has exactly one ring entry, or exactly one evictor or inserter holds it. So the slot of an
//!    entry holds that entry's frame or, once the table is closed, nothing.
//! 2. Entries of closed tables are dead. They leave when the clock hand meets them, or when they are half of the ring.
//!    A dead entry keeps no memory of its table: it holds one more counted reference of the slots, because a weak
//!    reference to the slots themselves would keep their allocation.

use crate::frame::{First, Frame, Place};
use crate::pages::Pages;
use crate::slab::Slabs;
use ashlar_sync::RwLock;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// The slot of one block: empty, or its frame.
pub(crate) type Slot = RwLock<Option<Taken>>;

/// The frame in a slot.
#[derive(Clone)]
pub(crate) struct Taken {
    pub(crate) frame: Arc<Frame>,
    /// What a search in the block reads first. Known without the head of the frame, so that both are waited for together.
    pub(crate) first: First,
}

impl Taken {
    pub(crate) fn new(frame: Arc<Frame>) -> Taken {
        Taken { first: frame.first(), frame }
    }
}

/// The slots of an open table. Ring entries hold the outer reference count; hits use a copy of the inner one.
pub(crate) type Slots = Arc<Arc<Pages<Slot>>>;

/// The place of a frame.
#[derive(Clone)]
pub(crate) struct Entry {
    slots: Weak<Arc<Pages<Slot>>>,
    ordinal: u32,
}

/// What the clock hand did with an entry.
pub(crate) enum Verdict {
    /// The frame was evicted.
    Evicted,
    /// The frame was read since the last pass, or is pinned. The entry goes to the back of the ring.
    Stays(Entry),
    /// The table of the entry is closed.
    Dead,
}

impl Entry {
    pub(crate) fn new(slots: &Slots, ordinal: u32) -> Entry {
        Entry { slots: Arc::downgrade(slots), ordinal }
    }

    /// Evicts the frame if it was not read since the last pass and has no pin. Locks the slot; the caller holds no
    /// lock.
    pub(crate) fn judge(self) -> Verdict {
        let Some(slots) = self.slots.upgrade() else { return Verdict::Dead };
        let Some(slot) = slots.get(self.ordinal as usize) else { return Verdict::Dead };
        let mut guard = slot.write();
        let Some(Taken { frame, .. }) = guard.as_ref() else { return Verdict::Dead };
        // New references come through this slot, which is locked, or from a pin, which is counted here already.
        if Arc::strong_count(frame) > 1 || frame.take_touch() {
            return Verdict::Stays(self);
        }
        let gone = guard.take();
        drop(guard);
        if let Some(Taken { frame, .. }) = gone {
            frame.detach();
        }
        Verdict::Evicted
    }

    /// The charge of the frame if a reader holds it. Locks the slot; the caller holds no lock.
    pub(crate) fn held_bytes(&self) -> usize {
        let Some(slots) = self.slots.upgrade() else { return 0 };
        let Some(slot) = slots.get(self.ordinal as usize) else { return 0 };
        let slot = slot.read();
        slot.as_ref()
            .filter(|taken| Arc::strong_count(&taken.frame) > 1)
            .map_or(0, |t| t.frame.charged_bytes())
    }

    /// Moves the frame's bytes out of `slab`, if they are there and no pin holds them. The caller holds no lock.
    pub(crate) fn bring_out_of(&self, slab: usize, slabs: &Arc<Slabs>) {
        let Some(slots) = self.slots.upgrade() else { return };
        let Some(slot) = slots.get(self.ordinal as usize) else { return };
        let taken = slot.read().clone();
        let Some(Taken { frame, .. }) = taken.filter(|taken| taken.frame.stands_in(slab)) else { return };
        let piece = slabs.put((frame.all_bytes(), &[]), self, Some(slab));
        drop(frame);
        let Ok(mut place) = piece.map(Place::Slab) else { return };
        let mut guard = slot.write();
        // Any frame in the slot is of this block. If only the slot refers to it, this lock owns it.
        if let Some(Taken { frame, first }) = guard.as_mut()
            && let Some(alone) = Arc::get_mut(frame).filter(|frame| frame.stands_in(slab))
        {
            alone.swap_place(&mut place);
            *first = alone.first();
        }
        drop(guard);
        drop(place);
    }
}

/// The ring: the hand takes entries from the front; entries that stay and new entries go to the back.
#[derive(Default)]
pub(crate) struct Clock {
    ring: VecDeque<Entry>,
    dead: usize,
    /// The number of entries that have left the front of the ring: the place of the front entry. The places of the others follow.
    gone: usize,
}

impl Clock {
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Entries that are not known to be dead.
    pub(crate) fn living(&self) -> usize {
        self.ring.len().saturating_sub(self.dead)
    }

    /// The place of the first entry, and the place behind the last one. An entry keeps its place until the hand takes it.
    pub(crate) fn span(&self) -> (usize, usize) {
        (self.gone, self.gone + self.ring.len())
    }

    /// Copies up to `most` entries from these places, and returns the place at which the next copy begins.
    pub(crate) fn copy(&self, places: Range<usize>, most: usize, into: &mut Vec<Entry>) -> usize {
        let (front, back) = self.span();
        let from = places.start.clamp(front, back);
        let to = places.end.min(back).min(from.saturating_add(most)).max(from);
        into.extend(self.ring.range(from - front..to - front).cloned());
        if to == from { places.end } else { to }
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.ring.push_back(entry);
    }

    /// The entry at the hand, after the verdict on the entry before it.
    pub(crate) fn turn(&mut self, before: Option<Verdict>) -> Option<Entry> {
        self.settle(before);
        let entry = self.ring.pop_front();
        self.gone += usize::from(entry.is_some());
        entry
    }

    /// Carries out the verdict on an entry that was popped before.
    pub(crate) fn settle(&mut self, verdict: Option<Verdict>) {
        match verdict {
            Some(Verdict::Stays(entry)) => self.push(entry),
            Some(Verdict::Dead) => self.dead = self.dead.saturating_sub(1),
            Some(Verdict::Evicted) | None => {}
        }
    }

    /// Notes that a table with this many frames was closed.
    pub(crate) fn died(&mut self, frames: usize) {
        self.dead += frames;
        if self.dead > 64 && self.dead * 2 > self.ring.len() {
            self.ring.retain(|e| e.slots.strong_count() > 0);
            self.dead = 0;
        }
    }
}
