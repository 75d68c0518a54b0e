//! Sequence numbers, value types, trailers, and the encoded key.

use crate::bytes::Malformed;
use std::fmt;

/// A sequence number: the position of a write in the order of all writes. 56 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNum(u64);

impl SeqNum {
    /// The number before the first write. Compactions also give it to entries for which no snapshot can tell the
    /// difference.
    pub const ZERO: SeqNum = SeqNum(0);
    /// The largest there is: 2^56 - 1.
    pub const MAX: SeqNum = SeqNum((1 << 56) - 1);

    /// `None` above 56 bits.
    pub const fn new(value: u64) -> Option<SeqNum> {
        if value <= Self::MAX.0 { Some(SeqNum(value)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self + delta`, or `None` past the last sequence number there is.
    pub fn checked_add(self, delta: u64) -> Option<SeqNum> {
        self.0.checked_add(delta).and_then(SeqNum::new)
    }

    /// `self - 1`, or zero.
    pub fn before(self) -> SeqNum {
        SeqNum(self.0.saturating_sub(1))
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kinds of entries that occur in internal keys. The numbers are those of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ValueType {
    /// A point tombstone.
    Delete = 0x00,
    /// A value.
    Put = 0x01,
    /// A merge operand.
    Merge = 0x02,
    /// A tombstone for exactly one put.
    SingleDelete = 0x07,
    /// A range tombstone: key = begin, value = end (exclusive). Only in range-deletion blocks.
    RangeDelete = 0x0f,
    /// The value is an index into a blob file.
    BlobIndex = 0x11,
    /// A point tombstone in a family with user-defined timestamps.
    DeleteWithTimestamp = 0x14,
    /// A wide-column entity.
    Entity = 0x16,
    /// A put with a preferred sequence number.
    TimedPut = 0x18,
}

impl ValueType {
    /// `None` for a number that is no type of internal keys.
    #[inline]
    pub const fn from_u8(byte: u8) -> Option<ValueType> {
        Some(match byte {
            0x00 => ValueType::Delete,
            0x01 => ValueType::Put,
            0x02 => ValueType::Merge,
            0x07 => ValueType::SingleDelete,
            0x0f => ValueType::RangeDelete,
            0x11 => ValueType::BlobIndex,
            0x14 => ValueType::DeleteWithTimestamp,
            0x16 => ValueType::Entity,
            0x18 => ValueType::TimedPut,
            _ => return None,
        })
    }

    /// Whether the entry deletes a key, or a range of keys.
    #[inline]
    pub const fn deletes(self) -> bool {
        matches!(
            self,
            ValueType::Delete
                | ValueType::SingleDelete
                | ValueType::DeleteWithTimestamp
                | ValueType::RangeDelete
        )
    }
}

/// The last eight bytes of an internal key: sequence number and type byte. Larger is newer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Trailer(u64);

impl Trailer {
    /// Seeks use the largest type byte in use, so that a seek at a sequence finds every type at it.
    pub const SEEK_TYPE: u8 = 0x18;
    /// Before every version of a user key.
    pub const FIRST: Trailer = Trailer((SeqNum::MAX.0 << 8) | Self::SEEK_TYPE as u64);
    /// Behind every version of a user key.
    pub const LAST: Trailer = Trailer(0);
    /// The type byte that RocksDB 9.1 and later give to the smallest key of a file which begins with a range tombstone. No
    /// entry has it.
    pub const RANGE_START_TYPE: u8 = 0x1a;
    /// The end boundary of a range tombstone in file metadata.
    pub const RANGE_END: Trailer = Trailer((SeqNum::MAX.0 << 8) | 0x0f);

    /// Packs the two.
    #[inline]
    pub const fn new(seq: SeqNum, value_type: ValueType) -> Trailer {
        Trailer((seq.0 << 8) | value_type as u64)
    }

    /// The trailer a read at `seq` seeks with.
    #[inline]
    pub const fn seek(seq: SeqNum) -> Trailer {
        Trailer((seq.0 << 8) | Self::SEEK_TYPE as u64)
    }

    /// Any 64 bits; the type byte may be unknown.
    #[inline]
    pub const fn from_raw(raw: u64) -> Trailer {
        Trailer(raw)
    }

    /// The 64 bits as stored.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The sequence number.
    #[inline]
    pub const fn seq(self) -> SeqNum {
        SeqNum(self.0 >> 8)
    }

    /// The type byte as stored.
    #[inline]
    pub const fn type_byte(self) -> u8 {
        (self.0 & 0xff) as u8
    }

    /// The type. `None`: internal keys cannot have this byte.
    #[inline]
    pub const fn value_type(self) -> Option<ValueType> {
        ValueType::from_u8(self.type_byte())
    }
}

impl fmt::Debug for Trailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value_type() {
            Some(t) => write!(f, "#{},{t:?}", self.seq()),
            None => write!(f, "#{},type {:#04x}", self.seq(), self.type_byte()),
        }
    }
}

/// An encoded internal key: user key and trailer in one slice of at least eight bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InternalKey<'a>(&'a [u8]);

impl<'a> InternalKey<'a> {
    /// Takes an encoded key; `Malformed` when it is shorter than a trailer.
    #[inline]
    pub fn decode(encoded: &'a [u8]) -> Result<Self, Malformed> {
        if encoded.len() < 8 {
            return Err(Malformed { field: "internal key", at: 0, what: "shorter than eight bytes" });
        }
        Ok(InternalKey(encoded))
    }

    /// The bytes as stored.
    #[inline]
    pub fn encoded(self) -> &'a [u8] {
        self.0
    }

    /// Key and trailer.
    #[inline]
    pub fn split(self) -> (&'a [u8], Trailer) {
        match self.0.split_last_chunk::<8>() {
            Some((user, trailer)) => (user, Trailer(u64::from_le_bytes(*trailer))),
            None => (&[], Trailer(0)),
        }
    }

    /// The user's part.
    #[inline]
    pub fn user_key(self) -> &'a [u8] {
        self.split().0
    }

    /// Sequence number and type.
    #[inline]
    pub fn trailer(self) -> Trailer {
        self.split().1
    }

    /// The sequence number.
    #[inline]
    pub fn seq(self) -> SeqNum {
        self.trailer().seq()
    }

    /// An owned copy.
    pub fn to_buf(self) -> InternalKeyBuf {
        InternalKeyBuf(self.0.to_vec())
    }
}

impl fmt::Debug for InternalKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.user_key().escape_ascii(), self.trailer())
    }
}

/// An owned internal key.
#[derive(Clone, PartialEq, Eq)]
pub struct InternalKeyBuf(Vec<u8>);

impl InternalKeyBuf {
    /// Joins a user key and a trailer.
    pub fn new(user_key: &[u8], trailer: Trailer) -> Self {
        let mut buf = Vec::with_capacity(user_key.len() + 8);
        buf.extend_from_slice(user_key);
        buf.extend_from_slice(&trailer.raw().to_le_bytes());
        InternalKeyBuf(buf)
    }

    /// Borrows it.
    #[inline]
    pub fn as_key(&self) -> InternalKey<'_> {
        InternalKey(&self.0)
    }

    /// The internal key of an empty user key, with room for user keys of `bytes` bytes.
    pub fn with_room(bytes: usize) -> Self {
        let mut buf = Vec::with_capacity(bytes + 8);
        buf.extend_from_slice(&Trailer::LAST.raw().to_le_bytes());
        InternalKeyBuf(buf)
    }

    /// Bytes of memory that it holds.
    #[inline]
    pub fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// Replaces the content without a new allocation where the old one is large enough.
    pub fn set(&mut self, user_key: &[u8], trailer: Trailer) {
        self.0.clear();
        // One allocation for both parts.
        self.0.reserve(user_key.len() + 8);
        self.0.extend_from_slice(user_key);
        self.0.extend_from_slice(&trailer.raw().to_le_bytes());
    }

    /// Replaces the content by a copy of `key`.
    #[inline]
    pub fn set_encoded(&mut self, key: InternalKey<'_>) {
        self.0.clear();
        self.0.extend_from_slice(key.0);
    }

    /// Replaces the trailer.
    #[inline]
    pub fn set_trailer(&mut self, trailer: Trailer) {
        if let Some(last) = self.0.last_chunk_mut::<8>() {
            *last = trailer.raw().to_le_bytes();
        }
    }
}

impl fmt::Debug for InternalKeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_key().fmt(f)
    }
}
