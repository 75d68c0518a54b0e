//! How a command ends when it does not end well.

use ashlar_bench::say;
use ashlardb::Error;
use std::io;
use std::process::ExitCode;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It did not work: one sentence for standard error. Status 1.
    Failed(String),
    /// It was asked wrongly: a text for standard error. Status 2.
    Usage(String),
    /// The reader of the output has gone away (`| head`). Status 0.
    ReaderGone,
}

impl From<Error> for Outcome {
    fn from(e: Error) -> Self {
        Outcome::Failed(e.to_string())
    }
}

impl From<io::Error> for Outcome {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Outcome::ReaderGone,
            _ => Outcome::Failed(format!("cannot read or write: {e}")),
        }
    }
}

/// Says it, and makes it a status.
pub(crate) fn tell(outcome: Result<(), Outcome>) -> ExitCode {
    match outcome {
        Ok(()) | Err(Outcome::ReaderGone) => ExitCode::SUCCESS,
        Err(Outcome::Failed(text)) => {
            say::line(&text);
            ExitCode::from(1)
        }
        Err(Outcome::Usage(text)) => {
            say::line(&text);
            ExitCode::from(2)
        }
    }
}
