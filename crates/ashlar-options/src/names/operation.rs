//! `ReadOptions`, `WriteOptions`, `FlushOptions`, `CompactRangeOptions` and `CompactionOptions`: given per call, never
//! stored in a file.

use super::row::{Range, Row, ignored, mapped, refused, uses};
use super::value::{Value, Wrong};
use crate::{CompactRangeOptions, ReadOptions, ReadTier, WriteOptions};
use ashlar_base::Level;
use std::time::Duration;

/// Parses a time in microseconds. 0 means no time.
fn micros(text: &str) -> Result<Option<Duration>, Wrong> {
    let micros = u64::parse(text)?;
    Ok((micros > 0).then(|| Duration::from_micros(micros)))
}

fn show_micros(time: Option<Duration>) -> String {
    time.map_or(0, |time| time.as_micros()).to_string()
}

const TIERS: [(&str, ReadTier); 4] = [
    ("kReadAllTier", ReadTier::All),
    ("kBlockCacheTier", ReadTier::BlockCache),
    ("kPersistedTier", ReadTier::Persisted),
    ("kMemtableTier", ReadTier::Memtable),
];

fn set_tier(options: &mut ReadOptions, text: &str) -> Result<(), Wrong> {
    let named = TIERS.iter().find(|(name, _)| *name == text.trim());
    let Some((_, tier)) = named else {
        let names: Vec<_> = TIERS.iter().map(|(name, _)| *name).collect();
        return Err(format!("{text:?} is not one of {}", names.join(", ")));
    };
    options.tier = *tier;
    Ok(())
}

fn show_tier(tier: ReadTier) -> &'static str {
    TIERS.iter().find(|(_, known)| *known == tier).map_or("", |(name, _)| name)
}

#[rustfmt::skip]
pub(super) const READ: &[Row<ReadOptions>] = &[
    mapped!("snapshot", "nullptr", open, "at", Range::Text("a snapshot"), None, |_| None, "The snapshot that the read sees."),
    mapped!("iterate_lower_bound", "nullptr", open, "lower", Range::Text("a key"), None, |_| None, "The smallest key that a cursor returns."),
    mapped!("iterate_upper_bound", "nullptr", open, "upper", Range::Text("a key"), None, |_| None, "The key at which a cursor ends; the key itself is excluded."),
    uses!("fill_cache", "true", open, fill_cache, Range::Flag, "Keep the blocks of this read in the cache. For large scans, in Rust: reading(ReadOptions::new().fill_cache(false))."),
    refused!("timestamp", "nullptr", open, "AshlarDB does not open families whose keys have timestamps."),
    refused!("iter_start_ts", "nullptr", open, "AshlarDB does not open families whose keys have timestamps."),
    mapped!("deadline", "0", open, "deadline", Range::Whole(0, u64::MAX, "microseconds since 1970"), Some(|o, text| { o.deadline = micros(text)?; Ok(()) }), |o| Some(show_micros(o.deadline)), "The time at which a read fails with TimedOut. A read checks it before each read of a file and at each block of a scan. 0: never."),
    mapped!("io_timeout", "0", open, "io_timeout", Range::Whole(0, u64::MAX, "microseconds"), Some(|o, text| { o.io_timeout = micros(text)?; Ok(()) }), |o| Some(show_micros(o.io_timeout)), "The longest time for one read of a file. A read that took longer returns TimedOut when it ends. 0: no limit."),
    mapped!("read_tier", "kReadAllTier", open, "tier", Range::Text("kReadAllTier, kBlockCacheTier, kPersistedTier, kMemtableTier"), Some(set_tier), |o| Some(show_tier(o.tier).to_owned()), "The places that a read searches. With kBlockCacheTier, a read that needs a file returns Incomplete. Scans accept kPersistedTier too."),
    uses!("verify_checksums", "true", open, verify_checksums, Range::Flag, "Verify the checksums of blocks that are read from files. If off, such blocks do not enter the block cache."),
    refused!("tailing", "false", open, "No option: a call of a scan makes a tailing cursor (`Scan::tailing`)."),
    refused!("prefix_same_as_start", "false", open, "Give an upper bound, or scan by prefix."),
    refused!("value_size_soft_limit", "18446744073709551615", open, "AshlarDB does not limit the bytes of a multi-get."),
    refused!("merge_operand_count_threshold", "", open, "AshlarDB does not report keys with many operands."),
    ignored!("total_order_seek", "false", open, "Every scan is in the total order of the keys."),
    ignored!("auto_prefix_mode", "false", open, "Every scan is in the total order of the keys."),
    refused!("ignore_range_deletions", "false", open, "Range deletions always apply; their cost is bounded."),
    refused!("max_skippable_internal_keys", "0", open, "A scan seeks past long runs of hidden entries, and always gives a full answer."),
    ignored!("pin_data", "false", open, "A returned value pins its frame by itself."),
    ignored!("background_purge_on_iterator_cleanup", "false", open, "A background job deletes files."),
    ignored!("allow_unprepared_value", "false", open, "A cursor reads the value of a blob file when it arrives at the entry."),
    ignored!("auto_refresh_iterator_with_snapshot", "false", open, "A cursor keeps the state that it began with."),
    ignored!("async_io", "false", open, "Reads run on the caller's thread."),
    ignored!("optimize_multiget_for_io", "true", open, "Reads run on the caller's thread."),
    ignored!("readahead_size", "0", open, "The engine decides how far a scan reads ahead."),
    ignored!("adaptive_readahead", "false", open, "The engine decides how far a scan reads ahead."),
    ignored!("auto_readahead_size", "true", open, "The engine decides how far a scan reads ahead."),
    ignored!("rate_limiter_priority", "IO_TOTAL", open, "The rate limit does not apply to reads of users."),
    ignored!("io_activity", "kUnknown", open, "The engine counts reads by their purpose, not by this value."),
    ignored!("request_id", "nullptr", open, "RocksDB only passes it to its file systems."),
    ignored!("table_index_factory", "nullptr", open, "AshlarDB neither reads nor writes user-defined indexes."),
    ignored!("read_scoped_block_buffer_provider", "nullptr", open, "Blocks are read into frames of the cache."),
    ignored!("table_filter", "nullptr", open, "A scan reads every table that may contain a key of the range."),
];

