//! Counts the instructions per operation with valgrind's callgrind, which breaks a tie on a noisy machine.
//!
//! Counts two small runs completely, with all threads, that differ only in the number of operations. The difference is the
//! cost of the further operations, with their flushes and compactions. No clock is involved, so the count is nearly the
//! same every time.

use super::{Matrix, process};
use crate::job::{Job, Step, Workload};
use std::process::Command;

/// The approximate bytes of the small database, and the bounds of its number of entries; it has no more than the measured
/// database either.
const BYTES: u64 = 4 << 20;
const LEAST: u64 = 50;
const MOST: u64 = 5000;

/// Counts the instructions of an operation of `step` as `job` does it.
///
/// # Errors
/// A text that says why the instructions could not be counted.
pub fn instructions(matrix: &Matrix, job: &Job, step: &Step) -> Result<f64, String> {
    match step.workload {
        Workload::Openloop | Workload::Readwhilewriting => {
            return Err("how much is done depends on the clock".into());
        }
        Workload::Compact => return Err("a compaction is one operation".into()),
        _ => {}
    }
    let entry = (job.settings.key_bytes + job.settings.value_bytes) as u64;
    let ops = (BYTES / entry.max(1)).min(job.keys).clamp(LEAST, MOST);
    let (once, twice) = (counted(matrix, job, step, ops, ops)?, counted(matrix, job, step, ops, 2 * ops)?);
    Ok(twice.saturating_sub(once) as f64 / ops as f64)
}

/// The instructions of a whole run: a load of `keys` keys if the step needs one, then `ops` operations.
fn counted(matrix: &Matrix, job: &Job, step: &Step, keys: u64, ops: u64) -> Result<u64, String> {
    let small = Step { ops, threads: 1, seconds: 0.0, ..step.clone() };
    let settles = job.steps.first().is_none_or(|first| first.settles);
    let load = Step { measured: false, settles, ..Step::new("load", Workload::Fillrandom, keys) };
    let steps = if step.workload.fills() { vec![small] } else { vec![load, small] };
    let job =
        Job { steps, keys: if step.workload.fills() { 2 * keys } else { keys }, probe: true, ..job.clone() };
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let out = matrix.dir.join(format!("ashlar-compare-callgrind-{}", std::process::id()));
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind"]);
    command.arg(format!("--callgrind-out-file={}", out.display())).arg(program);
    let done = process::watched(matrix, &job, command);
    let text = std::fs::read_to_string(&out);
    // A file that was never begun cannot be removed.
    let _ = std::fs::remove_file(&out);
    done.map_err(|status| format!("valgrind: {}", status.text()))?;
    total(&text.map_err(|e| e.to_string())?).ok_or_else(|| "valgrind wrote no total".into())
}

/// The total for the whole program in callgrind's file.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        let text = "version: 1\nevents: Ir\nsummary: 5\nfn=(1)\n1 5\n\ntotals: 123456\n";
        assert_eq!(total(text), Some(123_456));
        assert_eq!(total("events: Ir\n"), None);
    }
}
