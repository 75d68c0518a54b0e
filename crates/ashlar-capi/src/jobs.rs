//! What flushes, compactions and ingestions did, as listeners and calls show it.
//!
//! An object of this module belongs to one call. A listener uses it and what it lends during its call only.

use crate::table_properties::PropertiesObject;
use ashlar_compat::compactions::{Blobs, NamedFile, Report};
use ashlar_compat::database::Database;
use ashlar_compat::listener::{FlushReport, IngestReport, MemtableReport, Tables};
use ashlardb::{FileNumber, Result};
use std::sync::OnceLock;

/// `rocksdb_blob_file_addition_info_t`, `rocksdb_blob_file_garbage_info_t`.
pub type BlobsObject = Blobs;

/// `rocksdb_compaction_file_info_t`: a table of a compaction.
pub type FileInfoObject = NamedFile;

/// `rocksdb_compactionjobinfo_t`: what a compaction does.
#[derive(Debug, Default)]
pub struct JobObject {
    stats: StatsObject,
    tables: Tables,
}

/// `rocksdb_subcompactionjobinfo_t`: what a part of a compaction does. A compaction counts as one part.
#[derive(Debug)]
pub struct PartObject(pub(crate) JobObject);

/// `rocksdb_compaction_job_stats_t`: the sums of a compaction.
#[derive(Clone, Debug, Default)]
pub struct StatsObject {
    report: Report,
}

impl JobObject {
    /// The report of a compaction of a database. Without the database, properties of tables are missing.
    pub(crate) fn new(db: Option<&Database>, report: Report) -> JobObject {
        let tables = Tables::new(db, &report.family, report.input_tables.clone());
        JobObject { tables, stats: StatsObject { report } }
    }

    fn report(&self) -> &Report {
        &self.stats.report
    }

    /// The properties of its tables, by path.
    fn properties(&self) -> &[PropertiesObject] {
        let all = self.report().inputs.iter().chain(&self.report().outputs);
        self.tables.properties(&all.map(|file| (file.number, file.path.as_str())).collect::<Vec<_>>())
    }
}

/// Nothing yet.
pub fn compactionjobinfo_create() -> JobObject {
    JobObject::default()
}

/// The error of the compaction.
///
/// # Errors
/// Why the compaction ended without a change of the tree.
pub fn compactionjobinfo_status(info: &JobObject) -> Result<()> {
    info.report().error.clone().map_or(Ok(()), Err)
}

/// The error of the part: that of the compaction.
///
/// # Errors
/// Those of [`compactionjobinfo_status`].
pub fn subcompactionjobinfo_status(info: &PartObject) -> Result<()> {
    compactionjobinfo_status(&info.0)
}

/// The name of the family.
pub fn compactionjobinfo_cf_name(info: &JobObject) -> Option<&[u8]> {
    Some(info.report().family.as_bytes())
}

/// The name of the family.
pub fn subcompactionjobinfo_cf_name(info: &PartObject) -> Option<&[u8]> {
    compactionjobinfo_cf_name(&info.0)
}

/// The path of a table that the compaction reads.
pub fn compactionjobinfo_input_file_at(info: &JobObject, pos: usize) -> Option<&[u8]> {
    info.report().inputs.get(pos).map(|file| file.path.as_bytes())
}

/// The path of a table that the compaction wrote.
pub fn compactionjobinfo_output_file_at(info: &JobObject, pos: usize) -> Option<&[u8]> {
    info.report().outputs.get(pos).map(|file| file.path.as_bytes())
}

/// A table that the compaction reads, valid as long as the object; null behind the last one.
pub fn compactionjobinfo_input_file_info_at(info: &JobObject, pos: usize) -> Option<&FileInfoObject> {
    info.report().inputs.get(pos)
}

/// A table that the compaction wrote, valid as long as the object; null behind the last one.
pub fn compactionjobinfo_output_file_info_at(info: &JobObject, pos: usize) -> Option<&FileInfoObject> {
    info.report().outputs.get(pos)
}

