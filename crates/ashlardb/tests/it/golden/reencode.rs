//! Every golden byte that the specification fixes is decoded and written again: the bytes must be the same.
//!
//! What cannot come out the same is counted by its reason, so that nothing slips through silently.

use ashlar_base::{Cursor, ErrorKind, FileNumber};
use ashlar_env::Env;
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobRecordHeader};
use ashlar_format::block::{
    BlockBuilder, BlockCursor, DataBlock, HashIndex, IndexBlockBuilder, IndexCursor, IndexEntries,
    InternalEntries, PlainCursor, PlainEntries, is_separated, join_separated,
};
use ashlar_format::filename::FileKind;
use ashlar_format::filter::{BloomBuilder, FilterForm, FilterPolicy};
use ashlar_format::log_record::{Framing, encode_record};
use ashlar_format::options_file::OptionsFile;
use ashlar_format::table::{BlockHandle, MetaIndex, Properties, TableKind};
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::{BatchEncoder, BatchOp, BatchReader};
use ashlar_log::{LogReader, LogRecordKind, RecoveryMode};
use ashlar_table::{Anatomy, BlockRole};
use ashlar_testkit::{golden, report};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Pieces by kind: how many came out the same, or why they cannot.
#[derive(Default)]
struct Pieces {
    same: BTreeMap<&'static str, usize>,
    kept: BTreeMap<&'static str, usize>,
    different: Vec<String>,
}

impl Pieces {
    fn compare(&mut self, kind: &'static str, whose: &dyn std::fmt::Display, stored: &[u8], again: &[u8]) {
        if stored == again {
            *self.same.entry(kind).or_default() += 1;
            return;
        }
        let at = stored.iter().zip(again).position(|(a, b)| a != b);
        let (stored, again) = (stored.len(), again.len());
        self.different
            .push(format!("{kind}, {whose}: {stored} bytes, {again} written, the first other {at:?}"));
    }

    fn keep(&mut self, why: &'static str) {
        *self.kept.entry(why).or_default() += 1;
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(files_below(&entry.path())),
            false => all.push(entry.path()),
        }
    }
    all.sort();
    all
}

/// The records of a log, each framed again; `each` gets what they hold.
fn log(path: &Path, number: FileNumber, pieces: &mut Pieces, mut each: impl FnMut(&[u8], &mut Pieces)) {
    let bytes = std::fs::read(path).unwrap();
    let file = Env::os().unwrap().fs.open_read(path).unwrap();
    let mut reader = LogReader::open(file, number, RecoveryMode::Absolute);
    let compressed = bytes.get(6) == Some(&9);
    while let Some(record) = reader.next().unwrap() {
        let at = usize::try_from(record.offset).unwrap();
        if record.kind != LogRecordKind::Data {
            pieces.keep("sizes of timestamps in logs: never written");
            continue;
        }
        if compressed {
            pieces.keep("compressed log records: other releases of zstd make other frames");
        } else {
            let framing = if bytes[at + 6] >= 5 { Framing::Recyclable } else { Framing::Legacy };
            let mut again = Vec::new();
            encode_record(&mut again, framing, number.0 as u32, record.offset, record.payload);
            let stored = &bytes[at..bytes.len().min(at + again.len())];
            pieces.compare("log records", &path.display(), stored, &again);
        }
        each(record.payload, pieces);
    }
    assert!(reader.cut_error().is_none(), "{}", path.display());
}

fn batch(payload: &[u8], path: &Path, pieces: &mut Pieces) {
    let batch = BatchReader::new(payload).unwrap();
    let mut again = BatchEncoder::new();
    for op in batch.iter() {
        let done = match op.unwrap() {
            BatchOp::Put { family, key, value } => again.put(family, key, value),
            BatchOp::Delete { family, key } => again.delete(family, key),
            BatchOp::SingleDelete { family, key } => again.single_delete(family, key),
            BatchOp::Merge { family, key, value } => again.merge(family, key, value),
            BatchOp::DeleteRange { family, begin, end } => again.delete_range(family, begin, end),
            BatchOp::LogData(blob) => again.log_data(blob),
            op if mark(&op, &mut again) => Ok(()),
            _ => return pieces.keep("batches with other marks of transactions: never written"),
        };
        done.unwrap();
    }
    pieces.compare("write batches", &path.display(), payload, again.finish(batch.seq()));
}

