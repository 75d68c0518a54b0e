//! Reading a whole table to see whether it is sound.

use crate::iter::Readahead;
use crate::reader::TableReader;
use ashlar_base::{Error, InternalKey, InternalKeyBuf, Result, Trailer};
use ashlar_format::block::{BlockCursor, DataBlock};

/// Bytes read at a time.
const READAHEAD: usize = 1 << 20;

impl TableReader {
    /// Reads every data block, past the pool, and checks: checksums, the order of all keys, that each block lies between
    /// the separators of the index, that the filter is whole and lets every key through, and the number of entries
    /// against the properties. Returns that number. Index and properties were checked when the table was opened.
    ///
    /// # Errors
    /// `Corruption` with the block's offset, for the first thing found.
    pub fn verify(&self) -> Result<u64> {
        if let Some(e) = self.filter_error() {
            return Err(e.clone());
        }
        let mut walk = Walk { table: self, last: None, entries: 0 };
        let mut readahead = Readahead::new(READAHEAD);
        for ordinal in 0..self.blocks() {
            walk.block(ordinal, &mut readahead)?;
        }
        let properties = self.properties();
        if let Some(all) = properties.num_entries {
            let points = all.saturating_sub(properties.num_range_deletions.unwrap_or(0));
            if walk.entries != points && walk.entries != all {
                let found = walk.entries;
                let text = format!("table has {found} entries where its properties say {points}");
                return Err(Error::corruption(text).at_path(self.path()));
            }
        }
        Ok(walk.entries)
    }
}

struct Walk<'a> {
    table: &'a TableReader,
    last: Option<InternalKeyBuf>,
    entries: u64,
}

impl Walk<'_> {
    fn block(&mut self, ordinal: u32, readahead: &mut Readahead) -> Result<()> {
        let table = self.table;
        let Some(handle) = table.index().handle(ordinal) else { return Ok(()) };
        let bytes = readahead.read(table.file(), handle)?;
        let block = DataBlock::parse(&bytes).map_err(|e| table.misread(ordinal, e))?;
        let mut cursor = BlockCursor::default();
        cursor.first(&block).map_err(|e| table.misread(ordinal, e.into()))?;
        while let Some(key) = cursor.internal_key() {
            self.entry(key).map_err(|what| Error::corruption(what).at(table.path(), handle.offset))?;
            let (user_key, trailer) = key.split();
            if table.index().find(user_key, trailer) != ordinal {
                let what = "key outside the bounds the index gives its block";
                return Err(Error::corruption(what).at(table.path(), handle.offset));
            }
            cursor.next(&block).map_err(|e| table.misread(ordinal, e.into()))?;
        }
        Ok(())
    }

    fn entry(&mut self, key: InternalKey<'_>) -> Result<(), &'static str> {
        let (user_key, trailer) = key.split();
        let order = self.table.order();
        if trailer.value_type().is_none() {
            return Err("key of an unknown type");
        }
        let mut new_user_key = true;
        if let Some(last) = &self.last {
            if order.compare_internal(last.as_key(), key).is_ge() {
                return Err("keys out of order");
            }
            new_user_key = last.as_key().user_key() != user_key;
        }
        if new_user_key && !self.table.filter().may_contain(user_key) {
            return Err("filter denies a key of the table");
        }
        self.entries += 1;
        self.last.get_or_insert_with(|| InternalKeyBuf::new(&[], Trailer::LAST)).set(user_key, trailer);
        Ok(())
    }
}
