//! What a program asks about the files of a database.

use crate::classes::{Class, Method, array_of_texts, hash_map};
use crate::db::{DbObject, FamilyObject};
use crate::door::{Fail, Result, array_of};
use crate::env::{Env, Local, boolean, byte, int, long, object};
use crate::upkeep::pairs;
use ashlardb::{Family, LiveFile, StorageFile, StorageKind, StoredProperties, TableProperties};
use jni_sys::jvalue;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A number for Java.
fn number(value: u64) -> jvalue {
    long(value.cast_signed())
}

/// A new object by a constructor of newer jars, which takes the checksum of the file too, or by that of older ones.
fn either<'a>(
    env: Env<'a>,
    class: &'static Class,
    newer: &Method,
    older: &Method,
    arguments: &[jvalue],
    more: jvalue,
) -> Result<Local<'a>> {
    match newer.of(env, class) {
        Ok(_) => class.make(env, newer, &[arguments, &[more]].concat()),
        Err(Fail::Thrown) => {
            let _ = env.take_exception();
            class.make(env, older, arguments)
        }
        Err(e) => Err(e),
    }
}

/// The arguments that describe a table: its name and directory, its size, numbers, keys and entries.
fn table(env: Env<'_>, file: &LiveFile) -> Result<Vec<jvalue>> {
    let (smallest, largest) = (env.new_bytes(&file.smallest)?, env.new_bytes(&file.largest)?);
    Ok(vec![
        object(env.new_text(&format!("/{}", file.name()))?),
        object(env.new_text(&file.dir.to_string_lossy())?),
        number(file.bytes),
        number(file.sequences.0.get()),
        number(file.sequences.1.get()),
        object(smallest),
        object(largest),
        long(0),
        boolean(false),
        number(file.entries.unwrap_or(0)),
        number(file.deletions.unwrap_or(0)),
    ])
}

/// The checksums of tables over the whole file, by the name of the file; none if the options of the open ask for none.
fn checksums(db: &DbObject) -> Result<BTreeMap<String, Vec<u8>>> {
    if !db.database.has_file_checksums() {
        return Ok(BTreeMap::new());
    }
    let files = db.database.db().live_files()?;
    let known = files.iter().filter_map(|file| Some((file.name.clone(), file.checksum.clone()?.1)));
    Ok(known.collect())
}

// Each function below is the body of the natives that the description names.

/// A `ColumnFamilyMetaData`: the live tables of a family by level.
///
/// # Errors
/// Those of [`Family::live_files`].
pub fn family_metadata<'a>(env: Env<'a>, db: &DbObject, family: Option<&FamilyObject>) -> Result<Local<'a>> {
    static FILE: Class = Class::new("org/rocksdb/SstFileMetaData");
    static NEWER: Method = Method::constructor("(Ljava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ[B)V");
    static OLDER: Method = Method::constructor("(Ljava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ)V");
    static LEVEL: Class = Class::new("org/rocksdb/LevelMetaData");
    static NEW_LEVEL: Method = Method::constructor("(IJ[Lorg/rocksdb/SstFileMetaData;)V");
    static METADATA: Class = Class::new("org/rocksdb/ColumnFamilyMetaData");
    static NEW: Method = Method::constructor("(JJ[B[Lorg/rocksdb/LevelMetaData;)V");
    let family = db.family(family)?;
    let (files, checksums) = (family.live_files()?, checksums(db)?);
    let levels: Vec<u8> = (0..u8::try_from(family.shape().levels.len()).unwrap_or(u8::MAX)).collect();
    let level = |at: &u8| {
        let of: Vec<&LiveFile> = files.iter().filter(|file| file.level.0 == *at).collect();
        let bytes = of.iter().map(|file| file.bytes).sum();
        let tables = array_of(env, FILE.get(env)?, &of, |file| {
            let checksum = checksums.get(&file.name()).map_or(&[][..], Vec::as_slice);
            let checksum = object(env.new_bytes(checksum)?);
            either(env, &FILE, &NEWER, &OLDER, &table(env, file)?, checksum)
        })?;
        LEVEL.make(env, &NEW_LEVEL, &[int(i32::from(*at)), number(bytes), object(tables)])
    };
    let levels = array_of(env, LEVEL.get(env)?, &levels, level)?;
    let bytes = files.iter().map(|file| file.bytes).sum();
    let name = env.new_bytes(family.name().as_bytes())?;
    let count = number(files.len() as u64);
    METADATA.make(env, &NEW, &[number(bytes), count, object(name), object(levels)])
}

