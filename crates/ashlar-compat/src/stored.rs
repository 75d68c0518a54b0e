//! Options from texts: an option string, or the newest OPTIONS file of a directory.
//!
//! Parts that only a program has (a comparator, an operator or filter of its own) are not in a text; the program sets them again.

use crate::database::Database;
use crate::options::{COLLECTORS, Options, TableOptions};
use crate::value::{Scalar, Value};
use ashlar_format::options_file::{OptionsFile, Section, SectionKind, split_object, unescape};
use ashlar_options::{
    DbOptions, Group, OptionName, find_latest_options, option_names, options_file, read_options_file,
};
use ashlardb::{Env, Error, ErrorKind, Family, Result, standard_operator};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The options of `base` with those of a string: `max_open_files=100;write_buffer_size=64M`. `ignore_unknown`: names that the engine
/// does not know are left out, also those inside braces, and so are values that do not fit their option, as in RocksDB.
///
/// # Errors
/// `InvalidArgument`: the string, a name or a value in it is wrong. `NotSupported`: an option that the engine refuses.
pub fn with_string(base: &Options, text: &str, ignore_unknown: bool) -> Result<Options> {
    let text = if ignore_unknown { fitting(&known(text, MOST_NESTED)?)? } else { plain(text)? };
    ashlar_options::Options::default().apply(&text)?;
    let mut options = base.clone();
    for (name, value) in members(&text)? {
        take(&mut options, &name, value);
    }
    Ok(options)
}

/// Structs within structs of a string: a struct of a family, one within its tables, and one to spare.
const MOST_NESTED: usize = 3;

/// The options that RocksDB holds in an `int`.
const INTS: [&str; 19] = [
    "block_restart_interval",
    "block_size_deviation",
    "index_block_restart_interval",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "max_background_compactions",
    "max_background_flushes",
    "max_background_jobs",
    "max_bgerror_resume_count",
    "max_file_opening_threads",
    "max_open_files",
    "max_write_buffer_number",
    "min_write_buffer_number_to_merge",
    "num_levels",
    "strategy",
    "table_cache_numshardbits",
    "target_file_size_multiplier",
    "window_bits",
];

/// Options without effect here that RocksDB holds in an `int64_t`.
const LONGS: [&str; 1] = ["max_write_buffer_size_to_maintain"];

/// The names and values of a string. As in RocksDB, a value may be in braces.
fn members(text: &str) -> Result<Vec<(String, String)>> {
    let mut all = split_object(text).map_err(|e| Error::invalid(format!("{text:?}: {}", e.what)))?;
    for (_, value) in &mut all {
        let inner = value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
        if let Some(inner) = inner.filter(|inner| !inner.is_empty() && !inner.contains(['=', ';', '{', '}']))
        {
            *value = inner.to_owned();
        }
    }
    Ok(all)
}

/// The name and value of the option that is too large for the number in which RocksDB holds it: this one, or one within its struct,
/// down to so many structs within structs.
fn beyond_number(name: &str, value: &str, nested: usize) -> Option<(String, String)> {
    if LONGS.contains(&name) {
        let is_beyond = value.trim().parse::<i128>().is_ok_and(|number| i64::try_from(number).is_err());
        return is_beyond.then(|| (name.to_owned(), value.to_owned()));
    }
    if INTS.contains(&name) {
        let is_beyond = i32::try_from(i64::of(&Value::parse(value.trim()))).is_err();
        return is_beyond.then(|| (name.to_owned(), value.to_owned()));
    }
    let inner = value.strip_prefix('{')?.strip_suffix('}')?;
    if nested == 0 || is_object(name, inner) {
        return None;
    }
    // A struct that does not parse is an error elsewhere.
    members(inner).ok()?.iter().find_map(|(name, value)| beyond_number(name, value, nested - 1))
}

/// A string without the braces around values.
///
/// # Errors
/// `InvalidArgument`: a value is too large for its option.
fn plain(text: &str) -> Result<String> {
    let all = members(text)?;
    let beyond = all.iter().find_map(|(name, value)| beyond_number(name, value, MOST_NESTED));
    if let Some((name, value)) = beyond {
        return Err(Error::invalid(format!("{name}: {value} is beyond the number that RocksDB holds")));
    }
    Ok(all.into_iter().map(|(name, value)| format!("{name}={value};")).collect())
}

/// The kind of an object among its members: `{id=StringAppendOperator;delimiter=,;}`.
const ID: &str = "id";

/// Whether a value is an object of a kind, whose members are no options.
fn is_object(name: &str, inner: &str) -> bool {
    !TABLES.contains(&name) && inner.trim_start().starts_with("id=")
}

