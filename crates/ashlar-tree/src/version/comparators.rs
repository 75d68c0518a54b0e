//! The comparators of families for which the MANIFEST names none.
//!
//! With `reuse_manifest_on_open`, RocksDB continues the MANIFEST that it wrote at the creation, which names no
//! comparator of the family `default`. At each open RocksDB uses the comparator that its caller gives. This engine
//! takes the comparator from the newest OPTIONS file, or else from the newest table of the family. If neither names
//! one, the order is RocksDB's default, bytewise.

use super::replayed::ReplayedFamily;
use ashlar_base::{ErrorKind, FamilyId, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_options::{id_of, read_latest_options, stored_families};
use ashlar_table::Anatomy;
use std::collections::BTreeMap;
use std::path::Path;

/// Names the comparators that are missing.
///
/// # Errors
/// `Io` of the OPTIONS file. One that is damaged tells nothing, and so does a table that cannot be read.
pub(super) fn learn(
    fs: &dyn Fs,
    dir: &Path,
    families: &mut BTreeMap<FamilyId, ReplayedFamily>,
) -> Result<()> {
    if families.values().all(|family| family.comparator.is_some()) {
        return Ok(());
    }
    let stored = match read_latest_options(fs, dir) {
        Ok(Some((_, file))) => stored_families(&file),
        Err(e) if matches!(e.kind(), ErrorKind::Io(_)) => return Err(e),
        Ok(None) | Err(_) => Vec::new(),
    };
    for family in families.values_mut().filter(|family| family.comparator.is_none()) {
        let named =
            stored.iter().find(|own| own.name == family.name).and_then(|own| own.comparator.as_deref());
        let named = named.map(id_of).filter(|name| !matches!(name.as_str(), "" | "nullptr"));
        family.comparator =
            named.or_else(|| family.tree.table_numbers().max().and_then(|n| of_table(fs, dir, n)));
    }
    Ok(())
}

/// The comparator that a table names in its properties.
fn of_table(fs: &dyn Fs, dir: &Path, number: FileNumber) -> Option<String> {
    let kinds = [FileKind::Table(number), FileKind::LevelDbTable(number)];
    let file = kinds.iter().find_map(|kind| fs.open_read(&dir.join(kind.name())).ok())?;
    Anatomy::open(file).ok()?.properties().ok()?.comparator.clone()
}
