//! The file of records that a driver writes: each record at once, so that an interrupted run leaves a valid file.

use ashlar_report::record::Line;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The file, if the user wants one.
#[derive(Debug, Default)]
pub struct Records(Option<File>);

impl Records {
    /// Opens the file for appending, or creates it. Without a path every line is dropped.
    ///
    /// # Errors
    /// The text names the file and the cause.
    pub fn append(path: Option<&Path>) -> Result<Records, String> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|e| format!("{}: {e}", path.display()))
        };
        path.map(open).transpose().map(Records)
    }

    /// Writes a line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, line: &Line) -> Result<(), String> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{}", line.text()).map_err(|e| format!("the file of records: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records");
        let line = Line::Run(Box::default());
        for _ in 0..2 {
            Records::append(Some(&path)).unwrap().keep(&line).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
        assert_eq!(Records::append(None).unwrap().keep(&line), Ok(()));
        assert!(
            Records::append(Some(dir.path())).unwrap_err().starts_with(&dir.path().display().to_string())
        );
    }
}
