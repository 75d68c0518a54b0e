//! The filter of an open table: whole in memory, or its top level in memory and its partitions read when needed.
//!
//! 1. A filter or partition that is unreadable or of an unknown kind excludes no key. Reads are then slower and still
//!    correct; [`TableFilter::check`] reports it.
//! 2. LevelDB's filters are asked after the index has named the block, because they answer by the block's place in the
//!    file.
//! 3. A partition that was read stays in memory, and charged, until the table is closed.
//!
//! Source: RocksDB `table/block_based/partitioned_filter_block.cc`.

use crate::index::FlatIndex;
use crate::reader::Reading;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Result, Trailer};
use ashlar_cache::Pages;
use ashlar_format::filter::{FilterForm, LevelDbFilter, xxph3_64};
use std::sync::OnceLock;

/// The hash of a user key that filters ask for. A read computes it once for all tables.
#[inline]
pub fn filter_hash(user_key: &[u8]) -> u64 {
    xxph3_64(user_key)
}

/// The filter of some keys, in memory.
#[derive(Debug)]
struct FilterBlock {
    form: FilterForm,
    bytes: Pages<u8>,
}

impl FilterBlock {
    fn none() -> Self {
        FilterBlock { form: FilterForm::Everything("no filter"), bytes: Pages::default() }
    }

    /// A filter block. An unknown one counts as no filter, and its bytes are not kept.
    fn new(bytes: Vec<u8>) -> Self {
        match FilterForm::decode(&bytes) {
            FilterForm::Everything(what) => {
                FilterBlock { form: FilterForm::Everything(what), bytes: Pages::default() }
            }
            form => FilterBlock { form, bytes: bytes.into() },
        }
    }

    #[inline]
    fn may_contain(&self, user_key: &[u8], hash: u64) -> bool {
        let lost = planted(Bug::FilterSaysNo) && user_key.last().is_some_and(|last| *last == b'7');
        !lost && self.form.may_contain_hashed(&self.bytes, user_key, hash)
    }
}

/// Partitions and the separators between them.
#[derive(Debug)]
pub(crate) struct FilterParts {
    top: FlatIndex,
    parts: Box<[OnceLock<FilterBlock>]>,
    /// For the partitions that have been read.
    charge: MemoryCharge,
}

#[derive(Debug)]
enum Scope {
    Whole(FilterBlock),
    Parts(Box<FilterParts>),
    LevelDb(LevelDbFilter, Pages<u8>),
}

/// The filter of a table, or none.
#[derive(Debug)]
pub(crate) struct TableFilter {
    scope: Scope,
    /// The length of the timestamp at the end of a user key, which filters ignore.
    timestamp: usize,
}

impl TableFilter {
    /// No filter: every key may be there.
    pub(crate) fn none() -> Self {
        TableFilter { scope: Scope::Whole(FilterBlock::none()), timestamp: 0 }
    }

    /// One filter for all keys.
    pub(crate) fn whole(bytes: Vec<u8>, timestamp: usize) -> Self {
        TableFilter { scope: Scope::Whole(FilterBlock::new(bytes)), timestamp }
    }

    /// A filter in partitions, by the separators between them.
    pub(crate) fn partitioned(top: FlatIndex, timestamp: usize, charge: MemoryCharge) -> Self {
        let parts = (0..top.len()).map(|_| OnceLock::new()).collect();
        TableFilter { scope: Scope::Parts(Box::new(FilterParts { top, parts, charge })), timestamp }
    }

    /// LevelDB's filters, one for each part of the file; none when the block is not recognised.
    pub(crate) fn leveldb(bytes: Vec<u8>) -> Self {
        match LevelDbFilter::decode(&bytes) {
            Some(filter) => TableFilter { scope: Scope::LevelDb(filter, bytes.into()), timestamp: 0 },
            None => Self::none(),
        }
    }

    /// False when the data block at `offset` of the file certainly has no entry of that user key.
    #[inline]
    pub(crate) fn block_may_contain(&self, offset: impl FnOnce() -> u64, user_key: &[u8]) -> bool {
        match &self.scope {
            Scope::LevelDb(filter, bytes) => filter.may_contain(bytes, offset(), user_key),
            Scope::Whole(_) | Scope::Parts(_) => true,
        }
    }

