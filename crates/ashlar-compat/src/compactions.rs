//! Compactions of tables that the caller names, with RocksDB's options.

use crate::listener::{Inputs, TableReport};
use crate::options::Texts;
use crate::status::is_paused;
use crate::value::COMPRESSION;
use ashlar_format::compress::Compression;
use ashlar_format::filename::FileKind;
use ashlardb::{
    BlobsEvent, CompactFilesOptions, CompactionEvent, Error, ErrorKind, Family, FileNumber, Level, Result,
};
use std::path::Path;

/// RocksDB's defaults that are not zero.
pub const DEFAULTS: [(&str, &str); 2] =
    [("compression", "kDisableCompressionOption"), ("output_file_size_limit", "18446744073709551615")];

/// A table of a compaction.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// The number in its name.
    pub number: FileNumber,
    /// Its level.
    pub level: i32,
    /// Its path.
    pub path: String,
}

/// Blobs of one file: those that were written to it, or those that nothing reads any more.
#[derive(Clone, Debug)]
pub struct Blobs {
    /// The number in the name of the file.
    pub number: FileNumber,
    /// The path of the file.
    pub path: String,
    /// How many.
    pub count: u64,
    /// The bytes of their records.
    pub bytes: u64,
}

impl Blobs {
    /// The blobs of an event of the database in `dir`.
    pub(crate) fn all(dir: &Path, events: &[BlobsEvent]) -> Vec<Blobs> {
        let named = |event: &BlobsEvent| Blobs {
            number: event.file,
            path: path(dir, FileKind::Blob(event.file)),
            count: event.count,
            bytes: event.bytes,
        };
        events.iter().map(named).collect()
    }
}

/// The path of a table: where the family has it now, or where a table of a database in `dir` is without other directories.
pub(crate) fn table_path(family: Option<&Family>, dir: &Path, number: FileNumber) -> String {
    let found = family.and_then(|family| family.path_of_table(number).ok().flatten());
    found.map_or_else(|| path(dir, FileKind::Table(number)), |found| found.to_string_lossy().into_owned())
}

/// The path of a file in the directory of a database.
fn path(dir: &Path, file: FileKind) -> String {
    dir.join(file.name()).to_string_lossy().into_owned()
}

/// What a compaction does, or did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its number among the flushes and compactions since the open; 0: none has run.
    pub job: i32,
    /// The name of the family.
    pub family: String,
    /// The number of the family.
    pub family_id: u32,
    /// RocksDB's number of the reason.
    pub reason: u32,
    /// A caller asked for it.
    pub manual: bool,
    /// The level of the outputs.
    pub output_level: i32,
    /// The tables that the compaction reads, by level.
    pub inputs: Vec<NamedFile>,
    /// The inputs, for their properties.
    pub input_tables: Inputs,
    /// The tables that the compaction wrote.
    pub outputs: Vec<NamedFile>,
    /// Its tables change their level without being read.
    pub trivial_move: bool,
    /// The blob files that it wrote.
    pub blobs: Vec<Blobs>,
    /// What it left in blob files without a reader.
    pub garbage: Vec<Blobs>,
    /// Bytes of the inputs.
    pub input_bytes: u64,
    /// Bytes written.
    pub output_bytes: u64,
    /// Entries read.
    pub input_records: u64,
    /// Entries written.
    pub output_records: u64,
    /// Entries dropped because newer ones or range deletions hide them.
    pub hidden_records: u64,
    /// Deletions dropped because they hid nothing any more.
    pub ended_deletions: u64,
    /// Microseconds.
    pub micros: u64,
    /// The number of tables in level 0 after the compaction.
    pub level0: i32,
    /// RocksDB's number of the compression of the outputs.
    pub compression: u32,
    /// RocksDB's number of the compression of blobs.
    pub blob_compression: u32,
    /// Why the compaction ended without a change of the tree.
    pub error: Option<Error>,
}

impl Report {
    /// Whether a call ended all compactions.
    pub fn is_aborted(&self) -> bool {
        let kind = self.error.as_ref().map(|e| (e.kind(), is_paused(e)));
        kind == Some((ErrorKind::Aborted, false))
    }

    /// Adds the figures of another compaction.
    pub fn add(&mut self, other: &Report) {
        self.micros += other.micros;
        self.input_bytes += other.input_bytes;
        self.output_bytes += other.output_bytes;
        self.input_records += other.input_records;
        self.output_records += other.output_records;
        self.hidden_records += other.hidden_records;
        self.ended_deletions += other.ended_deletions;
        self.inputs.extend_from_slice(&other.inputs);
        self.outputs.extend_from_slice(&other.outputs);
    }

    /// How many inputs are in the level of the outputs.
    pub fn inputs_at_output(&self) -> usize {
        self.inputs.iter().filter(|file| file.level == self.output_level).count()
    }

