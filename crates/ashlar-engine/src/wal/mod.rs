//! The write-ahead log as the engine sees it: live files, oldest first, and what a sync must cover.
//!
//! 1. The bytes of a closed file are synced before any byte of a later file counts as durable, so that a prefix of all
//!    writes survives a power cut.
//! 2. The first sync of a file also syncs its directory entry.
//! 3. A file that continues another begins with a link to it (`LogLink`): a recovery that finds the newer file but not
//!    all of the older one stops between them.
//! 4. With `manual_wal_flush` only the current file ever buffers records: a switch writes them before the next file
//!    begins. So a killed process leaves a prefix of all writes, and the records of every immutable memtable are in files.
//! 5. When creating a WAL file fails, the retry reuses the file's number. Otherwise an unsynced, half-created file
//!    could remain between two WAL files with data, and recovery after a power cut would report corruption in the
//!    middle.
//! 6. A file is obsolete once every family's data in it is in tables that the MANIFEST names durably.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FileNumber, Result, SeqNum};
use ashlar_env::{Env, MemFs};
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::LogLink;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::{Framing, LogWriter};
use ashlar_recovery::PreparedSet;
use ashlar_sync::{Mutex, Rank};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Space that a WAL file reserves behind its records for deletions, which can free space on a full disk. It holds some
/// thousand deletions, or range deletions of any number of keys.
pub(crate) const ROOM_FOR_DELETIONS: u64 = 64 << 10;

/// A buffering WAL file holds back at most this many bytes plus one group of writes.
const BUFFER_BYTES: u64 = 1 << 20;

/// How the WAL files of a session are written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalShape {
    /// Records are compressed.
    pub(crate) compressed: bool,
    /// Records stay in the process until a flush, a sync, or the end of the file.
    pub(crate) buffered: bool,
    /// Records are stored into a mapping of the file where the file system offers one.
    pub(crate) mapped: bool,
}

/// One WAL file that is, or was, written to.
#[derive(Debug)]
pub(crate) struct Wal {
    log: LogWriter,
    dir: PathBuf,
    shape: WalShape,
    /// The end of what the file begins with: no write.
    begun: u64,
}

impl Wal {
    /// Creates the file; its directory entry becomes durable with the first sync.
    pub(crate) fn create(env: &Env, dir: &Path, number: FileNumber, shape: WalShape) -> Result<Wal> {
        let path = dir.join(FileKind::Wal(number).name());
        if number > FileNumber::MAX {
            return Err(Error::not_supported("all file numbers are used: a new WAL file needs one")
                .at_path(&path)
                .hint("Close the database and run a repair, which gives out lower numbers"));
        }
        let make = if shape.compressed { LogWriter::create_compressed } else { LogWriter::create };
        let log = make(Arc::clone(&env.fs), &path, number, Framing::Legacy)?;
        let log = log.buffering(if shape.buffered { BUFFER_BYTES } else { 0 }).mapped(shape.mapped);
        let begun = log.position();
        Ok(Wal { log, dir: dir.to_path_buf(), shape, begun })
    }

    /// An in-memory WAL that receives no record, for a database that takes no writes.
    pub(crate) fn idle(dir: &Path) -> Result<Wal> {
        let number = FileNumber(0);
        let log = LogWriter::create(Arc::new(MemFs::new()), Path::new("/idle"), number, Framing::Legacy)?;
        Ok(Wal { log, dir: dir.to_path_buf(), shape: WalShape::default(), begun: 0 })
    }

    /// Creates the file that continues `before`; its first batch has the sequence `next`. Recovery ignores the remains
    /// of a failed creation as long as no later WAL file has records (see [`WalSet::number_after`]).
    pub(crate) fn create_after(
        env: &Env,
        before: &Wal,
        number: FileNumber,
        (next, undecided): (SeqNum, &PreparedSet),
    ) -> Result<Wal> {
        let mut wal = Wal::create(env, &before.dir, number, before.shape)?;
        wal.log.limit_room_as(&before.log);
        wal.begin_at(next, Some(before.link()), undecided)?;
        Ok(wal)
    }

    /// Writes a batch that stores the next sequence, the link to the continued file, and copies of the undecided transactions.
    /// Syncs the file if there are any: the older file with their data may go from then on.
    pub(crate) fn begin_at(
        &mut self,
        next: SeqNum,
        link: Option<LogLink>,
        undecided: &PreparedSet,
    ) -> Result<()> {
        let mut mark = BatchEncoder::new();
        if let Some(link) = link {
            mark.log_data(&link.encode())?;
        }
        undecided.copy_to(&mut mark)?;
        self.log.append(mark.finish(next), false)?;
        self.begun = self.log.position();
        if !undecided.is_empty() && !planted(Bug::PreparedCopyUnsynced) {
            self.sync_to(self.log.position())?;
        }
        Ok(())
    }

