//! Replay into memtables, and from there into tables: what an open does with the WAL files it finds.
//!
//! 1. A full memtable is written to a level-0 table at once. When all together fill the database's part of the memtables' share, the
//!    largest are written until half of that part is free. A repair knows no cap, and writes full memtables only.
//! 2. Nothing is installed here: [`Replayer::finish`] returns one edit per family, for one commit. A replayer that is
//!    dropped earlier removes its tables.
//! 3. An entry that is too large for any table of this engine is not written to a table: [`Replayer::too_large`] names
//!    it, and the caller opens the database read-only.
//! 4. A value in a blob file that no MANIFEST names becomes a plain value: see [`ashlar_tree::direct_blobs`].
//! 5. The table directories are stored in OPTIONS before the first table is created. A later open that did not know
//!    them could reuse the number of a table that a crash left there.
//! 6. For a read-only open everything stays in memory, whatever its size: [`Replayer::into_memtables`].

use crate::batch::memtable_op;
use crate::column_family::new_memtable;
use crate::pressure::Memory;
use ashlar_base::memory::{MemoryCharge, MemoryUse};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, FileNumber, Order, Result, SeqNum, ValueType};
use ashlar_compaction::flush::{FlushInput, FlushRun};
use ashlar_compaction::rewrite::Progress;
use ashlar_compaction::{Writer, output_numbers};
use ashlar_env::{Env, StepBudget};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::{BatchEncoder, BatchOp, BatchReader};
use ashlar_memtable::{MemtableRep, Op, WriterSlot};
use ashlar_options::{DbOptions, FamilyOptions};
use ashlar_recovery::{
    BatchPlace, FamilyFilter, PreparedSet, RecoveryReport, ReplaySink, Undecided, salvage_wals, sequenced_ops,
};
use ashlar_table::{CollectorFailure, MAX_ENTRY_BYTES};
use ashlar_tree::direct_blobs::DirectBlobs;
use ashlar_tree::files::{PendingFile, PendingOutputs};
use ashlar_tree::unwritable::may_need_unnamed_blobs;
use ashlar_tree::version::{FamilyState, VersionSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the options of a family, given its name and the order that the database stores for it.
pub type OptionsOf<'a> = &'a dyn Fn(&str, &Order) -> FamilyOptions;

/// Whether tables already hold a merge operand, by its family, key, sequence and WAL file.
pub type HoldsOperand<'a> = &'a dyn Fn(FamilyId, &[u8], (SeqNum, FileNumber)) -> Result<bool>;

struct Family {
    state: Arc<FamilyState>,
    options: FamilyOptions,
    mem: Arc<dyn MemtableRep>,
    slot: WriterSlot,
    edit: VersionEdit,
}

/// Stores the table directories in the OPTIONS file.
type Announce<'a> = Box<dyn FnOnce() -> Result<()> + 'a>;

/// Applies the batches of the WAL files.
pub(super) struct Replayer<'a> {
    dir: PathBuf,
    writer: Writer,
    versions: &'a Arc<VersionSet>,
    outputs: &'a Arc<PendingOutputs>,
    families: BTreeMap<FamilyId, Family>,
    last: SeqNum,
    pending: Vec<PendingFile>,
    uncollected: Vec<String>,
    /// Full memtables are written to tables.
    spills: bool,
    /// Called once, before the first table.
    announce: Option<Announce<'a>>,
    /// Tells which operands to leave out.
    held: Option<HoldsOperand<'a>>,
    /// The first entry that is too large for a table, or that an undecided transaction could not commit.
    too_large: Option<String>,
    direct: DirectBlobs,
    undecided: PreparedSet,
    /// `None`: there is no cap.
    memory: Option<&'a Memory>,
}

/// What a replay has written.
pub(super) struct Replayed {
    /// Add the new tables, family by family.
    pub(super) edits: Vec<VersionEdit>,
    /// Drop these once the edits are durable.
    pub(super) pending: Vec<PendingFile>,
    /// The undecided transactions.
    pub(super) undecided: PreparedSet,
    /// Lines about tables that lack properties of a collector.
    pub(super) uncollected: Vec<String>,
}

