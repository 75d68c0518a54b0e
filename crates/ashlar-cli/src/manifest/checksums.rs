//! The checksums of files as ldb's file_checksum_dump prints them.
//!
//! ```text
//! 12, FileChecksumCrc32c, 0xF3B1A0C2
//! 13, Unknown, 0x
//! Print SST file checksum information finished
//! ```
//! In a directory the command reads the MANIFEST in use, which a process may extend or replace meanwhile. A MANIFEST by its path is
//! read to the first damage.

use super::read;
use super::summary::Summary;
use crate::Done;
use crate::bytes_text::write_bytes;
use ashlar_base::{FileNumber, Result};
use ashlar_env::{Env, Fs};
use ashlar_tree::version::read_manifest_beside;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The name of the function and the checksum of each file. Both are empty where the MANIFEST has none.
type Recorded = BTreeMap<FileNumber, (Vec<u8>, Vec<u8>)>;

/// Prints the checksums of the live tables and blob files, by number. `path`: the MANIFEST, or the directory of a database.
pub(crate) fn checksums(path: &Path, hex: bool, out: &mut dyn Write) -> Done {
    let env = Env::os()?;
    if path.is_dir() {
        return print(&in_use(&*env.fs, path)?, hex, out);
    }
    super::check_kind(path)?;
    let (summary, damage) = read(env.fs.open_read(path)?, |_, _| Ok(()))?;
    print(&summary.recorded(), hex, out)?;
    damage.map_or(Ok(()), |e| Err(e.into()))
}

fn print(recorded: &Recorded, hex: bool, out: &mut dyn Write) -> Done {
    for (number, (function, checksum)) in recorded {
        let known = !function.is_empty();
        write!(out, "{}, ", number.0)?;
        out.write_all(if known { function } else { b"Unknown" })?;
        write!(out, ", {}", if hex { "0x" } else { "" })?;
        write_bytes(out, if known { checksum } else { &[] }, hex)?;
        writeln!(out)?;
    }
    Ok(writeln!(out, "Print SST file checksum information finished ")?)
}

fn in_use(fs: &dyn Fs, dir: &Path) -> Result<Recorded> {
    let (_, replayed) = read_manifest_beside(fs, dir)?;
    let mut all = Recorded::new();
    for family in replayed.families.values() {
        let tree = &family.tree;
        for number in tree.table_numbers().chain(tree.live_blob_numbers()) {
            let (function, checksum) = tree.recorded_checksum(number).unwrap_or_default();
            all.insert(number, (function.to_vec(), checksum.to_vec()));
        }
    }
    Ok(all)
}

impl Summary {
    fn recorded(&self) -> Recorded {
        let mut all = Recorded::new();
        for family in self.families.values().filter(|family| !family.dropped) {
            for (number, (_, file)) in &family.tables {
                let (function, checksum) = (file.checksum_function.clone(), file.checksum.clone());
                all.insert(*number, (function.unwrap_or_default(), checksum.unwrap_or_default()));
            }
            for (number, blob) in family.live_blobs() {
                all.insert(number, (blob.checksum_method.clone(), blob.checksum.clone()));
            }
        }
        all
    }
}
