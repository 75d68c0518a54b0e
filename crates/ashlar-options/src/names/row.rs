//! A row of the table: one name of RocksDB, and how the engine treats it.

use super::object::id_of;
use super::value::{Wrong, check_like, same};
use crate::FormatLevel;
use std::fmt;

/// The struct of RocksDB that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// `DBOptions`.
    Database,
    /// `ColumnFamilyOptions`.
    Family,
    /// `BlockBasedTableOptions`: inside `block_based_table_factory={…}`, or a section of its own in OPTIONS files.
    Table,
    /// `MetadataCacheOptions`: inside `metadata_cache_options={…}`.
    MetadataCache,
    /// `CompressionOptions`: inside `compression_opts={…}` and its like.
    Compression,
    /// `CompactionOptionsUniversal`: inside `compaction_options_universal={…}`.
    Universal,
    /// `CompactionOptionsFIFO`: inside `compaction_options_fifo={…}`.
    Fifo,
    /// `ReadOptions`.
    Read,
    /// `WriteOptions`.
    Write,
    /// `FlushOptions`.
    Flush,
    /// `CompactRangeOptions`.
    CompactRange,
    /// `CompactionOptions`, of `CompactFiles`.
    CompactFiles,
}

impl Group {
    /// All of them, in the order of the page.
    pub const ALL: [Group; 12] = [
        Group::Database,
        Group::Family,
        Group::Table,
        Group::MetadataCache,
        Group::Compression,
        Group::Universal,
        Group::Fifo,
        Group::Read,
        Group::Write,
        Group::Flush,
        Group::CompactRange,
        Group::CompactFiles,
    ];

    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Group::Database => "database",
            Group::Family => "family",
            Group::Table => "table",
            Group::MetadataCache => "metadata_cache",
            Group::Compression => "compression",
            Group::Universal => "universal",
            Group::Fifo => "fifo",
            Group::Read => "read",
            Group::Write => "write",
            Group::Flush => "flush",
            Group::CompactRange => "compact_range",
            Group::CompactFiles => "compact_files",
        }
    }

    /// The struct in RocksDB's headers.
    pub fn rocksdb_struct(self) -> &'static str {
        match self {
            Group::Database => "DBOptions",
            Group::Family => "ColumnFamilyOptions",
            Group::Table => "BlockBasedTableOptions",
            Group::MetadataCache => "MetadataCacheOptions",
            Group::Compression => "CompressionOptions",
            Group::Universal => "CompactionOptionsUniversal",
            Group::Fifo => "CompactionOptionsFIFO",
            Group::Read => "ReadOptions",
            Group::Write => "WriteOptions",
            Group::Flush => "FlushOptions",
            Group::CompactRange => "CompactRangeOptions",
            Group::CompactFiles => "CompactionOptions",
        }
    }
}

/// How the engine treats a value of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnswerKind {
    /// A setting of the engine means the same.
    Used,
    /// A different setting of the engine serves the same purpose.
    Mapped,
    /// The value is accepted and not used: the engine decides itself, or always does what the value requests.
    Ignored,
    /// The value is accepted and kept for RocksDB, which acts on it. The engine does not, and the report of the open
    /// names it.
    Unserved,
    /// Only the neutral value is accepted. Another value in a file is kept for RocksDB and reported.
    Refused,
}

impl AnswerKind {
    /// All of them, in the order of the page.
    pub const ALL: [AnswerKind; 5] = [
        AnswerKind::Used,
        AnswerKind::Mapped,
        AnswerKind::Ignored,
        AnswerKind::Unserved,
        AnswerKind::Refused,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            AnswerKind::Used => "used",
            AnswerKind::Mapped => "mapped",
            AnswerKind::Ignored => "ignored",
            AnswerKind::Unserved => "unserved",
            AnswerKind::Refused => "refused",
        }
    }
}

