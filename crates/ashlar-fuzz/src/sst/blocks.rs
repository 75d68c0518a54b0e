//! Blocks taken out of real tables: uncompressed ones by kind, and compressed ones as they lie.

use super::walk;
use crate::corpus;
use ashlar_format::block::IndexEntries;
use ashlar_format::table::{FilterScope, Footer, MetaIndex};

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
    /// Range-deletion blocks.
    pub tombstones: Vec<Vec<u8>>,
    /// Filter blocks and partitions.
    pub filters: Vec<Vec<u8>>,
    /// Compression dictionaries.
    pub dictionaries: Vec<Vec<u8>>,
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
    let (footer, _) = Footer::decode(tail, file.len() as u64).ok()?;
    let parts = walk::parts(file, footer)?;
    let mut load = |handle, dictionary| {
        let (block, byte) = walk::stored(file, handle)?;
        blocks.stored.push([&[byte], block].concat());
        walk::load(file, &footer, handle, dictionary)
    };
    blocks.meta.extend(load(footer.metaindex, None));
    let form = byte_of(parts.form);
    let indexes = parts.partitions.iter().map(|entry| entry.handle).chain(parts.root);
    for handle in indexes {
        blocks.index.extend(load(handle, None).map(|block| [&[form], &block[..]].concat()));
    }
    let whole =
        parts.meta.filter().filter(|place| place.scope == FilterScope::Full).map(|place| place.handle);
    for handle in parts.filter_partitions.iter().map(|entry| entry.handle).chain(whole) {
        blocks.filters.extend(load(handle, None));
    }
    blocks.properties.extend(parts.meta.get(MetaIndex::PROPERTIES).and_then(|handle| load(handle, None)));
    blocks
        .tombstones
        .extend(parts.meta.get(MetaIndex::RANGE_DELETIONS).and_then(|handle| load(handle, None)));
    for entry in &parts.data {
        blocks.data.extend(load(entry.handle, parts.dictionary.as_ref()));
    }
    blocks.dictionaries.extend(parts.dictionary.map(|dictionary| dictionary.bytes().to_vec()));
    Some(())
}
