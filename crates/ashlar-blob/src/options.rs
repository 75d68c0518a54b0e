//! The choice of values that go to blob files, and the settings of blob files.

use crate::garbage::LiveBlobFile;
use ashlar_base::{Error, FileNumber, Result};
use ashlar_format::compress::{Compression, Compressor};
use std::collections::BTreeSet;

/// Settings of a family's blob files. Each field names RocksDB's option and ends with the default. Reading existing
/// blob files needs no setting.
#[derive(Clone, Debug, PartialEq)]
pub struct BlobOptions {
    /// Whether flushes and compactions write blob files: `enable_blob_files`. Off.
    pub enabled: bool,
    /// The length in bytes from which a value goes to a blob file: `min_blob_size`. Empty values never do. 0.
    pub min_blob_bytes: u64,
    /// The length in bytes at which a blob file ends: `blob_file_size`. 256 MiB.
    pub file_bytes: u64,
    /// The compression of values: `blob_compression_type`. A file has one compression for all its values. None.
    pub compression: Compression,
    /// The level of the codec. `None`, the default: the codec's default level.
    pub compression_level: Option<i32>,
    /// Whether compactions move values out of old blob files: `enable_blob_garbage_collection`. Off.
    pub collect_garbage: bool,
    /// The share of the files, oldest first, that counts as old, 0 to 1: `blob_garbage_collection_age_cutoff`. 0.25.
    pub age_cutoff: f64,
    /// The share of garbage in the oldest files, 0 to 1, from which tables are rewritten only to empty these files:
    /// `blob_garbage_collection_force_threshold`. 1.
    pub force_threshold: f64,
    /// The first level whose tables have their large values in blob files: `blob_file_starting_level`. 0.
    pub starting_level: u8,
    /// Whether large columns of entities go to blob files too. RocksDB reads such tables from 11 on, so the format
    /// level decides, whatever the value here.
    pub columns: bool,
}

impl Default for BlobOptions {
    fn default() -> Self {
        BlobOptions {
            enabled: false,
            min_blob_bytes: 0,
            file_bytes: 256 << 20,
            compression: Compression::None,
            compression_level: None,
            collect_garbage: false,
            age_cutoff: 0.25,
            force_threshold: 1.0,
            starting_level: 0,
            columns: false,
        }
    }
}

impl BlobOptions {
    /// Checks the settings.
    ///
    /// # Errors
    /// `InvalidArgument`: a value without a meaning. `NotSupported`: a compression that is only read.
    pub fn validate(&self) -> Result<()> {
        for (name, share) in [("age_cutoff", self.age_cutoff), ("force_threshold", self.force_threshold)] {
            if !(0.0..=1.0).contains(&share) {
                let text = format!("blob_garbage_collection_{name} {share} is not 0 to 1");
                return Err(Error::invalid(text));
            }
        }
        if self.file_bytes == 0 {
            return Err(Error::invalid("blob_file_size is 0"));
        }
        self.compressor().map(drop)
    }

    /// The compressor of the values.
    pub(crate) fn compressor(&self) -> Result<Compressor> {
        let level = self.compression_level.unwrap_or(Compressor::DEFAULT);
        Compressor::new(self.compression, level).map_err(|e| e.into_error())
    }

    /// The settings for tables of a level.
    pub fn at_level(&self, level: u8) -> BlobOptions {
        BlobOptions { enabled: self.enabled && level >= self.starting_level, ..self.clone() }
    }

    /// Whether a value of that length goes to a blob file.
    #[inline]
    pub fn separates(&self, value_len: usize) -> bool {
        self.enabled && value_len > 0 && value_len as u64 >= self.min_blob_bytes
    }

    /// Whether a column of that length goes to a blob file.
    #[inline]
    pub fn separates_column(&self, value_len: usize) -> bool {
        self.columns && self.separates(value_len)
    }

    /// The file number below which a compaction moves the values that it meets. `files`: all blob files of the family,
    /// ascending.
    pub fn relocate_below(&self, files: &[FileNumber]) -> FileNumber {
        if !self.collect_garbage {
            return FileNumber(0);
        }
        files.get(self.old_files(files.len())).copied().unwrap_or(FileNumber(u64::MAX))
    }