/// The live tables of all families, as an array of `LiveFileMetaData`.
///
/// # Errors
/// Those of [`Family::live_files`].
pub fn live_tables<'a>(env: Env<'a>, db: &DbObject) -> Result<Local<'a>> {
    static FILE: Class = Class::new("org/rocksdb/LiveFileMetaData");
    static NEWER: Method = Method::constructor("([BILjava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ[B)V");
    static OLDER: Method = Method::constructor("([BILjava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ)V");
    let checksums = checksums(db)?;
    let mut all: Vec<(String, LiveFile)> = Vec::new();
    for family in db.database.db().families() {
        all.extend(family.live_files()?.into_iter().map(|file| (family.name().to_owned(), file)));
    }
    array_of(env, FILE.get(env)?, &all, |(name, file)| {
        let name = env.new_bytes(name.as_bytes())?;
        let mut arguments = vec![object(name), int(file.level.0.into())];
        arguments.extend(table(env, file)?);
        let checksum = checksums.get(&file.name()).map_or(&[][..], Vec::as_slice);
        let checksum = object(env.new_bytes(checksum)?);
        either(env, &FILE, &NEWER, &OLDER, &arguments, checksum)
    })
}

/// The names of the live files but the WAL, relative to the directory, and last the size of the MANIFEST as text.
///
/// # Errors
/// Those of [`ashlardb::Db::live_files`] and of a flush.
pub fn live_files<'a>(env: Env<'a>, db: &DbObject, flush: bool) -> Result<Local<'a>> {
    let own = db.database.db();
    if flush {
        own.flush()?;
    }
    let files = own.live_files()?;
    let kept = || files.iter().filter(|file| file.kind != StorageKind::Wal);
    // In RocksDB's order.
    let rank = |file: &&StorageFile| match file.kind {
        StorageKind::Table => 0,
        StorageKind::Blob => 1,
        StorageKind::Current => 2,
        StorageKind::Manifest => 3,
        _ => 4,
    };
    let mut sorted: Vec<&StorageFile> = kept().collect();
    sorted.sort_by_key(rank);
    let mut names: Vec<String> = sorted.iter().map(|file| format!("/{}", file.name)).collect();
    let manifest = kept().find(|file| file.kind == StorageKind::Manifest).map_or(0, |file| file.bytes);
    names.push(manifest.to_string());
    array_of_texts(env, &names)
}

/// The WAL files, as a list of `LogFile`.
///
/// # Errors
/// Those of [`ashlardb::Db::wal_files`].
pub fn wal_files<'a>(env: Env<'a>, db: &DbObject) -> Result<Local<'a>> {
    static FILE: Class = Class::new("org/rocksdb/LogFile");
    static NEW: Method = Method::constructor("(Ljava/lang/String;JBJJ)V");
    // As in RocksDB, those that have writes.
    let mut files = db.database.db().wal_files()?;
    files.retain(|file| file.first.is_some());
    array_of(env, FILE.get(env)?, &files, |file| {
        let place = if file.archived { "/archive" } else { "" };
        let name = env.new_text(&format!("{place}/{:06}.log", file.number.0))?;
        // Java's numbers: archived 0, alive 1.
        let kind = byte(i8::from(!file.archived));
        let first = file.first.map_or(0, ashlardb::SeqNum::get);
        FILE.make(env, &NEW, &[object(name), number(file.number.0), kind, number(first), number(file.bytes)])
    })
}

