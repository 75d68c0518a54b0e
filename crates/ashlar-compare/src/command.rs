//! What needs no engine: theory by name, and pages of records that are there.

use crate::tables;
use ashlar_report::record::Run;
use ashlar_report::{aggregate, markdown, page, theory};
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
    /// Writes medians, spread and ratios of every number, as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

impl Shown {
    /// True when no file is wanted.
    pub fn nothing(&self) -> bool {
        self.report.is_none() && self.markdown.is_none() && self.summary.is_none()
    }

    /// Writes what is wanted. The old file stays until the new one is whole.
    ///
    /// # Errors
    /// A file cannot be written: which, and why.
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
    /// Shows files of records, several runs as one; when no file is named to write to, as Markdown on the terminal
    Report {
        /// What --json wrote
        #[arg(required = true)]
        records: Vec<PathBuf>,
        /// Where to
        #[command(flatten)]
        shown: Shown,
    },
    /// Makes the tables of a document again from their records: what stands between `<!-- rates FILE… -->` and
    /// `<!-- end of rates -->`; `rates brief FILE…` makes a short form; names of files count from the document's folder
    Tables {
        /// README.md, say
        #[arg(required = true)]
        documents: Vec<PathBuf>,
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
                let run = tables::read(records)?;
                if shown.nothing() {
                    print!("{}", markdown(&run));
                }
                shown.write(&run)?;
            }
            Command::Tables { documents } => {
                for path in documents {
                    let said = |e: std::io::Error| format!("{}: {e}", path.display());
                    let document = std::fs::read_to_string(path).map_err(said)?;
                    let folder = path.parent().unwrap_or(Path::new(""));
                    replace(path, &tables::renewed(&document, folder)?).map_err(said)?;
                }
            }
        }
        Ok(())
    }
}
