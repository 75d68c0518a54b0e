//! check: reads all files of a database without opening it; reports damage and the keys at risk.

use super::Target;
use crate::Done;
use crate::bytes_text::{Hex, counted};
use crate::outcome::Outcome;
use ashlardb::{CheckReport, Damage, Env, KeySpan, Risk, SeqNum, check_database_in};
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::{Value, json};
use std::io::Write;

/// Shows the bytes read and their total, on a terminal only.
pub(super) fn bar() -> ProgressBar {
    ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(5))
}

/// Prints the report. Fails if it has damage, or if something could not be checked.
pub(super) fn run(target: &Target, json: bool, out: &mut dyn Write) -> Done {
    let bar = bar();
    let report = check_database_in(&Env::os()?, &target.directory, &target.common.places(), &mut |done| {
        bar.set_length(done.bytes_total);
        bar.set_position(done.bytes);
    });
    bar.finish_and_clear();
    let report = report?;
    match json {
        true => writeln!(out, "{}", as_json(&report))?,
        false => write!(out, "{report}")?,
    }
    let what = match report.damages.len() as u64 {
        0 if report.unchecked.is_empty() => return Ok(()),
        0 => "not everything could be checked".to_owned(),
        damages => counted(damages, "damage"),
    };
    out.flush()?;
    Err(Outcome::Failed(format!("{}: {what}", target.directory.display())))
}

fn as_json(report: &CheckReport) -> Value {
    let CheckReport {
        damages,
        holes,
        unchecked,
        unknown,
        remarks,
        tables,
        blob_files,
        logs,
        entries,
        bytes,
        checksums,
        ..
    } = report;
    json!({
        "sound": report.is_sound() && unknown.is_empty(), "tables": tables, "blob_files": blob_files, "logs": logs, "entries": entries,
        "bytes": bytes, "checksums": checksums, "damages": damages_json(damages),
        "holes": damages_json(holes), "unchecked": unchecked, "unknown": unknown, "remarks": remarks,
    })
}

/// Damages, or holes, as JSON.
pub(super) fn damages_json(damages: &[Damage]) -> Value {
    let each = |damage: &Damage| {
        let Damage { file, offset, cause, family, risk, .. } = damage;
        json!({ "file": file, "offset": offset, "cause": cause, "family": family, "risk": at_risk(risk) })
    };
    damages.iter().map(each).collect()
}

fn at_risk(risk: &Risk) -> Value {
    match risk {
        Risk::Nothing => json!({ "kind": "nothing" }),
        Risk::UnknownKeys => json!({ "kind": "unknown keys" }),
        Risk::Database => json!({ "kind": "database" }),
        Risk::Keys(spans) => {
            let span = |s: &KeySpan| json!({ "from": hex(&s.from), "to": hex(&s.to) });
            json!({ "kind": "keys", "ranges": spans.iter().map(span).collect::<Value>() })
        }
        Risk::Writes { from, to, last, behind, more } => {
            let (to, last) = (to.map(SeqNum::get), last.map(SeqNum::get));
            let keys: Value = behind.iter().map(|key| hex(key)).collect();
            json!({ "kind": "writes", "from": from.get(), "to": to, "last": last, "behind": keys, "more": more })
        }
        // The words of a risk that a later version adds.
        other => json!({ "kind": other.to_string() }),
    }
}

fn hex(key: &[u8]) -> String {
    Hex(key).to_string()
}
