//! Checksums over whole files, as the MANIFEST records them: RocksDB's generator `FileChecksumGenCrc32c`.
//!
//! ```text
//! function: "FileChecksumCrc32c"   checksum: crc32c of all bytes, u32 big endian
//! ```
//! 1. The checksum covers the bytes that are handed to the file, before any of them reaches the storage.
//! 2. A checksum of another function stays in the MANIFEST and is not compared.
//!
//! Source: RocksDB `util/file_checksum_helper.h`, `include/rocksdb/file_checksum.h`.

use super::copy::read_pieces;
use ashlar_base::checksum::crc32c_append;
use ashlar_base::{Error, Result};
use ashlar_env::{Fs, WriteFile};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the function in the MANIFEST.
pub const CRC32C_FUNCTION: &[u8] = b"FileChecksumCrc32c";

/// The function name that RocksDB up to 7.8 records when there is no checksum.
const UNKNOWN_FUNCTION: &[u8] = b"Unknown";

/// A file that one thread at a time writes front to back, with a checksum computed on the way.
pub struct SummedFile {
    inner: Arc<dyn WriteFile>,
    /// The checksum in the upper half; in the lower half, whether a write was out of order.
    // Relaxed everywhere: writes follow one another, and the reader has seen the last one.
    state: AtomicU64,
    at: AtomicU64,
}

/// Set when a write was out of order. Then there is no checksum.
const OUT_OF_ORDER: u64 = 1;

impl SummedFile {
    /// Wraps an empty file.
    pub fn new(inner: Arc<dyn WriteFile>) -> Arc<SummedFile> {
        Arc::new(SummedFile { inner, state: AtomicU64::new(0), at: AtomicU64::new(0) })
    }

    /// The checksum of all that was written, as the MANIFEST stores it.
    ///
    /// # Errors
    /// `Corruption`: the file was not written front to back.
    pub fn checksum(&self) -> Result<[u8; 4]> {
        let state = self.state.load(Ordering::Relaxed);
        if state & OUT_OF_ORDER != 0 {
            let what = "a file with a checksum was not written front to back";
            return Err(Error::corruption(what).at_path(self.inner.path()));
        }
        Ok(sum_of(state).to_be_bytes())
    }
}

fn sum_of(state: u64) -> u32 {
    u32::try_from(state >> 32).unwrap_or_default()
}

impl WriteFile for SummedFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let state = self.state.load(Ordering::Relaxed);
        let next = match offset == self.at.load(Ordering::Relaxed) {
            true => u64::from(crc32c_append(sum_of(state), data)) << 32 | state & OUT_OF_ORDER,
            false => state | OUT_OF_ORDER,
        };
        self.state.store(next, Ordering::Relaxed);
        self.at.store(offset.saturating_add(data.len() as u64), Ordering::Relaxed);
        self.inner.write_at(data, offset)
    }

    fn begin_writeback(&self, offset: u64, len: u64) {
        self.inner.begin_writeback(offset, len);
    }

    fn sync_data(&self) -> Result<()> {
        self.inner.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.inner.sync_all()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.state.fetch_or(OUT_OF_ORDER, Ordering::Relaxed);
        self.inner.truncate(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.allocate(offset, len)
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

impl fmt::Debug for SummedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SummedFile({})", self.inner.path().display())
    }
}

/// The result of comparing a file with its recorded checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChecksum {
    /// The MANIFEST has no checksum of the file.
    NotRecorded,
    /// The MANIFEST has a checksum of an unknown function.
    UnknownFunction,
    /// The checksum is right. Holds the number of bytes read.
    Right(u64),
}

/// Reads the file and compares it with its checksum in the MANIFEST.
///
/// # Errors
/// `Corruption`: the checksum differs or has a wrong length. `Io`.
/// # Cost
/// One pass over the file, if the MANIFEST has a checksum.
pub fn check_file_checksum(
    fs: &dyn Fs,
    path: &Path,
    function: &[u8],
    recorded: &[u8],
) -> Result<FileChecksum> {
    if recorded.is_empty() || function.is_empty() || function == UNKNOWN_FUNCTION {
        return Ok(FileChecksum::NotRecorded);
    }
    if function != CRC32C_FUNCTION {
        return Ok(FileChecksum::UnknownFunction);
    }
    let (sum, bytes) = read_sum(fs, path)?;
    if sum.to_be_bytes()[..] == *recorded {
        return Ok(FileChecksum::Right(bytes));
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let (found, said) = (hex(&sum.to_be_bytes()), hex(recorded));
    Err(Error::corruption(format!("file checksum mismatch: {found}, the MANIFEST says {said}"))
        .at_path(path)
        .damaged_file_hint())
}

/// The checksum of a file that exists, as the MANIFEST stores it.
///
/// # Errors
/// `Io`.
/// # Cost
/// One pass over the file.
pub fn checksum_of_file(fs: &dyn Fs, path: &Path) -> Result<[u8; 4]> {
    read_sum(fs, path).map(|(sum, _)| sum.to_be_bytes())
}

/// The checksum of a file, and its length.
fn read_sum(fs: &dyn Fs, path: &Path) -> Result<(u32, u64)> {
    let file = fs.open_read(path)?;
    let mut sum = 0;
    let bytes = read_pieces(&*file, u64::MAX, &mut |_, piece| {
        sum = crc32c_append(sum, piece);
        Ok(())
    })?;
    Ok((sum, bytes))
}

/// The CRC-32C that the MANIFEST records for a file; `None`: it records none, or that of another function.
pub fn recorded_crc32c(function: &[u8], recorded: &[u8]) -> Option<u32> {
    let sum = (function == CRC32C_FUNCTION).then_some(recorded)?;
    sum.try_into().ok().map(u32::from_be_bytes)
}

/// The file, with a checksum of its bytes if the caller wants one.
pub fn summed(file: Arc<dyn WriteFile>, wanted: bool) -> (Arc<dyn WriteFile>, Option<Arc<SummedFile>>) {
    match wanted {
        false => (file, None),
        true => {
            let sum = SummedFile::new(file);
            (Arc::clone(&sum) as Arc<dyn WriteFile>, Some(sum))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::Env;

    #[test]
    fn the_sum_is_that_of_the_file() {
        let env = Env::mem();
        let path = Path::new("/db/000001.sst");
        env.fs.create_dir_all(Path::new("/db")).unwrap();
        let file = SummedFile::new(env.fs.create(path).unwrap());
        file.write_at(b"12345", 0).unwrap();
        file.write_at(b"6789", 5).unwrap();
        let sum = file.checksum().unwrap();
        assert_eq!(sum, [0xe3, 0x06, 0x92, 0x83]);
        let check = |function: &[u8], sum: &[u8]| check_file_checksum(&*env.fs, path, function, sum);
        assert_eq!(check(CRC32C_FUNCTION, &sum).unwrap(), FileChecksum::Right(9));
        assert_eq!(check(b"Mine", &sum).unwrap(), FileChecksum::UnknownFunction);
        for (function, sum) in [(&b"Unknown"[..], &b""[..]), (b"", b""), (CRC32C_FUNCTION, b"")] {
            assert_eq!(check(function, sum).unwrap(), FileChecksum::NotRecorded);
        }
        assert!(check(CRC32C_FUNCTION, &[0; 4]).unwrap_err().is_corruption());
        assert!(check(CRC32C_FUNCTION, &[0; 3]).unwrap_err().is_corruption());
        file.write_at(b"x", 3).unwrap();
        assert!(file.checksum().unwrap_err().is_corruption());
    }
}
