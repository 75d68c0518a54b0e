//! The frame of a block: where the entries end and where the restart points are.

use super::Sidecar;
use crate::unreadable::Unreadable;
use ashlar_base::Malformed;

pub(super) const RESTARTS_MASK: u32 = (1 << 28) - 1;
pub(super) const SEPARATED: u32 = 1 << 28;
pub(super) const UNKNOWN: u32 = 1 << 30;
pub(super) const HASHED: u32 = 1 << 31;

/// An uncompressed block of any kind, split into its parts. Borrows the bytes; as cheap to copy as a few slices.
#[derive(Clone, Copy, Debug)]
pub struct DataBlock<'a> {
    entries: &'a [u8],
    restarts: &'a [[u8; 4]],
    sidecar: Option<Sidecar<'a>>,
}

impl<'a> DataBlock<'a> {
    /// Splits a block and proves its restart array: to be called once for bytes that come from a file. Two restart points may
    /// be the same: RocksDB begins a block with 0 twice when `block_restart_interval` is 0.
    /// Cost: linear in the restart points.
    ///
    /// # Errors
    /// `Malformed`: a count or an offset that cannot be; separated keys and values ([`super::join_separated`]).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let block = Self::reopen(bytes)?;
        let mut floor = 0;
        for (i, offset) in block.restarts.iter().enumerate() {
            let offset = u32::from_le_bytes(*offset) as usize;
            let wrong = match i {
                0 => offset != 0,
                _ => offset < floor || offset >= block.entries.len(),
            };
            if wrong {
                let at = block.entries.len() + 4 * i;
                return Err(Malformed { field: "block.restart", at, what: "offset out of order" }.into());
            }
            floor = offset;
        }
        Ok(block)
    }

    /// Splits a block that [`DataBlock::parse`] has accepted before, e.g. one from the cache, in constant time.
    /// Safe for any bytes: what `parse` proves is then found out, as `Malformed`, when it is used.
    ///
    /// # Errors
    /// As [`DataBlock::parse`], except for the content of the restart array.
    #[inline]
    pub fn reopen(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let bad = |what| Malformed { field: "block.restarts", at: bytes.len().saturating_sub(4), what };
        let (body, packed) = bytes.split_last_chunk::<4>().ok_or(bad("shorter than four bytes"))?;
        let packed = u32::from_le_bytes(*packed);
        let mut body = body;
        if packed & !RESTARTS_MASK != 0 {
            body = Self::without_extras(body, packed)?;
        }
        let tail = ((packed & RESTARTS_MASK) as usize).checked_mul(4).ok_or(bad("too many"))?;
        let entries_end = body.len().checked_sub(tail).ok_or(bad("more than the block holds"))?;
        let (entries, restarts) =
            body.split_at_checked(entries_end).ok_or(bad("more than the block holds"))?;
        if restarts.is_empty() {
            return Err(bad("none").into());
        }
        Ok(DataBlock { entries, restarts: restarts.as_chunks::<4>().0, sidecar: None })
    }

    /// The block with the sidecar that [`SidecarBuilder`](super::SidecarBuilder) has made of it; empty bytes mean none.
    #[inline]
    #[must_use]
    pub fn with_sidecar(self, bytes: &'a [u8]) -> Self {
        DataBlock { sidecar: Sidecar::of(bytes), ..self }
    }

    /// The sidecar, if the block has one.
    #[inline]
    pub(super) fn sidecar(&self) -> Option<&Sidecar<'a>> {
        self.sidecar.as_ref()
    }

    /// Takes off what newer writers put between the restart array and the last word.
    #[cold]
    fn without_extras(body: &'a [u8], packed: u32) -> Result<&'a [u8], Unreadable> {
        let bad = |what| Malformed { field: "block.packed", at: body.len(), what };
        if packed & UNKNOWN != 0 {
            return Err(bad("unknown feature bit").into());
        }
        if packed & SEPARATED != 0 {
            return Err(bad("keys and values are separated; such a block is joined first").into());
        }
        if packed & HASHED == 0 {
            return Ok(body);
        }
        let (body, buckets) = body.split_last_chunk::<2>().ok_or(bad("hash index cut off"))?;
        let buckets = usize::from(u16::from_le_bytes(*buckets));
        if buckets == 0 {
            return Err(bad("hash index without buckets").into());
        }
        let end = body.len().checked_sub(buckets).ok_or(bad("hash index cut off"))?;
        Ok(body.get(..end).unwrap_or_default())
    }

    /// The entry area. It starts at the first byte of the block, so its offsets are those of the block.
    #[inline]
    pub fn entries(&self) -> &'a [u8] {
        self.entries
    }

    /// Number of restart points, at least one.
    #[inline]
    pub fn restart_count(&self) -> usize {
        self.restarts.len()
    }

    /// Offset of a restart point; `None` past the last.
    #[inline]
    pub fn restart(&self, index: usize) -> Option<usize> {
        self.restarts.get(index).map(|offset| u32::from_le_bytes(*offset) as usize)
    }

    /// The last restart point before the entry at `offset`; 0 if there is no such point.
    pub(super) fn restart_before(&self, offset: usize) -> usize {
        let behind = self.restarts.partition_point(|r| (u32::from_le_bytes(*r) as usize) < offset);
        self.restart(behind.saturating_sub(1)).unwrap_or(0)
    }
}