/// A `Map` from tables to their `TableProperties`.
fn properties<'a>(env: Env<'a>, family: &Family, tables: &[TableProperties]) -> Result<Local<'a>> {
    let paths = family.paths_of_tables()?;
    // A table that a compaction has replaced meanwhile has no path.
    let named = tables.iter().filter_map(|table| Some((paths.get(&table.number)?, table)));
    let entry = |(path, table): (&PathBuf, &TableProperties)| {
        let path = env.new_text(&path.to_string_lossy())?;
        Ok((path, table_properties(env, family.name(), &table.stored)?))
    };
    hash_map(env, named.map(entry))
}

/// The properties of all tables of a family.
///
/// # Errors
/// Those of [`Family::properties_of_all_tables`].
pub fn properties_of_all<'a>(
    env: Env<'a>,
    db: &DbObject,
    family: Option<&FamilyObject>,
) -> Result<Local<'a>> {
    let family = db.family(family)?;
    properties(env, &family, &family.properties_of_all_tables()?)
}

/// The properties of the tables of a family that have keys of ranges.
///
/// # Errors
/// Those of [`Family::properties_of_tables_in_range`].
pub fn properties_in_range<'a>(
    env: Env<'a>,
    db: &DbObject,
    family: Option<&FamilyObject>,
    slices: &[i64],
) -> Result<Local<'a>> {
    let family = db.family(family)?;
    let mut found: Vec<TableProperties> = Vec::new();
    for (from, to) in pairs(slices)? {
        for table in family.properties_of_tables_in_range(from..to)? {
            if !found.iter().any(|known| known.number == table.number) {
                found.push(table);
            }
        }
    }
    properties(env, &family, &found)
}

/// A `TableProperties`.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn table_properties<'a>(env: Env<'a>, family: &str, stored: &StoredProperties) -> Result<Local<'a>> {
    static TABLE: Class = Class::new("org/rocksdb/TableProperties");
    static NEW: Method = Method::constructor(
        "(JJJJJJJJJJJJJJJJJJJJJJ[BLjava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;\
         Ljava/lang/String;Ljava/lang/String;Ljava/util/Map;Ljava/util/Map;)V",
    );
    let numbers = [
        stored.data_size,
        stored.index_size,
        stored.index_partitions,
        stored.top_level_index_size,
        stored.index_key_is_user_key,
        stored.index_value_is_delta_encoded,
        stored.filter_size,
        stored.raw_key_size,
        stored.raw_value_size,
        stored.num_data_blocks,
        stored.num_entries,
        stored.num_deletions,
        stored.num_merge_operands,
        stored.num_range_deletions,
        stored.format_version,
        stored.fixed_key_len,
        stored.column_family_id,
        stored.creation_time,
        stored.oldest_key_time,
        stored.slow_compression_estimated_data_size,
        stored.fast_compression_estimated_data_size,
        None,
    ];
    let mut arguments: Vec<jvalue> = numbers.iter().map(|value| number(value.unwrap_or(0))).collect();
    arguments.push(object(env.new_bytes(family.as_bytes())?));
    for text in [
        &stored.filter_policy,
        &stored.comparator,
        &stored.merge_operator,
        &stored.prefix_extractor_name,
        &stored.property_collectors,
        &stored.compression,
    ] {
        arguments.push(object(env.new_text(text.as_deref().unwrap_or_default())?));
    }
    let collected = stored.collected_as_listed();
    let text = |bytes: &[u8]| env.new_text(&String::from_utf8_lossy(bytes));
    let user = hash_map(env, collected.iter().map(|(name, value)| Ok((text(name)?, text(value)?))))?;
    arguments.push(object(user));
    arguments.push(object(hash_map(env, [])?));
    TABLE.make(env, &NEW, &arguments)
}
