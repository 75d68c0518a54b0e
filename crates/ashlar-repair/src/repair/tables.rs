//! One table after the other: kept as it is, copied around its damage, or lost.

use super::report::RepairReport;
use super::state::{Begun, LEVELS_MAX, Repair};
use ashlar_base::range_del::{Fragment, FragmentRef};
use ashlar_base::{Error, FamilyId, FileNumber, InternalKey, Level, Order, Result, SeqNum, Trailer};
use ashlar_blob::{BlobOptions, BlobReader, blob_places};
use ashlar_compaction::Writer;
use ashlar_compaction::rewrite::{BlobOutcome, BlobPlan, CutLimits, EntrySink, Output, TableOutputs};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_options::FamilyOptions;
use ashlar_table::{LostStretch, TableReader};
use ashlar_tree::blobs::BlobFiles;
use ashlar_tree::check::{Damage, KeySpan, Risk, Verified, span_of};
use ashlar_tree::files::Numbers;
use ashlar_tree::unwritable::has_udi_primary;
use ashlar_tree::version::{FamilyState, FileMeta, OpenTables, Replayed, Tables, Version};
use std::collections::BTreeMap;
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

/// Blob files that cannot be read completely.
#[derive(Default)]
pub(super) struct BadBlobs {
    /// The files that can be opened, and those that cannot (`None`).
    files: BTreeMap<FileNumber, Option<Arc<BlobReader>>>,
    /// The blob file whose readable values are moved, and the files to read them from. Values in other files stay where
    /// they are.
    emptied: Option<(FileNumber, Arc<BlobFiles>)>,
}

impl BadBlobs {
    /// Adds a file if it is damaged, and returns why.
    pub(super) fn look(
        &mut self,
        fs: &dyn Fs,
        dir: &Path,
        number: FileNumber,
        bytes: Option<u64>,
    ) -> Result<Option<Error>> {
        let path = dir.join(FileKind::Blob(number).name());
        let opened = fs.open_read(&path).and_then(|file| BlobReader::open(file, number, None, bytes));
        let (wrong, reader) = match opened {
            Ok(reader) => match reader.verify() {
                Ok(_) => return Ok(None),
                Err(e) => (e, Some(reader)),
            },
            Err(e) => (e, None),
        };
        if !wrong.is_corruption() && !wrong.is_not_found() {
            return Err(wrong);
        }
        self.files.insert(number, reader);
        Ok(Some(wrong))
    }

    /// Moves the readable values of `file`, one of `inputs`, to another file.
    pub(super) fn emptying(self, file: FileNumber, inputs: Arc<BlobFiles>) -> BadBlobs {
        BadBlobs { emptied: Some((file, inputs)), ..self }
    }

    /// How values and blobs are handled when tables are copied.
    fn plan(&self, family: FamilyId, options: &BlobOptions) -> BlobPlan {
        match &self.emptied {
            None => BlobPlan::new(family, &BlobOptions::default(), 0),
            // As in the deepest level: values of a blob file go to a blob file.
            Some((file, inputs)) => {
                BlobPlan::new(family, options, u8::MAX).emptying(*file, Arc::clone(inputs))
            }
        }
    }

    /// Whether no entry can be read from the file.
    pub(super) fn is_useless(&self, number: FileNumber) -> bool {
        self.files.get(&number).is_some_and(Option::is_none)
    }

    fn concern(&self, file: &NewFile) -> bool {
        file.oldest_blob_file.0 != 0
            && self.files.last_key_value().is_some_and(|(n, _)| *n >= file.oldest_blob_file)
    }

    /// Whether an intact table has an entry that cannot stay: the entry refers to a lost value, or to a value that is
    /// moved.
    pub(super) fn change_any(&self, table: &TableReader) -> Result<bool> {
        let mut any = false;
        if !self.files.is_empty() {
            read_around(table, &mut |key, value| {
                let (user_key, trailer) = key.split();
                any |= self.is_moved(trailer, value)? || self.fail(user_key, trailer, value)?;
                Ok(())
            })?;
        }
        Ok(any)
    }

    fn is_moved(&self, trailer: Trailer, value: &[u8]) -> Result<bool> {
        let (Some((file, _)), Some(value_type)) = (&self.emptied, trailer.value_type()) else {
            return Ok(false);
        };
        let mut moved = false;
        blob_places(value_type, value, |place| moved |= place.file == *file)?;
        Ok(moved)
    }

