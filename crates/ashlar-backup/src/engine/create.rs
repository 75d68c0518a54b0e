//! Makes a backup.

use super::catalog::{META, PRIVATE, SHARED_CHECKSUM, Stored, list};
use super::copy::{Pace, Sum, check, copy, each};
use super::{BackupEngine, BackupInfo};
use crate::Copied;
use crate::parts::{Part, files_of, newest_options, parts};
use ashlar_base::checksum::crc32c;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Result, SeqNum};
use ashlar_engine::{Db, Moment};
use ashlar_env::ReadFile;
use ashlar_format::backup_meta::{BackupFile, BackupMeta, SharedName};
use ashlar_format::filename::{FileKind, current_content};
use ashlar_table::Anatomy;
use ashlar_tree::files::{make_directory, options_of_copy, write_file};
use ashlar_tree::version::replay_manifest;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The most bytes that an application may add to a backup, as in RocksDB.
const METADATA_MAX: usize = 1 << 20;

/// Options of a backup. Every option has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a backup gets them"]
pub struct BackupOptions {
    flush: bool,
    metadata: Vec<u8>,
}

impl BackupOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to flush all memtables first. Default: false; the backup then has copies of the WAL files. When writes skipped
    /// the WAL, a backup flushes in any case.
    pub fn flush(self, yes: bool) -> Self {
        BackupOptions { flush: yes, ..self }
    }

    /// Bytes of the application, at most 1 MiB, that the list of backups shows. Default: none.
    pub fn metadata(self, bytes: impl Into<Vec<u8>>) -> Self {
        BackupOptions { metadata: bytes.into(), ..self }
    }
}

/// A finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreatedBackup {
    /// The backup.
    pub info: BackupInfo,
    /// Tables and blob files that earlier backups had.
    pub shared_files: usize,
    /// The bytes of tables, blob files and WAL files that this backup copied.
    pub copied_bytes: u64,
}

/// A database that can be backed up.
#[doc(hidden)]
pub trait BackupSource {
    /// The engine's handle.
    fn source(&self) -> &Db;
}

impl BackupSource for Db {
    fn source(&self) -> &Db {
        self
    }
}

impl BackupEngine {
    /// Adds a backup with the present state of `db`, over all families. Writers go on meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument`: the metadata is too long, or the call comes from a callback of the database. `NotSupported`: the
    /// engine or the database is open for reading only, or the database has tables in several directories. `Aborted`: a flush is
    /// needed and background work is paused. `Corruption`: a file of the database is missing, or differs from its checksum.
    /// `Io`. The error that refuses writes. `Shutdown`. After an error there is no new backup.
    /// # Cost
    /// A copy of the MANIFEST, the WAL files, and the tables and blob files that no earlier backup has. Blob files without a
    /// checksum in the MANIFEST are read in any case. A few reads per table, and an fsync per copied file.
    pub fn create_backup(&mut self, db: &impl BackupSource) -> Result<CreatedBackup> {
        self.create_backup_with(db, &BackupOptions::new(), |_| ())
    }

    /// [`BackupEngine::create_backup`] with options. `progress` is called after each file.
    ///
    /// # Errors
    /// Those of [`BackupEngine::create_backup`].
    pub fn create_backup_with(
        &mut self,
        db: &impl BackupSource,
        options: &BackupOptions,
        mut progress: impl FnMut(&Copied),
    ) -> Result<CreatedBackup> {
        self.create(db.source(), options, &mut progress)
    }

    fn create(
        &mut self,
        db: &Db,
        options: &BackupOptions,
        progress: &mut dyn FnMut(&Copied),
    ) -> Result<CreatedBackup> {
        self.check_writable()?;
        if options.metadata.len() > METADATA_MAX {
            let what =
                format!("{} bytes of metadata; a backup has at most {METADATA_MAX}", options.metadata.len());
            return Err(Error::invalid(what));
        }
        self.refresh()?;
        let swept = self.sweep();
        let id = self.catalog.next_id()?;
        let private = self.private(id);
        // What could not be removed is in the way only here.
        if let Some(other) = list(&*self.fs, &private)?.first() {
            swept?;
            let what = format!("{:?} is in the folder of the new backup", other.name);
            return Err(Error::invalid(what).at_path(&private).hint("Move it away"));
        }
        if options.flush || db.has_unlogged() {
            db.flush(&db.families())?;
        }
        let held = db.hold_files("create_backup()")?;
        let moment = held.moment()?;
        let created = Creation { db, engine: self, id, private, known: self.known(), pace: self.pace() }
            .run(&moment, options, progress);
        match created {
            Ok(counts) => self.created(id, counts),
            Err(e) => {
                // Best effort: the next call that changes backups removes what stays.
                let _ = self.collect_garbage();
                Err(e)
            }
        }
    }

