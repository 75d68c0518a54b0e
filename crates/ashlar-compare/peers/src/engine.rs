//! The engines, by name.

use crate::settings::Settings;
use serde::{Deserialize, Serialize};

/// Bytes of the longest key that LMDB takes as it is built.
const LMDB_KEY: usize = 511;

/// The engines that can be driven. The last four are AshlarDB spoilt on purpose: the suite's checks must catch them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// This project.
    Ashlardb,
    /// RocksDB 11.8.1.
    Rocksdb,
    /// LevelDB 1.23.
    Leveldb,
    /// fjall.
    Fjall,
    /// TidesDB.
    Tidesdb,
    /// WiredTiger's LSM tree.
    WiredtigerLsm,
    /// WiredTiger's B-tree.
    Wiredtiger,
    /// Kyoto Cabinet's TreeDB.
    Treedb,
    /// SQLite with a write-ahead log.
    Sqlite,
    /// SQLite with a rollback journal.
    SqliteRollback,
    /// LMDB.
    Lmdb,
    /// redb.
    Redb,
    /// MariaDB with InnoDB.
    Innodb,
    /// MariaDB with MyRocks.
    Myrocks,
    /// AshlarDB, with each put a millisecond late.
    #[value(hide = true)]
    TestSlow,
    /// AshlarDB that never waits for the device.
    #[value(hide = true)]
    TestCareless,
    /// AshlarDB that drops every thousandth put.
    #[value(hide = true)]
    TestForgetful,
    /// AshlarDB whose clients lose one entry of those whose keys begin with `l`, as the links of Linkbench.
    #[value(hide = true)]
    TestLosing,
}

impl EngineName {
    /// All with keys and values that are compared.
    pub const ALL: [EngineName; 12] = [
        EngineName::Ashlardb,
        EngineName::Rocksdb,
        EngineName::Leveldb,
        EngineName::Fjall,
        EngineName::Tidesdb,
        EngineName::WiredtigerLsm,
        EngineName::Wiredtiger,
        EngineName::Treedb,
        EngineName::Sqlite,
        EngineName::SqliteRollback,
        EngineName::Lmdb,
        EngineName::Redb,
    ];

    /// Servers with tables, which have no keys and values: a program that knows their tables drives them.
    pub const SERVERS: [EngineName; 2] = [EngineName::Innodb, EngineName::Myrocks];

    /// Whether the engine is one of [`EngineName::SERVERS`].
    pub fn is_server(self) -> bool {
        EngineName::SERVERS.contains(&self)
    }

