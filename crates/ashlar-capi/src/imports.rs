//! Families that are exported, imported, and those whose values end in their write time.

use crate::copies::CheckpointObject;
use crate::db::{DbObject, FamilyObject, path, utf8};
use crate::door::HasTexts;
use crate::listed::{LiveObject, TableObject, c_text};
use crate::objects::ImportObject;
use crate::options::OptionsObject;
use ashlardb::{Error, ExportedFile, FamilyExport, ImportOptions, IngestMode, Level, Result, SeqNum};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// `rocksdb_export_import_files_metadata_t`: the tables of an exported family, and the name of its comparator.
#[derive(Clone, Debug, Default)]
pub struct ExportObject {
    comparator: CString,
    files: LiveObject,
}

/// No tables, for a caller that describes them.
pub fn export_import_files_metadata_create() -> ExportObject {
    ExportObject::default()
}

/// Exports a family into a new directory.
///
/// # Errors
/// Those of [`ashlar_compat::copies::export`].
pub fn checkpoint_export_column_family(
    checkpoint: &CheckpointObject,
    family: &FamilyObject,
    dir: &CStr,
) -> Result<ExportObject> {
    let export = ashlar_compat::copies::export(&checkpoint.0, &family.family, path(dir))?;
    let file = |file: &ExportedFile| {
        let name = file.path.file_name().map(OsStr::as_bytes).unwrap_or_default();
        let (smallest, largest) = file.keys().unwrap_or_default();
        TableObject {
            name: CString::new([b"/", name].concat()).unwrap_or_default(),
            // RocksDB names no family there.
            directory: dir.to_owned(),
            level: file.level.0.into(),
            bytes: file.bytes().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0),
            smallest: smallest.to_vec(),
            largest: largest.to_vec(),
            sequences: (file.sequences.0.get(), file.sequences.1.get()),
            ..TableObject::default()
        }
    };
    let files = LiveObject(export.files.iter().map(file).collect());
    Ok(ExportObject { comparator: c_text(&export.comparator), files })
}

/// The name of the comparator.
pub fn export_import_files_metadata_get_db_comparator_name(metadata: &mut ExportObject) -> Option<String> {
    Some(metadata.comparator.to_string_lossy().into_owned())
}

/// Names the comparator.
pub fn export_import_files_metadata_set_db_comparator_name(metadata: &mut ExportObject, name: &CStr) {
    metadata.comparator = name.to_owned();
}

/// A copy of the list of tables.
pub fn export_import_files_metadata_get_files(metadata: &mut ExportObject) -> LiveObject {
    metadata.files.clone()
}

/// Replaces the list of tables by one that the call takes.
pub fn export_import_files_metadata_set_files(metadata: &mut ExportObject, files: Option<Box<LiveObject>>) {
    metadata.files = files.map(|files| *files).unwrap_or_default();
}

/// A table as an import takes it.
fn described(file: &TableObject) -> Result<ExportedFile> {
    let level = u8::try_from(file.level);
    let level = level.map_err(|_| Error::invalid(format!("a table in level {}", file.level)))?;
    let number = |number| {
        SeqNum::new(number).ok_or_else(|| Error::invalid(format!("the sequence number {number} of a table")))
    };
    let sequences = (number(file.sequences.0)?, number(file.sequences.1)?);
    let name = file.name.to_bytes();
    let name = OsStr::from_bytes(name.strip_prefix(b"/").unwrap_or(name));
    let place: PathBuf = path(&file.directory).join(name);
    Ok(ExportedFile::described(place, Level(level), sequences))
}

/// Makes a family of exported tables.
///
/// # Errors
/// Those of [`ashlar_compat::database::Database::import_family`]. `InvalidArgument`: a level or sequence number out of range.
pub fn create_column_family_with_import(
    db: &DbObject,
    options: &mut OptionsObject,
    name: &CStr,
    import_options: &mut ImportObject,
    metadata: &mut ExportObject,
) -> Result<FamilyObject> {
    let files = metadata.files.0.iter().map(described).collect::<Result<Vec<_>>>()?;
    if files.is_empty() {
        return Err(Error::invalid("the metadata of an import has no files"));
    }
    let family = metadata.files.0.first().map(|file| file.family.to_string_lossy().into_owned());
    let comparator = metadata.comparator.to_string_lossy().into_owned();
    let export = FamilyExport::described(family.unwrap_or_default(), comparator, files);
    let moves = import_options.texts().get::<bool>("move_files");
    let mode = if moves { IngestMode::Move } else { IngestMode::Copy };
    let import = ImportOptions::new().mode(mode);
    let made = db.0.import_family(&options.0, utf8(name)?, &export, import)?;
    Ok(FamilyObject::new(made))
}

/// Creates a family whose values end in the time of their write.
///
/// # Errors
/// Those of [`ashlar_compat::database::Database::create_family`].
pub fn create_column_family_with_ttl(
    db: &DbObject,
    options: &OptionsObject,
    name: &CStr,
    ttl: i32,
) -> Result<FamilyObject> {
    Ok(FamilyObject::new(db.0.create_family(&options.0, utf8(name)?, Some(ttl))?))
}
