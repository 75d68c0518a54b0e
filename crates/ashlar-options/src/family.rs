//! Settings of one column family.

use super::names::id_of;
use super::paths::{DbPath, fits_a_line, validate};
use super::{CompactionOptions, FormatLevel, KeptTexts};
use ashlar_base::ext::merge_operator::borrows_built_in_name;
use ashlar_base::ext::sst_partitioner::{self, SstPartitionerFactory};
use ashlar_base::ext::table_properties_collector::borrows_built_in_name as borrows;
use ashlar_base::ext::timestamp_order::timestamp_order;
use ashlar_base::{Error, FilterSource, MergeOperator, Order, Result};
use ashlar_blob::BlobOptions;
use ashlar_table::TableOptions;
use std::sync::Arc;

/// Settings of a column family. The defaults suit most programs.
#[derive(Clone, Debug)]
pub struct FamilyOptions {
    /// The order of the keys. Ascending bytes. The MANIFEST stores its name; an open with another order fails.
    pub order: Order,
    /// The merge operator. `None`, the default: merges are refused, and so is reading a key with operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The operator's name in the stored OPTIONS file, kept for the next one.
    pub stored_merge_operator: Option<String>,
    /// Decides in compactions which values stay. `None`, the default: all stay.
    pub compaction_filter: Option<FilterSource>,
    /// Decides where compactions begin new tables. `None`, the default: their size and their overlap with the next level do.
    pub sst_partitioner: Option<Arc<dyn SstPartitionerFactory>>,
    /// Values and operands are stored with the time of their write, as RocksDB's TTL wrapper does, and are over after so many
    /// seconds; 0: never. `None`, the default: values have no times.
    pub value_ttl_secs: Option<i32>,
    /// The size of a memtable, in bytes, at which it is flushed. 64 MiB.
    pub write_buffer_bytes: usize,
    /// The greatest number of memtables of the family, the active one included; beyond it writers wait. 3.
    pub max_write_buffers: usize,
    /// The size in bytes of the checksum of each memtable entry: 1, 2, 4, 8, or 0 for none. Reads and the flush compare it
    /// (RocksDB's `memtable_protection_bytes_per_key`). A change holds from the next memtable on. 0.
    pub memtable_protection_bytes: usize,
    /// Settings of table files.
    pub table: TableOptions,
    /// Settings of blob files.
    pub blob: BlobOptions,
    /// Reads each new table back and verifies it before the MANIFEST names it (RocksDB's `paranoid_file_checks`). Costs one
    /// more pass over each table, from the page cache. Off.
    pub read_back_outputs: bool,
    /// Refuses writes to the family (RocksDB's option of this name: RocksDB skips the family's writes when it replays a WAL
    /// file). Off.
    pub disallow_memtable_writes: bool,
    /// Whether tables may be ingested behind all others: deletions stay, and the last level is kept for such tables. Off.
    pub ingest_behind: bool,
    /// The directories of the family's tables. Empty: those of the database.
    pub cf_paths: Vec<DbPath>,
    /// Settings of compaction.
    pub compaction: CompactionOptions,
    /// Opens the family if the database has it, and does not create it otherwise. For settings from an OPTIONS file. Off.
    pub only_if_there: bool,
    /// Settings of the OPTIONS file that the engine does not use, kept for the next OPTIONS file.
    pub kept: KeptTexts,
    /// Unused settings of each section of table options, by the kind of table.
    pub kept_tables: Vec<(String, KeptTexts)>,
}

impl Default for FamilyOptions {
    fn default() -> Self {
        FamilyOptions {
            order: Order::Bytewise,
            merge_operator: None,
            stored_merge_operator: None,
            compaction_filter: None,
            sst_partitioner: None,
            value_ttl_secs: None,
            write_buffer_bytes: 64 << 20,
            max_write_buffers: 3,
            memtable_protection_bytes: 0,
            table: TableOptions::default(),
            blob: BlobOptions::default(),
            read_back_outputs: false,
            disallow_memtable_writes: false,
            ingest_behind: false,
            cf_paths: Vec::new(),
            compaction: CompactionOptions::default(),
            only_if_there: false,
            kept: KeptTexts::default(),
            kept_tables: Vec::new(),
        }
    }
}

/// The kind of table that the engine writes, as the head of a section names it.
pub(crate) const BLOCK_BASED: &str = "BlockBasedTable";

/// The objects that RocksDB's TTL wrapper puts into OPTIONS: a family with one of them has values with a time.
pub const TTL_IDS: [&str; 3] = ["TtlCompactionFilter", "TtlCompactionFilterFactory", "TtlMergeOperator"];

