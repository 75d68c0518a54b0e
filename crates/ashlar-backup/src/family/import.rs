//! Makes a family of the tables of an export.

use super::{ExportedFile, FamilyExport, Home};
use ashlar_base::{Error, FileNumber, InternalKeyBuf, Level, Order, Result, SeqNum, Trailer, ValueType};
use ashlar_engine::column_family::Family;
use ashlar_engine::{Brought, Db, IngestMode, NewFamily};
use ashlar_env::{Fs, folder_of};
use ashlar_format::filename::FileKind;
use ashlar_format::table::Properties;
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_options::{FamilyOptions, FormatLevel, load_latest_options};
use ashlar_table::{TableReader, unique_id_bytes};
use ashlar_tree::check::{CheckReport, check_files};
use ashlar_tree::files::CRC32C_FUNCTION;
use ashlar_tree::version::{Tables, TreeBuilder, Version};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The highest sequence number that an import takes: half of all numbers are left for later writes. Also the highest number
/// of the order of arrival.
const HIGHEST: u64 = SeqNum::MAX.get() / 2;

/// Options of an import. Every option has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until an import gets them"]
pub struct ImportOptions {
    mode: IngestMode,
    verify: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { mode: IngestMode::Link, verify: true }
    }
}

impl ImportOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How tables come into the directory. Default: [`IngestMode::Link`]. After a move the export is gone. (RocksDB:
    /// `move_files`.)
    pub fn mode(self, mode: IngestMode) -> Self {
        ImportOptions { mode, ..self }
    }

    /// Whether to read every block first: checksums, the order of the keys, their sequence numbers and bounds. Default: true.
    /// Without it only index, properties and bounds are checked, and other damage shows when a read meets it.
    pub fn verify(self, yes: bool) -> Self {
        ImportOptions { verify: yes, ..self }
    }
}

/// Makes the family `name` of the tables of an export. They keep their levels and sequence numbers, and the database's newest
/// sequence number becomes at least theirs. After a crash there is the family with all of them, or no family.
///
/// # Errors
/// `InvalidArgument`: there is such a family. Joined exports with overlapping keys. Another comparator or merge operator than that of
/// the export, or values with write times for a family without. Too few levels, a newer table format than the format level allows, or a table in a
/// directory of the database. `NotSupported`: tables with values in blob files. `Corruption`: a table is damaged, is not the
/// described one, or overlaps another one of its level. `Io`. After an error there is no such family, and the sources are as
/// before.
/// # Cost
/// A link or a copy of each table, one pass over its bytes unless [`ImportOptions::verify`] is off, a sync of each table and
/// of the WAL. Writers wait during one commit.
pub fn import_family(
    db: &Db,
    name: &str,
    export: &FamilyExport,
    mut options: FamilyOptions,
    import: ImportOptions,
) -> Result<Arc<Family>> {
    take_order(&mut options, export)?;
    let fs = Arc::clone(&db.env().fs);
    export.homes.iter().try_for_each(|home| recall(&*fs, &mut options, home))?;
    let new = db.new_family("import_family()", name, options)?;
    check_description(&new, export)?;
    let taken = Taking { new: &new, import, tables: new.tables() }.take(export)?;
    let made = new.create(taken)?;
    if import.mode == IngestMode::Move {
        remove_export(&*fs, export);
    }
    Ok(made)
}

/// The order of the export, if the caller gave none.
fn take_order(options: &mut FamilyOptions, export: &FamilyExport) -> Result<()> {
    if matches!(options.order, Order::Bytewise)
        && let Some(order) = Order::by_name(&export.comparator)
    {
        options.order = order;
    }
    if options.order.name() != export.comparator {
        let e = Error::invalid(format!(
            "the exported family {:?} has the comparator {:?}, the new one {:?}",
            export.family,
            export.comparator,
            options.order.name()
        ));
        return Err(e.hint("Give the family the comparator that the export has"));
    }
    Ok(())
}

/// Compares the options with those of an exported family, as an open does.
fn recall(fs: &dyn Fs, options: &mut FamilyOptions, home: &Home) -> Result<()> {
    let loaded = load_latest_options(fs, &home.dir, FormatLevel::V11)?;
    let families = loaded.iter().flat_map(|loaded| &loaded.families);
    let Some((_, stored)) = families.into_iter().find(|(name, _)| *name == home.family) else {
        return Ok(());
    };
    options.check_times(&home.family, stored)?;
    if stored.stores_times() && options.value_ttl_secs.is_none() {
        let e = Error::invalid(format!(
            "the values of the exported family {:?} end in their write times",
            home.family
        ));
        return Err(e.hint("Give the family a time to live; 0 seconds keep every value"));
    }
    stored.stored_merge_operator.as_deref().map_or(Ok(()), |name| options.recall_operator(&home.family, name))
}

