//! The backups of a directory, as their meta files describe them, and which of them cannot be used.
//!
//! 1. A backup counts when its meta file is whole and each file that it names exists with the right length.
//! 2. A backup that does not count is listed with the reason. It changes nothing for the others.
//! 3. Names from a meta file lead to files of the backup directory only, and are restored under names of database files only.

use super::BackupInfo;
use ashlar_base::{Error, Result, SeqNum};
use ashlar_env::{EntryKind, Fs, FsEntry};
use ashlar_format::Unreadable;
use ashlar_format::backup_meta::{BackupFile, BackupMeta, SharedName};
use ashlar_format::filename::FileKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) const META: &str = "meta";
pub(super) const PRIVATE: &str = "private";
/// Files shared under their own names: older backups of RocksDB.
pub(super) const SHARED: &str = "shared";
pub(super) const SHARED_CHECKSUM: &str = "shared_checksum";

/// The longest meta file that is read.
const META_MAX: u64 = 1 << 28;

/// A file of a backup.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// Relative to the backup directory.
    pub(super) path: String,
    /// The file of the database that it becomes.
    pub(super) kind: FileKind,
    pub(super) checksum: Option<u32>,
    pub(super) bytes: u64,
}

/// A usable backup.
#[derive(Clone, Debug)]
pub(super) struct Backup {
    pub(super) info: BackupInfo,
    pub(super) files: Vec<Stored>,
}

/// All backups of a directory by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalog {
    pub(super) backups: BTreeMap<u32, Backup>,
    pub(super) corrupt: BTreeMap<u32, Error>,
}

impl Catalog {
    /// Reads all meta files.
    ///
    /// # Errors
    /// `Io`: a folder cannot be listed.
    pub(super) fn load(fs: &dyn Fs, dir: &Path) -> Result<Catalog> {
        let mut sizes = BTreeMap::new();
        for folder in [SHARED, SHARED_CHECKSUM] {
            add_sizes(fs, dir, folder, &mut sizes)?;
        }
        let mut catalog = Catalog::default();
        for entry in list(fs, &dir.join(META))? {
            let Some(id) = id_of(&entry.name) else { continue };
            let mut own = BTreeMap::new();
            let read = add_sizes(fs, dir, &format!("{PRIVATE}/{id}"), &mut own)
                .and_then(|()| read_backup(fs, dir, id, |path| own.get(path).or(sizes.get(path)).copied()));
            match read {
                Ok(backup) => drop(catalog.backups.insert(id, backup)),
                Err(e) => drop(catalog.corrupt.insert(id, e)),
            }
        }
        Ok(catalog)
    }

    /// The id of the next backup: no present backup has it or a higher one.
    ///
    /// # Errors
    /// `InvalidArgument`: the ids are used up.
    pub(super) fn next_id(&self) -> Result<u32> {
        let newest = self.backups.keys().chain(self.corrupt.keys()).max().copied().unwrap_or(0);
        newest.checked_add(1).ok_or_else(|| Error::invalid("the ids of backups are used up"))
    }

    /// The paths of all files that usable backups have.
    pub(super) fn paths(&self) -> BTreeSet<&str> {
        self.backups.values().flat_map(|backup| &backup.files).map(|file| file.path.as_str()).collect()
    }
}

/// The entries of a folder that need not exist.
pub(super) fn list(fs: &dyn Fs, folder: &Path) -> Result<Vec<FsEntry>> {
    match fs.list(folder) {
        Err(e) if e.is_not_found() => Ok(Vec::new()),
        listed => listed,
    }
}

fn add_sizes(fs: &dyn Fs, dir: &Path, folder: &str, sizes: &mut BTreeMap<String, u64>) -> Result<()> {
    let files = list(fs, &dir.join(folder))?.into_iter().filter(|entry| entry.kind == EntryKind::File);
    sizes.extend(files.map(|entry| (format!("{folder}/{}", entry.name), entry.len)));
    Ok(())
}

/// The id that a name of a meta file or a private folder stands for.
pub(super) fn id_of(name: &str) -> Option<u32> {
    name.parse().ok().filter(|id: &u32| *id > 0 && id.to_string() == name)
}

