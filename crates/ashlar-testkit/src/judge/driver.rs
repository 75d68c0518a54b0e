//! The driver of `rocksdb-judge`: one child process, one conversation.
//!
//! 1. Every call waits for its answer; a call never returns half an answer.
//! 2. A child that ends in the middle (RocksDB aborts on failed assertions) is [`JudgeError::Died`].
//! 3. Dropping the judge closes its input and waits, so that its database is closed in order; [`Judge::kill`] does not.

use super::exports::ExportedTable;
use super::places::{Skip, place};
use crate::KeyValue;
use crate::ops::{Bulk, Change, Op};
use crate::text::{from_hex, to_hex};
use std::fmt;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A release to judge by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JudgeVersion {
    /// 7.8.3 as Debian builds it, assertions compiled in.
    V7,
    /// 11.8.1, the release build inside its Java artifact.
    V11,
    /// LevelDB 1.23 as Debian builds it, assertions compiled in. It has one family, `default`, puts and deletes.
    LevelDb,
}

impl JudgeVersion {
    /// Both of RocksDB, older first.
    pub const ALL: [JudgeVersion; 2] = [JudgeVersion::V7, JudgeVersion::V11];

    /// The name of its library in the list of places.
    pub fn name(self) -> &'static str {
        match self {
            JudgeVersion::V7 => "rocksdb-7.8.3",
            JudgeVersion::V11 => "rocksdb-11.8.1",
            JudgeVersion::LevelDb => "leveldb-1.23",
        }
    }
}

/// The option that gives every family the merge operator of the lists, [`crate::ops::MERGE_OPERATOR`].
pub const MERGING: &str = "merge_operator=stringappend";

/// Read options of RocksDB that are on or off and change nothing of what a reader sees. With `tailing` an iterator goes forwards
/// only.
pub const READ_FLAGS: [&str; 9] = [
    "adaptive_readahead",
    "async_io",
    "auto_prefix_mode",
    "auto_readahead_size",
    "background_purge_on_iterator_cleanup",
    "fill_cache",
    "pin_data",
    "prefix_same_as_start",
    "tailing",
];

/// How the judge opens a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Make it if it is not there.
    Create,
    /// It must be there.
    Existing,
    /// It must be there; no file is changed, except that RocksDB may add an info log.
    ReadOnly,
    /// It must be there; options and families are those of its newest OPTIONS file, every name of which must be known.
    Stored,
}

/// Why the judge gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JudgeError {
    /// There is no such judge on this machine.
    Skip(Skip),
    /// RocksDB refused: its own words.
    Refused(String),
    /// The judge's process ended, or could not be started or understood.
    Died(String),
}

impl fmt::Display for JudgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JudgeError::Skip(skip) => write!(f, "{skip}"),
            JudgeError::Refused(text) => write!(f, "the judge refused: {text}"),
            JudgeError::Died(text) => write!(f, "the judge died: {text}"),
        }
    }
}

impl std::error::Error for JudgeError {}

/// A running judge.
#[derive(Debug)]
pub struct Judge {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl Judge {
    /// The judge's program and library, or the reason why it is missing.
    pub fn available(version: JudgeVersion) -> Result<(PathBuf, PathBuf), Skip> {
        Ok((place("rocksdb-judge")?, place(version.name())?))
    }

    /// Starts a judge.
    ///
    /// # Errors
    /// `Skip` when it is not installed, `Died` when it cannot be started.
    pub fn spawn(version: JudgeVersion) -> Result<Judge, JudgeError> {
        let (program, library) = Judge::available(version).map_err(JudgeError::Skip)?;
        Judge::spawn_with(&program, &library)
    }

    /// Starts `program` on `library`.
    ///
    /// # Errors
    /// `Died` with the reason.
    pub fn spawn_with(program: &Path, library: &Path) -> Result<Judge, JudgeError> {
        Judge::start(Command::new(program).arg("--library").arg(library), program)
    }

    /// Starts a judge that ends itself during a command that takes longer than `longest`.
    ///
    /// # Errors
    /// As [`Judge::spawn`].
    pub fn spawn_impatient(version: JudgeVersion, longest: Duration) -> Result<Judge, JudgeError> {
        let (program, library) = Judge::available(version).map_err(JudgeError::Skip)?;
        let mut command = Command::new(&program);
        command.arg("--library").arg(library).arg("--longest").arg(longest.as_millis().to_string());
        Judge::start(command.stderr(Stdio::null()), &program)
    }

