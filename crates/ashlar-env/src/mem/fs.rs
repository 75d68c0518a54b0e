//! A tree of directories and files in memory.

use super::names_of;
use crate::{EntryKind, FileLock, Fs, FsEntry, ReadFile, WriteFile};
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_sync::{Mutex, Rank};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// A file system in memory. Clones share it; two values made by [`MemFs::new`] share nothing.
#[derive(Clone)]
pub struct MemFs {
    root: Arc<Mutex<Dir>>,
    /// The directories in which a file is locked, by name.
    locked: Locked,
}

type Locked = Arc<Mutex<BTreeSet<Vec<String>>>>;

type Dir = BTreeMap<String, Node>;

enum Node {
    Dir(Dir),
    File(Arc<Content>),
}

#[derive(Default)]
struct Content {
    // Taken alone or under the tree's lock, never the other way round.
    bytes: RwLock<Vec<u8>>,
}

impl Content {
    fn len(&self) -> u64 {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

impl fmt::Debug for MemFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemFs")
    }
}

impl Default for MemFs {
    fn default() -> Self {
        Self::new()
    }
}

#[track_caller]
fn refuse(action: &str, path: &Path, kind: io::ErrorKind) -> Error {
    Error::io(action, path, &io::Error::from(kind))
}

/// The directory that holds the last of `names`, and that name.
fn parent<'d, 'n>(
    root: &'d mut Dir,
    names: &'n [String],
    action: &str,
    path: &Path,
) -> Result<(&'d mut Dir, &'n str)> {
    let (last, above) =
        names.split_last().ok_or_else(|| Error::invalid("the root directory is no file").at_path(path))?;
    Ok((dir_at(root, above, action, path)?, last))
}

fn dir_at<'d>(mut dir: &'d mut Dir, names: &[String], action: &str, path: &Path) -> Result<&'d mut Dir> {
    for name in names {
        dir = match dir.get_mut(name) {
            Some(Node::Dir(d)) => d,
            Some(Node::File(_)) => return Err(refuse(action, path, io::ErrorKind::NotADirectory)),
            None => return Err(refuse(action, path, io::ErrorKind::NotFound)),
        };
    }
    Ok(dir)
}

fn entry(name: &str, node: &Node) -> FsEntry {
    match node {
        Node::Dir(_) => FsEntry { name: name.to_owned(), len: 0, kind: EntryKind::Dir },
        Node::File(c) => FsEntry { name: name.to_owned(), len: c.len(), kind: EntryKind::File },
    }
}

impl MemFs {
    /// An empty file system: a root directory.
    pub fn new() -> Self {
        let root = Arc::new(Mutex::new(Rank::Env, Dir::new()));
        MemFs { root, locked: Arc::new(Mutex::new(Rank::Env, BTreeSet::new())) }
    }

    fn find(&self, action: &str, path: &Path, create: bool) -> Result<Arc<Content>> {
        let names = names_of(path)?;
        let mut root = self.root.lock();
        let (dir, name) = parent(&mut root, &names, action, path)?;
        match dir.get(name) {
            Some(Node::File(c)) => Ok(Arc::clone(c)),
            Some(Node::Dir(_)) => Err(Error::invalid(format!("cannot {action} a directory")).at_path(path)),
            None if create => {
                let content = Arc::new(Content::default());
                dir.insert(name.to_owned(), Node::File(Arc::clone(&content)));
                Ok(content)
            }
            None => Err(refuse(action, path, io::ErrorKind::NotFound)),
        }
    }

    fn handle(&self, action: &str, path: &Path) -> Result<MemFile> {
        let content = self.find(action, path, false)?;
        let len = content.len();
        Ok(MemFile { content, path: path.to_path_buf(), len })
    }
}

