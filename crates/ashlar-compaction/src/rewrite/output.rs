//! The output tables of a rewrite: created with the first entry, closed where the cut rule says, durable when finished.
//!
//! 1. A table is written, finished and fsynced before the next begins; the directory is fsynced after the last one.
//! 2. Tables that [`TableOutputs::take`] does not hand over are removed: after an error, or when the rewrite is
//!    abandoned.
//! 3. Every number stays pending until its guard, handed over with the file, is dropped.
//! 4. Every range tombstone goes into the tables whose part of the key space it overlaps, cut where one table ends and
//!    the next begins. If there are tombstones but no entry, they get a table of their own.
//! 5. A table that refers to blobs names the oldest blob file among them. See `blobs` for the treatment of large values
//!    and blobs.
//! 6. If the options say so, the checksum of each file goes into the MANIFEST, and a table is read back before that.
//!
//! Source: RocksDB `db/compaction/compaction_outputs.cc`, `db/builder.cc`, `db/blob/blob_index.h` (behaviour).

use super::blobs::{BlobOutcome, BlobOutputs, BlobPlan};
use super::cut::{Cut, CutLimits};
use super::partitions::Partitioning;
use super::sink::EntrySink;
use super::tombstones::{Carried, Survivors};
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::stats::Statistics;
use ashlar_base::{
    Error, FileNumber, InternalKey, InternalKeyBuf, MergeOperator, Result, Trailer, ValueType,
};
use ashlar_blob::OldestBlobFile;
use ashlar_cache::FramePool;
use ashlar_env::{Fs, WriteFile};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::NewFile;
use ashlar_table::{
    CollectorFailure, ReaderOptions, TableBuilder, TableIdentity, TableOptions, TableReader, TableSummary,
};
use ashlar_tree::files::{CRC32C_FUNCTION, Numbers, PendingFile, SummedFile, summed};
use ashlar_tree::version::TableCounts;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The block cache while a table is read back; small, because no block is read twice.
const READ_BACK_POOL: usize = 1 << 20;

/// Where and how tables are written.
#[derive(Clone, Debug)]
pub struct OutputPlan {
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// The directory of the tables.
    pub dir: PathBuf,
    /// The index of that directory in the list of the family's directories, for the MANIFEST.
    pub path_id: u8,
    /// The directory of the blob files: the first of the family's list.
    pub blob_dir: PathBuf,
    /// The format of the tables, with the order of the keys.
    pub table: TableOptions,
    /// Folds merge operands during the rewrite; `None`: operands are kept.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The budget to which the memory of an unfinished table is charged.
    pub budget: Option<Arc<MemoryBudget>>,
    /// The statistics that count compressions.
    pub statistics: Option<Arc<Statistics>>,
    /// The treatment of large values and of blobs.
    pub blobs: BlobPlan,
    /// The identity of the writer; the file number is filled in for each table. `creation_time` is recorded as oldest
    /// ancestor time.
    pub identity: TableIdentity,
    /// Further checks of a finished file.
    pub checks: OutputChecks,
}

/// Further checks of a finished file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputChecks {
    /// The checksum of the whole file is recorded.
    pub file_checksums: bool,
    /// A table is read back and verified before the MANIFEST can name it.
    pub read_back: bool,
}

struct Open {
    pending: PendingFile,
    file: Arc<dyn WriteFile>,
    sum: Option<Arc<SummedFile>>,
    builder: TableBuilder,
    oldest_blob: OldestBlobFile,
    /// Entries that are not the first of their key.
    older: u64,
}

/// One finished table.
#[derive(Debug)]
pub struct Output {
    /// The file as the MANIFEST stores it, without an epoch number: the commit fills that in.
    pub file: NewFile,
    /// The entry counts of the table.
    pub counts: TableCounts,
    /// Properties that collectors did not give.
    pub collector_failures: Vec<CollectorFailure>,
    /// Drop this once the edit with the file is durable.
    pub pending: PendingFile,
}

/// The sink of flush and compaction.
pub struct TableOutputs {
    plan: OutputPlan,
    cut: Cut,
    numbers: Numbers,
    tombstones: Carried,
    blobs: BlobOutputs,
    open: Option<Open>,
    done: Vec<Output>,
    /// A table with more bytes of keys in its index is full.
    index_bytes_max: usize,
    scratch: InternalKeyBuf,
}

impl TableOutputs {
    /// Outputs without a table yet.
    pub fn new(plan: OutputPlan, limits: CutLimits, numbers: Numbers) -> Self {
        let cut = Cut::new(limits, plan.table.order.clone());
        let sums = plan.checks.file_checksums;
        let blobs = BlobOutputs::new(plan.blobs.clone(), Arc::clone(&plan.fs), plan.blob_dir.clone(), sums);
        let (tombstones, scratch) = (Carried::default(), InternalKeyBuf::new(&[], Trailer::LAST));
        let (open, done, index_bytes_max) = (None, Vec::new(), usize::MAX);
        TableOutputs { plan, cut, numbers, tombstones, blobs, open, done, index_bytes_max, scratch }
    }

