//! `ashlar-fuzz`: damages real files and hands them to the decoders (see `--help`).

mod corpus;
mod records;
mod tables;
mod targets;

use ashlar_testkit::mutate::{Explored, Finding, Limits, explore};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use targets::{TARGETS, Target};

const HELP: &str = "\
usage: ashlar-fuzz [--seconds=N] [--seed=N] [--rounds=N] [TARGET …]      ashlar-fuzz --list

Each target gets N seconds (10) of damaged inputs. A panic, a wrong answer or an input slower than a second is a finding: it is
written to target/fuzz/TARGET-SEED, and --seed=SEED --rounds=1 TARGET makes it again.";

struct Plan {
    limits: Limits,
    targets: Vec<&'static Target>,
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let time = Duration::from_secs(10);
    let mut plan = Plan { limits: Limits { time, ..Limits::rounds(0, u64::MAX) }, targets: Vec::new() };
    for arg in args {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("not a number: {arg}"));
        if let Some(text) = arg.strip_prefix("--seconds=") {
            plan.limits.time = Duration::from_secs(number(text)?);
        } else if let Some(text) = arg.strip_prefix("--seed=") {
            plan.limits.seed = number(text)?;
        } else if let Some(text) = arg.strip_prefix("--rounds=") {
            plan.limits.rounds = number(text)?;
        } else {
            let target = TARGETS.iter().find(|target| target.name == *arg);
            plan.targets.push(target.ok_or_else(|| format!("no target {arg}; --list names them\n\n{HELP}"))?);
        }
    }
    if plan.targets.is_empty() {
        plan.targets = TARGETS.iter().collect();
    }
    Ok(plan)
}

fn run(target: &Target, limits: Limits) -> Result<Explored, Box<Finding>> {
    explore(&(target.corpus)(), limits, target.fix, target.decode)
}

fn keep(target: &Target, finding: &Finding) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz");
    let path = folder.join(format!("{}-{}", target.name, finding.seed));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, &finding.input))
        .map_err(|e| format!("{}: {e}", path.display()))
}

fn all(args: &[String]) -> Result<(), String> {
    let plan = plan(args)?;
    let mut findings = 0;
    for target in plan.targets {
        match run(target, plan.limits) {
            Ok(done) => {
                println!("{:<16} {:>12} inputs, slowest {:?}", target.name, done.rounds, done.slowest)
            }
            Err(finding) => {
                println!("{:<16} {finding}", target.name);
                keep(target, &finding)?;
                findings += 1;
            }
        }
    }
    if findings == 0 { Ok(()) } else { Err(format!("{findings} findings, inputs in target/fuzz")) }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if args.iter().any(|arg| arg == "--list") {
        TARGETS.iter().for_each(|target| println!("{:<16} {}", target.name, target.what));
        return ExitCode::SUCCESS;
    }
    match all(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_testkit::report;

    #[test]
    fn every_decoder_survives_damaged_files() {
        let rounds = report::scale(4000, 100_000) as u64;
        let mut inputs = 0;
        for target in &TARGETS {
            let limits =
                Limits { seed: 1, rounds, time: Duration::from_secs(60), slowest: Duration::from_secs(1) };
            match run(target, limits) {
                Ok(done) => inputs += done.rounds,
                Err(finding) => panic!("{}: {finding}", target.name),
            }
        }
        report::figure(&format!("fuzz: {} decoders, {inputs} damaged inputs, 0 findings", TARGETS.len()));
    }

    #[test]
    fn every_target_has_real_inputs_and_survives_them() {
        for target in &TARGETS {
            let corpus = (target.corpus)();
            assert!(!corpus.is_empty(), "{} has no corpus", target.name);
            corpus.iter().for_each(|input| (target.decode)(input));
        }
    }

    #[test]
    fn arguments_are_understood_or_refused() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let plan = plan(&words("--seconds=3 --seed=9 log")).unwrap();
        assert_eq!((plan.limits.seed, plan.limits.time.as_secs(), plan.targets.len()), (9, 3, 1));
        assert!(super::plan(&words("nothing")).is_err() && super::plan(&words("--seed=x")).is_err());
    }
}
