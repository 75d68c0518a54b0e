//! The dictionary of a table: bytes to which its data blocks may refer as if they preceded each of them.
//!
//! ```text
//! zstd:       raw content, or a trained dictionary when it begins with 37 a4 30 ec
//! LZ4:        the 64 KiB before the block
//! zlib:       the window before the block
//! ```
//! Snappy and bzip2 use no dictionary. All algorithms of a table's blocks use the same bytes.
//!
//! Source: RocksDB `util/compression.h` (`CompressionDict`, `UncompressionDict`).

use ashlar_base::Malformed;
use std::fmt;
use zstd::zstd_safe::DDict;

/// A dictionary made ready for reading. To be shared: making one costs more than decompressing a block.
pub struct Dictionary {
    bytes: Box<[u8]>,
    /// `None`: the bytes begin like a trained dictionary and are none.
    zstd: Option<DDict<'static>>,
}

impl Dictionary {
    /// A dictionary in the form of its block.
    ///
    /// # Errors
    /// `Malformed` when it is empty.
    pub fn new(bytes: Vec<u8>) -> Result<Self, Malformed> {
        if bytes.is_empty() {
            return Err(Malformed { field: "compression dictionary", at: 0, what: "empty" });
        }
        let zstd = DDict::try_create(&bytes);
        Ok(Dictionary { bytes: bytes.into_boxed_slice(), zstd })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// About the bytes of memory it takes.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.zstd.as_ref().map_or(0, DDict::sizeof)
    }

    pub(super) fn zstd(&self) -> Option<&DDict<'static>> {
        self.zstd.as_ref()
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({} bytes)", self.bytes.len())
    }
}

/// Trains a zstd dictionary of at most `max_len` bytes on samples that follow each other in `samples`, with
/// the lengths `sizes`. `None` when they are too few or too much alike to be worth one.
pub fn train_zstd_dictionary(samples: &[u8], sizes: &[usize], max_len: usize) -> Option<Vec<u8>> {
    let total = sizes.iter().try_fold(0_usize, |sum, size| sum.checked_add(*size))?;
    if total != samples.len() || sizes.is_empty() {
        return None;
    }
    zstd::dict::from_continuous(samples, sizes, max_len).ok().filter(|trained| !trained.is_empty())
}
