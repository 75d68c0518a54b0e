//! Compares AshlarDB with RocksDB on the same damaged directory.
//!
//! 1. If both open it without a complaint, both must show a state of the history, and AshlarDB's must not be the shorter one.
//! 2. If RocksDB refuses, AshlarDB may show data that a verification reports, or on which nothing depends. Different classes
//!    are counted.
//! 3. Wrong data that RocksDB shows is counted too, because it shows the effect of the damage.

use super::damage::{Damage, Kind, draw};
use super::look::{Outcome, State};
use super::parts::Part;
use super::subject::{Subject, subject};
use ashlar_options::FormatLevel;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::suite::{Budget, Harm, Report, Watchdog, guarded};
use ashlar_testkit::turns;
use ashlar_testkit::{Judge, JudgeVersion, Rng};
use std::time::Duration;

/// Cases of a quick run.
const CASES: u64 = 150;

/// RocksDB's side.
enum Theirs {
    /// It refuses to open, or a read of it fails.
    Refused,
    /// Everything it shows.
    Shown(State),
}

/// Case after case, each read by 7.8.3 and 11.8.1 in turn; `--replay=N` is the Nth.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("diff", budget);
    let turn = turns::beside_others();
    let subjects = (subject(1, FormatLevel::V7_8), subject(2, FormatLevel::V7_8));
    let (Ok(subject), Ok(twin)) = subjects else {
        report.fail("0", "no subject");
        return report.done(budget);
    };
    drop(turn);
    let mut judges = [None, None];
    let watchdog = Watchdog::new("diff", Duration::from_secs(120));
    let cases: Box<dyn Iterator<Item = u64>> = match budget.replayed("") {
        Some(case) => Box::new(case..case + 1),
        None => Box::new(budget.seeds(CASES)),
    };
    for case in cases {
        if budget.is_enough(&report) {
            break;
        }
        let _turn = turns::beside_others();
        let _case = watchdog.begins(case);
        let done = guarded(|| one(case, (&subject, &twin), &mut judges, &mut report));
        match done {
            Ok(()) => {}
            Err(why) if why.starts_with("skipped: ") => {
                report.skip(why.trim_start_matches("skipped: "));
                break;
            }
            Err(e) => report.fail(case.to_string(), e),
        }
    }
    drop(watchdog);
    report.done(budget)
}

fn one(
    case: u64,
    (subject, twin): (&Subject, &Subject),
    judges: &mut [Option<Judge>; 2],
    report: &mut Report,
) -> Result<(), String> {
    let mut rng = Rng::new(case);
    let part = *rng.pick(&Part::ALL).unwrap_or(&Part::Log);
    let kind = *rng.pick(&Kind::ALL).unwrap_or(&Kind::Flip);
    let at = usize::try_from(case % 2).unwrap_or(0);
    let Some(damage) = draw(subject, twin, part, kind, &mut rng)? else { return Ok(()) };
    let theirs = theirs(subject, &damage, JudgeVersion::ALL[at], &mut judges[at])?;
    let ours = subject.seen(&damage);
    report.count("damaged directories read by both", 1);
    let cell = format!("{}, {}", part.name(), kind.name());
    let past = |state: &State| subject.history.iter().rposition(|past| past == state);
    match (ours, theirs) {
        (Err(_), Theirs::Refused) => report.count("wrong here, refused by RocksDB", 1),
        (Err(_), Theirs::Shown(state)) => {
            // The matrix (`rel corrupt`) says which cells those may be.
            let what = if past(&state).is_none() { "wrong in both" } else { "wrong here, shown by RocksDB" };
            report.count(what, 1);
        }
        (Ok(seen), Theirs::Refused) => {
            report.count(&format!("refused by RocksDB, here {}", seen.outcome.letter()), 1);
        }
        (Ok(seen), Theirs::Shown(state)) => match (seen.past, past(&state)) {
            (_, None) => report.count("shown by RocksDB, and never was", 1),
            (None, Some(_)) => report.count("shown by RocksDB, refused here", 1),
            (Some(ours), Some(theirs)) if ours >= theirs => report.count("shown by both", 1),
            (Some(_), Some(_)) if seen.outcome == Outcome::CutReported => {
                // Shorter, and said: RocksDB went on behind a gap, or trusted what we do not.
                report.count("shorter here, and reported", 1);
            }
            (Some(ours), Some(theirs)) => {
                let what = format!("{cell}: state {ours} here, {theirs} in RocksDB, and no word of it");
                report.fail_as(Harm::LostWrite, case.to_string(), what);
            }
        },
    }
    Ok(())
}

/// What RocksDB makes of it. A judge that dies is a refusal, and the next case gets a new one.
fn theirs(
    subject: &Subject,
    damage: &Damage,
    version: JudgeVersion,
    judge: &mut Option<Judge>,
) -> Result<Theirs, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    for (name, bytes) in subject.damaged(damage) {
        std::fs::write(folder.path().join(name), bytes).map_err(|e| e.to_string())?;
    }
    if judge.is_none() {
        *judge = Some(Judge::spawn(version).map_err(|e| match e {
            JudgeError::Skip(skip) => skip.to_string(),
            other => other.to_string(),
        })?);
    }
    let Some(running) = judge.as_mut() else { return Ok(Theirs::Refused) };
    let shown = running.open(folder.path(), Opening::Existing, "").and_then(|()| running.dump("default"));
    let closed = running.close();
    if matches!(shown, Err(JudgeError::Died(_))) || matches!(closed, Err(JudgeError::Died(_))) {
        *judge = None;
    }
    Ok(shown.map_or(Theirs::Refused, |entries| Theirs::Shown(entries.into_iter().collect())))
}
