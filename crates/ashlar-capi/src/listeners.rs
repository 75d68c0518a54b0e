//! Functions of C as listeners for events.
//!
//! 1. The database of a call is null until the open has returned. Inside a call it can be read only.
//! 2. What a call is given belongs to that call.
//! 3. A compaction counts as one part of itself: the functions for parts are called around it.
//!
//! Source: RocksDB `include/rocksdb/listener.h`.

use crate::callbacks::{Destructor, State};
use crate::checked::Shown;
use crate::db::DbObject;
use crate::door::{shown, shown_mut};
use crate::jobs::{FlushJobObject, IngestedObject, JobObject, PartObject, SealedObject};
use crate::options::OptionsObject;
use ashlar_compat::compactions::Report;
use ashlar_compat::database::Database;
use ashlar_compat::listener::{Listener, Notice};
use ashlardb::{Error, Result};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

type OnFlush = Option<unsafe extern "C" fn(*mut c_void, *mut DbObject, *const FlushJobObject)>;
type OnCompaction = Option<unsafe extern "C" fn(*mut c_void, *mut DbObject, *const JobObject)>;
type OnPart = Option<unsafe extern "C" fn(*mut c_void, *const PartObject)>;
type OnIngested = Option<unsafe extern "C" fn(*mut c_void, *mut DbObject, *const IngestedObject)>;
type OnError = Option<unsafe extern "C" fn(*mut c_void, u32, *mut StatusObject)>;
type OnStall = Option<unsafe extern "C" fn(*mut c_void, *const StallObject)>;
type OnSealed = Option<unsafe extern "C" fn(*mut c_void, *const SealedObject)>;

/// The functions of a listener. One that is null is not called.
#[derive(Debug)]
struct CListener {
    state: State,
    flush_begin: OnFlush,
    flush_completed: OnFlush,
    compaction_begin: OnCompaction,
    compaction_completed: OnCompaction,
    part_begin: OnPart,
    part_completed: OnPart,
    ingested: OnIngested,
    error: OnError,
    stall: OnStall,
    sealed: OnSealed,
}

/// `rocksdb_eventlistener_t`.
#[derive(Debug)]
pub struct ListenerObject(Arc<CListener>);

/// `rocksdb_status_ptr_t`: the error of background work, until the program resets it.
#[derive(Debug)]
pub struct StatusObject(Mutex<Option<Error>>);

/// `rocksdb_writestallcondition_t`: 0 delayed, 1 stopped, 2 normal. A program reads it as an `int`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct ConditionObject(i32);

/// `rocksdb_writestallinfo_t`: a change of the pace of writers.
#[derive(Debug)]
pub struct StallObject {
    before: ConditionObject,
    now: ConditionObject,
}

/// See the header.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_eventlistener_create(
    state: *mut c_void,
    destructor: Destructor,
    on_flush_begin: OnFlush,
    on_flush_completed: OnFlush,
    on_compaction_begin: OnCompaction,
    on_compaction_completed: OnCompaction,
    on_subcompaction_begin: OnPart,
    on_subcompaction_completed: OnPart,
    on_external_file_ingested: OnIngested,
    on_background_error: OnError,
    on_stall_conditions_changed: OnStall,
    on_memtable_sealed: OnSealed,
) -> *mut ListenerObject {
    let _in = crate::checked::enter("rocksdb_eventlistener_create");
    // SAFETY: as for this function; there is no name.
    let state = unsafe { State::new(state, destructor, None) };
    crate::door::made(ListenerObject(Arc::new(CListener {
        state,
        flush_begin: on_flush_begin,
        flush_completed: on_flush_completed,
        compaction_begin: on_compaction_begin,
        compaction_completed: on_compaction_completed,
        part_begin: on_subcompaction_begin,
        part_completed: on_subcompaction_completed,
        ingested: on_external_file_ingested,
        error: on_background_error,
        stall: on_stall_conditions_changed,
        sealed: on_memtable_sealed,
    })))
}

/// Adds a listener, which the options take.
pub fn options_add_eventlistener(opt: &mut OptionsObject, listener: Option<Box<ListenerObject>>) {
    opt.0.listeners.extend(listener.map(|listener| listener.0 as Arc<dyn Listener>));
}

/// A database for the time of one call; null without one.
struct Lent(Option<Box<DbObject>>);

impl Lent {
    fn new(db: Option<&Database>) -> Lent {
        Lent(db.map(|db| Box::new(DbObject(db.clone()))))
    }

    fn shown(&mut self) -> Option<Shown<'_, DbObject>> {
        self.0.as_deref_mut().map(shown_mut)
    }
}

