//! What test programs print, counted.
//!
//! ```text
//! test result: ok. 5 passed; 0 failed; 1 ignored; …     libtest's own line
//! SKIPPED <test>: <why>     FIGURE <text>               ashlar_testkit::report's lines, anywhere in a line
//! ```
//! A test that says SKIPPED is passed to libtest; here it is skipped.

/// Sums over any number of test programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that did their work.
    pub passed: i64,
    /// Tests that found something, and checks and builds that failed.
    pub failed: usize,
    /// Why tests could not do their work, one line per test.
    pub skipped: Vec<String>,
    /// Measured lines.
    pub figures: Vec<String>,
}

impl Tally {
    /// Reads one line of output.
    pub fn read(&mut self, line: &str) {
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

    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
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
            "FIGURE judge: 20 rounds, 0 differences",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.46s",
            "test result: FAILED. 22 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.46s",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.line(), "24 passed, 2 failed, 2 skipped");
        assert_eq!(tally.figures, ["judge: 20 rounds, 0 differences"]);
        let mut sum = Tally { passed: 1, ..Tally::default() };
        sum.add(tally);
        assert_eq!(sum.line(), "25 passed, 2 failed, 2 skipped");
    }
}
