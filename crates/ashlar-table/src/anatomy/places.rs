//! The place and the purpose of each block.

use super::Anatomy;
use ashlar_base::{Error, Result};
use ashlar_format::block::{DataBlock, IndexCursor, IndexEntries};
use ashlar_format::table::{BlockHandle, IndexKind, MetaIndex, TableKind};

/// The purpose of a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockRole {
    /// Entries.
    Data,
    /// The index, or the index over its partitions.
    Index,
    /// A part of the index.
    IndexPartition,
    /// A filter over the whole table.
    Filter,
    /// The index over the partitions of a filter.
    FilterIndex,
    /// A part of the filter.
    FilterPartition,
    /// Range tombstones.
    RangeDeletions,
    /// The dictionary of compressed blocks.
    Dictionary,
    /// The properties.
    Properties,
    /// The metaindex.
    MetaIndex,
    /// A meta block by a name that has no meaning here.
    Other(Vec<u8>),
}

/// A block and its purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// The handle of the block.
    pub handle: BlockHandle,
    /// The purpose of the block.
    pub role: BlockRole,
}

/// A data block as the index describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlace {
    /// The handle of the block.
    pub handle: BlockHandle,
    /// A key at or after the block's last key and before the first key of the next block: internal, or without trailer.
    pub separator: Vec<u8>,
    /// The separator has no trailer.
    pub user_key: bool,
    /// The internal key of the first entry, in tables whose index has it.
    pub first_key: Option<Vec<u8>>,
}

impl DataPlace {
    /// The separator without a trailer.
    pub fn separator_user_key(&self) -> &[u8] {
        let len = self.separator.len().saturating_sub(if self.user_key { 0 } else { 8 });
        self.separator.get(..len).unwrap_or_default()
    }
}

/// An entry of an index block.
struct IndexEntry {
    key: Vec<u8>,
    handle: BlockHandle,
    first_key: Option<Vec<u8>>,
}

impl Anatomy {
    /// The data blocks in the order of the index.
    ///
    /// # Errors
    /// `Corruption`, `NotSupported`: properties or an index block cannot be read.
    pub fn data_blocks(&self) -> Result<Vec<DataPlace>> {
        let (format, root, partitioned) = self.index_root()?;
        let top = self.index_entries(root, format)?;
        let leaves = if partitioned { self.under(&top, format)? } else { top };
        let place = |IndexEntry { key, handle, first_key }| DataPlace {
            handle,
            separator: key,
            user_key: format.user_keys,
            first_key,
        };
        Ok(leaves.into_iter().map(place).collect())
    }

    /// All blocks that handles lead to, by offset, and the error that hides further blocks.
    pub fn places(&self) -> (Vec<BlockPlace>, Option<Error>) {
        let mut all = vec![BlockPlace { handle: self.footer().metaindex, role: BlockRole::MetaIndex }];
        let mut first_error = None;
        let mut found = |handles: Result<Vec<BlockPlace>>| match handles {
            Ok(some) => all.extend(some),
            Err(e) => drop(first_error.get_or_insert(e)),
        };
        found(Ok(self.meta_places()));
        found(self.index_places());
        found(self.filter_places());
        all.sort_by(|a, b| (a.handle.offset, &a.role).cmp(&(b.handle.offset, &b.role)));
        all.dedup();
        (all, first_error)
    }

    fn meta_places(&self) -> Vec<BlockPlace> {
        let role = |name: &[u8]| match name {
            MetaIndex::PROPERTIES => BlockRole::Properties,
            MetaIndex::INDEX => BlockRole::Index,
            MetaIndex::DICTIONARY => BlockRole::Dictionary,
            MetaIndex::RANGE_DELETIONS => BlockRole::RangeDeletions,
            _ if name.starts_with(b"fullfilter.") => BlockRole::Filter,
            _ if name.starts_with(b"partitionedfilter.") => BlockRole::FilterIndex,
            _ => BlockRole::Other(name.to_vec()),
        };
        // Empty entries stand for a missing block.
        let there = self.meta().iter().filter(|(_, handle)| handle.size > 0);
        there.map(|(name, handle)| BlockPlace { handle, role: role(name) }).collect()
    }

    fn index_places(&self) -> Result<Vec<BlockPlace>> {
        let (format, root, partitioned) = self.index_root()?;
        let mut places = vec![BlockPlace { handle: root, role: BlockRole::Index }];
        let as_role = |entries: &[IndexEntry], role: BlockRole| -> Vec<BlockPlace> {
            entries.iter().map(|entry| BlockPlace { handle: entry.handle, role: role.clone() }).collect()
        };
        let top = self.index_entries(root, format)?;
        if partitioned {
            places.extend(as_role(&top, BlockRole::IndexPartition));
            places.extend(as_role(&self.under(&top, format)?, BlockRole::Data));
        } else {
            places.extend(as_role(&top, BlockRole::Data));
        }
        Ok(places)
    }

    /// The partitions of a filter. Their index is of the form of the table's own.
    fn filter_places(&self) -> Result<Vec<BlockPlace>> {
        let mut places = Vec::new();
        for (name, handle) in self.meta().iter() {
            if name.starts_with(b"partitionedfilter.") && handle.size > 0 {
                let format = IndexEntries { first_keys: false, ..self.index_root()?.0 };
                let entries = self.index_entries(handle, format)?;
                let place =
                    |entry: IndexEntry| BlockPlace { handle: entry.handle, role: BlockRole::FilterPartition };
                places.extend(entries.into_iter().map(place));
            }
        }
        Ok(places)
    }

    fn index_root(&self) -> Result<(IndexEntries, BlockHandle, bool)> {
        let properties = self.properties()?;
        let at_meta = |e: ashlar_base::Malformed| e.in_file(self.path(), self.footer().metaindex.offset);
        let (kind, format) = match self.footer().kind {
            TableKind::LevelDb => (IndexKind::BinarySearch, IndexEntries::default()),
            TableKind::BlockBased => {
                (properties.index_kind().map_err(at_meta)?, properties.index_entries().map_err(at_meta)?)
            }
        };
        let root = self.footer().index.or_else(|| self.meta().get(MetaIndex::INDEX));
        let missing = || Error::corruption("table has no index block").at_path(self.path());
        Ok((format, root.ok_or_else(missing)?, kind == IndexKind::TwoLevel))
    }

    fn under(&self, top: &[IndexEntry], format: IndexEntries) -> Result<Vec<IndexEntry>> {
        let mut all = Vec::new();
        for partition in top {
            all.extend(self.index_entries(partition.handle, format)?);
        }
        Ok(all)
    }

    fn index_entries(&self, handle: BlockHandle, format: IndexEntries) -> Result<Vec<IndexEntry>> {
        let bytes = self.block(handle)?.content?;
        let block = DataBlock::parse(&bytes).map_err(|e| self.misread(e, handle))?;
        let mut cursor = IndexCursor::new(format);
        let mut all = Vec::new();
        cursor.first(&block).map_err(|e| self.misread(e, handle))?;
        while let Some(value) = cursor.index_value() {
            let first_key = value.first_key.map(|range| range.of(&bytes).to_vec());
            all.push(IndexEntry { key: cursor.key().to_vec(), handle: value.handle, first_key });
            cursor.next(&block).map_err(|e| self.misread(e, handle))?;
        }
        Ok(all)
    }
}
