//! Gets of sums that merges have built.
//!
//! Each counter gets its operands one by one, in rounds over all counters. After half of the rounds the memtable is flushed
//! and background work finishes, which lets an engine combine the operands so far. The other half stays in the memtable, so a
//! get combines half of the operands and what the table has. Every sum is compared with the expected one.

use super::{Done, Stream};
use crate::job::{Job, Step};
use crate::meter::{Kind, Meter};
use ashlar_bench::Random;
use ashlar_peers::peer::{Peer, Read, Result};

/// Operands of all counters, and the least number of counters.
const OPERANDS: u64 = 250_000;
const COUNTERS: u64 = 10;

fn counters(job: &Job, step: &Step) -> u64 {
    (OPERANDS.min(job.keys) / step.operands.max(1)).max(COUNTERS)
}

/// What counter `number` gets in `round`.
fn operand(number: u64, round: u64) -> u64 {
    number + round + 1
}

/// The sum of all rounds.
fn sum(number: u64, rounds: u64) -> u64 {
    rounds * (number + 1) + rounds * rounds.saturating_sub(1) / 2
}

/// Merges the operands.
pub fn make<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<()> {
    let mut maker = job.settings.keys();
    for round in 0..step.operands {
        if round == step.operands / 2 {
            peer.settle()?;
        }
        for number in 0..counters(job, step) {
            peer.merge(maker.key(number), &operand(number, round).to_le_bytes())?;
        }
    }
    Ok(())
}

/// Gets drawn counters.
pub fn get<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let counters = counters(job, step);
    let mut maker = s.keys();
    let mut random = Random::new(s.seed, Stream::Reads as u64);
    let mut done = Done::default();
    let mut reader = peer.reader()?;
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let number = random.below(counters);
        done.asks(number);
        let wanted = sum(number, step.operands).to_le_bytes();
        let mut right = false;
        let found = reader.get(maker.key(number), |value| {
            right = value == wanted;
            done.saw(value);
        })?;
        meter.ended(Kind::Read, 1);
        done.found += u64::from(found);
        done.wrong += u64::from(!right);
        done.ops += 1;
        done.cut = meter.over();
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_that_of_its_operands() {
        for (number, rounds) in [(0, 0), (0, 1), (7, 100), (3, 1000)] {
            assert_eq!(sum(number, rounds), (0..rounds).map(|round| operand(number, round)).sum::<u64>());
        }
    }
}
