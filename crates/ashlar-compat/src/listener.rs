//! Listeners of the caller: each event with what RocksDB's listeners say about it.
//!
//! 1. A listener gets the database of the event, once the open has returned.
//! 2. The listener of the engine does not keep the database open.
//! 3. RocksDB tells of the parts of a compaction too. Here a compaction counts as one part, whose figures are the sums.
//!
//! Source: RocksDB `include/rocksdb/listener.h`.

use crate::compactions::{Blobs, NamedFile, Report, table_path};
use crate::database::{Database, WeakDatabase};
use crate::status::paused;
use ashlardb::{
    CompactionEvent, Error, ErrorKind, Event, EventListener, Family, FileEvent, FileNumber, FlushEvent,
    HeldTables, IngestEvent, StallCondition, StoredProperties,
};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A flush that begins or has ended.
#[derive(Clone, Debug, Default)]
pub struct FlushReport {
    /// Its number among the flushes and compactions since the open.
    pub job: i32,
    /// The name of the family.
    pub family: String,
    /// The number of the family.
    pub family_id: u32,
    /// The number of the table; 0: none is written yet, or no entry was left.
    pub number: FileNumber,
    /// The path of the table; empty without one.
    pub path: String,
    /// The blob files that it wrote.
    pub blobs: Vec<Blobs>,
    /// Level 0 has so many tables now that writers are slowed down.
    pub slowdown: bool,
    /// Level 0 has so many tables now that writers wait.
    pub stop: bool,
    /// The smallest and the largest sequence number in the table.
    pub sequences: (u64, u64),
    /// RocksDB's number of the compression of blobs.
    pub blob_compression: u32,
    /// A caller waits for a flush of the database. Other reasons of a flush are not known here.
    pub requested: bool,
}

impl FlushReport {
    fn of(event: &FlushEvent, dir: &Path, db: Option<&Database>) -> FlushReport {
        let family = db.and_then(|db| db.db().family(&event.family).ok());
        let family = family.as_ref();
        let number = event.tables.first().copied();
        let options = family.map(Family::options);
        let options = options.as_deref();
        let level0 = event.levels.first().copied().unwrap_or(0);
        FlushReport {
            job: i32::try_from(event.job).unwrap_or(i32::MAX),
            family: event.family.clone(),
            family_id: event.family_id.0,
            number: number.unwrap_or(FileNumber(0)),
            path: number.map_or_else(String::new, |number| table_path(family, dir, number)),
            blobs: Blobs::all(dir, &event.blobs),
            slowdown: options.is_some_and(|options| level0 >= options.compaction.l0_slowdown),
            stop: options.is_some_and(|options| level0 >= options.compaction.l0_stop),
            sequences: (event.sequences.0.get(), event.sequences.1.get()),
            blob_compression: options.map_or(0, |options| options.blob.compression.byte().into()),
            requested: db.is_some_and(Database::has_requested_flush),
        }
    }
}

/// A file that was ingested.
#[derive(Clone, Debug, Default)]
pub struct IngestReport {
    /// The name of the family.
    pub family: String,
    /// The file as the caller named it.
    pub source: String,
    /// The number of its table.
    pub number: FileNumber,
    /// The path of its table.
    pub path: String,
    /// The sequence number of all its entries.
    pub sequence: u64,
}

impl IngestReport {
    fn of(event: &IngestEvent, dir: &Path, family: Option<&Family>) -> IngestReport {
        IngestReport {
            family: event.family.clone(),
            source: event.source.clone(),
            number: event.number,
            path: table_path(family, dir, event.number),
            sequence: event.sequence.get(),
        }
    }
}

/// A table that a flush or a compaction wrote.
#[derive(Clone, Debug, Default)]
pub struct NewTableReport {
    /// The number of the flush or compaction.
    pub job: i32,
    /// A compaction wrote it, not a flush.
    pub by_compaction: bool,
    /// The name of the family.
    pub family: String,
    /// The number of the table.
    pub number: FileNumber,
    /// The path of the table.
    pub path: String,
    /// The bytes of the table.
    pub bytes: u64,
}

