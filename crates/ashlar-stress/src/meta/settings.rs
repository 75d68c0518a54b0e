//! The settings that may change nothing but cost: dimensions with their values, and sets of choices that meet every pair.

use crate::sim::plan::Setup;
use crate::sim::store::DIR;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use ashlar_options::{CompactionStyle, FormatLevel, Options};
use ashlar_testkit::Rng;
use std::collections::BTreeSet;

/// One setting: what its values are called, and what they do. The first value is the default.
pub(super) struct Dimension {
    pub(super) name: &'static str,
    pub(super) values: &'static [&'static str],
    set: fn(&mut Setup, usize),
}

const fn dimension(
    name: &'static str,
    values: &'static [&'static str],
    set: fn(&mut Setup, usize),
) -> Dimension {
    Dimension { name, values, set }
}

const CODECS: [Compression; 5] =
    [Compression::Lz4, Compression::None, Compression::Snappy, Compression::Zlib, Compression::Zstd];
const CHECKSUMS: [ChecksumKind; 4] =
    [ChecksumKind::Xxh3, ChecksumKind::Crc32c, ChecksumKind::XxHash64, ChecksumKind::None];
const INDEXES: [IndexKind; 3] =
    [IndexKind::BinarySearch, IndexKind::TwoLevel, IndexKind::BinarySearchWithFirstKey];
/// The styles of a tree.
const STYLES: &[&str] = &["level", "universal", "universal with moves", "fifo", "universal in parts"];
const LEVELS: [FormatLevel; 3] = [FormatLevel::V9_11, FormatLevel::V7_8, FormatLevel::V11];

