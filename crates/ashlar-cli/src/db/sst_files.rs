//! write_extern_sst: lines from standard input into an SST file; ingest_extern_sst: such files into the database.
//!
//! A file is written whole or not at all: a line that is no entry, or is not in the order of the family, ends the command.

use super::Target;
use super::lines::{Limits, LineReader, Next};
use super::load::Lines;
use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::{Outcome, answer};
use ashlardb::{IngestMode, IngestOptions};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

/// Writes the lines, which come in the order of the family, to the file.
pub(super) fn write(
    target: &Target,
    path: &Path,
    tsv: bool,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Done {
    let creates = target.common.create_if_missing;
    let db = if creates { target.open_to_write()? } else { target.open_to_read()? };
    let family = target.family(&db)?;
    let mut writer = family.sst_writer(path)?;
    let mut lines = Lines::new(target, tsv);
    let mut reader = LineReader::new(input, Limits::default());
    loop {
        let next = reader.next().map_err(|e| stopped(&lines, &e))?;
        if next == Next::End {
            break;
        }
        if let Some((key, value)) = lines.next(&next) {
            writer.put(key, value).map_err(|e| stopped(&lines, &e.to_string()))?;
        }
        lines.counts.whole("Correct them; no file was written")?;
    }
    let written = writer.finish()?;
    db.close()?;
    let line = format!(
        "OK: {} has {} in {} bytes\n",
        path.display(),
        counted_entries(written.entries),
        written.size
    );
    answer(out, &line, "the file was written")
}

fn stopped(lines: &Lines<'_>, e: &str) -> Outcome {
    Outcome::Failed(format!("line {}: {e}. No file was written", lines.counts.lines))
}

fn counted_entries(entries: u64) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}

/// The options of an ingestion, by ldb's flags.
pub(super) fn options(move_files: bool, behind: bool, flush: bool) -> IngestOptions {
    let mode = if move_files { IngestMode::Move } else { IngestMode::Copy };
    IngestOptions::new().mode(mode).behind(behind).flush(flush)
}

/// Takes the files into the family, all or none.
pub(super) fn ingest(
    target: &Target,
    files: &[PathBuf],
    options: IngestOptions,
    out: &mut dyn Write,
) -> Done {
    let db = target.open_to_write()?;
    let family = target.family(&db)?;
    let done = family.ingest(files, options)?;
    let mut text = String::new();
    for file in &done {
        let (table, level, entries) = (file.number, file.level, counted_entries(file.entries));
        text.push_str(&format!("{}: table {table} in {level}, {entries}", file.source.display()));
        if let Some(e) = &file.source_kept {
            text.push_str(&format!("; the file is still there: {e}"));
        }
        text.push('\n');
    }
    db.close()?;
    text.push_str(&format!("OK: {} ingested\n", counted(done.len() as u64, "file")));
    answer(out, &text, "the files were ingested")
}
