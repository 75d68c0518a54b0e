//! Finds the known word nearest to a misspelt one, for error texts.

/// The candidate with the fewest edits from `word`, if they are few enough to be a slip of the fingers.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = candidates.into_iter().map(|c| (edits(word, c), c)).min()?;
    (best.0 <= (word.chars().count() / 3).max(1)).then_some(best.1)
}

/// Levenshtein's distance, one row at a time.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let change = above[j] + usize::from(ca != *cb);
            row.push(change.min(above[j + 1] + 1).min(row[j] + 1));
        }
        above = row;
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (a, b, n) in
            [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("abc", "abc", 0), ("ab", "ba", 2)]
        {
            assert_eq!(edits(a, b), n, "{a} {b}");
            assert_eq!(edits(b, a), n, "{b} {a}");
        }
    }

    #[test]
    fn suggests_only_what_is_near() {
        let names = ["fillseq", "fillrandom", "readseq"];
        assert_eq!(nearest("fillsek", names), Some("fillseq"));
        assert_eq!(nearest("filrandom", names), Some("fillrandom"));
        assert_eq!(nearest("compact", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
