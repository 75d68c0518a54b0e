//! The directories that RocksDB's info logs name.

use super::namespace::same_directory;
use ashlar_base::Result;
use ashlar_env::Fs;
use ashlar_format::info_log::InfoLogHead;
use std::path::Path;

/// The bytes of an info log that are read: the lines are within the first few tens of thousands.
const LOOKED_AT: u64 = 64 << 10;

/// How many info logs of a database directory are read. RocksDB keeps 1,000 by default.
const MOST_READ: usize = 1024;

/// How many of them may name the database directory.
const MOST_LOGS: usize = 16;

/// How many info logs of a `db_log_dir` are read, which several databases may share.
const MOST_SHARED_LOGS: usize = 256;

/// The heads of RocksDB's info logs in the database directory, newest first: the newest one, and those that name the
/// directory. RocksDB begins a new log at each open, which names the directory, and whenever the log has reached
/// `max_log_file_size` or the age `log_file_time_to_roll`: such a log does not. An unreadable log has no head.
///
/// # Errors
/// `Io`: the directory cannot be listed.
pub(super) fn heads(fs: &dyn Fs, dir: &Path) -> Result<impl Iterator<Item = InfoLogHead>> {
    let names = fs.files(dir)?.into_iter().map(|entry| entry.name);
    // An open by this engine, even a refused one, renames RocksDB's log to LOG.old.TIME.
    let mut logs: Vec<String> = names.filter(|name| name.starts_with("LOG.old.")).collect();
    logs.sort_unstable();
    logs.push("LOG".to_owned());
    let newest_first = logs.into_iter().rev().take(MOST_READ);
    let heads = newest_first.filter_map(|name| read(fs, &dir.join(name))).enumerate();
    Ok(heads.filter(|(i, head)| *i == 0 || head.directory.is_some()).map(|(_, head)| head).take(MOST_LOGS))
}

/// The heads of the info logs in `log_dir` that RocksDB wrote for the database in `dir`. RocksDB names such a log by the path
/// of the database, as `data_db_LOG`.
pub(super) fn heads_elsewhere(fs: &dyn Fs, dir: &Path, log_dir: &Path) -> Vec<InfoLogHead> {
    let entries = fs.files(log_dir).unwrap_or_default();
    let logs = entries.iter().filter(|entry| entry.name.contains("_LOG")).take(MOST_SHARED_LOGS);
    let heads = logs.filter_map(|entry| read(fs, &log_dir.join(&entry.name)));
    heads.filter(|head| head.directory.as_ref().is_some_and(|named| same_directory(fs, dir, named))).collect()
}

fn read(fs: &dyn Fs, path: &Path) -> Option<InfoLogHead> {
    let file = fs.open_read(path).ok()?;
    let mut begin = vec![0; usize::try_from(file.len().min(LOOKED_AT)).ok()?];
    file.read_exact_at(&mut begin, 0).ok()?;
    InfoLogHead::parse(&String::from_utf8_lossy(&begin))
}
