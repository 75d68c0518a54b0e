//! The loops around an engine: one generic function each, nothing in them but keys, values and the engine.
//!
//! The loops sum up the read bytes word by word, so that every byte is read and engines can be compared.

mod beside;
mod copies;
mod counters;
mod fill;
mod files;
mod prefix;
mod read;
mod threads;
mod tombstones;
mod transactions;
mod ycsb;

pub use copies::verify as verify_copies;
pub use prefix::PER_PREFIX;
pub use read::warm;

use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter};
use ashlar_bench::words;
use ashlar_peers::peer::{Peer, Result};

/// The work of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Operations.
    pub ops: u64,
    /// Reads that found an entry.
    pub found: u64,
    /// Transactions that met a conflict and ran again.
    pub conflicts: u64,
    /// Answers that contradict what was written.
    pub wrong: u64,
    /// Operations of each thread that wrote, of several.
    pub each: Vec<u64>,
    /// Written entries, in a workload that also reads.
    pub puts: u64,
    /// Bytes of the keys and values that were written, or found.
    pub bytes: u64,
    /// Sum of the requested work: the numbers of keys and the kinds of their operations.
    pub asked: u64,
    /// Sum of the words that were read; 0 for writes.
    pub digest: u64,
    /// Whether the clock ended the loop.
    pub cut: bool,
}

impl Done {
    /// Adds an operation to the sum of the requested work: the number of its key, and its kind.
    #[inline]
    pub fn asks(&mut self, what: u64) {
        self.asked = self.asked.wrapping_mul(3).wrapping_add(what);
    }

    /// Adds the work of another thread.
    fn add(&mut self, other: &Done) {
        self.asked = self.asked.wrapping_add(other.asked);
        self.digest = self.digest.wrapping_add(other.digest);
        self.ops += other.ops;
        self.found += other.found;
        self.conflicts += other.conflicts;
        self.wrong += other.wrong;
        self.bytes += other.bytes;
        self.cut |= other.cut;
    }

    #[inline]
    fn saw(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.digest = self.digest.wrapping_mul(3).wrapping_add(words(bytes));
    }
}

/// The work of several threads. `meter` becomes that of them all.
fn together(each: Vec<Result<(Done, Meter)>>, meter: &mut Meter) -> Result<Done> {
    let mut all = Done::default();
    let mut meters: Option<Meter> = None;
    for one in each {
        let (done, own) = one?;
        all.add(&done);
        meters = Some(match meters {
            Some(others) => others.and(own),
            None => own,
        });
    }
    if let Some(meters) = meters {
        *meter = meters;
    }
    Ok(all)
}

/// Streams of random numbers: one per loop, so that reads do not repeat the order of the writes.
#[derive(Clone, Copy)]
pub enum Stream {
    /// The first load.
    Load = 1,
    /// Random gets.
    Reads = 2,
    /// Random seeks.
    Seeks = 3,
    /// Overwrites.
    Again = 4,
    /// Puts at a fixed rate.
    Paced = 5,
    /// YCSB.
    Mixed = 6,
    /// Deletes.
    Deletes = 7,
    /// Puts by several threads.
    Threads = 8,
    /// Keys of transactions.
    Pairs = 9,
    /// Prefixes.
    Prefixes = 10,
}

/// Writes what the workload of `step` measures reads of, beyond the loads before it: merge operands, tombstones.
pub fn make<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<()> {
    match step.workload {
        Workload::Counters => counters::make(peer, job, step),
        Workload::Rangetombstones => tombstones::make_ranges(peer, job),
        Workload::Scantombstones => tombstones::make_points(peer, job),
        Workload::Backupagain => fill::overwrite_some(peer, job),
        _ => Ok(()),
    }
}

/// Does one step, measured by `meter`. A step that is given no time limit and the same job does the same on every engine.
pub fn run<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    match step.workload {
        Workload::Fillrandom | Workload::Fillsync | Workload::Overwrite if step.threads > 1 => {
            threads::put(peer, job, step, meter)
        }
        Workload::Fillseq
        | Workload::Fillrandom
        | Workload::Fillbatch
        | Workload::Fillsync
        | Workload::Bulkload
        | Workload::Overwrite => fill::put(peer, job, step, meter),
        Workload::Deleterandom => fill::delete(peer, job, step, meter),
        Workload::Compact | Workload::Compactfilter => compact(peer, job, step, meter),
        Workload::Transactions => transactions::run(peer, job, step, meter),
        Workload::Fillprefixes => prefix::fill(peer, job, step, meter),
        Workload::Prefixscan | Workload::Prefixmissing => prefix::scan(peer, job, step, meter),
        Workload::Sstwrite => files::write(peer, job, step, meter),
        Workload::Ingest | Workload::Ingestunverified => files::ingest(peer, job, step, meter),
        Workload::Checkpoint => copies::checkpoints(peer, job, step, meter),
        Workload::Backup | Workload::Backupagain => copies::backup(peer, job, step, meter),
        Workload::Readrandom if step.threads > 1 => beside::read(peer, job, step, meter),
        Workload::Readwhilewriting => beside::read(peer, job, step, meter),
        Workload::Readrandom | Workload::Readmissing => read::get(peer, job, step, meter),
        Workload::Multireadrandom => read::multi_get(peer, job, step, meter),
        Workload::Seekrandom => read::seek(peer, job, step, meter),
        Workload::Readseq => read::scan::<P, false>(peer, step.ops, meter),
        Workload::Readreverse => read::scan::<P, true>(peer, step.ops, meter),
        Workload::Counters => counters::get(peer, job, step, meter),
        Workload::Rangetombstones => tombstones::get_among_ranges(peer, job, step, meter),
        Workload::Scantombstones => tombstones::first_live(peer, job, step, meter),
        Workload::YcsbA
        | Workload::YcsbB
        | Workload::YcsbC
        | Workload::YcsbD
        | Workload::YcsbE
        | Workload::YcsbF => ycsb::mixed(peer, job, step, meter),
        Workload::Openloop => crate::open_loop::put(peer, job, meter),
    }
}

