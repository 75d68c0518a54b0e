//! Words that must not stand in the code: unfinished work, switched-off tests, `unsafe` outside its crates, names that
//! name nothing, folders of one machine.

use super::finding::Finding;
use super::source::{code, words};

/// The only crates where `unsafe` may appear.
pub const STARRED: [&str; 11] = [
    "ashlar-sync",
    "ashlar-kernels",
    "ashlar-env",
    "ashlar-cache",
    "ashlar-memtable",
    "ashlar-testkit",
    "ashlar-capi",
    "ashlar-jni",
    "ashlar-python",
    "ashlar-ffi",
    "ashlar-compare",
];

/// The crate a path belongs to.
pub fn crate_of(path: &str) -> &str {
    path.strip_prefix("crates/")
        .and_then(|rest| rest.split('/').next())
        .unwrap_or(path.split('/').next().unwrap_or(""))
}

/// Findings in one Rust source file.
pub fn check_source(path: &str, text: &str) -> Vec<Finding> {
    let finding = |rule, line, what: String| Finding { rule, path: path.into(), line, what };
    let mut findings = Vec::new();
    let starred = STARRED.contains(&crate_of(path));
    for (index, line) in code(text).lines().enumerate() {
        let at = index + 1;
        for (begin, word) in words(line) {
            let called = line[begin + word.len()..].starts_with('!');
            let opened = line[..begin].ends_with("#[");
            match word {
                "todo" | "unimplemented" if called => {
                    findings.push(finding(
                        "unfinished",
                        at,
                        format!("{word}!: build it, or answer NotSupported"),
                    ));
                }
                "dbg" if called => findings.push(finding("unfinished", at, "dbg!".into())),
                "ignore" if opened => {
                    findings.push(finding("switched-off", at, "#[ignore]: a test runs or is deleted".into()));
                }
                "unsafe" if !starred => {
                    findings.push(finding("unsafe", at, format!("unsafe in {}", crate_of(path))));
                }
                _ => {}
            }
        }
    }
    let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    for name in [stem, folder] {
        if ["utils", "util", "common", "helpers", "helper", "misc"].contains(&name) {
            findings.push(finding("names", 0, format!("a module named {name}: name the thing")));
        }
    }
    findings
}

/// Beginnings of paths that exist on one machine only. Put together here so that this file does not name them.
const MACHINE: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/tmp/tar", "get"),
];

/// Findings in any text file.
pub fn check_text(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for place in MACHINE {
            // A longer path may contain such a part in its middle, which does not count.
            let hit = line.match_indices(place).any(|(at, _)| {
                !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "._-})*".contains(c))
            });
            if hit {
                let what = format!("a path of one machine: {place}…");
                findings.push(Finding { rule: "machine-path", path: path.into(), line: index + 1, what });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        check_source(path, text).into_iter().map(|f| (f.rule, f.line)).collect()
    }

    #[test]
    fn unfinished_work_is_found_in_code_only() {
        let text = "fn a() { todo!() }\n// todo!()\nlet s = \"dbg!\";\n#[ignore]\n#[ignore = \"slow\"]\nlet ignore = dbg!(1);\n";
        let found = [("unfinished", 1), ("switched-off", 4), ("switched-off", 5), ("unfinished", 6)];
        assert_eq!(rules("crates/ashlar-base/src/x.rs", text), found);
    }

    #[test]
    fn unsafe_has_its_crates() {
        let text = "// unsafe\nlet unsafe_code = 1;\nunsafe { f() }\n";
        assert_eq!(rules("crates/ashlar-engine/src/x.rs", text), [("unsafe", 3)]);
        assert_eq!(rules("crates/ashlar-env/src/os/x.rs", text), []);
        assert_eq!(rules("xtask/src/x.rs", text), [("unsafe", 3)]);
    }

    #[test]
    fn modules_are_named_for_what_they_hold() {
        assert_eq!(rules("crates/ashlar-engine/src/utils.rs", ""), [("names", 0)]);
        assert_eq!(rules("crates/ashlar-engine/src/common/mod.rs", ""), [("names", 0)]);
        assert_eq!(rules("crates/ashlar-engine/src/commons.rs", ""), []);
    }

    #[test]
    fn paths_of_one_machine_are_told() {
        let bad = format!("see {}main\n../{}x\n\"{}u\"", MACHINE[0], &MACHINE[0][1..], MACHINE[2]);
        let lines: Vec<_> = check_text("a.md", &bad).into_iter().map(|f| f.line).collect();
        assert_eq!(lines, [1, 3]);
    }
}
