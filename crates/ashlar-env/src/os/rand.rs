//! Randomness seeded by the machine.

use crate::{Rand, SeededRand};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result};

/// A generator seeded once by the system. Not for secrets.
#[derive(Debug)]
pub struct OsRand(SeededRand);

impl OsRand {
    /// Draws the seed.
    ///
    /// # Errors
    /// `Io`: the system gives no random bytes.
    pub fn new() -> Result<Self> {
        let mut seed = [0u8; 8];
        let mut filled = 0;
        while filled < seed.len() {
            match rustix::rand::getrandom(&mut seed[filled..], rustix::rand::GetRandomFlags::empty()) {
                Ok(n) => filled += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => {
                    return Err(
                        Error::new(ErrorKind::Io(IoKind::Other), "cannot draw a random seed").because(e)
                    );
                }
            }
        }
        Ok(OsRand(SeededRand::new(u64::from_le_bytes(seed))))
    }
}

impl Rand for OsRand {
    fn next_u64(&self) -> u64 {
        self.0.next_u64()
    }
}