    /// Whether an entry's value, or a part of it, is lost.
    fn fail(&self, user_key: &[u8], trailer: Trailer, value: &[u8]) -> Result<bool> {
        let (false, Some(value_type)) = (self.files.is_empty(), trailer.value_type()) else {
            return Ok(false);
        };
        let (mut failed, mut unread) = (false, None);
        blob_places(value_type, value, |place| match self.files.get(&place.file) {
            None => {}
            Some(None) => failed = true,
            Some(Some(reader)) => match reader.get(user_key, &place, true) {
                Ok(_) => {}
                Err(e) if e.is_corruption() => failed = true,
                Err(e) => unread = Some(e),
            },
        })?;
        // A failed read proves no damage.
        unread.map_or(Ok(failed), Err)
    }
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
        // After a repair nothing reads at a sequence older than the newest.
        let newest = |f: FragmentRef<'_>| Fragment {
            begin: f.begin.to_vec(),
            end: f.end.to_vec(),
            seqs: f.newest_per_stripe(&[]),
        };
        let fragments: Vec<Fragment> = table.range_tombstones().fragments().map(newest).collect();
        let mut sink =
            TableOutputs::new(plan, CutLimits::none(), Arc::clone(&self.numbers)).with_tombstones(fragments);
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
            report.losses.push(Damage {
                file: file.clone(),
                offset: None,
                cause: "values in blob files that cannot be read".to_owned(),
                family: Some(name.to_owned()),
                risk: Risk::Keys(dropped),
            });
        }
        sink.finish()?;
        report.entries += entries;
        report.rewritten.push(file);
        let blobs = sink.take_blobs();
        Ok(sink.take().pop().map(|output| Copied { output, blobs }))
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
        let table = match tables.open(&file.file) {
            Ok(table) => table,
            Err(e) if e.is_corruption() || e.is_not_found() => {
                let (from, to) = (file.smallest().user_key().to_vec(), file.largest().user_key().to_vec());
                let name = file_name(&tables.path_of(file.number()));
                let risk = Risk::Keys(vec![KeySpan { from, to }]);
                report.lose(Damage::of(&name, &e, risk).in_family(family.1));
                return Ok(Replaced::By { copy: None, damaged: true });
            }
            Err(e) => return Err(e),
        };
        refuse_udi_primary(&table)?;
        let mut largest = SeqNum::ZERO;
        let verified = table.verify_each(&mut |key, _| largest = largest.max(key.seq()));
        let tombstones = table.range_tombstones().fragments().filter_map(|f| f.newest(SeqNum::MAX)).max();
        let largest = largest.max(tombstones.unwrap_or_default());
        match &verified {
            Ok(entries)
                if file.number() <= FileNumber::HIGHEST
                    && largest <= file.file.largest_seq
                    && (!bad.concern(&file.file) || !bad.change_any(&table)?) =>
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
            let bad = self.bad_blobs(&family.name, &version, report)?;
            let options = self.settings(&family.name, &order);
            let mut edit = VersionEdit::of(id);
            let mut gone = VersionEdit::of(id);
            for (level, file) in version.files() {
                let kept = outputs.see_to(file, (id, &family.name, &options), &tables, &bad, report)?;
                if let Replaced::By { copy, .. } = kept {
                    gone.delete_file(level, file.number());
                    edit.added.extend(copy.map(|copy| (level, copy.output.file)));
                }
                (done.files, done.bytes) = (done.files + 1, done.bytes + file.size());
                done.entries = report.entries;
                progress(&done);
            }
            tree.apply(&gone)?;
            for number in version.blobs().files().keys().filter(|n| bad.is_useless(**n)) {
                tree.forget_blob_file(*number);
            }
            let levels = options.compaction.num_levels.max(deepest(&version) + 1);
            let kept = tree.finish(levels, &tables)?;
            // A blob file that only replaced tables refer to is added with the replacements.
            let left = version.blobs().files().iter().filter(|(n, _)| !kept.blobs().files().contains_key(n));
            for (_, file) in left.filter(|(n, _)| !bad.is_useless(**n)) {
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

    fn bad_blobs(&self, family: &str, version: &Version, report: &mut RepairReport) -> Result<BadBlobs> {
        let mut bad = BadBlobs::default();
        for (number, file) in version.blobs().files() {
            let wrong = bad.look(&*self.env.fs, self.dir, *number, Some(file.added.bytes))?;
            if let Some(e) = wrong {
                let damage = Damage::of(&FileKind::Blob(*number).name(), &e, Risk::Nothing).in_family(family);
                match bad.is_useless(*number) {
                    true => report.lose(damage),
                    // Other tables need the rest of the file.
                    false => report.losses.push(damage),
                }
            }
        }
        Ok(bad)
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
