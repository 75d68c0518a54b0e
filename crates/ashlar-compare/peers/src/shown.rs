//! The files that a run writes for people and programs: a page, Markdown, and a summary.

use ashlar_report::record::Run;
use ashlar_report::{aggregate, markdown, page};
use clap::Args;
use std::path::{Path, PathBuf};

/// The outputs of a run.
#[derive(Clone, Debug, Default, Args)]
pub struct Shown {
    /// Writes a page as one self-contained HTML file, replaced after every process
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Writes the same as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Writes medians, spread and ratios of every number, as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

impl Shown {
    /// A page and Markdown under these names.
    pub fn of(page: impl Into<PathBuf>, markdown: impl Into<PathBuf>) -> Shown {
        Shown { report: Some(page.into()), markdown: Some(markdown.into()), summary: None }
    }

    /// True if no output file is requested.
    pub fn nothing(&self) -> bool {
        self.report.is_none() && self.markdown.is_none() && self.summary.is_none()
    }

    /// Writes the requested files. An old file stays until the new one is complete.
    ///
    /// # Errors
    /// A file cannot be written; the text names the file and the cause.
    pub fn write(&self, run: &Run) -> Result<(), String> {
        type Form = fn(&Run) -> String;
        let forms: [(_, Form); 3] =
            [(&self.report, page), (&self.markdown, markdown), (&self.summary, aggregate)];
        for (path, form) in forms {
            if let Some(path) = path {
                replace(path, &form(run)).map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Replaces a file. The old one stays until the new one is complete.
///
/// # Errors
/// The file cannot be written.
pub fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
