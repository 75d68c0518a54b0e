//! Nanoseconds and page faults of an operation: medians of rounds, the cases in turns.
//!
//! In turns, so that a machine that slows down slows all of them. Other work of the machine makes times longer and changes no
//! count: hold counts of instructions against each other first.

use crate::case::{Bench, Case, Place};
use ashlar_env::Env;

/// Rounds of each case that count; one more comes before.
const ROUNDS: usize = 9;

/// What an operation of a case came to.
pub struct Timed {
    pub nanos: f64,
    /// `None`: the system does not count them.
    pub faults: Option<f64>,
}

/// Measures `cases`, in their order.
pub fn measure(cases: &[&Case], place: &Place<'_>) -> Vec<Timed> {
    let mut made: Vec<_> = cases.iter().map(|case| (case.make)(place)).collect();
    let mut seen: Vec<Vec<Timed>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..=ROUNDS {
        for (bench, seen) in made.iter_mut().zip(&mut seen) {
            let timed = one(&mut **bench, place.env);
            if round > 0 {
                seen.push(timed);
            }
        }
    }
    let middle = |rounds: Vec<Timed>| Timed {
        nanos: median(rounds.iter().map(|timed| timed.nanos)),
        faults: rounds
            .iter()
            .map(|timed| timed.faults)
            .collect::<Option<Vec<_>>>()
            .map(|f| median(f.into_iter())),
    };
    seen.into_iter().map(middle).collect()
}

fn one(bench: &mut dyn Bench, env: &Env) -> Timed {
    bench.fresh();
    let (faults, start) = (faults(), env.clock.now());
    let ops = bench.round();
    let (took, after) = (env.clock.now() - start, self::faults());
    let each = |count: f64| count / ops.max(1) as f64;
    Timed {
        nanos: each(took.as_secs_f64() * 1e9),
        faults: after.zip(faults).map(|(after, before)| each((after - before) as f64)),
    }
}

/// Page faults of this process that needed no storage: the 8th field behind the name in brackets.
fn faults() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
