//! Listeners of Java, and what they are shown about compactions.
//!
//! 1. A listener hears of the events that it enabled, on the thread of the event.
//! 2. An exception of a listener is ignored: the engine's work continues.
//! 3. A call is given a `RocksDB` object that does not own the database. Its handle ends with the call.
//! 4. The engine tells of flushes, compactions, tables, ingestions, sealed memtables, stalls and background errors, and this library of
//!    closed handles of families. Of other events a listener hears nothing.

use crate::callbacks::{ListenerObject, contained};
use crate::classes::{Class, Method};
use crate::db::DbObject;
use crate::door::{Result, array_of};
use crate::env::{Env, Global, Local, boolean, byte, int, long, object};
use crate::exception::status_object;
use crate::handles::{self, Lent, Object};
use crate::metadata::table_properties;
use crate::settings::{OptionsObject, Shared};
use ashlar_compat::compactions::Report;
use ashlar_compat::database::Database;
use ashlar_compat::listener::{FlushReport, Listener, NewTableReport, Notice, Tables};
use ashlar_compat::status::{Status, status};
use ashlardb::{FileNumber, StoredProperties};
use jni_sys::jvalue;
use std::any::Any;
use std::sync::Arc;

static LISTENER: Class = Class::new("org/rocksdb/AbstractEventListener");

/// A listener of Java. `enabled`: a bit for each kind of event, by Java's numbers.
#[derive(Debug)]
struct JavaListener {
    object: Global,
    enabled: i64,
}

/// Java's numbers of events.
const FLUSH_COMPLETED: u32 = 0;
const FLUSH_BEGIN: u32 = 1;
const TABLE_DELETED: u32 = 2;
const COMPACTION_BEGIN: u32 = 3;
const COMPACTION_COMPLETED: u32 = 4;
const TABLE_CREATED: u32 = 5;
const TABLE_STARTED: u32 = 6;
const MEMTABLE_SEALED: u32 = 7;
const HANDLE_CLOSED: u32 = 8;
const INGESTED: u32 = 9;
const BACKGROUND_ERROR: u32 = 10;
const STALL_CHANGED: u32 = 11;

/// The bits of the events that a notice stands for.
fn bits(notice: &Notice) -> i64 {
    let number = match notice {
        Notice::TableCreated(_) => return 1 << TABLE_CREATED | 1 << TABLE_STARTED,
        Notice::TableDeleted(_) => TABLE_DELETED,
        Notice::FlushCompleted(_) => FLUSH_COMPLETED,
        Notice::FlushBegin(_) => FLUSH_BEGIN,
        Notice::CompactionBegin(_) => COMPACTION_BEGIN,
        Notice::CompactionCompleted(_) => COMPACTION_COMPLETED,
        Notice::MemtableSealed(_) => MEMTABLE_SEALED,
        Notice::Ingested(_) => INGESTED,
        Notice::BackgroundError { .. } => BACKGROUND_ERROR,
        Notice::StallChanged { .. } => STALL_CHANGED,
    };
    1 << number
}

impl Listener for JavaListener {
    fn on_notice(&self, db: Option<&Database>, notice: &Notice) {
        if self.enabled & bits(notice) != 0 {
            // Exceptions of listeners are ignored; the engine's work continues.
            let _ = contained(|env| self.tell(env, db, notice));
        }
    }

