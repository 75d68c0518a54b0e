//! The level check: reads every file of a directory and lists the shapes in them, which proves that RocksDB of a given
//! level can read the directory.
//!
//! 1. It reads the MANIFEST that `CURRENT` names, every table that this MANIFEST names, and all WAL files, with every
//!    entry. It skips OPTIONS files, because RocksDB opens without them. It skips tables that the MANIFEST does not
//!    name: a killed flush or compaction left them, and every release removes them unread.
//! 2. Nothing can be proved about an unreadable file, so damage is an error, not a finding. A torn tail is no error:
//!    every release drops it.
//! 3. The check takes no lock and changes nothing. In a directory that is open elsewhere, files may come and go
//!    meanwhile: see `beside`.

mod shape;

pub use shape::Shape;

use crate::beside::beside_owner;
use ashlar_base::{Error, FamilyId, FileNumber, InternalKey, Level, Result, SeqNum};
use ashlar_env::{Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_format::write_batch::BatchReader;
use ashlar_log::{LogReader, LogRecordKind, PhysicalKind, PhysicalRecords, RecoveryMode};
use ashlar_options::FormatLevel;
use ashlar_table::{Anatomy, BlockRole};
use ashlar_tree::places::{PlaceSettings, Purpose, enter};
use ashlar_tree::version::{newest_first, read_current};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A shape found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file's name.
    pub file: String,
    /// The shape.
    pub shape: Shape,
    /// The offset of its first occurrence; `None` for a whole file.
    pub offset: Option<u64>,
    /// The number of occurrences.
    pub count: u64,
}

/// The result of a level check.
#[derive(Clone, Debug, Default)]
pub struct LevelReport {
    /// Every shape of every file, by file name.
    pub found: Vec<Found>,
    /// The number of tables that were read.
    pub tables: usize,
    /// The number of WAL files that were read.
    pub logs: usize,
    /// The number of entries of tables and operations of WAL files that were read.
    pub entries: u64,
}

impl LevelReport {
    /// The shapes that RocksDB of `level` does not read.
    pub fn above(&self, level: FormatLevel) -> Vec<&Found> {
        self.found.iter().filter(|found| !found.shape.fits(level)).collect()
    }

    /// The lowest level whose RocksDB reads everything; `None` when no level does.
    pub fn lowest(&self) -> Option<FormatLevel> {
        use FormatLevel::{V6_29, V7_8, V9_11, V11};
        [V6_29, V7_8, V9_11, V11].into_iter().find(|level| self.above(*level).is_empty())
    }
}

/// Reads every file of the database in `dir`, and of the directories in `given` or in its OPTIONS file.
///
/// # Errors
/// `InvalidArgument`: no database. `Corruption`: a file that cannot be read to its end. `NotSupported`: a kind of
/// table. `Busy(Locked)`: the check failed, and the database is open elsewhere, where files may be removed meanwhile.
/// `Io`.
/// # Cost
/// Reads every byte of every table and WAL file once.
pub fn check_level_in(env: &Env, dir: &Path, given: &PlaceSettings) -> Result<LevelReport> {
    let check = || {
        let entered = enter(env, dir, given, Purpose::Read)?;
        walk(&*entered.env.fs, dir)
    };
    beside_owner(&*env.fs, dir, check, |_| None)
}

/// [`check_level_in`] of a database with all files in `dir`.
///
/// # Errors
/// As [`check_level_in`].
pub fn check_level(fs: &dyn Fs, dir: &Path) -> Result<LevelReport> {
    beside_owner(fs, dir, || walk(fs, dir), |_| None)
}

fn walk(fs: &dyn Fs, dir: &Path) -> Result<LevelReport> {
    let fs = &*fs.hold(dir)?;
    let Some(manifest) = read_current(fs, dir)? else {
        return Err(Error::invalid("there is no database (no CURRENT file)").at_path(dir));
    };
    let mut walk = Walk::default();
    let mut entries = fs.files(dir)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let name = FileKind::Manifest(manifest).name();
    let path = dir.join(&name);
    walk.file = name;
    let live = walk.manifest(fs, &path, manifest)?;
    for entry in entries {
        let path = dir.join(&entry.name);
        walk.file = entry.name;
        match FileKind::parse(&walk.file) {
            Some(FileKind::Wal(n)) => walk.log(fs, &path, n)?,
            Some(FileKind::Table(n) | FileKind::LevelDbTable(n)) if live.contains(&n) => {
                walk.table(fs, &path)?;
            }
            _ => {}
        }
    }
    Ok(walk.report)
}

/// The tables of a family.
#[derive(Default)]
struct Tables {
    all: BTreeSet<FileNumber>,
    level_zero: BTreeMap<FileNumber, NewFile>,
}

#[derive(Default)]
struct Walk {
    file: String,
    report: LevelReport,
}

impl Walk {
    fn found(&mut self, shape: Shape, offset: Option<u64>) {
        let same = |found: &&mut Found| found.file == self.file && found.shape == shape;
        match self.report.found.iter_mut().rev().find(same) {
            Some(found) => found.count += 1,
            None => {
                let file = self.file.clone();
                self.report.found.push(Found { file, shape, offset, count: 1 });
            }
        }
    }

