//! Opens a table: reads footer, metaindex, properties, index, range tombstones and filter, in this order.

use crate::filter::{Holds, TableFilter};
use crate::footer::read_footer;
use crate::options::ReaderOptions;
use crate::reader::block_file::DataForm;
use crate::reader::table_index::{IndexShape, TableIndex};
use crate::reader::tombstones::decode_tombstones;
use crate::reader::{BlockFile, TableReader, charge_table};
use ashlar_base::memory::MemoryUse;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::range_del::{FragmentedTombstones, ListedTombstones};
use ashlar_base::{Error, Result, SeqNum};
use ashlar_env::ReadFile;
use ashlar_format::Unreadable;
use ashlar_format::block::IndexEntries;
use ashlar_format::compress::{Compression, Dictionary};
use ashlar_format::table::{
    BlockHandle, CompressionProperty, FilterScope, Footer, IndexKind, MetaIndex, Properties, TableKind,
};
use std::sync::Arc;

impl TableReader {
    /// Opens a table that has `expected_size` bytes according to the MANIFEST. Reads index, filter and range tombstones
    /// into memory; of a partitioned index or filter only the top level. Reads no data block.
    ///
    /// # Errors
    /// `Corruption`: the size differs, or a part that was read is damaged. `NotSupported`: an unserved feature, by
    /// name. `InvalidArgument`: the order of the keys is not `options.order`. `Io`: a read failed.
    /// # Source
    /// RocksDB `table/block_based/block_based_table_reader.cc` (`Open`).
    pub fn open(
        file: Arc<dyn ReadFile>,
        expected_size: u64,
        options: ReaderOptions,
    ) -> Result<Arc<TableReader>> {
        Opening::begin(file, expected_size, options)?.finish(expected_size)
    }
}

/// The properties and range tombstones of a table, read without its index and filter.
#[derive(Debug)]
pub struct TableSurvey {
    /// The format version in the footer; 0 for a LevelDB table.
    pub version: u32,
    /// The properties; defaults for a LevelDB table.
    pub properties: Properties,
    /// The range tombstones, as stored.
    pub tombstones: FragmentedTombstones,
}

impl TableSurvey {
    /// Reads the footer, the properties and the range tombstones of a table, in a fraction of what
    /// [`TableReader::open`] costs in reads and memory.
    ///
    /// # Errors
    /// As [`TableReader::open`], for the parts that are read.
    pub fn read(file: Arc<dyn ReadFile>, expected_size: u64, options: ReaderOptions) -> Result<TableSurvey> {
        let mut opening = Opening::begin(file, expected_size, options)?;
        let meta = opening.decode(opening.footer.metaindex, MetaIndex::decode)?;
        let properties = opening.properties(&meta)?;
        let form = opening.data_form(&meta, &properties)?;
        let stripped = form.stripped;
        opening.file.set_data_form(form);
        let global_seq = opening.global_seq(&properties)?;
        let tombstones = opening.tombstones(&meta, &properties, global_seq, stripped)?;
        Ok(TableSurvey { version: opening.footer.version, properties, tombstones })
    }
}

struct Opening {
    file: BlockFile,
    footer: Footer,
    options: ReaderOptions,
}

impl Opening {
    /// Checks the size and reads the footer.
    fn begin(file: Arc<dyn ReadFile>, expected_size: u64, options: ReaderOptions) -> Result<Opening> {
        let (size, path) = (file.len(), file.path().to_path_buf());
        if size != expected_size {
            let text = format!("table has {size} bytes where {expected_size} are recorded");
            return Err(Error::corruption(text).at_path(&path).damaged_file_hint());
        }
        let (footer, limit) = read_footer(&file)?;
        let statistics = options.statistics.clone();
        let mut file = BlockFile::new(file, limit, footer.checksum, footer.kind, options.verify_checksums);
        file.count_into(statistics);
        file.charge_to(options.pool.budget().map(Arc::clone));
        Ok(Opening { file, footer, options })
    }

    fn finish(mut self, size: u64) -> Result<Arc<TableReader>> {
        let meta = self.decode(self.footer.metaindex, MetaIndex::decode)?;
        let properties = self.properties(&meta)?;
        let form = self.data_form(&meta, &properties)?;
        let (stripped, unread) = (form.stripped, unread(&meta, form.dictionary.is_some()));
        self.file.set_data_form(form);
        let global_seq = self.global_seq(&properties)?;
        let (index, shape) = self.index(&meta, &properties, stripped)?;
        let tombstones = self.tombstones(&meta, &properties, global_seq, stripped)?;
        let (filter, filter_error) = match self.filter(&meta, &properties, &shape) {
            Ok(filter) => (filter, None),
            Err(e) => (TableFilter::none(), Some(e)),
        };
        let limit = self.file.size();
        let data_end = match &index {
            TableIndex::Whole(whole) => {
                let last = whole.index.len().checked_sub(1).and_then(|at| whole.index.handle(at));
                last.and_then(|handle| handle.end_with_trailer()).unwrap_or(0)
            }
            TableIndex::Partitioned(_) => properties.data_size.unwrap_or(limit).min(limit),
        };
        let charge = charge_table(self.options.pool.budget());
        let table = TableReader {
            order: self.options.order,
            number: self.options.number,
            tombstones: Arc::new(tombstones),
            data_end,
            file: self.file,
            index,
            filter,
            filter_error,
            unread,
            properties,
            global_seq,
            size,
            charge,
        };
        table.charge.set(table.memory());
        Ok(Arc::new(table))
    }

    /// Reads a meta block, whose checksum is always compared, and decodes it.
    fn decode<T>(
        &self,
        handle: BlockHandle,
        decode: impl FnOnce(&[u8]) -> Result<T, Unreadable>,
    ) -> Result<T> {
        decode(&self.file.plainly().read_verified(handle)?).map_err(|e| self.misread(e, handle))
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
        let stored = self.file.plainly().read_stored(handle).ok()?;
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
            .damaged_file_hint()
    }

