//! The numbers of files that are being written and that no durable version edit names yet.
//!
//! A file whose number is at or above the smallest pending one is never obsolete, because a directory scan may see the
//! file before the MANIFEST names it.

use ashlar_base::FileNumber;
use ashlar_sync::{Mutex, Rank};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The set of pending numbers.
pub struct PendingOutputs {
    // A leaf: nothing is locked under it. Ranked behind everything that may reserve a number.
    numbers: Mutex<BTreeSet<FileNumber>>,
}

impl PendingOutputs {
    /// Nothing pending.
    pub fn new() -> Arc<PendingOutputs> {
        Arc::new(PendingOutputs { numbers: Mutex::new(Rank::Leaf, BTreeSet::new()) })
    }

    /// Takes a number from `allocate` (which must not lock) and marks it as pending in one step, so that a scan in
    /// between cannot miss it. It stays pending until the guard is dropped, which must be after the edit that names
    /// the file is durable, or after the file is gone.
    pub fn reserve(self: &Arc<Self>, allocate: impl FnOnce() -> FileNumber) -> PendingFile {
        let mut numbers = self.numbers.lock();
        let number = allocate();
        numbers.insert(number);
        drop(numbers);
        PendingFile { number, outputs: Arc::clone(self) }
    }

    /// The smallest pending number. To be read *before* the directory is listed.
    pub fn smallest(&self) -> Option<FileNumber> {
        self.numbers.lock().first().copied()
    }
}

impl fmt::Debug for PendingOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.numbers.lock().iter()).finish()
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct PendingFile {
    number: FileNumber,
    outputs: Arc<PendingOutputs>,
}

impl PendingFile {
    /// Its number.
    pub fn number(&self) -> FileNumber {
        self.number
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        self.outputs.numbers.lock().remove(&self.number);
    }
}

/// Gives out a number for the next output and holds it as pending. Shared by all that one job writes.
pub type Numbers = Arc<dyn Fn() -> PendingFile + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_held_until_its_guard_goes() {
        let pending = PendingOutputs::new();
        assert_eq!(pending.smallest(), None);
        let a = pending.reserve(|| FileNumber(7));
        let b = pending.reserve(|| FileNumber(8));
        assert_eq!((a.number(), b.number()), (FileNumber(7), FileNumber(8)));
        assert_eq!(pending.smallest(), Some(FileNumber(7)));
        drop(a);
        assert_eq!(pending.smallest(), Some(FileNumber(8)));
        drop(b);
        assert_eq!(pending.smallest(), None);
    }
}
