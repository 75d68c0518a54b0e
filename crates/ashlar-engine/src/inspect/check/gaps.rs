//! Gaps in the logs: what is missing there, what stands behind, and what it counts as.
//!
//! | a gap | an open | here |
//! |---|---|---|
//! | in what is proved to have been durable | fails | a damage |
//! | of sequences that go back: nothing is missing, what follows has sequences of other writes | fails | a damage |
//! | that nothing proves, writes behind it | drops it, and them | a hole |
//! | that nothing proves, no whole batch behind it | drops it | a remark: a torn tail; to a repair, a hole |
//! | that nothing proves, where a later log goes on exactly | goes on there | a remark |
//!
//! Pages that were not synced reach a disk in any order: what stands behind a gap proves nothing. A synced size in the
//! MANIFEST does, and a table with writes from behind the log: before a flush counts, older logs are durable.

use crate::open::key_of;
use ashlar_base::{FileNumber, SeqNum};
use ashlar_format::write_batch::BatchReader;
use ashlar_tree::check::{CheckReport, Damage, KEYS_NAMED, Risk};

/// What is known of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// What is missing had been durable.
    Proved,
    /// An open refuses the log from there on.
    Refused,
    /// Nothing tells whether it had been.
    Unproved,
    /// The usual end of a recycled log: nothing is missing, unless a later log does not go on there.
    Recycled,
    /// A later log goes on there: nothing is missing.
    Closed,
}

impl Standing {
    /// Of a gap at `offset` of a file of which `synced` bytes had been durable.
    pub(super) fn at(offset: u64, synced: u64) -> Standing {
        if offset < synced { Standing::Proved } else { Standing::Unproved }
    }
}

/// A gap.
#[derive(Debug)]
pub(super) struct Gap {
    log: FileNumber,
    standing: Standing,
    /// A whole batch stands behind it.
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

    /// A later log goes on exactly where the log with the gap ends.
    pub(super) fn close(&mut self) {
        match self.standing {
            Standing::Proved | Standing::Refused | Standing::Closed => {}
            // What stood behind it in a log between the two has lost its sequences to the later one.
            Standing::Recycled => self.followed = false,
            Standing::Unproved => self.standing = Standing::Closed,
        }
    }

    /// Takes in a batch that stands behind it.
    pub(super) fn take(&mut self, batch: &BatchReader<'_>) {
        let Risk::Writes { to, last, behind, more, .. } = &mut self.damage.risk else { return };
        to.get_or_insert(batch.seq().before());
        let Some(next) = batch.seq().checked_add(u64::from(batch.count())).filter(|n| *n > batch.seq())
        else {
            return;
        };
        self.followed = true;
        *last = (*last).max(Some(next.before()));
        for key in batch.iter().filter_map(|op| op.ok()).filter_map(|op| key_of(&op)) {
            match behind.len() < KEYS_NAMED {
                true => behind.push(key.to_vec()),
                false => *more += 1,
            }
        }
    }

    /// Tells it. `flushed`: some family's tables hold writes from behind all logs below. A repair lists torn tails among the
    /// holes: it removes the log, and what the tail held is in doubt.
    pub(super) fn tell(mut self, flushed: FileNumber, repairing: bool, report: &mut CheckReport) {
        if self.standing == Standing::Recycled && !self.followed {
            return;
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
            Standing::Closed => report.remarks.push(what("behind which the next log goes on")),
            _ if !self.followed && !repairing => report.remarks.push(what("which an open drops")),
            _ => {
                let kind = if self.followed { "" } else { ", a torn tail" };
                self.damage.cause.push_str(kind);
                self.damage.cause.push_str(", and nothing proves that it had been durable");
                report.holes.push(self.damage);
            }
        }
    }
}
