//! The head of RocksDB's info log (`LOG`): the path of the database directory, and `wal_dir`.
//!
//! ```text
//! 2026/11/24-10:00:00.000000 3 RocksDB version: 7.8.3
//! 2026/11/24-10:00:00.000000 3 SST files in /data/db dir, Total Num: 3, files: ...
//! 2026/11/24-10:00:00.000000 3               Options.wal_dir: /data/wal
//! ```
//! Both stand within the first few thousand bytes.
//!
//! Source: RocksDB `db/db_impl/db_impl_open.cc`, `options/db_options.cc`.

use std::path::{Path, PathBuf};

/// The places that an info log names, as paths from the root.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InfoLogHead {
    /// The database directory.
    pub directory: Option<PathBuf>,
    /// `wal_dir`; `None` also where the log says that it was not set.
    pub wal_dir: Option<String>,
}

impl InfoLogHead {
    /// The places in the text of a log; `None`: it is no log of RocksDB.
    pub fn parse(log: &str) -> Option<InfoLogHead> {
        let line =
            |begin: &str| log.lines().find_map(|line| line.split_once(begin).map(|(_, rest)| rest.trim()));
        line("RocksDB version: ")?;
        let from_root = |path: &&str| Path::new(path).is_absolute();
        let directory = line("SST files in ").and_then(|rest| rest.split_once(" dir, Total Num"));
        Some(InfoLogHead {
            directory: directory.map(|(path, _)| path).filter(from_root).map(PathBuf::from),
            wal_dir: line("Options.wal_dir: ").filter(from_root).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::InfoLogHead;

    #[test]
    fn the_info_log_of_rocksdb_tells_its_places() {
        let log = "2026/11/24 3 RocksDB version: 7.8.3\n2026/11/24 3 SST files in /data/my db dir, Total Num: 0, files: \n\
                   2026/11/24 3                                  Options.wal_dir: /data/wal\n";
        let said = InfoLogHead { directory: Some("/data/my db".into()), wal_dir: Some("/data/wal".into()) };
        assert_eq!(InfoLogHead::parse(log), Some(said));
        let relative = log.replace("/data/my db", "db").replace("/data/wal", "");
        assert_eq!(InfoLogHead::parse(&relative), Some(InfoLogHead::default()));
        assert_eq!(
            InfoLogHead::parse("SST files in /data/db dir, Total Num: 0"),
            None,
            "a log of another program"
        );
    }
}