    /// Ends a table, whatever its size, when the keys in its index have more bytes than this. With long keys that begin alike, an index
    /// is many times as large as the data.
    pub fn with_index_limit(mut self, bytes: usize) -> Self {
        self.index_bytes_max = bytes;
        self
    }

    /// Adds range tombstones to write. `bytes`: what the rewrite holds of the tombstones that they are cut from, to be charged.
    pub fn with_tombstones(mut self, survivors: Survivors, bytes: usize) -> Self {
        self.tombstones = Carried::new(survivors, bytes, self.plan.budget.as_ref());
        self
    }

    /// Cuts the outputs where `partitioning` says so, too.
    pub fn partitioned_by(mut self, partitioning: Option<Box<Partitioning>>) -> Self {
        self.cut.partition_by(partitioning);
        self
    }

    /// Whether the partitioner panicked.
    pub fn partitioner_failed(&self) -> bool {
        self.cut.has_failed()
    }

    /// The finished tables. From here on the caller must remove them if they are not installed.
    pub fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.done)
    }

    /// The finished blob files and the garbage. The caller must remove the files, as with [`TableOutputs::take`].
    pub fn take_blobs(&mut self) -> BlobOutcome {
        self.blobs.take()
    }

    /// Bytes of the finished tables and of the unfinished one.
    pub fn bytes_written(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |o| o.builder.file_size_estimate());
        self.done.iter().map(|o| o.file.size).sum::<u64>() + open
    }

    /// Adds an entry that refers to blobs, or whose value goes to a blob file.
    fn add_with_blobs(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let (user_key, trailer) = key.split();
        let (Some(kind), Some(open)) = (trailer.value_type(), &mut self.open) else { return Ok(()) };
        match self.blobs.replace(&self.numbers, kind, user_key, value)? {
            None => {
                open.note_blob(kind, value)?;
                open.builder.add(key, value)
            }
            Some(kind) => {
                self.scratch.set(user_key, Trailer::new(trailer.seq(), kind));
                open.note_blob(kind, self.blobs.entry())?;
                open.builder.add(self.scratch.as_key(), self.blobs.entry())
            }
        }
    }

    #[cold]
    fn begin(&mut self) -> Result<Open> {
        let pending = (self.numbers)();
        let number = pending.number();
        let (file, sum) = summed(self.plan.fs.create(&self.path(number))?, self.plan.checks.file_checksums);
        let identity = TableIdentity { number, ..self.plan.identity.clone() };
        match TableBuilder::new(Arc::clone(&file), self.plan.table.clone(), identity) {
            Ok(builder) => {
                let budget = self.plan.budget.as_ref();
                let charge = budget.map_or_else(MemoryCharge::none, |b| b.charge(MemoryUse::Buffers, 0));
                let builder = builder.charged_to(charge).counted_into(self.plan.statistics.clone());
                Ok(Open { pending, file, sum, builder, oldest_blob: OldestBlobFile::default(), older: 0 })
            }
            Err(e) => {
                self.remove(number);
                Err(e)
            }
        }
    }

    /// Finishes the open table, if there is one; the next one begins with `next`.
    #[cold]
    fn close(&mut self, next: Option<&[u8]>) -> Result<()> {
        let Some(Open { pending, file, sum, mut builder, oldest_blob, older }) = self.open.take() else {
            return Ok(());
        };
        let order = &self.plan.table.order;
        let carried =
            self.tombstones.hand_over(order, next, |t| builder.add_range_tombstone(t.begin, t.end, t.seq));
        let sync = || if planted(Bug::TableUnsynced) { Ok(()) } else { file.sync_all() };
        let finished = carried.and_then(|()| builder.finish()).and_then(|summary| sync().map(|()| summary));
        let checked = finished.and_then(|mut summary| {
            self.check_size(pending.number(), summary.size)?;
            self.read_back(pending.number(), &summary)?;
            let failures = std::mem::take(&mut summary.collector_failures);
            Ok((summary, failures, sum.map(|sum| sum.checksum()).transpose()?))
        });
        match checked {
            Ok((summary, collector_failures, sum)) => {
                let counts = TableCounts {
                    entries: summary.entries,
                    deletions: summary.deletions,
                    range_deletions: summary.range_deletions,
                    value_bytes: summary.raw_value_bytes,
                    older,
                    newest_value: Some(summary.newest_value),
                    spent: false,
                };
                let mut file = self.new_file(pending.number(), summary, oldest_blob.number());
                file.checksum = sum.map(|sum| sum.to_vec());
                file.checksum_function = sum.map(|_| CRC32C_FUNCTION.to_vec());
                self.done.push(Output { file, counts, collector_failures, pending });
                Ok(())
            }
            Err(e) => {
                self.remove(pending.number());
                Err(e)
            }
        }
    }

    /// Checks that the file has the length that was written, before the MANIFEST records it.
    fn check_size(&self, number: FileNumber, written: u64) -> Result<()> {
        let path = self.path(number);
        let found = self.plan.fs.open_read(&path)?.len();
        if found == written {
            return Ok(());
        }
        Err(Error::corruption(format!("table has {found} bytes where {written} were written")).at_path(&path))
    }

    /// Reads the table from the file as readers will, if the options say so.
    fn read_back(&self, number: FileNumber, written: &TableSummary) -> Result<()> {
        if !self.plan.checks.read_back {
            return Ok(());
        }
        let path = self.path(number);
        let pool = FramePool::new(READ_BACK_POOL);
        let options = ReaderOptions::new(self.plan.table.order.clone(), pool, number);
        let table = TableReader::open(self.plan.fs.open_read(&path)?, written.size, options)?;
        let (found, points) = (table.verify()?, written.entries - written.range_deletions);
        if found == points {
            return Ok(());
        }
        let what = format!("table reads back with {found} entries where {points} were written");
        Err(Error::corruption(what).at_path(&path))
    }

    fn new_file(&self, number: FileNumber, s: TableSummary, oldest_blob: FileNumber) -> NewFile {
        let seqs = (s.smallest_seq, s.largest_seq);
        let mut file = NewFile::new(number, s.size, (s.smallest, s.largest), seqs);
        file.oldest_ancestor_time = Some(self.plan.identity.creation_time);
        file.file_creation_time = Some(self.plan.identity.file_creation_time);
        file.path_id = self.plan.path_id;
        file.oldest_blob_file = oldest_blob;
        file.tail_size = s.tail_size;
        file.need_compaction = s.needs_compaction;
        file.unique_id = unique_id_bytes(s.unique_id);
        file
    }

    fn path(&self, number: FileNumber) -> PathBuf {
        self.plan.dir.join(FileKind::Table(number).name())
    }

    /// Best effort: the next scan of the directory removes a leftover file as obsolete.
    fn remove(&self, number: FileNumber) {
        let _ = self.plan.fs.remove(&self.path(number));
    }
}

