//! Flips every byte of a table, a WAL file and a MANIFEST: each bit by itself, and all bits at once. The outcomes are counted
//! and compared with the letters of the part, as in the matrix.

use super::damage::Kind;
use super::look::Outcome;
use super::parts::{Part, pieces};
use super::subject::{Subject, subject};
use super::{expected, harm};
use ashlar_options::FormatLevel;
use ashlar_testkit::suite::{Budget, Report, Watchdog, guarded};
use ashlar_testkit::turns;
use comfy_table::{Table, presets};
use std::time::Duration;

/// Its words on the command line.
const SUITE: &str = "corrupt --exhaustive";
const PATTERNS: [u8; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 255];
/// From one flip to the next, in a circle that meets every one: a run that ends early has been in all three files. A prime
/// above the number of flips.
const STRIDE: u64 = 1_000_003;

/// The files, each by one of its parts.
const FILES: [(&str, Part); 3] = [("table", Part::Data), ("log", Part::Log), ("MANIFEST", Part::Manifest)];

/// A byte to be flipped.
struct Byte {
    file: &'static str,
    name: String,
    at: usize,
    part: Part,
}

/// Every byte of the three files.
fn bytes(subject: &Subject) -> Result<Vec<Byte>, String> {
    let mut all = Vec::new();
    for (file, part) in FILES {
        let Some(name) = part.file(&subject.files) else {
            return Err(format!("there is no {file}"));
        };
        let content = &subject.files[name];
        let mut owners = vec![None; content.len()];
        for part in Part::ALL.into_iter().filter(|part| part.file(&subject.files) == Some(name)) {
            for piece in pieces(part, content).map_err(|e| format!("{}: {e}", part.name()))? {
                owners[piece.from..piece.to].fill(Some(part));
            }
        }
        for (at, owner) in owners.into_iter().enumerate() {
            let part = owner.ok_or_else(|| format!("{name}: no part has byte {at}"))?;
            all.push(Byte { file, name: name.clone(), at, part });
        }
    }
    Ok(all)
}

/// All flips, or as many as there is time for; `--replay=N` is the Nth.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new(SUITE, budget);
    let turn = turns::beside_others();
    let subject = subject(1, FormatLevel::V9_11).map_err(|e| e.to_string());
    drop(turn);
    match subject.and_then(|subject| Ok((bytes(&subject)?, subject))) {
        Ok((bytes, subject)) => flip(budget, &subject, &bytes, &mut report),
        Err(e) => report.fail("0", format!("no subject: {e}")),
    }
    report.done(budget)
}

fn flip(budget: &Budget, subject: &Subject, bytes: &[Byte], report: &mut Report) {
    let watchdog = Watchdog::new(SUITE, Duration::from_secs(60));
    let all = (bytes.len() * PATTERNS.len()) as u64;
    budget.each(budget.seed..all, report, |case, piece| {
        let _case = watchdog.begins(case);
        let number = usize::try_from(case * STRIDE % all).unwrap_or(usize::MAX);
        let pattern = PATTERNS[number % PATTERNS.len()];
        if let Some(byte) = bytes.get(number / PATTERNS.len()) {
            one(case, subject, byte, pattern, piece);
        }
    });
    drop(watchdog);
    for (file, _) in FILES {
        report.count(
            &format!("bytes of the {file}"),
            bytes.iter().filter(|byte| byte.file == file).count() as u64,
        );
    }
    report.table = table(report).to_string();
}

fn one(case: u64, subject: &Subject, byte: &Byte, pattern: u8, report: &mut Report) {
    let Byte { file, name, at, part } = byte;
    let mut content = subject.files[name].clone();
    content[*at] ^= pattern;
    report.count("flips", 1);
    let place = format!("{name} byte {at} ({}) flipped by {pattern}", part.name());
    match guarded(|| subject.outcome(&[(name.clone(), Some(content))])) {
        Ok(outcome) => {
            report.count(&figure(file, outcome), 1);
            let allowed = expected(*part, Kind::Flip);
            if !allowed.contains(outcome.letter()) {
                let what = format!("{place}: {outcome:?}, expected {allowed}");
                report.fail_as(harm(outcome), case.to_string(), what);
            }
        }
        Err(e) => report.fail(case.to_string(), format!("{place}: {e}")),
    }
}

fn figure(file: &str, outcome: Outcome) -> String {
    format!("{file}: {}", outcome.words())
}

/// A row per file: how many flips came to what.
fn table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["flipped", "bytes"].into_iter().chain(Outcome::ALL.map(Outcome::words)));
    let count = |what: &str| report.figures.get(what).copied().unwrap_or_default().to_string();
    for (file, _) in FILES {
        let begin = [file.to_owned(), count(&format!("bytes of the {file}"))];
        let counts = Outcome::ALL.map(|outcome| count(&figure(file, outcome)));
        table.add_row(begin.into_iter().chain(counts));
    }
    table
}
