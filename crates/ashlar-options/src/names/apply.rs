//! Applies names and values to settings: one at a time, or as an option string,
//! `write_buffer_size=64M;max_open_files=-1`.
//!
//! A name may stand alone or after its struct: `compression_opts.level`, `block_based_table_factory.block_size`.

use super::database::DATABASE;
use super::family::FAMILY;
use super::nested::{COMPRESSION, FIFO, METADATA_CACHE, UNIVERSAL};
use super::object::member;
use super::operation::{COMPACT_RANGE, READ, WRITE};
use super::row::{Group, NotTaken, Range, Row, Taken};
use super::table::TABLE;
use super::value::{Value, integer, same};
use crate::kept::{Carry, KeptText, KeptTexts, is_struct, merged, stored_form};
use crate::{CompactRangeOptions, DbOptions, FamilyOptions, Options, ReadOptions, WriteOptions};
use ashlar_base::nearest::nearest;
use ashlar_base::{Error, Result};
use ashlar_format::options_file::{split_object, unescape};
use std::fmt;

/// A notice about a name that was accepted or skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The name.
    pub name: String,
    /// The value given.
    pub value: String,
    /// Why it has no effect.
    pub why: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.name, self.value, self.why)
    }
}

/// RocksDB never stores these options; 7.8.3 aborts on a file with a rate of 0.
const NEVER_STORED: [&str; 2] = ["rate_limiter_bytes_per_sec", "rate_limiter_auto_tuned"];

/// Settings of one open only. The values in a file are kept, and neither used nor changed.
const PER_OPEN: [&str; 3] = ["create_if_missing", "error_if_exists", "create_missing_column_families"];

/// Structs whose members are checked and kept for RocksDB, because AshlarDB has no setting for them.
const ONLY_KEPT: [&str; 3] =
    ["compaction_options_universal", "compaction_options_fifo", "blob_compression_opts"];

/// The prefix of a name, the group of the rest, and the rows of that group.
type Place = (&'static str, Group, &'static [Row<Options>]);

/// The rows whose names are valid where `group` is expected.
fn places(group: Group) -> &'static [Place] {
    match group {
        Group::Database => &[("", Group::Database, DATABASE)],
        Group::Family => &[
            ("", Group::Family, FAMILY),
            ("block_based_table_factory.", Group::Table, TABLE),
            ("table_factory.", Group::Table, TABLE),
            ("compression_opts.", Group::Compression, COMPRESSION),
            ("compaction_options_universal.", Group::Universal, UNIVERSAL),
            ("compaction_options_fifo.", Group::Fifo, FIFO),
        ],
        Group::Table => {
            &[("", Group::Table, TABLE), ("metadata_cache_options.", Group::MetadataCache, METADATA_CACHE)]
        }
        Group::MetadataCache => &[("", Group::MetadataCache, METADATA_CACHE)],
        Group::Compression => &[("", Group::Compression, COMPRESSION)],
        Group::Universal => &[("", Group::Universal, UNIVERSAL)],
        Group::Fifo => &[("", Group::Fifo, FIFO)],
        Group::Read | Group::Write | Group::Flush | Group::CompactRange | Group::CompactFiles => &[],
    }
}

/// Finds the row of a name where one of `groups` is expected.
pub(super) fn find(groups: &[Group], name: &str) -> Option<&'static Row<Options>> {
    find_with_group(groups, name).map(|(_, row)| row)
}

/// Finds the row of a name, and the group of the row.
fn find_with_group(groups: &[Group], name: &str) -> Option<(Group, &'static Row<Options>)> {
    let places = groups.iter().flat_map(|group| places(*group));
    places
        .filter_map(|(prefix, own, rows)| Some((name.strip_prefix(prefix)?, own, rows)))
        .find_map(|(rest, own, rows)| Some((*own, rows.iter().find(|row| row.name == rest)?)))
}