/// A string without the names that the engine does not know, down to so many structs within structs. Objects of a kind, such as a
/// merge operator, stay as they are.
fn known(text: &str, nested: usize) -> Result<String> {
    let mut out = String::new();
    for (name, value) in members(text)? {
        let is_id = nested < MOST_NESTED && name == ID;
        let is_known = is_id || PARTS.contains(&name.as_str()) || ashlar_options::explain(&name).is_ok();
        if !is_known {
            continue;
        }
        let value = match value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            Some(inner) if nested > 0 && inner.contains('=') && !is_object(&name, inner) => {
                format!("{{{}}}", known(inner, nested - 1)?)
            }
            _ => value,
        };
        out += &format!("{name}={value};");
    }
    Ok(out)
}

/// A string without the values that do not fit their option.
fn fitting(text: &str) -> Result<String> {
    let mut all = members(text)?;
    all.retain(|(name, value)| {
        let taken = ashlar_options::Options::default().set(name, value);
        // What the engine refuses stays for the caller's error.
        !taken.is_err_and(|e| e.kind() == ErrorKind::InvalidArgument)
            && beyond_number(name, value, MOST_NESTED).is_none()
    });
    Ok(all.into_iter().map(|(name, value)| format!("{name}={value};")).collect())
}

/// Sets an option to a stored text.
fn take(options: &mut Options, name: &str, value: String) {
    match name {
        _ if TABLES.contains(&name) && value.contains('=') => {
            let table = options.table.get_or_insert_default();
            for (member, value) in split_object(&value).unwrap_or_default() {
                table.set_text(&member, value);
            }
        }
        "table_factory" => {}
        _ => options.texts.set_text(name, value),
    }
}

/// The names of the struct of tables.
const TABLES: [&str; 2] = ["block_based_table_factory", "table_factory"];

/// Parts of a program, which an OPTIONS file only names.
const PARTS: [&str; 6] = [
    "comparator",
    "compaction_filter",
    "compaction_filter_factory",
    "memtable_factory",
    "table_factory",
    "env",
];

fn stored(options: &mut Options, section: &Section) {
    for (name, value) in &section.entries {
        let value = unescape(value);
        let mut engine = ashlar_options::Options::default();
        let unknown = match name.as_str() {
            "merge_operator" => standard_operator(&ashlar_options::id_of(&value)).is_none(),
            "sst_partitioner_factory" | "prefix_extractor" => engine.set(name, &value).is_err(),
            _ => false,
        };
        // Of a list of collectors, the built-in ones are made.
        let value = if name == COLLECTORS { ashlar_options::built_in_collectors(&value) } else { value };
        if !unknown && !PARTS.contains(&name.as_str()) {
            options.texts.set_text(name, value);
        }
    }
}

/// The options of the database and of each family, by its name, that the newest OPTIONS file stores.
///
/// # Errors
/// `Io(NotFound)`: there is no OPTIONS file. `Corruption`: it is damaged. `InvalidArgument`, with `ignore_unknown` off: it has a
/// name that the engine does not know.
pub fn load_latest(
    env: Option<Env>,
    dir: &Path,
    ignore_unknown: bool,
) -> Result<(Options, Vec<(String, Options)>)> {
    let env = env.map_or_else(Env::os, Ok)?;
    let (path, file) = latest(&env, dir)?;
    options_of(&path, &file, ignore_unknown)
}

/// The options of an OPTIONS file.
///
/// # Errors
/// As [`load_latest`].
pub fn load_file(env: &Env, path: &Path, ignore_unknown: bool) -> Result<(Options, Vec<(String, Options)>)> {
    options_of(path, &read_options_file(&*env.fs, path)?, ignore_unknown)
}

