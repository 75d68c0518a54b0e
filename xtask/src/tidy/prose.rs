//! The ratchet on prose: how often each part of the project breaks a rule of plain English that a tool can check.
//!
//! 1. Comments, docs and messages name their subject: "the writer", "the flush job", "the caller". Words for persons count,
//!    and so do a few words and phrases of riddles ([`WORDS`], [`PAIRS`]).
//! 2. A line of a doc comment does not begin with "Of".
//! 3. A sentence of a doc comment has at most [`SENTENCE_WORDS`] words.
//!
//! `xtask/prose-ratchet.txt` holds the count that each part may have. A count above it is a finding. So is a count below it,
//! until `cargo xtask tidy --ratchet` lowers the file. Some parts must stay at zero.

use super::finding::Finding;
use super::source::{code, words};
use super::words::crate_of;
use std::collections::BTreeMap;

/// The words, each written in two halves so that this file does not use them.
const WORDS: [&str; 10] = [
    concat!("w", "ho"),
    concat!("w", "hoever"),
    concat!("w", "hom"),
    concat!("nob", "ody"),
    concat!("someb", "ody"),
    concat!("h", "e"),
    concat!("h", "is"),
    concat!("h", "im"),
    concat!("to", "ld"),
    concat!("an", "ew"),
];

/// Words that count when the second, in lower case, follows the first.
const PAIRS: [(&str, &str); 1] = [("is", concat!("no", "ne"))];

/// Three words that count when they follow each other.
const TRIPLE: [&str; 3] = ["that", "is", concat!("the", "re")];

/// The most words in a sentence of a doc comment.
const SENTENCE_WORDS: usize = 30;

/// Documentation comments of the crate that users add.
const RUSTDOC: &str = "rustdoc-of-ashlardb";

/// Parts whose limit is zero, whatever the ratchet file says.
const ZERO: [&str; 3] = ["README.md", "docs", RUSTDOC];

const HEADER: &str = "\
# Breaches of the rules of prose (xtask/src/tidy/prose.rs) in comments, docs and messages: PART COUNT.
# `cargo xtask tidy` counts them; `cargo xtask tidy --ratchet` lowers this file. A count never rises.
";

/// The counts of a checkout.
#[derive(Debug, Default)]
pub struct Counts(BTreeMap<String, usize>);

impl Counts {
    /// Counts the breaches in one file.
    pub fn add(&mut self, path: &str, text: &str) {
        let Some(part) = part_of(path) else { return };
        let rust = path.ends_with(".rs");
        let prose = if rust { prose(text) } else { text.to_owned() };
        let docs = if rust { doc_comments(text) } else { String::new() };
        *self.0.entry(part).or_default() += count(&prose) + count_docs(&docs);
        if path.starts_with("crates/ashlardb/src/") {
            *self.0.entry(RUSTDOC.to_owned()).or_default() += count(&docs) + count_docs(&docs);
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
                    "{part} breaks the rules of prose {found} times, {limit} at most: name the subject, in short sentences"
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

/// The lines of documentation comments, with an empty line after each comment.
fn doc_comments(text: &str) -> String {
    let is_doc = |line: &str| ["///", "//!"].iter().any(|mark| line.trim_start().starts_with(mark));
    text.lines()
        .map(|line| if is_doc(line) { line } else { "" })
        .fold(String::new(), |all, line| all + line + "\n")
}

/// The number of counted words and phrases in a text.
fn count(prose: &str) -> usize {
    let mut found = 0;
    let mut before = [String::new(), String::new()];
    for (_, word) in prose.lines().flat_map(words).filter(|(_, word)| !word.is_empty()) {
        let [first, second] = &before;
        // `None` is not a counted word.
        let is_pair = PAIRS.contains(&(second.as_str(), word));
        let word = word.to_lowercase();
        let is_triple = TRIPLE == [first.as_str(), second.as_str(), word.as_str()];
        if WORDS.contains(&word.as_str()) || is_pair || is_triple {
            found += 1;
        }
        before = [std::mem::take(&mut before[1]), word];
    }
    found
}

/// The number of lines of doc comments that begin with "Of", and of their sentences that are too long.
fn count_docs(docs: &str) -> usize {
    let mut found = 0;
    let mut length = 0;
    let mut is_code = false;
    let mut end = |length: &mut usize| {
        found += usize::from(*length > SENTENCE_WORDS);
        *length = 0;
    };
    let mut begun_with_of = 0;
    for line in docs.lines() {
        let text = line.trim_start().get(3..).unwrap_or_default().trim_start();
        is_code ^= text.starts_with("```");
        if is_code || text.is_empty() || text.starts_with(['|', '#', '`', '-']) || is_item(text) {
            end(&mut length);
        }
        if is_code || text.starts_with(['|', '#']) {
            continue;
        }
        begun_with_of += usize::from(text.starts_with("Of "));
        for word in text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)) {
            length += 1;
            if word.trim_end_matches([')', '"', '`', '*']).ends_with(['.', '!', '?', ':', ';']) {
                end(&mut length);
            }
        }
    }
    end(&mut length);
    found + begun_with_of
}

/// Whether a line begins an item of a numbered list.
fn is_item(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_comments_and_literals_only() {
        let word = WORDS[0];
        let text = format!(
            "fn {word}() {{ {word}(\"{word}\", 'a') }}\n// {word}, w{word}\n/// It {} \n/// {}\n",
            PAIRS[0].0, PAIRS[0].1
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

    #[test]
    fn phrases_count_across_words() {
        let [first, second, third] = TRIPLE;
        assert_eq!(count(&format!("the file {first} {second} {third}, {first} {third}")), 1);
        assert_eq!(count(&format!("{} and {}", WORDS[8], WORDS[9])), 2);
        let (first, second) = PAIRS[0];
        assert_eq!(count(&format!("it {first} {second}; it {first} `None`")), 1);
    }

    #[test]
    fn long_sentences_and_lines_that_begin_with_of_count_in_doc_comments_only() {
        let long = "word ".repeat(SENTENCE_WORDS + 1);
        let docs = |text: &str| count_docs(&doc_comments(text));
        assert_eq!(docs(&format!("/// {long}\n")), 1);
        assert_eq!(docs(&format!("// {long}\n/// ```\n/// {long}\n/// ```\n/// | {long} |\n")), 0);
        let half = "word ".repeat(SENTENCE_WORDS / 2 + 1);
        assert_eq!(docs(&format!("/// {half}\n/// {half}\n")), 1);
        for between in ["end.\n", "end; ", "\n///\n", "\nfn a() {}\n", "\n/// 2. ", "\n/// - "] {
            assert_eq!(docs(&format!("/// {half}{between}/// {half}\n")), 0, "{between:?}");
        }
        assert_eq!(docs("/// Of all.\n// Of it.\n/// Often, of all.\n"), 1);
    }
}
