//! A program with many families does the same over both libraries; its figures stand side by side. `FAMILIES` sets their
//! number.

use crate::compiled::{assert_same, ours, program, run, theirs};
use ashlar_testkit::report::figure;

/// The figures of a program, in one line.
fn figures(said: &str) -> String {
    said.lines().filter_map(|line| line.strip_prefix("took ")).collect::<Vec<_>>().join("; ")
}

#[test]
fn many_families_are_made_written_and_opened_over_both_libraries() {
    let source = program("families.c");
    let here = run(&source, &ours());
    figure(&format!("many families: here {}", figures(&here)));
    match theirs() {
        Ok(library) => {
            let there = run(&source, &library);
            assert_same(&there, &here, &["took"]);
            figure(&format!("many families: RocksDB 11.8.1 {}", figures(&there)));
        }
        Err(skip) => skip.announce("many_families_are_made_written_and_opened_over_both_libraries"),
    }
}