/// All of them.
pub(super) const DIMENSIONS: &[Dimension] = &[
    dimension("block_size", &["4096", "256", "1024", "65536"], |s, v| {
        s.family.table.block_size = [4096, 256, 1024, 65536][v];
    }),
    dimension("block_restart_interval", &["16", "1", "3"], |s, v| {
        s.family.table.block_restart_interval = [16, 1, 3][v];
    }),
    dimension("index_block_restart_interval", &["1", "4"], |s, v| {
        s.family.table.index_restart_interval = [1, 4][v];
    }),
    dimension("index_type", &["binary", "two levels", "first key"], |s, v| {
        s.family.table.index = INDEXES[v];
        s.family.table.metadata_block_size = 256;
    }),
    dimension("data_block_hash_index", &["off", "on"], |s, v| {
        s.family.table.data_block_hash_ratio = [None, Some(0.75)][v];
    }),
    dimension("filter_policy", &["bloom", "none", "ribbon", "bloom of 2 bits"], |s, v| {
        let policy = ["bloomfilter:10", "", "ribbonfilter:10", "bloomfilter:2"][v];
        s.family.table.filter = FilterPolicy::parse(policy);
    }),
    dimension("compression", &["lz4", "none", "snappy", "zlib", "zstd"], |s, v| {
        s.family.table.compression = CODECS[v];
    }),
    dimension("dictionaries", &["off", "on"], |s, v| s.family.table.max_dict_bytes = [0, 4096][v]),
    dimension("checksum", &["xxh3", "crc32c", "xxh64", "none"], |s, v| {
        s.family.table.checksum = CHECKSUMS[v];
    }),
    dimension("write_buffer_size", &["1 MiB", "64 KiB", "128 KiB"], |s, v| {
        s.family.write_buffer_bytes = [1 << 20, 64 << 10, 128 << 10][v];
    }),
    dimension("memtable protection", &["off", "8 bytes", "1 byte"], |s, v| {
        s.family.memtable_protection_bytes = [0, 8, 1][v];
    }),
    dimension("level0 trigger", &["4", "2", "20"], |s, v| {
        let trigger = [4, 2, 20][v];
        s.family.compaction.l0_trigger = trigger;
        (s.family.compaction.l0_slowdown, s.family.compaction.l0_stop) = (trigger + 4, trigger + 8);
    }),
    dimension("file and level sizes", &["64 MiB", "small"], |s, v| {
        s.family.compaction.target_file_bytes = [64 << 20, 16 << 10][v];
        s.family.compaction.base_level_bytes = [256 << 20, 64 << 10][v];
    }),
    dimension("subcompactions", &["1", "4"], |s, v| s.db.max_subcompactions = [1, 4][v]),
    dimension("blob files", &["off", "of 50 bytes", "all values"], |s, v| {
        s.family.blob.enabled = v > 0;
        s.family.blob.min_blob_bytes = [0, 50, 0][v];
        s.family.blob.file_bytes = 16 << 10;
    }),
    dimension("garbage collection", &["off", "on"], |s, v| {
        s.family.blob.collect_garbage = v == 1;
        s.family.blob.age_cutoff = 1.0;
    }),
    dimension("blob compression", &["none", "lz4"], |s, v| {
        s.family.blob.compression = [Compression::None, Compression::Lz4][v];
    }),
    dimension("block cache", &["8 MiB", "1 MiB"], |s, v| s.db.block_cache_bytes = [8 << 20, 1 << 20][v]),
    dimension("wal_compression", &["none", "zstd"], |s, v| {
        s.db.wal_compression = [Compression::None, Compression::Zstd][v];
    }),
    dimension("manual_wal_flush", &["off", "on"], |s, v| s.db.manual_wal_flush = v == 1),
    dimension("atomic_flush", &["off", "on"], |s, v| s.db.atomic_flush = v == 1),
    dimension("format level", &["9.11", "7.8", "11"], |s, v| s.db.format_level = LEVELS[v]),
    dimension("log", &["on", "off"], |s, v| s.unlogged = v == 1),
    dimension("num_levels", &["7", "3", "12"], |s, v| s.family.compaction.num_levels = [7, 3, 12][v]),
    dimension("max_open_files", &["all", "1", "10"], |s, v| s.db.max_open_files = [-1, 1, 10][v]),
    dimension("prefix_extractor", &["none", "fixed of 3", "capped of 2", "noop"], |s, v| {
        let names = ["nullptr", "rocksdb.FixedPrefix.3", "rocksdb.CappedPrefix.2", "rocksdb.Noop"];
        apply(s, &format!("prefix_extractor={}", names[v]));
    }),
    dimension("wal_dir", &["with the tables", "elsewhere"], |s, v| {
        s.places.wal_dir = [DIR, "/data/wal"][v].to_owned();
    }),
    dimension("mapped_wal", &["off", "on"], |s, v| s.db.mapped_wal = v == 1),
    dimension("compaction_style", STYLES, |s, v| {
        let compaction = &mut s.family.compaction;
        compaction.style = match STYLES[v] {
            "level" => CompactionStyle::Level,
            "fifo" => CompactionStyle::Fifo,
            _ => CompactionStyle::Universal,
        };
        compaction.universal.allow_trivial_move = STYLES[v] == "universal with moves";
        if STYLES[v] == "universal in parts" {
            compaction.universal.incremental = true;
            compaction.universal.max_size_amplification_percent = 10;
            compaction.max_compaction_bytes = 64 << 10;
        }
        compaction.fifo.allow_compaction = true;
    }),
    dimension("sst_partitioner", &["none", "prefix of 1", "prefix of 3"], |s, v| {
        let of = |length| format!("{{id=SstPartitionerFixedPrefixFactory;length={length};}}");
        apply(s, &format!("sst_partitioner_factory={}", ["nullptr".to_owned(), of(1), of(3)][v]));
    }),
    dimension("marks of deletions", &["off", "on"], |s, v| {
        let marks = "{id=CompactOnDeletionCollector;window_size=128;deletion_trigger=3;deletion_ratio=0.1;}";
        apply(s, &format!("table_properties_collectors={}", ["", marks][v]));
    }),
];

/// Takes settings by RocksDB's names.
fn apply(setup: &mut Setup, text: &str) {
    let mut options = Options { db: setup.db.clone(), family: setup.family.clone() };
    if options.apply(text).is_ok() {
        (setup.db, setup.family) = (options.db, options.family);
    }
}

/// A value per dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice(pub(super) Vec<usize>);