/// The text of the engine's setting of that name. `None`: there is no such setting, or files do not store it.
fn shown(options: &Options, group: Group, name: &str) -> Option<String> {
    let row = find(&[group], name)?;
    (row.setting()?.show)(options)
}

/// The default of RocksDB 11.8 for a name.
fn default_of(group: Group, name: &str) -> Option<&'static str> {
    find(&[group], name).map(|row| row.default)
}

/// The error for a name of another group. `None` if no group has the name.
fn elsewhere(groups: &[Group], name: &str) -> Option<Error> {
    for (group, whose) in [(Group::Database, "the database"), (Group::Family, "a column family")] {
        if !groups.contains(&group) && find(&[group], name).is_some() {
            let what = format!("{name:?} is a setting of {whose}");
            return Some(Error::invalid(what).hint(format!("Set it with the options of {whose}")));
        }
    }
    let row = TABLE.iter().find(|row| row.name == name)?;
    let name = row.name;
    Some(
        Error::invalid(format!("{name:?} is an option of block_based_table_factory"))
            .hint(format!("Write block_based_table_factory={{{name}=VALUE;}}")),
    )
}

/// The error for an unknown name, with the most similar name.
fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::invalid(format!("there is no option {name:?}"));
    match nearest(name, names) {
        Some(meant) => error.hint(format!("Did you mean {meant}?")),
        None => error.hint("`ashlar options list` shows all names"),
    }
}

/// The result of a row for a value: an error, or a notice when the value has no effect.
fn take<T>(row: &Row<T>, target: &mut T, value: &str) -> Result<Option<Notice>> {
    match row.set(target, value) {
        Ok(Taken::Set) => Ok(None),
        Ok(Taken::Ignored) => {
            let notice = Notice { name: row.name.into(), value: value.into(), why: row.text.into() };
            Ok(Some(notice))
        }
        Err(NotTaken::Wrong(why)) => Err(Error::invalid(format!("{}: {why}", row.name))),
        Err(NotTaken::Refused) => {
            Err(Error::not_supported(format!("{}={value}", row.name)).hint(row.text.trim_end_matches('.')))
        }
    }
}

impl Options {
    /// Sets one option of the database, of the family or, with a prefix, of a struct inside them. Ranges are checked when
    /// the options are used. A notice says why an accepted value has no effect.
    ///
    /// # Errors
    /// `InvalidArgument`: no such name, or not a value of the option. `NotSupported`: the value needs a feature that
    /// AshlarDB lacks. An error changes nothing.
    pub fn set(&mut self, name: &str, value: &str) -> Result<Option<Notice>> {
        self.set_in(&[Group::Database, Group::Family], name, value)
    }

    pub(crate) fn set_in(&mut self, groups: &[Group], name: &str, value: &str) -> Result<Option<Notice>> {
        let (group, row) = find_with_group(groups, name).ok_or_else(|| {
            let places = groups.iter().flat_map(|group| places(*group));
            let names = places.flat_map(|(_, _, rows)| rows.iter().map(|row| row.name));
            elsewhere(groups, name).unwrap_or_else(|| unknown(name, names))
        })?;
        let notice = take(row, self, value)?;
        if notice.is_some() || ONLY_KEPT.contains(&row.name) {
            self.keep_given(group, row, value);
        }
        Ok(notice)
    }

    /// Keeps a value that has no effect here, so that the next OPTIONS file contains it for RocksDB.
    fn keep_given(&mut self, group: Group, row: &'static Row<Options>, value: &str) {
        // No OPTIONS file has a name without a default.
        if row.default.is_empty() {
            return;
        }
        match group {
            Group::Database => self.db.kept.give(row.name, value),
            Group::Family => self.family.kept.give(row.name, value),
            Group::Table => self.family.give_table(row.name, value),
            _ => {}
        }
    }

