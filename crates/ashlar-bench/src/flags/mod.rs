//! Command lines as gflags reads them: `--name=value`, `--name value`, `--switch`, `--noswitch`, one dash or two.
//!
//! 1. `_` and `-` are equal in names. Names are case-sensitive.
//! 2. The last of several values counts.
//! 3. An unknown name is an error that lists the flags, unless `--undefok=a,b` names it.
//! 4. Only flags are valid: any other word is an error (db_bench drops it silently).
//! 5. `--flagfile=a,b` inserts the flags in these files, one per line. Empty lines and lines that begin with `#` are
//!    skipped.

mod accepted;
mod options;
mod table;
#[cfg(test)]
mod tests;
mod value;

use accepted::{OFF_ONLY, WITHOUT_EFFECT, is_off};
use ashlar_base::nearest::nearest;
use options::OPTION_FLAGS;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use table::FLAGS;
pub use table::Flags;
pub use value::TreeState;

impl Flags {
    /// Bytes of a key of the shape that is asked for.
    pub fn key_bytes(&self) -> u64 {
        let size = usize::try_from(self.key_size).unwrap_or(usize::MAX);
        self.key_shape.bytes(size) as u64
    }
}

/// A parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The settings.
    pub flags: Flags,
    /// The names that were given.
    pub given: BTreeSet<&'static str>,
    /// Lines for standard error: flags that have no effect.
    pub warnings: Vec<String>,
    /// Whether `--help` was given.
    pub help: bool,
    /// Whether `--version` was given.
    pub version: bool,
}

/// How deep `--flagfile` files may be nested.
const FILES_DEEP: usize = 8;

/// Replaces each `--flagfile` by the flags in its files. `read` returns the text of a file.
///
/// # Errors
/// A sentence for standard error: a file that cannot be read, a line that is no flag, files that name each other in a circle.
pub fn with_files(
    words: &[String],
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    expand(words, read, FILES_DEEP)
}

fn expand(
    words: &[String],
    read: &dyn Fn(&str) -> Result<String, String>,
    deep: usize,
) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let files = match word.trim_start_matches('-').split_once('=') {
            Some(("flagfile", files)) if word.starts_with('-') => files,
            None if matches!(word.as_str(), "-flagfile" | "--flagfile") => {
                rest.next().ok_or("ERROR: flag 'flagfile' is missing its argument")?
            }
            _ => {
                all.push(word.clone());
                continue;
            }
        };
        for file in files.split(',').filter(|file| !file.is_empty()) {
            let deeper = deep.checked_sub(1).ok_or("ERROR: files of flags name each other in a circle")?;
            let text = read(file).map_err(|e| format!("ERROR: flagfile {file}: {e}"))?;
            let lines: Vec<String> = text
                .lines()
                .map(|line| line.trim().to_owned())
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .collect();
            if let Some(wrong) = lines.iter().find(|line| !line.starts_with('-')) {
                return Err(format!("ERROR: flagfile {file}: {wrong:?} is not a flag"));
            }
            all.extend(expand(&lines, read, deeper)?);
        }
    }
    Ok(all)
}

/// Parses the words after the program's name.
///
/// # Errors
/// A sentence for standard error: unknown flag, wrong or missing value, something that is not a flag.
pub fn parse(words: &[String]) -> Result<Parsed, String> {
    let mut parsed = Parsed {
        flags: Flags::default(),
        given: BTreeSet::new(),
        warnings: Vec::new(),
        help: false,
        version: false,
    };
    let tolerated = tolerated(words);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|f| !f.is_empty())
        else {
            return Err(format!("ERROR: {word:?} is not a flag; flags are --name=value"));
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name.replace('-', "_"), Some(value)),
            None => (flag.replace('-', "_"), None),
        };
        one(&mut parsed, &name, value, &mut rest, &tolerated)?;
    }
    retired(&mut parsed);
    check(&parsed.flags)?;
    Ok(parsed)
}

