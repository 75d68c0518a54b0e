//! Layers: a crate uses crates of lower layers only (`docs/design`, `ARCHITECTURE.md`). Its tests use no crate above it.

use super::finding::Finding;

/// Each crate's layer. Programs may use the libraries of layer 6, which is below their own.
const LAYERS: [(&str, u8); 37] = [
    ("ashlar-base", 0),
    ("ashlar-sync", 0),
    ("ashlar-kernels", 0),
    ("ashlar-format", 10),
    ("ashlar-env", 10),
    ("ashlar-cache", 10),
    ("ashlar-memtable", 10),
    ("ashlar-log", 20),
    ("ashlar-table", 20),
    ("ashlar-blob", 20),
    ("ashlar-options", 21),
    ("ashlar-tree", 22),
    ("ashlar-read", 23),
    ("ashlar-compaction", 24),
    ("ashlar-observe", 25),
    ("ashlar-pressure", 25),
    ("ashlar-recovery", 25),
    ("ashlar-engine", 30),
    ("ashlar-txn", 40),
    ("ashlar-backup", 40),
    ("ashlar-repair", 40),
    ("ashlar-addons", 40),
    ("ashlardb", 50),
    ("ashlar-compat", 51),
    ("ashlar-bench", 60),
    ("ashlar-report", 60),
    ("ashlar-rigs", 60),
    ("ashlar-capi", 60),
    ("ashlar-leveldb", 61),
    ("ashlar-jni", 60),
    ("ashlar-python", 60),
    ("ashlar-cli", 70),
    ("ashlar-stress", 70),
    ("ashlar-peers", 61),
    ("ashlar-compare", 70),
    ("ashlar-linkbench", 70),
    ("ashlar-fuzz", 70),
];

/// Beside the layers: used by tests only, and knows no more than the vocabulary.
const TESTKIT: &str = "ashlar-testkit";

/// Crates that are tests: they may use the harness.
const TESTING: [&str; 3] = ["ashlar-fuzz", "ashlar-rigs", "ashlar-stress"];

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// Findings in one crate's manifest.
pub fn check(path: &str, manifest: &str) -> Vec<Finding> {
    let (mut name, mut section) = (String::new(), String::new());
    let mut findings = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim();
        if section == "package" && key == "name" {
            name = value.trim().trim_matches('"').to_owned();
            if name != TESTKIT && name != "xtask" && layer(&name).is_none() {
                findings.push(finding(
                    path,
                    index,
                    format!("{name} has no layer: give it one in xtask's list"),
                ));
            }
        }
        let used = key.split('.').next().unwrap_or_default();
        if !section.ends_with("dependencies") || !used.starts_with("ashlar") {
            continue;
        }
        if section == "dev-dependencies" && layer(used) > layer(&name) {
            findings.push(finding(
                path,
                index,
                format!("tests of {name} may not use {used}: of a higher layer"),
            ));
        }
        if section != "dev-dependencies" && !allowed(&name, used) {
            findings.push(finding(path, index, format!("{name} may not use {used}: not of a lower layer")));
        }
    }
    findings
}

fn allowed(user_name: &str, used_name: &str) -> bool {
    match (layer(user_name), layer(used_name)) {
        (Some(user), Some(used)) => used < user,
        // The programs that are tests live on the harness.
        (Some(_), None) => TESTING.contains(&user_name) && used_name == TESTKIT,
        (None, Some(used)) => user_name == TESTKIT && used == 0,
        (None, None) => false,
    }
}

fn finding(path: &str, index: usize, what: String) -> Finding {
    Finding { rule: "layers", path: path.into(), line: index + 1, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(name: &str, dependencies: &str) -> usize {
        let text = format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependencies}\n");
        check("Cargo.toml", &text).len()
    }

    #[test]
    fn downwards_only() {
        assert_eq!(
            uses("ashlar-log", "ashlar-base.workspace = true\nashlar-env = { path = \"x\" }\nsnap = \"1\""),
            0
        );
        assert_eq!(uses("ashlar-log", "ashlar-table.workspace = true"), 1, "same layer");
        assert_eq!(uses("ashlar-base", "ashlar-engine.workspace = true"), 1, "upwards");
        assert_eq!(uses("ashlar-cli", "ashlar-bench.workspace = true"), 0);
        assert_eq!(uses("ashlar-new", ""), 1, "without a layer");
    }

    #[test]
    fn tests_use_nothing_above() {
        let tests = |name: &str, used: &str| {
            let text = format!("[package]\nname = \"{name}\"\n[dev-dependencies]\n{used}.workspace = true\n");
            check("Cargo.toml", &text).len()
        };
        assert_eq!(tests("ashlar-engine", "ashlar-repair"), 1);
        assert_eq!(tests("ashlar-table", "ashlar-log"), 0, "same layer");
        assert_eq!(tests("ashlar-repair", "ashlar-engine") + tests("ashlar-engine", "ashlar-testkit"), 0);
    }

    #[test]
    fn the_harness_is_for_tests() {
        assert_eq!(uses("ashlar-engine", "ashlar-testkit.workspace = true"), 1);
        assert_eq!(uses("ashlar-testkit", "ashlar-base.workspace = true"), 0);
        assert_eq!(uses("ashlar-testkit", "ashlar-engine.workspace = true"), 1);
        let text =
            "[package]\nname = \"ashlar-engine\"\n[dev-dependencies]\nashlar-testkit.workspace = true\n";
        assert_eq!(check("Cargo.toml", text), []);
    }
}
