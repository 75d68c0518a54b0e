//! Implements the benchmark's traits for AshlarDB.

mod transactions;

use crate::flags::Flags;
use crate::say;
use crate::store::{Engine, Store, Transaction, Walk, WriteHow, Writer};
use ashlar_base::checksum::xxh3_64;
use ashlar_base::stats::{Statistics, StatsLevel};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_blob::BlobOptions;
use ashlar_env::{EntryKind, Env, Fs};
use ashlar_format::filename::{FileKind, parse_current};
use ashlar_format::filter::FilterPolicy;
use ashlar_options::{LoadedOptions, family_notices, read_options_file};
use ashlar_table::TableOptions;
use ashlardb::{
    Builder, Compression, Cursor, Db, Family, FormatLevel, Level, MergeOperator, PrefixExtractor, Read as _,
    SizeOptions, View, Write as _, WriteBatch, standard_operator,
};
use std::path::Path;
use std::sync::Arc;
use transactions::{Kind, write_options};

/// AshlarDB in this process.
#[derive(Clone, Debug)]
pub struct Ashlar {
    env: Env,
}

impl Ashlar {
    /// Creates the engine on the files, clock and threads of `env`.
    pub fn new(env: Env) -> Self {
        Ashlar { env }
    }
}

impl Engine for Ashlar {
    fn describe(&self) -> (String, String) {
        ("AshlarDB".to_owned(), env!("CARGO_PKG_VERSION").to_owned())
    }

    fn open(&self, dir: &Path, flags: &Flags, create: bool) -> Result<Box<dyn Store>> {
        // As in db_bench, settings without a flag have their defaults, whatever the directory has stored.
        let mut builder = Db::builder(dir).env(self.env.clone()).fresh_options();
        if let Some(path) = &flags.options_file {
            builder = stored(builder, &self.env, Path::new(path))?;
        }
        builder = settings(builder, flags)?.create(create && !flags.readonly);
        for number in 1..flags.num_column_families {
            builder = builder.family(&family_name(number), |family| family);
        }
        let db = builder.read_only(flags.readonly).open()?;
        let levels = db.default_family().options().compaction.num_levels;
        let last_level = u8::try_from(levels.saturating_sub(1)).unwrap_or(u8::MAX);
        Ok(Box::new(Opened::new(db, flags, last_level)?))
    }

    /// Removes only files of a database, and only if `CURRENT` names an existing MANIFEST. Another `CURRENT` belongs to
    /// another program and is an error.
    fn destroy(&self, dir: &Path, flags: &Flags) -> Result<()> {
        let fs = &self.env.fs;
        let current = dir.join(FileKind::Current.name());
        if fs.metadata(&current)?.is_none() {
            return Ok(());
        }
        let fs = fs.hold(dir)?;
        let kept = |kind| matches!(kind, FileKind::Lock | FileKind::Current);
        let files = fs.list(dir)?.into_iter().filter(|f| f.kind == EntryKind::File);
        let mut ours: Vec<_> =
            files.filter(|f| FileKind::parse_exact(&f.name).is_some_and(|kind| !kept(kind))).collect();
        let manifest = named_by(&*fs, &current)?.map(|manifest| FileKind::Manifest(manifest).name());
        // An interrupted removal leaves only CURRENT.
        if manifest.as_ref().is_none_or(|name| !ours.is_empty() && ours.iter().all(|f| f.name != *name)) {
            let e = Error::invalid("not a database: its CURRENT names no existing MANIFEST").at_path(dir);
            return Err(e.hint("Give --db another directory, or move these files away"));
        }
        let _lock = fs.lock(&dir.join(FileKind::Lock.name()))?;
        remove_logs(&self.env, dir, &flags.wal_dir)?;
        // The MANIFEST and CURRENT go last: until then a second attempt finds a database to remove.
        ours.sort_by_key(|f| manifest.as_ref() == Some(&f.name));
        for file in ours {
            fs.remove(&dir.join(file.name))?;
        }
        fs.remove(&dir.join(FileKind::Current.name()))?;
        fs.sync_dir(dir)
    }
}

