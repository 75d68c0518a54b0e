//! Opens the table files of a family by number.
//!
//! A table is called `N.sst`, or `N.ldb` when LevelDB wrote it; the first name is tried first.
//! Source: RocksDB `db/table_cache.cc`.

use super::{FileMeta, OpenTables, TableCounts};
use crate::blobs::{BlobFiles, BlobMap, CountInto};
use ashlar_base::ext::prefix_extractor::PrefixExtractor;
use ashlar_base::memory::MemoryBudget;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{Error, FileNumber, Order, Result};
use ashlar_env::{Clock, Env, Fs, ReadFile};
use ashlar_format::filename::FileKind;
use ashlar_format::table::{Footer, Properties};
use ashlar_format::version_edit::NewFile;
use ashlar_table::{ReaderOptions, TableReader, TableSurvey, Windows, unique_id_bytes, with_proved_footer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

/// The directory of a family's tables, and the way they are read.
#[derive(Debug)]
pub struct Tables {
    // Only the file system: readers may outlive the database, and must not keep its threads alive.
    fs: Arc<dyn Fs>,
    /// What limits of reads are compared with.
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    open: Arc<OpenTables>,
    order: Order,
    /// Shared with the blob files of each version.
    statistics: CountInto,
    prefix_extractor: OnceLock<PrefixExtractor>,
}

impl Tables {
    /// Tables in `dir`, with keys in `order`, open among those of `open`.
    pub fn new(env: Env, dir: PathBuf, open: Arc<OpenTables>, order: Order) -> Arc<Tables> {
        let (statistics, prefix_extractor) = (CountInto::default(), OnceLock::new());
        Arc::new(Tables { fs: env.fs, clock: env.clock, dir, open, order, statistics, prefix_extractor })
    }

    /// Sets the family's prefix extractor, which tables that are opened after the call may name. Call it once.
    pub fn extract_with(&self, extractor: &PrefixExtractor) {
        let _ = self.prefix_extractor.set(extractor.clone());
    }

    /// Sets the statistics for tables that are opened from now on. Call it once.
    pub fn count_into(&self, statistics: &Arc<Statistics>) {
        let _ = self.statistics.set(Arc::clone(statistics));
    }

    /// The statistics, if they were set.
    #[inline]
    pub fn statistics(&self) -> Option<&Statistics> {
        self.statistics.get().map(|s| &**s)
    }

    /// The budget that the memory of the tables' blocks and indexes is charged to, if there is one.
    pub fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.open.pool().budget()
    }

    /// The buffers that compactions read through.
    pub fn windows(&self) -> Arc<Windows> {
        self.open.windows()
    }

    /// The database's part of the cap on memory, if there is a cap.
    pub fn memory_share(&self) -> Option<usize> {
        self.open.memory_share()
    }

    /// See [`OpenTables::large_indexes`].
    pub fn large_indexes(&self) -> Option<usize> {
        self.open.large_indexes()
    }

    /// The clock that limits of reads are compared with.
    #[inline]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The order of the keys.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The blob files that entries of a version point to.
    pub(super) fn blob_files(&self, files: BlobMap) -> Arc<BlobFiles> {
        let (fs, statistics) = (Arc::clone(&self.fs), Arc::clone(&self.statistics));
        Arc::new(BlobFiles::new(fs, self.dir.clone(), files).counted_into(statistics))
    }

    /// The directory of the files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the table that this MANIFEST entry describes.
    ///
    /// # Errors
    /// `Io`: the file is missing or cannot be read. `Corruption`: the file is not a table, or its size or unique id is
    /// not the MANIFEST's.
    pub fn open(&self, file: &NewFile) -> Result<Arc<TableReader>> {
        let statistics = self.statistics.get();
        let _time = statistics.and_then(|s| s.time(Distribution::TableOpenIoMicros));
        let opened = self.open_counted(file);
        if let Some(statistics) = statistics {
            statistics.tick(if opened.is_ok() { Ticker::NoFileOpens } else { Ticker::NoFileErrors });
        }
        opened
    }

    /// Opens the table of `file` and puts it into the file's slot. If another thread was faster, returns that thread's
    /// table.
    pub(super) fn open_to_keep(&self, file: &FileMeta) -> Result<Arc<TableReader>> {
        let opened = self.open(&file.file)?;
        file.note_counts(TableCounts::of(opened.properties()));
        Ok(self.keep(file, opened))
    }

    /// Puts an open table into the slot of its file. Returns the table that is then in the slot.
    pub fn keep(&self, file: &FileMeta, opened: Arc<TableReader>) -> Arc<TableReader> {
        let (table, ours) = file.table.fill(opened);
        if ours {
            self.open.entered(Weak::clone(&file.me));
        }
        table
    }

    fn open_counted(&self, file: &NewFile) -> Result<Arc<TableReader>> {
        let opened = self.open_file(file.number)?;
        let table = TableReader::open(opened, file.size, self.options(file))?;
        check_id(file, table.properties(), table.path())?;
        Ok(table)
    }

    /// The table, if its footer is damaged, or the file has another length, and the rest of the file proves what the footer said.
    ///
    /// # Errors
    /// As [`Tables::open`].
    pub fn open_proved(&self, file: &NewFile) -> Result<Option<Arc<TableReader>>> {
        let file_now = self.open_file(file.number)?;
        let Some(whole) = with_proved_footer(&file_now, Some(file.size))? else { return Ok(None) };
        let table = TableReader::open(whole, file.size, self.options(file))?;
        check_id(file, table.properties(), table.path())?;
        Ok(Some(table))
    }

    /// The properties of the table, without its index and filter.
    ///
    /// # Errors
    /// As [`Tables::open`].
    pub fn survey(&self, file: &NewFile) -> Result<TableSurvey> {
        let opened = self.open_file(file.number)?;
        let path = opened.path().to_path_buf();
        let survey = TableSurvey::read(opened, file.size, self.options(file))?;
        check_id(file, &survey.properties, &path)?;
        Ok(survey)
    }

    /// The footer of that table.
    ///
    /// # Errors
    /// `Io`. `Corruption`: the file has no footer.
    pub fn footer(&self, file: &NewFile) -> Result<Footer> {
        let opened = self.open_file(file.number)?;
        let size = opened.len();
        let start = size.saturating_sub(Footer::LEN as u64);
        let mut tail = vec![0; usize::try_from(size - start).unwrap_or_default()];
        opened.read_exact_at(&mut tail, start)?;
        let decoded = Footer::decode(&tail, size).map_err(|e| e.in_file(opened.path(), start))?;
        Ok(decoded.0)
    }

    fn options(&self, file: &NewFile) -> ReaderOptions {
        ReaderOptions {
            largest_seq: Some(file.largest_seq),
            statistics: self.statistics.get().cloned(),
            prefix_extractor: self.prefix_extractor.get().cloned(),
            ..ReaderOptions::new(self.order.clone(), Arc::clone(self.open.pool()), file.number)
        }
    }

    /// The path of a table: `N.sst` or `N.ldb`, whichever exists.
    pub fn path_of(&self, number: FileNumber) -> PathBuf {
        let ldb = self.dir.join(FileKind::LevelDbTable(number).name());
        let sst = self.dir.join(FileKind::Table(number).name());
        match self.fs.metadata(&sst) {
            Ok(None) if matches!(self.fs.metadata(&ldb), Ok(Some(_))) => ldb,
            _ => sst,
        }
    }

    fn open_file(&self, number: FileNumber) -> Result<Arc<dyn ReadFile>> {
        self.open.open_file(|| self.open_by_name(number))
    }

    fn open_by_name(&self, number: FileNumber) -> Result<Arc<dyn ReadFile>> {
        let sst = self.dir.join(FileKind::Table(number).name());
        match self.fs.open_read(&sst) {
            Err(missing) if missing.is_not_found() => {
                let ldb = self.dir.join(FileKind::LevelDbTable(number).name());
                match self.fs.open_read(&ldb) {
                    Err(e) if e.is_not_found() => Err(missing),
                    other => other,
                }
            }
            other => other,
        }
    }
}

/// Checks that the table is the one that the MANIFEST means, if both have a unique id.
fn check_id(file: &NewFile, said: &Properties, path: &Path) -> Result<()> {
    match file.unique_id.filter(|id| *id != [0; 16]) {
        Some(id) if own_id(said) != Some(id) && !planted(Bug::OtherTableTaken) => Err(Error::corruption(
            "the table's unique id differs from the one in the MANIFEST; the file was replaced",
        )
        .at_path(path)
        .damaged_file_hint()),
        _ => Ok(()),
    }
}

/// The unique id, computed from a table's properties about its origin.
fn own_id(said: &Properties) -> Option<[u8; 16]> {
    let (db, session) = (said.db_id.as_deref()?, said.db_session_id.as_deref()?);
    Some(unique_id_bytes(db, session, said.original_file_number?))
}
