//! The checks of a file before it is ingested, and what the MANIFEST will say about it.
//!
//! [`survey`] reads footer, properties and range deletions of the source: it is cheap, and finds most misuse before anything
//! is linked or copied. [`inspect`] then reads the file in the directory of the database, which is the file that reads will
//! get.
//!
//! Source: RocksDB `db/external_sst_file_ingestion_job.cc` (`SanityCheckTableProperties`, `GetIngestedFileInfo`), behaviour.

use super::Span;
use crate::version::TableCounts;
use ashlar_base::{
    Error, FamilyId, FileNumber, InternalKey, InternalKeyBuf, Order, Result, SeqNum, Trailer, ValueType,
};
use ashlar_cache::FramePool;
use ashlar_env::Fs;
use ashlar_format::table::Properties;
use ashlar_format::version_edit::NewFile;
use ashlar_options::{FamilyOptions, FormatLevel};
use ashlar_table::{ReaderOptions, TableReader, TableSurvey, unique_id_bytes};
use std::path::Path;

/// The block cache of an inspection. No block is read twice.
const POOL_BYTES: usize = 1 << 20;

/// The version of the rules for external files that lets the MANIFEST assign a sequence number.
const VERSION: u32 = 2;

/// The family that is to take a file.
#[derive(Clone, Copy, Debug)]
pub struct Taker<'a> {
    /// The name.
    pub name: &'a str,
    /// The number.
    pub id: FamilyId,
    /// The settings.
    pub options: &'a FamilyOptions,
}

/// What is known of a file that may be ingested.
#[derive(Debug)]
pub struct Inspected {
    /// The range of its keys.
    pub span: Span,
    /// The first and the last key, with sequence number 0.
    bounds: (InternalKeyBuf, InternalKeyBuf),
    /// The number of entries.
    pub entries: u64,
    /// The counts of kinds of entries; `None`: the properties lack them.
    pub counts: Option<TableCounts>,
    /// `None`: the properties lack what the id is made of.
    pub unique_id: Option<[u8; 16]>,
    size: u64,
    tail_size: u64,
}

impl Inspected {
    /// The file as the MANIFEST stores it: with `seq` for all entries, without a path id and a checksum.
    pub fn meta(&self, number: FileNumber, seq: SeqNum, unix_secs: u64) -> NewFile {
        let (smallest, largest) = &self.bounds;
        let bounds = (at_sequence(smallest.as_key(), seq), at_sequence(largest.as_key(), seq));
        let mut file = NewFile::new(number, self.size, bounds, (seq, seq));
        file.oldest_ancestor_time = Some(unix_secs);
        file.file_creation_time = Some(unix_secs);
        file.tail_size = self.tail_size;
        file.unique_id = self.unique_id;
        file
    }
}

/// A bound with the sequence number that readers see. The end of a range deletion stays what it is.
fn at_sequence(key: InternalKey<'_>, seq: SeqNum) -> InternalKeyBuf {
    let (user_key, trailer) = key.split();
    match trailer.value_type() {
        Some(kind) if trailer != Trailer::RANGE_END => InternalKeyBuf::new(user_key, Trailer::new(seq, kind)),
        _ => key.to_buf(),
    }
}

/// Checks what footer, properties and range deletions of the file at `path` say.
///
/// # Errors
/// `Corruption`, `InvalidArgument`, `NotSupported`: the family does not take the file, and why. `Io`.
pub fn survey(fs: &dyn Fs, path: &Path, family: Taker<'_>, level: FormatLevel) -> Result<()> {
    let file = fs.open_read(path)?;
    let size = file.len();
    let survey = TableSurvey::read(file, size, reader_options(&family.options.order))?;
    check_external(&survey.properties).map_err(|e| e.at_path(path))?;
    check_family(&survey.properties, family).map_err(|e| e.at_path(path))?;
    let most = level.max_table_version();
    if survey.version > most {
        let (version, name) = (survey.version, family.name);
        let e = Error::invalid(format!(
            "the file has table format {version}, and the database is at format level {level}, which has {most} at most: \
             the oldest RocksDB that must read family {name:?} could not"
        ));
        return Err(e
            .at_path(path)
            .hint(format!("Write the file with format_version={most}, or raise the format level")));
    }
    Ok(())
}

fn reader_options(order: &Order) -> ReaderOptions {
    ReaderOptions::new(order.clone(), FramePool::new(POOL_BYTES), FileNumber(0))
}

/// Whether the file was written to be ingested, and was not ingested with a number written into it.
fn check_external(said: &Properties) -> Result<()> {
    match (said.external_version, said.global_seqno) {
        (None, _) => {
            let e = Error::not_supported(
                "the file was not written to be ingested: its properties lack external_sst_file.version",
            );
            return Err(e.hint("Write files with an SstWriter, or RocksDB's SstFileWriter; tables of a database have other sequence numbers"));
        }
        (Some(VERSION), Some(0)) => {}
        (Some(VERSION), None) => {
            return Err(Error::corruption("the properties lack external_sst_file.global_seqno"));
        }
        (Some(VERSION), Some(seq)) => {
            let e = Error::invalid(format!(
                "the file was ingested before: sequence number {seq} is written into it"
            ));
            return Err(e.hint("Ingest the original file, or write it again"));
        }
        (Some(version), _) => {
            return Err(Error::not_supported(format!(
                "external SST files of version {version}; {VERSION} is served"
            )));
        }
    }
    if said.key_largest_seqno.is_some_and(|seq| seq != 0) {
        return Err(Error::corruption("entries of an external file have sequence numbers of their own"));
    }
    if said.embedded_blob_stats.is_some() {
        return Err(Error::not_supported("the ingestion of files with embedded blobs"));
    }
    if said.num_entries == Some(0) {
        return Err(Error::invalid("the file has no entry"));
    }
    Ok(())
}