    /// The name on command lines and in tables.
    pub fn text(self) -> &'static str {
        match self {
            EngineName::Ashlardb => "ashlardb",
            EngineName::Rocksdb => "rocksdb",
            EngineName::Leveldb => "leveldb",
            EngineName::Fjall => "fjall",
            EngineName::Tidesdb => "tidesdb",
            EngineName::WiredtigerLsm => "wiredtiger-lsm",
            EngineName::Wiredtiger => "wiredtiger",
            EngineName::Treedb => "treedb",
            EngineName::Sqlite => "sqlite",
            EngineName::SqliteRollback => "sqlite-rollback",
            EngineName::Lmdb => "lmdb",
            EngineName::Redb => "redb",
            EngineName::Innodb => "innodb",
            EngineName::Myrocks => "myrocks",
            EngineName::TestSlow => "test-slow",
            EngineName::TestCareless => "test-careless",
            EngineName::TestForgetful => "test-forgetful",
            EngineName::TestLosing => "test-losing",
        }
    }

    /// The shim of the engine, for engines in C and C++.
    pub fn shim(self) -> Option<&'static str> {
        match self {
            EngineName::Leveldb => Some("leveldb"),
            EngineName::Tidesdb => Some("tidesdb"),
            EngineName::Wiredtiger | EngineName::WiredtigerLsm => Some("wiredtiger"),
            EngineName::Treedb => Some("treedb"),
            EngineName::Sqlite | EngineName::SqliteRollback => Some("sqlite"),
            EngineName::Lmdb => Some("lmdb"),
            _ => None,
        }
    }

    /// The part of AshlarDB that a test engine spoils; `None` for the engines that are compared.
    pub fn spoilt(self) -> Option<Spoilt> {
        match self {
            EngineName::TestSlow | EngineName::TestCareless | EngineName::TestForgetful => Some(Spoilt::Puts),
            EngineName::TestLosing => Some(Spoilt::Clients),
            _ => None,
        }
    }

    /// Bytes that the engine takes for threads, sessions and dictionaries, beside its cache and its memtables. The process gets them in
    /// addition to the limit on memory.
    pub fn own_bytes(self) -> u64 {
        match self {
            server if server.is_server() => 128 << 20,
            EngineName::Wiredtiger | EngineName::WiredtigerLsm => 96 << 20,
            _ => 0,
        }
    }

    /// The settings that the engine has no equivalent for.
    pub fn lacks(self, settings: &Settings) -> Option<&'static str> {
        let ours = self == EngineName::Ashlardb || self.spoilt().is_some();
        match self {
            EngineName::Rocksdb => None,
            server if server.is_server() && settings.no_log => Some("writes without a log"),
            server if server.is_server() && settings.transactions.is_some() => None,
            _ if settings.direct_io && ours => {
                Some("direct I/O; AshlarDB reads and writes through the operating system's cache")
            }
            _ if settings.direct_io => Some("direct I/O; of the peers it is driven on RocksDB only"),
            _ if settings.bulk && !ours => Some("a load without compactions"),
            _ if settings.merges && !ours => Some("merges; of the peers they are driven on RocksDB only"),
            _ if settings.transactions.is_some() && !ours => {
                Some("transactions; of the peers they are driven on RocksDB only")
            }
            _ if settings.universal && !ours => Some("universal compaction"),
            _ if settings.prefix_bytes > 0 && !ours => Some("prefixes in filters"),
            _ if settings.filters && !ours => {
                Some("compaction filters; of the peers they are driven on RocksDB only")
            }
            EngineName::Lmdb if settings.key_bytes > LMDB_KEY => Some("keys of more than 511 bytes"),
            _ => None,
        }
    }

    /// Whether each client has a cache of its own, which only this client's reads fill.
    pub fn divides_its_cache(self) -> bool {
        matches!(self, EngineName::Sqlite | EngineName::SqliteRollback)
    }

    /// The form of the engine that the shim opens.
    pub fn variant(self) -> u32 {
        u32::from(matches!(self, EngineName::SqliteRollback | EngineName::WiredtigerLsm))
    }
}

/// What a test engine spoils.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoilt {
    /// Single puts of [`crate::peer::Peer`].
    Puts,
    /// The changes of [`crate::client::Client`].
    Clients,
}

/// Refuses test engines for a program that only meets what `meets` spoils. Under the names of the others
/// the program would show the figures of AshlarDB without a fault. A program of keys and values, which meets spoilt puts, also refuses
/// servers.
///
/// # Errors
/// The text names the engine.
pub fn refuse(engines: &[EngineName], meets: Spoilt) -> Result<(), String> {
    if let (Spoilt::Puts, Some(server)) = (meets, engines.iter().find(|engine| engine.is_server())) {
        return Err(format!(
            "{} has tables, and this program drives keys and values: ashlar-linkbench drives {0}. Leave it out of --engines",
            server.text()
        ));
    }
    match engines.iter().find(|engine| engine.spoilt().is_some_and(|spoilt| spoilt != meets)) {
        Some(engine) => Err(format!(
            "{} has no fault under this program: its figures would be those of AshlarDB. Leave it out of --engines",
            engine.text()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn names_are_the_same_everywhere() {
        for engine in EngineName::value_variants() {
            let value = engine.to_possible_value().unwrap();
            assert_eq!(value.get_name(), engine.text());
            assert_eq!(serde_json::to_string(engine).unwrap(), format!("\"{}\"", engine.text()));
            let compared = EngineName::ALL.contains(engine) || engine.is_server();
            assert_eq!((compared, compared), (!value.is_hide_set(), engine.spoilt().is_none()));
        }
    }

    #[test]
    fn servers_are_for_programs_that_know_their_tables() {
        for server in EngineName::SERVERS {
            let why = refuse(&[EngineName::Ashlardb, server], Spoilt::Puts).unwrap_err();
            assert!(why.contains(&format!("ashlar-linkbench drives {}", server.text())), "{why}");
            assert_eq!(refuse(&[server], Spoilt::Clients), Ok(()));
            let no_log = Settings { no_log: true, ..Settings::default() };
            assert_eq!((server.lacks(&Settings::default()), server.lacks(&no_log).is_some()), (None, true));
        }
    }
}
