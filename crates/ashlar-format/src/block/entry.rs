//! The stored form of one entry, per kind of block.

use ashlar_base::Malformed;
use ashlar_base::bytes::Cursor;
use std::fmt;

/// One decoded entry, its key not yet joined with the key before it.
#[derive(Clone, Copy, Debug)]
pub struct RawEntry<'a, V> {
    /// Bytes of the previous key that start this one.
    pub shared: usize,
    /// The rest of the key.
    pub tail: &'a [u8],
    /// The value.
    pub value: V,
    /// Where the next entry starts.
    pub next: usize,
}

/// A kind of block: how its entries are read and how short a key may be.
pub trait EntryFormat: Copy + fmt::Debug + Send {
    /// The value of an entry.
    type Value: Copy + Default + fmt::Debug + Send;

    /// Keys shorter than this are malformed.
    fn min_key(&self) -> usize;

    /// Decodes the entry at `at`; `previous` is the value of the entry before it, which some values refer to.
    fn decode<'a>(
        &self,
        entries: &'a [u8],
        at: usize,
        previous: &Self::Value,
    ) -> Result<RawEntry<'a, Self::Value>, Malformed>;
}

/// The place of a value in the bytes of its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueRange {
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl ValueRange {
    /// The bytes, from the block (or its entry area) the range was found in.
    #[inline]
    pub fn of(self, block: &[u8]) -> &[u8] {
        block.get(self.start..self.end).unwrap_or_default()
    }
}

/// Entries whose keys are internal keys: data blocks, range-deletion blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct InternalEntries;

/// Entries whose keys are plain strings: metaindex, properties.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainEntries;

impl EntryFormat for InternalEntries {
    type Value = ValueRange;

    #[inline]
    fn min_key(&self) -> usize {
        8
    }

    #[inline]
    fn decode<'a>(
        &self,
        entries: &'a [u8],
        at: usize,
        _: &ValueRange,
    ) -> Result<RawEntry<'a, ValueRange>, Malformed> {
        standard(entries, at)
    }
}

impl EntryFormat for PlainEntries {
    type Value = ValueRange;

    #[inline]
    fn min_key(&self) -> usize {
        0
    }

    #[inline]
    fn decode<'a>(
        &self,
        entries: &'a [u8],
        at: usize,
        _: &ValueRange,
    ) -> Result<RawEntry<'a, ValueRange>, Malformed> {
        standard(entries, at)
    }
}

/// Three lengths, tail, value. The lengths are one byte each in nearly every entry there is.
#[inline]
pub(super) fn standard(entries: &[u8], at: usize) -> Result<RawEntry<'_, ValueRange>, Malformed> {
    let (shared, non_shared, value_len, body) = match entries.get(at..).and_then(|r| r.first_chunk::<3>()) {
        Some(&[s, n, v]) if (s | n | v) < 0x80 => (usize::from(s), usize::from(n), usize::from(v), at + 3),
        _ => lengths(entries, at)?,
    };
    let key_end = body + non_shared;
    let end = key_end + value_len;
    match (entries.get(body..key_end), end <= entries.len()) {
        (Some(tail), true) => {
            Ok(RawEntry { shared, tail, value: ValueRange { start: key_end, end }, next: end })
        }
        _ => Err(Malformed { field: "entry", at, what: "key or value past the end of the block" }),
    }
}

/// The lengths in their general form: shared, non_shared, value_len, and where the key tail starts.
/// The sums of three 32-bit numbers and an offset fit a `usize`.
#[cold]
fn lengths(entries: &[u8], at: usize) -> Result<(usize, usize, usize, usize), Malformed> {
    let mut c = Cursor::new(entries.get(at..).unwrap_or_default());
    let mut read = || -> Result<_, Malformed> {
        let shared = c.varint32("entry.shared")?;
        let non_shared = c.varint32("entry.non_shared")?;
        let value_len = c.varint32("entry.value_len")?;
        Ok((shared as usize, non_shared as usize, value_len as usize, at + c.position()))
    };
    read().map_err(|m| Malformed { at: m.at.saturating_add(at), ..m })
}
