//! Having things from outside: Debian's packages, pinned digests, files replaced whole.

use crate::{project, run};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes beside and renames, so that a reader never sees half a file; leaves an equal file alone.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&beside, content)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Where a program lies.
pub fn on_path(program: &str) -> Result<PathBuf, String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file());
    found.ok_or_else(|| format!("no program {program}"))
}

/// Installs Debian's packages.
///
/// # Errors
/// This is no Debian, we are not root, or the packages cannot be had.
pub fn install(packages: &[&str]) -> Result<(), String> {
    let names = packages.join(" ");
    on_path("apt-get").map_err(|_| format!("{names}: not installed, and this is no Debian"))?;
    if run::quiet("id", &["-u"]).is_none_or(|id| id.trim() != "0") {
        return Err(format!("{names}: not installed, and only root can: apt-get install {names}"));
    }
    let install = [&["-y", "-q", "--no-install-recommends", "install"], packages].concat();
    if run::quiet("apt-get", &install).is_some() {
        return Ok(());
    }
    // A fresh image has no package lists yet.
    run::quiet("apt-get", &["-q", "update"]).ok_or("apt-get update failed: no network?")?;
    run::quiet("apt-get", &install).map(|_| ()).ok_or_else(|| format!("apt-get cannot install {names}"))
}

/// The digest of a file in hex, empty when there is no such file.
pub fn sha256(path: &Path) -> Result<String, String> {
    if !path.is_file() {
        return Ok(String::new());
    }
    let text = run::quiet("sha256sum", &[&path.to_string_lossy()]).ok_or("no program sha256sum")?;
    // The line starts with a backslash when the name needed escaping.
    Ok(text.trim_start_matches('\\').split_whitespace().next().unwrap_or_default().to_owned())
}

/// Fetches the crates that `manifest` pins, with a package of its own in `folder`, and returns the folder of one crate's sources.
///
/// # Errors
/// Cargo cannot fetch, or `manifest` does not name the crate.
pub fn crate_source(folder: &Path, manifest: &str, name: &str) -> Result<PathBuf, String> {
    fs::create_dir_all(folder.join("src")).map_err(|e| format!("{}: {e}", folder.display()))?;
    let path = folder.join("Cargo.toml");
    replace(&path, manifest.as_bytes())?;
    replace(&folder.join("src/lib.rs"), b"")?;
    let args = ["metadata", "--format-version", "1", "--manifest-path", &path.to_string_lossy()];
    let text = run::quiet(&project::cargo(), &args).ok_or("cargo cannot fetch the crate: no network?")?;
    let paths = text.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut folders = paths.filter_map(|path| Path::new(path).parent());
    let is_it = |folder: &&Path| {
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        let version = folder.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        version.is_some_and(|version| version.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    folders.find(is_it).map(Path::to_path_buf).ok_or_else(|| format!("cargo did not fetch {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_and_absence() {
        let path = std::env::temp_dir().join(format!("xtask-sha-{}", std::process::id()));
        assert_eq!(sha256(&path), Ok(String::new()));
        replace(&path, b"abc").expect("the temporary folder is writable");
        let digest = sha256(&path).expect("sha256sum is there");
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        fs::remove_file(&path).expect("just written");
    }

    #[test]
    fn a_missing_program_is_named() {
        assert_eq!(on_path("no-such-program-here"), Err("no program no-such-program-here".into()));
        assert!(on_path("sh").is_ok());
    }
}
