//! A blob file as ldb's dump prints it: header, footer, each record, and sums.
//!
//! 1. A file without a footer is printed too: a crash leaves one.
//! 2. The first record that cannot be read ends the walk. The sums count the records before it, and the error follows them.
//! 3. A stored value is printed as stored. With `uncompressed` its value takes that place.
//!
//! Source: RocksDB `utilities/blob_db/blob_dump_tool.cc` (by its output).

use crate::Done;
use crate::bytes_text::write_bytes;
use ashlar_base::{Cursor, Error, Result};
use ashlar_env::{Env, ReadFile};
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobRecordHeader, Expiration};
use ashlar_format::compress::{Compression, decompress};
use std::io::Write;
use std::path::Path;

/// How records are printed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlobForm {
    pub(crate) key_hex: bool,
    pub(crate) value_hex: bool,
    /// Prints each value, in place of its stored bytes.
    pub(crate) uncompressed: bool,
}

/// Prints the file.
pub(crate) fn dump(path: &Path, form: BlobForm, out: &mut dyn Write) -> Done {
    let file = Env::os()?.fs.open_read(path)?;
    let header = BlobHeader::decode(&read(&*file, 0, BlobHeader::LEN as u64)?);
    let header = header.map_err(|e| e.in_file(path, 0))?;
    writeln!(out, "Blob log header:\n  Version          : 1\n  Column Family ID : {}", header.family.0)?;
    writeln!(out, "  Compression      : {}", compression_name(header.compression))?;
    writeln!(out, "  Expiration range : {}", range(header.expiration))?;
    let records = BlobHeader::LEN as u64;
    let footer_at = file.len().checked_sub(BlobFooter::LEN as u64).filter(|at| *at >= records);
    let tail = footer_at.map(|at| read(&*file, at, BlobFooter::LEN as u64)).transpose()?;
    let end = match (tail.map(|tail| BlobFooter::decode(&tail)), footer_at) {
        (Some(Ok(footer)), Some(at)) => {
            writeln!(out, "Blob log footer:\n  Blob count       : {}", footer.count)?;
            writeln!(out, "  Expiration Range : {}", range(footer.expiration))?;
            at
        }
        _ => {
            writeln!(out, "No blob log footer.")?;
            file.len()
        }
    };
    let mut walk = Walk { file: &*file, compression: header.compression, end, at: records, sums: [0; 4] };
    let walked = loop {
        match walk.next() {
            Ok(Some(record)) => walk.print(&record, form, out)?,
            Ok(None) => break Ok(()),
            Err(e) => break Err(e),
        }
    };
    let [count, keys, stored, values] = walk.sums;
    writeln!(
        out,
        "Summary:\n  total records: {count}\n  total key size: {keys}\n  total blob size: {stored}"
    )?;
    if header.compression != Compression::None.byte() {
        writeln!(out, "  total raw blob size: {values}")?;
    }
    Ok(walked?)
}

fn read(file: &dyn ReadFile, at: u64, len: u64) -> Result<Vec<u8>> {
    // Nothing is allocated for a length that the file does not have.
    let inside = file.len().checked_sub(at).is_some_and(|rest| len <= rest);
    let Some(len) = usize::try_from(len).ok().filter(|_| inside) else {
        return Err(Error::corruption("the file ends inside a record").at(file.path(), at));
    };
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// RocksDB's name of a compression in option strings.
fn compression_name(byte: u8) -> String {
    match Compression::from_byte(byte) {
        Some(Compression::None) => "kNoCompression".to_owned(),
        Some(Compression::Zstd) => "kZSTD".to_owned(),
        Some(kind) => format!("k{}Compression", kind.name()),
        None => format!("unknown compression type ({byte})"),
    }
}

fn range(expiration: Expiration) -> String {
    match (expiration.first, expiration.last) {
        (0, 0) => "nil".to_owned(),
        (first, last) => format!("({first}, {last})"),
    }
}

/// A record, with its value as stored and as written.
struct Record {
    at: u64,
    head: BlobRecordHeader,
    key: Vec<u8>,
    stored: Vec<u8>,
    value: Option<Vec<u8>>,
}

struct Walk<'a> {
    file: &'a dyn ReadFile,
    compression: u8,
    /// The end of the records.
    end: u64,
    /// The offset of the next record.
    at: u64,
    /// Records, and bytes of keys, of stored values and of compressed values as written.
    sums: [u64; 4],
}

impl Walk<'_> {
    /// The next record, verified; `None` at the end.
    fn next(&mut self) -> Result<Option<Record>> {
        let at = self.at;
        if at >= self.end {
            return Ok(None);
        }
        let wrong = |what: &str| Error::corruption(what).at(self.file.path(), at);
        let head = read(self.file, at, BlobRecordHeader::LEN as u64)?;
        let head =
            BlobRecordHeader::decode(&mut Cursor::new(&head)).map_err(|e| e.in_file(self.file.path(), at))?;
        let length = head.record_len().and_then(|len| Some((len, at.checked_add(len)?)));
        let Some((len, next)) = length.filter(|(_, next)| *next <= self.end) else {
            return Err(wrong("a record reaches over the end of the records"));
        };
        let mut key = read(
            self.file,
            at.saturating_add(BlobRecordHeader::LEN as u64),
            len.saturating_sub(BlobRecordHeader::LEN as u64),
        )?;
        let stored = key.split_off(usize::try_from(head.key_len).unwrap_or(usize::MAX).min(key.len()));
        head.verify(&key, &stored).map_err(|e| e.in_file(self.file.path(), at))?;
        let value = match Compression::from_byte(self.compression) {
            Some(Compression::None) => None,
            Some(kind) => {
                let value = decompress(kind, &stored, u32::MAX as usize);
                Some(value.map_err(|e| e.in_file(self.file.path(), at))?)
            }
            None => return Err(Error::not_supported("this compression").at(self.file.path(), 0)),
        };
        self.at = next;
        let raw = value.as_ref().map_or(0, |value| value.len() as u64);
        for (sum, more) in self.sums.iter_mut().zip([1, head.key_len, head.value_len, raw]) {
            *sum = sum.saturating_add(more);
        }
        Ok(Some(Record { at, head, key, stored, value }))
    }

    fn print(&self, record: &Record, form: BlobForm, out: &mut dyn Write) -> Done {
        let Record { at, head, key, stored, value } = record;
        writeln!(out, "Read record with offset 0x{at:x} ({at}):")?;
        writeln!(out, "  key size   : {}\n  value size : {}", head.key_len, head.value_len)?;
        write!(out, "  expiration : {}\n  key        : ", head.expiration)?;
        write_bytes(out, key, form.key_hex)?;
        let (name, value) = match form.uncompressed {
            true => ("raw blob  ", value.as_ref().unwrap_or(stored)),
            false => ("blob      ", stored),
        };
        write!(out, "\n  {name} : ")?;
        write_bytes(out, value, form.value_hex)?;
        Ok(writeln!(out)?)
    }
}