/// The valid values of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// `true` or `false`.
    Flag,
    /// Whole numbers from the first to the second, and their unit.
    Whole(u64, u64, &'static str),
    /// Numbers from the first to the second.
    Real(f64, f64),
    /// A description.
    Text(&'static str),
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Flag => f.write_str("true, false"),
            Range::Whole(least, u64::MAX, unit) => write!(f, "{unit}, {least} or more"),
            Range::Whole(least, most, unit) => write!(f, "{unit}, {least} to {most}"),
            Range::Real(least, most) => write!(f, "{least} to {most}"),
            Range::Text(text) => f.write_str(text),
        }
    }
}

/// Sets a setting from text.
pub(super) type Set<T> = fn(&mut T, &str) -> Result<(), Wrong>;

/// How a value is read into a setting, and written back.
pub(super) struct Setting<T> {
    /// The field, as a path from the struct of settings.
    pub(super) onto: &'static str,
    pub(super) range: Range,
    /// Reads the value from text. `None`: the value has no text form (a key, a snapshot); only the struct's field can
    /// be set.
    pub(super) set: Option<Set<T>>,
    /// The text for an OPTIONS file; `None`: the file does not hold it.
    pub(super) show: fn(&T) -> Option<String>,
}

pub(super) enum Answer<T> {
    Used(Setting<T>),
    Mapped(Setting<T>),
    Ignored,
    Unserved,
    /// The check for further neutral values besides RocksDB's default.
    Refused(fn(&str) -> bool),
}

/// One name.
pub(super) struct Row<T: 'static> {
    pub name: &'static str,
    /// RocksDB 11.8's default, as in its OPTIONS file; empty if the file does not contain the name.
    pub(super) default: &'static str,
    /// Whether RocksDB can change it while the database is open.
    pub(super) live: bool,
    /// The oldest format level whose release knows the name.
    pub(super) since: FormatLevel,
    pub(super) answer: Answer<T>,
    /// The effect, or the reason why the option has no effect, in one or two sentences.
    pub(super) text: &'static str,
}

/// The result of [`Row::set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Set,
    Ignored,
}

/// The reason why [`Row::set`] did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// The text is not a value of the option.
    Wrong(Wrong),
    /// The value requests something that the engine does not have.
    Refused,
}

impl<T> Row<T> {
    pub(super) fn kind(&self) -> AnswerKind {
        match self.answer {
            Answer::Used(_) => AnswerKind::Used,
            Answer::Mapped(_) => AnswerKind::Mapped,
            Answer::Ignored => AnswerKind::Ignored,
            Answer::Unserved => AnswerKind::Unserved,
            Answer::Refused(_) => AnswerKind::Refused,
        }
    }

    pub(super) fn setting(&self) -> Option<&Setting<T>> {
        match &self.answer {
            Answer::Used(setting) | Answer::Mapped(setting) => Some(setting),
            Answer::Ignored | Answer::Unserved | Answer::Refused(_) => None,
        }
    }

    /// Whether a stored value requests something that RocksDB does and the engine does not.
    pub(super) fn is_missed(&self, value: &str) -> bool {
        matches!(self.answer, Answer::Unserved) && !same(&id_of(self.default), &id_of(value))
            // Sizes of levels that do not follow the last one.
            || self.name == "level_compaction_dynamic_level_bytes" && same("false", value)
    }

    /// Sets a value, unescaped.
    pub(super) fn set(&self, target: &mut T, value: &str) -> Result<Taken, NotTaken> {
        match &self.answer {
            Answer::Used(setting) | Answer::Mapped(setting) => {
                let set = setting.set.ok_or_else(|| NotTaken::Wrong("it has no form as text".to_owned()))?;
                set(target, value).map(|()| Taken::Set).map_err(NotTaken::Wrong)
            }
            Answer::Ignored | Answer::Unserved => {
                check_like(self.default, value).map(|()| Taken::Ignored).map_err(NotTaken::Wrong)
            }
            Answer::Refused(asks_nothing) => {
                if same(self.default, value) || asks_nothing(value) {
                    return Ok(Taken::Ignored);
                }
                check_like(self.default, value).map_err(NotTaken::Wrong)?;
                Err(NotTaken::Refused)
            }
        }
    }
}

