//! The settings, alone and in pairs, that occurred in directories that RocksDB created and could open again.

use super::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// Names of options.
    names: Met,
    /// Names with their values.
    values: Met,
}

/// Texts by number, and which of them were met in one directory.
#[derive(Debug, Default)]
struct Met {
    numbers: BTreeMap<String, u32>,
    pairs: BTreeSet<(u32, u32)>,
}

impl Met {
    fn add(&mut self, texts: impl Iterator<Item = String>) {
        let mut own = BTreeSet::new();
        for text in texts {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            own.insert(*self.numbers.entry(text).or_insert(next));
        }
        for &a in &own {
            self.pairs.extend(own.range(a + 1..).map(|&b| (a, b)));
        }
    }
}

impl Coverage {
    pub(super) fn add(&mut self, plan: &Plan) {
        let settings = || plan.families.iter().flat_map(|family| &family.settings).chain(&plan.db);
        self.names.add(settings().map(|setting| setting.name.clone()));
        self.values.add(settings().map(|setting| format!("{}={}", setting.name, setting.value)));
    }

    /// What was met, for the report.
    pub(super) fn figures(&self) -> [(&'static str, u64); 4] {
        [
            ("option names met", self.names.numbers.len() as u64),
            ("pairs of option names met", self.names.pairs.len() as u64),
            ("values of options met", self.values.numbers.len() as u64),
            ("pairs of values met", self.values.pairs.len() as u64),
        ]
    }
}