/// Writes a mark of two-phase commit; false for other operations.
fn mark(op: &BatchOp<'_>, again: &mut BatchEncoder) -> bool {
    match op {
        BatchOp::BeginPrepare => again.begin_prepare(),
        BatchOp::EndPrepare { xid } => again.end_prepare(xid),
        BatchOp::Commit { xid } => again.commit(xid),
        BatchOp::Rollback { xid } => again.rollback(xid),
        _ => return false,
    }
    true
}

fn blob_file(bytes: &[u8], path: &Path, pieces: &mut Pieces) {
    let mut again = Vec::new();
    BlobHeader::decode(bytes).unwrap().encode(&mut again);
    let tail = &bytes[bytes.len() - BlobFooter::LEN..];
    let mut c = Cursor::new(&bytes[again.len()..bytes.len() - BlobFooter::LEN]);
    while !c.is_empty() {
        let record = BlobRecordHeader::decode(&mut c).unwrap();
        let key = c.bytes(usize::try_from(record.key_len).unwrap(), "key").unwrap();
        let value = c.bytes(usize::try_from(record.value_len).unwrap(), "value").unwrap();
        BlobRecordHeader::new(key, value).encode(&mut again);
        again.extend_from_slice(&[key, value].concat());
    }
    BlobFooter::decode(tail).unwrap().encode(&mut again);
    pieces.compare("blob files", &path.display(), bytes, &again);
}

/// One table with what its blocks have in common.
struct Table<'a> {
    path: &'a Path,
    anatomy: Anatomy,
    /// User keys without timestamps, in order.
    keys: Vec<Vec<u8>>,
}

