//! Writes a log: records are framed into a group, and published with one write. A sync makes them durable.
//!
//! 1. [`LogGroup::add`] frames a record in memory, after the records before it, without a gap. No reader sees it.
//!    [`LogGroup::publish`] makes all framed records visible, in log order. `sync_to` makes published bytes durable.
//! 2. A record that cannot be added is left out, and the log stays sound.
//! 3. A record of a compressed log is one frame. The record's range in the file is that of the frame.
//! 4. After a failed write or sync the log accepts no more records. The contents of the file behind the last good
//!    publish are unknown, and after a failed sync the kernel may have dropped bytes.
//! 5. One lock, over the tail, is taken per group and held over its write. What other threads read of the log, they read
//!    from atomics.
//!
//! The log collects frames in a buffer that it reuses. It writes them with one positional write per publish, or, in a log
//! that buffers, per flush.
//!
//! ```text
//! 0 ────────── durable ────── written ──────────── published ─────── filled
//!   on the device   the operating system's     this process's alone
//! ```
//! In a log that does not buffer, `written` equals `published`. The written part always consists of whole records, so a
//! killed process leaves a prefix of the published records, without a hole. After them the file may have reserved space
//! (`room`), and, in a log that maps its file, zeros up to the end of a block (`mapped`).

mod deflate;
mod group;
mod mapped;
mod room;

use ashlar_base::error::IoKind;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, FileNumber, Result};
use ashlar_env::{Fs, WriteFile, folder_of};
use ashlar_format::log_record::{
    COMPRESSION_ZSTD, Framing, encode_compression_record, frame_end, record_end,
};
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::{Mutex, Rank};
use deflate::RecordDeflater;
pub use group::LogGroup;
use mapped::Piece;
pub use room::RoomLimit;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The range of one record in its log: fill bytes of the block before it, headers and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    /// The end of the preceding record.
    pub start: u64,
    /// The end of this record.
    pub end: u64,
}

/// A buffer larger than this is freed after its write.
const KEEP_BUFFER: usize = 1 << 20;

/// Frames that are filled but not written to the file.
#[derive(Debug)]
struct Tail {
    /// The frames; byte 0 is at file offset `base`.
    bytes: Vec<u8>,
    /// Where the written records end: the end of the file, unless it is mapped (`piece`).
    base: u64,
    /// Where the published records end: `base`, unless the log buffers.
    published: u64,
    /// Where the filled records end.
    filled: u64,
    /// End of the reserved space, as a file offset; 0 before the first reservation.
    room: u64,
    /// The error of the last failed reservation.
    lack: Option<Error>,
    /// The zeros at the end of the file. While there are some, the file ends with them, and not at `base`.
    piece: Option<Piece>,
    /// The number of syncs that the last publish saw, and of publishes since it grew.
    syncs: u64,
    unsynced: u32,
    /// The file cannot be mapped.
    unmapped: bool,
    /// Present if the log begins with a set-compression record.
    deflater: Option<RecordDeflater>,
}

/// A log behind plain positional writes.
///
/// Two locks of rank `Log`, never held together: one over the tail and its write, one over a sync, so that records can
/// be published during an earlier sync. A thread that waited for the sync lock usually finds its bytes already synced by
/// the holder.
pub struct LogWriter {
    fs: Arc<dyn Fs>,
    file: Arc<dyn WriteFile>,
    number: FileNumber,
    framing: Framing,
    /// Data records are compressed frames.
    compressed: bool,
    /// Records are stored into mapped pieces where possible.
    maps: bool,
    /// Published records stay in memory until there are more bytes of them than this. 0: not at all.
    buffer_bytes: u64,
    tail: Mutex<Tail>,
    /// Equal to `tail.published` after every publish. Release there, Acquire by readers.
    published: AtomicU64,
    /// Equal to `tail.base` after every write. Release there, Acquire by readers.
    written: AtomicU64,
    /// True once the directory entry was synced.
    syncing: Mutex<bool>,
    /// How often the file was synced.
    syncs: AtomicU64,
    /// End of the durable part. Release under `syncing`, Acquire by readers.
    durable: AtomicU64,
    poison: OnceLock<Error>,
    /// What is asked before each reservation of space.
    limit: OnceLock<RoomLimit>,
    closed: AtomicBool,
}

impl LogWriter {
    /// Creates the file, empty; one of that name is emptied. The directory is synced with the first
    /// [`LogWriter::sync_to`], not here.
    ///
    /// # Errors
    /// `Io`.
    pub fn create(fs: Arc<dyn Fs>, path: &Path, number: FileNumber, framing: Framing) -> Result<LogWriter> {
        let file = fs.create(path)?;
        Ok(Self::over(fs, file, number, framing, 0))
    }

