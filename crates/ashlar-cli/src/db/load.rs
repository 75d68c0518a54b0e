//! load: lines from standard input into the database.
//!
//! 1. Lines go in batches of up to 1000 entries or 1 MiB, so that a crash leaves a prefix of the input.
//! 2. A line without an entry is counted and skipped, as in ldb. The entries of the other lines are loaded. Then the
//!    command fails and names the first such line.
//! 3. The command ends at the first entry that the database refuses, at a line that cannot be read, and when memory for
//!    a line is missing. The error names the line and the number of loaded entries: those of all lines before it.

use super::Target;
use super::lines::{Limits, LineReader, Next};
use super::text::{Form, Separator, marked_entry};
use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::{Outcome, answer};
use ashlardb::{Family, Write as _, WriteBatch, WriteOptions, Writer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::io::{BufRead, Write};
use std::time::Duration;

const BATCH_ENTRIES: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// The settings of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Lines have tabs.
    pub(super) tsv: bool,
    /// Skips the WAL.
    pub(super) disable_wal: bool,
    /// Compact at the end.
    pub(super) compact: bool,
}

/// The counts of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) entries: u64,
    /// Entries that the database has accepted.
    written: u64,
    bytes: u64,
    pub(super) bad: u64,
    first_bad: u64,
}

impl Counts {
    /// The error for the last line: it could not be read, or the database refused its entry or the batch that ends with it.
    fn stopped(&self, e: &dyn Display) -> Outcome {
        let loaded = match self.written {
            1 => "1 entry of the lines before it is loaded".to_owned(),
            n => format!("{n} entries of the lines before it are loaded"),
        };
        Outcome::Failed(format!("line {}: {e}. {loaded}", self.lines))
    }

    /// The error of lines that were left out.
    pub(super) fn whole(&self, advice: &str) -> Done {
        match self.bad {
            0 => Ok(()),
            bad => Err(Outcome::Failed(format!(
                "{} left out, which are no entries; the first is line {}. {advice}.",
                counted(bad, "line"),
                self.first_bad
            ))),
        }
    }
}

/// Parses lines to entries.
pub(super) struct Lines<'a> {
    target: &'a Target,
    separator: Option<Separator>,
    pub(super) counts: Counts,
}

impl<'a> Lines<'a> {
    /// No line yet. `tsv`: lines have tabs; otherwise the first one with a separator decides.
    pub(super) fn new(target: &'a Target, tsv: bool) -> Self {
        Lines { target, separator: tsv.then_some(Separator::Tab), counts: Counts::default() }
    }

    /// The entry of the next line. Counts a bad line.
    pub(super) fn next(&mut self, next: &Next<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        if *next != Next::End {
            self.counts.lines += 1;
        }
        match next {
            Next::Line(line) => self.entry(line),
            Next::Skipped => {
                self.bad();
                None
            }
            Next::End => None,
        }
    }

    fn entry(&mut self, line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        // The first line with a separator decides the format of all lines.
        self.separator = self.separator.or_else(|| Separator::of(line));
        let read = |s| Form::new(&self.target.common, s).entry(line);
        let entry = marked_entry(line).or_else(|| self.separator.and_then(read));
        match &entry {
            Some((key, value)) => {
                self.counts.entries += 1;
                self.counts.bytes += (key.len() + value.len()) as u64;
            }
            // What `dump` ends with.
            None if line.starts_with(b"Keys in range: ") => {}
            None => self.bad(),
        }
        entry
    }

    fn bad(&mut self) {
        self.counts.bad += 1;
        if self.counts.bad == 1 {
            self.counts.first_bad = self.counts.lines;
        }
    }
}

/// Loads everything that comes, and says how much it was.
pub(super) fn run(target: &Target, how: &How, input: &mut dyn BufRead, out: &mut dyn Write) -> Done {
    let db = target.open_to_write()?;
    let family = target.family(&db)?;
    let writer = db.writing(WriteOptions::new().disable_wal(how.disable_wal));
    let mut lines = Lines::new(target, how.tsv);
    let loaded = read_all(&writer, &family, &mut lines, input);
    let Counts { entries, bytes, .. } = lines.counts;
    let flushed = if how.disable_wal { db.flush() } else { Ok(()) };
    loaded?;
    flushed?;
    if how.compact {
        db.compact()?;
    }
    db.close()?;
    let text = format!("{entries} entries loaded, {bytes} bytes of keys and values\n");
    answer(out, &text, "the entries were loaded")?;
    lines.counts.whole("Correct them and load them again")
}

fn read_all(
    db: &Writer<'_>,
    family: &Family,
    lines: &mut Lines<'_>,
    input: &mut dyn BufRead,
) -> Result<(), Outcome> {
    let progress = progress();
    let mut reader = LineReader::new(input, Limits::default());
    let batch = WriteBatch::new();
    loop {
        let next = reader.next();
        let more = next != Ok(Next::End);
        let unread = u64::from(next.is_err());
        let put = |(key, value)| batch.family(family).put(key, value).map_err(|e| e.to_string());
        let taken = next.and_then(|next| lines.next(&next).map_or(Ok(()), put));
        let full = batch.len() >= BATCH_ENTRIES || batch.byte_len() >= BATCH_BYTES;
        if full || (!more || taken.is_err()) && !batch.is_empty() {
            let count = batch.len() as u64;
            db.write(&batch).map_err(|e| lines.counts.stopped(&e))?;
            lines.counts.written += count;
            progress.set_position(lines.counts.entries);
        }
        taken.map_err(|e| {
            lines.counts.lines += unread;
            lines.counts.stopped(&e)
        })?;
        if !more {
            progress.finish_and_clear();
            return Ok(());
        }
    }
}

/// A line on standard error, if that is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} entries, {per_sec}, {elapsed}") {
        bar.set_style(style);
    }
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::LdbCli;
    use clap::Parser;

    fn read(flags: &str, tsv: bool, text: &str) -> (Vec<(String, String)>, Counts) {
        let arguments = LdbCli::try_parse_from(["ldb", "D", flags, "info"]).unwrap().db;
        let target = Target { directory: "D".into(), common: arguments.common };
        let mut lines =
            Lines { target: &target, separator: tsv.then_some(Separator::Tab), counts: Counts::default() };
        let word = |bytes| String::from_utf8(bytes).unwrap();
        let entries: Vec<_> = text
            .lines()
            .filter_map(|l| lines.next(&Next::Line(l.as_bytes())))
            .map(|(k, v)| (word(k), word(v)))
            .collect();
        (entries, lines.counts)
    }

    #[test]
    fn the_first_separator_seen_decides() {
        let (entries, counts) = read("--column_family=default", false, "nothing\na\t1\nb ==> 2\nc\t ==> 3\n");
        assert_eq!(entries, [("a".into(), "1".into()), ("c".into(), " ==> 3".into())]);
        assert_eq!(counts, Counts { lines: 4, entries: 2, written: 0, bytes: 9, bad: 2, first_bad: 1 });
        let (entries, _) = read("--column_family=default", false, "a\tb ==> 1\n");
        assert_eq!(entries, [("a\tb".into(), "1".into())]);
        let (entries, _) = read("--column_family=default", true, "a ==> b\t1\n");
        assert_eq!(entries, [("a ==> b".into(), "1".into())]);
    }

    #[test]
    fn what_dump_prints_is_no_mistake() {
        let (entries, counts) = read("--hex", false, "0x61 ==> 0x62\nKeys in range: 1\n");
        assert_eq!((entries, counts.bad), (vec![("a".into(), "b".into())], 0));
    }
}
