//! Reads a MANIFEST: takes its records and returns the last consistent state.
//!
//! 1. Damage is an error, except in the last record, which a crash may have torn: that record is dropped and reported.
//!    Two facts prove that a damaged record was durable, and make the damage an error: an intact record behind it, or,
//!    in a MANIFEST that AshlarDB wrote, the number of records in its first one. In a MANIFEST of another program only
//!    a record that the end of the file cuts off is dropped.
//! 2. An atomic group applies when all its records are there. A group that the end of the file cuts off is dropped.
//! 3. The trees are checked after the last record, because a MANIFEST may pass through states that no reader ever saw.
//! 4. A family for which no record names a comparator gets it from elsewhere (see `comparators`).
//! 5. The last next-file number in the file is used, raised by one. The last sequence number must not decrease.
//! 6. Only the bytes that the file has when it is opened count: another process may append to it meanwhile. `beside`
//!    says what an unfinished record at that end means.
//!
//! Source: RocksDB `db/version_edit_handler.cc`, `db/version_set.cc` (`AtomicGroupReadBuffer`).

use super::DbFacts;
use super::comparators;
use super::current::{candidates, read_current};
use super::replayed::{DroppedTail, Replayed, ReplayedFamily};
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNum};
use ashlar_env::{Fs, Prefix, ReadFile};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_log::{CutReason, LogEnd, LogReader, LogRecordKind, RecoveryMode, record_behind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The error for a file number so near the maximum that too few are left.
pub fn out_of_numbers(path: &Path, used: FileNumber) -> Error {
    let highest = FileNumber::HIGHEST;
    Error::corruption(format!(
        "file number {used} is above {highest}: too few file numbers are left to write"
    ))
    .at_path(path)
}

/// Upper bound on the space that a writer of a MANIFEST reserves. RocksDB reserves 4 MiB by default.
const ZEROS_MAX: u64 = 256 << 20;

#[derive(Default)]
struct Replayer {
    db: DbFacts,
    families: BTreeMap<FamilyId, ReplayedFamily>,
    names: BTreeSet<String>,
    next_file: Option<FileNumber>,
    first_next_file: Option<FileNumber>,
    last_seq: Option<SeqNum>,
    any_log_number: bool,
    was_current: bool,
    unknown_tags: Vec<u32>,
    group: Vec<VersionEdit>,
    group_start: u64,
    /// The number of records at the start of the file, if the first one has it.
    beginning: Option<u32>,
}

/// Reads the MANIFEST that `CURRENT` names; returns its number and what it says. For the holder of the LOCK, and for
/// directories that no process writes to; others use [`read_manifest_beside`](super::read_manifest_beside).
///
/// # Errors
/// `InvalidArgument`: there is no `CURRENT`, and so no database. `Corruption` naming file, offset and cause; `Io`.
pub fn read_manifest(fs: &dyn Fs, dir: &Path) -> Result<(FileNumber, Replayed)> {
    let number = named_manifest(fs, dir)?;
    let replayed = replay_manifest(fs, dir, number).map_err(|e| missing_manifest(fs, dir, number, e))?;
    Ok((number, replayed))
}

/// The number of the MANIFEST that `CURRENT` names.
pub(super) fn named_manifest(fs: &dyn Fs, dir: &Path) -> Result<FileNumber> {
    read_current(fs, dir)?
        .ok_or_else(|| Error::invalid("there is no database (no CURRENT file)").at_path(dir))
}

/// Turns "not found" for the MANIFEST that `CURRENT` names into `Corruption`.
pub(super) fn missing_manifest(fs: &dyn Fs, dir: &Path, number: FileNumber, e: Error) -> Error {
    if !e.is_not_found() {
        return e;
    }
    Error::corruption(format!("CURRENT names MANIFEST-{number}, which is missing"))
        .at_path(&dir.join(FileKind::Manifest(number).name()))
        .hint(candidates(fs, dir))
}

/// Reads `MANIFEST-<number>` of `dir`, up to the length that the file has at the start of the call.
///
/// # Errors
/// `Corruption` naming file, offset and cause; `Io` when the file is missing or unreadable.
pub fn replay_manifest(fs: &dyn Fs, dir: &Path, number: FileNumber) -> Result<Replayed> {
    let file = fs.open_read(&dir.join(FileKind::Manifest(number).name()))?;
    let bytes = file.len();
    replay_file(fs, dir, number, Prefix::of(file, bytes))
}

/// Reads the first `bytes` bytes of `MANIFEST-<number>`, which its writer has made durable. An unreadable end is an
/// error.
///
/// # Errors
/// As [`replay_manifest`].
pub fn verify_manifest(fs: &dyn Fs, dir: &Path, number: FileNumber, bytes: u64) -> Result<()> {
    replay_durable(fs, dir, number, bytes).map(drop)
}

/// What the first `bytes` bytes of `MANIFEST-<number>` say, which its writer has made durable.
///
/// # Errors
/// Those of [`verify_manifest`].
pub fn replay_durable(fs: &dyn Fs, dir: &Path, number: FileNumber, bytes: u64) -> Result<Replayed> {
    let file = fs.open_read(&dir.join(FileKind::Manifest(number).name()))?;
    let path = file.path().to_path_buf();
    let found = file.len();
    if found < bytes {
        let what = format!("MANIFEST damaged: {found} bytes are left of {bytes} durable ones");
        return Err(Error::corruption(what).at(&path, found));
    }
    let replayed = replay_file(fs, dir, number, Prefix::of(file, bytes))?;
    match &replayed.dropped {
        Some(tail) => Err(Error::corruption(tail.reason.clone()).at(&path, tail.offset)),
        None => Ok(replayed),
    }
}

fn replay_file(fs: &dyn Fs, dir: &Path, number: FileNumber, file: Arc<dyn ReadFile>) -> Result<Replayed> {
    let path = dir.join(FileKind::Manifest(number).name());
    let bytes = file.len();
    let mut reader =
        LogReader::open(Arc::clone(&file), number, RecoveryMode::TolerateTail).with_zeros_max(ZEROS_MAX);
    let mut replayer = Replayer::default();
    let default = ReplayedFamily { name: "default".to_string(), ..ReplayedFamily::default() };
    replayer.names.insert(default.name.clone());
    replayer.families.insert(FamilyId::DEFAULT, default);
    let mut records = 0;
    while let Some(record) = reader.next()? {
        records += 1;
        let offset = record.offset;
        if record.kind != LogRecordKind::Data {
            return Err(Error::corruption("a record type that no MANIFEST has").at(&path, offset));
        }
        let edit = VersionEdit::decode(record.payload).map_err(|e| e.into_error().at(&path, offset))?;
        replayer.record(edit, offset).map_err(|e| e.at(&path, offset))?;
    }
    let mut dropped = replayer.torn_tail(&reader, &file, records)?;
    if !replayer.group.is_empty() && dropped.is_none() {
        let offset = replayer.group_start;
        let reason = "an atomic group without its last record".to_string();
        dropped = Some(DroppedTail { offset, bytes: bytes.saturating_sub(offset), reason });
    } else if let (Some(tail), false) = (&mut dropped, replayer.group.is_empty()) {
        tail.offset = replayer.group_start.min(tail.offset);
        tail.bytes = bytes.saturating_sub(tail.offset);
    }
    // No program appends to the file before `CURRENT` durably names it.
    replayer.was_current |= replayer.beginning.is_some_and(|beginning| records > u64::from(beginning));
    let mut replayed = replayer.finish(path, records, bytes, dropped)?;
    comparators::learn(fs, dir, &mut replayed.families)?;
    Ok(replayed)
}

/// Whether `MANIFEST-<number>` of `dir` was in use. False for a damaged or missing file, because it is not known.
///
/// # Errors
/// `Io`: a failed read. It must not count as "not in use".
pub fn was_current(fs: &dyn Fs, dir: &Path, number: FileNumber) -> Result<bool> {
    match replay_manifest(fs, dir, number) {
        Ok(replayed) => Ok(replayed.was_current),
        Err(e) if matches!(e.kind(), ErrorKind::Io(_)) && !e.is_not_found() => Err(e),
        Err(_) => Ok(false),
    }
}

impl Replayer {
    /// The only damage that is no error; every other is fatal.
    fn torn_tail(
        &self,
        reader: &LogReader,
        file: &Arc<dyn ReadFile>,
        records: u64,
    ) -> Result<Option<DroppedTail>> {
        let damaged = |offset, what: String| Err(Error::corruption(what).at(file.path(), offset));
        if let Some(beginning) = self.beginning.filter(|n| u64::from(*n) > records) {
            let what =
                format!("MANIFEST damaged: {records} records are left of the {beginning} it began with");
            return damaged(reader.good_end(), what);
        }
        let (offset, reason) = match reader.end() {
            LogEnd::Clean if reader.good_end() == file.len() || self.beginning.is_none() => return Ok(None),
            LogEnd::Clean => (reader.good_end(), "zeros".to_string()),
            LogEnd::Torn { offset, reason, .. } => (offset, format!("torn tail: {reason}")),
            LogEnd::Cut { offset, reason, .. }
                if self.beginning.is_none() || reason == CutReason::ManyZeros =>
            {
                return damaged(offset, format!("MANIFEST damaged: {reason}"));
            }
            LogEnd::Cut { offset, reason, .. } => (offset, format!("torn tail: {reason}")),
            LogEnd::OldRecord { offset } => {
                return damaged(offset, "a record of a recycled log in a MANIFEST".to_string());
            }
        };
        if let Some(behind) = record_behind(Arc::clone(file), offset)? {
            let what = format!("MANIFEST damaged: {reason}, but a whole record follows at {behind}");
            return damaged(offset, what);
        }
        Ok(Some(DroppedTail { offset, bytes: file.len().saturating_sub(offset), reason }))
    }
}

impl Replayer {
    fn record(&mut self, edit: VersionEdit, offset: u64) -> Result<()> {
        match edit.atomic_group {
            None if self.group.is_empty() => self.apply(&edit),
            None => Err(Error::corruption("an atomic group is interrupted by an ordinary version edit")),
            Some(remaining) => {
                if let Some(before) = self.group.last().and_then(|e| e.atomic_group) {
                    if before.checked_sub(1) != Some(remaining) {
                        return Err(Error::corruption(format!(
                            "an atomic group counts down from {before} to {remaining}"
                        )));
                    }
                } else {
                    self.group_start = offset;
                }
                self.group.push(edit);
                if remaining == 0 {
                    let group = std::mem::take(&mut self.group);
                    group.iter().try_for_each(|e| self.apply(e))?;
                }
                Ok(())
            }
        }
    }

    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        self.db.absorb(edit);
        self.beginning = self.beginning.or(edit.beginning);
        self.scalars(edit)?;
        for (tag, _) in &edit.ignored {
            if !self.unknown_tags.contains(tag) {
                self.unknown_tags.push(*tag);
            }
        }
        if let Some(name) = &edit.family_add {
            return self.add_family(edit, name);
        }
        if edit.family_drop {
            return self.drop_family(edit.family);
        }
        if !edit.wal_added.is_empty() || edit.wal_deleted.is_some() {
            return Ok(());
        }
        match self.families.get_mut(&edit.family) {
            Some(family) => {
                self.any_log_number |= edit.log_number.is_some();
                family.absorb(edit)
            }
            None => Err(Error::corruption(format!(
                "version edit for family {}, which does not exist",
                edit.family.0
            ))),
        }
    }

    fn scalars(&mut self, edit: &VersionEdit) -> Result<()> {
        if let Some(next) = edit.next_file {
            // The commit that begins a MANIFEST carries one number, or two that differ by one; more means that
            // commits followed.
            let first = *self.first_next_file.get_or_insert(next);
            self.was_current |= next.0 >= first.0.saturating_add(2);
            self.next_file = Some(next);
        }
        if let Some(seq) = edit.last_seq {
            if let Some(before) = self.last_seq.filter(|b| *b > seq) {
                return Err(Error::corruption(format!("the last sequence goes back from {before} to {seq}")));
            }
            self.last_seq = Some(seq);
        }
        Ok(())
    }

    fn add_family(&mut self, edit: &VersionEdit, name: &[u8]) -> Result<()> {
        let name = std::str::from_utf8(name).map_err(|_| {
            let what = format!("a family name that is not UTF-8: \"{}\"", name.escape_ascii());
            Error::not_supported(what)
                .hint("Copy the family to one with another name, or drop it, with RocksDB")
        })?;
        if self.families.contains_key(&edit.family) {
            return Err(Error::corruption(format!("version edit adds family {} again", edit.family.0)));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(Error::corruption(format!("version edit adds a second family {name:?}")));
        }
        let mut family = ReplayedFamily { name: name.to_string(), ..ReplayedFamily::default() };
        self.any_log_number |= edit.log_number.is_some();
        family.absorb_scalars(edit);
        self.families.insert(edit.family, family);
        Ok(())
    }

    fn drop_family(&mut self, id: FamilyId) -> Result<()> {
        if id == FamilyId::DEFAULT {
            return Err(Error::corruption("version edit drops the default family"));
        }
        match self.families.remove(&id) {
            Some(family) => {
                self.names.remove(&family.name);
                Ok(())
            }
            None => {
                Err(Error::corruption(format!("version edit drops family {}, which does not exist", id.0)))
            }
        }
    }

    fn finish(
        self,
        path: PathBuf,
        records: u64,
        bytes: u64,
        dropped: Option<DroppedTail>,
    ) -> Result<Replayed> {
        // Where reading ended: a length that reaches over the end of the file looks like a torn tail.
        let missing = |what: &str| {
            let e = Error::corruption(format!("MANIFEST has no {what} entry after {records} records"));
            match &dropped {
                Some(tail) => e.at(&path, tail.offset).because(&tail.reason),
                None => e.at(&path, bytes),
            }
        };
        if !self.any_log_number {
            return Err(missing("log_file_number"));
        }
        let next_file = self.next_file.ok_or_else(|| missing("next_file_number"))?;
        let last_seq = self.last_seq.ok_or_else(|| missing("last_sequence"))?;
        let (db, families, was_current, unknown_tags) =
            (self.db, self.families, self.was_current, self.unknown_tags);
        Ok(Replayed { path, db, families, next_file, last_seq, records, dropped, was_current, unknown_tags })
    }
}
