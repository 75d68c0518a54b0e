//! ldb's flags for the settings of an open. Each holds for every family, over what the OPTIONS file says.

use ashlardb::Builder;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// The settings that the user has given.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings of the open")]
pub(crate) struct Tuning {
    /// Values have the time of their write, as in RocksDB's DBWithTTL. Commands show them without it
    #[arg(long, global = true, conflicts_with = "use_txn")]
    ttl: bool,
    /// As in ldb: writes go through transactions. A single write has the same effect without one
    #[arg(long = "use_txn", global = true)]
    use_txn: bool,
    /// As in ldb, with --use_txn: when RocksDB's transactions write. It changes no single write
    #[arg(long = "txn_write_policy", global = true, value_name = "0|1|2", requires = "use_txn")]
    txn_write_policy: Option<u32>,
    /// As in ldb: reads beside the process that writes the database, and refuses writes. Nothing is written to DIRECTORY
    #[arg(long = "secondary_path", global = true, value_name = "DIRECTORY", conflicts_with_all = ["ttl", "use_txn"])]
    secondary_path: Option<PathBuf>,
    /// As in ldb. The OPTIONS file is always read, so only true is taken
    #[arg(long = "try_load_options", global = true, value_name = "true", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = ["true"])]
    try_load_options: Option<String>,
    /// Does not compare the order of tables in a level when the tree changes
    #[arg(long = "disable_consistency_checks", global = true)]
    disable_consistency_checks: bool,
    /// Bits of the Bloom filter for each key
    #[arg(long = "bloom_bits", global = true, value_name = "N")]
    bloom_bits: Option<u32>,
    /// Bytes of a data block before compression
    #[arg(long = "block_size", global = true, value_name = "BYTES")]
    block_size: Option<u64>,
    /// The first N bytes of a key are its prefix
    #[arg(long = "fix_prefix_len", global = true, value_name = "N")]
    fix_prefix_len: Option<u32>,
    /// The codec of tables: no, snappy, zlib, bzip2, lz4, lz4hc, xpress or zstd
    #[arg(long = "compression_type", global = true, value_name = "CODEC", value_parser = codec)]
    compression_type: Option<&'static str>,
    /// The most bytes of a compression dictionary
    #[arg(long = "compression_max_dict_bytes", global = true, value_name = "BYTES")]
    compression_max_dict_bytes: Option<u32>,
    /// Whether compactions start by themselves
    #[arg(long = "auto_compaction", global = true, value_name = "true|false")]
    auto_compaction: Option<bool>,
    /// The most bytes in the memtables of all families; 0: no limit
    #[arg(long = "db_write_buffer_size", global = true, value_name = "BYTES")]
    db_write_buffer_size: Option<u64>,
    /// Bytes of a memtable
    #[arg(long = "write_buffer_size", global = true, value_name = "BYTES")]
    write_buffer_size: Option<u64>,
    /// Bytes of a table, about
    #[arg(long = "file_size", global = true, value_name = "BYTES")]
    file_size: Option<u64>,
    /// Large values go to blob files
    #[arg(long = "enable_blob_files", global = true)]
    enable_blob_files: bool,
    /// The fewest bytes of a value in a blob file
    #[arg(long = "min_blob_size", global = true, value_name = "BYTES")]
    min_blob_size: Option<u64>,
    /// Bytes of a blob file, about
    #[arg(long = "blob_file_size", global = true, value_name = "BYTES")]
    blob_file_size: Option<u64>,
    /// The codec of blob files, as for --compression_type
    #[arg(long = "blob_compression_type", global = true, value_name = "CODEC", value_parser = codec)]
    blob_compression_type: Option<&'static str>,
    /// The first level whose tables have blob files
    #[arg(long = "blob_file_starting_level", global = true, value_name = "N")]
    blob_file_starting_level: Option<u32>,
    /// Compactions move live values out of old blob files
    #[arg(long = "enable_blob_garbage_collection", global = true)]
    enable_blob_garbage_collection: bool,
    /// The share of blob files that count as old
    #[arg(long = "blob_garbage_collection_age_cutoff", global = true, value_name = "0..1")]
    blob_garbage_collection_age_cutoff: Option<f64>,
    /// The share of garbage from which an old blob file is collected
    #[arg(long = "blob_garbage_collection_force_threshold", global = true, value_name = "0..1")]
    blob_garbage_collection_force_threshold: Option<f64>,
    /// Bytes that a compaction reads ahead in a blob file
    #[arg(long = "blob_compaction_readahead_size", global = true, value_name = "BYTES")]
    blob_compaction_readahead_size: Option<u64>,
}

/// RocksDB's name of a codec in option strings, by ldb's.
fn codec(name: &str) -> Result<&'static str, String> {
    Ok(match name {
        "no" => "kNoCompression",
        "snappy" => "kSnappyCompression",
        "zlib" => "kZlibCompression",
        "bzip2" => "kBZip2Compression",
        "lz4" => "kLZ4Compression",
        "lz4hc" => "kLZ4HCCompression",
        "xpress" => "kXpressCompression",
        "zstd" => "kZSTD",
        _ => return Err("the codecs are no, snappy, zlib, bzip2, lz4, lz4hc, xpress and zstd".to_owned()),
    })
}

