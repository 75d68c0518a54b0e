//! A directory for one run, removed with its content.

use ashlar_base::Result;
use ashlar_env::{EntryKind, Env, Fs};
use std::path::{Path, PathBuf};

/// Removes the directory when dropped.
#[derive(Debug)]
pub(crate) struct TemporaryDir {
    env: Env,
    path: PathBuf,
}

impl TemporaryDir {
    /// Creates a new directory in `parent`.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn new(env: &Env, parent: &Path) -> Result<Self> {
        let path = parent.join(format!("ashlar-bench-{}-{:016x}", std::process::id(), env.rand.next_u64()));
        env.fs.create_dir_all(&path)?;
        Ok(TemporaryDir { env: env.clone(), path })
    }

    /// The path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        // A drop cannot return an error. Remaining files are in the system's directory for temporary files.
        let _ = remove_all(&*self.env.fs, &self.path);
    }
}

fn remove_all(fs: &dyn Fs, dir: &Path) -> Result<()> {
    for entry in fs.list(dir)? {
        let path = dir.join(&entry.name);
        match entry.kind {
            EntryKind::Dir => remove_all(fs, &path)?,
            _ => fs.remove(&path)?,
        }
    }
    fs.remove_dir(dir)
}

/// Bytes of all files in `dir`, folders not included.
///
/// # Errors
/// `Io`.
pub(crate) fn bytes_in(fs: &dyn Fs, dir: &Path) -> Result<u64> {
    Ok(fs.list(dir)?.iter().map(|entry| entry.len).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_with_all_it_holds() {
        let env = Env::mem();
        let parent = Path::new("/tmp");
        env.fs.create_dir_all(parent).unwrap();
        let dir = TemporaryDir::new(&env, parent).unwrap();
        env.fs.create_dir_all(&dir.path().join("lost")).unwrap();
        for name in ["a", "lost/b"] {
            env.fs.create(&dir.path().join(name)).unwrap().write_at(&[0; 10], 0).unwrap();
        }
        assert_eq!(bytes_in(&*env.fs, dir.path()).unwrap(), 10);
        drop(dir);
        assert_eq!(env.fs.list(parent).unwrap(), []);
    }
}
