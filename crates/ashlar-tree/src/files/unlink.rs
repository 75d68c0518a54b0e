//! Removes obsolete files, moves WAL files to the archive if there is one, and unknown files to `lost/`. No other code unlinks
//! tables, WAL files and MANIFESTs.
//!
//! A file with the name of a WAL file that does not begin as one is not a database file: it moves to `lost/`.

use super::LOST;
use super::archive::Archive;
use super::obsolete::{Action, Live, Obsolete, find_obsolete};
use crate::version::VersionSet;
use ashlar_base::{Error, Result};
use ashlar_env::{EntryKind, Fs, FsEntry, ReadFile};
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::{BLOCK_SIZE, Fault, has_its_checksum, parse_physical};
use std::path::Path;

/// The result of removing a list of obsolete files.
#[derive(Debug, Default)]
pub struct Unlinked {
    /// Names that were removed.
    pub removed: Vec<String>,
    /// Names of WAL files that moved to the archive.
    pub archived: Vec<String>,
    /// Names of files that moved to `lost/`.
    pub lost: Vec<String>,
    /// Bytes of the database's files that are still in the directory, without those that are being written. `None`: the
    /// directory was not listed.
    pub stays: Option<u64>,
    /// Failures. The files are still there, and the next open finds them again.
    pub failed: Vec<Error>,
}

/// Removes every obsolete file of the directory that is not in `live`; spared files move to `lost/`, WAL files to the archive
/// if there is one. Removes nothing while it is unknown which MANIFEST a crash would leave.
///
/// # Errors
/// `Io`: a file could not be removed or moved; it is found again by the next call.
pub fn remove_obsolete(
    fs: &dyn Fs,
    dir: &Path,
    versions: &VersionSet,
    live: &Live,
    archive: Option<&Archive>,
) -> Result<Unlinked> {
    if !versions.may_unlink() {
        return Ok(Unlinked::default());
    }
    let entries = fs.files(dir)?;
    let obsolete = find_obsolete(entries.iter().map(|e| e.name.as_str()), live);
    let stays = Some(bytes_that_stay(&entries, &obsolete, live));
    let goes_to_archive = |file: &Obsolete| {
        archive.is_some() && matches!((file.kind, file.action), (FileKind::Wal(_), Action::Remove))
    };
    let (wals, others): (Vec<_>, Vec<_>) = obsolete.into_iter().partition(goes_to_archive);
    let mut done = unlink(fs, dir, &others);
    if let Some(archive) = archive {
        archive_all(fs, dir, &wals, archive, &mut done);
    }
    match done.failed.pop() {
        Some(e) => Err(e),
        None => Ok(Unlinked { stays, ..done }),
    }
}

/// The bytes of all files of a database in its directory; 0 if the directory cannot be listed.
pub fn bytes_of_database(fs: &dyn Fs, dir: &Path) -> u64 {
    let files = fs.files(dir).unwrap_or_default();
    files
        .iter()
        .filter(|file| FileKind::parse_exact(&file.name).is_some())
        .map(|file| file.len)
        .fold(0, u64::saturating_add)
}

/// The bytes of the files that are neither obsolete nor being written. `entries` is sorted, and `obsolete` is a part of it.
fn bytes_that_stay(entries: &[FsEntry], obsolete: &[Obsolete], live: &Live) -> u64 {
    let mut obsolete = obsolete.iter().map(|file| file.name.as_str()).peekable();
    let counts = |entry: &&FsEntry| {
        let goes = obsolete.next_if(|name| *name == entry.name).is_some();
        !goes && FileKind::parse_exact(&entry.name).is_some_and(|kind| !live.is_begun(kind))
    };
    entries.iter().filter(counts).map(|entry| entry.len).fold(0, u64::saturating_add)
}

/// Moves WAL files to the archive. One that is a link, or does not begin as a WAL file, is handled as [`unlink`] does.
fn archive_all(fs: &dyn Fs, dir: &Path, wals: &[Obsolete], archive: &Archive, done: &mut Unlinked) {
    for wal in wals {
        let path = dir.join(&wal.name);
        let is_wal = || Ok(!is_link(fs, &path)? && begins_as_log(&*fs.open_read(&path)?)?);
        let moved = match is_wal() {
            Ok(true) => archive.take(fs, &path, &wal.name).map(|()| done.archived.push(wal.name.clone())),
            Ok(false) => {
                let Unlinked { removed, lost, failed, .. } = unlink(fs, dir, std::slice::from_ref(wal));
                done.removed.extend(removed);
                done.lost.extend(lost);
                failed.into_iter().next().map_or(Ok(()), Err)
            }
            Err(e) => Err(e),
        };
        match moved {
            Err(e) if !e.is_not_found() => done.failed.push(e),
            _ => {}
        }
    }
}

