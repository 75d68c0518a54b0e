//! Options of a database, a family and block-based tables, by RocksDB's names.
//!
//! An object holds the texts that were set, by name, and the parts that have no text: a comparator, a merge operator, a filter.
//! Names, groups and defaults come from the table of `ashlar-options`, which option strings and OPTIONS files use too.

use crate::cache::Cache;
use crate::clip::clip;
use crate::listener::Listener;
use crate::logger::Logger;
use crate::space::Space;
use crate::value::{Names, Scalar, Value};
use ashlar_format::options_file::split_object;
use ashlar_options::{FamilyOptions, OptionName, option_names};

pub use ashlar_options::Group;
use ashlardb::{
    Builder, CompactionFilter, CompactionFilterFactory, Comparator, Env, FamilyBuilder, MergeOperator,
    PrefixExtractor, SstPartitionerFactory, Statistics, TablePropertiesCollectorFactory, WriteBuffers,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// The table, by struct and name.
fn table() -> &'static BTreeMap<(&'static str, &'static str), OptionName> {
    static TABLE: OnceLock<BTreeMap<(&'static str, &'static str), OptionName>> = OnceLock::new();
    TABLE.get_or_init(|| {
        option_names().into_iter().map(|row| ((row.group.rocksdb_struct(), row.name), row)).collect()
    })
}

/// Defaults of new objects that an open of RocksDB replaces, so that the table, which has what an OPTIONS file shows, has others.
const BEFORE_AN_OPEN: [(&str, &str); 5] = [
    ("arena_block_size", "0"),
    ("delayed_write_rate", "0"),
    ("max_compaction_bytes", "0"),
    ("periodic_compaction_seconds", "18446744073709551614"),
    ("ttl", "18446744073709551614"),
];

/// Where the options of an object are in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Of {
    /// A database and a family, with their structs behind a dot.
    #[default]
    DatabaseAndFamily,
    /// One struct.
    Struct(Group),
    /// Names that the table does not have, with their defaults; a name that is not listed has zero.
    Listed(&'static [(&'static str, &'static str)]),
}

impl Of {
    /// RocksDB's default for a name.
    fn default_of(self, name: &str) -> &'static str {
        let row = |group: Group, name| table().get(&(group.rocksdb_struct(), name));
        if let Of::Listed(defaults) = self {
            return defaults.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
        }
        let found = match (self, name.split_once('.')) {
            (Of::Struct(group), _) => row(group, name),
            (_, Some(("compression_opts" | "bottommost_compression_opts", member))) => {
                row(Group::Compression, member)
            }
            (_, Some(("compaction_options_universal", member))) => row(Group::Universal, member),
            (_, Some(("compaction_options_fifo", member))) => row(Group::Fifo, member),
            _ => {
                let before = BEFORE_AN_OPEN.iter().find(|(known, _)| *known == name);
                if let Some((_, text)) = before {
                    return text;
                }
                row(Group::Database, name).or_else(|| row(Group::Family, name))
            }
        };
        found.map_or("", |row| row.rocksdb_default)
    }
}

/// Whether files are written through a mapping.
const MMAP_WRITES: &str = "allow_mmap_writes";

/// Names and texts that were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    of: Of,
    set: BTreeMap<String, String>,
}

impl Texts {
    /// Those of a struct, all with their defaults.
    pub fn of(group: Group) -> Texts {
        Texts { of: Of::Struct(group), set: BTreeMap::new() }
    }

    /// Those of a struct that the table does not have.
    pub fn listed(defaults: &'static [(&'static str, &'static str)]) -> Texts {
        Texts { of: Of::Listed(defaults), set: BTreeMap::new() }
    }

    /// Sets an option.
    pub fn set(&mut self, name: &str, value: impl Scalar) {
        // The table knows whether a number of C is yes or no.
        let value = match (Value::parse(self.of.default_of(name)), value.value()) {
            (Value::Bool(_), value) => Value::Bool(u8::of(&value) != 0),
            (_, value) => value,
        };
        self.set_text(name, value.text());
    }

    /// Sets an option to a text.
    pub fn set_text(&mut self, name: &str, text: String) {
        self.set.insert(name.to_owned(), text);
    }

