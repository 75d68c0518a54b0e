//! What the caller of an open, a check or a repair says: the directories of the files, and the purpose.

use ashlar_base::{Error, Result};
use ashlar_options::DbPath;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The directories that the caller gives. Empty settings are taken from the newest OPTIONS file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceSettings {
    /// The directory of the WAL files.
    pub wal_dir: String,
    /// The directories of tables.
    pub db_paths: Vec<DbPath>,
    /// The directories of the tables of families that have their own.
    pub cf_paths: BTreeMap<String, Vec<DbPath>>,
}

impl PlaceSettings {
    /// The same directories as absolute paths.
    ///
    /// # Errors
    /// `InvalidArgument` naming the setting: a path is relative, and the process has no working directory.
    pub(super) fn absolute(mut self) -> Result<PlaceSettings> {
        if !self.wal_dir.is_empty() {
            self.wal_dir = absolute("wal_dir", Path::new(&self.wal_dir))?.display().to_string();
        }
        absolute_paths("db_paths", &mut self.db_paths)?;
        self.cf_paths.values_mut().try_for_each(|paths| absolute_paths("cf_paths", paths))?;
        Ok(self)
    }

    /// The directories of a family's tables, in the order of the MANIFEST's indexes.
    #[doc(hidden)]
    pub fn of(&self, family: &str, dir: &Path) -> Vec<PathBuf> {
        let lists = [self.cf_paths.get(family), Some(&self.db_paths)];
        let list = lists.into_iter().flatten().find(|list| !list.is_empty());
        let all = |list: &Vec<DbPath>| list.iter().map(|p| p.path.clone()).collect();
        list.map_or_else(|| vec![dir.to_path_buf()], all)
    }

    /// All table directories; empty: only the database directory is known.
    pub(super) fn table_dirs(&self, dir: &Path) -> Vec<PathBuf> {
        if self.db_paths.is_empty() && self.cf_paths.is_empty() {
            return Vec::new();
        }
        let mut all = self.of("", dir);
        if self.db_paths.is_empty() {
            all = vec![dir.to_path_buf()];
        }
        all.extend(self.cf_paths.values().flatten().map(|p| p.path.clone()));
        all
    }
}

/// The purpose for which the directories are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read and write an intact database.
    Write,
    /// To read a database.
    Read,
    /// To repair a database.
    Repair,
}

/// # Errors
/// `InvalidArgument` naming the setting: the path is relative, and the process has no working directory.
fn absolute(setting: &str, path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| {
        let what = format!("{setting} is {}, and there is no working directory: {e}", path.display());
        Error::invalid(what).hint("Give the setting with a path from the root")
    })
}

/// Makes the paths of a list absolute, so that a later change of the working directory has no effect.
///
/// # Errors
/// `InvalidArgument` naming the setting: a path is relative, and the process has no working directory.
pub fn absolute_paths(setting: &str, paths: &mut [DbPath]) -> Result<()> {
    paths.iter_mut().try_for_each(|path| {
        path.path = absolute(setting, &path.path)?;
        Ok(())
    })
}
