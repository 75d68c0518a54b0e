//! The settings of an open: the caller's settings combined with those stored in the directory.

use crate::column_family::DEFAULT_FAMILY;
use ashlar_base::{Error, Order, Result};
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_options::{
    DbOptions, DbPath, Facts, FamilyOptions, Finding, LatestOptions, LoadedOptions, Options, StoredFamily,
    Together, find_latest_options, lint, note_lines, options_file,
};
use ashlar_recovery::{DamagedFile, Families, FamilySpec, Others, RecoveryReport};
use ashlar_tree::places::{Entered, PlaceSettings};
use ashlar_tree::version::{FamilyState, VersionSet};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A family to open, with its settings.
#[derive(Clone, Debug)]
pub struct OpenFamily {
    /// The family's name.
    pub name: String,
    /// The family's settings.
    pub options: FamilyOptions,
}

/// The report lines when a tree is opened with another number of levels than requested or stored.
fn levels_told(
    name: &str,
    given: &FamilyOptions,
    levels: usize,
    stored: Option<&FamilyOptions>,
) -> Option<String> {
    let given = given.compaction.num_levels;
    if levels > given {
        return Some(format!(
            "family {name:?}: num_levels={given}: there are tables in level {}, so {levels} levels are used",
            levels - 1
        ));
    }
    let stored = stored.map(|stored| stored.compaction.num_levels).filter(|stored| *stored < levels)?;
    Some(format!(
        "family {name:?}: num_levels={stored}: opened with {levels}; RocksDB with {stored} levels does not open \
         tables that a compaction brings below level {}",
        stored - 1
    ))
}

/// The settings of every family, listed or not.
pub struct Settings {
    /// Boxed, here and below: a map of ten thousand families has room for twice as many values.
    listed: BTreeMap<String, Box<FamilyOptions>>,
    others: FamilyOptions,
    /// The settings of existing families, combined with what the OPTIONS file stores.
    recalled: BTreeMap<String, Box<FamilyOptions>>,
    /// The table directories per family that the OPTIONS file names.
    cf_paths: BTreeMap<String, Vec<DbPath>>,
}

impl Settings {
    /// The given settings, checked.
    ///
    /// # Errors
    /// `InvalidArgument`: an option out of range, or a family that is listed twice.
    pub fn new(options: &DbOptions, families: Vec<OpenFamily>, others: FamilyOptions) -> Result<Settings> {
        options.validate()?;
        let level = options.format_level;
        others.validate(level)?;
        let mut listed = BTreeMap::new();
        for mut family in families {
            family.options.validate(level).map_err(|e| e.hint(format!("In family {:?}", family.name)))?;
            family.options.forget_stored();
            if listed.insert(family.name.clone(), Box::new(family.options.at_level(level))).is_some() {
                return Err(Error::invalid(format!("family {:?} is listed twice", family.name)));
            }
        }
        let mut others = others.at_level(level);
        others.forget_stored();
        Ok(Settings { listed, others, recalled: BTreeMap::new(), cf_paths: BTreeMap::new() })
    }

    /// The settings of a family whose keys are in `order` in the database. A listed family without its own comparator
    /// takes that order.
    pub fn of(&self, name: &str, order: &Order) -> FamilyOptions {
        let given = self.recalled.get(name).or(self.listed.get(name));
        let mut options = given.map_or(&self.others, |given| &**given).clone();
        if given.is_none() || matches!(options.order, Order::Bytewise) {
            options.order = order.clone();
            options.table.order = order.clone();
        }
        // The filter of `default` was not written for values of another family.
        if given.is_none() && name != DEFAULT_FAMILY {
            options.compaction_filter = None;
        }
        if let Some(paths) = self.cf_paths.get(name) {
            options.cf_paths.clone_from(paths);
        }
        options
    }

    /// The directories that the caller gave. A family that is not listed has no directories of its own.
    pub fn places(&self, options: &DbOptions) -> PlaceSettings {
        let own = self.listed.iter().map(|(name, o)| (name.clone(), o.cf_paths.clone()));
        let default = (DEFAULT_FAMILY.to_owned(), self.others.cf_paths.clone());
        let cf_paths = [default].into_iter().chain(own).filter(|(_, paths)| !paths.is_empty()).collect();
        PlaceSettings { wal_dir: options.wal_dir.clone(), db_paths: options.db_paths.clone(), cf_paths }
    }