impl FamilyOptions {
    /// Checks the ranges, and that no setting needs a higher level than `level`.
    ///
    /// # Errors
    /// `InvalidArgument`, with the option, and its range or the level it needs.
    pub fn validate(&self, level: FormatLevel) -> Result<()> {
        if !(64 << 10..=4 << 30).contains(&self.write_buffer_bytes) {
            return Err(Error::invalid(format!(
                "write_buffer_size is {}, the range is 65536 to 4294967296",
                self.write_buffer_bytes
            )));
        }
        if !(2..=64).contains(&self.max_write_buffers) {
            return Err(Error::invalid(format!(
                "max_write_buffer_number is {}, the range is 2 to 64",
                self.max_write_buffers
            )));
        }
        if ![0, 1, 2, 4, 8].contains(&self.memtable_protection_bytes) {
            return Err(Error::invalid(format!(
                "memtable_protection_bytes_per_key is {}, it can be 0, 1, 2, 4 or 8",
                self.memtable_protection_bytes
            )));
        }
        // A default adapts to the level (see `at_level`). A value that the caller set does not.
        let default = TableOptions::default().format_version;
        if self.table.format_version > level.max_table_version().max(default) {
            return Err(Error::invalid(format!(
                "format_version {} is above format level {level}, which allows {} at most",
                self.table.format_version,
                level.max_table_version()
            ))
            .hint("Raise the format level, or lower format_version"));
        }
        if let Some(ttl) = self.value_ttl_secs.filter(|ttl| *ttl < 0) {
            return Err(Error::invalid(format!("the time to live is {ttl} seconds, it can be 0 or more")));
        }
        validate("cf_paths", &self.cf_paths)?;
        self.validate_names()?;
        self.blob.validate()?;
        self.table.validate()?;
        self.compaction.validate()
    }

    /// Checks the names of the objects that a caller may supply, because files store the names and an open finds the built-in
    /// objects by them.
    ///
    /// # Errors
    /// `InvalidArgument`: what the caller gave has no name, or that of a built-in one; the name of one that OPTIONS files hold
    /// does not come back from a line.
    fn validate_names(&self) -> Result<()> {
        let wrong = |what: &str, name: &str| {
            let text = match name {
                "" => format!("the {what} has an empty name"),
                _ => format!("the {what} has the name of a built-in one, {name}, and is another"),
            };
            Err(Error::invalid(text).hint("Give it a name of its own: files of the database remember it"))
        };
        if let Order::Custom(comparator) = &self.order {
            let name = comparator.name();
            let stamped = timestamp_order(name)
                .is_some_and(|order| order.timestamp_len() != comparator.timestamp_len());
            if name.is_empty() || stamped || Order::by_name(name).is_some() {
                return wrong("comparator", name);
            }
        }
        let unfit = |what: &str, name: &str| {
            let text = format!("the {what}'s name {name:?} does not come back from an OPTIONS file");
            Err(Error::invalid(text).hint("Give it a name of letters, digits and points"))
        };
        let named = [
            self.merge_operator.as_ref().map(|o| ("merge operator", o.name(), borrows_built_in_name(&**o))),
            self.compaction_filter
                .as_ref()
                .map(|f| ("compaction filter", f.name(), f.borrows_built_in_name())),
            self.sst_partitioner
                .as_deref()
                .map(|p| ("SST partitioner", p.name(), sst_partitioner::borrows_built_in_name(p))),
        ];
        if let Some(extractor) = &self.table.prefix_extractor {
            let (what, name) = ("prefix extractor", extractor.name());
            if name.is_empty() || extractor.borrows_built_in_name() {
                return wrong(what, &name);
            }
            if !fits_a_line(&name) {
                return unfit(what, &name);
            }
        }
        for (what, name, borrowed) in named.into_iter().flatten() {
            if name.is_empty() || borrowed || TTL_IDS.contains(&name) {
                return wrong(what, name);
            }
            if !fits_a_line(name) {
                return unfit(what, name);
            }
        }
        for collector in &self.table.collectors {
            let (what, name) = ("collector of table properties", collector.name());
            if name.is_empty() || borrows(&**collector) {
                return wrong(what, name);
            }
            // OPTIONS files and tables have the names in lists.
            if !fits_a_line(name) || name.contains([':', ';', '{', '}', '=', ',', '\\', '#']) {
                return unfit(what, name);
            }
        }
        Ok(())
    }

    /// Whether an OPTIONS file says that values have times.
    pub fn stores_times(&self) -> bool {
        let id =
            |name: &&str| self.kept.get(name).is_some_and(|text| TTL_IDS.contains(&id_of(&text).as_str()));
        ["compaction_filter", "compaction_filter_factory", "merge_operator"].iter().any(id)
    }

