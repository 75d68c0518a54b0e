//! A checkpoint: a database with the state of one moment of an open one, made while writers go on.
//!
//! ```text
//! flush, if asked for or needed -> hold all files -> one moment (MANIFEST length, WAL ends)
//!   -> MANIFEST copied up to its length and replayed -> its tables and blob files linked, or copied
//!   -> WAL files and OPTIONS copied -> all of it durable -> CURRENT -> the directory gets its name
//! ```
//! 1. The state is that of one sequence number over all families: see [`ashlar_engine::HeldFiles`].
//! 2. Linked files belong to both databases. A finished table or blob file is never written again, so neither database
//!    changes the other. WAL files, the MANIFEST and the OPTIONS file are copied.
//! 3. The directory is filled under the name `<into>.tmp`. It gets its name when all of it is durable, so the name leads to
//!    a complete database or to nothing. A failed call removes what it made; after a crash the next call for the same
//!    `into` does.
//! 4. No file is empty: WAL files without a record and the file LOCK are left out.
//! 5. All files are in the one directory: the copied OPTIONS file names no `wal_dir` and no `db_paths`.
//!
//! Source: RocksDB `utilities/checkpoint/checkpoint_impl.cc`.

use super::parts::{Part, files_of, newest_options, parts};
use super::target::Target;
use ashlar_base::{Error, Result, SeqNum};
use ashlar_engine::{Db, Moment};
use ashlar_env::Fs;
use ashlar_format::filename::{FileKind, current_content};
use ashlar_tree::files::{copy_file, copy_options, link_or_copy};
use ashlar_tree::version::{replay_manifest, write_small};
use std::path::Path;

/// Options of a checkpoint. Every option has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a checkpoint gets them"]
pub struct CheckpointOptions {
    flush: bool,
}

impl CheckpointOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to flush all memtables first, so that the checkpoint has little to replay. Default: false; the checkpoint
    /// then has copies of the WAL files. When writes skipped the WAL, a checkpoint flushes in any case.
    pub fn flush(self, yes: bool) -> Self {
        CheckpointOptions { flush: yes }
    }
}

/// How far a checkpoint is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Tables, blob files and WAL files that are in place.
    pub files: usize,
    /// All of them.
    pub files_total: usize,
    /// The bytes of the files in place.
    pub bytes: u64,
    /// The bytes of all of them.
    pub bytes_total: u64,
}

/// A finished checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The newest write in it.
    pub sequence: SeqNum,
    /// Tables and blob files that are hard links to those of the database.
    pub linked: usize,
    /// Tables, blob files and WAL files that are copies.
    pub copied: usize,
    /// Bytes of tables, blob files and WAL files, links included.
    pub bytes: u64,
}

/// Makes the directory `into` a database with the present state of `db`. `progress` is called after each file.
///
/// # Errors
/// `InvalidArgument`: `into` has something in it, lies in the directory of the database, or the call comes from a callback of
/// the database. `NotSupported`: the database is open for reading only, or has tables in several directories. `Aborted`:
/// a flush is needed and background work is paused. `Busy(Locked)`: another
/// checkpoint to `into` is being made. `Io`, `Corruption`: a file could not be copied; `into` does not exist
/// then. The error that refuses writes. `Shutdown`.
/// # Cost
/// A link for each table and blob file where the file system has links and `into` is on the same one, else a copy. A copy
/// of the WAL files, and an fsync for each copied file. Writers wait while the moment is read, which takes microseconds, or
/// as long as a flush if writes of this session skipped the WAL.
pub fn checkpoint(
    db: &Db,
    into: &Path,
    options: CheckpointOptions,
    progress: &mut dyn FnMut(&Copied),
) -> Result<Checkpoint> {
    let fs = &*db.env().fs;
    let target = Target::new(fs, db.path(), into)?;
    if options.flush || db.has_unlogged() {
        db.flush(&db.families())?;
    }
    let held = db.hold_files("checkpoint()")?;
    let moment = held.moment()?;
    let building = target.begin()?;
    let filled =
        Filling { from: db.path(), into: building.dir(), fs: &**building.fs() }.fill(&moment, progress)?;
    building.finish()?;
    Ok(filled)
}

/// The work of one checkpoint. `fs` reaches both directories.
struct Filling<'a> {
    from: &'a Path,
    into: &'a Path,
    fs: &'a dyn Fs,
}

impl Filling<'_> {
    fn fill(&self, moment: &Moment, progress: &mut dyn FnMut(&Copied)) -> Result<Checkpoint> {
        let manifest = FileKind::Manifest(moment.manifest);
        self.copy(&manifest.name(), moment.manifest_bytes)?;
        let there = files_of(self.fs, self.from)?;
        if let Some(options) = newest_options(&there) {
            copy_options(self.fs, &self.from.join(options), &self.into.join(options))?;
        }
        let replayed = replay_manifest(self.fs, self.into, moment.manifest)?;
        let mut parts = parts(self.from, &replayed, moment, &there)?;
        // An open does without them, and programs that ship each file of a copy refuse empty ones.
        parts.retain(|part| part.bytes > 0 || !matches!(part.kind, FileKind::Wal(_)));
        let bytes_total = parts.iter().map(|part| part.bytes).sum();
        let mut done = Copied { files_total: parts.len(), bytes_total, ..Copied::default() };
        let (mut linked, mut copied) = (0, 0);
        for part in &parts {
            match self.bring(part)? {
                true => copied += 1,
                false => linked += 1,
            }
            done.files += 1;
            done.bytes += part.bytes;
            progress(&done);
        }
        self.fs.sync_dir(self.into)?;
        let current = current_content(moment.manifest);
        write_small(self.fs, self.into, &FileKind::Current.name(), current.as_bytes())?;
        Ok(Checkpoint { sequence: moment.sequence, linked, copied, bytes: bytes_total })
    }

    /// Links or copies a file. Returns whether it copied.
    fn bring(&self, part: &Part) -> Result<bool> {
        if matches!(part.kind, FileKind::Wal(_)) {
            return self.copy(&part.name, part.bytes).map(|()| true);
        }
        link_or_copy(self.fs, &self.from.join(&part.name), &self.into.join(&part.name))
    }

    /// Copies the first `bytes` bytes of a file, which it has.
    fn copy(&self, name: &str, bytes: u64) -> Result<()> {
        let from = self.from.join(name);
        let copied = copy_file(self.fs, &from, &self.into.join(name), bytes)?;
        if copied < bytes {
            let what = format!("file is truncated: {copied} of {bytes} bytes are left");
            return Err(Error::corruption(what).at(&from, copied));
        }
        Ok(())
    }
}
