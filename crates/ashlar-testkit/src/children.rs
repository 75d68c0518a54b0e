//! Child processes: the program of a suite again, with `child ROLE …` on its command line.
//!
//! Results of a child are on its standard output, failures on its standard error.

use crate::suite::Budget;
use rustix::process::Signal;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs a child in a role, and returns its output.
///
/// # Errors
/// The child failed: its status and errors.
pub fn answer(budget: &Budget, role: &[&str]) -> Result<String, String> {
    let output = output(budget, role)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failed(output.status, &String::from_utf8_lossy(&output.stderr)))
}

/// As [`answer`]; `None`: the child ended as Rust programs do when an allocation is refused.
///
/// # Errors
/// As [`answer`].
pub fn answer_or_want_of_memory(budget: &Budget, role: &[&str]) -> Result<Option<String>, String> {
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
#[derive(Debug)]
pub struct Running {
    child: Child,
    errors: std::fs::File,
}

/// The outcome of waiting for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The child killed itself, or another process killed it.
    Killed,
    /// The child lives.
    NotYet,
}

impl Running {
    /// Starts a child in a role.
    ///
    /// # Errors
    /// The program does not start.
    pub fn start(budget: &Budget, role: &[&str]) -> Result<Running, String> {
        Running::of(Command::new(&budget.program).arg("child").args(role))
    }

    /// Starts another program. Its standard output is dropped.
    ///
    /// # Errors
    /// The program does not start.
    pub fn of(command: &mut Command) -> Result<Running, String> {
        let errors = tempfile::tempfile().map_err(|e| e.to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors.try_clone().map_err(|e| e.to_string())?);
        let child = command.spawn().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
        Ok(Running { child, errors })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the child is dead, `time` at the most.
    ///
    /// # Errors
    /// The child ended by itself: its status and errors.
    pub fn wait(&mut self, time: Duration) -> Result<Ended, String> {
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

    /// Kills the child with signal 9, if it lives.
    ///
    /// # Errors
    /// The child had ended by itself.
    pub fn kill(&mut self) -> Result<(), String> {
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
