//! check: everything a database has on disk is read, without opening it; damages, and the keys they put at risk.

use super::Target;
use crate::Done;
use crate::bytes_text::{Hex, JsonText, counted};
use crate::outcome::Outcome;
use ashlardb::{CheckReport, Damage, Env, KeySpan, Risk, check_database};
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::io::{self, Write};

/// Bytes read of those there are; only where somebody looks.
pub(super) fn bar() -> ProgressBar {
    ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(5))
}

/// Prints what was found; fails when that is a damage.
pub(super) fn run(target: &Target, json: bool, out: &mut dyn Write) -> Done {
    let bar = bar();
    let report = check_database(&Env::os()?, &target.directory, &mut |done| {
        bar.set_length(done.bytes_total);
        bar.set_position(done.bytes);
    });
    bar.finish_and_clear();
    let report = report?;
    match json {
        true => print_json(&report, out)?,
        false => write!(out, "{report}")?,
    }
    match report.damages.len() as u64 {
        0 => Ok(()),
        n => {
            out.flush()?;
            Err(Outcome::Failed(format!("{}: {}", target.directory.display(), counted(n, "damage"))))
        }
    }
}

fn print_json(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    let CheckReport { damages, remarks, tables, blob_files, logs, entries, bytes, checksums } = report;
    write!(out, "{{\"sound\": {}, \"tables\": {tables}, \"blob_files\": {blob_files}, ", report.is_sound())?;
    write!(
        out,
        "\"logs\": {logs}, \"entries\": {entries}, \"bytes\": {bytes}, \"checksums\": {checksums}, "
    )?;
    let damages: Vec<String> = damages.iter().map(damage).collect();
    let remarks: Vec<String> = remarks.iter().map(|remark| JsonText(remark).to_string()).collect();
    writeln!(out, "\"damages\": [{}], \"remarks\": [{}]}}", damages.join(", "), remarks.join(", "))
}

/// A damage as JSON.
pub(super) fn damage(damage: &Damage) -> String {
    let Damage { file, offset, cause, family, risk } = damage;
    let null = || "null".to_owned();
    format!(
        "{{\"file\": {}, \"offset\": {}, \"cause\": {}, \"family\": {}, \"risk\": {}}}",
        JsonText(file),
        offset.map_or_else(null, |offset| offset.to_string()),
        JsonText(cause),
        family.as_ref().map_or_else(null, |family| JsonText(family).to_string()),
        at_risk(risk)
    )
}

fn at_risk(risk: &Risk) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match risk {
        Risk::Nothing => "{\"kind\": \"nothing\"}".to_owned(),
        Risk::UnknownKeys => "{\"kind\": \"unknown keys\"}".to_owned(),
        Risk::Database => "{\"kind\": \"database\"}".to_owned(),
        Risk::Keys(spans) => {
            let span =
                |s: &KeySpan| format!("{{\"from\": \"{}\", \"to\": \"{}\"}}", Hex(&s.from), Hex(&s.to));
            format!("{{\"kind\": \"keys\", \"ranges\": [{}]}}", list(spans.iter().map(span).collect()))
        }
        Risk::Writes { from, to, behind, more } => {
            let to = to.map_or_else(|| "null".to_owned(), |to| to.to_string());
            let keys = list(behind.iter().map(|key| format!("\"{}\"", Hex(key))).collect());
            format!(
                "{{\"kind\": \"writes\", \"from\": {from}, \"to\": {to}, \"behind\": [{keys}], \"more\": {more}}}"
            )
        }
    }
}
