//! The metaindex block: the names and places of the meta blocks.
//!
//! Source: RocksDB `table/meta_blocks.cc`, `table/block_based/block_based_table_reader.cc`.

use super::handle::BlockHandle;
use crate::block::{BlockBuilder, DataBlock, PlainCursor, PlainEntries};
use crate::unreadable::Unreadable;
use ashlar_base::Malformed;
use ashlar_base::bytes::Cursor;

/// The compatibility name all built-in filters (Bloom of any version, Ribbon) go by.
const BUILTIN_FILTER: &[u8] = b"rocksdb.BuiltinBloomFilter";

/// What a filter entry of the metaindex covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterScope {
    /// One filter for the whole file.
    Full,
    /// An index block over filter partitions.
    Partitioned,
}

/// A filter that is of a built-in kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPlace {
    /// What it covers.
    pub scope: FilterScope,
    /// The filter block, or the index over its partitions.
    pub handle: BlockHandle,
}

/// The entries of a metaindex block, ascending by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaIndex {
    entries: Vec<(Vec<u8>, BlockHandle)>,
}

impl MetaIndex {
    /// The properties block; every RocksDB table has one.
    pub const PROPERTIES: &'static [u8] = b"rocksdb.properties";
    /// The index block, from version 6 on.
    pub const INDEX: &'static [u8] = b"rocksdb.index";
    /// The compression dictionary for data blocks.
    pub const DICTIONARY: &'static [u8] = b"rocksdb.compression_dict";
    /// The range tombstones.
    pub const RANGE_DELETIONS: &'static [u8] = b"rocksdb.range_del";
    /// The one full filter of a built-in kind.
    pub const FULL_FILTER: &'static [u8] = b"fullfilter.rocksdb.BuiltinBloomFilter";
    /// LevelDB's filters.
    pub const LEVELDB_FILTER: &'static [u8] = b"filter.leveldb.BuiltinBloomFilter2";
    /// The index over the partitions of a filter of a built-in kind.
    pub const PARTITIONED_FILTER: &'static [u8] = b"partitionedfilter.rocksdb.BuiltinBloomFilter";

    /// Decodes an uncompressed metaindex block. Unknown names are kept. Entries must ascend by name.
    pub fn decode(block: &[u8]) -> Result<Self, Unreadable> {
        let block = DataBlock::parse(block)?;
        let mut cursor = PlainCursor::new(PlainEntries);
        let mut entries: Vec<(Vec<u8>, BlockHandle)> = Vec::new();
        cursor.first(&block)?;
        while cursor.is_on_entry() {
            let at = cursor.offset();
            if entries.last().is_some_and(|(last, _)| last.as_slice() >= cursor.key()) {
                return Err(Malformed { field: "metaindex", at, what: "names out of order" }.into());
            }
            let handle = BlockHandle::decode(&mut Cursor::new(cursor.value(&block)))?;
            entries.push((cursor.key().to_vec(), handle));
            cursor.next(&block)?;
        }
        Ok(MetaIndex { entries })
    }

    /// Adds or replaces an entry.
    pub fn set(&mut self, name: &[u8], handle: BlockHandle) {
        match self.entries.binary_search_by(|(n, _)| n.as_slice().cmp(name)) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.1 = handle;
                }
            }
            Err(at) => self.entries.insert(at, (name.to_vec(), handle)),
        }
    }

    /// The block of that name.
    pub fn get(&self, name: &[u8]) -> Option<BlockHandle> {
        let at = self.entries.binary_search_by(|(n, _)| n.as_slice().cmp(name)).ok()?;
        self.entries.get(at).map(|(_, handle)| *handle)
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], BlockHandle)> {
        self.entries.iter().map(|(name, handle)| (name.as_slice(), *handle))
    }

    /// The filter, when there is one of a built-in kind. A custom or obsolete one is no filter: every key may match.
    pub fn filter(&self) -> Option<FilterPlace> {
        self.iter().find_map(|(name, handle)| {
            let (scope, policy) = match name.strip_prefix(b"fullfilter.") {
                Some(policy) => (FilterScope::Full, policy),
                None => (FilterScope::Partitioned, name.strip_prefix(b"partitionedfilter.")?),
            };
            (policy == BUILTIN_FILTER && handle.size > 0).then_some(FilterPlace { scope, handle })
        })
    }

    /// The block, uncompressed.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = BlockBuilder::new(1);
        let mut value = Vec::new();
        for (name, handle) in &self.entries {
            value.clear();
            handle.encode(&mut value);
            block.add(name, &value);
        }
        block.finish().to_vec()
    }
}