/// What the description says, before anything is linked or copied.
fn check_description(new: &NewFamily, export: &FamilyExport) -> Result<()> {
    let levels = new.options().compaction.num_levels;
    let mut named: BTreeMap<&Path, Level> = BTreeMap::new();
    for file in &export.files {
        if named.insert(&file.path, file.level).is_some() {
            return Err(Error::invalid("the table is named twice").at_path(&file.path));
        }
        if file.level.index() >= levels {
            let e = Error::invalid(format!("a table in {}, and the family has {levels} levels", file.level));
            return Err(e
                .at_path(&file.path)
                .hint(format!("Set num_levels={} at least", file.level.index() + 1)));
        }
        let (smallest, largest) = file.sequences;
        if smallest > largest || largest.get() > HIGHEST {
            let e = Error::invalid(format!(
                "sequence numbers from {smallest} to {largest}; {HIGHEST} is the highest"
            ));
            return Err(e.at_path(&file.path));
        }
        let recorded = file.recorded.as_ref();
        if recorded.is_some_and(|file| file.oldest_blob_file.0 != 0) {
            return Err(Error::not_supported("a table with values in blob files").at_path(&file.path));
        }
        if recorded.is_some_and(|file| file.epoch > HIGHEST) {
            let e = Error::corruption("an order of arrival that no database gives out");
            return Err(e.at_path(&file.path));
        }
        if recorded.is_some_and(|file| !file.timestamps_persisted) {
            return Err(Error::not_supported("a table whose timestamps were cut off").at_path(&file.path));
        }
    }
    Ok(())
}

/// A table of the new family.
type Taken = (Level, NewFile, Brought);

/// The user keys of one of several joined exports, and one of its tables.
struct Part<'a> {
    from: &'a [u8],
    to: &'a [u8],
    table: &'a Path,
}

/// The work of one import, up to the commit.
struct Taking<'a> {
    new: &'a NewFamily,
    import: ImportOptions,
    tables: Arc<Tables>,
}

