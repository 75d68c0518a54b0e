//! Wide-column entities: a value that is a sorted row of named columns.
//!
//! ```text
//! version 1:  1 | n | n * (name: slice, value length) | values
//! version 2:  2 | n | bytes of name sizes | bytes of value sizes | bytes of names
//!             | n * kind: u8, 01 inline or 11 blob index | n * name size | n * value size | names | values
//! ```
//! 1. Integers are varint32. Names ascend strictly, bytewise. Nothing follows the last value.
//! 2. The column with the empty name, which is the first if there is one, is the default column: what a plain get of the
//!    key answers. Without it a plain get answers the empty value.
//! 3. Version 1 is written unless a column is in a blob file: RocksDB before 11.2 does not read version 2.
//!
//! Source: RocksDB `db/wide/wide_column_serialization.h`, `db/wide/wide_column_serialization.cc`.
#![deny(clippy::indexing_slicing)]

use crate::blob::{BlobIndex, BlobPlace};
use crate::unreadable::Unreadable;
use ashlar_base::bytes::{put_slice, put_varint32, varint_len};
use ashlar_base::{Cursor, Malformed};

const INLINE: u8 = 0x01;
const BLOB: u8 = 0x11;

/// The value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnValue<'a> {
    /// In the entity itself.
    Inline(&'a [u8]),
    /// In a blob file.
    Blob(BlobPlace),
}

/// A named value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// The name; empty for the default column.
    pub name: &'a [u8],
    /// The value.
    pub value: ColumnValue<'a>,
}

/// The columns of an entity, strictly ascending by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entity<'a> {
    columns: Vec<Column<'a>>,
}

impl<'a> Entity<'a> {
    /// An entity of these columns, which are sorted here.
    ///
    /// # Errors
    /// `Malformed`: a name occurs twice, or something is too long for its 32-bit length.
    pub fn new(mut columns: Vec<Column<'a>>) -> Result<Self, Malformed> {
        columns.sort_by_key(|column| column.name);
        let wrong = |what| Malformed { field: "entity", at: 0, what };
        if columns.is_sorted_by(|a, b| a.name < b.name) {
            let fits = |bytes: &[u8]| u32::try_from(bytes.len()).is_ok();
            let all_fit = columns.iter().all(|column| {
                fits(column.name) && !matches!(column.value, ColumnValue::Inline(value) if !fits(value))
            });
            return if all_fit { Ok(Entity { columns }) } else { Err(wrong("longer than 4 GiB")) };
        }
        Err(wrong("a column name occurs twice"))
    }

    /// The columns.
    pub fn columns(&self) -> &[Column<'a>] {
        &self.columns
    }

    /// The result of a plain get of the key. `None`: there is no default column, so the value is empty.
    pub fn default_column(&self) -> Option<ColumnValue<'a>> {
        self.columns.first().filter(|column| column.name.is_empty()).map(|column| column.value)
    }

    /// The value of a column.
    pub fn get(&self, name: &[u8]) -> Option<ColumnValue<'a>> {
        let at = self.columns.binary_search_by_key(&name, |column| column.name).ok()?;
        self.columns.get(at).map(|column| column.value)
    }

    /// Reads the whole value of an entry of type `Entity`.
    ///
    /// # Errors
    /// `Malformed`: fields that do not decode, names out of order, bytes that are left. `NotSupported`: a version above 2.
    pub fn decode(value: &'a [u8]) -> Result<Self, Unreadable> {
        let mut c = Cursor::new(value);
        let columns = match c.varint32("entity.version")? {
            0 => return Err(Malformed { field: "entity.version", at: 0, what: "no such version" }.into()),
            1 => decode_1(&mut c)?,
            2 => decode_2(&mut c)?,
            _ => return Err(Unreadable::NotSupported("wide-column entities of a version above 2")),
        };
        c.finish("entity")?;
        if !columns.is_sorted_by(|a, b| a.name < b.name) {
            return Err(c.malformed("entity", "column names out of order").into());
        }
        Ok(Entity { columns })
    }

    /// Appends the entity: version 1, or 2 if a column is in a blob file.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let inline = |column: &Column<'a>| match column.value {
            ColumnValue::Inline(value) => Some((column.name, value)),
            ColumnValue::Blob(_) => None,
        };
        match self.columns.iter().map(inline).collect::<Option<Vec<_>>>() {
            Some(columns) => encode_1(&columns, out),
            None => encode_2(&self.columns, out),
        }
    }
}

