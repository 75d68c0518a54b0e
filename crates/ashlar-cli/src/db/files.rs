//! approxsize, checkconsistency, list_live_files_metadata, and dump of one file.

use super::Target;
use crate::outcome::Outcome;
use crate::wal::Rows;
use crate::{Done, manifest, sst};
use ashlar_bench::say;
use ashlar_format::filename::FileKind;
use ashlardb::{Db, SizeOptions, StorageFile, StorageKind};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

pub(super) fn approximate_size(target: &Target, from: &OsStr, to: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let range = (form.key(from).map_err(Outcome::Usage)?, form.key(to).map_err(Outcome::Usage)?);
    let db = target.open_to_read()?;
    let sizes = target.family(&db)?.approximate_sizes(&[range], SizeOptions::new())?;
    for size in sizes {
        writeln!(out, "{size}")?;
    }
    Ok(())
}

/// Opens the database, which compares the files in the directory with those of the MANIFEST. The torn tail of a WAL file is a
/// remark: a power cut leaves one.
pub(super) fn consistency(target: &Target, out: &mut dyn Write) -> Done {
    let db = target.open_to_read()?;
    let found = db.recovery();
    if !found.damaged.is_empty() || !found.lost.is_empty() {
        return Err(Outcome::Failed(format!("{found}`ashlar db DIR check` says more")));
    }
    if !found.is_clean() {
        say::line(&found.to_string());
    }
    Ok(writeln!(out, "OK")?)
}

/// Lists the tables and blob files, in ldb's lines.
pub(super) fn list(target: &Target, sort_by_filename: bool, out: &mut dyn Write) -> Done {
    let db = target.open()?;
    let live = db.live_files()?;
    let stored = |file: &&StorageFile| matches!(file.kind, StorageKind::Table | StorageKind::Blob);
    let mut files: Vec<&StorageFile> = live.iter().filter(stored).collect();
    files.sort_by_key(|file| file.path());
    if sort_by_filename {
        by_name(&files, out)?;
    } else {
        by_family(&db, &files, out)?;
    }
    writeln!(out, "------------------------------")?;
    drop(live);
    Ok(db.close()?)
}

fn by_name(files: &[&StorageFile], out: &mut dyn Write) -> Done {
    writeln!(out, "Live SST and Blob Files:")?;
    for file in files {
        let level = file.level.map(|level| format!(" : level {}", level.0)).unwrap_or_default();
        let family = file.family.as_deref().unwrap_or_default();
        writeln!(out, "{}{level}, column family '{family}'", file.path().display())?;
    }
    Ok(())
}

fn by_family(db: &Db, files: &[&StorageFile], out: &mut dyn Write) -> Done {
    for family in db.families() {
        let name = family.name();
        writeln!(out, "===== Column Family: {name} =====\nLive SST Files:")?;
        let own = || files.iter().filter(|file| file.family.as_deref() == Some(&*name));
        for level in 0..family.options().compaction.num_levels {
            writeln!(out, "---------- level {level} ----------")?;
            for file in own().filter(|file| file.level.is_some_and(|of| usize::from(of.0) == level)) {
                writeln!(out, "{}", file.path().display())?;
            }
        }
        writeln!(out, "Live Blob Files:")?;
        for file in own().filter(|file| file.kind == StorageKind::Blob) {
            writeln!(out, "{}", file.path().display())?;
        }
    }
    Ok(())
}

/// Prints a table, WAL file or MANIFEST as ldb does.
pub(super) fn dump(target: &Target, path: &Path, decode_blob_index: bool, out: &mut dyn Write) -> Done {
    match path.file_name().and_then(|name| FileKind::parse(name.to_str()?)) {
        Some(FileKind::Table(_) | FileKind::LevelDbTable(_)) => {
            sst::dump(path, target.common.hex, decode_blob_index, out)
        }
        Some(FileKind::Wal(_)) => Rows { header: true, values: true }.print(path, out),
        Some(FileKind::Manifest(_)) => manifest::dump(path, target.common.hex, out),
        _ => {
            Err(Outcome::Usage(format!("{}: not the name of a table, WAL file or MANIFEST", path.display())))
        }
    }
}
