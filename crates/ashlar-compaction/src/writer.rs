//! How a database writes tables: the plan that flushes, compactions, replays and repairs share.

use crate::rewrite::{BlobPlan, OutputChecks, OutputPlan};
use ashlar_base::memory::MemoryBudget;
use ashlar_base::stats::Statistics;
use ashlar_base::{FamilyId, Level, MergeOperator, Result};
use ashlar_env::Env;
use ashlar_options::{DbPath, FamilyOptions, path_of_level};
use ashlar_read::expiry::operator_of;
use ashlar_table::{TableIdentity, TableOptions};
use ashlar_tree::files::{Numbers, PendingOutputs};
use ashlar_tree::version::VersionSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The properties that all tables written in a session share.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The environment.
    pub env: Env,
    /// The trees, whose indexes decide about the form of new ones.
    pub versions: Arc<VersionSet>,
    /// The id of the database.
    pub db_id: String,
    /// The id of the session.
    pub session_id: String,
    /// The budget that buffers are charged to.
    pub budget: Option<Arc<MemoryBudget>>,
    /// The statistics that count table writes.
    pub statistics: Option<Arc<Statistics>>,
    /// Each file gets a checksum in the MANIFEST.
    pub file_checksums: bool,
    /// The table directories for families without their own; empty: the database directory.
    pub db_paths: Vec<DbPath>,
}

impl Writer {
    /// The properties of the database of `versions`: no statistics, no checksums of files, one directory.
    pub fn new(env: &Env, versions: &Arc<VersionSet>, session_id: &str) -> Writer {
        let db_id = versions.db_facts().db_id.unwrap_or_default();
        let budget = versions.tables().pool().budget().cloned();
        let (env, session_id) = (env.clone(), session_id.to_owned());
        Writer {
            env,
            versions: Arc::clone(versions),
            db_id,
            session_id,
            budget,
            statistics: None,
            file_checksums: false,
            db_paths: Vec::new(),
        }
    }

    /// The directory for a family's tables of `level`, with its index in the family's list.
    pub fn place(&self, dir: &Path, options: &FamilyOptions, level: u8) -> (PathBuf, u8) {
        let at = path_of_level(self.paths(options), level, &options.compaction);
        let at = u8::try_from(at).unwrap_or(u8::MAX);
        (self.dir_of(dir, options, at).to_path_buf(), at)
    }

    /// The directory of the tables with that path id.
    pub fn dir_of<'a>(&'a self, dir: &'a Path, options: &'a FamilyOptions, path_id: u8) -> &'a Path {
        self.paths(options).get(usize::from(path_id)).map_or(dir, |path| &path.path)
    }

    fn paths<'a>(&'a self, options: &'a FamilyOptions) -> &'a [DbPath] {
        if options.cf_paths.is_empty() { &self.db_paths } else { &options.cf_paths }
    }

    /// The form of new tables with these settings: in partitions where the indexes of the database are large.
    pub fn form(&self, table: TableOptions) -> TableOptions {
        if self.versions.indexes_are_large() { table.in_partitions() } else { table }
    }

    /// The plan for a family's next tables, as a flush writes them; compaction adjusts it by level.
    pub fn plan(&self, dir: &Path, family: (FamilyId, &str), options: &FamilyOptions) -> OutputPlan {
        let now = self.env.clock.unix_micros() / 1_000_000;
        let identity = TableIdentity {
            db_id: self.db_id.clone(),
            session_id: self.session_id.clone(),
            family_id: family.0,
            family_name: family.1.to_owned(),
            level: Some(Level::ZERO),
            creation_time: now,
            oldest_key_time: now,
            newest_key_time: now,
            file_creation_time: now,
            ..TableIdentity::default()
        };
        let (place, path_id) = self.place(dir, options, 0);
        let blob_dir = self.dir_of(dir, options, 0).to_path_buf();
        OutputPlan {
            fs: Arc::clone(&self.env.fs),
            dir: place,
            path_id,
            blob_dir,
            table: self.form(options.table.for_level(-1, 1, false)),
            merge_operator: apart_for_a_filter(operator_of(options), options),
            budget: self.budget.clone(),
            statistics: self.statistics.clone(),
            blobs: BlobPlan::new(family.0, &options.blob, 0),
            identity,
            checks: OutputChecks {
                file_checksums: self.file_checksums,
                read_back: options.read_back_outputs,
            },
        }
    }
}

/// The operator of a family with a compaction filter: it leaves operands without a value apart, so that the filter is asked
/// about each of them. A combined one would take newer operands with it when the filter removes it.
fn apart_for_a_filter(
    operator: Option<Arc<dyn MergeOperator>>,
    options: &FamilyOptions,
) -> Option<Arc<dyn MergeOperator>> {
    match options.compaction_filter {
        None => operator,
        Some(_) => operator.map(|operator| Arc::new(Apart(operator)) as _),
    }
}

/// An operator that combines no operands without a value.
#[derive(Debug)]
struct Apart(Arc<dyn MergeOperator>);

impl MergeOperator for Apart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        self.0.full_merge(key, existing, operands)
    }
}

/// Numbers for outputs: each number is pending from the moment it is drawn.
pub fn output_numbers(versions: &Arc<VersionSet>, pending: &Arc<PendingOutputs>) -> Numbers {
    let (versions, pending) = (Arc::clone(versions), Arc::clone(pending));
    Arc::new(move || pending.reserve(|| versions.new_file_number()))
}
