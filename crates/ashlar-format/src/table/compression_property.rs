//! The property `rocksdb.compression`: which algorithms the data blocks of a table use.
//!
//! Up to version 6 one name (`ZSTD`). In version 7 `manager;types;` and possibly more fields: a compatibility name
//! (`BuiltinV2`, empty = compression off) and two upper-case hex digits per type byte in use, ascending.
//! Each block's own type byte decides; this property tells RocksDB which decompressors to get ready.
//!
//! Source: RocksDB `table/block_based/block_based_table_builder.cc`, `block_based_table_reader.cc`.

use crate::compress::Compression;
use crate::unreadable::Unreadable;
use ashlar_base::Malformed;

const BUILTIN: &str = "BuiltinV2";

/// The property, in the syntax of the table's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompressionProperty {
    /// Versions up to 6: one algorithm.
    Single(Compression),
    /// Version 7: a built-in manager (or none, when `off`) and the types in use, ascending, without 00.
    Types {
        /// Compression was disabled for the file.
        off: bool,
        /// Type bytes found in the file.
        types: Vec<u8>,
    },
}

impl CompressionProperty {
    /// Parses the property of a table of that version.
    ///
    /// # Errors
    /// `Malformed`: an unknown name, a missing separator, wrong digits. `NotSupported`: a manager that is a plug-in.
    pub fn parse(version: u32, text: &str) -> Result<Self, Unreadable> {
        let bad = |what| Malformed { field: "rocksdb.compression", at: 0, what };
        if version < 7 {
            let kind = Compression::from_name(text).ok_or(bad("unknown algorithm"))?;
            return Ok(CompressionProperty::Single(kind));
        }
        let (manager, rest) = text.split_once(';').ok_or(bad("missing separator"))?;
        let (digits, _) = rest.split_once(';').ok_or(bad("missing separator"))?;
        if !manager.is_empty() && manager != BUILTIN {
            return Err(Unreadable::NotSupported("tables written with a custom compression manager"));
        }
        let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
        if !odd.is_empty() {
            return Err(bad("odd number of digits").into());
        }
        let mut types = Vec::with_capacity(pairs.len());
        for [high, low] in pairs {
            let byte = hex_digit(*high).zip(hex_digit(*low)).map(|(h, l)| h << 4 | l);
            match byte {
                Some(byte) if byte != 0 && byte != 0xff => types.push(byte),
                _ => return Err(bad("not a compression type").into()),
            }
        }
        Ok(CompressionProperty::Types { off: manager.is_empty(), types })
    }

    /// The property for a new table: `configured` is the configured algorithm, `used` the type bytes that occur in its
    /// blocks (any order, 00 ignored). Bytes of `used` beyond one only matter to version 7.
    pub fn for_table(version: u32, configured: Compression, used: &[u8]) -> Self {
        if version < 7 {
            return CompressionProperty::Single(configured);
        }
        let mut types: Vec<u8> = used.iter().copied().filter(|byte| *byte != 0).collect();
        types.sort_unstable();
        types.dedup();
        CompressionProperty::Types { off: configured == Compression::None, types }
    }

    /// The property in the form of the file.
    pub fn print(&self) -> String {
        match self {
            CompressionProperty::Single(kind) => kind.name().to_owned(),
            CompressionProperty::Types { off, types } => {
                let digits: String = types.iter().map(|byte| format!("{byte:02X}")).collect();
                format!("{};{digits};", if *off { "" } else { BUILTIN })
            }
        }
    }
}

fn hex_digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'A'..=b'F' => Some(c - b'A' + 10),
        _ => None,
    }
}
