//! The upkeep of a database: flushes, compactions, properties, changes of options, the updates of its WAL.

use crate::batch::BatchObject;
use crate::classes::{Class, Method, array_of_texts, hash_map};
use crate::db::{DbObject, FamilyObject};
use crate::door::{Result, object, object_if};
use crate::env::{Env, Local, long};
use crate::handles::{self, Lent, Object};
use crate::listeners::JobObject;
use crate::settings::{CompactFilesObject, CompactObject, FlushObject, HasTexts, IngestObject};
use crate::slices::SliceObject;
use ashlar_compat::calls::{CompactOptions, closed_range};
use ashlar_compat::clip::clip_family;
use ashlar_compat::compactions::{compact_files as compact, file_number};
use ashlar_compat::files::{UpdatesIterator, ingest_options};
use ashlar_compat::listener::Tables;
use ashlar_compat::options::Texts;
use ashlar_compat::sizes::SIZE_DEFAULTS;
use ashlar_compat::status::{not_found, paused};
use ashlar_compat::stored::{database_text, family_text};
use ashlardb::{Error, Family, WriteBatch};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// `TransactionLogIterator`.
#[derive(Debug)]
pub struct UpdatesObject(Mutex<UpdatesIterator>);

impl Object for UpdatesObject {
    const NAME: &'static str = "TransactionLogIterator";
}

impl UpdatesObject {
    fn lock(&self) -> MutexGuard<'_, UpdatesIterator> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The families of handles; `None`: the family `default`.
fn families(db: &DbObject, handles: Option<&[i64]>) -> Result<Vec<Family>> {
    let Some(handles) = handles else { return Ok(vec![db.family(None)?.clone()]) };
    let family = |handle: &i64| {
        let object = object_if::<FamilyObject>(*handle)?;
        Ok(db.family(object.as_deref())?.clone())
    };
    handles.iter().map(family).collect()
}

// Each function below is the body of the natives that the description names.

/// Flushes families, and waits for it.
///
/// # Errors
/// Those of [`ashlar_compat::database::Database::flush`].
pub fn flush(db: &DbObject, _: &FlushObject, handles: Option<&[i64]>) -> Result<()> {
    Ok(db.database.flush(&families(db, handles)?)?)
}

/// Compacts a range of a family, which has its last key.
///
/// # Errors
/// Those of [`Family::compact_range`]. RocksDB's `Incomplete`: the request is cancelled, or requests are. RocksDB's
/// `ShutdownInProgress`: all background work was cancelled.
pub fn compact_range(
    db: &DbObject,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
    options: Option<&CompactObject>,
    family: Option<&FamilyObject>,
) -> Result<()> {
    db.database.check_requests()?;
    if options.is_some_and(|options| options.is_cancelled.load(Ordering::Acquire)) {
        return Err(paused().into());
    }
    let options = options.map_or_else(CompactOptions::default, |options| options.options.read().clone());
    Ok(db.family(family)?.compact_range(closed_range(begin, end), options.range()?)?)
}

/// An empty range: the engine compacts by itself where it pays. Java does not own the slices, so all calls have the same ones; nothing
/// that Java does to an empty slice changes it.
pub fn suggest_compact_range(db: &DbObject, family: Option<&FamilyObject>) -> Result<Vec<i64>> {
    static NOWHERE: OnceLock<[Lent; 2]> = OnceLock::new();
    db.family(family)?;
    if NOWHERE.get().is_none() {
        let [from, to] = [(); 2].map(|()| Lent::new(SliceObject::of(Vec::new())));
        // If another thread was first, these are closed.
        let _ = NOWHERE.set([from?, to?]);
    }
    Ok(NOWHERE.get().into_iter().flatten().map(Lent::handle).collect())
}

/// Tables of level 0 are not moved by hand.
///
/// # Errors
/// `NotSupported`.
pub fn promote(_: &DbObject, _: Option<&FamilyObject>, _: i32) -> Result<()> {
    Err(Error::not_supported("promoteL0").hint("Use compactRange").into())
}

/// Deletes the tables that lie in ranges. `ranges`: the first and the last key of each; null stands for the end of all keys.
///
/// # Errors
/// Those of [`Family::delete_files_in_ranges`]. `InvalidArgument`: an odd number of keys.
pub fn delete_files_in_ranges(
    db: &DbObject,
    family: Option<&FamilyObject>,
    ranges: &[Option<Vec<u8>>],
    inclusive: bool,
) -> Result<()> {
    if !ranges.len().is_multiple_of(2) {
        return Err(Error::invalid("a range without an end: an odd number of keys").into());
    }
    let ranges: Vec<_> = ranges
        .chunks_exact(2)
        .filter_map(|pair| {
            let [from, to] = pair else { return None };
            let end = if inclusive { Bound::Included } else { Bound::Excluded };
            let bound = |key: &Option<Vec<u8>>, bound: fn(Vec<u8>) -> Bound<Vec<u8>>| {
                key.clone().map_or(Bound::Unbounded, bound)
            };
            Some((bound(from, Bound::Included), bound(to, end)))
        })
        .collect();
    Ok(db.family(family)?.delete_files_in_ranges(&ranges).map(drop)?)
}

/// Compacts tables into a level. Answers the names of the outputs.
///
/// # Errors
/// Those of [`compact`]. RocksDB's `Incomplete`: requests for compactions are refused. RocksDB's `ShutdownInProgress`: all background
/// work was cancelled.
pub fn compact_files<'a>(
    env: Env<'a>,
    db: &DbObject,
    options: &CompactFilesObject,
    family: Option<&FamilyObject>,
    files: &[String],
    level: i32,
    job: Option<&JobObject>,
) -> Result<Local<'a>> {
    db.database.check_requests()?;
    let numbers: Vec<_> = files.iter().map(|name| file_number(Path::new(name))).collect();
    let family = db.family(family)?;
    let report = options.with(|texts| compact(&family, db.database.path(), &numbers, level, texts))?;
    if let Some(job) = job {
        job.fill(&report, Tables::new(Some(&db.database), family.name(), report.input_tables.clone()));
    }
    let names: Vec<String> = report.outputs.iter().map(|file| file.path.clone()).collect();
    array_of_texts(env, &names)
}

