//! OPTIONS files: all names with their values, and what of one file is missing from, or different in, the next.

use std::collections::BTreeMap;
use std::path::Path;

/// Sections by their titles, `DBOptions` or `CFOptions "default"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionsFile(pub(super) BTreeMap<String, BTreeMap<String, String>>);

/// A value that did not survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) name: String,
    pub(super) section: String,
    pub(super) before: String,
    pub(super) after: Option<String>,
}

impl OptionsFile {
    pub(super) fn parse(text: &str) -> OptionsFile {
        let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut title = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                header.trim_end_matches(']').clone_into(&mut title);
            } else if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
                sections.entry(title.clone()).or_default().insert(name.to_owned(), value.to_owned());
            }
        }
        OptionsFile(sections)
    }

    /// The newest in a directory.
    pub(super) fn newest(dir: &Path) -> Option<OptionsFile> {
        let files = std::fs::read_dir(dir).ok()?.flatten();
        let numbered = files.filter_map(|file| {
            let number = file.file_name().to_str()?.strip_prefix("OPTIONS-")?.parse::<u64>().ok()?;
            Some((number, file.path()))
        });
        let (_, path) = numbered.max()?;
        Some(OptionsFile::parse(&std::fs::read_to_string(path).ok()?))
    }

    /// Every value of this file that a program no longer gets when it loads `after`, except those that `told` names. A value
    /// that a file leaves out is its default, as in `defaults`.
    pub(super) fn lost_in(&self, after: &OptionsFile, defaults: &OptionsFile, told: &str) -> Vec<Loss> {
        let mut losses = Vec::new();
        for (section, names) in self.0.iter().filter(|(title, _)| *title != "Version") {
            let usual = defaults.0.get(&in_default(section));
            for (name, before) in names {
                let now = after.0.get(section).and_then(|names| names.get(name));
                let usual = usual.and_then(|names| names.get(name));
                if !is_same(before, now, usual) && place_of(name, told).is_none() {
                    let (name, section) = (name.clone(), section.clone());
                    losses.push(Loss { name, section, before: before.clone(), after: now.cloned() });
                }
            }
        }
        losses
    }
}

/// The section of `default` that corresponds to one of another family.
fn in_default(section: &str) -> String {
    section.split_once('"').map_or_else(|| section.to_owned(), |(title, _)| format!("{title}\"default\""))
}

/// The pairs within braces.
fn inner(text: &str) -> Option<BTreeMap<&str, &str>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    if inner.contains('{') {
        return None;
    }
    inner.split(';').filter(|part| !part.is_empty()).map(|part| part.split_once('=')).collect()
}

/// The same value, perhaps in other words: `1.000000` and `1`, `{a=b;}` and `{a=b}`, absent and the default.
fn is_same(before: &str, now: Option<&String>, usual: Option<&String>) -> bool {
    let Some(now) = now.or(usual) else { return false };
    if let (Some(before), Some(now)) = (inner(before), inner(now)) {
        let usual = usual.and_then(|usual| inner(usual)).unwrap_or_default();
        let alike = |(name, value): (&&str, &&str)| {
            now.get(name).or(usual.get(name)).is_some_and(|now| is_alike(value, now))
        };
        return before.iter().all(alike);
    }
    is_alike(before, now)
}

fn is_alike(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    a == b || a.contains('.') && number(a).is_some_and(|n| number(b) == Some(n))
}

/// Where a text names a setting, as a whole word.
pub(super) fn place_of(name: &str, text: &str) -> Option<usize> {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |at: usize| !text[..at].ends_with(inside) && !text[at + name.len()..].starts_with(inside);
    text.match_indices(name).map(|(at, _)| at).find(|at| whole(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_value_is_found_unless_it_is_named() {
        let of = OptionsFile::parse;
        let defaults = of("[DBOptions]\n  y=7\n[CFOptions \"default\"]\n  opts={a=1;b=2;}\n");
        let before = of(
            "[DBOptions]\n  ttl=5\n  x=1.000000\n  y=7\n[CFOptions \"a\"]\n  num_levels=3\n  opts={a=1;b=2;}\n",
        );
        let after = of("[DBOptions]\n ttl=6\n x=1\n[CFOptions \"a\"]\n  opts={b=2}\n");
        let names = |told: &str| {
            let lost = before.lost_in(&after, &defaults, told);
            lost.into_iter().map(|loss| loss.name).collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["num_levels", "ttl"]);
        assert_eq!(names("max_ttl, num_levels=3 is not served"), ["ttl"]);
    }
}