fn tolerated(words: &[String]) -> BTreeSet<String> {
    let lists = words.iter().filter_map(|w| w.trim_start_matches('-').strip_prefix("undefok="));
    lists.flat_map(|list| list.split(',')).map(|name| name.trim().replace('-', "_")).collect()
}

fn one<'a>(
    parsed: &mut Parsed,
    name: &str,
    value: Option<&'a str>,
    rest: &mut impl Iterator<Item = &'a String>,
    tolerated: &BTreeSet<String>,
) -> Result<(), String> {
    let mut needed = |name: &str| match value.or_else(|| rest.next().map(String::as_str)) {
        Some(value) => Ok(value),
        None => Err(format!("ERROR: flag '{name}' is missing its argument")),
    };
    match name {
        "help" | "helpfull" | "helpshort" | "help_all" => parsed.help = true,
        "version" => parsed.version = true,
        "undefok" => drop(needed(name)?),
        _ => {
            let off = name.strip_prefix("no").and_then(|n| FLAGS.iter().find(|f| f.name == n && f.is_switch));
            if let Some(flag) = FLAGS.iter().find(|f| f.name == name) {
                let value = if flag.is_switch { value.unwrap_or("true") } else { needed(name)? };
                let set = (flag.set)(&mut parsed.flags, value);
                set.map_err(|e| format!("ERROR: illegal value for flag '{name}': {e}"))?;
                parsed.given.insert(flag.name);
            } else if let (Some(flag), None) = (off, value) {
                (flag.set)(&mut parsed.flags, "false")?;
                parsed.given.insert(flag.name);
            } else if let Some(flag) = OPTION_FLAGS.iter().find(|f| f.name == name) {
                let value = if flag.is_switch() { value.unwrap_or("true") } else { needed(name)? };
                option(parsed, flag, value)?;
            } else if let (Some(flag), None) = (
                OPTION_FLAGS.iter().find(|f| f.is_switch() && name.strip_prefix("no") == Some(f.name)),
                value,
            ) {
                option(parsed, flag, "false")?;
            } else if !without_effect(parsed, name, value)? && !tolerated.contains(name) {
                return Err(unknown(name));
            }
        }
    }
    Ok(())
}

fn option(parsed: &mut Parsed, flag: &options::OptionFlag, value: &str) -> Result<(), String> {
    let why = options::take(&mut parsed.flags.options, flag, value);
    let why = why.map_err(|e| format!("ERROR: --{}={value}: {e}", flag.name))?;
    parsed.warnings.extend(why.map(|why| format!("WARNING: --{} has no effect: {why}", flag.name)));
    Ok(())
}

/// Translates retired flags and LevelDB's flags.
fn retired(parsed: &mut Parsed) {
    let flags = &mut parsed.flags;
    if let Some(factor) = flags.max_grandparent_overlap_factor.take() {
        let table = flags.target_file_size_base.unwrap_or(64 << 20);
        let bytes = factor.saturating_mul(table);
        flags.options.push_str(&format!("max_compaction_bytes={bytes};"));
        let text =
            format!("WARNING: --max_grandparent_overlap_factor={factor} is --max_compaction_bytes={bytes}");
        parsed.warnings.push(text);
    }
    if let Some(codec) = flags.compression.take() {
        flags.compression_type = if codec == 0 { "none" } else { "snappy" }.to_owned();
    }
    flags.compression_level = flags.zstd_compression_level.take().or(flags.compression_level);
    flags.target_file_size_base = flags.max_file_size.take().or(flags.target_file_size_base);
    if let Some(writes) = flags.writes_per_second.take().filter(|writes| *writes > 0) {
        flags.benchmark_write_rate_limit = writes.saturating_mul(flags.key_bytes() + flags.value_size);
        let limit = flags.benchmark_write_rate_limit;
        let text = format!("WARNING: --writes_per_second={writes} is --benchmark_write_rate_limit={limit}");
        parsed.warnings.push(text);
    }
}

