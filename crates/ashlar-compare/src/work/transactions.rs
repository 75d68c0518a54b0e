//! Transactions by several threads: each reads two drawn keys for update, adds one to both values, and commits.
//!
//! A transaction that meets a conflict runs again with the same keys until it succeeds. So the content at the end does not
//! depend on the order of the threads, and a lost update shows in it. The smaller key comes first, so no two transactions
//! wait for each other in a circle. The time of an operation includes its retries.

use super::{Done, Stream, together};
use crate::job::{Job, Step};
use crate::meter::{Kind, Meter};
use ashlar_bench::Random;
use ashlar_peers::operations::Transact;
use ashlar_peers::peer::{Peer, Result};

/// The key numbers of a thread's transactions, one pair after the other.
struct Pairs {
    random: Random,
    keys: u64,
}

impl Pairs {
    fn new(job: &Job, step: &Step, index: u64) -> Pairs {
        let keys = if step.hot_keys > 0 { step.hot_keys.min(job.keys) } else { job.keys };
        Pairs {
            random: Random::new(job.settings.seed, Stream::Pairs as u64 + (index << 8)),
            keys: keys.max(2),
        }
    }

    /// Two different numbers, the smaller one first.
    #[inline]
    fn next(&mut self) -> (u64, u64) {
        let one = self.random.below(self.keys);
        let other = (one + 1 + self.random.below(self.keys - 1)) % self.keys;
        (one.min(other), one.max(other))
    }
}

/// Does the transactions with `step.threads` threads, `step.ops` each.
///
/// # Errors
/// "not offered:" if the peer is not driven with transactions.
pub fn run<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let clients = (0..step.threads).map(|_| peer.transactions()).collect::<Result<Vec<_>>>()?;
    let each: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0_u64..)
            .zip(clients)
            .map(|(index, client)| scope.spawn(move || one(client, job, step, index)))
            .collect();
        let ended = threads.into_iter();
        ended.map(|t| t.join().unwrap_or_else(|_| Err("a client panicked".into()))).collect()
    });
    let ops = each.iter().map(|one| one.as_ref().map_or(0, |(done, _)| done.ops)).collect();
    Ok(Done { each: ops, ..together(each, meter)? })
}

fn one<T: Transact>(mut client: T, job: &Job, step: &Step, index: u64) -> Result<(Done, Meter)> {
    let mut pairs = Pairs::new(job, step, index);
    let (mut first, mut second) = (job.settings.keys(), job.settings.keys());
    let mut done = Done::default();
    let mut meter = Meter::new(step.seconds);
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let (one, other) = pairs.next();
        let (one_key, other_key) = (first.key(one), second.key(other));
        while !client.increment([one_key, other_key])? {
            done.conflicts += 1;
        }
        meter.ended(Kind::Update, 1);
        done.asks(one);
        done.asks(other);
        done.ops += 1;
        done.cut = meter.over();
    }
    done.cut &= done.ops < step.ops;
    done.bytes = 2 * done.ops * (job.settings.key_bytes + job.settings.value_bytes) as u64;
    Ok((done, meter))
}

/// Adds one to the keys of the first `each[t]` transactions of every thread `t`.
pub fn replay<P: Peer>(peer: &P, job: &Job, step: &Step, each: &[u64]) -> Result<()> {
    let mut maker = job.settings.keys();
    for (index, &ops) in (0_u64..).zip(each) {
        let mut pairs = Pairs::new(job, step, index);
        for _ in 0..ops {
            let (one, other) = pairs.next();
            peer.merge(maker.key(one), &1_u64.to_le_bytes())?;
            peer.merge(maker.key(other), &1_u64.to_le_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Workload;

    #[test]
    fn a_pair_is_two_keys_in_order() {
        let job = crate::job::sample();
        for hot_keys in [0, 2, 64] {
            let step = Step { hot_keys, ..Step::new("x", Workload::Transactions, 1) };
            let mut pairs = Pairs::new(&job, &step, 3);
            let most = if hot_keys > 0 { hot_keys } else { job.keys };
            assert!((0..1000).map(|_| pairs.next()).all(|(one, other)| one < other && other < most));
        }
    }
}
