//! Functions of C as comparators, merge operators and compaction filters.
//!
//! 1. The state belongs to the object. Its destructor runs when nothing uses the object any more: not before the databases that
//!    were opened with it are closed.
//! 2. Background threads call the functions too, several at a time, as RocksDB does.
//! 3. A function of C must return: an exception or a jump out of it ends the process.

use ashlar_base::FamilyId;
use ashlar_compat::logger::Logger;
use ashlardb::{
    CompactionFilter, CompactionFilterFactory, Comparator, Decision, Error, FilterContext, MergeOperator,
    PrefixExtractor, PrefixTransform, Result, standard_operator,
};
use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::sync::Arc;

/// A state of C with its destructor and name.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    name: String,
}

// SAFETY: the contract of the header: the functions of an object may be called on any thread.
unsafe impl Send for State {}
// SAFETY: as above; several threads may call them at a time.
unsafe impl Sync for State {}

/// The function that names a state.
pub type Name = Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>;
/// The function that ends a state.
pub type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

impl State {
    /// # Safety
    /// The functions are those of the state, and the name is a string.
    pub(crate) unsafe fn new(state: *mut c_void, destructor: Destructor, name: Name) -> State {
        let name = name.map_or(std::ptr::null(), |name| {
            // SAFETY: as for this function.
            unsafe { name(state) }
        });
        let name = if name.is_null() {
            String::new()
        } else {
            // SAFETY: as for this function.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        State { state, destructor, name }
    }
}

impl State {
    /// The name; empty: none.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: nothing calls the other functions any more.
            unsafe { destructor(self.state) };
        }
    }
}

const fn text(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// The function of a comparator.
pub type Compare = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;

/// A comparator of C.
#[derive(Debug)]
struct CComparator {
    state: State,
    compare: Compare,
}

impl Comparator for CComparator {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: both are bytes with their lengths.
        unsafe { (self.compare)(self.state.state, text(a), a.len(), text(b), b.len()) }.cmp(&0)
    }
}

/// `rocksdb_comparator_t`.
#[derive(Clone, Debug)]
pub struct ComparatorObject(pub(crate) Arc<dyn Comparator>);

/// See the header.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Option<Compare>,
    name: Name,
) -> *mut ComparatorObject {
    let _in = crate::checked::enter("rocksdb_comparator_create");
    // SAFETY: as for this function.
    unsafe { new_comparator(state, destructor, compare, name) }
}

/// A comparator, for a function of C.
///
/// # Safety
/// As [`rocksdb_comparator_create`].
pub unsafe fn new_comparator(
    state: *mut c_void,
    destructor: Destructor,
    compare: Option<Compare>,
    name: Name,
) -> *mut ComparatorObject {
    let Some(compare) = compare else { return std::ptr::null_mut() };
    // SAFETY: as for this function.
    let state = unsafe { State::new(state, destructor, name) };
    crate::door::made(ComparatorObject(Arc::new(CComparator { state, compare })))
}

type CompareParts =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, u8, *const c_char, usize, u8) -> c_int;

/// A comparator of C for keys that end in a timestamp.
#[derive(Debug)]
struct CTimestamped {
    state: State,
    compare: CompareParts,
    timestamp_len: usize,
}

impl Comparator for CTimestamped {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: both are bytes with their lengths.
        unsafe { (self.compare)(self.state.state, text(a), a.len(), 1, text(b), b.len(), 1) }.cmp(&0)
    }

    fn timestamp_len(&self) -> usize {
        self.timestamp_len
    }
}

/// See the header. A database with such an order is refused: AshlarDB does not write keys with timestamps.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_comparator_with_ts_create(
    state: *mut c_void,
    destructor: Destructor,
    _compare: Option<Compare>,
    _compare_ts: Option<Compare>,
    compare_without_ts: Option<CompareParts>,
    name: Name,
    timestamp_size: usize,
) -> *mut ComparatorObject {
    let _in = crate::checked::enter("rocksdb_comparator_with_ts_create");
    let Some(compare) = compare_without_ts else { return std::ptr::null_mut() };
    // SAFETY: as for this function.
    let state = unsafe { State::new(state, destructor, name) };
    crate::door::made(ComparatorObject(Arc::new(CTimestamped {
        state,
        compare,
        timestamp_len: timestamp_size,
    })))
}

type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;
type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;
type DeleteValue = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>;

/// A merge operator of C.
#[derive(Debug)]
struct CMerge {
    state: State,
    full: FullMerge,
    partial: Option<PartialMerge>,
    delete: DeleteValue,
}

