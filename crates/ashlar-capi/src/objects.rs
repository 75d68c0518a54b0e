//! Option objects that are only values with names: each has RocksDB's defaults, and the calls that take one read it.

use ashlar_compat::options::Texts;
use ashlar_compat::transactions::{DATABASE_DEFAULTS, TRANSACTION_DEFAULTS};
use ashlar_compat::values;

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident, $create:ident = $defaults:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Texts);

        impl Default for $name {
            fn default() -> Self {
                $name(Texts::listed(&$defaults))
            }
        }

        has_texts!($name => 0);

        /// All defaults.
        pub fn $create() -> $name {
            $name::default()
        }
    )* };
}
objects! {
    /// `rocksdb_flushoptions_t`. A flush here always waits, so these change nothing.
    FlushObject, flushoptions_create = values::FLUSH;
    /// `rocksdb_flushwaloptions_t`.
    FlushWalObject, flushwaloptions_create = values::FLUSH_WAL;
    /// `rocksdb_wait_for_compact_options_t`.
    WaitObject, wait_for_compact_options_create = [];
    /// `rocksdb_envoptions_t`. Ignored: this library opens files in its own way.
    EnvOptionsObject, envoptions_create = values::FILES;
    /// `rocksdb_ingestexternalfileoptions_t`.
    IngestObject, ingestexternalfileoptions_create = values::INGEST;
    /// `rocksdb_restore_options_t`.
    RestoreObject, restore_options_create = values::RESTORE;
    /// `rocksdb_wal_readoptions_t`.
    WalReadObject, wal_readoptions_create = [("verify_checksums", "true")];
    /// `rocksdb_transactiondb_options_t`.
    TxnDbOptionsObject, transactiondb_options_create = DATABASE_DEFAULTS;
    /// `rocksdb_transaction_options_t`.
    TxnOptionsObject, transaction_options_create = TRANSACTION_DEFAULTS;
    /// `rocksdb_optimistictransactiondb_options_t`.
    OptimisticDbOptionsObject, optimistictransactiondb_options_create = [
        ("validate_policy", "1"),
        ("occ_lock_buckets", "1048576"),
    ];
    /// `rocksdb_optimistictransaction_options_t`.
    OptimisticOptionsObject, optimistictransaction_options_create = [];
    /// `rocksdb_cuckoo_table_options_t`: of a kind of tables that AshlarDB does not write.
    CuckooObject, cuckoo_options_create = [
        ("hash_ratio", "0.9"),
        ("max_search_depth", "100"),
        ("cuckoo_block_size", "5"),
        ("use_module_hash", "true"),
    ];
    /// `rocksdb_size_approximation_options_t`. The margin of errors is ignored.
    SizeObject, size_approximation_options_create = ashlar_compat::sizes::SIZE_DEFAULTS;
    /// `rocksdb_hyper_clock_cache_options_t`.
    ClockObject, hyper_clock_cache_options_default = [];
    /// `rocksdb_import_column_family_options_t`.
    ImportObject, import_column_family_options_create = [];
    /// `rocksdb_trace_options_t`: of traces, which are not written.
    TraceOptionsObject, trace_options_create = [("max_trace_file_size", "68719476736"), ("sampling_frequency", "1")];
    /// `rocksdb_block_cache_trace_options_t`.
    BlockTraceObject, block_cache_trace_options_create = [("sampling_frequency", "1")];
    /// `rocksdb_block_cache_trace_writer_options_t`.
    BlockTraceWriterObject, block_cache_trace_writer_options_create = [("max_trace_file_size", "68719476736")];
    /// `rocksdb_replay_options_t`.
    ReplayOptionsObject, replay_options_create = [("num_threads", "1"), ("fast_forward", "1")];
    /// `rocksdb_livefiles_storage_info_options_t`.
    StorageOptionsObject, livefiles_storage_info_options_create = [];
    /// `rocksdb_lru_cache_options_t`.
    LruObject, lru_cache_options_create = [];
}
