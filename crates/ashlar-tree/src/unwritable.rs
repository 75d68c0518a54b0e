//! Recognises features of a directory that this engine cannot write: reasons why an open takes no writes, and why a
//! repair refuses. All reasons are here, except transactions that write before they commit, which a replay finds in WAL files.
//!
//! | feature | RocksDB after a write by this engine | recognised from |
//! |---|---|---|
//! | user-defined timestamps | keys without timestamps | the comparator in the MANIFEST |
//! | tables of another kind (PlainTable, CuckooTable) | "Bad table magic number", cannot open | OPTIONS, footers |
//! | a user-defined index as the primary one, or demanded of each table | "Cannot find the meta block", cannot open | OPTIONS, table properties |
//! | tables that may be ingested behind all data | a compaction of ours drops tombstones of the last level: ingested keys that were deleted come back | OPTIONS |
//! | TTL wrapper, unless the caller gives a time to live | "Timestamp < ttl feature release time" | OPTIONS |
//! | values in blob files that the MANIFEST does not name | their files are gone | the blob files that tables name |
//!
//! 1. OPTIONS files contain settings, so a directory whose data is still in its WAL files is recognised too. If the
//!    OPTIONS file cannot be read, only the tables decide.
//! 2. For a family in OPTIONS, the newest table is read. For any other, up to `LOOKED_AT` tables from each end of its
//!    file numbers, so that an open with many tables stays fast.
//! 3. A table that cannot be read gives no reason: a read of its keys gets the error.

use crate::version::{FamilyState, FileMeta, Tables};
use ashlar_base::{ErrorKind, Order, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind, unescape};
use ashlar_format::table::{Properties, TableKind};
use ashlar_options::{TTL_IDS, id_of, read_latest_options};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The number of tables read per family, from each end of the file numbers.
const LOOKED_AT: usize = 16;

/// Every reason from the settings and tables of the open families, as lines of the report. `timed`: the families that the
/// caller opens with a time to live.
pub fn reasons(fs: &dyn Fs, dir: &Path, families: &[FamilyState], timed: &BTreeSet<String>) -> Vec<String> {
    let options = read_latest_options(fs, dir).ok().flatten().map(|(_, file)| file);
    let mut reasons = Vec::new();
    for family in families {
        let before = reasons.len();
        reasons.extend(by_order(&family.name, &family.version.order));
        let described = match &options {
            Some(file) => by_settings(file, &family.name, timed.contains(&family.name), &mut reasons),
            None => false,
        };
        if reasons.len() == before {
            reasons.extend(by_tables(family, described));
        }
        reasons.extend(by_blob_files(family));
    }
    reasons
}

fn by_order(family: &str, order: &Order) -> Option<String> {
    let comparator = order.name();
    (order.timestamp_len() > 0)
        .then(|| format!("family {family:?} has user-defined timestamps ({comparator})"))
}

/// Adds the reasons that an OPTIONS file gives for a family. False when the file does not describe the family.
pub fn by_settings(file: &OptionsFile, family: &str, timed: bool, reasons: &mut Vec<String>) -> bool {
    let of = |wanted: &SectionKind| file.sections.iter().find(|section| section.kind == *wanted);
    let Some(settings) = of(&SectionKind::Family { name: family.to_owned() }) else { return false };
    if let Some(factory) = unread_factory(settings) {
        reasons.push(format!(
            "family {family:?} has table_factory={factory}, and RocksDB with this setting opens no block-based tables"
        ));
    }
    let behind = ingests_behind(file, settings, family);
    if let Some(reason) = behind.filter(|reason| !reasons.contains(reason)) {
        reasons.push(reason);
    }
    let kind = "BlockBasedTable".to_owned();
    let table = of(&SectionKind::Table { kind, family: family.to_owned() });
    if let Some(name) = table.and_then(demands_udi) {
        reasons.push(format!("family {family:?} has {name}=true{UDI}"));
    }
    for name in ["compaction_filter", "compaction_filter_factory", "merge_operator"] {
        let id = settings.get(name).map(|value| id_of(&unescape(value))).unwrap_or_default();
        if !timed && TTL_IDS.contains(&id.as_str()) {
            reasons.push(format!(
                "family {family:?} has {name}={id}: a TTL database, whose values end in 4 bytes of time; open it with ttl()"
            ));
            break;
        }
    }
    true
}