/// The sums of the compaction, valid as long as the object.
pub fn compactionjobinfo_stats(info: &JobObject) -> Option<&StatsObject> {
    Some(&info.stats)
}

/// The sums of the part, valid as long as the object.
pub fn subcompactionjobinfo_stats(info: &PartObject) -> Option<&StatsObject> {
    compactionjobinfo_stats(&info.0)
}

/// The path of a table whose properties are known.
pub fn compactionjobinfo_table_properties_key_at(info: &JobObject, pos: usize) -> Option<&[u8]> {
    info.properties().get(pos).map(|table| table.path.as_bytes())
}

/// The properties of that table.
pub fn compactionjobinfo_table_properties_value_at(
    info: &JobObject,
    pos: usize,
) -> Option<&PropertiesObject> {
    info.properties().get(pos)
}

/// The properties of the table with that path; null: the tree does not have it now.
pub fn compactionjobinfo_table_properties_for_file<'a>(
    info: &'a JobObject,
    file_name: &[u8],
) -> Option<&'a PropertiesObject> {
    info.properties().iter().find(|table| table.path.as_bytes() == file_name)
}

/// Blobs that the compaction wrote.
pub fn compactionjobinfo_blob_file_addition_info_at(info: &JobObject, pos: usize) -> Option<&BlobsObject> {
    info.report().blobs.get(pos)
}

/// Blobs that nothing reads after the compaction.
pub fn compactionjobinfo_blob_file_garbage_info_at(info: &JobObject, pos: usize) -> Option<&BlobsObject> {
    info.report().garbage.get(pos)
}

/// The path of the blob file.
pub fn blob_file_addition_info_blob_file_path(info: &BlobsObject) -> Option<&[u8]> {
    Some(info.path.as_bytes())
}

/// The path of the blob file.
pub fn blob_file_garbage_info_blob_file_path(info: &BlobsObject) -> Option<&[u8]> {
    Some(info.path.as_bytes())
}

/// The first bytes of the smallest key written: none, because the engine does not keep them.
pub fn compaction_job_stats_smallest_output_key_prefix(_: &StatsObject) -> Option<&[u8]> {
    Some(&[])
}

/// The first bytes of the largest key written: none, as of the smallest.
pub fn compaction_job_stats_largest_output_key_prefix(_: &StatsObject) -> Option<&[u8]> {
    Some(&[])
}

/// `rocksdb_flushjobinfo_t`: what a flush does.
#[derive(Debug)]
pub struct FlushJobObject {
    report: FlushReport,
    table: TableOf,
}

/// The properties of one table, or empty ones.
#[derive(Debug)]
struct TableOf {
    tables: Tables,
    none: OnceLock<PropertiesObject>,
}

impl TableOf {
    fn new(db: Option<&Database>, family: &str) -> TableOf {
        TableOf { tables: Tables::new(db, family, Vec::new()), none: OnceLock::new() }
    }

    fn properties(&self, number: FileNumber, path: &str) -> &PropertiesObject {
        let known = self.tables.properties(&[(number, path)]).first();
        known.unwrap_or_else(|| self.none.get_or_init(PropertiesObject::default))
    }
}

impl FlushJobObject {
    pub(crate) fn new(db: Option<&Database>, report: FlushReport) -> FlushJobObject {
        FlushJobObject { table: TableOf::new(db, &report.family), report }
    }
}

/// The name of the family.
pub fn flushjobinfo_cf_name(info: &FlushJobObject) -> Option<&[u8]> {
    Some(info.report.family.as_bytes())
}

/// The path of the table; empty before the flush has ended.
pub fn flushjobinfo_file_path(info: &FlushJobObject) -> Option<&[u8]> {
    Some(info.report.path.as_bytes())
}

/// The properties of the table; empty ones before the flush has ended.
pub fn flushjobinfo_table_properties(info: &FlushJobObject) -> Option<&PropertiesObject> {
    Some(info.table.properties(info.report.number, &info.report.path))
}

/// Blobs that the flush wrote.
pub fn flushjobinfo_blob_file_addition_info_at(info: &FlushJobObject, pos: usize) -> Option<&BlobsObject> {
    info.report.blobs.get(pos)
}