    /// Takes back what was set.
    pub fn reset(&mut self, name: &str) {
        self.set.remove(name);
    }

    /// Sets an option to a value of an enumeration. The open refuses a number that the enumeration does not have.
    pub fn set_named(&mut self, name: &str, names: Names, number: i32) {
        let text = names.name(number.into()).map_or_else(|| number.to_string(), str::to_owned);
        self.set_text(name, text);
    }

    /// The text that was set, or RocksDB's default.
    pub fn text(&self, name: &str) -> &str {
        self.set.get(name).map_or_else(|| self.of.default_of(name), String::as_str)
    }

    /// Whether an option was set, and not to RocksDB's default.
    pub fn differs(&self, name: &str) -> bool {
        self.set.get(name).is_some_and(|text| text != self.of.default_of(name))
    }

    /// Whether each option has the same text in both, set or not.
    pub fn say_the_same(&self, other: &Texts) -> bool {
        self.set.keys().chain(other.set.keys()).all(|name| self.text(name) == other.text(name))
    }

    /// Whether an option was set to this text, be it RocksDB's default.
    fn is_set_to(&self, name: &str, text: &str) -> bool {
        self.set.get(name).is_some_and(|set| set == text)
    }

    /// The value that was set, or RocksDB's default.
    pub fn get<T: Scalar>(&self, name: &str) -> T {
        T::of(&Value::parse(self.text(name)))
    }

    /// The number of the value that was set, or of RocksDB's default.
    pub fn get_named(&self, name: &str, names: Names) -> i32 {
        let text = self.text(name);
        let number = names.number(text).or_else(|| text.parse().ok()).unwrap_or_default();
        i32::try_from(number).unwrap_or_default()
    }

    /// Takes over the texts of a struct, whose name they get in front: `compaction_options_fifo.`.
    pub fn set_members(&mut self, of: &str, members: &Texts) {
        for (name, text) in &members.set {
            self.set_text(&format!("{of}.{name}"), text.clone());
        }
    }

    /// `name=text;` for each name that `keep` admits.
    fn joined(&self, keep: impl Fn(&str) -> bool) -> String {
        let kept = self.set.iter().filter(|(name, _)| keep(name));
        kept.map(|(name, text)| format!("{name}={text};")).collect()
    }
}

/// Options of block-based tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// By RocksDB's names, without the struct.
    pub texts: Texts,
    /// The object for the block cache, if a program gave one: [`TableOptions::set_cache`]. The text of its size is in `texts`.
    pub cache: Option<Arc<Cache>>,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions { texts: Texts::of(Group::Table), cache: None }
    }
}

impl TableOptions {
    /// The block cache: an object, of which all families that have it have one together.
    pub fn set_cache(&mut self, cache: &Arc<Cache>) {
        self.set_cache_bytes(cache.capacity());
        self.cache = Some(Arc::clone(cache));
    }

    /// A block cache of so many bytes, in place of an object that was set before.
    pub fn set_cache_bytes(&mut self, bytes: usize) {
        // The engine refuses smaller ones.
        const LEAST: usize = 1 << 20;
        self.texts.set(BLOCK_CACHE, bytes.max(LEAST));
        self.cache = None;
    }

    /// An option from a text. The text of a block cache replaces an object that was set before: a size, `{capacity=8M;…}`, or
    /// `nullptr` for the default.
    pub fn set_text(&mut self, name: &str, text: String) {
        if name != BLOCK_CACHE {
            return self.texts.set_text(name, text);
        }
        let members = if text.contains('=') { split_object(&text).unwrap_or_default() } else { Vec::new() };
        let capacity = members.iter().find(|(name, _)| name == "capacity").map(|(_, bytes)| bytes.as_str());
        match capacity.or_else(|| Some(text.trim()).filter(|text| !text.contains('=') && *text != "nullptr"))
        {
            Some(bytes) => self.set_cache_bytes(usize::of(&Value::parse(bytes))),
            None => {
                self.texts.reset(BLOCK_CACHE);
                self.cache = None;
            }
        }
    }

