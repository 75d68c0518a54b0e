//! Creating a database, and the database id.
//!
//! A new database is one MANIFEST with one record, then `CURRENT`. Before `CURRENT` exists the directory holds nothing
//! that [`survey`](super::survey()) would mistake for lost data, so after a crash in between the creation can start
//! over.
//! Source: RocksDB `db/db_impl/db_impl_open.cc` (`NewDB`).

use crate::version::{
    VersionSet, new_db_id, oversized_identity, read_identity, start_manifest, write_identity,
};
use ashlar_base::{FamilyId, FileNumber, Order, Result, SeqNum};
use ashlar_env::{Env, Fs};
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::read_latest_options;
use std::path::Path;

/// Creates a database in `dir` whose default family has keys in `order`. Creates the directory if it is missing. Call
/// [`survey`](super::survey()) first: this function does not check existing files.
///
/// # Errors
/// `Io`: an empty database may or may not exist.
pub fn create_database(env: &Env, dir: &Path, order: &Order) -> Result<()> {
    let fs = &env.fs;
    make_directory(&**fs, dir)?;
    let id = match read_identity(&**fs, dir)? {
        Some(id) => id,
        None => new_db_id(env),
    };
    write_identity(&**fs, dir, &id)?;
    let edit = VersionEdit {
        db_id: Some(id),
        comparator: Some(order.name().to_string()),
        log_number: Some(FileNumber(0)),
        next_file: Some(FileNumber(2)),
        last_seq: Some(SeqNum::ZERO),
        ..VersionEdit::of(FamilyId::DEFAULT)
    };
    start_manifest(fs, dir, FileNumber(1), vec![edit])
}

/// Creates the directory and its missing parents, durably: each name is an entry of its parent directory.
///
/// # Errors
/// `Io`.
pub fn make_directory(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let above = || dir.ancestors().skip(1).filter(|a| !a.as_os_str().is_empty());
    let mut missing = Vec::new();
    for ancestor in above() {
        if fs.metadata(ancestor)?.is_some() {
            break;
        }
        missing.push(ancestor);
    }
    fs.create_dir_all(dir)?;
    for (height, ancestor) in above().enumerate() {
        let synced = fs.sync_dir(ancestor);
        // Directories further up were not created by this call. A killed attempt may have created them. But if this
        // process may not read those directories, it did not create them either.
        if height <= missing.len() {
            synced?;
        }
    }
    Ok(())
}

/// What [`settle_identity`] found, with a line for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The file agrees with the MANIFEST, or RocksDB left it out on request.
    Agreed,
    /// The file was missing. The MANIFEST has the id, so that nothing was lost.
    Missing(String),
    /// The file had another id, or none.
    Wrong(String),
}

/// Makes `IDENTITY` agree with the MANIFEST. Call after the first commit of an open.
///
/// # Errors
/// `Io`: the file is as it was, or correct.
pub fn settle_identity(fs: &dyn Fs, versions: &VersionSet) -> Result<Settled> {
    let Some(id) = versions.db_facts().db_id else { return Ok(Settled::Agreed) };
    let found = read_identity(fs, versions.dir())?;
    if found.as_deref() == Some(&id) {
        return Ok(Settled::Agreed);
    }
    let oversized = oversized_identity(fs, versions.dir())?;
    write_identity(fs, versions.dir(), &id)?;
    Ok(match (found, oversized) {
        (None, Some(bytes)) => {
            Settled::Wrong(format!("IDENTITY, which had {bytes} bytes and named no database"))
        }
        (None, None) if writes_no_identity(fs, versions.dir()) => Settled::Agreed,
        (None, None) => Settled::Missing("IDENTITY, which was missing".to_owned()),
        (Some(other), _) => {
            Settled::Wrong(format!("IDENTITY, which said {other:?} where the MANIFEST says {id:?}"))
        }
    })
}

/// Whether RocksDB left the file out on request (`write_identity_file=false`).
fn writes_no_identity(fs: &dyn Fs, dir: &Path) -> bool {
    let stored = read_latest_options(fs, dir).ok().flatten();
    stored.is_some_and(|(_, file)| file.db().and_then(|db| db.get("write_identity_file")) == Some("false"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::sim::{CrashMode, SimEnv};

    #[test]
    fn the_way_to_a_new_database_is_durable() {
        let sim = SimEnv::new(1);
        let dir = Path::new("/a/b/c/db");
        create_database(&sim.env(), dir, &Order::Bytewise).unwrap();
        let after = sim.crash(CrashMode::DROP_ALL).env();
        let found = super::super::survey(&*after.fs, dir).unwrap();
        assert_eq!(found, super::super::DirState::Database(FileNumber(1)));
    }
}
