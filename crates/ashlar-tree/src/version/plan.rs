//! From a committer's request to records and the state behind them. Pure: nothing is written, nothing is installed.
//!
//! 1. Every record except those of a snapshot carries the next file number and the last sequence number so far, and, unless it
//!    adds or drops a family, previous log 0.
//! 2. A commit of several records is an atomic group: recovery applies all of them or none. So is a new family that begins
//!    with tables: its group is the record that adds it and the one with the tables.
//! 3. Files without an epoch number get one: outputs of a compaction the smallest of its inputs, other files the
//!    family's next.
//! 4. An edit for a dropped family keeps only its parts about the whole database. The job that made the edit could not
//!    know about the drop, and the other requests of the same commit stay valid.
//! 5. When the smallest needed WAL number moves past WAL files that another program's MANIFEST tracks, a record removes
//!    these from the tracking.
//!
//! Source: RocksDB `db/version_set.cc` (`LogAndApplyHelper`, `ProcessManifestWrites`).

use super::builder::TreeBuilder;
use super::{DbFacts, FamilyState, Tables, Version};
use ashlar_base::{Error, FamilyId, FileNumber, Level, Result, SeqNum};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// The whole state in the MANIFEST.
#[derive(Clone, Default)]
pub(super) struct State {
    pub db: DbFacts,
    pub families: BTreeMap<FamilyId, Arc<FamilyState>>,
}

/// The request for a new family.
pub(super) struct NewFamily {
    pub name: String,
    pub log_number: FileNumber,
    pub(super) levels: usize,
    pub(super) tables: Arc<Tables>,
    /// The tables that the family begins with.
    pub(super) files: Vec<(Level, NewFile)>,
}

/// What a committer wants.
pub(super) enum CommitRequest {
    Edits(Vec<VersionEdit>),
    Create(Vec<NewFamily>),
    Drop(FamilyId),
}

/// The records of one commit and the families whose state they change.
pub(super) struct Plan {
    pub records: Vec<VersionEdit>,
    pub(super) touched: BTreeSet<FamilyId>,
}

/// Applies `request` to `state`, which is spoilt when this fails.
pub(super) fn plan(state: &mut State, request: CommitRequest) -> Result<Plan> {
    match request {
        CommitRequest::Edits(edits) => plan_edits(state, edits),
        CommitRequest::Create(families) => plan_creations(state, families),
        CommitRequest::Drop(id) => plan_drop(state, id),
    }
}

fn plan_edits(state: &mut State, edits: Vec<VersionEdit>) -> Result<Plan> {
    let mut edits: Vec<_> = edits.into_iter().filter_map(|edit| unless_dropped(state, edit)).collect();
    let mut touched = BTreeSet::new();
    let mut builders: BTreeMap<FamilyId, TreeBuilder> = BTreeMap::new();
    for edit in &mut edits {
        if edit.family_add.is_some() || edit.family_drop {
            return Err(Error::invalid("families are created and dropped by commits of their own"));
        }
        let family = state
            .families
            .get_mut(&edit.family)
            .ok_or_else(|| Error::invalid(format!("family {} does not exist", edit.family.0)))?;
        let family = Arc::make_mut(family);
        let tables = !edit.added.is_empty() || !edit.deleted.is_empty();
        if tables || !edit.blob_added.is_empty() || !edit.blob_garbage.is_empty() {
            let builder =
                builders.entry(edit.family).or_insert_with(|| TreeBuilder::from_version(&family.version));
            number_epochs(edit, builder, &mut family.next_epoch);
            builder.apply(edit)?;
        }
        if let Some(n) = edit.log_number {
            family.log_number = family.log_number.max(n);
        }
        family.carried.absorb(edit);
        edit.prev_log_number = Some(FileNumber(0));
        state.db.absorb(edit);
        touched.insert(edit.family);
    }
    for (id, builder) in builders {
        if let Some(family) = state.families.get_mut(&id) {
            let family = Arc::make_mut(family);
            let version = builder.finish(family.version.levels.len(), family.version.tables())?;
            family.version = Arc::new(version);
        }
    }
    edits.extend(forget_tracked_wals(&mut state.db));
    group(&mut edits);
    Ok(Plan { records: edits, touched })
}

