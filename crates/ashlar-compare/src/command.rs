//! What needs no engine: theory by name, and pages of records that are there.

use ashlar_report::record::{Run, parse};
use ashlar_report::{markdown, page, theory};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Where a run is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct Shown {
    /// Writes a page: one HTML file that needs nothing else, written anew after every process
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Writes the same as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl Shown {
    /// Writes what is wanted. The old file stays until the new one is whole.
    ///
    /// # Errors
    /// A file cannot be written: which, and why.
    pub fn write(&self, run: &Run) -> Result<(), String> {
        for (path, form) in [(&self.report, page as fn(&Run) -> String), (&self.markdown, markdown)] {
            if let Some(path) = path {
                replace(path, &form(run)).map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
        Ok(())
    }
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}

/// Something else than a run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What theory says: `calc btree_wa 4096 128` prints 33; without a name, what there is
    Calc {
        /// The function
        name: Option<String>,
        /// Its arguments
        #[arg(allow_negative_numbers = true)]
        arguments: Vec<f64>,
    },
    /// Shows a file of records, several runs as one; without --report and --markdown as Markdown on the terminal
    Report {
        /// What --json wrote
        #[arg(required = true)]
        records: Vec<PathBuf>,
        /// Where to
        #[command(flatten)]
        shown: Shown,
    },
}

impl Command {
    /// Does it, printing.
    ///
    /// # Errors
    /// What cannot be done: a text.
    pub fn run(&self) -> Result<(), String> {
        match self {
            Command::Calc { name: None, .. } => print!("{}", theory::help()),
            Command::Calc { name: Some(name), arguments } => println!("{}", theory::answer(name, arguments)?),
            Command::Report { records, shown } => {
                let mut run = Run::default();
                for path in records {
                    let said = |e: String| format!("{}: {e}", path.display());
                    let text = std::fs::read_to_string(path).map_err(|e| said(e.to_string()))?;
                    let part = parse(&text).map_err(said)?;
                    run.headers.extend(part.headers);
                    run.records.extend(part.records);
                }
                if shown.report.is_none() && shown.markdown.is_none() {
                    print!("{}", markdown(&run));
                }
                shown.write(&run)?;
            }
        }
        Ok(())
    }
}