    /// The number of old files among `files` files.
    // A share of a count of files: exact, not negative, at most the count.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn old_files(&self, files: usize) -> usize {
        (self.age_cutoff.clamp(0.0, 1.0) * files as f64) as usize
    }

    /// The blob file whose tables are rewritten only to empty it: the oldest, if it and the files that stay only
    /// because of it all count as old and enough of their bytes is garbage. `files`: all blob files of the family,
    /// ascending; `linked`: those that a table names as its oldest.
    #[allow(clippy::cast_precision_loss, reason = "a share of bytes")]
    pub fn forced(&self, files: &[LiveBlobFile], linked: &BTreeSet<FileNumber>) -> Option<FileNumber> {
        let first = files.first().filter(|_| self.collect_garbage)?;
        let batch = 1 + files.iter().skip(1).take_while(|file| !linked.contains(&file.number)).count();
        if batch > self.old_files(files.len()) {
            return None;
        }
        let sum = |bytes: &dyn Fn(&LiveBlobFile) -> u64| {
            files.iter().take(batch).map(|file| bytes(file) as f64).sum::<f64>()
        };
        let (total, garbage) = (sum(&|file| file.total.bytes), sum(&|file| file.garbage.bytes));
        (garbage > 0.0 && garbage >= self.force_threshold * total).then_some(first.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::garbage::BlobAmount;

    #[test]
    fn sizes_and_shares() {
        let options = BlobOptions { enabled: true, min_blob_bytes: 32, ..BlobOptions::default() };
        assert_eq!([0, 31, 32].map(|len| options.separates(len)), [false, false, true]);
        let all = BlobOptions { enabled: true, ..BlobOptions::default() };
        assert_eq!([0, 1].map(|len| all.separates(len)), [false, true]);
        assert!(!BlobOptions::default().separates(1 << 20));
        let files = [3, 5, 8, 13].map(FileNumber);
        let below = |age_cutoff| {
            BlobOptions { collect_garbage: true, age_cutoff, ..BlobOptions::default() }
                .relocate_below(&files)
                .0
        };
        assert_eq!([0.0, 0.25, 0.49, 0.5, 1.0].map(below), [3, 5, 5, 8, u64::MAX]);
        assert_eq!(BlobOptions::default().relocate_below(&files), FileNumber(0));
        assert!(BlobOptions { age_cutoff: f64::NAN, ..BlobOptions::default() }.validate().is_err());
        assert!(BlobOptions { force_threshold: 1.5, ..BlobOptions::default() }.validate().is_err());
        assert!(BlobOptions { file_bytes: 0, ..BlobOptions::default() }.validate().is_err());
        assert!(options.validate().is_ok());
        let deep = BlobOptions { starting_level: 2, ..options };
        assert_eq!([0, 1, 2, 6].map(|level| deep.at_level(level).enabled), [false, false, true, true]);
    }

    #[test]
    fn the_oldest_batch_is_collected_when_enough_of_it_is_garbage() {
        let file = |number, garbage| LiveBlobFile {
            number: FileNumber(number),
            total: BlobAmount { count: 10, bytes: 1000 },
            garbage: BlobAmount { count: 1, bytes: garbage },
        };
        let files = [file(3, 500), file(5, 1000), file(8, 0), file(13, 0)];
        let forced = |age_cutoff, force_threshold, linked: &[u64]| {
            let options =
                BlobOptions { collect_garbage: true, age_cutoff, force_threshold, ..BlobOptions::default() };
            options.forced(&files, &linked.iter().copied().map(FileNumber).collect())
        };
        let oldest = Some(FileNumber(3));
        assert_eq!(forced(0.25, 0.5, &[3, 5, 8]), oldest);
        assert_eq!(forced(0.25, 0.51, &[3, 5, 8]), None, "too little garbage");
        assert_eq!(forced(0.0, 0.0, &[3, 5, 8]), None, "nothing is old");
        let fresh = [file(13, 0)];
        let always = BlobOptions {
            collect_garbage: true,
            age_cutoff: 1.0,
            force_threshold: 0.0,
            ..BlobOptions::default()
        };
        assert_eq!(always.forced(&fresh, &BTreeSet::from([FileNumber(13)])), None, "nothing to gain");
        assert_eq!(forced(0.5, 0.75, &[3, 8]), oldest, "5 stays for the sake of 3");
        assert_eq!(forced(0.25, 0.75, &[3, 8]), None, "5 is not old");
        assert_eq!(forced(1.0, 0.375, &[3]), oldest);
        assert_eq!(
            BlobOptions { age_cutoff: 1.0, ..BlobOptions::default() }.forced(&files, &BTreeSet::new()),
            None
        );
    }
}
