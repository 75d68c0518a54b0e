//! Files that an open did not use: logs that a replay did not use to their end, and damaged OPTIONS files. An open removes the
//! logs that it has replayed and older OPTIONS files, but none of these. Of logs:
//!
//! | behind the last record that was replayed | what becomes of it |
//! |---|---|
//! | nothing, zeros, a former life of the file | nothing: it was never written, or is from another log |
//! | whole batches | the log goes to `lost/`, with an account |
//! | anything, in a file of which no record was replayed | the same: it may be no log at all |
//! | damage that the recovery mode passes over | the same |
//! | no whole batch: a torn tail | its bytes go to `lost/` (see `files/log_tail`) |
//!
//! 1. Accounts and tails are durable before the commit that makes the logs obsolete. A crash changes nothing of that: the
//!    next open finds the account and moves the log.
//! 2. A disk without room for them does not keep a database closed: then the log is moved without an account.

use crate::open::{DroppedRange, RecoveryReport};
use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_tree::files::{TAIL_MAX, keep_tail, leave_account, used_end};
use std::collections::BTreeSet;
use std::path::Path;

/// What is kept of files that an open did not use.
#[derive(Debug, Default)]
pub(super) struct UnusedFiles {
    /// Logs that go to `lost/` where others are removed, and damaged OPTIONS files.
    pub(super) whole: BTreeSet<FileNumber>,
    /// Names of the tails in `lost/`.
    pub(super) tails: Vec<String>,
}

impl UnusedFiles {
    /// Sees to it that nothing of the files in `dir` is removed that `report` tells as dropped or damaged.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn keep(fs: &dyn Fs, dir: &Path, report: &RecoveryReport) -> Result<UnusedFiles> {
        let mut kept = UnusedFiles::default();
        for range in &report.dropped {
            let Some(FileKind::Wal(number)) = FileKind::parse(&range.file) else { continue };
            match kept.keep_range(fs, dir, number, range, report) {
                Err(e) if e.kind() == ErrorKind::Io(IoKind::NoSpace) => drop(kept.whole.insert(number)),
                result => result?,
            }
        }
        let damaged = report.damaged.iter().filter_map(|damaged| FileKind::parse(&damaged.file)?.number());
        kept.whole.extend(damaged);
        Ok(kept)
    }

    fn keep_range(
        &mut self,
        fs: &dyn Fs,
        dir: &Path,
        number: FileNumber,
        range: &DroppedRange,
        report: &RecoveryReport,
    ) -> Result<()> {
        let file = fs.open_read(&dir.join(&range.file))?;
        let Some(end) = used_end(&*file, range.offset)? else { return Ok(()) };
        let replayed = report.wals.iter().any(|wal| wal.number == number && wal.records > 0);
        let to_the_end = range.offset.saturating_add(range.bytes) >= end;
        if range.remains.is_none() && replayed && to_the_end && end - range.offset <= TAIL_MAX {
            self.tails.push(keep_tail(fs, dir, &*file, number, (range.offset, end))?);
            return Ok(());
        }
        if self.whole.insert(number) {
            let account = format!("An open did not replay this log to its end.\n{range}\n");
            leave_account(fs, dir, number, &account)?;
        }
        Ok(())
    }
}
