//! The command line of `ashlar`, and of `ldb` if the program has that name. Names and flags of `ashlar db` are ldb's.

use crate::manifest::ManifestArguments;
use crate::options::OptionsArguments;
use crate::sst::SstArguments;
use crate::wal::WalArguments;
use ashlardb::{DbPath, FormatLevel, PlaceSettings};
use clap::{ArgAction, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

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
    Db(DbArguments),
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

const EXPLAIN_HELP: &str = "\
Example:
  $ ashlar db --db=DIR explain user:42
  get 'user:42' at sequence 1001
    memtable           no entry
    level 0 table 12   filter: it is not there
    level 6 table 9    filter: it may be there; blocks: 0 from the cache, 1 read; value of 100 bytes at sequence 42
    level 6            3 tables not asked: the key is outside of their bounds
  found: a value of 100 bytes
  cost: 1 blocks touched, 0 from the cache; 1 reads of 2210 bytes; filters: 1 no, 1 maybe
  time: 0.4 us in memtables, 61.2 us in tables; of it 40.0 us opening tables, ...

  $ ashlar db --db=DIR explain 'user:..user;' --max_keys=100";

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
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Sets a key
    Put {
        /// The key; with --hex or --key_hex as 0x and hexadecimal digits
        key: OsString,
        /// The value; with --hex or --value_hex as 0x and hexadecimal digits
        value: OsString,
    },
    /// Prints the value of a key
    Get {
        /// The key; with --hex or --key_hex as 0x and hexadecimal digits
        key: OsString,
    },
    /// Removes a key
    Delete {
        /// The key; with --hex or --key_hex as 0x and hexadecimal digits
        key: OsString,
    },
    /// Prints entries, one per line: KEY ==> VALUE
    Scan {
        #[command(flatten)]
        range: Range,
        /// Prints keys only
        #[arg(long = "no_value")]
        no_value: bool,
    },
    /// Prints entries as `load` reads them, and their number. Binary entries are printed as 0x… =hex=> 0x…
    Dump {
        #[command(flatten)]
        range: Range,
        /// Prints only the number of entries
        #[arg(long = "count_only")]
        count_only: bool,
    },
    /// Reads entries from standard input, one per line: KEY ==> VALUE, or key, tab, value
    Load {
        /// Lines are key, tab, value. Without this flag, the first line with a separator decides
        #[arg(long)]
        tsv: bool,
        /// Skips the WAL: faster, but a crash during the load loses the entries that were not flushed
        #[arg(long = "disable_wal")]
        disable_wal: bool,
        /// Compacts all families at the end
        #[arg(long)]
        compact: bool,
    },
    /// Compacts all tables of the family, or those of a key range, into its last level
    Compact {
        /// The first key of the range
        #[arg(long, value_name = "KEY")]
        from: Option<OsString>,
        /// The end of the range, itself excluded
        #[arg(long, value_name = "KEY")]
        to: Option<OsString>,
        /// The range of all keys that begin with these bytes
        #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
        prefix: Option<OsString>,
    },
    /// Prints a property of the family by RocksDB's name, such as rocksdb.stats
    #[command(alias = "get_property")]
    Property {
        /// The name of the property
        name: String,
    },
    /// Lists the column families
    #[command(name = "families", alias = "list_column_families")]
    Families,
    /// Creates a column family
    #[command(name = "create_family", alias = "create_column_family")]
    CreateFamily {
        /// The name of the new family
        name: String,
    },
    /// Drops a column family with all its entries
    #[command(name = "drop_family", alias = "drop_column_family")]
    DropFamily {
        /// The name of the family
        name: String,
    },
    /// Reads a key or a range and explains the read: the tables it searched, what each returned, the cost
    #[command(after_help = EXPLAIN_HELP)]
    Explain {
        /// A key, or a range as FROM..TO; either end may be missing
        #[arg(value_name = "KEY|RANGE")]
        what: OsString,
        /// Treats the word as a key, even with two dots in it
        #[arg(long)]
        key: bool,
        /// The greatest number of keys to read from a range
        #[arg(long = "max_keys", value_name = "N", default_value_t = 1_000_000)]
        max_keys: u64,
    },
    /// Reads all files without opening the database. Lists each damage and the keys at risk. Changes nothing
    ///
    /// Ends with status 1 when it finds damage: an open would refuse it, or a read would meet it. A gap in a WAL file does not
    /// count as damage: records are missing before later writes, but nothing proves that they were durable. A power cut
    /// leaves such a gap in writes that were not synced, and damage in such writes looks the same. An open drops the writes
    /// after the gap; the report names them.
    ///
    /// Takes no lock. If another process has the database open, the answer "sound" is valid. But a file that the process
    /// deletes during the check looks like damage, so the check then reports no damage, ends with status 1 and names the
    /// process. Close the database there and check again, or check a checkpoint of the database.
    Check {
        /// Prints the report as JSON; keys are hexadecimal
        #[arg(long)]
        json: bool,
    },
    /// Turns a damaged directory into a database that opens, and reports every loss. Uses the settings of the OPTIONS file.
    /// Damaged files move to lost/ in the directory
    ///
    /// Exit status: 0 repaired without a loss, 3 repaired with losses, which the report lists, 1 no repair was made.
    Repair {
        /// Leaves DIRECTORY unchanged and creates the repaired database in COPY, which shares files by hard links
        #[arg(long, value_name = "COPY")]
        into: Option<PathBuf>,
        /// For a failing device: copies every file, writes zeros for unreadable parts, and reports them
        #[arg(long, requires = "into")]
        around_unreadable: bool,
        /// Prints the report as JSON; keys are hexadecimal
        #[arg(long)]
        json: bool,
    },
    /// Makes INTO a database with the present state. Table files become hard links where the file system has them
    ///
    /// Needs the LOCK: the program that has the database open calls Db::checkpoint itself.
    Checkpoint {
        /// The new directory
        #[arg(required_unless_present = "checkpoint_dir")]
        into: Option<PathBuf>,
        /// The new directory, as ldb names it
        #[arg(long = "checkpoint_dir", value_name = "INTO", conflicts_with = "into")]
        checkpoint_dir: Option<PathBuf>,
    },
    /// Makes INTO a database that has only the family --column_family, for `import_family`. Table files become hard links
    ///
    /// Needs the LOCK: the program that has the database open calls Family::export itself.
    #[command(name = "export_family")]
    ExportFamily {
        /// The new directory
        into: PathBuf,
    },
    /// Makes the new family NAME of the directory of an export, with hard links to its tables
    ///
    /// The tables are read first, and the family is there with all of them or not at all.
    #[command(name = "import_family")]
    ImportFamily {
        /// The name of the new family
        name: String,
        /// The directory of the export
        from: PathBuf,
        /// Removes the export afterwards
        #[arg(long = "move_files")]
        move_files: bool,
    },
    /// Adds a backup of the present state to the directory BACKUPS, in RocksDB's layout. Copies only what earlier backups lack
    ///
    /// Needs the LOCK: the program that has the database open uses BackupEngine itself. Example, for every night:
    /// `ashlar db DIR backup BACKUPS --keep=7 --metadata="before the release"`. RocksDB and its ldb restore these backups.
    Backup {
        /// The directory of the backups, which is created if it is missing
        #[arg(required_unless_present = "backup_dir")]
        backups: Option<PathBuf>,
        /// The directory of the backups, as ldb names it
        #[arg(long = "backup_dir", value_name = "BACKUPS", conflicts_with = "backups")]
        backup_dir: Option<PathBuf>,
        /// Flushes the memtables first, so that a restored database has no WAL to replay
        #[arg(long)]
        flush: bool,
        /// A text for the list of backups
        #[arg(long, value_name = "TEXT", default_value = "")]
        metadata: String,
        /// Deletes all backups but the newest N afterwards
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: Option<u32>,
        /// The most bytes to copy per second; 0: no limit
        #[arg(long = "rate_limit", value_name = "BYTES", default_value_t = 0)]
        rate_limit: u64,
        /// How many threads copy
        #[arg(long = "num_threads", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
        num_threads: u16,
    },
    /// Makes DIRECTORY the database of a backup in BACKUPS. An existing database is replaced
    ///
    /// Every file is compared with its checksum, and an existing database stays until the whole backup has been verified. The
    /// database must not be open. WAL files and tables that DIRECTORY kept in other directories stay there, unused.
    Restore {
        /// The directory of the backups
        #[arg(required_unless_present = "backup_dir")]
        backups: Option<PathBuf>,
        /// The directory of the backups, as ldb names it
        #[arg(long = "backup_dir", value_name = "BACKUPS", conflicts_with = "backups")]
        backup_dir: Option<PathBuf>,
        /// The backup to restore. Default: the newest usable one
        #[arg(long, value_name = "N")]
        id: Option<u32>,
        /// Keeps the WAL files in DIRECTORY, so that the next open replays the writes after the backup
        #[arg(long = "keep_log_files")]
        keep_log_files: bool,
        /// The most bytes to copy per second; 0: no limit
        #[arg(long = "rate_limit", value_name = "BYTES", default_value_t = 0)]
        rate_limit: u64,
        /// How many threads copy
        #[arg(long = "num_threads", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
        num_threads: u16,
    },
    /// Lists the backups in DIRECTORY, which is a directory of backups here: ashlar db BACKUPS backups
    ///
    /// Ends with status 1 if a backup is damaged. The line of a damaged backup names the file.
    Backups {
        /// Reads all files, and compares them with their checksums
        #[arg(long)]
        verify: bool,
    },
    /// Writes entries from standard input, as `load` reads them, to the SST file FILE, which `ingest` takes. The database is
    /// only read: its family gives the order and the format
    ///
    /// The lines come in the order of the family's keys, each key once. There is a file only when every line is an entry.
    #[command(name = "write_sst", alias = "write_extern_sst")]
    WriteSst {
        /// The file to write, outside of the database directory
        file: PathBuf,
        /// Lines are key, tab, value. Without this flag, the first line with a separator decides
        #[arg(long)]
        tsv: bool,
    },
    /// Takes SST files into the family, all or none: those of `write_sst` and of RocksDB's SstFileWriter
    ///
    /// The files are checked first. Of a key in several files, the last file has the newest entry.
    #[command(name = "ingest", alias = "ingest_extern_sst")]
    Ingest {
        /// The files, in the order in which they count
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Links the files instead of copying them where it can, and removes their names afterwards
        #[arg(long = "move_files")]
        move_files: bool,
        /// Puts the files behind all data of the family, which needs cf_allow_ingest_behind
        #[arg(long = "ingest_behind")]
        ingest_behind: bool,
    },
    /// Prints the report of the open, the levels of each family, and the health
    Info,
    /// Lists the prepared transactions: the first phase of their two-phase commit is done, and nothing has decided on them
    ///
    /// One line for each, by name: how many keys and bytes it writes, in which families, and the WAL file that has it. Takes no lock,
    /// and may run beside the program that has the database open. Then the list is of one moment.
    Transactions,
    /// Commits the prepared transaction NAME: its writes become visible, and durable before the command ends
    ///
    /// Ask the coordinator of the transaction first: if other databases have rolled back their part, this one must not commit. Needs
    /// the LOCK: a program that has the database open decides itself. Status 1 if no prepared transaction has the name; standard
    /// error then lists the names that there are.
    #[command(name = "commit_transaction")]
    CommitTransaction {
        /// The name, as `transactions` prints it between the quotes; with --hex as 0x and hexadecimal digits
        name: OsString,
    },
    /// Rolls back the prepared transaction NAME: its writes are given up for good
    ///
    /// Ask the coordinator of the transaction first, as for `commit_transaction`. Needs the LOCK.
    #[command(name = "rollback_transaction")]
    RollbackTransaction {
        /// The name, as `transactions` prints it between the quotes; with --hex as 0x and hexadecimal digits
        name: OsString,
    },
    /// Checks that a RocksDB release (--level) reads everything in the directory, or lists what it does not read
    ///
    /// Takes no lock. If a file cannot be read and another process has the database open, the error names that process.
    Level,
    /// Rewrites every file in the format of a RocksDB release (--level), and checks the result
    Rewrite,
}

