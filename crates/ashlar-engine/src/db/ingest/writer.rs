//! Writers of files to ingest, with the settings of a family.

use super::super::Db;
use crate::column_family::Family;
use ashlar_base::Result;
use ashlar_compaction::new_session_id;
use ashlar_env::Env;
use ashlar_options::FamilyOptions;
use ashlar_table::{SstWriter, SstWriterInput, TableOptions};
use std::path::Path;
use std::sync::Arc;

/// The level whose compression and filter a file gets: as if it were the last of the tree.
const LAST_LEVEL: i32 = 6;

/// A writer of the file `path`, for families with these options.
///
/// # Errors
/// Those of [`SstWriter::create`].
pub fn sst_writer(env: &Env, path: &Path, options: &FamilyOptions) -> Result<SstWriter> {
    let table = options.table.for_level(LAST_LEVEL, 1, true);
    let merge_operator = options.merge_operator.as_ref().map(|operator| operator.name().to_owned());
    SstWriter::create(SstWriterInput {
        fs: Arc::clone(&env.fs),
        path: path.to_path_buf(),
        table: TableOptions { order: options.order.clone(), merge_operator, ..table },
        session_id: new_session_id(&*env.rand),
        unix_secs: env.clock.unix_micros() / 1_000_000,
    })
}

impl Db {
    /// A writer of the file `path`, for `family`, which another family with the same comparator may ingest too.
    ///
    /// # Errors
    /// Those of [`SstWriter::create`]. `InvalidArgument`: `path` is in a directory of the database, or the family belongs to
    /// another database.
    pub fn sst_writer(&self, family: &Family, path: &Path) -> Result<SstWriter> {
        let core = self.core();
        core.check_open()?;
        core.check_own(family)?;
        core.check_outside_directory(path)?;
        sst_writer(&core.env, path, &family.options())
    }
}
