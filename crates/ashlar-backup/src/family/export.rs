//! Makes a database directory with the tables of one family.

use super::{ExportedFile, FamilyExport, Home};
use crate::target::Target;
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::column_family::Family;
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, options_file};
use ashlar_tree::files::{link_or_copy, write_file};
use ashlar_tree::version::{Version, start_manifest};
use std::path::Path;
use std::sync::Arc;

/// Makes the directory `into` a database that has the tables of one family, and describes them. The family is flushed first.
///
/// # Errors
/// `InvalidArgument`: something is in `into`, `into` lies in the database, a callback of the database makes the call, or the
/// family was dropped. `NotSupported`: values of the family are in blob files, its tables are in several directories, or the
/// database is open for reading only. `Aborted`: background work is paused. `Busy(Locked)`: another copy to `into` is being
/// made. `Io`, `Corruption`: a file could not be copied, or is missing. After an error there is nothing in `into`.
/// # Cost
/// A flush, a link or a copy for each table, three small files. A close waits for the end of the call.
pub fn export_family(db: &Db, family: &Arc<Family>, into: &Path) -> Result<FamilyExport> {
    let fs = &*db.env().fs;
    let target = Target::new(fs, db.path(), into)?;
    db.flush(std::slice::from_ref(family))?;
    let held = db.hold_files("export()")?;
    let version = held.version(family)?;
    check_whole(&version)?;
    let building = target.begin()?;
    let from = Leaving { fs: building.fs(), into: building.dir(), family, level: held.format_level() };
    let files = from.fill(&version)?;
    let dir = building.final_dir().to_path_buf();
    building.finish()?;
    let place = |(level, file): (Level, NewFile)| {
        ExportedFile::recorded(dir.join(FileKind::Table(file.number).name()), level, file)
    };
    let files = files.into_iter().map(place).collect();
    let (family, comparator) = (family.name().to_owned(), version.order.name().to_owned());
    let homes = vec![Home { family: family.clone(), dir }];
    Ok(FamilyExport { family, comparator, files, homes })
}

/// # Errors
/// `NotSupported`: the tables alone are not the family.
fn check_whole(version: &Version) -> Result<()> {
    if !version.blobs().files().is_empty() || version.files().any(|(_, f)| f.file.oldest_blob_file.0 != 0) {
        let e = Error::not_supported("an export of a family with values in blob files");
        return Err(e.hint("Make a checkpoint, which has all families and their blob files"));
    }
    if version.files().any(|(_, f)| f.file.path_id != 0) {
        return Err(Error::not_supported("a copy of tables in several directories (db_paths)"));
    }
    Ok(())
}

/// The work of one export.
struct Leaving<'a> {
    fs: &'a Arc<dyn Fs>,
    into: &'a Path,
    family: &'a Family,
    level: FormatLevel,
}

impl Leaving<'_> {
    fn fill(&self, version: &Version) -> Result<Vec<(Level, NewFile)>> {
        let mut files = Vec::with_capacity(version.file_count());
        for (level, meta) in version.files() {
            let from = version.tables().path_of(meta.number());
            let to = self.into.join(FileKind::Table(meta.number()).name());
            link_or_copy(&**self.fs, &from, &to)?;
            let found = self.fs.metadata(&to)?.map_or(0, |entry| entry.len);
            if found != meta.size() {
                let what = format!("table has {found} bytes where {} are recorded", meta.size());
                return Err(Error::corruption(what).at_path(&from).damaged_file_hint());
            }
            files.push((level, NewFile { min_log_to_keep: None, ..meta.file.clone() }));
        }
        files.sort_by_key(|(level, file)| (*level, file.number));
        let last = files.iter().map(|(_, file)| file.number).max().unwrap_or_default();
        let (options, manifest) = (FileNumber(last.0 + 1), FileNumber(last.0 + 2));
        let path = self.into.join(FileKind::Options(options).name());
        write_file(&**self.fs, &path, self.options().as_bytes())?;
        self.fs.sync_dir(self.into)?;
        start_manifest(self.fs, self.into, manifest, self.records(version, &files, FileNumber(last.0 + 3)))?;
        Ok(files)
    }

    /// The OPTIONS file of the new directory. Its database settings are defaults, and it names no other directory.
    fn options(&self) -> String {
        let db = DbOptions { format_level: self.level, ..DbOptions::default() };
        let (default, mut family) = (FamilyOptions::default(), (*self.family.options()).clone());
        family.cf_paths.clear();
        match self.family.id() {
            FamilyId::DEFAULT => options_file(&db, &[("default", &family)]),
            _ => options_file(&db, &[("default", &default), (self.family.name(), &family)]),
        }
        .print()
    }

    /// The records of the MANIFEST: the family, and `default`, which every database has.
    fn records(&self, version: &Version, files: &[(Level, NewFile)], next: FileNumber) -> Vec<VersionEdit> {
        let persist_udt = (self.level >= FormatLevel::V9_11).then_some(true);
        let last_seq = files.iter().map(|(_, file)| file.largest_seq).max().unwrap_or(SeqNum::ZERO);
        let id = self.family.id();
        let head = |id: FamilyId, order: &Order, name: Option<&str>| VersionEdit {
            comparator: Some(order.name().to_owned()),
            persist_udt,
            family_add: name.map(|name| name.as_bytes().to_vec()),
            ..VersionEdit::of(id)
        };
        let body = |id: FamilyId, added: &[(Level, NewFile)]| VersionEdit {
            added: added.to_vec(),
            log_number: Some(FileNumber(0)),
            prev_log_number: Some(FileNumber(0)),
            next_file: Some(next),
            last_seq: Some(last_seq),
            ..VersionEdit::of(id)
        };
        if id == FamilyId::DEFAULT {
            return vec![head(id, &version.order, None), body(id, files)];
        }
        let default = FamilyId::DEFAULT;
        vec![
            head(default, &Order::Bytewise, None),
            body(default, &[]),
            head(id, &version.order, Some(self.family.name())),
            VersionEdit { max_family: Some(id), ..body(id, files) },
        ]
    }
}
