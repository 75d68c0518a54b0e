//! Messages on standard error. `eprintln!` panics when it cannot write. Here a message that cannot be written is lost, and
//! the exit status does not change.

use std::io::{self, Write};

/// Writes `text` as a line to standard error, if that can be written.
pub fn line(text: &str) {
    part(&format!("{text}\n"));
}

/// Writes `text` to standard error without a line break, if that can be written.
pub fn part(text: &str) {
    let _lost = io::stderr().write_all(text.as_bytes());
}
