//! Shapes: features of files that some releases of RocksDB cannot read, and the first format level that allows each.
//!
//! Pure functions from decoded values to shapes. `docs/manual.md`, "Going back to RocksDB", lists the levels.
//! 1. A shape is above a level when RocksDB of that level refuses it, reads it wrongly or stops before it. Data that a
//!    release skips by the rules of the format (ignorable tags and fields that are hints) is no shape.
//! 2. LevelDB's tables are the only shape that later releases drop: releases of level 11 do not read them.

use ashlar_base::{Cursor, ValueType};
use ashlar_format::log_record::{RecordKind, RecordType};
use ashlar_format::table::{Footer, Properties, TableKind};
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::BatchOp;
use ashlar_options::FormatLevel;
use std::fmt;

/// A feature that not every level has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// A WAL file with compressed records (record type 9).
    CompressedLog,
    /// A WAL file with recyclable records (types 5 to 8).
    RecycledLog,
    /// Sizes of user-defined timestamps in a WAL file (types 10 and 11).
    TimestampSizes,
    /// A WAL record about the file before it (types 130 and 131).
    PredecessorInfo,
    /// Another WAL record that newer releases may skip.
    IgnorableRecord,
    /// The commit of a transaction with a timestamp.
    CommitWithTimestamp,
    /// A wide-column entity.
    Entity,
    /// A wide-column entity with columns in blob files.
    EntityWithBlobs,
    /// A put with the time it was written, or with a preferred sequence number.
    TimedPut,
    /// Tables of level 0 with one epoch number.
    EqualEpochs,
    /// Tables of level 0 whose sequence ranges RocksDB before 7.10 cannot order.
    UnorderedSequences,
    /// A family or table whose user-defined timestamps are not stored.
    TimestampsNotStored,
    /// A MANIFEST tag of the newest releases.
    NewestManifestTag,
    /// A table of this format version.
    TableFormat(u32),
    /// Data blocks with separated keys and values.
    SeparatedBlocks,
    /// Index blocks with a search hint.
    SearchHint,
    /// A table whose index is user-defined.
    UserDefinedIndex,
    /// A table with blobs in the same file.
    EmbeddedBlobs,
    /// A table as LevelDB writes it.
    LevelDbTable,
}

impl Shape {
    /// The lowest level that has the shape.
    pub fn from(self) -> FormatLevel {
        match self {
            Shape::TableFormat(version) => match version {
                0..=5 => FormatLevel::V6_29,
                6 => FormatLevel::V9_11,
                _ => FormatLevel::V11,
            },
            Shape::LevelDbTable => FormatLevel::V6_29,
            Shape::CompressedLog | Shape::CommitWithTimestamp | Shape::Entity => FormatLevel::V7_8,
            Shape::RecycledLog
            | Shape::TimestampSizes
            | Shape::PredecessorInfo
            | Shape::IgnorableRecord
            | Shape::TimedPut
            | Shape::EqualEpochs
            | Shape::UnorderedSequences
            | Shape::TimestampsNotStored => FormatLevel::V9_11,
            Shape::EntityWithBlobs
            | Shape::NewestManifestTag
            | Shape::SeparatedBlocks
            | Shape::SearchHint
            | Shape::UserDefinedIndex
            | Shape::EmbeddedBlobs => FormatLevel::V11,
        }
    }

    /// The highest level that still has the shape; `None`: all known levels.
    pub fn until(self) -> Option<FormatLevel> {
        (self == Shape::LevelDbTable).then_some(FormatLevel::V9_11)
    }

    /// Whether RocksDB of `level` reads the shape.
    pub fn fits(self, level: FormatLevel) -> bool {
        level >= self.from() && self.until().is_none_or(|last| level <= last)
    }

    /// The shape of a physical record in a WAL file, by its type byte.
    pub fn of_log_record(type_byte: u8) -> Option<Shape> {
        let Some(known) = RecordType::from_u8(type_byte) else {
            return (type_byte & 0x80 != 0).then_some(Shape::IgnorableRecord);
        };
        Some(match known.kind {
            RecordKind::SetCompression => Shape::CompressedLog,
            RecordKind::TimestampSizes => Shape::TimestampSizes,
            RecordKind::PredecessorInfo => Shape::PredecessorInfo,
            _ if known.recyclable => Shape::RecycledLog,
            _ => return None,
        })
    }

