//! Writers of crafted files: right checksums over contents that no database writes.

use ashlar_base::{FamilyId, FileNumber, InternalKeyBuf, Level, SeqNum, Trailer, ValueType};
use ashlar_env::Env;
use ashlar_format::block::{BlockBuilder, IndexBlockBuilder, IndexEntries};
use ashlar_format::filename::FileKind;
use ashlar_format::table::{
    BlockChecksum, BlockHandle, ChecksumKind, Footer, IndexKind, MetaIndex, Properties, TableKind,
};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_log::{Framing, LogWriter};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// An internal key.
pub fn key(user_key: &[u8], seq: u64, value_type: ValueType) -> InternalKeyBuf {
    InternalKeyBuf::new(user_key, Trailer::new(SeqNum::new(seq).unwrap(), value_type))
}

/// A put's internal key.
pub fn put(user_key: &str, seq: u64) -> InternalKeyBuf {
    key(user_key.as_bytes(), seq, ValueType::Put)
}

/// A block of entries in the given order.
pub fn block(entries: &[(InternalKeyBuf, &[u8])]) -> Vec<u8> {
    let mut builder = BlockBuilder::new(1);
    for (key, value) in entries {
        builder.add(key.as_key().encoded(), value);
    }
    builder.finish().to_vec()
}

/// An index block with internal keys and whole handles.
pub fn index(entries: &[(InternalKeyBuf, BlockHandle)]) -> Vec<u8> {
    let mut builder = IndexBlockBuilder::new(IndexEntries::default(), 1);
    for (separator, handle) in entries {
        builder.add(separator.as_key().encoded(), *handle, b"");
    }
    builder.finish()
}

/// A table that is written block by block.
pub struct TableFile {
    bytes: Vec<u8>,
    pub meta: MetaIndex,
    pub properties: Properties,
}

const CHECKSUM: BlockChecksum = BlockChecksum { kind: ChecksumKind::Crc32c, base_context: 0 };

impl TableFile {
    pub fn new() -> TableFile {
        let properties =
            Properties { index_kind: Some(IndexKind::BinarySearch as u32), ..Properties::default() };
        TableFile { bytes: Vec::new(), meta: MetaIndex::default(), properties }
    }

    /// Appends a block that is stored raw.
    pub fn raw(&mut self, block: &[u8]) -> BlockHandle {
        self.stored(block, 0)
    }

    /// Appends a block of which `compression` says how its bytes are compressed.
    pub fn stored(&mut self, block: &[u8], compression: u8) -> BlockHandle {
        let handle = BlockHandle { offset: self.bytes.len() as u64, size: block.len() as u64 };
        self.bytes.extend_from_slice(block);
        self.bytes.extend_from_slice(&CHECKSUM.trailer(handle.offset, block, compression));
        handle
    }

    /// The whole file.
    pub fn finish(mut self, index: BlockHandle) -> Vec<u8> {
        let properties = self.properties.encode();
        let properties = self.raw(&properties);
        self.meta.set(MetaIndex::PROPERTIES, properties);
        let meta = self.meta.encode();
        let metaindex = self.raw(&meta);
        let footer = Footer {
            kind: TableKind::BlockBased,
            version: 2,
            checksum: CHECKSUM,
            metaindex,
            index: Some(index),
        };
        let footer = footer.encode(self.bytes.len() as u64).unwrap();
        self.bytes.extend_from_slice(&footer);
        self.bytes
    }
}

/// A database directory that is written file by file. File numbers below 10 are its own.
pub struct Directory {
    dir: TempDir,
    pub edit: VersionEdit,
    pub more: Vec<VersionEdit>,
}

impl Directory {
    pub fn new() -> Directory {
        let edit = VersionEdit {
            comparator: Some("leveldb.BytewiseComparator".to_owned()),
            log_number: Some(FileNumber(0)),
            next_file: Some(FileNumber(100)),
            last_seq: SeqNum::new(100),
            ..VersionEdit::default()
        };
        Directory { dir: tempfile::tempdir().unwrap(), edit, more: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Adds a table of the default family whose MANIFEST entry says what the arguments say.
    pub fn table(
        &mut self,
        number: u64,
        level: u8,
        bytes: &[u8],
        (smallest, largest): (InternalKeyBuf, InternalKeyBuf),
        (first, last): (u64, u64),
    ) {
        self.file(FileKind::Table(FileNumber(number)), bytes);
        let seqs = (SeqNum::new(first).unwrap(), SeqNum::new(last).unwrap());
        let file = NewFile::new(FileNumber(number), bytes.len() as u64, (smallest, largest), seqs);
        self.edit.add_file(Level(level), file);
    }

    /// Writes a file of any kind.
    pub fn file(&self, kind: FileKind, bytes: &[u8]) {
        std::fs::write(self.path().join(kind.name()), bytes).unwrap();
    }

    /// Writes a log of `batches`.
    pub fn log(&self, number: u64, batches: &[Vec<u8>]) {
        self.records(FileKind::Wal(FileNumber(number)), number, batches);
    }

    fn records(&self, kind: FileKind, number: u64, records: &[Vec<u8>]) {
        let fs = Env::os().unwrap().fs;
        let path = self.path().join(kind.name());
        let log = LogWriter::create(Arc::clone(&fs), &path, FileNumber(number), Framing::Legacy).unwrap();
        for record in records {
            log.append(record, false).unwrap();
        }
        log.close().unwrap();
    }

    /// Writes MANIFEST and CURRENT.
    pub fn finish(self) -> TempDir {
        let edits: Vec<Vec<u8>> =
            std::iter::once(&self.edit).chain(&self.more).map(|e| e.to_bytes()).collect();
        self.records(FileKind::Manifest(FileNumber(5)), 5, &edits);
        self.file(FileKind::Current, b"MANIFEST-000005\n");
        self.dir
    }
}

/// An edit that creates a family.
pub fn family(id: u32, name: &[u8]) -> VersionEdit {
    VersionEdit {
        family_add: Some(name.to_vec()),
        comparator: Some("leveldb.BytewiseComparator".to_owned()),
        log_number: Some(FileNumber(0)),
        ..VersionEdit::of(FamilyId(id))
    }
}
