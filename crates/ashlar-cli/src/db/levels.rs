//! reduce_levels, change_compaction_style: the tables of a family in other levels. update_manifest, which is refused.
//!
//! 1. The engine moves the tables. When a step fails, every entry is still in the database.
//! 2. The last step opens the database with the new setting, so that the OPTIONS file has it. Without that step the next open
//!    would have the old setting, and its compactions could move the tables back.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (by its output).

use super::Target;
use super::stored::Stored;
use crate::Done;
use crate::outcome::Outcome;
use ashlardb::{CompactFilesOptions, CompactRangeOptions, CompactionStyle, Family, Level};
use std::io::Write;

/// Moves the tables of the family above level `new`, if there are tables below.
pub(super) fn reduce(target: &Target, new: u8, print_old: bool, out: &mut dyn Write) -> Done {
    let used = {
        let family = Stored::read(target)?.family(target.common.family_name())?;
        family.version.files().map(|(level, _)| level.0 + 1).max().unwrap_or(0)
    };
    if print_old {
        writeln!(out, "The old number of levels in use is {used}")?;
    }
    if used <= new {
        return Ok(());
    }
    writeln!(out, "Compacting the db...")?;
    let db = target.open()?;
    let to = Level(new.saturating_sub(1));
    target.family(&db)?.compact_range(.., CompactRangeOptions::new().exclusive(true).target_level(to))?;
    db.close()?;
    remember(target, &format!("num_levels={new}"))
}

/// Puts all entries of a leveled family into one table, which is one sorted run of a universal tree. The table is in the
/// last level: the engine moves no table to level 0, and a universal tree has runs in any level.
pub(super) fn to_universal(target: &Target, out: &mut dyn Write) -> Done {
    let db = target.open()?;
    let family = target.family(&db)?;
    if family.options().compaction.style != CompactionStyle::Level {
        let directory = target.directory.display();
        return Err(Outcome::Failed(format!(
            "{directory}: family {:?} has another style than leveled compaction; nothing was changed",
            family.name()
        )));
    }
    writeln!(out, "files per level before compaction: {}", per_level(&family)?)?;
    family.flush()?;
    db.wait_for_background()?;
    let numbers: Vec<_> = family.live_files()?.iter().map(|table| table.number).collect();
    let last = family.options().compaction.num_levels.saturating_sub(1);
    let last = Level(u8::try_from(last).unwrap_or(u8::MAX));
    if !numbers.is_empty() {
        let whole = CompactFilesOptions::new().max_subcompactions(1).file_bytes(u64::MAX);
        family.compact_files_with(&numbers, last, whole)?;
    }
    let shape = per_level(&family)?;
    if family.live_files()?.len() > 1 {
        return Err(Outcome::Failed(format!("the family has more than one table, {shape}; try again")));
    }
    writeln!(out, "files per level after compaction: {shape}")?;
    db.close()?;
    remember(target, "compaction_style=kCompactionStyleUniversal")
}

/// The number of tables in each level.
fn per_level(family: &Family) -> Result<String, Outcome> {
    let mut counts = vec![0_u64; family.options().compaction.num_levels];
    for table in family.live_files()? {
        if let Some(count) = counts.get_mut(usize::from(table.level.0)) {
            *count += 1;
        }
    }
    Ok(counts.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
}

/// Opens the family with a setting, which the OPTIONS file then has.
fn remember(target: &Target, setting: &str) -> Done {
    let name = target.common.family_name();
    let builder = target.builder().create(false).family(name, |family| family.options(setting));
    Ok(builder.open()?.close()?)
}
