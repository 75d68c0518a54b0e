//! Lines that a test says to the runner, past the capture of passing tests' output.
//!
//! ```text
//! SKIPPED <test>: <why>     the test could not do its work here; the runner counts it as skipped, not as passed
//! FIGURE <text>             a measured line worth seeing in a green run ("judge: 20 rounds, …, 0 differences")
//! ```
//! Read by `cargo xtask test`.

use std::io::Write;

fn say(line: &str) {
    // Straight to the descriptor: `println!` would be kept back for tests that pass. One write, so that lines of
    // parallel tests do not mix. Without a reader only the line is lost.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

/// Says that `test` could not do its work here, and why. The test should return right after.
pub fn skipped(test: &str, why: &str) {
    say(&format!("SKIPPED {test}: {}", why.replace('\n', " ")));
}

/// Says a measured result in one line.
pub fn figure(text: &str) {
    say(&format!("FIGURE {}", text.replace('\n', " ")));
}

/// `quick` in an ordinary test run, `heavy` in that of `cargo xtask test --all` (`ASHLAR_HEAVY=1`).
pub fn scale(quick: usize, heavy: usize) -> usize {
    if std::env::var_os("ASHLAR_HEAVY").is_some_and(|value| value == "1") { heavy } else { quick }
}
