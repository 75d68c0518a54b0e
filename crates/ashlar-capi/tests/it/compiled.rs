//! Programs of C, compiled with our header and linked to a library.

use crate::describe::Api;
use crate::{LIBRARY, PREFIX, THEIRS};
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::{figure, scale};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The description.
pub fn api() -> Api {
    Api::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("api"), PREFIX).unwrap()
}

/// The directory of the header.
pub fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// A program of `tests/c`.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

/// Our library, which cargo built beside the tests.
pub fn ours() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().join(LIBRARY);
    assert!(built.exists(), "{} is not built", built.display());
    built
}

/// The library of the others.
pub fn theirs() -> Result<PathBuf, Skip> {
    place(THEIRS)
}

/// Compiles a program.
pub fn compile(words: &[&str], source: &Path, library: Option<&Path>, out: &Path) -> Result<(), String> {
    let mut command = Command::new("cc");
    command.args(words).args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]);
    command.arg("-I").arg(include()).arg(source).arg("-o").arg(out);
    if let Some(library) = library {
        command.args(["-xnone"]).arg(library).arg("-Wl,--allow-shlib-undefined,--no-as-needed");
        command.arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()));
    }
    let done = command.output().map_err(|e| format!("cc: {e} (apt-get install gcc)"))?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

/// What a program prints over a library. It must end well. Ours checks the handles.
pub fn run(source: &Path, library: &Path) -> String {
    run_under(source, library, Path::new("env"), &[])
}

/// [`run`], by another program with these words.
fn run_under(source: &Path, library: &Path, by: &Path, words: &[&str]) -> String {
    let data = tempfile::tempdir().unwrap();
    run_on(source, library, data.path(), (by, words))
}

/// [`run`] with this directory.
pub fn run_in(source: &Path, library: &Path, data: &Path) -> String {
    run_on(source, library, data, (Path::new("env"), &[]))
}

fn run_on(source: &Path, library: &Path, data: &Path, (by, words): (&Path, &[&str])) -> String {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    compile(&["-std=c99", "-xc"], source, Some(library), &program).unwrap();
    let mut command = Command::new(by);
    // valgrind checks the memory itself.
    if by == Path::new("env") {
        command.env("ASHLARDB_CHECK_HANDLES", "1");
    }
    let done = command.args(words).arg(&program).arg(data).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{}: {}\n{}", done.status, said, String::from_utf8_lossy(&done.stdout));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Compares two outputs line by line.
pub fn assert_same(theirs: &str, ours: &str, differ: &[&str]) {
    let mut wrong = Vec::new();
    for (at, (their, our)) in theirs.lines().zip(ours.lines()).enumerate() {
        if their != our && !differ.iter().any(|known| their.starts_with(known)) {
            wrong.push(format!("line {}: {THEIRS} '{their}', here '{our}'", at + 1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(theirs.lines().count(), ours.lines().count());
}

/// Runs a program of `tests/c` over both libraries, and compares what it prints. Lines that begin as one of `differ` may differ.
/// `test` names the test in the message about a missing library, `what` names the program in the report.
pub fn prints_the_same(test: &str, name: &str, what: &str, differ: &[&str]) {
    let source = program(name);
    let here = run(&source, &ours());
    match theirs() {
        Ok(library) => {
            assert_same(&run(&source, &library), &here, differ);
            let count = here.lines().count();
            figure(&format!("{what}: {count} lines of a program, the same over {THEIRS}"));
        }
        Err(skip) => skip.announce(test),
    }
}

/// The words for valgrind: it fails for memory that is used wrongly or lost.
pub const VALGRIND: [&str; 4] =
    ["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"];

/// The path of valgrind. Where it does not run, the test is announced as skipped.
pub fn valgrind() -> Option<PathBuf> {
    let found = match scale(0, 1) {
        0 => Err(Skip::because("valgrind runs in the full form: cargo xtask test --all")),
        _ => place("valgrind")
            .map_err(|_| Skip::because("valgrind is not installed: apt-get install valgrind")),
    };
    found.map_err(|skip| skip.announce("valgrind")).ok()
}

/// Runs a program of `tests/c` over our library under valgrind, which finds nothing. The program ends with the line `end`.
pub fn valgrind_finds_nothing_in(name: &str) {
    let Some(valgrind) = valgrind() else { return };
    let said = run_under(&program(name), &ours(), &valgrind, &VALGRIND);
    assert!(said.ends_with("end\n"), "{said}");
}