impl Family {
    /// Whether a table of the family can store `op`. A table stores the key with its eight-byte trailer; for a value
    /// that goes to a blob file it stores a reference.
    fn takes(&self, op: &Op<'_>) -> bool {
        let blob = &self.options.blob;
        let is_blob =
            blob.enabled && op.value_type == ValueType::Put && op.value.len() as u64 >= blob.min_blob_bytes;
        let value = if is_blob { 0 } else { op.value.len() };
        op.key.len().saturating_add(8).saturating_add(value) <= MAX_ENTRY_BYTES
    }
}

impl<'a> Replayer<'a> {
    pub(super) fn new(
        env: &Env,
        dir: &Path,
        versions: &'a Arc<VersionSet>,
        outputs: &'a Arc<PendingOutputs>,
        session_id: &str,
        options_of: OptionsOf<'_>,
    ) -> Self {
        let family = |state: Arc<FamilyState>| {
            let order = state.version.order.clone();
            let options = options_of(&state.name, &order);
            let edit = VersionEdit::of(state.id);
            let mem = new_memtable(&options, None);
            (state.id, Family { state, options, mem, slot: WriterSlot::default(), edit })
        };
        Replayer {
            dir: dir.to_path_buf(),
            writer: Writer::new(env, versions, session_id),
            versions,
            outputs,
            families: versions.families().into_iter().map(family).collect(),
            last: SeqNum::ZERO,
            pending: Vec::new(),
            uncollected: Vec::new(),
            spills: true,
            announce: None,
            held: None,
            too_large: None,
            direct: DirectBlobs::default(),
            undecided: PreparedSet::default(),
            memory: None,
        }
    }

    /// Takes two settings from `options`: whether each table gets a checksum in the MANIFEST, and `db_paths`, the table
    /// directories for families without their own. Memtables keep to the database's part of `memory`.
    pub(super) fn under(mut self, options: &DbOptions, memory: Option<&'a Memory>) -> Self {
        self.memory = memory;
        for family in self.families.values_mut() {
            family.mem = new_memtable(&family.options, memory.map(Memory::account));
        }
        self.writer.file_checksums = options.file_checksums;
        self.writer.db_paths.clone_from(&options.db_paths);
        self
    }

    /// Calls `announce` once: before the first table is created, or in [`Replayer::finish`] if replay created none.
    pub(super) fn announcing(mut self, announce: impl FnOnce() -> Result<()> + 'a) -> Self {
        self.announce = Some(Box::new(announce));
        self
    }

    /// Leaves out merge operands that tables already hold.
    pub(super) fn without_operands(mut self, held: HoldsOperand<'a>) -> Self {
        self.held = Some(held);
        self
    }

    /// Why the database cannot be written: the first entry that is too large for a table, its WAL file, its offset and
    /// the limit.
    pub(super) fn too_large(&self) -> Option<&str> {
        self.too_large.as_deref()
    }

