//! A case under the scheduler: its order, its limits, and the handling of its panics.

use super::order::Order;
use super::plan::Plan;
use super::play::{self, Outcome};
use ashlar_sync::schedule;
use ashlar_sync::shuttle::scheduler::UncontrolledNondeterminismCheckScheduler as SameTwice;
use ashlar_sync::shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use ashlar_testkit::harm::{HANG, PANIC};
use ashlar_testkit::suite::{Report, guarded};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Steps of a run at most. Ordinary ones have a hundredth of that, and where time passes for ever there is no other end.
const STEPS_MAX: usize = 1_000_000;
/// The stack of a thread of the run.
const STACK_BYTES: usize = 1 << 20;

std::thread_local! {
    /// Panics of the run under way: one in a background job ends that job and nothing else.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on panics are noted.
pub fn listen_to_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |about| {
            PANICS.with(|panics| panics.borrow_mut().push(about.to_string()));
            before(about);
        }));
    });
}

fn limits() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    // The seed is enough to make it again.
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config
}

/// Runs the case of a seed, and once more in the same order if `twice`.
pub fn run(seed: u64, twice: bool, report: &mut Report) {
    let steps = Arc::new(AtomicU64::new(0));
    let outcomes: Arc<Mutex<Vec<Outcome>>> = Arc::default();
    let order = Order::new(seed, Arc::clone(&steps));
    let sent = Arc::clone(&outcomes);
    let body = move || {
        let outcome = schedule::run(|| play::run(Plan::draw(seed)));
        sent.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
    };
    PANICS.with(|panics| panics.borrow_mut().clear());
    let ended = guarded(|| match twice {
        true => Ok(Runner::new(SameTwice::new(order), limits()).run(body)),
        false => Ok(Runner::new(order, limits()).run(body)),
    });
    let panics = PANICS.with(|panics| std::mem::take(&mut *panics.borrow_mut()));
    let replay = seed.to_string();
    match ended {
        Ok(runs) => {
            report.count("executions", runs as u64);
            panics.into_iter().for_each(|panic| report.fail(&replay, format!("{PANIC}{panic}")));
        }
        Err(text) if text.contains("deadlock!") || text.contains("exceeded max_steps") => {
            report.fail(&replay, text.replacen(PANIC, HANG, 1));
        }
        Err(text) => report.fail(&replay, text),
    }
    report.count("schedules", 1);
    report.count("steps", steps.load(Ordering::Relaxed));
    let outcomes = std::mem::take(&mut *outcomes.lock().unwrap_or_else(PoisonError::into_inner));
    if let [first, second] = &outcomes[..]
        && first != second
    {
        report.fail(&replay, format!("two runs in one order differ: {first:?} and {second:?}"));
    }
    for outcome in outcomes.into_iter().take(1) {
        outcome.figures.into_iter().for_each(|(what, n)| report.count(what, n));
        outcome.findings.into_iter().for_each(|what| report.fail(&replay, what));
    }
}
