//! idump: every version of every key that the files hold, deletions among them.
//!
//! ```text
//! 'k' seq:9, type:0 =>
//! 'k' seq:4, type:1 => value
//! Internal keys in range: 2
//! ```
//! 1. The versions of a key come newest first. Compactions drop versions that no read needs, so some may be missing.
//! 2. A version that a range deletion covers is left out, as in ldb. `list_file_range_deletes` prints range deletions.
//! 3. All tables are open before the first version is printed, so a process that replaces them meanwhile does not matter.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (`idump`, by its output).

use super::counts::Counts;
use super::stored::{Entries, OpenFile, Stored};
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
    let Entries { family, writes, levels } = Stored::read_entries(target)?;
    let order = &family.version.order;
    let covers = Covers::of(&*writes, &levels);
    let mut runs = runs(writes, levels, order);
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
        if covers.newest(order, user_key).is_none_or(|seq| seq <= trailer.seq()) {
            see(entry.key, entry.value)?;
            count += 1;
        }
        merge.advance()?;
    }
    Ok(count)
}

/// The range deletions of a family.
struct Covers {
    of_wal: Vec<Arc<FragmentedTombstones>>,
    /// Those of a table count only between the first and the last key of the table.
    of_tables: Vec<OpenFile>,
}

impl Covers {
    fn of(writes: &dyn MemtableRep, levels: &[Vec<OpenFile>]) -> Covers {
        let of_wal = writes.range_tombstones().iter().flat_map(|parts| parts.iter().cloned()).collect();
        let has_any = |file: &&OpenFile| !file.1.range_tombstones().is_empty();
        Covers { of_wal, of_tables: levels.iter().flatten().filter(has_any).cloned().collect() }
    }

    /// The sequence of the newest range deletion over a key.
    fn newest(&self, order: &Order, user_key: &[u8]) -> Option<SeqNum> {
        let of_tables = self.of_tables.iter().filter(|(file, _)| file.holds(order, user_key));
        let of_tables = of_tables.map(|(_, table)| table.range_tombstones());
        let all = self.of_wal.iter().chain(of_tables);
        all.filter_map(|part| part.covering_seq(user_key, SeqNum::MAX)).max()
    }
}

/// The writes of the WAL, each table of level 0, and each deeper level as a run.
fn runs(writes: Arc<dyn MemtableRep>, levels: Vec<Vec<OpenFile>>, order: &Order) -> Vec<Box<dyn RunCursor>> {
    let mut runs = vec![writes.cursor()];
    for (level, files) in levels.into_iter().enumerate() {
        match level {
            0 => runs.extend(files.into_iter().map(|(_, table)| table.cursor(READAHEAD))),
            _ if files.is_empty() => {}
            _ => runs.push(Box::new(Chain { order: order.clone(), files, next: 0, cursor: None })),
        }
    }
    runs
}

/// Tables whose keys ascend, as one run.
struct Chain {
    order: Order,
    files: Vec<OpenFile>,
    next: usize,
    cursor: Option<Box<dyn RunCursor>>,
}

impl Chain {
    /// Goes to the next table, before its first entry at or after `key`. False behind the last table.
    fn go_on(&mut self, key: Option<&LookupKey<'_>>) -> Result<bool> {
        self.cursor = None;
        let Some((_, table)) = self.files.get(self.next) else { return Ok(false) };
        let mut cursor = table.cursor(READAHEAD);
        cursor.seek(key)?;
        (self.next, self.cursor) = (self.next + 1, Some(cursor));
        Ok(true)
    }
}

impl RunCursor for Chain {
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        let before = |(file, _): &OpenFile| {
            key.is_some_and(|key| self.order.compare(file.largest().user_key(), key.user_key).is_lt())
        };
        self.next = self.files.partition_point(before);
        self.go_on(key).map(drop)
    }

    fn window(&mut self, window: &mut Window) -> Result<bool> {
        loop {
            if let Some(cursor) = &mut self.cursor
                && cursor.window(window)?
            {
                return Ok(true);
            }
            if !self.go_on(None)? {
                window.clear();
                return Ok(false);
            }
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
