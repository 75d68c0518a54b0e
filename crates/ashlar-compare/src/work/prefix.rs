//! Scans of prefixes: keys of eight bytes that name an owner, and eight that number the owner's entries.
//!
//! The load takes the owners in an order that is mixed but the same everywhere, ten entries each. So every run has all parts of the
//! key space, and most owners are in one run only: a filter over prefixes leaves out the other runs. Every second owner has
//! no entries; scans of those are the misses.

use super::{Done, Stream};
use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter};
use ashlar_bench::{Random, Values};
use ashlar_peers::peer::{Peer, Result};

/// Entries of an owner.
pub const PER_PREFIX: u64 = 10;
/// Odd, so that it takes each number below a power of two to another one.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn owners(keys: u64) -> u64 {
    (keys / PER_PREFIX).max(1).next_power_of_two()
}

/// The name of an owner with entries, or of the one behind it, which has none.
fn prefix(owner: u64, missing: bool) -> [u8; 8] {
    (owner * 2 + u64::from(missing)).to_be_bytes()
}

fn key(prefix: [u8; 8], entry: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&prefix);
    key[8..].copy_from_slice(&entry.to_be_bytes());
    key
}

/// Puts the entries.
pub fn fill<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let owners = owners(step.ops);
    let mut values = Values::new(s.seed, s.compress_ratio, s.value_bytes);
    let mut done = Done::default();
    meter.begin();
    for turn in 0..step.ops / PER_PREFIX {
        let owner = turn.wrapping_mul(MIX) % owners;
        for entry in 0..PER_PREFIX {
            peer.put(&key(prefix(owner, false), entry), values.next(s.value_bytes))?;
            meter.ended(Kind::Write, 1);
            done.ops += 1;
        }
        done.asks(owner);
    }
    done.bytes = done.ops * (16 + s.value_bytes) as u64;
    Ok(done)
}

/// Scans drawn owners from their first entry to their last. An owner without entries shows none.
pub fn scan<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let missing = step.workload == Workload::Prefixmissing;
    let (owners, loaded) = (owners(job.keys), job.keys / PER_PREFIX);
    let wanted = if missing { 0 } else { PER_PREFIX };
    let mut random = Random::new(job.settings.seed, Stream::Prefixes as u64);
    let mut done = Done::default();
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let owner = random.below(loaded.max(1)).wrapping_mul(MIX) % owners;
        done.asks(owner);
        let name = prefix(owner, missing);
        let (mut seen, mut foreign) = (0, false);
        peer.scan_prefix(&name, |key, value| {
            seen += 1;
            foreign |= !key.starts_with(&name);
            done.saw(key);
            done.saw(value);
        })?;
        meter.ended(Kind::Scan, 1);
        done.found += seen;
        done.wrong += u64::from(foreign || seen != wanted);
        done.ops += 1;
        done.cut = meter.over();
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_owner_comes_once() {
        let owners = owners(10_000);
        let drawn: BTreeSet<u64> = (0..1000_u64).map(|turn| turn.wrapping_mul(MIX) % owners).collect();
        assert_eq!((owners, drawn.len()), (1024, 1000));
        assert!(prefix(3, false) < prefix(3, true) && prefix(3, true) < prefix(4, false));
    }
}