impl Table<'_> {
    fn content(&self, handle: BlockHandle) -> Vec<u8> {
        self.anatomy.block(handle).unwrap().content.unwrap()
    }

    fn interval(&self, of: impl Fn(&Properties) -> Option<u64>, leveldb: usize) -> usize {
        match self.anatomy.footer().kind {
            TableKind::LevelDb => leveldb,
            TableKind::BlockBased => {
                usize::try_from(of(self.anatomy.properties().unwrap()).unwrap()).unwrap()
            }
        }
    }

    /// Footer and every block, with its trailer.
    fn all(&mut self, pieces: &mut Pieces) {
        let bytes = std::fs::read(self.path).unwrap();
        let start = self.anatomy.footer_start();
        let again = self.anatomy.footer().encode(start).unwrap();
        pieces.compare("footers", &self.path.display(), &bytes[usize::try_from(start).unwrap()..], &again);
        let (places, wrong) = self.anatomy.places();
        assert!(wrong.is_none(), "{}: {wrong:?}", self.path.display());
        for place in places {
            let stored = self.anatomy.block(place.handle).unwrap();
            let checksum = &self.anatomy.footer().checksum;
            let trailer = checksum.trailer(place.handle.offset, stored.stored(), stored.compression);
            let at = usize::try_from(place.handle.offset + place.handle.size).unwrap();
            pieces.compare("block trailers", &self.path.display(), &bytes[at..at + trailer.len()], &trailer);
            self.block(&place.role, place.handle, pieces);
        }
    }

    fn block(&mut self, role: &BlockRole, handle: BlockHandle, pieces: &mut Pieces) {
        let content = self.content(handle);
        let whose = self.path.display().to_string();
        match role {
            BlockRole::Data => self.data(&content, pieces),
            BlockRole::RangeDeletions => {
                pieces.compare("range deletion blocks", &whose, &content, &plain(&content, 1, false));
            }
            BlockRole::Index | BlockRole::IndexPartition | BlockRole::FilterIndex => {
                let again = self.index(&content, *role == BlockRole::FilterIndex);
                // A hint for searching that readers may pass over, and we do not write.
                let mut stored = content;
                *stored.last_mut().unwrap() &= !(1 << 5);
                pieces.compare("index blocks", &whose, &stored, &again);
                if *role == BlockRole::FilterIndex {
                    self.filter_partitions(&stored, pieces);
                }
            }
            BlockRole::Filter => {
                let mut keys = self.keys.clone();
                keys.extend(self.prefixes());
                self.filter(&content, &keys, pieces);
            }
            // With its index, when all keys are known.
            BlockRole::FilterPartition => {}
            BlockRole::Dictionary => pieces.keep("dictionaries: bytes of zstd's training"),
            BlockRole::Properties => {
                let again = Properties::decode(&content).unwrap().encode();
                pieces.compare("properties blocks", &whose, &content, &again);
            }
            BlockRole::MetaIndex => {
                let again = MetaIndex::decode(&content).unwrap().encode();
                pieces.compare("metaindex blocks", &whose, &content, &again);
            }
            BlockRole::Other(name) if name.starts_with(b"rocksdb.hashindex.") => {
                pieces.keep("blocks of the hash search index: read past, never written");
            }
            BlockRole::Other(name) if name.starts_with(b"rocksdb.user_defined_index.") => {
                pieces.keep("user-defined indexes: a plug-in's own form, never written");
            }
            BlockRole::Other(name) => panic!("{whose}: {}", name.escape_ascii()),
        }
    }

    fn data(&mut self, content: &[u8], pieces: &mut Pieces) {
        let separated = is_separated(content);
        let joined = if separated { join_separated(content).unwrap() } else { content.to_vec() };
        let interval = self.interval(|p| p.data_block_restart_interval.or(Some(16)), 16);
        let again = match self.anatomy.properties().is_ok_and(|p| p.data_block_restart_interval.is_some()) {
            true => plain(&joined, interval, HashIndex::of(&joined).is_some()),
            false => plain(&joined, restart_interval(&joined), false),
        };
        let block = DataBlock::parse(&joined).unwrap();
        let mut cursor = BlockCursor::new(InternalEntries);
        cursor.first(&block).unwrap();
        let stamp = if self.path.ends_with("v6_user_timestamps.sst") { 8 } else { 0 };
        while let Some(entry) = cursor.entry(&block) {
            let key = entry.key.user_key();
            self.keys.push(key[..key.len() - stamp].to_vec());
            cursor.next(&block).unwrap();
        }
        match separated {
            true => pieces.keep("data blocks with separated values: never written, joined when read"),
            false => pieces.compare("data blocks", &self.path.display(), content, &again),
        }
    }

    fn index(&self, content: &[u8], of_filters: bool) -> Vec<u8> {
        let (format, interval) = match self.anatomy.footer().kind {
            TableKind::LevelDb => (IndexEntries::default(), 1),
            TableKind::BlockBased => {
                let properties = self.anatomy.properties().unwrap();
                (properties.index_entries().unwrap(), properties.index_block_restart_interval.unwrap_or(1))
            }
        };
        let format = IndexEntries { first_keys: format.first_keys && !of_filters, ..format };
        let block = DataBlock::parse(content).unwrap();
        let mut again = IndexBlockBuilder::new(format, usize::try_from(interval).unwrap());
        let mut cursor = IndexCursor::new(format);
        cursor.first(&block).unwrap();
        while let Some(value) = cursor.index_value() {
            let first_key = value.first_key.map_or(&[][..], |range| range.of(content));
            again.add(cursor.key(), value.handle, first_key);
            cursor.next(&block).unwrap();
        }
        again.finish()
    }

    /// A partition of the filter holds the keys up to its separator in the index over the partitions.
    fn filter_partitions(&self, index: &[u8], pieces: &mut Pieces) {
        let format = self.anatomy.properties().unwrap().index_entries().unwrap();
        let format = IndexEntries { first_keys: false, ..format };
        let block = DataBlock::parse(index).unwrap();
        let mut cursor = IndexCursor::new(format);
        let mut rest = &self.keys[..];
        cursor.first(&block).unwrap();
        while let Some(value) = cursor.index_value() {
            let key = cursor.key();
            let separator = if format.user_keys { key } else { &key[..key.len() - 8] };
            let (own, behind) = rest.split_at(rest.partition_point(|key| &key[..] <= separator));
            self.filter(&self.content(value.handle), own, pieces);
            rest = behind;
            cursor.next(&block).unwrap();
        }
        assert!(rest.is_empty(), "{}: {} keys in no filter", self.path.display(), rest.len());
    }

    /// What a prefix extractor makes of the keys.
    fn prefixes(&self) -> BTreeSet<Vec<u8>> {
        let name = self.anatomy.properties().ok().and_then(|p| p.prefix_extractor_name.clone());
        let len = name.as_deref().and_then(|name| name.strip_prefix("rocksdb.FixedPrefix.")?.parse().ok());
        let Some(len): Option<usize> = len else { return BTreeSet::new() };
        self.keys.iter().map(|key| key[..len].to_vec()).collect()
    }

    /// Blocks come in the order of the file, so that all keys are known before the filter.
    fn filter(&self, content: &[u8], keys: &[Vec<u8>], pieces: &mut Pieces) {
        let again = match FilterForm::decode(content) {
            FilterForm::FastLocalBloom { lines, probes } => {
                let mut builder = BloomBuilder::new(10.0).unwrap();
                keys.iter().for_each(|key| builder.add(key));
                builder.finish_with(lines as usize, probes)
            }
            form => {
                let (text, version) = match form {
                    FilterForm::Ribbon(_) => ("ribbonfilter:10", 5),
                    FilterForm::LegacyBloom(_) => ("bloomfilter:10", 2),
                    other => panic!("{}: {other:?}", self.path.display()),
                };
                let mut builder = FilterPolicy::parse(text).unwrap().builder(version).unwrap();
                keys.iter().for_each(|key| builder.add(key));
                builder.finish()
            }
        };
        pieces.compare("filters", &self.path.display(), content, &again);
    }
}

