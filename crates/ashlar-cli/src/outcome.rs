//! How a command ends when it does not end well.

use ashlar_bench::say;
use ashlardb::Error;
use std::io::{self, Write};
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

/// Of an error of standard output: what else a command reads or writes has errors with a path.
impl From<io::Error> for Outcome {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Outcome::ReaderGone,
            _ => Outcome::Failed(format!("cannot write standard output: {e}")),
        }
    }
}

/// Prints the answer of a command that has changed something. An error says what was `made`, because the status alone
/// reads as if nothing was.
pub(crate) fn answer(out: &mut dyn Write, text: &str, made: &str) -> Result<(), Outcome> {
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|e| match Outcome::from(e) {
        Outcome::Failed(text) => Outcome::Failed(format!("{text}; {made}")),
        other => other,
    })
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