fn read_backup(fs: &dyn Fs, dir: &Path, id: u32, size: impl Fn(&str) -> Option<u64>) -> Result<Backup> {
    let path = dir.join(META).join(id.to_string());
    let text = read_text(fs, &path)?;
    let meta = BackupMeta::parse(&text).map_err(|e| misread(e, &text, &path))?;
    let at_file = |file: &BackupFile, what: &str| {
        let named = |line: &str| line.split(' ').next() == Some(file.path.as_str());
        let line = text.lines().position(named).map_or(0, |index| index + 1);
        Error::corruption(format!("backup {id}, line {line} of its meta file: {what}: {}", file.path))
            .at_path(&path)
    };
    let sequence = SeqNum::new(meta.sequence).ok_or_else(|| {
        let what = format!("backup {id}, meta file: {} is no sequence number", meta.sequence);
        Error::corruption(what).at_path(&path)
    })?;
    let (mut files, mut kinds) = (Vec::new(), BTreeSet::new());
    for file in &meta.files {
        if file.excluded {
            return Err(Error::not_supported("a backup with files that are kept elsewhere").at_path(&path));
        }
        let kind = restored_kind(id, file).ok_or_else(|| at_file(file, "not a file of a backup"))?;
        if !kinds.insert(kind) {
            return Err(at_file(file, "a second file for the same file of the database"));
        }
        let bytes = size(&file.path).ok_or_else(|| at_file(file, "the file is missing"))?;
        if expected_bytes(file).is_some_and(|expected| expected != bytes) {
            return Err(at_file(file, &format!("the file has a wrong length, {bytes} bytes")));
        }
        files.push(Stored { path: file.path.clone(), kind, checksum: file.checksum, bytes });
    }
    let has_manifest = kinds.iter().any(|kind| matches!(kind, FileKind::Manifest(_)));
    if !kinds.contains(&FileKind::Current) || !has_manifest {
        let what = format!("backup {id}, meta file: it names no CURRENT or no MANIFEST");
        return Err(Error::corruption(what).at_path(&path));
    }
    let info = BackupInfo {
        id,
        unix_seconds: meta.timestamp,
        sequence,
        bytes: files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes)),
        files: files.len(),
        metadata: meta.app_metadata,
    };
    Ok(Backup { info, files })
}

fn read_text(fs: &dyn Fs, path: &Path) -> Result<String> {
    let file = fs.open_read(path)?;
    if file.len() > META_MAX {
        return Err(Error::corruption(format!("backup meta file of {} bytes", file.len())).at_path(path));
    }
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0)?;
    String::from_utf8(bytes).map_err(|e| {
        let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::corruption(format!("backup meta file, line {line}: not text")).at(path, before.len() as u64)
    })
}

fn misread(e: Unreadable, text: &str, path: &Path) -> Error {
    let Unreadable::Malformed(wrong) = e else { return e.in_file(path, 0) };
    let before = text.as_bytes().get(..wrong.at).unwrap_or(text.as_bytes());
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let what = format!("backup meta file, line {line}: {}: {}", wrong.field, wrong.what);
    Error::corruption(what).at(path, wrong.at as u64)
}

/// The file of the database that a file of backup `id` becomes. `None`: it is in another folder, or not a file of a database.
fn restored_kind(id: u32, file: &BackupFile) -> Option<FileKind> {
    let (folder, name) = file.path.rsplit_once('/')?;
    let name = match folder {
        SHARED_CHECKSUM => SharedName::original(name)?,
        SHARED => name.to_owned(),
        _ if folder.strip_prefix(PRIVATE)?.strip_prefix('/')? == id.to_string() => name.to_owned(),
        _ => return None,
    };
    let kind = FileKind::parse_exact(&name)?;
    let is_shared = matches!(kind, FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_));
    let is_private =
        matches!(kind, FileKind::Wal(_) | FileKind::Manifest(_) | FileKind::Current | FileKind::Options(_));
    (is_shared || is_private && folder.starts_with(PRIVATE)).then_some(kind)
}

/// The length that the meta file or the name says.
fn expected_bytes(file: &BackupFile) -> Option<u64> {
    let name = file.path.strip_prefix(SHARED_CHECKSUM).and_then(|name| name.strip_prefix('/'));
    file.size.or_else(|| match SharedName::parse(name?)? {
        SharedName::Session { size, .. } => size,
        SharedName::Checksum { size, .. } => Some(size),
    })
}
