//! The crate `rocksdb`, RocksDB's binding for Rust: its own tests over both libraries.
//!
//! The crate is built once, linked to our library. Each test runs in a process of its own, because some end their process.

use crate::compiled::{ours, theirs};
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::{figure, scale};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tests that pass over RocksDB and not here, by a part of their names, and why.
const DIFFERENT: [(&str, &str); 15] = [
    ("_with_ts", "keys with timestamps are refused"),
    ("test_iterator_user_defined_timestamp", "keys with timestamps are refused"),
    ("test_full_history_ts_low", "keys with timestamps are refused"),
    ("log_size_zero_forces_flush", "the WAL file of a checkpoint is not empty"),
    ("test_comparator_lifetime", "a flush compares the only key with itself"),
    ("test_enable_and_disable_file_deletions", "files are removed in the background"),
    ("test_full_iterator", "the hash memtable of RocksDB hides keys from a full scan"),
    ("transaction_db_memory_usage", "an empty cache has no memory yet"),
    ("get_with_cache_and_bulkload", "indexes and filters are not in the cache"),
    ("test_add_compact_on_deletion_collector_factory", THE_LOG),
    ("test_block_based_options", THE_LOG),
    ("test_crc32_build", THE_LOG),
    ("test_set_data_block_index_type", THE_LOG),
    ("test_set_experimental_mempurge_threshold", THE_LOG),
    ("jemalloc_init", THE_LOG),
];
const THE_LOG: &str = "the LOG lists only settings with an effect, and nothing of the build";

fn differs(test: &str) -> bool {
    DIFFERENT.iter().any(|(name, _)| test.contains(name))
}

/// Builds the tests of the crate, and returns the programs.
fn build(module: &Path) -> Vec<PathBuf> {
    let libraries = module.join("lib");
    std::fs::create_dir_all(&libraries).unwrap();
    let link = libraries.join("librocksdb.so");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(ours(), link).unwrap();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(module).args(["test", "--no-run", "--no-default-features", "--features"]);
    cargo.arg("bindgen-runtime").env("ROCKSDB_LIB_DIR", &libraries).env("CARGO_PROFILE_TEST_DEBUG", "0");
    let built = cargo.env("CARGO_TARGET_DIR", module.join("target")).output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    let programs = said.lines().filter_map(|line| line.trim().strip_prefix("Executable ")?.split_once('('));
    programs.map(|(_, path)| module.join(path.trim_end_matches(')'))).collect()
}

/// Each test of the programs over the library in `libraries`, and whether it passes.
fn outcomes(programs: &[PathBuf], libraries: &Path) -> BTreeMap<String, bool> {
    let data = tempfile::tempdir().unwrap();
    let run = |program: &Path, words: &[&str]| {
        let mut test = Command::new("timeout");
        test.args(["60"]).arg(program).args(words).current_dir(data.path());
        test.env("TMPDIR", data.path()).env("LD_LIBRARY_PATH", libraries).output().unwrap()
    };
    let mut outcomes = BTreeMap::new();
    for program in programs {
        let file = program.file_name().unwrap().to_string_lossy().into_owned();
        let name = file.rsplit_once('-').unwrap().0;
        let listed = run(program, &["--list"]);
        for test in String::from_utf8_lossy(&listed.stdout).lines() {
            // Those with this word in the name call the compiler.
            let Some(test) = test.strip_suffix(": test").filter(|test| !test.contains("outlive")) else {
                continue;
            };
            let passes = run(program, &["--exact", test]).status.success();
            outcomes.insert(format!("{name} {test}"), passes);
        }
    }
    outcomes
}

#[test]
fn the_tests_of_the_crate_rocksdb_pass_over_both_libraries() {
    let test = "the_tests_of_the_crate_rocksdb_pass_over_both_libraries";
    // The build takes a minute or two of both processors.
    if scale(0, 1) == 0 {
        let why = "the crate rocksdb is built in the full form: cargo xtask test --all";
        return Skip::because(why).announce(test);
    }
    let (module, library) = match (place("crate-rocksdb"), theirs()) {
        (Ok(module), Ok(library)) => (module, library),
        (Err(skip), _) | (_, Err(skip)) => return skip.announce(test),
    };
    let programs = build(&module);
    let others = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(library, others.path().join("librocksdb.so")).unwrap();
    let (there, here) = (outcomes(&programs, others.path()), outcomes(&programs, &module.join("lib")));
    let passing = |tests: &BTreeMap<String, bool>| tests.values().filter(|passes| **passes).count();
    let unlike = there.iter().filter(|(name, passes)| **passes && here.get(*name) != Some(&!differs(name)));
    let unlike: Vec<_> = unlike.map(|(name, _)| name).collect();
    assert!(unlike.is_empty(), "pass here or fail here against the list: {unlike:?}");
    assert!(passing(&there) > 150, "{there:?}");
    figure(&format!(
        "the crate rocksdb 0.25.0: of its {} tests {} pass over RocksDB 11.8.1, {} here",
        there.len(),
        passing(&there),
        passing(&here)
    ));
}
