//! idump: every version of every key that the files hold, deletions among them.
//!
//! ```text
//! 'k' seq:9, type:0 =>
//! 'k' seq:4, type:1 => value
//! Internal keys in range: 2
//! ```
//! 1. The versions of a key come newest first. Compactions drop versions that no read needs, so some may be missing.
//! 2. A version that a range deletion covers is left out, as in ldb. `list_file_range_deletes` prints range deletions.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (`idump`, by its output).

use super::counts::Counts;
use super::stored::Stored;
use super::{Target, info};
use crate::Done;
use crate::bytes_text::parse_bytes;
use crate::cli::InternalDump;
use crate::outcome::Outcome;
use crate::sst::EntryForm;
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{InternalKey, LookupKey, Order, Result, RunCursor, SeqNum, Window};
use ashlar_compaction::rewrite::Merge;
use ashlar_memtable::MemtableRep;
use ashlar_tree::version::{FamilyState, FileMeta, Version};
use std::cmp::Ordering;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The fewest bytes of a read of a table.
const READAHEAD: usize = 128 << 10;

/// Prints the versions in the range, or counts them.
pub(super) fn dump(target: &Target, dump: &InternalDump, out: &mut dyn Write) -> Done {
    let hex = dump.input_key_hex;
    let key = |word: &Option<OsString>| {
        word.as_ref().map(|word| parse_bytes(word.as_bytes(), hex)).transpose().map_err(Outcome::Usage)
    };
    let range = (key(&dump.from)?, key(&dump.to)?);
    let form = target.form(false);
    let mut counts = dump.count_delim.as_deref().map(|of| Counts::new(of, form)).transpose()?;
    let line = EntryForm {
        key_hex: target.common.hex || target.common.key_hex,
        value_hex: target.common.hex || target.common.value_hex,
        blob_places: dump.decode_blob_index,
        columns: true,
    };
    if dump.stats {
        info::stats(target, out)?;
    }
    let most = dump.max_keys.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
    let count = each(target, &range, most, |key, value| {
        let (user_key, trailer) = key.split();
        match &mut counts {
            Some(counts) => counts.add(user_key, value, out)?,
            None if dump.count_only => {}
            None => line.print((user_key, trailer.seq().get(), trailer), value, out)?,
        }
        Ok(())
    })?;
    match counts {
        Some(counts) => counts.finish(out),
        None => Ok(writeln!(out, "Internal keys in range: {count}")?),
    }
}

/// The first key of a range, and its end, itself excluded.
type Range = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Calls `see` with the first `most` versions in the range. Returns their number.
fn each(
    target: &Target,
    (from, to): &Range,
    most: u64,
    mut see: impl FnMut(InternalKey<'_>, &[u8]) -> Done,
) -> std::result::Result<u64, Outcome> {
    let (family, writes) = Stored::read_with_wal(target)?;
    let order = &family.version.order;
    let covers = tombstones(&family.version, &*writes)?;
    let mut runs = runs(&family, writes);
    let from = from.as_ref().map(|from| LookupKey::new(from, SeqNum::MAX));
    runs.iter_mut().try_for_each(|run| run.seek(from.as_ref()))?;
    let mut merge = Merge::new(ByOrder(order.clone()), 0, runs)?;
    let mut count = 0;
    while count < most
        && let Some(entry) = merge.entry()
    {
        let (user_key, trailer) = entry.key.split();
        if to.as_ref().is_some_and(|to| order.compare(user_key, to).is_ge()) {
            break;
        }
        let covered = covers.iter().filter_map(|part| part.covering_seq(user_key, SeqNum::MAX)).max();
        if covered.is_none_or(|seq| seq <= trailer.seq()) {
            see(entry.key, entry.value)?;
            count += 1;
        }
        merge.advance()?;
    }
    Ok(count)
}

/// The range deletions of the family.
fn tombstones(version: &Version, writes: &dyn MemtableRep) -> Result<Vec<Arc<FragmentedTombstones>>> {
    let mut all: Vec<_> = writes.range_tombstones().iter().flat_map(|parts| parts.iter().cloned()).collect();
    for (_, file) in version.files() {
        let of_file = version.survey(file)?;
        if !of_file.is_empty() {
            all.push(Arc::new(of_file));
        }
    }
    Ok(all)
}

/// The writes of the WAL, each table of level 0, and each deeper level as a run.
fn runs(family: &FamilyState, writes: Arc<dyn MemtableRep>) -> Vec<Box<dyn RunCursor>> {
    let mut runs = vec![writes.cursor()];
    let mut push = |files: &[Arc<FileMeta>]| {
        let version = Arc::clone(&family.version);
        runs.push(Box::new(Chain { version, files: files.to_vec(), next: 0, cursor: None }));
    };
    for (level, files) in family.version.levels.iter().enumerate() {
        match level {
            0 => files.chunks(1).for_each(&mut push),
            _ if files.is_empty() => {}
            _ => push(files),
        }
    }
    runs
}

/// Tables whose keys ascend, as one run. At most one of them is open.
struct Chain {
    version: Arc<Version>,
    files: Vec<Arc<FileMeta>>,
    next: usize,
    cursor: Option<Box<dyn RunCursor>>,
}

impl RunCursor for Chain {
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        let order = &self.version.order;
        let before = |file: &Arc<FileMeta>| {
            key.is_some_and(|key| order.compare(file.largest().user_key(), key.user_key).is_lt())
        };
        self.next = self.files.partition_point(before);
        self.cursor = None;
        if let Some(file) = self.files.get(self.next) {
            let mut cursor = self.version.table_for_pass(file)?.cursor(READAHEAD);
            cursor.seek(key)?;
            (self.next, self.cursor) = (self.next + 1, Some(cursor));
        }
        Ok(())
    }

    fn window(&mut self, window: &mut Window) -> Result<bool> {
        loop {
            if let Some(cursor) = &mut self.cursor
                && cursor.window(window)?
            {
                return Ok(true);
            }
            self.cursor = None;
            let Some(file) = self.files.get(self.next) else {
                window.clear();
                return Ok(false);
            };
            let mut cursor = self.version.table_for_pass(file)?.cursor(READAHEAD);
            cursor.seek(None)?;
            (self.next, self.cursor) = (self.next + 1, Some(cursor));
        }
    }
}

/// An order for a merge, whichever it is.
#[derive(Clone)]
struct ByOrder(Order);

impl KeyOrder for ByOrder {
    const WORDS: bool = false;

    fn word(&self, _: &[u8], _: usize) -> u64 {
        0
    }

    fn cmp(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare(a, b)
    }
}