/// A memtable that takes no more writes.
#[derive(Clone, Debug, Default)]
pub struct MemtableReport {
    /// The name of the family.
    pub family: String,
    /// The number of entries.
    pub entries: u64,
    /// The number of deletions among them.
    pub deletions: u64,
}

/// One event.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A flush begins.
    FlushBegin(FlushReport),
    /// A flush has ended, and its table is durable.
    FlushCompleted(FlushReport),
    /// A compaction begins.
    CompactionBegin(Report),
    /// A compaction has ended. Its change is durable, or the report has an error.
    CompactionCompleted(Report),
    /// A file that was written outside is in the tree.
    Ingested(IngestReport),
    /// A table was written, and is durable.
    TableCreated(NewTableReport),
    /// A table was unlinked: its path.
    TableDeleted(String),
    /// A memtable takes no more writes.
    MemtableSealed(MemtableReport),
    /// The pace of writers changed.
    StallChanged {
        /// RocksDB's number (`WriteStallCondition`) before.
        before: i32,
        /// The number now.
        now: i32,
    },
    /// Background work failed.
    BackgroundError {
        /// RocksDB's number (`BackgroundErrorReason`) for the work.
        reason: u32,
        /// The cause.
        cause: Error,
    },
}

/// Takes the notices of databases. Each call is on the thread of its event.
pub trait Listener: Send + Sync + Debug {
    /// One notice of the database `db`. Inside the call the database is read only.
    fn on_notice(&self, db: Option<&Database>, notice: &Notice);

    /// The object of another language that it is, if that language asks for its objects.
    fn object(&self) -> Option<&dyn Any> {
        None
    }
}

/// The properties of one table.
#[derive(Clone, Debug, Default)]
pub struct TableReport {
    /// The path of the table.
    pub path: String,
    /// What the table says about itself.
    pub stored: StoredProperties,
    /// The properties of collectors, by name, those that RocksDB's own collectors give among them.
    pub collected: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl TableReport {
    /// The properties of a table of the family; `None`: the tree does not have the table now, or it cannot be read.
    pub(crate) fn read(family: &Family, number: FileNumber, path: &str) -> Option<TableReport> {
        Some(TableReport::of(family.properties_of_table(number).ok()??.stored, path))
    }

    /// The properties of a table.
    pub(crate) fn of(stored: StoredProperties, path: &str) -> TableReport {
        TableReport { path: path.to_owned(), collected: stored.collected_as_listed(), stored }
    }
}

/// The inputs of a compaction, whose properties a listener may ask for when the tree has other tables already.
#[derive(Clone, Debug)]
pub enum Inputs {
    /// Properties that were read before the compaction.
    Read(Vec<TableReport>),
    /// Tables that are kept until they are asked for.
    Held(Arc<HeldTables>),
}

impl Default for Inputs {
    fn default() -> Inputs {
        Inputs::Read(Vec::new())
    }
}

impl From<Vec<TableReport>> for Inputs {
    fn from(read: Vec<TableReport>) -> Inputs {
        Inputs::Read(read)
    }
}

impl Inputs {
    fn properties(&self, number: FileNumber, path: &str) -> Option<TableReport> {
        match self {
            Inputs::Read(tables) => tables.iter().find(|table| table.path == path).cloned(),
            Inputs::Held(tables) => {
                Some(TableReport::of(tables.properties_of_table(number).ok()??.stored, path))
            }
        }
    }
}

/// The properties of tables, read where a listener asks.
#[derive(Debug, Default)]
pub struct Tables {
    family: Option<Family>,
    inputs: Inputs,
    known: OnceLock<Vec<TableReport>>,
}

impl Tables {
    /// The tables of a family of the database, and the inputs of a compaction.
    pub fn new(db: Option<&Database>, family: &str, inputs: impl Into<Inputs>) -> Tables {
        let family = db.and_then(|db| db.db().family(family).ok());
        Tables { family, inputs: inputs.into(), known: OnceLock::new() }
    }

