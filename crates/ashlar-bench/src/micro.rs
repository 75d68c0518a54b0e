//! Functions over a block in memory: checksums, hashes, codecs; and loads of a pointer. No database is asked.

use crate::ashlar::compression;
use crate::plan::Micro;
use crate::stats::OpKind;
use crate::worker::Worker;
use ashlar_base::checksum::{crc32c, xxh3_64, xxh32, xxh64};
use ashlar_base::{Error, Result};
use ashlar_format::compress::{Compressor, decompress};
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};

impl Worker<'_> {
    /// Calls `function` once per operation, on blocks of the size that tables have.
    ///
    /// # Errors
    /// `NotSupported`: a codec that is not written.
    pub(crate) fn micro(&mut self, function: Micro) -> Result<()> {
        let block = self.values.next(self.block_size).to_vec();
        match function {
            Micro::Crc32c => self.over(&block, |b| {
                black_box(crc32c(b));
            }),
            Micro::XxHash => self.over(&block, |b| {
                black_box(xxh32(b, 0));
            }),
            Micro::XxHash64 => self.over(&block, |b| {
                black_box(xxh64(b, 0));
            }),
            Micro::Xxh3 => self.over(&block, |b| {
                black_box(xxh3_64(b));
            }),
            Micro::Compress(codec) => return self.codec(codec, &block, true),
            Micro::Uncompress(codec) => return self.codec(codec, &block, false),
            Micro::AcquireLoad => {
                self.loads();
                return Ok(());
            }
        }
        self.meter.stats.message = Some(format!("({} per op)", self.block_size));
        Ok(())
    }

    /// Loads of a pointer that never changes.
    fn loads(&mut self) {
        static POINTER: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
        let mut budget = self.budget();
        while budget.take(1, self.clock) > 0 {
            for _ in 0..1000 {
                black_box(POINTER.load(Ordering::Acquire));
            }
            self.meter.finished(1, OpKind::Other);
        }
        self.meter.stats.message = Some("(each op is 1000 loads)".to_owned());
    }

    fn codec(&mut self, codec: Option<&'static str>, block: &[u8], forward: bool) -> Result<()> {
        let codec = compression(codec.unwrap_or(self.codec))?;
        let refused = |_| Error::not_supported(format!("compressing with {}", codec.name()));
        let mut compressor = Compressor::new(codec, Compressor::DEFAULT).map_err(refused)?;
        let mut stored = Vec::new();
        let wrong = |_| Error::corruption(format!("{} cannot compress a block", codec.name()));
        compressor.compress_always(block, &mut stored).map_err(wrong)?;
        if forward {
            let mut out = Vec::new();
            self.over(block, |b| {
                out.clear();
                let _ = black_box(compressor.compress_always(b, &mut out));
            });
            let share = stored.len() as f64 * 100.0 / block.len().max(1) as f64;
            self.meter.stats.message = Some(format!("(output: {share:.1}%)"));
        } else {
            let whole = decompress(codec, &stored, block.len()).ok();
            if whole.as_deref() != Some(block) {
                return Err(Error::corruption(format!("{} does not give a block back", codec.name())));
            }
            self.over(block, |b| drop(black_box(decompress(codec, &stored, b.len()))));
        }
        Ok(())
    }

    fn over(&mut self, block: &[u8], mut call: impl FnMut(&[u8])) {
        let mut budget = self.budget();
        while budget.take(1, self.clock) > 0 {
            call(black_box(block));
            self.meter.stats.bytes += block.len() as u64;
            self.meter.finished(1, OpKind::Other);
        }
    }
}
