//! The experiments of the documents: sessions, sizes and engines.
//!
//! 1. A record looks as published: key, value, compressibility, block, batch and sync stay; the number of keys and all
//!    memory shrink by one factor, so that data and cache keep their ratio.
//! 2. A session is one fresh database in one process; rows that the document reads from the same load share one.
//! 3. Steps that would take too long on a slow engine are ended by the clock; the record says so.

mod free;
mod hot_paths;
mod operations;
mod s0;
mod s2;
mod s3;
mod special;
mod ycsb;

pub use free::{Wanted, sessions as free};

use crate::job::Step;
use ashlar_peers::engine::EngineName;
use ashlar_peers::settings::Settings;
use clap::ValueEnum;

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// RocksDB and LevelDB on flash, 2013: loads, overwrites, reads.
    S0,
    /// RocksDB's benchmark.sh on NVMe, 2020.
    S2,
    /// LevelDB's page of 2011.
    S3,
    /// YCSB A to F.
    Ycsb,
    /// The paths of puts, gets, scans and compactions beside RocksDB, on three shapes of keys.
    HotPaths,
    /// Transactions, universal compaction, ingestion, checkpoints, backups, scans of a prefix, and compaction filters
    /// beside RocksDB.
    Operations,
}

impl Experiment {
    /// The name in records.
    pub fn text(self) -> &'static str {
        match self {
            Experiment::S0 => "s0",
            Experiment::S2 => "s2",
            Experiment::S3 => "s3",
            Experiment::Ycsb => "ycsb",
            Experiment::HotPaths => "hot-paths",
            Experiment::Operations => "operations",
        }
    }

    /// The engines of the experiment by default.
    pub fn engines(self) -> Vec<EngineName> {
        match self {
            Experiment::S0 => vec![EngineName::Ashlardb, EngineName::Rocksdb, EngineName::Leveldb],
            Experiment::S2 | Experiment::HotPaths | Experiment::Operations => {
                vec![EngineName::Ashlardb, EngineName::Rocksdb]
            }
            Experiment::S3 | Experiment::Ycsb => EngineName::ALL.to_vec(),
        }
    }

    /// The sessions of the experiment in this size.
    pub fn sessions(self, size: Size) -> Vec<Session> {
        let sessions = match self {
            Experiment::S0 => s0::sessions(size),
            Experiment::S2 => s2::sessions(size),
            Experiment::S3 => s3::sessions(size),
            Experiment::Ycsb => ycsb::sessions(size),
            Experiment::HotPaths => hot_paths::sessions(size),
            Experiment::Operations => operations::sessions(size),
        };
        sessions.into_iter().map(|session| session.part(size.parts())).collect()
    }
}

/// The size of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// Seconds per engine: checks that everything works, never quoted.
    Smoke,
    /// Standard with a quarter of the keys, of the memory and of the time: three repetitions take about as long as one of those.
    Quarter,
    /// Minutes per engine.
    Standard,
    /// Up to an hour per engine.
    Large,
}

impl Size {
    /// The name in records.
    pub fn text(self) -> &'static str {
        match self {
            Size::Smoke => "smoke",
            Size::Quarter => "quarter",
            Size::Standard => "standard",
            Size::Large => "large",
        }
    }

    /// One of three; a quarter is made of standard, by [`Session::part`].
    pub fn of<T>(self, smoke: T, standard: T, large: T) -> T {
        match self {
            Size::Smoke => smoke,
            Size::Quarter | Size::Standard => standard,
            Size::Large => large,
        }
    }

    /// The divisor of the size.
    pub fn parts(self) -> u32 {
        if self == Size::Quarter { 4 } else { 1 }
    }

    /// Repetitions by default.
    pub fn reps(self) -> u32 {
        self.of(1, 3, 3)
    }
}

/// Some engines cannot do with a document's small cache; rows whose name ends in `-floor` give all of them this one.
const CACHE_FLOOR: u64 = 32 << 20;
/// Bytes of a memtable or a table, at least.
const LEAST_TABLE: u64 = 256 << 10;

/// A new database, and the steps on it.
#[derive(Clone, Debug)]
pub struct Session {
    /// The settings of the open.
    pub settings: Settings,
    /// Keys.
    pub keys: u64,
    /// In this order.
    pub steps: Vec<Step>,
}

impl Session {
    /// The approximate bytes that the session writes: every put, uncompressed.
    pub fn bytes(&self) -> u64 {
        let each = (self.settings.key_bytes + self.settings.value_bytes) as u64;
        let puts = |step: &Step| {
            if step.workload.writes() { step.ops.saturating_mul(step.threads.into()) } else { self.keys / 4 }
        };
        self.steps.iter().map(puts).sum::<u64>() * each
    }

