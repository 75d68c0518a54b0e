//! Creating, dropping and finding column families.

use super::Db;
use super::core::Core;
use super::ingest::out_of_sequences;
use super::open::refuse_timestamps;
use crate::column_family::{Family, LiveFamily, Reads, new_memtable};
use crate::health::Source;
use crate::wal::Wal;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, Level, Result, SeqNum};
use ashlar_format::version_edit::NewFile;
use ashlar_memtable::MemtableList;
use ashlar_options::FamilyOptions;
use ashlar_sync::atomic::Ordering;
use ashlar_tree::files::make_directory;
use ashlar_tree::places::{absolute_paths, claim_new_place, same_directory, take_place};
use ashlar_tree::version::{FamilyState, Version};
use std::sync::Arc;

impl Db {
    /// # Errors
    /// `Shutdown(Forked)`: the database was opened before a fork, by the parent.
    pub fn check_process(&self) -> Result<()> {
        self.core().database.check_process()
    }

    /// The family with that name. A forked child has none.
    pub fn family(&self, name: &str) -> Option<Arc<Family>> {
        self.check_process().ok()?;
        self.core().state().families.by_name(name).map(|f| Arc::clone(&f.family))
    }

    /// All families, in id order. A forked child has none.
    pub fn families(&self) -> Vec<Arc<Family>> {
        if self.core().database.is_inherited() {
            return Vec::new();
        }
        self.core().state().families.iter().map(|f| Arc::clone(&f.family)).collect()
    }

    /// Creates a family. Durable when it returns.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is taken, or an option is out of range. `Aborted`: background work is paused, and a
    /// writer waits for it.
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        self.core().create_family(name, options)
    }

    /// Drops a family with all its data. Durable when it returns; existing handles can still read the family.
    ///
    /// # Errors
    /// `InvalidArgument`: the family is `default`, was dropped already, or belongs to another database.
    pub fn drop_family(&self, family: &Family) -> Result<()> {
        self.core().drop_family(family)
    }
}

impl Core {
    fn create_family(self: &Arc<Self>, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        self.check_outside("create_family()")?;
        let _claim = self.claim()?;
        let options = self.new_family(name, options)?;
        self.add_family(name, options, Vec::new())
    }

    /// The options of a new family as the database uses them.
    pub(super) fn new_family(&self, name: &str, options: FamilyOptions) -> Result<FamilyOptions> {
        self.health.check_writable()?;
        if name.is_empty() {
            return Err(Error::invalid("a column family needs a name"));
        }
        let level = self.options().format_level;
        options.validate(level)?;
        refuse_timestamps(&options.order)?;
        let mut options = options.at_level(level);
        options.forget_stored();
        options.reserve_last_level(self.options().ingest_behind);
        absolute_paths("cf_paths", &mut options.cf_paths)?;
        Ok(options)
    }

    /// Adds a family that begins with these tables.
    pub(super) fn add_family(
        self: &Arc<Self>,
        name: &str,
        options: FamilyOptions,
        tables: Vec<(Level, NewFile)>,
    ) -> Result<Arc<Family>> {
        self.renew_stale_options()?;
        let imports = !tables.is_empty();
        // Leads alone, so that the current WAL file holds no data of the new family yet.
        let made = self.committer.lead_alone(|| {
            if !imports {
                self.enter_places(name, &options)?;
            }
            // Writes earlier than the family reach the operating system first: if a crash keeps the family, it also
            // keeps those writes. Tables are durable with their sequence numbers, so earlier numbers are synced.
            self.committer.flush()?;
            if imports {
                self.sync_earlier()?;
            }
            let last = self.number_after(&tables)?;
            let wal = Arc::clone(&self.committer.current().wal);
            let (order, levels) = (options.order.clone(), options.compaction.num_levels);
            let made = self.versions.create_family_of(name, order, levels, wal.number(), tables);
            let made = made.inspect_err(|e| {
                // The next open may find the tables, and then no write may have their numbers.
                last.into_iter().for_each(|last| self.committer.take_sequences(last));
                self.commit_failed(e);
            })?;
            Ok(self.begin_family(&made, name, options, wal, last))
        })?;
        self.renew_options();
        if imports {
            self.update_pressure();
        }
        self.schedule();
        Ok(made)
    }

    /// The sequence number after which writes come once these tables are in; `None`: there are none. It is one more than they
    /// have, and so tells snapshots from before the import from later ones.
    fn number_after(&self, tables: &[(Level, NewFile)]) -> Result<Option<SeqNum>> {
        let Some(newest) = tables.iter().map(|(_, file)| file.largest_seq).max() else { return Ok(None) };
        let newest = if planted(Bug::ImportedAboveWrites) { SeqNum::ZERO } else { newest };
        let last = newest.max(self.committer.last_reserved());
        last.checked_add(1).map(Some).ok_or_else(out_of_sequences)
    }

