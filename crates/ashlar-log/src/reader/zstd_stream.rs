//! Records of a compressed log: one zstd frame per logical record, fed fragment by fragment.

use super::append;
use ashlar_base::bytes::OutOfMemory;
use std::io;
use zstd::stream::raw::{Decoder, Operation};

/// The number of output bytes per step.
const STEP: usize = 64 << 10;

/// A streaming decompressor, reused for all records of a file.
pub(super) struct RecordInflater {
    decoder: Decoder<'static>,
    /// The frame of the current record is complete. A record without bytes counts as complete.
    done: bool,
    fed: bool,
    step: Vec<u8>,
}

impl RecordInflater {
    pub(super) fn new() -> io::Result<Self> {
        Ok(RecordInflater { decoder: Decoder::new()?, done: false, fed: false, step: vec![0; STEP] })
    }

    /// Begins a logical record.
    pub(super) fn start(&mut self) -> io::Result<()> {
        (self.done, self.fed) = (false, false);
        self.decoder.reinit()
    }

    /// Decompresses `fragment` and appends the result. False for damage, and for bytes after the frame.
    ///
    /// # Errors
    /// As [`append`].
    pub(super) fn feed(&mut self, fragment: &[u8], out: &mut Vec<u8>) -> Result<bool, OutOfMemory> {
        let mut rest = fragment;
        if rest.is_empty() {
            return Ok(true);
        }
        self.fed = true;
        loop {
            if self.done {
                return Ok(rest.is_empty());
            }
            let Ok(status) = self.decoder.run_on_buffers(rest, &mut self.step) else { return Ok(false) };
            let produced = self.step.get(..status.bytes_written).unwrap_or_default();
            if !append(out, produced)? {
                return Ok(false);
            }
            rest = rest.get(status.bytes_read..).unwrap_or_default();
            self.done = status.remaining == 0;
            let stuck = status.bytes_read == 0 && status.bytes_written == 0;
            if rest.is_empty() && status.bytes_written < STEP {
                return Ok(true);
            }
            if stuck && !self.done {
                return Ok(false);
            }
        }
    }

    /// True when the record's frame is complete. An empty record has none.
    pub(super) fn is_complete(&self) -> bool {
        self.done || !self.fed
    }
}

#[cfg(test)]
mod tests {
    use crate::reader::tests::open;
    use crate::{CutReason, LogEnd, RecoveryMode};
    use ashlar_format::log_record::{Framing, encode_record};
    use std::io::Write;

    fn noise(len: usize) -> Vec<u8> {
        let mut x = 1u32;
        let step = |_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        };
        (0..len).map(step).collect()
    }

    /// A log whose records are the given frames, behind a set-compression record.
    fn log(framing: Framing, frames: &[&[u8]]) -> Vec<u8> {
        let mut file = vec![0xe1, 0x2c, 0x08, 0xf8, 4, 0, 9, 7, 0, 0, 0];
        for frame in frames {
            let at = file.len() as u64;
            encode_record(&mut file, framing, 14, at, frame);
        }
        file
    }

    /// With a content checksum, as RocksDB writes them.
    fn frame(raw: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(raw).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn records_of_many_fragments() {
        let raws = [noise(200_000), vec![], vec![5; 3_000_000], noise(10), noise(32_000)];
        let frames: Vec<_> = raws.iter().map(|r| if r.is_empty() { vec![] } else { frame(r) }).collect();
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        for framing in [Framing::Legacy, Framing::Recyclable] {
            let file = log(framing, &frames);
            let mut reader = open(&file, RecoveryMode::Absolute);
            for raw in &raws {
                assert!(reader.next().unwrap().unwrap().payload == raw);
            }
            assert_eq!(reader.next().unwrap(), None);
            assert_eq!(reader.end(), LogEnd::Clean);
        }
    }

    #[test]
    fn frames_that_are_damaged_under_a_good_checksum() {
        let good = frame(&noise(100_000));
        let mut flipped = good.clone();
        flipped[50_000] ^= 0xff;
        let trailing = [&good[..], b"x"].concat();
        for bad in [&good[..good.len() - 1], &good[..1], &flipped, &trailing, b"no frame at all"] {
            let file = log(Framing::Legacy, &[&good, bad, &good]);
            for mode in [RecoveryMode::TolerateTail, RecoveryMode::PointInTime, RecoveryMode::SkipAny] {
                let mut reader = open(&file, mode);
                let mut count = 0;
                while let Some(record) = reader.next().unwrap() {
                    assert!(record.payload == noise(100_000));
                    count += 1;
                }
                if mode == RecoveryMode::SkipAny {
                    assert_eq!((count, reader.skipped().first.unwrap().1), (2, CutReason::BadCompressedData));
                } else {
                    assert_eq!(count, 1);
                    assert!(matches!(reader.end(), LogEnd::Cut { reason: CutReason::BadCompressedData, .. }));
                }
            }
        }
    }
}
