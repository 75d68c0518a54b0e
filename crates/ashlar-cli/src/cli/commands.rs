//! The commands of `ashlar db`, with their arguments, and the flags that each of them takes.

use super::{Common, Range, TreeCommand};
use clap::{ArgAction, Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

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

/// What `dump` prints.
#[derive(Debug, Args)]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) range: Range,
    /// Prints only the number of entries
    #[arg(long = "count_only")]
    pub(crate) count_only: bool,
    /// A table, a blob file, a WAL file or a MANIFEST to print instead of a database
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count_only", "count_delim", "stats", "bucket", "from", "to", "prefix", "max_keys", "tsv",
          "timestamp", "start_time", "end_time"])]
    pub(crate) path: Option<PathBuf>,
    /// With --path: shows where in which blob file a value is
    #[arg(long = "decode_blob_index", requires = "path")]
    pub(crate) decode_blob_index: bool,
    /// With --path: prints the values of a blob file, not their stored bytes
    #[arg(long = "dump_uncompressed_blobs", requires = "path")]
    pub(crate) dump_uncompressed_blobs: bool,
    /// With --ttl: prints the number of entries that were written in each N seconds, in place of their number
    #[arg(long, value_name = "N")]
    pub(crate) bucket: Option<i32>,
    /// Begins with the property rocksdb.stats
    #[arg(long)]
    pub(crate) stats: bool,
    /// Prints the number and bytes of the entries whose keys agree up to the character
    #[arg(long = "count_delim", value_name = "CHARACTER", num_args = 0..=1, require_equals = true,
          default_missing_value = ".", conflicts_with = "count_only")]
    pub(crate) count_delim: Option<OsString>,
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
    /// Sets several keys, all or none
    #[command(name = "batchput")]
    BatchPut {
        /// A key, its value, and so on, each as for `put`
        #[arg(required = true, num_args = 2.., value_names = ["KEY", "VALUE"])]
        entries: Vec<OsString>,
    },
    /// Prints the entries of several keys, one per line, and which keys there are not
    #[command(name = "multi_get")]
    MultiGet {
        /// The keys, each as for `get`
        #[arg(required = true)]
        keys: Vec<OsString>,
    },
    /// Stores a row of named columns under a key
    #[command(name = "put_entity")]
    PutEntity {
        /// The key; with --hex or --key_hex as 0x and hexadecimal digits
        key: OsString,
        /// The columns. Without a name, as in :VALUE, the default column. With --hex or --value_hex names and values are 0x and
        /// hexadecimal digits
        #[arg(required = true, value_name = "NAME:VALUE")]
        columns: Vec<OsString>,
    },
    /// Prints the row of a key, as `put_entity` takes it. A plain value is a row of its default column
    #[command(name = "get_entity")]
    GetEntity {
        /// The key; with --hex or --key_hex as 0x and hexadecimal digits
        key: OsString,
    },
    /// Prints the rows of several keys, one per line, and which keys there are not
    #[command(name = "multi_get_entity")]
    MultiGetEntity {
        /// The keys, each as for `get_entity`
        #[arg(required = true)]
        keys: Vec<OsString>,
    },
    /// Removes a key
    Delete {
        /// The key; with --hex or --key_hex as 0x and hexadecimal digits
        key: OsString,
    },
    /// Removes a key that was put once since its last removal
    #[command(name = "singledelete")]
    SingleDelete {
        /// The key; with --hex or --key_hex as 0x and hexadecimal digits
        key: OsString,
    },
    /// Removes all keys of a range
    #[command(name = "deleterange")]
    DeleteRange {
        /// The first key; with --hex or --key_hex as 0x and hexadecimal digits
        begin: OsString,
        /// The end of the range; this key stays
        end: OsString,
    },
    /// Takes get, put, delete and count from standard input, one per line, and answers each; `help` lists them
    Query,
    /// Prints about how many bytes of tables the keys of a range have
    #[command(name = "approxsize")]
    ApproxSize {
        /// The first key of the range
        #[arg(long, value_name = "KEY")]
        from: OsString,
        /// The end of the range, itself excluded
        #[arg(long, value_name = "KEY")]
        to: OsString,
    },
    /// Prints entries, one per line: KEY ==> VALUE. A row of columns is printed as `put_entity` takes it
    Scan {
        #[command(flatten)]
        range: Range,
        /// Prints keys only
        #[arg(long = "no_value")]
        no_value: bool,
    },
    /// Prints entries as `load` reads them, and their number. Binary entries are printed as 0x… =hex=> 0x…
    ///
    /// A row of columns is printed as `put_entity` takes it, and `load` takes such a line for a plain value, as in ldb.
    Dump(Dump),
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
    /// Opens the database for reading, which compares its files with the MANIFEST, and prints OK. `check` reads them all
    #[command(name = "checkconsistency")]
    CheckConsistency,
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
        /// Flushes the memtables that have keys of the files. With false, such files are refused
        #[arg(long = "allow_blocking_flush", value_name = "true|false", num_args = 0..=1, require_equals = true,
              default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
        allow_blocking_flush: bool,
        /// As in ldb. Snapshots never see ingested entries, so only true is taken
        #[arg(long = "snapshot_consistency", value_name = "true", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_parser = ["true"])]
        snapshot_consistency: Option<String>,
        /// As in ldb. Entries may get the sequence number of the ingestion, so only true is taken
        #[arg(long = "allow_global_seqno", value_name = "true", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_parser = ["true"])]
        allow_global_seqno: Option<String>,
        /// As in ldb, without effect: the sequence number of an ingestion is in the MANIFEST only
        #[arg(long = "write_global_seqno", value_name = "true|false", num_args = 0..=1, require_equals = true,
              default_missing_value = "true", value_parser = ["true", "false"])]
        write_global_seqno: Option<String>,
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
    #[command(flatten)]
    Tree(TreeCommand),
}