/// Removes or moves each file of the list; a failure does not keep the others. A file that is gone already counts as
/// removed. No fsync: an unlink that a crash undoes is found again.
///
/// # Cost
/// One system call per file, and two directory fsyncs if a file moves. Call it from a background job.
pub fn unlink(fs: &dyn Fs, dir: &Path, files: &[Obsolete]) -> Unlinked {
    let mut done = Unlinked::default();
    if files.iter().any(|f| f.action == Action::Lose)
        && let Err(e) = fs.create_dir_all(&dir.join(LOST))
    {
        done.failed.push(e);
        return done;
    }
    for file in files {
        match file.action {
            Action::Remove => match remove(fs, dir, file) {
                Ok(None) => done.removed.push(file.name.clone()),
                Ok(Some(name)) => done.lost.push(name),
                Err(e) if e.is_not_found() => done.removed.push(file.name.clone()),
                Err(e) => done.failed.push(e),
            },
            Action::Lose => match lose(fs, dir, &file.name) {
                Ok(name) => done.lost.push(name),
                Err(e) => done.failed.push(e),
            },
        }
    }
    if !done.lost.is_empty() {
        done.failed.extend([dir.join(LOST), dir.to_path_buf()].iter().filter_map(|d| fs.sync_dir(d).err()));
    }
    done
}

/// Removes a file. If the file has the name of a WAL file and is not one, moves it to `lost/` and returns its name
/// there.
fn remove(fs: &dyn Fs, dir: &Path, file: &Obsolete) -> Result<Option<String>> {
    let path = dir.join(&file.name);
    if matches!(file.kind, FileKind::Wal(_))
        && !is_link(fs, &path)?
        && !begins_as_log(&*fs.open_read(&path)?)?
    {
        fs.create_dir_all(&dir.join(LOST))?;
        return lose(fs, dir, &file.name).map(Some);
    }
    fs.remove(&path).map(|()| None)
}

/// Removes a symbolic link, and leaves its target.
fn is_link(fs: &dyn Fs, path: &Path) -> Result<bool> {
    Ok(fs.metadata(path)?.is_some_and(|entry| entry.kind == EntryKind::Other))
}

/// Whether a file begins with a whole record, or is empty, as every WAL file is from its first write on.
pub(super) fn begins_as_log(file: &dyn ReadFile) -> Result<bool> {
    let (mut block, mut got) = (vec![0; BLOCK_SIZE], 0);
    while let Some(rest) = block.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, got as u64)? {
            0 => break,
            read => got += read,
        }
    }
    let block = block.get(..got).unwrap_or_default();
    Ok(match parse_physical(block, 0, false) {
        Ok(_) => true,
        Err(Fault::OldRecord { len }) => block.get(..len).is_some_and(has_its_checksum),
        Err(_) => block.iter().all(|byte| *byte == 0),
    })
}

/// Moves a file to `lost/` under a free name, and returns that name.
fn lose(fs: &dyn Fs, dir: &Path, name: &str) -> Result<String> {
    let mut free = name.to_string();
    let mut copies = 0u32;
    while fs.metadata(&dir.join(LOST).join(&free))?.is_some() {
        copies += 1;
        free = format!("{name}.{copies}");
    }
    fs.rename(&dir.join(name), &dir.join(LOST).join(&free))?;
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::super::{Live, Spared, find_obsolete};
    use super::*;
    use ashlar_env::Env;

    #[test]
    fn orphans_move_and_the_rest_goes() {
        let env = Env::mem();
        let dir = Path::new("/db");
        env.fs.create_dir_all(&dir.join("lost")).unwrap();
        for name in ["000009.sst", "lost/000009.sst", "000003.log", "notes"] {
            let bytes = if name.ends_with(".log") { &[] } else { name.as_bytes() };
            env.fs.create(&dir.join(name)).unwrap().write_at(bytes, 0).unwrap();
        }
        let live = Live { min_wal: ashlar_base::FileNumber(4), spared: Spared::Orphans, ..Live::default() };
        let list = find_obsolete(["000009.sst", "000003.log", "000002.log", "notes"], &live);
        let done = unlink(&*env.fs, dir, &list);
        assert_eq!(done.removed, ["000003.log", "000002.log"], "a file that is gone already counts");
        assert_eq!(done.lost, ["000009.sst.1"], "nothing in lost/ is overwritten");
        assert!(done.failed.is_empty(), "{:?}", done.failed);
        let names = |d: &Path| env.fs.list(d).unwrap().into_iter().map(|e| e.name).collect::<Vec<_>>();
        assert_eq!(names(dir), ["lost", "notes"]);
        assert_eq!(names(&dir.join("lost")), ["000009.sst", "000009.sst.1"]);
    }
}
