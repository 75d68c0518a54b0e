//! Assembles whole records from fragments.

use super::blocks::Blocks;
use super::scan::{Tail, next_record, tail};
use super::zstd_stream::RecordInflater;
use super::{CutReason, LogEnd, LogRecord, LogRecordKind, RecoveryMode, Skipped, append};
use ashlar_base::{Error, FamilyId, FileNumber, Result};
use ashlar_env::{ReadFile, STORE_HEAD};
use ashlar_format::log_record::{
    BLOCK_SIZE, CHECKSUM, COMPRESSION_ZSTD, Fault, PredecessorInfo, RecordKind, RecordType, closes_block,
    decode_compression, decode_timestamp_sizes, has_its_checksum, is_of_log, parse_physical,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a log from its beginning, one record at a time. Keeps one block and one record in memory.
pub struct LogReader {
    path: PathBuf,
    blocks: Blocks,
    log_number: u32,
    mode: RecoveryMode,
    /// A long header was seen.
    recycled: bool,
    /// The file has no whole record after the last damage.
    no_record_behind: bool,
    /// After damage, the reader searches for the next record at every byte.
    thorough: bool,
    /// A data record was delivered.
    any_data: bool,
    compression_seen: bool,
    inflater: Option<RecordInflater>,
    stamped: BTreeSet<FamilyId>,
    pending: Option<Pending>,
    /// The file has only zeros from this offset on.
    zeros: Option<u64>,
    zeros_max: u64,
    /// The record being assembled, uncompressed.
    scratch: Vec<u8>,
    good_end: u64,
    end: Option<LogEnd>,
    skipped: Skipped,
}

/// A record whose last fragment has not come yet.
#[derive(Clone, Copy)]
struct Pending {
    offset: u64,
    /// Payload bytes so far, as stored.
    bytes: u64,
}

/// A physical record read from its block.
struct Taken {
    offset: u64,
    payload: Range<usize>,
}

impl Taken {
    fn len(&self) -> u64 {
        self.payload.len() as u64
    }
}

enum Place {
    Block(Range<usize>),
    Scratch,
}

enum Step {
    Again,
    Whole { offset: u64, kind: LogRecordKind, place: Place },
    End(LogEnd),
}

impl LogReader {
    /// A reader of `file` from its first byte. `number` is the number in the file's name; recyclable records with
    /// another number are from the file's earlier use. No I/O happens before the first [`LogReader::next`].
    pub fn open(file: Arc<dyn ReadFile>, number: FileNumber, mode: RecoveryMode) -> LogReader {
        LogReader {
            path: file.path().to_path_buf(),
            blocks: Blocks::new(file),
            log_number: (number.0 & 0xffff_ffff) as u32,
            mode,
            recycled: false,
            no_record_behind: false,
            thorough: false,
            any_data: false,
            compression_seen: false,
            inflater: None,
            stamped: BTreeSet::new(),
            pending: None,
            zeros: None,
            zeros_max: u64::MAX,
            scratch: Vec::new(),
            good_end: 0,
            end: None,
            skipped: Skipped::default(),
        }
    }

    /// A reader in [`RecoveryMode::SkipAny`] that searches for the next record at every byte after damage, where other
    /// readers go on at the next block. It shows which records may still be in the file. A found record may also be
    /// bytes of a damaged record that look like one, so no such record may be replayed.
    pub fn thorough(file: Arc<dyn ReadFile>, number: FileNumber) -> LogReader {
        LogReader { thorough: true, ..LogReader::open(file, number, RecoveryMode::SkipAny) }
    }

    /// Ends the reading after this many consecutive zeros ([`CutReason::ManyZeros`]): for files whose writers reserve
    /// little space and do not map the file. A sparse file of any length costs nothing to make.
    #[must_use]
    pub fn with_zeros_max(mut self, bytes: u64) -> LogReader {
        self.zeros_max = bytes;
        self
    }

    /// The next whole record; `None` for ever at the end, which [`LogReader::end`] explains.
    ///
    /// # Errors
    /// `Io`. `Busy(Memory)`: there is no memory for a record. Damage is no error here; it ends the log.
    #[expect(clippy::should_implement_trait, reason = "records borrow from the reader")]
    pub fn next(&mut self) -> Result<Option<LogRecord<'_>>> {
        while self.end.is_none() {
            match self.step()? {
                Step::Again => {}
                Step::End(end) => {
                    self.drop_pending();
                    self.end = Some(end);
                }
                Step::Whole { offset, kind, place } => {
                    self.good_end = self.blocks.offset();
                    let payload = match place {
                        Place::Block(range) => self.blocks.get(range),
                        Place::Scratch => &self.scratch,
                    };
                    return Ok(Some(LogRecord { offset, kind, payload }));
                }
            }
        }
        Ok(None)
    }

    /// How the log ended. `Clean` as long as `next` still delivers.
    pub fn end(&self) -> LogEnd {
        self.end.unwrap_or(LogEnd::Clean)
    }

    /// The error of a cut, with file, offset and reason, for callers that must fail. `None` for every other end.
    pub fn cut_error(&self) -> Option<Error> {
        match self.end {
            Some(LogEnd::Cut { offset, reason, dropped_bytes }) => Some(
                Error::corruption(format!("log is damaged: {reason}, {dropped_bytes} bytes dropped"))
                    .at(&self.path, offset),
            ),
            _ => None,
        }
    }

    /// The damage skipped so far; only in [`RecoveryMode::SkipAny`].
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The end of the last delivered record: a writer may continue the log there.
    pub fn good_end(&self) -> u64 {
        self.good_end
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn step(&mut self) -> Result<Step> {
        let legacy_only = self.any_data && !self.recycled;
        let rest = self.blocks.rest();
        let type_byte = rest.get(6).copied().unwrap_or(0);
        let long = RecordType::from_u8(type_byte).is_some_and(|t| t.recyclable);
        let parsed = parse_physical(rest, self.log_number, legacy_only);
        self.recycled |= long && !legacy_only;
        let offset = self.blocks.offset();
        let (len, payload_len, known, ignorable) = match parsed {
            Ok(p) => (p.len, p.payload.len(), p.record_type(), p.may_be_ignored()),
            Err(fault) => return self.on_fault(fault, offset),
        };
        if let Some(step) = self.behind_zeros(known.map(|t| t.kind)) {
            return Ok(step);
        }
        let whole = self.blocks.take(len);
        let taken = Taken { offset, payload: whole.end.saturating_sub(payload_len)..whole.end };
        Ok(match known.map(|t| t.kind) {
            Some(RecordKind::Full) => self.on_full(&taken)?,
            Some(RecordKind::First) => self.on_first(&taken)?,
            Some(RecordKind::Middle) => self.on_continuation(&taken, false)?,
            Some(RecordKind::Last) => self.on_continuation(&taken, true)?,
            Some(RecordKind::SetCompression) => self.on_compression(&taken),
            Some(RecordKind::TimestampSizes) => self.on_meta(taken, LogRecordKind::TimestampSizes),
            Some(RecordKind::PredecessorInfo) => self.on_meta(taken, LogRecordKind::PredecessorInfo),
            None if ignorable => {
                self.drop_pending();
                Step::Again
            }
            None => self.report(offset, CutReason::UnknownType(type_byte), taken.len()),
        })
    }

    /// The table of RocksDB's reactions, by fault and mode.
    fn on_fault(&mut self, fault: Fault, offset: u64) -> Result<Step> {
        use RecoveryMode::{SkipAny, TolerateTail};
        if let Some(step) = self.end_of_this_life(fault, offset)? {
            return Ok(step);
        }
        if let Some(step) = self.next_in_block(fault, offset) {
            return Ok(step);
        }
        let rest = self.blocks.rest();
        let (left, strict) = (rest.len() as u64, self.is_strict());
        let fault = match fault {
            Fault::OldRecord { len } if self.mode != SkipAny => match rest.get(..len) {
                Some(record) if has_its_checksum(record) => fault,
                _ => Fault::BadChecksum,
            },
            _ => fault,
        };
        Ok(match fault {
            Fault::ShortHeader if !self.blocks.ended => {
                self.blocks.advance()?;
                Step::Again
            }
            // Zeros are no beginning of a record.
            Fault::ShortHeader if self.pending.is_none() && rest.iter().all(|byte| *byte == 0) => {
                Step::End(LogEnd::Clean)
            }
            Fault::ShortHeader => {
                let reason = if left == 0 { CutReason::MissingFragments } else { CutReason::TruncatedHeader };
                self.end_of_file(reason, strict)
            }
            Fault::BadLength if self.blocks.ended => self.end_of_file(CutReason::TruncatedBody, strict),
            Fault::BadLength | Fault::BadChecksum => {
                let reason = match fault {
                    Fault::BadLength => CutReason::BadLength,
                    _ => CutReason::ChecksumMismatch,
                };
                if self.recycled && self.mode == TolerateTail {
                    return Ok(self.end_of_file(reason, false));
                }
                let dropped = self.blocks.take_rest();
                self.report(offset, reason, dropped)
            }
            Fault::OldRecord { len } if self.mode == SkipAny => {
                self.blocks.take(len);
                self.interrupted(offset)
            }
            Fault::OldRecord { .. } if self.pending.is_some() => {
                self.end_of_file(CutReason::MissingFragments, strict)
            }
            Fault::OldRecord { .. } => {
                let dropped = self.blocks.take_rest();
                self.report(offset, CutReason::FormerLife, dropped)
            }
            // This holds whatever was begun before: no fragment of a compressed record need reach the end of a block.
            Fault::Zero if self.blocks.is_whole() && closes_block(rest, self.recycled) => {
                self.blocks.take_rest();
                Step::Again
            }
            Fault::Zero => self.on_zero(offset)?,
            Fault::MixedForms => {
                let dropped = self.blocks.take_rest();
                self.report(offset, CutReason::MixedForms, dropped)
            }
        })
    }

    /// Whether the file goes on with records of its earlier use and has no further record of this log. Then the log is
    /// whole and ends here. Its writer overwrites the earlier records and may stop in the middle of one, which then
    /// looks like damage. A header with this log's number is not from the earlier use.
    fn end_of_this_life(&mut self, fault: Fault, offset: u64) -> Result<Option<Step>> {
        let rest = self.blocks.rest();
        let may = match fault {
            Fault::BadLength | Fault::BadChecksum | Fault::OldRecord { .. } => true,
            Fault::Zero => rest.iter().any(|byte| *byte != 0),
            Fault::ShortHeader | Fault::MixedForms => false,
        };
        if !may || !self.recycled || self.no_record_behind || self.pending.is_some() {
            return Ok(None);
        }
        if is_of_log(rest, self.log_number) {
            return Ok(None);
        }
        match tail(self.blocks.file(), offset, self.log_number)? {
            Tail::FormerLife if self.mode == RecoveryMode::PointInTime => {
                return Ok(Some(Step::End(LogEnd::OldRecord { offset })));
            }
            Tail::FormerLife => return Ok(Some(Step::End(LogEnd::Clean))),
            Tail::Ours => {}
            // If there is no such record after this offset, a later offset has no such record either, so a reader searches once.
            Tail::Unknown => self.no_record_behind = true,
        }
        Ok(None)
    }

    /// A thorough reader goes on with the next record of the block, if there is any.
    fn next_in_block(&mut self, fault: Fault, offset: u64) -> Option<Step> {
        let reason = match fault {
            _ if !self.thorough => return None,
            Fault::BadLength => CutReason::BadLength,
            Fault::BadChecksum => CutReason::ChecksumMismatch,
            Fault::Zero => CutReason::Zeros,
            Fault::MixedForms => CutReason::MixedForms,
            Fault::OldRecord { .. } | Fault::ShortHeader => return None,
        };
        let behind = self.blocks.rest().get(1..)?;
        let gap = 1 + next_record(behind, self.log_number, self.any_data && !self.recycled)?;
        self.blocks.take(gap);
        Some(self.report(offset, reason, gap as u64))
    }

    /// A record of zeros: nothing was written from here on, if the rest of the block is zeros too. If only bytes of a
    /// checksum precede the zeros, a power cut tore the header at the end of a sector.
    fn on_zero(&mut self, offset: u64) -> Result<Step> {
        if self.is_unfinished_store()? {
            return Ok(self.end_of_file(CutReason::UnfinishedStore, false));
        }
        let torn = if self.zeros.is_none() { CHECKSUM } else { 0 };
        if self.mode != RecoveryMode::SkipAny && self.blocks.rest().iter().skip(torn).any(|byte| *byte != 0) {
            let dropped = self.blocks.take_rest();
            return Ok(self.report(self.zeros.unwrap_or(offset), CutReason::Zeros, dropped));
        }
        let zeros = *self.zeros.get_or_insert(offset);
        self.blocks.take_rest();
        let dropped_bytes = offset - zeros;
        if dropped_bytes > self.zeros_max {
            return Ok(Step::End(LogEnd::Cut { offset: zeros, reason: CutReason::ManyZeros, dropped_bytes }));
        }
        Ok(self.interrupted(offset))
    }

    /// Whether the file ends with a record whose header a killed process did not store any more: a writer that maps its log
    /// stores the header last. Such a record was never acknowledged.
    fn is_unfinished_store(&self) -> Result<bool> {
        let maybe_mapped = !self.recycled && self.zeros_max == u64::MAX;
        let tolerant = self.mode == RecoveryMode::TolerateTail && maybe_mapped;
        if !tolerant || self.zeros.is_some() || self.pending.is_some() {
            return Ok(false);
        }
        let Some((head, payload)) = self.blocks.rest().split_at_checked(STORE_HEAD) else { return Ok(false) };
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        let unfinished = is_zero(head)
            && !is_zero(payload)
            && next_record(payload, self.log_number, self.any_data).is_none();
        Ok(unfinished && self.blocks.is_last()?)
    }

    fn is_strict(&self) -> bool {
        matches!(self.mode, RecoveryMode::Absolute | RecoveryMode::PointInTime)
    }

    /// A record was found. If zeros precede it, they were writes that never reached the disk, unless the record is of a
    /// kind that is never split: its writer fills a block with zeros when the record does not fit.
    fn behind_zeros(&mut self, kind: Option<RecordKind>) -> Option<Step> {
        let zeros = self.zeros.take()?;
        let here = self.blocks.offset();
        let unsplit = matches!(kind, Some(RecordKind::TimestampSizes | RecordKind::PredecessorInfo))
            && here - zeros < BLOCK_SIZE as u64;
        (self.mode != RecoveryMode::SkipAny && !unsplit)
            .then(|| self.report(zeros, CutReason::Zeros, here - zeros))
    }

    /// Ends the reading: with a cut if the mode is strict, else with a torn tail from the pending record on.
    fn end_of_file(&self, reason: CutReason, strict: bool) -> Step {
        let here = self.blocks.offset();
        let offset = self.pending.map_or(here, |p| p.offset);
        let dropped_bytes = here + self.blocks.rest().len() as u64 - offset;
        Step::End(if strict {
            LogEnd::Cut { offset, reason, dropped_bytes }
        } else {
            LogEnd::Torn { offset, reason, dropped_bytes }
        })
    }

    /// The reader found something other than the next fragment: damage, if a record was pending.
    fn interrupted(&mut self, offset: u64) -> Step {
        match self.pending {
            Some(pending) => self.report(offset, CutReason::Interrupted, pending.bytes),
            None => Step::Again,
        }
    }

    /// Damage that no mode takes for a torn tail: ends the reading, or is counted. The pending record is lost.
    fn report(&mut self, offset: u64, reason: CutReason, dropped_bytes: u64) -> Step {
        self.drop_pending();
        if self.mode != RecoveryMode::SkipAny {
            return Step::End(LogEnd::Cut { offset, reason, dropped_bytes });
        }
        self.skipped.count += 1;
        self.skipped.bytes += dropped_bytes;
        self.skipped.first.get_or_insert((offset, reason));
        Step::Again
    }

    fn drop_pending(&mut self) {
        self.pending = None;
        self.scratch.clear();
    }

    /// A record begins, so the pending one has no end, if it has any data. (Old writers left empty first fragments at
    /// block ends.) `Some` when that ends the reading.
    fn no_end(&mut self, offset: u64) -> Option<Step> {
        let pending = self.pending.take().filter(|p| p.bytes > 0);
        self.scratch.clear();
        let step = self.report(offset, CutReason::NoEnd, pending?.bytes);
        matches!(step, Step::End(_)).then_some(step)
    }

    fn on_full(&mut self, taken: &Taken) -> Result<Step> {
        if let Some(end) = self.no_end(taken.offset) {
            return Ok(end);
        }
        let place = if self.inflater.is_none() {
            Place::Block(taken.payload.clone())
        } else if self.gather(taken, true)? && self.is_complete() {
            Place::Scratch
        } else {
            return Ok(self.report(taken.offset, self.no_record(), taken.len()));
        };
        self.any_data = true;
        Ok(Step::Whole { offset: taken.offset, kind: LogRecordKind::Data, place })
    }

    fn on_first(&mut self, taken: &Taken) -> Result<Step> {
        if let Some(end) = self.no_end(taken.offset) {
            return Ok(end);
        }
        self.pending = Some(Pending { offset: taken.offset, bytes: taken.len() });
        if self.gather(taken, true)? {
            Ok(Step::Again)
        } else {
            Ok(self.report(taken.offset, self.no_record(), taken.len()))
        }
    }

    fn on_continuation(&mut self, taken: &Taken, last: bool) -> Result<Step> {
        let Some(mut pending) = self.pending else {
            return Ok(self.report(taken.offset, CutReason::NoStart, taken.len()));
        };
        pending.bytes += taken.len();
        self.pending = Some(pending);
        if !self.gather(taken, false)? || (last && !self.is_complete()) {
            return Ok(self.report(taken.offset, self.no_record(), pending.bytes));
        }
        if !last {
            return Ok(Step::Again);
        }
        self.pending = None;
        self.any_data = true;
        Ok(Step::Whole { offset: pending.offset, kind: LogRecordKind::Data, place: Place::Scratch })
    }

    /// The reason why the fragments so far make no record.
    fn no_record(&self) -> CutReason {
        let full = self.scratch.len() as u64 + BLOCK_SIZE as u64 * 2 > u64::from(u32::MAX);
        if full { CutReason::TooLarge } else { CutReason::BadCompressedData }
    }

    /// Appends a fragment to the record being assembled; false when it does not decompress, or makes the record too
    /// large.
    fn gather(&mut self, taken: &Taken, first: bool) -> Result<bool> {
        if first {
            self.scratch.clear();
        }
        let fragment = self.blocks.get(taken.payload.clone());
        let done = match &mut self.inflater {
            None => append(&mut self.scratch, fragment),
            Some(inflater) => match first && inflater.start().is_err() {
                true => Ok(false),
                false => inflater.feed(fragment, &mut self.scratch),
            },
        };
        done.map_err(|no_memory| {
            // The fragments so far are of no use.
            let len = std::mem::take(&mut self.scratch).len();
            let offset = self.pending.map_or(taken.offset, |pending| pending.offset);
            let text = format!("no memory for a log record of more than {len} bytes; a record may take half of the memory of this process");
            Error::new(Error::from(no_memory).kind(), text).at(&self.path, offset).hint("Give the process more memory")
        })
    }

    fn is_complete(&self) -> bool {
        self.inflater.as_ref().is_none_or(RecordInflater::is_complete)
    }

    fn on_compression(&mut self, taken: &Taken) -> Step {
        let wrong = CutReason::BadCompressionRecord;
        if self.compression_seen || self.any_data || self.pending.is_some() {
            return self.report(taken.offset, wrong, taken.len());
        }
        let Ok(kind) = decode_compression(self.blocks.get(taken.payload.clone())) else {
            return self.report(taken.offset, wrong, taken.len());
        };
        if kind == COMPRESSION_ZSTD {
            let Ok(inflater) = RecordInflater::new() else {
                return self.report(taken.offset, wrong, taken.len());
            };
            self.inflater = Some(inflater);
        }
        self.compression_seen = true;
        self.good_end = self.blocks.offset();
        Step::Again
    }

    /// Delivers a record that is not data. It decodes the payload here, so that the caller's decoding cannot fail.
    fn on_meta(&mut self, taken: Taken, kind: LogRecordKind) -> Step {
        if let Some(pending) = self.pending.filter(|p| p.bytes > 0) {
            let step = self.report(taken.offset, CutReason::Interrupted, pending.bytes);
            if matches!(step, Step::End(_)) {
                return step;
            }
        }
        self.drop_pending();
        let payload = self.blocks.get(taken.payload.clone());
        let (sound, reason) = match kind {
            LogRecordKind::TimestampSizes => {
                let sizes = decode_timestamp_sizes(payload).ok();
                let sound = sizes.is_some_and(|sizes| sizes.iter().all(|(f, _)| self.stamped.insert(*f)));
                (sound, CutReason::BadTimestampSizes)
            }
            _ => (PredecessorInfo::decode(payload).is_ok(), CutReason::BadPredecessorInfo),
        };
        if sound {
            Step::Whole { offset: taken.offset, kind, place: Place::Block(taken.payload) }
        } else {
            self.report(taken.offset, reason, taken.len())
        }
    }
}
