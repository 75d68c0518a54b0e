//! Builds a tree without a MANIFEST, from the properties of the tables: all tables are merged into one level.
//!
//! 1. A table names its family, its order and the sequences of its entries, but not whether it was still live. Families
//!    that only WAL files mention get the names in OPTIONS that no table names, if the two numbers of families are
//!    equal.
//! 2. Sequences tell which of two versions of a key is newer, but not which of two tables is newer. So overlapping
//!    tables are always merged, never placed side by side.

use super::blobs::BadBlobs;
use super::names::{Named, name_families, nameless};
use super::report::RepairReport;
use super::state::{Begun, Repair};
use super::tables::{Copied, Kept, Outputs, if_damaged, read_around, refuse_udi_primary};
use ashlar_base::{
    Error, ErrorKind, FamilyId, FileNumber, InternalKeyBuf, Level, Order, Result, SeqNum, Trailer, ValueType,
};
use ashlar_blob::{OldestBlobFile, blob_places};
use ashlar_cache::FramePool;
use ashlar_compaction::rewrite::{BlobPlan, Progress};
use ashlar_compaction::{
    Action, Compaction, CompactionInput, CompactionPart, Reason, Writer, output_numbers,
};
use ashlar_engine::column_family::DEFAULT_FAMILY;
use ashlar_env::ReadFile;
use ashlar_format::filename::FileKind;
use ashlar_format::table::Properties;
use ashlar_format::version_edit::{BlobAddition, NewFile, VersionEdit};
use ashlar_table::{Anatomy, ReaderOptions, TableReader, with_proved_footer};
use ashlar_tree::check::{Damage, Risk, Verified};
use ashlar_tree::files::PendingOutputs;
use ashlar_tree::version::{Carried, FamilyState, OpenTables, Tables, Version, VersionSet};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The block cache while a table is inspected, in bytes.
const POOL_BYTES: usize = 1 << 20;

/// Bytes rewritten per step.
const STEP: usize = 4 << 20;

/// A family as its tables describe it.
struct Gathered {
    name: String,
    order: Order,
    tables: Vec<NewFile>,
    blobs: BTreeSet<FileNumber>,
    /// Names in the tables that the OPTIONS file does not list, with how many tables have them.
    strange: BTreeMap<String, usize>,
}

/// The result of a pass over a table.
struct Seen {
    smallest: InternalKeyBuf,
    largest: InternalKeyBuf,
    seqs: (SeqNum, SeqNum),
    oldest_blob: OldestBlobFile,
    blobs: BTreeSet<FileNumber>,
}

