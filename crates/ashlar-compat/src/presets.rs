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

/// The defaults of an old release of RocksDB, by its major and minor number, where RocksDB's own function sets them.
///
/// Source: RocksDB `options/options.cc` (`OldDefaults`).
pub fn of_release(texts: &mut Texts, release: (i32, i32)) {
    texts.set("max_open_files", 5000i32);
    texts.set_text("wal_recovery_mode", "kTolerateCorruptedTailRecords".into());
    if release < (5, 19) {
        texts.set_text("compaction_pri", "kByCompensatedSize".into());
    }
    if release < (5, 6) {
        texts.set("delayed_write_rate", if release < (5, 2) { 2u64 << 20 } else { 16u64 << 20 });
    }
    if release < (5, 2) {
        texts.set("level0_stop_writes_trigger", if release < (5, 0) { 24i32 } else { 30i32 });
    }
    if release < (4, 7) {
        texts.set("max_file_opening_threads", 1i32);
        texts.set("table_cache_numshardbits", 4i32);
        texts.set("write_buffer_size", 4u64 << 20);
        texts.set("target_file_size_base", 2u64 << 20);
        texts.set("max_bytes_for_level_base", 10u64 << 20);
        texts.set("soft_pending_compaction_bytes_limit", 0u64);
        texts.set("hard_pending_compaction_bytes_limit", 0u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_releases_differ_where_rocksdb_says() {
        let of = |release, name| {
            let mut texts = Texts::default();
            of_release(&mut texts, release);
            texts.get::<i64>(name)
        };
        let stops =
            [(4, 6), (4, 13), (5, 1), (5, 2)].map(|release| of(release, "level0_stop_writes_trigger"));
        assert_eq!(stops, [24, 24, 30, 36]);
        assert_eq!([(4, 6), (4, 7)].map(|release| of(release, "write_buffer_size")), [4 << 20, 64 << 20]);
        assert_eq!([(5, 5), (5, 6)].map(|release| of(release, "delayed_write_rate")), [16 << 20, 0]);
    }
}