    /// Creates the file as [`LogWriter::create`] does, with a set-compression record at its beginning: every data record
    /// will be a zstd frame. RocksDB reads such logs from 7.0 on.
    ///
    /// # Errors
    /// `Io`. `Busy(Memory)`: the compressor has no memory.
    pub fn create_compressed(
        fs: Arc<dyn Fs>,
        path: &Path,
        number: FileNumber,
        framing: Framing,
    ) -> Result<LogWriter> {
        let deflater = RecordDeflater::new()?;
        let file = fs.create(path)?;
        let mut head = Vec::new();
        encode_compression_record(&mut head, COMPRESSION_ZSTD);
        file.write_at(&head, 0)?;
        let mut log = Self::over(fs, file, number, framing, head.len() as u64);
        log.tail.get_mut().deflater = Some(deflater);
        Ok(LogWriter { compressed: true, ..log })
    }

    /// Continues an existing log of this number at `position`, the end of its last good record (see
    /// [`crate::LogReader::good_end`]). First cuts off everything after `position`. Not for compressed logs.
    ///
    /// # Errors
    /// `Io`. `InvalidArgument` when the file is shorter than `position`.
    pub fn append_to(
        fs: Arc<dyn Fs>,
        path: &Path,
        number: FileNumber,
        framing: Framing,
        position: u64,
    ) -> Result<LogWriter> {
        let len = fs.metadata(path)?.map_or(0, |entry| entry.len);
        if len < position {
            return Err(Error::invalid(format!("log is shorter than {position} bytes")).at_path(path));
        }
        let file = fs.open_write(path)?;
        file.truncate(position)?;
        Ok(Self::over(fs, file, number, framing, position))
    }

    fn over(
        fs: Arc<dyn Fs>,
        file: Arc<dyn WriteFile>,
        number: FileNumber,
        framing: Framing,
        position: u64,
    ) -> LogWriter {
        let tail = Tail {
            bytes: Vec::new(),
            base: position,
            published: position,
            filled: position,
            room: 0,
            lack: None,
            piece: None,
            syncs: 0,
            unsynced: 0,
            unmapped: false,
            deflater: None,
        };
        LogWriter {
            fs,
            file,
            number,
            framing,
            compressed: false,
            maps: false,
            buffer_bytes: 0,
            tail: Mutex::new(Rank::Log, tail),
            published: AtomicU64::new(position),
            written: AtomicU64::new(position),
            syncing: Mutex::new(Rank::Log, false),
            syncs: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            poison: OnceLock::new(),
            limit: OnceLock::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// Keeps published records in memory until [`LogWriter::flush`], a sync or the close, or until they exceed `bytes`.
    /// A killed process loses the records in memory.
    pub fn buffering(self, bytes: u64) -> LogWriter {
        LogWriter { buffer_bytes: bytes, ..self }
    }

    /// Writes the published records that are still in memory. They then survive a killed process. Does nothing for a
    /// log that does not buffer.
    ///
    /// # Errors
    /// `Io`: the write failed, now or earlier; the log is poisoned as after a failed publish.
    pub fn flush(&self) -> Result<()> {
        let mut tail = self.tail.lock();
        if tail.base == tail.published {
            return Ok(());
        }
        self.sound()?;
        let end = tail.published;
        self.write_out(&mut tail, end)
    }

    /// Frames, publishes and, if asked, syncs one record.
    ///
    /// # Errors
    /// Those of [`LogGroup::add`], [`LogGroup::publish`] and [`LogWriter::sync_to`].
    pub fn append(&self, payload: &[u8], sync: bool) -> Result<LogRange> {
        let mut group = self.begin();
        let range = group.add(payload)?;
        group.publish()?;
        if sync {
            self.sync_to(range.end)?;
        }
        Ok(range)
    }

    /// Whether the log's data records are compressed.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// [`LogWriter::sync_to`]; false when another call had made the bytes durable already.
    ///
    /// # Errors
    /// As [`LogWriter::sync_to`].
    pub fn sync_through(&self, end: u64) -> Result<bool> {
        if self.durable.load(Ordering::Acquire) >= end && end > 0 {
            return Ok(false);
        }
        if self.written.load(Ordering::Acquire) < end {
            self.flush()?;
        }
        let mut directory_synced = self.syncing.lock();
        if self.durable.load(Ordering::Acquire) >= end && *directory_synced {
            return Ok(false);
        }
        self.alive()?;
        if self.written.load(Ordering::Acquire) < end {
            let what = format!("sync to {end}, behind what is published");
            return Err(Error::invalid(what).at_path(self.file.path()));
        }
        self.sync_now(&mut directory_synced).map(|()| true)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The end of the bytes that are known to be durable.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Refuses every call after a failure.
    fn sound(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(first) => {
                Err(Error::new(first.kind(), "the log accepts no records after an earlier failure")
                    .at_path(self.file.path())
                    .because(first))
            }
        }
    }

    /// Refuses every call after a failure or a close.
    fn alive(&self) -> Result<()> {
        self.sound()?;
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::invalid("the log is closed").at_path(self.file.path()));
        }
        Ok(())
    }

