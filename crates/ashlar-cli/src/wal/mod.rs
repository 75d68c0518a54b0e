//! `ashlar wal`: explains a WAL file record by record, and why it ends where it ends.
//!
//! | file | subject |
//! |---|---|
//! | `stretch` | physical records in words |
//! | `ops` | batches and their operations |
//! | `end` | how the log ends, by the recovery mode |
//! | `rows` | ldb's dump_wal: a line for each batch |
//!
//! 1. Batches are shown as far as replay in the chosen mode would apply them. Physical records are shown to the end of
//!    the file, also after a cut.
//! 2. A sequence number that goes back is damage in every mode, except in files with marks of transactions, which count
//!    sequences differently.
//! 3. The exit status is 1 if replay in this mode meets damage that it does not skip silently.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (`dump_wal`, by its output).

mod end;
mod ops;
mod rows;
mod stretch;

use crate::Done;
use crate::bytes_text::{Hex, counted};
use crate::outcome::Outcome;
use ashlar_base::{Error, FileNumber, SeqNum};
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::{PredecessorInfo, decode_timestamp_sizes};
use ashlar_format::write_batch::BatchReader;
use ashlar_log::{LogReader, LogRecord, LogRecordKind, PhysicalRecord, PhysicalRecords, RecoveryMode};
use clap::{Args, ValueEnum};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) use rows::Rows;

const EXAMPLES: &str = "\
Examples:
  ashlar wal DB                                     every log of a directory
  ashlar wal DB/000004.log
  ashlar wal DB/000004.log --ops --values           every operation with its value
  ashlar wal DB/000004.log --mode=absolute          would a recovery without tolerance accept it?

Exit status: 0 shown to its end, 1 damaged or not there, 2 wrong command line.";

/// RocksDB's recovery modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Drops a torn tail; other damage is an error
    #[value(alias = "0")]
    TolerateTail,
    /// Any damage is an error
    #[value(alias = "1")]
    Absolute,
    /// Replays up to the first damage
    #[value(alias = "2")]
    PointInTime,
    /// Skips damaged records
    #[value(alias = "3")]
    SkipAny,
}

impl Mode {
    fn recovery(self) -> RecoveryMode {
        match self {
            Mode::TolerateTail => RecoveryMode::TolerateTail,
            Mode::Absolute => RecoveryMode::Absolute,
            Mode::PointInTime => RecoveryMode::PointInTime,
            Mode::SkipAny => RecoveryMode::SkipAny,
        }
    }
}

/// Explains every record of a WAL file, and how the file ends
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WalArguments {
    /// A WAL file, or a directory with WAL files
    #[arg(value_name = "FILE|DIRECTORY")]
    path: PathBuf,
    /// Show each operation
    #[arg(long)]
    ops: bool,
    /// Show values as well
    #[arg(long, requires = "ops")]
    values: bool,
    /// The recovery mode
    #[arg(long, value_enum, default_value = "point-in-time")]
    mode: Mode,
    /// The file number, if the name of the file does not contain it
    #[arg(long, value_name = "N")]
    number: Option<u64>,
}

/// Runs `ashlar wal` on a WAL file, or on each WAL file of a directory in the order of their numbers.
///
/// Damage in one file does not end the command: the next files are still shown.
pub(crate) fn run(arguments: &WalArguments) -> Done {
    if !arguments.path.is_dir() {
        return one(arguments);
    }
    let mut all = Ok(());
    for path in files_of(&arguments.path)? {
        all = all.and(one(&WalArguments { path, ..arguments.clone() }));
    }
    all
}

/// The WAL files of a directory, in the order of their numbers.
fn files_of(dir: &Path) -> Result<Vec<PathBuf>, Outcome> {
    let entries = Env::os()?.fs.files(dir)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| dir.join(entry.name)).collect();
    files.retain(|path| number_of(path).is_some());
    files.sort_by_key(|path| number_of(path));
    match files.is_empty() {
        true => Err(Outcome::Failed(format!("{}: no WAL file is in this directory", dir.display()))),
        false => Ok(files),
    }
}

fn one(arguments: &WalArguments) -> Done {
    let number = match (arguments.number, number_of(&arguments.path)) {
        (Some(n), _) => FileNumber(n),
        (None, Some(n)) => n,
        (None, None) => {
            let name = arguments.path.display();
            return Err(Outcome::Usage(format!(
                "{name}: not the name of a WAL file. {}",
                what_instead(&arguments.path)
            )));
        }
    };
    let env = Env::os()?;
    let file = env.fs.open_read(&arguments.path)?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{}: {}", arguments.path.display(), counted(file.len(), "byte"))?;
    let walk = Walk {
        arguments,
        physical: PhysicalRecords::new(file.clone(), number),
        ahead: None,
        reader: LogReader::open(file, number, arguments.mode.recovery()),
        wrong: None,
        next: SeqNum::ZERO,
        gone_back: None,
        transactions: false,
        batches: 0,
        operations: 0,
    };
    let shown = walk.show(&mut out);
    out.flush()?;
    shown
}

/// The hint for a path whose name is not that of a WAL file.
fn what_instead(path: &Path) -> String {
    let kind = path.file_name().and_then(|name| FileKind::parse(name.to_str()?));
    match kind {
        Some(FileKind::Manifest(_)) => "It is a MANIFEST: `ashlar manifest` explains it".to_owned(),
        Some(FileKind::Table(_)) => "It is a table: `ashlar sst` explains it".to_owned(),
        _ => "Give its number with --number=N".to_owned(),
    }
}

fn number_of(path: &Path) -> Option<FileNumber> {
    match FileKind::parse(path.file_name()?.to_str()?)? {
        FileKind::Wal(n) => Some(n),
        _ => None,
    }
}

