//! `miri` and `sanitize`: checks that only a nightly compiler has.

use crate::{project, run};
use std::process::Command;
use std::time::Duration;

/// What `--help` says of `miri`.
pub const MIRI_HELP: &str = "\
usage: cargo xtask miri [PACKAGE …] [-- WORDS]

Interprets the unit tests of the crates with unsafe code (without PACKAGE: ashlar-sync, ashlar-memtable, ashlar-cache): a read
out of bounds, of freed or unwritten memory, a race or a broken borrow ends it. Slow: a quarter of an hour. WORDS go to the
tests, as in

    cargo xtask miri ashlar-format -- --skip compress --skip form_tests

which leaves out the codecs: one of them is written in C, which Miri cannot interpret.

Needs a nightly toolchain with miri and rust-src (rustup toolchain install nightly -c miri -c rust-src); without them it
says \"skipped: why\".";

/// What `--help` says of `sanitize`.
pub const SANITIZE_HELP: &str = "\
usage: cargo xtask sanitize thread|address [PACKAGE …]

Builds the standard library and the crates (without PACKAGE: ashlar-sync, ashlar-memtable, ashlar-cache, ashlardb) with the
sanitizer and runs their tests: data races that really happen, or touches of memory that is not the toucher's.

Needs a nightly toolchain with rust-src, as cargo xtask miri does; without it this chore says \"skipped: why\".";

const UNSAFE: [&str; 3] = ["ashlar-sync", "ashlar-memtable", "ashlar-cache"];
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Runs `miri`.
pub fn miri(args: &[String]) -> Result<(), String> {
    if run::quiet("cargo", &["+nightly", "miri", "--version"]).is_none() {
        println!(
            "skipped: no nightly toolchain with miri: rustup toolchain install nightly -c miri -c rust-src"
        );
        return Ok(());
    }
    let own = args.split(|word| word == "--").next().unwrap_or_default();
    let mut command = cargo("miri", &["miri", "test", "--lib"], &UNSAFE, own);
    command.args(&args[own.len()..]);
    // Epochs hold pointers that only tree borrows allow, and free what is left when the process ends: never.
    command.env("MIRIFLAGS", "-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-disable-isolation");
    watch("miri", command)
}

/// Runs `sanitize`.
pub fn sanitize(args: &[String]) -> Result<(), String> {
    let (kind, packages) = match args.split_first() {
        Some((kind, packages)) if ["thread", "address"].contains(&kind.as_str()) => (kind, packages),
        _ => return Err(SANITIZE_HELP.to_owned()),
    };
    let sysroot = run::quiet("rustc", &["+nightly", "--print", "sysroot"]).unwrap_or_default();
    let source = std::path::Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    if sysroot.is_empty() || !source.is_dir() {
        println!("skipped: no nightly toolchain with rust-src: rustup toolchain install nightly -c rust-src");
        return Ok(());
    }
    let host = run::quiet("rustc", &["+nightly", "--print", "host-tuple"]).unwrap_or_default();
    let target = format!("--target={}", host.trim());
    let own = [&UNSAFE[..], &["ashlardb"]].concat();
    let words = ["test", "-Zbuild-std", &target, "--lib", "--tests"];
    let mut command = cargo(&format!("sanitize-{kind}"), &words, &own, packages);
    command.env("RUSTFLAGS", format!("-Zsanitizer={kind}"));
    // C code is built without the sanitizer; nothing of it is shared between threads.
    command.env("TSAN_OPTIONS", "halt_on_error=1").env("ASAN_OPTIONS", "detect_leaks=0");
    watch(&format!("sanitize {kind}"), command)
}

fn cargo(folder: &str, words: &[&str], own: &[&str], chosen: &[String]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(words);
    let packages: Vec<&str> =
        if chosen.is_empty() { own.to_vec() } else { chosen.iter().map(String::as_str).collect() };
    command.args(packages.iter().flat_map(|name| ["--package", name]));
    command.arg("--target-dir").arg(project::scratch().join(folder));
    // A chore runs under the stable toolchain, whose choice would be inherited.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

fn watch(name: &str, command: Command) -> Result<(), String> {
    let logs = project::scratch().join("test-logs");
    std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let log = logs.join(format!("{}.log", name.replace(' ', "-")));
    run::watched(&command, &log, LIMIT, |line| {
        let told = ["test result", "error", "WARNING: ThreadSanitizer", "ERROR: AddressSanitizer"];
        if told.iter().any(|word| line.contains(word)) {
            println!("{line}");
        }
    })
    .map_err(|e| format!("{name}: {e}; see {}", log.display()))
}