impl Tuning {
    /// Whether a flag is given.
    pub(crate) fn is_given(&self) -> bool {
        self.ttl
            || self.use_txn
            || self.is_secondary()
            || self.try_load_options.is_some()
            || !self.options().is_empty()
    }

    /// Whether values have times.
    pub(crate) fn has_ttl(&self) -> bool {
        self.ttl
    }

    /// The settings with values as they are stored, with their times.
    pub(crate) fn without_ttl(&self) -> Tuning {
        Tuning { ttl: false, ..self.clone() }
    }

    /// Whether the open is that of a secondary.
    pub(crate) fn is_secondary(&self) -> bool {
        self.secondary_path.is_some()
    }

    /// Applies the settings to an open.
    pub(crate) fn apply(&self, builder: Builder) -> Builder {
        let builder = if self.ttl { builder.ttl(Duration::ZERO) } else { builder };
        match self.options() {
            text if text.is_empty() => builder,
            text => builder.options(&text),
        }
    }

    /// The settings as an option string of RocksDB.
    fn options(&self) -> String {
        let mut text = String::new();
        let mut set = |name: &str, value: Option<String>| {
            text.extend(value.map(|value| format!("{name}={value};")));
        };
        let flag = |given: bool, value: &str| given.then(|| value.to_owned());
        set("force_consistency_checks", flag(self.disable_consistency_checks, "false"));
        set("block_based_table_factory", self.table_options());
        set("prefix_extractor", self.fix_prefix_len.map(|length| format!("rocksdb.FixedPrefix.{length}")));
        set("compression", self.compression_type.map(str::to_owned));
        set(
            "compression_opts",
            self.compression_max_dict_bytes.map(|bytes| format!("{{max_dict_bytes={bytes};}}")),
        );
        set("disable_auto_compactions", self.auto_compaction.map(|on| (!on).to_string()));
        set("db_write_buffer_size", self.db_write_buffer_size.map(|bytes| bytes.to_string()));
        set("write_buffer_size", self.write_buffer_size.map(|bytes| bytes.to_string()));
        set("target_file_size_base", self.file_size.map(|bytes| bytes.to_string()));
        set("enable_blob_files", flag(self.enable_blob_files, "true"));
        set("min_blob_size", self.min_blob_size.map(|bytes| bytes.to_string()));
        set("blob_file_size", self.blob_file_size.map(|bytes| bytes.to_string()));
        set("blob_compression_type", self.blob_compression_type.map(str::to_owned));
        set("blob_file_starting_level", self.blob_file_starting_level.map(|level| level.to_string()));
        set("enable_blob_garbage_collection", flag(self.enable_blob_garbage_collection, "true"));
        let share = |share: Option<f64>| share.map(|share| share.to_string());
        set("blob_garbage_collection_age_cutoff", share(self.blob_garbage_collection_age_cutoff));
        set("blob_garbage_collection_force_threshold", share(self.blob_garbage_collection_force_threshold));
        let readahead = self.blob_compaction_readahead_size.map(|bytes| bytes.to_string());
        set("blob_compaction_readahead_size", readahead);
        text
    }

    fn table_options(&self) -> Option<String> {
        let filter = self.bloom_bits.map(|bits| format!("filter_policy=bloomfilter:{bits}:false;"));
        let block = self.block_size.map(|bytes| format!("block_size={bytes};"));
        let inside: String = filter.into_iter().chain(block).collect();
        (!inside.is_empty()).then(|| format!("{{{inside}}}"))
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::LdbCli;
    use clap::Parser;

    fn options(flags: &str) -> String {
        let words = ["ldb", "--db=D", "scan"].into_iter().chain(flags.split_whitespace());
        LdbCli::try_parse_from(words).unwrap().db.common.tuning.options()
    }

    #[test]
    fn flags_are_options_by_rocksdbs_names() {
        assert_eq!(options("--try_load_options --ttl"), "");
        assert_eq!(
            options("--bloom_bits=14 --block_size=1024 --auto_compaction=true --compression_type=zstd"),
            "block_based_table_factory={filter_policy=bloomfilter:14:false;block_size=1024;};compression=kZSTD;disable_auto_compactions=false;"
        );
        let blobs = options("--enable_blob_files --min_blob_size=1 --blob_garbage_collection_age_cutoff=0.5");
        assert_eq!(blobs, "enable_blob_files=true;min_blob_size=1;blob_garbage_collection_age_cutoff=0.5;");
    }

    #[test]
    fn flags_that_exclude_each_other_are_refused() {
        for flags in
            ["--ttl --use_txn", "--txn_write_policy=1", "--try_load_options=false", "--compression_type=x"]
        {
            let words = ["ldb", "--db=D", "scan"].into_iter().chain(flags.split_whitespace());
            assert!(LdbCli::try_parse_from(words).is_err(), "{flags}");
        }
    }
}
