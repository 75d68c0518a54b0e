//! What a rule is, and what it sees.

use crate::names::integer;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind};

/// The input of a rule.
pub(super) struct View<'a> {
    pub(super) file: &'a OptionsFile,
    /// The family; `default` for rules about the database.
    pub(super) family: &'a str,
    pub(super) table_bytes: u64,
}

impl View<'_> {
    pub(super) fn family(&self, name: &str) -> Option<&str> {
        self.file.family(self.family)?.get(name)
    }

    pub(super) fn table(&self, name: &str) -> Option<&str> {
        self.file.table(self.family)?.get(name)
    }

    pub(super) fn db(&self, name: &str) -> Option<&str> {
        self.file.db()?.get(name)
    }

    pub(super) fn own(&self, name: &str) -> Option<u64> {
        let (_, value) = self.file.own.iter().find(|(own, _)| own == name)?;
        value.parse().ok()
    }

    pub(super) fn families(&self) -> impl Iterator<Item = &Section> {
        self.file.sections.iter().filter(|s| matches!(s.kind, SectionKind::Family { .. }))
    }
}

/// A whole number, as large as a setting can be.
pub(super) fn number(value: Option<&str>) -> Option<i128> {
    integer(value?).ok().filter(|n| n.unsigned_abs() <= u128::from(u64::MAX))
}

/// A rule: its condition and its advice.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// Whether the rule is checked once for each family, or once for the database.
    pub(super) of_family: bool,
    /// The reason, if the condition holds.
    pub(super) check: fn(&View<'_>) -> Option<String>,
    pub(super) advice: &'static str,
}
