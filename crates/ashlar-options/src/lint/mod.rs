//! The linter: finds combinations of settings that cause trouble, before they do.
//!
//! It reads an OPTIONS file, ours or RocksDB's, and known facts about the data. Each rule is a row: its condition, its
//! reason and its advice. An open runs the linter on its own settings, and `ashlar options lint` runs it on any file.
//!
//! 1. A rule applies only to values in the file; the engine chooses all others.
//! 2. Some rules apply to RocksDB only, because they name options that have no effect here. Our own files never hold
//!    these options.

mod rule;
mod rules;
#[cfg(test)]
mod tests;

use ashlar_format::options_file::{OptionsFile, SectionKind};
use rule::{Rule, View};
use std::collections::BTreeMap;
use std::fmt;

/// Known facts about the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of tables, all families together.
    pub table_bytes: u64,
    /// The bytes of tables per family. A family without an entry counts with the bytes of all.
    pub by_family: BTreeMap<String, u64>,
}

impl Facts {
    /// The facts from the bytes of each family.
    pub fn of(families: impl Iterator<Item = (String, u64)>) -> Facts {
        let by_family: BTreeMap<String, u64> = families.collect();
        Facts { table_bytes: by_family.values().sum(), by_family }
    }
}

/// A finding of the linter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The family; `None` for the whole database.
    pub family: Option<String>,
    /// The trouble that the settings cause, with their values.
    pub reason: String,
    /// The advice.
    pub advice: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(family) = &self.family {
            write!(f, "family {family:?}: ")?;
        }
        write!(f, "{}: {}. {}", self.rule, self.reason, self.advice)
    }
}

/// The rules: name, whether it is checked for each family, advice.
pub(super) fn rules() -> impl Iterator<Item = (&'static str, bool, &'static str)> {
    rules::RULES.iter().map(|rule| (rule.name, rule.of_family, rule.advice))
}

/// The findings for a file: those of the database first, then family by family.
pub fn lint(file: &OptionsFile, facts: &Facts) -> Vec<Finding> {
    let ask = |rule: &Rule, family: Option<&str>| {
        let table_bytes =
            family.and_then(|name| facts.by_family.get(name)).copied().unwrap_or(facts.table_bytes);
        let view = View { file, family: family.unwrap_or("default"), table_bytes };
        let reason = (rule.check)(&view)?;
        Some(Finding { rule: rule.name, family: family.map(str::to_owned), reason, advice: rule.advice })
    };
    let rules = |of_family| rules::RULES.iter().filter(move |rule| rule.of_family == of_family);
    let mut findings: Vec<Finding> = rules(false).filter_map(|rule| ask(rule, None)).collect();
    for section in &file.sections {
        if let SectionKind::Family { name } = &section.kind {
            findings.extend(rules(true).filter_map(|rule| ask(rule, Some(name))));
        }
    }
    findings
}
