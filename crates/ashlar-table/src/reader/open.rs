//! Opening a table: footer, metaindex, properties, index, range tombstones, filter, in this order.

use crate::filter::TableFilter;
use crate::index::{FlatIndex, IndexParts};
use crate::options::ReaderOptions;
use crate::reader::tombstones::decode_tombstones;
use crate::reader::{BlockFile, TableReader};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Error, InternalKey, Result, SeqNum};
use ashlar_cache::SlotArray;
use ashlar_env::ReadFile;
use ashlar_format::Unreadable;
use ashlar_format::block::{DataBlock, IndexCursor, IndexEntries};
use ashlar_format::compress::Compression;
use ashlar_format::table::{
    BlockHandle, CompressionProperty, FilterScope, Footer, IndexKind, MetaIndex, Properties, TableKind,
};
use std::sync::Arc;

impl TableReader {
    /// Opens a table of which the MANIFEST says that it has `expected_size` bytes. Index, filter and range tombstones
    /// are read into memory, data blocks are not.
    ///
    /// # Errors
    /// `Corruption`: another size, or anything in the parts read that cannot be. `NotSupported`: a feature by name.
    /// `InvalidArgument`: the keys are in another order than `options.order`. `Io`: the reads.
    /// # Source
    /// RocksDB `table/block_based/block_based_table_reader.cc` (`Open`).
    pub fn open(
        file: Arc<dyn ReadFile>,
        expected_size: u64,
        options: ReaderOptions,
    ) -> Result<Arc<TableReader>> {
        let (size, path) = (file.len(), file.path().to_path_buf());
        if size != expected_size {
            let text = format!("table has {size} bytes where {expected_size} are recorded");
            return Err(Error::corruption(text).at_path(&path).hint("Restore the file from a backup"));
        }
        let tail_len = usize::try_from(size).unwrap_or(usize::MAX).min(Footer::LEN);
        let tail_at = size - tail_len as u64;
        let mut tail = vec![0; tail_len];
        file.read_exact_at(&mut tail, tail_at)?;
        let (footer, limit) = Footer::decode(&tail, size).map_err(|e| e.in_file(&path, tail_at))?;
        let file = BlockFile::new(file, limit, footer.checksum, footer.kind, options.verify_checksums);
        let opening = Opening { file, footer, options };
        opening.finish(size)
    }
}

struct Opening {
    file: BlockFile,
    footer: Footer,
    options: ReaderOptions,
}

impl Opening {
    fn finish(self, size: u64) -> Result<Arc<TableReader>> {
        let meta = self.decode(self.footer.metaindex, MetaIndex::decode)?;
        let properties = self.properties(&meta)?;
        self.check_features(&meta, &properties)?;
        let global_seq = self.global_seq(&properties)?;
        let index = self.index(&meta, &properties)?;
        let tombstones = self.tombstones(&meta, &properties, global_seq)?;
        let (filter, filter_error) = match self.filter(&meta, &properties) {
            Ok(filter) => (filter, None),
            Err(e) => (TableFilter::none(), Some(e)),
        };
        let blocks = index.len();
        let last = blocks.checked_sub(1).and_then(|at| index.handle(at));
        Ok(Arc::new(TableReader {
            slots: SlotArray::new(self.options.pool.clone(), blocks),
            order: self.options.order,
            number: self.options.number,
            tombstones: Arc::new(tombstones),
            data_end: last.and_then(|handle| handle.end_with_trailer()).unwrap_or(0),
            file: self.file,
            index,
            filter,
            filter_error,
            properties,
            global_seq,
            size,
        }))
    }

    /// Reads a meta block, whose checksum is always compared, and decodes it.
    fn decode<T>(
        &self,
        handle: BlockHandle,
        decode: impl FnOnce(&[u8]) -> Result<T, Unreadable>,
    ) -> Result<T> {
        decode(&self.file.read_verified(handle)?).map_err(|e| self.misread(e, handle))
    }

