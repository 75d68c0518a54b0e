//! Finds the blocks of a table as a reader does: footer, metaindex, then every handle after it.

use super::LIMIT;
use ashlar_format::block::{DataBlock, IndexCursor, IndexEntries};
use ashlar_format::compress::{Compression, Dictionary, decompress_with};
use ashlar_format::table::{
    BlockChecksum, BlockHandle, FilterScope, Footer, IndexKind, MetaIndex, Properties, TableKind,
};

/// Index entries looked at in one table: a damaged one may name the same block again and again.
const MOST_ENTRIES: usize = 4096;

/// An entry of an index block: separator, handle and first key.
pub struct IndexEntry {
    pub separator: Vec<u8>,
    pub handle: BlockHandle,
    pub first_key: Vec<u8>,
}

/// Where everything in a table is, as far as it can be read.
pub struct Parts {
    pub footer: Footer,
    pub meta: MetaIndex,
    pub properties: Properties,
    pub form: IndexEntries,
    pub dictionary: Option<Dictionary>,
    pub root: Option<BlockHandle>,
    /// Index partitions; empty for an index that has none.
    pub partitions: Vec<IndexEntry>,
    pub data: Vec<IndexEntry>,
    pub filter_partitions: Vec<IndexEntry>,
}

/// A block's stored bytes and its compression byte; checksums are not looked at.
pub fn stored(file: &[u8], handle: BlockHandle) -> Option<(&[u8], u8)> {
    let start = usize::try_from(handle.offset).ok()?;
    let len = handle.len_with_trailer(file.len() as u64).ok()?;
    BlockChecksum::split(file.get(start..start.checked_add(len)?)?).ok()
}

/// A block, uncompressed.
pub fn load(
    file: &[u8],
    footer: &Footer,
    handle: BlockHandle,
    dictionary: Option<&Dictionary>,
) -> Option<Vec<u8>> {
    let (block, byte) = stored(file, handle)?;
    let kind = match footer.kind {
        TableKind::LevelDb => Compression::from_leveldb_byte(byte),
        TableKind::BlockBased => Compression::from_byte(byte),
    };
    decompress_with(kind?, block, dictionary, LIMIT).ok()
}

/// The entries of an index block, up to the first that cannot be read.
pub fn index_entries(block: &[u8], form: IndexEntries) -> Vec<IndexEntry> {
    let mut entries = Vec::new();
    let Ok(parsed) = DataBlock::parse(block) else { return entries };
    let mut cursor = IndexCursor::new(form);
    let mut fine = cursor.first(&parsed).is_ok();
    while let Some(value) = cursor.index_value().filter(|_| fine && entries.len() < MOST_ENTRIES) {
        let first_key = value.first_key.map(|range| range.of(block).to_vec());
        entries.push(IndexEntry {
            separator: cursor.key().to_vec(),
            handle: value.handle,
            first_key: first_key.unwrap_or_default(),
        });
        fine = cursor.next(&parsed).is_ok();
    }
    entries
}

/// Finds the parts of a table whose footer is `footer`. What cannot be read is empty.
pub fn parts(file: &[u8], footer: Footer) -> Option<Parts> {
    let meta = MetaIndex::decode(&load(file, &footer, footer.metaindex, None)?).ok()?;
    let properties = meta.get(MetaIndex::PROPERTIES).and_then(|handle| load(file, &footer, handle, None));
    let properties = properties.and_then(|block| Properties::decode(&block).ok()).unwrap_or_default();
    let form = properties.index_entries().unwrap_or_default();
    let dictionary = meta.get(MetaIndex::DICTIONARY).and_then(|handle| load(file, &footer, handle, None));
    let dictionary = dictionary.and_then(|bytes| Dictionary::new(bytes).ok());
    let root = footer.index.or_else(|| meta.get(MetaIndex::INDEX));
    let entries = |handle, form| {
        load(file, &footer, handle, None).map(|block| index_entries(&block, form)).unwrap_or_default()
    };
    let top = root.map(|handle| entries(handle, form)).unwrap_or_default();
    let (mut partitions, mut data) = (Vec::new(), top);
    if properties.index_kind() == Ok(IndexKind::TwoLevel) {
        partitions = std::mem::take(&mut data);
        for partition in &partitions {
            if data.len() < MOST_ENTRIES {
                data.extend(entries(partition.handle, form));
            }
        }
    }
    let filter = meta.filter().filter(|place| place.scope == FilterScope::Partitioned);
    let filter_form = IndexEntries { first_keys: false, ..form };
    let filter_partitions = filter.map(|place| entries(place.handle, filter_form)).unwrap_or_default();
    Some(Parts { footer, meta, properties, form, dictionary, root, partitions, data, filter_partitions })
}
