//! Databases, families, reads and writes of one key, and the upkeep of a database.

use crate::batch::BatchObject;
use crate::door::HasTexts;
use crate::iter::PinnedObject;
use crate::objects::{FlushObject, FlushWalObject, WaitObject};
use crate::options::{CompactObject, EnvObject, OptionsObject, ReadObject, SnapshotObject, WriteObject};
use crate::timestamps;
use ashlar_compat::calls::closed_range;
use ashlar_compat::database::{Database, Held, Mode, create_dir, families};
use ashlardb::{Error, Family, Read, Result, View, Write};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `rocksdb_t`.
#[derive(Debug)]
pub struct DbObject(pub(crate) Database);

/// `rocksdb_column_family_handle_t`.
#[derive(Clone, Debug)]
pub struct FamilyObject {
    pub(crate) family: Family,
}

impl FamilyObject {
    pub(crate) fn new(family: Family) -> FamilyObject {
        FamilyObject { family }
    }
}

/// A path of C.
pub(crate) fn path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

impl DbObject {
    /// The same database, for an object that does not close it.
    pub(crate) fn share(&self) -> DbObject {
        DbObject(self.0.clone())
    }

    /// A family as it is now; `None`: the family `default`.
    #[inline]
    pub(crate) fn family<'a>(&'a self, family: Option<&'a FamilyObject>) -> Result<Held<'a, Family>> {
        self.0.family(family.map(|family| &family.family))
    }

    pub(crate) fn get_of(
        &self,
        family: Option<&FamilyObject>,
        options: &ReadObject,
        key: &[u8],
    ) -> Result<Option<View>> {
        options.0.of(&*self.family(family)?)?.get(key)
    }

    /// The values of keys of one family, read together; a key that cannot be read has its own error.
    pub(crate) fn multi_get_of(
        &self,
        family: Option<&FamilyObject>,
        options: &ReadObject,
        keys: Vec<&[u8]>,
    ) -> Result<Vec<Result<Option<View>>>> {
        let family = family.map(|family| &family.family);
        let keys: Vec<_> = keys.into_iter().map(|key| (family, key)).collect();
        self.0.multi_get_each(&options.0, &keys)
    }

    fn write_to(
        &self,
        family: Option<&FamilyObject>,
        options: &WriteObject,
        write: impl FnOnce(ashlardb::Writer<'_>) -> Result<()>,
    ) -> Result<()> {
        write(self.family(family)?.writing(options.write))
    }
}

// Each function below is the body of the C function of its name.

fn opened(options: &OptionsObject, name: &CStr, mode: Mode) -> Result<DbObject> {
    Ok(DbObject(Database::open(&options.0, path(name), mode, &[])?.0))
}

/// Opens for reading and writing.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open(options: &OptionsObject, name: &CStr) -> Result<DbObject> {
    opened(options, name, Mode::Write)
}

/// Opens for reading.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open_for_read_only(
    options: &OptionsObject,
    name: &CStr,
    error_if_wal_file_exists: bool,
) -> Result<DbObject> {
    opened(options, name, Mode::Read { refuse_wal: error_if_wal_file_exists })
}

/// Opens a view of the database that another process writes. It needs no directory of its own.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open_as_secondary(options: &OptionsObject, name: &CStr, _: &CStr) -> Result<DbObject> {
    opened(options, name, Mode::Secondary)
}

/// Opens a database whose values end in the time of their write.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open_with_ttl(options: &OptionsObject, name: &CStr, ttl: i32) -> Result<DbObject> {
    let named = ashlar_compat::database::Named { name: "default", options: &options.0, ttl: Some(ttl) };
    Ok(DbObject(Database::open(&options.0, path(name), Mode::Write, &[named])?.0))
}

/// Closes the database. Iterators, snapshots and transactions that still refer to it fail from then on.
pub fn close(db: Option<Box<DbObject>>) {
    if let Some(db) = db {
        // C has no place for the error; the log for people has it.
        drop(db.0.db().close());
    }
}

