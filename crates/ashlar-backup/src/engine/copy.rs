//! Copies bytes and computes their checksum on the way, at a limited rate.

use ashlar_base::checksum::crc32c_append;
use ashlar_base::{Error, Result};
use ashlar_env::{Clock, Fs, ReadFile};
use ashlar_tree::files::read_pieces;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Keeps copying below a rate: after each piece the copying thread sleeps until the piece is due.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// 0: without a limit.
    bytes_per_second: u64,
    began: Duration,
    bytes: u64,
}

impl Pace {
    /// Begins now.
    pub(super) fn new(clock: &Arc<dyn Clock>, bytes_per_second: u64) -> Pace {
        Pace { clock: Arc::clone(clock), bytes_per_second, began: clock.now(), bytes: 0 }
    }

    fn passed(&mut self, bytes: u64) {
        if self.bytes_per_second == 0 {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let micros = u128::from(self.bytes) * 1_000_000 / u128::from(self.bytes_per_second);
        let due = self.began.saturating_add(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)));
        let now = self.clock.now();
        if due > now {
            self.clock.sleep(due - now);
        }
    }
}

/// What was copied or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    /// CRC-32C, unmasked.
    pub(super) crc: u32,
}

/// Reads the first bytes of a file, at `most` that many, and computes their checksum. Writes them to the file `to`, if given,
/// and makes that file durable, but not its name.
///
/// # Errors
/// `Io`.
pub(super) fn copy(
    source: &dyn ReadFile,
    to: Option<(&dyn Fs, &Path)>,
    most: u64,
    pace: &mut Pace,
) -> Result<Sum> {
    let target = to.map(|(fs, path)| fs.create(path)).transpose()?;
    let mut crc = 0;
    let bytes = read_pieces(source, most, &mut |at, piece| {
        crc = crc32c_append(crc, piece);
        if let Some(target) = &target {
            target.write_at(piece, at)?;
        }
        pace.passed(piece.len() as u64);
        Ok(())
    })?;
    if let Some(target) = target {
        target.sync_all()?;
    }
    Ok(Sum { bytes, crc })
}

/// Checks that a read of `path` found what was expected.
///
/// # Errors
/// `Corruption`: the length or the checksum differs.
pub(super) fn check(path: &Path, found: Sum, bytes: u64, crc: Option<u32>) -> Result<()> {
    if found.bytes != bytes {
        let what = format!("file has {} bytes, not {bytes}", found.bytes);
        return Err(Error::corruption(what).at_path(path));
    }
    match crc {
        Some(crc) if crc != found.crc => {
            let what = format!("file checksum mismatch: {:08x} found, {crc:08x} expected", found.crc);
            Err(Error::corruption(what).at_path(path))
        }
        _ => Ok(()),
    }
}