    /// The shape of an operation of a write batch.
    pub fn of_op(op: &BatchOp<'_>) -> Option<Shape> {
        match op {
            BatchOp::Entity { entity, .. } => Some(Self::of_entity(entity)),
            BatchOp::TimedPut { .. } => Some(Shape::TimedPut),
            BatchOp::CommitWithTimestamp { .. } => Some(Shape::CommitWithTimestamp),
            _ => None,
        }
    }

    /// The shape of an entry of a table.
    pub fn of_entry(value_type: ValueType, value: &[u8]) -> Option<Shape> {
        match value_type {
            ValueType::Entity => Some(Self::of_entity(value)),
            ValueType::TimedPut => Some(Shape::TimedPut),
            _ => None,
        }
    }

    fn of_entity(value: &[u8]) -> Shape {
        match Cursor::new(value).varint32("entity.version") {
            Ok(0 | 1) => Shape::Entity,
            _ => Shape::EntityWithBlobs,
        }
    }

    /// The shapes of a version edit. [`Shape::EqualEpochs`] and [`Shape::UnorderedSequences`] are shapes of whole
    /// trees, not of edits.
    pub fn of_edit(edit: &VersionEdit) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let stripped = edit.added.iter().any(|(_, file)| !file.timestamps_persisted);
        if edit.persist_udt == Some(false) || stripped {
            shapes.push(Shape::TimestampsNotStored);
        }
        let newest = edit.compaction_progress.is_some()
            || edit.last_manifest_size.is_some()
            || !edit.ignored.is_empty()
            || edit.added.iter().any(|(_, file)| !file.open_metadata.is_empty());
        if newest {
            shapes.push(Shape::NewestManifestTag);
        }
        shapes
    }

    /// The shapes of a table, by its footer and properties.
    pub fn of_table(footer: &Footer, properties: &Properties) -> Vec<Shape> {
        if footer.kind == TableKind::LevelDb {
            return vec![Shape::LevelDbTable];
        }
        let mut shapes = vec![Shape::TableFormat(footer.version)];
        let on = |flag: Option<u64>| flag.is_some_and(|value| value != 0);
        if on(properties.separate_key_value_in_data_block) {
            shapes.push(Shape::SeparatedBlocks);
        }
        if on(properties.udi_is_primary_index) {
            shapes.push(Shape::UserDefinedIndex);
        }
        if properties.embedded_blob_stats.is_some() {
            shapes.push(Shape::EmbeddedBlobs);
        }
        if properties.user_defined_timestamps_persisted == Some(0) {
            shapes.push(Shape::TimestampsNotStored);
        }
        shapes
    }

    /// The shape of a block, by the flags in its last word.
    pub fn of_block(content: &[u8]) -> Option<Shape> {
        let flags = *content.last()?;
        if flags & 0x10 != 0 {
            return Some(Shape::SeparatedBlocks);
        }
        (flags & 0x20 != 0).then_some(Shape::SearchHint)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::TableFormat(version) => return write!(f, "table format {version}"),
            Shape::CompressedLog => "compressed log",
            Shape::RecycledLog => "recyclable log records",
            Shape::TimestampSizes => "timestamp sizes in a log",
            Shape::PredecessorInfo => "predecessor record in a log",
            Shape::IgnorableRecord => "ignorable log record",
            Shape::CommitWithTimestamp => "commit with timestamp",
            Shape::Entity => "wide-column entity",
            Shape::EntityWithBlobs => "wide-column entity of version 2",
            Shape::TimedPut => "timed put",
            Shape::EqualEpochs => "tables of level 0 with equal epochs",
            Shape::UnorderedSequences => "tables of level 0 with equal or overlapping sequences",
            Shape::TimestampsNotStored => "timestamps not stored",
            Shape::NewestManifestTag => "newest MANIFEST tags",
            Shape::SeparatedBlocks => "separated keys and values",
            Shape::SearchHint => "search hint in an index",
            Shape::UserDefinedIndex => "user-defined index",
            Shape::EmbeddedBlobs => "blobs inside a table",
            Shape::LevelDbTable => "LevelDB table",
        })
    }
}
