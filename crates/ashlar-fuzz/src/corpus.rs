//! Real files to start from: the golden directories and tables.

use std::path::{Path, PathBuf};

/// Contents of every golden file for whose name `wanted` says yes, in the order of their paths.
pub fn files(wanted: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")];
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