/// Removes the WAL files of the database in `dir` from `wal_dir`. No other database may use `wal_dir` at the same time.
fn remove_logs(env: &Env, dir: &Path, wal_dir: &str) -> Result<()> {
    let wal_dir = Path::new(wal_dir);
    if wal_dir.as_os_str().is_empty() || wal_dir == dir || env.fs.metadata(wal_dir)?.is_none() {
        return Ok(());
    }
    let fs = env.fs.hold(wal_dir)?;
    if fs.metadata(&wal_dir.join(FileKind::Current.name()))?.is_some() {
        let e = Error::invalid("--wal_dir is the directory of another database").at_path(wal_dir);
        return Err(e.hint("Give --wal_dir a directory of its own"));
    }
    let _lock = fs.lock(&wal_dir.join(FileKind::Lock.name()))?;
    let is_log = |name: &str| matches!(FileKind::parse_exact(name), Some(FileKind::Wal(_)));
    for log in fs.files(wal_dir)?.into_iter().filter(|file| is_log(&file.name)) {
        fs.remove(&wal_dir.join(log.name))?;
    }
    fs.sync_dir(wal_dir)
}

/// The MANIFEST that a `CURRENT` file names. `None`: the file names no MANIFEST.
fn named_by(fs: &dyn Fs, current: &Path) -> Result<Option<FileNumber>> {
    let file = fs.open_read(current)?;
    let mut content = vec![0; usize::try_from(file.len().min(100)).unwrap_or_default()];
    file.read_exact_at(&mut content, 0)?;
    Ok(parse_current(&content).ok())
}

/// db_bench's name of a family. The first family is `default`.
fn family_name(number: u64) -> String {
    format!("column_family_name_{number:06}")
}

/// The builder with the settings of an OPTIONS file for the database and the family `default`.
fn stored(builder: Builder, env: &Env, path: &Path) -> Result<Builder> {
    let file = read_options_file(&*env.fs, path)?;
    let loaded = LoadedOptions::from_file(path.to_path_buf(), &file, FormatLevel::default());
    let families = loaded.families.iter().map(|(name, options)| (&**name, options));
    let of_families = family_notices(families, loaded.db.format_level, &loaded.release);
    loaded
        .notices
        .iter()
        .chain(&of_families)
        .for_each(|notice| say::line(&format!("WARNING: {}: {notice}", path.display())));
    Ok(builder.tune(move |db, family| {
        db.clone_from(&loaded.db);
        if let Some((_, default)) = loaded.families.first() {
            family.clone_from(default);
            family.only_if_there = false;
        }
    }))
}

