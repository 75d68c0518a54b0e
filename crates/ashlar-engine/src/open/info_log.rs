//! What the info log of RocksDB tells of places: the path of the database directory, and `wal_dir`.
//!
//! RocksDB writes both within the first lines, as `SST files in /data/db dir, Total Num: 3, …` and `Options.wal_dir: /data/wal`.

use ashlar_base::Result;
use ashlar_env::Fs;
use std::path::{Path, PathBuf};

/// The bytes of an info log that are read: the lines in question stand in the first few thousand.
const LOOKED_AT: u64 = 64 << 10;

/// How many info logs are looked through.
const MOST_LOGS: usize = 16;

/// The places that an info log names, as paths from the root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InfoLog {
    pub(super) directory: Option<PathBuf>,
    /// `None` also where the log says that it was not set.
    pub(super) wal_dir: Option<String>,
}

/// What the newest info log of RocksDB in `dir` says. One that cannot be read tells nothing.
///
/// # Errors
/// `Io`: the directory cannot be listed.
pub(super) fn read(fs: &dyn Fs, dir: &Path) -> Result<InfoLog> {
    let entries = fs.files(dir)?;
    // An open of ours, a refused one too, renames the log of RocksDB to LOG.old.TIME.
    let names = entries.iter().map(|entry| &*entry.name);
    let mut logs: Vec<&str> = names.filter(|name| name.starts_with("LOG.old.")).collect();
    logs.sort_unstable();
    logs.push("LOG");
    let said = |name: &str| {
        let file = fs.open_read(&dir.join(name)).ok()?;
        let mut begin = vec![0; usize::try_from(file.len().min(LOOKED_AT)).ok()?];
        file.read_exact_at(&mut begin, 0).ok()?;
        parse(&String::from_utf8_lossy(&begin))
    };
    Ok(logs.into_iter().rev().take(MOST_LOGS).find_map(said).unwrap_or_default())
}

/// The places in the text of a log; `None`: it is no log of RocksDB.
fn parse(log: &str) -> Option<InfoLog> {
    let line = |begin: &str| log.lines().find_map(|line| line.split_once(begin).map(|(_, rest)| rest.trim()));
    line("RocksDB version: ")?;
    let from_root = |path: &&str| Path::new(path).is_absolute();
    let directory = line("SST files in ").and_then(|rest| rest.split_once(" dir, Total Num"));
    Some(InfoLog {
        directory: directory.map(|(path, _)| path).filter(from_root).map(PathBuf::from),
        wal_dir: line("Options.wal_dir: ").filter(from_root).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::{InfoLog, parse};

    #[test]
    fn the_info_log_of_rocksdb_tells_its_places() {
        let log = "2026/11/24 3 RocksDB version: 7.8.3\n2026/11/24 3 SST files in /data/my db dir, Total Num: 0, files: \n\
                   2026/11/24 3                                  Options.wal_dir: /data/wal\n";
        let said = InfoLog { directory: Some("/data/my db".into()), wal_dir: Some("/data/wal".into()) };
        assert_eq!(parse(log), Some(said));
        let relative = log.replace("/data/my db", "db").replace("/data/wal", "");
        assert_eq!(parse(&relative), Some(InfoLog::default()));
        assert_eq!(parse("SST files in /data/db dir, Total Num: 0"), None, "a log of another program");
    }
}
