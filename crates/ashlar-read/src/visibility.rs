//! The result of a read at a sequence number, from the entries of one user key.
//!
//! 1. An entry is visible to a read at `seq` when its own sequence number is at most `seq`.
//! 2. The newest visible entry of a user key counts. A merge operand counts together with the older entries that it
//!    applies to, down to the first entry that is not an operand.
//! 3. A single delete hides older entries as a delete does. Only compactions treat the two differently.
//! 4. If the entry that counts has a type that the engine does not serve, the read fails with an error that names the
//!    type.
//!
//! Source: RocksDB `db/db_iter.cc`, `table/get_context.cc`.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Result, SeqNum, Trailer, ValueType};

/// The meaning of the deciding entry for its user key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The entry's value is the key's value.
    Value,
    /// The key has a value, and the entry only refers to it: in a blob file, in an entity, or before trailing data.
    Wrapped,
    /// The key has no visible entry.
    Deleted,
    /// The entry's value is to be applied to what older entries say.
    Operand,
}

/// Whether a read at `seq` sees an entry.
#[inline]
pub fn is_visible(entry: Trailer, seq: SeqNum) -> bool {
    entry.seq() <= seq || planted(Bug::SnapshotSeesNewer) && entry.seq().before() == seq
}

/// The meaning of the newest visible entry of `user_key`.
///
/// # Errors
/// `NotSupported`: a type that reads do not serve; the message names it. `Corruption`: the type byte is unknown.
#[inline]
pub fn entry_kind(entry: Trailer, user_key: &[u8]) -> Result<EntryKind> {
    match entry.value_type() {
        Some(ValueType::Put) => Ok(EntryKind::Value),
        Some(ValueType::Delete | ValueType::SingleDelete) => Ok(EntryKind::Deleted),
        Some(ValueType::Merge) => Ok(EntryKind::Operand),
        Some(ValueType::BlobIndex | ValueType::Entity | ValueType::TimedPut) => Ok(EntryKind::Wrapped),
        other => Err(unserved(other, entry, user_key)),
    }
}

#[cold]
fn unserved(value_type: Option<ValueType>, entry: Trailer, user_key: &[u8]) -> Error {
    let what = match value_type {
        // A range tombstone is not an entry of a key: it is in a separate block.
        None
        | Some(
            ValueType::Put
            | ValueType::Delete
            | ValueType::SingleDelete
            | ValueType::Merge
            | ValueType::BlobIndex
            | ValueType::Entity
            | ValueType::TimedPut
            | ValueType::RangeDelete,
        ) => {
            let byte = entry.type_byte();
            return Error::corruption(format!("entry type {byte:#04x} of key '{}'", user_key.escape_ascii()));
        }
        Some(ValueType::DeleteWithTimestamp) => "reading deletes with user-defined timestamps",
    };
    Error::not_supported(format!("{what}: key '{}' at sequence {}", user_key.escape_ascii(), entry.seq()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ErrorKind;

    fn entry(seq: u64, value_type: ValueType) -> Trailer {
        Trailer::new(SeqNum::new(seq).unwrap(), value_type)
    }

    #[test]
    fn an_entry_is_seen_from_its_sequence_on() {
        let at = |n| SeqNum::new(n).unwrap();
        let e = entry(5, ValueType::Put);
        assert_eq!([4, 5, 6].map(|n| is_visible(e, at(n))), [false, true, true]);
    }

    #[test]
    fn every_type_has_a_fate_or_is_an_error_with_a_name() {
        for byte in 0..=0xffu8 {
            let e = Trailer::from_raw(7 << 8 | u64::from(byte));
            let got = entry_kind(e, b"k\xff");
            match byte {
                0x00 | 0x07 => assert_eq!(got.unwrap(), EntryKind::Deleted),
                0x01 => assert_eq!(got.unwrap(), EntryKind::Value),
                0x02 => assert_eq!(got.unwrap(), EntryKind::Operand),
                0x11 | 0x16 | 0x18 => assert_eq!(got.unwrap(), EntryKind::Wrapped),
                0x14 => {
                    let e = got.unwrap_err();
                    assert_eq!(e.kind(), ErrorKind::NotSupported);
                    assert!(e.to_string().contains(r"key 'k\xff' at sequence 7"), "{e}");
                }
                _ => assert!(got.unwrap_err().is_corruption()),
            }
        }
    }
}
