//! The files of one moment, listed for a program that copies them.
//!
//! 1. The list is that of a checkpoint: the tables and blob files of the MANIFEST at the moment, WAL files, MANIFEST, OPTIONS,
//!    and the content of CURRENT. Copied up to the listed bytes, they are a database with the writes up to one number.
//! 2. While the list lives, no file of it is removed. A close does not wait for the list, and removes no file either.
//!
//! Source: RocksDB `db/db_filesnapshot.cc` (`GetLiveFilesStorageInfo`), `include/rocksdb/metadata.h`, behaviour.

use super::parts::{Part, files_of, newest_options, parts};
use ashlar_base::{FileNumber, Level, Result, SeqNum};
use ashlar_engine::{Db, KeptFiles, Moment};
use ashlar_format::filename::{FileKind, current_content};
use ashlar_format::version_edit::NewFile;
use ashlar_tree::files::options_of_copy;
use ashlar_tree::version::{Replayed, replay_durable};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// What a file of a database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StorageKind {
    /// A table. It never changes: a hard link is as good as a copy.
    Table,
    /// Large values. It never changes.
    Blob,
    /// Writes that tables may lack. It grows: only the listed bytes belong to the moment.
    Wal,
    /// The list of tables and blob files. It grows: only the listed bytes belong to the moment.
    Manifest,
    /// Names the MANIFEST. Write [`StorageFile::content`] in place of a copy.
    Current,
    /// The settings. Write [`StorageFile::content`] in place of a copy: it names no directory of this database.
    Options,
}

/// One file of a database at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StorageFile {
    /// The directory of the file.
    pub dir: PathBuf,
    /// Its name there, and in a copy.
    pub name: String,
    /// What it holds.
    pub kind: StorageKind,
    /// The bytes that a copy needs. The file may have more.
    pub bytes: u64,
    /// What to write in place of a copy.
    pub content: Option<Vec<u8>>,
    /// The checksum over the whole file that the MANIFEST has: the name of its function and its bytes.
    pub checksum: Option<(String, Vec<u8>)>,
    /// The family of a table or blob file.
    pub family: Option<String>,
    /// The level of a table.
    pub level: Option<Level>,
    /// The sequence numbers of the oldest and the newest change in a table.
    pub sequences: Option<(SeqNum, SeqNum)>,
    /// The smallest and the largest user key of a table.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
}

impl StorageFile {
    fn new(dir: &Path, name: String, kind: StorageKind, bytes: u64) -> StorageFile {
        StorageFile {
            dir: dir.to_path_buf(),
            name,
            kind,
            bytes,
            content: None,
            checksum: None,
            family: None,
            level: None,
            sequences: None,
            keys: None,
        }
    }

    /// A file that is written with this content.
    fn instead(dir: &Path, name: String, kind: StorageKind, content: Vec<u8>) -> StorageFile {
        let file = StorageFile::new(dir, name, kind, content.len() as u64);
        StorageFile { content: Some(content), ..file }
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }
}

/// The files of one moment. None of them is removed while this value lives.
#[must_use = "the files may be removed once this is dropped"]
pub struct LiveFiles {
    files: Vec<StorageFile>,
    sequence: SeqNum,
    _held: KeptFiles,
}

impl LiveFiles {
    /// The newest write in the files.
    pub fn sequence(&self) -> SeqNum {
        self.sequence
    }
}

impl Deref for LiveFiles {
    type Target = [StorageFile];

    fn deref(&self) -> &[StorageFile] {
        &self.files
    }
}

impl fmt::Debug for LiveFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveFiles").field("files", &self.files).field("sequence", &self.sequence).finish()
    }
}

/// The files of the present moment, in an order in which they may be copied: CURRENT last.
///
/// # Errors
/// `NotSupported`: the database is open for reading only, or its tables are in several directories. `InvalidArgument`: a
/// callback of the database makes the call. `Aborted`: background work is paused, and a flush is needed because writes skipped
/// the WAL. `Corruption`, `Io`: the MANIFEST cannot be read, or a file is missing. `Shutdown`.
/// # Cost
/// Reads the MANIFEST. A flush if writes skipped the WAL.
pub fn live_files(db: &Db) -> Result<LiveFiles> {
    let held = db.hold_files("live_files()")?;
    let moment = held.moment()?;
    let (fs, dir) = (&*db.env().fs, db.path());
    let replayed = replay_durable(fs, dir, moment.manifest, moment.manifest_bytes)?;
    let there = files_of(fs, dir)?;
    let known = known(&replayed);
    let mut files = Vec::new();
    for part in parts(dir, &replayed, &moment, &there)? {
        files.push(of_part(dir, &moment, part, &known));
    }
    if let Some(name) = newest_options(&there) {
        let content = options_of_copy(fs, &dir.join(name))?.into_bytes();
        files.push(StorageFile::instead(dir, name.to_owned(), StorageKind::Options, content));
    }
    let manifest = FileKind::Manifest(moment.manifest).name();
    files.push(StorageFile::new(dir, manifest, StorageKind::Manifest, moment.manifest_bytes));
    let content = current_content(moment.manifest).into_bytes();
    files.push(StorageFile::instead(dir, FileKind::Current.name(), StorageKind::Current, content));
    Ok(LiveFiles { files, sequence: moment.sequence, _held: held.without_claim() })
}

/// What the MANIFEST says of a file.
struct Known<'r> {
    family: &'r str,
    table: Option<(Level, &'r NewFile)>,
    checksum: Option<(String, Vec<u8>)>,
}

fn known(replayed: &Replayed) -> BTreeMap<FileNumber, Known<'_>> {
    let mut known = BTreeMap::new();
    for family in replayed.families.values() {
        let checksum = |number| {
            let (function, sum) = family.tree.recorded_checksum(number)?;
            (!sum.is_empty()).then(|| (String::from_utf8_lossy(function).into_owned(), sum.to_vec()))
        };
        for (level, file) in family.tree.tables() {
            let (table, checksum) = (Some((level, file)), checksum(file.number));
            known.insert(file.number, Known { family: &family.name, table, checksum });
        }
        for number in family.tree.live_blob_numbers() {
            let checksum = checksum(number);
            known.insert(number, Known { family: &family.name, table: None, checksum });
        }
    }
    known
}

fn of_part(dir: &Path, moment: &Moment, part: Part, known: &BTreeMap<FileNumber, Known<'_>>) -> StorageFile {
    let kind = match part.kind {
        FileKind::Wal(_) => StorageKind::Wal,
        FileKind::Blob(_) => StorageKind::Blob,
        _ => StorageKind::Table,
    };
    let dir = if kind == StorageKind::Wal { &moment.wal_dir } else { dir };
    let mut file = StorageFile::new(dir, part.name, kind, part.bytes);
    let of = part.kind.number().filter(|_| kind != StorageKind::Wal).and_then(|number| known.get(&number));
    if let Some(Known { family, table, checksum }) = of {
        (file.family, file.checksum) = (Some((*family).to_owned()), checksum.clone());
        if let Some((level, table)) = table {
            file.level = Some(*level);
            file.sequences = Some((table.smallest_seq, table.largest_seq));
            let key = |key: &ashlar_base::InternalKeyBuf| key.as_key().user_key().to_vec();
            file.keys = Some((key(&table.smallest), key(&table.largest)));
        }
    }
    file
}
