//! The search for one key.
//!
//! 1. Order: memtable, immutable memtables newest first, level 0 newest first, then one file of each deeper level. What
//!    comes later in this order is older, so the first entry found is the newest visible one.
//! 2. The memtables are searched under a [`ReadPin`]; tables, where I/O may happen, without.
//! 3. A table that could cover the key with a range tombstone is a table whose bounds hold the key. Those are exactly
//!    the ones opened here, so refusing them on sight is enough never to answer wrongly.

use crate::options::ReadOptions;
use crate::read::View;
use crate::super_version::SuperVersion;
use crate::version::{FileMeta, Version};
use crate::visibility::{Fate, fate};
use ashlar_base::{Error, Level, LookupKey, Result};
use ashlar_memtable::MemtableRep;
use ashlar_sync::ReadPin;
use ashlar_table::TableReader;
use std::cmp::Ordering;

/// The value of `key.user_key` as a read at `key.seq` sees it; `None` when there is none. Of the options only those
/// about reading blocks matter here: bounds do not, and the sequence is the key's.
///
/// # Errors
/// `NotSupported`: the entry that counts, or a table that would have to be asked, needs a feature that is not served;
/// the message names it, and the file. `Corruption`, `Io`: a table cannot be read.
/// # Cost
/// At most one filter probe per level-0 table and deeper level, and one block per table whose filter answers yes.
pub fn get(from: &SuperVersion, key: &LookupKey<'_>, _options: &ReadOptions) -> Result<Option<View>> {
    if let Some(found) = in_memtables(from, key)? {
        return Ok(found);
    }
    in_tables(&from.version, key)
}

/// `None`: no memtable knows the key. `Some(None)`: it is deleted.
fn in_memtables(from: &SuperVersion, key: &LookupKey<'_>) -> Result<Option<Option<View>>> {
    let pin = ReadPin::enter();
    for memtable in std::iter::once(&from.mem).chain(&from.imm) {
        if let Some(found) = MemtableRep::get(&**memtable, &pin, key) {
            return Ok(Some(match fate(found.trailer, key.user_key)? {
                Fate::Value => Some(View::copy(found.value)),
                Fate::Gone => None,
            }));
        }
    }
    Ok(None)
}

fn in_tables(version: &Version, key: &LookupKey<'_>) -> Result<Option<View>> {
    let holds = |f: &FileMeta| {
        let (first, last) = (f.smallest().user_key(), f.largest().user_key());
        version.order.compare(first, key.user_key) != Ordering::Greater
            && version.order.compare(key.user_key, last) != Ordering::Greater
    };
    for file in version.level(Level::ZERO).iter().filter(|f| holds(f)) {
        if let Some(found) = in_table(version, file, key)? {
            return Ok(found);
        }
    }
    for (level, files) in (0u8..).zip(&version.levels).skip(1) {
        if files.is_empty() {
            continue;
        }
        if let Some(file) = version.find_file(Level(level), key)
            && let Some(found) = in_table(version, file, key)?
        {
            return Ok(found);
        }
    }
    Ok(None)
}

fn in_table(version: &Version, file: &FileMeta, key: &LookupKey<'_>) -> Result<Option<Option<View>>> {
    let opened;
    let table = match file.table.get() {
        Some(table) => table,
        None => {
            opened = version.table(file)?;
            &opened
        }
    };
    refuse_range_deletions(table)?;
    let Some(found) = table.get(key)? else { return Ok(None) };
    Ok(Some(match fate(found.trailer, key.user_key).map_err(|e| e.at_path(table.path()))? {
        Fate::Value => Some(View::pinned(found.pin, found.value)),
        Fate::Gone => None,
    }))
}

/// `NotSupported` for a table with range tombstones.
#[inline]
fn refuse_range_deletions(table: &TableReader) -> Result<()> {
    if table.has_range_deletions() {
        return Err(Error::not_supported("reading range deletions").at_path(table.path()));
    }
    Ok(())
}
