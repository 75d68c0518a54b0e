//! The value of a key whose newest entry is not the value itself: merge operands, blobs, entities.

use super::DbIter;
use crate::merge::Operands;
use crate::visibility::{EntryKind, entry_kind};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Entry, Result, Trailer, ValueType};
use std::borrow::Cow;

/// The entity with the shown value.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) stored: Vec<u8>,
    /// Merge operands were applied to its default column; the result is the shown value.
    pub(super) merged: bool,
}

impl DbIter {
    /// Fetches the value to which the merge's entry refers.
    #[cold]
    pub(super) fn unwrap_forward(&mut self) -> Result<()> {
        if let Some(entry) = self.merge.entry() {
            self.value = self.value_of(entry)?.into_owned();
            self.row = row_of(entry.key.trailer(), entry.value, false);
        }
        self.charge_copies();
        Ok(())
    }

    /// The value that an entry holds or refers to.
    fn value_of<'e>(&self, entry: Entry<'e>) -> Result<Cow<'e, [u8]>> {
        let (user_key, trailer) = entry.key.split();
        self.cx.state.from.version.blobs().value(
            user_key,
            trailer.value_type(),
            entry.value,
            &self.cx.state.how,
        )
    }

    /// Starts at the newest visible entry of `self.key`, a merge operand, and goes on to the entries to which it
    /// applies. Leaves the combined value in `self.value`.
    #[cold]
    pub(super) fn fold_forward(&mut self) -> Result<()> {
        let (mut operands, mut on_base) = (Operands::default(), false);
        while let Some(entry) = self.merge.entry() {
            let (user_key, trailer) = entry.key.split();
            if user_key != self.key.as_slice() || self.cx.mask.hides(user_key, trailer.seq()) {
                break;
            }
            match entry_kind(trailer, user_key).map_err(|e| self.at_path(e))? {
                EntryKind::Operand => operands.push(entry.value),
                EntryKind::Value | EntryKind::Wrapped => {
                    on_base = true;
                    break;
                }
                EntryKind::Deleted => break,
            }
            self.merge_next()?;
        }
        let (mut base, mut row) = (None, None);
        if let Some(entry) = self.merge.entry().filter(|_| on_base) {
            base = Some(self.value_of(entry)?);
            row = row_of(entry.key.trailer(), entry.value, true);
        }
        perf::add(Metric::InternalMergeCount, operands.len() as u64);
        let _step = perf::time(Metric::MergeOperatorTimeNanos);
        let from = &self.cx.state.from;
        let _charge = operands.charge(from.version.tables().budget());
        self.value = from.merger.fold(&self.key, base.as_deref(), operands.iter().rev())?;
        self.row = row;
        self.charge_copies();
        Ok(())
    }
}

fn row_of(trailer: Trailer, stored: &[u8], merged: bool) -> Option<Row> {
    (trailer.value_type() == Some(ValueType::Entity)).then(|| Row { stored: stored.to_vec(), merged })
}
