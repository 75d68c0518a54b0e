//! The ratchet on prose: how often each part of the project uses a word for a person where it means code.
//!
//! Comments, docs and messages name their subject: "the writer", "the flush job", "the caller". `xtask/prose-ratchet.txt`
//! holds the count that each part may have. A count above it is a finding. So is a count below it, until
//! `cargo xtask tidy --ratchet` lowers the file. Some parts must stay at zero.

use super::finding::Finding;
use super::source::{code, words};
use super::words::crate_of;
use std::collections::BTreeMap;

/// The words, each written in two halves so that this file does not use them.
const WORDS: [&str; 8] = [
    concat!("w", "ho"),
    concat!("w", "hoever"),
    concat!("w", "hom"),
    concat!("nob", "ody"),
    concat!("someb", "ody"),
    concat!("h", "e"),
    concat!("h", "is"),
    concat!("h", "im"),
];

/// Two words that count as one when the second follows the first.
const PAIR: (&str, &str) = ("is", concat!("to", "ld"));

/// Documentation comments of the crate that users add.
const RUSTDOC: &str = "rustdoc-of-ashlardb";

/// Parts in which no such word may stand, whatever the ratchet file says.
const ZERO: [&str; 3] = ["README.md", "docs", RUSTDOC];

const HEADER: &str = "\
# Words such as \"nob\u{6f}dy\" in comments, docs and messages, by part of the project: PART COUNT.
# `cargo xtask tidy` counts them; `cargo xtask tidy --ratchet` lowers this file. A count never rises.
";

/// The counts of a checkout.
#[derive(Debug, Default)]
pub struct Counts(BTreeMap<String, usize>);

impl Counts {
    /// Counts the words of one file.
    pub fn add(&mut self, path: &str, text: &str) {
        let Some(part) = part_of(path) else { return };
        let rust = path.ends_with(".rs");
        let prose = if rust { prose(text) } else { text.to_owned() };
        *self.0.entry(part).or_default() += count(&prose);
        if path.starts_with("crates/ashlardb/src/") {
            *self.0.entry(RUSTDOC.to_owned()).or_default() += count(&doc_comments(text));
        }
    }

    /// Compares the counts with the ratchet file. `ratchet` is its text, `path` its name.
    pub fn check(&self, ratchet: &str, path: &str) -> Vec<Finding> {
        let allowed = parse(ratchet);
        let mut findings = Vec::new();
        let mut finding = |what: String| {
            findings.push(Finding { rule: "prose", path: path.into(), line: 0, what });
        };
        for (part, found) in &self.0 {
            let limit = if ZERO.contains(&part.as_str()) {
                0
            } else {
                allowed.get(part).copied().unwrap_or_default()
            };
            if *found > limit {
                finding(format!(
                    "{part} uses a word such as {:?} {found} times, {limit} at most: name the subject",
                    WORDS[0]
                ));
            } else if *found < limit {
                finding(format!("{part} has {found} left of {limit}: run `cargo xtask tidy --ratchet`"));
            }
        }
        for part in allowed.keys().filter(|part| !self.0.contains_key(*part)) {
            finding(format!("there is no part {part}: run `cargo xtask tidy --ratchet`"));
        }
        findings
    }

    /// The text of the ratchet file after `old`: counts that fell are lowered, new parts are added, none rises.
    pub fn lowered(&self, old: &str) -> String {
        let allowed = parse(old);
        let rows = self.0.iter().map(|(part, found)| {
            let limit = allowed.get(part).map_or(*found, |limit| *found.min(limit));
            format!("{part} {limit}\n")
        });
        rows.fold(HEADER.to_owned(), |text, row| text + &row)
    }
}

/// The part of the project that a file belongs to; `None` for files that are not counted.
fn part_of(path: &str) -> Option<String> {
    if path.starts_with("crates/") {
        return path.ends_with(".rs").then(|| crate_of(path).to_owned());
    }
    if path.starts_with("xtask/") {
        return path.ends_with(".rs").then(|| "xtask".to_owned());
    }
    let part = if path.starts_with("docs/") { "docs" } else { path };
    path.ends_with(".md").then(|| part.to_owned())
}

fn parse(ratchet: &str) -> BTreeMap<String, usize> {
    let rows = ratchet.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| row.split_once(' '))
        .filter_map(|(part, limit)| Some((part.to_owned(), limit.trim().parse().ok()?)))
        .collect()
}

/// The comments and literals of a source file.
fn prose(text: &str) -> String {
    let code = code(text);
    let kept = text.chars().zip(code.chars()).map(|(c, code)| if code == c && c != '\n' { ' ' } else { c });
    kept.collect()
}

/// The lines of documentation comments.
fn doc_comments(text: &str) -> String {
    let is_doc = |line: &&str| ["///", "//!"].iter().any(|mark| line.trim_start().starts_with(mark));
    text.lines().filter(is_doc).fold(String::new(), |all, line| all + line + "\n")
}

/// How many of the words stand in a text.
fn count(prose: &str) -> usize {
    let mut found = 0;
    let mut before = String::new();
    for (_, word) in prose.lines().flat_map(words).filter(|(_, word)| !word.is_empty()) {
        let word = word.to_lowercase();
        if WORDS.contains(&word.as_str()) || (before == PAIR.0 && word == PAIR.1) {
            found += 1;
        }
        before = word;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_comments_and_literals_only() {
        let word = WORDS[0];
        let text = format!(
            "fn {word}() {{ {word}(\"{word}\", 'a') }}\n// {word}, w{word}\n/// It {} \n/// {}\n",
            PAIR.0, PAIR.1
        );
        let mut counts = Counts::default();
        counts.add("crates/a/src/lib.rs", &text);
        assert_eq!(counts.0["a"], 3);
        counts.add(
            "docs/a/b.md",
            &format!("{} {}\n{}, `a_{word}_b`", WORDS[3].to_uppercase(), WORDS[4], WORDS[5]),
        );
        assert_eq!(counts.0["docs"], 3);
        counts.add("crates/a/Cargo.toml", word);
        counts.add("xtask/x.txt", word);
        assert_eq!(counts.0.len(), 2);
    }

    #[test]
    fn documentation_of_the_public_crate_is_a_part_of_its_own() {
        let mut counts = Counts::default();
        counts.add("crates/ashlardb/src/a.rs", &format!("/// {0}\n// {0}\nfn a() {{}}\n", WORDS[1]));
        assert_eq!((counts.0["ashlardb"], counts.0[RUSTDOC]), (2, 1));
        let rules: Vec<_> =
            counts.check("ashlardb 2\nrustdoc-of-ashlardb 1\n", "r").into_iter().map(|f| f.what).collect();
        assert!(rules.len() == 1 && rules[0].contains("1 times, 0 at most"), "{rules:?}");
    }

    #[test]
    fn a_count_may_fall_and_not_rise() {
        let mut counts = Counts::default();
        counts.add("crates/a/src/lib.rs", &format!("// {0} {0}", WORDS[2]));
        counts.add("crates/b/src/lib.rs", "");
        let findings = |ratchet: &str| counts.check(ratchet, "r").len();
        assert_eq!(findings("# a 9\na 2\nb 0\n"), 0);
        assert_eq!(findings("a 1\nb 0\n"), 1);
        assert_eq!(findings("a 3\nb 1\ngone 0\n"), 3);
        assert_eq!(counts.lowered("a 1\nb 4\ngone 3\n"), format!("{HEADER}a 1\nb 0\n"));
        assert_eq!(counts.lowered(""), format!("{HEADER}a 2\nb 0\n"));
    }
}
