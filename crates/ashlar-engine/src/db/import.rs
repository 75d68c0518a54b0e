//! A new family that begins with tables of another database: the engine's part of an import.
//!
//! 1. The family and its tables are one commit: after a crash there is the family with all of them, or no family.
//! 2. The tables keep their levels and sequence numbers. The database's newest sequence number becomes at least theirs, so
//!    every later write is newer. Snapshots from before the import see an empty family.
//! 3. Earlier writes are synced before the commit, as before an ingestion.
//! 4. Until the commit the sources are only read. After an error the linked or copied files are removed, unless the outcome of
//!    the commit is unknown; then the purge removes them once a new MANIFEST is durable.
//!
//! Source: RocksDB `db/import_column_family_job.cc`, `db/db_impl/db_impl.cc` (`CreateColumnFamilyWithImport`), behaviour.

use super::Db;
use super::claim::Claim;
use super::core::Core;
use super::ingest::{Brought, IngestMode, bring};
use crate::column_family::Family;
use ashlar_base::{Error, Level, Result};
use ashlar_env::{Fs, folder_of};
use ashlar_format::version_edit::NewFile;
use ashlar_options::{FamilyOptions, FormatLevel};
use ashlar_tree::version::Tables;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A family that is about to be made of tables. While it lives, a close waits.
pub struct NewFamily {
    core: Arc<Core>,
    _claim: Claim,
    name: String,
    options: FamilyOptions,
}

impl Db {
    /// Begins a family with tables, for the public function `call`.
    ///
    /// # Errors
    /// Those of [`Db::create_family`]. `NotSupported`: the database is open for reading only.
    pub fn new_family(&self, call: &str, name: &str, options: FamilyOptions) -> Result<NewFamily> {
        let core = self.core();
        core.check_outside(call)?;
        let claim = core.claim()?;
        let options = core.new_family(name, options)?;
        if core.state().families.by_name(name).is_some() {
            let e = Error::invalid(format!("column family {name:?} exists already"));
            return Err(
                e.hint("An import makes a new family: give another name, or drop the old family first")
            );
        }
        if !options.cf_paths.is_empty() {
            // The tables come into these directories before the family exists.
            core.committer.lead_alone(|| core.enter_places(name, &options))?;
        }
        Ok(NewFamily { core: Arc::clone(core), _claim: claim, name: name.to_owned(), options })
    }
}

impl NewFamily {
    /// The file system of the database.
    pub fn fs(&self) -> &dyn Fs {
        &*self.core.env.fs
    }

    /// The database directory.
    pub fn dir(&self) -> &Path {
        &self.core.dir
    }

    /// The name of the family.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options of the family.
    pub fn options(&self) -> &FamilyOptions {
        &self.options
    }

    /// The format level of the database.
    pub fn format_level(&self) -> FormatLevel {
        self.core.options().format_level
    }

    /// Opens tables that were brought into the directory.
    pub fn tables(&self) -> Arc<Tables> {
        let (core, order) = (&self.core, self.options.order.clone());
        Tables::new(core.env.clone(), core.dir.clone(), Arc::clone(core.versions.tables()), order)
    }

    /// Brings a table into the directory of the database, for `level`.
    ///
    /// # Errors
    /// `InvalidArgument`: the file is in a directory of the database. `Io`; there is no new file then.
    pub fn bring(&self, source: &Path, level: Level, mode: IngestMode) -> Result<Brought> {
        self.core.check_outside_directory(source)?;
        bring(&self.core, (&self.options, level), source, mode)
    }

    /// Runs `act`, which may call a comparator of the family.
    pub fn inside<T>(&self, act: impl FnOnce() -> T) -> T {
        let _inside = self.core.database.enter();
        act()
    }

    /// Creates the family with these tables. Durable when it returns.
    ///
    /// # Errors
    /// Those of [`Db::create_family`]. `Corruption`, `NotSupported`: the tables make no valid tree.
    pub fn create(self, tables: Vec<(Level, NewFile, Brought)>) -> Result<Arc<Family>> {
        let core = &self.core;
        let folders: BTreeSet<_> = tables.iter().map(|(.., brought)| folder_of(brought.path())).collect();
        folders.into_iter().try_for_each(|dir| core.env.fs.sync_dir(dir))?;
        // So that little is left to sync while writers wait.
        core.sync_earlier()?;
        // From here on the files belong to the tree: after a failed commit the purge removes them. The numbers stay pending
        // until the end of the commit.
        let (files, pending): (Vec<_>, Vec<_>) =
            tables.into_iter().map(|(level, file, brought)| ((level, file), brought.keep())).unzip();
        let bytes = files.iter().map(|(_, file)| file.size).fold(0, u64::saturating_add);
        let made = core.add_family(&self.name, self.options.clone(), files);
        made.iter().for_each(|_| core.disk.take(bytes));
        drop(pending);
        made.inspect_err(|e| core.settle(e))
    }
}