    /// The report of an event of the family of the database in `dir`.
    pub(crate) fn of(event: &CompactionEvent, dir: &Path, family: Option<&Family>) -> Report {
        let options = family.map(Family::options);
        let options = options.as_deref();
        let named = |number: FileNumber, level: Level| NamedFile {
            number,
            level: level.0.into(),
            path: table_path(family, dir, number),
        };
        let of_level = |(level, files): &(Level, Vec<FileNumber>)| {
            files.iter().map(|number| named(*number, *level)).collect::<Vec<_>>()
        };
        let table = options.map(|options| options.table.for_level(event.output_level.0.into(), 1, false));
        Report {
            job: i32::try_from(event.job).unwrap_or(i32::MAX),
            family: event.family.clone(),
            family_id: event.family_id.0,
            reason: reason(event.reason),
            manual: matches!(event.reason, "manual" | "chosen"),
            output_level: event.output_level.0.into(),
            inputs: event.inputs.iter().flat_map(of_level).collect(),
            input_tables: Inputs::default(),
            outputs: event.output_tables.iter().map(|number| named(*number, event.output_level)).collect(),
            trivial_move: event.trivial_move,
            blobs: Blobs::all(dir, &event.output_blobs),
            garbage: Blobs::all(dir, &event.garbage_blobs),
            input_bytes: event.input_bytes,
            output_bytes: event.output_bytes,
            input_records: event.input_entries,
            output_records: event.output_entries,
            hidden_records: event.hidden_entries,
            ended_deletions: event.ended_deletions,
            micros: event.micros,
            level0: event.levels.first().map_or(0, |count| i32::try_from(*count).unwrap_or(i32::MAX)),
            compression: table.map_or(0, |table| table.compression.byte().into()),
            blob_compression: options.map_or(0, |options| options.blob.compression.byte().into()),
            error: None,
        }
    }
}

/// RocksDB's number (`CompactionReason`) for a reason of the engine; 0: RocksDB has no such reason.
fn reason(name: &str) -> u32 {
    match name {
        "level0" | "within-level0" => 1,
        "level-size" => 2,
        "space-amplification" => 3,
        "size-ratio" => 4,
        "run-count" => 5,
        "fifo-size" => 6,
        "manual" | "chosen" => 9,
        "tombstones" | "marked" => 10,
        "bottommost-files" => 11,
        "ttl" => 12,
        "periodic" => 15,
        "blob-garbage" => 17,
        _ => 0,
    }
}

/// The number in the name of a file of a database; 0, which no file has, for another name.
pub fn file_number(name: &Path) -> FileNumber {
    let kind = name.file_name().and_then(|name| name.to_str()).and_then(FileKind::parse);
    kind.and_then(FileKind::number).unwrap_or(FileNumber(0))
}

/// Compacts tables of a family of the database in `dir` into a level.
///
/// # Errors
/// Those of [`Family::compact_files`]. `InvalidArgument`: no table is named, a level below zero, or an unknown compression.
pub fn compact_files(
    family: &Family,
    dir: &Path,
    numbers: &[FileNumber],
    level: i32,
    options: &Texts,
) -> Result<Report> {
    if numbers.is_empty() {
        return Err(Error::invalid("compact_files without a table"));
    }
    let output =
        u8::try_from(level).map_err(|_| Error::invalid(format!("compact_files into level {level}")))?;
    let jobs = options.get::<u32>("max_subcompactions");
    let jobs = usize::try_from(jobs).unwrap_or(usize::MAX);
    let limit = options.get::<u64>("output_file_size_limit");
    let mut how = CompactFilesOptions::new().max_subcompactions(jobs).file_bytes(limit);
    how.compression = compression(options)?;
    let inputs: Vec<(FileNumber, String)> =
        numbers.iter().map(|number| (*number, table_path(Some(family), dir, *number))).collect();
    let read = |(number, path): &(FileNumber, String)| TableReport::read(family, *number, path);
    let input_tables = Inputs::Read(inputs.iter().filter_map(read).collect());
    let event = family.compact_files_with(numbers, Level(output), how)?;
    let nothing = || {
        CompactionEvent::begun(
            0,
            (family.name().to_owned(), family.id()),
            "chosen",
            Vec::new(),
            Level(output),
            0,
        )
    };
    let mut report = Report::of(&event.unwrap_or_else(nothing), dir, Some(family));
    // The tree may not have the inputs now.
    for input in &mut report.inputs {
        if let Some((_, path)) = inputs.iter().find(|(number, _)| *number == input.number) {
            input.path.clone_from(path);
        }
    }
    report.input_tables = input_tables;
    Ok(report)
}

/// The compression of the outputs; `None`: that of the family, which RocksDB's `kDisableCompressionOption` stands for.
fn compression(options: &Texts) -> Result<Option<Compression>> {
    let number = options.get_named("compression", COMPRESSION);
    if number == 255 {
        return Ok(None);
    }
    let known = u8::try_from(number).ok().and_then(Compression::from_byte);
    known.map(Some).ok_or_else(|| Error::invalid(format!("compact_files with the compression {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_with_or_without_its_directory() {
        let number = |name: &str| file_number(Path::new(name)).0;
        assert_eq!((number("000012.sst"), number("/000012.sst"), number("/a/b/000012.sst")), (12, 12, 12));
        assert_eq!((number("CURRENT"), number(""), number("-1.sst")), (0, 0, 0));
    }
}