/// Whether RocksDB changes the option while the database is open: `live` or `open`.
macro_rules! when {
    (live) => {
        true
    };
    (open) => {
        false
    };
}

/// `uses!("name", "RocksDB's default", live | open, field.of.ours, range, "what it does")`. If not every
/// format level knows the name, the first level that does precedes the field.
macro_rules! uses {
    ($name:literal, $default:literal, $when:ident, $($field:ident).+, $range:expr, $text:literal) => {
        $crate::names::row::uses!($name, $default, $when, V6_29, $($field).+, $range, $text)
    };
    ($name:literal, $default:literal, $when:ident, $since:ident, $($field:ident).+, $range:expr, $text:literal) => {
        $crate::names::row::Row {
            name: $name,
            default: $default,
            live: $crate::names::row::when!($when),
            since: $crate::FormatLevel::$since,
            text: $text,
            answer: $crate::names::row::Answer::Used($crate::names::row::Setting {
                onto: stringify!($($field).+),
                range: $range,
                set: Some(|target, text| {
                    target.$($field).+ = $crate::names::value::Value::parse(text)?;
                    Ok(())
                }),
                show: |target| Some($crate::names::value::Value::show(&target.$($field).+)),
            }),
        }
    };
}

/// `mapped!("name", "RocksDB's default", live | open, "onto", range, set, show, "what it does")`.
macro_rules! mapped {
    ($name:literal, $default:literal, $when:ident, $onto:literal, $range:expr, $set:expr, $show:expr, $text:literal) => {
        $crate::names::row::mapped!($name, $default, $when, V6_29, $onto, $range, $set, $show, $text)
    };
    ($name:literal, $default:literal, $when:ident, $since:ident, $onto:literal, $range:expr, $set:expr, $show:expr, $text:literal) => {
        $crate::names::row::Row {
            name: $name,
            default: $default,
            live: $crate::names::row::when!($when),
            since: $crate::FormatLevel::$since,
            text: $text,
            answer: $crate::names::row::Answer::Mapped($crate::names::row::Setting {
                onto: $onto,
                range: $range,
                set: $set,
                show: $show,
            }),
        }
    };
}

/// `ignored!("name", "RocksDB's default", live | open, "why")`.
macro_rules! ignored {
    ($name:literal, $default:literal, $when:ident, $text:literal) => {
        $crate::names::row::Row {
            name: $name,
            default: $default,
            live: $crate::names::row::when!($when),
            since: $crate::FormatLevel::V6_29,
            text: $text,
            answer: $crate::names::row::Answer::Ignored,
        }
    };
}

/// `unserved!("name", "RocksDB's default", live | open, "what is not done")`.
macro_rules! unserved {
    ($name:literal, $default:literal, $when:ident, $text:literal) => {
        $crate::names::row::Row {
            answer: $crate::names::row::Answer::Unserved,
            ..$crate::names::row::ignored!($name, $default, $when, $text)
        }
    };
}

/// `refused!("name", "RocksDB's default", live | open, "why")`. A function before the text accepts further neutral
/// values.
macro_rules! refused {
    ($name:literal, $default:literal, $when:ident, $text:literal) => {
        $crate::names::row::refused!($name, $default, $when, |_| false, $text)
    };
    ($name:literal, $default:literal, $when:ident, $asks_nothing:expr, $text:literal) => {
        $crate::names::row::Row {
            name: $name,
            default: $default,
            live: $crate::names::row::when!($when),
            since: $crate::FormatLevel::V6_29,
            text: $text,
            answer: $crate::names::row::Answer::Refused($asks_nothing),
        }
    };
}

pub(super) use {ignored, mapped, refused, unserved, uses, when};
