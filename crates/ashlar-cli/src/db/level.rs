//! level: which RocksDB releases can read a directory. rewrite: converts the directory for one release.
//!
//! ```text
//! 000012.sst: table format 6, needs rocksdb-9.11 or newer: ABOVE
//! rocksdb-7.8: 3 tables, 1 log, 1200 entries looked at; 1 shape above
//! ```

use super::Target;
use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::Outcome;
use ashlar_repair::{Found, LevelReport, check_level_in};
use ashlardb::{Env, FormatLevel};
use std::io::Write;

/// Lists every feature that some release cannot read. Fails if the requested release is one of these. Takes no lock.
pub(super) fn show(target: &Target, out: &mut dyn Write) -> Done {
    let level = target.common.level.unwrap_or_default();
    let report = check_level_in(&Env::os()?, &target.directory, &target.common.places())?;
    print(&report, level, out)
}

/// Opens the database at the level, compacts every family completely so that each table is rewritten, and closes it. The
/// MANIFEST and the WAL are new as well. Then checks the result.
pub(super) fn rewrite(target: &Target, out: &mut dyn Write) -> Done {
    let level = target.common.level.unwrap_or_default();
    target.warn_one_way();
    let db = target.at_level(level).open()?;
    db.compact()?;
    db.close()?;
    // The next open deletes replaced files that are left.
    target.at_level(level).open()?.close()?;
    show(target, out)
}

fn print(report: &LevelReport, level: FormatLevel, out: &mut dyn Write) -> Done {
    // Features that every release reads are not listed.
    let telling = |found: &&Found| found.shape.from() > FormatLevel::V6_29 || found.shape.until().is_some();
    for found in report.found.iter().filter(telling) {
        writeln!(out, "{}", line(found, level))?;
    }
    let above = report.above(level);
    let (tables, logs) = (counted(report.tables as u64, "table"), counted(report.logs as u64, "WAL file"));
    let verdict = match above.len() as u64 {
        0 => "nothing above".to_owned(),
        n => format!("{} above", counted(n, "shape")),
    };
    writeln!(out, "{level}: {tables}, {logs}, {} looked at; {verdict}", counted(report.entries, "entry"))?;
    match above.first() {
        None => Ok(()),
        Some(first) => {
            let lowest = match report.lowest() {
                Some(lowest) => format!("RocksDB of {lowest} reads everything"),
                None => "no release reads everything".to_owned(),
            };
            Err(Outcome::Failed(format!("{level} does not read {} ({}); {lowest}", first.file, first.shape)))
        }
    }
}

fn line(found: &Found, level: FormatLevel) -> String {
    let Found { file, shape, offset, count } = found;
    let place = match (offset, count) {
        (None, _) => String::new(),
        (Some(offset), 1) => format!(" at {offset}"),
        (Some(offset), count) => format!(" {count} times, first at {offset}"),
    };
    let needs = match shape.until() {
        Some(last) => format!("needs {last} or older"),
        None => format!("needs {} or newer", shape.from()),
    };
    let above = if shape.fits(level) { "" } else { ": ABOVE" };
    format!("{file}: {shape}{place}, {needs}{above}")
}
