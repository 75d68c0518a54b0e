//! The writes of a database since a sequence number, read from its WAL files: for a copy that follows, or a feed of changes.
//!
//! ```text
//! hold all files -> one moment (the ends of the WAL files) -> list these and the archive -> open those that are needed
//!   -> release the hold -> read batch after batch, up to the moment
//! ```
//! 1. The open files outlive the hold: a purge may move or remove their names meanwhile.
//! 2. A file begins with a sequence number, and files with higher numbers have later ones. So the reading begins in the last
//!    file whose first record is at or before the number asked for.
//! 3. A WAL file of this engine names the file before it. If that file is gone, an error says so: there is no silent hole.
//! 4. Ingested files, and writes that skipped the WAL, are not read. Their sequence numbers are left out.
//! 5. A prepared transaction is a batch at its commit. The WAL file with the commit has its data in front: see
//!    `ashlar_recovery::PreparedSet`. If an archived file of RocksDB has not, an error says so.
//!
//! Source: RocksDB `db/transaction_log_impl.cc` (behaviour).

use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNum};
use ashlar_engine::{Db, Moment};
use ashlar_env::{Fs, ReadFile};
use ashlar_format::Unreadable;
use ashlar_format::filename::FileKind;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogEnd, LogReader, LogRecordKind, RecoveryMode};
use ashlar_recovery::Prepared;
use ashlar_tree::files::{archive_beside, wal_files};
use ashlar_tree::logs::{Marks, first_sequence, goes_back_to, link_of};
use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The batches of a database since a sequence number, in the order of the writes. Made by [`updates_since`]; ends with the
/// newest write at that call, or after the first error.
#[derive(Default)]
pub struct Updates {
    files: VecDeque<WalFile>,
    reader: Option<(LogReader, Option<u64>)>,
    since: SeqNum,
    /// The sequence number after the last batch read; `None` before the first.
    next: Option<SeqNum>,
    /// The file read before the current one.
    before: Option<FileNumber>,
    /// What was prepared in the batches read so far.
    prepared: Prepared,
    /// The rest of a batch that holds several commits.
    pieces: VecDeque<Update>,
}

/// A WAL file, open.
#[derive(Debug)]
pub(super) struct WalFile {
    pub(super) number: FileNumber,
    pub(super) file: Arc<dyn ReadFile>,
    /// The end of its last record at the moment; `None`: the file is in the archive, and ends where it ends.
    pub(super) end: Option<u64>,
}

/// A batch, as one write wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    sequence: SeqNum,
    count: u32,
    payload: Vec<u8>,
}

/// A change in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A value for a key.
    Put {
        /// The family.
        family: FamilyId,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// The deletion of a key.
    Delete {
        /// The family.
        family: FamilyId,
        /// The key.
        key: &'a [u8],
    },
    /// The deletion of a key that was put once.
    SingleDelete {
        /// The family.
        family: FamilyId,
        /// The key.
        key: &'a [u8],
    },
    /// An operand for a key.
    Merge {
        /// The family.
        family: FamilyId,
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// The deletion of the keys from `begin` up to `end`, which stays.
    DeleteRange {
        /// The family.
        family: FamilyId,
        /// The first key.
        begin: &'a [u8],
        /// The first key behind the range.
        end: &'a [u8],
    },
    /// An encoded wide-column entity for a key.
    Entity {
        /// The family.
        family: FamilyId,
        /// The key.
        key: &'a [u8],
        /// The entity, in RocksDB's encoding.
        entity: &'a [u8],
    },
}

impl Update {
    /// The sequence number of the first change.
    pub fn sequence(&self) -> SeqNum {
        self.sequence
    }

    /// The number of changes, and of sequence numbers.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether the batch has no change.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The batch in RocksDB's form, as the WAL holds it.
    pub fn data(&self) -> &[u8] {
        &self.payload
    }

    /// The changes, in order.
    ///
    /// # Errors
    /// `NotSupported`: a change of another kind, which a transaction database of RocksDB or a blob file of its own wrote.
    /// `Corruption`: the batch is damaged.
    pub fn changes(&self) -> Result<Vec<Change<'_>>> {
        let batch = BatchReader::new(&self.payload).map_err(|e| Error::corruption(e.to_string()))?;
        let mut changes = Vec::new();
        for op in batch.iter() {
            let op = op.map_err(|e| Error::corruption(e.to_string()))?;
            let change = match op {
                BatchOp::Put { family, key, value } => Change::Put { family, key, value },
                BatchOp::Delete { family, key } => Change::Delete { family, key },
                BatchOp::SingleDelete { family, key } => Change::SingleDelete { family, key },
                BatchOp::Merge { family, key, value } => Change::Merge { family, key, operand: value },
                BatchOp::DeleteRange { family, begin, end } => Change::DeleteRange { family, begin, end },
                BatchOp::Entity { family, key, entity } => Change::Entity { family, key, entity },
                BatchOp::LogData(_) | BatchOp::Noop => continue,
                _ => {
                    let what = format!("a change of the batch at sequence number {}: {op:?}", self.sequence);
                    return Err(Error::not_supported(what));
                }
            };
            changes.push(change);
        }
        Ok(changes)
    }
}