impl DbCommand {
    /// The first given flag that has no effect on this command, with the commands that use it.
    pub(crate) fn idle_flag(&self, given: &Common) -> Option<(&'static str, &'static str)> {
        use DbCommand::{
            CommitTransaction, Compact, CreateFamily, Delete, Dump, Explain, ExportFamily, Get, ImportFamily,
            Ingest, Load, Property, Put, RollbackTransaction, Scan, Transactions, WriteSst,
        };
        let named = matches!(self, Transactions | CommitTransaction { .. } | RollbackTransaction { .. });
        let files = matches!(self, Ingest { .. } | WriteSst { .. });
        let writes = matches!(
            self,
            Put { .. }
                | Delete { .. }
                | Load { .. }
                | CreateFamily { .. }
                | ImportFamily { .. }
                | Ingest { .. }
        );
        let reads = matches!(self, Get { .. } | Scan { .. } | Dump { .. } | Explain { .. });
        let of_family = files
            || matches!(
                self,
                Put { .. }
                    | Delete { .. }
                    | Load { .. }
                    | Compact { .. }
                    | Property { .. }
                    | ExportFamily { .. }
            );
        let hex =
            of_family && !matches!(self, Property { .. } | Ingest { .. } | ExportFamily { .. }) || reads;
        let idle = [
            (
                given.create_if_missing && !writes,
                "--create_if_missing",
                "put, delete, load, ingest, create_family and import_family",
            ),
            (
                given.column_family.is_some() && !of_family && !reads,
                "--column_family",
                "put, get, delete, scan, dump, load, explain, compact, property, write_sst, ingest and export_family",
            ),
            (
                (given.hex && !named || given.key_hex || given.value_hex) && !hex,
                "--hex",
                "put, get, delete, scan, dump, load, explain, compact, write_sst and, as --hex, the commands on transactions",
            ),
        ];
        idle.into_iter().find(|(idle, ..)| *idle).map(|(_, flag, commands)| (flag, commands))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> DbArguments {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Db(arguments) => arguments,
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