    /// Checks the time to live against what an OPTIONS file says of an existing family.
    ///
    /// # Errors
    /// `InvalidArgument`: the values of the family have no times.
    pub fn check_times(&self, family: &str, stored: &FamilyOptions) -> Result<()> {
        if self.value_ttl_secs.is_none() || stored.stores_times() {
            return Ok(());
        }
        let text = format!(
            "family {family:?} is opened with a time to live, and its OPTIONS file says that its values have no write times"
        );
        Err(Error::invalid(text).hint(
            "Open it without one, and copy its entries into a new family that has one. If the values do have times, because \
             RocksDB opened the directory without its TTL wrapper, remove the OPTIONS files first",
        ))
    }

    /// Whether compactions ask a filter.
    pub fn has_filter(&self) -> bool {
        self.compaction_filter.is_some() || self.value_ttl_secs.is_some()
    }

    /// The name of the merge operator, or else the stored name.
    pub fn merge_operator_name(&self) -> Option<String> {
        let given = self.merge_operator.as_ref().map(|operator| operator.name().to_owned());
        given.or_else(|| self.stored_merge_operator.as_deref().map(id_of))
    }

    /// The options for use at `level`: order, operator, format version and entities in tables are made consistent with
    /// it.
    pub fn at_level(mut self, level: FormatLevel) -> Self {
        self.table.order = self.order.clone();
        self.table.merge_operator = self.merge_operator_name();
        self.table.format_version = self.table.format_version.min(level.max_table_version());
        self.blob.columns = level >= FormatLevel::V11;
        self
    }

    /// Whether both families hold the same lists of kept texts.
    pub fn shares_kept_with(&self, other: &FamilyOptions) -> bool {
        let tables = self.kept_tables.iter().zip(&other.kept_tables);
        self.kept.is_shared_with(&other.kept)
            && self.kept_tables.len() == other.kept_tables.len()
            && tables.into_iter().all(|((_, a), (_, b))| a.is_shared_with(b))
    }

    pub(crate) fn give_table(&mut self, name: &str, value: &str) {
        match self.kept_tables.iter_mut().find(|(kind, _)| kind == BLOCK_BASED) {
            Some((_, texts)) => texts.give(name, value),
            None => {
                let mut texts = KeptTexts::default();
                texts.give(name, value);
                self.kept_tables.push((BLOCK_BASED.to_owned(), texts));
            }
        }
    }

    /// For a new family with the settings of another one: if that one is stored with one level, so is the new one. A
    /// program of RocksDB gives its families the same settings, and RocksDB opens no tree with more levels than it is given.
    pub fn inherit_tree(&mut self) {
        if self.compaction.single_level {
            self.kept.give_stored("num_levels");
        }
    }

    /// Determines whether the family keeps its last level for tables that come behind all others. `all`: every family of the
    /// database does. A tree with all tables in level 0, or of fewer than 3 levels, has no level for that.
    pub fn reserve_last_level(&mut self, all: bool) {
        let wanted = all || self.ingest_behind;
        let compaction = &mut self.compaction;
        compaction.keeps_last_level = wanted && !compaction.stays_in_level0() && compaction.num_levels >= 3;
    }

    /// Drops the kept texts of a family, for a new family that may have the name of an old one.
    pub fn forget_stored(&mut self) {
        self.kept_over(&FamilyOptions::default());
    }

    /// Shares the kept texts with the families whose texts are in `known`, so that equal families have one list.
    pub fn share_kept(&mut self, known: &mut Vec<KeptTexts>) {
        self.kept.share(known);
        self.kept_tables.iter_mut().for_each(|(_, texts)| texts.share(known));
    }

    /// Adds the texts of `stored` below those that the caller gave.
    pub fn kept_over(&mut self, stored: &FamilyOptions) {
        self.kept = self.kept.over(&stored.kept);
        let given = std::mem::take(&mut self.kept_tables);
        self.kept_tables.clone_from(&stored.kept_tables);
        for (kind, texts) in given.iter().map(|(kind, texts)| (kind, texts.given_only())) {
            match self.kept_tables.iter_mut().find(|(k, _)| k == kind) {
                Some((_, stored)) => *stored = texts.over(stored),
                None if texts.is_empty() => {}
                None => self.kept_tables.push((kind.clone(), texts)),
            }
        }
        // The engine needs 2 levels at least. A stored 1 stays until the caller sets another number.
        let single = self.kept.get("num_levels").is_some_and(|n| n == "1") && self.compaction.num_levels == 2;
        self.compaction.single_level = single;
    }
}
