//! Reading all files of a database to check them.

use super::Db;
use ashlar_base::{Error, Result};
use ashlar_format::filename::FileKind;
use ashlar_tree::check::{CheckReport, Damage, Risk, Verified, check_files, to_read};
use ashlar_tree::files::{FileChecksum, check_file_checksum};
use ashlar_tree::version::{Version, replay_manifest_beside, verify_manifest};
use std::path::PathBuf;
use std::sync::Arc;

impl Db {
    /// Opens every table and blob file of every family again and reads it completely, past the cache. Checks checksums, the
    /// order of keys, index and filter against the keys, and blob records against their footer. `progress` is called
    /// after each file. Memtables and the WAL are not checked. Runs beside reads and writes, over the files that
    /// existed when it began.
    ///
    /// # Errors
    /// `Corruption` with file and offset, `Io`: the error of the first damaged file. `Shutdown`.
    /// # Cost
    /// One pass over all files.
    pub fn verify_checksums(&self, mut progress: impl FnMut(&Verified)) -> Result<Verified> {
        let versions = self.versions_now()?;
        let mut done = to_read(versions.iter().map(|(_, version)| &**version));
        for (_, version) in &versions {
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

    /// Reads every table and blob file that has a checksum in the MANIFEST, and compares the checksums. `progress` is
    /// called after each file. The result counts the compared files. Files without a recorded checksum, or with an
    /// unknown checksum function, are skipped. (RocksDB: `VerifyFileChecksums`.)
    ///
    /// # Errors
    /// `Corruption`, `Io`: the error of the first damaged file. `Shutdown`.
    /// # Cost
    /// One pass over the files that have a checksum.
    pub fn verify_file_checksums(&self, mut progress: impl FnMut(&Verified)) -> Result<Verified> {
        let versions = self.versions_now()?;
        let mut done = to_read(versions.iter().map(|(_, version)| &**version));
        let mut compare = |path: PathBuf, function: &[u8], sum: &[u8]| {
            self.core().check_open()?;
            if let FileChecksum::Right(bytes) =
                check_file_checksum(&*self.core().env.fs, &path, function, sum)?
            {
                (done.files, done.bytes) = (done.files + 1, done.bytes + bytes);
                progress(&done);
            }
            Ok::<(), Error>(())
        };
        for (_, version) in &versions {
            for (_, file) in version.files() {
                let function = file.file.checksum_function.as_deref().unwrap_or_default();
                let sum = file.file.checksum.as_deref().unwrap_or_default();
                compare(version.tables().path_of(file.number()), function, sum)?;
            }
            for (number, file) in version.blobs().files() {
                let path = self.core().dir.join(FileKind::Blob(*number).name());
                compare(path, &file.added.checksum_method, &file.added.checksum)?;
            }
        }
        Ok(done)
    }

    /// Reads the MANIFEST and every table and blob file of every family to the end, whatever damage is found on the
    /// way. Checks blocks, records, recorded checksums and bounds. The report names each damage and the keys at risk.
    /// `progress` is called after each file. Runs beside reads and writes; memtables and WAL files are not checked.
    ///
    /// # Errors
    /// `Shutdown`. Damage is in the report and is no error.
    /// # Cost
    /// One pass over all files, and a second pass over damaged ones.
    pub fn verify_db(&self, mut progress: impl FnMut(&Verified)) -> Result<CheckReport> {
        let versions = self.versions_now()?;
        let (fs, dir) = (&*self.core().env.fs, &*self.core().dir);
        let mut report = CheckReport::default();
        let (manifest, durable) = self.core().versions.manifest_durable();
        let verified = match durable {
            Some(bytes) => verify_manifest(fs, dir, manifest, bytes),
            // A read-only handle: another process may write the end.
            None => replay_manifest_beside(fs, dir, manifest).map(drop),
        };
        if let Err(e) = verified
            // A new MANIFEST may have replaced it meanwhile.
            && manifest == self.core().versions.manifest_number()
        {
            report.damages.push(Damage::of(&FileKind::Manifest(manifest).name(), &e, Risk::Database));
        }
        let named: Vec<_> = versions.iter().map(|(name, version)| (name.as_str(), &**version)).collect();
        check_files(fs, dir, &named, &mut report, &mut progress);
        self.core().check_open()?;
        Ok(report)
    }

    /// The current versions, by family.
    fn versions_now(&self) -> Result<Vec<(String, Arc<Version>)>> {
        self.core().check_open()?;
        let of = |f: &Arc<crate::column_family::Family>| {
            (f.name().to_owned(), f.super_version.get().version.clone())
        };
        Ok(self.families().iter().map(of).collect())
    }
}
