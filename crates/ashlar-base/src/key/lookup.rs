//! The key and the sequence number of a read.

use super::{InternalKeyBuf, SeqNum, Trailer};

/// A user key and the sequence number of a read, which looks for the newest entry at or below that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupKey<'a> {
    /// The user's key.
    pub user_key: &'a [u8],
    /// What the read may see at most.
    pub seq: SeqNum,
}

impl<'a> LookupKey<'a> {
    /// Looks for the newest version of `user_key` at or below `seq`.
    pub fn new(user_key: &'a [u8], seq: SeqNum) -> Self {
        LookupKey { user_key, seq }
    }

    /// The trailer to seek with: before every entry at or below `seq`.
    #[inline]
    pub fn trailer(&self) -> Trailer {
        Trailer::seek(self.seq)
    }

    /// The encoded internal key to seek to.
    pub fn to_internal(&self) -> InternalKeyBuf {
        InternalKeyBuf::new(self.user_key, self.trailer())
    }
}