    /// False when the table certainly has no entry of that user key at or behind `trailer`. `hash` is the hash of the
    /// whole user key; of keys with timestamps another one is computed here.
    #[inline]
    pub(crate) fn may_contain(
        &self,
        file: Reading<'_>,
        user_key: &[u8],
        trailer: Trailer,
        hash: u64,
    ) -> bool {
        let (name, hash) = match self.timestamp {
            0 => (user_key, hash),
            len => {
                let name = user_key.get(..user_key.len().saturating_sub(len)).unwrap_or_default();
                (name, xxph3_64(name))
            }
        };
        match &self.scope {
            Scope::Whole(filter) => filter.may_contain(name, hash),
            Scope::Parts(parts) => parts.may_contain(file, (user_key, trailer), name, hash),
            Scope::LevelDb(..) => true,
        }
    }

    /// Prefetches the line that [`TableFilter::may_contain`] will read. Only for a filter in one piece: a partition is
    /// found by a search.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Scope::Whole(filter) = &self.scope
            && let Some(at) = filter.form.line_of(hash)
        {
            filter.bytes.prefetch(at);
        }
    }

    /// Whether the filter can exclude keys before the index is searched.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        match &self.scope {
            Scope::Whole(filter) => !filter.bytes.is_empty(),
            Scope::Parts(_) => true,
            Scope::LevelDb(..) => false,
        }
    }

    /// Whether the filter is asked for one block after the other: see [`TableFilter::block_may_contain`].
    #[inline]
    pub(crate) fn is_by_block(&self) -> bool {
        matches!(self.scope, Scope::LevelDb(..))
    }

    /// Reads every partition.
    ///
    /// # Errors
    /// `Corruption` or `Io` for the first one that cannot be read.
    pub(crate) fn check(&self, file: Reading<'_>) -> Result<()> {
        let Scope::Parts(parts) = &self.scope else { return Ok(()) };
        (0..parts.top.len()).filter_map(|at| parts.top.handle(at)).try_for_each(|handle| {
            file.read_verified(handle)?;
            Ok(())
        })
    }

    /// Whether the filter is in partitions.
    pub(crate) fn is_partitioned(&self) -> bool {
        matches!(self.scope, Scope::Parts(_))
    }

    /// The memory of the filter now, in bytes.
    pub(crate) fn memory(&self) -> usize {
        match &self.scope {
            Scope::Whole(filter) => filter.bytes.len(),
            Scope::LevelDb(_, bytes) => bytes.len(),
            Scope::Parts(parts) => {
                let loaded = parts.parts.iter().filter_map(OnceLock::get);
                parts.top.memory() + loaded.map(|part| part.bytes.len()).sum::<usize>()
            }
        }
    }
}

impl FilterParts {
    fn may_contain(
        &self,
        file: Reading<'_>,
        (user_key, trailer): (&[u8], Trailer),
        name: &[u8],
        hash: u64,
    ) -> bool {
        // Keys behind the last separator belong to the last partition.
        let Some(last) = self.top.len().checked_sub(1) else { return true };
        let at = self.top.find(user_key, trailer).min(last);
        let Some(cell) = self.parts.get(at as usize) else { return true };
        match cell.get() {
            Some(part) => part.may_contain(name, hash),
            None => self.load(at, cell, file).is_none_or(|part| part.may_contain(name, hash)),
        }
    }

    /// The partition; `None` when the file could not be read this time.
    #[cold]
    fn load<'a>(
        &self,
        at: u32,
        cell: &'a OnceLock<FilterBlock>,
        file: Reading<'_>,
    ) -> Option<&'a FilterBlock> {
        perf::add(Metric::FilterBlockReadCount, 1);
        let read = file.read_verified(self.top.handle(at).unwrap_or_default());
        let block = match read {
            Ok(bytes) => FilterBlock::new(bytes),
            Err(e) if e.is_corruption() => FilterBlock::none(),
            Err(_) => return None,
        };
        let memory = block.bytes.len();
        if cell.set(block).is_ok() {
            self.charge.grow(memory);
        }
        cell.get()
    }
}