    /// Sets the options of a string, `name=value;…`: all of them, or none. The last of several values of a name counts.
    ///
    /// # Errors
    /// Those of [`Options::set`]; `InvalidArgument` also for a malformed string.
    pub fn apply(&mut self, text: &str) -> Result<Vec<Notice>> {
        self.apply_in(&[Group::Database, Group::Family], text)
    }

    /// Loads a section of an OPTIONS file. Skips unknown, invalid and refused values, and clamps values that are out of
    /// range. Keeps every text, with a note for each value that was not used as written.
    pub(crate) fn load(&mut self, group: Group, entries: &[(String, String)]) -> Vec<KeptText> {
        let load = |options: &mut Options, (name, value): &(String, String)| {
            let note = options.load_one(group, name, value);
            let note = note.map(|why| format!("{name}={}: {why}", unescape(value)));
            KeptText { name: name.clone(), text: value.clone(), means: None, note, given: false }
        };
        // The ratio applies only if the index is on, so the index type comes first whatever their order in the file.
        if let Some((name, value)) = entries.iter().find(|(name, _)| name == "data_block_index_type") {
            let _ = self.load_one(group, name, value);
        }
        let load = |entry| load(self, entry);
        entries.iter().map(load).collect()
    }

    /// Loads one value of an OPTIONS file. Returns a note if the value was not used as written.
    fn load_one(&mut self, group: Group, name: &str, value: &str) -> Option<String> {
        let Some(row) = find(&[group], name) else {
            return Some("no release up to 11.8 has an option of that name".to_owned());
        };
        if PER_OPEN.contains(&row.name) {
            return None;
        }
        let text = unescape(value);
        let drawn = row.setting().and_then(|setting| draw_in(setting.range, &text));
        match row.set(self, drawn.as_deref().unwrap_or(&text)) {
            Ok(_) => match (drawn, row.setting()) {
                (Some(drawn), Some(setting)) => {
                    Some(format!("the range is {}; {drawn} is taken", setting.range))
                }
                _ => row.is_missed(&text).then(|| row.text.to_owned()),
            },
            Err(NotTaken::Wrong(why)) => Some(why),
            Err(NotTaken::Refused) => Some(row.text.to_owned()),
        }
    }

    /// Records, for each text of a loaded section, the value of the engine's setting after the load.
    pub(crate) fn remember(&self, group: Group, mut texts: Vec<KeptText>) -> KeptTexts {
        for kept in &mut texts {
            kept.means = shown(self, group, &kept.name);
        }
        KeptTexts::new(texts)
    }

    /// Resets loaded values to their defaults, last first, until `check` passes. Resets only values whose default changes
    /// the error. Returns the error if `check` never passes.
    pub(crate) fn fit(
        &mut self,
        group: Group,
        texts: &mut [KeptText],
        check: impl Fn(&Options) -> Result<()>,
    ) -> Result<()> {
        for at in (0..texts.len()).rev() {
            let Err(wrong) = check(self) else { return Ok(()) };
            let Some(kept) = texts.get_mut(at) else { continue };
            let row = find(&[group], &kept.name);
            let Some((row, setting)) = row.and_then(|row| Some((row, row.setting()?))) else { continue };
            let default = (setting.show)(&Options::default()).unwrap_or_default();
            let mut without = self.clone();
            if row.set(&mut without, &default).is_err() {
                continue;
            }
            let still = check(&without).err();
            if still.is_none_or(|e| e.message() != wrong.message()) {
                *self = without;
                let (name, text) = (&kept.name, unescape(&kept.text));
                kept.note = Some(format!("{name}={text}: {}; {default} is taken", wrong.message()));
            }
        }
        check(self)
    }

    /// The notes of kept texts whose settings have not been changed since the load.
    pub(crate) fn notes(&self, group: Group, texts: &KeptTexts) -> Vec<String> {
        let holds = |kept: &&KeptText| {
            let operator = kept.name == "merge_operator" && self.family.merge_operator.is_some();
            !operator && kept.means == shown(self, group, &kept.name)
        };
        let notes = texts.iter().filter(holds).filter_map(|kept| kept.note.clone());
        notes.chain(self.left_out(group, texts)).collect()
    }

