//! A golden directory, copied for one test.

use super::Listing;
use crate::judge::Skip;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Golden files that are stored once under another name: lines of the file and its original.
const SAME_AS: &str = include_str!("../../../../golden/same-as.txt");

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

/// The files with an original, and the original, by their paths below `golden/`.
fn copies() -> impl Iterator<Item = (&'static str, &'static str)> {
    SAME_AS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '))
}

/// The path of the golden file or directory `name`, or of the equal file that is stored for it. Tests never write there.
pub fn path(name: &str) -> PathBuf {
    root().join(copies().find(|(copy, _)| *copy == name).map_or(name, |(_, original)| original))
}

/// The files of the golden directory `name`: where the bytes of each are stored, by the file's name.
///
/// # Errors
/// Those of listing the directory.
pub fn files(name: &str) -> std::io::Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(root().join(name))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.insert(entry.file_name().to_string_lossy().into_owned(), entry.path());
        }
    }
    for (copy, original) in copies() {
        if let Some((_, file)) = copy.rsplit_once('/').filter(|(folder, _)| *folder == name) {
            files.insert(file.to_owned(), root().join(original));
        }
    }
    Ok(files)
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
    let why = |e: std::io::Error| Skip::because(format!("golden directory {name}: {e}"));
    // Not every listing is UTF-8: RocksDB's manifest dump prints keys as they are.
    let expected = std::fs::read(path(&format!("{name}/expected.txt"))).map_err(why)?;
    let folder = tempfile::tempdir().map_err(why)?;
    for (file, from) in files(name).map_err(why)? {
        if file != "expected.txt" {
            std::fs::copy(from, folder.path().join(file)).map_err(why)?;
        }
    }
    // Its writers left an empty one in every directory, and an open adds no file then.
    std::fs::write(folder.path().join("LOCK"), []).map_err(why)?;
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

    /// All files below `folder`.
    fn stored(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { stored(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn equal_files_are_stored_once() {
        let mut seen = BTreeMap::new();
        for path in stored(&root()) {
            if let Some(other) = seen.insert(std::fs::read(&path).unwrap(), path.clone()) {
                panic!("{path:?} equals {other:?}: keep one and add a line to golden/same-as.txt");
            }
        }
        for (copy, original) in copies() {
            assert!(!root().join(copy).exists() && root().join(original).is_file(), "{copy} {original}");
            let (folder, file) = copy.rsplit_once('/').unwrap();
            assert_eq!(files(folder).unwrap()[file], path(copy));
        }
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