fn pointer(db: Option<&Shown<'_, DbObject>>) -> *mut DbObject {
    db.map_or(std::ptr::null_mut(), Shown::pointer)
}

impl CListener {
    fn flush(&self, on_flush: OnFlush, db: Option<&Database>, info: &FlushJobObject) {
        let Some(on_flush) = on_flush else { return };
        let mut lent = Lent::new(db);
        let (db, info) = (lent.shown(), shown(info));
        // SAFETY: the contract of the header; both objects live until the call returns.
        unsafe { on_flush(self.state.state, pointer(db.as_ref()), info.pointer()) };
    }

    fn compaction(&self, on_compaction: OnCompaction, db: Option<&Database>, info: &JobObject) {
        let Some(on_compaction) = on_compaction else { return };
        let mut lent = Lent::new(db);
        let (db, info) = (lent.shown(), shown(info));
        // SAFETY: as in `flush`.
        unsafe { on_compaction(self.state.state, pointer(db.as_ref()), info.pointer()) };
    }

    fn part(&self, on_part: OnPart, db: Option<&Database>, report: &Report) {
        // A move of tables is no work that parts share.
        let Some(on_part) = on_part.filter(|_| !report.trivial_move) else { return };
        let info = PartObject(JobObject::new(db, report.clone()));
        let info = shown(&info);
        // SAFETY: as in `flush`.
        unsafe { on_part(self.state.state, info.pointer()) };
    }

    fn error(&self, reason: u32, cause: &Error) {
        let Some(on_error) = self.error else { return };
        let mut status = StatusObject(Mutex::new(Some(cause.clone())));
        let status = shown_mut(&mut status);
        // SAFETY: as in `flush`.
        unsafe { on_error(self.state.state, reason, status.pointer()) };
    }

    fn stall(&self, before: i32, now: i32) {
        let Some(on_stall) = self.stall else { return };
        let info = StallObject { before: ConditionObject(before), now: ConditionObject(now) };
        let info = shown(&info);
        // SAFETY: as in `flush`.
        unsafe { on_stall(self.state.state, info.pointer()) };
    }
}

impl Listener for CListener {
    fn on_notice(&self, db: Option<&Database>, notice: &Notice) {
        match notice {
            Notice::FlushBegin(report) => {
                self.flush(self.flush_begin, db, &FlushJobObject::new(db, report.clone()));
            }
            Notice::FlushCompleted(report) => {
                self.flush(self.flush_completed, db, &FlushJobObject::new(db, report.clone()));
            }
            Notice::CompactionBegin(report) => {
                self.compaction(self.compaction_begin, db, &JobObject::new(db, report.clone()));
                self.part(self.part_begin, db, report);
            }
            Notice::CompactionCompleted(report) => {
                self.part(self.part_completed, db, report);
                self.compaction(self.compaction_completed, db, &JobObject::new(db, report.clone()));
            }
            Notice::Ingested(report) => {
                let Some(on_ingested) = self.ingested else { return };
                let (mut lent, info) = (Lent::new(db), IngestedObject::new(db, report.clone()));
                let (db, info) = (lent.shown(), shown(&info));
                // SAFETY: as in `flush`.
                unsafe { on_ingested(self.state.state, pointer(db.as_ref()), info.pointer()) };
            }
            Notice::MemtableSealed(report) => {
                let Some(on_sealed) = self.sealed else { return };
                let report = shown(report);
                // SAFETY: as in `flush`.
                unsafe { on_sealed(self.state.state, report.pointer()) };
            }
            Notice::StallChanged { before, now } => self.stall(*before, *now),
            Notice::BackgroundError { reason, cause } => self.error(*reason, cause),
            // C has no function for them.
            Notice::TableCreated(_) | Notice::TableDeleted(_) => {}
        }
    }
}

/// The error of the background work.
///
/// # Errors
/// That error, unless the program has reset it.
pub fn status_ptr_get_error(status: &StatusObject) -> Result<()> {
    let error = status.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    error.map_or(Ok(()), Err)
}

/// Forgets the error of the object. The state of the database stays: the engine retries by itself.
pub fn reset_status(status: &StatusObject) {
    *status.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// The family whose writers change their pace: `default`, because all families of a database have one pace.
pub fn writestallinfo_cf_name(_: &StallObject) -> Option<&[u8]> {
    Some(b"default")
}

/// The pace now.
pub fn writestallinfo_cur(info: &StallObject) -> Option<&ConditionObject> {
    Some(&info.now)
}

/// The pace before.
pub fn writestallinfo_prev(info: &StallObject) -> Option<&ConditionObject> {
    Some(&info.before)
}