/// Switches compactions of families on.
///
/// # Errors
/// Those of [`Family::set_options`].
pub fn enable_auto_compaction(db: &DbObject, handles: Option<&[i64]>) -> Result<()> {
    let on = [("disable_auto_compactions", "false")];
    families(db, handles)?.iter().try_for_each(|family| Ok(family.set_options(&on).map(drop)?))
}

/// Stops compactions, and waits for running ones if `wait`.
pub fn cancel_all_background_work(db: &DbObject, wait: bool) -> Result<()> {
    db.database.cancel_background_work(wait);
    Ok(())
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $call:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// Those of the call of [`ashlardb::Db`].
        pub fn $name(db: &DbObject) -> Result<()> {
            Ok(db.database.db().$call()?)
        }
    )* };
}
calls! {
    /// Stops background work, and waits for it.
    pause_background_work = pause_background_work;
    /// Goes on with background work.
    continue_background_work = continue_background_work;
    /// Stops compactions.
    abort_all_compactions = abort_compactions;
    /// Goes on with compactions.
    resume_all_compactions = resume_compactions;
    /// Makes the WAL durable.
    sync_wal = sync;
}

/// Writes buffered records of the WAL.
///
/// # Errors
/// Those of [`ashlardb::Db::flush_wal`].
pub fn flush_wal(db: &DbObject, sync: bool) -> Result<()> {
    Ok(db.database.db().flush_wal(sync)?)
}

/// Compares the checksums of all blocks.
///
/// # Errors
/// `Corruption`: the first damage. `Io`.
pub fn verify_checksum(db: &DbObject) -> Result<()> {
    Ok(db.database.db().verify_checksums(|_| {}).map(drop)?)
}

/// Makes the newest writes of the other process visible.
///
/// # Errors
/// Those of [`ashlar_compat::database::Database::catch_up`].
pub fn catch_up(db: &DbObject) -> Result<()> {
    Ok(db.database.catch_up()?)
}

/// Keeps all files from now on. Calls add up.
///
/// # Errors
/// Those of [`ashlardb::Db::live_files`].
pub fn disable_file_deletions(db: &DbObject) -> Result<()> {
    Ok(db.database.hold_files()?)
}

/// Takes back one [`disable_file_deletions`].
pub fn enable_file_deletions(db: &DbObject) -> Result<()> {
    db.database.release_files();
    Ok(())
}

/// Takes back one [`disable_file_deletions`], or with `force` all of them.
pub fn enable_file_deletions_of(db: &DbObject, force: bool) -> Result<()> {
    if force {
        db.database.release_all_files()
    } else {
        db.database.release_files()
    }
    Ok(())
}

/// Files are not deleted by name.
///
/// # Errors
/// `NotSupported`.
pub fn delete_file(_: &DbObject, _: &str) -> Result<()> {
    Err(Error::not_supported("deleteFile, which RocksDB removed").hint("Use deleteFilesInRanges").into())
}