impl EntrySink for TableOutputs {
    fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.plan.budget.as_ref()
    }

    #[inline]
    fn add(&mut self, key: InternalKey<'_>, value: &[u8], first: bool) -> Result<()> {
        if first {
            let builder = self.open.as_ref().map(|open| &open.builder);
            let size = builder.map_or(0, TableBuilder::file_size_estimate);
            let is_full = builder.is_some_and(|builder| builder.index_bytes() > self.index_bytes_max);
            if self.cut.before(key.user_key(), size) || is_full {
                self.cut.restart();
                self.close(Some(key.user_key()))?;
            }
        }
        if self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        if let Some(open) = &mut self.open
            && !first
        {
            open.older += 1;
        }
        if self.blobs.may_replace(key.trailer().value_type(), value) {
            return self.add_with_blobs(key, value);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        open.builder.add(key, value)
    }

    fn note_read(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        match key.trailer().value_type() {
            Some(kind) => self.blobs.count_input(kind, key.user_key(), value),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.blobs.finish()?;
        if self.open.is_none() && !self.tombstones.is_empty() {
            self.open = Some(self.begin()?);
        }
        self.close(None)?;
        if self.done.is_empty() || planted(Bug::TableDirUnsynced) {
            Ok(())
        } else {
            if self.plan.blob_dir != self.plan.dir {
                self.plan.fs.sync_dir(&self.plan.blob_dir)?;
            }
            self.plan.fs.sync_dir(&self.plan.dir)
        }
    }
}

impl Open {
    fn note_blob(&mut self, kind: ValueType, value: &[u8]) -> Result<()> {
        self.oldest_blob.see(kind, value).map_err(|e| e.at_path(self.file.path()))
    }
}

impl Drop for TableOutputs {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.remove(open.pending.number());
        }
        for output in self.take() {
            self.remove(output.file.number);
        }
    }
}

impl fmt::Debug for TableOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableOutputs").field("dir", &self.plan.dir).field("done", &self.done.len()).finish()
    }
}

/// The id as the MANIFEST stores it; `None` when unknown.
fn unique_id_bytes(id: [u64; 2]) -> Option<[u8; 16]> {
    if id == [0, 0] {
        return None;
    }
    let mut bytes = [0; 16];
    let (low, high) = bytes.split_at_mut(8);
    low.copy_from_slice(&id[0].to_le_bytes());
    high.copy_from_slice(&id[1].to_le_bytes());
    Some(bytes)
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
