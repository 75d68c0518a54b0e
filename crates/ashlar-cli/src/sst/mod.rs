//! `ashlar sst`: reads tables without a database, with sst_dump's flags and output.
//!
//! | file | subject |
//! |---|---|
//! | `arguments` | the command line |
//! | `entry` | an entry as a line |
//! | `scan` | entries in the order of the index: scan, check |
//! | `properties` | the properties in sst_dump's words, the summary |
//! | `raw` | the whole content of a table, as text |
//! | `blocks` | every block explained |
//!
//! 1. The output is that of RocksDB 7.8's tool, without the line with the address of its environment. Additions:
//!    `--command=blocks`, tables of every version and LevelDB's, and keys and values with zero bytes shown whole.
//! 2. If a table cannot be read, the exit status is 1. The other tables are still read.
//!
//! Source: RocksDB `tools/sst_dump_tool.cc`, `table/sst_file_dumper.cc` (behaviour).

mod arguments;
mod blocks;
mod entry;
mod properties;
mod raw;
mod scan;

pub(crate) use arguments::{SstArguments, SstCli};
pub(crate) use entry::EntryForm;

use crate::Done;
use crate::bytes_text::{Hex, parse_bytes};
use crate::outcome::Outcome;
use arguments::SstCommand;
use ashlar_base::{Error, InternalKey};
use ashlar_env::{EntryKind, Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_format::table::TableKind;
use ashlar_table::Anatomy;
use properties::Summary;
use scan::Range;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Runs `ashlar sst`.
pub(crate) fn run(arguments: &SstArguments) -> Done {
    let mut out = BufWriter::new(io::stdout().lock());
    let done = run_into(arguments, &mut out);
    out.flush()?;
    done
}

fn run_into(arguments: &SstArguments, out: &mut dyn Write) -> Done {
    if let Some(key) = &arguments.parse_internal_key {
        return internal_key(&parse_bytes(key.as_bytes(), true).map_err(Outcome::Usage)?, out);
    }
    if arguments.command == SstCommand::Recompress {
        return Err(Error::not_supported("--command=recompress").into());
    }
    let env = Env::os()?;
    let path = arguments.path.as_ref().or(arguments.file.as_ref()).cloned().unwrap_or_default();
    let tables = tables(&*env.fs, &path)?;
    let mut session = Session {
        arguments,
        env,
        range: Range::new(arguments)?,
        summary: Summary::default(),
        valid: Vec::new(),
        failed: Vec::new(),
        any: false,
    };
    for table in &tables.files {
        session.table(table, out)?;
    }
    session.finish(&path, tables.directory, out)
}

/// Prints the entries and properties of one table as ldb's dump does.
pub(crate) fn dump(path: &Path, output_hex: bool, decode_blob_index: bool, out: &mut dyn Write) -> Done {
    let command = SstCommand::Scan;
    let arguments = SstArguments { command, output_hex, decode_blob_index, ..SstArguments::default() };
    let table = Env::os()?.fs.open_read(path).and_then(Anatomy::open)?;
    head(path, &table, out)?;
    scan::run(&table, &mut Range::new(&arguments)?, &arguments, out)?;
    writeln!(out, "\nTable Properties:")?;
    for line in properties::lines(table.properties()?) {
        writeln!(out, "{}", line.replacen(": ", "=", 1))?;
    }
    Ok(writeln!(out)?)
}

/// Prints the name and the kind of a table.
fn head(path: &Path, table: &Anatomy, out: &mut dyn Write) -> io::Result<()> {
    let kind = match table.footer().kind {
        TableKind::BlockBased => "block-based",
        TableKind::LevelDb => "LevelDB",
    };
    writeln!(out, "Process {}\nSst file format: {kind}", path.display())
}

fn internal_key(bytes: &[u8], out: &mut dyn Write) -> Done {
    let key = InternalKey::decode(bytes).map_err(|e| Outcome::Failed(e.to_string()))?;
    let (user_key, trailer) = key.split();
    writeln!(out, "key='{}' seq:{}, type:{}", Hex(user_key), trailer.seq(), trailer.type_byte())?;
    Ok(())
}

/// The files that the arguments name.
struct Tables {
    directory: bool,
    files: Vec<PathBuf>,
}

fn tables(fs: &dyn Fs, path: &Path) -> Result<Tables, Outcome> {
    let Some(entry) = fs.metadata(path)? else {
        return Err(Outcome::Failed(format!("NotFound: {}: No such file or directory", path.display())));
    };
    if entry.kind != EntryKind::Dir {
        return Ok(Tables { directory: false, files: vec![path.to_path_buf()] });
    }
    let mut names: Vec<String> = fs.list(path)?.into_iter().map(|entry| entry.name).collect();
    names
        .retain(|name| matches!(FileKind::parse(name), Some(FileKind::Table(_) | FileKind::LevelDbTable(_))));
    names.sort();
    Ok(Tables { directory: true, files: names.iter().map(|name| path.join(name)).collect() })
}

/// The state that lasts from one table to the next.
struct Session<'a> {
    arguments: &'a SstArguments,
    env: Env,
    range: Range,
    summary: Summary,
    valid: Vec<PathBuf>,
    /// The lines for the end: one per damaged table.
    failed: Vec<String>,
    /// Whether the bounds have been shown.
    any: bool,
}

