//! One table after the other: kept as it is, copied around its damage, or lost.

use super::blobs::BadBlobs;
use super::report::RepairReport;
use super::state::{Begun, LEVELS_MAX, Repair};
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, InternalKey, Level, Order, Result, SeqNum};
use ashlar_compaction::Writer;
use ashlar_compaction::rewrite::{BlobOutcome, CutLimits, EntrySink, Output, Survivors, TableOutputs};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::FamilyOptions;
use ashlar_table::{CollectorFailure, LostStretch, TableReader};
use ashlar_tree::check::{Damage, KeySpan, Risk, Verified, span_of};
use ashlar_tree::files::{Numbers, check_file_checksum};
use ashlar_tree::unwritable::has_udi_primary;
use ashlar_tree::version::{FamilyState, FileMeta, OpenTables, Replayed, ReplayedFamily, Tables, Version};
use std::path::Path;
use std::sync::Arc;

/// Where new tables are written.
pub(super) struct Outputs<'a> {
    pub(super) writer: &'a Writer,
    pub(super) numbers: Numbers,
    pub(super) dir: &'a Path,
}

/// What all families begin with.
pub(super) struct Kept {
    pub(super) families: Vec<Begun>,
    pub(super) last_seq: SeqNum,
}

/// Refuses a table that has only a user-defined index: a repair adds tables without one, and RocksDB would not open
/// both together.
pub(super) fn refuse_udi_primary(table: &TableReader) -> Result<()> {
    match has_udi_primary(table.properties()) {
        false => Ok(()),
        true => Err(Error::not_supported("cannot repair: the primary index of a table is user-defined")
            .at_path(table.path())),
    }
}

impl Outputs<'_> {
    /// Writes the readable entries of a table to a new table; records losses in `report`. `None`: no entry was
    /// readable.
    pub(super) fn copy(
        &self,
        family: (FamilyId, &str, &FamilyOptions),
        (order, first_key): (&Order, &[u8]),
        table: &TableReader,
        bad: &BadBlobs,
        report: &mut RepairReport,
    ) -> Result<Option<Copied>> {
        let (id, name, options) = family;
        let mut plan = self.writer.plan(self.dir, (id, name), options);
        plan.table.order = order.clone();
        plan.blobs = bad.plan(id, &options.blob);
        plan.identity.level = None;
        // After a repair nothing reads at a sequence older than the newest.
        let tombstones = Survivors::of_newest(order, Arc::clone(table.range_tombstones()));
        let mut sink = TableOutputs::new(plan, CutLimits::none(), Arc::clone(&self.numbers))
            .with_tombstones(tombstones, 0);
        let (mut last, mut dropped) = (None::<Vec<u8>>, Vec::new());
        let mut entries = 0;
        let lost = read_around(table, &mut |key, value| {
            let (user_key, trailer) = key.split();
            if bad.fail(user_key, trailer, value)? {
                dropped.push(KeySpan::key(user_key));
                return Ok(());
            }
            let first = last.as_deref() != Some(user_key);
            sink.add(key, value, first)?;
            entries += 1;
            if first {
                last = Some(user_key.to_vec());
            }
            Ok(())
        })?;
        let file = file_name(table.path());
        for stretch in &lost {
            let span = span_of(stretch, first_key);
            report.lose(Damage::of(&file, &stretch.error, Risk::Keys(vec![span])).in_family(name));
        }
        if !dropped.is_empty() {
            dropped.dedup();
            let cause = "values in blob files that cannot be read".to_owned();
            report.losses.push(Damage::new(file.clone(), None, cause, Risk::Keys(dropped)).in_family(name));
        }
        sink.finish()?;
        report.entries += entries;
        report.rewritten.push(file);
        let blobs = sink.take_blobs();
        let output = sink.take().pop();
        for CollectorFailure { collector, cause } in output.iter().flat_map(|o| &o.collector_failures) {
            let remark = format!("{collector:?} collected no properties of a rewritten table: {cause}");
            report.remarks.push(remark);
        }
        Ok(output.map(|output| Copied { output, blobs }))
    }

    /// Compares the file with its checksum in the MANIFEST.
    fn whole(&self, file: &FileMeta, table: &TableReader, entries: u64) -> Result<u64> {
        let (function, sum) = (file.file.checksum_function.as_deref(), file.file.checksum.as_deref());
        let (function, sum) = (function.unwrap_or_default(), sum.unwrap_or_default());
        check_file_checksum(&*self.writer.env.fs, table.path(), function, sum)?;
        Ok(entries)
    }

    /// Checks one table: an intact table stays; otherwise a copy of its readable entries replaces it.
    pub(super) fn see_to(
        &self,
        file: &FileMeta,
        family: (FamilyId, &str, &FamilyOptions),
        tables: &Tables,
        bad: &BadBlobs,
        report: &mut RepairReport,
    ) -> Result<Replaced> {
        let (table, footer) = match open(file, tables) {
            Ok(found) => found,
            Err(e) if e.is_corruption() || e.is_not_found() => {
                let (from, to) = (file.smallest().user_key().to_vec(), file.largest().user_key().to_vec());
                let name = file_name(&tables.path_of(file.number()));
                let risk = Risk::Keys(vec![KeySpan::new(from, to)]);
                report.lose(Damage::of(&name, &e, risk).in_family(family.1));
                return Ok(Replaced::By { copy: None, damaged: true });
            }
            Err(e) => return Err(e),
        };
        refuse_udi_primary(&table)?;
        let (mut largest, mut changes) = (SeqNum::ZERO, Ok(false));
        let verified = table.verify_each(&mut |key, value| {
            let (user_key, trailer) = key.split();
            largest = largest.max(trailer.seq());
            if matches!(changes, Ok(false)) {
                changes = bad.changes(user_key, trailer, value);
            }
        });
        let verified = verified.and_then(|entries| self.whole(file, &table, entries));
        let (verified, changes) = (footer.map_or(verified, Err), changes?);
        let tombstones = table.range_tombstones().fragments().filter_map(|f| f.newest(SeqNum::MAX)).max();
        let largest = largest.max(tombstones.unwrap_or_default());
        match &verified {
            Ok(entries)
                if file.number() <= FileNumber::HIGHEST && largest <= file.file.largest_seq && !changes =>
            {
                (report.tables_kept, report.entries) = (report.tables_kept + 1, report.entries + entries);
                return Ok(Replaced::No);
            }
            Ok(_) => {}
            Err(e) if e.is_corruption() => {}
            Err(e) => return Err(e.clone()),
        }
        let before = report.losses.len();
        let copy = self.copy(family, (tables.order(), file.smallest().user_key()), &table, bad, report)?;
        let name = file_name(table.path());
        if let (Err(e), true) = (&verified, report.losses.len() == before) {
            report.lose(Damage::of(&name, e, Risk::Nothing).in_family(family.1));
        }
        report.to_move.insert(name);
        // The copy takes the original's place in the order of level 0.
        let copy = copy.map(|mut copy| {
            copy.output.file.epoch = file.file.epoch;
            Box::new(copy)
        });
        Ok(Replaced::By { copy, damaged: verified.is_err() })
    }
}

