//! Reads the description of an exported family from its directory.

use super::{ExportedFile, FamilyExport, Home};
use ashlar_base::{Error, FamilyId, Level, Order, Result};
use ashlar_env::{Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::NewFile;
use ashlar_options::{find_latest_options, stored_places};
use ashlar_tree::places::same_directory;
use ashlar_tree::version::{Replayed, ReplayedFamily, read_manifest};
use std::path::Path;

impl FamilyExport {
    /// The description of the family in the directory `dir` of an export, as the export returned it. Reads the MANIFEST, and no
    /// table.
    ///
    /// The directory of any database is read so that no program has open, if one family alone has tables and no WAL file has
    /// writes that the tables lack. Until the import is over, no program may open it.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no database; several families have tables; a WAL file has writes. `NotSupported`: values
    /// are in blob files; WAL files or tables are in other directories. `Corruption`: the MANIFEST is damaged. `Io`.
    pub fn read(dir: impl AsRef<Path>) -> Result<FamilyExport> {
        FamilyExport::read_in(&*Env::os()?.fs, dir.as_ref())
    }

    /// [`FamilyExport::read`] on another file system.
    ///
    /// # Errors
    /// Those of [`FamilyExport::read`].
    pub fn read_in(fs: &dyn Fs, dir: &Path) -> Result<FamilyExport> {
        let (_, replayed) = read_manifest(fs, dir)?;
        if let Some(tail) = &replayed.dropped {
            let e = Error::corruption(format!("MANIFEST damaged: {}", tail.reason));
            return Err(e.at(&replayed.path, tail.offset));
        }
        check_logs(fs, dir, &replayed)?;
        let (id, family) = the_family(dir, &replayed)?;
        let (blobs, paths) = (family.tree.live_blob_numbers(), family.tree.beyond_path(1));
        if !blobs.is_empty() {
            return Err(Error::not_supported("a family with values in blob files").at_path(dir));
        }
        if paths.is_some() {
            return Err(Error::not_supported("tables in several directories (db_paths)").at_path(dir));
        }
        let mut tree = family.tree.clone();
        tree.complete(&Order::Bytewise, replayed.last_seq);
        let file = |(level, file): (Level, &NewFile)| {
            ExportedFile::recorded(dir.join(table_name(fs, dir, file)), level, file.clone())
        };
        let mut tables: Vec<_> = tree.tables().collect();
        tables.sort_by_key(|(level, file)| (*level, file.number));
        let files = tables.into_iter().map(file).collect();
        let default = (id == FamilyId::DEFAULT).then(|| Order::Bytewise.name().to_owned());
        let Some(comparator) = family.comparator.clone().or(default) else {
            return Err(Error::corruption("the MANIFEST names no comparator").at_path(&replayed.path));
        };
        let homes = vec![Home { family: family.name.clone(), dir: dir.to_path_buf() }];
        Ok(FamilyExport { family: family.name.clone(), comparator, files, homes })
    }
}

/// The family of the export: the one with tables. Without any table the one beside `default`.
fn the_family<'r>(dir: &Path, replayed: &'r Replayed) -> Result<(FamilyId, &'r ReplayedFamily)> {
    let has_tables = |family: &ReplayedFamily| family.tree.tables().next().is_some();
    let filled: Vec<_> = replayed.families.iter().filter(|(_, family)| has_tables(family)).collect();
    let others = || replayed.families.iter().filter(|(id, _)| **id != FamilyId::DEFAULT);
    let found = match filled.as_slice() {
        [only] => Some(*only),
        [] if others().count() == 1 => others().next(),
        [] => replayed.families.first_key_value(),
        _ => None,
    };
    let several = || {
        let names: Vec<_> = filled.iter().map(|(_, family)| format!("{:?}", family.name)).collect();
        let what = format!("{} families have tables here: {}", names.len(), names.join(", "));
        Error::invalid(what)
            .at_path(dir)
            .hint("Export the one family, with Family::export, and import that directory")
    };
    found.map(|(id, family)| (*id, family)).ok_or_else(several)
}

/// Refuses a database with writes that its tables lack.
fn check_logs(fs: &dyn Fs, dir: &Path, replayed: &Replayed) -> Result<()> {
    let stored = find_latest_options(fs, dir)?.found.map(|(_, file)| stored_places(&file));
    if let Some(elsewhere) = stored.and_then(|places| places.next_wal_dir.or(places.wal_dir))
        && !same_directory(fs, dir, Path::new(&elsewhere))
    {
        let what = format!("WAL files in another directory ({elsewhere})");
        return Err(Error::not_supported(what).at_path(dir).hint("Export the family with Family::export"));
    }
    for entry in fs.files(dir)? {
        let Some(FileKind::Wal(number)) = FileKind::parse_exact(&entry.name) else { continue };
        if number >= replayed.logs_from() && entry.len > 0 {
            let e = Error::invalid("a WAL file may have writes that the tables lack");
            return Err(e
                .at_path(&dir.join(&entry.name))
                .hint("Export the family with Family::export, which flushes it, and import that directory"));
        }
    }
    Ok(())
}

fn table_name(fs: &dyn Fs, dir: &Path, file: &NewFile) -> String {
    let [sst, ldb] =
        [FileKind::Table(file.number), FileKind::LevelDbTable(file.number)].map(|kind| kind.name());
    let there = |name: &str| matches!(fs.metadata(&dir.join(name)), Ok(Some(_)));
    if !there(&sst) && there(&ldb) { ldb } else { sst }
}
