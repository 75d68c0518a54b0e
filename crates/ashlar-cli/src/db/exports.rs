//! export_family: a directory with one family; import_family: a new family of such a directory.

use super::{Target, close};
use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::answer;
use ashlardb::{FamilyExport, ImportOptions, IngestMode};
use std::io::Write;
use std::path::Path;

/// Exports the family, and prints what the directory has.
pub(super) fn export(target: &Target, into: &Path, out: &mut dyn Write) -> Done {
    let db = target.open()?;
    let export = target.family(&db)?.export(into)?;
    db.close()?;
    let (tables, name) = (counted(export.files.len() as u64, "table"), &export.family);
    let line = format!("OK: {} has family {name:?}: {tables}, {} bytes\n", into.display(), export.bytes());
    answer(out, &line, "the family was exported")
}

/// Makes a family of the export.
pub(super) fn import(
    target: &Target,
    name: &str,
    from: &Path,
    move_files: bool,
    out: &mut dyn Write,
) -> Done {
    let export = FamilyExport::read(from)?;
    let db = target.open_to_write()?;
    let mode = if move_files { IngestMode::Move } else { IngestMode::Link };
    db.import_family_with(name, &export, ImportOptions::new().mode(mode), |family| family)?;
    close(db, out, "the family was imported")
}