impl CMerge {
    /// Copies a value that a function of C made, and frees it.
    fn took(&self, value: *mut c_char, len: usize, success: u8) -> Option<Vec<u8>> {
        if value.is_null() {
            return (success != 0 && len == 0).then(Vec::new);
        }
        // SAFETY: the function answered so many bytes.
        let copy = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len) }.to_vec();
        match self.delete {
            // SAFETY: the value is one of this operator, and is not used again.
            Some(delete) => unsafe { delete(self.state.state, value, len) },
            // SAFETY: without a function of its own, the value is of `malloc`.
            None => unsafe { libc::free(value.cast()) },
        }
        (success != 0).then_some(copy)
    }
}

impl MergeOperator for CMerge {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let (pointers, lengths) = parts(operands)?;
        let count = count(operands)?;
        let (old, old_len) = existing.map_or((std::ptr::null(), 0), |old| (text(old), old.len()));
        let (mut success, mut len) = (1u8, 0usize);
        // SAFETY: bytes with their lengths, lists of `count` elements, and places for the results.
        let merged = unsafe {
            (self.full)(
                self.state.state,
                text(key),
                key.len(),
                old,
                old_len,
                pointers.as_ptr(),
                lengths.as_ptr(),
                count,
                &raw mut success,
                &raw mut len,
            )
        };
        self.took(merged, len, success)
            .ok_or_else(|| Error::corruption(format!("Merge operator failed: {}", self.state.name)))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial = self.partial?;
        let (pointers, lengths) = parts(operands).ok()?;
        let count = count(operands).ok()?;
        let (mut success, mut len) = (1u8, 0usize);
        // SAFETY: as in `full_merge`.
        let merged = unsafe {
            partial(
                self.state.state,
                text(key),
                key.len(),
                pointers.as_ptr(),
                lengths.as_ptr(),
                count,
                &raw mut success,
                &raw mut len,
            )
        };
        if merged.is_null() {
            return None;
        }
        self.took(merged, len, success)
    }
}

fn parts(operands: &[&[u8]]) -> Result<(Vec<*const c_char>, Vec<usize>)> {
    Ok(operands.iter().map(|operand| (text(operand), operand.len())).unzip())
}

fn count(operands: &[&[u8]]) -> Result<c_int> {
    c_int::try_from(operands.len()).map_err(|_| Error::not_supported("a merge of 2^31 operands or more"))
}

/// `rocksdb_mergeoperator_t`.
#[derive(Clone, Debug)]
pub struct MergeObject(pub(crate) Arc<dyn MergeOperator>);

/// See the header.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_mergeoperator_create(
    state: *mut c_void,
    destructor: Destructor,
    full_merge: Option<FullMerge>,
    partial_merge: Option<PartialMerge>,
    delete_value: DeleteValue,
    name: Name,
) -> *mut MergeObject {
    let _in = crate::checked::enter("rocksdb_mergeoperator_create");
    let Some(full) = full_merge else { return std::ptr::null_mut() };
    // SAFETY: as for this function.
    let state = unsafe { State::new(state, destructor, name) };
    crate::door::made(MergeObject(Arc::new(CMerge {
        state,
        full,
        partial: partial_merge,
        delete: delete_value,
    })))
}

/// The built-in operator of that name.
pub(crate) fn built_in_operator(name: &str) -> Option<Arc<dyn MergeOperator>> {
    standard_operator(name)
}

type Filter = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut u8,
) -> u8;

/// A compaction filter of C.
#[derive(Debug)]
pub struct CFilter {
    state: State,
    filter: Filter,
    level: c_int,
}

impl CFilter {
    fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        let (mut new, mut len, mut changed) = (std::ptr::null_mut::<c_char>(), 0usize, 0u8);
        // SAFETY: bytes with their lengths, and places for the results.
        let removes = unsafe {
            (self.filter)(
                self.state.state,
                self.level,
                text(key),
                key.len(),
                text(value),
                value.len(),
                &raw mut new,
                &raw mut len,
                &raw mut changed,
            )
        };
        if removes != 0 {
            return Decision::Remove;
        }
        if changed == 0 || new.is_null() {
            return Decision::Keep;
        }
        // SAFETY: the function answered so many bytes, which stay its own.
        let new = unsafe { std::slice::from_raw_parts(new.cast::<u8>(), len) };
        Decision::Change(new.to_vec())
    }
}

impl CompactionFilter for CFilter {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        self.decide(key, value)
    }
}

/// `rocksdb_compactionfilter_t`.
#[derive(Clone, Debug)]
pub struct FilterObject(pub(crate) Arc<CFilter>);

/// See the header. A filter that is set as an option is asked with level 0; one of a factory with the level of the output.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilter_create(
    state: *mut c_void,
    destructor: Destructor,
    filter: Option<Filter>,
    name: Name,
) -> *mut FilterObject {
    let _in = crate::checked::enter("rocksdb_compactionfilter_create");
    let Some(filter) = filter else { return std::ptr::null_mut() };
    // SAFETY: as for this function.
    let state = unsafe { State::new(state, destructor, name) };
    crate::door::made(FilterObject(Arc::new(CFilter { state, filter, level: 0 })))
}

