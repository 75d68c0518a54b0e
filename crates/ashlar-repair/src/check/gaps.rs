//! Gaps in the WAL: what is missing, what follows, and how the check reports it.
//!
//! | gap | an open | the check |
//! |---|---|---|
//! | in bytes that are proved to have been durable | fails | damage |
//! | sequences go back: nothing is missing, the following batches reuse sequences of other writes | fails | damage |
//! | not proved durable, with batches after it | drops the gap and those batches | a hole |
//! | not proved durable, with no whole batch after it | drops it | a remark: a torn tail; for a repair, a hole |
//! | not proved durable, and a later WAL file continues exactly | continues there | a remark |
//!
//! Unsynced pages reach a disk in any order, so data after a gap proves nothing. Two facts prove durability: a synced
//! size in the MANIFEST, and a table with writes from after that WAL file, because older WAL files are durable before a
//! flush counts.

use ashlar_base::{FileNumber, SeqNum};
use ashlar_format::write_batch::BatchReader;
use ashlar_tree::check::{CheckReport, Damage, KEYS_NAMED, Risk};

/// What is known about a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The missing bytes had been durable.
    Proved,
    /// An open refuses the WAL file from there on.
    Refused,
    /// Nothing proves that the missing bytes had been durable.
    Unproved,
    /// The usual end of a recycled WAL file. Something is missing only if no later WAL file continues there.
    Recycled,
    /// A later WAL file continues there: nothing is missing.
    Closed,
}

impl Standing {
    /// The standing of a gap at `offset` of a file of which `synced` bytes had been durable.
    pub(super) fn at(offset: u64, synced: u64) -> Standing {
        if offset < synced { Standing::Proved } else { Standing::Unproved }
    }
}

/// A gap in the WAL.
#[derive(Debug)]
pub(super) struct Gap {
    log: FileNumber,
    standing: Standing,
    /// A whole batch follows the gap.
    followed: bool,
    damage: Damage,
}

impl Gap {
    /// A gap whose first missing write has the sequence `from`.
    pub(super) fn new(
        (log, offset): (FileNumber, Option<u64>),
        cause: String,
        standing: Standing,
        from: SeqNum,
    ) -> Gap {
        Gap { log, standing, followed: false, damage: Damage::of_log(log, offset, cause, from) }
    }

    /// Records that a later WAL file continues exactly where the file with the gap ends.
    pub(super) fn close(&mut self) {
        match self.standing {
            Standing::Proved | Standing::Refused | Standing::Closed => {}
            // The later file reuses the sequences of batches that followed the gap in a file between the two.
            Standing::Recycled => self.followed = false,
            Standing::Unproved => self.standing = Standing::Closed,
        }
    }

    /// Records a batch that follows the gap.
    pub(super) fn take(&mut self, batch: &BatchReader<'_>) {
        let Risk::Writes { to, last, behind, more, .. } = &mut self.damage.risk else { return };
        to.get_or_insert(batch.seq().before());
        let Some(next) = batch.seq().checked_add(u64::from(batch.count())).filter(|n| *n > batch.seq())
        else {
            return;
        };
        self.followed = true;
        *last = (*last).max(Some(next.before()));
        for key in batch.iter().filter_map(|op| op.ok()?.key()) {
            match behind.len() < KEYS_NAMED {
                true => behind.push(key.to_vec()),
                false => *more += 1,
            }
        }
    }

    /// Reports the gap. `flushed`: some family's tables hold writes from after all WAL files below this number. For a
    /// repair, a torn tail is listed among the holes: the repair removes the file, and the content of the tail is
    /// unknown. False: an open drops nothing here.
    pub(super) fn tell(mut self, flushed: FileNumber, repairing: bool, report: &mut CheckReport) -> bool {
        if self.standing == Standing::Recycled && !self.followed {
            return false;
        }
        if self.standing != Standing::Closed && self.log < flushed {
            self.standing = Standing::Proved;
        }
        let what = |end: &str| {
            let Damage { file, offset, cause, .. } = &self.damage;
            let place = offset.map(|offset| format!(" at {offset}")).unwrap_or_default();
            format!("{file} has a torn tail{place} ({cause}), {end}")
        };
        match self.standing {
            Standing::Proved | Standing::Refused => report.damages.push(self.damage),
            Standing::Closed => report.remarks.push(what("after which the next WAL file continues")),
            _ if !self.followed && !repairing => report.remarks.push(what("which an open drops")),
            _ => {
                let kind = if self.followed { "" } else { ", a torn tail" };
                self.damage.cause.push_str(kind);
                self.damage.cause.push_str(", and nothing proves that it had been durable");
                report.holes.push(self.damage);
            }
        }
        true
    }
}