    /// Whether blob files that no MANIFEST names must be kept.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn keeps_blob_files(&self) -> Result<bool> {
        let families = self.versions.families();
        Ok(self.direct.left() || may_need_unnamed_blobs(&*self.writer.env.fs, &self.dir, &families)?)
    }

    /// Keeps everything in memory and writes nothing.
    pub(super) fn in_memory(mut self) -> Self {
        self.spills = false;
        self
    }

    /// The replayed memtables, immutable; includes families without data.
    pub(super) fn into_memtables(mut self) -> BTreeMap<FamilyId, Arc<dyn MemtableRep>> {
        let last = self.last.max(self.versions.last_sequence());
        let families = std::mem::take(&mut self.families);
        let replayed = |(id, family): (FamilyId, Family)| {
            family.mem.seal(last);
            (id, family.mem)
        };
        families.into_iter().map(replayed).collect()
    }

    /// Writes the memtables to tables.
    pub(super) fn finish(mut self) -> Result<Replayed> {
        self.announce()?;
        let ids: Vec<FamilyId> = self.families.keys().copied().collect();
        for id in ids {
            self.write_table(id)?;
        }
        let families = std::mem::take(&mut self.families);
        let edits = families.into_values().map(|f| f.edit).filter(|e| !e.added.is_empty()).collect();
        Ok(Replayed {
            edits,
            pending: std::mem::take(&mut self.pending),
            undecided: std::mem::take(&mut self.undecided),
            uncollected: std::mem::take(&mut self.uncollected),
        })
    }

    fn insert(&mut self, place: BatchPlace, id: FamilyId, seq: SeqNum, op: Op<'_>) -> Result<()> {
        let Some(family) = self.families.get_mut(&id) else { return Ok(()) };
        if !family.takes(&op) {
            let what = too_large(place, &family.state.name, &op);
            if self.spills {
                self.too_large = Some(what.clone());
                let hint = "Open the database read-only to copy the entry, or remove it with RocksDB";
                return Err(Error::not_supported(what).hint(hint));
            }
            self.too_large.get_or_insert(what);
        }
        let prepared = family.mem.prepare(&mut family.slot, &mut std::iter::once(op))?;
        family.mem.insert(&mut family.slot, prepared, seq);
        self.last = self.last.max(seq);
        Ok(())
    }

    fn announce(&mut self) -> Result<()> {
        self.announce.take().map_or(Ok(()), |announce| announce())
    }

    /// Writes the largest memtables, if all together fill the database's part of memory, until half of it is free.
    fn make_room(&mut self) -> Result<()> {
        let Some(memory) = self.memory.filter(|memory| memory.memtables_full()) else { return Ok(()) };
        let sizes = self.families.iter().map(|(id, family)| (Reverse(family.mem.memory()), *id));
        let mut largest: Vec<_> = sizes.collect();
        largest.sort_unstable();
        let mut due = largest.into_iter().take_while(|_| !memory.memtables_half_empty());
        due.try_for_each(|(_, id)| self.write_table(id))
    }

    /// Flushes the family's memtable, if it is not empty, and begins a new one.
    fn write_table(&mut self, id: FamilyId) -> Result<()> {
        self.announce()?;
        let Some(family) = self.families.get_mut(&id) else { return Ok(()) };
        if family.mem.is_empty() {
            return Ok(());
        }
        let next = new_memtable(&family.options, self.memory.map(Memory::account));
        let full = std::mem::replace(&mut family.mem, next);
        full.seal(self.last);
        let mut run = FlushRun::new(FlushInput {
            job: 0,
            family: id,
            memtables: vec![full],
            snapshots: Vec::new(),
            output: self.writer.plan(&self.dir, (id, &family.state.name), &family.options),
            numbers: output_numbers(self.versions, self.outputs),
        })?;
        while run.step(StepBudget::default().bytes)? == Progress::More {}
        let outcome = run.finish()?;
        family.edit.added.extend(outcome.edit.added);
        family.edit.blob_added.extend(outcome.edit.blob_added);
        self.pending.extend(outcome.pending);
        let lines = outcome.collector_failures.iter().map(|(number, failure)| {
            let file = FileKind::Table(*number).name();
            let CollectorFailure { collector, cause } = failure;
            format!("{file} lacks properties of the collector {collector:?}: {cause}")
        });
        self.uncollected.extend(lines);
        Ok(())
    }
}

/// Replays all WAL files that `versions` needs, past their damages, into tables of level 0. Leaves out merge operands for
/// which `held` is true. Returns the edits that add the tables, the undecided transactions, and what was found in the WAL
/// files. No purge may run before the edits are committed.
///
/// # Errors
/// `NotSupported`: the WAL files hold data that an open would not write, such as timestamps. `Io`. No table is left then.
pub fn replay_past_damage(
    (env, dir): (&Env, &Path),
    (versions, outputs): (&Arc<VersionSet>, &Arc<PendingOutputs>),
    (session_id, options): (&str, &DbOptions),
    options_of: OptionsOf<'_>,
    held: HoldsOperand<'_>,
) -> Result<(Vec<VersionEdit>, PreparedSet, RecoveryReport)> {
    let replayer = Replayer::new(env, dir, versions, outputs, session_id, options_of).under(options, None);
    let mut replayer = replayer.without_operands(held);
    let mut report = RecoveryReport::default();
    salvage_wals(env, dir, versions, &mut replayer, &mut report)?;
    let refused = report.read_only.first().map(String::as_str);
    if let Some(reason) = refused.or(replayer.too_large()) {
        return Err(Error::not_supported(format!("a repair of WAL files with {reason}")).at_path(dir));
    }
    let Replayed { edits, pending, undecided, uncollected } = replayer.finish()?;
    drop(pending);
    report.unserved.extend(uncollected);
    Ok((edits, undecided, report))
}

