//! Writes a table outside a database, to be ingested later (RocksDB: `SstFileWriter`).
//!
//! 1. Every entry has sequence number 0. The ingestion gives all entries of the file one sequence number, in the MANIFEST.
//! 2. The caller gives keys in strictly ascending order, and range deletions in any order. A range deletion of the file hides
//!    no key of the same file.
//! 3. The bytes go to a file with a name of its own beside the target. [`SstWriter::finish`] syncs that file and then gives it
//!    the name that the caller wants. So a file with that name is always whole, and a writer that is dropped leaves nothing.
//!
//! Source: RocksDB `table/sst_file_writer.cc` (behaviour).

use crate::builder::{CollectorFailure, MAX_KEY_BYTES, TableBuilder};
use crate::options::{TableIdentity, TableOptions};
use ashlar_base::range_del::{FragmentedTombstones, ListedTombstones};
use ashlar_base::{Error, FileNumber, InternalKeyBuf, Order, Result, SeqNum, Trailer, ValueType};
use ashlar_env::{Fs, WriteFile, folder_of};
use ashlar_format::table::Properties;
use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the properties of the file say instead of the id of a database.
const WRITER_ID: &str = "SST Writer";

/// What a writer needs.
#[derive(Clone, Debug)]
pub struct SstWriterInput {
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// The file to write. A file of that name is replaced when the new one is finished.
    pub path: PathBuf,
    /// The format of the table, with the order of the keys.
    pub table: TableOptions,
    /// An id that no other writer has, as of a session.
    pub session_id: String,
    /// The time, in seconds since 1970.
    pub unix_secs: u64,
}

/// What a finished writer has written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SstSummary {
    /// The file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub size: u64,
    /// The number of puts, merges and deletions of single keys.
    pub entries: u64,
    /// The number of range deletions, after those that overlap were cut into pieces.
    pub range_deletions: u64,
    /// The smallest key, range deletions included.
    pub smallest: Vec<u8>,
    /// The largest key. If a range deletion reaches further than every key, its end, which it excludes.
    pub largest: Vec<u8>,
    /// The sequence number of all entries: 0.
    pub sequence: SeqNum,
    /// Properties that collectors did not give.
    pub collector_failures: Vec<CollectorFailure>,
}

/// See the module.
pub struct SstWriter {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    /// The name until the file is whole.
    unfinished: PathBuf,
    file: Arc<dyn WriteFile>,
    order: Order,
    /// `None`: an earlier call failed, or the writer is finished.
    builder: Option<TableBuilder>,
    /// The last key. `None` before the first.
    last: Option<Vec<u8>>,
    tombstones: ListedTombstones,
    key: InternalKeyBuf,
    finished: bool,
}

impl SstWriter {
    /// A writer of an empty file. Creates no directory.
    ///
    /// # Errors
    /// `InvalidArgument`: the path names no file, or an option that no table can have. `NotSupported`: keys with timestamps, or
    /// a codec that is not written. `Io`.
    pub fn create(input: SstWriterInput) -> Result<SstWriter> {
        let SstWriterInput { fs, path, table, session_id, unix_secs } = input;
        let Some(name) = path.file_name() else {
            return Err(Error::invalid("the path of an SST file names no file").at_path(&path));
        };
        if table.order.timestamp_len() > 0 {
            let what =
                format!("SST files with the comparator {}, whose keys have timestamps", table.order.name());
            return Err(Error::not_supported(what));
        }
        table.validate()?;
        let mut temporary = name.to_os_string();
        temporary.push(format!(".{session_id}.unfinished"));
        let (unfinished, order) = (path.with_file_name(temporary), table.order.clone());
        let identity = TableIdentity {
            db_id: WRITER_ID.to_owned(),
            session_id,
            number: FileNumber(1),
            // RocksDB then takes the file into any family.
            family_id: Properties::UNKNOWN_FAMILY,
            creation_time: unix_secs,
            file_creation_time: unix_secs,
            external: true,
            ..TableIdentity::default()
        };
        let file = fs.create(&unfinished)?;
        let builder = TableBuilder::new(Arc::clone(&file), table, identity);
        let builder = builder.inspect_err(|_| drop(fs.remove(&unfinished)))?;
        Ok(SstWriter {
            fs,
            path,
            unfinished,
            file,
            order,
            builder: Some(builder),
            last: None,
            tombstones: ListedTombstones::default(),
            key: InternalKeyBuf::new(&[], Trailer::LAST),
            finished: false,
        })
    }