/// The builder with the settings of the flags.
fn settings(mut builder: Builder, flags: &Flags) -> Result<Builder> {
    let blob_compression = compression(&flags.blob_compression_type)?;
    let codec = compression(&flags.compression_type)?;
    let wal_compression = compression(&flags.wal_compression)?;
    let operator = operator(&flags.merge_operator)?;
    let statistics = if flags.statistics { Some(statistics(flags.stats_level)?) } else { None };
    let mut format_version = flags.format_version;
    if !flags.level.is_empty() {
        let level = flags.level.parse::<FormatLevel>()?;
        builder = builder.format_level(level);
        format_version.get_or_insert(level.max_table_version());
    }
    let size = |n: Option<u64>| n.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    // Only flags on the command line replace settings of the OPTIONS file.
    let stored = flags.options_file.is_some();
    let (text, flags) = (options(flags), flags.clone());
    Ok(builder.options(&text).tune(move |db, family| {
        let flags = &flags;
        let (table, tree) = (&mut family.table, &mut family.compaction);
        if !stored || flags.compression_type != Flags::default().compression_type {
            compress(table, flags, codec);
        }
        if flags.prefix_size > 0 {
            table.prefix_extractor = usize::try_from(flags.prefix_size).ok().map(PrefixExtractor::Fixed);
        }
        if flags.bloom_bits >= 0.0 {
            table.filter = (flags.bloom_bits > 0.0).then(|| filter(flags));
        }
        set(&mut table.block_size, size(flags.block_size));
        set(&mut table.block_restart_interval, size(flags.block_restart_interval));
        set(&mut table.format_version, format_version);
        set(&mut tree.num_levels, size(flags.num_levels));
        set(&mut tree.target_file_bytes, flags.target_file_size_base);
        set(&mut tree.base_level_bytes, flags.max_bytes_for_level_base);
        set(&mut tree.level_multiplier, flags.max_bytes_for_level_multiplier);
        set(&mut tree.l0_trigger, size(flags.level0_file_num_compaction_trigger));
        set(&mut tree.l0_slowdown, size(flags.level0_slowdown_writes_trigger));
        set(&mut tree.l0_stop, size(flags.level0_stop_writes_trigger));
        set(&mut tree.soft_debt_bytes, flags.soft_pending_compaction_bytes_limit);
        set(&mut tree.hard_debt_bytes, flags.hard_pending_compaction_bytes_limit);
        tree.automatic &= !flags.disable_auto_compactions;
        set(&mut family.write_buffer_bytes, size(flags.write_buffer_size));
        set(&mut family.max_write_buffers, size(flags.max_write_buffer_number));
        if !flags.wal_dir.is_empty() {
            db.wal_dir.clone_from(&flags.wal_dir);
        }
        set(&mut db.block_cache_bytes, flags.cache_size);
        set(&mut db.max_open_files, flags.open_files);
        db.statistics = statistics.clone().or(db.statistics.take());
        db.manual_wal_flush |= flags.manual_wal_flush;
        db.mapped_wal &= flags.mapped_wal;
        if !stored || wal_compression != Compression::None {
            db.wal_compression = wal_compression;
        }
        set(&mut db.max_background_jobs, size(flags.max_background_jobs));
        set(&mut db.max_subcompactions, size(flags.subcompactions));
        if !stored || flags.enable_blob_files {
            blobs(&mut family.blob, flags, blob_compression);
        }
        set(&mut family.merge_operator, operator.clone().map(Some));
    }))
}

fn compress(table: &mut TableOptions, flags: &Flags, codec: Compression) {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    table.compression = codec;
    table.compression_level = flags.compression_level;
    table.max_dict_bytes = size(flags.compression_max_dict_bytes);
    table.zstd_max_train_bytes = size(flags.compression_zstd_max_train_bytes);
    if let Ok(plain @ 1..) = usize::try_from(flags.min_level_to_compress) {
        table.compression_per_level = vec![Compression::None; plain.min(64)];
        table.compression_per_level.push(codec);
    }
}

fn filter(flags: &Flags) -> FilterPolicy {
    let bits_per_key = flags.bloom_bits;
    match flags.use_ribbon_filter {
        true => FilterPolicy::Ribbon { bloom_bits_per_key: bits_per_key, bloom_before_level: 0 },
        false => FilterPolicy::Bloom { bits_per_key },
    }
}

/// The checksums of blocks by db_bench's numbers.
const CHECKSUMS: [&str; 5] = ["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];

/// The flags that are options, as an option string.
fn options(flags: &Flags) -> String {
    let mut options = flags.options.clone();
    if flags.partition_index || flags.partition_index_and_filters {
        options.push_str(";block_based_table_factory.index_type=kTwoLevelIndexSearch");
    }
    if let Some(kind) = flags.checksum_type.and_then(|kind| CHECKSUMS.get(usize::try_from(kind).ok()?)) {
        options.push_str(&format!(";block_based_table_factory.checksum={kind}"));
    }
    if flags.partition_index_and_filters {
        options.push_str(";block_based_table_factory.partition_filters=true");
    }
    options
}

fn blobs(blob: &mut BlobOptions, flags: &Flags, compression: Compression) {
    blob.enabled = flags.enable_blob_files;
    blob.compression = compression;
    blob.collect_garbage = flags.enable_blob_garbage_collection;
    set(&mut blob.min_blob_bytes, flags.min_blob_size);
    set(&mut blob.file_bytes, flags.blob_file_size);
    set(&mut blob.age_cutoff, flags.blob_garbage_collection_age_cutoff);
    set(&mut blob.force_threshold, flags.blob_garbage_collection_force_threshold);
}

fn operator(id: &str) -> Result<Option<Arc<dyn MergeOperator>>> {
    if id.is_empty() {
        return Ok(None);
    }
    let unknown = || {
        Error::invalid(format!("unknown merge_operator {id:?}")).hint(
            "The operators are put, uint64add, max, stringappend, stringappendtest, bytesxor and sortlist",
        )
    };
    standard_operator(id).map(Some).ok_or_else(unknown)
}

fn statistics(level: u64) -> Result<Arc<Statistics>> {
    let known = u8::try_from(level).ok().and_then(StatsLevel::from_number);
    let unknown = || Error::invalid(format!("stats_level {level}: the levels are 0 to 5"));
    known.map(|level| Arc::new(Statistics::at_level(level))).ok_or_else(unknown)
}

fn set<T>(to: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *to = value;
    }
}

