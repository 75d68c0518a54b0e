//! Reads a damaged table: returns the sound entries, and reports each damage with its place and its keys.
//!
//! 1. A data block counts as a whole: its entries are returned only if all of them decode, in order.
//! 2. The keys of an unreadable block lie between the separators before and after it, so the index alone names them. If
//!    an index partition is unreadable, the keys lie between the separators of the partition.

use crate::reader::{BlockAt, Readahead, TableReader};
use ashlar_base::{Error, InternalKey, InternalKeyBuf, Result, Trailer};
use ashlar_format::block::{BlockCursor, DataBlock};

/// Bytes read at a time.
const READAHEAD: usize = 1 << 20;

/// An unreadable part of a table.
#[derive(Clone, Debug)]
pub struct LostStretch {
    /// The offset of the unreadable block.
    pub offset: u64,
    /// The reason.
    pub error: Error,
    /// A lower bound of the user keys that may be lost; `None`: the part begins with the table.
    pub from: Option<Vec<u8>>,
    /// An upper bound of the user keys that may be lost.
    pub to: Vec<u8>,
}

/// Takes the entries of a table in order.
type Visit<'v> = &'v mut dyn FnMut(InternalKey<'_>, &[u8]) -> Result<()>;

impl TableReader {
    /// Reads every data block past the pool and hands the entries of the good ones to `visit`, in order, with the sequences
    /// that readers see. Returns the stretches that are damaged. Range tombstones were read when the table was opened.
    ///
    /// # Errors
    /// What `visit` answers.
    pub fn read_around(&self, visit: Visit<'_>) -> Result<Vec<LostStretch>> {
        let mut walk = Around {
            table: self,
            readahead: Readahead::new(READAHEAD, self.charge_buffer()),
            last: None,
            separator: None,
            lost: Vec::new(),
        };
        for partition in 0..self.partitions() {
            match self.blocks_of(partition) {
                Ok(blocks) => {
                    for block in 0..blocks {
                        walk.block(BlockAt::new(partition, block), visit)?;
                    }
                }
                Err(error) => {
                    let (offset, to) = self.partition_end(partition).unwrap_or((0, &[]));
                    walk.lose(offset, to, error);
                }
            }
        }
        Ok(walk.lost)
    }
}

struct Around<'t> {
    table: &'t TableReader,
    readahead: Readahead,
    /// The last good key.
    last: Option<InternalKeyBuf>,
    /// The separator before the block at hand.
    separator: Option<Vec<u8>>,
    lost: Vec<LostStretch>,
}

impl Around<'_> {
    fn block(&mut self, at: BlockAt, visit: Visit<'_>) -> Result<()> {
        let offset = self.table.handle(at).map_or(0, |handle| handle.offset);
        let to = self.table.separator(at).to_vec();
        match self.read(at) {
            Err(error) => self.lose(offset, &to, error),
            Ok(bytes) => {
                self.hand_out(at, &bytes, visit)?;
                self.separator = Some(to);
            }
        }
        Ok(())
    }

    fn lose(&mut self, offset: u64, to: &[u8], error: Error) {
        let from = self.separator.replace(to.to_vec());
        self.lost.push(LostStretch { offset, error, from, to: to.to_vec() });
    }

    /// The block's bytes, every entry of which decodes and stands in order.
    fn read(&mut self, at: BlockAt) -> Result<Vec<u8>> {
        let table = self.table;
        let Some(handle) = table.handle(at) else {
            return Err(Error::corruption("the index has no such block").at_path(table.path()));
        };
        let bytes = self.readahead.read(table.file(), handle)?;
        let block = DataBlock::parse(&bytes).map_err(|e| table.misread(at, e))?;
        let wrong = |what: &str| Err(Error::corruption(what).at(table.path(), handle.offset));
        let mut cursor = BlockCursor::default();
        let mut last = self.last.clone();
        cursor.first(&block).map_err(|e| table.misread(at, e.into()))?;
        while let Some(key) = cursor.internal_key() {
            if key.trailer().value_type().is_none() {
                return wrong("key of an unknown type");
            }
            if last.as_ref().is_some_and(|last| table.order().compare_internal(last.as_key(), key).is_ge()) {
                return wrong("keys out of order");
            }
            let (user_key, trailer) = key.split();
            last.get_or_insert_with(|| InternalKeyBuf::new(&[], Trailer::LAST)).set(user_key, trailer);
            cursor.next(&block).map_err(|e| table.misread(at, e.into()))?;
        }
        self.last = last;
        Ok(bytes)
    }

    fn hand_out(&self, at: BlockAt, bytes: &[u8], visit: Visit<'_>) -> Result<()> {
        let table = self.table;
        let block = DataBlock::parse(bytes).map_err(|e| table.misread(at, e))?;
        let mut cursor = BlockCursor::default();
        let mut seen = InternalKeyBuf::new(&[], Trailer::LAST);
        cursor.first(&block).map_err(|e| table.misread(at, e.into()))?;
        while let Some(key) = cursor.internal_key() {
            let (user_key, trailer) = key.split();
            seen.set(user_key, table.present(trailer));
            visit(seen.as_key(), cursor.value(&block))?;
            cursor.next(&block).map_err(|e| table.misread(at, e.into()))?;
        }
        Ok(())
    }
}
