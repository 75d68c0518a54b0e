//! Reads a MANIFEST to which another process may append at the same time.
//!
//! 1. A look reads the bytes that the file has when it is opened. The writer only appends, so those bytes stay.
//! 2. The end of these bytes may lie inside the record that the writer is writing. While the LOCK is held, that record is
//!    not committed, and nothing is lost. While the LOCK is free, the record is a loss only if the file does not grow:
//!    a writer may have finished the record and closed the database.
//! 3. The writer may replace the MANIFEST and remove the old one. An error counts only if `CURRENT` still names the file.

use super::replay::{missing_manifest, named_manifest, replay_manifest};
use super::replayed::Replayed;
use ashlar_base::error::BusyKind;
use ashlar_base::{ErrorKind, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use std::path::Path;

/// How many looks a writer may overtake. Each look is short, so that one or two suffice.
const LOOKS: usize = 64;

/// Reads the MANIFEST that `CURRENT` names, beside a process that may be writing to the directory. Takes no lock.
///
/// # Errors
/// As [`read_manifest`](super::read_manifest).
pub fn read_manifest_beside(fs: &dyn Fs, dir: &Path) -> Result<(FileNumber, Replayed)> {
    let mut number = named_manifest(fs, dir)?;
    let mut looks = 1;
    loop {
        let e = match replay_manifest_beside(fs, dir, number) {
            Ok(replayed) => return Ok((number, replayed)),
            Err(e) => e,
        };
        let newer = named_manifest(fs, dir)?;
        if newer == number || looks == LOOKS {
            return Err(missing_manifest(fs, dir, number, e));
        }
        (number, looks) = (newer, looks + 1);
    }
}

/// Reads `MANIFEST-<number>` of `dir`, beside a process that may be appending to it. Takes no lock.
///
/// # Errors
/// As [`replay_manifest`].
pub fn replay_manifest_beside(fs: &dyn Fs, dir: &Path, number: FileNumber) -> Result<Replayed> {
    let path = dir.join(FileKind::Manifest(number).name());
    let mut looks = 1;
    loop {
        let mut replayed = replay_manifest(fs, dir, number)?;
        let Some(tail) = &replayed.dropped else { return Ok(replayed) };
        if is_locked(fs, dir) {
            replayed.dropped = None;
            return Ok(replayed);
        }
        let seen = tail.offset.saturating_add(tail.bytes);
        if looks == LOOKS || fs.metadata(&path)?.is_none_or(|entry| entry.len == seen) {
            return Ok(replayed);
        }
        looks += 1;
    }
}

/// Whether a process has the LOCK. A LOCK that cannot be looked at counts as free.
fn is_locked(fs: &dyn Fs, dir: &Path) -> bool {
    let looked = fs.check_unlocked(&dir.join(FileKind::Lock.name()));
    looked.is_err_and(|e| e.kind() == ErrorKind::Busy(BusyKind::Locked))
}
