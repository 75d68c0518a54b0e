//! The subcommands: theory by name, pages of existing records, and the experiment under Java.

use crate::{java, tables};
use ashlar_peers::shown::{Shown, replace};
use ashlar_report::{markdown, theory};
use clap::Subcommand;
use std::path::{Path, PathBuf};

/// The other commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Repeats RocksJava's measurements of 2014 under RocksDB's jar, over RocksDB's native half and AshlarDB's, a JVM each
    ///
    /// Needs `cargo xtask setup` (the jar, and a JDK) and `cargo build --release -p ashlar-jni`.
    Java(Box<java::Command>),
    /// Computes a formula: `calc btree_wa 4096 128` prints 33. Without a name, lists the functions
    Calc {
        /// The function
        name: Option<String>,
        /// The arguments of the function
        #[arg(allow_negative_numbers = true)]
        arguments: Vec<f64>,
    },
    /// Shows files of records, several runs as one. Without an output file, prints Markdown
    Report {
        /// Files that --json wrote
        #[arg(required = true)]
        records: Vec<PathBuf>,
        /// The files to write
        #[command(flatten)]
        shown: Shown,
    },
    /// Rewrites the tables of a document from their records: the text between `<!-- rates FILE… -->` and
    /// `<!-- end of rates -->`. `rates brief FILE…` makes a short form. File names are relative to the document's directory
    Tables {
        /// A document, such as README.md
        #[arg(required = true)]
        documents: Vec<PathBuf>,
    },
}

impl Command {
    /// Runs the command and prints its result.
    ///
    /// # Errors
    /// A text that says what failed.
    pub fn run(&self) -> Result<(), String> {
        match self {
            Command::Java(java) => java.run()?,
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