    fn object(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl JavaListener {
    fn tell(&self, env: Env<'_>, db: Option<&Database>, notice: &Notice) -> Result<()> {
        static FLUSHED: Method = Method::new("onFlushCompletedProxy", "(JLorg/rocksdb/FlushJobInfo;)V");
        static FLUSH: Method = Method::new("onFlushBeginProxy", "(JLorg/rocksdb/FlushJobInfo;)V");
        static COMPACTED: Method =
            Method::new("onCompactionCompletedProxy", "(JLorg/rocksdb/CompactionJobInfo;)V");
        static COMPACTION: Method =
            Method::new("onCompactionBeginProxy", "(JLorg/rocksdb/CompactionJobInfo;)V");
        static SEALED: Method = Method::new("onMemTableSealed", "(Lorg/rocksdb/MemTableInfo;)V");
        static INGESTED: Method =
            Method::new("onExternalFileIngestedProxy", "(JLorg/rocksdb/ExternalFileIngestionInfo;)V");
        static ERROR: Method = Method::new("onBackgroundErrorProxy", "(BLorg/rocksdb/Status;)V");
        static STALLED: Method = Method::new("onStallConditionsChanged", "(Lorg/rocksdb/WriteStallInfo;)V");
        match notice {
            Notice::TableCreated(report) => self.table(env, db, report),
            Notice::TableDeleted(path) => {
                static INFO: Class = Class::new("org/rocksdb/TableFileDeletionInfo");
                static NEW: Method =
                    Method::constructor("(Ljava/lang/String;Ljava/lang/String;ILorg/rocksdb/Status;)V");
                static DELETED: Method =
                    Method::new("onTableFileDeleted", "(Lorg/rocksdb/TableFileDeletionInfo;)V");
                let status = status_object(env, &Status::OK)?;
                let given = [name_of(env, db)?, object(env.new_text(path)?), int(0), object(status)];
                let info = INFO.make(env, &NEW, &given)?;
                self.call(env, &DELETED, &[object(info)])
            }
            Notice::FlushCompleted(report) => self.about(env, db, &FLUSHED, flush_info(env, db, report)?),
            Notice::FlushBegin(report) => self.about(env, db, &FLUSH, flush_info(env, db, report)?),
            Notice::CompactionCompleted(report) => self.compaction(env, db, &COMPACTED, report),
            Notice::CompactionBegin(report) => self.compaction(env, db, &COMPACTION, report),
            Notice::MemtableSealed(report) => {
                static INFO: Class = Class::new("org/rocksdb/MemTableInfo");
                static NEW: Method = Method::constructor("(Ljava/lang/String;JJJJ)V");
                let family = object(env.new_text(&report.family)?);
                let counts = [long(0), long(0), long(signed(report.entries)), long(signed(report.deletions))];
                let info = INFO.make(env, &NEW, &[&[family], &counts[..]].concat())?;
                self.call(env, &SEALED, &[object(info)])
            }
            Notice::Ingested(report) => {
                static INFO: Class = Class::new("org/rocksdb/ExternalFileIngestionInfo");
                static NEW: Method = Method::constructor(
                    "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;JLorg/rocksdb/TableProperties;)V",
                );
                let texts = [&report.family, &report.source, &report.path];
                let texts = texts.map(|text| env.new_text(text).map(object));
                let mut given = texts.into_iter().collect::<Result<Vec<jvalue>>>()?;
                let table = stored(db, &report.family, report.number, &report.path);
                given.push(long(signed(report.sequence)));
                given.push(object(table_properties(env, &report.family, &table)?));
                let info = INFO.make(env, &NEW, &given)?;
                self.about(env, db, &INGESTED, info)
            }
            Notice::BackgroundError { reason, cause } => {
                let reason = byte(i8::try_from(*reason).unwrap_or(0));
                let status = status_object(env, &status(cause))?;
                self.call(env, &ERROR, &[reason, object(status)])
            }
            Notice::StallChanged { before, now } => {
                static INFO: Class = Class::new("org/rocksdb/WriteStallInfo");
                static NEW: Method = Method::constructor("(Ljava/lang/String;BB)V");
                let condition = |number: &i32| byte(i8::try_from(*number).unwrap_or(0));
                // The pace is that of all families.
                let given = [object(env.new_text("default")?), condition(now), condition(before)];
                let info = INFO.make(env, &NEW, &given)?;
                self.call(env, &STALLED, &[object(info)])
            }
        }
    }

    fn call(&self, env: Env<'_>, method: &Method, given: &[jvalue]) -> Result<()> {
        env.call_void(self.object.local(env), method.of(env, &LISTENER)?, given)
    }

    /// Calls a method that is given the database too.
    fn about(&self, env: Env<'_>, db: Option<&Database>, method: &Method, info: Local<'_>) -> Result<()> {
        // It ends with the call, because Java does not own it.
        let lent = db.map(|db| Lent::new(DbObject::lent(db))).transpose()?;
        self.call(env, method, &[long(lent.as_ref().map_or(0, Lent::handle)), object(info)])
    }

    fn compaction(
        &self,
        env: Env<'_>,
        db: Option<&Database>,
        method: &Method,
        report: &Report,
    ) -> Result<()> {
        static INFO: Class = Class::new("org/rocksdb/CompactionJobInfo");
        static NEW: Method = Method::constructor("(J)V");
        let tables = Tables::new(db, &report.family, report.input_tables.clone());
        let lent = Lent::new(JobObject::of(report, tables))?;
        let info = INFO.make(env, &NEW, &[long(lent.handle())])?;
        self.about(env, db, method, info)
    }
}

impl JavaListener {
    /// A new table. The engine names a table when it is durable, so a listener hears of the beginning right before the end.
    fn table(&self, env: Env<'_>, db: Option<&Database>, report: &NewTableReport) -> Result<()> {
        static BRIEF: Class = Class::new("org/rocksdb/TableFileCreationBriefInfo");
        static NEW_BRIEF: Method =
            Method::constructor("(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;IB)V");
        static STARTED: Method =
            Method::new("onTableFileCreationStarted", "(Lorg/rocksdb/TableFileCreationBriefInfo;)V");
        static INFO: Class = Class::new("org/rocksdb/TableFileCreationInfo");
        static NEW: Method = Method::constructor(
            "(JLorg/rocksdb/TableProperties;Lorg/rocksdb/Status;\
             Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;IB)V",
        );
        static CREATED: Method = Method::new("onTableFileCreated", "(Lorg/rocksdb/TableFileCreationInfo;)V");
        let [family, path] = [&report.family, &report.path].map(|text| env.new_text(text).map(object));
        // Java's numbers of reasons: a flush 0, a compaction 1.
        let reason = byte(i8::from(report.by_compaction));
        let brief = [name_of(env, db)?, family?, path?, int(report.job), reason];
        if self.enabled & (1 << TABLE_STARTED) != 0 {
            let info = BRIEF.make(env, &NEW_BRIEF, &brief)?;
            if self.call(env, &STARTED, &[object(info)]).is_err() {
                // An exception of one method keeps no other from its call.
                let _ = env.take_exception();
            }
        }
        if self.enabled & (1 << TABLE_CREATED) == 0 {
            return Ok(());
        }
        let table = stored(db, &report.family, report.number, &report.path);
        let properties = table_properties(env, &report.family, &table)?;
        let status = status_object(env, &Status::OK)?;
        let given = [long(signed(report.bytes)), object(properties), object(status)];
        let info = INFO.make(env, &NEW, &[&given[..], &brief].concat())?;
        self.call(env, &CREATED, &[object(info)])
    }

    fn handle_closed(&self, env: Env<'_>, handle: i64) -> Result<()> {
        static HANDLE: Class = Class::new("org/rocksdb/ColumnFamilyHandle");
        static NEW: Method = Method::constructor("(J)V");
        static CLOSED: Method =
            Method::new("onColumnFamilyHandleDeletionStarted", "(Lorg/rocksdb/ColumnFamilyHandle;)V");
        let closed = HANDLE.make(env, &NEW, &[long(handle)])?;
        self.call(env, &CLOSED, &[object(closed)])
    }
}

/// Tells listeners that the handle of a family is about to be closed.
pub fn tell_handle_closed(listeners: &[Arc<dyn Listener>], handle: i64) {
    let own = listeners.iter().filter_map(|listener| listener.object()?.downcast_ref::<JavaListener>());
    for listener in own.filter(|listener| listener.enabled & (1 << HANDLE_CLOSED) != 0) {
        // Exceptions of listeners are ignored.
        let _ = contained(|env| listener.handle_closed(env, handle));
    }
}

/// The directory of a database; empty before the open has returned.
fn name_of(env: Env<'_>, db: Option<&Database>) -> Result<jvalue> {
    let path = db.map_or_else(String::new, |db| db.path().to_string_lossy().into_owned());
    env.new_text(&path).map(object)
}

fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn stored(db: Option<&Database>, family: &str, number: FileNumber, path: &str) -> StoredProperties {
    let tables = Tables::new(db, family, Vec::new());
    tables.properties(&[(number, path)]).first().map(|table| table.stored.clone()).unwrap_or_default()
}

/// A `FlushJobInfo`.
fn flush_info<'a>(env: Env<'a>, db: Option<&Database>, report: &FlushReport) -> Result<Local<'a>> {
    static INFO: Class = Class::new("org/rocksdb/FlushJobInfo");
    static NEW: Method =
        Method::constructor("(JLjava/lang/String;Ljava/lang/String;JIZZJJLorg/rocksdb/TableProperties;B)V");
    // Java's numbers of reasons. Those of flushes that the engine began by itself are not known here.
    const OTHERS: i8 = 0;
    const MANUAL: i8 = 10;
    let table = stored(db, &report.family, report.number, &report.path);
    let given = [
        long(report.family_id.into()),
        object(env.new_text(&report.family)?),
        object(env.new_text(&report.path)?),
        long(0),
        int(report.job),
        boolean(report.slowdown),
        boolean(report.stop),
        long(signed(report.sequences.0)),
        long(signed(report.sequences.1)),
        object(table_properties(env, &report.family, &table)?),
        byte(if report.requested { MANUAL } else { OTHERS }),
    ];
    INFO.make(env, &NEW, &given)
}