/// Makes the newest writes of the other process visible.
///
/// # Errors
/// Those of [`Database::catch_up`].
pub fn try_catch_up_with_primary(db: &DbObject) -> Result<()> {
    db.0.catch_up()
}

/// Repairs a damaged directory.
///
/// # Errors
/// Those of [`ashlardb::Builder::repair`].
pub fn repair_db(options: &OptionsObject, name: &CStr) -> Result<()> {
    ashlar_compat::database::repair(&options.0, path(name))
}

/// Creates a family.
///
/// # Errors
/// Those of [`ashlardb::Db::create_family_with`].
pub fn create_column_family(db: &DbObject, options: &OptionsObject, name: &CStr) -> Result<FamilyObject> {
    db.0.create_family(&options.0, &name.to_string_lossy(), None).map(FamilyObject::new)
}

/// Drops a family; its handle stays until it is destroyed.
///
/// # Errors
/// Those of [`ashlardb::Db::drop_family`].
pub fn drop_column_family(db: &DbObject, handle: &FamilyObject) -> Result<()> {
    db.0.db().drop_family(&handle.family)
}

/// The family `default`.
pub fn get_default_column_family_handle(db: &DbObject) -> Option<FamilyObject> {
    Some(FamilyObject::new(db.family(None).ok()?.clone()))
}

/// The number of a family.
pub fn column_family_handle_get_id(handle: &FamilyObject) -> u32 {
    handle.family.id().0
}

/// The name of a family.
pub fn column_family_handle_get_name(handle: &FamilyObject) -> Option<&[u8]> {
    Some(handle.family.name().as_bytes())
}

macro_rules! writes {
    ($($name:ident, $of:ident ($($arg:ident),*) = $call:ident;)*) => { $(
        #[doc = concat!("Writes to the family `default`: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of [`Write::put`].
        pub fn $name(db: &DbObject, options: &WriteObject, $($arg: &[u8]),*) -> Result<()> {
            db.write_to(None, options, |to| to.$call($($arg),*))
        }
        #[doc = concat!("Writes to a family: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of [`Write::put`].
        pub fn $of(db: &DbObject, options: &WriteObject, family: &FamilyObject, $($arg: &[u8]),*) -> Result<()> {
            db.write_to(Some(family), options, |to| to.$call($($arg),*))
        }
    )* };
}
writes! {
    put, put_cf(key, val) = put;
    merge, merge_cf(key, val) = merge;
    delete, delete_cf(key) = delete;
    singledelete, singledelete_cf(key) = single_delete;
}

/// Deletes a range of keys.
///
/// # Errors
/// Those of [`Write::delete_range`].
pub fn delete_range_cf(
    db: &DbObject,
    options: &WriteObject,
    family: &FamilyObject,
    begin: &[u8],
    end: &[u8],
) -> Result<()> {
    db.write_to(Some(family), options, |to| to.delete_range(begin, end))
}

macro_rules! timestamped {
    ($($name:ident($($arg:ident: $of:ty),*);)*) => { $(
        /// Keys with timestamps are refused.
        ///
        /// # Errors
        /// `NotSupported`.
        pub fn $name(_: &DbObject, _: &WriteObject, $(_: $of),*) -> Result<()> {
            Err(timestamps::refused())
        }
    )* };
}
timestamped! {
    put_with_ts(key: &[u8], ts: &[u8], val: &[u8]);
    put_cf_with_ts(family: &FamilyObject, key: &[u8], ts: &[u8], val: &[u8]);
    delete_with_ts(key: &[u8], ts: &[u8]);
    delete_cf_with_ts(family: &FamilyObject, key: &[u8], ts: &[u8]);
    singledelete_with_ts(key: &[u8], ts: &[u8]);
    singledelete_cf_with_ts(family: &FamilyObject, key: &[u8], ts: &[u8]);
}

