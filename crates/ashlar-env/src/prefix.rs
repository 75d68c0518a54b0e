//! The first bytes of a file.

use crate::ReadFile;
use ashlar_base::Result;
use std::path::Path;
use std::sync::Arc;

/// The first bytes of a file. Bytes behind them, and bytes that a writer appends later, are not visible.
#[derive(Debug)]
pub struct Prefix {
    file: Arc<dyn ReadFile>,
    bytes: u64,
}

impl Prefix {
    /// The first `bytes` of `file`.
    pub fn of(file: Arc<dyn ReadFile>, bytes: u64) -> Arc<dyn ReadFile> {
        Arc::new(Prefix { file, bytes })
    }
}

impl ReadFile for Prefix {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        match buf.get_mut(..left.min(buf.len())) {
            Some(buf) if !buf.is_empty() => self.file.read_at(buf, offset),
            _ => Ok(0),
        }
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn expect_random(&self) {
        self.file.expect_random();
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.file.will_read(offset, len);
    }
}