    fn start(command: &mut Command, program: &Path) -> Result<Judge, JudgeError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| JudgeError::Died(format!("cannot start {}: {e}", program.display())))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(JudgeError::Died("no pipes".into()));
        };
        let mut judge = Judge { child, input: Some(BufWriter::new(input)), output: BufReader::new(output) };
        judge.answer()?;
        Ok(judge)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Opens a directory with all its families; `options` is RocksDB's `name=value;…`, for the database and every family.
    ///
    /// # Errors
    /// `Refused` with RocksDB's words. Its paranoid checks are on.
    pub fn open(&mut self, dir: &Path, opening: Opening, options: &str) -> Result<(), JudgeError> {
        let mode = match opening {
            Opening::Create => "create",
            Opening::Existing => "existing",
            Opening::ReadOnly => "readonly",
            Opening::Stored => "stored",
        };
        let path = to_hex(dir.as_os_str().as_encoded_bytes());
        self.say(&format!("open {mode} {path} {options}")).map(|_| ())
    }

    /// One line of preparation for the openings that follow, as `session.rs` of the judge lists them: `with ...`, `without`.
    ///
    /// # Errors
    /// `Refused`: not understood, by a judge of before such lines too.
    pub fn prepare(&mut self, line: &str) -> Result<(), JudgeError> {
        self.say(line).map(|_| ())
    }

    /// Many operations of one kind.
    ///
    /// # Errors
    /// The first that RocksDB refuses; those before it are done.
    pub fn bulk(&mut self, bulk: &Bulk) -> Result<(), JudgeError> {
        self.say(&bulk.to_string()).map(|_| ())
    }

    /// Writes an SST file outside the open database, with the options of the family; keys ascend. The judge of before this
    /// refuses it.
    ///
    /// # Errors
    /// `Refused` with RocksDB's words.
    pub fn write_sst(&mut self, family: &str, path: &Path, changes: &[Change]) -> Result<(), JudgeError> {
        let list: Vec<String> = changes.iter().map(Change::to_string).collect();
        let path = to_hex(path.as_os_str().as_encoded_bytes());
        self.say(&format!("sst {family} {path} {}", list.join(" ; "))).map(|_| ())
    }

    /// Takes SST files into a family, with RocksDB's default options.
    ///
    /// # Errors
    /// As [`Judge::write_sst`].
    pub fn ingest(&mut self, family: &str, paths: &[&Path]) -> Result<(), JudgeError> {
        let path = |path: &&Path| to_hex(path.as_os_str().as_encoded_bytes());
        let paths: Vec<String> = paths.iter().map(path).collect();
        self.say(&format!("ingest {family} {}", paths.join(" "))).map(|_| ())
    }

    /// [`Judge::ingest`] below all entries of the family, which must have been opened for it.
    ///
    /// # Errors
    /// As [`Judge::write_sst`].
    pub fn ingest_behind(&mut self, family: &str, paths: &[&Path]) -> Result<(), JudgeError> {
        let paths: Vec<String> = paths.iter().map(|path| hex_path(path)).collect();
        self.say(&format!("ingest_behind {family} {}", paths.join(" "))).map(|_| ())
    }

    /// Exports a family into a new directory: the name of its comparator, and its tables. Of the two releases only 11 does.
    ///
    /// # Errors
    /// As [`Judge::write_sst`].
    pub fn export_family(
        &mut self,
        family: &str,
        dir: &Path,
    ) -> Result<(String, Vec<ExportedTable>), JudgeError> {
        let lines = self.say(&format!("export {family} {}", hex_path(dir)))?.lines;
        let mut lines = lines.into_iter();
        let comparator = lines.next().unwrap_or_default();
        let tables = lines.map(|line| line.parse().map_err(JudgeError::Died)).collect::<Result<_, _>>()?;
        Ok((comparator, tables))
    }

    /// Makes a family of the tables of an export. Of the two releases only 11 does.
    ///
    /// # Errors
    /// As [`Judge::write_sst`].
    pub fn import_family(
        &mut self,
        name: &str,
        comparator: &str,
        tables: &[ExportedTable],
    ) -> Result<(), JudgeError> {
        let tables: Vec<String> = tables.iter().map(ExportedTable::to_string).collect();
        self.say(&format!("import {name} {comparator} {}", tables.join(" ; "))).map(|_| ())
    }

    /// Adds a backup of the open database to `dir` by RocksDB's engine, after a flush. The judge of before this refuses it, and
    /// the three calls below.
    ///
    /// # Errors
    /// `Refused` with RocksDB's words.
    pub fn create_backup(&mut self, dir: &Path) -> Result<(), JudgeError> {
        self.say(&format!("backup create {}", hex_path(dir))).map(|_| ())
    }

    /// Restores the newest backup of `dir`.
    ///
    /// # Errors
    /// As [`Judge::create_backup`].
    pub fn restore_latest(&mut self, dir: &Path, into: &Path) -> Result<(), JudgeError> {
        self.say(&format!("backup restore {} {}", hex_path(dir), hex_path(into))).map(|_| ())
    }

    /// Id, number of bytes and number of files of each backup in `dir`, each verified.
    ///
    /// # Errors
    /// As [`Judge::create_backup`].
    pub fn verified_backups(&mut self, dir: &Path) -> Result<Vec<(u32, u64, usize)>, JudgeError> {
        let lines = self.say(&format!("backup list {}", hex_path(dir)))?.lines;
        let mut backups = Vec::new();
        for line in lines {
            let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [id, _, bytes, files] = numbers[..] else {
                return Err(JudgeError::Died(format!("not a backup: {line}")));
            };
            self.say(&format!("backup verify {id} {}", hex_path(dir)))?;
            let number = |n: u64| JudgeError::Died(format!("not a number of a backup: {n}"));
            let id = u32::try_from(id).map_err(|_| number(id))?;
            backups.push((id, bytes, usize::try_from(files).map_err(|_| number(files))?));
        }
        Ok(backups)
    }

    /// Deletes all backups of `dir` but the newest `keep`.
    ///
    /// # Errors
    /// As [`Judge::create_backup`].
    pub fn purge_backups(&mut self, dir: &Path, keep: u32) -> Result<(), JudgeError> {
        self.say(&format!("backup purge {keep} {}", hex_path(dir))).map(|_| ())
    }

    /// The names of the transactions that an opening `with transactions` found prepared, sorted. Asked before any other
    /// transaction is begun. The judge of before this refuses it.
    ///
    /// # Errors
    /// `Refused` with RocksDB's words.
    pub fn undecided(&mut self) -> Result<Vec<Vec<u8>>, JudgeError> {
        self.say("undecided")?.lines.iter().map(|line| hex(line)).collect()
    }

    /// Commits or rolls back one of them.
    ///
    /// # Errors
    /// As [`Judge::undecided`].
    pub fn decide(&mut self, commit: bool, name: &[u8]) -> Result<(), JudgeError> {
        let how = if commit { "commit" } else { "rollback" };
        self.say(&format!("decide {how} {}", to_hex(name))).map(|_| ())
    }

    /// Closes the database in order.
    pub fn close(&mut self) -> Result<(), JudgeError> {
        self.say("close").map(|_| ())
    }

    /// Kills the process as `kill -9` does and waits for its end; what it had open is left as it lies.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Names of the open families, sorted.
    pub fn families(&mut self) -> Result<Vec<String>, JudgeError> {
        Ok(self.say("families")?.lines)
    }

    /// Adds a family.
    pub fn create_family(&mut self, name: &str) -> Result<(), JudgeError> {
        self.say(&format!("create {name}")).map(|_| ())
    }

    /// Adds the families `prefix0`, `prefix1` … by one call of RocksDB.
    ///
    /// # Errors
    /// `Refused` with RocksDB's words, and by a version without the call.
    pub fn create_families(&mut self, prefix: &str, count: u32) -> Result<(), JudgeError> {
        self.say(&format!("create_families {prefix} {count}")).map(|_| ())
    }

    /// Drops a family.
    pub fn drop_family(&mut self, name: &str) -> Result<(), JudgeError> {
        self.say(&format!("drop {name}")).map(|_| ())
    }

    /// Does writes, flushes, compactions and reopens in order. Reads and snapshots are passed over.
    ///
    /// # Errors
    /// The first that RocksDB refuses; those before it are done.
    pub fn apply(&mut self, ops: &[Op]) -> Result<(), JudgeError> {
        for op in ops {
            match op {
                Op::Get { .. } | Op::Scan { .. } | Op::Snapshot { .. } | Op::Release { .. } => {}
                _ => self.say(&op.to_string()).map(|_| ())?,
            }
        }
        Ok(())
    }

    /// One atomic write.
    pub fn write(&mut self, changes: &[Change], sync: bool) -> Result<(), JudgeError> {
        self.say(&Op::Write { changes: changes.to_vec(), sync }.to_string()).map(|_| ())
    }

    /// One key.
    pub fn get(&mut self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>, JudgeError> {
        let word = self.say(&format!("get {family} {}", to_hex(key)))?.word;
        if word == "none" { Ok(None) } else { hex(&word).map(Some) }
    }

    /// Every entry of a family in order, checksums verified.
    pub fn dump(&mut self, family: &str) -> Result<Vec<KeyValue>, JudgeError> {
        self.listing("dump", family)
    }

    /// Every entry of a family from the end to the start.
    pub fn dump_backwards(&mut self, family: &str) -> Result<Vec<KeyValue>, JudgeError> {
        self.listing("rdump", family)
    }

    /// Gets and seeks keys of a family, and compares with a scan; answers how many. The judge of before this refuses it.
    ///
    /// # Errors
    /// `Refused` with the first key that differs.
    pub fn probe(&mut self, family: &str) -> Result<usize, JudgeError> {
        let word = self.say(&format!("probe {family}"))?.word;
        word.parse().map_err(|_| JudgeError::Died(format!("not a number: {word}")))
    }

    /// The digest of a family: equals [`super::digest()`] of its listing. For families too large to ship.
    pub fn digest(&mut self, family: &str) -> Result<String, JudgeError> {
        Ok(self.say(&format!("digest {family}"))?.word)
    }

    /// Number of live tables over all families.
    pub fn tables(&mut self) -> Result<usize, JudgeError> {
        let word = self.say("tables")?.word;
        word.parse().map_err(|_| JudgeError::Died(format!("not a number: {word}")))
    }

    /// Reads every block of every table with its checksum verified; answers how many tables that are, `None` from 7.8.3,
    /// which cannot (ask [`super::Tools::check_tables`]).
    ///
    /// # Errors
    /// `Refused` with the first table that does not hold.
    pub fn verify(&mut self) -> Result<Option<usize>, JudgeError> {
        let word = self.say("verify")?.word;
        if word == "none" {
            return Ok(None);
        }
        word.parse().map(Some).map_err(|_| JudgeError::Died(format!("not a number: {word}")))
    }

    fn listing(&mut self, verb: &str, family: &str) -> Result<Vec<KeyValue>, JudgeError> {
        let answer = self.say(&format!("{verb} {family}"))?;
        let entries = answer.lines.iter().map(|line| {
            let (key, value) =
                line.split_once(' ').ok_or_else(|| JudgeError::Died(format!("half a line: {line}")))?;
            Ok((hex(key)?, hex(value)?))
        });
        let entries = entries.collect::<Result<Vec<_>, JudgeError>>()?;
        if answer.word != entries.len().to_string() {
            return Err(JudgeError::Died(format!(
                "{} entries announced, {} read",
                answer.word,
                entries.len()
            )));
        }
        Ok(entries)
    }

    fn say(&mut self, line: &str) -> Result<Answer, JudgeError> {
        let sent = match &mut self.input {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        match (sent, self.answer()) {
            (Err(e), Err(JudgeError::Died(text))) => Err(JudgeError::Died(format!("{text} ({e})"))),
            (_, answer) => answer,
        }
    }

    fn answer(&mut self) -> Result<Answer, JudgeError> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).map_err(|e| JudgeError::Died(e.to_string()))?;
            if read == 0 {
                let end = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
                return Err(JudgeError::Died(format!("no answer, {end}")));
            }
            let line = line.trim_end_matches('\n');
            if let Some(entry) = line.strip_prefix("= ") {
                lines.push(entry.to_owned());
            } else if let Some(text) = line.strip_prefix("error: ") {
                return Err(JudgeError::Refused(text.to_owned()));
            } else if let Some(word) = line.strip_prefix("ok") {
                return Ok(Answer { lines, word: word.trim().to_owned() });
            } else {
                return Err(JudgeError::Died(format!("not an answer: {line}")));
            }
        }
    }
}

struct Answer {
    lines: Vec<String>,
    word: String,
}

fn hex_path(path: &Path) -> String {
    to_hex(path.as_os_str().as_encoded_bytes())
}

fn hex(text: &str) -> Result<Vec<u8>, JudgeError> {
    from_hex(text).ok_or_else(|| JudgeError::Died(format!("not hex: {text}")))
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
