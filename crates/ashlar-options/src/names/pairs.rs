//! Combinations of settings with which RocksDB opens no database. RocksDB also reads the OPTIONS file that the engine
//! writes, so a caller must not create such a combination.
//!
//! 1. A combination that existed before the caller's change is accepted, because the content of an OPTIONS file never
//!    fails an open.
//! 2. Most of these names have no effect here. Their values are the kept texts, or else RocksDB's defaults.
//!
//! Source: RocksDB `DBImpl::ValidateOptions`, `ColumnFamilyData::ValidateOptions`,
//! `BlockBasedTableFactory::ValidateOptions`.

use super::apply::find;
use super::row::Group;
use super::value::Value;
use crate::family::BLOCK_BASED;
use crate::{DbOptions, FamilyOptions, KeptTexts};
use ashlar_base::{Error, Result};
use ashlar_format::compress::Compression;

/// The settings of a database and of one of its families.
#[derive(Clone, Copy, Debug)]
pub struct Together<'o> {
    /// The settings of the database.
    pub db: &'o DbOptions,
    /// The settings of the family.
    pub family: &'o FamilyOptions,
}

/// A setting of a combination, with the value that it has there.
type Member = (Group, &'static str, bool);

/// Flags that exclude each other.
static FLAGS: [[Member; 2]; 5] = [
    [(Group::Database, "enable_pipelined_write", true), (Group::Database, "atomic_flush", true)],
    [(Group::Database, "unordered_write", true), (Group::Database, "enable_pipelined_write", true)],
    [(Group::Database, "unordered_write", true), (Group::Database, "allow_concurrent_memtable_write", false)],
    [
        (Group::Family, "inplace_update_support", true),
        (Group::Database, "allow_concurrent_memtable_write", true),
    ],
    [(Group::Table, "no_block_cache", true), (Group::Table, "cache_index_and_filter_blocks", true)],
];

/// A flag that excludes every compression.
static ALIGNED: [Member; 1] = [(Group::Table, "block_align", true)];

/// A combination that the settings have.
struct Wrong {
    /// The flags. Empty: a value is wrong by itself.
    members: &'static [Member],
    text: String,
}

impl<'o> Together<'o> {
    /// Refuses what RocksDB refuses, unless the settings `before` a change had it already.
    ///
    /// # Errors
    /// `InvalidArgument` naming the settings.
    pub fn check_since(self, before: Together<'_>) -> Result<()> {
        match self.wrong_since(before).next() {
            Some(wrong) => Err(Error::invalid(wrong.text)),
            None => Ok(()),
        }
    }

    fn wrong_since(self, before: Together<'_>) -> impl Iterator<Item = Wrong> {
        let had = before.wrong();
        self.wrong().into_iter().filter(move |new| had.iter().all(|old| old.members != new.members))
    }

    /// Resets stored settings without effect to RocksDB's defaults where they conflict with the caller's settings only. A caller
    /// that starts from the defaults does not know the content of the file. Returns the reset settings, as lines.
    pub fn settle(db: &mut DbOptions, family: &mut FamilyOptions, stored: Together<'_>) -> Vec<String> {
        let mut told = Vec::new();
        for Wrong { members, text } in (Together { db, family }).wrong_since(stored).collect::<Vec<_>>() {
            for (group, name, _) in members {
                let stored =
                    Together { db, family }.kept(*group).is_some_and(|texts| texts.holds_stored(name));
                let without_effect = find(&[*group], name).filter(|row| row.setting().is_none());
                let Some(row) = without_effect.filter(|_| stored) else { continue };
                match group {
                    Group::Database => db.kept.give(name, row.default),
                    Group::Table => family.give_table(name, row.default),
                    _ => family.kept.give(name, row.default),
                }
                told.push(format!("{name} is {} again: {text}", row.default));
            }
        }
        told
    }

    fn wrong(self) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for pair in &FLAGS {
            if pair.iter().all(|(group, name, value)| self.flag(*group, name) == *value) {
                let [(_, first, a), (_, second, b)] = pair;
                let text = both(&format!("{first}={a}"), &format!("{second}={b}"));
                wrong.push(Wrong { members: pair, text });
            }
        }
        let compression = self.family.table.compression;
        if compression != Compression::None && self.flag(Group::Table, "block_align") {
            let compression = format!("compression={}", compression.show());
            wrong.push(Wrong { members: &ALIGNED, text: both("block_align=true", &compression) });
        }
        let name = "block_protection_bytes_per_key";
        let bytes = self.text(Group::Family, name);
        if !["0", "1", "2", "4", "8"].contains(&bytes.trim()) {
            wrong.push(Wrong { members: &[], text: format!("{name} is {bytes}, it can be 0, 1, 2, 4 or 8") });
        }
        wrong
    }

    fn flag(self, group: Group, name: &str) -> bool {
        match name {
            "atomic_flush" => self.db.atomic_flush,
            _ => bool::parse(&self.text(group, name)).unwrap_or(false),
        }
    }

    fn kept(self, group: Group) -> Option<&'o KeptTexts> {
        match group {
            Group::Database => Some(&self.db.kept),
            Group::Table => {
                let mut tables = self.family.kept_tables.iter();
                tables.find(|(kind, _)| kind == BLOCK_BASED).map(|(_, texts)| texts)
            }
            _ => Some(&self.family.kept),
        }
    }

    /// The value of a name without effect, as the next OPTIONS file has it.
    fn text(self, group: Group, name: &str) -> String {
        let kept = self.kept(group);
        let default = || find(&[group], name).map(|row| row.default.to_owned());
        kept.and_then(|texts| texts.get(name)).or_else(default).unwrap_or_default()
    }
}

fn both(first: &str, second: &str) -> String {
    format!("{first} does not go with {second}: RocksDB opens no database with both")
}
