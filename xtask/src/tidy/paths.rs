//! Paths in backticks: those of this checkout exist, and those after `Source:` have the shape of a source file's path.

use super::finding::Finding;

/// The folders that begin a path of this checkout.
const OWN: [&str; 4] = ["crates/", "docs/", "golden/", "xtask/"];

/// Findings in the comments of a Rust file, or in a page. `exists` answers for a path relative to the checkout.
pub fn check(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let (mut findings, mut in_source) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        let said = if path.ends_with(".rs") { comment(line) } else { line };
        in_source = !said.trim().is_empty() && (in_source || said.trim_start().starts_with("Source: "));
        for word in said.split('`').skip(1).step_by(2).filter(|word| word.contains('/')) {
            let what = if OWN.iter().any(|folder| word.starts_with(folder)) {
                // A name with a placeholder stands for many files.
                let known = word.contains(['<', '*', '{', '…', ' ']) || exists(word);
                (!known).then(|| format!("there is no {word} in the checkout"))
            } else {
                let odd = in_source && !is_source_path(word);
                odd.then(|| format!("{word} is not the path of a source file or of a folder"))
            };
            findings.extend(what.map(|what| Finding {
                rule: "paths",
                path: path.into(),
                line: index + 1,
                what,
            }));
        }
    }
    findings
}

/// The text of a comment line; nothing for a line of code.
fn comment(line: &str) -> &str {
    line.trim_start().strip_prefix("//").map_or("", |rest| rest.trim_start_matches(['/', '!']))
}

/// Whether a word is shaped as `db/version_set.cc`, `include/rocksdb/{statistics,perf_level}.h` or `table/block_based/`.
fn is_source_path(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_./{},".contains(c));
    plain && [".cc", ".h", ".sh", "/"].iter().any(|end| word.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text, |name| name == "golden/sst").iter().map(|f| f.line).collect()
    }

    #[test]
    fn own_paths_exist() {
        let page = "`golden/sst`, `golden/ssst`\n`golden/<writer>/x` and `other/x`\n`crates/gone.rs`\n";
        assert_eq!(lines("a.md", page), [1, 3]);
        assert_eq!(lines("a.rs", "let a = \"`golden/none`\";\n/// `golden/none`\n"), [2]);
    }

    #[test]
    fn paths_of_a_source_are_source_files() {
        let text = "//! `a b/c`\n//!\n//! Source: RocksDB `db/wal_edit.h`, `db/blob/`, `golden/sst`,\n//! `db/Wal edit`.\n//!\n\
                    //! `x/Y`\n/// Source: RocksDB `version_set.cc/`, `db/version_set.c`.\n";
        assert_eq!(lines("a.rs", text), [4, 7]);
    }
}
