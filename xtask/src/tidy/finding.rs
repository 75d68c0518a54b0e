//! What a rule found, and what excuses it.

use std::fmt;

/// A broken rule at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the rule, as excuses call it.
    pub rule: &'static str,
    /// The file, relative to the checkout.
    pub path: String,
    /// The line, from 1; 0 for the whole file.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.path, self.line, self.what, self.rule)
    }
}

/// Takes the excused findings away and adds one for each idle or reasonless excuse. `excuses` is the text of the
/// exceptions file, `path` its name.
pub fn excuse(findings: Vec<Finding>, excuses: &str, path: &str) -> Vec<Finding> {
    let mut left = findings;
    for (index, line) in excuses.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let complain =
            |what: &str| Finding { rule: "excuse", path: path.into(), line: index + 1, what: what.into() };
        let parts = line.split_once(": ").and_then(|(head, reason)| {
            let (rule, file) = head.split_once(' ')?;
            (!reason.trim().is_empty()).then_some((rule, file))
        });
        let Some((rule, file)) = parts else {
            left.push(complain("an excuse reads \"RULE PATH: reason\""));
            continue;
        };
        let before = left.len();
        left.retain(|finding| finding.rule != rule || finding.path != file);
        if left.len() == before {
            left.push(complain("excuses nothing: take it out"));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excuses_take_away_their_own_and_no_more() {
        let finding = |rule, path: &str| Finding { rule, path: path.into(), line: 3, what: "w".into() };
        let list = vec![finding("file-size", "a.rs"), finding("function-size", "a.rs")];
        let left = excuse(list.clone(), "# why\n\nfile-size a.rs: a table of constants\n", "e");
        assert_eq!(left, [finding("function-size", "a.rs")]);
        let left = excuse(list.clone(), "file-size b.rs: gone\nfile-size a.rs:\n", "e");
        assert_eq!(left.iter().filter(|f| f.rule == "excuse").map(|f| f.line).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(left.len(), 4);
        assert_eq!(list[0].to_string(), "a.rs:3: w [file-size]");
    }
}
