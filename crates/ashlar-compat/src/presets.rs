//! Several options at once, as RocksDB's functions for common cases set them.

use crate::options::{Options, Texts};

/// Loads without compactions and without delays, for a compaction on request that follows.
pub fn bulk_load(texts: &mut Texts) {
    const NEVER: i32 = 1 << 30;
    for trigger in ["file_num_compaction", "slowdown_writes", "stop_writes"] {
        texts.set(&format!("level0_{trigger}_trigger"), NEVER);
    }
    for limit in ["soft", "hard"] {
        texts.set(&format!("{limit}_pending_compaction_bytes_limit"), 0u64);
    }
    texts.set("disable_auto_compactions", true);
    texts.set("max_compaction_bytes", 1u64 << 60);
    texts.set("num_levels", 2i32);
    texts.set("max_write_buffer_number", 6i32);
    texts.set("min_write_buffer_number_to_merge", 1i32);
    texts.set("max_background_flushes", 4i32);
    texts.set("max_background_compactions", 2i32);
    texts.set("target_file_size_base", 256u64 << 20);
}

/// Memtables of a quarter of the budget, and levels in proportion.
pub fn level_style(texts: &mut Texts, budget: u64) {
    texts.set("write_buffer_size", budget / 4);
    texts.set("min_write_buffer_number_to_merge", 2i32);
    texts.set("max_write_buffer_number", 6i32);
    texts.set("level0_file_num_compaction_trigger", 2i32);
    texts.set("target_file_size_base", budget / 8);
    texts.set("max_bytes_for_level_base", budget);
}

/// Memtables of a quarter of the budget, in a universal tree.
pub fn universal_style(texts: &mut Texts, budget: u64) {
    texts.set("write_buffer_size", budget / 4);
    texts.set("min_write_buffer_number_to_merge", 2i32);
    texts.set("max_write_buffer_number", 6i32);
    texts.set_text("compaction_style", "kCompactionStyleUniversal".into());
}

/// Filters, and a cache of that many MiB.
pub fn point_lookup(options: &mut Options, cache_mebibytes: u64) {
    let table = options.table.get_or_insert_default();
    table.texts.set_text("filter_policy", "bloomfilter:10:false".into());
    let bytes = cache_mebibytes.max(1).saturating_mul(1 << 20);
    table.set_cache_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
}

/// Small buffers and files, for a database of less than a gigabyte.
pub fn small_db(options: &mut Options) {
    let texts = &mut options.texts;
    texts.set("write_buffer_size", 2u64 << 20);
    texts.set("target_file_size_base", 2u64 << 20);
    texts.set("max_bytes_for_level_base", 10u64 << 20);
    texts.set("soft_pending_compaction_bytes_limit", 256u64 << 20);
    texts.set("hard_pending_compaction_bytes_limit", 1u64 << 30);
    texts.set("max_file_opening_threads", 1i32);
    texts.set("max_open_files", 5000i32);
}
