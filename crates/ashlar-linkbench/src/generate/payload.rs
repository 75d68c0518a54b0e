//! The data of nodes and links: log-normal lengths, and bytes that repeat as often as the original's, so that codecs reach a
//! similar ratio.
//!
//! A buffer of random bytes is made once. Data is written in chunks of 128 bytes: with probability `uniqueness` fresh random
//! bytes, else a piece of the buffer from a random offset.

use super::{floor, normal};
use ashlar_bench::Random;

/// Bytes of a chunk.
const CHUNK: usize = 128;

/// The buffer of the original, whose property for another length is never read.
const JAVA_MOTIF: usize = 512;

/// What the bytes look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The least byte.
    pub first: u8,
    /// The greatest byte.
    pub last: u8,
    /// The part of chunks that do not repeat.
    pub uniqueness: f64,
    /// Bytes of the buffer.
    pub motif: usize,
}

impl Shape {
    /// As the original program makes it: with its buffer of 512 bytes.
    pub fn as_java(self) -> Shape {
        Shape { motif: JAVA_MOTIF, ..self }
    }
}

/// A generator of data.
#[derive(Clone, Debug)]
pub struct Payload {
    shape: Shape,
    motif: Vec<u8>,
    bytes: Vec<u8>,
}

impl Payload {
    /// A generator with a buffer of its own.
    pub fn new(shape: Shape, random: &mut Random) -> Payload {
        let mut motif = Vec::new();
        fresh(shape, shape.motif, random, &mut motif);
        Payload { shape, motif, bytes: Vec::new() }
    }

    /// The next `length` bytes.
    pub fn next(&mut self, length: usize, random: &mut Random) -> &[u8] {
        self.bytes.clear();
        let chunk = CHUNK.min(self.motif.len()).max(1);
        while self.bytes.len() < length {
            let many = chunk.min(length - self.bytes.len());
            if self.motif.is_empty() || random.unit() < self.shape.uniqueness {
                fresh(self.shape, many, random, &mut self.bytes);
            } else {
                let offsets = (self.motif.len() - many + 1) as u64;
                let from = usize::try_from(random.below(offsets)).unwrap_or(0);
                self.bytes.extend_from_slice(&self.motif[from..from + many]);
            }
        }
        &self.bytes
    }
}

fn fresh(shape: Shape, many: usize, random: &mut Random, into: &mut Vec<u8>) {
    let values = u64::from(shape.last.saturating_sub(shape.first)) + 1;
    let byte = |_| shape.first + u8::try_from(random.below(values)).unwrap_or(0);
    into.extend((0..many).map(byte));
}

/// A log-normal length with this median and deviation 1, below `end`.
pub fn length(median: f64, end: usize, random: &mut Random) -> usize {
    let drawn = (median.max(f64::MIN_POSITIVE).ln() + normal(random)).exp().round();
    usize::try_from(floor(drawn)).unwrap_or(usize::MAX).min(end.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Shape = Shape { first: 50, last: 220, uniqueness: 0.63, motif: 512 };
    const LINK: Shape = Shape { first: 32, last: 100, uniqueness: 0.225, motif: 128 };

    #[test]
    fn lengths_have_the_means_of_the_specification() {
        let mut random = Random::new(4, 0);
        for (median, end, wanted) in [(128.0, 1 << 20, 211.0), (8.0, 255, 13.2)] {
            let mut all: Vec<usize> = (0..200_000).map(|_| length(median, end, &mut random)).collect();
            let mean = all.iter().sum::<usize>() as f64 / 2e5;
            assert!((mean / wanted - 1.0).abs() < 0.02, "{mean} {wanted}");
            all.sort_unstable();
            assert!((all[100_000] as f64 / median - 1.0).abs() < 0.05, "{}", all[100_000]);
            assert!(all[199_999] < end);
        }
    }

    /// The specification's values for zlib in pieces of 16 KiB: 0.35 and 0.32 for links by the length of the buffer, 0.65 for nodes.
    #[test]
    fn codecs_reach_the_ratios_of_the_specification() {
        let mut random = Random::new(5, 0);
        let cases = [(LINK.as_java(), 8.0, 255, 0.35), (LINK, 8.0, 255, 0.32), (NODE, 128.0, 1 << 20, 0.65)];
        for (shape, median, end, wanted) in cases {
            let mut payload = Payload::new(shape, &mut random);
            let mut all = Vec::new();
            while all.len() < 600_000 {
                let bytes = length(median, end, &mut random);
                all.extend_from_slice(payload.next(bytes, &mut random));
            }
            let packed = |piece: &[u8]| {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                std::io::Write::write_all(&mut encoder, piece).unwrap();
                encoder.finish().unwrap().len()
            };
            let ratio = all.chunks(16 << 10).map(packed).sum::<usize>() as f64 / all.len() as f64;
            assert!((ratio - wanted).abs() < 0.03, "{shape:?}: {ratio}, not {wanted}");
        }
    }

    #[test]
    fn bytes_are_of_the_range_and_repeat_as_often_as_asked() {
        let mut random = Random::new(6, 0);
        for shape in [NODE, LINK, LINK.as_java()] {
            let mut payload = Payload::new(shape, &mut random);
            let motif = payload.motif.clone();
            assert_eq!(motif.len(), shape.motif);
            let mut repeated = 0;
            for _ in 0..2000 {
                let bytes = payload.next(CHUNK, &mut random).to_vec();
                assert!(bytes.iter().all(|byte| (shape.first..=shape.last).contains(byte)));
                repeated += u32::from(motif.windows(CHUNK).any(|part| part == bytes));
            }
            let unique = 1.0 - f64::from(repeated) / 2000.0;
            assert!((unique - shape.uniqueness).abs() < 0.055, "{shape:?}: {unique}");
        }
        assert_eq!(LINK.as_java().motif, 512);
        let mut payload = Payload::new(NODE, &mut random);
        assert_eq!([0, 1, 300].map(|length| payload.next(length, &mut random).len()), [0, 1, 300]);
    }
}
