//! Reading everything a database has on disk, to see whether it is sound.

use super::Db;
use ashlar_base::Result;

/// How far a verification has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Tables and blob files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries and blobs in them.
    pub entries: u64,
    /// Files there are to read, all together.
    pub files_total: u64,
    /// Their bytes.
    pub bytes_total: u64,
}

impl Db {
    /// Opens every table and blob file of every family anew and reads all of it, past the cache: checksums, the order of keys, index and
    /// filter against the keys, records against their footer. `progress` is called after each file. Memtables and the log
    /// are not looked at. Runs beside reads and writes, over the files of the moment it began at.
    ///
    /// # Errors
    /// `Corruption` with file and offset, `Io`: of the first file that is not sound. `Shutdown`.
    /// # Cost
    /// One pass over all files.
    pub fn verify_checksums(&self, mut progress: impl FnMut(&Verified)) -> Result<Verified> {
        self.core().check_open()?;
        let versions: Vec<_> =
            self.families().iter().map(|f| f.super_version.get()).map(|sv| sv.version.clone()).collect();
        let mut done = Verified::default();
        for version in &versions {
            let blobs = version.blobs().files();
            done.files_total += version.file_count() as u64 + blobs.len() as u64;
            done.bytes_total += version.files().map(|(_, f)| f.size()).sum::<u64>();
            done.bytes_total += blobs.values().map(|b| b.added.bytes).sum::<u64>();
        }
        for version in &versions {
            for (_, file) in version.files() {
                self.core().check_open()?;
                done.entries += version.tables().open(&file.file)?.verify()?;
                done.files += 1;
                done.bytes += file.size();
                progress(&done);
            }
            for (number, file) in version.blobs().files() {
                self.core().check_open()?;
                done.entries += version.blobs().verify(*number)?;
                done.files += 1;
                done.bytes += file.added.bytes;
                progress(&done);
            }
        }
        Ok(done)
    }
}
