//! Sizes: how large the graph is, what memory the engines get, and how long each row runs.
//!
//! The out-degree is capped in proportion to the number of nodes. Without the cap, the node with the most links would have as many
//! in a small graph as in a large one. Cache, memtable and memory limit shrink with the graph.

use crate::job::Step;
use ashlar_peers::settings::Settings;

/// A size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Size {
    /// 20,000 nodes: shows that everything works. Its figures are not to be quoted.
    Smoke,
    /// 250,000 nodes.
    Quarter,
    /// 1,000,000 nodes.
    Standard,
}

/// `cached` or `device`; row names begin with this word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// The data fits the engine's cache, which is read full before each row.
    Cached,
    /// The data fits neither the cache nor the memory that a control group leaves. In the smoke size the data fits that memory, and
    /// records say so: the memory of the program itself is larger than the data.
    Device,
}

impl Case {
    /// The name in rows.
    pub fn text(self) -> &'static str {
        match self {
            Case::Cached => "cached",
            Case::Device => "device",
        }
    }
}

/// The cap of 961,963 links holds for ten million nodes and shrinks in proportion.
const GREATEST_DEGREE: u64 = 961_963;
const FULL: u64 = 10_000_000;
/// Bytes of the entries of a node with its links, about.
const NODE_BYTES: u64 = 700;
/// Clients of the rate-limited row.
const PACED_CLIENTS: u32 = 4;

impl Size {
    /// The name in records.
    pub fn text(self) -> &'static str {
        match self {
            Size::Smoke => "smoke",
            Size::Quarter => "quarter",
            Size::Standard => "standard",
        }
    }

    /// Nodes.
    pub fn ids(self) -> u64 {
        match self {
            Size::Smoke => 20_000,
            Size::Quarter => 250_000,
            Size::Standard => 1_000_000,
        }
    }

    /// Repetitions.
    pub fn reps(self) -> u32 {
        if self == Size::Smoke { 1 } else { 3 }
    }

    /// Operations a second of the rate-limited row, unless the user gives another number.
    pub fn rate(self) -> f64 {
        if self == Size::Smoke { 1000.0 } else { 2000.0 }
    }

    /// Properties that override those of the workload.
    pub fn properties(self) -> Vec<String> {
        let cap = GREATEST_DEGREE * self.ids() / FULL;
        vec![format!("startid1=1"), format!("maxid1={}", self.ids() + 1), format!("nlinks_cap={cap}")]
    }

    /// The settings of every engine.
    pub fn settings(self, case: Case) -> Settings {
        let mib = 1_u64 << 20;
        let scale = self.ids() / 250_000;
        let cache = match (self, case) {
            // The load, what requests add, and what an engine's pages and indexes need besides.
            (Size::Smoke, Case::Cached) => 24 * mib,
            (Size::Smoke, Case::Device) => 8 * mib,
            (_, Case::Cached) => 256 * scale * mib,
            (_, Case::Device) => 8 * scale * mib,
        };
        let buffer = if self == Size::Standard { 4 * mib } else { mib };
        Settings {
            cache_bytes: cache,
            write_buffer_bytes: buffer,
            write_buffers: 3,
            file_bytes: Some(buffer),
            base_bytes: Some(4 * buffer),
            memory_limit_bytes: (case == Case::Device).then_some(40 * scale.max(1) * mib),
            data_bytes: self.ids() * NODE_BYTES,
            ..Settings::default()
        }
    }

    /// Seconds of a row, and operations of a client at most.
    fn limits(self) -> (f64, u64) {
        match self {
            // So few that every engine does all of them, and their sums can be compared.
            Size::Smoke => (30.0, 2500),
            Size::Quarter => (10.0, u64::MAX),
            Size::Standard => (60.0, u64::MAX),
        }
    }

    /// The rows after the load.
    pub fn steps(self, case: Case, clients: &[u32], rate: Option<f64>) -> Vec<Step> {
        let (seconds, requests) = self.limits();
        let head = case.text();
        let mut steps: Vec<Step> = clients
            .iter()
            .map(|&clients| Step {
                row: format!("{head}-{clients}"),
                title: format!("{head}, {clients} client{}", if clients == 1 { "" } else { "s" }),
                clients,
                requests,
                seconds,
                rate: 0.0,
            })
            .collect();
        let rate = rate.unwrap_or(self.rate());
        if rate > 0.0 {
            steps.push(Step {
                row: format!("{head}-rate"),
                title: format!("{head}, {PACED_CLIENTS} clients, {rate:.0} operations a second"),
                clients: PACED_CLIENTS,
                requests: if self == Size::Smoke { 1000 } else { u64::MAX },
                seconds,
                rate,
            });
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn sizes_are_those_of_the_specification() {
        for (size, ids, cap) in [
            (Size::Smoke, 20_000, 1923),
            (Size::Quarter, 250_000, 24_049),
            (Size::Standard, 1_000_000, 96_196),
        ] {
            let config = Config::builtin(&size.properties(), true).unwrap();
            let crate::generate::degree::Function::Real { cap: found, .. } = config.graph.degree else {
                panic!()
            };
            assert_eq!((config.ids(), found), (ids, cap));
        }
        assert_eq!(Size::Standard.settings(Case::Cached).cache_bytes, 1 << 30);
        for size in [Size::Smoke, Size::Quarter, Size::Standard] {
            let cached = size.settings(Case::Cached);
            assert!(
                cached.cache_bytes * 2 >= cached.data_bytes * 3,
                "{size:?}: the data fits with room for more"
            );
            let device = size.settings(Case::Device);
            assert!(device.cache_bytes < device.data_bytes, "{size:?}");
            let limited = device.memory_limit_bytes.is_some_and(|limit| limit < device.data_bytes);
            assert_eq!(limited, size != Size::Smoke, "{size:?}");
        }
        let device = Size::Standard.settings(Case::Device);
        assert_eq!((device.cache_bytes, device.memory_limit_bytes), (32 << 20, Some(160 << 20)));
        let rows = Size::Smoke.steps(Case::Cached, &[1, 4], None);
        assert_eq!(
            rows.iter().map(|step| step.row.as_str()).collect::<Vec<_>>(),
            ["cached-1", "cached-4", "cached-rate"]
        );
        assert_eq!(Size::Smoke.steps(Case::Device, &[1], Some(0.0)).len(), 1);
    }
}