    /// The file that [`SstWriter::finish`] makes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// About the bytes the file would have if it were finished now.
    pub fn file_size(&self) -> u64 {
        self.builder.as_ref().map_or(0, TableBuilder::file_size_estimate)
    }

    /// Appends an entry of the type `kind`.
    ///
    /// # Errors
    /// `InvalidArgument`: the key is not above the last one, key or value is too large; the file is as before the call. `Io`:
    /// the file is given up.
    pub fn add(&mut self, kind: ValueType, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let Some(builder) = &mut self.builder else { return Err(given_up(&self.path)) };
        if let Some(last) = self.last.as_deref().filter(|last| self.order.compare(last, key).is_ge()) {
            return Err(not_ascending(&self.path, last, key));
        }
        self.key.set(key, Trailer::new(SeqNum::ZERO, kind));
        match builder.add(self.key.as_key(), value) {
            Ok(()) => {
                let last = self.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
                Ok(())
            }
            // Nothing was appended.
            Err(e) if e.kind() == ashlar_base::ErrorKind::InvalidArgument => Err(e),
            Err(e) => {
                self.builder = None;
                Err(e)
            }
        }
    }

    /// Adds a range deletion of the keys from `begin` on, `end` excluded. It deletes older entries of the database that takes
    /// the file, and no entry of the file. An empty range adds nothing. Range deletions stay in memory until
    /// [`SstWriter::finish`].
    ///
    /// # Errors
    /// `InvalidArgument`: the range ends before it begins, or a key is too large.
    pub fn delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        self.check_key(begin)?;
        self.check_key(end)?;
        if self.builder.is_none() {
            return Err(given_up(&self.path));
        }
        match self.order.compare(begin, end) {
            Ordering::Equal => Ok(()),
            Ordering::Less => {
                self.tombstones.push(begin, end, SeqNum::ZERO);
                Ok(())
            }
            Ordering::Greater => {
                let range = format!("{}..{}", begin.escape_ascii(), end.escape_ascii());
                Err(Error::invalid(format!("the range {range} ends before it begins")).at_path(&self.path))
            }
        }
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        if key.len() <= MAX_KEY_BYTES {
            return Ok(());
        }
        let what = format!("a key of {} bytes; the largest has {MAX_KEY_BYTES}", key.len());
        Err(Error::invalid(what).at_path(&self.path))
    }

    /// Writes the rest of the file, syncs it, and gives it its name, durably.
    ///
    /// # Errors
    /// `InvalidArgument`: the file has no entry, or a device or a pipe has its name. `Io`: there is no new file, except after a
    /// failed sync of the directory: then the file is whole, and a power cut may take its name.
    pub fn finish(mut self) -> Result<SstSummary> {
        let Some(mut builder) = self.builder.take() else { return Err(given_up(&self.path)) };
        let pieces = FragmentedTombstones::new(&self.order, &self.tombstones.since(0));
        for piece in pieces.fragments() {
            builder.add_range_tombstone(piece.begin, piece.end, SeqNum::ZERO)?;
        }
        if builder.entries() == 0 {
            let e = Error::invalid("an SST file needs an entry").at_path(&self.path);
            return Err(e.hint("Drop the writer instead of finishing it when there is nothing to write"));
        }
        let written = builder.finish()?;
        self.file.sync_all()?;
        self.fs.rename(&self.unfinished, &self.path)?;
        self.finished = true;
        self.fs.sync_dir(folder_of(&self.path))?;
        Ok(SstSummary {
            path: self.path.clone(),
            size: written.size,
            entries: written.entries - written.range_deletions,
            range_deletions: written.range_deletions,
            smallest: written.smallest.as_key().user_key().to_vec(),
            largest: written.largest.as_key().user_key().to_vec(),
            sequence: SeqNum::ZERO,
            collector_failures: written.collector_failures,
        })
    }
}

impl Drop for SstWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Best effort: a file under this name is never taken for a whole one.
            let _ = self.fs.remove(&self.unfinished);
        }
    }
}

impl fmt::Debug for SstWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SstWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cold]
fn not_ascending(path: &Path, last: &[u8], key: &[u8]) -> Error {
    let what = match last == key {
        true => format!("key {} comes twice", key.escape_ascii()),
        false => format!("key {} comes after key {}", key.escape_ascii(), last.escape_ascii()),
    };
    let e = Error::invalid(format!("{what}, but an SST file takes each key once and in ascending order"));
    e.at_path(path).hint("Sort the entries by the family's comparator, and keep the newest entry of each key")
}