/// `CompactionJobInfo`, also as the object that `compactFiles` fills in.
#[derive(Debug, Default)]
pub struct JobObject(Shared<Job>);

#[derive(Debug, Default)]
struct Job {
    report: Report,
    tables: Tables,
}

impl Object for JobObject {
    const NAME: &'static str = "CompactionJobInfo";
}

impl JobObject {
    fn of(report: &Report, tables: Tables) -> JobObject {
        JobObject(Shared::new(Job { report: report.clone(), tables }))
    }

    /// Fills in what a compaction did.
    pub fn fill(&self, report: &Report, tables: Tables) {
        *self.0.write() = Job { report: report.clone(), tables };
    }
}

/// `CompactionJobStats`.
#[derive(Debug, Default)]
pub struct StatsObject(Shared<Report>);

impl Object for StatsObject {
    const NAME: &'static str = "CompactionJobStats";
}

// Each function below is the body of the natives that the description names.

/// A listener of Java for these events.
pub fn new_listener(env: Env<'_>, this: Local<'_>, enabled: i64) -> Result<i64> {
    let listener = JavaListener { object: env.global(this)?, enabled };
    Ok(handles::keep(ListenerObject(Arc::new(listener)))?)
}

/// The listeners of options, as the objects of Java that they are.
pub fn event_listeners<'a>(env: Env<'a>, options: &OptionsObject) -> Result<Local<'a>> {
    let listeners = options.0.read().listeners.clone();
    array_of(env, LISTENER.get(env)?, &listeners, |listener| {
        let own = listener.object().and_then(|own| own.downcast_ref::<JavaListener>());
        // The reference that the library keeps ends with the listener.
        own.map_or(Ok(Local::NULL), |own| env.again(own.object.local(env)))
    })
}

