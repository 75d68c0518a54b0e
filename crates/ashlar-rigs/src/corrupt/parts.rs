//! The parts of a directory's files: where each begins and ends.

use super::subject::{Files, machine};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::ReadFile;
use ashlar_format::blob::{BlobFooter, BlobHeader};
use ashlar_log::PhysicalRecords;
use ashlar_table::{Anatomy, BlockRole};
use std::path::Path;
use std::sync::Arc;

/// A row of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Current,
    Manifest,
    Log,
    Data,
    Index,
    Filter,
    RangeDeletions,
    Properties,
    MetaIndex,
    Footer,
    BlobHeader,
    BlobRecord,
    BlobFooter,
    Options,
    Identity,
    Lock,
    InfoLog,
}

impl Part {
    pub(super) const ALL: [Part; 17] = [
        Part::Current,
        Part::Manifest,
        Part::Log,
        Part::Data,
        Part::Index,
        Part::Filter,
        Part::RangeDeletions,
        Part::Properties,
        Part::MetaIndex,
        Part::Footer,
        Part::BlobHeader,
        Part::BlobRecord,
        Part::BlobFooter,
        Part::Options,
        Part::Identity,
        Part::Lock,
        Part::InfoLog,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Part::Current => "CURRENT",
            Part::Manifest => "MANIFEST",
            Part::Log => "log",
            Part::Data => "table: data",
            Part::Index => "table: index",
            Part::Filter => "table: filter",
            Part::RangeDeletions => "table: range deletions",
            Part::Properties => "table: properties",
            Part::MetaIndex => "table: metaindex",
            Part::Footer => "table: footer",
            Part::BlobHeader => "blob file: header",
            Part::BlobRecord => "blob file: record",
            Part::BlobFooter => "blob file: footer",
            Part::Options => "OPTIONS",
            Part::Identity => "IDENTITY",
            Part::Lock => "LOCK",
            Part::InfoLog => "LOG",
        }
    }

    /// Is `name` the name of such a file?
    pub(super) fn is_of(self, name: &str) -> bool {
        match self {
            Part::Current => name == "CURRENT",
            Part::Manifest => name.starts_with("MANIFEST-"),
            Part::Log => name.ends_with(".log"),
            Part::BlobHeader | Part::BlobRecord | Part::BlobFooter => name.ends_with(".blob"),
            Part::Options => name.starts_with("OPTIONS-"),
            Part::Identity => name == "IDENTITY",
            Part::Lock => name == "LOCK",
            Part::InfoLog => name == "LOG",
            _ => name.ends_with(".sst"),
        }
    }

    /// The newest file of that kind that holds something; an empty one where all are.
    pub(super) fn file(self, files: &Files) -> Option<&String> {
        let full = files.iter().rfind(|(name, bytes)| self.is_of(name) && !bytes.is_empty());
        full.or_else(|| files.iter().rfind(|(name, _)| self.is_of(name))).map(|(name, _)| name)
    }
}

/// A stretch of a file that is one thing: a block with its trailer, a record with its header, a whole small file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The pieces of a part, in the order of the file.
pub(super) fn pieces(part: Part, bytes: &[u8]) -> Result<Vec<Piece>> {
    let whole = Piece { from: 0, to: bytes.len() };
    match part {
        Part::Current | Part::Options | Part::Identity | Part::Lock | Part::InfoLog => Ok(vec![whole]),
        Part::Manifest | Part::Log => records(bytes),
        Part::BlobHeader => Ok(vec![Piece { from: 0, to: BlobHeader::LEN }]),
        Part::BlobFooter => Ok(vec![Piece { from: bytes.len() - BlobFooter::LEN, to: bytes.len() }]),
        Part::BlobRecord => blobs(bytes),
        Part::Footer => {
            let footer = Anatomy::open(memory(bytes)?)?.footer_start();
            Ok(vec![Piece { from: at(footer)?, to: bytes.len() }])
        }
        _ => blocks(part, bytes),
    }
}

fn at(offset: u64) -> Result<usize> {
    usize::try_from(offset).map_err(|_| Error::invalid("a file that does not fit into memory"))
}

fn memory(bytes: &[u8]) -> Result<Arc<dyn ReadFile>> {
    let (env, path) = (machine(0), Path::new("/file"));
    env.fs.create(path)?.write_at(bytes, 0)?;
    env.fs.open_read(path)
}

fn blocks(part: Part, bytes: &[u8]) -> Result<Vec<Piece>> {
    /// Compression and checksum behind every block.
    const TRAILER: usize = 5;
    let wanted = |role: &BlockRole| {
        matches!(
            (part, role),
            (Part::Data, BlockRole::Data)
                | (Part::Index, BlockRole::Index)
                | (Part::Filter, BlockRole::Filter)
                | (Part::RangeDeletions, BlockRole::RangeDeletions)
                | (Part::Properties, BlockRole::Properties)
                | (Part::MetaIndex, BlockRole::MetaIndex)
        )
    };
    let (places, _) = Anatomy::open(memory(bytes)?)?.places();
    let found = places.iter().filter(|place| wanted(&place.role));
    found
        .map(|place| {
            let from = at(place.handle.offset)?;
            Ok(Piece { from, to: from + at(place.handle.size)? + TRAILER })
        })
        .collect()
}

fn records(bytes: &[u8]) -> Result<Vec<Piece>> {
    let mut records = PhysicalRecords::new(memory(bytes)?, FileNumber(0));
    let mut pieces = Vec::new();
    while let Some(record) = records.next()? {
        let from = at(record.offset)?;
        pieces.push(Piece { from, to: from + at(record.len)? });
    }
    Ok(pieces)
}

fn blobs(bytes: &[u8]) -> Result<Vec<Piece>> {
    let reader = ashlar_blob::BlobReader::open(memory(bytes)?, FileNumber(0), None, None)?;
    let (mut records, mut pieces, mut from) = (reader.records(), Vec::new(), BlobHeader::LEN);
    while let Some(record) = records.next()? {
        let to = at(record.place.offset + record.place.size)?;
        pieces.push(Piece { from, to });
        from = to;
    }
    Ok(pieces)
}
