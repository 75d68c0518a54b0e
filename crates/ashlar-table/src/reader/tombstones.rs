//! Reads the range-deletion block. `builder/tombstone_block` describes its layout.
//!
//! Writers outside a database store tombstones in the order of the calls, and the tombstones overlap; old files hold
//! exact duplicates. So this reader accepts any order. The code that cuts the tombstones into fragments sorts them.
//!
//! Source: RocksDB `db/range_tombstone_fragmenter.cc`.

use ashlar_base::range_del::ListedTombstones;
use ashlar_base::{Malformed, SeqNum, ValueType};
use ashlar_format::Unreadable;
use ashlar_format::block::{BlockCursor, DataBlock};

/// The tombstones of a block, all at `global_seq` where there is one. Each key gets the `stripped` zeros of the timestamp that the
/// table does not store.
pub(super) fn decode_tombstones(
    block: &[u8],
    global_seq: Option<SeqNum>,
    stripped: usize,
) -> Result<ListedTombstones, Unreadable> {
    let block = DataBlock::parse(block)?;
    let mut cursor = BlockCursor::default();
    let mut all = ListedTombstones::default();
    let mut padded = [Vec::new(), Vec::new()];
    cursor.first(&block)?;
    while let Some(key) = cursor.internal_key() {
        let (begin, trailer) = key.split();
        if trailer.value_type() != Some(ValueType::RangeDelete) {
            let at = cursor.offset();
            return Err(Malformed { field: "range deletions", at, what: "an entry of another type" }.into());
        }
        let seq = global_seq.unwrap_or(trailer.seq());
        let end = cursor.value(&block);
        if stripped == 0 {
            all.push(begin, end, seq);
        } else {
            for (padded, key) in padded.iter_mut().zip([begin, end]) {
                padded.clear();
                padded.extend_from_slice(key);
                padded.resize(key.len() + stripped, 0);
            }
            let [begin, end] = &padded;
            all.push(begin, end, seq);
        }
        cursor.next(&block)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{InternalKeyBuf, Trailer};
    use ashlar_format::block::BlockBuilder;

    fn block(entries: &[(&[u8], u64, ValueType, &[u8])]) -> Vec<u8> {
        let mut builder = BlockBuilder::new(1);
        for (begin, seq, value_type, end) in entries {
            let trailer = Trailer::new(SeqNum::new(*seq).unwrap(), *value_type);
            builder.add(InternalKeyBuf::new(begin, trailer).as_key().encoded(), end);
        }
        builder.finish().to_vec()
    }

    #[test]
    fn any_order_goes_and_one_sequence_number_wins() {
        let range = ValueType::RangeDelete;
        let bytes = block(&[(b"m", 3, range, b"z"), (b"a", 2, range, b"b"), (b"a", 2, range, b"b")]);
        let seqs = |global| -> Vec<u64> {
            decode_tombstones(&bytes, global, 0).unwrap().since(0).iter().map(|t| t.seq.get()).collect()
        };
        assert_eq!(seqs(None), [3, 2, 2]);
        assert_eq!(seqs(SeqNum::new(9)), [9, 9, 9]);
        let keys = |stripped| -> Vec<_> {
            let stored = decode_tombstones(&bytes, None, stripped).unwrap();
            stored
                .since(0)
                .iter()
                .map(|t| format!("{}..{}", t.begin.escape_ascii(), t.end.escape_ascii()))
                .collect()
        };
        assert_eq!(keys(0), ["m..z", "a..b", "a..b"]);
        assert_eq!(keys(1), ["m\\x00..z\\x00", "a\\x00..b\\x00", "a\\x00..b\\x00"]);
    }

    #[test]
    fn other_entries_and_damage_are_refused() {
        let stray = block(&[(b"a", 2, ValueType::RangeDelete, b"b"), (b"c", 2, ValueType::Put, b"d")]);
        assert!(decode_tombstones(&stray, None, 0).is_err());
        let good = block(&[(b"a", 2, ValueType::RangeDelete, b"b"), (b"c", 1, ValueType::RangeDelete, b"d")]);
        for at in 0..good.len() {
            let _ = decode_tombstones(&good[..at], None, 0);
            let mut flipped = good.clone();
            flipped[at] ^= 0xff;
            let _ = decode_tombstones(&flipped, None, 0);
        }
    }
}
