//! The flags of `ashlar sst`: sst_dump's.

use clap::{Args, Parser, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ashlar sst DB/000012.sst --command=scan --from=a --to=b
  ashlar sst DB --command=verify                           every table of a directory
  ashlar sst --file=DB/000012.sst --show_properties        sst_dump's form
  ashlar sst DB/000012.sst --command=blocks                every block: where, how large, how stored, is it right

Exit status: 0 every table is as asked, 1 one is not or cannot be read, 2 wrong command line.";

/// The command line under the name `sst_dump`.
#[derive(Debug, Parser)]
#[command(name = "sst_dump", version, arg_required_else_help = true)]
pub(crate) struct SstCli {
    #[command(flatten)]
    pub(crate) arguments: SstArguments,
}

/// The value of `--command`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SstCommand {
    /// Reads all entries and shows nothing
    #[default]
    Check,
    /// Shows entries: 'key' seq:N, type:T => value
    Scan,
    /// Shows no entries; use it with --show_properties and --show_summary
    None,
    /// Writes the whole content of a table to NAME_dump.txt in the same directory
    Raw,
    /// Reads every block, compares every checksum, checks order, index, filter and counts
    Verify,
    /// Shows every block: offset, size, compression, checksum, entries
    Blocks,
    /// Lists the files that are tables
    Identify,
    /// Not supported
    Recompress,
}

/// Reads tables without a database, with the flags of RocksDB's sst_dump.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SstArguments {
    /// A table, or a directory with tables
    #[arg(value_name = "FILE|DIRECTORY", required_unless_present_any = ["file", "parse_internal_key"])]
    pub(crate) path: Option<PathBuf>,
    /// A table, or a directory with tables, in sst_dump's form
    #[arg(long, value_name = "FILE|DIRECTORY", conflicts_with = "path")]
    pub(crate) file: Option<PathBuf>,
    /// The command to run
    #[arg(long, value_enum, default_value = "check")]
    pub(crate) command: SstCommand,
    /// Shows keys and values as hexadecimal digits
    #[arg(long = "output_hex")]
    pub(crate) output_hex: bool,
    /// --from, --to and --prefix are 0x and hexadecimal digits
    #[arg(long = "input_key_hex")]
    pub(crate) input_key_hex: bool,
    /// Decodes references into blob files (scan)
    #[arg(long = "decode_blob_index")]
    pub(crate) decode_blob_index: bool,
    /// The first user key (scan, check)
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<OsString>,
    /// The end of the range; this user key is not shown (scan, check)
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<OsString>,
    /// Only user keys with this prefix (scan, check)
    #[arg(long, value_name = "KEY", conflicts_with = "from")]
    pub(crate) prefix: Option<OsString>,
    /// The greatest number of entries to read, over all tables; 0: all (scan, check)
    #[arg(long = "read_num", value_name = "N", default_value_t = 0)]
    pub(crate) read_num: u64,
    /// No effect: checksums are always verified
    #[arg(long = "verify_checksum")]
    pub(crate) verify_checksum: bool,
    /// Show the properties of each table
    #[arg(long = "show_properties")]
    pub(crate) show_properties: bool,
    /// Show sums over all tables
    #[arg(long = "show_summary")]
    pub(crate) show_summary: bool,
    /// Decodes an internal key, given as 0x and hexadecimal digits
    #[arg(long = "parse_internal_key", value_name = "KEY")]
    pub(crate) parse_internal_key: Option<OsString>,
}