/// `rocksdb_compactionfiltercontext_t`: the compaction that asks a factory for a filter.
#[derive(Clone, Copy, Debug)]
pub struct FilterContextObject {
    full: bool,
    manual: bool,
}

/// Whether the compaction reads all tables.
pub fn compactionfiltercontext_is_full_compaction(context: &FilterContextObject) -> bool {
    context.full
}

/// Whether a caller requested the compaction.
pub fn compactionfiltercontext_is_manual_compaction(context: &FilterContextObject) -> bool {
    context.manual
}

type Create = unsafe extern "C" fn(*mut c_void, *mut FilterContextObject) -> *mut FilterObject;

/// A factory of compaction filters of C.
#[derive(Debug)]
struct CFactory {
    state: State,
    create: Create,
}

impl CompactionFilterFactory for CFactory {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn create(&self, context: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>> {
        let mut seen = FilterContextObject { full: context.is_full, manual: context.is_manual };
        let seen = crate::door::shown_mut(&mut seen);
        // SAFETY: the context lives during the call.
        let made = unsafe { (self.create)(self.state.state, seen.pointer()) };
        // SAFETY: the function answers null or a new filter of this library, which it gives up.
        let made = unsafe { crate::door::taken(made, "filter") }.ok()??;
        let mut filter = Arc::into_inner(made.0)?;
        filter.level = context.level.0.into();
        Some(Box::new(filter))
    }
}

/// `rocksdb_compactionfilterfactory_t`.
#[derive(Clone, Debug)]
pub struct FactoryObject(pub(crate) Arc<dyn CompactionFilterFactory>);

/// See the header.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionfilterfactory_create(
    state: *mut c_void,
    destructor: Destructor,
    create_compaction_filter: Option<Create>,
    name: Name,
) -> *mut FactoryObject {
    let _in = crate::checked::enter("rocksdb_compactionfilterfactory_create");
    let Some(create) = create_compaction_filter else { return std::ptr::null_mut() };
    // SAFETY: as for this function.
    let state = unsafe { State::new(state, destructor, name) };
    crate::door::made(FactoryObject(Arc::new(CFactory { state, create })))
}

/// `rocksdb_slicetransform_t`: a rule that takes the prefix of a key.
#[derive(Clone, Debug)]
pub struct TransformObject(pub(crate) PrefixExtractor);

type Transform = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;
type InDomain = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> u8;

/// A rule of C.
#[derive(Debug)]
struct CTransform {
    state: State,
    transform: Transform,
    in_domain: Option<InDomain>,
}

impl PrefixTransform for CTransform {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        if let Some(in_domain) = self.in_domain {
            // SAFETY: bytes with their length.
            if unsafe { in_domain(self.state.state, text(key), key.len()) } == 0 {
                return None;
            }
        }
        let mut len = 0;
        // SAFETY: bytes with their length, and a place for the result.
        let prefix = unsafe { (self.transform)(self.state.state, text(key), key.len(), &raw mut len) };
        if prefix.is_null() {
            return None;
        }
        // SAFETY: the function answered so many bytes, a part of the key or its own.
        let prefix = unsafe { std::slice::from_raw_parts(prefix.cast::<u8>(), len) };
        // No key has so long a prefix: the extractor fails for bytes that do not begin the key.
        Some(if key.starts_with(prefix) { len } else { usize::MAX })
    }
}

/// See the header.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Destructor,
    transform: Option<Transform>,
    in_domain: Option<InDomain>,
    name: Name,
) -> *mut TransformObject {
    let _in = crate::checked::enter("rocksdb_slicetransform_create");
    let Some(transform) = transform else { return std::ptr::null_mut() };
    // SAFETY: as for this function.
    let state = unsafe { State::new(state, destructor, name) };
    let own = Arc::new(CTransform { state, transform, in_domain });
    crate::door::made(TransformObject(PrefixExtractor::Custom(own)))
}

/// The first `len` bytes of keys that have so many.
pub fn slicetransform_create_fixed_prefix(len: usize) -> TransformObject {
    TransformObject(PrefixExtractor::Fixed(len))
}

/// Whole keys.
pub fn slicetransform_create_noop() -> TransformObject {
    TransformObject(PrefixExtractor::Noop)
}

/// A function that gets a key and a value.
pub type Entry = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>;
/// A function that gets a key.
pub type Key = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>;
/// A function that gets the number of a family, a key and a value.
pub(crate) type EntryOf =
    Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize)>;
