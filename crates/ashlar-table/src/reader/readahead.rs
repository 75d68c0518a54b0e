//! Replaces many small reads by one large one.

use crate::reader::{Reading, Windows};
use ashlar_base::Result;
use ashlar_base::bytes::{copied, resize};
use ashlar_base::memory::{MemoryCharge, MemoryUse};
use ashlar_format::table::BlockHandle;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A window on the file. Blocks inside it need no read. Callers request blocks in about ascending order.
#[derive(Debug)]
pub(crate) struct Readahead {
    bytes: Arc<Vec<u8>>,
    start: u64,
    size: usize,
    charge: MemoryCharge,
    /// Lends the buffer, if there is such a store.
    windows: Option<Arc<Windows>>,
}

/// A data block in its plain form: a part of a buffer that other blocks may share.
#[derive(Debug, Default)]
pub(crate) struct SharedBlock {
    /// The buffer.
    pub(crate) buffer: Arc<Vec<u8>>,
    /// The place of the block in it.
    pub(crate) range: Range<usize>,
    /// The charge for a large buffer of the block's own.
    _charge: Option<MemoryCharge>,
}

/// A buffer that holds one block alone is charged from this length on.
const CHARGED: usize = 64 << 10;

impl SharedBlock {
    /// The block.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }
}

impl Readahead {
    /// Reads at least `size` bytes at a time, into a buffer that is charged to `charge`.
    pub(crate) fn new(size: usize, charge: MemoryCharge) -> Self {
        Readahead { bytes: Arc::default(), start: 0, size, charge, windows: None }
    }

    /// Takes its buffer from `windows`, and gives it back at the end.
    pub(crate) fn within(mut self, windows: Option<Arc<Windows>>) -> Self {
        self.windows = windows;
        self
    }

    /// The data block in its plain form, through the window.
    pub(crate) fn read(&mut self, file: Reading<'_>, handle: BlockHandle) -> Result<Vec<u8>> {
        let stored = self.stored(file, handle)?;
        match file.unpack_data(self.bytes.get(stored).unwrap_or_default(), handle)? {
            Cow::Borrowed(block) => Ok(copied(block)?),
            Cow::Owned(block) => Ok(block),
        }
    }

    /// [`Readahead::read`] without a copy of a block that is stored in its plain form. While the caller holds such a block, the
    /// next read of the file takes another buffer.
    pub(crate) fn read_shared(&mut self, file: Reading<'_>, handle: BlockHandle) -> Result<SharedBlock> {
        let stored = self.stored(file, handle)?;
        let (start, is_window) = (stored.start, stored.len() <= self.size);
        match file.unpack_data(self.bytes.get(stored).unwrap_or_default(), handle)? {
            Cow::Borrowed(block) => {
                let range = start..start + block.len();
                Ok(SharedBlock { range, buffer: Arc::clone(&self.bytes), _charge: None })
            }
            Cow::Owned(block) => {
                if !is_window {
                    // The buffer holds the stored form of this block and nothing else.
                    self.bytes = Arc::default();
                    self.charge.set(0);
                }
                let budget = self.charge.budget().filter(|_| block.capacity() >= CHARGED);
                let charge = budget.map(|budget| budget.charge(MemoryUse::Buffers, block.capacity()));
                Ok(SharedBlock { range: 0..block.len(), buffer: Arc::new(block), _charge: charge })
            }
        }
    }

    /// The place of the stored block in the window, which is moved to the block if it does not hold the block.
    fn stored(&mut self, file: Reading<'_>, handle: BlockHandle) -> Result<Range<usize>> {
        let len = file.stored_len(handle)?;
        if let Some(at) = self.place(handle.offset, len) {
            return Ok(at..at + len);
        }
        let left = usize::try_from(file.size().saturating_sub(handle.offset)).unwrap_or(usize::MAX);
        let wanted = len.max(self.size).min(left);
        let mut bytes = Arc::try_unwrap(std::mem::take(&mut self.bytes)).unwrap_or_default();
        if bytes.capacity() == 0
            && let Some((buffer, charge)) = self.windows.as_ref().and_then(|windows| windows.take(wanted))
        {
            (bytes, self.charge) = (buffer, charge);
        }
        resize(&mut bytes, wanted)?;
        self.charge.set(bytes.capacity());
        file.read_raw(&mut bytes, handle.offset)?;
        let next = handle.offset.saturating_add(wanted as u64);
        file.will_read(next..next.saturating_add(self.size as u64).min(file.size()));
        (self.bytes, self.start) = (Arc::new(bytes), handle.offset);
        Ok(0..len)
    }

    fn place(&self, offset: u64, len: usize) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (at.checked_add(len)? <= self.bytes.len()).then_some(at)
    }
}

impl Drop for Readahead {
    fn drop(&mut self) {
        let Some(windows) = &self.windows else { return };
        if let Ok(bytes) = Arc::try_unwrap(std::mem::take(&mut self.bytes))
            && bytes.capacity() > 0
        {
            windows.give(bytes, std::mem::replace(&mut self.charge, MemoryCharge::none()));
        }
    }
}
