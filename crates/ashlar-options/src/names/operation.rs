//! `ReadOptions`, `WriteOptions`, `FlushOptions`, `CompactRangeOptions` and `CompactionOptions`: given per call, never
//! stored in a file.

use super::row::{Range, Row, ignored, mapped, refused, uses};
use super::value::{Value, Wrong};
use crate::{CompactRangeOptions, ReadOptions, ReadTier, WriteOptions};
use ashlar_base::Level;
use std::time::Duration;

/// A time of microseconds; 0 stands for none.
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
        return Err(format!("{text:?} is none of {}", names.join(", ")));
    };
    options.tier = *tier;
    Ok(())
}

fn show_tier(tier: ReadTier) -> &'static str {
    TIERS.iter().find(|(_, known)| *known == tier).map_or("", |(name, _)| name)
}

#[rustfmt::skip]
pub(super) const READ: &[Row<ReadOptions>] = &[
    mapped!("snapshot", "nullptr", open, "at", Range::Text("a snapshot"), None, |_| None, "Read the state a snapshot holds."),
    mapped!("iterate_lower_bound", "nullptr", open, "lower", Range::Text("a key"), None, |_| None, "The smallest key a cursor shows."),
    mapped!("iterate_upper_bound", "nullptr", open, "upper", Range::Text("a key"), None, |_| None, "The first key a cursor does not show."),
    uses!("fill_cache", "true", open, fill_cache, Range::Flag, "Keep the blocks that were read. In Rust: reading(ReadOptions::new().fill_cache(false)), for large scans."),
    refused!("timestamp", "nullptr", open, "Families whose keys have timestamps are not opened."),
    refused!("iter_start_ts", "nullptr", open, "Families whose keys have timestamps are not opened."),
    mapped!("deadline", "0", open, "deadline", Range::Whole(0, u64::MAX, "microseconds since 1970"), Some(|o, text| { o.deadline = micros(text)?; Ok(()) }), |o| Some(show_micros(o.deadline)), "When a read gives up with TimedOut. Looked at before each read of a file and at each block of a scan. 0: never."),
    mapped!("io_timeout", "0", open, "io_timeout", Range::Whole(0, u64::MAX, "microseconds"), Some(|o, text| { o.io_timeout = micros(text)?; Ok(()) }), |o| Some(show_micros(o.io_timeout)), "The longest time for one read of a file; a longer one answers TimedOut when it ends. 0: any time."),
    mapped!("read_tier", "kReadAllTier", open, "tier", Range::Text("kReadAllTier, kBlockCacheTier, kPersistedTier, kMemtableTier"), Some(set_tier), |o| Some(show_tier(o.tier).to_owned()), "Where a read looks. With kBlockCacheTier, an answer that needs a file is Incomplete; scans take kPersistedTier too."),
    uses!("verify_checksums", "true", open, verify_checksums, Range::Flag, "Compare the checksums of blocks that are read from files. Off: such blocks do not enter the block cache."),
    refused!("tailing", "false", open, "A cursor shows the state at its making; make another to see what came since."),
    refused!("prefix_same_as_start", "false", open, "Give an upper bound, or scan by prefix."),
    refused!("value_size_soft_limit", "18446744073709551615", open, "A bound on the bytes of a multi-get is not there."),
    refused!("merge_operand_count_threshold", "", open, "A mark for keys with many operands is not there."),
    ignored!("total_order_seek", "false", open, "Every scan is in the total order of the keys."),
    ignored!("auto_prefix_mode", "false", open, "Every scan is in the total order of the keys."),
    ignored!("ignore_range_deletions", "false", open, "Range deletions always hold; what they cost is bounded."),
    ignored!("max_skippable_internal_keys", "0", open, "A scan seeks past what it need not step over, and always gives a full answer."),
    ignored!("pin_data", "false", open, "A value that is handed out pins its frame by itself."),
    ignored!("background_purge_on_iterator_cleanup", "false", open, "Files are always removed by a background job."),
    ignored!("allow_unprepared_value", "false", open, "Values from blob files are read when the cursor stands on them."),
    ignored!("auto_refresh_iterator_with_snapshot", "false", open, "A cursor keeps what it began with."),
    ignored!("async_io", "false", open, "Reads are done by the caller's thread."),
    ignored!("optimize_multiget_for_io", "true", open, "Reads are done by the caller's thread."),
    ignored!("readahead_size", "0", open, "How far a scan reads ahead is decided by the engine."),
    ignored!("adaptive_readahead", "false", open, "How far a scan reads ahead is decided by the engine."),
    ignored!("auto_readahead_size", "true", open, "How far a scan reads ahead is decided by the engine."),
    ignored!("rate_limiter_priority", "IO_TOTAL", open, "Reads of users are not limited."),
    ignored!("io_activity", "kUnknown", open, "The engine counts reads by their purpose, not by this value."),
    ignored!("request_id", "nullptr", open, "Only passed on to file systems of RocksDB's."),
    ignored!("table_index_factory", "nullptr", open, "An index of the user's is neither read nor written."),
    ignored!("read_scoped_block_buffer_provider", "nullptr", open, "Blocks are read into frames of the cache."),
    ignored!("table_filter", "nullptr", open, "Every table that may hold a key of the range is read: leaving one out only saves time."),
];