    /// The properties of the file's data blocks, as far as they are served.
    fn data_form(&self, meta: &MetaIndex, properties: &Properties) -> Result<DataForm> {
        let own = self.options.order.name();
        if let Some(name) = properties.comparator.as_deref().filter(|name| *name != own) {
            let text = format!("table has keys in the order {name}, not {own}");
            return Err(Error::invalid(text).at_path(self.file.path()));
        }
        let mut form =
            DataForm { embedded_blobs: properties.embedded_blob_stats.is_some(), ..DataForm::default() };
        if properties.user_defined_timestamps_persisted == Some(0) {
            // RocksDB also notes the setting in tables of families without timestamps. Keys of such tables lack
            // nothing.
            form.stripped = self.options.order.timestamp_len();
        }
        let compression = match &properties.compression {
            Some(text) => Some(
                CompressionProperty::parse(self.footer.version, text)
                    .map_err(|e| e.in_file(self.file.path(), self.footer.metaindex.offset))?,
            ),
            None => None,
        };
        if let Some(handle) = meta.get(MetaIndex::DICTIONARY)
            && uses_dictionary(compression.as_ref())
        {
            let bytes = self.file.plainly().read_verified(handle)?;
            form.dictionary = Some(Dictionary::new(bytes).map_err(|e| self.misread(e, handle))?);
        }
        Ok(form)
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

    fn index(
        &self,
        meta: &MetaIndex,
        properties: &Properties,
        stripped: usize,
    ) -> Result<(TableIndex, IndexShape)> {
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
        let shape = IndexShape { format, order: self.options.order.clone(), stripped };
        let (root, pool) = (shape.read(self.file.plainly(), root)?, self.options.pool.clone());
        let index = match kind {
            IndexKind::TwoLevel => {
                TableIndex::partitioned(root, shape.clone(), pool, properties.num_data_blocks)
            }
            _ => TableIndex::whole(root, pool),
        };
        Ok((index, shape))
    }

    /// The range tombstones, cut into fragments.
    fn tombstones(
        &self,
        meta: &MetaIndex,
        properties: &Properties,
        global_seq: Option<SeqNum>,
        stripped: usize,
    ) -> Result<FragmentedTombstones> {
        let Some(handle) = meta.get(MetaIndex::RANGE_DELETIONS) else {
            return match properties.num_range_deletions {
                Some(n) if n > 0 => Err(self.missing("range-deletion block")),
                _ => Ok(FragmentedTombstones::default()),
            };
        };
        let stored = match self.decode(handle, |block| decode_tombstones(block, global_seq, stripped)) {
            Err(_) if planted(Bug::RangeDeletionsIgnored) => ListedTombstones::default(),
            other => other?,
        };
        let budget = self.options.pool.budget();
        let _charge = budget.map(|budget| budget.charge(MemoryUse::Buffers, stored.memory()));
        Ok(FragmentedTombstones::cut(&self.options.order, &stored.since(0), budget))
    }

    /// The filter, if it is one that answers for user keys.
    fn filter(&self, meta: &MetaIndex, properties: &Properties, shape: &IndexShape) -> Result<TableFilter> {
        let holds = Holds {
            timestamp: self.options.order.timestamp_len(),
            no_whole_keys: !properties.filters_whole_keys(),
            prefixes: properties.filtered_prefixes(self.options.prefix_extractor.as_ref()),
        };
        if self.footer.kind == TableKind::LevelDb {
            return match meta.get(MetaIndex::LEVELDB_FILTER) {
                Some(handle) => Ok(TableFilter::leveldb(self.file.plainly().read_verified(handle)?)),
                None => Ok(TableFilter::none()),
            };
        }
        let Some(place) = meta.filter().filter(|_| !holds.no_whole_keys || holds.prefixes.is_some()) else {
            return Ok(TableFilter::none());
        };
        match place.scope {
            FilterScope::Full => {
                Ok(TableFilter::whole(self.file.plainly().read_verified(place.handle)?, holds))
            }
            FilterScope::Partitioned => {
                let format = IndexEntries { first_keys: false, ..shape.format };
                let top = IndexShape { format, ..shape.clone() }.read(self.file.plainly(), place.handle)?;
                let charge = charge_table(self.options.pool.budget());
                Ok(TableFilter::partitioned(top, holds, charge))
            }
        }
    }
}

/// Whether a codec of the table uses a dictionary. True if it is not known.
fn uses_dictionary(compression: Option<&CompressionProperty>) -> bool {
    match compression {
        None => true,
        Some(CompressionProperty::Single(kind)) => kind.takes_dictionary(),
        Some(CompressionProperty::Types { types, .. }) => {
            types.iter().any(|byte| Compression::from_byte(*byte).is_none_or(Compression::takes_dictionary))
        }
    }
}

/// The blocks of the metaindex that no read needs: dictionaries of codecs that take none, filters of other kinds.
fn unread(meta: &MetaIndex, reads_dictionary: bool) -> Box<[BlockHandle]> {
    let filter = meta.filter().map(|place| place.handle);
    let is_read = |name: &[u8], handle| match name {
        MetaIndex::PROPERTIES | MetaIndex::INDEX | MetaIndex::RANGE_DELETIONS | MetaIndex::LEVELDB_FILTER => {
            true
        }
        MetaIndex::DICTIONARY => reads_dictionary,
        _ => filter == Some(handle),
    };
    let unread = meta.iter().filter(|(name, handle)| handle.size > 0 && !is_read(name, *handle));
    unread.map(|(_, handle)| handle).collect()
}