impl Fs for MemFs {
    fn hold(&self, dir: &Path) -> Result<Arc<dyn Fs>> {
        dir_at(&mut self.root.lock(), &names_of(dir)?, "open the directory", dir)?;
        Ok(Arc::new(self.clone()))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(self.handle("open", path)?))
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        let names = names_of(path)?;
        let content = Arc::new(Content::default());
        let mut root = self.root.lock();
        let (dir, name) = parent(&mut root, &names, "create", path)?;
        if let Some(Node::Dir(_)) = dir.get(name) {
            return Err(Error::invalid("cannot create").at_path(path).because("it is a directory"));
        }
        dir.insert(name.to_owned(), Node::File(Arc::clone(&content)));
        Ok(Arc::new(MemFile { content, path: path.to_path_buf(), len: 0 }))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        Ok(Arc::new(self.handle("open for writing", path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (old, new) = (names_of(from)?, names_of(to)?);
        let mut root = self.root.lock();
        let (dir, name) = parent(&mut root, &old, "rename", from)?;
        let source = match dir.get(name) {
            Some(Node::Dir(_)) => None,
            Some(Node::File(file)) => Some(Arc::clone(file)),
            None => return Err(refuse("rename", from, io::ErrorKind::NotFound)),
        };
        if old == new {
            return Ok(());
        }
        if new.starts_with(&old) {
            return Err(refuse("rename", from, io::ErrorKind::InvalidInput));
        }
        let (dir, name) = parent(&mut root, &new, "rename", to)?;
        match (&source, dir.get(name)) {
            (Some(file), Some(Node::File(there))) if Arc::ptr_eq(file, there) => return Ok(()),
            (_, None) | (Some(_), Some(Node::File(_))) => {}
            (Some(_), Some(Node::Dir(_))) => return Err(refuse("rename", to, io::ErrorKind::IsADirectory)),
            (None, Some(Node::File(_))) => return Err(refuse("rename", to, io::ErrorKind::NotADirectory)),
            (None, Some(Node::Dir(d))) if d.is_empty() => {}
            (None, Some(Node::Dir(_))) => return Err(refuse("rename", to, io::ErrorKind::DirectoryNotEmpty)),
        }
        let (dir, name) = parent(&mut root, &old, "rename", from)?;
        let moved = dir.remove(name);
        let (dir, name) = parent(&mut root, &new, "rename", to)?;
        if let Some(node) = moved {
            dir.insert(name.to_owned(), node);
        }
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let content = self.find("link", from, false)?;
        let names = names_of(to)?;
        let mut root = self.root.lock();
        let (dir, name) = parent(&mut root, &names, "link", to)?;
        if dir.contains_key(name) {
            return Err(refuse("link", to, io::ErrorKind::AlreadyExists));
        }
        dir.insert(name.to_owned(), Node::File(content));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let names = names_of(path)?;
        let mut root = self.root.lock();
        let (dir, name) = parent(&mut root, &names, "remove", path)?;
        match dir.get(name) {
            Some(Node::File(_)) => {
                dir.remove(name);
                Ok(())
            }
            Some(Node::Dir(_)) => Err(refuse("remove", path, io::ErrorKind::IsADirectory)),
            None => Err(refuse("remove", path, io::ErrorKind::NotFound)),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        let names = names_of(dir)?;
        let mut root = self.root.lock();
        let found = dir_at(&mut root, &names, "list", dir)?;
        Ok(found.iter().map(|(name, node)| entry(name, node)).collect())
    }

    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        let names = names_of(path)?;
        let mut root = self.root.lock();
        let Some(last) = names.last() else {
            return Ok(Some(FsEntry { name: String::new(), len: 0, kind: EntryKind::Dir }));
        };
        match dir_at(&mut root, &names[..names.len() - 1], "stat", path) {
            Ok(dir) => Ok(dir.get(last).map(|node| entry(last, node))),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let names = names_of(path)?;
        let mut root = self.root.lock();
        let mut dir: &mut Dir = &mut root;
        for name in names {
            dir = match dir.entry(name).or_insert_with(|| Node::Dir(Dir::new())) {
                Node::Dir(d) => d,
                Node::File(_) => {
                    return Err(refuse("create the directory", path, io::ErrorKind::AlreadyExists));
                }
            };
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let names = names_of(path)?;
        dir_at(&mut self.root.lock(), &names, "sync the directory", path).map(drop)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let names = names_of(path)?;
        let mut root = self.root.lock();
        let (dir, name) = parent(&mut root, &names, "remove the directory", path)?;
        let refused = match dir.get(name) {
            Some(Node::Dir(d)) if d.is_empty() => {
                dir.remove(name);
                return Ok(());
            }
            Some(Node::Dir(_)) => io::ErrorKind::DirectoryNotEmpty,
            Some(Node::File(_)) => io::ErrorKind::NotADirectory,
            None => io::ErrorKind::NotFound,
        };
        Err(refuse("remove the directory", path, refused))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.find("lock", path, true)?;
        let mut dir = names_of(path)?;
        dir.pop();
        if !self.locked.lock().insert(dir.clone()) {
            return Err(held(path));
        }
        Ok(Box::new(MemLock { locked: Arc::clone(&self.locked), dir }))
    }

    fn check_unlocked(&self, path: &Path) -> Result<()> {
        let mut dir = names_of(path)?;
        dir.pop();
        if self.locked.lock().contains(&dir) { Err(held(path)) } else { Ok(()) }
    }
}

#[track_caller]
fn held(path: &Path) -> Error {
    Error::new(ErrorKind::Busy(BusyKind::Locked), "the lock is held by this process").at_path(path)
}

/// An open file in memory, for either direction.
struct MemFile {
    content: Arc<Content>,
    path: PathBuf,
    len: u64,
}

impl fmt::Debug for MemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemFile").field(&self.path).finish()
    }
}

impl ReadFile for MemFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = self.content.bytes.read().unwrap_or_else(PoisonError::into_inner);
        Ok(crate::mem::copy_out(&bytes, buf, offset))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl WriteFile for MemFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut bytes = self.content.bytes.write().unwrap_or_else(PoisonError::into_inner);
        crate::mem::copy_in(&mut bytes, data, offset).map_err(|e| Error::io("write", &self.path, &e))
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let mut bytes = self.content.bytes.write().unwrap_or_else(PoisonError::into_inner);
        crate::mem::set_len(&mut bytes, len).map_err(|e| Error::io("truncate", &self.path, &e))
    }

    fn allocate(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

struct MemLock {
    locked: Locked,
    dir: Vec<String>,
}

impl fmt::Debug for MemLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemLock")
    }
}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.locked.lock().remove(&self.dir);
    }
}

impl FileLock for MemLock {}
