//! `ashlar manifest`: explains a MANIFEST record by record, then the resulting state.
//!
//! | file | subject |
//! |---|---|
//! | `words` | an edit as lines |
//! | `summary` | the state after all edits: families, tables per level |
//! | `checksums` | the checksums of files in that state, as ldb's file_checksum_dump prints them |
//! | `dump` | that state as ldb's manifest_dump prints it |
//!
//! 1. All records before damage are shown and summed up. Damage is reported with offset and cause, and the exit status is
//!    1. A torn last record counts as damage here, though every other reader drops it silently.
//! 2. The command reads no other file, takes no lock and changes nothing.

mod checksums;
mod dump;
mod summary;
mod words;

pub(crate) use checksums::checksums;

use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::Outcome;
use ashlar_base::{Error, FileNumber};
use ashlar_env::{EntryKind, Env, Fs, ReadFile};
use ashlar_format::filename::{FileKind, parse_current};
use ashlar_format::version_edit::VersionEdit;
use ashlar_log::{LogEnd, LogReader, LogRecordKind, RecoveryMode};
use clap::Args;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  ashlar manifest DB                      the MANIFEST that CURRENT names
  ashlar manifest DB/MANIFEST-000005 --hex

Exit status: 0 shown, 1 damaged or not there, 2 wrong command line.";

/// Explains every record of a MANIFEST, and the resulting state
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManifestArguments {
    /// A MANIFEST, or the directory of a database
    #[arg(value_name = "FILE|DIRECTORY")]
    path: PathBuf,
    /// Keys as hexadecimal digits
    #[arg(long)]
    hex: bool,
}

/// Runs `ashlar manifest`.
pub(crate) fn run(arguments: &ManifestArguments) -> Done {
    let env = Env::os()?;
    let path = find(&*env.fs, &arguments.path)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let shown = show(&*env.fs, &path, arguments.hex, &mut out);
    out.flush()?;
    shown
}

/// The given file, or the file that `CURRENT` in the given directory names.
fn find(fs: &dyn Fs, path: &Path) -> Result<PathBuf, Outcome> {
    match fs.metadata(path)? {
        Some(entry) if entry.kind == EntryKind::Dir => {}
        _ => return check_kind(path).map(|()| path.to_path_buf()),
    }
    let current = path.join(FileKind::Current.name());
    let file = match fs.open_read(&current) {
        Err(e) if e.is_not_found() => {
            return Err(Error::invalid("there is no database (no CURRENT file)").at_path(path).into());
        }
        other => other?,
    };
    let mut content = vec![0; usize::try_from(file.len().min(256)).unwrap_or(0)];
    file.read_exact_at(&mut content, 0)?;
    let number = parse_current(&content).map_err(|e| e.in_file(&current, 0))?;
    Ok(path.join(FileKind::Manifest(number).name()))
}

/// Refuses a path whose name is that of another kind of file. A MANIFEST under any other name is read.
fn check_kind(path: &Path) -> Result<(), Outcome> {
    let instead = match path.file_name().and_then(|name| FileKind::parse(name.to_str()?)) {
        Some(FileKind::Wal(_)) => "It is a WAL file: `ashlar wal` explains it",
        Some(FileKind::Table(_)) => "It is a table: `ashlar sst` explains it",
        Some(FileKind::Current) => "It names the MANIFEST: give the directory",
        Some(FileKind::Options(_)) => "It is an OPTIONS file: `ashlar options` explains it",
        _ => return Ok(()),
    };
    Err(Error::invalid("the file is not a MANIFEST").at_path(path).hint(instead).into())
}

fn show(fs: &dyn Fs, path: &Path, hex: bool, out: &mut dyn Write) -> Done {
    let file = fs.open_read(path)?;
    writeln!(out, "{}: {}", path.display(), counted(file.len(), "byte"))?;
    let (summary, damage) = read(file, |head, edit| {
        writeln!(out, "\n{head}")?;
        let Some(edit) = edit else { return Ok(()) };
        let lines = words::of(edit, hex);
        let empty = lines.is_empty().then(|| "changes nothing".to_owned());
        lines.into_iter().chain(empty).try_for_each(|line| writeln!(out, "  {line}"))
    })?;
    write!(out, "\n{summary}")?;
    damage.map_or(Ok(()), |e| Err(e.into()))
}

/// Prints the state after the MANIFEST in ldb's form. `path`: the file, or a directory with one MANIFEST.
pub(crate) fn dump(path: &Path, hex: bool, out: &mut dyn Write) -> Done {
    let env = Env::os()?;
    let path = if path.is_dir() { the_only(&*env.fs, path)? } else { path.to_path_buf() };
    let (summary, damage) = read(env.fs.open_read(&path)?, |_, _| Ok(()))?;
    summary.dump(hex, out)?;
    damage.map_or(Ok(()), |e| Err(e.into()))
}

/// The MANIFEST of a directory that has one.
fn the_only(fs: &dyn Fs, dir: &Path) -> Result<PathBuf, Outcome> {
    let is_manifest = |name: &String| matches!(FileKind::parse(name), Some(FileKind::Manifest(_)));
    let names: Vec<String> = fs.files(dir)?.into_iter().map(|entry| entry.name).filter(is_manifest).collect();
    match &names[..] {
        [name] => Ok(dir.join(name)),
        [] => Err(Outcome::Failed(format!("{}: there is no MANIFEST", dir.display()))),
        _ => Err(Outcome::Failed(format!(
            "{}: there are {} MANIFEST files; choose one with --path",
            dir.display(),
            names.len()
        ))),
    }
}

/// Reads all records up to damage. Calls `see` with the line of each record, and its edit if it has one.
fn read(
    file: Arc<dyn ReadFile>,
    mut see: impl FnMut(&str, Option<&VersionEdit>) -> io::Result<()>,
) -> Result<(Summary, Option<Error>), Outcome> {
    // The number in the name does not matter: no MANIFEST has recyclable records.
    let mut reader = LogReader::open(file, FileNumber(0), RecoveryMode::TolerateTail);
    let path = reader.path().to_path_buf();
    let mut summary = Summary::default();
    let mut damage = None;
    while let Some(record) = reader.next()? {
        let offset = record.offset;
        let bytes = counted(record.payload.len() as u64, "byte");
        summary.records += 1;
        let head = format!("record {} at {offset}, {bytes}", summary.records);
        if record.kind != LogRecordKind::Data {
            see(&head, None)?;
            damage = Some(Error::corruption("a record type that no MANIFEST has").at(&path, offset));
            break;
        }
        match VersionEdit::decode(record.payload) {
            Ok(edit) => {
                see(&head, Some(&edit))?;
                summary.take(&edit);
            }
            Err(e) => {
                see(&head, None)?;
                damage = Some(Error::corruption(format!("{e} of the version edit")).at(&path, offset));
                break;
            }
        }
    }
    let damage = damage.or_else(|| reader.cut_error()).or_else(|| torn(&reader)).or_else(|| {
        let text = summary.unfinished()?;
        Some(Error::corruption(text).at_path(&path))
    });
    Ok((summary, damage))
}

fn torn(reader: &LogReader) -> Option<Error> {
    let LogEnd::Torn { offset, reason, dropped_bytes } = reader.end() else { return None };
    let text =
        format!("the last record is torn ({reason}); readers drop its {}", counted(dropped_bytes, "byte"));
    Some(Error::corruption(text).at(reader.path(), offset))
}
