//! The directory `lost/` of a database: damaged files, files that no part of the database claims, and notes about both.

use super::copy::write_file;
use ashlar_base::Result;
use ashlar_env::Fs;
use std::path::Path;

/// The name of the directory `lost/` in the database directory.
pub const LOST: &str = "lost";

/// Writes a small text file to `lost/`, and makes the file and the directory entries durable.
pub fn leave_in_lost(fs: &dyn Fs, dir: &Path, name: &str, text: &str) -> Result<()> {
    let lost = dir.join(LOST);
    fs.create_dir_all(&lost)?;
    write_file(fs, &lost.join(name), text.as_bytes())?;
    fs.sync_dir(&lost)?;
    fs.sync_dir(dir)
}