/// Compacts everything; `step.ops` entries remain.
fn compact<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    meter.begin();
    peer.compact()?;
    meter.ended(Kind::Write, step.ops);
    let bytes = step.ops.saturating_mul((s.key_bytes + s.value_bytes) as u64);
    Ok(Done { ops: step.ops, bytes, asked: step.ops, ..Done::default() })
}

/// Deletes what the compaction filter removes.
fn remove_filtered<P: Peer>(peer: &P, job: &Job) -> Result<()> {
    let mut maker = job.settings.keys();
    (0..job.keys).try_for_each(|number| {
        let key = maker.key(number);
        if ashlar_peers::operations::is_removed(key, b"v") { peer.delete(key) } else { Ok(()) }
    })
}

/// Puts what an interrupted fill has left after its first `done`.
pub fn complete<P: Peer>(peer: &P, job: &Job, step: &Step, done: &Done) -> Result<()> {
    match step.workload {
        Workload::Fillprefixes => Err("the fill of prefixes has no time limit".into()),
        _ => fill::complete(peer, job, step, done),
    }
}

/// Repeats, for the oracle, the writes of `step` after it did `done`.
pub fn replay<P: Peer>(peer: &P, job: &Job, step: &Step, done: &Done) -> Result<()> {
    let mut unread = Meter::new(0.0);
    let exactly = Step { ops: done.ops, seconds: 0.0, batch: 1, ..step.clone() };
    make(peer, job, step)?;
    match step.workload {
        Workload::Fillrandom | Workload::Fillsync | Workload::Overwrite if step.threads > 1 => {
            threads::replay(peer, job, step, &done.each)
        }
        Workload::Fillseq | Workload::Fillrandom | Workload::Fillbatch | Workload::Bulkload => {
            fill::put(peer, job, &Step { ops: step.ops, ..exactly }, &mut unread).map(drop)
        }
        Workload::Fillsync | Workload::Overwrite => fill::put(peer, job, &exactly, &mut unread).map(drop),
        Workload::Deleterandom => fill::delete(peer, job, &exactly, &mut unread).map(drop),
        Workload::Transactions => transactions::replay(peer, job, step, &done.each),
        Workload::Fillprefixes => {
            prefix::fill(peer, job, &Step { ops: step.ops, ..exactly }, &mut unread).map(drop)
        }
        Workload::Ingest | Workload::Ingestunverified => files::replay(peer, job, step),
        Workload::Compactfilter => remove_filtered(peer, job),
        Workload::Readwhilewriting => beside::write(peer, job, |puts| puts < done.puts).map(drop),
        Workload::Openloop => crate::open_loop::replay(peer, job, done.ops),
        Workload::YcsbA | Workload::YcsbB | Workload::YcsbD | Workload::YcsbE | Workload::YcsbF => {
            ycsb::mixed(peer, job, &exactly, &mut unread).map(drop)
        }
        Workload::Readrandom
        | Workload::Readmissing
        | Workload::Multireadrandom
        | Workload::Seekrandom
        | Workload::Readseq
        | Workload::Readreverse
        | Workload::Counters
        | Workload::Rangetombstones
        | Workload::Scantombstones
        | Workload::Compact
        | Workload::Prefixscan
        | Workload::Prefixmissing
        | Workload::Sstwrite
        | Workload::Checkpoint
        | Workload::Backup
        | Workload::Backupagain
        | Workload::YcsbC => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Oracle;
    use ashlar_bench::Random;

    /// With as many draws as keys, 1 - 1/e of the keys are drawn, and as many of the reads find their keys.
    #[test]
    fn drawn_keys_are_as_distinct_as_chance_has_them() {
        const KEYS: u32 = 1_000_000;
        let job = Job { keys: KEYS.into(), ..crate::job::sample() };
        let (oracle, step) = (Oracle::default(), Step::new("x", Workload::Fillrandom, job.keys));
        let done = run(&oracle, &job, &step, &mut Meter::new(0.0)).unwrap();
        let entry = (job.settings.key_bytes + job.settings.value_bytes) as u64;
        let distinct = oracle.live_bytes() / entry;
        let share = |count: u64| count as f64 / f64::from(KEYS);
        assert!((share(distinct) - 0.632).abs() < 0.002, "{distinct}");

        let drawn = |stream: Stream| {
            let mut random = Random::new(job.settings.seed, stream as u64);
            (0..KEYS).map(move |_| usize::try_from(random.below(KEYS.into())).unwrap())
        };
        let mut written = vec![false; KEYS as usize];
        drawn(Stream::Load).for_each(|key| written[key] = true);
        assert_eq!(written.iter().filter(|&&is| is).count() as u64, distinct);
        let found = drawn(Stream::Reads).filter(|&key| written[key]).count() as u64;
        assert!((share(found) - 0.632).abs() < 0.002, "{found}");

        let mut other = job.clone();
        other.settings.seed += 1;
        let short = Step { ops: 1000, ..step };
        let asked = |job: &Job| run(&Oracle::default(), job, &short, &mut Meter::new(0.0)).unwrap().asked;
        assert_eq!(asked(&job), asked(&job));
        assert_ne!(asked(&job), asked(&other));
        assert_ne!(asked(&job), done.asked);
    }
}