    /// The members of the object in an option string.
    fn text(&self) -> String {
        let cache = format!("{CACHED}.");
        let nested: String = self.texts.joined(|name| name.starts_with(&cache)).replace(&cache, "");
        let is_replaced = |name: &str| name == BLOCK_CACHE && self.cache.is_some();
        let plain = self.texts.joined(|name| !name.starts_with(&cache) && !is_replaced(name));
        if nested.is_empty() { plain } else { format!("{plain}{CACHED}={{{nested}}};") }
    }
}

/// The size of the block cache in a text.
pub(crate) const BLOCK_CACHE: &str = "block_cache";

/// The struct within those of tables.
const CACHED: &str = "metadata_cache_options";

/// The struct within those of a family, in front of its members.
const BOTTOMMOST: &str = "bottommost_compression_opts.";

/// The list of collectors in a text.
pub(crate) const COLLECTORS: &str = "table_properties_collectors";

/// Whether a name is a setting of a database; any other is one of a family.
fn is_of_database(name: &str) -> bool {
    table().contains_key(&(Group::Database.rocksdb_struct(), name))
}

/// Settings that belong to one open.
const OF_THE_OPEN: [&str; 3] = ["create_if_missing", "error_if_exists", "create_missing_column_families"];

/// RocksDB's numbers of kinds of files.
#[derive(Clone, Debug, Default)]
pub struct FileTypes(pub BTreeSet<i32>);

/// RocksDB's numbers of compaction styles.
#[derive(Clone, Debug)]
pub struct Styles(pub BTreeSet<i32>);

impl Default for Styles {
    /// Leveled compaction, as in RocksDB.
    fn default() -> Self {
        Styles(BTreeSet::from([0]))
    }
}

/// Options of a database and of a family; which of them count depends on the call.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// By RocksDB's names.
    pub texts: Texts,
    /// The block-based tables.
    pub table: Option<TableOptions>,
    /// The order of keys.
    pub comparator: Option<Arc<dyn Comparator>>,
    /// If `comparator` is `None`: true selects descending byte order, false ascending.
    pub descending: bool,
    /// The merge operator.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The compaction filter.
    pub compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// The factory of compaction filters.
    pub compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>>,
    /// Collectors of table properties, behind those that the text has.
    pub collectors: Vec<Arc<dyn TablePropertiesCollectorFactory>>,
    /// The SST partitioner, in place of the one that the text has.
    pub sst_partitioner: Option<Arc<dyn SstPartitionerFactory>>,
    /// The prefix extractor, if the text has none.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Where files and clock come from.
    pub env: Option<Env>,
    /// Counts of all databases that are opened with them.
    pub statistics: Option<Arc<Statistics>>,
    /// Where lines of the info log go besides the file.
    pub logger: Option<Logger>,
    /// RocksDB's `checksum_handoff_file_types`, which the engine has no use for.
    pub handoff_files: FileTypes,
    /// RocksDB's `calculate_sst_write_lifetime_hint_set`, which the engine has no use for.
    pub lifetime_styles: Styles,
    /// RocksDB's name of the memtable's kind, which the engine has no use for; `None`: its default.
    pub memtable_name: Option<&'static str>,
    /// The manager of the space of tables.
    pub space: Option<Arc<Space>>,
    /// The limit on memtables of all databases that are opened with it.
    pub write_buffers: Option<Arc<WriteBuffers>>,
    /// Listeners for events, in the order of their calls.
    pub listeners: Vec<Arc<dyn Listener>>,
}

impl Options {
    /// The options of a database, and those of a family of another object.
    pub fn merged(database: &Options, family: &Options) -> Options {
        let mut merged = database.clone();
        merged.texts.set.retain(|name, _| is_of_database(name));
        let of_family = family.texts.set.iter().filter(|(name, _)| !is_of_database(name));
        merged.texts.set.extend(of_family.map(|(name, text)| (name.clone(), text.clone())));
        merged.table.clone_from(&family.table);
        merged.comparator.clone_from(&family.comparator);
        merged.descending = family.descending;
        merged.merge_operator.clone_from(&family.merge_operator);
        merged.compaction_filter.clone_from(&family.compaction_filter);
        merged.compaction_filter_factory.clone_from(&family.compaction_filter_factory);
        merged.collectors.clone_from(&family.collectors);
        merged.sst_partitioner.clone_from(&family.sst_partitioner);
        merged.prefix_extractor.clone_from(&family.prefix_extractor);
        merged.memtable_name = family.memtable_name;
        merged
    }

