//! The newest write to one key after some moment: by it a transaction finds out whether others have written a key since.
//!
//! 1. A write is an entry of the key, of whatever type, or a range tombstone over the key.
//! 2. The search asks the sources newest first, and stops at the first that has a write after `since`. A memtable that was
//!    immutable by `since`, and a table whose entries are all older, are not asked. So the search asks no table as long as
//!    the memtables reach back to `since`.
//! 3. A compaction removes older versions, and forgets sequence numbers that no snapshot needs. A live snapshot at or
//!    before `since` keeps the newest write after `since`, with its sequence number, unless that write is a deletion:
//!    a compaction may remove the deletion, and then the key has no value.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc` (`GetLatestSequenceForKey`), `utilities/transactions/transaction_util.cc`.

use crate::super_version::SuperVersion;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Level, LookupKey, Result, SeqNum};
use ashlar_memtable::MemtableRep;
use ashlar_options::ReadOptions;
use ashlar_sync::ReadPin;
use ashlar_table::{ReadHow, TableReader, filter_hash};
use ashlar_tree::version::{FileMeta, Version};

/// The sequence number of the newest write to `user_key` after `since`; `None`: there is no such write, as far as
/// `from` still shows. The caller keeps a snapshot at or before `since`: see the module for what it keeps.
///
/// # Errors
/// `Corruption`, `Io`: a table cannot be read.
/// # Cost
/// One lookup in each memtable newer than `since`, and one in each table that may hold the key and is newer than `since`.
pub fn newest_sequence(
    from: &SuperVersion,
    user_key: &[u8],
    since: SeqNum,
    options: &ReadOptions,
) -> Result<Option<SeqNum>> {
    if let Some(seq) = in_memtables(from, user_key, since)? {
        return Ok(Some(seq));
    }
    if planted(Bug::NewestWriteInMemoryOnly) {
        return Ok(None);
    }
    let how = options.how(from.version.tables().clock())?;
    in_tables(&from.version, user_key, since, &how)
}

fn in_memtables(from: &SuperVersion, user_key: &[u8], since: SeqNum) -> Result<Option<SeqNum>> {
    let key = LookupKey::new(user_key, SeqNum::MAX);
    for memtable in std::iter::once(&from.mem).chain(&from.imm) {
        if memtable.sealed_at().is_some_and(|last| last <= since) {
            break;
        }
        let mut newest = None;
        if memtable.range_tombstone_count() > 0 {
            // Cutting tombstones takes a lock, so there is no pin yet.
            let parts = memtable.range_tombstones();
            newest =
                parts.iter().flat_map(|parts| parts.iter()).filter_map(|part| over(part, user_key)).max();
        }
        let pin = ReadPin::enter();
        let entry = MemtableRep::get(&**memtable, &key)?.map(|found| found.trailer.seq());
        drop(pin);
        newest = newest.max(entry);
        if newest > Some(since) {
            return Ok(newest);
        }
    }
    Ok(None)
}

fn in_tables(version: &Version, user_key: &[u8], since: SeqNum, how: &ReadHow) -> Result<Option<SeqNum>> {
    let key = LookupKey::new(user_key, SeqNum::MAX);
    let deeper = (1u8..).map(Level).take(version.levels.len().saturating_sub(1));
    let deeper = deeper.filter_map(|level| version.find_file(level, &key));
    for file in version.level_zero_of(user_key).chain(deeper).filter(|file| may_be_newer(file, since)) {
        let table = version.tables().lease(file, how)?;
        let newest = in_table(&table, &key, how)?;
        if newest > Some(since) {
            return Ok(newest);
        }
    }
    Ok(None)
}

fn may_be_newer(file: &FileMeta, since: SeqNum) -> bool {
    file.file.sequences_unknown || file.file.largest_seq > since
}

fn in_table(table: &TableReader, key: &LookupKey<'_>, how: &ReadHow) -> Result<Option<SeqNum>> {
    let entry = table.get_hashed(key, filter_hash(key.user_key), how)?.map(|found| found.trailer.seq());
    Ok(entry.max(over(table.range_tombstones(), key.user_key)))
}

/// The newest tombstone over the key.
fn over(tombstones: &FragmentedTombstones, user_key: &[u8]) -> Option<SeqNum> {
    tombstones.covering_seq(user_key, SeqNum::MAX).filter(|_| !planted(Bug::RangeDeletionIsNoWrite))
}
