//! Salvage: a repair into another directory; the damaged source stays byte for byte as it is.
//!
//! ```text
//! LOCK of the source -> tables and blob files linked, or copied -> logs, MANIFESTs, OPTIONS, IDENTITY copied
//!                    -> all of it durable -> CURRENT copied -> the repair of the copy
//! ```
//! 1. In the source no byte is changed, and no name is added or removed, except for a missing `LOCK`.
//! 2. A linked file belongs to both directories while both exist. That is safe because a finished table or blob file is
//!    never written again: the engine writes each once, under an unused number, and later only removes or renames it.
//!    Files that are rewritten or replaced (WAL files, MANIFESTs, `CURRENT`, OPTIONS, `IDENTITY`) are copied.
//! 3. `CURRENT` comes last: an interrupted salvage leaves a directory that does not open, or a complete copy with the
//!    damage of the source. Remove that directory and start again.
//! 4. Info logs and subdirectories of the source, `lost/` among them, are not copied.
//! 5. For a device with unreadable areas the caller can ask for copies of every file. Unreadable pages become zeros in
//!    the copy, which the repair treats like any damage and the report lists as losses. No data is given up by that:
//!    the source stays.

use super::{RepairReport, refuse_none, repair_in};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_engine::OpenFamily;
use ashlar_engine::for_repair::Settings;
use ashlar_env::{EntryKind, Env, FileLock, Fs};
use ashlar_format::filename::FileKind;
use ashlar_options::{DbOptions, FamilyOptions, LONGEST_FILE};
use ashlar_tree::check::{Damage, Risk, Verified};
use ashlar_tree::files::{
    DirState, check_named, copy_file, copy_options, copy_with, hold_directory, link_or_copy, make_directory,
    survey,
};
use ashlar_tree::places::{Purpose, enter};
use ashlar_tree::version::{SMALL, replay_manifest};
use std::path::Path;

/// The parameters of a salvage.
#[derive(Clone, Copy, Debug)]
pub struct Salvage<'a> {
    /// The source directory; it stays as it is. No handle or process may have it open.
    pub dir: &'a Path,
    /// The directory that the salvage creates.
    pub into: &'a Path,
    /// Copy every file, and replace unreadable pages by zeros, listed in the report. Otherwise a failed read ends the
    /// salvage, and tables and blob files are hard links where the file system can.
    pub around_unreadable: bool,
}

/// Builds a database that opens from the readable rest of a directory, as [`repair`](super::repair) does, but in another
/// directory. If the salvage fails, remove that directory.
///
/// # Errors
/// Those of [`repair`](super::repair). `InvalidArgument` too: `into` is not empty, or lies in `dir`.
/// # Cost
/// That of the repair, and a pass over all files that are copied.
pub fn salvage(
    env: Env,
    Salvage { dir, into, around_unreadable }: Salvage<'_>,
    options: DbOptions,
    families: Vec<OpenFamily>,
    others: FamilyOptions,
    progress: &mut dyn FnMut(&Verified),
) -> Result<RepairReport> {
    let env = hold_directory(&env, dir)?;
    let fs = &*env.fs;
    if fs.metadata(dir)?.is_none() {
        return Err(Error::invalid("there is no such directory").at_path(dir));
    }
    check_named(into)?;
    check_target(fs, dir, into)?;
    let settings = Settings::new(&options, families, others)?;
    refuse_none(&env, dir, &settings.places(&options))?;
    let _lock = lock(fs, dir)?;
    let entered = enter(&env, dir, &settings.places(&options), Purpose::Repair)?;
    if let Ok(DirState::Database(number)) = survey(fs, dir)
        && let Ok(replayed) = replay_manifest(fs, dir, number)
        && replayed.dropped.is_none()
    {
        entered.check_presence(&replayed)?;
    }
    let fs = &*entered.env.fs;
    make_directory(fs, into)?;
    let fs = fs.hold(into)?;
    let unread = bring_over(&*fs, dir, into, around_unreadable)?;
    let mut report = repair_in(env, into, (options, settings), Some(&entered), progress)?;
    report.losses.splice(0..0, unread);
    report.remarks.splice(0..0, entered.notes);
    Ok(report)
}

/// Takes the LOCK. On a read-only file system no process can write to the source, so no LOCK is taken.
fn lock(fs: &dyn Fs, dir: &Path) -> Result<Option<Box<dyn FileLock>>> {
    match fs.lock(&dir.join(FileKind::Lock.name())) {
        Ok(lock) => Ok(Some(lock)),
        Err(e) if e.kind() == ErrorKind::Io(IoKind::ReadOnly) => Ok(None),
        Err(e) => Err(e),
    }
}

