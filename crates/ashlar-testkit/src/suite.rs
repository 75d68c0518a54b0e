//! The shared parts of all suites: their budget, the kinds of harm, and their report.
//!
//! With `--json=FILE` a report is a line of JSON; `rel report` makes one table of many reports.

use crate::harm;
use crate::turns;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// How long a suite goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A fixed amount of work: what an ordinary test run can afford.
    Quick,
    /// Until the time is over, and then to the end of the case under way.
    For(Duration),
}

/// Where a suite begins and how far it goes.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The first seed; others follow it.
    pub seed: u64,
    /// How far.
    pub length: Length,
    /// Only this one case, in the words of its failure.
    pub replay: Option<String>,
    /// The first failure is the last.
    pub first: bool,
    /// Cases at once, in suites that can.
    pub threads: usize,
    /// The program `rel`, whose child processes some suites kill.
    pub program: PathBuf,
    began: Instant,
}

impl Budget {
    /// Begins now, in the program `rel`.
    pub fn new(seed: u64, length: Length, replay: Option<String>) -> Budget {
        let program = std::env::current_exe().unwrap_or_default();
        Budget { seed, length, replay, first: false, threads: 1, program, began: Instant::now() }
    }

    /// The budget of an ordinary test run.
    pub fn quick() -> Budget {
        Budget::new(0, Length::Quick, None)
    }

    /// True when what was found is all that is wanted.
    pub fn is_enough(&self, report: &Report) -> bool {
        self.first && !report.failures.is_empty()
    }

    /// True when the time is over; never for quick runs, which end with their work.
    pub fn is_over(&self) -> bool {
        matches!(self.length, Length::For(time) if self.began.elapsed() >= time)
    }

    /// Seed after seed: `quick` of them, or until the time is over.
    pub fn seeds(&self, quick: u64) -> impl Iterator<Item = u64> + use<'_> {
        let end = match self.length {
            Length::Quick => self.seed + quick,
            Length::For(_) => u64::MAX,
        };
        (self.seed..end).take_while(|_| !self.is_over())
    }

    /// [`Budget::seeds`], or the one that is replayed, each a case of [`Budget::each`].
    pub fn each_seed(&self, quick: u64, report: &mut Report, case: impl Fn(u64, &mut Report) + Sync) {
        let end = match self.length {
            Length::Quick => self.seed + quick,
            Length::For(_) => u64::MAX,
        };
        self.each(self.seed..end, report, case);
    }

    /// Case after case, or the one that is replayed, some at a time, beside others, and as long as there is time; `report`
    /// gets what they did and found.
    pub fn each(&self, cases: Range<u64>, report: &mut Report, case: impl Fn(u64, &mut Report) + Sync) {
        let Range { start: first, end } = self.replayed("").map_or(cases, |only| only..only + 1);
        let (next, enough) = (AtomicU64::new(first), AtomicBool::new(false));
        let work = || {
            let mut piece = Report::default();
            while !enough.load(Ordering::Relaxed) && !self.is_over() {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    break;
                }
                let turn = turns::beside_others();
                case(seed, &mut piece);
                drop(turn);
                enough.fetch_or(self.is_enough(&piece), Ordering::Relaxed);
            }
            piece
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                match worker.join() {
                    Ok(piece) => report.absorb(piece),
                    Err(panic) => report.fail("", format!("{}{}", harm::PANIC, text_of(&*panic))),
                }
            }
        });
    }

    /// The number after `word`, if a case of that kind is replayed: 17 for `disk-17` and the word `disk-`.
    pub fn replayed(&self, word: &str) -> Option<u64> {
        self.replay.as_ref()?.strip_prefix(word)?.parse().ok()
    }
}

/// The kinds of harm, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// A write that was promised to survive did not.
    LostWrite,
    /// An answer, or an error, that the contract does not allow.
    WrongAnswer,
    /// Damage that no error and no report mentioned.
    SilentDamage,
    /// A panic.
    Panic,
    /// A hang.
    Hang,
    /// A planted bug that its suite did not find.
    MissedBug,
}

impl Harm {
    /// All of them.
    pub const ALL: [Harm; 6] =
        [Harm::LostWrite, Harm::WrongAnswer, Harm::SilentDamage, Harm::Panic, Harm::Hang, Harm::MissedBug];

