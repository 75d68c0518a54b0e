//! Command lines as gflags reads them: `--name=value`, `--name value`, `--switch`, `--noswitch`, one dash or two.
//!
//! 1. Names are told with `_` or `-` between words; case counts.
//! 2. The last of several values counts.
//! 3. A name that does not exist is an error that lists what there is, unless `--undefok=a,b` names it.
//! 4. Nothing but flags: a word that is none is an error (db_bench drops it silently).

mod accepted;
mod table;
#[cfg(test)]
mod tests;
mod value;

use accepted::{OFF_ONLY, WITHOUT_EFFECT, is_off};
use ashlar_base::nearest::nearest;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use table::FLAGS;
pub use table::Flags;

/// A command line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Its settings.
    pub flags: Flags,
    /// The names that were given.
    pub given: BTreeSet<&'static str>,
    /// Lines for standard error: flags that have no effect.
    pub warnings: Vec<String>,
    /// `--help` was among them.
    pub help: bool,
    /// `--version` was among them.
    pub version: bool,
}

/// Reads the words behind the program's name.
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
            } else if !without_effect(parsed, name, value)? && !tolerated.contains(name) {
                return Err(unknown(name));
            }
        }
    }
    Ok(())
}

/// Whether the flag is one of those that are taken without effect.
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
    let names = || FLAGS.iter().map(|f| f.name);
    let mut text = format!("ERROR: unknown command line flag '{name}'");
    if let Some(meant) = nearest(name, names().chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name))) {
        let _ = write!(text, " (did you mean --{meant}?)");
    }
    let _ = write!(text, "\nThe flags are: {}", names().collect::<Vec<_>>().join(", "));
    text
}

/// Ranges that hold for every engine.
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
    if flags.use_existing_db && flags.db.is_none() {
        return Err("ERROR: --use_existing_db needs --db=DIRECTORY".to_owned());
    }
    Ok(())
}

/// The flags with their meaning and defaults, a paragraph each.
pub fn help() -> String {
    let defaults = Flags::default();
    let mut text = String::new();
    for flag in FLAGS {
        let _ = writeln!(text, "  --{} (default {})", flag.name, (flag.show)(&defaults));
        for line in flag.help {
            let _ = writeln!(text, "     {}", line.trim());
        }
    }
    text
}