/// RocksDB keeps tombstones in all levels, and the last level free, where tables may be ingested behind all data. So does a
/// leveled or universal tree here, if it has a level to keep.
fn ingests_behind(file: &OptionsFile, settings: &Section, family: &str) -> Option<String> {
    const WHY: &str = "RocksDB may ingest tables behind all data, and a tree of this style or number of levels keeps no level for them here";
    let style = settings.get("compaction_style").unwrap_or("kCompactionStyleLevel");
    let levels = settings.get("num_levels").map_or(7, |levels| levels.parse().unwrap_or(0));
    if ["kCompactionStyleLevel", "kCompactionStyleUniversal"].contains(&style) && levels >= 3 {
        return None;
    }
    let is_on = |section: &Section, name: &str| section.get(name) == Some("true");
    if file.db().is_some_and(|db| is_on(db, "allow_ingest_behind")) {
        return Some(format!("the database has allow_ingest_behind=true: {WHY}"));
    }
    let name = "cf_allow_ingest_behind";
    is_on(settings, name).then(|| format!("family {family:?} has {name}=true: {WHY}"))
}

/// The table factory of a family's section, if its tables are of an unsupported kind.
pub fn unread_factory(family: &Section) -> Option<String> {
    let factory = family.get("table_factory").map(|value| id_of(&unescape(value)))?;
    // The adaptive factory reads tables of every kind.
    let read = ["", "nullptr", "BlockBasedTable", "BlockBasedTableFactory", "AdaptiveTableFactory"];
    (!read.contains(&factory.as_str())).then_some(factory)
}

/// The consequence if RocksDB demands a user-defined index in each table.
const UDI: &str = ", and RocksDB with this setting opens no tables without a user-defined index";

/// The setting, if there is one, with which RocksDB opens only tables that have a user-defined index.
fn demands_udi(table: &Section) -> Option<&'static str> {
    let factory = table.get("user_defined_index_factory").unwrap_or("nullptr");
    let demands = ["use_udi_as_primary_index", "fail_if_no_udi_on_open"];
    demands.into_iter().find(|name| factory != "nullptr" && table.get(name) == Some("true"))
}

/// Whether the primary index of a table is a user-defined one.
pub fn has_udi_primary(properties: &Properties) -> bool {
    properties.udi_is_primary_index.is_some_and(|value| value != 0)
}

/// With `enable_blob_direct_write`, a recovery of RocksDB writes tables with values in blob files that it adds to no
/// MANIFEST. If such a file exists, its values are readable, and the file must not be removed.
fn by_blob_files(family: &FamilyState) -> Option<String> {
    let blobs = family.version.blobs();
    let named = family.version.files().map(|(_, file)| file.file.oldest_blob_file);
    let mut unnamed = named.filter(|number| number.0 != 0 && !blobs.files().contains_key(number));
    let number = unnamed.find(|number| matches!(blobs.open_unnamed(*number), Ok(Some(_))))?;
    let (name, file) = (&family.name, FileKind::Blob(number).name());
    Some(format!(
        "family {name:?} has values in {file}, which the MANIFEST does not name: RocksDB with enable_blob_direct_write \
         leaves such values after a crash"
    ))
}

/// Whether tables may need blob files of `dir` that the MANIFEST does not name, according to the OPTIONS file.
pub fn may_need_unnamed_blobs(fs: &dyn Fs, dir: &Path, families: &[Arc<FamilyState>]) -> Result<bool> {
    let named: BTreeSet<_> =
        families.iter().flat_map(|family| family.version.blobs().files().keys()).collect();
    let is_unnamed =
        |name: &str| matches!(FileKind::parse(name), Some(FileKind::Blob(n)) if !named.contains(&n));
    if !fs.files(dir)?.iter().any(|entry| is_unnamed(&entry.name)) {
        return Ok(false);
    }
    let Some((_, options)) = read_latest_options(fs, dir).ok().flatten() else { return Ok(false) };
    Ok(options.sections.iter().any(|section| section.get("enable_blob_direct_write") == Some("true")))
}

/// The reason from the tables of a family; the module says which tables are read.
fn by_tables(family: &FamilyState, described: bool) -> Option<String> {
    let mut files: Vec<&Arc<FileMeta>> = family.version.files().map(|(_, file)| file).collect();
    files.sort_unstable_by_key(|file| file.number());
    let count = files.len();
    if described {
        files.drain(..count.saturating_sub(1));
    } else if count > 2 * LOOKED_AT {
        files.drain(LOOKED_AT..count - LOOKED_AT);
    }
    files.iter().find_map(|file| by_table(&family.name, family.version.tables(), file))
}

fn by_table(family: &str, tables: &Tables, file: &FileMeta) -> Option<String> {
    let number = file.number();
    match tables.footer(&file.file) {
        Ok(footer) if footer.kind == TableKind::LevelDb => None,
        Ok(_) => {
            let survey = tables.survey(&file.file).ok()?;
            let primary = has_udi_primary(&survey.properties);
            primary.then(|| format!("family {family:?} has table {number} with a user-defined index{UDI}"))
        }
        Err(e) if e.kind() == ErrorKind::NotSupported => {
            Some(format!("family {family:?} has table {number} of a kind that is not read: {}", e.message()))
        }
        Err(_) => None,
    }
}
