//! The WAL files that a database needs: what is missing in them, and which writes that affects.
//!
//! 1. A WAL file is read as an open reads it in point-in-time recovery. After the gap where an open stops, the check
//!    still lists every readable batch, also of later files: an open drops them, unless a later file begins with
//!    exactly the next sequence.
//! 2. How a gap counts depends on what an open does with it (see `gaps`).
//! 3. Sequences tell what is missing: the batch after a gap says where writes continue. WAL files of this engine also
//!    store where the file before them ended.
//! 4. An open refuses WAL files that prove that the MANIFEST lost its end (see `lost_end`); they are its damage.

use super::gaps::{Gap, Standing};
use crate::lost_end::{Writes, end_is_lost};
use ashlar_base::{FileNumber, Malformed, Result, SeqNum};
use ashlar_env::{Fs, ReadFile};
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::LogLink;
use ashlar_format::write_batch::BatchReader;
use ashlar_log::{LogEnd, LogReader, LogRecordKind, RecoveryMode};
use ashlar_recovery::{Piece, Prepared};
use ashlar_table::MAX_ENTRY_BYTES;
use ashlar_tree::check::{CheckReport, Risk};
use ashlar_tree::logs::{Marks, ends_a_part, goes_back_to, has_transactions, link_of};
use ashlar_tree::version::Replayed;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What is known of the WAL files before they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogsNeeded<'a> {
    /// The oldest WAL file that is needed; 0: unknown, all existing files are read.
    pub(crate) from: FileNumber,
    /// A second needed WAL file, which old databases have.
    pub(crate) prev: FileNumber,
    /// WAL files that the MANIFEST tracks, with the number of bytes known to be durable.
    pub(crate) tracked: &'a BTreeMap<FileNumber, Option<u64>>,
    /// The last sequence in tables.
    pub(crate) last: SeqNum,
    /// Some family's tables hold writes from after all WAL files below this number.
    pub(crate) flushed: FileNumber,
    /// True for a repair, which replays the batches after a gap from the next block on.
    pub(crate) repairing: bool,
    /// The MANIFEST whose end the WAL files may prove to be lost; `None` for a repair, which judges that before.
    pub(crate) manifest: Option<&'a Replayed>,
}

/// Reads the WAL files in order.
pub(super) struct Logs<'a> {
    fs: &'a dyn Fs,
    dir: &'a Path,
    needed: LogsNeeded<'a>,
    /// The sequence after the last known write; `None` before the first batch.
    next: Option<SeqNum>,
    /// Set where an open has stopped at a gap: the sequence with which it would continue.
    stopped: Option<Option<SeqNum>>,
    gaps: Vec<Gap>,
    /// Where the last good record of each WAL file ended.
    ends: BTreeMap<FileNumber, u64>,
    /// Whether any WAL file has marks of transactions; `None` until asked, because the answer reads all WAL files.
    transactions: Option<bool>,
    /// Writes to families that no record of the MANIFEST creates.
    unnamed: Writes,
    /// A WAL file that is gone although the MANIFEST, whose tail is torn, needs it.
    gone: Option<FileNumber>,
    /// What is prepared and not decided on: it takes its sequence numbers at the commit.
    prepared: Prepared,
}

