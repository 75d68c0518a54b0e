//! A golden directory, copied for one test.

use super::Listing;
use crate::judge::{Skip, copy_flat};
use std::path::{Path, PathBuf};

/// Directories that open as databases, by name, and which of them need the merge operator `uint64add`.
pub const DIRECTORIES: [(&str, bool); 16] = [
    ("rocksdb-7.8.3/atomic_flush", false),
    ("rocksdb-7.8.3/blobs", false),
    ("rocksdb-7.8.3/column_families", true),
    ("rocksdb-7.8.3/compressions", false),
    ("rocksdb-7.8.3/manifest_history", false),
    ("rocksdb-7.8.3/manifest_tags", false),
    ("rocksdb-7.8.3/merge_flushed", true),
    ("rocksdb-7.8.3/range_del", false),
    ("rocksdb-7.8.3/wal_frag", false),
    ("rocksdb-7.8.3/wal_ops", true),
    ("rocksdb-7.8.3/wal_recycle", false),
    ("rocksdb-7.8.3/wal_trailer", false),
    ("rocksdb-7.8.3/wal_zstd", false),
    ("leveldb-1.23/level0", false),
    ("leveldb-1.23/plain", false),
    ("leveldb-1.23/snappy", false),
];

/// A private copy of a golden directory; removed when dropped.
#[derive(Debug)]
pub struct Golden {
    folder: tempfile::TempDir,
    /// What must be read from it, by family.
    pub families: Vec<Listing>,
}

impl Golden {
    /// The copy.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What must be read from family `name`.
    pub fn family(&self, name: &str) -> Option<&Listing> {
        self.families.iter().find(|listing| listing.family == name)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

/// The path of the golden file or directory `name`. Nothing there may be written to.
pub fn path(name: &str) -> PathBuf {
    root().join(name)
}

/// The tables that RocksDB 11.8.1 wrote, by name, each with a listing beside it (`.expected.txt`).
pub fn tables() -> Vec<PathBuf> {
    let names = std::fs::read_dir(root().join("sst")).into_iter().flatten();
    let mut tables: Vec<PathBuf> = names.filter_map(|entry| Some(entry.ok()?.path())).collect();
    tables.retain(|path| path.extension().is_some_and(|extension| extension == "sst"));
    tables.sort();
    tables
}

/// Copies the golden directory `name`, such as `rocksdb-7.8.3/wal_ops`.
///
/// # Errors
/// A skip when there is no such directory or it cannot be copied.
pub fn golden(name: &str) -> Result<Golden, Skip> {
    let source = root().join(name);
    let why = |e: std::io::Error| Skip::because(format!("golden directory {name}: {e}"));
    // Not every listing is UTF-8: RocksDB's manifest dump prints keys as they are.
    let expected = std::fs::read(source.join("expected.txt")).map_err(why)?;
    let folder = tempfile::tempdir().map_err(why)?;
    copy_flat(&source, folder.path()).map_err(why)?;
    std::fs::remove_file(folder.path().join("expected.txt")).map_err(why)?;
    Ok(Golden { folder, families: Listing::parse(&String::from_utf8_lossy(&expected)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_golden_directory_lists_something() {
        let mut names = 0;
        for writer in ["rocksdb-7.8.3", "leveldb-1.23"] {
            for entry in std::fs::read_dir(root().join(writer)).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{writer}/{}", entry.file_name().to_string_lossy());
                if !entry.path().is_dir() || name.ends_with("/backup") {
                    continue;
                }
                let golden = golden(&name).unwrap_or_else(|skip| panic!("{name}: {skip}"));
                assert!(
                    golden.path().join("CURRENT").exists() && !golden.path().join("expected.txt").exists()
                );
                let listed: usize = golden.families.iter().map(|f| f.visible.len() + f.internal.len()).sum();
                assert!(listed > 0 && golden.families[0].family == "default", "{name}");
                names += 1;
            }
        }
        assert_eq!(names, 19);
    }

    #[test]
    fn known_ones_list_what_was_written() {
        let golden = golden("rocksdb-7.8.3/column_families").unwrap();
        let names: Vec<_> = golden.families.iter().map(|f| f.family.as_str()).collect();
        assert_eq!(names, ["default", "one", "two"]);
        assert_eq!(golden.family("one").unwrap().visible, [(b"o2".to_vec(), b"one-2".to_vec())]);
        assert_eq!(golden.family("one").unwrap().internal.len(), 3);
        let compressions = super::golden("rocksdb-7.8.3/compressions").unwrap();
        assert!(
            compressions.families.iter().all(|f| f.visible.len() == 40) && compressions.families.len() == 7
        );
    }
}