fn no_property(name: &str) -> Error {
    not_found(format!("there is no property {name}"))
}

/// The open objects of this library: a line with the count of each kind. An object that a program forgets to close stays in it.
const OPEN_OBJECTS: &str = "ashlardb.java-open-objects";

/// A property as text.
///
/// # Errors
/// `Io(NotFound)`: there is no such property.
pub fn property(db: &DbObject, family: Option<&FamilyObject>, name: &str) -> Result<String> {
    if name == OPEN_OBJECTS {
        let counts = handles::open_objects();
        return Ok(counts.iter().map(|(kind, count)| format!("{kind} {count}\n")).collect());
    }
    Ok(db.family(family)?.property(name).ok_or_else(|| no_property(name))?)
}

fn number(found: Option<u64>, name: &str) -> Result<i64> {
    Ok(found.map(u64::cast_signed).ok_or_else(|| no_property(name))?)
}

/// A property as a number.
///
/// # Errors
/// `Io(NotFound)`: there is no such property.
pub fn long_property(db: &DbObject, family: Option<&FamilyObject>, name: &str) -> Result<i64> {
    number(db.family(family)?.int_property(name), name)
}

/// The sum of a property over all families.
///
/// # Errors
/// `Io(NotFound)`: there is no such property.
pub fn aggregated_property(db: &DbObject, name: &str) -> Result<i64> {
    number(db.database.db().aggregated_int_property(name), name)
}

/// A property with parts.
///
/// # Errors
/// `Io(NotFound)`: there is no such property.
pub fn map_property<'a>(
    env: Env<'a>,
    db: &DbObject,
    family: Option<&FamilyObject>,
    name: &str,
) -> Result<Local<'a>> {
    let parts = db.family(family)?.map_property(name).ok_or_else(|| no_property(name))?;
    hash_map(env, parts.iter().map(|(key, value)| Ok((env.new_text(key)?, env.new_text(value)?))))
}

/// The sequence number of the newest write.
pub fn latest_sequence(db: &DbObject) -> Result<i64> {
    Ok(db.database.db().sequence().get().cast_signed())
}

/// How many levels a family has.
pub fn number_levels(db: &DbObject, family: Option<&FamilyObject>) -> Result<i32> {
    Ok(i32::try_from(db.family(family)?.shape().levels.len()).unwrap_or(i32::MAX))
}

/// Memtables are written to level 0.
pub fn max_memory_level(_: &DbObject, _: Option<&FamilyObject>) -> Result<i32> {
    Ok(0)
}

/// So many tables of level 0 stop writers.
pub fn level0_stop(db: &DbObject, family: Option<&FamilyObject>) -> Result<i32> {
    Ok(i32::try_from(db.family(family)?.options().compaction.l0_stop).unwrap_or(i32::MAX))
}

/// Pairs of keys of slices.
pub(crate) fn pairs(slices: &[i64]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let bytes = |handle: i64| object::<SliceObject>(handle).map(|slice| slice.bytes());
    let pair = |pair: &[i64]| match pair {
        [from, to] => Ok((bytes(*from)?, bytes(*to)?)),
        _ => Err(Error::invalid("a range without its end").into()),
    };
    slices.chunks(2).map(pair).collect()
}

/// The approximate bytes of ranges. `flags`: 1 in memtables, 2 in files.
///
/// # Errors
/// Those of [`ashlar_compat::sizes::approximate_sizes`].
pub fn approximate_sizes(
    db: &DbObject,
    family: Option<&FamilyObject>,
    slices: &[i64],
    flags: i8,
) -> Result<Vec<i64>> {
    let mut texts = Texts::listed(&SIZE_DEFAULTS);
    texts.set("include_memtables", flags & 1 != 0);
    texts.set("include_files", flags & 2 != 0);
    let owned = pairs(slices)?;
    let ranges: Vec<(&[u8], &[u8])> = owned.iter().map(|(from, to)| (&from[..], &to[..])).collect();
    let sizes = ashlar_compat::sizes::approximate_sizes(&*db.family(family)?, &ranges, &texts)?;
    Ok(sizes.into_iter().map(u64::cast_signed).collect())
}

/// The approximate number of entries of a range in memtables, and their bytes.
///
/// # Errors
/// Those of [`Family::approximate_memtable_stats`].
pub fn memtable_stats(
    db: &DbObject,
    family: Option<&FamilyObject>,
    from: &SliceObject,
    to: &SliceObject,
) -> Result<Vec<i64>> {
    let stats = db.family(family)?.approximate_memtable_stats(from.bytes(), to.bytes())?;
    Ok(vec![stats.count.cast_signed(), stats.bytes.cast_signed()])
}

