//! Large values and blobs in a rewrite.
//!
//! 1. A put with a large enough value goes to a blob file; the table stores a blob index instead, at the same sequence.
//!    Each large column of an entity is stored the same way, if the format level allows such entities in tables.
//! 2. A blob in an old file is read, verified, and treated like an inline value: it goes to a new blob file, or into
//!    the table if values are not separated (any more).
//! 3. A blob file is finished and fsynced when it is full, the last one at the end of the rewrite: before any edit can
//!    name a table that refers to it.
//! 4. A blob that an input entry refers to and no output entry refers to becomes garbage.
//! 5. Files that [`BlobOutputs::take`] does not hand over are removed.
//!
//! Source: RocksDB `db/blob/blob_file_builder.cc`, `db/compaction/compaction_iterator.cc` (behaviour).

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{FamilyId, FileNumber, Result, ValueType};
use ashlar_blob::{BlobOptions, BlobSummary, BlobWriter, GarbageMeter};
use ashlar_env::{Fs, WriteFile};
use ashlar_format::blob::{BlobIndex, BlobPlace};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::{BlobAddition, BlobGarbage};
use ashlar_table::ReadHow;
use ashlar_tree::blobs::BlobFiles;
use ashlar_tree::files::{CRC32C_FUNCTION, Numbers, PendingFile, SummedFile, summed};
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::sync::Arc;

/// How a rewrite treats large values and blobs.
#[derive(Clone, Debug)]
pub struct BlobPlan {
    family: FamilyId,
    options: BlobOptions,
    /// The files from which values are moved.
    emptied: Emptied,
    inputs: Option<Arc<BlobFiles>>,
    /// Whether the rewrite reads all tables of the family.
    whole: bool,
}

impl BlobPlan {
    /// For tables of `level` whose input entries refer to no blobs, or to blobs whose garbage is not counted: flush.
    pub fn new(family: FamilyId, options: &BlobOptions, level: u8) -> BlobPlan {
        let emptied = Emptied::Below(FileNumber(0));
        BlobPlan { family, options: options.at_level(level), emptied, inputs: None, whole: false }
    }

    /// For entries that refer to `inputs`, all blob files of the family: compaction. Garbage is counted, and values are
    /// moved out of the oldest files if the options say so.
    pub fn with_inputs(self, inputs: Arc<BlobFiles>) -> BlobPlan {
        let numbers: Vec<FileNumber> = inputs.files().keys().copied().collect();
        let emptied = Emptied::Below(self.options.relocate_below(&numbers));
        BlobPlan { emptied, inputs: Some(inputs), ..self }
    }

    /// For a rewrite of all tables of the family, replaced ones among them: garbage is what no output refers to. Two
    /// inputs may refer to one blob at different sequences, because a compaction into the last level sets them to 0.
    #[must_use]
    pub fn of_all_tables(self) -> BlobPlan {
        BlobPlan { whole: true, ..self }
    }

    /// For entries that may refer to `files`, which are to be emptied: quarantine and repair.
    pub fn emptying(self, files: BTreeSet<FileNumber>, inputs: Arc<BlobFiles>) -> BlobPlan {
        BlobPlan { emptied: Emptied::These(files), inputs: Some(inputs), ..self }
    }
}

/// The files from which values are moved.
#[derive(Clone, Debug)]
enum Emptied {
    Below(FileNumber),
    These(BTreeSet<FileNumber>),
}

impl Emptied {
    fn contains(&self, file: FileNumber) -> bool {
        match self {
            Emptied::Below(end) => file < *end,
            Emptied::These(files) => files.contains(&file),
        }
    }
}

/// The result of a rewrite's blob work, for its edit.
#[derive(Debug, Default)]
pub struct BlobOutcome {
    /// The new files.
    pub added: Vec<BlobAddition>,
    /// New garbage in old files.
    pub garbage: Vec<BlobGarbage>,
    /// Drop these once the edit is durable.
    pub pending: Vec<PendingFile>,
    /// The counts for statistics.
    pub counters: BlobCounters,
}

/// The counts of a rewrite's blob work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobCounters {
    /// New blob files, each of them synced.
    pub files: u64,
    /// Bytes of those files.
    pub bytes_written: u64,
    /// Values moved out of old files.
    pub moved: u64,
    /// Stored bytes of those values.
    pub bytes_moved: u64,
}

impl AddAssign for BlobCounters {
    fn add_assign(&mut self, other: BlobCounters) {
        self.files += other.files;
        self.bytes_written += other.bytes_written;
        self.moved += other.moved;
        self.bytes_moved += other.bytes_moved;
    }
}