impl<'a> Logs<'a> {
    pub(super) fn new(fs: &'a dyn Fs, dir: &'a Path, needed: LogsNeeded<'a>) -> Logs<'a> {
        let (gaps, ends) = (Vec::new(), BTreeMap::new());
        let (unnamed, gone, prepared) = (Writes::default(), None, Prepared::default());
        Logs {
            fs,
            dir,
            needed,
            next: None,
            stopped: None,
            gaps,
            ends,
            transactions: None,
            unnamed,
            gone,
            prepared,
        }
    }

    /// Reads one WAL file; call in ascending order.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn log(&mut self, name: &str, number: FileNumber, report: &mut CheckReport) -> Result<()> {
        let file = self.fs.open_read(&self.dir.join(name))?;
        let (len, synced) = (file.len(), self.needed.tracked.get(&number).copied().flatten().unwrap_or(0));
        (report.logs, report.bytes) = (report.logs + 1, report.bytes + len);
        let mut reader = LogReader::open(Arc::clone(&file), number, RecoveryMode::PointInTime);
        let (mut wrong, mut first) = (None, true);
        while let Some(record) = reader.next()? {
            if record.kind != LogRecordKind::Data {
                continue;
            }
            if let Some(cause) = self.goes_back(record.payload)? {
                let offset = record.offset;
                self.ends.insert(number, offset);
                self.gap((number, Some(offset)), cause, Standing::Refused);
                return self.behind(file, number, offset);
            }
            if record.payload.len() > MAX_ENTRY_BYTES {
                report.remarks.push(format!(
                    "{name} holds at offset {} a batch of {} bytes: an entry of more than {MAX_ENTRY_BYTES} bytes in it \
                     makes an open read-only",
                    record.offset,
                    record.payload.len()
                ));
            }
            let linked = Standing::at(record.offset, synced);
            match self.batch(record.payload, std::mem::take(&mut first).then_some(linked)) {
                Ok(count) => report.entries += count,
                Err(e) => {
                    wrong = Some((record.offset, e.to_string()));
                    break;
                }
            }
        }
        self.ends.insert(number, reader.good_end());
        let wrong = wrong.or_else(|| match reader.end() {
            LogEnd::Torn { offset, reason, .. } | LogEnd::Cut { offset, reason, .. } => {
                Some((offset, reason.to_string()))
            }
            LogEnd::Clean | LogEnd::OldRecord { .. } if reader.good_end() < synced => {
                let found = reader.good_end();
                Some((found, format!("WAL file ends at {found}, of which {synced} bytes were synced")))
            }
            LogEnd::OldRecord { offset } => {
                let cause = "the end of a recycled WAL file, where the next one does not go on".to_owned();
                self.gap((number, Some(offset)), cause, Standing::Recycled);
                None
            }
            LogEnd::Clean => None,
        });
        let Some((offset, cause)) = wrong else { return Ok(()) };
        self.gap((number, Some(offset)), cause, Standing::at(offset, synced));
        self.behind(file, number, offset.saturating_add(1))
    }

    /// Reports what is missing. True if an open drops anything.
    pub(super) fn tell(self, report: &mut CheckReport) -> bool {
        let LogsNeeded { flushed, repairing, manifest, .. } = self.needed;
        if let Some(manifest) = manifest {
            let gone = self.gone.map(|log| {
                let what = format!("the WAL file {log} is gone, so a later commit had made it obsolete");
                end_is_lost(manifest, &what, Risk::UnknownKeys)
            });
            report.damages.extend(gone.into_iter().chain(self.unnamed.damages(manifest)));
        }
        let mut drops = false;
        for gap in self.gaps {
            drops |= gap.tell(flushed, repairing, report);
        }
        drops
    }

    /// Reads a batch; returns its number of operations. `first` is set for the first batch of a file: the standing of a
    /// gap that the batch's link reveals.
    fn batch(&mut self, payload: &[u8], first: Option<Standing>) -> Result<u64, Malformed> {
        let batch = BatchReader::new(payload)?;
        batch.validate()?;
        match (first, self.stopped) {
            (Some(_), Some(next)) if next == Some(batch.seq()) => {
                // This file reuses the sequences of the batches that followed the gap.
                (self.stopped, self.next) = (None, next);
                self.gaps.iter_mut().for_each(Gap::close);
            }
            (Some(standing), None) => {
                if let Some(link) = link_of(&batch)? {
                    self.link(link, standing);
                }
            }
            _ => {}
        }
        if let Some(manifest) = self.needed.manifest.filter(|_| self.stopped.is_none()) {
            self.unnamed.take(&batch, Some(manifest.db.max_family));
        }
        self.pass(&batch, payload);
        Ok(u64::from(batch.count()))
    }

