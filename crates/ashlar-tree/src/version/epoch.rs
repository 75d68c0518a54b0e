//! Computes data that some writers leave out of the MANIFEST: sequence ranges (LevelDB), epoch numbers (RocksDB before
//! 7.10), and the timestamps of bounds (families with `persist_user_defined_timestamps=false`).
//!
//! Epoch numbers order the files of level 0. If any file of a family has none, all files of the family get new ones:
//! one number for each non-empty level from the bottom up, then one for each level-0 file from the oldest to the
//! newest.
//!
//! Source: RocksDB `db/version_builder.cc`, `db/column_family.cc` (`RecoverEpochNumbers`).

use super::FileMeta;
use super::levels::newest_first;
use ashlar_base::{FileNumber, InternalKey, InternalKeyBuf, Level, Order, SeqNum, Trailer};
use std::collections::BTreeMap;
use std::sync::Arc;

type Files = BTreeMap<FileNumber, (Level, Arc<FileMeta>)>;

/// Fills in all three; `last_seq` is the largest sequence the MANIFEST knows of.
pub(super) fn complete(files: &mut Files, order: &Order, last_seq: SeqNum) {
    for (_, file) in files.values_mut() {
        if !file.file.timestamps_persisted && order.timestamp_len() > 0 {
            let mut known = file.file.clone();
            known.smallest = with_timestamp(known.smallest.as_key(), order);
            known.largest = with_timestamp(known.largest.as_key(), order);
            *file = FileMeta::new(known);
        }
        if file.file.sequences_unknown {
            let mut known = file.file.clone();
            (known.smallest_seq, known.largest_seq, known.sequences_unknown) =
                (SeqNum::ZERO, last_seq, false);
            *file = FileMeta::new(known);
        }
    }
    if files.values().any(|(_, f)| f.file.epoch == 0) {
        number_anew(files);
    }
}

/// A bound with the timestamp that its table's reader gives to every key: the smallest one. The exclusive end of a range
/// tombstone gets the largest one, which is ordered before every version of its key.
fn with_timestamp(bound: InternalKey<'_>, order: &Order) -> InternalKeyBuf {
    let (user_key, trailer) = bound.split();
    let byte = if trailer == Trailer::RANGE_END { 0xff } else { 0 };
    let mut key = user_key.to_vec();
    key.resize(user_key.len() + order.timestamp_len(), byte);
    InternalKeyBuf::new(&key, trailer)
}

fn number_anew(files: &mut Files) {
    // Epochs that are there would take part in the order of level 0; the rule wants sequences alone.
    for (_, file) in files.values_mut() {
        set_epoch(file, 0);
    }
    let mut order: Vec<(Level, Arc<FileMeta>)> = files.values().cloned().collect();
    order.sort_by(|(la, a), (lb, b)| lb.cmp(la).then_with(|| newest_first(&b.file, &a.file)));
    let mut epoch = 0;
    let mut level_before = None;
    for (level, file) in order {
        if level == Level::ZERO || level_before != Some(level) {
            epoch += 1;
        }
        level_before = Some(level);
        if let Some((_, file)) = files.get_mut(&file.number()) {
            set_epoch(file, epoch);
        }
    }
}

fn set_epoch(file: &mut Arc<FileMeta>, epoch: u64) {
    if file.file.epoch != epoch {
        let mut numbered = file.file.clone();
        numbered.epoch = epoch;
        *file = FileMeta::new(numbered);
    }
}
