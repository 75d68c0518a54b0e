//! An internal entry as a line, in the form of sst_dump and of ldb's idump.
//!
//! ```text
//! 'key' seq:7, type:1 => value
//! 'key' seq:8, type:17 => [blob ref] file:9 offset:64 size:2 compression: NoCompression
//! ```

use crate::bytes_text::{Hex, write_bytes};
use ashlar_base::{Trailer, ValueType};
use ashlar_format::blob::BlobIndex;
use ashlar_format::compress::Compression;
use ashlar_format::entity::{ColumnValue, Entity};
use std::io::{self, Write};

/// How a line shows the entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryForm {
    /// Keys as hexadecimal digits.
    pub(crate) key_hex: bool,
    /// Values as hexadecimal digits.
    pub(crate) value_hex: bool,
    /// A reference into a blob file in words, not as its bytes.
    pub(crate) blob_places: bool,
    /// A row as its columns, not as its bytes.
    pub(crate) columns: bool,
}

impl EntryForm {
    /// Prints one entry. `seq` is that of the entry; the trailer has another one in an ingested table.
    pub(crate) fn print(
        self,
        (user_key, seq, trailer): (&[u8], u64, Trailer),
        value: &[u8],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        out.write_all(b"'")?;
        write_bytes(out, user_key, self.key_hex)?;
        write!(out, "' seq:{seq}, type:{} => ", trailer.type_byte())?;
        match trailer.value_type() {
            Some(ValueType::BlobIndex) if self.blob_places => {
                out.write_all(blob_words(value).as_bytes())?;
            }
            Some(ValueType::Entity) if self.columns => self.row(value, out)?,
            _ => write_bytes(out, value, self.value_hex)?,
        }
        out.write_all(b"\n")
    }

    /// Prints `NAME:VALUE` of each column. The name of the default column is empty.
    fn row(self, value: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let row = match Entity::decode(value) {
            Ok(row) => row,
            Err(e) => return write!(out, "[{e}]"),
        };
        for (at, column) in row.columns().iter().enumerate() {
            out.write_all(if at == 0 { b"" } else { b" " })?;
            let prefix: &[u8] = if self.value_hex { b"0x" } else { b"" };
            if !column.name.is_empty() {
                out.write_all(prefix)?;
                write_bytes(out, column.name, self.value_hex)?;
            }
            out.write_all(b":")?;
            match column.value {
                ColumnValue::Inline(value) => {
                    out.write_all(prefix)?;
                    write_bytes(out, value, self.value_hex)?;
                }
                ColumnValue::Blob(_) => out.write_all(b"[blob ref]")?,
            }
        }
        Ok(())
    }
}

fn blob_words(value: &[u8]) -> String {
    match BlobIndex::decode(value) {
        Ok(BlobIndex::Blob(place)) => {
            let compression = Compression::from_byte(place.compression).map_or("Unknown", Compression::name);
            format!(
                "[blob ref] file:{} offset:{} size:{} compression: {compression}",
                place.file.0, place.offset, place.size
            )
        }
        Ok(_) => format!("[blob with an expiration] {}", Hex(value)),
        Err(e) => format!("[{e}]"),
    }
}
