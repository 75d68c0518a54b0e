//! The command line of `ashlar`, and of `ldb` if the program has that name. Names and flags of `ashlar db` are ldb's.

mod commands;
mod tree;
mod tuning;

use crate::manifest::ManifestArguments;
use crate::options::OptionsArguments;
use crate::sst::SstArguments;
use crate::wal::WalArguments;
use ashlardb::{DbPath, FormatLevel, PlaceSettings};
use clap::{ArgAction, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use commands::{DbCommand, Dump};
pub(crate) use tree::{InternalDump, TreeCommand};
pub(crate) use tuning::Tuning;

/// AshlarDB on the command line. Opens RocksDB's directories without a conversion.
#[derive(Debug, Parser)]
#[command(name = "ashlar", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Reads and changes the database in a directory, with the commands of RocksDB's ldb.
#[derive(Debug, Parser)]
#[command(name = "ldb", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct LdbCli {
    #[command(flatten)]
    pub(crate) db: DbArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measures the engine with db_bench's workloads, flags and lines (`ashlar bench --help` lists them)
    #[command(disable_help_flag = true)]
    Bench {
        /// db_bench's flags. Without flags: a million entries, a temporary database, a table at the end
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Reads and changes the database in a directory, with ldb's commands and flags
    #[command(arg_required_else_help = true, after_help = EXAMPLES)]
    Db(Box<DbArguments>),
    /// Reads table files without a database: entries, properties, blocks, checksums, with sst_dump's flags and lines
    #[command(arg_required_else_help = true)]
    Sst(SstArguments),
    /// Explains every record of a MANIFEST, and the resulting state
    Manifest(ManifestArguments),
    /// Explains every record of a write-ahead log, and how the log ends
    Wal(WalArguments),
    /// Explains RocksDB's option names: used, mapped, ignored or refused, and why
    Options(OptionsArguments),
}

const EXAMPLES: &str = "\
Examples:
  ashlar db --db=DIR put --create_if_missing user:1 Ada
  ashlar db DIR get user:1                                 the directory may stand before the command
  ashlar db --db=DIR batchput user:2 Bo user:3 Cy          several entries at once; multi_get reads several
  ashlar db --db=DIR scan --prefix=user: --max_keys=10
  ashlar db --db=DIR --hex get 0x757365723A31              binary keys and values, in and out
  ashlar db --db=DIR dump | ashlar db --db=COPY load --create_if_missing
  find . -type f -printf '%p\\t%s\\n' | ashlar db --db=DIR load --tsv --create_if_missing
  ashlar db --db=DIR check                                 what is damaged, and which keys are at risk
  ashlar db --db=DIR repair --into=COPY                    a database from what is readable; DIR stays as it is
  ashlar db --db=DIR checkpoint COPY                       a second database with the state of now, by hard links
  ashlar db --db=DIR export_family OUT --column_family=F   one family; ashlar db --db=DIR2 import_family F OUT takes it
  ashlar db --db=DIR backup BACKUPS --keep=7               an incremental backup in RocksDB's layout; the newest 7 stay
  ashlar db BACKUPS backups                                lists them; ashlar db --db=DIR restore BACKUPS restores one
  ashlar db --db=DIR write_sst users.sst < SORTED          an SST file; ashlar db --db=DIR ingest users.sst takes it
  ashlar db --db=DIR compact --prefix=user:                merges the tables that hold these keys
  ashlar db --db=DIR property rocksdb.stats                a figure or report by RocksDB's name
  ashlar db --db=DIR info                                  the report of the open, levels, sizes, health
  ashlar db --db=DIR transactions                          prepared transactions that nothing has decided on
  ashlar db --db=DIR commit_transaction NAME               decides on one; rollback_transaction gives it up
  ashlar db --db=DIR explain user:1                        the tables that a read asks, and its cost
  ashlar db --db=DIR level --level=rocksdb-7.8             does RocksDB 7.8 read this directory?
  ashlar db --db=DIR rewrite --level=rocksdb-7.8           rewrite it so that RocksDB 7.8 reads it

Put a key that begins with a dash after `--`: ashlar db --db=DIR get -- -x
Exit status: 0 success, 1 failure (also: key not found), 2 wrong command line, 3 a repair with losses.";

/// The flags that all commands of `ashlar db` share.
#[derive(Debug, Args)]
pub(crate) struct DbArguments {
    /// The database's directory
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// The database's directory, in ldb's form
    #[arg(long, global = true, value_name = "DIRECTORY")]
    pub(crate) db: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<DbCommand>,
}

/// Flags that are valid before and after the command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// The column family to use [default: default]
    #[arg(long = "column_family", global = true, value_name = "NAME")]
    pub(crate) column_family: Option<String>,
    /// Keys and values are hexadecimal, as 0x616263, in input and output
    #[arg(long, global = true, action = ArgAction::SetTrue)]
    pub(crate) hex: bool,
    /// Keys are hexadecimal
    #[arg(long = "key_hex", global = true)]
    pub(crate) key_hex: bool,
    /// Values are hexadecimal
    #[arg(long = "value_hex", global = true)]
    pub(crate) value_hex: bool,
    /// Creates the database if the directory has none (commands that write)
    #[arg(long = "create_if_missing", global = true)]
    pub(crate) create_if_missing: bool,
    /// The oldest RocksDB release that can open the directory afterwards: rocksdb-6.29, 7.8, 9.11 or 11
    #[arg(long, global = true, value_name = "RELEASE")]
    pub(crate) level: Option<FormatLevel>,
    /// The directory of the WAL files, if it is neither the database directory nor the one in the newest OPTIONS file
    #[arg(long = "wal_dir", global = true, value_name = "DIRECTORY")]
    pub(crate) wal_dir: Option<String>,
    /// A directory of tables, with its target size in bytes. Repeat for each of RocksDB's db_paths, in their order
    #[arg(long = "db_path", global = true, value_name = "DIRECTORY[:BYTES]", value_parser = db_path)]
    pub(crate) db_paths: Vec<DbPath>,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
}

