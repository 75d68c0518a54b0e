//! The settings of an open: those in the newest OPTIONS file, and the caller's on top of them.
//!
//! ```text
//! our defaults < the OPTIONS file < memory() < what is set for `default` < what is set for the family
//! ```
//! 1. A family in the file starts from its settings there. A family that the open creates starts from those of
//!    `default`, except the directories of its tables and the compaction filter.
//! 2. A setting of `default` holds for every family that the caller does not name. The exceptions are the comparator,
//!    the merge operator and the compaction filter: an existing family keeps its own.
//! 3. Settings of directories in the file (`wal_dir`, `db_log_dir`, `db_paths`, `cf_paths`) do not count as set by the
//!    caller. The engine reads them from the file itself, and first checks whether the files are there.
//! 4. The file is read without the lock of the database. Another process that closes the database meanwhile may write a
//!    newer file. Its values are then not used for this open, but the engine reads them again under the lock and keeps
//!    those meant for RocksDB.

use crate::{Env, Error, ErrorKind, FormatLevel, IoKind, Result};
use ashlar_base::Order;
use ashlar_engine::OpenFamily;
use ashlar_engine::column_family::DEFAULT_FAMILY;
use ashlar_engine::pressure::Resources;
use ashlar_options::{
    DbOptions, FamilyOptions, LoadedOptions, Options, Together, family_notices, load_latest_options,
};
use ashlar_tree::files::{DirState, hold_directory, survey};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub(crate) type SetFamily = Arc<dyn Fn(&mut FamilyOptions) -> Result<()> + Send + Sync>;
type SetDatabase = Arc<dyn Fn(&mut DbOptions) + Send + Sync>;
type SetBoth = Arc<dyn Fn(&mut DbOptions, &mut FamilyOptions) -> Result<()> + Send + Sync>;

/// The number of attempts to read the file. Another process that opens and closes the database may replace it in
/// between.
const ATTEMPTS: usize = 16;

#[derive(Clone)]
enum Set {
    Database(SetDatabase),
    Default(Vec<SetFamily>),
    Both(SetBoth),
}

/// The caller's settings, in the order of the calls.
#[derive(Clone, Default)]
pub(crate) struct Recorded {
    pub(crate) memory: Option<u64>,
    pub(crate) resources: Option<Resources>,
    /// Stored settings are not used.
    pub(crate) fresh: bool,
    /// A family that the caller names may be missing.
    pub(crate) only_if_there: bool,
    sets: Vec<Set>,
    families: Vec<(String, Vec<SetFamily>)>,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let families: Vec<_> = self.families.iter().map(|(name, _)| name).collect();
        f.debug_struct("Recorded").field("settings", &self.sets.len()).field("families", &families).finish()
    }
}

/// The settings with which the engine opens.
#[derive(Default)]
pub(crate) struct Adopted {
    pub(crate) db: DbOptions,
    pub(crate) families: Vec<OpenFamily>,
    /// The settings of `default`, and of families that `families` does not hold.
    pub(crate) others: FamilyOptions,
    /// The time to live that every family gets, in seconds.
    pub(crate) ttl_of_all: Option<i32>,
    /// The settings of the file that are not used; a repair reports them.
    pub(crate) notices: Vec<String>,
}

impl Adopted {
    /// The settings of a file that are not used, given these settings.
    fn notices_of(&self, stored: LoadedOptions) -> Vec<String> {
        let set: BTreeMap<&str, &FamilyOptions> =
            self.families.iter().map(|family| (&*family.name, &family.options)).collect();
        let families = stored.families.iter().map(|(name, stored)| match &**name {
            DEFAULT_FAMILY => (DEFAULT_FAMILY, &self.others),
            name => (name, set.get(name).copied().unwrap_or(stored)),
        });
        let of_families = family_notices(families, self.db.format_level, &stored.release);
        let mut notices = stored.notices;
        notices.extend(of_families);
        notices
    }
}

impl Recorded {
    pub(crate) fn database(&mut self, set: SetDatabase) {
        self.sets.push(Set::Database(set));
    }

    pub(crate) fn both(&mut self, set: SetBoth) {
        self.sets.push(Set::Both(set));
    }

    pub(crate) fn default_family(&mut self, sets: Vec<SetFamily>) {
        self.sets.push(Set::Default(sets));
    }

    pub(crate) fn family(&mut self, name: &str, sets: Vec<SetFamily>) {
        self.families.push((name.to_owned(), sets));
    }

    pub(crate) fn text(&mut self, text: &str) {
        let text = text.to_owned();
        self.both(Arc::new(move |db, family| {
            let mut both = Options { db: db.clone(), family: family.clone() };
            both.apply(&text)?;
            (*db, *family) = (both.db, both.family);
            Ok(())
        }));
    }