    /// The name, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Harm::LostWrite => "lost writes",
            Harm::WrongAnswer => "wrong answers",
            Harm::SilentDamage => "silent damage",
            Harm::Panic => "panics",
            Harm::Hang => "hangs",
            Harm::MissedBug => "bugs missed",
        }
    }

    /// The harm of a failure: the word of [`harm`] in its text. A text without such a word is a wrong answer.
    pub fn of(text: &str) -> Harm {
        let words =
            [(harm::PANIC, Harm::Panic), (harm::HANG, Harm::Hang), (harm::LOST_WRITE, Harm::LostWrite)];
        let found = words.into_iter().find(|(word, _)| text.contains(word));
        found.map_or(Harm::WrongAnswer, |(_, harm)| harm)
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which harm.
    pub harm: Harm,
    /// What `--replay` takes to make it again.
    pub replay: String,
    /// What happened.
    pub what: String,
}

/// The work and the findings of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its name on the command line.
    pub suite: String,
    /// Its first seed.
    pub seed: u64,
    /// How long it took.
    pub seconds: f64,
    /// The counts of the work.
    pub figures: BTreeMap<String, u64>,
    /// How long what took, in microseconds, in no order.
    #[serde(default)]
    pub times: BTreeMap<String, Vec<u64>>,
    /// The findings.
    pub failures: Vec<Failure>,
    /// Skipped work, with the reasons.
    pub skipped: Vec<String>,
    /// A table for people; not kept.
    #[serde(skip)]
    pub table: String,
}

impl Report {
    /// Nothing done yet.
    pub fn new(suite: &str, budget: &Budget) -> Report {
        Report { suite: suite.to_owned(), seed: budget.seed, ..Report::default() }
    }

    /// Counts `n` more of `what`.
    pub fn count(&mut self, what: &str, n: u64) {
        *self.figures.entry(what.to_owned()).or_default() += n;
    }

    /// Notes how long `what` took once.
    pub fn time(&mut self, what: &str, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.times.entry(what.to_owned()).or_default().push(micros);
    }

    /// Takes over what another report of the suite has: figures are added, times and failures put together.
    pub fn absorb(&mut self, other: Report) {
        self.seconds += other.seconds;
        for (what, n) in &other.figures {
            self.count(what, *n);
        }
        for (what, times) in other.times {
            self.times.entry(what).or_default().extend(times);
        }
        self.failures.extend(other.failures);
        other.skipped.into_iter().for_each(|why| self.skip(why));
    }

    /// What was done: the figures, and of times the median and the 99th percentile.
    pub fn done_list(&self) -> Vec<String> {
        let figures = self.figures.iter().map(|(what, n)| format!("{n} {what}"));
        let times = self.times.iter().map(|(what, times)| {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let at = |percent: usize| sorted.get(sorted.len().saturating_sub(1) * percent / 100);
            let millis = |micros: Option<&u64>| micros.copied().unwrap_or_default() as f64 / 1000.0;
            format!("{what} p50 {:.1} ms, p99 {:.1} ms", millis(at(50)), millis(at(99)))
        });
        figures.chain(times).collect()
    }

    /// Notes what was found in the case that `replay` makes again; the harm is read from the text.
    pub fn fail(&mut self, replay: impl Into<String>, what: impl Into<String>) {
        let what = what.into();
        self.fail_as(Harm::of(&what), replay, what);
    }

    /// Notes what was found, the harm known.
    pub fn fail_as(&mut self, harm: Harm, replay: impl Into<String>, what: impl Into<String>) {
        self.failures.push(Failure { harm, replay: replay.into(), what: what.into() });
    }

    /// Notes what could not be done, once.
    pub fn skip(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.skipped.contains(&why) {
            self.skipped.push(why);
        }
    }

    /// The report, its time taken.
    pub fn done(mut self, budget: &Budget) -> Report {
        self.seconds = budget.began.elapsed().as_secs_f64();
        self
    }

    /// How often a harm was found.
    pub fn found(&self, harm: Harm) -> usize {
        self.failures.iter().filter(|failure| failure.harm == harm).count()
    }

