//! Buffers whose size comes from data. When the system refuses the memory, the call that needs the buffer fails, where
//! `vec!` would end the process.

use crate::error::BusyKind;
use crate::{Error, ErrorKind};
use std::collections::TryReserveError;
use std::fmt;

/// The system refused memory. Nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system has no memory for it")
    }
}

impl std::error::Error for OutOfMemory {}

impl From<TryReserveError> for OutOfMemory {
    fn from(_: TryReserveError) -> OutOfMemory {
        OutOfMemory
    }
}

impl From<OutOfMemory> for Error {
    fn from(e: OutOfMemory) -> Error {
        Error::new(ErrorKind::Busy(BusyKind::Memory), e.to_string())
            .hint("Try it again later, or give the process more memory")
    }
}

/// A buffer of `len` zeros.
///
/// # Errors
/// The system has no memory.
pub fn zeroed(len: usize) -> Result<Vec<u8>, OutOfMemory> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(len)?;
    buffer.resize(len, 0);
    Ok(buffer)
}

/// A copy of `bytes`.
///
/// # Errors
/// The system has no memory.
pub fn copied(bytes: &[u8]) -> Result<Vec<u8>, OutOfMemory> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(buffer)
}

/// Cuts `buffer` to `len` bytes, or fills it up with zeros.
///
/// # Errors
/// The system has no memory: `buffer` is as it was.
pub fn resize(buffer: &mut Vec<u8>, len: usize) -> Result<(), OutOfMemory> {
    buffer.try_reserve(len.saturating_sub(buffer.len()))?;
    buffer.resize(len, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_is_refused() {
        assert_eq!((zeroed(3), copied(b"abc")), (Ok(vec![0; 3]), Ok(b"abc".to_vec())));
        let mut buffer = b"abc".to_vec();
        assert_eq!((resize(&mut buffer, usize::MAX / 2), &*buffer), (Err(OutOfMemory), &b"abc"[..]));
        resize(&mut buffer, 5).unwrap();
        assert_eq!(buffer, b"abc\0\0");
        resize(&mut buffer, 1).unwrap();
        assert_eq!((buffer, zeroed(usize::MAX / 2)), (b"a".to_vec(), Err(OutOfMemory)));
        assert_eq!(Error::from(OutOfMemory).kind(), ErrorKind::Busy(BusyKind::Memory));
    }
}
