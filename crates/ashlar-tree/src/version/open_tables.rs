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
use ashlar_table::Windows;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Weak};

/// The part of the cap that tables may always use. With less, every read would open its tables again.
const TABLES_LEAST: usize = 16;

/// The part of a database's share of the cap that indexes and filters may take before they count as large.
const INDEXES_MOST: usize = 8;

/// The part of a database's share of the cap that idle buffers of compactions may take.
const WINDOWS_MOST: usize = 64;

/// Answers a database's part of the memory cap.
type Share = Box<dyn Fn() -> usize + Send + Sync>;

/// The open tables of a database. All counts are relaxed, because they order no other memory access.
pub struct OpenTables {
    pool: Arc<FramePool>,
    share: Option<Share>,
    /// The limit of descriptors.
    limit: AtomicUsize,
    /// Descriptors in use.
    descriptors: Arc<AtomicUsize>,
    ring: Mutex<VecDeque<Weak<FileMeta>>>,
    windows: Mutex<Weak<Windows>>,
}

impl OpenTables {
    /// A table cache without tables. Blocks of the tables go to `pool`. There is no limit, so all tables stay open.
    pub fn new(pool: Arc<FramePool>) -> Arc<OpenTables> {
        OpenTables::make(pool, None)
    }

    /// [`OpenTables::new`] of a database that shares its pool with others; `share` answers its part of the memory cap.
    pub fn with_share(
        pool: Arc<FramePool>,
        share: impl Fn() -> usize + Send + Sync + 'static,
    ) -> Arc<OpenTables> {
        OpenTables::make(pool, Some(Box::new(share)))
    }

    fn make(pool: Arc<FramePool>, share: Option<Share>) -> Arc<OpenTables> {
        Arc::new(OpenTables {
            pool,
            share,
            limit: AtomicUsize::new(usize::MAX),
            descriptors: Arc::default(),
            ring: Mutex::new(Rank::Inner, VecDeque::new()),
            windows: Mutex::new(Rank::Inner, Weak::new()),
        })
    }

    /// The part of the memory cap that the database has, if there is a cap.
    pub fn memory_share(&self) -> Option<usize> {
        match &self.share {
            Some(share) => Some(share()),
            None => self.pool.budget().map(|budget| budget.cap()),
        }
    }

    /// Indexes and filters of more bytes are large: not all of them may stay in memory. `None`: there is no cap.
    pub fn large_indexes(&self) -> Option<usize> {
        self.memory_share().map(|share| share / INDEXES_MOST)
    }

    /// Closes tables without a reader while the budget of the pool is short.
    pub fn relieve(&self) {
        let Some(budget) = self.pool.budget() else { return };
        let least = budget.cap() / TABLES_LEAST;
        let may_go = || budget.is_short() && budget.held(MemoryUse::Tables) > least;
        if budget.is_short()
            && let Some(windows) = self.windows_there()
        {
            windows.clear();
        }
        if may_go() {
            let mut looks = self.looks();
            while may_go() && self.close_one(&mut looks) {}
        }
    }

    fn windows_there(&self) -> Option<Arc<Windows>> {
        self.windows.lock().upgrade()
    }

    /// The pool of the tables' blocks.
    pub fn pool(&self) -> &Arc<FramePool> {
        &self.pool
    }

    /// The buffers that compactions read through: one value as long as anything uses it.
    pub fn windows(&self) -> Arc<Windows> {
        let most = self.memory_share().unwrap_or(usize::MAX) / WINDOWS_MOST;
        let mut windows = self.windows.lock();
        if let Some(there) = windows.upgrade() {
            return there;
        }
        let new = Arc::new(Windows::new(most));
        *windows = Arc::downgrade(&new);
        new
    }

    /// Descriptors in use for tables.
    pub fn descriptors(&self) -> usize {
        self.descriptors.load(Ordering::Relaxed)
    }

    /// Sets the limit of descriptors for tables (RocksDB's `max_open_files`); less than 0: no limit. Closes tables
    /// above the limit now.
    pub fn set_limit(&self, max_open_files: i64) {
        let limit = usize::try_from(max_open_files).unwrap_or(usize::MAX);
        self.limit.store(limit, Ordering::Relaxed);
        self.close_down_to(limit);
    }

    /// Closes an eighth of the tables without a reader, at least two, because other code needs descriptors.
    pub fn close_some(&self) {
        let open = self.descriptors();
        self.close_down_to(open.saturating_sub((open / 8).max(2)));
    }

    /// Calls `open`, which needs a descriptor. If the process has none left, closes tables and tries once more.
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

    /// Adds a file whose slot was filled to the ring.
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

    /// The number of steps in which every file loses its second chance.
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
                // The table is dropped here, outside every lock.
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
    // The file is dropped before the count, so that an uncounted file is closed.
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

    fn expect_random(&self) {
        self.file.expect_random();
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.file.will_read(offset, len);
    }
}
