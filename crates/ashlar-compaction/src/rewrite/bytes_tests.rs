//! The bytes of tables: for drawn options and entries, what flush and compaction write is what earlier releases wrote.
//!
//! The cases are in `tests/scripts/bytes`; each has the seed it is drawn from. The first stage writes three runs from memory,
//! as a flush does, the second merges them. An output is the options, the numbers and lengths of all files, and a checksum
//! of their bytes. A difference means that the same input gives other files: correct that, or say in the commit why the
//! files change, and run the test with `REWRITE=1`. A new release of a codec may change them, too.

use super::drive::tests::{MemoryRun, Version, orders};
use super::fixture::{TestDir, trailer};
use super::*;
use ashlar_base::checksum::xxh3_64;
use ashlar_base::range_del::{FragmentedTombstones, RangeTombstone};
use ashlar_base::{FileNumber, Order, RunCursor, SeqNum, ValueType};
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use ashlar_format::version_edit::NewFile;
use ashlar_table::TableOptions;
use ashlar_testkit::rng::Rng;
use ashlar_testkit::script::{self, Command};
use ashlar_tree::version::FileMeta;
use std::path::Path;
use std::sync::Arc;

const RUNS: u64 = 3;

fn one_of<T: Clone>(rng: &mut Rng, items: &[T]) -> T {
    rng.pick(items).unwrap().clone()
}

fn options(rng: &mut Rng) -> TableOptions {
    use Compression::{Bzip2, Lz4, Lz4hc, None as Raw, Snappy, Zlib, Zstd};
    let bloom = |bits_per_key| Some(FilterPolicy::Bloom { bits_per_key });
    let ribbon = Some(FilterPolicy::Ribbon { bloom_bits_per_key: 9.0, bloom_before_level: -1 });
    let kinds = [IndexKind::BinarySearch, IndexKind::BinarySearchWithFirstKey, IndexKind::TwoLevel];
    TableOptions {
        block_size: one_of(rng, &[300, 1000, 4096, 100_000]),
        block_restart_interval: one_of(rng, &[1, 3, 16]),
        index_restart_interval: one_of(rng, &[1, 8]),
        index: one_of(rng, &kinds),
        metadata_block_size: one_of(rng, &[200, 4096]),
        partition_filters: rng.percent(50),
        data_block_hash_ratio: one_of(rng, &[None, Some(0.75)]),
        format_version: u32::try_from(rng.between(2, 7)).unwrap(),
        checksum: ChecksumKind::from_u8(u8::try_from(rng.below(5)).unwrap()).unwrap(),
        compression: one_of(rng, &[Raw, Raw, Snappy, Lz4, Lz4, Lz4hc, Zlib, Bzip2, Zstd]),
        max_dict_bytes: one_of(rng, &[0, 0, 0, 1000]),
        filter: one_of(rng, &[None, bloom(10.0), bloom(3.7), ribbon]),
        order: one_of(rng, &orders()),
        ..TableOptions::default()
    }
}

fn described(o: &TableOptions) -> String {
    format!(
        "v{} {:?} {:?} block {}/{} index {:?}/{} meta {}{} hash {:?} {} dictionary {} {}",
        o.format_version,
        o.compression,
        o.checksum,
        o.block_size,
        o.block_restart_interval,
        o.index,
        o.index_restart_interval,
        o.metadata_block_size,
        if o.partition_filters { " partitioned" } else { "" },
        o.data_block_hash_ratio,
        o.filter.map_or("no filter".to_owned(), |f| f.to_string()),
        o.max_dict_bytes,
        o.order.name(),
    )
}

