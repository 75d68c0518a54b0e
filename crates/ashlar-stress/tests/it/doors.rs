//! Killed writers behind the doors of C and Java: the same program over RocksDB's library and ours, checked by the engine.

use ashlar_stress::torture::Door;
use ashlar_stress::{Budget, Report, torture};
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::{figure, scale, skipped};
use std::path::{Path, PathBuf};
use std::process::Command;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doors").join(name)
}

/// A library that cargo built beside the tests.
fn built(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests.parent().unwrap().join(name);
    assert!(library.exists(), "{} is not built", library.display());
    library
}

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Some cases through a door. Nothing may be found.
fn kills(what: &str, door: &Door) {
    let mut budget = Budget::quick();
    budget.threads = 2;
    let report: Report = torture::run(&budget, Some(door));
    for why in &report.skipped {
        skipped(&format!("torture through {what}"), why);
    }
    assert!(report.failures.is_empty(), "{what}: {report}");
    assert!(report.figures["kills"] >= 10 && report.figures["writes acknowledged"] > 100, "{what}: {report}");
    figure(&format!("torture through {what}: {}", report.line()));
}

/// The command of the program of C over a library.
fn door_of_c(library: &Path, folder: &Path) -> Door {
    let program = folder.join("torture");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
    cc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../ashlar-capi/include"));
    cc.arg(source("torture.c")).arg("-o").arg(&program).arg(library);
    cc.args(["-Wl,--allow-shlib-undefined,--no-as-needed"]);
    done(cc.arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display())));
    Door::new([program.to_string_lossy().into_owned()])
}

#[test]
fn writers_in_c_lose_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    kills("C", &door_of_c(&built("librocksdb.so"), folder.path()));
    // RocksDB's own library, which shows that the program and the rig are fair.
    match place("rocksdb-11.8.1") {
        Ok(library) => kills("C over RocksDB", &door_of_c(&library, folder.path())),
        Err(skip) => skip.announce("writers_in_c_lose_nothing_that_was_acknowledged over RocksDB"),
    }
}

/// The command of the program of Java over our native half, or over the jar's.
fn door_of_java(jar: &Path, ours: Option<&Path>, classes: &Path) -> Door {
    let path = format!("{}:{}", jar.display(), classes.display());
    let folder = |library: &Path| format!("LD_LIBRARY_PATH={}", library.parent().unwrap().display());
    let half = ours.map_or("--unset=LD_LIBRARY_PATH".to_owned(), folder);
    let temporary = format!("-Djava.io.tmpdir={}", classes.display());
    let words = ["env", &half, "java", "-Xmx256m", "-XX:+UseSerialGC", &temporary, "-cp", &path, "Torture"];
    Door::new(words.map(str::to_owned))
}

#[test]
fn writers_in_java_lose_nothing_that_was_acknowledged() {
    let test = "writers_in_java_lose_nothing_that_was_acknowledged";
    // Each round starts a JVM.
    if scale(0, 1) == 0 {
        return Skip::because("JVMs are killed in the full form: cargo xtask test --all").announce(test);
    }
    let (javac, jar) = match place("javac").and_then(|javac| Ok((javac, place("rocksdbjni-11.8.1")?))) {
        Ok(found) => found,
        Err(skip) => return skip.announce("writers_in_c_lose_nothing_that_was_acknowledged over RocksDB"),
    };
    let classes = tempfile::tempdir().unwrap();
    done(Command::new(javac).arg("-d").arg(classes.path()).arg("-cp").arg(&jar).arg(source("Torture.java")));
    kills("Java", &door_of_java(&jar, Some(&built("librocksdbjni.so")), classes.path()));
    kills("Java over RocksDB", &door_of_java(&jar, None, classes.path()));
}
