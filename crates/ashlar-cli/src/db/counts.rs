//! The counts of `--count_delim`: a line for each run of keys that agree up to a character.

use super::text::Form;
use crate::Done;
use crate::outcome::Outcome;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

/// Counts entries in the order of their keys.
pub(super) struct Counts {
    delimiter: u8,
    form: Form,
    /// The beginning of the keys, their number, and the bytes of the entries.
    run: Option<(Vec<u8>, u64, usize)>,
}

impl Counts {
    /// `delimiter` is the character.
    pub(super) fn new(delimiter: &OsStr, form: Form) -> Result<Counts, Outcome> {
        match delimiter.as_bytes() {
            [delimiter] => Ok(Counts { delimiter: *delimiter, form, run: None }),
            _ => Err(Outcome::Usage("--count_delim is one character".to_owned())),
        }
    }

    /// Counts the next entry. Prints the line of the run that ends before it.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let bytes = key.len() + value.len();
        let group = key.split(|byte| *byte == self.delimiter).next().unwrap_or_default();
        match &mut self.run {
            Some((last, count, all)) if last == group => {
                (*count, *all) = (*count + 1, *all + bytes);
                Ok(())
            }
            run => match run.replace((group.to_vec(), 1, bytes)) {
                Some((group, count, bytes)) => self.form.print_counts(out, &group, count, bytes),
                None => Ok(()),
            },
        }
    }

    /// Prints the line of the last run.
    pub(super) fn finish(self, out: &mut dyn Write) -> Done {
        match self.run {
            Some((group, count, bytes)) => Ok(self.form.print_counts(out, &group, count, bytes)?),
            None => Ok(()),
        }
    }
}