impl Choice {
    /// Everything as it comes.
    pub(super) fn default() -> Choice {
        Choice(vec![0; DIMENSIONS.len()])
    }

    fn draw(rng: &mut Rng) -> Choice {
        Choice(DIMENSIONS.iter().map(|d| rng.below(d.values.len())).collect())
    }

    /// What a reopen may make of it: a few settings changed, or all.
    pub(super) fn changed(&self, rng: &mut Rng) -> Choice {
        let (other, share) = (Choice::draw(rng), *rng.pick(&[0, 10, 100]).unwrap_or(&10));
        let pairs = self.0.iter().zip(other.0);
        Choice(pairs.map(|(old, new)| if rng.percent(share) { new } else { *old }).collect())
    }

    /// The settings of a store.
    pub(super) fn setup(&self) -> Setup {
        let mut setup = Setup::draw(&mut Rng::new(0));
        self.set(&mut setup, u64::MAX);
        setup
    }

    /// Sets those of the settings whose bit is in `which`.
    pub(super) fn set(&self, setup: &mut Setup, which: u64) {
        for (at, (dimension, value)) in DIMENSIONS.iter().zip(&self.0).enumerate() {
            if which >> at & 1 == 1 {
                (dimension.set)(setup, *value);
            }
        }
    }

    /// What is not as it comes.
    pub(super) fn words(&self) -> String {
        let chosen = DIMENSIONS.iter().zip(&self.0).filter(|(_, value)| **value != 0);
        let words: Vec<String> =
            chosen.map(|(d, value)| format!("{}={}", d.name, d.values[*value])).collect();
        if words.is_empty() { "defaults".to_owned() } else { words.join(", ") }
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize, usize, usize)> + '_ {
        let all = self.0.iter().copied().enumerate();
        all.flat_map(move |(a, x)| {
            self.0.iter().copied().enumerate().skip(a + 1).map(move |(b, y)| (a, x, b, y))
        })
    }
}

/// Which pairs of values have met.
#[derive(Default)]
pub(super) struct Cover(BTreeSet<(usize, usize, usize, usize)>);

impl Cover {
    /// Pairs that there are.
    pub(super) fn all() -> usize {
        let counts: Vec<usize> = DIMENSIONS.iter().map(|d| d.values.len()).collect();
        (0..counts.len()).map(|a| counts[a] * counts[a + 1..].iter().sum::<usize>()).sum()
    }

    /// Pairs that have met.
    pub(super) fn met(&self) -> usize {
        self.0.len()
    }

    /// Draws some choices and returns the one with the most new pairs, which then count as covered.
    pub(super) fn next(&mut self, rng: &mut Rng) -> Choice {
        let drawn: Vec<Choice> = (0..40).map(|_| Choice::draw(rng)).collect();
        let new = |choice: &Choice| choice.pairs().filter(|pair| !self.0.contains(pair)).count();
        let best = drawn.into_iter().max_by_key(new).unwrap_or_else(Choice::default);
        self.0.extend(best.pairs());
        best
    }

    /// The choices of a seed, one after the other, without end.
    pub(super) fn row(seed: u64) -> impl Iterator<Item = Choice> {
        let (mut cover, mut rng) = (Cover::default(), Rng::new(seed));
        std::iter::repeat_with(move || cover.next(&mut rng))
    }

    /// Those of a choice have met.
    pub(super) fn meet(&mut self, choice: &Choice) {
        self.0.extend(choice.pairs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_allowed_and_every_pair_meets() {
        for (at, dimension) in DIMENSIONS.iter().enumerate() {
            for value in 0..dimension.values.len() {
                let mut choice = Choice::default();
                choice.0[at] = value;
                let Setup { db, family, .. } = choice.setup();
                db.validate()
                    .and_then(|()| family.validate(db.format_level))
                    .unwrap_or_else(|e| panic!("{}: {e}", choice.words()));
            }
        }
        let (mut cover, mut rng) = (Cover::default(), Rng::new(1));
        for _ in 0..120 {
            cover.next(&mut rng);
        }
        assert_eq!(cover.met(), Cover::all());
    }
}
