//! Closing: stop background work, keep what only memory holds, let go of the lock.

use super::core::Core;
use ashlar_base::Result;
use ashlar_sync::Waited;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// See [`super::Db::close`].
    pub(super) fn close(self: &Arc<Self>) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        // Unlogged data exists only in memtables; logged data is in the log already.
        let flushed = if self.committer.has_unlogged() && self.health.check_writable().is_ok() {
            self.flush(&self.state().families.iter().map(|f| f.family.id()).collect::<Vec<_>>())
        } else {
            Ok(())
        };
        if self.closed.swap(true, Ordering::AcqRel) {
            return flushed;
        }
        // Jobs look at `closed` at their next step; those that wait for the clock are aborted by the executor, or end.
        loop {
            let seen = self.progress.seen();
            if self.state().jobs == 0 || self.progress.wait(seen, None) == Waited::Stuck {
                break;
            }
        }
        self.release_readers();
        drop(self.lock.lock().take());
        flushed
    }

    fn release_readers(&self) {
        let retired = std::mem::take(&mut self.state().retired);
        drop(retired);
    }
}