    /// The figures in one line.
    pub fn line(&self) -> String {
        let found: Vec<String> = Harm::ALL
            .into_iter()
            .filter(|harm| *harm != Harm::MissedBug || self.suite == "bugs")
            .map(|harm| format!("{} {}", self.found(harm), harm.name()))
            .collect();
        format!("{}: {}: {}", self.suite, self.done_list().join(", "), found.join(", "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.table.is_empty() {
            writeln!(f, "{}", self.table)?;
        }
        for why in &self.skipped {
            writeln!(f, "skipped: {why}")?;
        }
        for Failure { harm, replay, what } in self.failures.iter().take(20) {
            writeln!(f, "{} (rel {} --replay={replay}): {what}", harm.name(), self.suite)?;
        }
        if self.failures.len() > 20 {
            writeln!(f, "and {} more", self.failures.len() - 20)?;
        }
        write!(f, "{}; {:.1} s", self.line(), self.seconds)
    }
}

/// Runs a case; a panic in it is an error like others.
///
/// # Errors
/// Its own, or the panic's text behind the word "panic".
pub fn guarded<T>(case: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(case))
        .unwrap_or_else(|panic| Err(format!("{}{}", harm::PANIC, text_of(&*panic))))
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}

/// Ends the process when a case takes for ever: a loop inside a step cannot be left in any other way. Time between cases does not
/// count, because a run may wait there for its turn beside other runs.
pub struct Watchdog {
    watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    running: Vec<Running>,
    /// The number of the next case.
    next: u64,
    over: bool,
}

struct Running {
    thread: ThreadId,
    number: u64,
    case: String,
    since: Instant,
}

/// A case that a [`Watchdog`] watches until this is dropped, or until another case begins in the same thread.
#[must_use = "the case is watched until this is dropped"]
pub struct WatchedCase {
    watched: Arc<Mutex<Watched>>,
    number: u64,
}

fn locked(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchdog {
    /// Watches a suite: each of its cases has `patience`.
    pub fn new(suite: &'static str, patience: Duration) -> Watchdog {
        let watched = Arc::new(Mutex::new(Watched::default()));
        let seen = Arc::clone(&watched);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let watched = locked(&seen);
                if watched.over {
                    return;
                }
                if let Some(Running { case, .. }) = watched.late(patience) {
                    // Not by a macro: what those print in a test is kept back, and this is its last word.
                    let _ = writeln!(std::io::stderr(), "{}rel {suite} --replay={case}", harm::HANG);
                    std::process::exit(101);
                }
            }
        });
        Watchdog { watched }
    }

    /// A case begins, in the words of `--replay`. A run that waits for other runs waits before this call.
    pub fn begins(&self, case: impl fmt::Display) -> WatchedCase {
        let mut watched = locked(&self.watched);
        let (thread, number) = (std::thread::current().id(), watched.next);
        watched.next += 1;
        watched.running.retain(|case| case.thread != thread);
        watched.running.push(Running { thread, number, case: case.to_string(), since: Instant::now() });
        WatchedCase { watched: Arc::clone(&self.watched), number }
    }
}

impl Watched {
    /// A case that has run for longer than `patience`.
    fn late(&self, patience: Duration) -> Option<&Running> {
        self.running.iter().find(|case| case.since.elapsed() >= patience)
    }
}

impl Drop for WatchedCase {
    fn drop(&mut self) {
        locked(&self.watched).running.retain(|case| case.number != self.number);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        locked(&self.watched).over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_counts_the_time_of_each_case_and_not_the_time_between() {
        let dog = Watchdog::new("none", Duration::from_secs(3600));
        let late = |patience| locked(&dog.watched).late(patience).map(|case| case.case.clone());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(late(Duration::ZERO), None, "no case runs");
        let first = dog.begins(1);
        let beside = std::thread::scope(|scope| scope.spawn(|| dog.begins("beside")).join().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(late(Duration::from_millis(20)).as_deref(), Some("1"));
        drop(beside);
        let second = dog.begins("disk-2");
        assert_eq!(late(Duration::ZERO).as_deref(), Some("disk-2"), "the thread began another case");
        drop(first);
        assert_eq!(late(Duration::ZERO).as_deref(), Some("disk-2"));
        drop(second);
        assert_eq!(late(Duration::ZERO), None);
    }

    #[test]
    fn seeds_and_replays() {
        let budget = Budget::new(5, Length::Quick, Some("disk-17".to_owned()));
        assert_eq!(budget.seeds(3).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!((budget.replayed("disk-"), budget.replayed("")), (Some(17), None));
        let over = Budget::new(0, Length::For(Duration::ZERO), None);
        assert_eq!(over.seeds(3).count(), 0);
    }

    #[test]
    fn harm_is_read_from_the_text_and_kept_in_json() {
        let mut report = Report::new("sim", &Budget::quick());
        report.count("crashes", 2);
        report.fail("1", guarded::<()>(|| panic!("oh")).unwrap_err());
        report.fail("2", "seed 2: HANG: flush");
        report.fail("3", format!("{}recovered writes 1..=3 of 5", harm::LOST_WRITE));
        report.fail("4", "get: 3 bytes expected");
        let harms: Vec<Harm> = report.failures.iter().map(|failure| failure.harm).collect();
        assert_eq!(harms, [Harm::Panic, Harm::Hang, Harm::LostWrite, Harm::WrongAnswer]);
        let line = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&line).unwrap(), report);
    }
}
