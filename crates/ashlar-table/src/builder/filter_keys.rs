//! The filter of a table that is being written: whole, or cut into partitions between data blocks.
//!
//! A partition ends after its last block, and the separator of that block tells this to readers. A user key with
//! versions on both sides of a cut is in both partitions.
//!
//! Source: RocksDB `table/block_based/partitioned_filter_block.cc`.

use crate::options::TableOptions;
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
            fresh: true,
        })
    }

    /// Adds the user key of an entry. `first`: the entry before it has another user key.
    #[inline]
    pub(super) fn add(&mut self, user_key: &[u8], first: bool) {
        if self.fresh || first {
            self.fresh = false;
            let end = user_key.len().saturating_sub(self.timestamp);
            self.builder.add(user_key.get(..end).unwrap_or_default());
        }
    }

    /// Says that data block `end - 1` is closed: the place where a partition may end.
    pub(super) fn close_block(&mut self, end: usize) {
        if self.partition_size.is_some_and(|size| self.builder.size_estimate() >= size) {
            self.cut(end);
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
            self.cut(blocks);
        }
        std::mem::take(&mut self.done)
    }
}