/// A function that gets the number of a family and a key.
pub(crate) type KeyOf = Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize)>;

/// Functions of C that walk over a batch.
#[derive(Debug)]
pub(crate) struct Walker {
    pub(crate) state: *mut c_void,
    pub(crate) put: Entry,
    pub(crate) deleted: Key,
    pub(crate) log_data: Key,
    pub(crate) put_of: EntryOf,
    pub(crate) deleted_of: KeyOf,
    pub(crate) merge_of: EntryOf,
}

impl Walker {
    /// One that calls nothing.
    pub(crate) fn new(state: *mut c_void) -> Walker {
        Walker {
            state,
            put: None,
            deleted: None,
            log_data: None,
            put_of: None,
            deleted_of: None,
            merge_of: None,
        }
    }
}

impl ashlar_compat::batch::Handler for Walker {
    /// Functions without a number of the family know the default family only.
    fn ends_at(&self, family: FamilyId) -> bool {
        family != FamilyId::DEFAULT && self.put_of.is_none() && self.deleted_of.is_none()
    }

    fn put(&mut self, family: FamilyId, key: &[u8], value: &[u8]) {
        if let Some(put) = self.put {
            // SAFETY: bytes with their lengths.
            unsafe { put(self.state, text(key), key.len(), text(value), value.len()) };
        }
        if let Some(put) = self.put_of {
            // SAFETY: as above.
            unsafe { put(self.state, family.0, text(key), key.len(), text(value), value.len()) };
        }
    }

    fn delete(&mut self, family: FamilyId, key: &[u8]) {
        if let Some(deleted) = self.deleted {
            // SAFETY: bytes with their length.
            unsafe { deleted(self.state, text(key), key.len()) };
        }
        if let Some(deleted) = self.deleted_of {
            // SAFETY: as above.
            unsafe { deleted(self.state, family.0, text(key), key.len()) };
        }
    }

    fn merge(&mut self, family: FamilyId, key: &[u8], operand: &[u8]) {
        if let Some(merge) = self.merge_of {
            // SAFETY: bytes with their lengths.
            unsafe { merge(self.state, family.0, text(key), key.len(), text(operand), operand.len()) };
        }
    }

    fn log_data(&mut self, blob: &[u8]) {
        if let Some(log_data) = self.log_data {
            // SAFETY: bytes with their length.
            unsafe { log_data(self.state, text(blob), blob.len()) };
        }
    }
}

/// `rocksdb_logger_t`: a counted reference, as RocksDB's; `None`: the file LOG alone.
#[derive(Clone, Debug)]
pub struct LoggerObject(pub(crate) Option<Logger>);

/// The level of a logger. A number below those of RocksDB lets every line pass.
fn least(level: c_int) -> u32 {
    u32::try_from(level).unwrap_or(0)
}

/// A logger that writes to the standard error, with a prefix before each line.
///
/// # Safety
/// The prefix is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_logger_create_stderr_logger(
    log_level: c_int,
    prefix: *const c_char,
) -> *mut LoggerObject {
    let _in = crate::checked::enter("rocksdb_logger_create_stderr_logger");
    let prefix = match prefix.is_null() {
        true => String::new(),
        // SAFETY: as for this function.
        false => unsafe { CStr::from_ptr(prefix) }.to_string_lossy().into_owned() + " ",
    };
    // A line that cannot be written is left out.
    let sink = move |_, line: &str| drop(writeln!(std::io::stderr(), "{prefix}{line}"));
    crate::door::made(LoggerObject(Some(Logger::new(least(log_level), sink))))
}

type LogLine = unsafe extern "C" fn(*mut c_void, u32, *mut c_char, usize);

/// The function and state of a logger.
struct CLogger {
    state: State,
    log: LogLine,
}

impl CLogger {
    fn log(&self, level: u32, line: &str) {
        let mut line = line.as_bytes().to_vec();
        // The function gets a string, and may change its bytes.
        let len = line.len();
        line.push(0);
        // SAFETY: a string of that length, which lives until the call returns.
        unsafe { (self.log)(self.state.state, level, line.as_mut_ptr().cast(), len) };
    }
}

/// A logger that calls a function.
///
/// # Safety
/// The function is that of the state, and keeps its contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_logger_create_callback_logger(
    log_level: c_int,
    logger: Option<LogLine>,
    state: *mut c_void,
) -> *mut LoggerObject {
    let _in = crate::checked::enter("rocksdb_logger_create_callback_logger");
    let Some(log) = logger else { return std::ptr::null_mut() };
    let own = CLogger { state: State { state, destructor: None, name: String::new() }, log };
    let sink = move |level, line: &str| own.log(level, line);
    crate::door::made(LoggerObject(Some(Logger::new(least(log_level), sink))))
}
