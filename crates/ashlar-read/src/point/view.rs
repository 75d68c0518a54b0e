//! What a point read returns: a value, which outlives the read that found it, or what is known of one.

use crate::CHARGED;
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_cache::FramePin;
use ashlar_table::FoundIn;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

const INLINE: usize = 64;

/// A value that a read returned. It derefs to its bytes and borrows nothing.
///
/// A value of up to 64 bytes is copied into the view, and a larger value of a memtable to the heap. A larger value of a table
/// stays in its block: the view pins the block, which counts against the block cache until the view is dropped. If the block
/// did not enter the cache, the view has a copy of the value. A copy of 16 KiB and more counts under the memory cap until the view and
/// its clones are dropped.
#[derive(Clone)]
pub struct View(Home);

#[derive(Clone)]
enum Home {
    Inline { len: u8, bytes: [u8; INLINE] },
    Frame { pin: FramePin, value: Range<usize> },
    Owned(Box<[u8]>),
    Charged(Arc<LongCopy>),
}

struct LongCopy {
    bytes: Box<[u8]>,
    _charge: MemoryCharge,
}

impl View {
    /// A copy of `value`.
    #[doc(hidden)]
    pub fn copy(value: &[u8]) -> View {
        Self::inline(value).unwrap_or_else(|| View(Home::Owned(value.into())))
    }

    /// A view of a value that was made for the caller, without a copy of a long one.
    pub(crate) fn owned(value: Vec<u8>) -> View {
        Self::inline(&value).unwrap_or_else(|| View(Home::Owned(value.into_boxed_slice())))
    }

    /// A view of the bytes `value` of a pinned block; an empty value if the range is outside the block. Engine use.
    #[doc(hidden)]
    pub fn pinned(pin: FramePin, value: Range<usize>) -> View {
        let bytes = pin.get(value.clone()).unwrap_or_default();
        Self::inline(bytes).unwrap_or(View(Home::Frame { pin, value }))
    }

    /// A view of a value that a lookup in a table found. Engine use.
    #[doc(hidden)]
    #[inline]
    pub fn found(home: FoundIn) -> View {
        match home {
            FoundIn::Block(pin, value) => View::pinned(pin, value),
            FoundIn::Copy(bytes) => View(Home::Owned(bytes)),
        }
    }

    #[inline]
    fn inline(value: &[u8]) -> Option<View> {
        let mut bytes = [0; INLINE];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(View(Home::Inline { len: u8::try_from(value.len()).ok()?, bytes }))
    }

    /// Charges a long copy to `budget`.
    #[inline]
    pub(crate) fn charge(&mut self, budget: Option<&Arc<MemoryBudget>>) {
        if let Home::Owned(bytes) = &self.0
            && bytes.len() >= CHARGED
            && let Some(budget) = budget
        {
            self.charge_long(budget);
        }
    }

    #[cold]
    fn charge_long(&mut self, budget: &Arc<MemoryBudget>) {
        if let Home::Owned(bytes) = &mut self.0 {
            let _charge = budget.charge(MemoryUse::Values, bytes.len());
            self.0 = Home::Charged(Arc::new(LongCopy { bytes: std::mem::take(bytes), _charge }));
        }
    }

    /// The first `len` bytes of the view.
    pub(crate) fn first(self, len: usize) -> View {
        View(match self.0 {
            Home::Inline { len: all, bytes } => {
                Home::Inline { len: all.min(u8::try_from(len).unwrap_or(all)), bytes }
            }
            Home::Frame { pin, value } => {
                let end = value.end.min(value.start.saturating_add(len));
                Home::Frame { pin, value: value.start..end }
            }
            Home::Owned(bytes) => {
                let mut bytes = bytes.into_vec();
                bytes.truncate(len);
                Home::Owned(bytes.into())
            }
            Home::Charged(copy) => Home::Owned(copy.bytes.get(..len).unwrap_or(&copy.bytes).into()),
        })
    }

    /// The value as an owned vector. Costs one copy, or none for a value on the heap.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Home::Owned(bytes) => bytes.into_vec(),
            Home::Charged(copy) => match Arc::try_unwrap(copy) {
                Ok(copy) => copy.bytes.into_vec(),
                Err(shared) => shared.bytes.to_vec(),
            },
            Home::Inline { .. } | Home::Frame { .. } => self.to_vec(),
        }
    }
}

impl Deref for View {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Home::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Home::Frame { pin, value } => pin.get(value.clone()).unwrap_or_default(),
            Home::Owned(bytes) => bytes,
            Home::Charged(copy) => &copy.bytes,
        }
    }
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View(\"{}\")", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for View {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for View {}

/// What is known about a key without reading a data block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MayExist {
    /// The key has no value.
    No,
    /// The key may have a value: a filter does not rule it out, or the key has merge operands.
    Maybe,
    /// The key has this value, which was in memory.
    Value(View),
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_cache::{FramePool, SlotArray};

    #[test]
    fn views_show_their_bytes_wherever_those_live() {
        let block: Vec<u8> = (0..200).collect();
        let slots = SlotArray::new(FramePool::new(0), 1);
        for len in [0, 1, 63, 64, 65, 200] {
            let copied = View::copy(&block[..len]);
            let pinned = View::pinned(slots.hold(block.clone()), 0..len);
            assert_eq!(copied, block[..len]);
            assert_eq!(pinned, block[..len]);
            assert_eq!(pinned, copied);
            assert_eq!(pinned.clone().into_vec(), copied.clone().into_vec());
            for first in [0, 1, 60, 64, 199, 300] {
                let expected = &block[..len.min(first)];
                assert_eq!(
                    (&*copied.clone().first(first), &*pinned.clone().first(first)),
                    (expected, expected)
                );
            }
        }
        assert!(View::pinned(slots.hold(block), 150..201).is_empty());
    }
}
