//! Converts blocks of rarer forms to the plain form when they are loaded. Cursors know only the plain form.
//!
//! ```text
//! separated:  | key section | value section | restarts | hash index | values offset: u32 LE | packed: u32 LE, bit 28 |
//!   key entry | shared | non_shared | value_len | value offset: varint32, at restart points only | key tail |
//! ```
//! 1. Values follow in the order of their keys without gaps, and every stored value offset must agree. So the plain
//!    form is hardly larger than the separated one, whatever the bytes are.
//! 2. Restart points stay at the same entries. So a hash index stays right, and a key shared by many entries is not
//!    written out many times.
//!
//! Source: RocksDB `table/block_based/block_builder.cc`, `block.cc`, `data_block_footer.cc`.

use super::data_block::{HASHED, RESTARTS_MASK, SEPARATED, UNKNOWN};
use super::index::offset32;
use super::{BlockCursor, DataBlock};
use ashlar_base::Malformed;
use ashlar_base::bytes::{Cursor, common_prefix, put_varint32};

/// A block being written entry by entry.
#[derive(Default)]
struct Plain {
    out: Vec<u8>,
    restarts: Vec<u32>,
}

impl Plain {
    fn push(&mut self, restart: bool, shared: usize, tail: &[u8], value: &[u8]) -> Result<(), Malformed> {
        // Room for three lengths and a restart point.
        let len = self.out.len().saturating_add(tail.len()).saturating_add(value.len());
        if len.saturating_add(5 * self.restarts.len() + 32) > u32::MAX as usize {
            return Err(Malformed { field: "block", at: 0, what: "grows past 4 GiB" });
        }
        if restart {
            self.restarts.push(offset32(self.out.len()));
        }
        put_varint32(&mut self.out, offset32(shared));
        put_varint32(&mut self.out, offset32(tail.len()));
        put_varint32(&mut self.out, offset32(value.len()));
        self.out.extend_from_slice(tail);
        self.out.extend_from_slice(value);
        Ok(())
    }

    fn finish(mut self, hash_index: Option<&[u8]>) -> Vec<u8> {
        if self.restarts.is_empty() {
            self.restarts.push(0);
        }
        for restart in &self.restarts {
            self.out.extend_from_slice(&restart.to_le_bytes());
        }
        self.out.extend_from_slice(hash_index.unwrap_or_default());
        let flag = if hash_index.is_some() { HASHED } else { 0 };
        self.out.extend_from_slice(&(offset32(self.restarts.len()) | flag).to_le_bytes());
        self.out
    }
}

/// The parts of a separated block.
struct Separated<'a> {
    keys: &'a [u8],
    values: &'a [u8],
    restarts: &'a [[u8; 4]],
    hash_index: Option<&'a [u8]>,
}

/// True when the block keeps keys and values apart: bit 28 of its last word.
#[inline]
pub fn is_separated(block: &[u8]) -> bool {
    block.last().is_some_and(|last| last & 0x10 != 0)
}

/// The plain form of a block with separated keys and values.
///
/// # Errors
/// `Malformed`: anything that does not fit together; a block in the plain form.
pub fn join_separated(block: &[u8]) -> Result<Vec<u8>, Malformed> {
    let parts = Separated::split(block)?;
    let mut plain = Plain::default();
    let mut restarts = parts.restarts.iter().map(|r| u32::from_le_bytes(*r) as usize).peekable();
    let (mut at, mut value_at) = (0, 0);
    while at < parts.keys.len() {
        let restart = restarts.next_if_eq(&at).is_some();
        let mut c = Cursor::new(parts.keys.get(at..).unwrap_or_default());
        let entry = (|| {
            let shared = c.varint32("entry.shared")? as usize;
            let non_shared = c.varint32("entry.non_shared")? as usize;
            let value_len = c.varint32("entry.value_len")? as usize;
            let stands_at = if restart { c.varint32("entry.value_offset")? as usize } else { value_at };
            let tail = c.bytes(non_shared, "entry.key")?;
            let value = parts.values.get(value_at..value_at + value_len);
            match value {
                Some(value) if stands_at == value_at && !(restart && shared > 0) => {
                    plain.push(restart, shared, tail, value)?;
                }
                _ => return Err(c.malformed("entry", "value or restart point out of place")),
            }
            value_at += value_len;
            Ok(c.position())
        })();
        at += entry.map_err(|m: Malformed| Malformed { at: m.at.saturating_add(at), ..m })?;
    }
    // An empty block has one restart point, at zero.
    let left = restarts.next().is_some_and(|offset| offset != 0 || !parts.keys.is_empty());
    if left || value_at != parts.values.len() {
        let what = "restart points or values that belong to no entry";
        return Err(Malformed { field: "block", at: parts.keys.len(), what });
    }
    Ok(plain.finish(parts.hash_index))
}

impl<'a> Separated<'a> {
    fn split(block: &'a [u8]) -> Result<Self, Malformed> {
        let bad = |what| Malformed { field: "block.packed", at: block.len().saturating_sub(4), what };
        let split = || {
            let (body, packed) = block.split_last_chunk::<4>()?;
            let (body, values) = body.split_last_chunk::<4>()?;
            let packed = u32::from_le_bytes(*packed);
            let (body, hash_index) = if packed & HASHED == 0 {
                (body, None)
            } else {
                let count = usize::from(u16::from_le_bytes(*body.last_chunk::<2>()?));
                let start = body.len().checked_sub(count + 2).filter(|_| count > 0)?;
                let (body, index) = body.split_at_checked(start)?;
                (body, Some(index))
            };
            let restarts = ((packed & RESTARTS_MASK) as usize).checked_mul(4).filter(|n| *n > 0)?;
            let (entries, restarts) = body.split_at_checked(body.len().checked_sub(restarts)?)?;
            let (keys, values) = entries.split_at_checked(u32::from_le_bytes(*values) as usize)?;
            let restarts = restarts.as_chunks::<4>().0;
            let known = packed & UNKNOWN == 0 && packed & SEPARATED != 0;
            known.then_some(Separated { keys, values, restarts, hash_index })
        };
        split().ok_or(bad("not a block with separated keys and values"))
    }
}

/// The block with other keys and values: `each` gets an entry's internal key and value and fills two buffers, which come
/// empty, with what is to stand there. The order of the keys must not change. A hash index is left out.
///
/// # Errors
/// `Malformed` as an `E`: the block does not decode or grows past 4 GiB. What `each` answers.
pub fn rewrite_block<E: From<Malformed>>(
    block: &DataBlock<'_>,
    mut each: impl FnMut(&[u8], &[u8], &mut Vec<u8>, &mut Vec<u8>) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let mut plain = Plain::default();
    let mut cursor = BlockCursor::default();
    let (mut key, mut last, mut value) = (Vec::new(), Vec::new(), Vec::new());
    let mut restarts = 0;
    cursor.first(block)?;
    while cursor.is_on_entry() {
        key.clear();
        value.clear();
        each(cursor.key(), cursor.value(block), &mut key, &mut value)?;
        let mut restart = false;
        while block.restart(restarts) == Some(cursor.offset()) {
            restart = true;
            restarts += 1;
        }
        let shared = if restart { 0 } else { common_prefix(&last, &key) };
        plain.push(restart, shared, key.get(shared..).unwrap_or_default(), &value)?;
        std::mem::swap(&mut key, &mut last);
        cursor.next(block)?;
    }
    Ok(plain.finish(None))
}