    fn misread(&self, e: impl Into<Unreadable>, handle: BlockHandle) -> Error {
        e.into().in_file(self.file.path(), handle.offset)
    }

    fn properties(&self, meta: &MetaIndex) -> Result<Properties> {
        if self.footer.kind == TableKind::LevelDb {
            return Ok(Properties::default());
        }
        let Some(handle) = meta.get(MetaIndex::PROPERTIES) else {
            return Err(self.missing("properties block"));
        };
        let as_stored = self.decode(handle, Properties::decode);
        match as_stored {
            Err(e) if e.is_corruption() => self.patched_properties(handle).ok_or(e),
            decoded => decoded,
        }
    }

    /// Old ingestion changed the global sequence number in place and left the checksum as it was for zero.
    fn patched_properties(&self, handle: BlockHandle) -> Option<Properties> {
        let stored = self.file.read_stored(handle).ok()?;
        let len = usize::try_from(handle.size).ok()?;
        let place = Properties::global_seqno_place(stored.get(..len)?)?;
        let mut zeroed = stored.clone();
        zeroed.get_mut(place)?.fill(0);
        self.footer.checksum.verify(handle.offset, &zeroed).ok()?;
        Properties::decode(stored.get(..len)?).ok()
    }

    fn missing(&self, what: &str) -> Error {
        Error::corruption(format!("table has no {what}"))
            .at(self.file.path(), self.footer.metaindex.offset)
            .hint("Restore the file from a backup")
    }

    fn check_features(&self, meta: &MetaIndex, properties: &Properties) -> Result<()> {
        let refuse = |what: &str| Err(Error::not_supported(what).at_path(self.file.path()));
        let own = self.options.order.name();
        if let Some(name) = properties.comparator.as_deref().filter(|name| *name != own) {
            let text = format!("table has keys in the order {name}, not {own}");
            return Err(Error::invalid(text).at_path(self.file.path()));
        }
        if properties.user_defined_timestamps_persisted == Some(0) {
            return refuse("tables with user-defined timestamps stripped");
        }
        if properties.separate_key_value_in_data_block.is_some_and(|on| on != 0) {
            return refuse("blocks with separated keys and values");
        }
        let compression = match &properties.compression {
            Some(text) => Some(
                CompressionProperty::parse(self.footer.version, text)
                    .map_err(|e| e.in_file(self.file.path(), self.footer.metaindex.offset))?,
            ),
            None => None,
        };
        if meta.get(MetaIndex::DICTIONARY).is_some() && uses_dictionary(compression.as_ref()) {
            return refuse("compression dictionaries");
        }
        Ok(())
    }

    /// The sequence number of all entries of a table made outside a database; `None` where entries have their own.
    fn global_seq(&self, properties: &Properties) -> Result<Option<SeqNum>> {
        let bad = |what: String| Err(Error::corruption(what).at_path(self.file.path()));
        let stored = properties.global_seqno;
        match (properties.external_version, stored) {
            (None | Some(1), None) => return Ok(None),
            (Some(2), _) => {}
            (version, _) => {
                return bad(format!("external table of version {version:?} with sequence {stored:?}"));
            }
        }
        let stored = stored.unwrap_or(0);
        let Some(stored) = SeqNum::new(stored) else {
            return bad(format!("global sequence number {stored} over 56 bits"));
        };
        let seq = match self.options.largest_seq {
            Some(known) if stored != SeqNum::ZERO && stored != known => {
                return bad(format!("global sequence number {stored} where {known} is recorded"));
            }
            Some(known) => known,
            None => stored,
        };
        Ok((seq != SeqNum::ZERO).then_some(seq))
    }

