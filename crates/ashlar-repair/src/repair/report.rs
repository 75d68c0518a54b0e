//! The report of a repair.

use ashlar_base::FileNumber;
use ashlar_recovery::RecoveryReport;
use ashlar_tree::check::{CheckReport, Damage, Risk};
use std::collections::BTreeSet;
use std::fmt;

/// What a repair, or the quarantine of one file, kept and lost. Prints as a few lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The MANIFEST that was written; for a quarantine, the one in use.
    pub manifest: FileNumber,
    /// Everything that was damaged. What `risk` names is lost: in a WAL file the writes, in tables and blob files the
    /// newest versions of the keys.
    pub losses: Vec<Damage>,
    /// Further remarks.
    pub remarks: Vec<String>,
    /// Intact tables that stay as they are.
    pub tables_kept: u64,
    /// The names of tables whose readable entries were rewritten.
    pub rewritten: Vec<String>,
    /// Entries of tables that were read.
    pub entries: u64,
    /// WAL batches that were written to tables.
    pub log_batches: u64,
    /// Files that were moved to `lost/`, by their names there.
    pub moved: Vec<String>,
    /// No readable MANIFEST was left: the state is made of the tables alone, and may differ from the former one.
    pub rebuilt: bool,
    /// Made-up names of families whose own names are lost, with the end of the MANIFEST that created them. Their data is
    /// kept.
    pub renamed: Vec<String>,
    /// Files to be moved once the new MANIFEST is in force.
    pub(super) to_move: BTreeSet<String>,
    /// Blob files into which a reference led wrongly, to be moved as well if no table needs them.
    pub(super) strange: BTreeSet<FileNumber>,
}

impl RepairReport {
    /// True if no written data is lost, and reads answer what they answered before. False after a rebuild without a
    /// MANIFEST: deleted keys and replaced values may be back, and entries may be in another family. False when a family
    /// got a made-up name.
    pub fn is_lossless(&self) -> bool {
        !self.rebuilt && self.renamed.is_empty() && self.loses_nothing()
    }

    fn loses_nothing(&self) -> bool {
        self.losses.iter().all(|loss| loss.risk == Risk::Nothing)
    }

    /// The result in a few words.
    fn verdict(&self) -> &'static str {
        match (self.rebuilt, self.losses.is_empty(), self.loses_nothing()) {
            (true, _, true) => "rebuilt without a MANIFEST: see the remarks",
            (true, _, false) => "rebuilt without a MANIFEST: see the remarks; losses are listed below",
            (false, true, _) => "nothing was damaged",
            (false, false, true) if !self.renamed.is_empty() => {
                "nothing is lost but names of families, listed below"
            }
            (false, false, true) => "nothing is lost",
            (false, false, false) => "losses are listed below",
        }
    }

    /// Records a file that is damaged or missing.
    pub(super) fn lose(&mut self, loss: Damage) {
        self.to_move.insert(loss.file.clone());
        self.losses.push(loss);
    }

    /// Records what the check of the WAL files found. Batches after damage or a gap are kept, unless their sequences go
    /// back.
    pub(super) fn take_logs(&mut self, checked: CheckReport) {
        for mut damage in checked.damages.into_iter().chain(checked.holes) {
            if !damage.risk.goes_back()
                && let Risk::Writes { last, behind, more, .. } = &mut damage.risk
            {
                (*last, *behind, *more) = (None, Vec::new(), 0);
            }
            self.lose(damage);
        }
        self.remarks.extend(checked.remarks);
    }

    /// Keeps WAL files that replay did not use completely, even if no data in them is lost.
    pub(super) fn keep_logs(&mut self, recovery: &RecoveryReport) {
        for range in &recovery.dropped {
            self.to_move.insert(range.file.clone());
        }
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "MANIFEST-{}: {} tables kept, {} rewritten, {} entries, {} batches of WAL files; {}",
            self.manifest,
            self.tables_kept,
            self.rewritten.len(),
            self.entries,
            self.log_batches,
            self.verdict()
        )?;
        for loss in &self.losses {
            writeln!(f, "loss: {loss}")?;
        }
        for name in &self.rewritten {
            writeln!(f, "rewritten: {name}")?;
        }
        for name in &self.moved {
            writeln!(f, "moved to lost/: {name}")?;
        }
        for remark in &self.remarks {
            writeln!(f, "remark: {remark}")?;
        }
        Ok(())
    }
}
