//! The state of a database as its files give it, without an open: families, tables, and the writes in the WAL files.
//!
//! 1. Takes no lock and writes nothing.
//! 2. A process that has the database open may delete a file between the read of the MANIFEST and that of the file. A WAL file it
//!    deletes only after the MANIFEST says that the WAL file is not needed. The state is then read again.

use super::Target;
use ashlar_base::{Error, FamilyId, Result, SeqNum};
use ashlar_cache::FramePool;
use ashlar_env::{Env, ReadFile};
use ashlar_format::filename::FileKind;
use ashlar_format::write_batch::BatchReader;
use ashlar_log::RecoveryMode;
use ashlar_memtable::{MemtableRep, Op, WriterSlot, memtable};
use ashlar_options::FormatLevel;
use ashlar_recovery::{
    BatchPlace, Families, FamilyFilter, FoundWals, Others, Policy, Recovered, ReplaySink, list_families,
    logs_needed_from, recover_in, replay_found, sequenced_ops,
};
use ashlar_table::TableReader;
use ashlar_tree::files::hold_directory;
use ashlar_tree::places::{Entered, Purpose, enter};
use ashlar_tree::version::{FamilyState, FileMeta, OpenTables};
use std::path::PathBuf;
use std::sync::Arc;

/// Memory for the blocks of tables, in bytes.
const POOL_BYTES: usize = 8 << 20;

/// A family may have as many levels.
const LEVELS: usize = 64;

/// Reads of the state beside a process that changes the directory each time.
const ATTEMPTS: u32 = 64;

/// See the module.
pub(super) struct Stored {
    entered: Entered,
    recovered: Recovered,
    directory: PathBuf,
}

/// The entries of a family: the writes in WAL files only, and the tables by level, each of them open.
pub(super) struct Entries {
    pub(super) family: Arc<FamilyState>,
    pub(super) writes: Arc<dyn MemtableRep>,
    pub(super) levels: Vec<Vec<OpenFile>>,
}

/// An open table stays readable when another process removes its name.
pub(super) type OpenFile = (Arc<FileMeta>, Arc<TableReader>);

impl Stored {
    /// Reads the MANIFEST.
    pub(super) fn read(target: &Target) -> Result<Stored> {
        steady(target, || Stored::look(target).map(Some))
    }

    /// Reads the entries of the family of the command line.
    pub(super) fn read_entries(target: &Target) -> Result<Entries> {
        steady(target, || {
            let mut stored = Stored::look(target)?;
            let family = stored.family(target.common.family_name())?;
            if family.version.order.timestamp_len() > 0 {
                let name = &family.name;
                let text = format!("family {name:?} has keys with timestamps, whose WAL files are not read");
                let e = Error::not_supported(text).at_path(&target.directory);
                return Err(e.hint("`ashlar sst` reads its tables"));
            }
            let levels = open_tables(&family)?;
            let writes = stored.replay(&family)?;
            Ok(writes.map(|writes| Entries { family, writes, levels }))
        })
    }

    /// Reads the MANIFEST, and opens the tables of the family of the command line. They come by level.
    pub(super) fn read_tables(target: &Target) -> Result<(Stored, Arc<FamilyState>, Vec<Vec<OpenFile>>)> {
        steady(target, || {
            let stored = Stored::look(target)?;
            let family = stored.family(target.common.family_name())?;
            let levels = open_tables(&family)?;
            Ok(Some((stored, family, levels)))
        })
    }

    fn look(target: &Target) -> Result<Stored> {
        let directory = target.directory.clone();
        let env = hold_directory(&Env::os()?, &directory)?;
        let entered = enter(&env, &directory, &target.common.places(), Purpose::Read)?;
        let tables = OpenTables::new(FramePool::new(POOL_BYTES));
        let families = Families { listed: Vec::new(), others: Others::OpenKnown { levels: LEVELS } };
        let recovered = recover_in(&entered, &directory, FormatLevel::default(), &tables, &families)?;
        Ok(Stored { entered, recovered, directory })
    }

    /// The families whose comparators are built in.
    pub(super) fn families(&self) -> Vec<Arc<FamilyState>> {
        self.recovered.versions.families()
    }

    pub(super) fn family(&self, name: &str) -> Result<Arc<FamilyState>> {
        let found = self.families().into_iter().find(|family| family.name == name);
        found.ok_or_else(|| {
            let e = Error::invalid(format!("there is no column family {name:?} with a built-in comparator"));
            e.at_path(&self.directory).hint("`ashlar db DIR families` lists the families")
        })
    }

