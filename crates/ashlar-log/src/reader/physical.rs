//! The physical records of a log in order, without a recovery mode. For tools that explain a log.
//!
//! 1. Every byte of the file belongs to a record, to zeros, to the fill bytes at the end of a block, or to damage.
//! 2. Behind damage, reading goes on at the next block, as in every reader, because the lengths there are not reliable.
//! 3. The kinds come from the bytes alone. For example, a middle fragment may appear without its first fragment.

use super::blocks::Blocks;
use ashlar_base::{FileNumber, Result};
use ashlar_env::ReadFile;
use ashlar_format::log_record::{Fault, RecordType, closes_block, parse_physical};
use std::sync::Arc;

/// A part of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalRecord {
    /// The file offset of the part.
    pub offset: u64,
    /// The length of the part in bytes, header included.
    pub len: u64,
    /// The kind of the part.
    pub kind: PhysicalKind,
}

/// The kind of a part of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhysicalKind {
    /// A record whose checksum is right.
    Record {
        /// Its type byte.
        type_byte: u8,
        /// The length of its payload.
        payload: u64,
    },
    /// A record with another log number: it is from the file's earlier use.
    OldRecord {
        /// Its type byte.
        type_byte: u8,
    },
    /// Zeros to the end of the block, or a header with type and length zero and data after it.
    Zeros {
        /// True when all bytes are zero.
        clean: bool,
    },
    /// Too few bytes for a header at the end of a whole block.
    BlockEnd,
    /// Too few bytes for a header at the end of the file.
    ShortHeader,
    /// A length that reaches past the block, or past the end of the file.
    BadLength,
    /// A wrong checksum.
    BadChecksum,
}

impl PhysicalKind {
    /// The type of the record, if it is known.
    pub fn record_type(self) -> Option<RecordType> {
        match self {
            PhysicalKind::Record { type_byte, .. } | PhysicalKind::OldRecord { type_byte } => {
                RecordType::from_u8(type_byte)
            }
            _ => None,
        }
    }
}

/// Reads the physical records of a log file in order. Keeps one block in memory.
pub struct PhysicalRecords {
    blocks: Blocks,
    log_number: u32,
    /// A whole record with the long header was seen.
    recyclable: bool,
}

impl PhysicalRecords {
    /// From the first byte of `file`; `number` is the number in its name.
    pub fn new(file: Arc<dyn ReadFile>, number: FileNumber) -> Self {
        let log_number = (number.0 & 0xffff_ffff) as u32;
        PhysicalRecords { blocks: Blocks::new(file), log_number, recyclable: false }
    }

    /// The next part; `None` at the end of the file.
    ///
    /// # Errors
    /// `Io` only.
    #[expect(clippy::should_implement_trait, reason = "an iterator would hide the error")]
    pub fn next(&mut self) -> Result<Option<PhysicalRecord>> {
        while self.blocks.rest().is_empty() {
            if self.blocks.ended {
                return Ok(None);
            }
            self.blocks.advance()?;
        }
        let offset = self.blocks.offset();
        let rest = self.blocks.rest();
        let left = rest.len();
        let type_byte = rest.get(6).copied().unwrap_or(0);
        let (len, kind) = match parse_physical(rest, self.log_number, false) {
            Ok(record) => {
                let payload = record.payload.len() as u64;
                self.recyclable |= record.record_type().is_some_and(|t| t.recyclable);
                (record.len, PhysicalKind::Record { type_byte, payload })
            }
            Err(Fault::OldRecord { len }) => (len, PhysicalKind::OldRecord { type_byte }),
            Err(Fault::Zero) if self.blocks.is_whole() && closes_block(rest, self.recyclable) => {
                (left, PhysicalKind::BlockEnd)
            }
            Err(Fault::Zero) => (left, PhysicalKind::Zeros { clean: rest.iter().all(|byte| *byte == 0) }),
            Err(Fault::ShortHeader) if self.blocks.ended => (left, PhysicalKind::ShortHeader),
            Err(Fault::ShortHeader) => (left, PhysicalKind::BlockEnd),
            Err(Fault::BadLength) => (left, PhysicalKind::BadLength),
            Err(Fault::BadChecksum | Fault::MixedForms) => (left, PhysicalKind::BadChecksum),
        };
        let taken = self.blocks.take(len);
        Ok(Some(PhysicalRecord { offset, len: (taken.end - taken.start) as u64, kind }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framing, LogWriter};
    use ashlar_env::Env;
    use ashlar_format::log_record::BLOCK_SIZE;
    use std::path::Path;

    fn kinds(bytes: &[u8]) -> Vec<PhysicalRecord> {
        let fs = Env::mem().fs;
        let path = Path::new("/000007.log");
        fs.create(path).unwrap().write_at(bytes, 0).unwrap();
        let mut records = PhysicalRecords::new(fs.open_read(path).unwrap(), FileNumber(7));
        let mut all = Vec::new();
        while let Some(record) = records.next().unwrap() {
            all.push(record);
        }
        all
    }

    fn log(payloads: &[usize]) -> Vec<u8> {
        let fs = Env::mem().fs;
        let path = Path::new("/000007.log");
        let log = LogWriter::create(Arc::clone(&fs), path, FileNumber(7), Framing::Recyclable).unwrap();
        for len in payloads {
            log.append(&vec![b'x'; *len], false).unwrap();
        }
        log.close().unwrap();
        let file = fs.open_read(path).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn every_byte_is_told_once() {
        let whole = log(&[10, 70_000, 0, 32_000]);
        let mut damaged = whole.clone();
        damaged[20] ^= 1;
        let old = whole.iter().copied().enumerate().map(|(i, b)| if i == 7 { b ^ 1 } else { b }).collect();
        for bytes in [whole.clone(), damaged, old, whole[..40_000].to_vec(), vec![0; 40_000], Vec::new()] {
            let mut at = 0;
            for record in kinds(&bytes) {
                assert_eq!(record.offset, at, "{record:?}");
                at += record.len;
            }
            assert_eq!(at, bytes.len() as u64);
        }
    }

    #[test]
    fn kinds_are_told_apart() {
        use PhysicalKind::{BadChecksum, BadLength, OldRecord, Record, ShortHeader, Zeros};
        let whole = log(&[10, 20]);
        let first = |bytes: &[u8]| kinds(bytes)[0].kind;
        assert_eq!(first(&whole), Record { type_byte: 5, payload: 10 });
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        assert_eq!(first(&flipped(12)), BadChecksum);
        assert_eq!(first(&flipped(7)), OldRecord { type_byte: 5 });
        assert_eq!(first(&flipped(5)), BadLength);
        assert_eq!(kinds(&whole[..25]).last().unwrap().kind, ShortHeader);
        assert_eq!(first(&[0; 100]), Zeros { clean: true });
        assert_eq!(first(&[0, 0, 0, 0, 0, 0, 0, 1]), Zeros { clean: false });
        let mut long = vec![0; BLOCK_SIZE];
        long.extend_from_slice(&whole);
        assert_eq!(kinds(&long).len(), 3);
    }
}
