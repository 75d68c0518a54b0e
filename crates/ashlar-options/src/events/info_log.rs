//! The settings of the info log.

/// How serious a line is. RocksDB's levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InfoLogLevel {
    /// What only developers want to know.
    Debug,
    /// What happens on a usual day.
    #[default]
    Info,
    /// What an operator may want to look at.
    Warn,
    /// What failed.
    Error,
    /// What ended the database.
    Fatal,
    /// What stands at the head of every file.
    Header,
}

/// How the log is kept. Each field names the option of RocksDB it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoLogOptions {
    /// Whether there is one. On.
    pub enabled: bool,
    /// `info_log_level`: less serious lines are left out. `Info`.
    pub level: InfoLogLevel,
    /// `max_log_file_size`: bytes at which a file is replaced; 0: never. 16 MiB, where RocksDB has no bound.
    pub file_bytes_max: u64,
    /// `log_file_time_to_roll`: seconds after which a file is replaced; 0: never. 0.
    pub file_secs_max: u64,
    /// `keep_log_file_num`: files that are kept, `LOG` included. 10, where RocksDB keeps 1000.
    pub files_kept: usize,
    /// `db_log_dir`: where the files are; empty: with the database.
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
