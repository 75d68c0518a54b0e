//! `rel fuzz`: the program `ashlar-fuzz` over all its targets, each with its share of the time.
//!
//! The program is a separate process, because its heap is counted and an input that hangs ends it. The quick form runs every
//! target over its corpus and some hundred damaged inputs; it is part of `ashlar-fuzz`'s own tests.

use ashlar_testkit::suite::{Budget, Harm, Length, Report};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where the program is: beside ours.
fn program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("ashlar-fuzz");
    beside.is_file().then_some(beside)
}

/// Runs every target, or the one that `--replay=TARGET-SEED` names.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("fuzz", budget);
    let Some(program) = program() else {
        report.skip("no program ashlar-fuzz beside this one: cargo build --release -p ashlar-fuzz");
        return report.done(budget);
    };
    let listed = said(Command::new(&program).arg("--list"));
    let targets: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    report.count("targets", targets.len() as u64);
    let mut args = Vec::new();
    match (budget.replay.as_deref().and_then(|words| words.rsplit_once('-')), budget.length) {
        (Some((target, seed)), _) => {
            args.extend([format!("--seed={seed}"), "--rounds=1".to_owned(), target.to_owned()]);
        }
        (None, Length::Quick) => args.push("--seconds=1".to_owned()),
        (None, Length::For(time)) => {
            args.push(format!("--seconds={}", (time.as_secs() / targets.len().max(1) as u64).max(1)));
        }
    }
    if budget.replay.is_none() {
        args.push(format!("--seed={}", budget.seed));
    }
    let text = said(Command::new(&program).args(&args));
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, inputs, "inputs,", ..] => report.count("inputs", inputs.parse().unwrap_or(0)),
            [target, "seed", seed, ..] => {
                let seed = seed.trim_end_matches(':');
                let harm = if line.contains("panic") { Harm::Panic } else { Harm::WrongAnswer };
                report.fail_as(harm, format!("{target}-{seed}"), line);
            }
            _ => {}
        }
    }
    report.done(budget)
}

fn said(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}
