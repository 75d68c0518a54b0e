//! The head of RocksDB's info log (`LOG`): the paths of the database directory, of the directories of tables, and of `wal_dir`.
//!
//! ```text
//! 2026/11/24-10:00:00.000000 3 RocksDB version: 7.8.3
//! 2026/11/24-10:00:00.000000 3 SST files in /data/slow dir, Total Num: 3, files: ...
//! 2026/11/24-10:00:00.000000 3               Options.wal_dir: /data/wal
//! 2026/11/24-10:00:00.000000 3 [db/version_set.cc:5536] Recovering from manifest file: /data/db/MANIFEST-000001
//! ```
//! 1. There is a line `SST files in` for each of `db_paths`, which without the setting is the database directory. A directory
//!    that was not there yet has the line `Directory from db_paths/cf_paths does not yet exist:`, or in older releases
//!    `Error when reading … dir`.
//! 2. All these lines are within the first few tens of thousands of bytes.
//!
//! Source: RocksDB `db/db_info_dumper.cc`, `db/version_set.cc`, `options/db_options.cc`.

use std::path::{Path, PathBuf};

/// The places that an info log names, as paths from the root. A relative path is left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InfoLogHead {
    /// The database directory.
    pub directory: Option<PathBuf>,
    /// The directories of tables.
    pub tables: Vec<PathBuf>,
    /// `wal_dir`; `None` also where the log says that it was not set.
    pub wal_dir: Option<String>,
}

impl InfoLogHead {
    /// The places in the text of a log; `None`: RocksDB did not write the log.
    pub fn parse(log: &str) -> Option<InfoLogHead> {
        let behind = |begin: &'static str| {
            log.lines().filter_map(move |line| line.split_once(begin).map(|(_, rest)| rest.trim()))
        };
        behind("RocksDB version: ").find(|version| !version.starts_with("AshlarDB"))?;
        let from_root = |path: &&str| Path::new(path).is_absolute();
        let manifest = behind("Recovering from manifest file: ").find(from_root);
        let before = |begin, end| behind(begin).filter_map(move |rest| Some(rest.split_once(end)?.0));
        let wal_dir = behind("Options.wal_dir: ").next().filter(from_root);
        // Older releases say this also of a `wal_dir` that is not there yet.
        let unread = before("Error when reading ", " dir")
            .filter(|path| wal_dir.map(Path::new) != Some(Path::new(path)));
        let tables = before("SST files in ", " dir, Total Num").chain(unread);
        let tables = tables.chain(behind("Directory from db_paths/cf_paths does not yet exist: "));
        Some(InfoLogHead {
            directory: manifest.and_then(|path| Path::new(path).parent()).map(Path::to_path_buf),
            // Older releases say of a `wal_dir` that is not there yet what they say of `db_paths`.
            tables: tables
                .filter(from_root)
                .filter(|path| Some(*path) != wal_dir)
                .map(PathBuf::from)
                .collect(),
            wal_dir: wal_dir.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::InfoLogHead;
    use std::path::Path;

    #[test]
    fn the_info_log_of_rocksdb_tells_its_places() {
        let log = "2026/11/24 3 RocksDB version: 7.8.3\n\
                   2026/11/24 3 SST files in /data/my db dir, Total Num: 0, files: \n\
                   2026/11/24 3 SST files in /slow dir, Total Num: 1, files: 000012.sst\n\
                   2026/11/24 3                                  Options.wal_dir: /data/wal\n\
                   2026/11/24 3 [db/version_set.cc:5] Recovering from manifest file: /data/my db/MANIFEST-000001\n";
        let said = InfoLogHead {
            directory: Some("/data/my db".into()),
            tables: vec!["/data/my db".into(), "/slow".into()],
            wal_dir: Some("/data/wal".into()),
        };
        assert_eq!(InfoLogHead::parse(log), Some(said));
        let relative = log.replace("/data/my db", "db").replace("/data/wal", "").replace(" /slow", " slow");
        assert_eq!(InfoLogHead::parse(&relative), Some(InfoLogHead::default()));
        let unread =
            "RocksDB version: 7.8.3\nError when reading /wal dir NotFound: \nOptions.wal_dir: /wal\n";
        assert!(InfoLogHead::parse(unread).unwrap().tables.is_empty());
        for line in [
            "Error when reading /new dir NotFound: ",
            "Directory from db_paths/cf_paths does not yet exist: /new",
        ] {
            let log = format!("2026/11/24 3 RocksDB version: 11.8.1\n2026/11/24 3 {line}\n");
            assert_eq!(InfoLogHead::parse(&log).unwrap().tables, [Path::new("/new")]);
        }
        let other = "SST files in /data/db dir, Total Num: 0";
        assert_eq!(InfoLogHead::parse(other), None, "a log of another program");
        assert_eq!(InfoLogHead::parse(&log.replace("7.8.3", "AshlarDB-0.1.0")), None);
    }
}