#[rustfmt::skip]
pub(super) const WRITE: &[Row<WriteOptions>] = &[
    uses!("sync", "false", open, sync, Range::Flag, "Return only when the write is on the device. If off, a write survives a killed process, but perhaps not a power cut."),
    uses!("disableWAL", "false", open, disable_wal, Range::Flag, "The write skips the WAL. A crash loses it, unless its memtable was flushed."),
    uses!("no_slowdown", "false", open, no_slowdown, Range::Flag, "Fail with Busy instead of waiting for background work."),
    refused!("ignore_missing_column_families", "false", open, "A batch that names a family that does not exist is refused as a whole."),
    uses!("low_pri", "false", open, low_priority, Range::Flag, "While compaction has work to do, such a write waits longer than other writes, and does not hold them up."),
    ignored!("memtable_insert_hint_per_batch", "false", open, "An insert begins its search where the preceding insert ended, if that place is near."),
    ignored!("rate_limiter_priority", "IO_TOTAL", open, "The rate limit does not apply to writes of users."),
    ignored!("protection_bytes_per_key", "0", open, "A batch has checksums if it was created as protected."),
    ignored!("io_activity", "kUnknown", open, "The engine counts reads by their purpose, not by this value."),
];

#[rustfmt::skip]
pub(super) const FLUSH: &[Row<()>] = &[
    refused!("wait", "true", open, "The call always waits for its flush. Call it on a separate thread to go on meanwhile."),
    ignored!("allow_write_stall", "false", open, "A flush makes the active memtable immutable and never waits first."),
    refused!("force_atomic_flush", "false", open, "atomic_flush chooses for the whole database whether flushes are atomic."),
    ignored!("listener_wait", "false", open, "The call returns when the new table is live. Listeners are notified before that."),
];

fn set_change_level(options: &mut CompactRangeOptions, text: &str) -> Result<(), Wrong> {
    if !bool::parse(text)? {
        options.target_level = None;
    }
    Ok(())
}