/// What no compaction has filled in yet.
pub fn new_job() -> Result<i64> {
    Ok(handles::keep(JobObject::default())?)
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident -> $of:ty = |$report:ident| $figure:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(job: &JobObject) -> Result<$of> {
            let job = job.0.read();
            let $report = &job.report;
            Ok($figure)
        }
    )* };
}
figures! {
    /// The name of the family.
    family_name -> Vec<u8> = |report| report.family.as_bytes().to_vec();
    /// The number of the compaction.
    job_id -> i32 = |report| report.job;
    /// The level of the first input.
    base_input_level -> i32 = |report| report.inputs.first().map_or(0, |file| file.level);
    /// The level of the outputs.
    output_level -> i32 = |report| report.output_level;
    /// Why, by Java's number.
    reason -> i8 = |report| i8::try_from(report.reason).unwrap_or(0);
    /// The compression of the outputs, by Java's number.
    compression -> i8 = |report| i8::try_from(report.compression).unwrap_or(0);
    /// Threads have no number here.
    thread_id -> i64 = |_report| 0;
}

/// How it ended.
pub fn job_status<'a>(env: Env<'a>, job: &JobObject) -> Result<Local<'a>> {
    let error = job.0.read().report.error.clone();
    status_object(env, &error.as_ref().map_or(Status::OK, status))
}

