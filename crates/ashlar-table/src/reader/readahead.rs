//! Replaces many small reads by one large one.

use crate::reader::Reading;
use ashlar_base::Result;
use ashlar_base::bytes::resize;
use ashlar_base::memory::MemoryCharge;
use ashlar_format::table::BlockHandle;

/// A window on the file. Blocks inside it need no read. Callers request blocks in about ascending order.
#[derive(Debug)]
pub(crate) struct Readahead {
    bytes: Vec<u8>,
    start: u64,
    size: usize,
    charge: MemoryCharge,
}

impl Readahead {
    /// Reads at least `size` bytes at a time, into a buffer that is charged to `charge`.
    pub(crate) fn new(size: usize, charge: MemoryCharge) -> Self {
        Readahead { bytes: Vec::new(), start: 0, size, charge }
    }

    /// The data block in its plain form, through the window.
    pub(crate) fn read(&mut self, file: Reading<'_>, handle: BlockHandle) -> Result<Vec<u8>> {
        let len = file.stored_len(handle)?;
        if self.window(handle.offset, len).is_none() {
            let left = usize::try_from(file.size().saturating_sub(handle.offset)).unwrap_or(usize::MAX);
            resize(&mut self.bytes, len.max(self.size).min(left))?;
            self.charge.set(self.bytes.capacity());
            self.start = handle.offset;
            let read = file.read_raw(&mut self.bytes, handle.offset);
            if read.is_err() {
                self.bytes.clear();
            }
            read?;
        }
        file.unpack_data(self.window(handle.offset, len).unwrap_or(&[]), handle)
    }

    fn window(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..at.checked_add(len)?)
    }
}