#[cold]
fn given_up(path: &Path) -> Error {
    let e = Error::invalid("an earlier call of this SST writer failed, so there is no file to finish");
    e.at_path(path).hint("Drop the writer and write the file again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadHow, ReaderOptions, TableReader};
    use ashlar_base::InternalIterator;
    use ashlar_cache::FramePool;
    use ashlar_env::Env;

    fn writer(env: &Env, path: &str) -> SstWriter {
        env.fs.create_dir_all(Path::new("/out")).unwrap();
        SstWriter::create(SstWriterInput {
            fs: Arc::clone(&env.fs),
            path: PathBuf::from(path),
            table: TableOptions::default(),
            session_id: "ABCDEFGHIJKLMNOPQRST".to_owned(),
            unix_secs: 7,
        })
        .unwrap()
    }

    fn names(env: &Env) -> Vec<String> {
        env.fs.list(Path::new("/out")).unwrap().into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn a_finished_file_is_an_external_table_with_sequence_zero() {
        let env = Env::mem();
        let mut writer = writer(&env, "/out/a.sst");
        writer.add(ValueType::Put, b"b", b"1").unwrap();
        writer.delete_range(b"x", b"z").unwrap();
        writer.delete_range(b"a", b"c").unwrap();
        writer.delete_range(b"y", b"zz").unwrap();
        writer.delete_range(b"q", b"q").unwrap();
        writer.add(ValueType::Delete, b"k", b"").unwrap();
        assert_eq!(names(&env), ["a.sst.ABCDEFGHIJKLMNOPQRST.unfinished"]);
        let written = writer.finish().unwrap();
        assert_eq!(names(&env), ["a.sst"]);
        assert_eq!((written.entries, written.sequence), (2, SeqNum::ZERO));
        assert_eq!((written.smallest.as_slice(), written.largest.as_slice()), (&b"a"[..], &b"zz"[..]));
        let file = env.fs.open_read(&written.path).unwrap();
        let options = ReaderOptions::new(Order::Bytewise, FramePool::new(1 << 16), FileNumber(9));
        let table = TableReader::open(file, written.size, options).unwrap();
        assert_eq!(table.verify().unwrap(), 2);
        let said = table.properties();
        assert_eq!((said.external_version, said.global_seqno), (Some(2), Some(0)));
        assert_eq!(said.column_family_id, Some(0x7fff_ffff));
        let mut entries = table.iter(ReadHow::default());
        entries.first().unwrap();
        assert_eq!(entries.key().unwrap().trailer().seq(), SeqNum::ZERO);
    }

    #[test]
    fn an_error_of_the_order_names_both_keys_and_changes_nothing() {
        let env = Env::mem();
        let mut writer = writer(&env, "/out/a.sst");
        writer.add(ValueType::Put, b"m\xff", b"1").unwrap();
        let e = writer.add(ValueType::Put, b"a", b"2").unwrap_err().to_string();
        assert!(e.contains("key a comes after key m\\xff") && e.contains("/out/a.sst"), "{e}");
        let e = writer.add(ValueType::Merge, b"m\xff", b"2").unwrap_err().to_string();
        assert!(e.contains("key m\\xff comes twice"), "{e}");
        assert!(writer.delete_range(b"b", b"a").is_err());
        assert!(writer.add(ValueType::Put, &vec![b'z'; MAX_KEY_BYTES + 1], b"").is_err());
        writer.add(ValueType::Put, b"n", b"3").unwrap();
        assert_eq!(writer.finish().unwrap().entries, 2);
    }

    #[test]
    fn a_dropped_or_empty_writer_leaves_nothing_and_keeps_the_old_file() {
        let env = Env::mem();
        let mut first = writer(&env, "/out/a.sst");
        first.add(ValueType::Put, b"k", b"old").unwrap();
        let old = first.finish().unwrap();
        let mut second = writer(&env, "/out/a.sst");
        second.add(ValueType::Put, b"k", &[7; 9000]).unwrap();
        drop(second);
        assert!(writer(&env, "/out/a.sst").finish().is_err());
        assert_eq!(names(&env), ["a.sst"]);
        assert_eq!(env.fs.open_read(&old.path).unwrap().len(), old.size);
        let nowhere = SstWriterInput {
            fs: Arc::clone(&env.fs),
            path: PathBuf::from("/none/a.sst"),
            table: TableOptions::default(),
            session_id: "S".to_owned(),
            unix_secs: 0,
        };
        assert!(SstWriter::create(nowhere.clone()).is_err());
        assert!(SstWriter::create(SstWriterInput { path: PathBuf::from("/"), ..nowhere }).is_err());
    }
}
