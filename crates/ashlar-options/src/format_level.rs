//! The format level: the release of RocksDB that must be able to open the directory afterwards.

use ashlar_base::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The oldest RocksDB release that must be able to read what the engine writes. Default: [`FormatLevel::V9_11`].
///
/// The level is given at each open and never stored. Files in newer formats that are already there are read at every level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FormatLevel {
    /// RocksDB 6.29: table format 5.
    V6_29,
    /// RocksDB 7.8: table format 5.
    V7_8,
    /// RocksDB 9.11: table format 6.
    #[default]
    V9_11,
    /// RocksDB 11: table format 7.
    V11,
}

impl FormatLevel {
    /// The newest table format of the level.
    pub fn max_table_version(self) -> u32 {
        match self {
            FormatLevel::V6_29 | FormatLevel::V7_8 => 5,
            FormatLevel::V9_11 => 6,
            FormatLevel::V11 => 7,
        }
    }

    /// The release, as in the `rocksdb_version` of an OPTIONS file.
    pub fn release(self) -> &'static str {
        match self {
            FormatLevel::V6_29 => "6.29.0",
            FormatLevel::V7_8 => "7.8.3",
            FormatLevel::V9_11 => "9.11.0",
            FormatLevel::V11 => "11.8.1",
        }
    }
}

impl fmt::Display for FormatLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FormatLevel::V6_29 => "rocksdb-6.29",
            FormatLevel::V7_8 => "rocksdb-7.8",
            FormatLevel::V9_11 => "rocksdb-9.11",
            FormatLevel::V11 => "rocksdb-11",
        })
    }
}

impl FromStr for FormatLevel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.strip_prefix("rocksdb-").unwrap_or(text) {
            "6.29" => Ok(FormatLevel::V6_29),
            "7.8" => Ok(FormatLevel::V7_8),
            "9.11" => Ok(FormatLevel::V9_11),
            "11" => Ok(FormatLevel::V11),
            _ => Err(Error::invalid(format!("unknown format level {text:?}"))
                .hint("The levels are rocksdb-6.29, rocksdb-7.8, rocksdb-9.11 and rocksdb-11")),
        }
    }
}