    /// Stores the directories that were determined when the database was entered.
    pub fn settle(&mut self, options: &mut DbOptions, entered: &Entered) {
        self.others.cf_paths.clear();
        self.cf_paths.clone_from(&entered.settings.cf_paths);
        options.wal_dir.clone_from(&entered.settings.wal_dir);
        options.db_paths.clone_from(&entered.settings.db_paths);
        if let (true, Some(dir)) = (options.info_log.dir.is_empty(), &entered.db_log_dir) {
            options.info_log.dir.clone_from(dir);
        }
    }

    /// Combines the settings with the newest OPTIONS file and the levels of each tree. Merge operators are found by
    /// name; other stored settings are kept for the next OPTIONS file. If the file cannot be read or does not name a
    /// family, the report has a line about it.
    ///
    /// # Errors
    /// `InvalidArgument`: a family had another merge operator.
    pub(super) fn recall(
        &mut self,
        env: &Env,
        dir: &Path,
        options: &mut DbOptions,
        versions: &VersionSet,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        let latest = find_latest_options(&*env.fs, dir).unwrap_or_else(|e| {
            report.foreign.push(format!("the OPTIONS file was not read: {e}"));
            LatestOptions::default()
        });
        let damaged = latest.damaged.into_iter();
        report.damaged.extend(damaged.map(|(n, e)| DamagedFile::new(FileKind::Options(n).name(), &e)));
        let level = options.format_level;
        let ours = latest.found.as_ref().is_some_and(|(_, file)| !file.own.is_empty());
        let loaded = latest.found.map(|(path, file)| LoadedOptions::from_file(path, &file, level));
        let stored: HashMap<&str, &FamilyOptions> =
            loaded.iter().flat_map(|l| &l.families).map(|(name, stored)| (&**name, stored)).collect();
        let mut texts = Vec::new();
        for family in versions.families() {
            let (name, order) = (&*family.name, &family.version.order);
            let mut own = self.of(name, order);
            match stored.get(name) {
                Some(stored) => {
                    own.check_times(name, stored)?;
                    self.recall_operator(name, &mut own, stored.stored_merge_operator.as_deref())?;
                    own.kept_over(stored);
                    own.share_kept(&mut texts);
                }
                None if loaded.is_some() => {
                    // A family that this engine made took over the operator of `default`.
                    if !ours {
                        self.recall_operator(name, &mut own, None)?;
                    }
                    let operator = if ours { "" } else { ", without its merge operator" };
                    report.foreign.push(format!(
                        "the OPTIONS file does not name family {name:?}: opened with the settings of \"default\"{operator}"
                    ));
                }
                None => {}
            }
            let levels = family.version.levels.len();
            report.unserved.extend(levels_told(name, &own, levels, stored.get(name).copied()));
            (own.compaction.num_levels, own.only_if_there) = (levels, false);
            self.recalled.insert(name.to_owned(), Box::new(own));
        }
        if let Some(loaded) = &loaded {
            options.kept = options.kept.over(&loaded.db.kept);
            options.stored_release.clone_from(&loaded.release);
            for (name, own) in &mut self.recalled {
                let Some(family) = stored.get(&**name) else { continue };
                let told = Together::settle(options, own, Together { db: &loaded.db, family });
                report.foreign.extend(told.into_iter().map(|line| format!("family {name:?}: {line}")));
            }
            report.unserved.extend(self.unserved(options, versions));
        }
        Ok(())
    }

    /// One line for each stored option that this engine ignores and that would change RocksDB's behaviour.
    fn unserved(&self, options: &DbOptions, versions: &VersionSet) -> Vec<String> {
        let db = Options { db: options.clone(), ..Options::default() };
        let mut groups: Vec<(Vec<&str>, Vec<String>)> = vec![(Vec::new(), db.database_notes())];
        let mut before: Option<&FamilyOptions> = None;
        let families = versions.families();
        for family in &families {
            let Some(own) = self.recalled.get(&*family.name) else { continue };
            match groups.last_mut().filter(|_| before.is_some_and(|b| b.shares_kept_with(own))) {
                Some((names, _)) => names.push(&family.name),
                None => groups
                    .push((vec![&family.name], own.notes(options.format_level, &options.stored_release))),
            }
            before = Some(own);
        }
        note_lines(&groups)
    }

