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
const FLAGS: [[Member; 2]; 5] = [
    [(Group::Database, "enable_pipelined_write", true), (Group::Database, "atomic_flush", true)],
    [(Group::Database, "unordered_write", true), (Group::Database, "enable_pipelined_write", true)],
    [(Group::Database, "unordered_write", true), (Group::Database, "allow_concurrent_memtable_write", false)],
    [
        (Group::Family, "inplace_update_support", true),
        (Group::Database, "allow_concurrent_memtable_write", true),
    ],
    [(Group::Table, "no_block_cache", true), (Group::Table, "cache_index_and_filter_blocks", true)],
];

/// A setting that excludes every compression.
const ALIGNED: Member = (Group::Table, "block_align", true);

impl<'o> Together<'o> {
    /// Refuses what RocksDB refuses, unless the settings `before` a change had it already.
    ///
    /// # Errors
    /// `InvalidArgument` naming the settings.
    pub fn check_since(self, before: Together<'_>) -> Result<()> {
        let had = before.wrong();
        match self.wrong().into_iter().find(|(rule, _)| had.iter().all(|(old, _)| old != rule)) {
            Some((_, text)) => Err(Error::invalid(text)),
            None => Ok(()),
        }
    }

    /// Gives stored settings without effect RocksDB's defaults, where they make such a combination with the caller's settings
    /// only. A caller that starts from the defaults does not know what the file holds. Returns what was given up, as lines.
    pub fn settle(db: &mut DbOptions, family: &mut FamilyOptions, stored: Together<'_>) -> Vec<String> {
        let had = stored.wrong();
        let wrong = Together { db, family }.wrong();
        let new = wrong.into_iter().filter(|(rule, _)| had.iter().all(|(old, _)| old != rule));
        let mut told = Vec::new();
        for ((first, at), text) in new {
            let members: &[Member] = match first {
                "block_align" => &[ALIGNED],
                _ => FLAGS.get(at).filter(|pair| pair[0].1 == first).map_or(&[], |pair| pair),
            };
            for (group, name, _) in members {
                let stored =
                    Together { db, family }.kept(*group).is_some_and(|texts| texts.holds_stored(name));
                let Some(row) = find(&[*group], name).filter(|_| stored) else { continue };
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

    /// Every combination that is wrong: its first setting with the place in its list, and what to say.
    fn wrong(self) -> Vec<((&'static str, usize), String)> {
        let mut wrong = Vec::new();
        for (at, pair) in FLAGS.iter().enumerate() {
            if pair.iter().all(|(group, name, value)| self.flag(*group, name) == *value) {
                let [(_, first, a), (_, second, b)] = pair;
                wrong.push(((*first, at), both(&format!("{first}={a}"), &format!("{second}={b}"))));
            }
        }
        let compression = self.family.table.compression;
        if compression != Compression::None && self.flag(ALIGNED.0, ALIGNED.1) {
            let compression = format!("compression={}", compression.show());
            wrong.push((("block_align", 0), both("block_align=true", &compression)));
        }
        let name = "block_protection_bytes_per_key";
        let bytes = self.text(Group::Family, name);
        if !["0", "1", "2", "4", "8"].contains(&bytes.trim()) {
            wrong.push(((name, 0), format!("{name} is {bytes}, it can be 0, 1, 2, 4 or 8")));
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
