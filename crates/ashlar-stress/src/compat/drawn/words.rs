//! Describes the result of a case: the kinds of findings, and the differences of contents.

use super::plan::Step;
use ashlar_testkit::oracle::{State, first_difference};

/// A text without what differs from run to run.
pub(super) fn kind_of(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace().take(40) {
        let word = match word.rsplit_once('/') {
            Some((_, name)) => name,
            None => word,
        };
        for c in word.chars() {
            let c = if c.is_ascii_digit() { '#' } else { c };
            if !(c == '#' && out.ends_with('#')) {
                out.push(c);
            }
        }
        out.push(' ');
    }
    out.truncate(out.char_indices().nth(150).map_or(out.len(), |(at, _)| at));
    out.trim_end().to_owned()
}

pub(super) fn step_word(step: &Step) -> &'static str {
    match step {
        Step::Bulk(bulk) => bulk.kind.name(),
        Step::Flush(_) => "flush",
        Step::Compact(_) => "compact",
        Step::Close => "close",
        Step::Kill => "kill",
    }
}

/// Whose reading shows too little, too much, or something else.
pub(super) fn what_kind(what: &str, whose: &str) -> String {
    let how = ["lost", "too many", "other values", "families"].into_iter().find(|how| what.contains(how));
    format!("contents, {whose}: {}", how.unwrap_or("different"))
}

/// In words, where two states differ. Families that are not served are left out.
pub(super) fn difference(expected: &State, found: &State, unserved: &[String]) -> Option<String> {
    let served = |name: &&str| !unserved.iter().any(|own| own == name);
    let names: Vec<&str> = expected.names().filter(served).collect();
    if names != found.names().collect::<Vec<_>>() {
        return Some(format!("families {names:?} expected, {:?} found", found.names().collect::<Vec<_>>()));
    }
    names.into_iter().find_map(|name| {
        let (want, have) = (expected.entries(name), found.entries(name));
        let first = first_difference(&want, &have)?;
        let how = match want.len().cmp(&have.len()) {
            std::cmp::Ordering::Greater => "lost",
            std::cmp::Ordering::Less => "too many",
            std::cmp::Ordering::Equal => "other values",
        };
        Some(format!("family {name}, {how}: {} keys expected, {} found; {first}", want.len(), have.len()))
    })
}
