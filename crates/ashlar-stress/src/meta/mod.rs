//! The same list of operations under other settings, and rewritten into an equal one: no answer may change.
//!
//! Every answer of every run is held against the model, so all runs that pass agree with one another, byte by byte. The
//! settings are drawn so that every value of one meets every value of every other. What fails is made small by itself:
//! operations are left out, settings go back to their defaults, as long as it still fails.

mod rewrite;
mod settings;
mod shrink;

use crate::sim::plan::Step;
use crate::sim::store::Store;
use crate::suite::{Budget, Report, Watchdog, guarded};
use crate::turns;
use ashlar_env::sim::SimEnv;
use ashlar_testkit::ops::{Mix, draw};
use ashlar_testkit::{Op, Rng, report};
use rewrite::Rewrite;
use settings::{Choice, Cover};
use std::time::Duration;

/// Operations of a list.
const OPERATIONS: usize = 250;
/// Cases of a quick run.
const CASES: usize = 120;
/// Of so many cases one runs under the defaults.
const DEFAULTS: u64 = 10;

/// A list under drawn settings, rewritten or not.
#[derive(Clone, Debug)]
struct Case {
    ops: Vec<Op>,
    rewrite: Rewrite,
    choice: Choice,
    seed: u64,
}

/// Case after case. `--replay=N` is the Nth.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("meta", budget);
    let watchdog = Watchdog::new("meta", Duration::from_secs(120));
    let mut cover = Cover::default();
    let quick = report::scale(CASES, 4 * CASES) as u64;
    let only = budget.replayed("");
    let last = only.map_or(budget.seed + quick, |only| only + 1);
    for (number, choice) in (0..).zip(Cover::row(0)) {
        let wanted = only.is_none_or(|only| only == number) && number >= budget.seed;
        let over = match budget.length {
            crate::Length::Quick => number >= last,
            crate::Length::For(_) => budget.is_over() || only.is_some_and(|only| number > only),
        };
        if over || budget.is_enough(&report) {
            break;
        }
        if !wanted {
            continue;
        }
        let _turn = turns::beside_others();
        watchdog.begins(number);
        let choice = if number % DEFAULTS == 0 { Choice::default() } else { choice };
        cover.meet(&choice);
        one(number, choice, &mut report);
    }
    drop(watchdog);
    report.count("pairs of settings met", cover.met() as u64);
    report.count("pairs of settings", Cover::all() as u64);
    report.done(budget)
}

fn one(number: u64, choice: Choice, report: &mut Report) {
    let mut rng = Rng::new(number);
    let mix = Mix {
        max_value_bytes: *rng.pick(&[100, 2000, 20_000]).unwrap_or(&100),
        read_percent: 25,
        flush_per_mille: 30,
        compact_per_mille: 10,
        reopen_per_mille: 8,
        range_per_mille: 20,
        ..Mix::default()
    };
    let ops = draw(rng.next_u64(), OPERATIONS, &mix);
    let case = Case { ops, rewrite: Rewrite::draw(&mut rng), choice, seed: number };
    report.count("runs", 1);
    report.count("operations", case.ops.len() as u64);
    if let Err(first) = case.run() {
        let small = shrink::shrink(case);
        let what = small.run().err().unwrap_or(first);
        let list: Vec<String> = small.ops.iter().take(30).map(ToString::to_string).collect();
        report.fail(
            number.to_string(),
            format!(
                "{what}\nunder {}, rewritten by {:?}, {} operations:\n{}",
                small.choice.words(),
                small.rewrite,
                small.ops.len(),
                list.join("\n")
            ),
        );
    }
}

impl Case {
    /// Does the list; every answer is compared.
    fn run(&self) -> Result<(), String> {
        guarded(|| {
            let mut store = Store::new(SimEnv::new(self.seed), self.choice.setup())?;
            for name in ["one", "two"] {
                store.step(&Step::Create(name))?;
            }
            let mut rng = Rng::new(self.seed);
            for (at, op) in self.ops.iter().enumerate() {
                for step in self.rewrite.steps(op, &mut rng) {
                    store.step(&step).map_err(|e| format!("operation {at}: {e}"))?;
                }
            }
            store.compare_all().map_err(|e| format!("at the end: {e}"))
        })
    }
}
