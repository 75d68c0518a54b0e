//! Script tests: cases are text files, and one loop runs them.
//!
//! ```text
//! # Level 0 is compacted from four tables on.
//!
//! pick oldest=4
//! L0 4:a-z 3:a-z 2:a-z 1:a-z
//! ----
//! L0[4 3 2 1] -> L6 level0
//! ```
//! 1. The first line of a file is a comment that says what the file shows.
//! 2. A case is a command (a name and words `key=value` or `flag`), the lines of its input, `----`, and the expected
//!    output up to an empty line. Comments and empty lines may precede a command.
//! 3. The cases of a file run in order.
//! 4. With the environment variable `REWRITE=1` the outputs are written into the files instead of being compared.
//!    Review the difference before you commit it.
//!
//! Source: CockroachDB `datadriven` (the form of a case).

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// One command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The first word.
    pub name: String,
    /// The other words; a word without `=` has an empty value.
    pub args: Vec<(String, String)>,
    /// The lines up to `----`, joined by line ends.
    pub input: String,
}

impl Command {
    /// The value of an argument.
    pub fn arg(&self, key: &str) -> Option<&str> {
        self.args.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether an argument is there.
    pub fn has(&self, key: &str) -> bool {
        self.arg(key).is_some()
    }

    /// The value of a numeric argument.
    ///
    /// # Errors
    /// The value is not a number.
    pub fn number(&self, key: &str) -> Result<Option<u64>, String> {
        let parse = |value: &str| value.parse().map_err(|_| format!("{key}={value} is not a number"));
        self.arg(key).map(parse).transpose()
    }

    /// Checks that the command has no other arguments than these, so that a misspelt one does not pass unnoticed.
    ///
    /// # Errors
    /// Names the argument that is not among them.
    pub fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.args.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(format!("{} has no argument {name}; it has {known:?}", self.name)),
            None => Ok(()),
        }
    }

    fn parse(line: &str) -> Command {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let pair = |word: &str| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key.to_owned(), value.to_owned())
        };
        Command { name, args: words.map(pair).collect(), input: String::new() }
    }
}

/// A script that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The script with the outputs that were found.
    pub text: String,
    /// A message for each case whose output differs.
    pub differences: Vec<String>,
}

/// Runs the cases of one script. An error of `run` is the output `error: TEXT` of the case.
///
/// # Errors
/// The script is malformed; the message names the line.
pub fn replay(
    script: &str,
    mut run: impl FnMut(&Command) -> Result<String, String>,
) -> Result<Replay, String> {
    if !script.starts_with("# ") {
        return Err("line 1: the first line says what the script shows: `# ...`".to_owned());
    }
    let mut replay = Replay { text: String::new(), differences: Vec::new() };
    let mut lines = (1..).zip(script.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        replay.text.push_str(line);
        replay.text.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = Command::parse(line);
        let mut input = Vec::new();
        loop {
            let Some((_, line)) = lines.next() else {
                return Err(format!("line {number}: {} has no line ---- after its input", command.name));
            };
            replay.text.push_str(line);
            replay.text.push('\n');
            if line == "----" {
                break;
            }
            input.push(line);
        }
        command.input = input.join("\n");
        let mut expected = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
            expected.push_str(line);
            expected.push('\n');
        }
        let mut found = run(&command).unwrap_or_else(|error| format!("error: {error}"));
        if found.is_empty() || found.lines().any(str::is_empty) {
            return Err(format!("line {number}: the output has an empty line: {found:?}"));
        }
        if !found.ends_with('\n') {
            found.push('\n');
        }
        if found != expected {
            let what = format!("line {number}: {line}\nexpected:\n{expected}found:\n{found}");
            replay.differences.push(what);
        }
        replay.text.push_str(&found);
    }
    Ok(replay)
}

/// Runs every script of a folder, or rewrites its outputs (rule 4). `run` gets the name of the script without its
/// ending, and a command.
///
/// # Errors
/// Names the file and the line of every difference, and of a malformed script; a folder without a script.
pub fn run_folder(
    folder: &Path,
    mut run: impl FnMut(&str, &Command) -> Result<String, String>,
) -> Result<(), String> {
    let rewrite = std::env::var_os("REWRITE").is_some_and(|value| value == "1");
    let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let entries = fs::read_dir(folder).map_err(|e| failed(folder, e))?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| failed(folder, e))?;
    paths.sort();
    let mut report = String::new();
    for path in &paths {
        let script = fs::read_to_string(path).map_err(|e| failed(path, e))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let found =
            replay(&script, |command| run(&name, command)).map_err(|e| format!("{}: {e}", path.display()))?;
        if rewrite && found.text != script {
            fs::write(path, found.text).map_err(|e| failed(path, e))?;
        } else {
            for difference in found.differences {
                let _ = writeln!(report, "{}: {difference}", path.display());
            }
        }
    }
    match (paths.is_empty(), report.is_empty()) {
        (true, _) => Err(format!("{}: no scripts", folder.display())),
        (_, true) => Ok(()),
        _ => Err(format!("{report}To accept the outputs found, run the test with REWRITE=1.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "# Sums.\n\nadd twice by=3\n1\n2\n----\n6\n\n# Nothing to add.\nadd\n----\n0\n";

    fn add(command: &Command) -> Result<String, String> {
        command.only(&["twice", "by"])?;
        let sum: u64 = command.input.lines().map(|line| line.parse::<u64>().unwrap_or(0)).sum();
        Ok((sum * if command.has("twice") { 2 } else { 1 }).to_string())
    }

    #[test]
    fn a_script_that_holds_stays_as_it_is() {
        let held = replay(SCRIPT, add).unwrap();
        assert_eq!((held.text.as_str(), held.differences.len()), (SCRIPT, 0));
    }

    #[test]
    fn a_difference_names_its_line_and_is_written_over() {
        let wrong = SCRIPT.replace("\n6\n", "\n7\n8\n");
        let found = replay(&wrong, add).unwrap();
        assert_eq!(found.differences, ["line 3: add twice by=3\nexpected:\n7\n8\nfound:\n6\n"]);
        assert_eq!(found.text, SCRIPT);
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let error = |script: &str| replay(script, add).unwrap_err();
        assert!(error("add\n----\n0\n").starts_with("line 1: the first line"));
        assert!(error("# x\nadd\n1\n").starts_with("line 2: add has no line ----"));
        let empty = replay("# x\nadd\n----\n", |_| Ok(String::new()));
        assert!(empty.unwrap_err().starts_with("line 2: the output has an empty line"));
        let unknown = replay("# x\nadd thrice\n----\n0\n", add).unwrap();
        assert!(unknown.text.ends_with("error: add has no argument thrice; it has [\"twice\", \"by\"]\n"));
    }

    #[test]
    fn arguments_have_values() {
        let command = Command::parse("pick oldest=4 arriving name=x");
        assert_eq!((command.number("oldest"), command.number("no")), (Ok(Some(4)), Ok(None)));
        assert!(command.has("arriving") && command.number("name").is_err());
    }
}
