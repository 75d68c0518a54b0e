//! Settings without a number: texts, sets, and objects of the caller.
//!
//! What the engine has no use for is kept and answered, and changes nothing: `docs/options.md` lists these options as ignored. What
//! would change an answer is refused by the open or the read.

use crate::callbacks::{Destructor, FilterObject, Name, State};
use crate::door::{call, changed, shown};
use crate::options::{CacheObject, OptionsObject, ReadObject, TableObject};
use crate::table_properties::PropertiesObject;
use ashlar_compat::calls::TableFilter;
use ashlar_compat::options::Texts;
use ashlar_compat::value::CHECKSUM;
use ashlardb::{Error, Result, TablePropertiesCollectorFactory};
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// `rocksdb_file_checksum_gen_factory_t`: CRC32C over whole files.
#[derive(Clone, Copy, Debug)]
pub struct ChecksumFactoryObject;

/// `rocksdb_table_properties_collector_factory_t`. No call of C makes one.
#[derive(Clone, Debug)]
pub struct CollectorFactoryObject(Arc<dyn TablePropertiesCollectorFactory>);

/// `rocksdb_walfilter_t`: functions that nothing calls.
#[derive(Debug)]
pub struct WalFilterObject(State);

type KeepTable = unsafe extern "C" fn(*mut c_void, *const PropertiesObject) -> u8;

/// A function of C that says which tables a scan reads.
struct CTableFilter {
    state: State,
    keep: KeepTable,
}

impl CTableFilter {
    fn keeps(&self, table: &PropertiesObject) -> bool {
        let table = shown(table);
        // SAFETY: the contract of the header; the properties live until the function returns.
        unsafe { (self.keep)(self.state.state, table.pointer()) != 0 }
    }
}

/// A text that was set, or RocksDB's default.
fn text<'a>(opt: &'a OptionsObject, name: &str) -> Option<&'a [u8]> {
    Some(opt.0.texts.text(name).as_bytes())
}

fn set_text(opt: &mut OptionsObject, name: &str, value: &CStr) {
    opt.0.texts.set_text(name, value.to_string_lossy().into_owned());
}

/// The directory of the info log.
pub fn options_get_db_log_dir(opt: &OptionsObject) -> Option<&[u8]> {
    text(opt, "db_log_dir")
}

/// The directory of the WAL.
pub fn options_get_wal_dir(opt: &OptionsObject) -> Option<&[u8]> {
    text(opt, "wal_dir")
}

/// The name of the machine that was set. Tables do not record it.
pub fn options_get_db_host_id(opt: &OptionsObject) -> Option<&[u8]> {
    text(opt, "db_host_id")
}

/// Ignored.
pub fn options_set_db_host_id(opt: &mut OptionsObject, v: &CStr) {
    set_text(opt, "db_host_id", v);
}

/// The hours that were set.
pub fn options_get_daily_offpeak_time_utc(opt: &OptionsObject) -> Option<&[u8]> {
    text(opt, "daily_offpeak_time_utc")
}

/// Ignored.
pub fn options_set_daily_offpeak_time_utc(opt: &mut OptionsObject, v: &CStr) {
    set_text(opt, "daily_offpeak_time_utc", v);
}

const PROTECTION: &str = "block_protection_bytes_per_key";

/// Bytes of the checksum of each entry of a cached block. Ignored.
pub fn options_set_block_protection_bytes_per_key(opt: &mut OptionsObject, v: u8) {
    opt.0.texts.set(PROTECTION, u32::from(v));
}

/// The bytes that were set.
pub fn options_get_block_protection_bytes_per_key(opt: &OptionsObject) -> u8 {
    u8::try_from(opt.0.texts.get::<u32>(PROTECTION)).unwrap_or(u8::MAX)
}

macro_rules! sets {
    ($($set:ident: $clear:ident, $add:ident, $remove:ident, $contains:ident, $count:ident;)*) => { $(
        /// Empties the set. Ignored.
        pub fn $clear(opt: &mut OptionsObject) {
            opt.0.$set.0.clear();
        }

        /// Adds a value. Ignored.
        pub fn $add(opt: &mut OptionsObject, value: i32) {
            opt.0.$set.0.insert(value);
        }

        /// Removes a value. Ignored.
        pub fn $remove(opt: &mut OptionsObject, value: i32) {
            opt.0.$set.0.remove(&value);
        }

        /// Whether the set has a value.
        pub fn $contains(opt: &OptionsObject, value: i32) -> bool {
            opt.0.$set.0.contains(&value)
        }

        /// The number of values.
        pub fn $count(opt: &OptionsObject) -> usize {
            opt.0.$set.0.len()
        }
    )* };
}
sets! {
    handoff_files:
        options_checksum_handoff_file_types_clear,
        options_checksum_handoff_file_types_add,
        options_checksum_handoff_file_types_remove,
        options_checksum_handoff_file_types_contains,
        options_checksum_handoff_file_types_count;
    lifetime_styles:
        options_calculate_sst_write_lifetime_hint_set_clear,
        options_calculate_sst_write_lifetime_hint_set_add,
        options_calculate_sst_write_lifetime_hint_set_remove,
        options_calculate_sst_write_lifetime_hint_set_contains,
        options_calculate_sst_write_lifetime_hint_set_count;
}

/// CRC32C over whole files.
pub fn file_checksum_gen_crc32c_factory_create() -> ChecksumFactoryObject {
    ChecksumFactoryObject
}