impl Session<'_> {
    fn table(&mut self, path: &Path, out: &mut dyn Write) -> Done {
        if self.range.is_used_up() && matches!(self.arguments.command, SstCommand::Scan | SstCommand::Check) {
            return Ok(());
        }
        let table = match self.env.fs.open_read(path).and_then(Anatomy::open) {
            Ok(table) => table,
            Err(e) => {
                self.failed.push(e.to_string());
                self.failed.push(format!("{} is not a valid SST file", path.display()));
                return Ok(());
            }
        };
        head(path, &table, out)?;
        self.valid.push(path.to_path_buf());
        let done = self.command(&table, out);
        self.note(done)?;
        // Like sst_dump, go on to the next table after these two.
        let alone = matches!(self.arguments.command, SstCommand::Verify | SstCommand::Raw);
        if !alone && (self.arguments.show_properties || self.arguments.show_summary) {
            match table.properties() {
                Ok(properties) => {
                    self.summary.add(properties);
                    if self.arguments.show_properties {
                        properties::show(&table, properties, out)?;
                    }
                }
                Err(e) => self.failed.push(e.to_string()),
            }
        }
        Ok(())
    }

    fn command(&mut self, table: &Anatomy, out: &mut dyn Write) -> Done {
        match self.arguments.command {
            SstCommand::Scan | SstCommand::Check => {
                if !std::mem::replace(&mut self.any, true) {
                    self.range.show(out)?;
                }
                scan::run(table, &mut self.range, self.arguments, out)
            }
            SstCommand::Verify => {
                table.verify()?;
                Ok(out.write_all(b"The file is ok\n")?)
            }
            SstCommand::Raw => raw::run(&self.env, table, out),
            SstCommand::Blocks => blocks::run(table, self.arguments.output_hex, out),
            SstCommand::Identify | SstCommand::None | SstCommand::Recompress => Ok(()),
        }
    }

    /// Keeps the error of a table for the end. Returns errors of the output at once.
    fn note(&mut self, done: Done) -> Done {
        match done {
            Err(Outcome::Failed(text)) => {
                self.failed.push(text);
                Ok(())
            }
            other => other,
        }
    }

    fn finish(self, path: &Path, directory: bool, out: &mut dyn Write) -> Done {
        if directory && (self.valid.is_empty() || self.arguments.command == SstCommand::Identify) {
            writeln!(out, "------------------------------")?;
            if self.valid.is_empty() {
                return Err(Outcome::Failed(format!("No valid SST files found in {}", path.display())));
            }
            writeln!(out, "List of valid SST files found in {}:", path.display())?;
            self.valid.iter().try_for_each(|file| writeln!(out, "{}", file.display()))?;
            writeln!(out, "Number of valid SST files: {}", self.valid.len())?;
        }
        if self.arguments.show_summary {
            self.summary.show(out)?;
        }
        if let ([table], false, SstCommand::Identify) = (&self.valid[..], directory, self.arguments.command) {
            writeln!(out, "{} is a valid SST file", table.display())?;
        }
        if self.failed.is_empty() { Ok(()) } else { Err(Outcome::Failed(self.failed.join("\n"))) }
    }
}
