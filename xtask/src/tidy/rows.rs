//! Rows owed: every dependency has one in `docs/dependencies.md`, every file with `unsafe` one in `docs/unsafe.md`.

use super::finding::Finding;
use super::source::{code, words};

/// Dependencies that the workspace's manifest names and the page does not.
pub fn check_dependencies(manifest: &str, page: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.trim() == "[workspace.dependencies]";
            continue;
        }
        let Some((name, _)) = line.split_once('=').filter(|_| inside) else { continue };
        let name = name.trim();
        if !name.starts_with("ashlar") && !page.contains(&format!("| `{name}` |")) {
            let what = format!("dependency {name} has no row in docs/dependencies.md");
            findings.push(Finding { rule: "rows", path: "Cargo.toml".into(), line: index + 1, what });
        }
    }
    findings
}

/// A finding when a source file uses `unsafe` and the page does not name it.
pub fn check_unsafe(path: &str, text: &str, page: &str) -> Option<Finding> {
    let code = code(text);
    let blocks = code.lines().flat_map(words).filter(|(_, word)| *word == "unsafe").count();
    let named = page.contains(&format!("`{path}`"));
    (blocks > 0 && !named).then(|| Finding {
        rule: "rows",
        path: path.into(),
        line: 0,
        what: format!("{blocks} times unsafe and no row in docs/unsafe.md"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dependency_has_its_row() {
        let manifest = "[workspace.dependencies]\nsnap = \"1\"\nashlar-base = { path = \"x\" }\nzstd = \"1\"\n[profile.dev]\na = 1\n";
        let found = check_dependencies(manifest, "| `snap` | why |\n");
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn every_unsafe_file_has_its_row() {
        assert!(check_unsafe("a.rs", "// unsafe\n", "").is_none());
        assert!(check_unsafe("a.rs", "unsafe { f() }\n", "").is_some());
        assert!(check_unsafe("a.rs", "unsafe { f() }\n", "| `a.rs` |").is_none());
    }
}
