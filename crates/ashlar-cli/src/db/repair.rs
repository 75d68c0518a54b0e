//! repair: rebuilds a database from its intact files, and reports every loss.

use super::{Target, check};
use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::{Outcome, answer};
use ashlardb::{RepairReport, Risk, Verified};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Message when the repair succeeded and its report could not be written.
const MADE: &str = "the repair was made";

/// Repairs with the settings of the directory's OPTIONS file, if it is readable, and prints the report. With a copy, repairs
/// the copy. The copy may have zeros for parts that the device cannot read. Status 3 tells scripts of losses.
pub(super) fn run(
    target: &Target,
    (into, around): (Option<&Path>, bool),
    json: bool,
    out: &mut dyn Write,
) -> Done {
    let builder = target.builder();
    let bar = check::bar();
    let progress = |done: &Verified| {
        bar.set_length(done.bytes_total);
        bar.set_position(done.bytes);
    };
    let report = match into {
        Some(into) if around => builder.salvage_around_unreadable(into, progress),
        Some(into) => builder.salvage(into, progress),
        None => {
            target.warn_one_way();
            builder.repair(progress)
        }
    };
    bar.finish_and_clear();
    let report = report?;
    match json {
        true => answer(out, &format!("{}\n", as_json(&report)), MADE)?,
        false => answer(out, &report.to_string(), MADE)?,
    }
    if report.is_lossless() {
        return Ok(());
    }
    let directory = into.unwrap_or(&target.directory).display();
    let what = match report.losses.iter().filter(|loss| loss.risk != Risk::Nothing).count() as u64 {
        0 => "without a MANIFEST: deleted keys and replaced values may be back".to_owned(),
        losses => format!("with {}", counted(losses, "loss")),
    };
    Err(Outcome::Lossy(format!("{directory}: repaired {what}")))
}

fn as_json(report: &RepairReport) -> Value {
    let RepairReport {
        manifest, tables_kept, rewritten, entries, log_batches, losses, moved, remarks, ..
    } = report;
    json!({
        "lossless": report.is_lossless(), "rebuilt": report.rebuilt, "renamed": report.renamed, "manifest": manifest.0, "tables_kept": tables_kept, "rewritten": rewritten,
        "entries": entries, "log_batches": log_batches, "losses": check::damages_json(losses), "moved": moved,
        "remarks": remarks,
    })
}
