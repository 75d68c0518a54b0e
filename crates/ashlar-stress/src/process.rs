//! Child processes: this program again, with a role on its command line.
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
//! rel child block-log DIR                                 serves a device and records what reaches it
//! ```
//! A child ends with the process that started it, except the last role, which serves until everything is unmounted. Results
//! go to standard output, and a failure goes to standard error.

use crate::{limits, soak, sweep, torture};
use ashlar_testkit::block_log;
use ashlar_testkit::suite::Budget;
use rustix::process::Signal;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

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
        ["limits", rest @ ..] => limits::roles::play(rest),
        _ => Err(format!("no such role: {words:?}")),
    }
}

/// What a child in a role says, when it ends well.
///
/// # Errors
/// It did not: what it says of that.
pub(crate) fn answer(budget: &Budget, role: &[&str]) -> Result<String, String> {
    let output = output(budget, role)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(output.status, &String::from_utf8_lossy(&output.stderr)))
}

/// As [`answer`]; `None`: it ended as Rust programs do when an allocation is refused.
///
/// # Errors
/// As [`answer`].
pub(crate) fn answer_or_want_of_memory(budget: &Budget, role: &[&str]) -> Result<Option<String>, String> {
    let output = output(budget, role)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    let aborted = output.status.signal() == Some(Signal::ABORT.as_raw());
    if aborted && errors.contains("memory allocation of") && !errors.contains("panicked at") {
        return Ok(None);
    }
    Err(failed(output.status, &errors))
}

fn output(budget: &Budget, role: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(&budget.program);
    command.arg("child").args(role).stdin(Stdio::null()).output().map_err(|e| e.to_string())
}

fn failed(status: ExitStatus, errors: &str) -> String {
    // A panic of the child is a panic found.
    let errors = errors.replace("panicked at", "panic: at");
    format!("a child process ended by itself ({status}): {}", errors.trim())
}

/// A child that runs.
pub(crate) struct Running {
    child: Child,
    errors: std::fs::File,
}

/// The outcome of waiting for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It killed itself, or another process killed it.
    Killed,
    /// It lives.
    NotYet,
}

impl Running {
    /// Starts a child in a role.
    pub(crate) fn start(budget: &Budget, role: &[&str]) -> Result<Running, String> {
        let errors = tempfile::tempfile().map_err(|e| e.to_string())?;
        let mut command = Command::new(&budget.program);
        command.arg("child").args(role).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors.try_clone().map_err(|e| e.to_string())?);
        let child = command.spawn().map_err(|e| format!("{}: {e}", budget.program.display()))?;
        Ok(Running { child, errors })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is dead, `time` at the most.
    ///
    /// # Errors
    /// It ended by itself: its status, and what it said.
    pub(crate) fn wait(&mut self, time: Duration) -> Result<Ended, String> {
        let began = Instant::now();
        loop {
            match self.child.try_wait().map_err(|e| e.to_string())? {
                Some(status) if status.signal() == Some(9) => return Ok(Ended::Killed),
                Some(status) => return Err(self.said(status)),
                None if began.elapsed() >= time => return Ok(Ended::NotYet),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Kills it with signal 9, if it lives still.
    ///
    /// # Errors
    /// It had ended by itself.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        self.wait(Duration::ZERO)?;
        self.child.kill().map_err(|e| e.to_string())?;
        let status = self.child.wait().map_err(|e| e.to_string())?;
        if status.signal() == Some(9) { Ok(()) } else { Err(self.said(status)) }
    }

    fn said(&mut self, status: ExitStatus) -> String {
        let mut text = String::new();
        let _ = self.errors.rewind().and_then(|()| self.errors.read_to_string(&mut text));
        failed(status, &text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