/// Whether the family takes the file.
fn check_family(said: &Properties, family: Taker<'_>) -> Result<()> {
    let (options, name) = (family.options, family.name);
    if let Some(id) = said.known_family().filter(|id| *id != u64::from(family.id.0)) {
        let of = said.column_family_name.as_deref().unwrap_or_default();
        let e = Error::invalid(format!(
            "the file was written for column family {of:?} with id {id}, not for {name:?} with id {}",
            family.id.0
        ));
        return Err(e.hint("Ingest it into that family, or write it for no particular one"));
    }
    // A missing name would hide another order.
    if said.comparator.is_none() {
        return Err(Error::invalid(format!(
            "the properties name no comparator; the family has {}",
            options.order.name()
        )));
    }
    if options.value_ttl_secs.is_some() {
        return Err(Error::not_supported(format!(
            "ingestion into column family {name:?}, whose values expire"
        ))
        .hint("Write the entries: values in a file have no write times"));
    }
    if options.order.timestamp_len() > 0 {
        return Err(Error::not_supported("ingestion into a family whose keys have timestamps"));
    }
    if said.num_merge_operands.is_some_and(|n| n > 0) && options.merge_operator.is_none() {
        let e =
            Error::invalid(format!("the file has merges, and column family {name:?} has no merge operator"));
        return Err(e.hint("Open the family with the merge operator that the operands are for"));
    }
    Ok(())
}

/// What an inspection reads, and takes.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// Every block is read.
    pub verified: bool,
    /// The format level has wide-column entities.
    pub entities: bool,
}

/// Reads the file: its bounds, and every block if `takes` says so.
///
/// # Errors
/// As [`survey`].
pub fn inspect(fs: &dyn Fs, path: &Path, family: Taker<'_>, takes: Takes) -> Result<Inspected> {
    let file = fs.open_read(path)?;
    let size = file.len();
    let options = family.options;
    let order = &options.order;
    let table = TableReader::open(file, size, reader_options(order))?;
    let said = table.properties();
    // Again: this may be another file than the one that was surveyed.
    check_external(said)?;
    check_family(said, family)?;
    let merges = options.merge_operator.is_some();
    let check = |key: InternalKey<'_>| check_entry(key, merges, takes.entities);
    if takes.verified {
        verify_entries(&table, &check)?;
    }
    let deleted = table.range_tombstones().fragments().any(|tombstone| tombstone.seqs() != [SeqNum::ZERO]);
    if deleted {
        let what = "a range deletion of an external file has a sequence number of its own";
        return Err(Error::corruption(what));
    }
    let bounds = table.bounds(&check)?.ok_or_else(|| Error::invalid("the file has no entry"))?;
    let (smallest, largest) = &bounds;
    let span = Span {
        smallest: smallest.as_key().user_key().to_vec(),
        largest: largest.as_key().user_key().to_vec(),
        exclusive: largest.as_key().trailer() == Trailer::RANGE_END,
    };
    let tail = said.tail_start_offset.and_then(|start| size.checked_sub(start));
    Ok(Inspected {
        span,
        entries: said.num_entries.unwrap_or(0),
        counts: TableCounts::of(said),
        unique_id: unique_id_of(said),
        size,
        tail_size: tail.unwrap_or(0),
        bounds,
    })
}

fn unique_id_of(said: &Properties) -> Option<[u8; 16]> {
    let (db, session) = (said.db_id.as_deref()?, said.db_session_id.as_deref()?);
    Some(unique_id_bytes(db, session, said.original_file_number?))
}

/// Reads every block, and checks the type and the sequence number of each entry.
fn verify_entries(table: &TableReader, check: &dyn Fn(InternalKey<'_>) -> Result<()>) -> Result<()> {
    let mut refused = None;
    table.verify_each(&mut |key, _| {
        if refused.is_none() {
            refused = check(key).err();
        }
    })?;
    refused.map_or(Ok(()), Err)
}

fn check_entry(key: InternalKey<'_>, merges: bool, entities: bool) -> Result<()> {
    let (user_key, trailer) = key.split();
    let key = || user_key.escape_ascii();
    if trailer.seq() != SeqNum::ZERO {
        let what = format!("key {} has sequence number {} in a file to ingest", key(), trailer.seq());
        return Err(Error::corruption(what));
    }
    match trailer.value_type() {
        Some(ValueType::Put | ValueType::Delete | ValueType::SingleDelete) => Ok(()),
        Some(ValueType::Entity) if entities => Ok(()),
        Some(ValueType::Entity) => {
            let e =
                Error::invalid(format!("key {} is an entity, above the format level of the database", key()));
            Err(e.hint("Raise the format level to rocksdb-7.8, or write plain values"))
        }
        Some(ValueType::Merge) if merges => Ok(()),
        Some(ValueType::Merge) => {
            Err(Error::invalid(format!("key {} is a merge, and the family has no merge operator", key())))
        }
        kind => {
            let what = format!("the ingestion of entries of type {kind:?}, as key {}", key());
            Err(Error::not_supported(what))
        }
    }
}