    fn created(&mut self, id: u32, counts: Counts) -> Result<CreatedBackup> {
        self.refresh()?;
        let info = self.backup(id)?.info.clone();
        Ok(CreatedBackup { info, shared_files: counts.shared_files, copied_bytes: counts.copied_bytes })
    }

    /// The shared files of usable backups, with their checksums.
    fn known(&self) -> BTreeMap<String, Sum> {
        let files = self.catalog.backups.values().flat_map(|backup| &backup.files);
        let sum = |file: &Stored| Some(Sum { bytes: file.bytes, crc: file.checksum? });
        files.filter_map(|file| Some((file.path.clone(), sum(file)?))).collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    shared_files: usize,
    copied_bytes: u64,
}

/// The work of one backup.
struct Creation<'a> {
    db: &'a Db,
    engine: &'a BackupEngine,
    id: u32,
    private: PathBuf,
    known: BTreeMap<String, Sum>,
    pace: Pace,
}

/// A file of the backup.
struct Brought {
    file: BackupFile,
    /// The bytes that were copied; `None`: an earlier backup has the file.
    copied_bytes: Option<u64>,
}

impl Creation<'_> {
    fn run(
        self,
        moment: &Moment,
        options: &BackupOptions,
        progress: &mut dyn FnMut(&Copied),
    ) -> Result<Counts> {
        let (fs, dir) = (&*self.engine.fs, &self.engine.dir);
        for folder in [META, SHARED_CHECKSUM] {
            make_directory(fs, &dir.join(folder))?;
        }
        make_directory(fs, &self.private)?;
        let manifest = FileKind::Manifest(moment.manifest);
        let mut files = vec![self.copy_private(&manifest.name(), moment.manifest_bytes)?];
        let there = files_of(&*self.db.env().fs, self.db.path())?;
        if let Some(name) = newest_options(&there) {
            let text = options_of_copy(&*self.db.env().fs, &self.db.path().join(name))?;
            files.push(self.write_private(name, text.as_bytes())?);
        }
        let replayed = replay_manifest(fs, &self.private, moment.manifest)?;
        let parts = parts(self.db.path(), &replayed, moment, &there)?;
        let bytes_total = parts.iter().map(|part| part.bytes).sum();
        let mut done = Copied { files_total: parts.len(), bytes_total, ..Copied::default() };
        let bring = |part: &Part| match part.kind {
            FileKind::Wal(_) => {
                let file = self.copy_private(&part.name, part.bytes)?;
                Ok(Brought { file, copied_bytes: Some(part.bytes) })
            }
            _ => self.share(part),
        };
        let (mut brought, mut counts) = (BTreeMap::new(), Counts::default());
        each(&parts, self.engine.threads, bring, |at, part| {
            match part.copied_bytes {
                Some(bytes) => counts.copied_bytes += bytes,
                None => counts.shared_files += 1,
            }
            brought.insert(at, part.file);
            done.files += 1;
            done.bytes += parts[at].bytes;
            progress(&done);
        })?;
        files.extend(brought.into_values());
        files.push(
            self.write_private(&FileKind::Current.name(), current_content(moment.manifest).as_bytes())?,
        );
        if !planted(Bug::BackupDirUnsynced) {
            fs.sync_dir(&self.private)?;
        }
        fs.sync_dir(&dir.join(SHARED_CHECKSUM))?;
        self.publish(moment.sequence, options, files)?;
        Ok(counts)
    }

    /// Copies the first `bytes` bytes of a file of the database, which has them.
    fn copy_private(&self, name: &str, bytes: u64) -> Result<BackupFile> {
        let from = self.db.path().join(name);
        let source = self.db.env().fs.open_read(&from)?;
        let to = self.private.join(name);
        let sum = copy(&*source, Some((&*self.engine.fs, &to)), bytes, &self.pace)?;
        if sum.bytes < bytes {
            let what = format!("file is truncated: {} of {bytes} bytes are left", sum.bytes);
            return Err(Error::corruption(what).at(&from, sum.bytes));
        }
        Ok(self.private_file(name, sum.crc))
    }

    fn write_private(&self, name: &str, content: &[u8]) -> Result<BackupFile> {
        write_file(&*self.engine.fs, &self.private.join(name), content)?;
        Ok(self.private_file(name, crc32c(content)))
    }

    fn private_file(&self, name: &str, crc: u32) -> BackupFile {
        file(format!("{PRIVATE}/{}/{name}", self.id), crc)
    }

    /// Brings a table or blob file, unless an earlier backup has it.
    fn share(&self, part: &Part) -> Result<Brought> {
        let from = self.db.path().join(&part.name);
        let source = self.db.env().fs.open_read(&from)?;
        let bytes = source.len();
        let name = match self.session_name(part, &source)? {
            Some(name) => name,
            None => {
                let crc = match part.recorded {
                    Some(crc) => crc,
                    None => copy(&*source, None, bytes, &self.pace)?.crc,
                };
                checksum_name(part, bytes, crc)?
            }
        };
        let path = format!("{SHARED_CHECKSUM}/{name}");
        if let Some(known) = self.known.get(&path).copied() {
            check(&from, known, bytes, part.recorded)?;
            return Ok(Brought { file: file(path, known.crc), copied_bytes: None });
        }
        let (fs, folder) = (&*self.engine.fs, self.engine.dir.join(SHARED_CHECKSUM));
        let temp = folder.join(format!(".{name}.tmp"));
        let sum = copy(&*source, Some((fs, &temp)), u64::MAX, &self.pace)?;
        let expected = match SharedName::parse(&name) {
            Some(SharedName::Checksum { checksum, .. }) => Some(checksum),
            _ => part.recorded,
        };
        check(&from, sum, bytes, expected).map_err(Error::damaged_file_hint)?;
        fs.rename(&temp, &folder.join(&name))?;
        Ok(Brought { file: file(path, sum.crc), copied_bytes: Some(sum.bytes) })
    }

    /// The name of a table by the session that wrote it. `None`: the table has no session, or was written under another number;
    /// then two tables could have one such name.
    fn session_name(&self, part: &Part, source: &Arc<dyn ReadFile>) -> Result<Option<String>> {
        let FileKind::Table(number) = part.kind else { return Ok(None) };
        let anatomy = Anatomy::open(Arc::clone(source))?;
        let said = anatomy.properties()?;
        let Some(session) = said.db_session_id.as_deref() else { return Ok(None) };
        if said.original_file_number != Some(number.0) {
            return Ok(None);
        }
        let name = SharedName::Session { number, session: session.into(), size: Some(source.len()) };
        let name = name.to_string();
        // A session id from a damaged or foreign table may have any bytes.
        Ok(SharedName::parse(&name).is_some().then_some(name))
    }

    /// Writes the meta file, which makes the backup one.
    fn publish(&self, sequence: SeqNum, options: &BackupOptions, files: Vec<BackupFile>) -> Result<()> {
        let (fs, folder) = (&*self.engine.fs, self.engine.dir.join(META));
        let meta = BackupMeta {
            timestamp: i64::try_from(self.engine.clock.unix_micros() / 1_000_000).unwrap_or_default(),
            sequence: sequence.get(),
            app_metadata: options.metadata.clone(),
            files,
            ..BackupMeta::default()
        };
        let (temp, name) = (folder.join(format!(".{}.tmp", self.id)), folder.join(self.id.to_string()));
        write_file(fs, &temp, meta.print().as_bytes())?;
        fs.rename(&temp, &name)?;
        fs.sync_dir(&folder).inspect_err(|_| {
            // The name may vanish, so it goes. If it cannot be removed, the backup is complete.
            let _ = fs.remove(&name);
        })
    }
}

fn file(path: String, crc: u32) -> BackupFile {
    BackupFile { path, checksum: Some(crc), ..BackupFile::default() }
}

/// The name of a file by its checksum. RocksDB knows the ending of tables only as `sst`; a LevelDB table may have either.
fn checksum_name(part: &Part, size: u64, checksum: u32) -> Result<String> {
    let (number, extension) = match part.kind {
        FileKind::Table(number) | FileKind::LevelDbTable(number) => (number, "sst"),
        FileKind::Blob(number) => (number, "blob"),
        _ => return Err(Error::invalid("a file that backups do not share")),
    };
    Ok(SharedName::Checksum { number, checksum, size, extension }.to_string())
}
