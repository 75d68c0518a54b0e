//! The calls of RocksDB's `tools/benchmark.sh`, and the fields it takes out of what is printed.

use super::program;
use std::path::Path;

/// What the script passes to every job, for a small database.
fn common(dir: &Path, style: &str) -> Vec<String> {
    let db = dir.join("db");
    let fixed = "--num=4000 --key_size=20 --value_size=400 --block_size=8192 --cache_size=1048576 --cache_numshardbits=6 \
                 --compression_max_dict_bytes=0 --compression_ratio=0.5 --compression_type=zstd --bytes_per_sync=8388608 \
                 --benchmark_write_rate_limit=0 --write_buffer_size=262144 --target_file_size_base=262144 \
                 --max_bytes_for_level_base=1048576 --verify_checksum=1 \
                 --delete_obsolete_files_period_micros=62914560 --max_bytes_for_level_multiplier=8 --statistics=0 \
                 --stats_per_interval=1 --stats_interval_seconds=60 --report_interval_seconds=5 --histogram=1 \
                 --memtablerep=skip_list --bloom_bits=10 --open_files=-1 --subcompactions=1 \
                 --pin_l0_filter_and_index_blocks_in_cache=1";
    let places = [("db", "db"), ("wal_dir", "db"), ("report_file", "r.csv")];
    let places = places.map(|(flag, name)| format!("--{flag}={}", db.with_file_name(name).display()));
    places
        .into_iter()
        .chain(fixed.split_whitespace().chain(style.split_whitespace()).map(str::to_owned))
        .collect()
}

/// The flags of the script's `COMPACTION_STYLE`, leveled and universal.
const STYLES: [&str; 2] = [
    "--compaction_style=0 --num_levels=8 --min_level_to_compress=-1 --level_compaction_dynamic_level_bytes=true",
    "--compaction_style=1 --num_levels=40 --universal_min_merge_width=2 --universal_max_merge_width=20 \
     --universal_size_ratio=1 --universal_max_size_amplification_percent=200 \
     --universal_compression_size_percent=-1 --universal_allow_trivial_move=1",
];

const WRITES: &str = "--level0_file_num_compaction_trigger=4 --level0_slowdown_writes_trigger=20 \
                      --level0_stop_writes_trigger=30 --max_background_jobs=16 --max_write_buffer_number=8";
const NO_TRIGGERS: &str = "--max_background_jobs=16 --max_write_buffer_number=8 --allow_concurrent_memtable_write=false \
                           --level0_file_num_compaction_trigger=10485760 --level0_slowdown_writes_trigger=10485760 \
                           --level0_stop_writes_trigger=10485760";

/// A job: name of the benchmark, its own flags, operations that must have been done.
const JOBS: &[(&str, &str, &str, u64)] = &[
    // bulkload
    (
        "fillrandom",
        "--use_existing_db=0 --disable_auto_compactions=1 --sync=0 --threads=1 --memtablerep=vector \
         --allow_concurrent_memtable_write=false --disable_wal=1 --seed=1594",
        NO_TRIGGERS,
        4000,
    ),
    ("compact", "--use_existing_db=1 --disable_auto_compactions=1 --sync=0 --threads=1", WRITES, 1),
    ("overwrite", "--use_existing_db=1 --sync=0 --threads=2 --merge_operator=put --seed=1595", WRITES, 8000),
    (
        "readwhilewriting",
        "--use_existing_db=1 --sync=0 --threads=2 --merge_operator=put --seed=1596",
        WRITES,
        8000,
    ),
    ("readrandom", "--use_existing_db=1 --threads=2 --seed=1597", WRITES, 8000),
    ("multireadrandom", "--use_existing_db=1 --threads=2 --batch_size=10 --seed=1598", WRITES, 8000),
    (
        "seekrandom",
        "--use_existing_db=1 --threads=2 --seek_nexts=10 --reverse_iterator=false --seed=1599",
        WRITES,
        8000,
    ),
    (
        "seekrandom",
        "--use_existing_db=1 --threads=2 --seek_nexts=10 --reverse_iterator=true --seed=1600",
        WRITES,
        8000,
    ),
    (
        "fillseq",
        "--min_level_to_compress=0 --use_existing_db=0 --sync=0 --threads=1 --memtablerep=vector \
         --allow_concurrent_memtable_write=false --disable_wal=1 --seed=1601",
        WRITES,
        4000,
    ),
    ("randomtransaction", "--transaction_db --threads=5 --transaction_sets=5 --seed=1602", WRITES, 20_000),
];

/// The blank-separated field `number`, from 1, of the line that begins with `head`.
fn field<'a>(text: &'a str, head: &str, number: usize) -> &'a str {
    let line =
        text.lines().rfind(|line| line.starts_with(head)).unwrap_or_else(|| panic!("no {head}: {text}"));
    line.split_whitespace().nth(number - 1).unwrap_or_else(|| panic!("no field {number}: {line}"))
}

