//! Real files to start from: the golden directories and tables.

use ashlar_testkit::golden;
use std::path::{Path, PathBuf};

/// Contents of every golden file for whose name `wanted` says yes, in the order of their paths.
pub fn files(wanted: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut open = vec![golden::path("")];
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if wanted(&entry.file_name().to_string_lossy()) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Write-ahead logs.
pub fn logs() -> Vec<Vec<u8>> {
    files(|name| name.ends_with(".log"))
}

/// MANIFEST files.
pub fn manifests() -> Vec<Vec<u8>> {
    files(|name| name.starts_with("MANIFEST-"))
}

/// Tables of RocksDB and LevelDB.
pub fn tables() -> Vec<Vec<u8>> {
    files(|name| name.ends_with(".sst") || name.ends_with(".ldb"))
}

/// The inputs kept for a target in `corpus/<target>/`, in the order of their names.
pub fn kept(target: &str) -> Vec<Vec<u8>> {
    named(&kept_folder(target)).into_iter().map(|(_, bytes)| bytes).collect()
}

/// Where the inputs of a target are kept.
pub fn kept_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The golden directories: their files by name.
pub fn directories() -> Vec<Vec<(String, Vec<u8>)>> {
    ["leveldb-1.23", "rocksdb-7.8.3"].iter().flat_map(|writer| folders(writer)).collect()
}

fn folders(writer: &str) -> Vec<Vec<(String, Vec<u8>)>> {
    let entries = std::fs::read_dir(golden::path(writer)).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| format!("{writer}/{}", entry.file_name().to_string_lossy()))
        .collect();
    names.sort();
    let files = |name: &String| golden::files(name).unwrap_or_default().into_iter();
    let read = |(name, path): (String, PathBuf)| Some((name, std::fs::read(path).ok()?));
    names.iter().map(|name| files(name).filter_map(read).collect()).collect()
}

/// The files of one folder by name, sorted.
fn named(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Ok(bytes) = std::fs::read(entry.path()) {
            files.push((entry.file_name().to_string_lossy().into_owned(), bytes));
        }
    }
    files.sort();
    files
}
