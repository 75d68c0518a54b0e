//! The settings of the info log.

/// The severity of a line, in RocksDB's levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InfoLogLevel {
    /// Details for developers.
    Debug,
    /// Ordinary events.
    #[default]
    Info,
    /// Events that an operator may want to check.
    Warn,
    /// Failures.
    Error,
    /// A failure that ended the database.
    Fatal,
    /// The lines at the head of every file.
    Header,
}

/// Settings of the info log. Each field names its option of RocksDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoLogOptions {
    /// Whether to write an info log. On.
    pub enabled: bool,
    /// `info_log_level`: less severe lines are left out. `Info`.
    pub level: InfoLogLevel,
    /// `max_log_file_size`: bytes at which a file is replaced; 0: never. 16 MiB; RocksDB has no bound by default.
    pub file_bytes_max: u64,
    /// `log_file_time_to_roll`: seconds after which a file is replaced; 0: never. 0.
    pub file_secs_max: u64,
    /// `keep_log_file_num`: files to keep, `LOG` included. 10; RocksDB's default is 1000.
    pub files_kept: usize,
    /// `db_log_dir`: the directory of the files. Empty: the database directory.
    pub dir: String,
}

impl Default for InfoLogOptions {
    fn default() -> Self {
        InfoLogOptions {
            enabled: true,
            level: InfoLogLevel::Info,
            file_bytes_max: 16 << 20,
            file_secs_max: 0,
            files_kept: 10,
            dir: String::new(),
        }
    }
}