/// A count of columns that the rest can hold when each takes `least` bytes.
fn count(c: &mut Cursor<'_>, least: usize) -> Result<usize, Malformed> {
    let start = *c;
    let count = c.varint32("entity.columns")? as usize;
    match count.checked_mul(least) {
        Some(bytes) if bytes <= c.rest().len() => Ok(count),
        _ => Err(start.malformed("entity.columns", "more columns than bytes")),
    }
}

fn decode_1<'a>(c: &mut Cursor<'a>) -> Result<Vec<Column<'a>>, Malformed> {
    let count = count(c, 2)?;
    let mut heads = Vec::with_capacity(count);
    for _ in 0..count {
        let name = c.slice("entity.name")?;
        heads.push((name, c.varint32("entity.value length")? as usize));
    }
    let columns = heads
        .into_iter()
        .map(|(name, len)| Ok(Column { name, value: ColumnValue::Inline(c.bytes(len, "entity.value")?) }));
    columns.collect()
}

fn decode_2<'a>(c: &mut Cursor<'a>) -> Result<Vec<Column<'a>>, Malformed> {
    let count = count(c, 3)?;
    let name_sizes_len = c.varint32("entity.name sizes")? as usize;
    let value_sizes_len = c.varint32("entity.value sizes")? as usize;
    let names_len = c.varint32("entity.names")? as usize;
    let kinds = c.bytes(count, "entity.kinds")?;
    let mut name_sizes = Cursor::new(c.bytes(name_sizes_len, "entity.name sizes")?);
    let mut value_sizes = Cursor::new(c.bytes(value_sizes_len, "entity.value sizes")?);
    let mut names = Cursor::new(c.bytes(names_len, "entity.names")?);
    let mut columns = Vec::with_capacity(count);
    for kind in kinds {
        let name = names.bytes(name_sizes.varint32("entity.name size")? as usize, "entity.names")?;
        let at_value = *c;
        let stored = c.bytes(value_sizes.varint32("entity.value size")? as usize, "entity.value")?;
        let value = match *kind {
            INLINE => ColumnValue::Inline(stored),
            BLOB => match BlobIndex::decode(stored).map_err(|m| at_value.malformed(m.field, m.what))? {
                BlobIndex::Blob(place) => ColumnValue::Blob(place),
                _ => return Err(at_value.malformed("entity.value", "a blob that expires")),
            },
            _ => return Err(at_value.malformed("entity.kinds", "unknown kind of column")),
        };
        columns.push(Column { name, value });
    }
    for (section, field) in
        [(name_sizes, "entity.name sizes"), (value_sizes, "entity.value sizes"), (names, "entity.names")]
    {
        section.finish(field).map_err(|m| c.malformed(m.field, m.what))?;
    }
    Ok(columns)
}

/// A length that [`Entity::new`] or a decoder has seen to fit.
fn put_len(out: &mut Vec<u8>, len: usize) {
    put_varint32(out, u32::try_from(len).unwrap_or(u32::MAX));
}

fn encode_1(columns: &[(&[u8], &[u8])], out: &mut Vec<u8>) {
    put_varint32(out, 1);
    put_len(out, columns.len());
    for (name, value) in columns {
        put_slice(out, name);
        put_len(out, value.len());
    }
    columns.iter().for_each(|(_, value)| out.extend_from_slice(value));
}