/// Opens a table. A table with a damaged footer that the rest of the file proves is returned with the damage.
fn open(file: &FileMeta, tables: &Tables) -> Result<(Arc<TableReader>, Option<Error>)> {
    let wrong = match tables.open(&file.file) {
        Ok(table) => return Ok((table, None)),
        Err(e) => e,
    };
    if wrong.is_corruption() {
        match tables.open_proved(&file.file) {
            Ok(Some(table)) => return Ok((table, Some(wrong))),
            Ok(None) => {}
            Err(e) if e.is_corruption() => {}
            Err(e) => return Err(e),
        }
    }
    Err(if_damaged(wrong))
}

/// Adds to the refusal of a table what the operator can do if the table is damaged beyond proof.
pub(super) fn if_damaged(e: Error) -> Error {
    match e.kind() {
        ErrorKind::NotSupported => e.hint(
            "If this table is damaged, move it out of the directory and repair again: what it held is lost then",
        ),
        _ => e,
    }
}

/// Passes the readable entries of a table to the caller. A failed read proves no damage and is an error.
pub(super) fn read_around(
    table: &TableReader,
    visit: &mut dyn FnMut(InternalKey<'_>, &[u8]) -> Result<()>,
) -> Result<Vec<LostStretch>> {
    let lost = table.read_around(visit)?;
    match lost.iter().find(|stretch| !stretch.error.is_corruption()) {
        Some(unread) => Err(unread.error.clone()),
        None => Ok(lost),
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Repair<'_> {
    /// The families of a MANIFEST, with their damaged files replaced.
    pub(super) fn keep(
        &self,
        replayed: &Replayed,
        open: &Arc<OpenTables>,
        outputs: &Outputs<'_>,
        report: &mut RepairReport,
        progress: &mut dyn FnMut(&Verified),
    ) -> Result<Kept> {
        let mut families = Vec::new();
        let mut done = Verified::default();
        for (&id, family) in &replayed.families {
            let order = self.order(&family.name, family.comparator.as_deref())?;
            let tables =
                Tables::new(self.env.clone(), self.dir.to_path_buf(), Arc::clone(open), order.clone());
            let mut tree = family.tree.clone();
            tree.learn_sequences(&tables)?;
            tree.complete(&order, replayed.last_seq);
            let version = tree.finish(LEVELS_MAX, &tables).map_err(|e| e.at_path(&replayed.path))?;
            let losses = report.losses.len();
            let bad = self.bad_blobs(&family.name, &version, report)?;
            let options = self.settings(&family.name, &order);
            let mut edit = VersionEdit::of(id);
            let mut gone = VersionEdit::of(id);
            for (level, file) in version.files() {
                let kept = outputs.see_to(file, (id, &family.name, &options), &tables, &bad, report)?;
                if let Replaced::By { copy, .. } = kept {
                    gone.delete_file(level, file.number());
                    if let Some(copy) = copy {
                        edit.added.push((level, copy.output.file));
                        edit.blob_added.extend(copy.blobs.added);
                    }
                }
                bad.end_of_table();
                (done.files, done.bytes) = (done.files + 1, done.bytes + file.size());
                done.entries = report.entries;
                progress(&done);
            }
            report.strange.extend(bad.strange());
            self.keep_older_logs(family, losses, report);
            tree.apply(&gone)?;
            for number in version.blobs().files().keys().filter(|n| bad.is_left(**n)) {
                tree.forget_blob_file(*number);
            }
            let levels = options.compaction.num_levels.max(deepest(&version) + 1);
            let kept = tree.finish(levels, &tables)?;
            // A blob file that only replaced tables refer to is added with the replacements.
            let left = version.blobs().files().iter().filter(|(n, _)| !kept.blobs().files().contains_key(n));
            for (_, file) in left.filter(|(n, _)| !bad.is_left(**n)) {
                edit.blob_added.push(file.added.clone());
                edit.blob_garbage.extend(file.garbage.clone());
            }
            families.push(Begun {
                edit,
                state: FamilyState {
                    id,
                    name: family.name.clone(),
                    comparator: order.name().to_owned(),
                    log_number: family.log_number,
                    version: Arc::new(kept),
                    carried: family.carried.clone(),
                    next_epoch: tree.max_epoch().saturating_add(1),
                },
            });
        }
        let last_seq =
            families.iter().filter_map(largest_seq).max().unwrap_or_default().max(replayed.last_seq);
        Ok(Kept { families, last_seq })
    }

    /// Keeps the WAL files before those that the family needs, if a loss since the first `losses` is one of entries: the files may still
    /// have them. A replay of these files would hide newer entries of tables, because compactions have set their sequence numbers to 0.
    fn keep_older_logs(&self, family: &ReplayedFamily, losses: usize, report: &mut RepairReport) {
        let is_loss = |loss: &Damage| !matches!(loss.risk, Risk::Nothing);
        let logs: Vec<_> = self.found.logs_before(family.log_number).cloned().collect();
        if logs.is_empty() || !report.losses.iter().skip(losses).any(is_loss) {
            return;
        }
        report.remarks.push(format!(
            "family {:?} has lost entries, and older WAL files may still have them: lost/ keeps {}. To read them, copy these files \
             alone into a new directory and repair that",
            family.name,
            logs.join(", ")
        ));
        report.to_move.extend(logs);
    }

    fn bad_blobs(&self, family: &str, version: &Version, report: &mut RepairReport) -> Result<BadBlobs> {
        let mut bad = BadBlobs::of_directory(&self.env.fs, self.dir);
        for (number, file) in version.blobs().files() {
            if let Some(e) = bad.look(&*self.env.fs, self.dir, *number, Some(&file.added))? {
                let name = FileKind::Blob(*number).name();
                report.lose(Damage::of(&name, &e, Risk::Nothing).in_family(family));
            }
        }
        Ok(bad.emptying(Arc::clone(version.blobs())))
    }
}

/// The result of checking a table.
pub(super) enum Replaced {
    /// The table is intact.
    No,
    By {
        /// The copy of the readable entries; `None`: no entry was readable.
        copy: Option<Box<Copied>>,
        /// False if the table is intact and only refers to values that cannot stay.
        damaged: bool,
    },
}

/// A copy of the readable entries of a table, with the blob files written for it.
pub(super) struct Copied {
    pub(super) output: Output,
    pub(super) blobs: BlobOutcome,
}

/// The largest sequence of the tables that a family keeps, and of those that are new.
fn largest_seq(family: &Begun) -> Option<SeqNum> {
    let kept = family.state.version.files().map(|(_, file)| file.file.largest_seq);
    kept.chain(family.edit.added.iter().map(|(_, file)| file.largest_seq)).max()
}

fn deepest(version: &Version) -> usize {
    version.files().map(|(Level(level), _)| usize::from(level)).max().unwrap_or(0)
}