    /// Returns the tables that the MANIFEST names.
    fn manifest(&mut self, fs: &dyn Fs, path: &Path, number: FileNumber) -> Result<BTreeSet<FileNumber>> {
        let mut reader = LogReader::open(fs.open_read(path)?, number, RecoveryMode::TolerateTail);
        let (mut families, mut last_seq) = (BTreeMap::new(), SeqNum::ZERO);
        while let Some(record) = reader.next()? {
            let offset = record.offset;
            let edit = VersionEdit::decode(record.payload).map_err(|e| e.into_error().at(path, offset))?;
            for shape in Shape::of_edit(&edit) {
                self.found(shape, Some(offset));
            }
            last_seq = edit.last_seq.unwrap_or(last_seq);
            follow(&mut families, &edit);
        }
        reader.cut_error().map_or(Ok(()), Err)?;
        let mut live = BTreeSet::new();
        for Tables { all, level_zero: files } in families.into_values() {
            live.extend(all);
            let mut known: Vec<u64> = files.values().map(|f| f.epoch).filter(|epoch| *epoch != 0).collect();
            known.sort_unstable();
            if known.windows(2).any(|pair| pair.first() == pair.last()) {
                self.found(Shape::EqualEpochs, None);
            }
            for number in unordered(files.into_values().collect(), last_seq) {
                self.file = FileKind::Table(number).name();
                self.found(Shape::UnorderedSequences, None);
            }
        }
        Ok(live)
    }

    fn log(&mut self, fs: &dyn Fs, path: &Path, number: FileNumber) -> Result<()> {
        let file = fs.open_read(path)?;
        self.report.logs += 1;
        let mut physical = PhysicalRecords::new(file.clone(), number);
        while let Some(record) = physical.next()? {
            if let PhysicalKind::Record { type_byte, .. } | PhysicalKind::OldRecord { type_byte } =
                record.kind
                && let Some(shape) = Shape::of_log_record(type_byte)
            {
                self.found(shape, Some(record.offset));
            }
        }
        let mut reader = LogReader::open(file, number, RecoveryMode::TolerateTail);
        while let Some(record) = reader.next()? {
            if record.kind != LogRecordKind::Data {
                continue;
            }
            let offset = record.offset;
            let batch = BatchReader::new(record.payload).map_err(|e| e.into_error().at(path, offset))?;
            for op in batch.iter() {
                self.report.entries += 1;
                if let Some(shape) = Shape::of_op(&op.map_err(|e| e.into_error().at(path, offset))?) {
                    self.found(shape, Some(offset));
                }
            }
        }
        reader.cut_error().map_or(Ok(()), Err)
    }

    fn table(&mut self, fs: &dyn Fs, path: &Path) -> Result<()> {
        let table = Anatomy::open(fs.open_read(path)?)?;
        self.report.tables += 1;
        for shape in Shape::of_table(table.footer(), table.properties()?) {
            self.found(shape, None);
        }
        let (places, error) = table.places();
        error.map_or(Ok(()), Err)?;
        for place in places {
            let offset = place.handle.offset;
            let block = table.block(place.handle)?;
            let content = match &block.content {
                Ok(content) => content,
                Err(e) => return Err(e.clone()),
            };
            match place.role {
                BlockRole::Data => {
                    let mut shapes: Vec<Shape> = Shape::of_block(content).into_iter().collect();
                    block
                        .entries(|key, value| {
                            self.report.entries += 1;
                            let trailer = InternalKey::decode(key).map(|key| key.trailer());
                            let value_type = trailer.ok().and_then(|trailer| trailer.value_type());
                            shapes.extend(value_type.and_then(|t| Shape::of_entry(t, value)));
                            Ok(())
                        })
                        .map_err(|e| e.at(path, offset))?;
                    shapes.into_iter().for_each(|shape| self.found(shape, Some(offset)));
                }
                BlockRole::Index | BlockRole::IndexPartition => {
                    if let Some(shape) = Shape::of_block(content) {
                        self.found(shape, Some(offset));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Applies an edit to the tables of the families.
fn follow(families: &mut BTreeMap<FamilyId, Tables>, edit: &VersionEdit) {
    if edit.family_drop {
        families.remove(&edit.family);
        return;
    }
    let Tables { all, level_zero } = families.entry(edit.family).or_default();
    for (level, number) in &edit.deleted {
        all.remove(number);
        if *level == Level::ZERO {
            level_zero.remove(number);
        }
    }
    for (level, file) in &edit.added {
        all.insert(file.number);
        if *level == Level::ZERO {
            level_zero.insert(file.number, file.clone());
        }
    }
}

/// The level-0 tables that sort wrongly by their sequences. RocksDB before 7.10 has no epochs: it sorts level 0 by
/// sequences, and refuses a table whose range does not begin before that of the next newer table.
fn unordered(mut files: Vec<NewFile>, last_seq: SeqNum) -> Vec<FileNumber> {
    for file in &mut files {
        file.epoch = 0;
        if file.sequences_unknown {
            (file.smallest_seq, file.largest_seq) = (SeqNum::ZERO, last_seq);
        }
    }
    files.sort_by(newest_first);
    let newer_and_older = files.iter().zip(files.iter().skip(1));
    let wrong = newer_and_older.filter(|(newer, older)| match older.smallest_seq == older.largest_seq {
        // RocksDB also refuses a table with a single sequence (an ingested one) that is not below the newer table's
        // range; it may lie within that range.
        true => older.smallest_seq >= newer.largest_seq && older.smallest_seq != SeqNum::ZERO,
        false => newer.smallest_seq <= older.smallest_seq,
    });
    wrong.map(|(_, older)| older.number).collect()
}

#[cfg(test)]
mod tests;
