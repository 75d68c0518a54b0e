//! Flushes and syncs of the WAL: for callers that ask for one, and for writers whose records must be durable.

use super::committer::Committer;
use super::queue::Receipt;
use super::refusal::indeterminate;
use super::rounds::{Lead, Part};
use ashlar_base::Result;
use ashlar_base::stats::Distribution;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_sync::atomic::Ordering;

impl Committer {
    /// Hands all committed records that the WAL buffers to the operating system.
    pub(crate) fn flush(&self) -> Result<()> {
        self.check()?;
        let resumes = self.refusal.resumes();
        match self.current().wal.flush() {
            Err(e) if self.fail(&e, resumes) => Err(e),
            _ => Ok(()),
        }
    }

    /// Makes everything committed so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.check()?;
        let seq = self.visible();
        let set = self.current();
        self.sync_at(Receipt { last: seq, log_end: (set.wal.number(), set.wal.log().position()) })
    }

    /// Makes every closed WAL file durable. After a failure nothing more is committed: the data of those files, and
    /// everything written after them, can become durable only in tables.
    pub(crate) fn sync_closed(&self) -> Result<()> {
        self.noting_failure(|| self.wals.sync_closed())
    }

    /// Makes every closed WAL file and the current one durable, for a file that begins with synced records. After a failure as
    /// [`Committer::sync_closed`].
    pub(crate) fn sync_files(&self) -> Result<()> {
        let set = self.current();
        self.noting_failure(|| self.wals.sync(&set.wal, (set.wal.number(), set.wal.log().position())))
    }

    fn noting_failure(&self, sync: impl FnOnce() -> Result<u64>) -> Result<()> {
        let resumes = self.refusal.resumes();
        match sync() {
            Ok(syncs) => self.tally.synced(syncs),
            Err(e) if self.fail(&e, resumes) => return Err(e),
            Err(_) => {}
        }
        Ok(())
    }

    /// Returns when the record of `receipt` is durable.
    ///
    /// # Errors
    /// `Indeterminate`: the sync failed.
    pub(super) fn sync_at(&self, receipt: Receipt) -> Result<()> {
        let step = perf::time_of_waiting(Metric::WriteThreadWaitNanos);
        let part = self.syncs.join(receipt);
        drop(step);
        match part {
            Part::Served(outcome) => outcome,
            Part::Leads(lead) => {
                let begun = self.env.clock.now();
                let outcome = self.sync_for(&lead);
                lead.end(outcome.clone(), self.env.clock.now().saturating_sub(begun));
                outcome
            }
        }
    }

    /// Makes the records of a round durable.
    fn sync_for(&self, lead: &Lead<'_>) -> Result<()> {
        let Receipt { last, log_end } = *lead.furthest();
        let _time = self.tally.statistics().time(Distribution::WalFileSyncMicros);
        // Read when the round takes no more members: the records of all of them are older than a resume after it.
        let resumes = self.refusal.resumes();
        match self.wals.sync(&self.current().wal, log_end) {
            Ok(syncs) => self.tally.synced(syncs),
            Err(e) if self.fail(&e, resumes) => return Err(indeterminate(&e)),
            Err(_) => {}
        }
        self.durable.fetch_max(last.get(), Ordering::Release);
        Ok(())
    }
}
