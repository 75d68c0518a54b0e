//! The link from a WAL file of AshlarDB to the WAL file that it continues: log data in an empty batch at its beginning.
//!
//! ```text
//! batch:  sequence of the next write, count 0, one LogData record:
//! | "ashlar log link\0" | previous log: u64 LE | bytes written to it: u64 LE |
//! ```
//! A power cut may keep a newer WAL file and lose the end of an older one, exactly at a record boundary. Without a link
//! such a loss cannot be seen. Every release of RocksDB skips log data. RocksDB's own predecessor records (types 130
//! and 131) are damage to releases before 9.11.

use ashlar_base::{Cursor, FileNumber, Malformed};

const MAGIC: &[u8; 16] = b"ashlar log link\0";

/// The log that another one continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLink {
    /// The number of the log before.
    pub number: FileNumber,
    /// Where its last record ended when it was closed.
    pub end: u64,
}

impl LogLink {
    /// The bytes of the LogData record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.number.0.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
        out
    }

    /// `None`: log data of another program.
    ///
    /// # Errors
    /// `Malformed` for another length after the magic.
    pub fn decode(log_data: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some(body) = log_data.strip_prefix(MAGIC) else { return Ok(None) };
        let mut c = Cursor::new(body);
        let number = FileNumber(c.fixed64("log link.number")?);
        let end = c.fixed64("log link.end")?;
        c.finish("log link")?;
        Ok(Some(LogLink { number, end }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_and_leaves_others_alone() {
        let link = LogLink { number: FileNumber(7), end: 4_000_000_000_000 };
        let bytes = link.encode();
        assert_eq!(LogLink::decode(&bytes), Ok(Some(link)));
        assert_eq!(LogLink::decode(b"something else"), Ok(None));
        assert_eq!(LogLink::decode(b""), Ok(None));
        for len in MAGIC.len()..bytes.len() {
            assert!(LogLink::decode(&bytes[..len]).is_err(), "{len}");
        }
        assert!(LogLink::decode(&[bytes, vec![0]].concat()).is_err());
    }
}