fn paths<'a>(env: Env<'a>, job: &JobObject, of: impl Fn(&Report) -> Vec<String>) -> Result<Local<'a>> {
    let paths = of(&job.0.read().report);
    crate::classes::array_of_texts(env, &paths)
}

/// The paths of the inputs.
pub fn input_files<'a>(env: Env<'a>, job: &JobObject) -> Result<Local<'a>> {
    paths(env, job, |report| report.inputs.iter().map(|file| file.path.clone()).collect())
}

/// The paths of the outputs.
pub fn output_files<'a>(env: Env<'a>, job: &JobObject) -> Result<Local<'a>> {
    paths(env, job, |report| report.outputs.iter().map(|file| file.path.clone()).collect())
}

/// The properties of inputs and outputs, by their paths.
pub fn job_properties<'a>(env: Env<'a>, job: &JobObject) -> Result<Local<'a>> {
    let job = job.0.read();
    let files = job.report.inputs.iter().chain(&job.report.outputs);
    let named: Vec<(FileNumber, &str)> = files.map(|file| (file.number, file.path.as_str())).collect();
    let tables = job.tables.properties(&named);
    let entry = |table: &ashlar_compat::listener::TableReport| {
        Ok((env.new_text(&table.path)?, table_properties(env, &job.report.family, &table.stored)?))
    };
    crate::classes::hash_map(env, tables.iter().map(entry))
}

/// The figures of a compaction.
pub fn stats(job: &JobObject) -> Result<i64> {
    Ok(handles::keep(StatsObject(Shared::new(job.0.read().report.clone())))?)
}

/// Figures that are all zero.
pub fn new_stats() -> Result<i64> {
    Ok(handles::keep(StatsObject::default())?)
}

/// All figures are zero.
pub fn reset(stats: &StatsObject) -> Result<()> {
    *stats.0.write() = Report::default();
    Ok(())
}

/// Adds the figures of another compaction.
pub fn add(stats: &StatsObject, other: &StatsObject) -> Result<()> {
    // Read first: the two may be one object.
    let other = other.0.read().clone();
    stats.0.write().add(&other);
    Ok(())
}

macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident = |$report:ident| $figure:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(stats: &StatsObject) -> Result<i64> {
            let $report = stats.0.read();
            Ok($figure)
        }
    )* };
}
sums! {
    /// Microseconds.
    elapsed_micros = |report| signed(report.micros);
    /// Records of the inputs.
    input_records = |report| signed(report.input_records);
    /// Records of the outputs.
    output_records = |report| signed(report.output_records);
    /// Tables of the inputs.
    inputs = |report| i64::try_from(report.inputs.len()).unwrap_or(0);
    /// Tables of the inputs at the level of the outputs.
    inputs_at_output = |report| i64::try_from(report.inputs_at_output()).unwrap_or(0);
    /// Tables of the outputs.
    outputs = |report| i64::try_from(report.outputs.len()).unwrap_or(0);
    /// Bytes of the inputs.
    input_bytes = |report| signed(report.input_bytes);
    /// Bytes of the outputs.
    output_bytes = |report| signed(report.output_bytes);
    /// Records that newer ones hid.
    replaced = |report| signed(report.hidden_records);
    /// Deletions that had nothing left to hide.
    ended_deletions = |report| signed(report.ended_deletions);
}

/// Figures that the engine does not measure are zero, as in RocksDB without the detailed ones.
pub fn unmeasured(_: &StatsObject) -> Result<i64> {
    Ok(0)
}

/// Prefixes of keys are not kept.
pub fn no_prefix(_: &StatsObject) -> Result<Vec<u8>> {
    Ok(Vec::new())
}

/// Whether a caller requested it.
pub fn is_manual(stats: &StatsObject) -> Result<bool> {
    Ok(stats.0.read().manual)
}
