//! The commands on the files and levels of a database, with their arguments.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// What `idump` prints.
#[derive(Debug, Args)]
pub(crate) struct InternalDump {
    /// The first key to show
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<OsString>,
    /// The end of the range; this key is not shown
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<OsString>,
    /// --from and --to are 0x and hexadecimal digits. (--hex is for the output alone, as in ldb)
    #[arg(long = "input_key_hex")]
    pub(crate) input_key_hex: bool,
    /// The greatest number of versions to show; negative: all
    #[arg(long = "max_keys", value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_keys: Option<i64>,
    /// Prints only the number of versions
    #[arg(long = "count_only")]
    pub(crate) count_only: bool,
    /// Prints the number and bytes of the versions whose keys agree up to the character
    #[arg(long = "count_delim", value_name = "CHARACTER", num_args = 0..=1, require_equals = true,
          default_missing_value = ".", conflicts_with = "count_only")]
    pub(crate) count_delim: Option<OsString>,
    /// Begins with the property rocksdb.stats
    #[arg(long)]
    pub(crate) stats: bool,
    /// Shows where in which blob file a value is
    #[arg(long = "decode_blob_index")]
    pub(crate) decode_blob_index: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TreeCommand {
    /// Prints every version of every key that the files hold, deletions among them: 'KEY' seq:N, type:T => VALUE
    ///
    /// The types are 0 deletion, 1 value, 2 merge operand, 7 single deletion, 17 value in a blob file, 22 row of columns. Takes
    /// no lock.
    #[command(name = "idump")]
    InternalDump(InternalDump),
    /// Lists the table and blob files that the database needs, with their levels and families
    ///
    /// Takes no lock.
    #[command(name = "list_live_files_metadata")]
    LiveFiles {
        /// One list by file name, instead of one for each family
        #[arg(long = "sort_by_filename")]
        sort_by_filename: bool,
    },
    /// Prints the content of every file that the database needs: MANIFEST, tables, blob files, WAL files
    #[command(name = "dump_live_files")]
    DumpLiveFiles {
        /// Shows where in which blob file a value is
        #[arg(long = "decode_blob_index")]
        decode_blob_index: bool,
        /// Prints the values of blob files, not their stored bytes
        #[arg(long = "dump_uncompressed_blobs")]
        dump_uncompressed_blobs: bool,
    },
    /// Prints the batches of a WAL file, one per line. `ashlar wal` explains each record
    #[command(name = "dump_wal")]
    DumpWal {
        /// The file, or a directory with WAL files
        #[arg(long, value_name = "FILE|DIRECTORY")]
        walfile: PathBuf,
        /// Begins with a line that names the columns
        #[arg(long)]
        header: bool,
        /// Prints values beside keys
        #[arg(long = "print_value")]
        print_value: bool,
        /// As in ldb, without effect: the marks of transactions are printed under every policy
        #[arg(long = "write_committed", value_name = "true|false", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_parser = ["true", "false"])]
        write_committed: Option<String>,
    },
    /// Prints the state after the MANIFEST: families, and tables by level. `ashlar manifest` explains each record
    #[command(name = "manifest_dump")]
    ManifestDump {
        /// The MANIFEST. Default: that of the database, which has one
        #[arg(long, value_name = "FILE")]
        path: Option<PathBuf>,
        /// As in ldb, without effect: the state is printed whole
        #[arg(long)]
        verbose: bool,
    },
    /// Prints the checksums of tables and blob files that the MANIFEST has: NUMBER, FUNCTION, CHECKSUM
    #[command(name = "file_checksum_dump")]
    FileChecksums {
        /// The MANIFEST. Default: the one in use
        #[arg(long, value_name = "FILE")]
        path: Option<PathBuf>,
    },
    /// Prints the range deletions of the family's tables, in hexadecimal digits
    #[command(name = "list_file_range_deletes")]
    RangeDeletes {
        /// The greatest number of range deletions to print
        #[arg(long = "max_keys", value_name = "N", default_value_t = 1000, allow_negative_numbers = true)]
        max_keys: i64,
    },
    /// Moves the tables of the family into its first N levels, if deeper levels have some
    ///
    /// The family is compacted first. The OPTIONS file has num_levels=N afterwards, so the next open has that many levels.
    #[command(name = "reduce_levels")]
    ReduceLevels {
        /// The number of levels, level 0 included
        #[arg(long = "new_levels", value_name = "N", value_parser = clap::value_parser!(u8).range(2..=64))]
        new_levels: u8,
        /// Prints the number of levels with tables before the change
        #[arg(long = "print_old_levels")]
        print_old_levels: bool,
    },
    /// Turns a leveled family into a universal one, which has one table in its last level then
    ///
    /// The OPTIONS file has the new style afterwards. A compaction writes all entries of the family once, so the device needs room
    /// for a second copy. A universal family becomes leveled without a change of files: open it with
    /// compaction_style=kCompactionStyleLevel.
    #[command(name = "change_compaction_style")]
    ChangeStyle {
        /// The style that the family has: 0 leveled, 1 universal
        #[arg(long = "old_compaction_style", value_name = "0|1", value_parser = clap::value_parser!(u8).range(..=1))]
        old: u8,
        /// The style to have: 0 leveled, 1 universal
        #[arg(long = "new_compaction_style", value_name = "0|1", value_parser = clap::value_parser!(u8).range(..=1))]
        new: u8,
    },
    /// As in ldb, where it takes a table out of the MANIFEST. The engine has no such call, so the command is refused
    #[command(name = "unsafe_remove_sst_file")]
    UnsafeRemove {
        /// The number of the table
        number: u64,
    },
    /// As in ldb, where it records the temperatures of files. AshlarDB has one tier of storage, so the command is refused
    #[command(name = "update_manifest")]
    UpdateManifest {
        /// As in ldb
        #[arg(long = "update_temperatures")]
        update_temperatures: bool,
        /// As in ldb
        #[arg(long)]
        verbose: bool,
    },
}
