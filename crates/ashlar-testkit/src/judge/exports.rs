//! One table of an exported family as a line of the conversation.

use crate::text::{from_hex, to_hex};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A table of RocksDB's `ExportImportFilesMetaData`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedTable {
    /// Its level.
    pub level: u8,
    /// Its smallest and its largest sequence number.
    pub sequences: (u64, u64),
    /// Its bytes.
    pub bytes: u64,
    /// Where it is.
    pub path: PathBuf,
    /// Its smallest and its largest user key.
    pub keys: (Vec<u8>, Vec<u8>),
}

impl fmt::Display for ExportedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((oldest, newest), (smallest, largest)) = (self.sequences, &self.keys);
        let path = to_hex(self.path.as_os_str().as_encoded_bytes());
        let (smallest, largest) = (to_hex(smallest), to_hex(largest));
        write!(f, "{} {oldest} {newest} {} {path} {smallest} {largest}", self.level, self.bytes)
    }
}

impl FromStr for ExportedTable {
    type Err = String;

    fn from_str(text: &str) -> Result<ExportedTable, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let [level, oldest, newest, bytes, path, smallest, largest] = words[..] else {
            return Err(format!("not a table of an export: {text}"));
        };
        let number = |word: &str| word.parse::<u64>().map_err(|e| format!("{word}: {e}"));
        let hex = |word: &str| from_hex(word).ok_or_else(|| format!("not hex: {word}"));
        let path = String::from_utf8(hex(path)?).map_err(|e| e.to_string())?;
        Ok(ExportedTable {
            level: level.parse().map_err(|e| format!("{level}: {e}"))?,
            sequences: (number(oldest)?, number(newest)?),
            bytes: number(bytes)?,
            path: PathBuf::from(path),
            keys: (hex(smallest)?, hex(largest)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let table = ExportedTable {
            level: 6,
            sequences: (0, 17),
            bytes: 1000,
            path: "/a b/000012.sst".into(),
            keys: (b"".to_vec(), vec![0xff, 0]),
        };
        assert_eq!(table.to_string().parse(), Ok(table));
        assert!("6 0 17 1000".parse::<ExportedTable>().is_err());
    }
}