/// A user key of one of four shapes.
fn user_key(rng: &mut Rng, shape: usize, number: usize) -> Vec<u8> {
    match shape {
        0 => format!("{number:016}").into_bytes(),
        1 => format!("https://host{}.example/path/{}/{number}", number % 7, number / 40).into_bytes(),
        2 => (number as u64).to_be_bytes().repeat(1 + number % 3),
        _ => {
            let len = rng.below(24);
            rng.bytes(len).iter().map(|byte| [0, 1, 0x7f, 0xff][usize::from(byte % 4)]).collect()
        }
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(100) {
        0..10 => 0,
        10..97 => rng.below(150),
        97..99 => rng.below(3000),
        _ => rng.below(40) * rng.below(4000),
    };
    let noise = rng.below(len / 2 + 1);
    let mut value = rng.bytes(noise);
    value.extend(b"the same text in every value, ".iter().cycle().take(len - noise));
    value
}

/// Sorted runs, newest first.
fn runs(rng: &mut Rng, order: &Order) -> Vec<Vec<Version>> {
    let (shape, keys) = (rng.below(4), rng.between(1, 900));
    let mut runs: Vec<Vec<Version>> = Vec::new();
    for run in 0..RUNS {
        let mut entries: Vec<Version> = Vec::new();
        for _ in 0..rng.below(keys) {
            let number = rng.below(keys);
            let key = user_key(rng, shape, number);
            let kind = match rng.below(20) {
                0..2 => ValueType::Delete,
                2 => ValueType::SingleDelete,
                3 => ValueType::Merge,
                _ => ValueType::Put,
            };
            let seq = (RUNS - run) * 1000 + rng.below(1000) as u64;
            let value = if kind.deletes() { Vec::new() } else { value(rng) };
            entries.push((key, trailer(seq, kind), value));
        }
        entries.sort_by(|a, b| order.compare_parts(&a.0, a.1, &b.0, b.1));
        entries.dedup_by(|a, b| a.0 == b.0 && a.1.seq() == b.1.seq());
        runs.push(entries);
    }
    runs
}

fn tombstones(rng: &mut Rng, order: &Order, runs: &[Vec<Version>]) -> FragmentedTombstones {
    let mut all = Vec::new();
    let versions: Vec<&Version> = runs.iter().flatten().collect();
    for _ in 0..one_of(rng, &[0, 0, 3]) {
        let (Some(a), Some(b)) = (rng.pick(&versions), rng.pick(&versions)) else { break };
        let seq = SeqNum::new(rng.below(4000) as u64).unwrap();
        if order.compare(&a.0, &b.0).is_lt() {
            all.push(RangeTombstone { begin: a.0.clone(), end: b.0.clone(), seq });
        }
    }
    FragmentedTombstones::new(order, &all)
}

fn limits(rng: &mut Rng, runs: &[Vec<Version>], order: &Order) -> CutLimits {
    let target_bytes = one_of(rng, &[3000, 20_000, u64::MAX]);
    let mut largest: Vec<Vec<u8>> = runs.concat().into_iter().step_by(60).map(|v| v.0).collect();
    largest.sort_by(|a, b| order.compare(a, b));
    let grandparents = largest.into_iter().map(|largest| Grandparent { largest, size_bytes: 900 });
    let grandparents = if rng.percent(50) { grandparents.collect() } else { Vec::new() };
    CutLimits { target_bytes, overlap_bytes_max: 4000, grandparents }
}

/// Rewrites the runs and returns the files.
fn write(
    place: &TestDir,
    table: &TableOptions,
    limits: CutLimits,
    runs: Vec<Box<dyn RunCursor>>,
    keep: Retention,
) -> Vec<NewFile> {
    let plan = OutputPlan { table: table.clone(), ..place.plan() };
    let sink =
        TableOutputs::new(plan, limits, place.numbers()).with_tombstones(keep.survivors(&table.order), 0);
    let mut work = start(&table.order, 0, runs, keep, sink).unwrap();
    while work.step(5000).unwrap() == Progress::More {}
    work.sink().take().into_iter().map(|output| output.file).collect()
}

fn draw(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let table = options(&mut rng);
    let order = table.order.clone();
    let place = TestDir::new(Env::mem(), order.clone());
    let runs = runs(&mut rng, &order);
    let mut inputs = Vec::new();
    for entries in &runs {
        let run = MemoryRun { entries: entries.clone(), at: 0, width: 1 + rng.below(80) };
        let all = (1..4000).map(|seq| SeqNum::new(seq).unwrap()).collect();
        let keep = Retention::above_unknown(all, Arc::default());
        inputs.extend(write(&place, &table, CutLimits::none(), vec![Box::new(run)], keep));
    }
    let version = place.empty();
    let cursors = inputs.iter().map(|file| {
        let mut cursor = version.table(&FileMeta::new(file.clone())).unwrap().cursor(1 << 12);
        cursor.seek(None).unwrap();
        cursor
    });
    let tombstones = Arc::new(tombstones(&mut rng, &order, &runs));
    let snapshots = (0..rng.below(3)).map(|_| SeqNum::new(rng.below(4000) as u64).unwrap()).collect();
    let beneath = if rng.percent(50) { Beneath::Unknown } else { Beneath::Ranges(Vec::new()) };
    let keep = Retention { snapshots, beneath, tombstones, operator: None, blobs: None };
    let outputs = write(&place, &table, limits(&mut rng, &runs, &order), cursors.collect(), keep);
    let files: Vec<(FileNumber, u64)> =
        inputs.iter().chain(&outputs).map(|file| (file.number, file.size)).collect();
    let sizes: Vec<String> = files.iter().map(|(number, size)| format!("{number}:{size}")).collect();
    format!("{}\n{}\nxxh3 {:016x}", described(&table), sizes.join(" "), sum(&place, &files))
}

/// A checksum over the bytes of the files.
fn sum(place: &TestDir, files: &[(FileNumber, u64)]) -> u64 {
    let mut sums = Vec::new();
    for (number, size) in files {
        let path = place.dir.join(format!("{:06}.sst", number.0));
        let mut bytes = vec![0; usize::try_from(*size).unwrap()];
        place.env.fs.open_read(&path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        sums.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    }
    xxh3_64(&sums)
}

#[test]
fn the_same_input_gives_the_same_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/bytes");
    let run = |_: &str, command: &Command| {
        command.only(&["seed"])?;
        Ok(draw(command.number("seed")?.ok_or("no seed")?))
    };
    if let Err(differences) = script::run_folder(&folder, run) {
        panic!("{differences}");
    }
}
