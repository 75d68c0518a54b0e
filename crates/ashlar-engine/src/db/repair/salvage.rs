//! Salvage: a repair beside a damaged database, which stays as it is, byte for byte.
//!
//! ```text
//! LOCK of the source -> tables and blob files linked, or copied -> logs, MANIFESTs, OPTIONS, IDENTITY copied
//!                    -> all of it durable -> CURRENT copied -> the repair of the copy
//! ```
//! 1. In the source no byte is changed, and no name is made or taken away but a `LOCK` where there is none.
//! 2. A linked file belongs to both for as long as both are there. That is safe, for as long as the copy lives, because no
//!    table or blob file is ever written into once it is whole: the engine writes each of them once, under a number that
//!    no file of the directory has, and later only takes names away or moves them. What is written again or replaced
//!    (logs, MANIFESTs, `CURRENT`, OPTIONS, `IDENTITY`) is copied.
//! 3. `CURRENT` comes last: a salvage that is interrupted leaves what an open refuses, or a whole copy of the source, as
//!    damaged as that. Neither is of use: it is to be removed, and the salvage begun again.
//! 4. Info logs and directories below the source, `lost/` among them, are not brought along.
//! 5. From a device that cannot read all of it every file is copied, if that is asked for: what it does not read is zeros in
//!    the copy, page by page, which the repair finds like any damage, and a loss in the account. Nothing is given up by that:
//!    the source stays.

use super::{RepairReport, refuse_none, repair_in};
use crate::db::settings::Settings;
use crate::db::{Db, OpenFamily};
use crate::open::{DirState, Purpose, enter, make_directory, survey};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::{EntryKind, Env, FileLock, Fs};
use ashlar_format::filename::FileKind;
use ashlar_options::{DbOptions, FamilyOptions, forget_places, read_options_file};
use ashlar_tree::check::{Damage, Risk, Verified};
use ashlar_tree::files::{check_named, hold_directory};
use ashlar_tree::version::replay_manifest;
use std::path::Path;

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// Bytes given up at a time.
const PAGE: u64 = 4096;

/// What a salvage copies.
#[derive(Clone, Copy, Debug)]
pub struct Salvage<'a> {
    /// The directory that stays as it is; nobody may have it open.
    pub dir: &'a Path,
    /// The directory that is made.
    pub into: &'a Path,
    /// Every file is copied, and what cannot be read is zeros in the copy, and told. Otherwise a read that fails ends it, and
    /// tables and blob files are shared by hard links where the file system can.
    pub around_unreadable: bool,
}

impl Db {
    /// Makes a database that opens of what is left in a directory, as [`Db::repair`] does, but in another one. If it does not
    /// come to its end, that is to be removed.
    ///
    /// # Errors
    /// Those of [`Db::repair`]. `InvalidArgument` too: `into` holds something, or lies in `dir`.
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
        let mut report = repair_in(env, into, (options, settings), true, progress)?;
        report.losses.splice(0..0, unread);
        report.remarks.splice(0..0, entered.notes);
        Ok(report)
    }
}

/// Takes the LOCK. On a read-only file system there is none to be had, and nobody who could write.
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
        let e = Error::invalid("the copy would lie in the directory that is to stay as it is").at_path(into);
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

/// Makes `into` a copy of the database, durably. Returns what could not be read.
fn bring_over(fs: &dyn Fs, dir: &Path, into: &Path, around: bool) -> Result<Vec<Damage>> {
    let (mut current, mut unread) = (None, Vec::new());
    let mut bring = |name: &str, kind: &FileKind| -> Result<()> {
        let (from, to) = (dir.join(name), into.join(name));
        let is_whole = matches!(kind, FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_));
        match (around, is_whole) {
            // A copy of them that names the directories of the source would lead an open there.
            _ if matches!(kind, FileKind::Options(_)) && copy_options(fs, &from, &to, around)? => {}
            (true, _) => unread.extend(copy_around(fs, &from, &to)?.into_iter().map(|s| s.told(name, kind))),
            (false, true) => link_or_copy(fs, &from, &to)?,
            (false, false) => copy(fs, &from, &to)?,
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

/// Copies an OPTIONS file without the directories that it names, because the copy has all files in one. False: it is
/// damaged, or the device does not read it, so that its copy names no directories either.
fn copy_options(fs: &dyn Fs, from: &Path, to: &Path, around: bool) -> Result<bool> {
    let mut file = match read_options_file(fs, from) {
        Ok(file) => file,
        Err(e) if e.is_corruption() || around && e.kind() == ErrorKind::Io(IoKind::Other) => {
            return Ok(false);
        }
        Err(e) => return Err(e),
    };
    forget_places(&mut file);
    let copy = fs.create(to)?;
    copy.write_at(file.print().as_bytes(), 0)?;
    copy.sync_all()?;
    Ok(true)
}

fn link_or_copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    match fs.link(from, to) {
        Err(e) if e.kind() == ErrorKind::NotSupported => copy(fs, from, to),
        linked => linked,
    }
}

/// Copies a file; its bytes are durable then, its name is not.
fn copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    copy_with(fs, from, to, &mut |_, _, e| Err(e))
}

/// [`copy`] that leaves zeros where the device reads nothing. A lack of rights or of descriptors is no such thing.
fn copy_around(fs: &dyn Fs, from: &Path, to: &Path) -> Result<Vec<Unread>> {
    let mut all: Vec<Unread> = Vec::new();
    copy_with(fs, from, to, &mut |at, bytes, error| {
        match all.last_mut() {
            _ if error.kind() != ErrorKind::Io(IoKind::Other) => return Err(error),
            Some(last) if last.at + last.bytes == at => last.bytes += bytes,
            _ => all.push(Unread { at, bytes, error }),
        }
        Ok(())
    })?;
    Ok(all)
}

/// Copies a file; `unread` is asked whether zeros will do for a page, and told of a file that cannot be opened.
fn copy_with(
    fs: &dyn Fs,
    from: &Path,
    to: &Path,
    unread: &mut dyn FnMut(u64, u64, Error) -> Result<()>,
) -> Result<()> {
    let source = match fs.open_read(from) {
        Ok(source) => source,
        Err(e) => return unread(0, 0, e),
    };
    let (target, len) = (fs.create(to)?, source.len());
    let mut piece = vec![0; usize::try_from(len.clamp(1, PIECE)).unwrap_or(1)];
    let (mut at, mut step) = (0, PIECE);
    while at < len {
        let wanted = step.min(len - at);
        let Some(buffer) = usize::try_from(wanted).ok().and_then(|n| piece.get_mut(..n)) else { break };
        let read = match source.read_at(buffer, at) {
            // Page by page, up to where the next piece begins.
            Err(_) if step == PIECE => {
                step = PAGE;
                continue;
            }
            Err(e) => {
                unread(at, wanted, e)?;
                buffer.fill(0);
                buffer.len()
            }
            Ok(0) => break,
            Ok(read) => read,
        };
        target.write_at(buffer.get(..read).unwrap_or_default(), at)?;
        at += read as u64;
        if at.is_multiple_of(PIECE) {
            step = PIECE;
        }
    }
    target.sync_all()
}

/// Bytes of a file that cannot be read; none: all of it.
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
        // What it means for tables and blob files the repair finds. The end of a log leaves no trace.
        let risk = match kind {
            FileKind::Wal(_) | FileKind::Manifest(_) => Risk::UnknownKeys,
            _ => Risk::Nothing,
        };
        Damage { file: name.to_owned(), offset: Some(self.at), cause, family: None, risk }
    }
}