impl Taking<'_> {
    fn take(&self, export: &FamilyExport) -> Result<Vec<Taken>> {
        let mut taken: Vec<Taken> = Vec::with_capacity(export.files.len());
        let mut sources: BTreeMap<FileNumber, &Path> = BTreeMap::new();
        for exported in &export.files {
            let brought = self.new.bring(&exported.path, exported.level, self.import.mode)?;
            sources.insert(brought.number(), &exported.path);
            let file = self.new.inside(|| self.inspect(exported, &brought));
            let file = file.map_err(|e| of_source(&e, &exported.path))?;
            taken.push((exported.level, file, brought));
        }
        self.check_apart(export, &taken)?;
        let version = self.new.inside(|| self.tree(&taken))?;
        // With the numbers by which level 0 is ordered.
        let epochs: BTreeMap<_, _> = version.files().map(|(_, f)| (f.number(), f.file.epoch)).collect();
        for (_, file, _) in &mut taken {
            file.epoch = epochs.get(&file.number).copied().unwrap_or_default();
        }
        if self.import.verify {
            self.new.inside(|| self.verify(&version, &sources))?;
        }
        Ok(taken)
    }

    /// Compares the ranges of keys of joined exports.
    ///
    /// # Errors
    /// `InvalidArgument`: the ranges of two exports overlap.
    fn check_apart(&self, export: &FamilyExport, taken: &[Taken]) -> Result<()> {
        let order = &self.new.options().order;
        let mut parts: BTreeMap<usize, Part<'_>> = BTreeMap::new();
        for (exported, (_, file, _)) in export.files.iter().zip(taken) {
            let (from, to) = (file.smallest.as_key().user_key(), file.largest.as_key().user_key());
            let part = parts.entry(exported.part).or_insert(Part { from, to, table: &exported.path });
            if order.compare(from, part.from).is_lt() {
                part.from = from;
            }
            if order.compare(to, part.to).is_gt() {
                part.to = to;
            }
        }
        let mut parts: Vec<_> = parts.into_values().collect();
        parts.sort_by(|one, other| order.compare(one.from, other.from));
        let pairs = parts.iter().zip(parts.iter().skip(1));
        let Some((one, two)) = pairs.into_iter().find(|(one, two)| order.compare(one.to, two.from).is_ge())
        else {
            return Ok(());
        };
        let e = Error::invalid(format!(
            "the keys of two exports overlap: {} to {} with the table {}, and {} to {}",
            one.from.escape_ascii(),
            one.to.escape_ascii(),
            one.table.display(),
            two.from.escape_ascii(),
            two.to.escape_ascii()
        ));
        Err(e.at_path(two.table).hint("Clip each family to keys of its own before its export"))
    }

    /// The table as the MANIFEST will describe it.
    fn inspect(&self, exported: &ExportedFile, brought: &Brought) -> Result<NewFile> {
        let mut file = match &exported.recorded {
            Some(recorded) => recorded.clone(),
            None => self.describe(exported, brought)?,
        };
        // The caller may have changed them; the checks below find what does not fit.
        (file.smallest_seq, file.largest_seq) = exported.sequences;
        (file.number, file.path_id, file.min_log_to_keep) = (brought.number(), brought.path_id(), None);
        file.open_metadata.clear();
        let (sum, function) = brought.checksum();
        let recorded =
            file.checksum.as_ref().filter(|_| file.checksum_function.as_deref() == Some(CRC32C_FUNCTION));
        match (recorded, sum) {
            // Without one of the bringing, a verification compares it.
            (Some(recorded), Some(sum)) if sum != *recorded => {
                return Err(Error::corruption("the checksum of the table is not the one recorded for it"));
            }
            (Some(_), _) => {}
            (None, Some(sum)) => (file.checksum, file.checksum_function) = (Some(sum), function),
            (None, None) => {}
        }
        self.check_table(&file)?;
        Ok(file)
    }

    /// The description of a table of which no MANIFEST tells.
    fn describe(&self, exported: &ExportedFile, brought: &Brought) -> Result<NewFile> {
        let size = self.new.fs().metadata(brought.path())?.map_or(0, |entry| entry.len);
        let (_, largest) = exported.sequences;
        let nothing = || InternalKeyBuf::new(b"", Trailer::new(largest, ValueType::Put));
        let mut file = NewFile::new(brought.number(), size, (nothing(), nothing()), exported.sequences);
        let table = self.tables.open(&file)?;
        let empty = || Error::invalid("the table has no entry");
        (file.smallest, file.largest) = table.bounds(&|_| Ok(()))?.ok_or_else(empty)?;
        let said = table.properties();
        file.unique_id = unique_id_of(said);
        file.tail_size = said.tail_start_offset.and_then(|start| size.checked_sub(start)).unwrap_or_default();
        Ok(file)
    }

    /// Opens the table, and checks what its properties say, its bounds and its ends.
    fn check_table(&self, file: &NewFile) -> Result<()> {
        let (options, level) = (self.new.options(), self.new.format_level());
        let version = self.tables.survey(file)?.version;
        let most = level.max_table_version();
        if version > most {
            let e = Error::invalid(format!(
                "the table has format {version}, and the database is at format level {level}, which has {most} at most"
            ));
            return Err(e.hint("Raise the format level, or export from a database at this level"));
        }
        let table = self.tables.open(file)?;
        let said = table.properties();
        if said.num_merge_operands.is_some_and(|n| n > 0) && options.merge_operator.is_none() {
            let e = Error::invalid("the table has merges, and the new family has no merge operator");
            return Err(e.hint("Give the family the merge operator that the operands are for"));
        }
        self.check_bounds(file, &table)?;
        match level < FormatLevel::V7_8 {
            true => refuse_entities(&table, level),
            false => Ok(()),
        }
    }

    fn check_bounds(&self, file: &NewFile, table: &Arc<TableReader>) -> Result<()> {
        let within = |seq: SeqNum| (file.smallest_seq..=file.largest_seq).contains(&seq);
        let order = &self.new.options().order;
        let check = |key: ashlar_base::InternalKey<'_>| {
            let (low, high) = (file.smallest.as_key(), file.largest.as_key());
            let outside =
                order.compare_internal(key, low).is_lt() || order.compare_internal(key, high).is_gt();
            let (user_key, trailer) = key.split();
            match outside || !within(trailer.seq()) {
                true => Err(Error::corruption(format!(
                    "key {} with sequence number {} is outside of what is recorded for the table",
                    user_key.escape_ascii(),
                    trailer.seq()
                ))),
                false => Ok(()),
            }
        };
        table.bounds(&check)?.map(drop).ok_or_else(|| Error::invalid("the table has no entry"))?;
        let seqs = table.range_tombstones().fragments().flat_map(|tombstone| tombstone.seqs());
        match seqs.into_iter().find(|seq| !within(*seq)) {
            Some(seq) => Err(Error::corruption(format!(
                "a range deletion with sequence number {seq} is outside of what is recorded for the table"
            ))),
            None => Ok(()),
        }
    }

    /// The tree of the tables. Level 0 is ordered by what is recorded, or else by sequence numbers.
    fn tree(&self, taken: &[Taken]) -> Result<Version> {
        let options = self.new.options();
        let added = taken.iter().map(|(level, file, _)| (*level, file.clone())).collect();
        let edit = VersionEdit { added, ..VersionEdit::default() };
        let mut builder = TreeBuilder::default();
        builder.apply(&edit)?;
        let newest = taken.iter().map(|(_, file, _)| file.largest_seq).max().unwrap_or_default();
        builder.complete(&options.order, newest);
        builder.finish(options.compaction.num_levels, &self.tables)
    }

    /// Reads every block of every table.
    fn verify(&self, version: &Version, sources: &BTreeMap<FileNumber, &Path>) -> Result<()> {
        let mut report = CheckReport::default();
        check_files(self.new.fs(), self.new.dir(), &[(self.new.name(), version)], &mut report, &mut |_| ());
        let number = |name: &str| match FileKind::parse(name) {
            Some(FileKind::Table(number) | FileKind::LevelDbTable(number)) => Some(number),
            _ => None,
        };
        let source = |name: &str| number(name).and_then(|number| sources.get(&number).copied());
        if let Some(damage) = report.damages.first() {
            let path = source(&damage.file).unwrap_or(Path::new(&damage.file));
            let e = Error::corruption(&*damage.cause);
            let e = damage
                .offset
                .map_or_else(|| e.at_path(path), |offset| Error::corruption(&*damage.cause).at(path, offset));
            return Err(e.hint(HINT));
        }
        match report.unchecked.first() {
            Some(unchecked) => {
                Err(Error::not_supported(format!("a table that cannot be checked: {unchecked}")))
            }
            None => Ok(()),
        }
    }
}