/// The codec of db_bench's name.
///
/// # Errors
/// `InvalidArgument`: no codec has this name. `NotSupported`: AshlarDB does not write with this codec.
pub(crate) fn compression(name: &str) -> Result<Compression> {
    match name.to_ascii_lowercase().as_str() {
        "none" | "no" => Ok(Compression::None),
        "snappy" => Ok(Compression::Snappy),
        "zlib" => Ok(Compression::Zlib),
        "lz4" => Ok(Compression::Lz4),
        "zstd" => Ok(Compression::Zstd),
        "bzip2" | "lz4hc" | "xpress" => {
            Err(Error::not_supported(format!("writing with compression_type {name}")))
        }
        _ => Err(Error::invalid(format!("unknown compression_type {name:?}"))
            .hint("The types are none, snappy, zlib, lz4 and zstd")),
    }
}

struct Opened {
    db: Db,
    /// The families over which keys are spread, if there are several.
    families: Vec<Family>,
    /// The deepest level of the tree.
    last_level: u8,
    transactions: Kind,
}

impl Opened {
    fn new(db: Db, flags: &Flags, last_level: u8) -> Result<Opened> {
        let families = flags.num_column_families;
        let default = (families > 1).then(|| Ok(db.default_family()));
        let others = (1..families).map(|number| db.family(&family_name(number)));
        let families = default.into_iter().chain(others).collect::<Result<_>>()?;
        Ok(Opened { db, families, last_level, transactions: Kind::of(flags) })
    }
}

/// The family of a key. `None`: there is only one family.
fn family_of<'f>(families: &'f [Family], key: &[u8]) -> Option<&'f Family> {
    if families.is_empty() {
        return None;
    }
    let place = xxh3_64(key) % families.len() as u64;
    families.get(usize::try_from(place).ok()?)
}

