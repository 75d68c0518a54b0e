//! Records of a compressed log: one zstd frame per logical record, with a checksum of its content.
//!
//! Source: RocksDB `util/compression.cc` (`ZSTDStreamingCompress`), `db/log_writer.cc`.

use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use std::fmt;

/// A compressor that reuses its tables for every record.
pub(super) struct RecordDeflater {
    encoder: zstd::bulk::Compressor<'static>,
}

impl RecordDeflater {
    pub(super) fn new() -> Result<RecordDeflater> {
        let made = zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).and_then(|mut encoder| {
            encoder.include_checksum(true)?;
            Ok(encoder)
        });
        let encoder = made.map_err(|e| no_memory(&e))?;
        Ok(RecordDeflater { encoder })
    }

    /// The frame of one record.
    pub(super) fn frame(&mut self, payload: &[u8]) -> Result<Vec<u8>> {
        self.encoder.compress(payload).map_err(|e| no_memory(&e))
    }
}

#[cold]
fn no_memory(e: &std::io::Error) -> Error {
    Error::new(ErrorKind::Busy(BusyKind::Memory), "no memory to compress a log record").because(e)
}

impl fmt::Debug for RecordDeflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordDeflater")
    }
}
