//! `ashlar-fuzz`: damages real files and hands them to the decoders (see `--help`).

#![allow(clippy::expect_used, reason = "a panic in a target is a finding")]

mod corpus;
mod harvest;
mod memory;
mod records;
mod sst;
mod targets;

use ashlar_testkit::heap::CountingHeap;
use ashlar_testkit::mutate::{Explored, Finding, Limits, explore};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use targets::{TARGETS, Target};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

const HELP: &str = "\
usage: ashlar-fuzz [--seconds=N] [--seed=N] [--rounds=N] [TARGET …]      ashlar-fuzz --list

Each target gets N seconds (10) of damaged inputs. Findings are a panic, a wrong answer, an input slower than a second, and
an input that needs more than 64 MiB of heap and four times its length. A finding is written to target/fuzz/TARGET-SEED;
--seed=SEED --rounds=1 TARGET repeats it.
--harvest instead keeps the smallest input of every new refusal in corpus/TARGET/, for the tests to replay.";

struct Plan {
    limits: Limits,
    harvest: bool,
    targets: Vec<&'static Target>,
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let time = Duration::from_secs(10);
    let limits = Limits { time, ..Limits::rounds(0, u64::MAX) };
    let mut plan = Plan { limits, harvest: false, targets: Vec::new() };
    for arg in args {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("not a number: {arg}"));
        if let Some(text) = arg.strip_prefix("--seconds=") {
            plan.limits.time = Duration::from_secs(number(text)?);
        } else if let Some(text) = arg.strip_prefix("--seed=") {
            plan.limits.seed = number(text)?;
        } else if let Some(text) = arg.strip_prefix("--rounds=") {
            plan.limits.rounds = number(text)?;
        } else if arg == "--harvest" {
            plan.harvest = true;
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
    let corpus = target.corpus();
    let decode = |input: &[u8]| drop((target.decode)(input));
    explore(limits, |seed| target.draw(&corpus, seed), decode)
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
        if plan.harvest {
            println!("{:<16} {:>12} kept", target.name, harvest::harvest(target, plan.limits)?);
            continue;
        }
        match run(target, plan.limits) {
            Ok(Explored { rounds, slowest, heap }) => {
                let kib = heap >> 10;
                println!("{:<16} {rounds:>12} inputs, slowest {slowest:?}, largest {kib} KiB", target.name);
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
        let mut inputs = 0;
        for target in TARGETS {
            // A whole directory costs as much as hundreds of blocks.
            let rounds = match target.name {
                "open_mutated_dir" => report::scale(100, 3000),
                "table" | "log_reader" | "manifest" => report::scale(500, 20_000),
                _ => report::scale(2000, 100_000),
            };
            let time = Duration::from_secs(60);
            let limits = Limits { seed: 1, rounds: rounds as u64, time, slowest: Duration::from_secs(2) };
            match run(target, limits) {
                Ok(done) => inputs += done.rounds,
                Err(finding) => panic!("{}: {finding}", target.name),
            }
        }
        report::figure(&format!("fuzz: {} targets, {inputs} damaged inputs, 0 findings", TARGETS.len()));
    }

    #[test]
    fn every_target_survives_its_corpus_and_accepts_some_of_it() {
        let (mut inputs, mut bytes) = (0, 0);
        for target in TARGETS {
            let kept = corpus::kept(target.name);
            assert!(!kept.is_empty(), "{} has nothing in corpus/", target.name);
            bytes += kept.iter().map(Vec::len).sum::<usize>();
            let corpus = target.corpus();
            let accepted = corpus.iter().filter(|input| (target.decode)(input).is_ok()).count();
            assert!(accepted > 0, "{} refuses every input", target.name);
            inputs += corpus.len();
        }
        assert!(bytes <= 200 << 10, "corpus/ has {bytes} bytes");
        report::figure(&format!("fuzz corpus: {inputs} inputs replayed, {bytes} bytes of them kept"));
    }

    #[test]
    fn arguments_are_understood_or_refused() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let plan = plan(&words("--seconds=3 --seed=9 log")).unwrap();
        assert_eq!((plan.limits.seed, plan.limits.time.as_secs(), plan.targets.len()), (9, 3, 1));
        assert!(super::plan(&words("nothing")).is_err() && super::plan(&words("--seed=x")).is_err());
    }
}
