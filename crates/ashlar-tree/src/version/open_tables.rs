//! The open tables of a database. The first read of a table opens it; it is closed when other tables need its place.
//!
//! ```text
//! FileMeta.table: slot ── TableReader ── CountedFile ── counts in `descriptors`
//!    ^ weakly
//! ring: open files; the hand gives those that were read since it last passed a second chance
//! ```
//! 1. A descriptor is counted before its file is opened. A thread that would pass the limit first closes tables without a
//!    reader. Tables with a reader stay open, so only tables of running operations exceed the limit. An idle iterator is not
//!    a running operation. It looks the table up again when it moves to another block.
//! 2. Index, filter and block slots are freed with the table, and loaded again at the next read. So when the memory budget is
//!    short, cold tables are closed. A sixteenth of the cap is left to tables in use.
//!
//! Source: RocksDB `db/table_cache.cc`, `cache/clock_cache.cc` (behaviour).

use super::FileMeta;
use ashlar_base::error::IoKind;
use ashlar_base::memory::MemoryUse;
use ashlar_base::{ErrorKind, Result};
use ashlar_cache::FramePool;
use ashlar_env::ReadFile;
use ashlar_sync::atomic::{AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Weak};

/// This part of the cap is not taken from tables: to open them again for every read would be worse.
const TABLES_LEAST: usize = 16;

/// The open tables of a database. All counts are relaxed: they order nothing.
pub struct OpenTables {
    pool: Arc<FramePool>,
    /// Descriptors that may be in use.
    limit: AtomicUsize,
    /// Descriptors in use.
    descriptors: Arc<AtomicUsize>,
    ring: Mutex<VecDeque<Weak<FileMeta>>>,
}

impl OpenTables {
    /// None yet; their blocks will live in `pool`. All of them stay open once they are.
    pub fn new(pool: Arc<FramePool>) -> Arc<OpenTables> {
        Arc::new(OpenTables {
            pool,
            limit: AtomicUsize::new(usize::MAX),
            descriptors: Arc::default(),
            ring: Mutex::new(Rank::Cache, VecDeque::new()),
        })
    }

    /// From now on closes tables without a reader when the budget of the pool is short. Once.
    pub fn heed_shortage(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        if let Some(budget) = self.pool.budget() {
            budget.on_shortage(move || {
                if let Some(tables) = weak.upgrade() {
                    tables.relieve();
                }
            });
        }
    }

    fn relieve(&self) {
        let Some(budget) = self.pool.budget() else { return };
        let least = budget.cap() / TABLES_LEAST;
        let may_go = || budget.is_short() && budget.held(MemoryUse::Tables) > least;
        if may_go() {
            let mut looks = self.looks();
            while may_go() && self.close_one(&mut looks) {}
        }
    }

    /// Where their blocks live.
    pub fn pool(&self) -> &Arc<FramePool> {
        &self.pool
    }

    /// Descriptors in use for tables.
    pub fn descriptors(&self) -> usize {
        self.descriptors.load(Ordering::Relaxed)
    }

    /// Sets how many descriptors tables may use (RocksDB's `max_open_files`); less than 0: any number. What is above it
    /// is closed now.
    pub fn set_limit(&self, max_open_files: i64) {
        let limit = usize::try_from(max_open_files).unwrap_or(usize::MAX);
        self.limit.store(limit, Ordering::Relaxed);
        self.close_down_to(limit);
    }

    /// Closes an eighth of the tables, two at least, if they have no reader: others lack descriptors.
    pub fn close_some(&self) {
        let open = self.descriptors();
        self.close_down_to(open.saturating_sub((open / 8).max(2)));
    }

    /// Does what takes a descriptor. When the process has none left, tables are closed and it is tried once more.
    ///
    /// # Errors
    /// As `open`.
    pub fn give_way_to<T>(&self, mut open: impl FnMut() -> Result<T>) -> Result<T> {
        match open() {
            Err(e) if e.kind() == ErrorKind::Io(IoKind::TooManyFiles) => {
                self.close_some();
                open()
            }
            other => other,
        }
    }

    /// Opens a table's file through `open`, within the limit.
    pub(super) fn open_file(
        &self,
        open: impl FnMut() -> Result<Arc<dyn ReadFile>>,
    ) -> Result<Arc<dyn ReadFile>> {
        let descriptor = Descriptor::new(&self.descriptors);
        self.close_down_to(self.limit.load(Ordering::Relaxed));
        let file = self.give_way_to(open)?;
        Ok(Arc::new(CountedFile { file, _descriptor: descriptor }))
    }

    /// The slot of a file was filled.
    pub(super) fn entered(&self, file: Weak<FileMeta>) {
        let open = self.descriptors();
        let mut ring = self.ring.lock();
        ring.push_back(file);
        // Files that are gone with their versions leave when they are half of the ring.
        if ring.len() > 64 + 2 * open {
            ring.retain(|file| file.strong_count() > 0);
        }
    }

    /// Closes tables without a reader until at most so many descriptors are in use.
    fn close_down_to(&self, most: usize) {
        if self.descriptors() <= most {
            return;
        }
        let mut looks = self.looks();
        while self.descriptors() > most && self.close_one(&mut looks) {}
    }

    /// Enough for every file to lose its second chance.
    fn looks(&self) -> usize {
        2 * self.ring.lock().len()
    }

    /// Moves the hand until it has closed a table without a reader. False after so many `looks`.
    fn close_one(&self, looks: &mut usize) -> bool {
        while *looks > 0 {
            *looks -= 1;
            let popped = self.ring.lock().pop_front();
            let Some(entry) = popped else { return false };
            let Some(file) = entry.upgrade() else { continue };
            let unused = if file.take_touch() { None } else { file.table.take_unused() };
            match unused {
                // It ends here, outside of every lock.
                Some(_table) => return true,
                None => self.ring.lock().push_back(entry),
            }
        }
        false
    }
}

impl std::fmt::Debug for OpenTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenTables({} descriptors)", self.descriptors())
    }
}

/// One descriptor, counted as long as it lives.
#[derive(Debug)]
struct Descriptor(Arc<AtomicUsize>);

impl Descriptor {
    fn new(count: &Arc<AtomicUsize>) -> Descriptor {
        count.fetch_add(1, Ordering::Relaxed);
        Descriptor(Arc::clone(count))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A table's file that counts as a descriptor.
#[derive(Debug)]
struct CountedFile {
    // Before the count: what is not counted is closed.
    file: Arc<dyn ReadFile>,
    _descriptor: Descriptor,
}

impl ReadFile for CountedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}
