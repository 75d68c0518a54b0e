//! Settings in groups, as plain data, and the objects that users supply: listeners, statistics, comparators, merge
//! operators. The environment and the cache are not settings.

mod compaction;
mod db;
mod events;
mod family;
mod file;
mod format_level;
mod kept;
mod lint;
mod load;
mod names;
mod newer;
mod operation;
mod options;
mod page;
mod paths;

pub use ashlar_blob::BlobOptions;
pub use ashlar_table::TableOptions;
pub use compaction::{
    CompactionOptions, CompactionStyle, FifoOptions, MOST_LEVELS, StopStyle, UniversalOptions,
};
pub use db::DbOptions;
pub use events::{
    BlobsEvent, CompactionEvent, Event, EventListener, FileEvent, FlushEvent, InfoLogLevel, InfoLogOptions,
    IngestEvent, Listeners, StallCondition,
};
pub use family::{FamilyOptions, TTL_IDS};
pub use file::{FamilyText, log_lines, options_file, options_text, write_options_file, write_options_text};
pub use format_level::FormatLevel;
pub use kept::KeptTexts;
pub use kept::note_lines;
pub use lint::{Facts, Finding, lint};
pub use load::{
    LONGEST_FILE, LatestOptions, LoadedOptions, family_notices, find_latest_options, load_latest_options,
    read_latest_options, read_options_file, unfinished_options,
};
pub use load::{
    StoredFamily, StoredPlaces, forget_places, note_next_wal_dir, note_paths, stored_families, stored_places,
};
pub use names::Together;
pub use names::built_in_collectors;
pub use names::id_of;
pub use names::{AnswerKind, Group, Notice, OptionName, Range, explain, option_names};
pub use operation::{CompactFilesOptions, CompactRangeOptions, ReadOptions, ReadTier, WriteOptions};
pub use options::Options;
pub use page::markdown;
pub use paths::DbPath;
pub use paths::path_of_level;