/// `rocksdb_externalfileingestioninfo_t`: an ingested file.
#[derive(Debug)]
pub struct IngestedObject {
    report: IngestReport,
    table: TableOf,
}

impl IngestedObject {
    pub(crate) fn new(db: Option<&Database>, report: IngestReport) -> IngestedObject {
        IngestedObject { table: TableOf::new(db, &report.family), report }
    }
}

/// The name of the family.
pub fn externalfileingestioninfo_cf_name(info: &IngestedObject) -> Option<&[u8]> {
    Some(info.report.family.as_bytes())
}

/// The file as the caller named it.
pub fn externalfileingestioninfo_external_file_path(info: &IngestedObject) -> Option<&[u8]> {
    Some(info.report.source.as_bytes())
}

/// The path of the table in the database.
pub fn externalfileingestioninfo_internal_file_path(info: &IngestedObject) -> Option<&[u8]> {
    Some(info.report.path.as_bytes())
}

/// The properties of the table.
pub fn externalfileingestioninfo_table_properties(info: &IngestedObject) -> Option<&PropertiesObject> {
    Some(info.table.properties(info.report.number, &info.report.path))
}

/// `rocksdb_memtableinfo_t`: a memtable that takes no more writes.
pub type SealedObject = MemtableReport;

/// The name of the family.
pub fn memtableinfo_cf_name(info: &SealedObject) -> Option<&[u8]> {
    Some(info.family.as_bytes())
}

/// The newest timestamp: empty, because keys have none.
pub fn memtableinfo_newest_udt(_: &SealedObject) -> Option<&[u8]> {
    Some(&[])
}

