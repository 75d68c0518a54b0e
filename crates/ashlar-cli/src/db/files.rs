//! approxsize, checkconsistency, and dump of one file.

use super::Target;
use crate::blob::BlobForm;
use crate::cli::Dump;
use crate::outcome::Outcome;
use crate::wal::Rows;
use crate::{Done, blob, manifest, sst};
use ashlar_bench::say;
use ashlar_format::filename::FileKind;
use ashlardb::SizeOptions;
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

/// Prints a table, blob file, WAL file or MANIFEST as ldb does.
pub(super) fn dump(target: &Target, path: &Path, how: &Dump, out: &mut dyn Write) -> Done {
    let common = &target.common;
    let form = BlobForm {
        key_hex: common.hex || common.key_hex,
        value_hex: common.hex || common.value_hex,
        uncompressed: how.dump_uncompressed_blobs,
    };
    match path.file_name().and_then(|name| FileKind::parse(name.to_str()?)) {
        Some(FileKind::Table(_) | FileKind::LevelDbTable(_)) => {
            sst::dump(path, form.key_hex, how.decode_blob_index, out)
        }
        Some(FileKind::Blob(_)) => blob::dump(path, form, out),
        Some(FileKind::Wal(_)) => Rows { header: true, values: true }.print(path, out),
        Some(FileKind::Manifest(_)) => manifest::dump(path, form.key_hex, out),
        _ => {
            let path = path.display();
            Err(Outcome::Usage(format!("{path}: not the name of a table, blob file, WAL file or MANIFEST")))
        }
    }
}
