//! Fields that several records of an edit have.

use ashlar_base::bytes::{put_slice, put_varint32};
use ashlar_base::{Cursor, FileNumber, InternalKey, InternalKeyBuf, Malformed, SeqNum, Trailer};

/// Custom fields that are not known here: tag and content.
pub type CustomFields = Vec<(u32, Vec<u8>)>;

/// Appends a custom field, if there is one.
pub(super) fn put_text(out: &mut Vec<u8>, tag: u32, value: Option<&[u8]>) {
    if let Some(value) = value {
        put_varint32(out, tag);
        put_slice(out, value);
    }
}

/// Appends custom fields that were kept.
pub(super) fn put_custom(out: &mut Vec<u8>, fields: &CustomFields) {
    for (tag, field) in fields {
        put_text(out, *tag, Some(field));
    }
}

/// A file number of at most 62 bits.
pub(super) fn file_number(c: &mut Cursor<'_>, field: &'static str) -> Result<FileNumber, Malformed> {
    let start = *c;
    let number = FileNumber(c.varint64(field)?);
    if number > FileNumber::MAX { Err(start.malformed(field, "over 62 bits")) } else { Ok(number) }
}

/// A key that bounds a file or a compaction. A type that only RocksDB's boundaries have becomes the largest type that an
/// entry has: no entry lies between the two, and every release of RocksDB reads the second one.
pub(super) fn internal_key(c: &mut Cursor<'_>, field: &'static str) -> Result<InternalKeyBuf, Malformed> {
    let start = *c;
    let key = InternalKey::decode(c.slice(field)?).map_err(|m| start.malformed(field, m.what))?;
    let (user_key, trailer) = key.split();
    match trailer.value_type() {
        Some(_) => Ok(key.to_buf()),
        None if trailer.type_byte() == Trailer::RANGE_START_TYPE => {
            Ok(InternalKeyBuf::new(user_key, Trailer::seek(trailer.seq())))
        }
        None => Err(start.malformed(field, "unknown type of key")),
    }
}

/// A sequence number of at most 56 bits.
pub(super) fn sequence(c: &mut Cursor<'_>, field: &'static str) -> Result<SeqNum, Malformed> {
    let start = *c;
    SeqNum::new(c.varint64(field)?).ok_or_else(|| start.malformed(field, "over 56 bits"))
}

/// Reads a value that must fill `payload`, the slice that was read at `start`. Offsets in errors are those of the
/// slice's length.
pub(super) fn whole_slice<T>(
    start: Cursor<'_>,
    payload: &[u8],
    field: &'static str,
    decode: impl FnOnce(&mut Cursor<'_>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let mut inner = Cursor::new(payload);
    let value = decode(&mut inner).map_err(|m| start.malformed(m.field, m.what))?;
    if inner.is_empty() { Ok(value) } else { Err(start.malformed(field, "trailing bytes")) }
}