    /// A program asks for plain or cuckoo tables. It gets block-based ones, from which reads answer the same. As in RocksDB, the
    /// options of block-based tables that were set before count no longer. RocksDB opens such a directory with its block-based
    /// tables only.
    pub fn set_other_tables(&mut self) {
        self.table = None;
    }

    /// Whether an option of one open is on.
    pub fn flag(&self, name: &str) -> bool {
        self.texts.get::<u8>(name) != 0
    }

    /// The texts as an open of RocksDB takes them.
    fn in_range(&self) -> Texts {
        let mut texts = self.texts.clone();
        clip(&mut texts);
        texts
    }

    /// The settings of the database, on a builder.
    pub(crate) fn on_database(&self, builder: Builder) -> Builder {
        let given = self.in_range();
        let text = given.joined(|name| is_of_database(name) && !OF_THE_OPEN.contains(&name));
        let mut builder = builder.fresh_options().create(self.flag("create_if_missing")).options(&text);
        if self.flag("error_if_exists") {
            builder = builder.must_be_new();
        }
        // Where a program does not say, the WAL is mapped, as in every other open.
        if self.texts.is_set_to(MMAP_WRITES, "false") {
            builder = builder.mapped_wal(false);
        }
        if let Some(env) = &self.env {
            builder = builder.env(env.clone());
        }
        if let Some(statistics) = &self.statistics {
            builder = builder.statistics(Arc::clone(statistics));
        }
        // Without an environment the open fails, and says why.
        if let Some(logger) = &self.logger
            && let Some(env) = self.env.clone().or_else(|| Env::os().ok())
        {
            builder = builder.listener(logger.listener(&env));
        }
        builder
    }

    /// The settings of a family that is not `default`, on its builder: nothing of the family `default` counts, as in RocksDB.
    pub fn on_other_family(&self, family: FamilyBuilder) -> FamilyBuilder {
        self.on_family(family.tune(|settings| *settings = FamilyOptions::default()))
    }