struct Open {
    pending: PendingFile,
    file: Arc<dyn WriteFile>,
    sum: Option<Arc<SummedFile>>,
    writer: BlobWriter,
}

/// The unfinished and finished blob files, and the garbage of the old ones.
pub(super) struct BlobOutputs {
    plan: BlobPlan,
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    meter: GarbageMeter,
    open: Option<Open>,
    done: Vec<(BlobSummary, Option<[u8; 4]>, PendingFile)>,
    counters: BlobCounters,
    /// Whether the checksum of each file is recorded.
    sums: bool,
    /// The bytes that the table stores in place of the last entry's value.
    entry: Vec<u8>,
}

impl BlobOutputs {
    pub(super) fn new(plan: BlobPlan, fs: Arc<dyn Fs>, dir: PathBuf, sums: bool) -> BlobOutputs {
        let (meter, entry) = (GarbageMeter::default(), Vec::new());
        let counters = BlobCounters::default();
        BlobOutputs { plan, fs, dir, meter, open: None, done: Vec::new(), counters, sums, entry }
    }

    /// Whether [`BlobOutputs::replace`] must see an entry.
    #[inline]
    pub(super) fn may_replace(&self, kind: Option<ValueType>, value: &[u8]) -> bool {
        match kind {
            Some(ValueType::Put) => self.plan.options.separates(value.len()),
            Some(ValueType::BlobIndex | ValueType::Entity) => true,
            _ => false,
        }
    }

    /// Counts the blobs that an input entry refers to.
    pub(super) fn count_input(&mut self, kind: ValueType, user_key: &[u8], value: &[u8]) -> Result<()> {
        match self.plan.inputs {
            Some(_) => self.meter.flow_in(kind, user_key, value),
            None => Ok(()),
        }
    }

    /// Computes what the table stores instead of an entry's value. Returns the new type; the bytes are in
    /// [`BlobOutputs::entry`]. `None`: the entry stays as it is.
    pub(super) fn replace(
        &mut self,
        numbers: &Numbers,
        kind: ValueType,
        user_key: &[u8],
        value: &[u8],
    ) -> Result<Option<ValueType>> {
        let replaced = match kind {
            ValueType::Put => Some(self.hold(numbers, user_key, value)?),
            ValueType::BlobIndex => match BlobIndex::decode(value).map_err(|m| m.into_error())? {
                BlobIndex::Blob(place) => match self.moved(user_key, &place)? {
                    Some(value) => Some(self.hold(numbers, user_key, &value)?),
                    None => None,
                },
                _ => None,
            },
            ValueType::Entity => self.hold_columns(numbers, user_key, value)?,
            _ => None,
        };
        if self.plan.inputs.is_some() {
            let value = if replaced.is_some() { &self.entry[..] } else { value };
            self.meter.flow_out(replaced.unwrap_or(kind), user_key, value)?;
        }
        Ok(replaced)
    }

    /// See [`BlobOutputs::replace`].
    pub(super) fn entry(&self) -> &[u8] {
        &self.entry
    }