    /// Refuses a database with a family whose comparator is not built in: nothing could be said about its files.
    pub(super) fn check_comparators(&self) -> Result<()> {
        let known = self.families();
        let all = list_families(&self.entered.env, &self.directory)?;
        match all.iter().find(|name| known.iter().all(|family| family.name != **name)) {
            None => Ok(()),
            Some(name) => {
                let text = format!("the comparator of family {name:?} is not built in");
                let e = Error::not_supported(text).at_path(&self.directory);
                Err(e.hint("`ashlar db DIR manifest_dump` lists its files"))
            }
        }
    }

    /// The path of a file of the database, which may be in another directory.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.entered.env.fs.real_path(&self.directory.join(name))
    }

    /// Opens a file of the database.
    pub(super) fn open(&self, name: &str) -> Result<Arc<dyn ReadFile>> {
        self.entered.env.fs.open_read(&self.directory.join(name))
    }

    /// The names of the files in the directories of the database.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let entries = self.entered.env.fs.files(&self.directory)?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    /// The MANIFEST in use.
    pub(super) fn manifest(&self) -> PathBuf {
        self.path_of(&FileKind::Manifest(self.recovered.versions.manifest_number()).name())
    }

    /// The writes to a family that are in WAL files only. `None`: another process may have deleted one of these files.
    fn replay(&mut self, family: &FamilyState) -> Result<Option<Arc<dyn MemtableRep>>> {
        let (env, dir) = (&self.entered.env, &self.directory);
        let Recovered { versions, report, logs_from, .. } = &mut self.recovered;
        let wals = FoundWals::open(env, dir, versions)?;
        if logs_needed_from(&*env.fs, dir)? != *logs_from {
            return Ok(None);
        }
        // The second policy is for WAL files of transactions that write before they commit.
        for policy in [Policy::AtCommit, Policy::BeforeCommit] {
            let mut sink = Writes::new(family);
            let how = (RecoveryMode::PointInTime, policy);
            let outcome = replay_found(&wals, dir, versions, how, &mut sink, &mut report.clone())?;
            if outcome.policy == policy {
                return Ok(Some(sink.memtable));
            }
        }
        Err(Error::corruption("the WAL files mix two policies of transactions").at_path(dir))
    }
}

fn open_tables(family: &FamilyState) -> Result<Vec<Vec<OpenFile>>> {
    let open = |file: &Arc<FileMeta>| Ok((Arc::clone(file), family.version.table(file)?));
    family.version.levels.iter().map(|files| files.iter().map(open).collect()).collect()
}

/// Calls `read` until it returns a state. An error counts when the files of the directory did not change meanwhile: another
/// process may have removed a file before `read` opened it.
fn steady<T>(target: &Target, mut read: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let fs = Env::os()?.fs;
    let mut overtaken = None;
    for _ in 0..ATTEMPTS {
        let before = fs.files(&target.directory)?;
        match read() {
            Ok(Some(state)) => return Ok(state),
            Ok(None) => {}
            Err(e) if !e.is_not_found() && !e.is_corruption() => return Err(e),
            Err(e) if fs.files(&target.directory).is_ok_and(|now| now == before) => return Err(e),
            Err(e) => overtaken = Some(e),
        }
    }
    let e = overtaken
        .unwrap_or_else(|| Error::invalid("another process deletes WAL files").at_path(&target.directory));
    Err(e.hint("Another process changes the database: close it there, or read a checkpoint"))
}

/// Takes the writes to one family.
struct Writes {
    family: FamilyId,
    memtable: Arc<dyn MemtableRep>,
    slot: WriterSlot,
}

impl Writes {
    fn new(family: &FamilyState) -> Writes {
        let memtable = memtable(family.version.order.clone());
        Writes { family: family.id, memtable, slot: WriterSlot::default() }
    }

    fn insert(&mut self, seq: SeqNum, op: Op<'_>) -> Result<()> {
        let prepared = self.memtable.prepare(&mut self.slot, &mut std::iter::once(op));
        let prepared =
            prepared.map_err(|_| Error::not_supported("more than 16 GiB of writes in WAL files"))?;
        self.memtable.insert(&mut self.slot, prepared, seq);
        Ok(())
    }
}

impl ReplaySink for Writes {
    fn apply(&mut self, _: BatchPlace, batch: &BatchReader<'_>, filter: &FamilyFilter<'_>) -> Result<()> {
        for op in sequenced_ops(batch) {
            let (seq, op) = op?;
            if op.family() != Some(self.family) || !filter.takes(self.family) {
                continue;
            }
            let Some((value_type, key, value)) = op.entry() else { continue };
            self.insert(seq, Op { key, value, value_type, seq_delta: 0 })?;
        }
        Ok(())
    }
}
