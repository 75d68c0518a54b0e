//! The command line.

use crate::command::Command;
use crate::drive::Matrix;
use crate::experiment::{self, Experiment, Session, Size, Wanted};
use crate::job::{Step, TreeState, Workload};
use ashlar_bench::KeyShape;
use ashlar_peers::engine::{EngineName, Spoilt, refuse};
use ashlar_peers::settings::{Class, Settings};
use ashlar_peers::shown::Shown;
use ashlar_peers::stop::Stop;
use clap::Parser;
use std::path::PathBuf;

/// What an experiment decides by itself.
const FREE: [&str; 21] = [
    "workloads",
    "tree_state",
    "read_threads",
    "write_threads",
    "num",
    "reads",
    "key_shape",
    "key_size",
    "value_size",
    "compression_ratio",
    "compression",
    "cache_size",
    "write_buffer_size",
    "max_write_buffer_number",
    "block_size",
    "bloom_bits",
    "sync",
    "disable_wal",
    "seed",
    "rate",
    "load",
];

/// Where a run works and what it writes.
#[derive(Clone, Debug, clap::Args)]
pub struct Files {
    /// Directory of the databases, which are removed after use [default: the directory for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// File to which the records are appended, one line of JSON each
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// The files to write
    #[command(flatten)]
    pub shown: Shown,
}