/// The name of the newest OPTIONS file of a directory.
///
/// # Errors
/// As [`load_latest`].
pub fn latest_name(env: &Env, dir: &Path) -> Result<String> {
    let (path, _) = latest(env, dir)?;
    Ok(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

fn latest(env: &Env, dir: &Path) -> Result<(PathBuf, OptionsFile)> {
    let found = find_latest_options(&*env.fs, dir)?.found;
    found.ok_or_else(|| {
        Error::new(ErrorKind::Io(ashlardb::IoKind::NotFound), "there is no OPTIONS file").at_path(dir)
    })
}

/// The settings of a family of an open database: `name=text;` for each. An option that was not set has the engine's default, or
/// RocksDB's if the engine does not keep the option. `given`: the options of its open, for those that the engine does not keep.
pub fn family_text(family: &Family, given: &Options) -> String {
    let file = options_file(&DbOptions::default(), &[(family.name(), &family.options())]);
    joined(file.family(family.name()), Group::Family, given)
}

/// The settings of an open database, as its newest OPTIONS file has them: `name=text;` for each. `given`: the options of its open, for
/// those that the engine does not keep.
///
/// # Errors
/// As [`load_latest`].
pub fn database_text(db: &Database, given: &Options) -> Result<String> {
    let (_, file) = latest(&db.env()?, db.path())?;
    Ok(joined(file.db(), Group::Database, given))
}

/// The settings of a section, and those of the same group that the section leaves out.
fn joined(section: Option<&Section>, group: Group, given: &Options) -> String {
    let kept: BTreeMap<&str, String> = section
        .into_iter()
        .flat_map(|section| &section.entries)
        .map(|(name, text)| (name.as_str(), unescape(text)))
        .collect();
    let rows = option_names().into_iter().filter(|row| row.group == group && !kept.contains_key(row.name));
    let text = |row: &OptionName| match given.texts.differs(row.name) {
        true => given.texts.text(row.name).to_owned(),
        false => row.rocksdb_default.to_owned(),
    };
    let others = rows.map(|row| (row.name, text(&row)));
    // A name without a text is one that RocksDB dropped.
    let others: Vec<(&str, String)> = others.filter(|(_, text)| !text.is_empty()).collect();
    kept.iter()
        .map(|(name, text)| (*name, text))
        .chain(others.iter().map(|(name, text)| (*name, text)))
        .map(|(name, text)| format!("{name}={text};"))
        .collect()
}

const FORMAT: &str = "format_version";

/// Whether the engine's default format level has no tables of this version.
fn is_newer_format(version: &str) -> bool {
    version.parse().is_ok_and(|version: u32| version > newest_format())
}

/// The newest format of tables that the engine's default format level has.
pub fn newest_format() -> u32 {
    ashlardb::FormatLevel::default().max_table_version()
}

fn options_of(
    path: &Path,
    file: &OptionsFile,
    ignore_unknown: bool,
) -> Result<(Options, Vec<(String, Options)>)> {
    if !ignore_unknown {
        check_names(file, path)?;
    }
    let mut database = Options::default();
    if let Some(section) = file.db() {
        stored(&mut database, section);
    }
    let mut families = Vec::new();
    for section in &file.sections {
        let SectionKind::Family { name } = &section.kind else { continue };
        let mut options = Options::default();
        stored(&mut options, section);
        if let Some(table) = file.table(name) {
            let of = options.table.get_or_insert_with(TableOptions::default);
            let entries = table.entries.iter().map(|(member, value)| (member, unescape(value)));
            // The default of newer releases is above what is written here: then the own default counts.
            let served = entries.filter(|(member, value)| *member != FORMAT || !is_newer_format(value));
            served.for_each(|(member, value)| of.set_text(member, value));
        }
        families.push((name.clone(), options));
    }
    Ok((database, families))
}

/// # Errors
/// `InvalidArgument`: a name that the engine does not know.
fn check_names(file: &OptionsFile, path: &Path) -> Result<()> {
    for section in file.sections.iter().filter(|section| section.kind != SectionKind::Version) {
        for (name, _) in &section.entries {
            if ashlar_options::explain(name).is_err() && !PARTS.contains(&name.as_str()) {
                return Err(Error::invalid(format!("an option that is not known: {name}")).at_path(path));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Mode};

    #[test]
    fn objects_with_an_id_stay_where_unknown_names_are_left_out() {
        let text = "no_such=1;merge_operator={id=StringAppendOperator;delimiter=,};id=1;\
                    table_factory={id=BlockBasedTable;block_size=8192;no_such=1}";
        let options = with_string(&Options::default(), text, true).unwrap();
        let operator = options.texts.text("merge_operator");
        assert_eq!(operator, "{id=StringAppendOperator;delimiter=,}");
        assert!(options.texts.differs("merge_operator") && !options.texts.differs("id"));
        assert_eq!(options.table.unwrap().texts.get::<usize>("block_size"), 8192);
    }

    /// A text is newer than the object that a program set before.
    #[test]
    fn the_text_of_a_block_cache_replaces_an_object() {
        let mut base = Options::default();
        let shared = std::sync::Arc::new(crate::cache::Cache::new(64 << 20));
        base.table.get_or_insert_default().set_cache(&shared);
        let other = with_string(&base, "block_based_table_factory={block_size=8192}", false).unwrap();
        assert_eq!(other.table.unwrap().cache, Some(shared));
        for (text, bytes) in [
            ("16777216", 16 << 20),
            ("{capacity=8M;num_shard_bits=4}", 8 << 20),
            ("nullptr", 0),
            ("1K", 1 << 20),
        ] {
            let text = format!("block_based_table_factory={{block_cache={text}}}");
            let options = with_string(&base, &text, false).unwrap();
            let table = options.table.as_ref().unwrap();
            assert_eq!((&table.cache, table.texts.get::<usize>("block_cache")), (&None, bytes), "{text}");
            opens(&options).unwrap();
        }
    }

    #[test]
    fn the_settings_of_an_open_database_have_those_without_effect_too() {
        let dir = tempfile::tempdir().unwrap();
        let text =
            "create_if_missing=true;max_open_files=99;avoid_flush_during_shutdown=true;write_buffer_size=1M";
        let options = with_string(&Options::default(), text, false).unwrap();
        let (db, _) = Database::open(&options, dir.path(), Mode::Write, &[]).unwrap();
        let said = database_text(&db, &options).unwrap();
        assert!(
            said.contains("max_open_files=99;") && said.contains("avoid_flush_during_shutdown=true;"),
            "{said}"
        );
        assert!(!said.contains("write_buffer_size=1048576"), "{said}");
        let family = db.default_family();
        family.set_options(&[("write_buffer_size", "2M")]).unwrap();
        let said = family_text(family, &options);
        assert!(said.contains("write_buffer_size=2097152;") && said.contains("num_levels=7;"), "{said}");
        assert!(said.contains("experimental_mempurge_threshold=0"), "{said}");
        with_string(&Options::default(), &said, true).unwrap();
    }

    /// Opens a new database with these options.
    fn opens(options: &Options) -> Result<()> {
        let (dir, mut options) = (tempfile::tempdir().unwrap(), options.clone());
        options.texts.set("create_if_missing", true);
        Database::open(&options, dir.path(), Mode::Write, &[]).map(drop)
    }

    /// Regression: the table format that RocksDB 11 stores by default was given back to the open, which refused it.
    #[test]
    fn the_options_that_a_newer_release_stored_open_a_database() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ashlar-options/tests/golden");
        let (database, families) =
            load_file(&Env::os().unwrap(), &golden.join("OPTIONS-11.8.1"), true).unwrap();
        let (name, family) = &families[0];
        assert_eq!(name, "default");
        let mut options = database;
        options.table.clone_from(&family.table);
        opens(&options).unwrap();
    }

    /// RocksDB holds these options in an `int`, and takes values in braces.
    #[test]
    fn a_value_too_large_for_an_int_is_refused_and_braces_around_a_value_are_not() {
        let text = "max_open_files=99999999999;write_buffer_size={1M}";
        assert!(
            with_string(&Options::default(), text, false).unwrap_err().message().contains("max_open_files")
        );
        let beyond = "max_write_buffer_size_to_maintain=9223372036854775808";
        assert!(with_string(&Options::default(), beyond, false).is_err());
        for (text, ignore_unknown) in [(text, true), ("write_buffer_size={1M}", false)] {
            let options = with_string(&Options::default(), text, ignore_unknown).unwrap();
            let set =
                (options.texts.get::<i32>("max_open_files"), options.texts.get::<usize>("write_buffer_size"));
            assert_eq!(set, (-1, 1 << 20));
        }
        for table in ["block_based_table_factory={", "table_factory={id=BlockBasedTable;"] {
            let text = format!("{table}block_restart_interval=99999999999}};write_buffer_size=1M");
            let e = with_string(&Options::default(), &text, false).unwrap_err();
            assert!(e.message().contains("block_restart_interval: 99999999999"), "{e}");
            let options = with_string(&Options::default(), &text, true).unwrap();
            assert_eq!((options.table, options.texts.get::<usize>("write_buffer_size")), (None, 1 << 20));
        }
    }

    /// Without IDENTITY and without the id in the MANIFEST the database would have no id. Read-only opens write neither.
    #[test]
    fn an_open_that_would_store_no_id_is_refused() {
        let text = "write_dbid_to_manifest=false;write_identity_file=false";
        let options = with_string(&Options::default(), text, false).unwrap();
        assert!(opens(&options).unwrap_err().message().contains("cannot both be false"));
        let options = with_string(&Options::default(), "write_identity_file=false", false).unwrap();
        opens(&options).unwrap();
    }

    #[test]
    fn names_that_are_not_known_are_left_out_also_within_braces() {
        let text = "no_such=1;write_buffer_size=2097152;block_based_table_factory={block_size=8192;no_such=1;\
                    cache_index_and_filter_blocks=true}";
        assert!(with_string(&Options::default(), text, false).is_err());
        let options = with_string(&Options::default(), text, true).unwrap();
        assert_eq!(options.texts.get::<usize>("write_buffer_size"), 2 << 20);
        let table = options.table.unwrap().texts;
        assert_eq!(
            (table.get::<usize>("block_size"), table.get::<bool>("cache_index_and_filter_blocks")),
            (8192, true)
        );
        let wrong = "write_buffer_size=abc;num_levels=5;no_such=1";
        assert!(with_string(&Options::default(), wrong, false).is_err());
        let options = with_string(&Options::default(), wrong, true).unwrap();
        assert_eq!(
            (options.texts.get::<usize>("write_buffer_size"), options.texts.get::<i32>("num_levels")),
            (64 << 20, 5)
        );
    }
}
