//! The filter of an open table: whole in memory, or its top level in memory and its partitions read when needed.
//!
//! 1. A filter or partition that is unreadable or of an unknown kind excludes no key. Reads are then slower and still
//!    correct; [`TableFilter::check`] reports it.
//! 2. LevelDB's filters are asked after the index has named the block, because they answer by the block's place in the
//!    file.
//! 3. A partition that was read stays in memory, and charged, until the table is closed.
//! 4. A filter may hold prefixes beside whole keys, or instead of them. [`Holds`] says what to ask it for.
//!
//! Source: RocksDB `table/block_based/partitioned_filter_block.cc`.

use crate::index::FlatIndex;
use crate::reader::Reading;
use ashlar_base::ext::prefix_extractor::PrefixExtractor;
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

/// What a filter holds of each key. The default is the whole user key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    /// The length of the timestamp at the end of a user key, which filters ignore.
    pub(crate) timestamp: usize,
    /// Whole keys are missing.
    pub(crate) no_whole_keys: bool,
    /// The rule for prefixes.
    pub(crate) prefixes: Option<PrefixExtractor>,
}

impl Holds {
    /// The part of a user key that the filter knows, if it differs from the user key; `None`: the filter knows nothing of it.
    #[cold]
    fn part<'k>(&self, user_key: &'k [u8]) -> Option<&'k [u8]> {
        let name = user_key.get(..user_key.len().saturating_sub(self.timestamp)).unwrap_or_default();
        if self.no_whole_keys {
            self.prefixes.as_ref().and_then(|extractor| extractor.prefix(name))
        } else {
            Some(name)
        }
    }
}

/// The filter of a table, or none.
#[derive(Debug)]
pub(crate) struct TableFilter {
    scope: Scope,
    holds: Holds,
    /// The filter knows user keys as they are.
    is_plain: bool,
}

impl TableFilter {
    /// No filter: every key may be there.
    pub(crate) fn none() -> Self {
        TableFilter::of(Scope::Whole(FilterBlock::none()), Holds::default())
    }

    fn of(scope: Scope, holds: Holds) -> Self {
        let is_plain = holds.timestamp == 0 && !holds.no_whole_keys;
        TableFilter { scope, holds, is_plain }
    }

    /// One filter for all keys.
    pub(crate) fn whole(bytes: Vec<u8>, holds: Holds) -> Self {
        TableFilter::of(Scope::Whole(FilterBlock::new(bytes)), holds)
    }

    /// A filter in partitions, by the separators between them.
    pub(crate) fn partitioned(top: FlatIndex, holds: Holds, charge: MemoryCharge) -> Self {
        let parts = (0..top.len()).map(|_| OnceLock::new()).collect();
        TableFilter::of(Scope::Parts(Box::new(FilterParts { top, parts, charge })), holds)
    }

    /// LevelDB's filters, one for each part of the file; none when the block is not recognised.
    pub(crate) fn leveldb(bytes: Vec<u8>) -> Self {
        match LevelDbFilter::decode(&bytes) {
            Some(filter) => TableFilter::of(Scope::LevelDb(filter, bytes.into()), Holds::default()),
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
        let (name, hash) = match self.is_plain {
            true => (user_key, hash),
            false => match self.holds.part(user_key) {
                Some(name) => (name, xxph3_64(name)),
                None => return true,
            },
        };
        match &self.scope {
            Scope::Whole(filter) => filter.may_contain(name, hash),
            Scope::Parts(parts) => parts.may_contain(file, (user_key, trailer), name, hash),
            Scope::LevelDb(..) => true,
        }
    }

    /// False when the table certainly has no point entry in the range, because all keys of the range would have one prefix
    /// that the filter does not hold. `closed`: the range includes `upper`. In ascending order of bytes.
    pub(crate) fn may_meet(&self, file: Reading<'_>, lower: &[u8], upper: &[u8], closed: bool) -> bool {
        let prefixes = self.holds.prefixes.as_ref();
        let Some(extractor) = prefixes.filter(|_| self.holds.timestamp == 0) else { return true };
        let Some(prefix) = extractor.of_range(lower, upper, closed) else { return true };
        let hash = xxph3_64(prefix);
        match &self.scope {
            Scope::Whole(filter) => filter.may_contain(prefix, hash),
            Scope::Parts(parts) => parts.may_hold_behind(file, lower, prefix, hash),
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
        self.part_may_contain(file, at, name, hash)
    }

    /// Whether the first key at or behind `lower` may have the prefix. That key is in the next partition if `lower` lies
    /// behind the last key of its own. The own partition should hold the prefix too; not every writer may have added it.
    fn may_hold_behind(&self, file: Reading<'_>, lower: &[u8], prefix: &[u8], hash: u64) -> bool {
        let at = self.top.find(lower, Trailer::FIRST);
        let parts = at..(at + 2).min(self.top.len());
        parts.into_iter().any(|at| self.part_may_contain(file, at, prefix, hash))
    }

    #[inline]
    fn part_may_contain(&self, file: Reading<'_>, at: u32, name: &[u8], hash: u64) -> bool {
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
