//! The matrix of damage: damages every part of every file of a database in nine ways. The database is then opened, read in
//! every way, verified and compacted.
//!
//! Each cell lists the allowed outcomes as letters (module `expected`). Any other outcome is a finding, above all a wrong
//! answer or a history with a gap.
//!
//! Another form, [`exhaustive`], flips every byte of three files.
//!
//! | letter | meaning |
//! |---|---|
//! | `E` | the open is refused, with the file's name |
//! | `e` | a read is refused; all other answers are right |
//! | `v` | all answers are right; a verification reports the damage |
//! | `T` | a shorter history, and the report of the open says so |
//! | `t` | a shorter history without a word: nothing on disk says that there was more |
//! | `R` | the same answers, and the report names the dropped or rewritten files |
//! | `=` | nothing depends on it |
//! | `U` | wrong answers, where the format has no checksum that could detect them |

mod damage;
pub mod diff;
pub mod exhaustive;
mod look;
mod parts;
mod subject;

use ashlar_options::FormatLevel;
use ashlar_testkit::suite::{Budget, Harm, Report, Watchdog, guarded};
use ashlar_testkit::turns;
use ashlar_testkit::{Rng, report};
use comfy_table::{Table, presets};
use damage::{Kind, draw};
use look::Outcome;
use parts::Part;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use subject::{Subject, subject};

const LEVELS: [FormatLevel; 2] = [FormatLevel::V9_11, FormatLevel::V7_8];
const CELLS: u64 = (LEVELS.len() * Part::ALL.len() * Kind::ALL.len()) as u64;

/// The letters that a cell may have.
fn expected(part: Part, kind: Kind) -> &'static str {
    use Kind::{CutAtBoundary, CutInside, Flip, Junk, Missing, Older, Other, Swapped, Zero};
    match (part, kind) {
        (Part::Current, _) => "E",
        // Edits are durable before anything depends on them, so a torn end was never acted upon; what was, is missed.
        (Part::Manifest, CutInside | CutAtBoundary | Zero) => "ET",
        (Part::Manifest, Junk) => "ER",
        // The tables that it names are others than those there: their ids tell.
        (Part::Manifest, Other) => "Ee",
        // Edits that do not depend on each other, and the mark that begins a log, may stand one later.
        (Part::Manifest, Swapped) => "E=",
        (Part::Manifest, _) => "E",
        // Nothing proves yet that a record was durable; zeros up to the end look like room that was never written.
        (Part::Log, Flip | CutInside) => "T",
        (Part::Log, Zero) => "Tt",
        (Part::Log, Swapped) => "ET=",
        (Part::Log, CutAtBoundary | Missing) => "t",
        (Part::Log, Junk) => "R",
        // Its records do not say whose they are, nor of which log: an older one is taken for this one.
        (Part::Log, Other | Older) => "ETtU",
        // Some bytes of these have no meaning and no checksum.
        (Part::BlobHeader, Flip | Zero) | (Part::Footer, Flip) => "ev=",
        // Beside the file's own size, which the MANIFEST knows, nothing is looked at before it is needed.
        (Part::BlobHeader | Part::BlobRecord | Part::BlobFooter, Flip | Zero | Swapped) => "ev",
        (Part::BlobHeader | Part::BlobRecord | Part::BlobFooter, _) => "Ee",
        // It is text without a checksum. What does not parse is reported, and the older file holds.
        (Part::Options, Flip | Zero | CutInside | CutAtBoundary | Junk) => "=R",
        (Part::Options | Part::Lock | Part::InfoLog, _) => "=",
        (Part::Identity, _) => "=R",
        (_, CutInside | CutAtBoundary | Junk | Missing) => "E",
        (_, Other | Older) => "Ee",
        (Part::Filter, Flip | Zero | Swapped) => "v",
        (_, Flip | Zero | Swapped) => "ev",
    }
}

/// Cells that were seen, and their letters.
type Cells = BTreeMap<(Part, Kind), BTreeSet<char>>;

