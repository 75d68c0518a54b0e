//! Writes a blob file.

use crate::garbage::BlobAmount;
use crate::options::BlobOptions;
use ashlar_base::{Error, FamilyId, FileNumber, Result};
use ashlar_env::WriteFile;
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobPlace, BlobRecordHeader};
use ashlar_format::compress::{Compression, Compressor};
use ashlar_format::version_edit::BlobAddition;
use std::sync::Arc;

/// The number of bytes that are collected before a write.
const PIECE: usize = 256 << 10;

/// A finished blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobSummary {
    /// The file's number.
    pub number: FileNumber,
    /// The blobs in the file.
    pub amount: BlobAmount,
    /// Bytes of the file.
    pub size: u64,
}

impl BlobSummary {
    /// The MANIFEST record of the file.
    pub fn addition(&self) -> BlobAddition {
        let BlobAmount { count, bytes } = self.amount;
        BlobAddition { number: self.number, count, bytes, ..BlobAddition::default() }
    }
}

/// A blob file under construction.
#[derive(Debug)]
pub struct BlobWriter {
    file: Arc<dyn WriteFile>,
    number: FileNumber,
    compressor: Compressor,
    compressed: Vec<u8>,
    pending: Vec<u8>,
    written: u64,
    amount: BlobAmount,
    poisoned: bool,
}

impl BlobWriter {
    /// Starts a file, empty so far, of that number for a family.
    ///
    /// # Errors
    /// `NotSupported`: a compression that is only read.
    pub fn new(
        file: Arc<dyn WriteFile>,
        number: FileNumber,
        family: FamilyId,
        options: &BlobOptions,
    ) -> Result<BlobWriter> {
        let compressor = options.compressor()?;
        let mut pending = Vec::new();
        let compression = options.compression.byte();
        BlobHeader { family, compression, ..BlobHeader::default() }.encode(&mut pending);
        Ok(BlobWriter {
            file,
            number,
            compressor,
            compressed: Vec::new(),
            pending,
            written: 0,
            amount: BlobAmount::default(),
            poisoned: false,
        })
    }

    /// Appends a value and returns its place.
    ///
    /// # Errors
    /// `Io`: the write; the file is given up then. `InvalidArgument`: a value of 4 GiB or more.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<BlobPlace> {
        self.check_alive()?;
        if u32::try_from(value.len()).is_err() || u32::try_from(key.len()).is_err() {
            return Err(Error::invalid("a blob of 4 GiB or more"));
        }
        let kind = self.compressor.kind();
        let stored = match kind {
            Compression::None => value,
            _ => {
                self.compressor
                    .compress_always(value, &mut self.compressed)
                    .map_err(|m| m.into_error().at_path(self.file.path()))?;
                &self.compressed
            }
        };
        BlobRecordHeader::new(key, stored).encode(&mut self.pending);
        self.pending.extend_from_slice(key);
        let place = BlobPlace {
            file: self.number,
            offset: self.written + self.pending.len() as u64,
            size: stored.len() as u64,
            compression: kind.byte(),
        };
        self.pending.extend_from_slice(stored);
        self.amount.add(&place, key.len());
        if self.pending.len() >= PIECE {
            self.flush()?;
        }
        Ok(place)
    }

    /// The length of the file so far, so that the caller ends it when it is large enough.
    pub fn size(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// The blobs in the file so far.
    pub fn amount(&self) -> BlobAmount {
        self.amount
    }

    /// The file's number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Writes the footer. The caller must sync the file before the MANIFEST names it.
    ///
    /// # Errors
    /// `Io`: the write.
    pub fn finish(mut self) -> Result<BlobSummary> {
        self.check_alive()?;
        BlobFooter { count: self.amount.count, ..BlobFooter::default() }.encode(&mut self.pending);
        self.flush()?;
        Ok(BlobSummary { number: self.number, amount: self.amount, size: self.written })
    }

    fn check_alive(&self) -> Result<()> {
        match self.poisoned {
            true => {
                Err(Error::invalid("the blob file was given up after a failed write")
                    .at_path(self.file.path()))
            }
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let done = self.file.write_at(&self.pending, self.written);
        self.poisoned = done.is_err();
        self.written += self.pending.len() as u64;
        self.pending.clear();
        done
    }
}