fn set_target_level(options: &mut CompactRangeOptions, text: &str) -> Result<(), Wrong> {
    let level = i32::parse(text)?;
    options.target_level = match u8::try_from(level) {
        Ok(level) => Some(Level(level)),
        Err(_) if level == -1 => None,
        Err(_) => return Err(format!("{level} is not a level")),
    };
    Ok(())
}

fn set_bottommost(options: &mut CompactRangeOptions, text: &str) -> Result<(), Wrong> {
    let (deepest, if_filtered) = match text.trim() {
        "kSkip" => (false, false),
        "kIfHaveCompactionFilter" => (false, true),
        "kForce" | "kForceOptimized" => (true, false),
        other => {
            return Err(format!(
                "{other:?} is not one of kSkip, kIfHaveCompactionFilter, kForce, kForceOptimized"
            ));
        }
    };
    (options.rewrite_deepest, options.rewrite_deepest_if_filtered) = (deepest, if_filtered);
    Ok(())
}

fn show_bottommost(options: &CompactRangeOptions) -> String {
    let word = match (options.rewrite_deepest, options.rewrite_deepest_if_filtered) {
        (true, _) => "kForceOptimized",
        (false, true) => "kIfHaveCompactionFilter",
        (false, false) => "kSkip",
    };
    word.to_owned()
}

#[rustfmt::skip]
pub(super) const COMPACT_RANGE: &[Row<CompactRangeOptions>] = &[
    uses!("exclusive_manual_compaction", "false", open, exclusive, Range::Flag, "No other compaction runs at the same time."),
    mapped!("change_level", "false", open, "target_level", Range::Flag, Some(set_change_level), |_| None, "With target_level: after the compaction, the tables of the deepest level move there unchanged. Without target_level they stay."),
    mapped!("target_level", "-1", open, "target_level", Range::Text("a level, or -1 for none"), Some(set_target_level), |_| None, "The level of change_level; this option alone is enough."),
    refused!("target_path_id", "0", open, "All files are in the database's directory."),
    mapped!("bottommost_level_compaction", "kIfHaveCompactionFilter", open, "rewrite_deepest", Range::Text("kSkip, kIfHaveCompactionFilter, kForce, kForceOptimized"), Some(set_bottommost), |o| Some(show_bottommost(o)), "Rewrite the deepest level too, so that no deleted data is left. Tables that this compaction has just written are never rewritten, so kForce means kForceOptimized."),
    ignored!("allow_write_stall", "false", open, "Writers are slowed by the compaction debt, as always."),
    uses!("max_subcompactions", "0", open, max_subcompactions, Range::Whole(0, 1 << 30, "jobs"), "Upper bound on the jobs that share the work. 0: the setting of the database."),
    refused!("full_history_ts_low", "nullptr", open, "AshlarDB does not open families whose keys have timestamps."),
    refused!("canceled", "nullptr", open, "No call stops one compaction; abort_compactions stops all of them."),
    ignored!("blob_garbage_collection_policy", "kUseDefault", open, "The family's blob options decide which garbage is collected."),
    ignored!("blob_garbage_collection_age_cutoff", "-1", open, "The family's blob options decide which garbage is collected."),
];

#[rustfmt::skip]
pub(super) const COMPACT_FILES: &[Row<()>] = &[
    ignored!("compression", "kDisableCompressionOption", open, "Outputs have the compression of their level."),
    ignored!("output_file_size_limit", "18446744073709551615", open, "Outputs have the size target_file_size_base."),
    mapped!("max_subcompactions", "0", open, "an argument of compact_files", Range::Whole(0, 1 << 30, "jobs"), None, |_| None, "Upper bound on the jobs that share the work. 0: the setting of the database."),
    refused!("canceled", "nullptr", open, "No call stops one compaction; abort_compactions stops all of them."),
    ignored!("output_temperature_override", "kUnknown", open, "AshlarDB does not distinguish kinds of storage."),
    ignored!("allow_trivial_move", "false", open, "Tables are moved where that suffices."),
];
