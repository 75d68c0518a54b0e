//! Sizes: a file has at most 800 lines, a function at most 70; unit tests over 150 lines have a file of their own. A
//! crate has at most 14,000 lines outside tests: a larger one holds two ideas, and is cut between them.

use super::finding::Finding;
use super::source::{code, lines_without_tests, without_tests, words};
use std::collections::BTreeMap;

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
const INLINE_TEST_LINES: usize = 150;
const CRATE_LINES: usize = 14_000;

/// The lines outside tests of every crate.
#[derive(Default)]
pub struct CrateLines(BTreeMap<String, usize>);

impl CrateLines {
    /// Adds a source file that is no test; a file outside of `crates/*/src` counts for no crate.
    pub fn add(&mut self, path: &str, text: &str) {
        let Some((name, _)) = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")) else {
            return;
        };
        *self.0.entry(name.to_owned()).or_default() += lines_without_tests(&code(text));
    }

    /// The crates that are too large.
    pub fn check(&self) -> Vec<Finding> {
        let large = self.0.iter().filter(|(_, lines)| **lines > CRATE_LINES);
        let finding = |(name, lines): (&String, &usize)| Finding {
            rule: "crate-size",
            path: format!("crates/{name}"),
            line: 0,
            what: format!("{lines} lines outside tests, {CRATE_LINES} at most"),
        };
        large.map(finding).collect()
    }
}

/// Findings in one source file. `test_file` = all of it is tests: only the file's length counts.
pub fn check(path: &str, text: &str, test_file: bool) -> Vec<Finding> {
    let finding = |rule, line, what| Finding { rule, path: path.into(), line, what };
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES {
        findings.push(finding("file-size", 0, format!("{lines} lines, {FILE_LINES} at most")));
    }
    if test_file {
        return findings;
    }
    let code = code(text);
    let shipped = without_tests(&code);
    let tests = code.lines().zip(shipped.lines()).filter(|(all, left)| all.trim() != left.trim()).count();
    if tests > INLINE_TEST_LINES {
        findings.push(finding(
            "inline-tests",
            0,
            format!("{tests} lines of unit tests: move them to tests.rs"),
        ));
    }
    for (name, line, length) in functions(&shipped) {
        if length > FUNCTION_LINES {
            let what = format!("function {name} has {length} lines, {FUNCTION_LINES} at most");
            findings.push(finding("function-size", line, what));
        }
    }
    findings
}

/// Name, first line (from 1) and length of every function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    let starts: Vec<usize> =
        std::iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of = |at: usize| starts.partition_point(|start| *start <= at);
    let mut after_fn = None;
    for (at, word) in words(code).filter(|(_, word)| !word.is_empty()) {
        match after_fn.take() {
            // A name follows directly; `fn(` is a type.
            Some(begin) if code[begin + 2..at].trim().is_empty() => {
                if let Some(end) = body_end(&code[at..]) {
                    let first = line_of(begin);
                    found.push((word.to_owned(), first, line_of(at + end) - first + 1));
                }
            }
            _ => {}
        }
        if word == "fn" {
            after_fn = Some(at);
        }
    }
    found
}

/// Where the body that follows a signature closes; `None` when a `;` comes first.
fn body_end(text: &str) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && others == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        check("x.rs", text, false).into_iter().map(|f| f.rule).collect()
    }

    fn function(lines: usize) -> String {
        format!("fn long(f: fn(u8) -> u8, a: [u8; 3])\nwhere\n{}{{\n}}\n", "    //\n".repeat(lines - 4))
    }

    #[test]
    fn functions_fit_a_screen() {
        assert_eq!(rules(&function(70)), [""; 0]);
        assert_eq!(rules(&function(71)), ["function-size"]);
        assert_eq!(rules(&format!("trait T {{\n    fn declared(&self);\n{}}}\n", function(30))), [""; 0]);
        let code = code(&format!("struct A;\n{}", function(12)));
        assert_eq!(functions(&code), [("long".to_owned(), 2, 12)]);
    }

    #[test]
    fn unit_tests_do_not_count_as_functions_but_may_not_be_long() {
        let tests =
            |lines| format!("#[cfg(test)]\nmod tests {{\nfn f() {{\n{}}}\n}}\n", "a();\n".repeat(lines));
        assert_eq!(rules(&tests(100)), [""; 0]);
        assert_eq!(rules(&tests(160)), ["inline-tests"]);
        assert_eq!(check("tests.rs", &tests(160), true), []);
    }

    #[test]
    fn crates_have_an_end() {
        let mut lines = CrateLines::default();
        lines.add("crates/a/src/x.rs", &"//\n".repeat(13_998));
        lines.add("crates/a/tests/it/main.rs", "//\n");
        lines.add("crates/b/src/y.rs", "//\n");
        lines.add("crates/a/src/y.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\nfn g() {}\n}\n");
        assert_eq!(lines.check(), []);
        lines.add("crates/a/src/z.rs", "//\n");
        let found: Vec<_> = lines.check().into_iter().map(|f| (f.rule, f.path, f.what)).collect();
        let what = "14001 lines outside tests, 14000 at most".to_owned();
        assert_eq!(found, [("crate-size", "crates/a".to_owned(), what)]);
    }

    #[test]
    fn files_have_an_end() {
        assert_eq!(rules(&"//\n".repeat(800)), [""; 0]);
        assert_eq!(rules(&"//\n".repeat(801)), ["file-size"]);
    }
}
