//! `--counts`: counts all cases and compares them with the committed ones, in the words that `cargo xtask test` reads.

use crate::check::{File, Verdict, compare};
use crate::counted;
use crate::table::CASES;
use ashlar_testkit::report::{figure, skipped};
use std::process::Command;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");

/// Counts and compares, or with `REWRITE=1` writes.
///
/// # Errors
/// A count is above what is committed, or the file cannot be written.
pub fn run() -> Result<(), String> {
    let committed = File::parse(&std::fs::read_to_string(PATH).unwrap_or_default());
    let compiler = said("rustc", &["--version"])?;
    let rewrite = std::env::var_os("REWRITE").is_some_and(|value| value == "1");
    if !rewrite && committed.compiler != compiler {
        skip(&format!("the counts are those of {}, this is {compiler}", committed.compiler));
        return Ok(());
    }
    if !text("/proc/cpuinfo").contains(" avx2 ") {
        skip("the processor has no AVX2, and code that chooses its form takes another one");
        return Ok(());
    }
    let cases: Vec<_> = CASES.iter().collect();
    let counts = match counted::of(&cases) {
        Ok(counts) => counts,
        Err(why) if rewrite => return Err(why),
        Err(why) => {
            skip(&why);
            return Ok(());
        }
    };
    let counts = counts.iter().map(|counted| counted.profile.counts(counted.ops));
    let found: Vec<_> = cases.iter().map(|case| case.name.to_owned()).zip(counts).collect();
    if rewrite {
        let file = File { compiler, counted: counter()?, counts: found };
        print!("{}", file.text());
        return std::fs::write(PATH, file.text()).map_err(|e| format!("{PATH}: {e}"));
    }
    let mut failed = 0;
    for (name, counts) in &found {
        let before = committed.counts.iter().find(|(known, _)| known == name).map(|(_, counts)| *counts);
        match compare(name, before, *counts) {
            Verdict::Same => {}
            Verdict::Less(said) => {
                figure(&format!("{said}: REWRITE=1 cargo xtask bench --counts keeps the gain"))
            }
            Verdict::Wrong(said) => {
                failed += 1;
                println!("---- instructions::{name} stdout ----\n{said}\nfailures:");
            }
        }
    }
    println!("test result: {} passed; {failed} failed; 0 ignored", found.len() - failed);
    if failed == 0 { Ok(()) } else { Err(format!("{failed} cases take more than {PATH} says")) }
}

/// One test, which could not do its work.
fn skip(why: &str) {
    skipped("instructions per operation", why);
    println!("test result: 1 passed; 0 failed; 0 ignored");
}

fn counter() -> Result<String, String> {
    let cpuinfo = text("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("unknown");
    Ok(format!("by {}, on {}, {model}", said("valgrind", &["--version"])?, std::env::consts::ARCH))
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// What a program prints.
fn said(program: &str, args: &[&str]) -> Result<String, String> {
    let done = Command::new(program).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let done = done.map_err(|e| format!("{program}: {e}"))?;
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
