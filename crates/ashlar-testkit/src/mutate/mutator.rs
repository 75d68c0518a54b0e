//! The damage: small edits of the kinds that break decoders.

use crate::rng::Rng;

/// Draws edits from a seed.
#[derive(Clone, Debug)]
pub struct Mutator {
    rng: Rng,
}

/// Bytes that mean something to a decoder: ends of ranges, varint continuations, lengths that lie.
const TELLING: [&[u8]; 8] = [
    &[0],
    &[0xff],
    &[0x80],
    &[0x7f],
    &[0xff, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0, 0, 0, 0, 0, 0, 0, 0x80],
];

impl Mutator {
    /// Same seed, same edits.
    pub fn new(seed: u64) -> Mutator {
        Mutator { rng: Rng::new(seed) }
    }

    /// Makes one to eight edits; `other` is a donor for splices. Every second time the length stays, so that what lies
    /// behind an edit stays where others say it is.
    pub fn damage(&mut self, data: &mut Vec<u8>, other: &[u8]) {
        let in_place = self.rng.percent(50);
        for _ in 0..self.rng.between(1, 8) {
            if in_place {
                self.overwrite(data, other);
            } else {
                self.edit(data, other);
            }
        }
    }

    /// An edit that keeps the length.
    fn overwrite(&mut self, data: &mut [u8], other: &[u8]) {
        let rng = &mut self.rng;
        let at = rng.below(data.len());
        let behind = data.iter_mut().skip(at);
        match rng.below(6) {
            0 | 1 => {
                let bit = 1 << rng.below(8);
                behind.take(1).for_each(|byte| *byte ^= bit);
            }
            2 => {
                let new = rng.next_u64().to_le_bytes()[0];
                behind.take(1).for_each(|byte| *byte = new);
            }
            3 => {
                // A step up or down: lengths and counts that are off by little.
                let step = [1, 0xff, 2, 0xfe, 8, 0xf8][rng.below(6)];
                behind.take(1).for_each(|byte| *byte = byte.wrapping_add(step));
            }
            4 => {
                let telling = TELLING[rng.below(TELLING.len())];
                behind.zip(telling).for_each(|(byte, new)| *byte = *new);
            }
            _ => {
                let (from, len) = (rng.below(other.len()), rng.between(1, 64));
                behind.zip(other.iter().skip(from).take(len)).for_each(|(byte, new)| *byte = *new);
            }
        }
    }

    fn edit(&mut self, data: &mut Vec<u8>, other: &[u8]) {
        let rng = &mut self.rng;
        let at = rng.below(data.len());
        let len = rng.between(1, 16).min(data.len() - at);
        match rng.below(9) {
            0 | 1 => {
                let bit = 1 << rng.below(8);
                data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
            }
            2 => {
                let new = rng.next_u64().to_le_bytes()[0];
                data.iter_mut().skip(at).take(1).for_each(|byte| *byte = new);
            }
            3 | 4 => {
                let telling = TELLING[rng.below(TELLING.len())];
                data.iter_mut().skip(at).zip(telling).for_each(|(byte, new)| *byte = *new);
            }
            5 => {
                data.drain(at..at + len);
            }
            6 => {
                let copy = data[at..at + len].to_vec();
                data.splice(at..at, copy);
            }
            7 => data.truncate(at),
            _ => {
                let from = rng.below(other.len());
                let donor: Vec<u8> = other.iter().skip(from).take(rng.between(1, 64)).copied().collect();
                let end = (at + donor.len()).min(data.len());
                data.splice(at..end, donor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_and_at_home_with_nothing() {
        let run = |seed| {
            let mut data = vec![7; 100];
            Mutator::new(seed).damage(&mut data, b"donor");
            data
        };
        assert_eq!(run(1), run(1));
        assert!((0..50).any(|seed| run(seed) != vec![7; 100]));
        let kept = (0..1000).filter(|seed| run(*seed).len() == 100).count();
        assert!((450..900).contains(&kept), "{kept} of 1000 keep their length");
        for seed in 0..500 {
            let mut empty = Vec::new();
            Mutator::new(seed).damage(&mut empty, b"");
        }
    }
}