#[rustfmt::skip]
pub(super) const WRITE: &[Row<WriteOptions>] = &[
    uses!("sync", "false", open, sync, Range::Flag, "Return only when the write is on the device. Off: it survives a killed process, not a power cut."),
    uses!("disableWAL", "false", open, disable_wal, Range::Flag, "Leave the write out of the log: it is lost unless its memtable was flushed."),
    uses!("no_slowdown", "false", open, no_slowdown, Range::Flag, "Fail with Busy where the write would have to wait for background work."),
    refused!("ignore_missing_column_families", "false", open, "A batch that names a family which does not exist is refused whole."),
    uses!("low_pri", "false", open, low_priority, Range::Flag, "While compaction has work to do, wait longer than other writes, and apart from them."),
    ignored!("memtable_insert_hint_per_batch", "false", open, "An insert begins where the last one of its writer ended, where that is near."),
    ignored!("rate_limiter_priority", "IO_TOTAL", open, "Writes of users are not limited."),
    ignored!("protection_bytes_per_key", "0", open, "A batch says by itself whether it carries checksums: one that is made as protected does."),
    ignored!("io_activity", "kUnknown", open, "The engine counts reads by their purpose, not by this value."),
];

#[rustfmt::skip]
pub(super) const FLUSH: &[Row<()>] = &[
    refused!("wait", "true", open, "A flush that was asked for is waited for; run it on a thread of its own to go on meanwhile."),
    ignored!("allow_write_stall", "false", open, "A flush seals what is there and never waits for room first."),
    refused!("force_atomic_flush", "false", open, "Whether flushes are atomic is chosen for the whole database, with atomic_flush."),
    ignored!("listener_wait", "false", open, "A flush that was asked for returns when its table is live; listeners are told on the way."),
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
        Err(_) => return Err(format!("{level} is no level")),
    };
    Ok(())
}

fn set_bottommost(options: &mut CompactRangeOptions, text: &str) -> Result<(), Wrong> {
    options.rewrite_deepest = match text.trim() {
        "kSkip" | "kIfHaveCompactionFilter" => false,
        "kForce" | "kForceOptimized" => true,
        other => {
            return Err(format!(
                "{other:?} is none of kSkip, kIfHaveCompactionFilter, kForce, kForceOptimized"
            ));
        }
    };
    Ok(())
}

#[rustfmt::skip]
pub(super) const COMPACT_RANGE: &[Row<CompactRangeOptions>] = &[
    uses!("exclusive_manual_compaction", "false", open, exclusive, Range::Flag, "No other compaction runs meanwhile."),
    mapped!("change_level", "false", open, "target_level", Range::Flag, Some(set_change_level), |_| None, "With target_level: behind the compaction the tables of the deepest level go there as they are. Without one they stay."),
    mapped!("target_level", "-1", open, "target_level", Range::Text("a level, or -1 for none"), Some(set_target_level), |_| None, "The level that change_level speaks of; giving it is enough."),
    refused!("target_path_id", "0", open, "All files are in the database's directory."),
    mapped!("bottommost_level_compaction", "kIfHaveCompactionFilter", open, "rewrite_deepest", Range::Text("kSkip, kIfHaveCompactionFilter, kForce, kForceOptimized"), Some(set_bottommost), |o| Some(if o.rewrite_deepest { "kForceOptimized" } else { "kSkip" }.to_owned()), "Rewrite the deepest level too, so that nothing deleted is left; never what this compaction has just written, so kForce is kForceOptimized. There are no compaction filters: kIfHaveCompactionFilter is kSkip."),
    ignored!("allow_write_stall", "false", open, "Writers are paced by debt, as always."),
    uses!("max_subcompactions", "0", open, max_subcompactions, Range::Whole(0, 1 << 30, "jobs"), "Jobs that share the work at most. 0: as the database has it."),
    refused!("full_history_ts_low", "nullptr", open, "Families whose keys have timestamps are not opened."),
    refused!("canceled", "nullptr", open, "A flag that stops one compaction is not there; abort_compactions stops all of them."),
    ignored!("blob_garbage_collection_policy", "kUseDefault", open, "What is collected is decided by the family's blob options."),
    ignored!("blob_garbage_collection_age_cutoff", "-1", open, "What is collected is decided by the family's blob options."),
];

#[rustfmt::skip]
pub(super) const COMPACT_FILES: &[Row<()>] = &[
    ignored!("compression", "kDisableCompressionOption", open, "Outputs are compressed as their level asks for."),
    ignored!("output_file_size_limit", "18446744073709551615", open, "Outputs have the size of target_file_size_base."),
    mapped!("max_subcompactions", "0", open, "an argument of compact_files", Range::Whole(0, 1 << 30, "jobs"), None, |_| None, "Jobs that share the work at most. 0: as the database has it."),
    refused!("canceled", "nullptr", open, "A flag that stops one compaction is not there; abort_compactions stops all of them."),
    ignored!("output_temperature_override", "kUnknown", open, "No kinds of storage are told apart."),
    ignored!("allow_trivial_move", "false", open, "Tables are moved where that suffices."),
];
