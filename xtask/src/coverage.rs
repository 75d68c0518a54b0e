//! `coverage`: what the tests run of the code, and which errors no test has ever seen made.
//!
//! Regions are LLVM's: a piece of code that is run as a whole or not at all; a line is run when one of its regions is. Tests
//! beside the code are not counted. An *error site* is a place that makes an error; it is unreached when its region was
//! never run.

use crate::{project, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask coverage [PACKAGE …]

Runs the tests of the packages (without any: of every crate whose bytes come from disks, of the engine and its door, the
suites of crashes and failing calls, and the fuzzer's corpus) with LLVM's counters in them, and prints for each crate how
many regions and lines were run, and how many of the places that make an error. The unreached ones stand in
target/coverage/errors.txt.

Needs the component llvm-tools (rustup component add llvm-tools); without it this chore says \"skipped: why\". The build
has a target folder of its own; all of it takes a quarter of an hour.";

const PACKAGES: [&str; 21] = [
    "ashlar-base",
    "ashlar-env",
    "ashlar-format",
    "ashlar-log",
    "ashlar-table",
    "ashlar-blob",
    "ashlar-memtable",
    "ashlar-options",
    "ashlar-tree",
    "ashlar-read",
    "ashlar-compaction",
    "ashlar-observe",
    "ashlar-pressure",
    "ashlar-engine",
    "ashlar-backup",
    "ashlar-repair",
    "ashlar-txn",
    "ashlardb",
    "ashlar-rigs",
    "ashlar-stress",
    "ashlar-fuzz",
];
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Words that make an error. An error handed over as a value (`ok_or(…)`) has no region of its own and is no site.
const MAKERS: [&str; 13] = [
    "Error::new(",
    "Error::corruption(",
    "Error::invalid(",
    "Error::not_supported(",
    "Error::io(",
    "Error::closed(",
    "Malformed {",
    "malformed(",
    "wrong(",
    "bad(",
    "Err(Unreadable::",
    "Err(Refused::",
    "Err(Fault::",
];

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let Some(tools) = tools() else {
        println!("skipped: LLVM's tools are not here: rustup component add llvm-tools");
        return Ok(());
    };
    let folder = project::scratch().join("coverage");
    let raw = folder.join("raw");
    // Counts of an earlier run belong to an earlier build.
    let _ = fs::remove_dir_all(&raw);
    fs::create_dir_all(&raw).map_err(|e| format!("{}: {e}", raw.display()))?;
    let packages: Vec<&str> =
        if args.is_empty() { PACKAGES.to_vec() } else { args.iter().map(String::as_str).collect() };
    let (programs, tested) = run_tests(&folder, &packages)?;
    let counts = folder.join("all.profdata");
    let mut merge = Command::new(tools.join("llvm-profdata"));
    // A process that was killed while it wrote leaves half a file; the others count.
    merge.args(["merge", "-sparse", "-failure-mode=all", "-o"]).arg(&counts).args(entries(&raw)?);
    output(&mut merge)?;
    let mut export = Command::new(tools.join("llvm-cov"));
    export.args(["export", "-format=text", "-skip-functions", "-skip-expansions", "-instr-profile"]);
    export.arg(&counts).args(programs.iter().flat_map(|program| ["-object", program.as_str()]));
    let text = output(&mut export)?;
    let sums = sum(&text, &project::root())?;
    let unreached: String =
        sums.values().flat_map(|sum| &sum.unreached).map(|site| format!("{site}\n")).collect();
    fs::write(folder.join("errors.txt"), unreached).map_err(|e| e.to_string())?;
    print!("{}", table(&sums));
    println!("unreached error sites: target/coverage/errors.txt");
    tested
}

/// The folder of LLVM's tools that fit the compiler.
fn tools() -> Option<PathBuf> {
    let sysroot = run::quiet("rustc", &["--print", "sysroot"])?;
    let hosts = fs::read_dir(Path::new(sysroot.trim()).join("lib/rustlib")).ok()?;
    let folders = hosts.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    folders.into_iter().find(|bin| bin.join("llvm-cov").is_file() && bin.join("llvm-profdata").is_file())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(listed.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Runs the tests with counters; answers the test programs, and whether all passed.
fn run_tests(folder: &Path, packages: &[&str]) -> Result<(Vec<String>, Result<(), String>), String> {
    let cargo = |more: &[&str]| {
        let mut command = Command::new(project::cargo());
        command.args(["test", "--lib", "--bins", "--tests", "--no-fail-fast"]).args(more);
        command.args(packages.iter().flat_map(|name| ["--package", name]));
        command.arg("--target-dir").arg(folder.join("build")).current_dir(project::root());
        command.env("RUSTFLAGS", "-C instrument-coverage");
        // Two files per program, which its processes add to.
        command.env("LLVM_PROFILE_FILE", folder.join("raw/%2m.profraw"));
        command
    };
    let log = folder.join("tests.log");
    let tested = run::watched(&cargo(&[]), &log, LIMIT, |line| {
        if line.starts_with("test result") {
            println!("{line}");
        }
    });
    let tested = tested.map_err(|e| format!("tests: {e}; see {}", log.display()));
    let built = output(&mut cargo(&["--no-run", "--message-format=json"]))?;
    let programs = built.lines().filter_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next());
    Ok((programs.map(str::to_owned).collect(), tested))
}

/// How many there are, and how many of them were run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Share {
    all: usize,
    run: usize,
}

impl Share {
    fn count(&mut self, run: bool) {
        self.all += 1;
        self.run += usize::from(run);
    }

    fn percent(&self) -> f64 {
        self.run as f64 * 100.0 / self.all.max(1) as f64
    }
}

/// What was run of one crate.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    regions: Share,
    lines: Share,
    sites: usize,
    unreached: Vec<String>,
}