    /// Finishes the open blob file and makes it durable.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(Open { pending, file, sum, writer }) = self.open.take() else { return Ok(()) };
        let finished = writer.finish().and_then(|summary| {
            if !planted(Bug::BlobUnsynced) {
                file.sync_all()?;
            }
            Ok((summary, sum.map(|sum| sum.checksum()).transpose()?))
        });
        match finished {
            Ok((summary, sum)) => {
                self.done.push((summary, sum, pending));
                Ok(())
            }
            Err(e) => {
                self.remove(pending.number());
                Err(e)
            }
        }
    }

    /// The finished files and the garbage. Garbage is reported only for files of the version: a reference to another
    /// file is damage, which its readers report.
    pub(super) fn take(&mut self) -> BlobOutcome {
        let counters = std::mem::take(&mut self.counters);
        let mut outcome = BlobOutcome { counters, ..BlobOutcome::default() };
        for (summary, sum, pending) in std::mem::take(&mut self.done) {
            outcome.added.push(BlobAddition {
                checksum_method: sum.map(|_| CRC32C_FUNCTION.to_vec()).unwrap_or_default(),
                checksum: sum.map(|sum| sum.to_vec()).unwrap_or_default(),
                ..summary.addition()
            });
            outcome.counters.files += 1;
            outcome.counters.bytes_written += summary.size;
            outcome.pending.push(pending);
        }
        if let Some(inputs) = &self.plan.inputs {
            outcome.garbage = match self.plan.whole {
                true => {
                    inputs.files().values().filter_map(|file| self.meter.unreferenced(&file.live())).collect()
                }
                false => {
                    let known = |garbage: &BlobGarbage| inputs.files().contains_key(&garbage.number);
                    self.meter.garbage().into_iter().filter(known).collect()
                }
            };
        }
        if planted(Bug::GarbageCountedTwice) {
            outcome.garbage.extend_from_within(..);
        }
        outcome
    }

    /// Stores a value in a blob file or in the entry, as the options say.
    fn hold(&mut self, numbers: &Numbers, user_key: &[u8], value: &[u8]) -> Result<ValueType> {
        self.entry.clear();
        if !self.plan.options.separates(value.len()) {
            self.entry.extend_from_slice(value);
            return Ok(ValueType::Put);
        }
        let place = self.write(numbers, user_key, value)?;
        BlobIndex::Blob(place).encode(&mut self.entry);
        Ok(ValueType::BlobIndex)
    }

    /// The value of a blob that must leave its file; `None` if the blob stays.
    fn moved(&mut self, user_key: &[u8], place: &BlobPlace) -> Result<Option<Vec<u8>>> {
        match &self.plan.inputs {
            Some(inputs) if place.file.0 != 0 && self.plan.emptied.contains(place.file) => {
                let value = inputs.blob(user_key, place, ReadHow::plain())?;
                self.counters.moved += 1;
                self.counters.bytes_moved += place.size;
                Ok(Some(value))
            }
            _ => Ok(None),
        }
    }

    /// Rewrites an entity with large columns, or with columns in old files.
    fn hold_columns(
        &mut self,
        numbers: &Numbers,
        user_key: &[u8],
        value: &[u8],
    ) -> Result<Option<ValueType>> {
        let entity = Entity::decode(value).map_err(|e| e.into_error())?;
        let mut moved = Vec::with_capacity(entity.columns().len());
        for column in entity.columns() {
            moved.push(match column.value {
                ColumnValue::Blob(place) => self.moved(user_key, &place)?,
                ColumnValue::Inline(_) => None,
            });
        }
        let mut changed = false;
        let mut columns = Vec::with_capacity(moved.len());
        for (column, moved) in entity.columns().iter().zip(&moved) {
            let (value, separate) = match (column.value, moved) {
                (_, Some(value)) => (ColumnValue::Inline(value), self.plan.options.separates(value.len())),
                (ColumnValue::Inline(value), None) => {
                    (column.value, self.plan.options.separates_column(value.len()))
                }
                (blob, None) => (blob, false),
            };
            changed |= separate || moved.is_some();
            let value = match value {
                ColumnValue::Inline(value) if separate => {
                    ColumnValue::Blob(self.write(numbers, user_key, value)?)
                }
                stays => stays,
            };
            columns.push(Column { name: column.name, value });
        }
        if !changed {
            return Ok(None);
        }
        let entity = Entity::new(columns).map_err(|m| m.into_error())?;
        self.entry.clear();
        entity.encode(&mut self.entry);
        Ok(Some(ValueType::Entity))
    }

    fn write(&mut self, numbers: &Numbers, user_key: &[u8], value: &[u8]) -> Result<BlobPlace> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(numbers)?,
        };
        let added = open.writer.add(user_key, value);
        let full = open.writer.size() >= self.plan.options.file_bytes;
        self.open = Some(open);
        let place = added?;
        if full {
            self.finish()?;
        }
        Ok(place)
    }

    #[cold]
    fn begin(&mut self, numbers: &Numbers) -> Result<Open> {
        let pending = numbers();
        let number = pending.number();
        let (file, sum) = summed(self.fs.create(&self.path(number))?, self.sums);
        match BlobWriter::new(Arc::clone(&file), number, self.plan.family, &self.plan.options) {
            Ok(writer) => Ok(Open { pending, file, sum, writer }),
            Err(e) => {
                self.remove(number);
                Err(e)
            }
        }
    }

    fn path(&self, number: FileNumber) -> PathBuf {
        self.dir.join(FileKind::Blob(number).name())
    }

    /// Best effort: the next scan of the directory removes a leftover file as obsolete.
    fn remove(&self, number: FileNumber) {
        let _ = self.fs.remove(&self.path(number));
    }
}

impl Drop for BlobOutputs {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.remove(open.pending.number());
        }
        for (summary, _, _) in std::mem::take(&mut self.done) {
            self.remove(summary.number);
        }
    }
}

#[cfg(test)]
#[path = "blobs_tests.rs"]
mod tests;
