//! The roles of child processes: this program again, with a role on its command line. `ashlar_testkit::children` starts them.
//!
//! ```text
//! rel child torture-write DIR SEED ROUND PROGRESS POINT   writes the lists of a case until it is killed
//! rel child torture-recover DIR SEED ROUND POINT          opens what a kill left, and waits to be killed
//! rel child log-write DIR PROGRESS                        writes into one long log until it is killed
//! rel child log-pass DIR                                  reads that log into memtables, and says how long it took
//! rel child log-open DIR                                  opens it, and says how long it took and with how much memory
//! rel child soak DIR SEED SECONDS                         works for so long, and says what it has between two rounds
//! rel child sweep-memory DIR SEED PROGRESS FIRST LAST     a fixed list, and large allocations that are refused
//! rel child sweep-reads                                   reads large values while no large allocation is granted
//! rel child limits ROLE …                                 what a case of the limits needs (limits/roles)
//! rel child hostile ROW CAP quick|full|SECONDS DIR        a workload under a cap on memory, and the peaks of its memory
//! rel child block-log DIR                                 serves a device and records what reaches it
//! ```
//! A child ends with the process that started it, except the last role, which serves until everything is unmounted. Results
//! go to standard output, and a failure goes to standard error.

use crate::{hostile, limits, soak, sweep, torture};
use ashlar_testkit::block_log;
use rustix::process::Signal;
use std::path::Path;

/// The role of a child process.
///
/// # Errors
/// What failed, or that there is no such role.
pub fn play(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["block-log", folder] = words.as_slice() {
        return block_log::serve(Path::new(folder));
    }
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| e.to_string())?;
    match words.as_slice() {
        ["torture-write", rest @ ..] => torture::child::write(rest),
        ["torture-recover", rest @ ..] => torture::child::recover(rest),
        ["log-write", rest @ ..] => torture::big_log::write(rest),
        ["log-pass", rest @ ..] => torture::big_log::pass(rest),
        ["log-open", rest @ ..] => torture::big_log::reopen(rest),
        ["soak", rest @ ..] => soak::work::play(rest),
        ["sweep-memory", rest @ ..] => sweep::memory::child(rest),
        ["sweep-reads"] => sweep::memory::read_without(),
        ["hostile", rest @ ..] => hostile::play(rest),
        ["limits", rest @ ..] => limits::roles::play(rest),
        _ => Err(format!("no such role: {words:?}")),
    }
}
