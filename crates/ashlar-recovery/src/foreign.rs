//! Data of other programs that the level's RocksDB, or this engine, does not serve: lines for the report of an open.
//!
//! 1. Only the footer of a table names its format. An open reads the footers of a few tables, the newest and the oldest
//!    of each family, so that it stays fast with many tables; `ashlar_repair::check_level` reads all.
//! 2. A table that cannot be read here is not reported: reads of its keys get the error.

use ashlar_options::FormatLevel;
use ashlar_tree::version::{FamilyState, Replayed};
use std::collections::BTreeMap;

/// The number of tables read per family, from each end of the file numbers.
const LOOKED_AT: usize = 16;

/// A line for each unserved feature.
pub(super) fn foreign(replayed: &Replayed, level: FormatLevel, states: &[FamilyState]) -> Vec<String> {
    let mut list = Vec::new();
    for tag in &replayed.unknown_tags {
        list.push(format!("MANIFEST tag {tag} is unknown and was skipped; it is not written again"));
    }
    if !replayed.db.tracked_wals.is_empty() {
        list.push("the MANIFEST tracks WAL files; new ones will not be tracked".to_string());
    }
    for state in states {
        let leveldb = replayed.families.get(&state.id).map_or(0, |f| f.tree.count_of_unknown_sequences());
        if leveldb != 0 && level >= FormatLevel::V11 {
            list.push(format!(
                "family {:?} has {leveldb} LevelDB tables, which RocksDB 11 cannot read; compact it",
                state.name
            ));
        }
        list.extend(table_formats(state, level));
    }
    list
}

/// Table formats above the level, among the tables that are read.
fn table_formats(state: &FamilyState, level: FormatLevel) -> Vec<String> {
    let highest = level.max_table_version();
    if highest >= FormatLevel::V11.max_table_version() {
        return Vec::new();
    }
    let mut files: Vec<_> = state.version.files().map(|(_, file)| file).collect();
    files.sort_unstable_by_key(|file| file.number());
    let count = files.len();
    if count > 2 * LOOKED_AT {
        files.drain(LOOKED_AT..count - LOOKED_AT);
    }
    let mut above = BTreeMap::<u32, Vec<u64>>::new();
    for file in &files {
        if let Ok(footer) = state.version.tables().footer(&file.file)
            && footer.version > highest
        {
            above.entry(footer.version).or_default().push(file.number().0);
        }
    }
    let line = |(version, numbers): (u32, Vec<u64>)| {
        let first = numbers.first().copied().unwrap_or_default();
        let (found, looked_at) = (numbers.len(), files.len());
        format!(
            "family {:?} has tables of format {version}, above level {level}: {found} of {looked_at} looked at, first \
             {first}; rewrite them with `ashlar db rewrite --level`",
            state.name
        )
    };
    above.into_iter().map(line).collect()
}
