//! Column families: what each consists of, and the set of them.
//!
//! Handles hold a [`Family`], which never changes except for its settings and its super version. Background changes
//! work on a `LiveFamily`, under the state lock.

pub use ashlar_env::DatabaseId;

use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::{FamilyId, FileNumber, Result};
use ashlar_compaction::{FlushRate, Running};
use ashlar_memtable::{MemtableList, MemtableRep, memtable, memtable_within, protected};
use ashlar_options::{DbOptions, FamilyOptions, FamilyText};
use ashlar_read::expiry::{Expiry, operator_of};
use ashlar_read::iter::{CursorPins, DbIter};
use ashlar_read::merge::Merger;
use ashlar_read::super_version::SuperVersion;
use ashlar_sync::EpochCell;
use ashlar_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use ashlar_tree::version::Version;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The family that always exists.
pub const DEFAULT_FAMILY: &str = "default";

/// An empty memtable with the family's options. `budget`: where its memory is charged.
pub(crate) fn new_memtable(
    options: &FamilyOptions,
    budget: Option<&Arc<MemoryBudget>>,
) -> Arc<dyn MemtableRep> {
    let order = options.order.clone();
    let empty =
        budget.map_or_else(|| memtable(order.clone()), |budget| memtable_within(order.clone(), budget));
    protected(empty, options.memtable_protection_bytes)
}

/// A column family: its identity, its settings, and what readers see of it.
pub struct Family {
    database: DatabaseId,
    id: FamilyId,
    name: String,
    options: EpochCell<FamilyOptions>,
    /// The family's part of the OPTIONS file, once that file was written.
    text: EpochCell<Option<Arc<FamilyText>>>,
    /// `write_buffer_bytes` of the settings, as writers read it.
    write_limit: Arc<AtomicUsize>,
    dropped: AtomicBool,
    pub(crate) super_version: EpochCell<SuperVersion>,
    _charge: MemoryCharge,
}

/// What a family takes beside its memtables, files and tables: settings, their text, the parts of its memtable and version.
const FAMILY_BYTES: usize = 6 << 10;

impl Drop for Family {
    fn drop(&mut self) {
        if self.database.is_inherited() {
            // In a forked child the last handle of a dropped family must not free its tables: other threads may have
            // held the cache's locks at the fork.
            std::mem::forget(self.super_version.get());
        }
    }
}

impl Family {
    /// The open database that the family belongs to.
    #[inline]
    pub fn database(&self) -> DatabaseId {
        self.database
    }

    /// The family's id in the database's files.
    pub fn id(&self) -> FamilyId {
        self.id
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What `cursor`, an iterator of this family, keeps alive although the family has replaced it.
    pub fn pins_of(&self, cursor: &DbIter) -> CursorPins {
        cursor.pins(&self.super_version.get())
    }

    /// The number of switches, flushes and compactions so far, and of other changes of what readers ask. While it stays
    /// the same, no table and no memtable of the family was replaced.
    pub fn installations(&self) -> u64 {
        self.super_version.get().number
    }

    /// The current settings. A caller that needs several consistent settings keeps the value of one call.
    pub fn options(&self) -> Arc<FamilyOptions> {
        self.options.get()
    }

    /// The family's part of the OPTIONS file for `options`, the family's settings. The text is rebuilt only when the
    /// settings have changed.
    ///
    /// # Errors
    /// `InvalidArgument`: the settings make no valid file.
    pub(crate) fn stored_text(
        &self,
        db: &DbOptions,
        options: &Arc<FamilyOptions>,
    ) -> Result<Arc<FamilyText>> {
        if let Some(text) = self.text.get().as_ref()
            && text.tells(options)
        {
            return Ok(Arc::clone(text));
        }
        let text = Arc::new(FamilyText::new(db, &self.name, options)?);
        self.text.set(Arc::new(Some(Arc::clone(&text))));
        Ok(text)
    }

    /// Replaces the settings. The caller holds the lock that serialises changes of settings.
    pub(crate) fn replace_options(&self, options: FamilyOptions) {
        // Relaxed: a writer may use the old limit for one more write.
        self.write_limit.store(options.write_buffer_bytes, Ordering::Relaxed);
        self.options.set(Arc::new(options));
    }

    /// A memtable of the family is full from this many bytes on.
    pub(crate) fn write_limit(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.write_limit)
    }

    /// True once the family was dropped; reads through a handle still work.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({} {:?})", self.id.0, self.name)
    }
}

/// Whether reads at one sequence number see the same before and after a change of memtables or tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reads {
    /// After a switch of memtables, a flush, or a compaction without a filter.
    AsBefore,
    /// Perhaps not.
    #[default]
    Other,
}

