//! Module order: a module may use only modules listed above it in its crate's `lib.rs`.

use super::finding::Finding;
use super::source::{code, without_tests, words};

/// The modules that `lib.rs` declares, in order.
pub fn modules(lib: &str) -> Vec<String> {
    let code = code(lib);
    let declared = code.lines().filter_map(|line| {
        let line = line.trim();
        let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
        rest.strip_prefix("mod ")?.strip_suffix(';')
    });
    declared.map(|name| name.trim().to_owned()).collect()
}

/// Findings in one file of the module `module`.
pub fn check(path: &str, text: &str, module: &str, order: &[String]) -> Vec<Finding> {
    let finding = |line, what| Finding { rule: "module-order", path: path.into(), line, what };
    let Some(own) = order.iter().position(|name| name == module) else {
        return vec![finding(0, format!("module {module} is not declared in lib.rs"))];
    };
    let code = without_tests(&code(text));
    let mut findings = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        for used in first_names(&code[at + "crate::".len()..]) {
            if order.iter().position(|name| *name == used).is_some_and(|other| other > own) {
                findings
                    .push(finding(line, format!("{module} uses {used}, which stands below it in lib.rs")));
            }
        }
    }
    findings
}

/// The first segment of a path, or of each path of a group.
fn first_names(rest: &str) -> Vec<String> {
    if !rest.starts_with('{') {
        return words(rest).take(1).map(|(_, word)| word.to_owned()).collect();
    }
    let (mut depth, mut fresh, mut names, mut name) = (0_usize, true, Vec::new(), String::new());
    for c in rest.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 1 && fresh && (c.is_alphanumeric() || c == '_') {
            name.push(c);
        } else if !name.is_empty() {
            names.push(std::mem::take(&mut name));
            fresh = false;
        }
        if depth == 1 && c == ',' {
            fresh = true;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Vec<String> {
        modules(
            "//! words\npub mod options;\nmod version; // mod no;\npub(crate) mod write;\npub use version::V;\n",
        )
    }

    fn lines(module: &str, text: &str) -> Vec<usize> {
        check("x.rs", text, module, &order()).iter().map(|f| f.line).collect()
    }

    #[test]
    fn reads_the_order() {
        assert_eq!(order(), ["options", "version", "write"]);
    }

    #[test]
    fn upwards_is_fine_downwards_is_not() {
        assert_eq!(lines("version", "use crate::options::O;\nuse crate::version::V;\n"), [0; 0]);
        assert_eq!(lines("version", "\nuse crate::write::W;\nfn f() { crate::write::g() }"), [2, 3]);
        let group = "use crate::{\n    options::{a, write},\n    write::{b, c},\n};";
        assert_eq!(lines("version", group), [1]);
        assert_eq!(lines("write", group), [0; 0]);
    }

    #[test]
    fn tests_and_comments_may_look_down() {
        assert_eq!(
            lines("options", "//! crate::write\n#[cfg(test)]\nmod tests { use crate::write::W; }\n"),
            [0; 0]
        );
        assert_eq!(lines("nowhere", ""), [0]);
    }
}
