//! Runs the same list of operations with other settings, and rewritten into an equal list: no answer may change. Each run also
//! does a list of actions on handles (see `handles`).
//!
//! Every answer of every run is held against the model, so all runs that pass agree with one another, byte by byte. The
//! settings are drawn so that every value of one meets every value of every other. What fails is made small by itself:
//! operations are left out, settings go back to their defaults, as long as it still fails.
//!
//! A reopen changes the settings, behind a close or a kill.

mod handles;
mod rewrite;
mod settings;
mod shrink;

use crate::sim::check::{self, Crash};
use crate::sim::plan::Step;
use crate::sim::store::Store;
use crate::sim::tally::Tally;
use ashlar_base::error::IoKind;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::ops::{Mix, draw};
use ashlar_testkit::suite::{Budget, Report, Watchdog, guarded};
use ashlar_testkit::turns;
use ashlar_testkit::{Op, Rng, report};
use rewrite::Rewrite;
use settings::{Choice, Cover, DIMENSIONS};
use shrink::Shrinks;
use std::ops::Range;
use std::time::Duration;

/// Operations of a list.
const OPERATIONS: usize = 250;
/// Cases of a quick run.
const CASES: usize = 120;
/// Opens with other settings before the first ones come again.
const SESSIONS: usize = 3;
/// One in this many cases runs with the defaults.
const DEFAULTS: u64 = 10;

/// A list under drawn settings, rewritten or not.
#[derive(Clone, Debug)]
struct Case {
    ops: Vec<Op>,
    rewrite: Rewrite,
    /// The settings of the first open, and of the opens that follow, round and round.
    choices: Vec<Choice>,
    seed: u64,
}

/// Case after case. `--replay=N` is the Nth list, `--replay=handles-N` the Nth list of handles.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("meta", budget);
    let watchdog = Watchdog::new("meta", Duration::from_secs(120));
    let mut cover = Cover::default();
    let quick = report::scale(CASES, 4 * CASES) as u64;
    let (only_list, only_handles) = (budget.replayed(""), budget.replayed("handles-"));
    let only = only_list.or(only_handles);
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
        let _case = watchdog.begins(number);
        let choice = if number % DEFAULTS == 0 { Choice::default() } else { choice };
        cover.meet(&choice);
        if only_handles.is_none() {
            one(number, choice.clone(), &mut report);
        }
        if only_list.is_none() {
            let _case = watchdog.begins(format!("handles-{number}"));
            handles::one(number, choice, &mut report);
        }
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
        reopen_per_mille: 12,
        range_per_mille: 20,
        ..Mix::default()
    };
    let ops = draw(rng.next_u64(), OPERATIONS, &mix);
    let rewrite = Rewrite::draw(&mut rng);
    let mut choices = vec![choice];
    for at in 0..SESSIONS {
        choices.push(choices[at].changed(&mut rng));
    }
    let case = Case { ops, rewrite, choices, seed: number };
    report.count("runs", 1);
    report.count("operations", case.ops.len() as u64);
    match case.run() {
        Ok(reopens) => {
            report.count("reopens with other settings", reopens.changed);
            report.count("kills among them", reopens.kills);
        }
        Err(first) => {
            let small = shrink::shrink(case);
            let what = small.run().err().unwrap_or(first);
            report.fail(number.to_string(), format!("{what}\n{}", small.words()));
        }
    }
}

/// How often a store was opened with other settings than before.
#[derive(Clone, Copy, Debug, Default)]
struct Reopens {
    changed: u64,
    kills: u64,
}

impl Case {
    /// Does the list; every answer is compared.
    fn run(&self) -> Result<Reopens, String> {
        guarded(|| {
            let mut store = Store::new(SimEnv::new(self.seed), self.choices[0].setup())?;
            for name in ["one", "two"] {
                store.step(&Step::Create(name))?;
            }
            let mut rng = Rng::new(self.seed);
            let mut choices = self.choices.iter().cycle().skip(1);
            let mut reopens = Reopens::default();
            for (at, op) in self.ops.iter().enumerate() {
                for step in self.rewrite.steps(op, &mut rng) {
                    let choice = matches!(step, Step::Op(Op::Reopen)).then(|| choices.next()).flatten();
                    let done = match choice {
                        Some(choice) => reopen(&mut store, choice, &mut rng, &mut reopens),
                        None => store.step(&step),
                    };
                    done.map_err(|e| format!("operation {at}: {e}"))?;
                }
            }
            store.compare_all().map_err(|e| format!("at the end: {e}"))?;
            Ok(reopens)
        })
    }

    /// What is run, for a reader.
    fn words(&self) -> String {
        let settings: Vec<String> = self.choices.iter().map(Choice::words).collect();
        let list: Vec<String> = self.ops.iter().take(30).map(ToString::to_string).collect();
        let (settings, list) = (settings.join("\nthen "), list.join("\n"));
        format!("under {settings}\nrewritten by {:?}, {} operations:\n{list}", self.rewrite, self.ops.len())
    }
}

/// Closes or kills the store and opens it with other settings; everything is there.
fn reopen(store: &mut Store, choice: &Choice, rng: &mut Rng, reopens: &mut Reopens) -> Result<(), String> {
    let setup = choice.setup();
    reopens.changed += 1;
    // A store without a log keeps nothing in a kill.
    if store.setup.unlogged || rng.percent(50) {
        store.setup = setup;
        store.step(&Step::Op(Op::Reopen))?;
        return store.compare_all().map_err(|e| format!("reopened under {}: {e}", choice.words()));
    }
    reopens.kills += 1;
    let image = store.sim.crash(CrashMode::KILL);
    let promise = store.promise.clone();
    let crash = Crash { setup: &setup, depth: check::DEEPEST, ..Crash::of(store, &promise, true) };
    let found = crash.check(&image, CrashMode::KILL, &mut rng.fork(), &mut Tally::default());
    let found = found.map_err(|e| format!("killed, and opened under {}: {e}", choice.words()))?;
    store.sim.fail_call(CallClass::Any, 1, Repeat::Sticky, IoKind::Other);
    store.setup = setup;
    store.adopt(image, found.db, found.m, found.names);
    Ok(())
}

impl Shrinks for Case {
    fn fails(&self) -> bool {
        self.run().is_err()
    }

    fn operations(&self) -> usize {
        self.ops.len()
    }

    fn without(&self, operations: Range<usize>) -> Case {
        let mut smaller = self.clone();
        smaller.ops.drain(operations);
        smaller
    }

    fn parts(&self) -> usize {
        self.choices.len() * DIMENSIONS.len() + 1
    }

    fn plainer(&self, part: usize) -> Option<Case> {
        let mut smaller = self.clone();
        let value = match smaller.choices.get_mut(part / DIMENSIONS.len()) {
            Some(choice) => &mut choice.0[part % DIMENSIONS.len()],
            None if self.rewrite == Rewrite::Nothing => return None,
            None => return Some(Case { rewrite: Rewrite::Nothing, ..smaller }),
        };
        (std::mem::take(value) != 0).then_some(smaller)
    }
}