    /// Compares the settings of existing families with the merge operators they had.
    ///
    /// # Errors
    /// `InvalidArgument`: a family had another one.
    pub fn recall_operators<'f>(
        &mut self,
        stored: &[StoredFamily],
        there: impl Iterator<Item = (&'f str, &'f Order)>,
    ) -> Result<()> {
        let stored: BTreeMap<&str, &StoredFamily> =
            stored.iter().map(|family| (&*family.name, family)).collect();
        for (name, order) in there {
            let Some(family) = stored.get(name) else { continue };
            let mut options = self.of(name, order);
            self.recall_operator(name, &mut options, family.merge_operator.as_deref())?;
            self.recalled.insert(name.to_owned(), Box::new(options));
        }
        Ok(())
    }

    /// For each family of [`Settings::recall_operators`], keeps the stored options that the caller did not set, such as a
    /// single level.
    pub fn recall_kept(&mut self, loaded: &LoadedOptions) {
        for (name, stored) in &loaded.families {
            if let Some(own) = self.recalled.get_mut(name) {
                own.kept_over(stored);
            }
        }
    }

    /// Gives an existing family the merge operator it had. A family that is not listed takes the operator of `default`
    /// only if it had the same one: another operator would give its operands another meaning.
    fn recall_operator(&self, name: &str, options: &mut FamilyOptions, stored: Option<&str>) -> Result<()> {
        let listed = name == DEFAULT_FAMILY || self.listed.contains_key(name);
        if !listed && !options.has_operator(stored) {
            (options.merge_operator, options.stored_merge_operator) = (None, None);
            options.table.merge_operator = None;
        }
        stored.map_or(Ok(()), |stored| options.recall_operator(name, stored))
    }

    pub(super) fn default_order(&self) -> Order {
        self.given_order(DEFAULT_FAMILY)
    }

    /// The order that the caller gave for a family. A family other than `default` has none unless it is listed.
    pub fn given_order(&self, name: &str) -> Order {
        let others = (name == DEFAULT_FAMILY).then_some(&self.others);
        self.listed
            .get(name)
            .map(|listed| &**listed)
            .or(others)
            .map_or(Order::Bytewise, |options| options.order.clone())
    }

    /// The order of a family that a repair finds without a comparator: the one that the caller gave for the family, else that of
    /// `default`, as in RocksDB's repair.
    pub fn order_of_found(&self, name: &str) -> Order {
        let listed = self.listed.get(name).map(|listed| listed.order.clone());
        listed.unwrap_or_else(|| self.given_order(DEFAULT_FAMILY))
    }

    pub(super) fn families(&self) -> Families {
        let spec = |name: &String, o: &FamilyOptions| FamilySpec {
            name: name.clone(),
            order: o.order.clone(),
            levels: o.compaction.num_levels,
            only_if_there: o.only_if_there,
            timed: o.value_ttl_secs.is_some(),
        };
        let mut listed: Vec<FamilySpec> =
            self.listed.iter().map(|(name, options)| spec(name, options)).collect();
        if !self.listed.contains_key(DEFAULT_FAMILY) {
            let default = DEFAULT_FAMILY.to_owned();
            listed.push(spec(&default, &self.others));
        }
        Families { listed, others: Others::Open { levels: self.others.compaction.num_levels } }
    }

    /// The linter's advice on these settings and the existing data.
    pub(super) fn advice(&self, options: &DbOptions, versions: &VersionSet) -> Vec<String> {
        let families = versions.families();
        let settings: Vec<_> = families.iter().map(|f| self.of(&f.name, &f.version.order)).collect();
        let named: Vec<_> = families.iter().map(|f| f.name.as_str()).zip(&settings).collect();
        let bytes = |f: &FamilyState| f.version.files().map(|(_, f)| f.file.size).sum::<u64>();
        let facts = Facts::of(families.iter().map(|f| (f.name.clone(), bytes(f))));
        lint(&options_file(options, &named), &facts).iter().map(Finding::to_string).collect()
    }

    /// The families for a read-only open: an unlisted family with an unknown comparator stays closed.
    pub(super) fn families_to_read(&self) -> Families {
        let mut families = self.families();
        // The caller did not list `default`, so its order may be another built-in one.
        if matches!(self.others.order, Order::Bytewise) {
            families.listed.retain(|f| self.listed.contains_key(&f.name));
        }
        Families { others: Others::OpenKnown { levels: self.others.compaction.num_levels }, ..families }
    }
}