/// Samples of every cell at both levels; in a long run again and again, each time elsewhere.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("corrupt", budget);
    let turn = turns::beside_others();
    let subjects: Result<Vec<_>, _> = LEVELS
        .iter()
        .map(|level| Ok::<_, ashlar_base::Error>((subject(1, *level)?, subject(2, *level)?)))
        .collect();
    let subjects = match subjects {
        Ok(subjects) => subjects,
        Err(e) => {
            report.fail("0", format!("no subject: {e}"));
            return report.done(budget);
        }
    };
    for (subject, _) in &subjects {
        match subject.outcome(&[]) {
            Ok(Outcome::Identical) => {}
            other => report.fail("0", format!("nothing is damaged, and yet: {other:?}")),
        }
    }
    drop(turn);
    let watchdog = Watchdog::new("corrupt", Duration::from_secs(60));
    let mut cells = [Cells::new(), Cells::new()];
    let cases: Box<dyn Iterator<Item = u64>> = match budget.replayed("") {
        Some(case) => Box::new(case..case + 1),
        None => Box::new(budget.seeds(CELLS * report::scale(4, 40) as u64)),
    };
    for case in cases {
        if budget.is_enough(&report) {
            break;
        }
        let _turn = turns::beside_others();
        let _case = watchdog.begins(case);
        one(case, &subjects, &mut cells, &mut report);
    }
    drop(watchdog);
    for (level, cells) in LEVELS.iter().zip(&cells) {
        report.count("cells", cells.len() as u64);
        report.table += &format!("format level {level}\n{}\n", table(cells));
    }
    report.done(budget)
}

fn one(case: u64, subjects: &[(Subject, Subject)], cells: &mut [Cells], report: &mut Report) {
    let mut number = usize::try_from(case % CELLS).unwrap_or(0);
    let mut digit = |base: usize| {
        let digit = number % base;
        number /= base;
        digit
    };
    let (level, part, kind) =
        (digit(2), Part::ALL[digit(Part::ALL.len())], Kind::ALL[digit(Kind::ALL.len())]);
    let (subject, twin) = &subjects[level];
    let mut rng = Rng::new(case);
    let done = guarded(|| {
        let Some(damage) = draw(subject, twin, part, kind, &mut rng)? else { return Ok(None) };
        subject.outcome(&damage).map(Some)
    });
    let cell = format!("{}, {}, level {}", part.name(), kind.name(), LEVELS[level]);
    match done {
        Ok(None) => {}
        Ok(Some(outcome)) => {
            report.count("damaged directories", 1);
            cells[level].entry((part, kind)).or_default().insert(outcome.letter());
            let allowed = expected(part, kind);
            if !allowed.contains(outcome.letter()) {
                report.fail_as(
                    harm(outcome),
                    case.to_string(),
                    format!("{cell}: {outcome:?}, expected {allowed}"),
                );
            }
        }
        Err(_) if expected(part, kind).contains('U') => {
            report.count("damaged directories", 1);
            cells[level].entry((part, kind)).or_default().insert('U');
        }
        Err(e) => {
            cells[level].entry((part, kind)).or_default().insert('!');
            report.fail(case.to_string(), format!("{cell}: {e}"));
        }
    }
}

/// The finding for an outcome that the part may not have.
fn harm(outcome: Outcome) -> Harm {
    if matches!(outcome, Outcome::Identical | Outcome::CutSilently) {
        Harm::SilentDamage
    } else {
        Harm::WrongAnswer
    }
}

/// The letters seen; a point where there is nothing to damage in that way.
fn table(cells: &Cells) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(std::iter::once("").chain(Kind::ALL.map(Kind::name)));
    for part in Part::ALL {
        let letters = Kind::ALL.map(|kind| match cells.get(&(part, kind)) {
            Some(letters) => letters.iter().collect(),
            None => ".".to_owned(),
        });
        table.add_row(std::iter::once(part.name().to_owned()).chain(letters));
    }
    table
}