    /// A note that lists the kept texts that the next OPTIONS file omits, because the release of the format level does not
    /// know them. RocksDB's defaults are not listed.
    fn left_out(&self, group: Group, texts: &KeptTexts) -> Option<String> {
        let level = self.db.format_level;
        let carry = Carry::new(level, &self.db.stored_release);
        let left = |kept: &KeptText| carry.fit(kept, default_of(group, &kept.name)).left_out;
        let asks = |(name, value): &(String, String)| {
            let default = match name.split_once('.') {
                Some((name, inner)) => default_of(group, name).and_then(|default| member(default, inner)),
                None => default_of(group, name).map(str::to_owned),
            };
            default.is_none_or(|default| !same(&default, value))
        };
        let left: Vec<_> = texts.iter().flat_map(left).filter(asks).collect();
        let left: Vec<_> = left.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!left.is_empty()).then(|| format!("left out of the OPTIONS file for {level}: {}", left.join(", ")))
    }

    /// The names and texts of a group for the next OPTIONS file: the kept texts, with changed settings replaced, then the
    /// settings that the older file did not have.
    pub(crate) fn next_texts(&self, group: Group, kept: &KeptTexts, carry: &Carry) -> Vec<(String, String)> {
        let ours = self.stored(group);
        let value = |name: &str| ours.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        let mut texts: Vec<(String, String)> = Vec::new();
        for text in kept.iter() {
            let row = find(&[group], &text.name);
            let shown = shown(self, group, &text.name);
            let acts = row.is_some_and(|row| row.setting().is_some() && !PER_OPEN.contains(&row.name));
            let fitted = carry.fit(text, default_of(group, &text.name)).text;
            let members = carry.whole || is_struct(&text.name);
            // The file never exceeds the format level that the caller requested.
            let bounded =
                text.text.starts_with('{') && !members || !carry.whole && text.name == "format_version";
            if !acts || shown == text.means && !bounded {
                texts.extend(fitted.map(|fitted| (text.name.clone(), fitted)));
            } else if let Some(value) = value(&text.name) {
                let value = stored_form(value);
                let stored = fitted.as_deref().filter(|_| members).unwrap_or_default();
                texts.push((text.name.clone(), merged(stored, &value)));
            }
        }
        let had = |name: &str| kept.iter().any(|text| text.name == name);
        texts.extend(
            ours.iter().filter(|(name, _)| !had(name)).map(|(n, v)| ((*n).to_owned(), stored_form(v))),
        );
        texts.retain(|(name, _)| carry.knows(name));
        texts
    }

    /// Changes options of a group while the database is open. Members of a struct change alone: the others stay.
    ///
    /// # Errors
    /// Those of [`Options::set`]; `InvalidArgument` also for an option that does not change while the database is open.
    pub fn change(&mut self, group: Group, changes: &[(&str, &str)]) -> Result<Vec<Notice>> {
        let mut notices = Vec::new();
        for (name, value) in changes {
            if let Some(fixed) = fixed_name(group, name, value) {
                return Err(Error::invalid(format!("{fixed} does not change while the database is open"))
                    .hint("Close the database and open it with the new value"));
            }
            notices.extend(self.set_in(&[group], name, value)?);
        }
        Ok(notices)
    }

    fn apply_in(&mut self, groups: &[Group], text: &str) -> Result<Vec<Notice>> {
        let mut changed = self.clone();
        let mut notices = Vec::new();
        for (name, value) in pairs(text)? {
            notices.extend(changed.set_in(groups, &name, &value)?);
        }
        *self = changed;
        Ok(notices)
    }

    /// Names and values that an OPTIONS file holds of these settings; as in RocksDB's, an empty value is left out.
    pub(crate) fn stored(&self, group: Group) -> Vec<(&'static str, String)> {
        let rows =
            places(group).iter().filter(|(prefix, ..)| prefix.is_empty()).flat_map(|(_, _, rows)| *rows);
        let known = rows.filter(|row| row.since <= self.db.format_level);
        let shown = known.filter_map(|row| Some((row.name, (row.setting()?.show)(self)?)));
        shown.filter(|(name, value)| !value.is_empty() && !NEVER_STORED.contains(name)).collect()
    }
}

