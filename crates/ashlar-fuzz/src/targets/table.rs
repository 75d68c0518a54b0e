//! Whole tables: opened, verified, scanned both ways, looked up, sought.

use super::Outcome;
use crate::corpus;
use crate::memory::memory_file;
use crate::sst::uncompressed;
use ashlar_base::checksum::xxh3_64;
use ashlar_base::{
    Entry, FileNumber, InternalIterator, InternalKeyBuf, LookupKey, Order, Result, SeqNum, Window,
};
use ashlar_cache::FramePool;
use ashlar_table::{ReadHow, ReaderOptions, TableReader};
use std::sync::Arc;

/// Entries that are looked up and sought in one table.
const SOUGHT: usize = 64;
/// Entries read in one direction; a damaged index can name a block very often.
const MOST_ENTRIES: usize = 1 << 17;

/// The golden tables, and the same without compression.
pub(super) fn tables() -> Vec<Vec<u8>> {
    let mut files = corpus::tables();
    files.extend(files.clone().iter().filter_map(|file| uncompressed(file)));
    files
}

/// Opens a table under the order it asks for.
fn open(input: &[u8]) -> Result<Arc<TableReader>> {
    let mut refused = None;
    for order in [Order::Bytewise, Order::ReverseBytewise] {
        let options = ReaderOptions::new(order, FramePool::new(1 << 20), FileNumber(9));
        match TableReader::open(memory_file(input), input.len() as u64, options) {
            Ok(table) => return Ok(table),
            Err(e) => drop(refused.get_or_insert(e)),
        }
    }
    Err(refused.expect("it was refused, then"))
}

pub(super) fn table(input: &[u8]) -> Outcome {
    let table = open(input).map_err(|e| e.to_string())?;
    let _ = (table.memory(), table.range_tombstones().memory());
    let verified = table.verify();
    let (forwards, some) = scan(&table, false);
    let (backwards, _) = scan(&table, true);
    let run = run(&table);
    let sought: Result<Vec<()>> = some.iter().map(|entry| look_up(&table, entry, verified.is_ok())).collect();
    let entries = verified.map_err(|e| e.to_string())?;
    // What is verified reads without an error, and the same every way.
    let (forwards, mut backwards) = (forwards.expect("verified"), backwards.expect("verified"));
    backwards.reverse();
    assert!(forwards.len() as u64 == entries || forwards.len() == MOST_ENTRIES);
    if forwards.len() < MOST_ENTRIES {
        assert!(forwards == backwards, "entries forwards and backwards");
        assert!(forwards == run.expect("verified"), "entries as a compaction reads them");
    }
    sought.expect("verified");
    Ok(())
}

fn hash(entry: Entry<'_>) -> (u64, u64) {
    (xxh3_64(entry.key.encoded()), xxh3_64(entry.value))
}

/// Key and hash of the value.
type Sample = (InternalKeyBuf, u64);

/// Hashes of all entries, and the first few themselves.
fn scan(table: &Arc<TableReader>, reverse: bool) -> (Result<Vec<(u64, u64)>>, Vec<Sample>) {
    let mut iter = table.iter(ReadHow { fill_cache: !reverse, ..ReadHow::default() });
    let (mut all, mut some) = (Vec::new(), Vec::new());
    let mut moved = if reverse { iter.last() } else { iter.first() };
    while let Some(entry) = iter.entry().filter(|_| moved.is_ok() && all.len() < MOST_ENTRIES) {
        all.push(hash(entry));
        if some.len() < SOUGHT {
            let (user_key, trailer) = entry.key.split();
            some.push((InternalKeyBuf::new(user_key, trailer), xxh3_64(entry.value)));
        }
        moved = if reverse { iter.prev() } else { iter.next() };
    }
    (moved.map(|()| all), some)
}

fn run(table: &Arc<TableReader>) -> Result<Vec<(u64, u64)>> {
    let mut cursor = table.cursor(4096);
    let (mut all, mut window) = (Vec::new(), Window::new());
    cursor.seek(None)?;
    while all.len() < MOST_ENTRIES && cursor.window(&mut window)? {
        all.extend((0..window.len()).filter_map(|at| window.entry(at)).map(hash));
    }
    Ok(all)
}

/// Looks an entry up and seeks it both ways; in a sound table it is found each time.
fn look_up(table: &Arc<TableReader>, (key, value): &Sample, sound: bool) -> Result<()> {
    let (user_key, trailer) = key.as_key().split();
    let found = table.get(&LookupKey::new(user_key, trailer.seq()))?;
    let newest = table.get(&LookupKey::new(user_key, SeqNum::MAX))?;
    let _ = table.approximate_offset(key.as_key());
    let mut iter = table.iter(ReadHow::default());
    iter.seek(key.as_key())?;
    let sought = iter.entry().map(hash);
    iter.seek_for_prev(key.as_key())?;
    let before = iter.entry().map(hash);
    if sound {
        let expected = Some((xxh3_64(key.as_key().encoded()), *value));
        assert_eq!(sought, expected, "sought forwards");
        assert_eq!(before, expected, "sought backwards");
        let found = found.expect("what a scan shows is found");
        assert!(found.trailer.seq() == trailer.seq(), "found with its sequence number");
        assert!(found.trailer != trailer || xxh3_64(found.value()) == *value, "found with its value");
        assert!(newest.expect("some version is found").trailer >= found.trailer, "the newest is found");
    }
    Ok(())
}
