//! Quarantine: replaces a damaged table or blob file of an open database by its readable part.
//!
//! ```text
//! claimed, as by a compaction -> read and copied, as by a repair -> the account in lost/ -> one commit
//!                             -> a purge moves the original to lost/, once no reader holds it
//! ```
//! 1. Until the commit nothing is changed. A file without damage stays. So does a file of which a read fails (`Io`),
//!    because that proves no damage.
//! 2. The original is never removed (`files/quarantine`), nor are blob files that no other table needs.
//! 3. A table's readable blocks take its place. A blob file is emptied: each table that refers to it is rewritten
//!    without the lost values, and the readable values move to another blob file. The rest of the blob file is garbage.
//! 4. Background work that failed because of the damage starts again, and writes that were refused because of it are
//!    accepted. Other errors stay.

use super::RepairReport;
use super::blobs::BadBlobs;
use super::tables::{Copied, Outputs, Replaced, file_name};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_blob::LiveBlobFile;
use ashlar_engine::Db;
use ashlar_engine::for_repair::Claimed;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::{BlobGarbage, VersionEdit};
use ashlar_tree::check::{Damage, Risk};
use ashlar_tree::files::leave_account;
use ashlar_tree::version::{FileMeta, Version};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Takes a damaged table or blob file, named as damage reports name it (`000012.sst`, `000013.blob`), out of the open
/// database. Its readable part replaces it. The original moves to `lost/`, with the returned account, as soon as no
/// reader holds it. The newest versions of the keys in the account are lost; older versions may show. If background work
/// had stopped for this damage, it starts again, and writes are accepted.
///
/// # Errors
/// `InvalidArgument`: the database has no such file, or the file is not damaged. `Busy`: a compaction has claimed the
/// file, or a table that may refer to it. `NotSupported`: the database is read-only. `Io`: the file could not be read or
/// replaced; the next open may find that it was. The cause, when the database has other errors than corruption.
/// # Cost
/// In the calling thread. For a table: two passes over it. For a blob file: one pass over it, two over each table that
/// may refer to it, and the rewriting of those tables.
pub fn quarantine(db: &Db, file: &str) -> Result<RepairReport> {
    Claimed::check(db, "quarantine()")?;
    match FileKind::parse(file) {
        Some(FileKind::Table(number) | FileKind::LevelDbTable(number)) => mend(&table(db, number)?, number),
        Some(FileKind::Blob(number)) => empty(&pointing_into(db, number)?, number),
        _ => {
            let e = Error::invalid(format!("{file:?} is not the name of a table or blob file"));
            Err(e.hint("Name it as accounts of damage do, as in 000012.sst"))
        }
    }
}

fn table(db: &Db, number: FileNumber) -> Result<Claimed> {
    let find = |version: &Version| {
        let (level, file) = version.files().find(|(_, file)| file.number() == number)?;
        Some(vec![(level, Arc::clone(file))])
    };
    Claimed::claim(db, &format!("table {number}"), find)
}

/// The tables that may refer to a blob file.
fn pointing_into(db: &Db, number: FileNumber) -> Result<Claimed> {
    let find = |version: &Version| {
        version.blobs().files().get(&number)?;
        let may = |file: &FileMeta| (FileNumber(1)..=number).contains(&file.file.oldest_blob_file);
        let pointing = version.files().filter(|(_, file)| may(file));
        Some(pointing.map(|(level, file)| (level, Arc::clone(file))).collect())
    };
    Claimed::claim(db, &format!("blob file {number}"), find)
}

/// Replaces the table, if it is damaged.
fn mend(claimed: &Claimed, number: FileNumber) -> Result<RepairReport> {
    let (mut report, path) = (RepairReport::default(), claimed.tables().path_of(number));
    let edited = copy(claimed, &BadBlobs::default(), &mut report)?;
    if edited.edit.deleted.is_empty() {
        return Err(is_sound(&path));
    }
    install(claimed, edited, None, report)
}