const HINT: &str = "Nothing was imported, and the database is unchanged";

/// An error of the table in the directory of the database, which the caller knows by another name.
fn of_source(e: &Error, source: &Path) -> Error {
    let own = Error::new(e.kind(), e.message());
    match e.offset() {
        Some(offset) => own.at(source, offset),
        None => own.at_path(source),
    }
    .hint(HINT)
}

fn unique_id_of(said: &Properties) -> Option<[u8; 16]> {
    let (db, session) = (said.db_id.as_deref()?, said.db_session_id.as_deref()?);
    Some(unique_id_bytes(db, session, said.original_file_number?))
}

/// # Errors
/// `InvalidArgument`: the table has an entity, which RocksDB of that level cannot read.
fn refuse_entities(table: &TableReader, level: FormatLevel) -> Result<()> {
    let mut entity = None;
    table.verify_each(&mut |key, _| {
        if entity.is_none() && key.trailer().value_type() == Some(ValueType::Entity) {
            entity = Some(key.user_key().to_vec());
        }
    })?;
    match entity {
        Some(key) => {
            let key = key.escape_ascii();
            Err(Error::invalid(format!(
                "key {key} is an entity, above the format level {level} of the database"
            )))
        }
        None => Ok(()),
    }
}

/// Removes the files of an export that was moved. The family is durable, so a failure only leaves files.
fn remove_export(fs: &dyn Fs, export: &FamilyExport) {
    // CURRENT goes first: a directory that is half removed is no database.
    let mut gone: Vec<PathBuf> = Vec::new();
    for Home { dir, .. } in &export.homes {
        let of_a_database = |kind: &FileKind| {
            matches!(kind, FileKind::Manifest(_) | FileKind::Options(_) | FileKind::Lock | FileKind::Identity)
        };
        let names = fs.files(dir).unwrap_or_default().into_iter().map(|entry| entry.name);
        let small = names.filter(|name| FileKind::parse_exact(name).is_some_and(|kind| of_a_database(&kind)));
        gone.push(dir.join(FileKind::Current.name()));
        gone.extend(small.map(|name| dir.join(name)));
    }
    gone.extend(export.files.iter().map(|file| file.path.clone()));
    gone.iter().for_each(|path| drop(fs.remove(path)));
    let folders: std::collections::BTreeSet<_> =
        export.files.iter().map(|file| folder_of(&file.path)).collect();
    folders.into_iter().for_each(|folder| drop(fs.sync_dir(folder)));
    for Home { dir, .. } in &export.homes {
        let _ = fs.remove_dir(dir);
    }
}
