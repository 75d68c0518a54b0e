//! Checks one file of a version, or all of them.

use super::family::Family;
use super::report::{CheckReport, Verified};
use crate::version::Version;
use ashlar_base::FileNumber;
use ashlar_env::Fs;
use std::path::Path;

/// Called after each table and blob file.
pub type Progress<'p> = &'p mut dyn FnMut(&Verified);

/// Checks the tables and blob files of versions that the caller holds.
pub fn check_files(
    fs: &dyn Fs,
    dir: &Path,
    versions: &[(&str, &Version)],
    report: &mut CheckReport,
    progress: Progress<'_>,
) {
    let mut done = to_read(versions.iter().map(|(_, version)| *version));
    for (name, version) in versions {
        let family = Family::new(fs, dir, name, version);
        for (_, file) in version.files() {
            family.table(file, report);
            step(&mut done, file.size(), report, progress);
        }
        for (number, file) in version.blobs().files() {
            family.blob_file(*number, report);
            step(&mut done, file.added.bytes, report, progress);
        }
    }
}

/// Checks one table or blob file of a family's version.
pub fn check_file(
    fs: &dyn Fs,
    dir: &Path,
    (name, version): (&str, &Version),
    number: FileNumber,
    report: &mut CheckReport,
) {
    let family = Family::new(fs, dir, name, version);
    match version.files().find(|(_, file)| file.number() == number) {
        Some((_, file)) => family.table(file, report),
        None => family.blob_file(number, report),
    }
}

/// The files and bytes to read in these versions.
pub fn to_read<'v>(versions: impl Iterator<Item = &'v Version>) -> Verified {
    let mut all = Verified::default();
    for version in versions {
        let blobs = version.blobs().files();
        all.files_total += version.file_count() as u64 + blobs.len() as u64;
        all.bytes_total += version.files().map(|(_, f)| f.size()).sum::<u64>();
        all.bytes_total += blobs.values().map(|b| b.added.bytes).sum::<u64>();
    }
    all
}

fn step(done: &mut Verified, bytes: u64, report: &CheckReport, progress: Progress<'_>) {
    done.files += 1;
    done.bytes += bytes;
    done.entries = report.entries;
    progress(done);
}