    /// Shows a family that the MANIFEST has to writers and readers. The caller leads. `imported`: the family has tables, and
    /// writes from now on come after this number; snapshots from before see an empty family.
    fn begin_family(
        &self,
        made: &FamilyState,
        name: &str,
        options: FamilyOptions,
        wal: Arc<Wal>,
        imported: Option<SeqNum>,
    ) -> Arc<Family> {
        made.version.tables().count_into(&self.statistics);
        self.some_disallow.fetch_or(options.disallow_memtable_writes, Ordering::Relaxed);
        self.some_expire.fetch_or(options.value_ttl_secs.is_some(), Ordering::Relaxed);
        let empty = new_memtable(&options, Some(self.memory.account()));
        let memtables = MemtableList::new(empty, wal.number(), SeqNum::ZERO);
        let (ids, tables) = ((self.database, made.id), Arc::clone(made.version.tables()));
        let first = match imported {
            Some(_) => Arc::new(Version::empty(made.version.levels.len(), tables)),
            None => Arc::clone(&made.version),
        };
        let live = LiveFamily::new(ids, name, options, memtables, first);
        let family = Arc::clone(&live.family);
        let mut state = self.state();
        state.families.insert(LiveFamily { version: Arc::clone(&made.version), ..live });
        if let Some(last) = imported {
            let view = family.super_version.get();
            self.snapshots.keep_views(made.id, &view, None, || {
                // The number first: a reader that finds the tables reads up to it.
                self.committer.take_sequences(last);
                self.publish(&mut state, made.id, Reads::Other);
            });
        }
        let set = Core::write_set(&state, &self.memory, wal);
        self.committer.install(set);
        family
    }

    /// Joins the directories of a family that is about to be created, and names them in OPTIONS. A crash leaves no table in a
    /// directory that the next open does not know. Called by a leader, before a table comes into the directories.
    pub(super) fn enter_places(&self, name: &str, options: &FamilyOptions) -> Result<()> {
        self.make_places(options)?;
        match options.cf_paths.is_empty() {
            true => Ok(()),
            false => self.write_options_noting(Some((name, options))),
        }
    }

    /// Creates the directories of a new family's tables, opens them and locks them, as an open does. Called by a
    /// leader: if two callers name one directory, the second call finds it registered.
    fn make_places(&self, options: &FamilyOptions) -> Result<()> {
        let dirs: Vec<_> = options.cf_paths.iter().map(|path| path.path.clone()).collect();
        for dir in &dirs {
            let known = self.places.elsewhere();
            if *dir == self.dir || known.iter().any(|(known, _)| known == dir) {
                continue;
            }
            make_directory(&*self.env.fs, dir)?;
            if !same_directory(&*self.env.fs, &self.dir, dir) {
                self.places.join(dir)?;
                let lock = take_place(&*self.places, dir, "cf_paths")?;
                claim_new_place(&*self.env.fs, &self.dir, dir)?;
                self.joined.lock().push(lock);
            }
            self.places.add_tables(std::slice::from_ref(dir));
        }
        Ok(())
    }

    fn drop_family(self: &Arc<Self>, family: &Family) -> Result<()> {
        self.check_outside("drop_family()")?;
        let _claim = self.claim()?;
        self.check_own(family)?;
        self.health.check_dropping()?;
        if family.id() == FamilyId::DEFAULT {
            return Err(Error::invalid("the family \"default\" cannot be dropped"));
        }
        let dropped = self.committer.lead_unlogged(|| {
            // As when a family is created. A failed WAL must not keep the drop from freeing space: resuming writes the
            // buffered records to tables.
            let _ = self.committer.flush();
            if self.state().families.get(family.id()).is_none() {
                return Err(Error::invalid(format!("the family {:?} was dropped before", family.name())));
            }
            self.versions.drop_family(family.id()).inspect_err(|e| self.settle(e))?;
            let mut state = self.state();
            let dropped = state.families.remove(family.id());
            if let Some(live) = &dropped {
                live.mark_dropped();
            }
            let set = Core::write_set(&state, &self.memory, Arc::clone(&self.committer.current().wal));
            self.committer.install(set);
            state.purge_wanted = true;
            drop(state);
            // The memtables and tables of the family are freed here, outside the lock.
            drop(dropped);
            Ok(())
        });
        if dropped.is_err() {
            self.schedule();
            return dropped;
        }
        self.health.succeeded(Source::Flush(family.id()));
        self.health.succeeded(Source::Compaction(family.id()));
        self.renew_options();
        self.update_pressure();
        self.schedule();
        Ok(())
    }

    /// Rewrites OPTIONS, because RocksDB and its tools read the list of families from it. The change of families is
    /// already durable, so a failure here does not fail the call.
    pub(super) fn renew_options(&self) {
        let failed = self.write_options().inspect_err(|e| {
            self.report(Source::Options, e);
        });
        let mut state = self.state();
        (state.options_stale, state.purge_wanted) = (failed.is_err(), true);
    }

    /// Rewrites OPTIONS if the last attempt failed. The old file lacks changed settings. After a drop it still has a section of the
    /// dropped family, and a new family of that name must not inherit it.
    pub(super) fn renew_stale_options(&self) -> Result<()> {
        if !self.state().options_stale {
            return Ok(());
        }
        self.write_options()?;
        self.state().options_stale = false;
        Ok(())
    }

    /// After a failed commit it is unknown whether the next open finds the change. Either a new MANIFEST records the state
    /// without the change, or the database takes no further writes.
    pub(super) fn settle(&self, cause: &Error) {
        if !self.versions.may_unlink() && self.versions.commit(Vec::new()).is_err() {
            self.report(self.manifest_trouble().unwrap_or(Source::Manifest), cause);
        }
    }
}