/// The edit. For a dropped family, only its parts about the whole database.
fn unless_dropped(state: &State, edit: VersionEdit) -> Option<VersionEdit> {
    let dropped = !state.families.contains_key(&edit.family) && edit.family <= state.db.max_family;
    if !dropped {
        return Some(edit);
    }
    let min_log_to_keep = Some(edit.min_log_to_keep?);
    Some(VersionEdit { min_log_to_keep, ..VersionEdit::default() })
}

fn number_epochs(edit: &mut VersionEdit, builder: &TreeBuilder, next: &mut u64) {
    let inputs = builder.min_epoch_of(edit.deleted.iter().map(|(_, n)| *n));
    for (_, file) in &mut edit.added {
        if file.epoch == 0 {
            file.epoch = inputs.filter(|e| *e != 0).unwrap_or_else(|| {
                let epoch = *next;
                *next += 1;
                epoch
            });
        }
        *next = (*next).max(file.epoch.saturating_add(1));
    }
}

fn forget_tracked_wals(db: &mut DbFacts) -> Option<VersionEdit> {
    let below = db.min_log_to_keep;
    db.tracked_wals.first_key_value().filter(|(n, _)| **n < below)?;
    let edit = VersionEdit {
        wal_deleted: Some(below),
        prev_log_number: Some(FileNumber(0)),
        ..VersionEdit::default()
    };
    db.absorb(&edit);
    Some(edit)
}

fn group(edits: &mut [VersionEdit]) {
    if edits.len() > 1 {
        for (remaining, edit) in (0u32..).zip(edits.iter_mut().rev()) {
            edit.atomic_group = Some(remaining);
        }
    }
}

fn plan_creations(state: &mut State, families: Vec<NewFamily>) -> Result<Plan> {
    let mut names: HashSet<&str> = state.families.values().map(|family| &*family.name).collect();
    for new in &families {
        if !names.insert(&new.name) {
            return Err(Error::invalid(format!("column family {:?} exists already", new.name)));
        }
    }
    let mut all = Plan { records: Vec::new(), touched: BTreeSet::new() };
    for new in families {
        let Plan { records, touched } = plan_create(state, new)?;
        all.records.extend(records);
        all.touched.extend(touched);
    }
    Ok(all)
}

fn plan_create(state: &mut State, new: NewFamily) -> Result<Plan> {
    if new.name.is_empty() {
        return Err(Error::invalid("a family needs a name"));
    }
    let id = FamilyId(
        state
            .db
            .max_family
            .0
            .checked_add(1)
            .ok_or_else(|| Error::not_supported("more than 2^32 families"))?,
    );
    let comparator = new.tables.order().name().to_string();
    let edit = VersionEdit {
        family: id,
        family_add: Some(new.name.clone().into_bytes()),
        comparator: Some(comparator.clone()),
        log_number: Some(new.log_number),
        ..VersionEdit::default()
    };
    state.db.absorb(&edit);
    let mut family = FamilyState {
        id,
        name: new.name,
        comparator,
        log_number: new.log_number,
        version: Arc::new(Version::empty(new.levels, new.tables)),
        carried: super::Carried::default(),
        next_epoch: 1,
    };
    let mut records = vec![edit];
    if !new.files.is_empty() {
        // RocksDB ignores tables in the record that adds a family.
        records.push(first_tables(&mut family, new.files)?);
        group(&mut records);
    }
    state.families.insert(id, Arc::new(family));
    Ok(Plan { records, touched: BTreeSet::from([id]) })
}

/// The edit that gives a new family its first tables.
fn first_tables(family: &mut FamilyState, files: Vec<(Level, NewFile)>) -> Result<VersionEdit> {
    let mut edit = VersionEdit { prev_log_number: Some(FileNumber(0)), ..VersionEdit::of(family.id) };
    edit.added = files;
    let mut builder = TreeBuilder::from_version(&family.version);
    number_epochs(&mut edit, &builder, &mut family.next_epoch);
    builder.apply(&edit)?;
    family.version = Arc::new(builder.finish(family.version.levels.len(), family.version.tables())?);
    Ok(edit)
}

