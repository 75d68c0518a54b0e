//! The directories of a database that its OPTIONS files and RocksDB's info log name.

use super::given::Purpose;
use super::info_log;
use super::namespace::whole;
use ashlar_base::{ErrorKind, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_options::{StoredPlaces, read_options_file, stored_places, unfinished_options};
use std::path::Path;

/// The directories that the newest readable OPTIONS file names. Without such a file, the `wal_dir` that RocksDB wrote
/// into its info log. `None`: there is neither.
///
/// # Errors
/// `Io`: OPTIONS files exist, and none can be read. A repair ignores that.
pub(super) fn newest_places(
    fs: &dyn Fs,
    dir: &Path,
    purpose: Purpose,
    notes: &mut Vec<String>,
) -> Result<Option<StoredPlaces>> {
    let entries = fs.files(dir)?;
    let kinds = || entries.iter().filter_map(|entry| FileKind::parse(&entry.name));
    let mut numbers: Vec<FileNumber> = kinds()
        .filter_map(|kind| match kind {
            FileKind::Options(number) => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    let newest = numbers.last().copied().unwrap_or_default();
    let (mut places, mut failed) = (None, None);
    for number in numbers.into_iter().rev() {
        let name = FileKind::Options(number).name();
        match read_options_file(fs, &dir.join(&name)) {
            Ok(file) => {
                places = Some(stored_places(&file));
                break;
            }
            // Another process may have replaced the file. The open reports a damaged file.
            Err(e) if e.is_corruption() || e.is_not_found() => {}
            Err(e) => {
                notes.push(format!("{name}, which may name directories of the database, was not read: {e}"));
                failed = failed.or(Some(e));
            }
        }
    }
    match failed {
        Some(e) if places.is_none() && purpose != Purpose::Repair => Err(e),
        _ => {
            let unfinished = unfinished_options(kinds().filter(|kind| is_behind(kind, newest)));
            match with_unfinished(fs, dir, places, unfinished, purpose)? {
                Some(places) => Ok(Some(places)),
                None => {
                    let newest = info_log::heads(fs, dir)?.next();
                    Ok(newest
                        .map(|head| StoredPlaces { next_wal_dir: head.wal_dir, ..StoredPlaces::default() }))
                }
            }
        }
    }
}

/// Whether an unfinished file was begun after the OPTIONS file `newest`.
fn is_behind(kind: &FileKind, newest: FileNumber) -> bool {
    matches!(kind, FileKind::OptionsTemp(number) if *number > newest)
}

/// Adds the `wal_dir` of an unfinished OPTIONS file. Without another OPTIONS file all its directories count.
///
/// # Errors
/// `Io`: the file cannot be read. A repair ignores that.
fn with_unfinished(
    fs: &dyn Fs,
    dir: &Path,
    places: Option<StoredPlaces>,
    unfinished: Option<FileKind>,
    purpose: Purpose,
) -> Result<Option<StoredPlaces>> {
    let Some(kind) = unfinished else { return Ok(places) };
    let more = match read_options_file(fs, &dir.join(kind.name())) {
        Ok(file) => stored_places(&file),
        // A writer has finished the file meanwhile.
        Err(e) if e.is_not_found() => return Ok(places),
        Err(e) if matches!(e.kind(), ErrorKind::Io(_)) && purpose != Purpose::Repair => return Err(e),
        // Damaged, or a link: RocksDB left no such file.
        Err(_) => return Ok(places),
    };
    let Some(mut places) = places else { return Ok(Some(more)) };
    places.next_wal_dir = places.next_wal_dir.or(more.wal_dir);
    Ok(Some(places))
}

/// Whether the newest OPTIONS file of the database in `dir` names `place` as a directory of its files.
///
/// # Errors
/// `Io`.
pub(super) fn names(fs: &dyn Fs, dir: &Path, place: &Path) -> Result<bool> {
    let stored = newest_places(fs, dir, Purpose::Read, &mut Vec::new())?.unwrap_or_default();
    let tables = stored.db_paths.iter().chain(stored.cf_paths.values().flatten()).map(|path| &*path.path);
    Ok(tables.chain(stored.wal_dirs()).any(|named| whole(named) == whole(place)))
}