/// Keys with timestamps are refused.
///
/// # Errors
/// `NotSupported`.
pub fn increase_full_history_ts_low(_: &DbObject, _: &FamilyObject, _: &[u8]) -> Result<()> {
    Err(timestamps::refused())
}

/// Keys with timestamps are refused.
///
/// # Errors
/// `NotSupported`.
pub fn get_full_history_ts_low(_: &DbObject, _: &FamilyObject) -> Result<Option<Vec<u8>>> {
    Err(timestamps::refused())
}

/// Writes a batch, which keeps its operations.
///
/// # Errors
/// Those of [`ashlardb::Db::write`], and that of an operation that could not be added.
pub fn write(db: &DbObject, options: &WriteObject, batch: &BatchObject) -> Result<()> {
    // RocksDB leaves the batch as it is.
    db.0.db().writing(options.write).write(batch.complete()?.clone())
}

/// The value of a key.
///
/// # Errors
/// Those of [`Read::get`].
pub fn get(db: &DbObject, options: &ReadObject, key: &[u8]) -> Result<Option<View>> {
    db.get_of(None, options, key)
}

/// The value of a key of a family.
///
/// # Errors
/// Those of [`Read::get`].
pub fn get_cf(
    db: &DbObject,
    options: &ReadObject,
    family: &FamilyObject,
    key: &[u8],
) -> Result<Option<View>> {
    db.get_of(Some(family), options, key)
}

/// The value of a key, which the object keeps.
///
/// # Errors
/// Those of [`Read::get`].
pub fn get_pinned(db: &DbObject, options: &ReadObject, key: &[u8]) -> Result<Option<PinnedObject>> {
    Ok(get(db, options, key)?.map(PinnedObject))
}

/// The value of a key of a family, which the object keeps.
///
/// # Errors
/// Those of [`Read::get`].
pub fn get_pinned_cf(
    db: &DbObject,
    options: &ReadObject,
    family: &FamilyObject,
    key: &[u8],
) -> Result<Option<PinnedObject>> {
    Ok(get_cf(db, options, family, key)?.map(PinnedObject))
}

/// A snapshot.
pub fn create_snapshot(db: &DbObject) -> Option<SnapshotObject> {
    Some(SnapshotObject(db.0.db().snapshot().ok()?))
}

/// Gives a snapshot back.
pub fn release_snapshot(_: &DbObject, snapshot: Option<Box<SnapshotObject>>) {
    drop(snapshot);
}

/// The sequence number of a snapshot.
pub fn snapshot_get_sequence_number(snapshot: &SnapshotObject) -> u64 {
    snapshot.0.sequence().get()
}

/// The sequence number of the newest write.
pub fn get_latest_sequence_number(db: &DbObject) -> u64 {
    db.0.db().sequence().get()
}

/// A property.
pub fn property_value(db: &DbObject, propname: &CStr) -> Option<String> {
    db.family(None).ok()?.property(propname.to_str().ok()?)
}

/// A property of a family.
pub fn property_value_cf(db: &DbObject, family: &FamilyObject, propname: &CStr) -> Option<String> {
    db.family(Some(family)).ok()?.property(propname.to_str().ok()?)
}

fn number(family: Option<Held<'_, Family>>, name: &CStr, value: &mut u64) -> i32 {
    let found = family.and_then(|family| family.int_property(name.to_str().ok()?));
    found.map_or(-1, |found| {
        *value = found;
        0
    })
}

/// A property that is a number. 0: it has one, which is in `value`; -1: not.
pub fn property_int(db: &DbObject, propname: &CStr, value: &mut u64) -> i32 {
    number(db.family(None).ok(), propname, value)
}

/// A property of a family that is a number.
pub fn property_int_cf(db: &DbObject, family: &FamilyObject, propname: &CStr, value: &mut u64) -> i32 {
    number(db.family(Some(family)).ok(), propname, value)
}

/// Flushes the family `default`, and waits for it.
///
/// # Errors
/// Those of [`Database::flush`].
pub fn flush(db: &DbObject, _: &FlushObject) -> Result<()> {
    db.0.flush(std::slice::from_ref(db.0.default_family()))
}

