//! Property files of the original program, read as they are: `key = value` lines, each value with its file and line.
//!
//! 1. Lines follow Java's rules: `#` or `!` begins a comment, the key ends at `=`, `:` or a blank, and a backslash at the end of
//!    a line continues it. Of equal keys the last one counts.
//! 2. A workload file that a configuration names is read first, so that the configuration overrides it. `-D key=value`
//!    overrides both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A value, and where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The text behind the separator.
    pub value: String,
    /// `file:line`, or [`COMMAND_LINE`].
    pub place: String,
}

/// All properties by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    given: BTreeMap<String, Given>,
}

/// The place of what was given on the command line.
pub const COMMAND_LINE: &str = "-D";

/// The property that names the workload file.
pub const WORKLOAD_FILE: &str = "workload_file";

impl Properties {
    /// Reads `path`, and the workload file that it names. Relative names start at `home`.
    ///
    /// # Errors
    /// A file cannot be read, or a line is no property; the text names file and line.
    pub fn read(path: &Path, home: &Path) -> Result<Properties, String> {
        let top = Properties::of_file(path)?;
        let Some(workload) = top.given.get(WORKLOAD_FILE) else { return Ok(top) };
        let named: PathBuf = home.join(&workload.value);
        let mut all = Properties::of_file(&named)
            .map_err(|why| format!("{}: {WORKLOAD_FILE}: {why}", workload.place))?;
        all.given.extend(top.given);
        Ok(all)
    }

    fn of_file(path: &Path) -> Result<Properties, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Properties::parse(&text, &path.display().to_string())
    }

    /// Parses `text`, whose file is called `name` in errors.
    ///
    /// # Errors
    /// A line without a key.
    pub fn parse(text: &str, name: &str) -> Result<Properties, String> {
        let mut given = BTreeMap::new();
        let mut lines = text.lines().zip(1_u64..);
        while let Some((first, number)) = lines.next() {
            let mut line = first.trim_start().to_owned();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            while ends_open(&line) {
                line.pop();
                let Some((more, _)) = lines.next() else { break };
                line.push_str(more.trim_start());
            }
            let place = format!("{name}:{number}");
            let (key, value) = split(&line);
            if key.is_empty() {
                return Err(format!("{place}: no key before the value \"{value}\""));
            }
            given.insert(key, Given { value, place });
        }
        Ok(Properties { given })
    }

    /// Overrides one property with `key=value` of the command line.
    ///
    /// # Errors
    /// The text has no `=`.
    pub fn set(&mut self, assignment: &str) -> Result<(), String> {
        let (key, value) = assignment
            .split_once('=')
            .ok_or_else(|| format!("-D {assignment}: not of the form key=value"))?;
        let given = Given { value: value.trim().to_owned(), place: COMMAND_LINE.to_owned() };
        self.given.insert(key.trim().to_owned(), given);
        Ok(())
    }

    /// The property `key`, if it was given.
    pub fn get(&self, key: &str) -> Option<&Given> {
        self.given.get(key)
    }

    /// Every key and where it was given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Given)> {
        self.given.iter().map(|(key, given)| (key.as_str(), given))
    }
}

/// True if an odd number of backslashes ends the line.
fn ends_open(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Key and value of a line, without escapes.
fn split(line: &str) -> (String, String) {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, c)| {
        let ends = !escaped && (matches!(c, '=' | ':') || c.is_whitespace());
        escaped = *c == '\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at(end.map_or(line.len(), |(at, _)| at));
    let rest = rest.trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
    (plain(key), plain(value))
}

/// The text with its escapes resolved. An unknown escape stands for its letter, as in Java.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Properties {
        Properties::parse(text, "f").unwrap()
    }

    #[test]
    fn lines_follow_javas_rules() {
        let all = of("# comment\n! too\n\n a = 1\nb:2\nc 3\n d=x \\\n   y\ne\\=f = g\nempty=\na = 9 \n");
        let value = |key: &str| all.get(key).map(|given| (given.value.as_str(), given.place.as_str()));
        assert_eq!(value("a"), Some(("9", "f:11")), "the last one counts");
        assert_eq!((value("b"), value("c")), (Some(("2", "f:5")), Some(("3", "f:6"))));
        assert_eq!((value("d"), value("e=f")), (Some(("x y", "f:7")), Some(("g", "f:9"))));
        assert_eq!((value("empty"), value("f")), (Some(("", "f:10")), None));
        assert_eq!(all.iter().count(), 6);
    }

    #[test]
    fn a_line_without_a_key_names_file_and_line() {
        assert_eq!(
            Properties::parse("a=1\n= 2\n", "w.properties").unwrap_err(),
            "w.properties:2: no key before the value \"2\""
        );
    }

    #[test]
    fn the_configuration_overrides_its_workload_and_d_both() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("work.properties", "a = 1\nb = 1\nc = 1\n");
        write("top.properties", "workload_file = work.properties\nb = 2\nc = 2\n");
        let mut all = Properties::read(&dir.path().join("top.properties"), dir.path()).unwrap();
        all.set("c = 3").unwrap();
        let value = |key| all.get(key).map(|given| given.value.as_str());
        assert_eq!(["a", "b", "c"].map(value), [Some("1"), Some("2"), Some("3")]);
        assert_eq!(all.get("c").map(|given| given.place.as_str()), Some("-D"));
        assert!(all.clone().set("c").unwrap_err().contains("not of the form"));
        write("lost.properties", "workload_file = nowhere\n");
        let why = Properties::read(&dir.path().join("lost.properties"), dir.path()).unwrap_err();
        assert!(why.contains("lost.properties:1: workload_file: ") && why.contains("nowhere"), "{why}");
    }
}
