//! Combinations of settings with which RocksDB opens no database. The OPTIONS file that the engine writes is RocksDB's too, so
//! a caller may not bring such a combination about.
//!
//! 1. A combination that the settings already had before the caller changed them is passed over: what an OPTIONS file holds
//!    never fails an open.
//! 2. Most of these names have no effect here. Their values are the kept texts, or else RocksDB's defaults.
//!
//! Source: RocksDB `DBImpl::ValidateOptions`, `ColumnFamilyData::ValidateOptions`, `BlockBasedTableFactory::ValidateOptions`.

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
    /// Of the database.
    pub db: &'o DbOptions,
    /// Of the family.
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

impl Together<'_> {
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
        if compression != Compression::None && self.flag(Group::Table, "block_align") {
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

    /// The value of a name without effect, as the next OPTIONS file has it.
    fn text(self, group: Group, name: &str) -> String {
        let table = || self.family.kept_tables.iter().find(|(kind, _)| kind == BLOCK_BASED);
        let kept: Option<&KeptTexts> = match group {
            Group::Database => Some(&self.db.kept),
            Group::Table => table().map(|(_, texts)| texts),
            _ => Some(&self.family.kept),
        };
        let default = || find(&[group], name).map(|row| row.default.to_owned());
        kept.and_then(|texts| texts.get(name)).or_else(default).unwrap_or_default()
    }
}

fn both(first: &str, second: &str) -> String {
    format!("{first} does not go with {second}: RocksDB opens no database with both")
}
