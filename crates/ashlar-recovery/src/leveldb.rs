//! Recognises a directory that LevelDB wrote. The first open for writing converts it to RocksDB's format, which LevelDB
//! does not read. So the report and the command line announce the conversion before the first write.

use ashlar_base::Result;
use ashlar_env::{Env, Fs};
use ashlar_options::read_latest_options;
use ashlar_tree::files::{DirState, survey};
use ashlar_tree::version::{Replayed, oversized_identity, read_identity, replay_manifest};
use std::path::Path;

/// The notice about such a directory, for the report of an open and for programs that write.
pub const LEVELDB_UPGRADE_NOTICE: &str = "LevelDB wrote this directory. The first open for writing turns it into RocksDB's format, and \
                           LevelDB no longer opens it; RocksDB 11 reads it once all LevelDB tables are rewritten \
                           (`ashlar db rewrite`)";

/// Whether LevelDB wrote the database in `dir` and no other program has written it since. False where there is no
/// database.
///
/// # Errors
/// As [`survey()`], and those of reading the MANIFEST.
pub fn is_leveldb_directory(env: &Env, dir: &Path) -> Result<bool> {
    let DirState::Database(manifest) = survey(&*env.fs, dir)? else { return Ok(false) };
    is_leveldb(&*env.fs, dir, &replay_manifest(&*env.fs, dir, manifest)?)
}

/// RocksDB's MANIFEST has sequences for each table, and RocksDB leaves an IDENTITY and an OPTIONS file.
pub(super) fn is_leveldb(fs: &dyn Fs, dir: &Path, replayed: &Replayed) -> Result<bool> {
    let plain = |family: &ashlar_tree::version::ReplayedFamily| {
        family.tree.count_of_unknown_sequences() == family.tree.table_numbers().count()
    };
    if replayed.db.db_id.is_some() || replayed.families.len() != 1 || !replayed.families.values().all(plain) {
        return Ok(false);
    }
    let options = read_latest_options(fs, dir).map_or(true, |found| found.is_some());
    Ok(!options && read_identity(fs, dir)?.is_none() && oversized_identity(fs, dir)?.is_none())
}