/// Which of the shared flags a command uses.
#[derive(Clone, Copy, Default)]
struct Uses {
    create_if_missing: bool,
    column_family: bool,
    /// --key_hex, --value_hex and --hex.
    hex: bool,
    /// Only --hex.
    hex_alone: bool,
    tuning: bool,
}

impl Uses {
    /// A command on the database.
    const DATABASE: Uses =
        Uses { create_if_missing: false, column_family: false, hex: false, hex_alone: false, tuning: true };
    /// A command on a family.
    const FAMILY: Uses = Uses { column_family: true, ..Uses::DATABASE };
    /// A command on keys of a family.
    const KEYS: Uses = Uses { hex: true, ..Uses::FAMILY };
    /// A command that writes entries.
    const ENTRIES: Uses = Uses { create_if_missing: true, ..Uses::KEYS };
    /// A command on files or other directories.
    const FILES: Uses = Uses { tuning: false, ..Uses::DATABASE };
    /// A command that shows names or files.
    const SHOWN: Uses = Uses { hex_alone: true, ..Uses::FILES };
    /// A command that shows keys and values of files.
    const PRINTED: Uses = Uses { hex: true, ..Uses::FILES };
}

impl TreeCommand {
    fn uses(&self) -> Uses {
        use TreeCommand as C;
        match self {
            C::InternalDump(_) => Uses::KEYS,
            C::DumpLiveFiles { .. } | C::LiveFiles { .. } => Uses::DATABASE,
            C::DumpWal { .. } => Uses::FILES,
            C::FileChecksums { .. } | C::ManifestDump { .. } => Uses::SHOWN,
            C::RangeDeletes { .. } | C::ReduceLevels { .. } | C::ChangeStyle { .. } => Uses::FAMILY,
            C::UpdateManifest { .. } | C::UnsafeRemove { .. } => Uses::FILES,
        }
    }
}

impl DbCommand {
    fn uses(&self) -> Uses {
        use DbCommand as C;
        match self {
            C::Put { .. }
            | C::BatchPut { .. }
            | C::PutEntity { .. }
            | C::Load { .. }
            | C::WriteSst { .. } => Uses::ENTRIES,
            C::Delete { .. } | C::SingleDelete { .. } | C::DeleteRange { .. } => Uses::ENTRIES,
            C::Query => Uses::ENTRIES,
            C::Ingest { .. } => Uses { hex: false, ..Uses::ENTRIES },
            C::Get { .. } | C::MultiGet { .. } | C::GetEntity { .. } | C::MultiGetEntity { .. } => Uses::KEYS,
            C::ApproxSize { .. } => Uses::KEYS,
            C::Dump(Dump { path: Some(_), .. }) => Uses::PRINTED,
            C::Tree(command) => command.uses(),
            C::Scan { .. } | C::Dump(_) | C::Explain { .. } | C::Compact { .. } => Uses::KEYS,
            C::Property { .. } | C::ExportFamily { .. } => Uses::FAMILY,
            C::CreateFamily { .. } | C::ImportFamily { .. } => {
                Uses { create_if_missing: true, ..Uses::DATABASE }
            }
            C::DropFamily { .. } | C::Info | C::CheckConsistency => Uses::DATABASE,
            C::Checkpoint { .. } | C::Backup { .. } => Uses::DATABASE,
            C::Transactions | C::CommitTransaction { .. } | C::RollbackTransaction { .. } => Uses::SHOWN,
            C::Families | C::Check { .. } | C::Repair { .. } | C::Restore { .. } | C::Backups { .. } => {
                Uses::FILES
            }
            C::Level | C::Rewrite => Uses::FILES,
        }
    }

    /// Whether the command works on a file that it names itself.
    pub(crate) fn names_its_file(&self) -> bool {
        use TreeCommand as C;
        matches!(
            self,
            DbCommand::Tree(
                C::DumpWal { .. }
                    | C::ManifestDump { path: Some(_), .. }
                    | C::FileChecksums { path: Some(_) }
            ) | DbCommand::Dump(Dump { path: Some(_), .. })
        )
    }

    /// The first given flag that has no effect on this command, with the commands that use it.
    pub(crate) fn idle_flag(&self, given: &Common) -> Option<(&'static str, &'static str)> {
        let uses = self.uses();
        let hex = given.hex && !uses.hex_alone || given.key_hex || given.value_hex;
        let idle = [
            (
                given.create_if_missing && !uses.create_if_missing,
                "--create_if_missing",
                "commands that write entries, ingest, create_family and import_family",
            ),
            (
                given.column_family.is_some() && !uses.column_family,
                "--column_family",
                "commands on entries, explain, compact, property, write_sst, ingest and export_family",
            ),
            (
                hex && !uses.hex,
                "--hex",
                "commands on entries, explain, compact, write_sst and, as --hex, the commands on transactions",
            ),
            (
                given.tuning.is_given() && !uses.tuning,
                "a setting of the open",
                "commands that open the database as a whole",
            ),
        ];
        idle.into_iter().find(|(idle, ..)| *idle).map(|(_, flag, commands)| (flag, commands))
    }
}
