//! A Rust source file with everything that is not code blanked out.
//!
//! No parser: comments, strings and characters become spaces, line by line, so that a word or a brace that is left is
//! code and stands at its place. Unit-test modules (`#[cfg(test)] mod … { … }`) can be blanked as well.

use std::ops::Range;

/// Blanks comments, string and character literals; keeps line breaks.
pub fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        if end == at + 1 {
            out.push(chars[at]);
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
        }
        at = end;
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at + 1` for any other character.
fn token_end(c: &[char], at: usize) -> usize {
    let next = |i: usize| c.get(i).copied().unwrap_or('\0');
    match (c[at], next(at + 1)) {
        ('/', '/') => (at..c.len()).find(|i| c[*i] == '\n').unwrap_or(c.len()),
        ('/', '*') => block_comment_end(c, at),
        ('"', _) => quoted_end(c, at + 1, '"'),
        ('r', '"' | '#') if !word_before(c, at) => raw_end(c, at),
        ('\'', '\\') => quoted_end(c, at + 1, '\''),
        ('\'', _) if next(at + 2) == '\'' => at + 3,
        _ => at + 1,
    }
}

fn word_before(c: &[char], at: usize) -> bool {
    // `br"…"` is raw too: its b stays, harmlessly, as a word of its own.
    at > 0 && (c[at - 1].is_alphanumeric() || c[at - 1] == '_') && c[at - 1] != 'b'
}

fn block_comment_end(c: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < c.len() {
        match (c[at], c.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(c.len())
}

fn quoted_end(c: &[char], mut at: usize, quote: char) -> usize {
    while at < c.len() && c[at] != quote {
        at += if c[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(c.len())
}

fn raw_end(c: &[char], at: usize) -> usize {
    let hashes = c[at + 1..].iter().take_while(|x| **x == '#').count();
    let open = at + 1 + hashes;
    if c.get(open) != Some(&'"') {
        return at + 1; // r#name
    }
    let close = |i: &usize| {
        c[*i] == '"' && c[i + 1..].iter().take_while(|x| **x == '#').take(hashes).count() == hashes
    };
    (open + 1..c.len()).find(close).map_or(c.len(), |i| i + 1 + hashes)
}

/// Blanks unit-test modules in text that [`code`] made.
pub fn without_tests(code: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(code.len()), 0);
    for test in tests(code) {
        out.push_str(&code[at..test.start]);
        out.extend(code[test.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        at = test.end;
    }
    out + &code[at..]
}

/// Lines of text that [`code`] made outside of its unit-test modules.
pub fn lines_without_tests(code: &str) -> usize {
    let inside: usize = tests(code).into_iter().map(|test| code[test].matches('\n').count()).sum();
    code.lines().count() - inside
}

/// The unit-test modules in text that [`code`] made.
fn tests(code: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(ahead) = code[at..].find("#[cfg(test)]") {
        let start = at + ahead;
        at = start + item_end(&code[start..]);
        found.push(start..at);
    }
    found
}

/// Where the item that begins the text ends: after its braces, or at a `;` before any.
fn item_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Every word (letters, digits, `_`) of a line of code with the byte it begins at.
pub fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    line.split(move |c| !is_word(c)).map(move |word| {
        let begin = at;
        let step = line[begin + word.len()..].chars().next().map_or(0, char::len_utf8);
        at = begin + word.len() + step;
        (begin, word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_what_is_no_code() {
        let text = "let a = \"unsafe {\"; // unsafe\n/* { /* nested */ } */ let b = '{'; let c: &'a str = r#\"}\"# ;\nlet d = '\\''; b\"}\";";
        let code = code(text);
        assert!(!code.contains("unsafe") && !code.contains('{') && !code.contains('}'), "{code}");
        assert!(code.contains("&'a str") && code.lines().count() == 3);
        assert_eq!(super::code("r#type \u{e9} 'x'"), "r#type \u{e9}    ");
    }

    #[test]
    fn blanks_unit_tests_only() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { } }\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}";
        let left = without_tests(code);
        assert!(left.contains("fn a") && left.contains("fn c") && left.contains("fn d"));
        assert!(!left.contains("fn b") && !left.contains("more") && left.lines().count() == 7);
    }

    #[test]
    fn lines_of_unit_tests_are_not_counted() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n\n    fn b() {}\n}\n\nfn c() {}\n";
        assert_eq!((code.lines().count(), lines_without_tests(code)), (8, 4));
    }

    #[test]
    fn words_know_their_place() {
        let found: Vec<_> = words("a.bc(d_1)").filter(|(_, w)| !w.is_empty()).collect();
        assert_eq!(found, [(0, "a"), (2, "bc"), (5, "d_1")]);
    }
}