impl Repair<'_> {
    /// The families that the tables of the directory name, each with all its tables.
    pub(super) fn gather(
        &self,
        open: &Arc<OpenTables>,
        outputs: &Outputs<'_>,
        report: &mut RepairReport,
        progress: &mut dyn FnMut(&Verified),
    ) -> Result<Kept> {
        let mut bad = BadBlobs::of_directory(&self.env.fs, self.dir);
        for &number in &self.found.blobs {
            if let Some(e) = bad.look(&*self.env.fs, self.dir, number, None)? {
                report.lose(Damage::of(&FileKind::Blob(number).name(), &e, Risk::Nothing));
            }
        }
        let mut bad = bad.emptying_unnamed(&self.env.fs, self.dir)?;
        let mut families = BTreeMap::new();
        let (mut done, mut last_seq) = (Verified::default(), SeqNum::ZERO);
        done.files_total = self.found.tables.len() as u64;
        done.bytes_total = self.found.tables.iter().map(|(_, _, len)| len).sum();
        for (number, name, len) in &self.found.tables {
            match self.look((*number, name), last_seq, outputs, &mut bad, &mut families, report) {
                Ok(seq) => last_seq = last_seq.max(seq),
                Err(e) if e.is_corruption() => report.lose(Damage::of(name, &e, Risk::UnknownKeys)),
                Err(e) => return Err(e),
            }
            bad.end_of_table();
            (done.files, done.bytes, done.entries) = (done.files + 1, done.bytes + len, report.entries);
            progress(&done);
        }
        report.strange.extend(bad.strange());
        self.add_families_of_logs(&mut families, report)?;
        tell_apart(&mut families, report);
        tell_strange(&families, report);
        let mut begun = Vec::new();
        for (id, family) in families {
            begun.push(self.begin(id, family, &bad, open)?);
        }
        Ok(Kept { families: begun, last_seq })
    }

    /// Adds the families that no table names: `default`, and those that only WAL files write to.
    fn add_families_of_logs(
        &self,
        families: &mut BTreeMap<FamilyId, Gathered>,
        report: &mut RepairReport,
    ) -> Result<()> {
        let stored = |name: &str| self.stored.iter().find(|f| f.name == name)?.comparator.as_deref();
        let order = |name: &str| match stored(name) {
            Some(comparator) => self.order(name, Some(comparator)),
            None => Ok(self.settings.order_of_found(name)),
        };
        if let Entry::Vacant(default) = families.entry(FamilyId::DEFAULT) {
            default.insert(Gathered::empty(DEFAULT_FAMILY, order(DEFAULT_FAMILY)?));
        }
        let writes = self.found.writes_in_logs(&*self.env.fs, self.dir, None)?;
        let unnamed: Vec<FamilyId> = writes.0.into_keys().filter(|id| !families.contains_key(id)).collect();
        let taken = families.values().map(|family| &*family.name).collect();
        for Named { id, name, listed } in name_families(&unnamed, &taken, &self.stored) {
            let order = order(&name)?;
            report.remarks.push(format!(
                "no table names family {} of the WAL files: it gets the name {name:?}{} and the comparator {}",
                id.0,
                if listed { ", which the OPTIONS file lists and no table names," } else { "" },
                order.name()
            ));
            let gathered = Gathered::empty(&name, order);
            families.insert(id, gathered);
        }
        Ok(())
    }

    /// Reads one table; returns its largest sequence. `before` is the largest one of the tables with lower numbers.
    fn look(
        &self,
        (number, name): (FileNumber, &str),
        before: SeqNum,
        outputs: &Outputs<'_>,
        bad: &mut BadBlobs,
        families: &mut BTreeMap<FamilyId, Gathered>,
        report: &mut RepairReport,
    ) -> Result<SeqNum> {
        let (file, wrong) = self.open_table(name)?;
        let size = file.len();
        let said = Anatomy::open(Arc::clone(&file)).map_err(if_damaged)?.properties()?.clone();
        // As in RocksDB's repair, `default` gets a table that was written for no particular family.
        let known = family_of(&said);
        let id = known.unwrap_or(FamilyId::DEFAULT);
        if said.external_version.is_some() && known.is_none() {
            self.refuse_a_guess(name, report)?;
        }
        // Else RocksDB has stored the sequence number in the file, with `write_global_seqno`.
        let is_ingested = said.external_version.is_some() && said.global_seqno.unwrap_or(0) == 0;
        let told = said.column_family_name.filter(|told| !told.is_empty());
        let is_strange =
            |told: &String| !self.stored.is_empty() && self.stored.iter().all(|f| f.name != *told);
        let strange = told.clone().filter(is_strange);
        let family_name = if id == FamilyId::DEFAULT {
            DEFAULT_FAMILY.to_owned()
        } else {
            told.unwrap_or_else(|| nameless(id))
        };
        let order = self.order(&family_name, said.comparator.as_deref())?;
        let mut options = ReaderOptions::new(order.clone(), FramePool::new(POOL_BYTES), number);
        if is_ingested {
            options.largest_seq = Some(before);
            report.remarks.push(ingested(name, &family_name, before));
        }
        let table = TableReader::open(file, size, options)?;
        refuse_udi_primary(&table)?;
        let seen = see(&table, &order)?;
        wrong.iter().for_each(|e| report.lose(Damage::of(name, e, Risk::Nothing).in_family(&family_name)));
        let family = families.entry(id).or_insert_with(|| Gathered::empty(&family_name, order.clone()));
        family.blobs.extend(&seen.blobs);
        self.look_at_gone(&seen.blobs, bad)?;
        if let Some(name) = strange {
            *family.strange.entry(name).or_default() += 1;
        }
        let sound = match table.verify() {
            Ok(entries) => {
                report.entries += entries;
                wrong.is_none() && !change_any(bad, &table)?
            }
            Err(e) if e.is_corruption() => false,
            Err(e) => return Err(e),
        };
        if sound {
            let mut file = NewFile::new(number, size, (seen.smallest, seen.largest), seen.seqs);
            file.oldest_blob_file = seen.oldest_blob.number();
            family.tables.push(file);
        } else {
            let options = self.settings(&family_name, &order);
            let copy = outputs.copy((id, &family_name, &options), (&order, &[]), &table, bad, report)?;
            if let Some(Copied { output, blobs }) = copy {
                family.tables.push(output.file);
                family.blobs.extend(blobs.added.iter().map(|blob| blob.number));
            }
        }
        Ok(seen.seqs.1)
    }

    /// A table with a footer that its other parts prove, and what is wrong with the stored one.
    fn open_table(&self, name: &str) -> Result<(Arc<dyn ReadFile>, Option<Error>)> {
        let file = self.env.fs.open_read(&self.dir.join(name))?;
        Ok(match with_proved_footer(&file, None)? {
            Some(whole) => (whole, Some(Anatomy::open(file).err().unwrap_or_else(other_footer))),
            None => (file, None),
        })
    }

    /// A table that a compaction had replaced may refer to blob files that are gone. Its entries must not hide those of its successor,
    /// which have lower sequences.
    fn look_at_gone(&self, blobs: &BTreeSet<FileNumber>, bad: &mut BadBlobs) -> Result<()> {
        let mut gone = blobs.iter().filter(|number| !self.found.blobs.contains(number));
        gone.try_for_each(|gone| bad.look(&*self.env.fs, self.dir, *gone, None).map(drop))
    }

    /// Whether the OPTIONS file, a table or a WAL file names a family other than `default`. The first call looks into all of them.
    ///
    /// # Errors
    /// `Io`, `Busy(Memory)`.
    fn has_several_families(&self) -> Result<bool> {
        if let Some(known) = self.has_several.get() {
            return Ok(*known);
        }
        let found = self.finds_several_families()?;
        Ok(*self.has_several.get_or_init(|| found))
    }

    fn finds_several_families(&self) -> Result<bool> {
        let is_other = |id: &FamilyId| *id != FamilyId::DEFAULT;
        if self.stored.len() > 1 {
            return Ok(true);
        }
        for (_, name, _) in &self.found.tables {
            let (file, _) = self.open_table(name)?;
            match Anatomy::open(file).and_then(|table| table.properties().map(family_of)) {
                Ok(named) if named.is_some_and(|id| is_other(&id)) => return Ok(true),
                Ok(_) => {}
                // A damaged table has its own turn.
                Err(e) if e.is_corruption() || e.kind() == ErrorKind::NotSupported => {}
                Err(e) => return Err(e),
            }
        }
        Ok(self.found.writes_in_logs(&*self.env.fs, self.dir, None)?.0.keys().any(is_other))
    }

    /// # Errors
    /// `Corruption`: there are several families, and an ingested table does not name its own.
    fn refuse_a_guess(&self, name: &str, report: &mut RepairReport) -> Result<()> {
        if !self.has_several_families()? {
            return Ok(());
        }
        report.remarks.push(format!(
            "{name} gets no family, because a guess could overwrite keys of another one: to have its entries, ingest lost/{name} \
             into its family, where they are then the newest"
        ));
        let text =
            "the table was ingested into one of several families, and only the lost MANIFEST had which";
        Err(Error::corruption(text))
    }

    fn begin(&self, id: FamilyId, family: Gathered, bad: &BadBlobs, open: &Arc<OpenTables>) -> Result<Begun> {
        let Gathered { name, order, tables: files, blobs, .. } = family;
        let tables = Tables::new(self.env.clone(), self.dir.to_path_buf(), Arc::clone(open), order.clone());
        let mut edit = VersionEdit::of(id);
        edit.added = files.into_iter().map(|file| (Level(0), file)).collect();
        for number in blobs.into_iter().filter(|n| !bad.is_left(*n)) {
            let Some((count, bytes)) = self.found.blob_amount(&*self.env.fs, self.dir, number)? else {
                continue;
            };
            edit.blob_added.push(BlobAddition { number, count, bytes, ..BlobAddition::default() });
        }
        let levels = self.settings(&name, &order).compaction.num_levels;
        let state = FamilyState {
            id,
            comparator: order.name().to_owned(),
            log_number: FileNumber(0),
            version: Arc::new(Version::empty(levels, tables)),
            carried: Carried::default(),
            next_epoch: 1,
            name,
        };
        Ok(Begun { state, edit })
    }

    /// Merges all tables that `edit` adds into the deepest level, or in level 0 where a family has no other. Returns the
    /// names of intermediate tables.
    pub(super) fn merge(
        &self,
        versions: &Arc<VersionSet>,
        pending: &Arc<PendingOutputs>,
        writer: &Writer,
        edit: &mut VersionEdit,
    ) -> Result<Vec<String>> {
        let Some(family) = versions.family(edit.family).filter(|_| !edit.added.is_empty()) else {
            return Ok(Vec::new());
        };
        // Of two tables with the same entry, the one that sorts last (by largest sequence, then number) counts.
        edit.added.sort_by_key(|(_, file)| (file.largest_seq, file.number));
        for (epoch, (_, file)) in (1..).zip(&mut edit.added) {
            file.epoch = epoch;
        }
        let version = Arc::new(family.version.apply(std::slice::from_ref(edit))?);
        let options = self.settings(&family.name, &version.order);
        // In level 0 it is one table: releases that order level 0 by sequence refuse several with mingled sequences.
        let (bottom, target_file_bytes) = match options.compaction.stays_in_level0() {
            true => (0, u64::MAX),
            false => (
                u8::try_from(version.levels.len().saturating_sub(1)).unwrap_or(u8::MAX),
                options.compaction.target_file_bytes,
            ),
        };
        let mut output = writer.plan(self.dir, (family.id, &family.name), &options);
        output.table = options.table.for_level(i32::from(bottom), i32::from(bottom), true);
        output.table.order = version.order.clone();
        output.blobs = BlobPlan::new(family.id, &options.blob, bottom).of_all_tables();
        let plan = Compaction {
            inputs: vec![(Level(0), version.level(Level(0)).to_vec())],
            output_level: Level(bottom),
            grandparents: Vec::new(),
            beneath: Vec::new(),
            action: Action::Rewrite,
            reason: Reason::Manual,
            target_file_bytes,
            overlap_bytes_max: u64::MAX,
            parts_max: 1,
            compression: None,
        };
        let mut parts = CompactionPart::start(CompactionInput {
            plan: plan.clone(),
            version: Arc::clone(&version),
            snapshots: Vec::new(),
            // A repair keeps what it finds.
            filter: None,
            partitioner: options.sst_partitioner.clone(),
            output,
            numbers: output_numbers(versions, pending),
            parts_max: 1,
        })?;
        for part in &mut parts {
            while part.step(STEP)? == Progress::More {}
        }
        let outcome = CompactionPart::finish(family.id, &plan, parts)?;
        let between = edit.added.iter().map(|(_, file)| file.number).filter(|n| *n > self.found.largest);
        let between = between.map(|n| FileKind::Table(n).name()).collect();
        edit.added = outcome.edit.added;
        edit.blob_added.extend(outcome.edit.blob_added);
        edit.blob_garbage = outcome.edit.blob_garbage;
        Ok(between)
    }
}