/// The number of the calling thread, as POSIX threads have it.
fn thread() -> u64 {
    // SAFETY: the call has no conditions.
    unsafe { libc::pthread_self() as u64 }
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident($object:ty) -> $of:ty = |$info:ident| $figure:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name($info: &$object) -> $of {
            $figure
        }
    )* };
}
figures! {
    /// The number of the family.
    compactionjobinfo_cf_id(JobObject) -> u32 = |info| info.report().family_id;
    /// The number of the compaction in this process.
    compactionjobinfo_job_id(JobObject) -> i32 = |info| info.report().job;
    /// The level of the first table that the compaction read.
    compactionjobinfo_base_input_level(JobObject) -> i32 = |info| info.report().inputs.first().map_or(0, |file| file.level);
    /// The level of the outputs.
    compactionjobinfo_output_level(JobObject) -> i32 = |info| info.report().output_level;
    /// RocksDB's number of the reason.
    compactionjobinfo_compaction_reason(JobObject) -> u32 = |info| info.report().reason;
    /// The number of tables that the compaction read.
    compactionjobinfo_input_files_count(JobObject) -> usize = |info| info.report().inputs.len();
    /// The number of tables that the compaction read.
    compactionjobinfo_input_file_infos_count(JobObject) -> usize = |info| info.report().inputs.len();
    /// The number of tables that the compaction wrote.
    compactionjobinfo_output_files_count(JobObject) -> usize = |info| info.report().outputs.len();
    /// The number of tables that the compaction wrote.
    compactionjobinfo_output_file_infos_count(JobObject) -> usize = |info| info.report().outputs.len();
    /// The number of blob files that the compaction wrote.
    compactionjobinfo_blob_file_addition_infos_count(JobObject) -> usize = |info| info.report().blobs.len();
    /// The number of blob files in which the compaction left garbage.
    compactionjobinfo_blob_file_garbage_infos_count(JobObject) -> usize = |info| info.report().garbage.len();
    /// Microseconds.
    compactionjobinfo_elapsed_micros(JobObject) -> u64 = |info| info.report().micros;
    /// The number of entries read.
    compactionjobinfo_input_records(JobObject) -> u64 = |info| info.report().input_records;
    /// The number of entries written.
    compactionjobinfo_output_records(JobObject) -> u64 = |info| info.report().output_records;
    /// The bytes of the tables read.
    compactionjobinfo_total_input_bytes(JobObject) -> u64 = |info| info.report().input_bytes;
    /// The bytes written.
    compactionjobinfo_total_output_bytes(JobObject) -> u64 = |info| info.report().output_bytes;
    /// The number of keys that could not be read: none, because such a table fails the compaction.
    compactionjobinfo_num_corrupt_keys(JobObject) -> u64 = |_info| 0;
    /// The number of tables that the compaction read.
    compactionjobinfo_num_input_files(JobObject) -> usize = |info| info.report().inputs.len();
    /// The number of tables among them that were in the level of the outputs.
    compactionjobinfo_num_input_files_at_output_level(JobObject) -> usize = |info| compaction_job_stats_num_input_files_at_output_level(&info.stats);
    /// The number in the name.
    compaction_file_info_file_number(FileInfoObject) -> u64 = |info| info.number.0;
    /// The level.
    compaction_file_info_level(FileInfoObject) -> i32 = |info| info.level;
    /// The number of tables read.
    compaction_job_stats_num_input_files(StatsObject) -> usize = |stats| stats.report.inputs.len();
    /// The number of tables written.
    compaction_job_stats_num_output_files(StatsObject) -> usize = |stats| stats.report.outputs.len();
    /// The number of tables read in the level of the outputs.
    compaction_job_stats_num_input_files_at_output_level(StatsObject) -> usize = |stats| {
        let report = &stats.report;
        report.inputs.iter().filter(|file| file.level == report.output_level).count()
    };
    /// The number of entries read.
    compaction_job_stats_num_input_records(StatsObject) -> u64 = |stats| stats.report.input_records;
    /// The number of entries written.
    compaction_job_stats_num_output_records(StatsObject) -> u64 = |stats| stats.report.output_records;
    /// The bytes of the tables read.
    compaction_job_stats_total_input_bytes(StatsObject) -> u64 = |stats| stats.report.input_bytes;
    /// The bytes written.
    compaction_job_stats_total_output_bytes(StatsObject) -> u64 = |stats| stats.report.output_bytes;
    /// Microseconds.
    compaction_job_stats_elapsed_micros(StatsObject) -> u64 = |stats| stats.report.micros;
    /// The thread that calls the listener.
    compactionjobinfo_thread_id(JobObject) -> u64 = |_info| thread();
    /// The number of tables in level 0 after the compaction.
    compactionjobinfo_num_l0_files(JobObject) -> i32 = |info| info.report().level0;
    /// RocksDB's number of the compression of the outputs.
    compactionjobinfo_compression(JobObject) -> u32 = |info| info.report().compression;
    /// RocksDB's number of the compression of blobs.
    compactionjobinfo_blob_compression_type(JobObject) -> u32 = |info| info.report().blob_compression;
    /// Whether a call ended all compactions.
    compactionjobinfo_aborted(JobObject) -> bool = |info| info.report().is_aborted();
    /// The number of tables whose properties are known.
    compactionjobinfo_table_properties_count(JobObject) -> usize = |info| info.properties().len();
    /// The number of the family.
    subcompactionjobinfo_cf_id(PartObject) -> u32 = |info| info.0.report().family_id;
    /// The thread that calls the listener.
    subcompactionjobinfo_thread_id(PartObject) -> u64 = |_info| thread();
    /// The number of the compaction.
    subcompactionjobinfo_job_id(PartObject) -> i32 = |info| info.0.report().job;
    /// The number of the part.
    subcompactionjobinfo_subcompaction_job_id(PartObject) -> i32 = |_info| 0;
    /// The level of the first table that the compaction reads.
    subcompactionjobinfo_base_input_level(PartObject) -> i32 = |info| compactionjobinfo_base_input_level(&info.0);
    /// The level of the outputs.
    subcompactionjobinfo_output_level(PartObject) -> i32 = |info| info.0.report().output_level;
    /// RocksDB's number of the reason.
    subcompactionjobinfo_compaction_reason(PartObject) -> u32 = |info| info.0.report().reason;
    /// RocksDB's number of the compression of the outputs.
    subcompactionjobinfo_compression(PartObject) -> u32 = |info| info.0.report().compression;
    /// RocksDB's number of the compression of blobs.
    subcompactionjobinfo_blob_compression_type(PartObject) -> u32 = |info| info.0.report().blob_compression;
    /// The number of the blob file.
    blob_file_addition_info_blob_file_number(BlobsObject) -> u64 = |info| info.number.0;
    /// The number of blobs.
    blob_file_addition_info_total_blob_count(BlobsObject) -> u64 = |info| info.count;
    /// The bytes of their records.
    blob_file_addition_info_total_blob_bytes(BlobsObject) -> u64 = |info| info.bytes;
    /// The number of the blob file.
    blob_file_garbage_info_blob_file_number(BlobsObject) -> u64 = |info| info.number.0;
    /// The number of blobs.
    blob_file_garbage_info_garbage_blob_count(BlobsObject) -> u64 = |info| info.count;
    /// The bytes of their records.
    blob_file_garbage_info_garbage_blob_bytes(BlobsObject) -> u64 = |info| info.bytes;
    /// The oldest blob file of the table: 0, because the engine does not tell.
    compaction_file_info_oldest_blob_file_number(FileInfoObject) -> u64 = |_info| 0;
    /// The number of the family.
    flushjobinfo_cf_id(FlushJobObject) -> u32 = |info| info.report.family_id;
    /// The number of the flush.
    flushjobinfo_job_id(FlushJobObject) -> i32 = |info| info.report.job;
    /// The thread that calls the listener.
    flushjobinfo_thread_id(FlushJobObject) -> u64 = |_info| thread();
    /// The number of the table; 0 before the flush has ended.
    flushjobinfo_file_number(FlushJobObject) -> u64 = |info| info.report.number.0;
    /// The first blob file that the flush wrote; 0: none.
    flushjobinfo_oldest_blob_file_number(FlushJobObject) -> u64 = |info| info.report.blobs.first().map_or(0, |blobs| blobs.number.0);
    /// The smallest sequence number in the table.
    flushjobinfo_smallest_seqno(FlushJobObject) -> u64 = |info| info.report.sequences.0;
    /// The largest sequence number in the table.
    flushjobinfo_largest_seqno(FlushJobObject) -> u64 = |info| info.report.sequences.1;
    /// RocksDB's number of the reason: 0, other reasons, because the engine does not tell.
    flushjobinfo_flush_reason(FlushJobObject) -> u32 = |_info| 0;
    /// Level 0 has so many tables now that writers are slowed down.
    flushjobinfo_triggered_writes_slowdown(FlushJobObject) -> bool = |info| info.report.slowdown;
    /// Level 0 has so many tables now that writers wait.
    flushjobinfo_triggered_writes_stop(FlushJobObject) -> bool = |info| info.report.stop;
    /// RocksDB's number of the compression of blobs.
    flushjobinfo_blob_compression_type(FlushJobObject) -> u32 = |info| info.report.blob_compression;
    /// The number of blob files that the flush wrote.
    flushjobinfo_blob_file_addition_infos_count(FlushJobObject) -> usize = |info| info.report.blobs.len();
    /// The sequence number of all entries.
    externalfileingestioninfo_global_seqno(IngestedObject) -> u64 = |info| info.report.sequence;
    /// The number of entries.
    memtableinfo_num_entries(SealedObject) -> u64 = |info| info.entries;
    /// The number of deletions among them.
    memtableinfo_num_deletes(SealedObject) -> u64 = |info| info.deletions;
    /// The first sequence number: 0, because the engine does not tell.
    memtableinfo_first_seqno(SealedObject) -> u64 = |_info| 0;
    /// A lower bound of the sequence numbers.
    memtableinfo_earliest_seqno(SealedObject) -> u64 = |_info| 0;
    /// Microseconds: those of the whole job, because the engine does not measure the processor.
    compaction_job_stats_cpu_micros(StatsObject) -> u64 = |stats| stats.report.micros;
    /// Whether the number of entries read is exact: always.
    compaction_job_stats_has_accurate_num_input_records(StatsObject) -> bool = |_stats| true;
    /// Whether a caller asked for the compaction.
    compaction_job_stats_is_manual_compaction(StatsObject) -> bool = |stats| stats.report.manual;
    /// Whether the compaction reads all tables: no, because the engine does not tell.
    compaction_job_stats_is_full_compaction(StatsObject) -> bool = |_stats| false;
    /// Whether another process did the work: never.
    compaction_job_stats_is_remote_compaction(StatsObject) -> bool = |_stats| false;
    /// The number of tables that changed their level unread.
    compaction_job_stats_num_input_files_trivially_moved(StatsObject) -> usize = |stats| if stats.report.trivial_move { stats.report.inputs.len() } else { 0 };
    /// The number of blob files written.
    compaction_job_stats_num_output_files_blob(StatsObject) -> usize = |stats| stats.report.blobs.len();
    /// The bytes of blob records written.
    compaction_job_stats_total_output_bytes_blob(StatsObject) -> u64 = |stats| stats.report.blobs.iter().map(|blobs| blobs.bytes).sum();
    /// The number of entries that newer ones or range deletions hide, which were dropped.
    compaction_job_stats_num_records_replaced(StatsObject) -> u64 = |stats| stats.report.hidden_records;
    /// The number of deletions that hid nothing any more, which were dropped.
    compaction_job_stats_num_expired_deletion_records(StatsObject) -> u64 = |stats| stats.report.ended_deletions;
    /// Nanoseconds of syncs: 0, because the engine does not measure them.
    compaction_job_stats_file_fsync_nanos(StatsObject) -> u64 = |_stats| 0;
    /// Nanoseconds of reservations of space: 0, because the engine does not measure them.
    compaction_job_stats_file_prepare_write_nanos(StatsObject) -> u64 = |_stats| 0;
    /// Nanoseconds of syncs of ranges: 0, because the engine does not measure them.
    compaction_job_stats_file_range_sync_nanos(StatsObject) -> u64 = |_stats| 0;
    /// Nanoseconds of writes: 0, because the engine does not measure them.
    compaction_job_stats_file_write_nanos(StatsObject) -> u64 = |_stats| 0;
    /// The number of blobs read; 0: the engine does not count them.
    compaction_job_stats_num_blobs_read(StatsObject) -> u64 = |_stats| 0;
    /// The number of bytes of blobs read; 0: the engine does not count them.
    compaction_job_stats_total_blob_bytes_read(StatsObject) -> u64 = |_stats| 0;
    /// The number of keys that could not be read: a compaction that meets one fails.
    compaction_job_stats_num_corrupt_keys(StatsObject) -> u64 = |_stats| 0;
    /// The number of tables left out without a read; 0: the engine does not count them.
    compaction_job_stats_num_filtered_input_files(StatsObject) -> usize = |_stats| 0;
    /// The number of tables of the output level left out without a read; 0: the engine does not count them.
    compaction_job_stats_num_filtered_input_files_at_output_level(StatsObject) -> usize = |_stats| 0;
    /// The number of bytes of tables left out; 0: the engine does not count them.
    compaction_job_stats_total_skipped_input_bytes(StatsObject) -> u64 = |_stats| 0;
    /// The number of deletions read; 0: the engine does not count them.
    compaction_job_stats_num_input_deletion_records(StatsObject) -> u64 = |_stats| 0;
    /// The number of single deletions that met nothing; 0: the engine does not count them.
    compaction_job_stats_num_single_del_fallthru(StatsObject) -> u64 = |_stats| 0;
    /// The number of single deletions that met something else than one put; 0: the engine does not count them.
    compaction_job_stats_num_single_del_mismatch(StatsObject) -> u64 = |_stats| 0;
    /// The number of bytes of keys read; 0: the engine does not count them.
    compaction_job_stats_total_input_raw_key_bytes(StatsObject) -> u64 = |_stats| 0;
    /// The number of bytes of values read; 0: the engine does not count them.
    compaction_job_stats_total_input_raw_value_bytes(StatsObject) -> u64 = |_stats| 0;
}
