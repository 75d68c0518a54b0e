//! Programs that others wrote for RocksDB, with their own tests, over both libraries.
//!
//! grocksdb, RocksDB's binding for Go, is built once, from its registry, and runs over RocksDB's library and ours. Python loads
//! each library with its own `ctypes`.

use crate::compiled::{include, ours, theirs};
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::{figure, scale};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The tests that pass over RocksDB and not here, by a part of their names, and why.
const DIFFERENT: [(&str, &str); 3] = [
    ("WithTS", "keys with timestamps are refused"),
    ("TestBackupEngine", "makes backups in the directory of its database, which is refused"),
    (
        "TestTransactionDBCRUD",
        "deletes after a prepare: RocksDB writes no WAL for such a deletion, so it is refused",
    ),
];

fn differs(test: &str) -> bool {
    DIFFERENT.iter().any(|(name, _)| test.contains(name))
}

/// Builds the tests of grocksdb into a program, linked to the library in `libraries`.
fn build(module: &Path, libraries: &Path, program: &Path) {
    let mut go = Command::new("go");
    go.current_dir(module)
        .args(["test", "-c", "-mod=vendor", "-tags", "grocksdb_no_link", "-o"])
        .arg(program)
        .arg(".");
    go.env("CGO_ENABLED", "1").env("CGO_CFLAGS", format!("-I{}", include().display()));
    go.env("CGO_LDFLAGS", format!("-L{} -lrocksdb -lpthread -ldl -lm", libraries.display()));
    let built = go.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// The tests of the program over the library in `libraries`, and whether each passes.
fn outcomes(program: &Path, libraries: &Path) -> BTreeMap<String, bool> {
    let data = tempfile::tempdir().unwrap();
    let mut tests = Command::new(program);
    tests.current_dir(data.path()).env("TMPDIR", data.path()).env("LD_LIBRARY_PATH", libraries);
    let done = tests.args(["-test.v", "-test.timeout=300s"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let outcome = |line: &str| {
        let (word, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
        Some((rest.split_whitespace().next()?.to_owned(), word == "PASS"))
    };
    let outcomes: BTreeMap<String, bool> = said.lines().filter_map(outcome).collect();
    // A slash is in the names of parts of tests.
    let begun = said.lines().filter(|line| line.starts_with("=== RUN") && !line.contains('/')).count();
    assert_eq!(
        outcomes.len(),
        begun,
        "the program ended early: {said}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    outcomes
}

#[test]
fn grocksdbs_tests_pass_over_both_libraries() {
    let test = "grocksdbs_tests_pass_over_both_libraries";
    // The build takes a minute or two of both processors.
    if scale(0, 1) == 0 {
        return Skip::because("grocksdb is built in the full form: cargo xtask test --all").announce(test);
    }
    let (module, library) = match (place("grocksdb"), theirs()) {
        (Ok(module), Ok(library)) => (module, library),
        (Err(skip), _) | (_, Err(skip)) => return skip.announce(test),
    };
    let dir = tempfile::tempdir().unwrap();
    let (program, others) = (dir.path().join("grocksdb.test"), dir.path().join("rocksdb"));
    std::fs::create_dir(&others).unwrap();
    std::os::unix::fs::symlink(library, others.join("librocksdb.so")).unwrap();
    let own = dir.path().join("ashlardb");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::symlink(ours(), own.join("librocksdb.so")).unwrap();
    build(&module, &own, &program);
    let (there, here) = (outcomes(&program, &others), outcomes(&program, &own));
    let passes = |tests: &BTreeMap<String, bool>| tests.values().filter(|passes| **passes).count();
    for (name, passes) in there.iter().filter(|(_, passes)| **passes) {
        assert_eq!(here.get(name), Some(&(*passes && !differs(name))), "{name}");
    }
    figure(&format!(
        "grocksdb 1.11.1: of its {} tests {} pass over RocksDB 11.8.1, {} here",
        there.len(),
        passes(&there),
        passes(&here)
    ));
}

/// What the program of Python prints over a library.
fn python(library: &Path) -> String {
    let data = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/smoke.py");
    let mut run = Command::new("python3");
    let done =
        run.arg(program).arg(library).arg(data.path()).env("ASHLARDB_CHECK_HANDLES", "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{}: {said}", done.status);
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn python_gets_the_same_over_both_libraries() {
    let test = "python_gets_the_same_over_both_libraries";
    if Command::new("python3").arg("--version").output().is_err() {
        return Skip::because("python3 is not installed: apt-get install python3").announce(test);
    }
    let here = python(&ours());
    assert!(here.ends_with("end\n"), "{here}");
    match theirs() {
        Ok(library) => assert_eq!(python(&library), here),
        Err(skip) => skip.announce(test),
    }
}
