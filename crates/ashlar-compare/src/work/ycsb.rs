//! YCSB's mixes A to F in key-value form: a record is one value, an update puts the whole of it.
//!
//! Keys are drawn by a Zipf law of 0.99 and scattered; D draws from the newest backwards. Inserts append numbers, so their
//! keys are the largest: the loader's order, without YCSB's hash.
//! Source: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", 2010.

use super::{Done, Stream};
use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter};
use ashlar_bench::{Access, KeyOrder, KeyStream, Random, Values};
use ashlar_peers::peer::{Cursor, Peer, Read, Result};

const THETA: f64 = 0.99;
const LONGEST_SCAN: u64 = 100;

/// Percent of operations that do not write.
fn calm(workload: Workload) -> u64 {
    match workload {
        Workload::YcsbA | Workload::YcsbF => 50,
        Workload::YcsbC => 100,
        _ => 95,
    }
}

fn kind(workload: Workload, reads: bool) -> Kind {
    match (workload, reads) {
        (Workload::YcsbE, true) => Kind::Scan,
        (_, true) => Kind::Read,
        (Workload::YcsbF, false) => Kind::Update,
        (_, false) => Kind::Write,
    }
}

/// Does `step.ops` operations of the mix.
pub fn mixed<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let calm = calm(step.workload);
    let mut maker = s.keys();
    let mut values = Values::new(s.seed, s.compress_ratio, s.value_bytes);
    let mut random = Random::new(s.seed, Stream::Mixed as u64 + ((step.workload as u64) << 8));
    let mut chosen = KeyStream::new(KeyOrder::Random, job.keys, Access::Zipfian { theta: THETA });
    let mut keys = job.keys;
    let mut done = Done::default();
    let mut reader = peer.reader()?;
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let reads = random.below(100) < calm;
        let drawn = chosen.next(&mut random);
        let number = match step.workload {
            Workload::YcsbD if reads => keys - 1 - newest(&mut random, keys),
            Workload::YcsbD | Workload::YcsbE if !reads => keys,
            _ => drawn,
        };
        done.asks(number << 1 | u64::from(reads));
        let key = maker.key(number);
        if reads && step.workload == Workload::YcsbE {
            let length = 1 + random.below(LONGEST_SCAN);
            done.found += scan(peer, key, length, &mut done)?;
        } else if reads || step.workload == Workload::YcsbF {
            let found = reader.get(key, |value| done.saw(value))?;
            done.found += u64::from(found);
        }
        if !reads {
            peer.put(key, values.next(s.value_bytes))?;
            keys = keys.max(number + 1);
            done.puts += 1;
            done.bytes += (s.key_bytes + s.value_bytes) as u64;
        }
        meter.ended(kind(step.workload, reads), 1);
        done.ops += 1;
        done.cut = meter.over();
    }
    Ok(done)
}

/// How far back from the newest of `keys` a Zipf law draws: the inverse of its integral from 1 to `keys` + 1.
fn newest(random: &mut Random, keys: u64) -> u64 {
    let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let power = 1.0 - THETA;
    let whole = (keys as f64 + 1.0).powf(power) - 1.0;
    let rank = (1.0 + unit * whole).powf(1.0 / power);
    // From 1 to keys + 1; `as` rounds down, as intended.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let back = rank as u64 - 1;
    back.min(keys - 1)
}

/// Reads `length` entries from `key` on; 1 when there was one.
fn scan<P: Peer>(peer: &P, key: &[u8], length: u64, done: &mut Done) -> Result<u64> {
    let mut cursor = peer.cursor()?;
    let mut entry = cursor.seek(key)?;
    let found = u64::from(entry.is_some());
    for _ in 0..length {
        let Some((key, value)) = entry else { break };
        done.saw(key);
        done.saw(value);
        entry = cursor.next()?;
    }
    cursor.check()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_drawn_most() {
        let mut random = Random::new(1, 1);
        let drawn: Vec<u64> = (0..10_000).map(|_| newest(&mut random, 1000)).collect();
        let share = |of: &dyn Fn(u64) -> bool| drawn.iter().filter(|&&back| of(back)).count();
        assert!(drawn.iter().all(|&back| back < 1000));
        let (first, tenth, rest) = (share(&|b| b == 0), share(&|b| b < 100), share(&|b| b >= 900));
        assert!((800..1200).contains(&first), "{first}");
        assert!((6_000..7_500).contains(&tenth) && rest < 400, "{tenth} {rest}");
    }
}