/// The MANIFEST gets checksums over whole files; null changes nothing.
pub fn options_set_file_checksum_gen_factory(
    opt: &mut OptionsObject,
    factory: Option<&ChecksumFactoryObject>,
) {
    if factory.is_some() {
        opt.0.texts.set_text("file_checksum_gen_factory", "FileChecksumGenCrc32cFactory".to_owned());
    }
}

/// Adds a collector; null changes nothing.
pub fn options_add_table_properties_collector_factory(
    opt: &mut OptionsObject,
    factory: Option<&CollectorFactoryObject>,
) {
    opt.0.collectors.extend(factory.map(|factory| Arc::clone(&factory.0)));
}

/// A filter, whose functions are not called.
///
/// # Safety
/// The destructor and the function for the name are those of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_walfilter_create(
    state: *mut c_void,
    destructor: Destructor,
    _column_family_log_number_map: Option<unsafe extern "C" fn()>,
    _log_record_found: Option<unsafe extern "C" fn()>,
    name: Name,
) -> *mut WalFilterObject {
    let _in = crate::checked::enter("rocksdb_walfilter_create");
    // SAFETY: as for this function.
    crate::door::made(WalFilterObject(unsafe { State::new(state, destructor, name) }))
}

/// An open with a filter answers `Not implemented`, because its recovery would find something else than without; null: no filter.
pub fn options_set_wal_filter(opt: &mut OptionsObject, filter: Option<&WalFilterObject>) {
    let name = filter.map_or("nullptr", |filter| filter.0.name());
    opt.0.texts.set_text("wal_filter", if name.is_empty() { "a filter" } else { name }.to_owned());
}

/// No filter.
pub fn options_clear_wal_filter(opt: &mut OptionsObject) {
    options_set_wal_filter(opt, None);
}

/// Ignored: what a snapshot sees stays, whatever a filter decides.
pub fn compactionfilter_set_ignore_snapshots(_: &FilterObject, _: bool) {}

/// RocksDB's number of the checksum of blocks.
pub fn block_based_options_get_checksum(opt: &TableObject) -> i32 {
    opt.0.texts.get_named("checksum", CHECKSUM)
}

/// # Errors
/// `NotSupported`: any index.
fn check_index(value: Option<&[u8]>) -> Result<()> {
    let refuse = |name: &[u8]| {
        Err(Error::not_supported(format!("an index of the caller: {}", String::from_utf8_lossy(name))))
    };
    value.map_or(Ok(()), refuse)
}

/// An index of the caller, which AshlarDB does not write; null: none.
///
/// # Errors
/// `NotSupported`: any index.
pub fn block_based_options_set_user_defined_index_factory_from_string(
    _: &mut TableObject,
    value: Option<&[u8]>,
) -> Result<()> {
    check_index(value)
}

/// The name of that index: null, because no table has one.
pub fn block_based_options_get_user_defined_index_factory_name(_: &TableObject) -> Option<&[u8]> {
    None
}

/// No index of the caller.
pub fn block_based_options_clear_user_defined_index_factory(_: &mut TableObject) {}

/// An index of the caller for reads; null: none.
///
/// # Errors
/// `NotSupported`: any index.
pub fn readoptions_set_table_index_factory_from_string(
    _: &mut ReadObject,
    value: Option<&[u8]>,
) -> Result<()> {
    check_index(value)
}

/// The name of that index: null, because no table has one.
pub fn readoptions_get_table_index_factory_name(_: &ReadObject) -> Option<&[u8]> {
    None
}

/// No index of the caller.
pub fn readoptions_clear_table_index_factory(_: &mut ReadObject) {}

/// A function that may leave tables out of a scan. Reads of keys ignore it, as in RocksDB.
///
/// # Safety
/// The options are null or of this library; the functions are those of the state, and any thread may call them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_readoptions_set_table_filter(
    opt: *mut ReadObject,
    state: *mut c_void,
    destructor: Destructor,
    table_filter: Option<KeepTable>,
) {
    let _in = crate::checked::enter("rocksdb_readoptions_set_table_filter");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function; there is no name.
        let state = unsafe { State::new(state, destructor, None) };
        // SAFETY: as for this function.
        let opt = unsafe { changed(opt, "opt") }?;
        let filter = table_filter.map(|keep| {
            let own = CTableFilter { state, keep };
            TableFilter::new(move |table| own.keeps(table))
        });
        opt.0.filter_tables(filter);
        Ok(())
    });
}

/// Whether there is such a function.
pub fn readoptions_has_table_filter(opt: &ReadObject) -> bool {
    opt.0.table_filter().is_some()
}

/// No such function.
pub fn readoptions_clear_table_filter(opt: &mut ReadObject) {
    opt.0.filter_tables(None);
}

const OPERANDS: &str = "merge_operand_count_threshold";

/// Whether a read would tell about many operands. Such a read is refused.
pub fn readoptions_has_merge_operand_count_threshold(opt: &ReadObject) -> bool {
    opt.0.texts().differs(OPERANDS)
}

/// No such number.
pub fn readoptions_clear_merge_operand_count_threshold(opt: &mut ReadObject) {
    opt.0.change(|texts: &mut Texts| texts.reset(OPERANDS));
}

/// The number of blocks in a cache.
pub fn cache_get_occupancy_count(cache: &CacheObject) -> usize {
    cache.0.blocks()
}

/// Always 0: blocks are found by their tables, without a hash table.
pub fn cache_get_table_address_count(_: &CacheObject) -> usize {
    0
}
