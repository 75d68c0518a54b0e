//! The parts of a table: every block of the file by itself, for tools that explain or prove, not for reading data.
//!
//! [`crate::TableReader`] needs a sound table and serves keys in order. This module needs only the footer and the
//! metaindex. It knows no order of keys, and a damaged block is a normal result.
//! 1. Blocks are found through handles only: metaindex, index, partitions. Bytes to which no handle leads are a gap.
//! 2. Every block says for itself whether its checksum is right and whether it decompresses.
//! 3. Data blocks are returned as stored; [`StoredBlock::entries`] converts the separated form to the plain one.
//!    Stripped timestamps stay stripped, and blobs in the same file stay references.
//!
//! Source: RocksDB `table/block_based/block_based_table_reader.cc`, `table/sst_file_dumper.cc` (behaviour).

mod block;
mod places;

pub use block::StoredBlock;
pub use places::{BlockPlace, BlockRole, DataPlace};

use crate::footer::read_footer;
use crate::reader::meta_block_max;
use ashlar_base::{Error, Result};
use ashlar_env::ReadFile;
use ashlar_format::Unreadable;
use ashlar_format::block::{DataBlock, PlainCursor, PlainEntries};
use ashlar_format::compress::Dictionary;
use ashlar_format::table::{BlockHandle, Footer, MetaIndex, Properties, TableKind};
use std::path::Path;
use std::sync::Arc;

/// A property as stored: name and value.
pub type NamedProperty = (Vec<u8>, Vec<u8>);

/// A table's file, with the parts that lead to its blocks.
#[derive(Debug)]
pub struct Anatomy {
    file: Arc<dyn ReadFile>,
    footer: Footer,
    footer_start: u64,
    meta: MetaIndex,
    properties: Result<Properties>,
    named: Vec<NamedProperty>,
    dictionary: Option<Dictionary>,
}

impl Anatomy {
    /// Reads footer, metaindex, properties and dictionary.
    ///
    /// # Errors
    /// `Corruption`: footer or metaindex cannot be read. `NotSupported`: another kind of table, by name. `Io`.
    pub fn open(file: Arc<dyn ReadFile>) -> Result<Anatomy> {
        let (footer, start) = read_footer(&file)?;
        Self::with_footer(file, footer, start)
    }

    /// Reads metaindex, properties and dictionary of a table with this footer.
    ///
    /// # Errors
    /// `Corruption`: the metaindex cannot be read. `Io`.
    pub(crate) fn with_footer(file: Arc<dyn ReadFile>, footer: Footer, footer_start: u64) -> Result<Anatomy> {
        let mut anatomy = Anatomy {
            file,
            footer,
            footer_start,
            meta: MetaIndex::default(),
            properties: Ok(Properties::default()),
            named: Vec::new(),
            dictionary: None,
        };
        let meta = anatomy.content(footer.metaindex)?;
        anatomy.meta = MetaIndex::decode(&meta).map_err(|e| anatomy.misread(e, footer.metaindex))?;
        if footer.kind == TableKind::BlockBased {
            anatomy.read_properties();
        }
        if let Some(handle) = anatomy.meta.get(MetaIndex::DICTIONARY) {
            // An unreadable dictionary shows at each block that needs it.
            anatomy.dictionary = anatomy.content(handle).ok().and_then(|bytes| Dictionary::new(bytes).ok());
        }
        Ok(anatomy)
    }

    fn read_properties(&mut self) {
        let Some(handle) = self.meta.get(MetaIndex::PROPERTIES) else {
            self.properties = Err(Error::corruption("table has no properties block")
                .at(self.path(), self.footer.metaindex.offset));
            return;
        };
        let read = self.properties_content(handle).and_then(|bytes| {
            let properties = Properties::decode(&bytes).map_err(|e| self.misread(e, handle))?;
            Ok((properties, named(&bytes).map_err(|e| self.misread(e, handle))?))
        });
        match read {
            Ok((properties, named)) => (self.properties, self.named) = (Ok(properties), named),
            Err(e) => self.properties = Err(e),
        }
    }

    /// The properties block. Old ingestion changed the global sequence number in place and left the checksum as it was
    /// for zero.
    fn properties_content(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let block = self.meta_block(handle)?;
        if block.checksum_holds || block.compression != 0 {
            return block.content;
        }
        let zeroed = Properties::global_seqno_place(block.stored()).and_then(|place| {
            let mut bytes = block.with_trailer.clone();
            bytes.get_mut(place)?.fill(0);
            self.footer.checksum.verify(handle.offset, &bytes).is_ok().then_some(())
        });
        match zeroed {
            Some(_) => Ok(block.stored().to_vec()),
            None => block.content,
        }
    }

    /// The content of a block that is no data block. Its checksum must be right.
    fn content(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        self.meta_block(handle)?.content
    }

    /// A block that is no data block, with a content no longer than readers accept.
    fn meta_block(&self, handle: BlockHandle) -> Result<StoredBlock> {
        self.block_within(handle, usize::try_from(meta_block_max(self.size())).unwrap_or(usize::MAX))
    }

    fn misread(&self, e: impl Into<Unreadable>, handle: BlockHandle) -> Error {
        e.into().in_file(self.path(), handle.offset)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file itself.
    pub(crate) fn file(&self) -> Arc<dyn ReadFile> {
        Arc::clone(&self.file)
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.file.len()
    }

    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The offset of the footer.
    pub fn footer_start(&self) -> u64 {
        self.footer_start
    }

    /// The metaindex.
    pub fn meta(&self) -> &MetaIndex {
        &self.meta
    }

    /// The properties; a LevelDB table has none, which is no error.
    ///
    /// # Errors
    /// `Corruption`: they cannot be read. No data block can be found then.
    pub fn properties(&self) -> Result<&Properties> {
        self.properties.as_ref().map_err(Error::clone)
    }

    /// The properties by name, as stored, in the order of the block.
    pub fn named_properties(&self) -> &[NamedProperty] {
        &self.named
    }
}

fn named(block: &[u8]) -> Result<Vec<NamedProperty>, Unreadable> {
    let block = DataBlock::parse(block)?;
    let mut cursor = PlainCursor::new(PlainEntries);
    let mut all = Vec::new();
    cursor.first(&block)?;
    while cursor.is_on_entry() {
        all.push((cursor.key().to_vec(), cursor.value(&block).to_vec()));
        cursor.next(&block)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