/// The family for which a table was written, if it was a particular one.
fn family_of(said: &Properties) -> Option<FamilyId> {
    said.known_family().and_then(|id| u32::try_from(id).ok()).map(FamilyId)
}

/// Why a table that is read with another footer than its last bytes is damaged, although these bytes look like a footer.
fn other_footer() -> Error {
    Error::corruption("the table ends in a footer that is not its own")
}

/// The remark about an ingested table: only the lost MANIFEST had the sequence number of its entries.
fn ingested(name: &str, family: &str, before: SeqNum) -> String {
    format!(
        "{name} was ingested, and the lost MANIFEST had its family and sequence number: its entries are in family {family:?}, \
         as new as those of the tables with lower numbers ({before})"
    )
}

/// If several families have one name, the newest keeps it: the others were dropped.
fn tell_apart(families: &mut BTreeMap<FamilyId, Gathered>, report: &mut RepairReport) {
    let mut taken = BTreeSet::new();
    for (id, family) in families.iter_mut().rev() {
        if !taken.insert(family.name.clone()) {
            let name = format!("{}_{}", family.name, id.0);
            report.remarks.push(format!("a dropped family {:?} gets the name {name:?}", family.name));
            family.name.clone_from(&name);
            taken.insert(name);
        }
    }
}