/// The state of a family that background changes work on.
pub(crate) struct LiveFamily {
    pub(crate) family: Arc<Family>,
    pub(crate) memtables: MemtableList,
    pub(crate) version: Arc<Version>,
    /// When the running flush of the family was submitted. `None`: none is running.
    pub(crate) flushing: Option<Duration>,
    /// When the family's memtables became full.
    pub(crate) flush_rate: FlushRate,
    /// When the last compaction of level 0 was claimed.
    pub(crate) level0_taken_at: Duration,
    /// How many requests wait for compactions that are not their own. Their next pieces go before further compactions.
    pub(crate) waiting_requests: usize,
    /// The compaction that was claimed while a request waited, because writers were stopped. No other one follows before the request has
    /// looked for its tables again.
    pub(crate) passed_request: Option<Running>,
}

/// Memtables of a family, newest first.
pub(crate) type Memtables = Vec<Arc<dyn MemtableRep>>;

impl LiveFamily {
    pub(crate) fn new(
        (database, id): (DatabaseId, FamilyId),
        name: &str,
        options: FamilyOptions,
        memtables: MemtableList,
        version: Arc<Version>,
    ) -> LiveFamily {
        options.table.prefix_extractor.iter().for_each(|own| version.tables().extract_with(own));
        let first = SuperVersion {
            mem: Arc::clone(&memtables.current().rep),
            imm: memtables.immutable_newest_first(),
            version: Arc::clone(&version),
            merger: Arc::new(Merger::new(name, operator_of(&options))),
            expiry: Expiry::of(&options),
            number: 1,
            contents: 1,
        };
        let budget = version.tables().budget();
        let charge = budget.map_or_else(MemoryCharge::none, |b| b.charge(MemoryUse::Files, FAMILY_BYTES));
        let family = Arc::new(Family {
            database,
            id,
            name: name.to_owned(),
            write_limit: Arc::new(AtomicUsize::new(options.write_buffer_bytes)),
            options: EpochCell::new(Arc::new(options)),
            text: EpochCell::new(Arc::default()),
            dropped: AtomicBool::new(false),
            super_version: EpochCell::new(Arc::new(first)),
            _charge: charge,
        });
        LiveFamily {
            family,
            memtables,
            version,
            flushing: None,
            flush_rate: FlushRate::default(),
            level0_taken_at: Duration::ZERO,
            waiting_requests: 0,
            passed_request: None,
        }
    }

    /// The family and its immutable memtables, newest first, which the next flush takes. `None`: there are none.
    pub(crate) fn to_flush(&self) -> Option<(Arc<Family>, Memtables)> {
        let memtables = self.memtables.immutable_newest_first().into_vec();
        (!memtables.is_empty()).then(|| (Arc::clone(&self.family), memtables))
    }

    /// Shows readers the current memtables and version. Returns the replaced super version so that the caller can drop
    /// it outside the lock.
    pub(crate) fn publish(&self, reads: Reads) -> Arc<SuperVersion> {
        let before = self.family.super_version.get();
        let number = before.number + 1;
        self.family.super_version.set(Arc::new(SuperVersion {
            mem: Arc::clone(&self.memtables.current().rep),
            imm: self.memtables.immutable_newest_first(),
            version: Arc::clone(&self.version),
            merger: Arc::clone(&before.merger),
            expiry: before.expiry,
            number,
            contents: if reads == Reads::AsBefore { before.contents } else { number },
        }));
        before
    }

    /// Removes the super version when the database closes, so that readers see nothing. Returns the replaced super
    /// version.
    pub(crate) fn retire(&self) -> Arc<SuperVersion> {
        let before = self.family.super_version.get();
        self.family.super_version.set(Arc::new(SuperVersion {
            mem: memtable(self.version.order.clone()),
            imm: Box::default(),
            version: Arc::new(Version::empty(self.version.levels.len(), Arc::clone(self.version.tables()))),
            merger: Arc::clone(&before.merger),
            expiry: before.expiry,
            number: before.number + 1,
            contents: before.number + 1,
        }));
        before
    }

    /// Marks the family as dropped for every handle.
    pub(crate) fn mark_dropped(&self) {
        self.family.dropped.store(true, Ordering::Release);
    }

    /// The first WAL file that the family needs.
    pub(crate) fn first_wal(&self) -> FileNumber {
        self.memtables.first_wal_after(0)
    }
}

/// The live families.
#[derive(Default)]
pub(crate) struct FamilySet {
    by_id: BTreeMap<FamilyId, LiveFamily>,
}

impl FamilySet {
    pub(crate) fn insert(&mut self, state: LiveFamily) {
        self.by_id.insert(state.family.id(), state);
    }

    pub(crate) fn remove(&mut self, id: FamilyId) -> Option<LiveFamily> {
        self.by_id.remove(&id)
    }

    pub(crate) fn get(&self, id: FamilyId) -> Option<&LiveFamily> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: FamilyId) -> Option<&mut LiveFamily> {
        self.by_id.get_mut(&id)
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&LiveFamily> {
        self.by_id.values().find(|s| s.family.name() == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LiveFamily> {
        self.by_id.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LiveFamily> {
        self.by_id.values_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The first WAL file that any family needs.
    pub(crate) fn first_wal(&self) -> Option<FileNumber> {
        self.by_id.values().map(LiveFamily::first_wal).min()
    }
}
