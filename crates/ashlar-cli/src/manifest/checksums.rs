//! The checksums of files as ldb's file_checksum_dump prints them.
//!
//! ```text
//! 12, FileChecksumCrc32c, 0xF3B1A0C2
//! 13, Unknown, 0x
//! Print SST file checksum information finished
//! ```

use super::summary::Summary;
use crate::Done;
use crate::bytes_text::write_bytes;
use ashlar_base::FileNumber;
use std::collections::BTreeMap;
use std::io::Write;

impl Summary {
    /// Prints a line for each live table and blob file, by number.
    pub(super) fn checksums(&self, hex: bool, out: &mut dyn Write) -> Done {
        for (number, (function, checksum)) in self.recorded() {
            let known = !function.is_empty();
            write!(out, "{}, ", number.0)?;
            out.write_all(if known { function } else { b"Unknown" })?;
            write!(out, ", {}", if hex { "0x" } else { "" })?;
            write_bytes(out, if known { checksum } else { &[] }, hex)?;
            writeln!(out)?;
        }
        Ok(writeln!(out, "Print SST file checksum information finished ")?)
    }

    /// The names of the functions and the checksums, which are empty where the MANIFEST has none.
    fn recorded(&self) -> BTreeMap<FileNumber, (&[u8], &[u8])> {
        fn part(part: &Option<Vec<u8>>) -> &[u8] {
            part.as_deref().unwrap_or_default()
        }
        let mut all = BTreeMap::new();
        for family in self.families.values().filter(|family| !family.dropped) {
            for (number, (_, file)) in &family.tables {
                all.insert(*number, (part(&file.checksum_function), part(&file.checksum)));
            }
            let blobs = family.live_blobs();
            all.extend(blobs.map(|(number, blob)| (number, (&*blob.checksum_method, &*blob.checksum))));
        }
        all
    }
}
