//! Compactions of tables that the caller names, with RocksDB's options.

use crate::options::Texts;
use crate::value::COMPRESSION;
use ashlardb::{Error, Family, FileNumber, Level, Result};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

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

/// What a compaction did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its number among those that callers of this process asked for; 0: none has run.
    pub job: i32,
    /// The name of the family.
    pub family: String,
    /// The number of the family.
    pub family_id: u32,
    /// The level of the outputs.
    pub output_level: i32,
    /// The tables that the compaction read, by level.
    pub inputs: Vec<NamedFile>,
    /// The tables that the compaction wrote, and behind them its blob files.
    pub outputs: Vec<NamedFile>,
    /// How many of the outputs are blob files.
    pub blobs: usize,
    /// The number of blob files in which the compaction left garbage.
    pub garbage_blobs: usize,
    /// Bytes of the inputs.
    pub input_bytes: u64,
    /// Bytes written.
    pub output_bytes: u64,
    /// Entries read.
    pub input_records: u64,
    /// Entries written.
    pub output_records: u64,
    /// Microseconds.
    pub micros: u64,
}

/// The number in the name of a table; 0, which no table has, for another name.
pub fn file_number(name: &Path) -> FileNumber {
    let stem = name.file_stem().and_then(|stem| stem.to_str());
    FileNumber(stem.and_then(|stem| stem.parse().ok()).unwrap_or(0))
}

/// Compacts tables of a family of the database in `dir` into a level.
///
/// # Errors
/// Those of [`Family::compact_files`]. `InvalidArgument`: no table is named, or a level below zero. `NotSupported`: a
/// compression of the outputs that is not that of the family.
pub fn compact_files(
    family: &Family,
    dir: &Path,
    numbers: &[FileNumber],
    level: i32,
    options: &Texts,
) -> Result<Report> {
    static JOBS: AtomicI32 = AtomicI32::new(0);
    if options.get_named("compression", COMPRESSION) != 255 {
        return Err(Error::not_supported(
            "the compression of compact_files: set the compression of the family",
        ));
    }
    if numbers.is_empty() {
        return Err(Error::invalid("compact_files without a table"));
    }
    let output =
        u8::try_from(level).map_err(|_| Error::invalid(format!("compact_files into level {level}")))?;
    let jobs = options.get::<u32>("max_subcompactions");
    let jobs = usize::try_from(jobs).unwrap_or(usize::MAX);
    let limit = options.get::<u64>("output_file_size_limit");
    let event = family.compact_files_reported(numbers, Level(output), jobs, limit)?;
    let mut report = Report {
        job: JOBS.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
        family: family.name().to_owned(),
        family_id: family.id().0,
        output_level: level,
        ..Report::default()
    };
    let Some(event) = event else { return Ok(report) };
    let named = |number: FileNumber, level: i32, extension: &str| {
        let path = dir.join(format!("{:06}.{extension}", number.0)).to_string_lossy().into_owned();
        NamedFile { number, level, path }
    };
    let of_level = |(level, files): &(Level, Vec<FileNumber>)| {
        let level = i32::from(level.0);
        files.iter().map(|number| named(*number, level, "sst")).collect::<Vec<_>>()
    };
    report.inputs = event.inputs.iter().flat_map(of_level).collect();
    report.outputs = event.output_tables.iter().map(|number| named(*number, level, "sst")).collect();
    report.outputs.extend(event.output_blobs.iter().map(|number| named(*number, level, "blob")));
    (report.blobs, report.garbage_blobs) = (event.output_blobs.len(), event.garbage_blobs);
    (report.input_bytes, report.output_bytes) = (event.input_bytes, event.output_bytes);
    (report.input_records, report.output_records) = (event.input_entries, event.output_entries);
    report.micros = event.micros;
    Ok(report)
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