/// Empties the blob file, if it is damaged.
fn empty(claimed: &Claimed, number: FileNumber) -> Result<RepairReport> {
    let (dir, name, mut bad) = (claimed.dir(), FileKind::Blob(number).name(), BadBlobs::default());
    let Some(known) = claimed.blobs().files().get(&number) else { return Err(is_sound(&dir.join(name))) };
    let Some(wrong) = bad.look(claimed.fs(), dir, number, Some(&known.added))? else {
        return Err(is_sound(&dir.join(name)));
    };
    let damage = Damage::of(&name, &wrong, Risk::Nothing).in_family(claimed.family().name());
    let mut report = RepairReport { losses: vec![damage], ..RepairReport::default() };
    let mut edited = copy(claimed, &bad.emptying(Arc::clone(claimed.blobs())), &mut report)?;
    let LiveBlobFile { total, garbage, .. } = known.live();
    let (count, bytes) =
        (total.count.saturating_sub(garbage.count), total.bytes.saturating_sub(garbage.bytes));
    edited.edit.blob_garbage.push(BlobGarbage { number, count, bytes, ..BlobGarbage::default() });
    install(claimed, edited, Some(name), report)
}

/// Rewrites the tables that cannot stay as they are.
fn copy(claimed: &Claimed, bad: &BadBlobs, report: &mut RepairReport) -> Result<Edited> {
    report.manifest = claimed.manifest();
    let (family, options) = (claimed.family(), claimed.family().options());
    let named = (family.id(), family.name(), &*options);
    let outputs = Outputs { writer: claimed.writer(), numbers: claimed.numbers(), dir: claimed.dir() };
    let edit = VersionEdit::of(family.id());
    let mut edited = Edited { edit, copies: Vec::new(), damaged: Vec::new() };
    for (level, file) in claimed.files() {
        let kept = outputs.see_to(file, named, claimed.tables(), bad, report)?;
        let Replaced::By { copy, damaged } = kept else { continue };
        edited.edit.delete_file(*level, file.number());
        edited.damaged.extend(damaged.then(|| file.number()));
        if let Some(copy) = copy {
            edited.edit.added.push((*level, copy.output.file.clone()));
            edited.edit.blob_added.extend(copy.blobs.added.iter().cloned());
            edited.copies.push(*copy);
        }
    }
    Ok(edited)
}

/// Commits the copies, once the account is in `lost/`. Damaged originals move to `lost/`.
fn install(
    claimed: &Claimed,
    edited: Edited,
    blob_file: Option<String>,
    mut report: RepairReport,
) -> Result<RepairReport> {
    let Edited { edit, copies, damaged } = edited;
    let tables = damaged.iter().map(|number| file_name(&claimed.tables().path_of(*number)));
    let names: Vec<String> = tables.chain(blob_file).collect();
    report.to_move.clear();
    let remark = |name: &String| format!("{name} goes to lost/ as soon as no reader holds it");
    report.remarks.extend(names.iter().map(remark));
    let going: BTreeSet<_> = claimed.blobs_gone(&edit)?.into_iter().chain(damaged).collect();
    for &number in &going {
        leave_account(claimed.fs(), claimed.dir(), number, &report.to_string())?;
    }
    let counts = copies.iter().map(|copy| (copy.output.file.number, copy.output.counts)).collect();
    claimed.replace(&edit, counts, &going, &names)?;
    Ok(report)
}

/// The replacements of tables, not yet installed.
struct Edited {
    edit: VersionEdit,
    /// Files that the edit adds: pending until the commit.
    copies: Vec<Copied>,
    /// The tables that are damaged themselves.
    damaged: Vec<FileNumber>,
}

fn is_sound(path: &Path) -> Error {
    Error::invalid("nothing in the file is damaged, and nothing was changed").at_path(path)
}
