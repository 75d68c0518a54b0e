//! Debian's `ldb` and `sst_dump` (RocksDB 7.8.3), one child process per question.
//!
//! `ldb` opens directories for writing in many commands, replays the log and leaves info logs; so every question is
//! asked about a copy, and the directory itself stays as it is.

use super::places::{Skip, place};
use crate::KeyValue;
use crate::text::from_hex;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalLine {
    /// The user key.
    pub key: Vec<u8>,
    /// The number of its type.
    pub value_type: u32,
    /// What is stored.
    pub value: Vec<u8>,
}

/// The two programs.
#[derive(Clone, Debug)]
pub struct Tools {
    ldb: PathBuf,
    sst_dump: PathBuf,
}

impl Tools {
    /// The tools, or why they are not here.
    pub fn available() -> Result<Tools, Skip> {
        Ok(Tools { ldb: place("ldb")?, sst_dump: place("sst_dump")? })
    }

    /// Every entry of a family, as `ldb scan --hex` lists them.
    ///
    /// # Errors
    /// What the tool said.
    pub fn scan(&self, dir: &Path, family: &str) -> Result<Vec<KeyValue>, String> {
        let text = self.ldb(dir, &["scan", "--hex", &format!("--column_family={family}")])?;
        parse_scan(&text)
    }

    /// Every entry of a family's tables and log as it is stored, in the order of internal keys: `ldb idump`.
    ///
    /// # Errors
    /// What the tool said.
    pub fn internal(&self, dir: &Path, family: &str) -> Result<Vec<InternalLine>, String> {
        let text = self.ldb(dir, &["idump", "--hex", &format!("--column_family={family}")])?;
        let lines = text.lines().filter(|line| line.contains(" seq:"));
        lines.map(|line| parse_internal(line).ok_or_else(|| format!("ldb said: {line}"))).collect()
    }

    /// Names of the families, `default` first.
    ///
    /// # Errors
    /// What the tool said.
    pub fn families(&self, dir: &Path) -> Result<Vec<String>, String> {
        let text = self.ldb(dir, &["list_column_families"])?;
        let (_, list) = text.split_once('{').ok_or_else(|| format!("no list in: {text}"))?;
        let (list, _) = list.split_once('}').ok_or_else(|| format!("no end of the list in: {text}"))?;
        Ok(list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
    }

    /// The MANIFEST against the files: `ldb checkconsistency`.
    ///
    /// # Errors
    /// What the tool said.
    pub fn check_consistency(&self, dir: &Path) -> Result<(), String> {
        // It replays the logs, for which it needs the merge operators that the OPTIONS file names.
        let text = self.ldb(dir, &["checkconsistency", "--try_load_options", "--ignore_unknown_options"])?;
        if text.lines().any(|line| line.trim() == "OK") { Ok(()) } else { Err(text) }
    }

    /// The MANIFEST's edits as text: `ldb manifest_dump --verbose`.
    ///
    /// # Errors
    /// What the tool said.
    pub fn manifest(&self, dir: &Path) -> Result<String, String> {
        self.ldb(dir, &["manifest_dump", "--verbose"])
    }

    /// Reads every table of the directory with all checksums verified; answers how many there are.
    ///
    /// # Errors
    /// The first table that does not hold, and what `sst_dump` said.
    pub fn check_tables(&self, dir: &Path) -> Result<usize, String> {
        let mut tables = 0;
        for entry in std::fs::read_dir(dir).map_err(|e| e.to_string())? {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.extension().is_some_and(|ext| ext == "sst" || ext == "ldb") {
                self.check_table(&path)?;
                tables += 1;
            }
        }
        Ok(tables)
    }

    /// What `sst_dump --show_properties` says about a table.
    ///
    /// # Errors
    /// What the tool said.
    pub fn properties(&self, table: &Path) -> Result<String, String> {
        let file = format!("--file={}", table.display());
        run(Command::new(&self.sst_dump).args([&file, "--command=none", "--show_properties"]))
    }

    fn check_table(&self, table: &Path) -> Result<(), String> {
        let file = format!("--file={}", table.display());
        for command in ["--command=check", "--command=verify"] {
            let said = run(Command::new(&self.sst_dump).args([&file, command, "--verify_checksum"]))?;
            // The tool ends with success even when a table is damaged: its words decide.
            let bad = ["Corruption", "not a valid SST", "IO error", "Not implemented", "Invalid argument"];
            if bad.iter().any(|word| said.contains(word)) {
                return Err(format!("{}: {said}", table.display()));
            }
        }
        Ok(())
    }

    fn ldb(&self, dir: &Path, args: &[&str]) -> Result<String, String> {
        let copy = tempfile::tempdir().map_err(|e| e.to_string())?;
        copy_flat(dir, copy.path()).map_err(|e| e.to_string())?;
        let db = format!("--db={}", copy.path().display());
        let own = (!args.contains(&"--try_load_options")).then_some("--try_load_options=false");
        run(Command::new(&self.ldb).arg(db).args(own).args(args))
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| e.to_string())?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(text) } else { Err(format!("{}: {}", output.status, text.trim())) }
}

fn parse_scan(text: &str) -> Result<Vec<KeyValue>, String> {
    let entry = |line: &str| {
        let (key, value) = line.split_once(" ==> ").or_else(|| line.split_once(" : "))?;
        Some((from_hex(key.trim())?, from_hex(value.trim())?))
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| entry(line).ok_or_else(|| format!("ldb said: {line}"))).collect()
}

/// `'6B' seq:4, type:1 => 76`
fn parse_internal(line: &str) -> Option<InternalLine> {
    let (key, rest) = line.strip_prefix('\'')?.split_once("' seq:")?;
    let (_, rest) = rest.split_once(", type:")?;
    let (value_type, value) = rest.split_once(" =>")?;
    let hex = |text: &str| from_hex(&format!("0x{}", text.trim()));
    Some(InternalLine { key: hex(key)?, value_type: value_type.parse().ok()?, value: hex(value)? })
}

/// Copies the plain files of a directory; folders below it are left out, and so are files that a purge of an open database
/// removes meanwhile. A reader of the copy notices if such a file was needed.
pub fn copy_flat(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            continue;
        }
        match std::fs::copy(entry.path(), to.join(entry.file_name())) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            copied => drop(copied?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_line_forms_and_refuses_others() {
        let entries = parse_scan("0x6B ==> 0x76\n0x : 0x\n\n").unwrap();
        assert_eq!(entries, [(b"k".to_vec(), b"v".to_vec()), (vec![], vec![])]);
        assert!(parse_scan("Failed: Corruption: x\n").is_err());
        let line = parse_internal("'6B' seq:4, type:17 => 010A").unwrap();
        assert_eq!((line.key, line.value_type, line.value), (b"k".to_vec(), 17, vec![1, 10]));
        assert_eq!(parse_internal("'6B' seq:4, type:0 => ").unwrap().value, b"");
        assert_eq!(parse_internal("'6B' seq:x"), None);
    }
}
