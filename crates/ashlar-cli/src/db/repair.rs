//! repair: a database of what is left of one, and an account of what is lost.

use super::{Target, check};
use crate::Done;
use crate::bytes_text::JsonText;
use ashlardb::{Builder, RepairReport, Result};
use std::io::{self, Write};

/// Repairs with the settings that the directory's OPTIONS file has, if it reads, and prints the account.
pub(super) fn run(target: &Target, json: bool, out: &mut dyn Write) -> Done {
    let builder = settings(target)?;
    let bar = check::bar();
    let report = builder.repair(|done| {
        bar.set_length(done.bytes_total);
        bar.set_position(done.bytes);
    });
    bar.finish_and_clear();
    match json {
        true => print_json(&report?, out)?,
        false => write!(out, "{}", report?)?,
    }
    Ok(())
}

/// The stored settings; what of them does not fit, or why they are not taken, goes to standard error.
fn settings(target: &Target) -> Result<Builder> {
    match target.builder().stored_options() {
        Ok((builder, notices)) => {
            notices.iter().for_each(|notice| eprintln!("OPTIONS: {notice}"));
            Ok(builder)
        }
        Err(e) if e.is_corruption() => {
            eprintln!("OPTIONS: {e}; the defaults are taken");
            Ok(target.builder())
        }
        Err(e) => Err(e),
    }
}

fn print_json(report: &RepairReport, out: &mut dyn Write) -> io::Result<()> {
    let names = |list: &[String]| list.iter().map(|name| JsonText(name).to_string()).collect::<Vec<_>>();
    let RepairReport { manifest, tables_kept, entries, log_batches, .. } = report;
    write!(out, "{{\"lossless\": {}, \"manifest\": {manifest}, ", report.is_lossless())?;
    write!(
        out,
        "\"tables_kept\": {tables_kept}, \"rewritten\": [{}], ",
        names(&report.rewritten).join(", ")
    )?;
    write!(out, "\"entries\": {entries}, \"log_batches\": {log_batches}, ")?;
    let losses: Vec<String> = report.losses.iter().map(check::damage).collect();
    let (moved, remarks) = (names(&report.moved).join(", "), names(&report.remarks).join(", "));
    let losses = losses.join(", ");
    writeln!(out, "\"losses\": [{losses}], \"moved\": [{moved}], \"remarks\": [{remarks}]}}")
}
