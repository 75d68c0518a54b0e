//! The start of every MANIFEST: the whole state as version edits.
//!
//! The order is: the database id; the tracked WAL files; then each family, in the order of ids. A family has one edit with
//! comparator and name, and one with files, cursors, blob files, log number and last sequence number. Files whose keys would make
//! that record longer than [`RECORD_BYTES`] are in further edits, so no record grows with the database.
//!
//! Unknown tags of edits are left out, and the report of the open names them. An ignorable tag may be lost without
//! harm: a RocksDB that does not know the tag loses it with its next MANIFEST too. Copying it could be wrong, because a
//! later edit may have made the tag void, and this engine cannot see that. Unknown fields of a file are copied, because
//! they are valid as long as the file.
//!
//! Source: RocksDB `db/version_set.cc` (`WriteCurrentStateToManifest`).

use super::{DbFacts, FamilyState};
use ashlar_base::{FamilyId, SeqNum};
use ashlar_format::version_edit::{NewFile, VersionEdit, WalAddition};
use ashlar_options::FormatLevel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// About the most bytes of the keys of files in one record.
const RECORD_BYTES: usize = 1 << 20;

/// The state as edits, one record each; with the id of the database if `has_id`.
pub(super) fn snapshot(
    db: &DbFacts,
    families: &BTreeMap<FamilyId, Arc<FamilyState>>,
    last_seq: SeqNum,
    (level, has_id): (FormatLevel, bool),
) -> Vec<VersionEdit> {
    let mut records = Vec::new();
    if has_id && db.db_id.is_some() {
        // Old readers skip the tag, so it is written at every level.
        records.push(VersionEdit { db_id: db.db_id.clone(), ..VersionEdit::default() });
    }
    for (&number, &synced_size) in &db.tracked_wals {
        let wal = WalAddition { number, synced_size };
        records.push(VersionEdit { wal_added: vec![wal], ..VersionEdit::default() });
    }
    for family in families.values() {
        records.push(head(family, level));
        records.extend(bodies(db, family, last_seq));
    }
    records
}

fn head(family: &FamilyState, level: FormatLevel) -> VersionEdit {
    let default_udt = (level >= FormatLevel::V9_11).then_some(true);
    VersionEdit {
        family: family.id,
        comparator: Some(family.comparator.clone()),
        persist_udt: family.carried.persist_udt.or(default_udt),
        family_add: (family.id != FamilyId::DEFAULT).then(|| family.name.clone().into_bytes()),
        ..VersionEdit::default()
    }
}

fn bodies(db: &DbFacts, family: &FamilyState, last_seq: SeqNum) -> Vec<VersionEdit> {
    let (carried, blobs) = (&family.carried, family.version.blobs().files());
    let min_log = (family.id == FamilyId::DEFAULT && db.min_log_to_keep.0 != 0).then_some(db.min_log_to_keep);
    let first = VersionEdit {
        family: family.id,
        compact_cursors: carried.cursors.iter().map(|(level, key)| (*level, key.clone())).collect(),
        blob_added: blobs.values().map(|b| b.added.clone()).collect(),
        blob_garbage: blobs.values().filter_map(|b| b.garbage.clone()).collect(),
        log_number: Some(family.log_number),
        min_log_to_keep: min_log,
        full_history_ts_low: carried.full_history_ts_low.clone(),
        last_seq: Some(last_seq),
        ..VersionEdit::default()
    };
    let (mut edits, mut current, mut bytes) = (Vec::new(), first, 0);
    for (level, file) in family.version.files() {
        if bytes >= RECORD_BYTES {
            let next = VersionEdit { last_seq: Some(last_seq), ..VersionEdit::of(family.id) };
            edits.push(std::mem::replace(&mut current, next));
            bytes = 0;
        }
        bytes += file.smallest().encoded().len() + file.largest().encoded().len();
        // The old place of the smallest log number is left empty: it may be outdated, and the first edit has its own.
        current.added.push((level, NewFile { min_log_to_keep: None, ..file.file.clone() }));
    }
    edits.push(current);
    edits
}