/// The batches of `db` that have a change at or after the sequence number `since`, up to the newest write.
///
/// # Errors
/// `Io(NotFound)`: the WAL files with the first of these writes are gone; a larger archive keeps them longer.
/// `InvalidArgument`: `since` is beyond the number after the newest write. `NotSupported`: the database is open for reading
/// only. `Corruption`, `Io`: a WAL file could not be read. `Shutdown`; the error that refuses writes.
/// # Cost
/// A read of the first record of each WAL file, newest first, up to the one where the reading begins. The files stay open
/// until the value is dropped.
pub fn updates_since(db: &Db, since: SeqNum) -> Result<Updates> {
    let (updates, oldest, newest) = left(db, since)?;
    let since = updates.since;
    match oldest {
        Some(first) if first > since => Err(gone(format!(
            "the write with sequence number {since} is in no WAL file: the oldest begins with {first}"
        ))),
        None if since <= newest => {
            Err(gone(format!("the write with sequence number {since} is in no WAL file: they are empty")))
        }
        _ => Ok(updates),
    }
}

/// [`updates_since`], without the batches whose WAL files are gone.
///
/// # Errors
/// Those of [`updates_since`], but for `Io(NotFound)`.
/// # Cost
/// That of [`updates_since`].
pub fn updates_left(db: &Db, since: SeqNum) -> Result<Updates> {
    left(db, since).map(|(updates, ..)| updates)
}

/// The batches since `since` that are left, the first sequence number of their WAL files, and the newest of the database.
fn left(db: &Db, since: SeqNum) -> Result<(Updates, Option<SeqNum>, SeqNum)> {
    let held = db.hold_files("updates_since()")?;
    let moment = held.moment_of_log()?;
    let newest = moment.sequence;
    if since.get() > newest.get().saturating_add(1) {
        let what = format!("updates since sequence number {since}: the newest write has {newest}");
        return Err(Error::invalid(what));
    }
    let since = since.max(SeqNum::new(1).unwrap_or_default());
    let (mut files, mut oldest) = (VecDeque::new(), None);
    if since <= newest {
        for candidate in candidates(db, &moment)?.into_iter().rev() {
            let first = first_sequence(&candidate.file, candidate.number)?;
            files.push_front(candidate);
            oldest = first.or(oldest);
            if first.is_some_and(|first| first <= since) {
                break;
            }
        }
    }
    Ok((Updates { files, since, ..Updates::default() }, oldest, newest))
}

fn gone(what: String) -> Error {
    Error::new(ErrorKind::Io(IoKind::NotFound), what)
        .hint("Keep obsolete WAL files longer, with WAL_ttl_seconds or WAL_size_limit_MB, and make a new copy of the database")
}

/// The WAL files of the archive and of the moment, ascending, open.
pub(super) fn candidates(db: &Db, moment: &Moment) -> Result<Vec<WalFile>> {
    let fs: &dyn Fs = &*db.env().fs;
    let archive = archive_beside(&moment.wal_dir);
    let open = |dir: &Path, number: FileNumber, end| {
        let file = fs.open_read(&dir.join(FileKind::Wal(number).name()))?;
        Ok::<_, Error>(WalFile { number, file, end })
    };
    let mut files = Vec::new();
    for (number, end) in &moment.wals {
        match open(db.path(), *number, Some(*end)) {
            // The purge before the hold has taken the file.
            Err(e) if e.is_not_found() => {}
            file => files.push(file?),
        }
    }
    for (number, _) in wal_files(fs, &archive)? {
        if files.iter().all(|file| file.number != number) {
            files.push(open(&archive, number, None)?);
        }
    }
    files.sort_by_key(|file| file.number);
    Ok(files)
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = self.files.iter().map(|file| file.number).collect();
        f.debug_struct("Updates").field("since", &self.since).field("files", &files).finish_non_exhaustive()
    }
}

impl Iterator for Updates {
    type Item = Result<Update>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            (self.reader, self.files) = (None, VecDeque::new());
        }
        read.transpose()
    }
}