    /// Applies the caller's settings to those that the database has stored, or to the defaults if it has none.
    ///
    /// # Errors
    /// Those of option strings. `Io`: the OPTIONS file could not be read.
    pub(crate) fn over_database(&self, env: &Env, dir: &Path) -> Result<Adopted> {
        let held = hold_directory(env, dir)?;
        let there = !self.fresh && matches!(survey(&*held.fs, dir), Ok(DirState::Database(_)));
        if there { self.over_any(&held, dir, false) } else { self.over(None) }
    }

    /// Applies the caller's settings to those of the newest OPTIONS file, in whatever state the database is. A damaged
    /// OPTIONS file counts as missing, because the engine reports it. In a repair, an OPTIONS file that the device does
    /// not read counts as missing too: the repair reads it again and says what to do.
    pub(crate) fn over_any(&self, env: &Env, dir: &Path, repairs: bool) -> Result<Adopted> {
        if self.fresh {
            return self.over(None);
        }
        let level = self.format_level()?;
        let mut attempt = 0;
        let stored = loop {
            attempt += 1;
            match load_latest_options(&*env.fs, dir, level) {
                Ok(stored) => break stored,
                Err(e) if e.is_corruption() => break None,
                Err(e) if repairs && e.kind() == ErrorKind::Io(IoKind::Other) => break None,
                Err(e) if e.is_not_found() && attempt == ATTEMPTS => break None,
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        };
        let Some(stored) = stored else { return self.over(None) };
        let told = repairs.then(|| stored.clone());
        let mut adopted = self.over(Some(stored))?;
        adopted.notices = told.map(|stored| adopted.notices_of(stored)).unwrap_or_default();
        Ok(adopted)
    }

    /// The format level that the caller set. No OPTIONS file holds one.
    fn format_level(&self) -> Result<FormatLevel> {
        let (mut db, mut family) = Default::default();
        for set in &self.sets {
            match set {
                Set::Database(set) => set(&mut db),
                Set::Both(set) => set(&mut db, &mut family)?,
                Set::Default(_) => {}
            }
        }
        Ok(db.format_level)
    }

    fn over(&self, stored: Option<LoadedOptions>) -> Result<Adopted> {
        let Some(LoadedOptions { mut db, families, .. }) = stored else {
            return self.over_settings(DbOptions::default(), FamilyOptions::default(), BTreeMap::new());
        };
        let mut families: BTreeMap<String, FamilyOptions> = families.into_iter().collect();
        let mut default = families.remove(DEFAULT_FAMILY).unwrap_or_default();
        default.only_if_there = false;
        db.error_if_exists = false;
        self.over_settings(db, default, families)
    }

    fn over_settings(
        &self,
        mut db: DbOptions,
        mut default: FamilyOptions,
        stored: BTreeMap<String, FamilyOptions>,
    ) -> Result<Adopted> {
        self.set_memory(&mut db, &mut default);
        let before = Options { db: db.clone(), family: default.clone() };
        // What every family gets: that of `default` alone holds for no other one, here as in `set_for_all`.
        let mut ttl_of_all = None;
        for set in &self.sets {
            match set {
                Set::Database(set) => set(&mut db),
                Set::Both(set) => {
                    let own = std::mem::replace(&mut default.value_ttl_secs, ttl_of_all);
                    set(&mut db, &mut default)?;
                    ttl_of_all = default.value_ttl_secs;
                    default.value_ttl_secs = ttl_of_all.or(own);
                }
                Set::Default(sets) => sets.iter().try_for_each(|set| set(&mut default))?,
            }
        }
        self.check_beside_resources(&before.db, &db)?;
        check_order(DEFAULT_FAMILY, &default.order, &before.family.order)?;
        let check_together = |family: &FamilyOptions, stored: &FamilyOptions| {
            Together { db: &db, family }.check_since(Together { db: &before.db, family: stored })
        };
        check_together(&default, &before.family)?;
        let named: BTreeSet<&str> = self.families.iter().map(|(name, _)| name.as_str()).collect();
        let mut listed = Vec::new();
        for (name, sets) in &self.families {
            let mut options = match stored.get(name) {
                Some(stored) => self.set_for_all(&db, stored, true)?,
                None => {
                    let mut new = FamilyOptions {
                        cf_paths: Vec::new(),
                        compaction_filter: None,
                        value_ttl_secs: ttl_of_all,
                        ..default.clone()
                    };
                    new.inherit_tree();
                    new
                }
            };
            sets.iter().try_for_each(|set| set(&mut options))?;
            if let Some(stored) = stored.get(name) {
                check_order(name, &options.order, &stored.order)?;
            }
            let stored = stored.get(name).unwrap_or(&before.family);
            check_together(&options, stored).map_err(|e| e.hint(format!("In family {name:?}")))?;
            options.only_if_there = self.only_if_there;
            listed.push(OpenFamily { name: name.clone(), options });
        }
        for (name, stored) in stored.into_iter().filter(|(name, _)| !named.contains(name.as_str())) {
            let options = self.set_for_all(&db, &stored, false)?;
            check_together(&options, &stored).map_err(|e| e.hint(format!("In family {name:?}")))?;
            // A comparator that was not handed over keeps its family closed, and the engine says so.
            if options.kept.get("comparator").is_none_or(|comparator| comparator == options.order.name()) {
                listed.push(OpenFamily { name, options });
            }
        }
        Ok(Adopted { db, families: listed, others: default, ttl_of_all, notices: Vec::new() })
    }

    /// The settings of a family in the file, with the settings for all families applied.
    fn set_for_all(&self, db: &DbOptions, stored: &FamilyOptions, named: bool) -> Result<FamilyOptions> {
        if self.sets.is_empty() && self.memory.is_none() && self.resources.is_none() {
            return Ok(stored.clone());
        }
        let (mut db, mut options) = (db.clone(), stored.clone());
        self.set_memory(&mut db, &mut options);
        for set in &self.sets {
            match set {
                Set::Database(_) => {}
                Set::Both(set) => set(&mut db, &mut options)?,
                Set::Default(sets) => {
                    // The stored values of a family have times or lack them, whatever `default` gets.
                    let ttl = options.value_ttl_secs;
                    sets.iter().try_for_each(|set| set(&mut options))?;
                    options.value_ttl_secs = ttl;
                }
            }
        }
        keep_identity(&mut options, stored, named);
        Ok(options)
    }

    fn set_memory(&self, db: &mut DbOptions, family: &mut FamilyOptions) {
        if let Some(resources) = &self.resources {
            family.write_buffer_bytes = write_buffer(resources.memory() as u64, family);
            return;
        }
        let Some(bytes) = self.memory else { return };
        db.memory_bytes = bytes;
        if bytes == 0 {
            db.block_cache_bytes = DbOptions::default().block_cache_bytes;
            family.write_buffer_bytes = FamilyOptions::default().write_buffer_bytes;
            return;
        }
        db.block_cache_bytes = (bytes / 4 * 3).max(1 << 20);
        family.write_buffer_bytes = write_buffer(bytes, family);
    }

    /// # Errors
    /// `InvalidArgument`: the caller has set what the resources decide.
    fn check_beside_resources(&self, before: &DbOptions, db: &DbOptions) -> Result<()> {
        if self.resources.is_none() {
            return Ok(());
        }
        let (memory, threads) =
            ("Give the memory to Resources::new", "Give the threads to Resources::threads");
        let set = [
            ("memory", self.memory.is_some() || before.memory_bytes != db.memory_bytes, memory),
            ("the size of a block cache", before.block_cache_bytes != db.block_cache_bytes, memory),
            ("a common block cache", db.block_cache.is_some(), memory),
            ("a shared limit on memtables", db.write_buffers.is_some(), memory),
            ("max_background_jobs", before.max_background_jobs != db.max_background_jobs, threads),
        ];
        match set.iter().find(|(_, is_set, _)| *is_set) {
            None => Ok(()),
            Some((what, _, hint)) => {
                Err(Error::invalid(format!("{what} is set for a database that shares Resources")).hint(*hint))
            }
        }
    }
}

/// The size of a memtable under a cap of `bytes`.
fn write_buffer(bytes: u64, family: &FamilyOptions) -> usize {
    let buffers = bytes / 4 / family.max_write_buffers.max(1) as u64;
    usize::try_from(buffers.clamp(64 << 10, 64 << 20)).unwrap_or(64 << 20)
}

/// The engine takes [`Order::Bytewise`] as "no comparator given", so it cannot tell when a caller asked for it. Settings start
/// from the stored order: a family that is stored in another built-in order has [`Order::Bytewise`] only if the caller set it.
///
/// # Errors
/// `InvalidArgument`, as for every other comparator that a family does not have.
fn check_order(family: &str, order: &Order, stored: &Order) -> Result<()> {
    match (order, stored) {
        (Order::Bytewise, Order::ReverseBytewise) => {
            Err(Error::other_comparator(family, stored.name(), Some(order.name())))
        }
        _ => Ok(()),
    }
}

/// What was set for `default` changes neither the order, the directories, the merge operator nor the compaction filter of
/// another family that exists. A family that is named and has no operator takes that of `default`.
fn keep_identity(options: &mut FamilyOptions, stored: &FamilyOptions, named: bool) {
    options.cf_paths.clone_from(&stored.cf_paths);
    options.compaction_filter.clone_from(&stored.compaction_filter);
    let comparator = stored.kept.get("comparator");
    let given = matches!(&options.order, Order::Custom(_));
    if !(given && comparator.as_deref() == Some(options.order.name())) {
        options.order = stored.order.clone();
    }
    let operator = stored.stored_merge_operator.as_deref();
    let is_known = stored.merge_operator.is_some();
    if is_known || !(options.has_operator(operator) || named && operator.is_none()) {
        options.merge_operator.clone_from(&stored.merge_operator);
        options.stored_merge_operator.clone_from(&stored.stored_merge_operator);
    }
}