    fn index(&self, meta: &MetaIndex, properties: &Properties) -> Result<FlatIndex> {
        let at_meta = |e| self.misread(Unreadable::Malformed(e), self.footer.metaindex);
        let (kind, format) = match self.footer.kind {
            TableKind::LevelDb => (IndexKind::BinarySearch, IndexEntries::default()),
            TableKind::BlockBased => {
                (properties.index_kind().map_err(at_meta)?, properties.index_entries().map_err(at_meta)?)
            }
        };
        let Some(root) = self.footer.index.or_else(|| meta.get(MetaIndex::INDEX)) else {
            return Err(self.missing("index block"));
        };
        let mut parts = IndexParts::default();
        if kind == IndexKind::TwoLevel {
            let mut partitions = Vec::new();
            self.walk_index(root, format, |_, handle| {
                partitions.push(handle);
                true
            })?;
            for partition in partitions {
                self.gather(partition, format, &mut parts)?;
            }
        } else {
            self.gather(root, format, &mut parts)?;
        }
        parts.finish(self.options.order.clone(), !format.user_keys).map_err(|at| {
            let text = format!("separator {at} of the index is out of order");
            Error::corruption(text).at(self.file.path(), root.offset)
        })
    }

    /// Appends the entries of one index block.
    fn gather(&self, block: BlockHandle, format: IndexEntries, parts: &mut IndexParts) -> Result<()> {
        self.walk_index(block, format, |key, handle| {
            if format.user_keys {
                return parts.push(key, None, handle);
            }
            // The cursor gives no key without a trailer.
            InternalKey::decode(key).is_ok_and(|key| parts.push(key.user_key(), Some(key.trailer()), handle))
        })
    }

    /// Calls `each` with the key and the handle of every entry of an index block, until it answers false.
    fn walk_index(
        &self,
        block: BlockHandle,
        format: IndexEntries,
        mut each: impl FnMut(&[u8], BlockHandle) -> bool,
    ) -> Result<()> {
        let bytes = self.file.read_verified(block)?;
        let parsed = DataBlock::parse(&bytes).map_err(|e| self.misread(e, block))?;
        let mut cursor = IndexCursor::new(format);
        cursor.first(&parsed).map_err(|e| self.misread(e, block))?;
        while let Some(value) = cursor.index_value() {
            self.file.stored_len(value.handle)?;
            if !each(cursor.key(), value.handle) {
                return Err(Error::corruption("index is too large").at(self.file.path(), block.offset));
            }
            cursor.next(&parsed).map_err(|e| self.misread(e, block))?;
        }
        Ok(())
    }

    /// The range tombstones, cut into fragments.
    fn tombstones(
        &self,
        meta: &MetaIndex,
        properties: &Properties,
        global_seq: Option<SeqNum>,
    ) -> Result<FragmentedTombstones> {
        let Some(handle) = meta.get(MetaIndex::RANGE_DELETIONS) else {
            return match properties.num_range_deletions {
                Some(n) if n > 0 => Err(self.missing("range-deletion block")),
                _ => Ok(FragmentedTombstones::default()),
            };
        };
        let all = self.decode(handle, |block| decode_tombstones(block, global_seq))?;
        Ok(FragmentedTombstones::new(&self.options.order, &all))
    }

    /// The filter, if it is one that answers for user keys.
    fn filter(&self, meta: &MetaIndex, properties: &Properties) -> Result<TableFilter> {
        match meta.filter() {
            Some(place) if place.scope == FilterScope::Full && properties.filters_whole_keys() => {
                Ok(TableFilter::new(self.file.read_verified(place.handle)?))
            }
            _ => Ok(TableFilter::none()),
        }
    }
}

/// Whether some algorithm of the table takes a dictionary. Not known counts as yes.
fn uses_dictionary(compression: Option<&CompressionProperty>) -> bool {
    let takes = |kind| !matches!(kind, Compression::None | Compression::Snappy | Compression::Bzip2);
    match compression {
        None => true,
        Some(CompressionProperty::Single(kind)) => takes(*kind),
        Some(CompressionProperty::Types { types, .. }) => {
            types.iter().any(|byte| Compression::from_byte(*byte).is_none_or(takes))
        }
    }
}