    /// The same with one key of `n`: operations, memory, sizes of the tree and times with it, so that all ratios stay. A
    /// very small memtable would be all overhead: none is made smaller than [`LEAST_TABLE`].
    fn part(mut self, n: u32) -> Session {
        let share = |all: u64| (all / u64::from(n)).max(1);
        let tables = |bytes: u64| share(bytes).max(bytes.min(LEAST_TABLE));
        let s = &mut self.settings;
        s.data_bytes = share(s.data_bytes);
        s.cache_bytes = share(s.cache_bytes);
        s.write_buffer_bytes = tables(s.write_buffer_bytes);
        s.file_bytes = s.file_bytes.map(tables);
        s.base_bytes = s.base_bytes.map(tables);
        s.memory_limit_bytes = s.memory_limit_bytes.map(share);
        self.keys = share(self.keys);
        for step in &mut self.steps {
            step.ops = if step.ops == u64::MAX { u64::MAX } else { share(step.ops) };
            step.seconds /= f64::from(n);
        }
        self
    }
}

/// Settings of a document: key and value bytes, cache, memtable; the rest is what most of them share.
fn settings(keys: u64, lengths: [usize; 2], cache_bytes: u64, write_buffer_bytes: u64) -> Settings {
    Settings {
        key_bytes: lengths[0],
        value_bytes: lengths[1],
        data_bytes: keys * (lengths[0] + lengths[1]) as u64,
        cache_bytes,
        write_buffer_bytes,
        seed: 301,
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_have_names_and_the_documents_are_complete() {
        for experiment in Experiment::value_variants() {
            for size in Size::value_variants() {
                let sessions = experiment.sessions(*size);
                let rows: Vec<_> =
                    sessions.iter().flat_map(|s| &s.steps).filter(|s| s.measured).map(|s| &s.row).collect();
                let distinct: BTreeSet<_> = rows.iter().collect();
                assert_eq!(rows.len(), distinct.len(), "{experiment:?}: a row twice");
                for session in &sessions {
                    assert!(
                        session.steps[0].workload.fills(),
                        "{experiment:?}: a session begins with a load"
                    );
                    assert!(
                        session.bytes() > 0 && session.steps.iter().all(|s| s.ops > 0 && !s.title.is_empty())
                    );
                }
            }
        }
        let rows =
            |e: Experiment| e.sessions(Size::Standard).into_iter().flat_map(|s| s.steps).collect::<Vec<_>>();
        let s3 = rows(Experiment::S3);
        for row in
            ["1A", "1B", "1C", "1D", "2A-seq", "2B-rand", "2C-seq", "2D-rand", "2E-seq", "3A-rand", "3B-seq"]
        {
            assert!(s3.iter().any(|s| s.measured && s.row == row), "{row}");
        }
        let s0 = rows(Experiment::S0);
        for row in ["T1", "T2", "T3", "T3-walon", "T4", "T5", "T5-limited"] {
            assert!(s0.iter().any(|s| s.measured && s.row == row), "{row}");
        }
    }

    #[test]
    fn a_quarter_keeps_the_ratios_of_standard() {
        let of =
            |size| Experiment::S0.sessions(size).into_iter().find(|s| s.steps.iter().any(|s| s.row == "T5"));
        let (quarter, whole) = (of(Size::Quarter).unwrap(), of(Size::Standard).unwrap());
        assert_eq!(quarter.keys * 4, whole.keys);
        let (part, all) = (&quarter.settings, &whole.settings);
        assert_eq!((part.data_bytes * 4, part.cache_bytes * 4), (all.data_bytes, all.cache_bytes));
        assert_eq!(part.memory_limit_bytes.map(|bytes| bytes * 4), all.memory_limit_bytes);
        assert_eq!((part.value_bytes, part.block_bytes), (all.value_bytes, all.block_bytes));
        let steps = quarter.steps.iter().zip(&whole.steps);
        assert!(steps.clone().all(|(part, all)| part.seconds * 4.0 == all.seconds && part.row == all.row));
        let s3 = Experiment::S3.sessions(Size::Quarter);
        assert!(s3.iter().all(|session| session.settings.write_buffer_bytes >= LEAST_TABLE));
    }

    /// The data of every size is as many times the memory as the document's.
    #[test]
    fn ratios_are_kept() {
        for size in Size::value_variants() {
            for session in Experiment::S3.sessions(*size) {
                let s = &session.settings;
                let ratio = s.data_bytes as f64 / s.memory_bytes() as f64;
                let published = if s.memory_bytes() > s.data_bytes { 116.0 / 128.0 } else { 116.0 / 4.0 };
                if s.value_bytes == 100 && !s.sync && s.cache_bytes != CACHE_FLOOR {
                    assert!((ratio / published - 1.0).abs() < 0.6, "{size:?}: {ratio} for {published}");
                }
            }
        }
    }
}
