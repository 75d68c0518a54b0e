//! The command lines of the document, scaled: the keys, the memory and the sizes of the tree by one factor.
//!
//! Unchanged are the entries, the blocks, the filters, the cache of 1 MiB and the number of threads that read. Twenty compactions at
//! a time become two, one for each processor of the scaled machine.

use super::Size;
use ashlar_report::record::{Limit, Params};
use std::path::Path;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const READERS: u32 = 32;
const VALUE: u64 = 800;

/// A new directory, and the JVMs that use it one after the other.
#[derive(Clone, Debug)]
pub struct Session {
    /// In this order; the first one loads.
    pub steps: Vec<Step>,
}

impl Session {
    /// The rows, for people.
    pub fn names(&self) -> String {
        self.steps.iter().filter_map(|step| step.row).collect::<Vec<_>>().join(", ")
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> u64 {
        self.steps.first().map_or(0, Step::bytes)
    }
}

/// A JVM that runs one workload.
#[derive(Clone, Debug)]
pub struct Step {
    /// The row; `None`: the figures are not kept.
    pub row: Option<&'static str>,
    /// A short description.
    pub title: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// Threads.
    pub threads: u32,
    /// Puts a second of the writer beside the readers; 0: no limit.
    pub writes_per_second: Option<u64>,
    /// Whether that limit is the document's share of the rate of the step before.
    pub shares: bool,
    /// Reads of all threads together.
    reads: Option<u64>,
    codec: &'static str,
    log: bool,
    scale: Scale,
    tree: Tree,
}

/// What depends on the size.
#[derive(Clone, Copy, Debug)]
struct Scale {
    keys: u64,
    buffer: u64,
    base: u64,
    big_cache: u64,
}

impl Scale {
    fn of(size: Size) -> Scale {
        let (keys, buffer) = size.of((50_000, 256 * KIB), (5_000_000, 8 * MIB), (20_000_000, 16 * MIB));
        let parts = u64::from(size.parts());
        Scale {
            keys: keys / parts,
            buffer: buffer / parts,
            base: 4 * buffer / parts,
            big_cache: size.of(MIB, 80 * MIB, 320 * MIB) / parts,
        }
    }
}

/// What the three loads of the document do not share.
#[derive(Clone, Copy, Debug)]
struct Tree {
    key: u64,
    block: u64,
    cache: u64,
    shard_bits: u32,
    least_compressed: Option<u32>,
}

impl Step {
    /// The number of operations.
    pub fn operations(&self) -> u64 {
        self.reads.unwrap_or(self.scale.keys)
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> u64 {
        self.scale.keys * (self.tree.key + VALUE)
    }

    /// The flags, in the order of the document, and behind them those of this suite.
    pub fn flags(&self, db: &Path) -> Vec<String> {
        let (scale, tree) = (self.scale, self.tree);
        // Debts of the load would be paid during the reads, in another share here than in runs of hours.
        let settle = if self.loads() && self.row.is_none() { ",waitforcompaction" } else { "" };
        let mut flags = vec![
            format!("--benchmarks={}{settle}", self.workload),
            "--disable_seek_compaction=true".into(),
            "--mmap_read=false".into(),
            "--statistics=true".into(),
            "--histogram=true".into(),
            format!("--num={}", scale.keys),
            format!("--threads={}", self.threads),
            format!("--key_size={}", tree.key),
            format!("--value_size={VALUE}"),
            format!("--block_size={}", tree.block),
            format!("--cache_size={}", tree.cache),
            "--bloom_bits=10".into(),
            format!("--cache_numshardbits={}", tree.shard_bits),
            "--open_files=500000".into(),
            "--verify_checksum=true".into(),
            format!("--db={}", db.display()),
            "--sync=false".into(),
            format!("--disable_wal={}", !self.log),
            format!("--compression_type={}", self.codec),
            "--compression_ratio=0.50".into(),
            "--disable_data_sync=false".into(),
            format!("--write_buffer_size={}", scale.buffer),
            format!("--target_file_size_base={}", scale.buffer),
            "--max_write_buffer_number=3".into(),
            "--max_background_compactions=2".into(),
            "--level0_file_num_compaction_trigger=4".into(),
            "--level0_slowdown_writes_trigger=8".into(),
            "--level0_stop_writes_trigger=12".into(),
            "--num_levels=6".into(),
            "--delete_obsolete_files_period_micros=300000000".into(),
            "--max_grandparent_overlap_factor=10".into(),
            format!("--max_bytes_for_level_base={}", scale.base),
            format!("--use_existing_db={}", !self.loads()),
        ];
        flags.extend(tree.least_compressed.map(|level| format!("--min_level_to_compress={level}")));
        flags.extend(self.reads.map(|reads| format!("--reads={reads}")));
        flags.extend(self.writes_per_second.map(|puts| format!("--writes_per_second={puts}")));
        flags.push("--details=true".into());
        flags
    }

    fn loads(&self) -> bool {
        self.workload == "fillseq"
    }

    /// The settings as a record has them.
    pub fn params(&self) -> Params {
        let (scale, tree) = (self.scale, self.tree);
        let mut params = Params {
            keys: scale.keys,
            key_bytes: tree.key,
            value_bytes: VALUE,
            compress_ratio: Some(0.5),
            threads: self.threads,
            codec: Some(self.codec.to_owned()),
            durability: if self.log { "async" } else { "nolog" }.to_owned(),
            cache_bytes: Some(tree.cache),
            write_buffer_bytes: Some(scale.buffer),
            write_buffers: Some(3),
            block_bytes: Some(tree.block),
            filter_bits: Some(10),
            batch: 1,
            limit: Limit::Count,
            limit_method: Some("none".to_owned()),
            regime: Some("os".to_owned()),
            ..Params::default()
        };
        if !self.loads() {
            // The document's data were six times the memory of its machine.
            params.options.insert("memory limit".into(), "not held: the data fit the page cache".into());
        }
        let writes = self.writes_per_second.map(|puts| ("writes_per_second", puts.to_string()));
        params.options.extend(writes.map(|(name, value)| (name.to_owned(), value)));
        params
    }
}

/// The sessions of the wanted rows; all of them, if none is named.
///
/// # Errors
/// There is no row of a name.
pub fn sessions(size: Size, wanted: &[String]) -> Result<Vec<Session>, String> {
    let mut sessions = all(Scale::of(size));
    let there: Vec<&str> =
        sessions.iter().flat_map(|session| &session.steps).filter_map(|step| step.row).collect();
    if let Some(row) = wanted.iter().find(|row| !there.contains(&row.as_str())) {
        return Err(format!("s1 has no row {row}: there are {}", there.join(", ")));
    }
    let is_wanted =
        |step: &Step| step.row.is_some_and(|row| wanted.is_empty() || wanted.iter().any(|name| name == row));
    for session in &mut sessions {
        let steps = session.steps.iter().rposition(is_wanted).map_or(0, |last| last + 1);
        session.steps.truncate(steps);
    }
    sessions.retain(|session| !session.steps.is_empty());
    Ok(sessions)
}

fn all(scale: Scale) -> Vec<Session> {
    let compressed = Tree { key: 10, block: 64 * KIB, cache: MIB, shard_bits: 4, least_compressed: Some(0) };
    let plain = Tree { key: 16, block: 4 * KIB, shard_bits: 6, least_compressed: Some(2), ..compressed };
    let cached = Tree { cache: scale.big_cache, ..plain };
    let fill = |row, tree| Step {
        row,
        title: "sequential puts",
        workload: "fillseq",
        threads: 1,
        writes_per_second: None,
        shares: false,
        reads: None,
        codec: "snappy",
        log: false,
        scale,
        tree,
    };
    let reads = |workload, reads| Step {
        workload,
        threads: READERS,
        reads: Some(reads),
        title: "random reads, 32 threads",
        ..fill(None, plain)
    };
    let few = scale.keys * 2 / 5;
    let beside = Step { log: true, tree: cached, ..reads("readwhilewriting", few) };
    vec![
        Session { steps: vec![fill(Some("T2"), compressed)] },
        Session {
            steps: vec![
                fill(None, plain),
                // The document reads the compressed database with compression switched off.
                Step { row: Some("T4"), codec: "none", ..reads("readrandom", scale.keys) },
            ],
        },
        Session {
            steps: vec![
                fill(None, cached),
                Step { tree: cached, ..reads("readrandom", few) },
                Step {
                    row: Some("T5"),
                    title: "32 readers and a writer at 9.6 % of their rate",
                    shares: true,
                    ..beside.clone()
                },
                Step {
                    row: Some("T5-10000"),
                    title: "32 readers and a writer of 10,000 puts a second",
                    writes_per_second: Some(10_000),
                    ..beside
                },
            ],
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(size: Size, wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<String> = wanted.iter().map(|row| (*row).to_owned()).collect();
        sessions(size, &wanted).unwrap().iter().map(Session::names).collect()
    }

    #[test]
    fn a_row_keeps_the_steps_before_it() {
        assert_eq!(names(Size::Standard, &[]), ["T2", "T4", "T5, T5-10000"]);
        assert_eq!(names(Size::Smoke, &["T5"]), ["T5"]);
        let steps = sessions(Size::Smoke, &["T5".to_owned()]).unwrap().remove(0).steps;
        assert_eq!(
            steps.iter().map(|step| step.workload).collect::<Vec<_>>(),
            ["fillseq", "readrandom", "readwhilewriting"]
        );
        let why = sessions(Size::Smoke, &["T3".to_owned()]).unwrap_err();
        assert_eq!(why, "s1 has no row T3: there are T2, T4, T5, T5-10000");
    }

    #[test]
    fn the_flags_are_those_of_the_document() {
        let of = |session: usize, step: usize| {
            let sessions = sessions(Size::Standard, &[]).unwrap();
            sessions[session].steps[step].flags(Path::new("/db"))
        };
        let has = |flags: &[String], wanted: &[&str]| {
            for flag in wanted {
                assert!(flags.iter().any(|known| known == flag), "{flag} of {flags:?}");
            }
        };
        has(
            &of(0, 0),
            &["--benchmarks=fillseq", "--key_size=10", "--block_size=65536", "--min_level_to_compress=0"],
        );
        has(
            &of(1, 0),
            &["--benchmarks=fillseq,waitforcompaction", "--block_size=4096", "--disable_wal=true"],
        );
        has(
            &of(1, 1),
            &["--reads=5000000", "--threads=32", "--compression_type=none", "--use_existing_db=true"],
        );
        has(&of(2, 3), &["--writes_per_second=10000", "--disable_wal=false", "--cache_size=83886080"]);
    }
}
