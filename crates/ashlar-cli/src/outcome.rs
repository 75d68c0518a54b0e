//! The failures of a command, and their exit statuses.

use ashlar_bench::say;
use ashlardb::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The command failed: one sentence for standard error. Status 1.
    Failed(String),
    /// There is no such key, and standard output says so. Status 1.
    Missing,
    /// The command line is wrong: a text for standard error. Status 2.
    Usage(String),
    /// The repair was made, but not everything could be kept: one sentence for standard error. Status 3.
    Lossy(String),
    /// The reader of the output has gone away (`| head`). Status 0.
    ReaderGone,
}

impl From<Error> for Outcome {
    fn from(e: Error) -> Self {
        Outcome::Failed(e.to_string())
    }
}

/// Converts an error of standard output. All other I/O of a command has errors with a path.
impl From<io::Error> for Outcome {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Outcome::ReaderGone,
            _ => Outcome::Failed(format!("cannot write standard output: {e}")),
        }
    }
}

/// Prints the result of a command that has changed something. An error contains `made`, because status 1 alone would
/// suggest that nothing was changed.
pub(crate) fn answer(out: &mut dyn Write, text: &str, made: &str) -> Result<(), Outcome> {
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|e| match Outcome::from(e) {
        Outcome::Failed(text) => Outcome::Failed(format!("{text}; {made}")),
        other => other,
    })
}

/// Prints the failure and returns the exit status.
pub(crate) fn tell(outcome: Result<(), Outcome>) -> ExitCode {
    match outcome {
        Ok(()) | Err(Outcome::ReaderGone) => ExitCode::SUCCESS,
        Err(Outcome::Failed(text)) => {
            say::line(&text);
            ExitCode::from(1)
        }
        Err(Outcome::Missing) => ExitCode::from(1),
        Err(Outcome::Usage(text)) => {
            say::line(&text);
            ExitCode::from(2)
        }
        Err(Outcome::Lossy(text)) => {
            say::line(&text);
            ExitCode::from(3)
        }
    }
}