fn plain(content: &[u8], interval: usize, hashed: bool) -> Vec<u8> {
    let mut again = match hashed {
        true => BlockBuilder::with_hash_index(interval, 0.75),
        false => BlockBuilder::new(interval),
    };
    let block = DataBlock::parse(content).unwrap();
    let mut cursor = PlainCursor::new(PlainEntries);
    cursor.first(&block).unwrap();
    while cursor.is_on_entry() {
        again.add(cursor.key(), cursor.value(&block));
        cursor.next(&block).unwrap();
    }
    again.finish().to_vec()
}

/// Entries between two restart points of a block whose table does not say.
fn restart_interval(content: &[u8]) -> usize {
    let block = DataBlock::parse(content).unwrap();
    let Some(second) = block.restart(1) else { return 16 };
    let mut cursor = PlainCursor::new(PlainEntries);
    cursor.first(&block).unwrap();
    let mut entries = 0;
    while cursor.is_on_entry() && cursor.offset() < second {
        entries += 1;
        cursor.next(&block).unwrap();
    }
    entries
}

fn number(path: &Path) -> FileNumber {
    match FileKind::parse(path.file_name().unwrap().to_str().unwrap()) {
        Some(FileKind::Wal(n) | FileKind::Manifest(n)) => n,
        _ => panic!("{}", path.display()),
    }
}

/// A text without comments, empty lines and indents.
fn said(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_bytes_are_written_again() {
    let mut pieces = Pieces::default();
    for path in files_below(&golden::path("")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".sst") || name.ends_with(".ldb") {
            let file = Env::os().unwrap().fs.open_read(&path).unwrap();
            let anatomy = match Anatomy::open(file) {
                Err(e) if e.kind() == ErrorKind::NotSupported => {
                    pieces.keep("tables of a kind that is not read");
                    continue;
                }
                opened => opened.unwrap(),
            };
            Table { path: &path, anatomy, keys: Vec::new() }.all(&mut pieces);
        } else if name.ends_with(".log") {
            log(&path, number(&path), &mut pieces, |payload, pieces| batch(payload, &path, pieces));
        } else if name.starts_with("MANIFEST-") {
            log(&path, number(&path), &mut pieces, |payload, pieces| {
                let again = VersionEdit::decode(payload).unwrap().to_bytes();
                pieces.compare("version edits", &path.display(), payload, &again);
            });
        } else if name.ends_with(".blob") {
            blob_file(&std::fs::read(&path).unwrap(), &path, &mut pieces);
        } else if name.starts_with("OPTIONS-") {
            let text = std::fs::read_to_string(&path).unwrap();
            let again = OptionsFile::parse(&text).unwrap().print();
            pieces.compare("OPTIONS files", &path.display(), said(&text).as_bytes(), said(&again).as_bytes());
        }
    }
    let words = |counts: &BTreeMap<&str, usize>| {
        counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
    };
    report::figure(&format!(
        "written again byte for byte: {}; {} differences",
        words(&pieces.same),
        pieces.different.len()
    ));
    report::figure(&format!("not written again: {}", words(&pieces.kept)));
    assert!(pieces.different.is_empty(), "{:#?}", pieces.different);
    assert!(pieces.same.len() >= 12 && pieces.same.values().sum::<usize>() > 800, "{:?}", pieces.same);
}