/// Whether the flag is accepted without effect.
fn without_effect(parsed: &mut Parsed, name: &str, value: Option<&str>) -> Result<bool, String> {
    if let Some((_, why)) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name) {
        parsed.warnings.push(format!("WARNING: --{name} has no effect: {why}"));
        return Ok(true);
    }
    let positive = name.strip_prefix("no").filter(|_| value.is_none()).unwrap_or(name);
    let Some((_, off)) = OFF_ONLY.iter().find(|(known, _)| *known == positive) else { return Ok(false) };
    if positive != name || is_off(off, value.unwrap_or("true")) {
        return Ok(true);
    }
    Err(format!("ERROR: --{name}={} is not supported yet; only {off} is", value.unwrap_or("true")))
}

fn unknown(name: &str) -> String {
    let names = || FLAGS.iter().map(|f| f.name).chain(OPTION_FLAGS.iter().map(|f| f.name));
    let mut text = format!("ERROR: unknown command line flag '{name}'");
    if let Some(meant) = nearest(name, names().chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name))) {
        let _ = write!(text, " (did you mean --{meant}?)");
    } else {
        let _ = write!(text, "\nThe flags are: {}", names().collect::<Vec<_>>().join(", "));
    }
    text
}

/// Checks the ranges that hold for every engine.
fn check(flags: &Flags) -> Result<(), String> {
    let range = |name, value: u64, least, most| {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(format!("ERROR: illegal value for flag '{name}': {value} is not {least} to {most}"))
    };
    range("num", flags.num, 1, u64::MAX)?;
    range("threads", flags.threads, 1, 4096)?;
    range("key_size", flags.key_size, 1, 8 << 20)?;
    range("value_size", flags.value_size, 0, 1 << 30)?;
    range("value_size_max", flags.value_size_max, 0, 1 << 30)?;
    range("readwritepercent", flags.readwritepercent, 0, 100)?;
    range("mergereadpercent", flags.mergereadpercent, 0, 100)?;
    range("batch_size", flags.batch_size, 1, 1 << 20)?;
    range("ops_between_duration_checks", flags.ops_between_duration_checks, 1, u64::MAX)?;
    range("perf_level", flags.perf_level, 1, 6)?;
    range("num_column_families", flags.num_column_families, 1, 10_000)?;
    range("checksum_type", flags.checksum_type.unwrap_or(0), 0, 4)?;
    range("transaction_sets", flags.transaction_sets, 1, 9999)?;
    if flags.keys_per_prefix > 0 && (flags.prefix_size == 0 || flags.prefix_size > flags.key_size) {
        let (prefix, key) = (flags.prefix_size, flags.key_size);
        return Err(format!(
            "ERROR: illegal value for flag 'prefix_size': {prefix} is not 1 to {key}, the key's size"
        ));
    }
    if flags.compression_ratio < 0.0 || flags.compression_ratio > 1.0 {
        return Err(format!(
            "ERROR: illegal value for flag 'compression_ratio': {} is not 0 to 1",
            flags.compression_ratio
        ));
    }
    if flags.zipfian_theta <= 0.0 || flags.zipfian_theta == 1.0 {
        return Err(format!(
            "ERROR: illegal value for flag 'zipfian_theta': {} is not above 0, or is 1",
            flags.zipfian_theta
        ));
    }
    if flags.transaction_db && flags.optimistic_transaction_db {
        return Err("ERROR: give --transaction_db or --optimistic_transaction_db, not both".to_owned());
    }
    if flags.use_existing_db && flags.db.is_none() {
        return Err("ERROR: --use_existing_db needs --db=DIRECTORY".to_owned());
    }
    Ok(())
}

/// The help: each flag with its meaning and default.
pub fn help() -> String {
    let defaults = Flags::default();
    let mut text = String::new();
    for flag in FLAGS {
        let _ = writeln!(text, "  --{} (default {})", flag.name, (flag.show)(&defaults));
        for line in flag.help {
            let _ = writeln!(text, "     {}", line.trim());
        }
    }
    let names: Vec<_> = OPTION_FLAGS.iter().map(|flag| flag.name).collect();
    let _ = writeln!(text, "\nSet options of RocksDB (`ashlar options explain NAME`): {}", names.join(", "));
    text
}
