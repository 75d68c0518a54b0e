//! What test programs print, counted.
//!
//! ```text
//! test result: ok. 5 passed; 0 failed; 1 ignored; …     libtest's own line
//! ---- the::test stdout ---- … failures:                 what a failed test printed, down to its backtrace
//! SKIPPED <test>: <why>     FIGURE <text>               ashlar_testkit::report's lines, anywhere in a line
//! error: test failed, to rerun pass `…`                 cargo's line after a program that failed, or died without a summary
//! ```
//! A test that says SKIPPED is passed to libtest; here it is skipped.

use std::collections::VecDeque;

/// Sums over any number of test programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that did their work.
    pub passed: i64,
    /// Tests that found something, and checks and builds that failed.
    pub failed: usize,
    /// What failed tests said, shortened.
    pub failures: Vec<String>,
    /// Why tests could not do their work, one line per test.
    pub skipped: Vec<String>,
    /// Measured lines.
    pub figures: Vec<String>,
    /// Lines that the failed test whose output is being read may still say.
    saying: usize,
    /// The newest lines of the running test program that do not report a passed test.
    newest: VecDeque<String>,
    /// The running test program has printed its summary.
    is_summed: bool,
}

/// So many lines of a failed test are repeated at the end.
const LINES_OF_A_FAILURE: usize = 30;

/// So many lines of a program that died are repeated at the end.
const LINES_BEFORE_A_DEATH: usize = 12;

impl Tally {
    /// Reads one line of output.
    pub fn read(&mut self, line: &str) {
        self.read_failure(line);
        self.read_death(line);
        if let Some(counts) = line.trim_start().strip_prefix("test result: ") {
            self.passed += i64::try_from(count(counts, " passed")).unwrap_or(0);
            self.failed += count(counts, " failed");
            for _ in 0..count(counts, " ignored") {
                self.skipped.push("an ignored test".into());
            }
        } else if let Some((_, what)) = line.split_once("SKIPPED ") {
            self.skipped.push(what.to_owned());
            // libtest counts it as passed, in a line that follows.
            self.passed -= 1;
        } else if let Some((_, what)) = line.split_once("FIGURE ") {
            self.figures.push(what.to_owned());
        }
    }

    fn read_failure(&mut self, line: &str) {
        if let Some(test) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.failures.push(test.to_owned());
            self.saying = LINES_OF_A_FAILURE;
        } else if line == "failures:" || line.starts_with("stack backtrace:") {
            self.saying = 0;
        } else if let Some(left) = self.saying.checked_sub(1).filter(|_| !line.is_empty()) {
            self.saying = left;
            self.failures.push(format!("  {line}"));
        }
    }

    /// A program that dies prints no summary: its last lines are all that is known of the fault.
    fn read_death(&mut self, line: &str) {
        if line.trim_start().starts_with("Running ") {
            self.newest.clear();
            self.is_summed = false;
        }
        self.is_summed |= line.starts_with("test result: ");
        if !line.is_empty() && !line.ends_with(" ... ok") {
            if self.newest.len() == LINES_BEFORE_A_DEATH {
                self.newest.pop_front();
            }
            self.newest.push_back(line.to_owned());
        }
        if line.starts_with("error: test failed") && !self.is_summed {
            self.failed += 1;
            self.failures.push("a program that died; its last lines:".to_owned());
            self.failures.extend(self.newest.drain(..).map(|line| format!("  {line}")));
        } else if line.contains("process didn't exit successfully") {
            self.failures.push(format!("  {}", line.trim()));
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.skipped.extend(other.skipped);
        self.figures.extend(other.figures);
    }

    /// The line everything ends with.
    pub fn line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed.max(0), self.failed, self.skipped.len())
    }
}

fn count(text: &str, word: &str) -> usize {
    let before = text.split_once(word).map_or("", |(before, _)| before);
    before.rsplit([' ', ';']).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_moves_skipped_tests_over() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a ... SKIPPED a: no rocksdb-7.8.3: not root",
            "test b ... ok",
            "---- a::b stdout ----",
            "",
            "panicked at here:",
            "left is not right",
            "stack backtrace:",
            "   0: main",
            "---- c stdout ----",
            "panicked at there",
            "",
            "failures:",
            "    c",
            "FIGURE judge: 20 rounds, 0 differences",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.46s",
            "test result: FAILED. 22 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.46s",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.line(), "24 passed, 2 failed, 2 skipped");
        let said = ["a::b", "  panicked at here:", "  left is not right", "c", "  panicked at there"];
        assert_eq!(tally.failures, said);
        assert_eq!(tally.figures, ["judge: 20 rounds, 0 differences"]);
        let mut sum = Tally { passed: 1, ..Tally::default() };
        sum.add(tally);
        assert_eq!(sum.line(), "25 passed, 2 failed, 2 skipped");
    }

    #[test]
    fn a_program_that_dies_counts_and_leaves_its_last_lines() {
        let mut tally = Tally::default();
        for line in [
            "     Running tests/it/main.rs (deps/it-1)",
            "test first ... ok",
            "malloc(): invalid size",
            "error: test failed, to rerun pass `-p some --test it`",
            "",
            "Caused by:",
            "  process didn't exit successfully: `deps/it-1` (signal: 6, SIGABRT: process abort signal)",
            "     Running tests/it/main.rs (deps/it-2)",
            "HANG: rel sweep --replay=3-4",
            "error: test failed, to rerun pass `-p other --test it`",
            "     Running tests/it/main.rs (deps/it-3)",
            "---- c stdout ----",
            "panicked at there",
            "failures:",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.46s",
            "error: test failed, to rerun pass `-p third --test it`",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.line(), "3 passed, 3 failed, 0 skipped");
        let died = "a program that died; its last lines:";
        let said = [
            died,
            "       Running tests/it/main.rs (deps/it-1)",
            "  malloc(): invalid size",
            "  error: test failed, to rerun pass `-p some --test it`",
            "  process didn't exit successfully: `deps/it-1` (signal: 6, SIGABRT: process abort signal)",
            died,
            "       Running tests/it/main.rs (deps/it-2)",
            "  HANG: rel sweep --replay=3-4",
            "  error: test failed, to rerun pass `-p other --test it`",
            "c",
            "  panicked at there",
        ];
        assert_eq!(tally.failures, said);
    }
}