impl ReplaySink for Replayer<'_> {
    fn apply(&mut self, place: BatchPlace, batch: &BatchReader<'_>, filter: &FamilyFilter<'_>) -> Result<()> {
        let mut touched = Vec::new();
        let half = planted(Bug::HalfBatchReplayed) || planted(Bug::HalfBatchInAView) && !self.spills;
        let whole = if half { 1 } else { usize::MAX };
        for op in sequenced_ops(batch).take(whole) {
            let (seq, op) = op?;
            let Some(family) = op.family().filter(|f| filter.takes(*f)) else { continue };
            let Some(op) = memtable_op(&op, 0)? else { continue };
            if op.value_type == ValueType::Merge
                && let Some(held) = self.held
                && held(family, op.key, (seq, place.wal))?
            {
                continue;
            }
            let plain = match self.families.get(&family) {
                Some(family) => {
                    let entry = (op.key, op.value);
                    self.direct.resolve(family.state.version.blobs(), op.value_type, entry)?
                }
                None => None,
            };
            let op = match &plain {
                Some((value_type, value)) => Op { value_type: *value_type, value, ..op },
                None => op,
            };
            self.insert(place, family, seq, op)?;
            if !touched.contains(&family) {
                touched.push(family);
            }
        }
        // Only between batches: a table never holds half of a batch.
        for id in touched {
            if self.spills
                && self.families.get(&id).is_some_and(|f| f.mem.filled() >= f.options.write_buffer_bytes)
            {
                self.write_table(id)?;
            }
        }
        if self.spills { self.make_room() } else { Ok(()) }
    }

    fn undecided(&mut self, name: &[u8], data: BatchEncoder) {
        for op in data.reader().iter().flatten() {
            let Some(family) = op.family().and_then(|id| self.families.get(&id)) else { continue };
            // A commit would insert what no flush could write, or what only replay resolves.
            let takes = matches!(memtable_op(&op, 0), Ok(Some(op)) if family.takes(&op));
            if !takes || matches!(op, BatchOp::BlobIndex { .. }) {
                let name = name.escape_ascii();
                let what = format!(
                    "the undecided transaction '{name}' has an entry of family {:?} with a value in a blob file, or \
                     with more than {MAX_ENTRY_BYTES} bytes",
                    family.state.name
                );
                self.too_large.get_or_insert(what);
                break;
            }
        }
        let charge = |memory: &Memory| memory.account().charge(MemoryUse::Prepared, data.byte_len());
        let charge = self.memory.map_or_else(MemoryCharge::none, charge);
        self.undecided.insert(name, Undecided::new(data, charge));
    }
}

fn too_large(place: BatchPlace, family: &str, op: &Op<'_>) -> String {
    format!(
        "{} holds at offset {} an entry of family {family:?} with {} bytes of key and value; a table takes \
         {MAX_ENTRY_BYTES} at most, so the entry can be read and not be flushed",
        FileKind::Wal(place.wal).name(),
        place.offset,
        op.key.len().saturating_add(op.value.len())
    )
}

impl Drop for Replayer<'_> {
    fn drop(&mut self) {
        // Best effort: the next open removes leftover files as obsolete.
        for file in self.pending.drain(..) {
            // A number is used for one file only: the file is a table or a blob file.
            for kind in [FileKind::Table(file.number()), FileKind::Blob(file.number())] {
                let _ = self.writer.env.fs.remove(&self.dir.join(kind.name()));
            }
        }
    }
}