impl Common {
    /// The name of the column family to use.
    pub(crate) fn family_name(&self) -> &str {
        self.column_family.as_deref().unwrap_or("default")
    }

    /// The directories that the user has given.
    pub(crate) fn places(&self) -> PlaceSettings {
        let (wal_dir, db_paths) = (self.wal_dir.clone().unwrap_or_default(), self.db_paths.clone());
        PlaceSettings { wal_dir, db_paths, ..PlaceSettings::default() }
    }
}

/// Parses a directory of tables. A number after the last colon is its target size in bytes.
fn db_path(text: &str) -> Result<DbPath, String> {
    let split = text.rsplit_once(':').and_then(|(path, bytes)| Some((path, bytes.parse().ok()?)));
    let (path, target_bytes) = split.unwrap_or((text, u64::MAX));
    if path.is_empty() {
        Err("the directory is missing".to_owned())
    } else {
        Ok(DbPath::new(path, target_bytes))
    }
}

/// The entries that a command reads.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Range {
    /// The first key to show
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<OsString>,
    /// The end of the range; this key is not shown
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<OsString>,
    /// Only keys that begin with these bytes
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<OsString>,
    /// The greatest number of entries to show; negative: all
    #[arg(long = "max_keys", value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_keys: Option<i64>,
    /// Prints lines of key, tab, value
    #[arg(long)]
    pub(crate) tsv: bool,
    #[command(flatten)]
    pub(crate) times: Times,
}

/// The times of writes that a command on a database with times to live shows, or is bounded by.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Times {
    /// With --ttl: prints the time of the write before each entry, in UTC
    #[arg(long)]
    pub(crate) timestamp: bool,
    /// With --ttl: only entries that were written at this time or later, in seconds since 1970
    #[arg(long = "start_time", value_name = "SECONDS")]
    pub(crate) start_time: Option<i32>,
    /// With --ttl: only entries that were written before this time, in seconds since 1970
    #[arg(long = "end_time", value_name = "SECONDS")]
    pub(crate) end_time: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> DbArguments {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Db(arguments) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
        LdbCli::command().debug_assert();
    }

    #[test]
    fn flags_stand_anywhere() {
        for line in [
            "ashlar db --db=D --hex scan --max_keys=3 --from=0x61",
            "ashlar db scan --from 0x61 --max_keys 3 --hex --db D",
            "ashlar db D --hex scan --max_keys=3 --from=0x61",
        ] {
            let a = parse(line);
            assert_eq!(a.db.or(a.directory).unwrap(), PathBuf::from("D"), "{line}");
            assert!(a.common.hex && a.common.family_name() == "default", "{line}");
            let Some(DbCommand::Scan { range, no_value: false }) = a.command else { panic!("{line}") };
            assert_eq!((range.max_keys, range.from.unwrap()), (Some(3), "0x61".into()), "{line}");
        }
        let Some(DbCommand::Scan { range, .. }) = parse("ashlar db D scan --max_keys=-1").command else {
            panic!()
        };
        assert_eq!(range.max_keys, Some(-1));
        assert!(
            matches!(parse("ashlar db D get -- -x").command, Some(DbCommand::Get { key }) if key == "-x")
        );
        assert!(matches!(parse("ashlar db D list_column_families").command, Some(DbCommand::Families)));
    }

    #[test]
    fn bench_takes_whatever_comes() {
        let line = ["ashlar", "bench", "--benchmarks=fillseq", "-num", "5", "--help", "--", "x"];
        let Command::Bench { flags } = Cli::try_parse_from(line).unwrap().command else { panic!() };
        assert_eq!(flags, ["--benchmarks=fillseq", "-num", "5", "--help", "--", "x"]);
    }
}