fn encode_2(columns: &[Column<'_>], out: &mut Vec<u8>) {
    let (mut kinds, mut values) = (Vec::new(), Vec::new());
    let mut value_sizes = Vec::with_capacity(columns.len());
    for column in columns {
        let start = values.len();
        kinds.push(match column.value {
            ColumnValue::Inline(value) => {
                values.extend_from_slice(value);
                INLINE
            }
            ColumnValue::Blob(place) => {
                BlobIndex::Blob(place).encode(&mut values);
                BLOB
            }
        });
        value_sizes.push(values.len() - start);
    }
    let bytes_of = |sizes: &mut dyn Iterator<Item = usize>| sizes.map(|n| varint_len(n as u64)).sum();
    put_varint32(out, 2);
    put_len(out, columns.len());
    put_len(out, bytes_of(&mut columns.iter().map(|column| column.name.len())));
    put_len(out, bytes_of(&mut value_sizes.iter().copied()));
    put_len(out, columns.iter().map(|column| column.name.len()).sum());
    out.extend_from_slice(&kinds);
    columns.iter().for_each(|column| put_len(out, column.name.len()));
    value_sizes.iter().for_each(|size| put_len(out, *size));
    columns.iter().for_each(|column| out.extend_from_slice(column.name));
    out.extend_from_slice(&values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::FileNumber;

    /// The two entities of `golden/sst/v7_db_blobindex_entities.sst`.
    const E1: &[u8] = b"\x01\x03\x00\x0b\x05attr1\x02\x05attr2\x00default-colv1";
    const E2: &[u8] = b"\x02\x02\x02\x02\x08\x01\x11\x04\x04\x04\x06citynoteOslo\x01\x0a\xad\x03\x12\x07";

    fn again(entity: &Entity<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        entity.encode(&mut bytes);
        bytes
    }

    #[test]
    fn golden_entities_are_read_and_written_again() {
        let listing = include_str!("../../../golden/sst/v7_db_blobindex_entities.expected.txt");
        for entity in [E1, E2] {
            let hex: String = entity.iter().map(|byte| format!("{byte:02X}")).collect();
            assert!(listing.lines().any(|line| line.ends_with(&format!("type:22 => {hex}"))), "{hex}");
        }
        let one = Entity::decode(E1).unwrap();
        let inline = |entity: &Entity<'static>, name: &[u8]| entity.get(name);
        assert_eq!(one.default_column(), Some(ColumnValue::Inline(b"default-col")));
        assert_eq!(inline(&one, b"attr1"), Some(ColumnValue::Inline(b"v1")));
        assert_eq!(inline(&one, b"attr2"), Some(ColumnValue::Inline(b"")));
        assert_eq!(inline(&one, b"attr"), None);
        assert_eq!(again(&one), E1);
        let two = Entity::decode(E2).unwrap();
        let place = BlobPlace { file: FileNumber(10), offset: 429, size: 18, compression: 7 };
        assert_eq!(two.default_column(), None);
        assert_eq!(two.get(b"city"), Some(ColumnValue::Inline(b"Oslo")));
        assert_eq!(two.get(b"note"), Some(ColumnValue::Blob(place)));
        assert_eq!(again(&two), E2);
        let reversed = Entity::new(one.columns().iter().rev().copied().collect()).unwrap();
        assert_eq!(reversed, one);
        let empty = Entity::default();
        assert_eq!((again(&empty), Entity::decode(&[1, 0]).unwrap()), (vec![1, 0], empty));
    }

    #[test]
    fn every_cut_and_every_flip_is_refused_or_another_entity() {
        for good in [E1, E2] {
            let entity = Entity::decode(good).unwrap();
            for cut in 0..good.len() {
                assert!(Entity::decode(&good[..cut]).is_err(), "{cut}");
            }
            assert!(Entity::decode(&[good, b"x"].concat()).is_err());
            for at in 0..good.len() {
                for bit in 0..8 {
                    let mut flipped = good.to_vec();
                    flipped[at] ^= 1 << bit;
                    if let Ok(other) = Entity::decode(&flipped) {
                        assert_ne!(other, entity, "byte {at} bit {bit}");
                        assert_eq!(Entity::decode(&again(&other)), Ok(other.clone()));
                    }
                }
            }
        }
    }

    #[test]
    fn lies_are_refused_by_name() {
        let what = |bytes: &[u8]| match Entity::decode(bytes).unwrap_err() {
            Unreadable::Malformed(m) => m.what,
            Unreadable::NotSupported(feature) => feature,
            Unreadable::OutOfMemory => "memory",
        };
        assert_eq!(what(&[1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1]), "more columns than bytes");
        assert_eq!(what(&[2, 0xff, 0xff, 0xff, 0x7f, 1, 1, 1]), "more columns than bytes");
        assert_eq!(what(&[0, 0]), "no such version");
        assert_eq!(what(&[3, 0]), "wide-column entities of a version above 2");
        assert_eq!(what(b"\x01\x02\x01b\x00\x01a\x00"), "column names out of order");
        assert_eq!(what(b"\x01\x02\x01a\x00\x01a\x00"), "column names out of order");
        assert_eq!(what(b"\x02\x01\x01\x01\x01\x02\x01\x01ab"), "unknown kind of column");
        assert_eq!(what(b"\x02\x01\x01\x01\x01\x11\x01\x02a\x00\x01"), "a blob that expires");
        assert_eq!(what(b"\x02\x01\x01\x01\x02\x01\x01\x01axb"), "trailing bytes");
        let column = |name| Column { name, value: ColumnValue::Inline(b"v") };
        let twice = Entity::new(vec![column(b"a"), column(b"b"), column(b"a")]);
        assert_eq!(twice.unwrap_err().what, "a column name occurs twice");
    }
}
