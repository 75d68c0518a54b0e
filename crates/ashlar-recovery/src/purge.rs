//! The first purge of an open: removes what earlier sessions left, and moves what may still be needed to `lost/`.

use crate::{RecoveryReport, UnusedFiles};
use ashlar_base::{FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_tree::files::{
    Archive, Live, PendingOutputs, RepairMark, Spared, in_quarantine, lost_is_usable, remove_obsolete,
};
use ashlar_tree::version::VersionSet;
use std::collections::BTreeSet;
use std::path::Path;

/// What the purge of an open leaves.
#[derive(Default)]
pub struct PurgedAtOpen {
    /// The files that later purges move to `lost/`.
    pub quarantined: BTreeSet<FileNumber>,
    /// The bytes of the files that stay. `None`: nothing was listed.
    pub bytes: Option<u64>,
}

/// The purge of an open, after its commit. The report lists what is in `lost/`: tables and blob files after a dropped
/// tail, everything after an unfinished repair, quarantined files, damaged OPTIONS files, and unused parts of WAL
/// files.
///
/// `strays`: orphans may belong to another database. They move to `lost/` too, without an anomaly in the report,
/// because RocksDB leaves orphans when it is killed. The result names the files that later purges move to `lost/`.
///
/// # Errors
/// `Io`: a file could not be listed, removed or moved.
pub fn purge_at_open(
    fs: &dyn Fs,
    dir: &Path,
    (versions, pending, archive): (&VersionSet, &PendingOutputs, Option<Archive>),
    report: &mut RecoveryReport,
    unused: &UnusedFiles,
    strays: bool,
) -> Result<PurgedAtOpen> {
    if !lost_is_usable(fs, dir)? {
        // `lost/` is unusable and may hold accounts of quarantined files, so no file is known to be useless.
        return Ok(PurgedAtOpen::default());
    }
    let mark = RepairMark::of(fs, dir);
    let unended = mark.stands()?;
    let spared = match (unended, report.tail_dropped() || strays) {
        (true, _) => Spared::Everything,
        (false, true) => Spared::Orphans,
        (false, false) => Spared::Nothing,
    };
    let mut quarantined = in_quarantine(fs, dir)?;
    quarantined.extend(&unused.whole);
    let live = Live { quarantined: quarantined.clone(), ..Live::now(versions, pending, spared) };
    let done = remove_obsolete(fs, dir, versions, &live, archive.as_ref())?;
    if unended {
        mark.clear()?;
    }
    let is_stray = |name: &String| {
        let number = FileKind::parse(name).and_then(FileKind::number);
        matches!(spared, Spared::Orphans)
            && !report.tail_dropped()
            && number.is_some_and(|n| !quarantined.contains(&n))
    };
    let bytes = done.stays;
    let (moved_aside, lost): (Vec<_>, Vec<_>) = done.lost.into_iter().partition(is_stray);
    report.lost = [unused.tails.clone(), lost].concat();
    report.foreign.extend(moved_aside.iter().map(|name| {
        format!("{name} is not named by the MANIFEST, and may be needed: moved to lost/, not removed")
    }));
    Ok(PurgedAtOpen { quarantined, bytes })
}
