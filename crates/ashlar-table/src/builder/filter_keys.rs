//! The filter of a table that is being written: whole, or cut into partitions between data blocks.
//!
//! 1. A partition ends after its last block, and the separator of that block tells this to readers. A user key with
//!    versions on both sides of a cut is in both partitions.
//! 2. Beside whole keys, or instead of them, a filter holds the prefix of each key, if there is an extractor.
//! 3. A partition also holds the prefix of the first key behind it, because a scan may begin between its last key and its
//!    separator; and that of the last key before it, for scans that go backward.
//! 4. Once an extractor fails for a key, the filter answers for no prefix, and the properties of the table name no extractor.
//!
//! Source: RocksDB `table/block_based/partitioned_filter_block.cc`.

use crate::options::TableOptions;
use ashlar_base::ext::prefix_extractor::{ExtractorFailed, PrefixExtractor};
use ashlar_format::filter::{FilterBuilder, FilterPolicy};
use ashlar_format::table::IndexKind;

/// A finished partition.
#[derive(Debug)]
pub(super) struct FilterPartition {
    /// Number of the data block behind its last one.
    pub(super) end: usize,
    /// The filter.
    pub(super) bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct FilterKeys {
    policy: FilterPolicy,
    version: u32,
    builder: FilterBuilder,
    /// Bytes at which a partition is closed; `None`: the filter is whole.
    partition_size: Option<usize>,
    done: Vec<FilterPartition>,
    done_bytes: usize,
    done_keys: usize,
    timestamp: usize,
    whole_keys: bool,
    prefixes: Option<PrefixExtractor>,
    /// The extractor failed, and is asked no more.
    failed: bool,
    /// The prefix added last; meaningless while `has_prefix` is false.
    prefix: Vec<u8>,
    has_prefix: bool,
    /// A partition is due: the number of the data block behind it.
    due: Option<usize>,
    /// The next key is the first of its builder.
    fresh: bool,
}

impl FilterKeys {
    /// `None` when the options ask for no filter.
    pub(super) fn new(options: &TableOptions) -> Option<Self> {
        let (policy, version) = (options.filter?, options.format_version);
        let partitioned = options.partition_filters && options.index == IndexKind::TwoLevel;
        Some(FilterKeys {
            builder: policy.builder(version)?,
            policy,
            version,
            partition_size: partitioned.then_some(options.metadata_block_size),
            done: Vec::new(),
            done_bytes: 0,
            done_keys: 0,
            timestamp: options.order.timestamp_len(),
            whole_keys: options.whole_key_filtering,
            prefixes: options.filtered_prefixes(),
            failed: false,
            prefix: Vec::new(),
            has_prefix: false,
            due: None,
            fresh: true,
        })
    }

    /// Adds the user key of an entry. `first`: the entry before it has another user key.
    #[inline]
    pub(super) fn add(&mut self, user_key: &[u8], first: bool) {
        if self.fresh || first || self.due.is_some() {
            let end = user_key.len().saturating_sub(self.timestamp);
            let name = user_key.get(..end).unwrap_or_default();
            if self.prefixes.is_some() || self.due.is_some() {
                self.add_prefix(name);
            }
            self.fresh = false;
            if self.whole_keys {
                self.builder.add(name);
            }
        }
    }

    /// Adds the prefix of a key to the filter. Cuts the partition that is due, and adds the prefix on both sides of the cut.
    #[inline(never)]
    fn add_prefix(&mut self, name: &[u8]) {
        let prefix = match self.prefixes.as_ref().map(|extractor| extractor.try_prefix(name)) {
            Some(Ok(prefix)) => prefix,
            Some(Err(ExtractorFailed)) => {
                (self.prefixes, self.failed, self.has_prefix) = (None, true, false);
                None
            }
            None => None,
        };
        let new = prefix.filter(|prefix| !self.has_prefix || *prefix != self.prefix);
        if let Some(new) = new {
            self.builder.add(new);
        }
        if let Some(end) = self.due.take() {
            self.cut(end);
            if self.has_prefix {
                self.builder.add(&self.prefix);
            }
            if let Some(new) = new {
                self.builder.add(new);
            }
        }
        if let Some(new) = new {
            self.prefix.clear();
            self.prefix.extend_from_slice(new);
            self.has_prefix = true;
        }
    }

    /// Says that data block `end - 1` is closed: the place where a partition may end.
    pub(super) fn close_block(&mut self, end: usize) {
        if self.partition_size.is_some_and(|size| self.builder.size_estimate() >= size) {
            self.due = Some(end);
        }
    }

    fn cut(&mut self, end: usize) {
        let Some(next) = self.policy.builder(self.version) else { return };
        let builder = std::mem::replace(&mut self.builder, next);
        let bytes = builder.finish();
        self.done_bytes += bytes.len();
        self.done_keys += builder.keys();
        self.done.push(FilterPartition { end, bytes });
        self.fresh = true;
    }

    /// Number of keys added.
    pub(super) fn keys(&self) -> usize {
        self.done_keys + self.builder.keys()
    }

    /// About the bytes of memory it takes, and will take when the filter is made: a hash per key, and the bits.
    pub(super) fn memory(&self) -> usize {
        self.builder.keys() * size_of::<u64>() + self.size_estimate()
    }

    /// About the bytes of the filter.
    pub(super) fn size_estimate(&self) -> usize {
        self.done_bytes + self.builder.size_estimate()
    }

    /// The extractor of the prefixes of all keys so far.
    pub(super) fn prefixes(&self) -> Option<&PrefixExtractor> {
        self.prefixes.as_ref()
    }

    /// Whether the filter holds something of every key of its domain.
    pub(super) fn is_complete(&self) -> bool {
        self.whole_keys || !self.failed
    }

    /// True when the filter is to be in partitions.
    pub(super) fn is_partitioned(&self) -> bool {
        self.partition_size.is_some()
    }

    /// The whole filter.
    pub(super) fn whole(&self) -> Vec<u8> {
        self.builder.finish()
    }

    /// All partitions, for `blocks` data blocks.
    pub(super) fn partitions(&mut self, blocks: usize) -> Vec<FilterPartition> {
        if self.builder.keys() > 0 {
            self.cut(self.due.unwrap_or(blocks));
        }
        std::mem::take(&mut self.done)
    }
}
