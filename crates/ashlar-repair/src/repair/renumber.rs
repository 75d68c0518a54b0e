//! Gives up file numbers so near the maximum that no new file could be created: the directory goes on with lower
//! numbers.
//!
//! 1. A file with such a number moves to `lost/` after its content was taken over: a WAL file is replayed, a table that
//!    the MANIFEST names is copied.
//! 2. If only the MANIFEST's next file number or WAL number is too high, the existing files are unaffected.
//! 3. A last sequence that leaves no room for writes counts only as far as tables and WAL files confirm it.

use super::found::Found;
use super::report::RepairReport;
use ashlar_base::{FileNumber, SeqNum};
use ashlar_tree::version::Replayed;

/// The number of sequences that must be left for writes.
const ROOM: u64 = 1 << 40;

impl Found {
    /// See the module. Call before any number is given out.
    pub(super) fn renumber(&mut self, replayed: Option<&mut Replayed>, report: &mut RepairReport) {
        report.to_move.extend(self.beyond.drain(..));
        let Some(replayed) = replayed else { return };
        if replayed.last_seq.get() > SeqNum::MAX.get() - ROOM {
            let last = replayed.last_seq;
            report.remarks.push(format!(
                "the MANIFEST has the last sequence {last}; the largest sequence in the files is used instead"
            ));
            let families = replayed.families.values();
            replayed.last_seq =
                families.filter_map(|family| family.tree.largest_seq(SeqNum::MAX)).max().unwrap_or_default();
        }
        let recorded = replayed.largest_recorded();
        if recorded <= FileNumber::HIGHEST {
            return;
        }
        report.remarks.push(format!("the MANIFEST has file number {recorded}; new files get lower numbers"));
        let next = FileNumber(self.largest.0 + 1);
        let settle = |number: &mut FileNumber| {
            if *number > FileNumber::HIGHEST {
                *number = next;
            }
        };
        settle(&mut replayed.next_file);
        settle(&mut replayed.db.prev_log);
        settle(&mut replayed.db.min_log_to_keep);
        replayed.families.values_mut().for_each(|family| settle(&mut family.log_number));
    }
}