fn plan_drop(state: &mut State, id: FamilyId) -> Result<Plan> {
    if id == FamilyId::DEFAULT {
        return Err(Error::invalid("the default family cannot be dropped"));
    }
    if state.families.remove(&id).is_none() {
        return Err(Error::invalid(format!("family {} does not exist", id.0)));
    }
    let edit = VersionEdit {
        family: id,
        family_drop: true,
        max_family: Some(state.db.max_family),
        ..VersionEdit::default()
    };
    let mut records = vec![edit];
    // WAL files that only the dropped family needed are obsolete, and may go in any order. A replay for transactions must not
    // find some of them: one may prepare what another one decides.
    let needed = state.families.values().map(|family| family.log_number).min();
    if let Some(needed) = needed.filter(|needed| *needed > state.db.min_log_to_keep) {
        let edit = VersionEdit { min_log_to_keep: Some(needed), ..VersionEdit::default() };
        state.db.absorb(&edit);
        records.push(edit);
    }
    Ok(Plan { records, touched: BTreeSet::new() })
}

/// Fills in the fields that every record has, and answers the last sequence number behind all of them.
///
/// A record counts the tables of the records up to itself. A crash may cut the records of one commit between two of them:
/// then the MANIFEST does not name the sequence number of a table that it does not name.
pub(super) fn stamp(records: &mut [VersionEdit], next_file: FileNumber, last_seq: SeqNum) -> SeqNum {
    let mut last = last_seq;
    for edit in records {
        last = edit.added.iter().map(|(_, file)| file.largest_seq).fold(last, SeqNum::max);
        edit.next_file = Some(next_file);
        edit.last_seq = Some(last);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{InternalKeyBuf, Level, Trailer, ValueType};
    use ashlar_format::version_edit::NewFile;

    fn with_table(seq: u64) -> VersionEdit {
        let seq = SeqNum::new(seq).unwrap();
        let key = InternalKeyBuf::new(b"k", Trailer::new(seq, ValueType::Put));
        let mut edit = VersionEdit::of(FamilyId::DEFAULT);
        edit.add_file(Level::ZERO, NewFile::new(FileNumber(9), 1000, (key.clone(), key), (seq, seq)));
        edit
    }

    #[test]
    fn a_new_family_with_tables_is_one_group() {
        let env = ashlar_env::Env::mem();
        let open = super::super::OpenTables::new(ashlar_cache::FramePool::new(1 << 20));
        let new = |files| NewFamily {
            name: "f".to_owned(),
            log_number: FileNumber(4),
            levels: 7,
            tables: Tables::new(env.clone(), "/db".into(), Arc::clone(&open), ashlar_base::Order::Bytewise),
            files,
        };
        let mut state = State::default();
        let plan = plan_create(&mut state, new(with_table(6).added)).unwrap();
        let groups: Vec<_> = plan.records.iter().map(|edit| edit.atomic_group).collect();
        assert_eq!(groups, [Some(1), Some(0)]);
        assert!(plan.records[0].family_add.is_some() && plan.records[0].added.is_empty());
        let family = &state.families[&FamilyId(1)];
        assert_eq!((family.version.file_count(), family.next_epoch), (1, 2));
        // Without tables it is one plain record; a tree that breaks a rule is no family.
        let mut state = State::default();
        let plan = plan_create(&mut state, new(Vec::new())).unwrap();
        assert_eq!((plan.records.len(), plan.records[0].atomic_group), (1, None));
        let mut twice = with_table(6).added;
        twice.extend(twice.clone());
        assert!(plan_create(&mut State::default(), new(twice)).is_err());
    }

    #[test]
    fn a_record_counts_no_table_of_a_later_record() {
        let seq = |n| SeqNum::new(n).unwrap();
        let mut records = [with_table(6), VersionEdit::default(), with_table(9), with_table(8)];
        let last = stamp(&mut records, FileNumber(10), seq(7));
        let stamped: Vec<_> = records.iter().filter_map(|edit| edit.last_seq).collect();
        assert_eq!((stamped, last), ([7, 7, 9, 9].map(seq).to_vec(), seq(9)));
    }
}