/// A table names the family that it was written for. If the OPTIONS file does not list that family, another one had the
/// table, or the family was dropped.
fn tell_strange(families: &BTreeMap<FamilyId, Gathered>, report: &mut RepairReport) {
    for family in families.values() {
        let into = &family.name;
        for (name, count) in &family.strange {
            let tables =
                if *count == 1 { "1 table names".to_owned() } else { format!("{count} tables name") };
            report.remarks.push(format!(
                "{tables} family {name:?}, which the OPTIONS file does not list: the entries are in family {into:?}"
            ));
        }
    }
}

impl Gathered {
    fn empty(name: &str, order: Order) -> Gathered {
        let (tables, blobs, strange) = Default::default();
        Gathered { name: name.to_owned(), order, tables, blobs, strange }
    }
}

/// Whether an intact table has an entry that cannot stay as it is.
fn change_any(bad: &BadBlobs, table: &TableReader) -> Result<bool> {
    let mut any = false;
    read_around(table, &mut |key, value| {
        let (user_key, trailer) = key.split();
        any = any || bad.changes(user_key, trailer, value)?;
        Ok(())
    })?;
    Ok(any)
}

/// Bounds, sequences and blobs of the readable part of a table.
fn see(table: &TableReader, order: &Order) -> Result<Seen> {
    let key = |user_key: &[u8], trailer| InternalKeyBuf::new(user_key, trailer);
    let mut ends: Option<(InternalKeyBuf, InternalKeyBuf)> = None;
    let (mut low, mut high) = (SeqNum::MAX, SeqNum::ZERO);
    let (mut oldest_blob, mut blobs) = (OldestBlobFile::default(), BTreeSet::new());
    read_around(table, &mut |entry, value| {
        let (user_key, trailer) = entry.split();
        (low, high) = (low.min(trailer.seq()), high.max(trailer.seq()));
        match &mut ends {
            None => ends = Some((entry.to_buf(), entry.to_buf())),
            Some((_, last)) => last.set(user_key, trailer),
        }
        if let Some(kind) = trailer.value_type() {
            oldest_blob.see(kind, value)?;
            blob_places(kind, value, |place| blobs.extend([place.file]))?;
        }
        Ok(())
    })?;
    for fragment in table.range_tombstones().fragments() {
        // The newest tombstone of a fragment determines the smallest key; the oldest one counts for the sequences.
        if let Some(oldest) = fragment.oldest_above(SeqNum::ZERO) {
            low = low.min(oldest);
        }
        if let Some(seq) = fragment.newest(SeqNum::MAX) {
            high = high.max(seq);
            let begin = key(fragment.begin, Trailer::new(seq, ValueType::RangeDelete));
            let end = key(fragment.end, Trailer::RANGE_END);
            ends = Some(match ends.take() {
                None => (begin, end),
                Some((first, last)) => (
                    if order.compare_internal(begin.as_key(), first.as_key()).is_lt() {
                        begin
                    } else {
                        first
                    },
                    if order.compare_internal(end.as_key(), last.as_key()).is_gt() { end } else { last },
                ),
            });
        }
    }
    let empty = || (key(&[], Trailer::LAST), key(&[], Trailer::LAST));
    let (smallest, largest) = ends.unwrap_or_else(empty);
    Ok(Seen { smallest, largest, seqs: (low.min(high), high), oldest_blob, blobs })
}
