//! The target of a seek, with which stored keys are compared. The order is a type parameter, so there is no branch on
//! it per entry.

use ashlar_base::Trailer;
use ashlar_base::ext::comparator::{Comparator, KeyOrder};
use std::cmp::Ordering;

/// The place a seek looks for.
pub trait SeekTarget {
    /// The order of the stored key and the target: `Less` = the key comes before the target.
    fn order_of(&self, key: &[u8]) -> Ordering;
}

/// An internal key, for blocks whose keys are internal keys.
#[derive(Clone, Copy, Debug)]
pub struct InternalTarget<'t, C> {
    /// The order of user keys.
    pub order: &'t C,
    /// The user's part.
    pub user_key: &'t [u8],
    /// Sequence and type; larger comes first.
    pub trailer: Trailer,
}

impl<C: KeyOrder> SeekTarget for InternalTarget<'_, C> {
    #[inline]
    fn order_of(&self, key: &[u8]) -> Ordering {
        // Shorter keys are refused by the cursor before they are compared.
        let Some((user, trailer)) = key.split_last_chunk::<8>() else { return Ordering::Less };
        match self.order.cmp(user, self.user_key) {
            Ordering::Equal => self.trailer.raw().cmp(&u64::from_le_bytes(*trailer)),
            other => other,
        }
    }
}

/// A user key, for index blocks whose keys are user keys.
#[derive(Clone, Copy, Debug)]
pub struct UserTarget<'t, C> {
    /// The order of user keys.
    pub order: &'t C,
    /// The key.
    pub user_key: &'t [u8],
}

impl<C: KeyOrder> SeekTarget for UserTarget<'_, C> {
    #[inline]
    fn order_of(&self, key: &[u8]) -> Ordering {
        self.order.cmp(key, self.user_key)
    }
}

/// A plain string, for metaindex and properties.
#[derive(Clone, Copy, Debug)]
pub struct PlainTarget<'t>(pub &'t [u8]);

impl SeekTarget for PlainTarget<'_> {
    #[inline]
    fn order_of(&self, key: &[u8]) -> Ordering {
        key.cmp(self.0)
    }
}

/// A user's comparator, borrowed: seeks do not touch its reference count.
#[derive(Clone, Copy)]
pub(super) struct BorrowedOrder<'t>(pub &'t dyn Comparator);

impl KeyOrder for BorrowedOrder<'_> {
    const WORDS: bool = false;
    #[inline]
    fn word(&self, _: &[u8], _: usize) -> u64 {
        0
    }
    #[inline]
    fn cmp(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare(a, b)
    }
}
