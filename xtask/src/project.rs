//! Where things lie in this checkout.

use std::io;
use std::path::{Path, PathBuf};

/// The folder of the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder for judges, logs and findings: `target` of the checkout, whatever cargo's own target folder is.
pub fn scratch() -> PathBuf {
    root().join("target")
}

/// The command line to run cargo: the same cargo that runs us.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// All files below `folder` whose name ends with one of `endings`, sorted, as paths relative to `root`. Folders named
/// `target` or `golden` and hidden ones other than `.ci` are passed over.
pub fn files(root: &Path, folder: &str, endings: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                let hidden = name.starts_with('.') && name != ".ci";
                if !hidden && name != "target" && name != "golden" {
                    open.push(entry.path());
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let path = entry.path();
                found.push(path.strip_prefix(root).map(Path::to_path_buf).unwrap_or(path));
            }
        }
    }
    found.sort();
    Ok(found)
}