/// Flushes a family, and waits for it.
///
/// # Errors
/// Those of [`Database::flush`].
pub fn flush_cf(db: &DbObject, _: &FlushObject, family: &FamilyObject) -> Result<()> {
    db.0.flush(std::slice::from_ref(&family.family))
}

/// Writes buffered records of the WAL.
///
/// # Errors
/// Those of [`ashlardb::Db::flush_wal`].
pub fn flush_wal(db: &DbObject, sync: bool) -> Result<()> {
    db.0.db().flush_wal(sync)
}

/// Writes buffered records of the WAL.
///
/// # Errors
/// Those of [`ashlardb::Db::flush_wal`].
pub fn flush_wal_with_options(db: &DbObject, options: &FlushWalObject) -> Result<()> {
    db.0.db().flush_wal(options.texts().get("sync"))
}

/// Waits until there is no background work.
///
/// # Errors
/// Those of [`ashlardb::Db::wait_for_background`], [`Database::flush`], [`ashlardb::Db::close`]. `NotSupported`: a timeout.
pub fn wait_for_compact(db: &DbObject, options: &WaitObject) -> Result<()> {
    let texts = options.texts();
    if texts.get::<u64>("timeout") > 0 {
        return Err(Error::not_supported("a timeout of wait_for_compact"));
    }
    db.0.check_cancelled()?;
    if texts.get("flush") {
        db.0.flush(&db.0.db().families())?;
    }
    let db = db.0.db();
    db.wait_for_background()?;
    if texts.get("close_db") { db.close() } else { Ok(()) }
}

fn compacted(
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: &CompactObject,
    range: (Option<&[u8]>, Option<&[u8]>),
) -> Result<()> {
    db.0.check_requests()?;
    db.family(family)?.compact_range(closed_range(range.0, range.1), options.0.range()?)
}

/// Compacts a range of the family `default`; null stands for the end. C has no place for an error.
pub fn compact_range(db: &DbObject, start: Option<&[u8]>, limit: Option<&[u8]>) {
    drop(compacted(db, None, &CompactObject::default(), (start, limit)));
}

/// Compacts a range of a family. C has no place for an error.
pub fn compact_range_cf(db: &DbObject, family: &FamilyObject, start: Option<&[u8]>, limit: Option<&[u8]>) {
    drop(compacted(db, Some(family), &CompactObject::default(), (start, limit)));
}

/// Compacts a range of the family `default`. C has no place for an error.
pub fn compact_range_opt(db: &DbObject, opt: &CompactObject, start: Option<&[u8]>, limit: Option<&[u8]>) {
    drop(compacted(db, None, opt, (start, limit)));
}

/// Compacts a range of a family. C has no place for an error.
pub fn compact_range_cf_opt(
    db: &DbObject,
    family: &FamilyObject,
    opt: &CompactObject,
    start: Option<&[u8]>,
    limit: Option<&[u8]>,
) {
    drop(compacted(db, Some(family), opt, (start, limit)));
}

/// The engine compacts by itself where it pays.
///
/// # Errors
/// `InvalidArgument`: the family is not one of this database.
pub fn suggest_compact_range(db: &DbObject, _: Option<&[u8]>, _: Option<&[u8]>) -> Result<()> {
    db.family(None).map(drop)
}

/// The engine compacts by itself where it pays.
///
/// # Errors
/// `InvalidArgument`: the family is not one of this database.
pub fn suggest_compact_range_cf(
    db: &DbObject,
    family: &FamilyObject,
    _: Option<&[u8]>,
    _: Option<&[u8]>,
) -> Result<()> {
    db.family(Some(family)).map(drop)
}

fn deleted(
    db: &DbObject,
    family: Option<&FamilyObject>,
    range: (Option<&[u8]>, Option<&[u8]>),
) -> Result<()> {
    db.family(family)?.delete_files_in_ranges(&[closed_range(range.0, range.1)]).map(drop)
}