/// The settings of a family, `name=text;` for each.
///
/// # Errors
/// Those of [`DbObject::family`].
pub fn options_text(db: &DbObject, family: Option<&FamilyObject>) -> Result<String> {
    let given = family.map_or(db.options(), |family| &family.options);
    Ok(family_text(&*db.family(family)?, given))
}

/// The settings of the database, `name=text;` for each.
///
/// # Errors
/// Those of [`database_text`].
pub fn db_options_text(db: &DbObject) -> Result<String> {
    Ok(database_text(&db.database, db.options())?)
}

/// Deletes all keys outside `begin..end`.
///
/// # Errors
/// Those of [`ashlar_compat::clip::clip_family`].
pub fn clip(db: &DbObject, family: Option<&FamilyObject>, begin: &[u8], end: &[u8]) -> Result<()> {
    let family = family.map_or(db.database.default_family(), |family| &family.family);
    Ok(clip_family(&db.database, family, begin, end)?)
}

fn changes<'a>(names: &'a [String], values: &'a [String]) -> Vec<(&'a str, &'a str)> {
    names.iter().zip(values).map(|(name, value)| (&**name, &**value)).collect()
}

/// Changes options of a family. As at an open, numbers are brought into the range of the engine.
///
/// # Errors
/// Those of [`ashlar_compat::clip::set_options`].
pub fn set_options(
    db: &DbObject,
    family: Option<&FamilyObject>,
    names: &[String],
    values: &[String],
) -> Result<()> {
    Ok(ashlar_compat::clip::set_options(&*db.family(family)?, &changes(names, values))?)
}

/// Changes options of the database.
///
/// # Errors
/// Those of [`ashlardb::Db::set_db_options`].
pub fn set_db_options(db: &DbObject, names: &[String], values: &[String]) -> Result<()> {
    Ok(db.database.db().set_db_options(&changes(names, values)).map(drop)?)
}

/// Counters of the property `rocksdb.stats` do not begin again.
///
/// # Errors
/// `NotSupported`.
pub fn reset_stats(_: &DbObject) -> Result<()> {
    Err(Error::not_supported("resetStats").hint("Use Statistics.reset").into())
}

/// Takes files into a family.
///
/// # Errors
/// Those of [`Family::ingest`] and [`ingest_options`].
pub fn ingest(
    db: &DbObject,
    family: Option<&FamilyObject>,
    files: &[String],
    options: &IngestObject,
) -> Result<()> {
    let options = options.with(ingest_options)?;
    let paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    Ok(db.family(family)?.ingest(&paths, options).map(drop)?)
}

/// The batches since a sequence number.
///
/// # Errors
/// Those of [`UpdatesIterator::since`].
pub fn updates_since(db: &DbObject, number: i64) -> Result<i64> {
    let number = u64::try_from(number).map_err(|_| Error::invalid("a sequence number below zero"))?;
    Ok(handles::keep(UpdatesObject(Mutex::new(UpdatesIterator::since(&db.database, number)?)))?)
}

/// Whether there is a batch.
pub fn is_valid(updates: &UpdatesObject) -> Result<bool> {
    Ok(updates.lock().is_valid())
}

/// To the next batch.
pub fn next(updates: &UpdatesObject) -> Result<()> {
    updates.lock().next();
    Ok(())
}

/// The error that ended the batches.
///
/// # Errors
/// That error.
pub fn status(updates: &UpdatesObject) -> Result<()> {
    Ok(updates.lock().status()?)
}

/// A `BatchResult`: the sequence number of the first change, and the batch.
///
/// # Errors
/// `InvalidArgument`: there is no batch.
pub fn batch<'a>(env: Env<'a>, updates: &UpdatesObject) -> Result<Local<'a>> {
    static RESULT: Class = Class::new("org/rocksdb/TransactionLogIterator$BatchResult");
    static NEW: Method = Method::constructor("(JJ)V");
    let updates = updates.lock();
    let update =
        updates.update().ok_or_else(|| Error::invalid("there is no batch").hint("Ask isValid() first"))?;
    let own = Lent::new(BatchObject::of(WriteBatch::from_data(update.data())?))?;
    let number = long(update.sequence().get().cast_signed());
    let made = RESULT.make(env, &NEW, &[number, long(own.handle())])?;
    own.given();
    Ok(made)
}
