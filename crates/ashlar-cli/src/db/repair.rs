//! repair: a database of what is left of one, and an account of what is lost.

use super::{Target, check};
use crate::Done;
use std::io::Write;

/// Repairs with the settings that the directory's OPTIONS file has, if it reads, and prints the account.
pub(super) fn run(target: &Target, out: &mut dyn Write) -> Done {
    let bar = check::bar();
    let report = target.builder().repair(|done| {
        bar.set_length(done.bytes_total);
        bar.set_position(done.bytes);
    });
    bar.finish_and_clear();
    write!(out, "{}", report?)?;
    Ok(())
}