/// What the script reads out of the engine's statistics.
fn statistics(text: &str) {
    let number = |head, at| {
        let found = field(text, head, at).trim_end_matches(',');
        found.parse::<f64>().unwrap_or_else(|_| panic!("{head} {at} is {found:?}: {text}"))
    };
    assert!(number("Uptime(secs", 2) >= 0.0);
    let flushed = number("Flush(GB)", 3);
    assert!(number("Cumulative compaction", 3) >= flushed - 0.01, "flushes count: {text}");
    number("Cumulative compaction", 6);
    number("Cumulative stall", 5);
    for at in [2, 6, 10, 14, 18, 20] {
        // awk takes words for 0, and so does the script.
        field(text, "Stalls(count):", at);
    }
    assert!(
        number(" Sum", 3) >= 0.0 && ["B", "KB", "MB", "GB", "TB"].contains(&field(text, " Sum", 4)),
        "{text}"
    );
    for at in [15, 16, 21, 22] {
        number(" Sum", at);
    }
    field(text, "Blob file count:", 8);
}

/// `shown` is `number` with so many digits. A number between two such numbers may have become either, because JSON is parsed here.
fn assert_rounded(shown: &str, number: f64, digits: i32) {
    assert_eq!(shown.split_once('.').map_or(0, |(_, rest)| rest.len()), digits as usize, "{shown}");
    let value: f64 = shown.parse().unwrap();
    assert!((value - number).abs() <= 0.51 * 0.1_f64.powi(digits), "{shown} is shown for {number}");
}

/// The numbers that the script finds are those of the line of JSON, as printed.
fn same_as_json(text: &str, benchmark: &str, json: &str) {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let number = |name: &str| json[name].as_f64().unwrap_or_else(|| panic!("{name}: {json}"));
    assert_eq!(json["benchmark"], benchmark, "{json}");
    assert_rounded(field(text, benchmark, 3), number("micros_per_op"), 3);
    assert_eq!(field(text, benchmark, 5), format!("{:.0}", number("ops_per_sec").trunc()), "{json}");
    assert_rounded(field(text, benchmark, 7), number("seconds"), 3);
    assert_eq!(field(text, benchmark, 9), format!("{}", number("operations")), "{json}");
    if let Some(rate) = json["mb_per_sec"].as_f64() {
        assert_rounded(field(text, benchmark, 11), rate, 1);
    }
    if !text.contains("Percentiles:") {
        assert!(json["latency_us"].as_object().is_none_or(serde_json::Map::is_empty), "{json}");
        return;
    }
    let kind = field(text, "Microseconds per", 3).trim_end_matches(':');
    for (at, name) in [(3, "p50"), (5, "p75"), (7, "p99"), (9, "p999"), (11, "p9999")] {
        let percentile = json["latency_us"][kind][name].as_f64().unwrap();
        assert_rounded(field(text, "Percentiles:", at), percentile, 2);
    }
}

#[test]
fn the_scripts_jobs_run_and_its_fields_are_found() {
    STYLES.into_iter().for_each(jobs_run);
}

fn jobs_run(style: &str) {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("lines.json");
    let db_bench = dir.path().join("db_bench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ashlar"), &db_bench).unwrap();
    for (benchmark, own, shape, operations) in JOBS {
        let mut words = vec![format!("--benchmarks={benchmark}")];
        words.extend(common(dir.path(), style));
        words.push(format!("--json={}", json.display()));
        words.extend(shape.split_whitespace().chain(own.split_whitespace()).map(str::to_owned));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = program(&db_bench, &words, b"");
        assert_eq!(ran.status, 0, "{benchmark}: {}", ran.err);
        assert!(!ran.err.contains("ERROR"), "{}", ran.err);
        // The script reads both streams as one.
        let text = format!("{}{}", ran.err, ran.out);
        assert!(field(&text, "RocksDB:", 3).starts_with("AshlarDB-"), "{text}");
        assert_eq!(field(&text, "Date:", 6).len(), 4, "the year: {text}");
        assert_eq!(field(&text, benchmark, 8), "seconds", "{text}");
        assert_eq!(field(&text, benchmark, 9).parse::<u64>().unwrap(), *operations, "{benchmark}");
        assert!(field(&text, benchmark, 3).parse::<f64>().unwrap() > 0.0);
        field(&text, benchmark, 5).parse::<u64>().unwrap();
        if *benchmark != "compact" {
            assert!(field(&text, benchmark, 11).parse::<f64>().unwrap() > 0.0, "{text}");
        }
        // A compaction happens once and has no histogram, as in db_bench.
        let has_histogram = *benchmark != "compact";
        assert_eq!(text.contains("Percentiles:"), has_histogram, "{benchmark}: {text}");
        if has_histogram {
            for percentile in [3, 5, 7, 9, 11] {
                field(&text, "Percentiles:", percentile).parse::<f64>().unwrap();
            }
            assert!(field(&text, "Min:", 6).parse::<f64>().unwrap() > 0.0);
        }
        assert_eq!(text.contains("RandomTransactionVerify Success."), *benchmark == "randomtransaction");
        statistics(&text);
        same_as_json(&text, benchmark, std::fs::read_to_string(&json).unwrap().lines().last().unwrap());
    }
    let report = std::fs::read_to_string(dir.path().join("r.csv")).unwrap();
    assert!(report.starts_with("secs_elapsed,interval_qps\n"), "{report}");
}
