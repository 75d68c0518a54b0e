//! Which values are separated from their keys, and how blob files are made.

use ashlar_base::{Error, FileNumber, Result};
use ashlar_format::compress::Compression;

/// How a family uses blob files. Reading those that are there needs no option.
#[derive(Clone, Debug, PartialEq)]
pub struct BlobOptions {
    /// Whether flushes and compactions write blob files: `enable_blob_files`.
    pub enabled: bool,
    /// The smallest value that is separated, in bytes: `min_blob_size`. Empty values never are.
    pub min_blob_bytes: u64,
    /// A blob file is closed once it has this many bytes: `blob_file_size`.
    pub file_bytes: u64,
    /// How values are stored: `blob_compression_type`. A file has one compression for all its values.
    pub compression: Compression,
    /// The codec's level; `None` for its default.
    pub compression_level: Option<i32>,
    /// Whether compactions move values out of old files: `enable_blob_garbage_collection`.
    pub collect_garbage: bool,
    /// Which share of the files, oldest first, counts as old, 0 to 1: `blob_garbage_collection_age_cutoff`.
    pub age_cutoff: f64,
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
        }
    }
}

impl BlobOptions {
    /// `InvalidArgument` for values that mean nothing.
    pub fn validate(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.age_cutoff) {
            let text = format!("blob_garbage_collection_age_cutoff {} is not 0 to 1", self.age_cutoff);
            return Err(Error::invalid(text));
        }
        if self.file_bytes == 0 {
            return Err(Error::invalid("blob_file_size is 0"));
        }
        Ok(())
    }

    /// Whether a value of that length goes to a blob file.
    #[inline]
    pub fn separates(&self, value_len: usize) -> bool {
        self.enabled && value_len > 0 && value_len as u64 >= self.min_blob_bytes
    }

    /// Values in files below this number are moved when a compaction meets them; `files` are all of the family, ascending.
    pub fn relocate_below(&self, files: &[FileNumber]) -> FileNumber {
        if !self.collect_garbage {
            return FileNumber(0);
        }
        // A share of a count of files: exact, not negative, at most the count.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let old = (self.age_cutoff.clamp(0.0, 1.0) * files.len() as f64) as usize;
        files.get(old).copied().unwrap_or(FileNumber(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(BlobOptions { file_bytes: 0, ..BlobOptions::default() }.validate().is_err());
        assert!(options.validate().is_ok());
    }
}