    /// Whether no write was logged in the file.
    pub(crate) fn is_unused(&self) -> bool {
        self.begun == self.log.position()
    }

    /// The link of a file that continues this one at its present end.
    pub(crate) fn link(&self) -> LogLink {
        LogLink { number: self.number(), end: self.log.position() }
    }

    /// The file's number.
    pub(crate) fn number(&self) -> FileNumber {
        self.log.number()
    }

    /// How the file is written.
    pub(crate) fn shape(&self) -> WalShape {
        self.shape
    }

    /// Hands the records buffered in the process to the operating system.
    pub(crate) fn flush(&self) -> Result<()> {
        self.log.flush()
    }

    /// The WAL file, for the committer.
    pub(crate) fn log(&self) -> &LogWriter {
        &self.log
    }

    /// Makes everything up to `end` durable, with the file's directory entry. False when it already was durable.
    pub(crate) fn sync_to(&self, end: u64) -> Result<bool> {
        self.log.sync_through(end)
    }
}

/// The closed WAL files that are not obsolete.
#[derive(Debug)]
pub(crate) struct WalSet {
    closed: Mutex<Closed>,
}

#[derive(Debug, Default)]
struct Closed {
    /// Files, oldest first, that may hold unsynced bytes.
    unsynced: Vec<Arc<Wal>>,
    /// The sizes of the files that are not obsolete yet.
    sizes: BTreeMap<FileNumber, u64>,
    /// WAL files below this number hold only data that is durable in tables.
    needed_from: FileNumber,
    /// The last number drawn for a WAL file that continues another.
    drawn: FileNumber,
}

impl WalSet {
    pub(crate) fn new() -> Self {
        WalSet { closed: Mutex::new(Rank::Leaf, Closed::default()) }
    }

    /// The number of the WAL file that continues `current`: the number of a failed attempt, or a new one.
    pub(crate) fn number_after(&self, current: FileNumber, draw: impl FnOnce() -> FileNumber) -> FileNumber {
        let mut closed = self.closed.lock();
        if closed.drawn <= current {
            closed.drawn = draw();
        }
        closed.drawn
    }

    /// The number under which failed attempts to continue `current` may have left a file, if no attempt has succeeded.
    pub(crate) fn begun_in_vain(&self, current: FileNumber) -> Option<FileNumber> {
        Some(self.closed.lock().drawn).filter(|drawn| *drawn > current)
    }

    /// Adds a file that gets no further records.
    pub(crate) fn closed(&self, wal: Arc<Wal>) {
        let mut closed = self.closed.lock();
        closed.sizes.insert(wal.number(), wal.log.position());
        closed.unsynced.push(wal);
    }

    /// Bytes in closed files that some family still needs.
    pub(crate) fn closed_bytes(&self) -> u64 {
        self.closed.lock().sizes.values().sum()
    }

    /// The closed files that some family may still need, ascending, each with the end of its last record.
    pub(crate) fn closed_sizes(&self) -> Vec<(FileNumber, u64)> {
        self.closed.lock().sizes.iter().map(|(number, bytes)| (*number, *bytes)).collect()
    }

    /// Makes every closed file durable, oldest first. Returns the number of syncs.
    pub(crate) fn sync_closed(&self) -> Result<u64> {
        let mut syncs = 0;
        loop {
            let Some(oldest) = self.closed.lock().unsynced.first().cloned() else { return Ok(syncs) };
            syncs += u64::from(oldest.sync_to(oldest.log.position())?);
            self.closed.lock().unsynced.retain(|w| w.number() != oldest.number());
        }
    }

    /// Makes the record durable that ends at this offset of the file of this number, which is `current` or a closed
    /// one, and every closed file. An obsolete file needs no sync. Returns the number of syncs.
    pub(crate) fn sync(&self, current: &Wal, (number, end): (FileNumber, u64)) -> Result<u64> {
        if number < self.closed.lock().needed_from {
            return Ok(0);
        }
        let older = if planted(Bug::OlderLogUnsynced) { 0 } else { self.sync_closed()? };
        if number != current.number() {
            return Ok(older);
        }
        Ok(older + u64::from(current.sync_to(end)?))
    }

    /// Forgets obsolete files: their data is durable in tables.
    pub(crate) fn forget_below(&self, number: FileNumber) {
        let mut closed = self.closed.lock();
        closed.needed_from = closed.needed_from.max(number);
        closed.unsynced.retain(|w| w.number() >= number);
        closed.sizes = closed.sizes.split_off(&number);
    }
}
