//! Blocks taken out of real tables: uncompressed ones by kind, and compressed ones as they lie.

use crate::corpus;
use ashlar_format::block::{DataBlock, IndexCursor, IndexEntries};
use ashlar_format::compress::{Compression, decompress};
use ashlar_format::table::{BlockHandle, Footer, MetaIndex, Properties};

/// No block of the golden tables is larger.
pub const LIMIT: usize = 1 << 20;

/// What the golden tables are made of.
#[derive(Default)]
pub struct Blocks {
    /// The last bytes of each file.
    pub tails: Vec<Vec<u8>>,
    /// Metaindex blocks.
    pub meta: Vec<Vec<u8>>,
    /// Properties blocks.
    pub properties: Vec<Vec<u8>>,
    /// Index blocks, the form of their entries in the first byte.
    pub index: Vec<Vec<u8>>,
    /// Data blocks.
    pub data: Vec<Vec<u8>>,
    /// Filter blocks.
    pub filters: Vec<Vec<u8>>,
    /// Blocks as stored, their compression byte in front.
    pub stored: Vec<Vec<u8>>,
}

/// Takes every golden table apart as far as it can be.
pub fn blocks() -> Blocks {
    let mut blocks = Blocks::default();
    for file in corpus::tables() {
        // A table that needs more than this walk knows still gives what came before.
        let _ = take_apart(&file, &mut blocks);
    }
    blocks
}

/// The form of index entries as one byte, and back.
pub fn form_of(byte: u8) -> IndexEntries {
    IndexEntries { user_keys: byte & 1 != 0, delta_values: byte & 2 != 0, first_keys: byte & 4 != 0 }
}

fn byte_of(form: IndexEntries) -> u8 {
    u8::from(form.user_keys) | u8::from(form.delta_values) << 1 | u8::from(form.first_keys) << 2
}

fn take_apart(file: &[u8], blocks: &mut Blocks) -> Option<()> {
    let tail = file.get(file.len().saturating_sub(Footer::LEN)..)?;
    blocks.tails.push(tail.to_vec());
    let (footer, limit) = Footer::decode(tail, file.len() as u64).ok()?;
    let load = |handle: BlockHandle, stored: &mut Vec<Vec<u8>>| -> Option<Vec<u8>> {
        let start = usize::try_from(handle.offset).ok()?;
        let bytes = file.get(start..start.checked_add(handle.len_with_trailer(limit).ok()?)?)?;
        let (block, kind) = footer.checksum.verify(handle.offset, bytes).ok()?;
        stored.push([&[kind], block].concat());
        let kind = if footer.version == 0 {
            Compression::from_leveldb_byte(kind)
        } else {
            Compression::from_byte(kind)
        };
        decompress(kind?, block, LIMIT).ok()
    };
    let metaindex = load(footer.metaindex, &mut blocks.stored)?;
    blocks.meta.push(metaindex.clone());
    let meta = MetaIndex::decode(&metaindex).ok()?;
    if let Some(block) = meta.filter().and_then(|place| load(place.handle, &mut blocks.stored)) {
        blocks.filters.push(block);
    }
    let mut form = IndexEntries::default();
    if let Some(block) = meta.get(MetaIndex::PROPERTIES).and_then(|handle| load(handle, &mut blocks.stored)) {
        form = Properties::decode(&block).ok()?.index_entries().ok()?;
        blocks.properties.push(block);
    }
    let index = load(footer.index.or_else(|| meta.get(MetaIndex::INDEX))?, &mut blocks.stored)?;
    blocks.index.push([&[byte_of(form)], &index[..]].concat());
    let parsed = DataBlock::parse(&index).ok()?;
    let mut cursor = IndexCursor::new(form);
    cursor.first(&parsed).ok()?;
    while cursor.is_on_entry() {
        if let Some(block) = load(cursor.raw_value().handle, &mut blocks.stored) {
            blocks.data.push(block);
        }
        cursor.next(&parsed).ok()?;
    }
    Some(())
}