impl Updates {
    /// The next batch; `None` behind the last one.
    fn read(&mut self) -> Result<Option<Update>> {
        loop {
            let Some((mut reader, end)) = self.reader.take() else {
                let Some(file) = self.files.pop_front() else { return Ok(None) };
                let reader = LogReader::open(Arc::clone(&file.file), file.number, RecoveryMode::TolerateTail);
                self.reader = Some((reader, file.end));
                self.check_link(&file)?;
                self.before = Some(file.number);
                continue;
            };
            match self.read_from(&mut reader, end)? {
                None => check_end(&reader, end)?,
                Some(update) => {
                    self.reader = Some((reader, end));
                    if self.since.get() < update.sequence.get().saturating_add(u64::from(update.count)) {
                        return Ok(Some(update));
                    }
                }
            }
        }
    }

    /// Rule 3: the file that this one continues was read before it.
    fn check_link(&self, file: &WalFile) -> Result<()> {
        let Some(before) = self.before else { return Ok(()) };
        let mut reader = LogReader::open(Arc::clone(&file.file), file.number, RecoveryMode::TolerateTail);
        let Some(record) = reader.next()? else { return Ok(()) };
        let misread = |e| Unreadable::Malformed(e).in_file(file.file.path(), record.offset);
        let batch = BatchReader::new(record.payload).map_err(misread)?;
        match link_of(&batch).map_err(misread)? {
            Some(link) if link.number != before => Err(gone(format!(
                "WAL file {} continues {}, which is gone; the one before is {before}",
                file.number, link.number
            ))),
            _ => Ok(()),
        }
    }

    /// The next batch of a file with a change; `None` at its end.
    fn read_from(&mut self, reader: &mut LogReader, end: Option<u64>) -> Result<Option<Update>> {
        let path = reader.path().to_path_buf();
        loop {
            if let Some(update) = self.pieces.pop_front() {
                return Ok(Some(update));
            }
            if end.is_some_and(|end| reader.good_end() >= end) {
                return Ok(None);
            }
            let Some(record) = reader.next()? else { return Ok(None) };
            if record.kind != LogRecordKind::Data {
                continue;
            }
            let misread = |e| Unreadable::Malformed(e).in_file(&path, record.offset);
            let batch = BatchReader::new(record.payload).map_err(misread)?;
            let (sequence, count) = (batch.seq(), batch.count());
            if let Some(next) = self.next.filter(|next| sequence < *next) {
                return Err(Error::corruption(goes_back_to(next, sequence)).at(&path, record.offset));
            }
            if batch.iter().any(|op| op.is_ok_and(|op| Marks::of(&op) == Marks::TwoPhase)) {
                self.take_pieces(record.payload, sequence).map_err(|e| e.at(&path, record.offset))?;
                continue;
            }
            self.next = sequence.checked_add(u64::from(count));
            if count > 0 {
                return Ok(Some(Update { sequence, count, payload: record.payload.to_vec() }));
            }
        }
    }
}

impl Updates {
    /// Takes a batch with marks of two-phase commit apart: the updates that it makes.
    fn take_pieces(&mut self, payload: &[u8], first: SeqNum) -> Result<()> {
        let malformed = |e: ashlar_base::Malformed| Error::corruption(e.to_string());
        let mut own = Vec::new();
        for op in BatchReader::new(payload).map_err(malformed)?.iter() {
            match op.map_err(malformed)? {
                BatchOp::EndPrepare { xid } => own.push(xid),
                BatchOp::Commit { xid } | BatchOp::CommitWithTimestamp { xid, .. }
                    if !self.prepared.knows(xid) && !own.contains(&xid) =>
                {
                    let xid = xid.escape_ascii();
                    return Err(gone(format!(
                        "the data of the committed transaction '{xid}' is in a WAL file before"
                    )));
                }
                _ => {}
            }
        }
        let mut sequence = first;
        for piece in self.prepared.apply(self.before.unwrap_or_default(), payload).map_err(malformed)? {
            let count = u32::try_from(piece.count()).unwrap_or(u32::MAX);
            if count > 0 {
                self.pieces.push_back(Update { sequence, count, payload: piece.at(sequence) });
            }
            sequence = sequence.checked_add(piece.count()).unwrap_or(SeqNum::MAX);
        }
        self.next = Some(sequence);
        Ok(())
    }
}

/// A file must have been read up to the end that is known; one of an earlier session to its last record.
fn check_end(reader: &LogReader, end: Option<u64>) -> Result<()> {
    let whole = match (end, reader.end()) {
        (Some(end), _) => reader.good_end() >= end,
        (None, LogEnd::Cut { .. }) => false,
        (None, _) => true,
    };
    if whole {
        return Ok(());
    }
    let what = "a WAL file ends in damage before its last record";
    Err(Error::corruption(what).at(reader.path(), reader.good_end()).damaged_file_hint())
}