fn check_target(fs: &dyn Fs, dir: &Path, into: &Path) -> Result<()> {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if whole(into).starts_with(whole(dir)) {
        let e = Error::invalid("the copy would lie inside the directory that is salvaged").at_path(into);
        return Err(e.hint("Name a directory elsewhere"));
    }
    match fs.metadata(into)? {
        None => Ok(()),
        Some(entry) if entry.kind == EntryKind::Dir && fs.list(into)?.is_empty() => Ok(()),
        Some(_) => Err(Error::invalid("there is something in the place of the copy")
            .at_path(into)
            .hint("Name another directory; or remove this one, if a salvage was interrupted there")),
    }
}

/// Makes `into` a durable copy of the database. Returns what could not be read.
fn bring_over(fs: &dyn Fs, dir: &Path, into: &Path, around: bool) -> Result<Vec<Damage>> {
    let (mut current, mut unread) = (None, Vec::new());
    let mut bring = |name: &str, kind: &FileKind| -> Result<()> {
        let (from, to) = (dir.join(name), into.join(name));
        let is_whole = matches!(kind, FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_));
        match (around, is_whole) {
            // OPTIONS files are copied without directories: otherwise an open of the copy would go to the source's
            // directories.
            _ if matches!(kind, FileKind::Options(_)) && copied_options(fs, &from, &to, around)? => {}
            (true, _) => {
                let lost = copy_around(fs, &from, &to, most_of(kind))?;
                unread.extend(lost.into_iter().map(|s| s.told(name, kind)));
            }
            (false, true) => drop(link_or_copy(fs, &from, &to)?),
            (false, false) => drop(copy_file(fs, &from, &to, most_of(kind))?),
        }
        Ok(())
    };
    for entry in fs.list(dir)?.into_iter().filter(|entry| entry.kind == EntryKind::File) {
        match FileKind::parse(&entry.name) {
            Some(FileKind::Current) => current = Some(entry.name),
            Some(
                kind @ (FileKind::Table(_)
                | FileKind::LevelDbTable(_)
                | FileKind::Blob(_)
                | FileKind::Wal(_)
                | FileKind::Manifest(_)
                | FileKind::Options(_)
                | FileKind::Identity),
            ) => bring(&entry.name, &kind)?,
            _ => {}
        }
    }
    fs.sync_dir(into)?;
    if let Some(name) = current {
        bring(&name, &FileKind::Current)?;
        fs.sync_dir(into)?;
    }
    Ok(unread)
}

/// Copies an OPTIONS file without the directories that it names. False: the file is damaged or unreadable, so that a
/// plain copy names no directories either.
fn copied_options(fs: &dyn Fs, from: &Path, to: &Path, around: bool) -> Result<bool> {
    match copy_options(fs, from, to) {
        Ok(()) => Ok(true),
        Err(e) if e.is_corruption() || around && e.kind() == ErrorKind::Io(IoKind::Other) => Ok(false),
        Err(e) => Err(e),
    }
}

/// The most bytes of a file that are copied: one more than its readers take, so that the copy of a file that is too large
/// for them is too large as well. A sparse file may be larger than the device.
fn most_of(kind: &FileKind) -> u64 {
    match kind {
        FileKind::Current | FileKind::Identity => SMALL + 1,
        FileKind::Options(_) => LONGEST_FILE + 1,
        _ => u64::MAX,
    }
}

/// [`copy_file`] that writes zeros where the device cannot be read. Missing permissions or file descriptors are errors.
fn copy_around(fs: &dyn Fs, from: &Path, to: &Path, most: u64) -> Result<Vec<Unread>> {
    let mut all: Vec<Unread> = Vec::new();
    copy_with(fs, (from, to), most, &mut |at, bytes, error| {
        match all.last_mut() {
            _ if error.kind() != ErrorKind::Io(IoKind::Other) => return Err(error),
            Some(last) if last.at + last.bytes == at => last.bytes += bytes,
            _ => all.push(Unread { at, bytes, error }),
        }
        Ok(())
    })?;
    Ok(all)
}

/// Bytes of a file that cannot be read; none: the whole file.
struct Unread {
    at: u64,
    bytes: u64,
    error: Error,
}

impl Unread {
    fn told(self, name: &str, kind: &FileKind) -> Damage {
        let cause = match self.bytes {
            0 => format!("cannot be opened: {}", self.error.message()),
            bytes => format!("{bytes} bytes cannot be read, zeros in the copy: {}", self.error.message()),
        };
        // The repair determines the risk for tables and blob files. Zeros at the end of a WAL file or MANIFEST leave no
        // other trace.
        let risk = match kind {
            FileKind::Wal(_) | FileKind::Manifest(_) => Risk::UnknownKeys,
            _ => Risk::Nothing,
        };
        Damage::new(name.to_owned(), Some(self.at), cause, risk)
    }
}