impl Store for Opened {
    fn writer(&self, how: WriteHow) -> Box<dyn Writer + '_> {
        Box::new(Batch {
            db: self.db.writing(write_options(how)),
            families: &self.families,
            batch: WriteBatch::new(),
            refused: None,
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<usize>> {
        let found = match family_of(&self.families, key) {
            Some(family) => family.get(key),
            None => self.db.get(key),
        };
        Ok(found?.map(|view| view.len()))
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<(u64, u64)> {
        let add = |(found, bytes), value: &View| (found + 1, bytes + value.len() as u64);
        if self.families.is_empty() {
            return Ok(self.db.multi_get(keys)?.iter().flatten().fold((0, 0), add));
        }
        let mut sum = (0, 0);
        for family in &self.families {
            let here = |key: &&Vec<u8>| family_of(&self.families, key).is_some_and(|f| f.id() == family.id());
            let values = family.multi_get(keys.iter().filter(here))?;
            sum = values.iter().flatten().fold(sum, add);
        }
        Ok(sum)
    }

    fn cursor(&self) -> Result<Box<dyn Walk + '_>> {
        Ok(Box::new(self.db.scan(..).cursor()?))
    }

    fn cursor_within(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Box<dyn Walk + '_>> {
        let scan = match (lower, upper) {
            (Some(lower), Some(upper)) => self.db.scan(lower..upper),
            (Some(lower), None) => self.db.scan(lower..),
            (None, Some(upper)) => self.db.scan(..upper),
            (None, None) => self.db.scan(..),
        };
        Ok(Box::new(scan.cursor()?))
    }

    fn flush(&self) -> Result<()> {
        self.db.flush()
    }

    fn compact(&self) -> Result<()> {
        self.db.compact()
    }

    fn compact_level(&self, level: u8) -> Result<()> {
        let family = self.db.default_family();
        let files = family.live_files()?;
        let here: Vec<_> = files.iter().filter(|f| f.level.0 == level).map(|f| f.number).collect();
        // Level 0 goes to the first level that has tables, or to the last.
        let below = files.iter().map(|f| f.level.0).filter(|l| *l > level).min();
        let last = self.last_level;
        let output = if level == 0 { below.unwrap_or(last) } else { (level + 1).min(last) };
        if here.is_empty() { Ok(()) } else { family.compact_files(&here, Level(output)) }
    }

    fn verify(&self) -> Result<()> {
        self.db.verify_checksums(|_| ()).map(drop)
    }

    fn verify_files(&self) -> Result<()> {
        self.db.verify_file_checksums(|_| ()).map(drop)
    }

    fn approximate_size(&self, lower: &[u8], upper: &[u8]) -> Result<u64> {
        let files = SizeOptions::new();
        let sizes = self.db.default_family().approximate_sizes(&[(lower, upper)], files)?;
        Ok(sizes.first().copied().unwrap_or(0))
    }

    fn has_transactions(&self) -> bool {
        !matches!(self.transactions, Kind::Plain)
    }

    fn transaction(&self, how: WriteHow) -> Result<Box<dyn Transaction + '_>> {
        self.transactions.begin(&self.db, how)
    }

    fn wait_for_background(&self) -> Result<()> {
        self.db.wait_for_background()
    }

    fn property(&self, name: &str) -> Option<String> {
        self.db.property(&format!("rocksdb.{name}"))
    }

    fn reset_statistics(&self) -> Result<()> {
        self.db.statistics().reset();
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.db.close()
    }
}

struct Batch<'a> {
    db: ashlardb::Writer<'a>,
    families: &'a [Family],
    batch: WriteBatch,
    /// Why an operation could not be added.
    refused: Option<Error>,
}

impl Batch<'_> {
    fn note(&mut self, added: Result<()>) {
        if let Err(e) = added {
            self.refused.get_or_insert(e);
        }
    }
}

impl Writer for Batch<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        let added = match family_of(self.families, key) {
            Some(family) => self.batch.family(family).put(key, value),
            None => self.batch.put(key, value),
        };
        self.note(added);
    }

    fn merge(&mut self, key: &[u8], operand: &[u8]) {
        let added = match family_of(self.families, key) {
            Some(family) => self.batch.family(family).merge(key, operand),
            None => self.batch.merge(key, operand),
        };
        self.note(added);
    }

    fn delete(&mut self, key: &[u8]) {
        let added = match family_of(self.families, key) {
            Some(family) => self.batch.family(family).delete(key),
            None => self.batch.delete(key),
        };
        self.note(added);
    }

    fn delete_range(&mut self, begin: &[u8], end: &[u8]) {
        let added = match family_of(self.families, begin) {
            Some(family) => self.batch.family(family).delete_range(begin, end),
            None => self.batch.delete_range(begin, end),
        };
        self.note(added);
    }

    fn commit(&mut self) -> Result<()> {
        let written = match self.refused.take() {
            None => self.db.write(&self.batch),
            Some(refused) => Err(refused),
        };
        self.batch.clear();
        written
    }
}

impl Walk for Cursor {
    fn first(&mut self) -> Result<()> {
        Cursor::first(self).map(drop)
    }

    fn last(&mut self) -> Result<()> {
        Cursor::last(self).map(drop)
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        Cursor::seek(self, key).map(drop)
    }

    fn next(&mut self) -> Result<()> {
        Cursor::next(self).map(drop)
    }

    fn prev(&mut self) -> Result<()> {
        Cursor::prev(self).map(drop)
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        Cursor::entry(self)
    }
}

#[cfg(test)]
mod tests;