impl Files {
    /// The directory of the databases.
    pub fn folder(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// Compares AshlarDB with other engines: the same work, one process per run, in turns.
///
/// RocksDB is the shared object inside the Maven artifact org.rocksdb:rocksdbjni:11.8.1; `cargo xtask setup` fetches it. The
/// other engines come from `cargo xtask peers`. A missing engine is reported with the reason. All figures come from the same
/// loop in the same run. Ratios above 1 mean that AshlarDB is faster.
#[derive(Debug, Parser)]
#[command(name = "ashlar-compare", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Repeats the experiment of a document, instead of the workloads and settings of the other flags
    #[arg(long, value_enum, conflicts_with_all = FREE)]
    experiment: Option<Experiment>,
    /// Size of the experiment
    #[arg(long, value_enum, default_value = "smoke", requires = "experiment")]
    size: Size,
    /// Rows of the experiment, separated by commas. Each row also runs the rows before it that share its load [default: all]
    #[arg(long, value_delimiter = ',', requires = "experiment")]
    rows: Vec<String>,
    /// Settings: the same for all engines (matched), each engine's defaults (own), or both
    #[arg(long, value_parser = ["matched", "own"], value_delimiter = ',', default_value = "matched")]
    classes: Vec<String>,
    /// Engines, separated by commas [default: the experiment's, or ashlardb,rocksdb]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Workloads, separated by commas [default: fillseq,fillrandom,overwrite,readrandom,readseq,seekrandom]
    #[arg(long, value_enum, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// States of the tree for workloads that read, separated by commas: loaded (as a random load leaves it), idle
    /// (flushed, background work done), settled (all compacted). Rows of loaded and settled have the state in their name, and a
    /// separate load
    #[arg(long, value_enum, value_delimiter = ',', default_value = "idle")]
    tree_state: Vec<TreeState>,
    /// Numbers of threads of readrandom, separated by commas. They share the operations. Rows of several threads have the
    /// number in their name
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), default_value = "1")]
    read_threads: Vec<u32>,
    /// Numbers of threads of fillrandom and fillsync, likewise
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), default_value = "1")]
    write_threads: Vec<u32>,
    /// Keys
    #[arg(long, default_value_t = 1_000_000)]
    num: u64,
    /// Operations of random reads [default: the number of keys, at most a million]
    #[arg(long)]
    reads: Option<u64>,
    /// Repetitions [default: 3; 1 for smoke]
    #[arg(long)]
    reps: Option<u32>,
    /// Shape of the keys: integer (8 bytes big-endian, then '0's), be8 (those 8 bytes), decimal, uuid (16 bytes), url (55
    /// bytes), prefix:N (N bytes, N from 17; all but the last 16 are the same in every key)
    #[arg(long, value_name = "SHAPE", default_value_t)]
    key_shape: KeyShape,
    /// Bytes of a key, for integer and decimal; the other shapes have a fixed length
    #[arg(long, default_value_t = 16)]
    key_size: usize,
    /// Bytes of a value
    #[arg(long, default_value_t = 100)]
    value_size: usize,
    /// The part of its size to which a codec compresses a value
    #[arg(long, default_value_t = 0.5)]
    compression_ratio: f64,
    /// Compression of blocks: none, snappy, lz4, zlib or zstd
    #[arg(long, default_value = "none")]
    compression: String,
    /// Bytes of the block cache [default: twice the data, at least 64 MiB]
    #[arg(long)]
    cache_size: Option<u64>,
    /// Bytes of a memtable
    #[arg(long, default_value_t = 64 << 20)]
    write_buffer_size: u64,
    /// Upper bound on the number of memtables
    #[arg(long, default_value_t = 3)]
    max_write_buffer_number: u32,
    /// Bytes of an uncompressed block
    #[arg(long, default_value_t = 4096)]
    block_size: u64,
    /// Filter bits per key; 0: no filter
    #[arg(long, default_value_t = 10)]
    bloom_bits: u32,
    /// Every write waits for the device
    #[arg(long)]
    sync: bool,
    /// Writes skip the WAL
    #[arg(long, conflicts_with = "sync")]
    disable_wal: bool,
    /// Seed of the random streams
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// openloop: operations per second [default: --load percent of the engine's fillrandom in this run]
    #[arg(long)]
    rate: Option<f64>,
    /// openloop: percent of the engine's peak
    #[arg(long, default_value_t = 60.0)]
    load: f64,
    /// Where the run works and what it writes
    #[command(flatten)]
    files: Files,
    /// RocksDB's shared object [default: the one that `cargo xtask setup` recorded]
    #[arg(long)]
    rocksdb: Option<PathBuf>,
    /// Run RocksDB without jemalloc, even if jemalloc is installed
    #[arg(long)]
    no_jemalloc: bool,
    /// A memory control group that is delegated to this program and has no processes (by systemd, or a subgroup made with
    /// `mkdir`). Rows that limit memory run in groups below it [default: such rows run without a limit and say so]
    #[arg(long, value_name = "DIR")]
    memory_group: Option<PathBuf>,
    /// Other programs may use the processors meanwhile: each record notes their share, and the figures count all the same.
    /// Compare processor times then
    #[arg(long)]
    busy: bool,
    /// Also counts the instructions of an operation, with valgrind on small runs: slow, but independent of other load
    #[arg(long)]
    callgrind: bool,
    /// Seconds after which a run is ended and marked
    #[arg(long, default_value_t = 1800)]
    timeout: u64,
    /// Internal: one run, as JSON
    #[arg(long, hide = true)]
    pub child: Option<String>,
    /// Other commands
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// The runs that the flags request.
    ///
    /// # Errors
    /// A count of 0, or a row that the experiment does not have.
    pub fn matrix(&self) -> Result<Matrix, String> {
        if self.num == 0 || self.reps == Some(0) || self.key_size == 0 {
            return Err("--num, --reps and --key-size are at least 1".into());
        }
        refuse(&self.engines, Spoilt::Puts)?;
        let both = [EngineName::Ashlardb, EngineName::Rocksdb];
        let usual = self.experiment.map_or(both.to_vec(), Experiment::engines);
        let class = |name: &String| if name == "own" { Class::Own } else { Class::Matched };
        Ok(Matrix {
            experiment: self.experiment.map_or("free", Experiment::text).to_owned(),
            size: self.experiment.map(|_| self.size.text().to_owned()),
            engines: if self.engines.is_empty() { usual } else { self.engines.clone() },
            classes: self.classes.iter().map(class).collect(),
            sessions: self.sessions()?,
            reps: self.reps.unwrap_or(if self.experiment.is_some() { self.size.reps() } else { 3 }),
            rate: self.rate,
            load: self.load / 100.0,
            dir: self.files.folder(),
            json: self.files.json.clone(),
            shown: self.files.shown.clone(),
            rocksdb: self.rocksdb.clone(),
            jemalloc: !self.no_jemalloc,
            timeout: std::time::Duration::from_secs(self.timeout),
            callgrind: self.callgrind,
            busy: self.busy,
            memory_group: self.memory_group.clone(),
            stop: Stop::default(),
        })
    }

    fn sessions(&self) -> Result<Vec<Session>, String> {
        let Some(experiment) = self.experiment else {
            let mut workloads = self.workloads.clone();
            if workloads.is_empty() {
                workloads = Workload::USUAL.to_vec();
            }
            let reads = self.reads.unwrap_or(self.num.min(1_000_000));
            return Ok(experiment::free(&Wanted {
                workloads: &workloads,
                states: &self.tree_state,
                read_threads: &self.read_threads,
                write_threads: &self.write_threads,
                settings: &self.settings(),
                keys: self.num,
                reads,
            }));
        };
        let sessions = experiment.sessions(self.size);
        let names = |session: &Session| {
            let measured = session.steps.iter().filter(|step| step.measured);
            measured.map(|step| step.row.clone()).collect::<Vec<_>>()
        };
        let there: Vec<String> = sessions.iter().flat_map(names).collect();
        if let Some(row) = self.rows.iter().find(|row| !there.contains(row)) {
            return Err(format!("{} has no row {row}: there are {}", experiment.text(), there.join(", ")));
        }
        let wanted = |step: &Step| step.measured && (self.rows.is_empty() || self.rows.contains(&step.row));
        // Nothing needs what comes after the last row that is wanted.
        let cut = |mut session: Session| {
            let last = session.steps.iter().rposition(wanted)?;
            session.steps.truncate(last + 1);
            Some(session)
        };
        Ok(sessions.into_iter().filter_map(cut).collect())
    }

    /// Those of a free run.
    fn settings(&self) -> Settings {
        let key_bytes = self.key_shape.bytes(self.key_size);
        let raw = self.num * (key_bytes + self.value_size) as u64;
        Settings {
            data_bytes: raw,
            key_shape: self.key_shape,
            key_bytes,
            value_bytes: self.value_size,
            compress_ratio: self.compression_ratio,
            codec: self.compression.clone(),
            cache_bytes: self.cache_size.unwrap_or((raw * 2).max(64 << 20)),
            write_buffer_bytes: self.write_buffer_size,
            write_buffers: self.max_write_buffer_number,
            block_bytes: self.block_size,
            filter_bits: self.bloom_bits,
            sync: self.sync,
            no_log: self.disable_wal,
            seed: self.seed,
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Cli, String> {
        Cli::try_parse_from([&["ashlar-compare"], args].concat()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        for (args, listed) in [
            (["--engines", "oracle"], "wiredtiger-lsm"),
            (["--experiment", "s9"], "ycsb"),
            (["--workloads", "writeonly"], "readwhilewriting"),
            (["--classes", "tuned"], "matched, own"),
        ] {
            let why = parsed(&args).unwrap_err();
            assert!(why.contains(args[1]) && why.contains(listed), "{why}");
        }
        let why = parsed(&["--experiment", "s3", "--size", "tiny"]).unwrap_err();
        assert!(why.contains("smoke, quarter, standard, large"), "{why}");
        let cli = parsed(&["--experiment", "s3", "--rows", "1A,9Z"]).unwrap();
        let why = cli.matrix().unwrap_err();
        assert!(why.starts_with("s3 has no row 9Z: there are 1C, 1A, "), "{why}");
        assert!(parsed(&["--experiment", "s3", "--num", "5"]).unwrap_err().contains("cannot be used with"));
    }

    /// No workload here goes through clients.
    #[test]
    fn a_test_engine_that_no_workload_spoils_is_refused() {
        let matrix = |engine| parsed(&["--engines", engine]).unwrap().matrix();
        assert!(matrix("test-losing").unwrap_err().starts_with("test-losing has no fault"));
        assert!(matrix("test-slow").is_ok());
    }

    #[test]
    fn a_shape_of_keys_decides_their_length() {
        let settings = |args: &[&str]| parsed(args).unwrap().settings();
        assert_eq!(settings(&[]).key_bytes, 16);
        assert_eq!(settings(&["--key-shape", "uuid", "--key-size", "20"]).key_bytes, 16);
        let long = settings(&["--key-shape", "prefix:1000", "--num", "10"]);
        assert_eq!((long.key_bytes, long.data_bytes), (1000, 11_000));
        assert_eq!(long.params(10).options["key_shape"], "prefix:1000");
        assert_eq!(EngineName::Lmdb.lacks(&long), Some("keys of more than 511 bytes"));
        let why = parsed(&["--key-shape", "round"]).unwrap_err();
        assert!(why.contains("expected integer, be8, decimal, uuid, url or prefix:N"), "{why}");
    }

    #[test]
    fn rows_choose_sessions() {
        let matrix = parsed(&["--experiment", "s3", "--rows", "1A"]).unwrap().matrix().unwrap();
        assert_eq!((matrix.sessions.len(), matrix.engines.len(), matrix.reps), (1, 12, 1));
        let rows: Vec<_> = matrix.sessions[0].steps.iter().map(|step| step.row.as_str()).collect();
        assert_eq!(rows, ["1C", "1A"], "1A-settled comes after it");
        let matrix = parsed(&["--experiment", "s0", "--size", "standard"]).unwrap().matrix().unwrap();
        assert_eq!((matrix.engines.len(), matrix.reps), (3, 3));
        assert_eq!(matrix.size.as_deref(), Some("standard"));
        assert_eq!(parsed(&[]).unwrap().matrix().unwrap().experiment, "free");
    }
}
