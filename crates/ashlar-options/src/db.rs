//! Settings of a whole database.

use super::paths::{DbPath, validate, validate_path};
use super::{FormatLevel, KeptTexts};
use crate::{InfoLogOptions, Listeners};
use ashlar_base::memory::WriteBuffers;
use ashlar_base::stats::Statistics;
use ashlar_base::{Error, Result};
use ashlar_cache::BlockCache;
use ashlar_format::compress::Compression;
use ashlar_log::RecoveryMode;
use std::sync::Arc;

/// Settings of a database. The defaults suit most programs.
#[derive(Clone, Debug)]
pub struct DbOptions {
    /// Creates the database when the directory holds none. On.
    pub create_if_missing: bool,
    /// Refuses a directory that already holds a database. Off.
    pub error_if_exists: bool,
    /// Creates families that the caller names and the database does not have. On.
    pub create_missing_families: bool,
    /// How replay treats a damaged WAL file. Point in time: it applies everything before the damage, and nothing after it.
    pub recovery_mode: RecoveryMode,
    /// The oldest RocksDB that can open the directory after `close`: the engine writes no newer format. RocksDB 9.11.
    pub format_level: FormatLevel,
    /// The cap on the memory of memtables, blocks, indexes and filters of open tables, and buffers, in bytes. 0: a
    /// quarter of the memory that the process may use, at most 1 GiB.
    pub memory_bytes: u64,
    /// The limit on memtables of all families together, in bytes, immutable ones included. At half of it the engine
    /// switches the largest memtable; at all of it writers wait. 0: a quarter of the cap on memory.
    pub db_write_buffer_bytes: u64,
    /// Bytes of uncompressed blocks kept in memory, over all families, as far as the cap on memory leaves room. 256 MiB.
    pub block_cache_bytes: u64,
    /// The most bytes that the files of the database take. Above it, writes other than deletions are refused. 0: no quota.
    pub disk_quota_bytes: u64,
    /// The bytes that writes leave free on each file system with files of the database. 0: none.
    pub disk_reserve_bytes: u64,
    /// The number of table files that are open at once. Files that running operations hold may exceed it. -1, the default:
    /// no limit. A read-only open holds every file open in any case.
    pub max_open_files: i64,
    /// The greatest number of background jobs at once: a quarter of them flush, the others compact, at least one of
    /// each. 0: one per core.
    pub max_background_jobs: usize,
    /// The greatest number of jobs that share one large compaction. 0: all idle ones.
    pub max_subcompactions: usize,
    /// The greatest number of bytes per second that flushes and compactions write; flushes come first. 0: no limit.
    pub rate_limit_bytes: u64,
    /// The rate of flushes and compactions follows their need, between a twentieth of `rate_limit_bytes` and all of it. It is all
    /// of it while writers wait. False.
    pub rate_limit_auto_tuned: bool,
    /// Bytes per second that the scrubber reads from tables and blob files, round after round, to find damage. 0: no
    /// scrubber.
    pub scrub_bytes_per_second: u64,
    /// The limit on the bytes of live WAL files. Above it, the families that need the oldest file are flushed. 0: four
    /// times the sum of all write buffers.
    pub max_total_wal_bytes: u64,
    /// Seconds for which WAL files that are no longer needed stay in the archive. With this and `wal_archive_mib` at 0 there
    /// is no archive. 0.
    pub wal_archive_secs: u64,
    /// Mebibytes of WAL files in the archive. 0: no bound.
    pub wal_archive_mib: u64,
    /// The directory of the WAL files. Empty: the one in the newest OPTIONS file, or else the database directory.
    pub wal_dir: String,
    /// The directories of the tables of all families without `cf_paths`. Empty: those in the newest OPTIONS file of
    /// this engine, or else the database directory.
    pub db_paths: Vec<DbPath>,
    /// Flushes all families in one step, so that after a crash their tables end at the same write. For databases that
    /// write to several families without the WAL. Off.
    pub atomic_flush: bool,
    /// [`FamilyOptions::ingest_behind`](crate::FamilyOptions::ingest_behind) for every family. Off.
    pub ingest_behind: bool,
    /// The compression of WAL records (RocksDB's `wal_compression`): none or zstd. Needs format level 7.8 or above.
    /// None.
    pub wal_compression: Compression,
    /// Keeps WAL records in the process, up to 1 MiB, until `flush_wal`, a synced write, `sync_wal`, a full memtable or
    /// the close. Saves a system call per write. A killed process loses the newest writes, and leaves no gap. Off.
    pub manual_wal_flush: bool,
    /// The MANIFEST contains the id of the database (RocksDB: `write_dbid_to_manifest`). On.
    pub id_in_manifest: bool,
    /// Stores WAL records into a mapping of the WAL file, and so saves most system calls of unsynced small writes. Only on
    /// ext4 and XFS of Linux on x86-64; elsewhere without effect, and with [`RecoveryMode::Absolute`] too. A killed process
    /// loses no write that returned. Installs a handler for SIGBUS in the process, which passes signals for other memory
    /// on. On.
    pub mapped_wal: bool,
    /// Stores the checksum of every new table and blob file in the MANIFEST (RocksDB's `FileChecksumGenCrc32cFactory`).
    /// Costs one more pass over the bytes in memory. Off.
    pub file_checksums: bool,
    /// The interval at which the engine writes the statistics to the file `LOG`, in seconds. 0: never.
    pub stats_dump_secs: u64,
    /// The statistics that the database counts into; several databases may share one. `None`: its own, tickers only.
    pub statistics: Option<Arc<Statistics>>,
    /// The capacity for blocks that several databases share, instead of [`DbOptions::block_cache_bytes`]. `None`: its own.
    pub block_cache: Option<Arc<BlockCache>>,
    /// The limit on memtables that several databases share, besides that of the database. `None`: it shares none.
    pub write_buffers: Option<Arc<WriteBuffers>>,
    /// Receivers of events: flushes, compactions, files, stalls, errors. None.
    pub listeners: Listeners,
    /// The info log: the file `LOG` in the directory.
    pub info_log: InfoLogOptions,
    /// Settings of the OPTIONS file that the engine does not use, kept for the next OPTIONS file.
    pub kept: KeptTexts,
    /// The release of RocksDB that the newest OPTIONS file was written for; empty if there is no such file.
    pub stored_release: String,
}