/// The nearest value of a range to one that is outside of it.
fn draw_in(range: Range, text: &str) -> Option<String> {
    match range {
        Range::Whole(least, most, _) => {
            let (value, least, most) = (integer(text).ok()?, i128::from(least), i128::from(most));
            (!(least..=most).contains(&value)).then(|| value.clamp(least, most).to_string())
        }
        Range::Real(least, most) => {
            let value = f64::parse(text).ok()?;
            (!(least..=most).contains(&value)).then(|| value.clamp(least, most).to_string())
        }
        Range::Flag | Range::Text(_) => None,
    }
}

/// The option, or the member of its struct, that RocksDB keeps as it was given at open.
fn fixed_name(group: Group, name: &str, value: &str) -> Option<String> {
    if find(&[group], name).is_some_and(|row| !row.live) {
        return Some(name.to_owned());
    }
    if !matches!(name, "table_factory" | "block_based_table_factory") {
        return None;
    }
    let members = split_object(value).ok()?.into_iter().map(|(member, _)| member);
    members.into_iter().find(|member| TABLE.iter().any(|row| row.name == *member && !row.live))
}

fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    split_object(text).map_err(|e| Error::invalid("an option string is name=value;name=value").because(e))
}

impl DbOptions {
    /// [`Options::apply`] with names of `DBOptions`.
    ///
    /// # Errors
    /// Those of [`Options::apply`].
    pub fn apply(&mut self, text: &str) -> Result<Vec<Notice>> {
        let mut options = Options { db: self.clone(), ..Options::default() };
        let notices = options.apply_in(&[Group::Database], text)?;
        *self = options.db;
        Ok(notices)
    }
}

impl FamilyOptions {
    /// [`Options::apply`] with names of `ColumnFamilyOptions`. The cache of `block_cache` is the database's: a family
    /// alone cannot set it.
    ///
    /// # Errors
    /// Those of [`Options::apply`].
    pub fn apply(&mut self, text: &str) -> Result<Vec<Notice>> {
        let mut options = Options { family: self.clone(), ..Options::default() };
        let before = options.db.block_cache_bytes;
        let mut notices = options.apply_in(&[Group::Family], text)?;
        if options.db.block_cache_bytes != before {
            notices.push(Notice {
                name: "block_cache".into(),
                value: options.db.block_cache_bytes.to_string(),
                why: "The cache is the database's: set it with the database's options.".into(),
            });
        }
        *self = options.family;
        Ok(notices)
    }
}

impl ReadOptions {
    /// Sets one option by its name in RocksDB's `ReadOptions`. Keys and snapshots have no form as text.
    ///
    /// # Errors
    /// Those of [`Options::set`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<Option<Notice>> {
        set_one(READ, self, name, value)
    }
}

impl WriteOptions {
    /// Sets one option by its name in RocksDB's `WriteOptions`.
    ///
    /// # Errors
    /// Those of [`Options::set`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<Option<Notice>> {
        set_one(WRITE, self, name, value)
    }
}

impl CompactRangeOptions {
    /// Sets one option by its name in RocksDB's `CompactRangeOptions`.
    ///
    /// # Errors
    /// Those of [`Options::set`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<Option<Notice>> {
        set_one(COMPACT_RANGE, self, name, value)
    }
}

fn set_one<T>(rows: &[Row<T>], target: &mut T, name: &str, value: &str) -> Result<Option<Notice>> {
    let row = rows.iter().find(|row| row.name == name);
    take(row.ok_or_else(|| unknown(name, rows.iter().map(|row| row.name)))?, target, value)
}
