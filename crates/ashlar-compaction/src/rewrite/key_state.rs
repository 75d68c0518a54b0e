//! The user key that a rewrite has reached, and what it holds back for the key.

use super::operands::Operands;
use super::sink::EntrySink;
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::ext::sort::{CHECK_THE_COMPARATOR, contradiction};
use ashlar_base::{Error, InternalKey, InternalKeyBuf, Result, Trailer};
use std::cmp::Ordering;

/// The current user key. Held-back tombstones are newer than the operands.
pub(super) struct KeyState {
    /// The user key, with the trailer of the entry that was emitted last.
    pub(super) key: InternalKeyBuf,
    begun: bool,
    pub(super) last: Trailer,
    emitted: bool,
    pub(super) held: Vec<Trailer>,
    pub(super) operands: Operands,
}

/// The relation of an entry to the previous one.
pub(super) enum Relation {
    NewKey,
    OlderVersion,
    Duplicate,
}

impl KeyState {
    /// The state before the first key.
    pub(super) fn new(operands: Operands) -> KeyState {
        KeyState {
            key: InternalKeyBuf::new(&[], Trailer::LAST),
            begun: false,
            last: Trailer::FIRST,
            emitted: false,
            held: Vec::new(),
            operands,
        }
    }

    /// The user key.
    #[inline]
    pub(super) fn user_key(&self) -> &[u8] {
        self.key.as_key().user_key()
    }

    #[inline]
    pub(super) fn relation<C: KeyOrder>(
        &self,
        order: &C,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<Relation> {
        if !self.begun {
            return Ok(Relation::NewKey);
        }
        let current = self.user_key();
        match order.cmp(current, user_key) {
            Ordering::Less => Ok(Relation::NewKey),
            Ordering::Equal if trailer < self.last => Ok(Relation::OlderVersion),
            Ordering::Equal if trailer == self.last => Ok(Relation::Duplicate),
            // A damaged entry compares consistently in both directions; a comparator that contradicts itself does not.
            said if order.cmp(user_key, current) != said.reverse() => Err(contradiction(current, user_key)),
            _ if C::WORDS => Err(out_of_order(current, user_key)),
            // A custom order, which may be the cause.
            _ => Err(out_of_order(current, user_key).hint(CHECK_THE_COMPARATOR)),
        }
    }

    /// Begins the next key; returns how many held-back tombstones of the previous key were not needed.
    #[inline]
    pub(super) fn begin(&mut self, key: InternalKey<'_>) -> u64 {
        let unneeded = self.held.len() as u64;
        self.held.clear();
        self.key.set_encoded(key);
        self.begun = true;
        self.emitted = false;
        unneeded
    }

    /// [`KeyState::emit`] of an entry that is not in the input in this form.
    #[cold]
    pub(super) fn emit_parts<S: EntrySink>(
        &mut self,
        sink: &mut S,
        trailer: Trailer,
        value: &[u8],
    ) -> Result<u64> {
        let held = self.held.len() as u64;
        self.emit_held(sink)?;
        self.key.set_trailer(trailer);
        sink.add(self.key.as_key(), value, !self.emitted)?;
        self.emitted = true;
        Ok(held + 1)
    }

    /// Passes a survivor to the sink, and before it the tombstones held back for it; returns the number of entries.
    #[inline]
    pub(super) fn emit<S: EntrySink>(
        &mut self,
        sink: &mut S,
        key: InternalKey<'_>,
        kept: Trailer,
        value: &[u8],
    ) -> Result<u64> {
        let held = self.held.len() as u64;
        if held > 0 {
            self.emit_held(sink)?;
        }
        let first = !self.emitted;
        self.emitted = true;
        if kept == self.last {
            sink.add(key, value, first)?;
        } else {
            self.key.set_trailer(kept);
            sink.add(self.key.as_key(), value, first)?;
        }
        Ok(held + 1)
    }

    #[cold]
    fn emit_held<S: EntrySink>(&mut self, sink: &mut S) -> Result<()> {
        for trailer in self.held.drain(..) {
            self.key.set_trailer(trailer);
            sink.add(self.key.as_key(), &[], !self.emitted)?;
            self.emitted = true;
        }
        Ok(())
    }
}

#[cold]
fn out_of_order(last: &[u8], next: &[u8]) -> Error {
    Error::corruption(format!("keys out of order: {} after {}", next.escape_ascii(), last.escape_ascii()))
        .hint("Verify the tables with their checksums")
}
