//! Files that an open did not use: WAL files that replay did not read to their end, and damaged OPTIONS files. An open
//! removes replayed WAL files and older OPTIONS files, but keeps unused ones. For WAL files:
//!
//! | after the last replayed record | treatment |
//! |---|---|
//! | nothing, zeros, records of an earlier use of the file | none: these bytes were never written, or belong to another WAL file |
//! | whole batches | the WAL file moves to `lost/`, with an account |
//! | anything, in a file without a replayed record | the same: the file may not be a WAL file |
//! | damage that the recovery mode skips | the same |
//! | no whole batch: a torn tail | the tail's bytes are copied to `lost/` (see `files/log_tail`) |
//!
//! 1. Accounts and tails are durable before the commit that makes the WAL files obsolete. After a crash the next open
//!    finds the account and moves the WAL file.
//! 2. A full disk does not prevent an open: the WAL file is then moved without an account.

use crate::report::{DroppedRange, RecoveryReport};
use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_tree::files::{TAIL_MAX, keep_tail, leave_account, used_end};
use std::collections::BTreeSet;
use std::path::Path;

/// The unused files that are kept.
#[derive(Debug, Default)]
pub struct UnusedFiles {
    /// WAL files that move to `lost/` instead of being removed, and damaged OPTIONS files.
    pub whole: BTreeSet<FileNumber>,
    /// Names of the tails in `lost/`.
    pub tails: Vec<String>,
}

impl UnusedFiles {
    /// Keeps every file in `dir` that `report` lists as dropped or damaged from being removed.
    ///
    /// # Errors
    /// `Io`.
    pub fn keep(fs: &dyn Fs, dir: &Path, report: &RecoveryReport) -> Result<UnusedFiles> {
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
            let account = format!("An open did not replay this WAL file to its end.\n{range}\n");
            leave_account(fs, dir, number, &account)?;
        }
        Ok(())
    }
}
