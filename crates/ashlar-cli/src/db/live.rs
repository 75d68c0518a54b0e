//! list_live_files_metadata: the tables and blob files that the database needs. dump_live_files: their content.
//! list_file_range_deletes: the range deletions of tables.
//!
//! They take no lock. For dump_live_files, a file that another process deletes or extends meanwhile is an error.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (by its output).

use super::Target;
use super::stored::Stored;
use crate::blob::BlobForm;
use crate::bytes_text::Hex;
use crate::wal::Rows;
use crate::{Done, blob, manifest, sst};
use ashlar_base::{FileNumber, Result};
use ashlar_format::filename::FileKind;
use ashlar_log::{LogReader, RecoveryMode};
use ashlar_tree::version::{FamilyState, FileMeta};
use ashlardb::Db;
use std::io::Write;
use std::path::PathBuf;

const LINE: &str = "==============================";
const THIN_LINE: &str = "------------------------------";

/// Lists the tables and blob files, in ldb's lines.
pub(super) fn list(target: &Target, sort_by_filename: bool, out: &mut dyn Write) -> Done {
    let stored = Stored::read(target)?;
    stored.check_comparators()?;
    match sort_by_filename {
        true => by_name(&stored, out)?,
        false => by_family(&stored, &target.open_to_read()?, out)?,
    }
    Ok(writeln!(out, "{THIN_LINE}")?)
}

fn by_name(stored: &Stored, out: &mut dyn Write) -> Done {
    let mut lines = Vec::new();
    for family in stored.families() {
        let name = &family.name;
        for (level, file) in family.version.files() {
            let level = level.0;
            lines.push((table(stored, &family, file), format!(" : level {level}, column family '{name}'")));
        }
        let blobs = blobs(stored, &family);
        lines.extend(blobs.into_iter().map(|path| (path, format!(", column family '{name}'"))));
    }
    lines.sort();
    writeln!(out, "Live SST and Blob Files:")?;
    lines.iter().try_for_each(|(path, rest)| writeln!(out, "{}{rest}", path.display()))?;
    Ok(())
}

/// Lists by family, and by level. `db` has the number of levels.
fn by_family(stored: &Stored, db: &Db, out: &mut dyn Write) -> Done {
    for family in stored.families() {
        writeln!(out, "===== Column Family: {} =====\nLive SST Files:", family.name)?;
        let levels = db.family(&family.name)?.options().compaction.num_levels;
        for level in 0..levels {
            writeln!(out, "---------- level {level} ----------")?;
            let mut of_level = family.version.files().filter(|(of, _)| usize::from(of.0) == level);
            of_level.try_for_each(|(_, file)| writeln!(out, "{}", table(stored, &family, file).display()))?;
        }
        writeln!(out, "Live Blob Files:")?;
        blobs(stored, &family).iter().try_for_each(|path| writeln!(out, "{}", path.display()))?;
    }
    Ok(())
}

/// The paths of a family's blob files, in the order of their numbers.
fn blobs(stored: &Stored, family: &FamilyState) -> Vec<PathBuf> {
    let numbers = family.version.blobs().files().keys();
    numbers.map(|number| stored.path_of(&FileKind::Blob(*number).name())).collect()
}

/// Prints the MANIFEST, the tables and blob files of each family, and the WAL files.
pub(super) fn dump(
    target: &Target,
    decode_blob_index: bool,
    uncompressed: bool,
    out: &mut dyn Write,
) -> Done {
    let stored = Stored::read(target)?;
    stored.check_comparators()?;
    let path = stored.manifest();
    writeln!(out, "Manifest File\n{LINE}\n{}", path.display())?;
    manifest::dump(&path, false, out)?;
    writeln!(out)?;
    for family in stored.families() {
        writeln!(out, "Column family name: {}\n{LINE}\n\nSST Files\n{LINE}", family.name)?;
        for (level, file) in family.version.files() {
            let path = table(&stored, &family, file);
            writeln!(out, "{} level:{}\n{THIN_LINE}", path.display(), level.0)?;
            sst::dump(&path, false, decode_blob_index, out)?;
            writeln!(out)?;
        }
        writeln!(out, "Blob Files\n{LINE}")?;
        for path in blobs(&stored, &family) {
            writeln!(out, "{}\n{THIN_LINE}", path.display())?;
            blob::dump(&path, BlobForm { uncompressed, ..BlobForm::default() }, out)?;
            writeln!(out)?;
        }
    }
    writeln!(out, "\nWrite Ahead Log Files\n{LINE}")?;
    for number in wal_files(&stored)? {
        let path = stored.path_of(&FileKind::Wal(number).name());
        writeln!(out, "{}", path.display())?;
        Rows { header: true, values: true }.print(&path, out)?;
    }
    Ok(())
}

/// The path of a table, which has one of two endings.
fn table(stored: &Stored, family: &FamilyState, file: &FileMeta) -> PathBuf {
    let path = family.version.tables().path_of(file.number());
    stored.path_of(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// The WAL files with a record, in the order of their writes.
fn wal_files(stored: &Stored) -> Result<Vec<FileNumber>> {
    let mut files = Vec::new();
    for name in stored.names()? {
        if let Some(FileKind::Wal(number)) = FileKind::parse(&name)
            && LogReader::open(stored.open(&name)?, number, RecoveryMode::PointInTime).next()?.is_some()
        {
            files.push(number);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Prints the range deletions of the family's tables, by table, at most `most` of them.
pub(super) fn range_deletes(target: &Target, most: i64, out: &mut dyn Write) -> Done {
    let (stored, family, levels) = Stored::read_tables(target)?;
    let mut left = u64::try_from(most).unwrap_or_default();
    let any = left > 0;
    for (file, open) in levels.iter().flatten() {
        if left == 0 {
            break;
        }
        writeln!(out, "=== file : {} ===", table(&stored, &family, file).display())?;
        for fragment in open.range_tombstones().fragments() {
            for seq in fragment.seqs() {
                if left == 0 {
                    break;
                }
                writeln!(out, "start: {} end: {} seq: {seq}", Hex(fragment.begin), Hex(fragment.end))?;
                left -= 1;
            }
        }
    }
    if any && left == 0 {
        writeln!(out, "(results may not be complete)")?;
    }
    Ok(writeln!(out)?)
}
