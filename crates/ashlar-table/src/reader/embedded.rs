//! Blobs in the same file as the keys that refer to them.
//!
//! ```text
//! record in the data area:  | payload | compression: u8 = 0 | checksum: u32 LE |     as behind any block
//! value of type 0x11:       | 01 | file number: varint = 0 | offset: varint | size: varint | compression: u8 = 0 |
//! ```
//! 1. No caller sees such a reference: the entry is returned as a plain put of the payload.
//! 2. The payloads of one block together are not larger than the file, because distinct records cannot be.
//!
//! Source: RocksDB `table/block_based/block_based_table_reader.cc`, `db/blob/blob_index.h` (behaviour).

use super::Reading;
use ashlar_base::{Cursor, Error, Malformed, Result, ValueType};
use ashlar_format::Unreadable;
use ashlar_format::block::{DataBlock, rewrite_block};
use ashlar_format::table::BlockHandle;

/// Entities from this version on may hold blob references.
const ENTITY_WITH_BLOBS: u32 = 2;

impl Reading<'_> {
    /// The block with the payloads in the place of the references to them.
    pub(super) fn with_blobs(&self, block: &DataBlock<'_>, handle: BlockHandle) -> Result<Vec<u8>> {
        let mut room = self.size();
        let rewritten = rewrite_block::<Failed>(block, |key, value, new_key, new_value| {
            let (user_key, trailer) = key.split_last_chunk::<8>().ok_or(bad("no trailer"))?;
            let [value_type, seq @ ..] = trailer;
            new_key.extend_from_slice(user_key);
            if *value_type == ValueType::BlobIndex as u8 {
                let record = reference(value)?;
                room = room.checked_sub(record.size).ok_or(bad("blobs larger than the file"))?;
                new_value.extend_from_slice(&self.read_blob(record).map_err(Failed::Done)?);
                new_key.push(ValueType::Put as u8);
            } else {
                if *value_type == ValueType::Entity as u8
                    && Cursor::new(value).varint32("entity")? >= ENTITY_WITH_BLOBS
                {
                    return Err(Unreadable::NotSupported("entities with embedded blobs").into());
                }
                new_value.extend_from_slice(value);
                new_key.push(*value_type);
            }
            new_key.extend_from_slice(seq);
            Ok(())
        });
        rewritten.map_err(|failed| match failed {
            Failed::Done(e) => e,
            Failed::Here(e) => e.in_file(self.path(), handle.offset),
        })
    }

    fn read_blob(&self, record: BlockHandle) -> Result<Vec<u8>> {
        let mut payload = self.read_stored(record)?;
        self.check_blob(&payload, record)?;
        payload.truncate(usize::try_from(record.size).unwrap_or(0));
        Ok(payload)
    }
}

/// The reason why a block was not rewritten.
enum Failed {
    /// Placed already.
    Done(Error),
    /// In the block itself.
    Here(Unreadable),
}

impl From<Malformed> for Failed {
    fn from(m: Malformed) -> Self {
        Failed::Here(m.into())
    }
}

impl From<Unreadable> for Failed {
    fn from(e: Unreadable) -> Self {
        Failed::Here(e)
    }
}

fn bad(what: &'static str) -> Malformed {
    Malformed { field: "embedded blob", at: 0, what }
}

fn reference(value: &[u8]) -> Result<BlockHandle, Malformed> {
    let mut c = Cursor::new(value);
    let (kind, file) = (c.u8("embedded blob")?, c.varint64("embedded blob")?);
    let record = BlockHandle { offset: c.varint64("embedded blob")?, size: c.varint64("embedded blob")? };
    let compression = c.u8("embedded blob")?;
    c.finish("embedded blob")?;
    if (kind, file, compression) == (1, 0, 0) {
        Ok(record)
    } else {
        Err(bad("not a reference into this file"))
    }
}
