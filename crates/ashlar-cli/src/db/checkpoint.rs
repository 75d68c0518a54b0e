//! checkpoint: a second database with the present state of this one.

use super::{Target, check};
use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::{Outcome, answer};
use ashlardb::{CheckpointOptions, Copied};
use std::io::Write;
use std::path::Path;

/// Makes the checkpoint and prints what it has.
pub(super) fn run(target: &Target, into: Option<&Path>, out: &mut dyn Write) -> Done {
    let Some(into) = into else {
        return Err(Outcome::Usage("where to? Name a new directory: checkpoint INTO".to_owned()));
    };
    let db = target.open()?;
    let bar = check::bar();
    let progress = |done: &Copied| {
        bar.set_length(done.bytes_total);
        bar.set_position(done.bytes);
    };
    let made = db.checkpoint_with(into, CheckpointOptions::new(), progress);
    bar.finish_and_clear();
    let made = made?;
    db.close()?;
    let files = format!("{} linked, {} copied", counted(made.linked as u64, "file"), made.copied);
    let line = format!("OK: {} has the writes up to {}; {files}\n", into.display(), made.sequence);
    answer(out, &line, "the checkpoint was made")
}