/// Deletes the tables that lie in a range of the family `default`.
///
/// # Errors
/// Those of [`Family::delete_files_in_ranges`].
pub fn delete_file_in_range(db: &DbObject, start: Option<&[u8]>, limit: Option<&[u8]>) -> Result<()> {
    deleted(db, None, (start, limit))
}

/// Deletes the tables that lie in a range of a family.
///
/// # Errors
/// Those of [`Family::delete_files_in_ranges`].
pub fn delete_file_in_range_cf(
    db: &DbObject,
    family: &FamilyObject,
    start: Option<&[u8]>,
    limit: Option<&[u8]>,
) -> Result<()> {
    deleted(db, Some(family), (start, limit))
}

/// Refuses compactions on request; running ones end.
pub fn disable_manual_compaction(db: &DbObject) {
    db.0.disable_requests();
}

/// Takes requests again.
pub fn enable_manual_compaction(db: &DbObject) {
    db.0.enable_requests();
}

/// Keeps all files from now on, also those that the engine needs no longer. Calls add up.
///
/// # Errors
/// Those of [`ashlardb::Db::live_files`].
pub fn disable_file_deletions(db: &DbObject) -> Result<()> {
    db.0.hold_files()
}

/// Takes back one [`disable_file_deletions`].
///
/// # Errors
/// None.
pub fn enable_file_deletions(db: &DbObject) -> Result<()> {
    db.0.release_files();
    Ok(())
}

/// Stops background work, and waits for it.
///
/// # Errors
/// Those of [`ashlardb::Db::pause_background_work`].
pub fn pause_background_work(db: &DbObject) -> Result<()> {
    db.0.db().pause_background_work()
}

/// Goes on with background work.
///
/// # Errors
/// Those of [`ashlardb::Db::continue_background_work`].
pub fn continue_background_work(db: &DbObject) -> Result<()> {
    db.0.db().continue_background_work()
}

/// Stops compactions, and waits for running ones if `wait`. Requests for flushes and compactions are refused from then on.
pub fn cancel_all_background_work(db: &DbObject, wait: bool) {
    db.0.cancel_background_work(wait);
}

/// Compares the checksums of all blocks.
///
/// # Errors
/// `Corruption`: the first damage. `Io`.
pub fn verify_checksum(db: &DbObject) -> Result<()> {
    db.0.db().verify_checksums(|_| {}).map(drop)
}

/// Compares the checksums of all files.
///
/// # Errors
/// Those of [`ashlar_compat::database::Database::verify_file_checksums`].
pub fn verify_file_checksums(db: &DbObject) -> Result<()> {
    db.0.verify_file_checksums()
}

/// Compares the checksums of all blocks. The options of a read are ignored.
///
/// # Errors
/// `Corruption`: the first damage. `Io`.
pub fn verify_checksum_with_options(db: &DbObject, _: Option<&ReadObject>) -> Result<()> {
    verify_checksum(db)
}

/// Compares the checksums of all files. The options of a read are ignored.
///
/// # Errors
/// Those of [`ashlar_compat::database::Database::verify_file_checksums`].
pub fn verify_file_checksums_with_options(db: &DbObject, _: Option<&ReadObject>) -> Result<()> {
    verify_file_checksums(db)
}

/// Creates a directory, in a directory that exists.
///
/// # Errors
/// Those of [`create_dir`].
pub fn create_dir_if_missing(env: &EnvObject, dir: &CStr) -> Result<()> {
    create_dir(&env.0, path(dir))
}

/// The names of the families of a directory.
///
/// # Errors
/// Those of [`families`].
pub(crate) fn family_names(options: &OptionsObject, name: &CStr) -> Result<Vec<String>> {
    families(&options.0, path(name))
}

/// An error for a name that is not UTF-8.
pub(crate) fn utf8(name: &CStr) -> Result<&str> {
    name.to_str().map_err(|_| Error::invalid("a name that is not UTF-8"))
}
