//! The directory `lost/` of a database: what was damaged or could not be placed, and accounts of it.

use ashlar_base::Result;
use ashlar_env::Fs;
use std::path::Path;

/// Its name in the database directory.
pub const LOST: &str = "lost";

/// Leaves a small text there, durably, with the names that lead to it.
pub fn leave_in_lost(fs: &dyn Fs, dir: &Path, name: &str, text: &str) -> Result<()> {
    let lost = dir.join(LOST);
    fs.create_dir_all(&lost)?;
    let file = fs.create(&lost.join(name))?;
    file.write_at(text.as_bytes(), 0)?;
    file.sync_all()?;
    fs.sync_dir(&lost)?;
    fs.sync_dir(dir)
}