    /// The settings of a family, on its builder.
    pub fn on_family(&self, family: FamilyBuilder) -> FamilyBuilder {
        let given = self.in_range();
        let nested = |name: &str| name.starts_with(BOTTOMMOST);
        let members = given.joined(nested).replace(BOTTOMMOST, "");
        let mut family = family.options(&given.joined(|name| !is_of_database(name) && !nested(name)));
        if !members.is_empty() {
            family = family.options(&format!("{}={{{members}}}", BOTTOMMOST.trim_end_matches('.')));
        }
        if let Some(table) = &self.table {
            family = family.options(&format!("block_based_table_factory={{{}}}", table.text()));
        }
        if let Some(comparator) = &self.comparator {
            family = family.comparator(Arc::clone(comparator));
        } else if self.descending {
            family = family.reverse_order();
        }
        if let Some(operator) = &self.merge_operator {
            family = family.merge_operator(Arc::clone(operator));
        }
        // Exactly those of the options, also for a family that would begin with the settings of another one.
        let (listed, collectors) = (!self.texts.text(COLLECTORS).is_empty(), self.collectors.clone());
        let (named, partitioner) =
            (self.texts.differs("sst_partitioner_factory"), self.sst_partitioner.clone());
        family = family.tune(move |settings| {
            settings.table.collectors.retain(|_| listed);
            settings.table.collectors.extend(collectors.iter().cloned());
            let own = partitioner.clone();
            settings.sst_partitioner = own.or(settings.sst_partitioner.take().filter(|_| named));
        });
        if let Some(extractor) =
            self.prefix_extractor.as_ref().filter(|_| !self.texts.differs("prefix_extractor"))
        {
            family = family.prefix_extractor(extractor.clone());
        }
        // RocksDB asks the filter first, and the factory only without one.
        match (&self.compaction_filter, &self.compaction_filter_factory) {
            (Some(filter), _) => family.compaction_filter(Arc::clone(filter)),
            (None, Some(factory)) => family.compaction_filter_factory(Arc::clone(factory)),
            (None, None) => family,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Mode};
    use crate::value::COMPRESSION;
    use ashlardb::{StorageKind, Write};

    #[test]
    fn a_getter_answers_what_was_set_or_rocksdbs_default() {
        let mut texts = Texts::default();
        assert_eq!((texts.get::<i32>("max_open_files"), texts.get::<u8>("paranoid_checks")), (-1, 1));
        assert_eq!(texts.get::<usize>("write_buffer_size"), 64 << 20);
        texts.set("max_open_files", 100i32);
        texts.set("write_buffer_size", 1usize << 20);
        texts.set("use_fsync", 1i32);
        assert_eq!(
            (texts.get::<i32>("max_open_files"), texts.get::<u64>("write_buffer_size")),
            (100, 1 << 20)
        );
        assert_eq!(
            (texts.text("use_fsync"), texts.get::<i32>("use_fsync")),
            ("true", 1),
            "yes or no in the table"
        );
        texts.set_named("compression", COMPRESSION, 7);
        assert_eq!((texts.text("compression"), texts.get_named("compression", COMPRESSION)), ("kZSTD", 7));
    }

    #[test]
    fn the_struct_within_table_options_gets_its_braces() {
        let mut table = TableOptions::default();
        table.texts.set("block_size", 8192usize);
        table.texts.set_text("metadata_cache_options.partition_pinning", "kAll".into());
        assert_eq!(table.text(), "block_size=8192;metadata_cache_options={partition_pinning=kAll;};");
    }

    #[test]
    fn a_size_takes_the_place_of_a_cache_object() {
        let mut options = Options::default();
        options.table.get_or_insert_default().set_cache(&Arc::new(Cache::new(64 << 20)));
        crate::presets::point_lookup(&mut options, 16);
        let table = options.table.unwrap();
        assert_eq!((table.cache, table.texts.get::<usize>("block_cache")), (None, 16 << 20));
    }

    #[test]
    fn compression_of_the_last_level_is_taken_if_off_and_refused_if_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        options.texts.set("bottommost_compression_opts.level", 3i32);
        options.texts.set("bottommost_compression_opts.enabled", false);
        let open = |options: &Options| {
            let mode = Mode::Write;
            Database::open(options, dir.path(), mode, &[]).map(drop)
        };
        open(&options).unwrap();
        options.texts.set("bottommost_compression_opts.enabled", true);
        let refused = open(&options).unwrap_err();
        assert_eq!(refused.kind(), ashlardb::ErrorKind::NotSupported, "{refused}");
    }

    #[test]
    fn names_go_to_the_database_or_the_family() {
        assert!(is_of_database("max_open_files") && is_of_database("wal_dir"));
        assert!(!is_of_database("write_buffer_size") && !is_of_database("compression_opts.level"));
    }

    #[test]
    fn a_number_that_an_enumeration_lacks_is_kept_for_the_open_to_refuse() {
        let mut texts = Texts::default();
        texts.set_named("compression", COMPRESSION, 99);
        assert_eq!(texts.text("compression"), "99");
    }

    /// Where the file system maps files, the WAL of a program that does not say reaches beyond its records.
    #[test]
    fn a_program_may_do_without_a_mapped_wal() {
        let log_bytes = |mapped: Option<bool>| {
            let dir = tempfile::tempdir().unwrap();
            let mut options = Options::default();
            options.texts.set("create_if_missing", true);
            if let Some(mapped) = mapped {
                options.texts.set(MMAP_WRITES, mapped);
            }
            let (database, _) = Database::open(&options, dir.path(), Mode::Write, &[]).unwrap();
            database.default_family().put("k", "v").unwrap();
            let files = database.db().live_files().unwrap();
            let log = files.iter().find(|file| file.kind == StorageKind::Wal).unwrap();
            let bytes = (std::fs::metadata(log.path()).unwrap().len(), log.bytes);
            database.db().close().unwrap();
            bytes
        };
        let (file, records) = log_bytes(Some(false));
        assert_eq!(file, records);
        let (file, records) = log_bytes(None);
        assert!(file == records || file > records + (1 << 10), "{file} bytes for {records}");
    }
}