    /// Keeps the first failure for all later calls.
    fn poison(&self, failure: Error) -> Error {
        let failure = failure.at_path(self.file.path());
        let _ = self.poison.set(failure.clone());
        failure
    }

    /// A write after the written records failed with `cause`. On a full disk, truncates the part that was written: no
    /// reader needs it, and the work that frees space needs some space.
    fn given_back(&self, cause: Error, tail: &mut Tail) -> Error {
        if cause.kind() == ErrorKind::Io(IoKind::NoSpace) {
            // If that fails, a reader finds a torn tail.
            let _ = self.cut(tail);
        }
        cause
    }

    /// Publishes the records up to `end`, all of them filled.
    fn publish_to(&self, tail: &mut Tail, end: u64) -> Result<()> {
        if end - tail.base > self.buffer_bytes {
            self.write_out(tail, end)?;
        }
        tail.published = end;
        self.published.store(end, Ordering::Release);
        Ok(())
    }

    /// Writes the frames in memory up to `end`, all of them filled.
    fn write_out(&self, tail: &mut Tail, end: u64) -> Result<()> {
        let len = end.checked_sub(tail.base).and_then(|len| usize::try_from(len).ok());
        let Some(len) = len.filter(|len| *len <= tail.bytes.len()) else {
            return Err(self.poison(Error::invalid(format!("a write up to {end}, behind what is filled"))));
        };
        let stored = self.store(tail, len)?;
        if let Some(rest) = tail.bytes.get(stored..len).filter(|rest| !rest.is_empty()) {
            let written = self.file.write_at(rest, tail.base.saturating_add(stored as u64));
            written.map_err(|e| self.poison(self.given_back(e, tail)))?;
        }
        tail.bytes.drain(..len);
        if tail.bytes.is_empty() && tail.bytes.capacity() > KEEP_BUFFER {
            tail.bytes = Vec::new();
        }
        tail.base = end;
        self.written.store(end, Ordering::Release);
        Ok(())
    }

    /// Syncs file and, the first time, directory. The sync lock is held.
    fn sync_now(&self, directory_synced: &mut bool) -> Result<()> {
        self.sound()?;
        let target = self.written.load(Ordering::Acquire);
        let sync = || self.file.sync_data();
        sync()
            .or_else(|e| if planted(Bug::SyncRetried) { sync() } else { Err(e) })
            .map_err(|e| self.poison(e))?;
        if !*directory_synced && !planted(Bug::LogDirUnsynced) {
            self.fs.sync_dir(folder_of(self.file.path())).map_err(|e| self.poison(e))?;
            *directory_synced = true;
        }
        self.durable.store(target, Ordering::Release);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl LogWriter {
    /// The range of a record of `payload` bytes after position `at`; `None` when the log has no space for it. Pure.
    fn layout(&self, at: u64, payload: u64) -> Option<LogRange> {
        let end_of = if self.compressed { frame_end } else { record_end };
        let end = end_of(self.framing, at, payload)?;
        Some(LogRange { start: at, end })
    }

    /// Returns when everything before `end` is durable. Calls coalesce: one sync serves all threads that wait for it.
    ///
    /// # Errors
    /// `Io`: the sync failed, now or earlier. `InvalidArgument`: `end` is not published.
    pub fn sync_to(&self, end: u64) -> Result<()> {
        self.sync_through(end).map(drop)
    }

    /// The end of the published records: the start of the next record when none is framed.
    pub fn position(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// The file's number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Writes the published records and makes them durable. No record can be published afterwards.
    ///
    /// # Errors
    /// `Io`: the sync failed, or the log was poisoned before. `InvalidArgument`: it is closed already.
    pub fn close(&self) -> Result<()> {
        {
            // Under this lock no publish runs, and none begins later.
            let mut tail = self.tail.lock();
            self.alive()?;
            let end = tail.published;
            if tail.base < end {
                self.write_out(&mut tail, end)?;
            }
            if tail.piece.is_some() {
                let _ = self.cut(&mut tail);
            }
            self.closed.store(true, Ordering::Release);
        }
        self.sync_now(&mut self.syncing.lock())
    }
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter")
            .field("path", &self.file.path())
            .field("framing", &self.framing)
            .field("published", &self.position())
            .field("written", &self.written.load(Ordering::Acquire))
            .field("durable", &self.durable())
            .field("poison", &self.poison.get())
            .finish()
    }
}

#[cfg(test)]
mod buffering_tests;
#[cfg(test)]
mod compressed_tests;
#[cfg(test)]
mod tests;
