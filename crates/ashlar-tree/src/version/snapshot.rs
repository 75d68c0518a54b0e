//! The start of every MANIFEST: the whole state as version edits.
//!
//! The order is: the database id; the tracked WAL files; then for each family, in the order of ids, one edit with
//! comparator and name, and one with files, cursors, blob files, log number and last sequence number.
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
        records.push(body(db, family, last_seq));
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

fn body(db: &DbFacts, family: &FamilyState, last_seq: SeqNum) -> VersionEdit {
    let (carried, blobs) = (&family.carried, family.version.blobs().files());
    let min_log = (family.id == FamilyId::DEFAULT && db.min_log_to_keep.0 != 0).then_some(db.min_log_to_keep);
    VersionEdit {
        family: family.id,
        // The old place of the smallest log number is left empty: it may be outdated, and `body` has its own.
        added: family
            .version
            .files()
            .map(|(level, f)| (level, NewFile { min_log_to_keep: None, ..f.file.clone() }))
            .collect(),
        compact_cursors: carried.cursors.iter().map(|(level, key)| (*level, key.clone())).collect(),
        blob_added: blobs.values().map(|b| b.added.clone()).collect(),
        blob_garbage: blobs.values().filter_map(|b| b.garbage.clone()).collect(),
        log_number: Some(family.log_number),
        min_log_to_keep: min_log,
        full_history_ts_low: carried.full_history_ts_low.clone(),
        last_seq: Some(last_seq),
        ..VersionEdit::default()
    }
}
