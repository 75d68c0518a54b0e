//! The logs that a database needs: what is torn, what is damaged, and which writes that concerns.
//!
//! 1. A log is read as recovery to a point in time reads it. Behind the damage where that stops, what can be read still
//!    is named.
//! 2. What the end of the newest log tore is no damage: a crash does that to writes that nobody was promised.
//! 3. Sequences tell what is gone: the batch behind a damage says where writes go on. Logs of ours also say where the log
//!    before them ended.

use super::report::{CheckReport, Damage, KEYS_NAMED, Risk};
use ashlar_base::{FileNumber, Malformed, Result, SeqNum};
use ashlar_env::{Fs, ReadFile};
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::LogLink;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogEnd, LogReader, LogRecordKind, RecoveryMode, record_behind};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Reads the logs in order.
pub(super) struct Logs<'a> {
    pub(super) fs: &'a dyn Fs,
    pub(super) dir: &'a Path,
    /// Bytes that are known to have been durable, by log.
    pub(super) synced: BTreeMap<FileNumber, u64>,
    /// The sequence behind the last write that is known.
    next: SeqNum,
    /// Where the last good record of each log ended.
    ends: BTreeMap<FileNumber, u64>,
}

impl<'a> Logs<'a> {
    /// For the logs of a database whose tables end at `last`.
    pub(super) fn new(fs: &'a dyn Fs, dir: &'a Path, last: SeqNum) -> Logs<'a> {
        let next = last.checked_add(1).unwrap_or(last);
        Logs { fs, dir, synced: BTreeMap::new(), next, ends: BTreeMap::new() }
    }

    /// Reads one log; `newest`: none follows it.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn log(
        &mut self,
        name: &str,
        number: FileNumber,
        newest: bool,
        report: &mut CheckReport,
    ) -> Result<()> {
        let file = self.fs.open_read(&self.dir.join(name))?;
        let (len, synced) = (file.len(), self.synced.get(&number).copied().unwrap_or(0));
        (report.logs, report.bytes) = (report.logs + 1, report.bytes + len);
        let mut reader = LogReader::open(Arc::clone(&file), number, RecoveryMode::PointInTime);
        let mut wrong = None;
        while let Some(record) = reader.next()? {
            let offset = record.offset;
            if record.kind == LogRecordKind::Data
                && let Err(e) = self.batch(record.payload, report)
            {
                wrong = Some((offset, e.to_string()));
                break;
            }
        }
        self.ends.insert(number, reader.good_end());
        let wrong = wrong.or_else(|| match reader.end() {
            LogEnd::Torn { offset, reason, .. } | LogEnd::Cut { offset, reason, .. } => {
                Some((offset, reason.to_string()))
            }
            LogEnd::Clean | LogEnd::OldRecord { .. } if reader.good_end() < synced => {
                let found = reader.good_end();
                Some((found, format!("log ends at {found}, of which {synced} bytes were synced")))
            }
            LogEnd::Clean | LogEnd::OldRecord { .. } => None,
        });
        let Some((offset, cause)) = wrong else { return Ok(()) };
        if newest && offset >= synced && record_behind(Arc::clone(&file), offset)?.is_none() {
            report.remarks.push(format!("{name} has a torn tail at {offset} ({cause}), which an open drops"));
            return Ok(());
        }
        let risk = self.behind(file, number, offset)?;
        report.damages.push(Damage {
            file: name.to_owned(),
            offset: Some(offset),
            cause,
            family: None,
            risk,
        });
        Ok(())
    }

    /// Takes a batch.
    fn batch(&mut self, payload: &[u8], report: &mut CheckReport) -> Result<(), Malformed> {
        let batch = BatchReader::new(payload)?;
        batch.validate()?;
        if batch.count() == 0
            && let Some(Ok(BatchOp::LogData(data))) = batch.iter().next()
            && let Some(link) = LogLink::decode(data)?
        {
            self.link(link, report);
        }
        report.entries += u64::from(batch.count());
        self.pass(&batch);
        Ok(())
    }

    fn pass(&mut self, batch: &BatchReader<'_>) {
        self.next = batch.seq().checked_add(u64::from(batch.count())).unwrap_or(self.next).max(self.next);
    }

    /// What a log of ours says of the one before.
    fn link(&self, link: LogLink, report: &mut CheckReport) {
        if let Some(&found) = self.ends.get(&link.number).filter(|found| **found < link.end) {
            report.damages.push(Damage {
                file: FileKind::Wal(link.number).name(),
                offset: Some(found),
                cause: format!("log ends at {found} where {} bytes were written", link.end),
                family: None,
                risk: Risk::Writes { from: self.next, to: None, behind: Vec::new(), more: 0 },
            });
        }
    }

    /// What stands behind the damage at `offset`, as far as it can be read.
    fn behind(&mut self, file: Arc<dyn ReadFile>, number: FileNumber, offset: u64) -> Result<Risk> {
        let (from, mut to) = (self.next, None);
        let (mut behind, mut more) = (Vec::new(), 0);
        let mut reader = LogReader::open(file, number, RecoveryMode::SkipAny);
        while let Some(record) = reader.next()? {
            let Ok(batch) = BatchReader::new(record.payload) else { continue };
            if record.offset <= offset || record.kind != LogRecordKind::Data || batch.validate().is_err() {
                continue;
            }
            to = to.or_else(|| Some(batch.seq().before()));
            for key in batch.iter().filter_map(|op| op.ok()).filter_map(|op| key_of(&op)) {
                match behind.len() < KEYS_NAMED {
                    true => behind.push(key.to_vec()),
                    false => more += 1,
                }
            }
            self.pass(&batch);
        }
        Ok(Risk::Writes { from, to, behind, more })
    }
}

fn key_of<'a>(op: &BatchOp<'a>) -> Option<&'a [u8]> {
    match *op {
        BatchOp::Put { key, .. }
        | BatchOp::Delete { key, .. }
        | BatchOp::SingleDelete { key, .. }
        | BatchOp::Merge { key, .. }
        | BatchOp::DeleteRange { begin: key, .. }
        | BatchOp::BlobIndex { key, .. }
        | BatchOp::Entity { key, .. }
        | BatchOp::TimedPut { key, .. } => Some(key),
        _ => None,
    }
}