    /// The properties of these tables. A table that neither the inputs nor the tree have is left out.
    pub fn properties(&self, files: &[(FileNumber, &str)]) -> &[TableReport] {
        self.known.get_or_init(|| {
            let read = |(number, path): &(FileNumber, &str)| {
                let input = self.inputs.properties(*number, path);
                input.or_else(|| TableReport::read(self.family.as_ref()?, *number, path))
            };
            files.iter().filter_map(read).collect()
        })
    }
}

/// Tables of a database, by the events so far. The event of a new table has neither the number nor the kind of its work, so
/// the listeners hear of the table with the end of that work.
#[derive(Debug, Default)]
struct Known {
    /// The bytes of new tables of which no listener has heard, by number.
    created: BTreeMap<FileNumber, u64>,
    /// The paths of tables outside of the directory of the database. The event of a deleted table has its number only.
    elsewhere: BTreeMap<FileNumber, String>,
}

/// The inputs of a compaction that runs: as tables and by their names.
type Running = (Inputs, Vec<NamedFile>);
/// Compactions of which the inputs are kept, and requested flushes. One that a close interrupts has no event at its end, so its entry
/// stays. For a new entry beyond the limit, the oldest one is dropped.
const MOST_RUNNING: usize = 64;
/// New tables of which no listener has heard: more than one flush or compaction writes.
const MOST_CREATED: usize = 1 << 16;

/// The listeners of one open, as the engine has them.
#[derive(Debug)]
pub(crate) struct Telling {
    listeners: Vec<Arc<dyn Listener>>,
    dir: PathBuf,
    db: OnceLock<WeakDatabase>,
    /// The inputs of the running compactions, by job.
    running: Mutex<BTreeMap<i32, Running>>,
    /// The running flushes that a caller requested, by job. The caller may return before the listeners hear of the end.
    requested: Mutex<BTreeSet<i32>>,
    known: Mutex<Known>,
}

impl Telling {
    /// Listeners of the database in `dir`, which is not open yet.
    pub(crate) fn new(listeners: Vec<Arc<dyn Listener>>, dir: &Path) -> Telling {
        Telling {
            listeners,
            dir: dir.to_owned(),
            db: OnceLock::new(),
            running: Mutex::default(),
            requested: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// The open has returned this database.
    pub(crate) fn opened(&self, db: &Database) {
        // The first database is the only one.
        let _ = self.db.set(db.downgrade());
        for family in db.db().families() {
            for (number, path) in family.paths_of_tables().unwrap_or_default() {
                self.note_place(number, &path.to_string_lossy());
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the path of a table that is not in the directory of the database.
    fn note_place(&self, number: FileNumber, path: &str) {
        if Path::new(path).parent() != Some(&self.dir) {
            self.known().elsewhere.insert(number, path.to_owned());
        }
    }

    /// A table was written. The end of its work follows on the same thread.
    fn note_created(&self, db: Option<&Database>, file: &FileEvent) {
        let family = db.and_then(|db| db.db().family(&file.family).ok());
        self.note_place(file.number, &table_path(family.as_ref(), &self.dir, file.number));
        let mut known = self.known();
        // Of tables that were rewritten by hand no listener hears.
        if known.created.len() >= MOST_CREATED {
            known.created.pop_first();
        }
        known.created.insert(file.number, file.bytes);
    }

    /// The tables that a flush or a compaction has written.
    fn new_tables(&self, notice: &Notice) -> Vec<NewTableReport> {
        let (job, by_compaction, family, tables) = match notice {
            Notice::FlushCompleted(of) => (of.job, false, &of.family, vec![(of.number, of.path.as_str())]),
            Notice::CompactionCompleted(of) => {
                let outputs = of.outputs.iter().map(|table| (table.number, table.path.as_str()));
                (of.job, true, &of.family, outputs.collect())
            }
            _ => return Vec::new(),
        };
        let mut known = self.known();
        // A table that only changes its level is not new.
        let created = tables.into_iter().filter_map(|(number, path)| {
            let bytes = known.created.remove(&number)?;
            let (family, path) = (family.clone(), path.to_owned());
            Some(NewTableReport { job, by_compaction, family, number, path, bytes })
        });
        created.collect()
    }

    fn deleted_path(&self, number: FileNumber) -> String {
        let elsewhere = self.known().elsewhere.remove(&number);
        elsewhere.unwrap_or_else(|| table_path(None, &self.dir, number))
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<i32, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requested(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush_at_begin(&self, db: Option<&Database>, event: &FlushEvent) -> FlushReport {
        let report = FlushReport::of(event, &self.dir, db);
        if report.requested {
            let mut requested = self.requested();
            if requested.len() >= MOST_RUNNING {
                requested.pop_first();
            }
            requested.insert(report.job);
        }
        report
    }

    fn flush_at_end(&self, db: Option<&Database>, event: &FlushEvent) -> FlushReport {
        let report = FlushReport::of(event, &self.dir, db);
        let requested = self.requested().remove(&report.job);
        FlushReport { requested, ..report }
    }

    /// The report of a compaction that begins. Its inputs are kept until its end.
    fn report_at_begin(&self, family: Option<&Family>, event: &CompactionEvent) -> Report {
        let mut report = Report::of(event, &self.dir, family);
        let held = family.and_then(|family| family.hold_tables().ok());
        report.input_tables = held.map_or_else(Inputs::default, |held| Inputs::Held(Arc::new(held)));
        let mut running = self.running();
        if running.len() >= MOST_RUNNING {
            running.pop_first();
        }
        running.insert(report.job, (report.input_tables.clone(), report.inputs.clone()));
        drop(running);
        report
    }

    /// The report of a compaction that has ended. Its inputs are those of its begin.
    fn report_at_end(&self, family: Option<&Family>, event: &CompactionEvent) -> Report {
        let mut report = Report::of(event, &self.dir, family);
        let begun = self.running().remove(&report.job);
        if let Some((input_tables, inputs)) = begun {
            (report.input_tables, report.inputs) = (input_tables, inputs);
        }
        report
    }

    fn notice(&self, db: Option<&Database>, event: &Event) -> Option<Notice> {
        let family = |name: &str| db.and_then(|db| db.db().family(name).ok());
        let dir = &self.dir;
        Some(match event {
            Event::FlushBegin(flush) => Notice::FlushBegin(self.flush_at_begin(db, flush)),
            Event::FlushCompleted(flush) => Notice::FlushCompleted(self.flush_at_end(db, flush)),
            Event::CompactionBegin(event) => {
                Notice::CompactionBegin(self.report_at_begin(family(&event.family).as_ref(), event))
            }
            Event::CompactionCompleted(event) => {
                Notice::CompactionCompleted(self.report_at_end(family(&event.family).as_ref(), event))
            }
            Event::CompactionFailed { compaction, cause } => {
                let report = self.report_at_end(family(&compaction.family).as_ref(), compaction);
                let is_refused = db.is_some_and(Database::has_disabled_requests);
                let is_paused = report.manual && is_refused && cause.kind() == ErrorKind::Aborted;
                let error = Some(if is_paused { paused() } else { cause.clone() });
                Notice::CompactionCompleted(Report { error, ..report })
            }
            Event::FileIngested(event) => {
                let report = IngestReport::of(event, dir, family(&event.family).as_ref());
                self.note_place(report.number, &report.path);
                Notice::Ingested(report)
            }
            Event::TableFileCreated(file) => {
                self.note_created(db, file);
                return None;
            }
            Event::TableFileDeleted(file) => Notice::TableDeleted(self.deleted_path(file.number)),
            Event::MemtableSealed { family, entries, deletions, .. } => {
                Notice::MemtableSealed(MemtableReport {
                    family: family.clone(),
                    entries: *entries,
                    deletions: *deletions,
                })
            }
            Event::StallConditionsChanged { before, now } => {
                Notice::StallChanged { before: condition(*before), now: condition(*now) }
            }
            Event::BackgroundError { work, cause } => {
                Notice::BackgroundError { reason: error_reason(work), cause: cause.clone() }
            }
            _ => return None,
        })
    }
}

impl EventListener for Telling {
    fn on_event(&self, event: &Event) {
        let db = self.db.get().and_then(WeakDatabase::upgrade);
        let Some(notice) = self.notice(db.as_ref(), event) else { return };
        // As in RocksDB, a listener hears of the tables before the end of the work that wrote them.
        let tables = self.new_tables(&notice);
        for notice in tables.into_iter().map(Notice::TableCreated).chain([notice]) {
            self.listeners.iter().for_each(|listener| listener.on_notice(db.as_ref(), &notice));
        }
    }
}

/// RocksDB's number of a pace.
fn condition(condition: StallCondition) -> i32 {
    match condition {
        StallCondition::Delayed => 0,
        StallCondition::Stopped => 1,
        StallCondition::Normal => 2,
    }
}

/// RocksDB's number for the work that failed. RocksDB has no number for a purge and other work on files: they count as flushes.
fn error_reason(work: &str) -> u32 {
    match work {
        "compaction" => 1,
        "log" | "next log" | "log's room" => 2,
        "MANIFEST" | "CURRENT" => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Mode;
    use crate::options::Options;
    use ashlar_format::filename::FileKind;
    use ashlardb::{CompactRangeOptions, Write as _};

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn on_notice(&self, _: Option<&Database>, notice: &Notice) {
            let line = match notice {
                Notice::TableCreated(table) => format!("created {} of {} bytes", table.path, table.bytes),
                Notice::TableDeleted(path) => format!("deleted {path}"),
                _ => return,
            };
            self.0.lock().unwrap().push(line);
        }
    }

    /// Regression: the notice of a deleted table named the directory of the database, wherever the table had been.
    #[test]
    fn a_table_is_deleted_where_it_was_created() {
        let dir = tempfile::tempdir().unwrap();
        let (path, tables) = (dir.path().join("db"), dir.path().join("tables"));
        let heard = Arc::new(Heard::default());
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        options
            .texts
            .set_text("db_paths", format!("{{{{path={};target_size=1000000000}}}}", tables.display()));
        options.listeners.push(Arc::<Heard>::clone(&heard));
        let open = || Database::open(&options, &path, Mode::Write, &[]).unwrap().0;
        let db = open();
        let family = db.default_family();
        let mut expected = Vec::new();
        let mut made = |family: &Family| {
            let file = family.live_files().unwrap().pop().unwrap();
            let path = tables.join(FileKind::Table(file.number).name());
            let bytes = db.env().unwrap().fs.metadata(&path).unwrap().unwrap().len;
            expected.push(format!("created {} of {bytes} bytes", path.display()));
            path
        };
        family.put("a", "1").unwrap();
        family.flush().unwrap();
        let first = made(family);
        family.put("a", "2").unwrap();
        family.compact_range(.., CompactRangeOptions::new()).unwrap();
        let last = made(family);
        db.db().wait_for_background().unwrap();
        let lines = || heard.0.lock().unwrap().clone();
        assert!(expected.iter().all(|line| lines().contains(line)), "{expected:?} in {:?}", lines());
        assert!(lines().contains(&format!("deleted {}", first.display())), "{:?}", lines());
        assert!(!lines().iter().any(|line| line.starts_with("deleted") && line.contains("/db/")));
        db.db().close().unwrap();
        // Also one that the open has found.
        let db = open();
        db.default_family().delete("a").unwrap();
        db.default_family().compact_range(.., CompactRangeOptions::new()).unwrap();
        db.db().wait_for_background().unwrap();
        assert!(lines().contains(&format!("deleted {}", last.display())), "{:?}", lines());
    }
}