struct Walk<'a> {
    arguments: &'a WalArguments,
    physical: PhysicalRecords,
    /// A physical record that has been read and is not yet shown.
    ahead: Option<PhysicalRecord>,
    reader: LogReader,
    /// The first batch that does not decode.
    wrong: Option<Error>,
    /// The sequence number after the batches so far.
    next: SeqNum,
    /// The offset of the first batch with a lower sequence number, and the description of the error.
    gone_back: Option<(u64, String)>,
    /// Whether a batch has marks of transactions.
    transactions: bool,
    batches: u64,
    operations: u64,
}

impl Walk<'_> {
    fn show(mut self, out: &mut dyn Write) -> Done {
        loop {
            let (at, words) = match self.reader.next()? {
                None => break,
                Some(record) => {
                    let told = tell(&record, self.arguments);
                    let at = record.offset;
                    (at, told.map_err(|e| e.at(&self.arguments.path, at)))
                }
            };
            self.stretches(self.reader.good_end(), out)?;
            match words {
                Ok(Told { lines, batch, sequences, transactions }) => {
                    self.transactions |= transactions;
                    self.follow(at, sequences);
                    lines.iter().try_for_each(|line| out.write_all(line))?;
                    self.batches += u64::from(batch.is_some());
                    self.operations += batch.unwrap_or(0);
                }
                // Replay stops here in every mode except the last.
                Err(e) => {
                    self.wrong = Some(e);
                    break;
                }
            }
        }
        self.stretches(u64::MAX, out)?;
        let (batches, operations) = (counted(self.batches, "batch"), counted(self.operations, "operation"));
        writeln!(out, "\n{batches}, {operations}")?;
        if let Some(e) = self.wrong {
            return Err(e.into());
        }
        if let Some((at, what)) = self.gone_back.filter(|_| !self.transactions) {
            let hint = "No database opens with this WAL file; 'ashlar db repair' keeps what stands before";
            return Err(Error::corruption(what).at(&self.arguments.path, at).hint(hint).into());
        }
        let (words, damaged) = end::words(self.reader.end(), self.reader.skipped(), self.arguments.mode);
        writeln!(out, "{words}")?;
        let at = |e: Error| Outcome::from(e.at_path(&self.arguments.path));
        match damaged {
            true => {
                Err(self.reader.cut_error().map_or_else(|| at(Error::corruption("WAL file is damaged")), at))
            }
            false => Ok(()),
        }
    }

    /// Checks the sequence number of the batch at `offset` and computes the next one.
    fn follow(&mut self, offset: u64, sequences: Option<(SeqNum, SeqNum)>) {
        let Some((seq, behind)) = sequences else { return };
        if seq < self.next {
            let what = format!("the sequence goes back: {} was next, the batch has {seq}", self.next);
            self.gone_back.get_or_insert((offset, what));
        }
        self.next = self.next.max(behind);
    }

    /// Shows the physical records that begin before `end`.
    fn stretches(&mut self, end: u64, out: &mut dyn Write) -> Done {
        loop {
            let Some(next) = self.ahead.take().map_or_else(|| self.physical.next(), |r| Ok(Some(r)))? else {
                return Ok(());
            };
            if next.offset >= end {
                self.ahead = Some(next);
                return Ok(());
            }
            writeln!(out, "{}", stretch::words(&next))?;
        }
    }
}

/// The text of a record.
struct Told {
    lines: Vec<Vec<u8>>,
    /// The operations of a batch.
    batch: Option<u64>,
    /// The sequence number of a batch with operations, and the number after it.
    sequences: Option<(SeqNum, SeqNum)>,
    /// Whether the batch has marks of transactions.
    transactions: bool,
}

fn tell(record: &LogRecord<'_>, arguments: &WalArguments) -> Result<Told, Error> {
    let line = |text: String| {
        let lines = vec![text.into_bytes()];
        Told { lines, batch: None, sequences: None, transactions: false }
    };
    match record.kind {
        LogRecordKind::Data => {
            let batch = BatchReader::new(record.payload).map_err(|e| e.into_error())?;
            let mut lines = vec![ops::head(&batch, record.payload.len()).into_bytes()];
            let mut transactions = false;
            for op in batch.iter() {
                let op = op.map_err(|e| e.into_error())?;
                transactions |= ops::is_mark(&op);
                if arguments.ops {
                    lines.push(ops::line(&op, arguments.values).into_bytes());
                }
            }
            let count = u64::from(batch.count());
            // The first batch of an AshlarDB WAL file may be empty and say where the preceding WAL file ended.
            let counted = batch.seq().checked_add(count).filter(|_| count > 0);
            let sequences = counted.map(|behind| (batch.seq(), behind));
            Ok(Told { lines, batch: Some(count), sequences, transactions })
        }
        LogRecordKind::TimestampSizes => {
            let sizes = decode_timestamp_sizes(record.payload).map_err(|e| e.into_error())?;
            let words: Vec<String> =
                sizes.iter().map(|(family, size)| format!("family {}: {size}", family.0)).collect();
            Ok(line(format!("  timestamp sizes: {}\n", words.join(", "))))
        }
        LogRecordKind::PredecessorInfo => {
            let info = PredecessorInfo::decode(record.payload).map_err(|e| e.into_error())?;
            Ok(line(format!(
                "  the WAL file before this one is {}: {}, its last batch at sequence {}\n",
                info.number,
                counted(info.size, "byte"),
                info.last_batch
            )))
        }
    }
}

/// The format of bytes inside operations: always digits, as in ldb.
fn digits(bytes: &[u8]) -> String {
    format!("0x{}", Hex(bytes))
}