impl Default for DbOptions {
    fn default() -> Self {
        DbOptions {
            create_if_missing: true,
            error_if_exists: false,
            create_missing_families: true,
            recovery_mode: RecoveryMode::PointInTime,
            format_level: FormatLevel::default(),
            memory_bytes: 0,
            disk_quota_bytes: 0,
            disk_reserve_bytes: 0,
            db_write_buffer_bytes: 0,
            block_cache_bytes: 256 << 20,
            max_open_files: -1,
            max_background_jobs: 0,
            max_subcompactions: 0,
            rate_limit_bytes: 0,
            rate_limit_auto_tuned: false,
            scrub_bytes_per_second: 0,
            max_total_wal_bytes: 0,
            wal_archive_secs: 0,
            wal_archive_mib: 0,
            wal_dir: String::new(),
            db_paths: Vec::new(),
            atomic_flush: false,
            ingest_behind: false,
            wal_compression: Compression::None,
            manual_wal_flush: false,
            id_in_manifest: true,
            mapped_wal: true,
            file_checksums: false,
            stats_dump_secs: 0,
            statistics: None,
            block_cache: None,
            write_buffers: None,
            listeners: Listeners::default(),
            info_log: InfoLogOptions::default(),
            kept: KeptTexts::default(),
            stored_release: String::new(),
        }
    }
}

impl DbOptions {
    /// # Errors
    /// `InvalidArgument`, with the option and its range.
    pub fn validate(&self) -> Result<()> {
        if self.block_cache_bytes < 1 << 20 {
            return Err(Error::invalid(format!(
                "block_cache_bytes is {}, the least is 1048576",
                self.block_cache_bytes
            )));
        }
        if !(1..=1 << 30).contains(&self.info_log.files_kept) {
            return Err(Error::invalid(format!(
                "keep_log_file_num is {}, the range is 1 to 1073741824",
                self.info_log.files_kept
            )));
        }
        if self.stats_dump_secs > u64::from(u32::MAX) {
            return Err(Error::invalid(format!(
                "stats_dump_period_sec is {}, the range is 0 to 4294967295",
                self.stats_dump_secs
            )));
        }
        if (1..16 << 20).contains(&self.memory_bytes) {
            return Err(Error::invalid(format!(
                "memory_bytes is {}, the least is 16777216 (or 0)",
                self.memory_bytes
            )));
        }
        if self.max_open_files < -1 {
            return Err(Error::invalid(format!(
                "max_open_files is {}; it is -1 (all stay open), or 0 or more",
                self.max_open_files
            )));
        }
        validate_path("wal_dir", &self.wal_dir)?;
        validate("db_paths", &self.db_paths)?;
        match self.wal_compression {
            Compression::None => Ok(()),
            Compression::Zstd if self.format_level >= FormatLevel::V7_8 => Ok(()),
            Compression::Zstd => Err(Error::invalid(format!(
                "wal_compression: level {} does not read compressed logs",
                self.format_level
            ))
            .hint("Raise the format level to rocksdb-7.8 or leave wal_compression off")),
            other => {
                Err(Error::invalid(format!("wal_compression is {}: logs take none or zstd", other.name())))
            }
        }
    }
}