/// Sums the export of `llvm-cov` by crate.
fn sum(export: &str, root: &Path) -> Result<BTreeMap<String, Sum>, String> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for file in export.split("\"filename\":\"").skip(1) {
        let Some((name, rest)) = file.split_once('"') else { continue };
        let Ok(path) = Path::new(name).strip_prefix(root) else { continue };
        let path = path.to_string_lossy().into_owned();
        let Some(name) = path.strip_prefix("crates/").and_then(|p| p.split_once("/src/")) else { continue };
        if path.ends_with("tests.rs") || path.ends_with("fixture.rs") {
            continue;
        }
        let text = fs::read_to_string(root.join(&path)).map_err(|e| format!("{path}: {e}"))?;
        let segments = rest.split_once("\"segments\":[[").and_then(|(_, rest)| rest.split_once("]]"));
        let segments: Vec<Segment> =
            segments.map_or("", |(all, _)| all).split("],[").filter_map(Segment::parse).collect();
        sums.entry(name.0.to_owned()).or_default().add(&path, &text, &segments);
    }
    Ok(sums)
}

/// From here on in a file, code was run so often.
#[derive(Clone, Copy, Debug)]
struct Segment {
    line: usize,
    column: usize,
    count: u64,
    /// There is code here.
    counted: bool,
    /// A region begins here.
    begins: bool,
}

impl Segment {
    /// `line,column,count,has count,is region entry,is gap`
    fn parse(text: &str) -> Option<Segment> {
        let fields: Vec<&str> = text.split(',').collect();
        let [line, column, count, counted, entry, gap] = fields.as_slice() else { return None };
        let counted = *counted == "true";
        Some(Segment {
            line: line.parse().ok()?,
            column: column.parse().ok()?,
            count: count.parse().ok()?,
            counted,
            begins: counted && *entry == "true" && *gap == "false",
        })
    }
}

impl Sum {
    fn add(&mut self, path: &str, text: &str, segments: &[Segment]) {
        let code: Vec<&str> = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").collect();
        let inside = |segment: &&Segment| segment.begins && segment.line <= code.len();
        segments.iter().filter(inside).for_each(|segment| self.regions.count(segment.count > 0));
        for (index, line) in code.iter().enumerate() {
            if let Some(run) = is_run(index + 1, segments) {
                self.lines.count(run);
            }
            let Some(at) = made_at(line) else { continue };
            let here = (index + 1, at + 1);
            // A closure that only puts a value together has no counter.
            let covering = segments.iter().rfind(|s| (s.line, s.column) <= here);
            let Some(covering) = covering.filter(|s| s.counted) else { continue };
            self.sites += 1;
            if covering.count == 0 {
                self.unreached.push(format!("{path}:{}: {}", index + 1, line.trim()));
            }
        }
    }
}

/// Whether a line was run; `None` where it holds no code. What begins on it counts, and what goes on from lines before.
fn is_run(line: usize, segments: &[Segment]) -> Option<bool> {
    let from = segments.partition_point(|s| s.line < line);
    let on_it = segments[from..].iter().take_while(|s| s.line == line).filter(|s| s.begins);
    let before = from.checked_sub(1).map(|last| &segments[last]).filter(|s| s.counted);
    on_it.chain(before).map(|s| s.count > 0).reduce(|a, b| a || b)
}

/// Where a line makes an error.
fn made_at(line: &str) -> Option<usize> {
    let code = line.trim_start();
    // The arm of a match takes an error; it makes none.
    let taken = code.starts_with("Err(") && code.contains(" => ");
    if code.starts_with("//") || taken || ["fn ", "impl ", "struct "].iter().any(|word| line.contains(word)) {
        return None;
    }
    let within_a_word = |at: usize| line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    MAKERS.iter().filter_map(|maker| line.find(maker)).filter(|at| !within_a_word(*at)).min()
}

fn table(sums: &BTreeMap<String, Sum>) -> String {
    let mut text = format!(
        "{:<18} {:>8} {:>8}  {:>8} {:>8}  {:>6} {:>6}\n",
        "crate", "regions", "run", "lines", "run", "errors", "seen"
    );
    for (name, Sum { regions, lines, sites, unreached }) in sums {
        let seen = sites - unreached.len();
        text += &format!(
            "{name:<18} {:>8} {:>7.1}%  {:>8} {:>7.1}%  {sites:>6} {seen:>6}\n",
            regions.all,
            regions.percent(),
            lines.all,
            lines.percent(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_and_error_sites_are_those_before_the_tests() {
        let text = "fn a() {\n    Err(Error::new(1))\n    x.map_err(|e| Error::io(e))\n    Err(Fault::Zero) => 0,\n    |what| Malformed { what }\n}\n#[cfg(test)]\nmod tests {}\n";
        let segments = [
            "1,1,5,true,true,false",
            "3,15,0,true,true,false",
            "3,32,5,true,false,false",
            "4,24,0,true,true,false",
            "5,12,0,false,false,false",
            "5,30,5,true,false,false",
            "8,1,0,true,true,false",
        ];
        let segments: Vec<Segment> = segments.into_iter().filter_map(Segment::parse).collect();
        let mut sum = Sum::default();
        sum.add("a.rs", text, &segments);
        let unreached = vec!["a.rs:3: x.map_err(|e| Error::io(e))".to_owned()];
        let (regions, lines) = (Share { all: 3, run: 1 }, Share { all: 6, run: 5 });
        assert_eq!(sum, Sum { regions, lines, sites: 2, unreached });
    }
}