    fn pass(&mut self, batch: &BatchReader<'_>, payload: &[u8]) {
        if self.stopped.is_some()
            && let Some(gap) = self.gaps.last_mut()
        {
            gap.take(batch);
        }
        let taken = self.taken(batch, payload);
        self.next = self.next.max(batch.seq().checked_add(taken));
    }

    /// The number of sequence numbers that a batch takes. Of a batch with marks of two-phase commit, its count is another.
    fn taken(&mut self, batch: &BatchReader<'_>, payload: &[u8]) -> u64 {
        let count = u64::from(batch.count());
        if !batch.iter().any(|op| op.is_ok_and(|op| Marks::of(&op) == Marks::TwoPhase)) {
            return count;
        }
        let pieces = self.prepared.apply(FileNumber::default(), payload);
        pieces.map_or(count, |pieces| pieces.iter().map(Piece::count).sum())
    }

    /// Checks what a WAL file of this engine says about the file before it.
    fn link(&mut self, LogLink { number, end }: LogLink, standing: Standing) {
        let (found, cause) = match self.ends.get(&number) {
            Some(&found) if found < end => {
                (Some(found), format!("WAL file ends at {found} where {end} bytes were written"))
            }
            None if number >= self.needed.from
                && self.needed.manifest.is_some_and(|manifest| manifest.dropped.is_some()) =>
            {
                self.gone.get_or_insert(number);
                return;
            }
            None if self.needed.from.0 > 0 && number >= self.needed.from => {
                (None, "WAL file is missing, which the next one names".to_owned())
            }
            _ => return,
        };
        self.gap((number, found), cause, standing);
    }

    /// Records that writes are missing from here on.
    fn gap(&mut self, place: (FileNumber, Option<u64>), cause: String, standing: Standing) {
        let from = self.next.unwrap_or(self.needed.first());
        self.gaps.push(Gap::new(place, cause, standing, from));
        self.stopped.get_or_insert(self.next);
    }

    /// The error for a batch whose sequence is not above the earlier ones, as in a replay. Transactions count sequences
    /// differently, and so do plain writes of a write-prepared database.
    fn goes_back(&mut self, payload: &[u8]) -> Result<Option<String>> {
        let Some(next) = self.next.filter(|_| self.stopped.is_none()) else { return Ok(None) };
        let Ok(batch) = BatchReader::new(payload) else { return Ok(None) };
        let plain = batch.validate().is_ok() && link_of(&batch).is_ok_and(|link| link.is_none());
        if batch.seq() >= next || !plain || ends_a_part(&batch) || self.any_transactions()? {
            return Ok(None);
        }
        Ok(Some(goes_back_to(next, batch.seq())))
    }

    /// Whether any WAL file of the directory has marks of transactions, which count sequences differently.
    fn any_transactions(&mut self) -> Result<bool> {
        if let Some(known) = self.transactions {
            return Ok(known);
        }
        let mut any = false;
        for entry in self.fs.files(self.dir)? {
            let Some(FileKind::Wal(number)) = FileKind::parse(&entry.name) else { continue };
            any = any || has_transactions(&self.fs.open_read(&self.dir.join(&entry.name))?, number)?;
        }
        self.transactions = Some(any);
        Ok(any)
    }

    /// Reads the batches after a gap, from `offset` on, as far as they are readable.
    fn behind(&mut self, file: Arc<dyn ReadFile>, number: FileNumber, offset: u64) -> Result<()> {
        let mut reader = match self.needed.repairing {
            true => LogReader::open(file, number, RecoveryMode::SkipAny),
            false => LogReader::thorough(file, number),
        };
        while let Some(record) = reader.next()? {
            if record.offset >= offset
                && record.kind == LogRecordKind::Data
                && let Ok(batch) = BatchReader::new(record.payload)
                && batch.validate().is_ok()
            {
                self.pass(&batch, record.payload);
            }
        }
        Ok(())
    }
}

impl LogsNeeded<'_> {
    /// The first sequence after those in tables.
    pub(super) fn first(&self) -> SeqNum {
        self.last.checked_add(1).unwrap_or(self.last)
    }
}
