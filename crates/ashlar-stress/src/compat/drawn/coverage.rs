//! Which settings were met, alone and in pairs: a name with its value, in directories that RocksDB made and could open again.

use super::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Coverage {
    numbers: BTreeMap<String, u32>,
    names: BTreeSet<String>,
    pairs: BTreeSet<(u32, u32)>,
}

impl Coverage {
    pub(super) fn add(&mut self, plan: &Plan) {
        let of_families = plan.families.iter().flat_map(|family| &family.settings);
        let mut own = BTreeSet::new();
        for setting in plan.db.iter().chain(of_families) {
            self.names.insert(setting.name.clone());
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            let words = format!("{}={}", setting.name, setting.value);
            own.insert(*self.numbers.entry(words).or_insert(next));
        }
        for &a in &own {
            self.pairs.extend(own.range(a + 1..).map(|&b| (a, b)));
        }
    }

    /// What was met, for the report.
    pub(super) fn figures(&self) -> [(&'static str, u64); 3] {
        [
            ("option names met", self.names.len() as u64),
            ("values of options met", self.numbers.len() as u64),
            ("pairs of values met", self.pairs.len() as u64),
        ]
    }
}
