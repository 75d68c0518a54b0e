//! The counts that are committed, and how those of today compare.
//!
//! ```text
//! # …                           a comment
//! compiler rustc 1.90.0 (…)     what the counts depend on: others are not compared
//! counted by …, on …            what they hardly depend on
//! get_cached 1234.5 8.0         a case, its instructions and locked instructions per operation
//! ```
//! More instructions than the tolerance fail. Fewer are reported, so that a gain is recorded and kept.

use crate::profile::Counts;
use std::fmt::Write;

/// Times above which a count fails: the hash tables of the standard library, for one, differ from run to run.
const TOLERANCE: f64 = 1.04;
/// Instructions that make no difference to a case of few.
const SLACK: f64 = 3.0;
/// Locked instructions that make no difference.
const LOCKED_SLACK: f64 = 0.5;

const HEAD: &str = "\
# What an operation of each case of `cargo xtask bench` takes: instructions, and those of them that lock a cache line.
# `cargo xtask test --all` compares them; `REWRITE=1 cargo xtask bench --counts` writes them anew: review the difference.
";

/// A file of counts.
#[derive(Debug, Default, PartialEq)]
pub struct File {
    /// Which compiler the counts come from.
    pub compiler: String,
    /// By which valgrind, on which processor.
    pub counted: String,
    pub counts: Vec<(String, Counts)>,
}

impl File {
    /// What does not parse is left out.
    pub fn parse(text: &str) -> File {
        let mut file = File::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(' ') {
                Some(("compiler", rest)) => file.compiler = rest.to_owned(),
                Some(("counted", rest)) => file.counted = rest.to_owned(),
                Some((name, rest)) => {
                    let mut numbers = rest.split_whitespace().filter_map(|number| number.parse().ok());
                    if let (Some(instructions), Some(locked)) = (numbers.next(), numbers.next()) {
                        file.counts.push((name.to_owned(), Counts { instructions, locked }));
                    }
                }
                None => {}
            }
        }
        file
    }

    /// As it is stored.
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}compiler {}\ncounted {}\n", self.compiler, self.counted);
        for (name, counts) in &self.counts {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} {:.1} {:.1}", counts.instructions, counts.locked);
        }
        text
    }
}

/// How a count compares with the committed one.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Same,
    /// Fewer: what to say.
    Less(String),
    /// More, or a case that has no committed count: why that fails.
    Wrong(String),
}

/// Compares the counts of `name`.
pub fn compare(name: &str, committed: Option<Counts>, found: Counts) -> Verdict {
    let Some(committed) = committed else { return Verdict::Wrong(format!("{name}: no count is committed")) };
    let above =
        |found: f64, committed: f64, slack: f64| found > committed * TOLERANCE && found > committed + slack;
    let said = format!(
        "{name}: {:.1} instructions per operation, {:.1} locked; committed {:.1} and {:.1}",
        found.instructions, found.locked, committed.instructions, committed.locked
    );
    if above(found.instructions, committed.instructions, SLACK)
        || above(found.locked, committed.locked, LOCKED_SLACK)
    {
        return Verdict::Wrong(said);
    }
    if above(committed.instructions, found.instructions, SLACK)
        || above(committed.locked, found.locked, LOCKED_SLACK)
    {
        return Verdict::Less(said);
    }
    Verdict::Same
}

#[cfg(test)]
#[allow(dead_code, unused_imports, reason = "tests/it runs them; the benchmark has no harness")]
mod tests {
    use super::*;

    const fn counts(instructions: f64, locked: f64) -> Counts {
        Counts { instructions, locked }
    }

    #[test]
    fn more_than_the_tolerance_fails_and_less_is_told() {
        let of = |found| compare("get", Some(counts(1000.0, 8.0)), found);
        for same in [counts(1000.0, 8.0), counts(1039.0, 8.4), counts(970.0, 7.6)] {
            assert_eq!(of(same), Verdict::Same, "{same:?}");
        }
        for wrong in [counts(1041.0, 8.0), counts(1000.0, 9.0), counts(900.0, 9.0)] {
            assert!(matches!(of(wrong), Verdict::Wrong(_)), "{wrong:?}");
        }
        assert_eq!(
            of(counts(900.0, 7.0)),
            Verdict::Less(
                "get: 900.0 instructions per operation, 7.0 locked; committed 1000.0 and 8.0".into()
            )
        );
        assert_eq!(compare("few", Some(counts(20.0, 0.0)), counts(22.0, 0.4)), Verdict::Same);
        assert_eq!(
            compare("new", None, counts(1.0, 0.0)),
            Verdict::Wrong("new: no count is committed".into())
        );
    }

    #[test]
    fn a_file_comes_back() {
        let file = File {
            compiler: "rustc 1.90.0".into(),
            counted: "by valgrind-3.19.0, on x86_64, a processor".into(),
            counts: vec![("get".into(), counts(12.5, 2.0)), ("put".into(), counts(7.0, 0.0))],
        };
        assert_eq!(File::parse(&file.text()), file);
        assert_eq!(File::parse("# x\n\nget\nput x\n"), File::default());
    }
}
