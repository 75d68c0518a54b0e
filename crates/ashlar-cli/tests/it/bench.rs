//! `ashlar bench`.

use super::{ashlar, good, program};

/// db_bench's names for what is there, with the operations that `--num=1000 --reads=1000` makes of each; `None`: it prints.
/// Benchmarks that need an empty database come first, those that delete come last.
const BENCHMARKS: &[(&str, Option<u64>)] = &[
    ("fillseq", Some(1000)),
    ("fillbatch", Some(1000)),
    ("fillseqbatch", Some(1000)),
    ("fillrandbatch", Some(1000)),
    ("fillsync", Some(1)),
    ("fillseqsync", Some(10)),
    ("fillrandsync", Some(10)),
    ("fill100K", Some(1)),
    ("fillseq100K", Some(1)),
    ("fillrand100K", Some(1)),
    // A seek, four steps and a seek for every five keys.
    ("fillseekseq", Some(1200)),
    ("filluniquerandom", Some(1000)),
    ("readseq", Some(1000)),
    ("readreverse", Some(1000)),
    ("readtocache", Some(1000)),
    ("readrandomfast", Some(1000)),
    ("fillrandom", Some(1000)),
    ("overwritebatch", Some(1000)),
    ("overwrite", Some(1000)),
    ("updaterandom", Some(1000)),
    ("mergerandom", Some(1000)),
    ("readrandom", Some(1000)),
    ("readmissing", Some(1000)),
    ("readhot", Some(1000)),
    ("readrandomsmall", Some(1)),
    ("multireadrandom", Some(1000)),
    ("seekrandom", Some(1000)),
    ("seekordered", Some(1000)),
    ("newiterator", Some(1000)),
    ("approximatesizerandom", Some(1000)),
    ("readwhilewriting", Some(1000)),
    ("readwhilemerging", Some(1000)),
    ("readwhilescanning", Some(1000)),
    ("multireadwhilewriting", Some(1000)),
    ("seekrandomwhilewriting", Some(1000)),
    ("seekrandomwhilemerging", Some(1000)),
    ("newiteratorwhilewriting", Some(1000)),
    ("readrandomwriterandom", Some(1000)),
    ("readrandommergerandom", Some(1000)),
    ("flush", Some(1)),
    ("compact0", Some(1)),
    ("compact1", Some(1)),
    ("compact", Some(1)),
    ("compactall", Some(1)),
    ("waitforcompaction", Some(1)),
    ("verifychecksum", Some(1)),
    ("verifyfilechecksums", Some(1)),
    ("stats", None),
    ("levelstats", None),
    ("memstats", None),
    ("sstables", None),
    ("resetstats", None),
    ("crc32c", Some(1000)),
    ("xxhash", Some(1000)),
    ("xxhash64", Some(1000)),
    ("xxh3", Some(1000)),
    ("compress", Some(1000)),
    ("uncompress", Some(1000)),
    ("snappycomp", Some(1000)),
    ("snappyuncomp", Some(1000)),
    ("zstdcomp", Some(1000)),
    ("zstduncomp", Some(1000)),
    ("acquireload", Some(1000)),
    ("deleteseq", Some(1000)),
    ("deleterandom", Some(1000)),
];

/// The fields by which RocksDB's scripts read a line: name, micros, ops/sec, seconds, operations, message.
fn results(text: &str) -> Vec<(String, u64, String)> {
    let lines = text.lines().filter(|l| l.contains(" operations;"));
    let fields = lines.map(|l| {
        let f: Vec<&str> = l.split_whitespace().collect();
        assert_eq!(
            (f[1], f[3], f[5], f[7], f[9]),
            (":", "micros/op", "ops/sec", "seconds", "operations;"),
            "{l}"
        );
        assert!(f[2].parse::<f64>().unwrap() >= 0.0 && f[6].parse::<f64>().unwrap() >= 0.0, "{l}");
        f[4].parse::<u64>().unwrap();
        if f.len() > 11 && f[11] == "MB/s" {
            f[10].parse::<f64>().unwrap();
        }
        let message = l.find('(').map(|at| l[at..].to_owned()).unwrap_or_default();
        (f[0].to_owned(), f[8].parse().unwrap(), message)
    });
    fields.collect()
}

#[test]
fn every_benchmark_runs_on_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let db = format!("--db={}", dir.path().join("bench").display());
    let all: Vec<&str> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
    let names = format!("--benchmarks={}", all.join(","));
    let flags =
        ["--num=1000", "--reads=1000", "--writes=-1", "--seed=7", "-seek_nexts", "4", "--merge_operator=put"];
    let text = good(&[&["bench", &names, &db][..], &flags[..]].concat(), b"");
    let results = results(&text);
    let measured: Vec<(&str, u64)> =
        BENCHMARKS.iter().filter_map(|(name, operations)| Some((*name, (*operations)?))).collect();
    let found: Vec<(&str, u64)> =
        results.iter().map(|(name, operations, _)| (name.as_str(), *operations)).collect();
    assert_eq!(found, measured);
    let message = |name: &str| results.iter().find(|(found, ..)| found == name).unwrap().2.clone();
    assert_eq!(message("readmissing"), "(0 of 1000 found)");
    assert_eq!(message("acquireload"), "(each op is 1000 loads)");
    assert!(
        text.contains("** Compaction Stats [default] **") && text.contains("Level Files Size(MB)"),
        "{text}"
    );
    assert!(text.contains("DB path: [") && text.contains("Entries:    1000\n"), "{text}");
    // The database stays where it was asked for, and can be used again.
    let again = good(&["bench", "--benchmarks=fillseq,readseq", &db, "--use_existing_db", "--num=1000"], b"");
    assert!(again.contains("fillseq      : skipped (--use_existing_db is true)"), "{again}");
}

/// Every shape of keys, drawn evenly and with few that are hot; and in several families. What was written is found.
#[test]
fn shapes_of_keys_and_families_are_found_again() {
    for shape in ["integer", "be8", "decimal", "uuid", "url", "prefix:300"] {
        for distribution in ["uniform", "zipfian"] {
            let (shape, drawn) =
                (format!("--key_shape={shape}"), format!("--key_distribution={distribution}"));
            let run =
                ["bench", "--benchmarks=fillseq,readrandom,multireadrandom", "--num=1000", "--batch_size=10"];
            let text = good(&[&run[..], &[&shape, &drawn, "--num_column_families=3"]].concat(), b"");
            for (name, _, message) in results(&text).iter().skip(1) {
                assert_eq!(message, "(1000 of 1000 found)", "{name} {shape} {drawn}");
            }
        }
    }
}

#[test]
fn found_counts_are_true() {
    let line = [
        "bench",
        "--benchmarks=fillseq,readrandom,seekrandom,readhot",
        "--num=2000",
        "--threads=2",
        "--histogram=1",
    ];
    let text = good(&line, b"");
    for (name, operations, message) in results(&text) {
        assert_eq!(operations, 4000, "{name}");
        assert!(name == "fillseq" || message == "(2000 of 2000 found)", "{name} {message}");
    }
    for part in ["Microseconds per write:\nCount: 4000 ", "Microseconds per seek:\n", "Percentiles: P50: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_baseline_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_ashlar"))
        .args(["bench", "--num=2000"])
        .env("TMPDIR", dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!((out.status.code(), out.stderr.as_slice()), (Some(0), &b""[..]), "{text}");
    assert_eq!(results(&text).len(), 12);
    assert!(
        text.contains("synchronous random writes") && text.contains(" entries are 0.2 MB of keys and values"),
        "{text}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn mistakes_are_answered_as_db_bench_does() {
    let unknown = ashlar(&["bench", "--benchmarks=fillseq,fillsek"], b"");
    assert_eq!((unknown.status, unknown.out.as_str()), (1, ""));
    assert!(unknown.err.starts_with("unknown benchmark 'fillsek' (did you mean fillseq?)\n"), "{unknown:?}");
    let flag = ashlar(&["bench", "--nun=1"], b"");
    assert!(flag.status == 1 && flag.err.contains("did you mean --num?"), "{flag:?}");
    let dir = tempfile::tempdir().unwrap();
    let missing = format!("--db={}", dir.path().join("none").display());
    let none = ashlar(&["bench", "--benchmarks=readseq", "--use_existing_db=1", &missing], b"");
    assert!(none.status == 1 && none.err.contains("no database"), "{none:?}");
    let codec = ashlar(&["bench", "--compression_type=xpress", "--num=10"], b"");
    assert!(codec.status == 1 && codec.err.starts_with("open: Not implemented: "), "{codec:?}");
}

#[test]
fn under_db_benchs_name_it_is_db_bench() {
    let dir = tempfile::tempdir().unwrap();
    let db_bench = dir.path().join("db_bench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ashlar"), &db_bench).unwrap();
    let ran = program(&db_bench, &["--benchmarks=fillseq", "--num=100", "--level=rocksdb-7.8"], b"");
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert_eq!(results(&ran.out), [("fillseq".to_owned(), 100, String::new())]);
}

#[test]
fn a_page_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let report = format!("--report={}", page.display());
    let db = format!("--db={}", dir.path().join("db").display());
    let run = "--benchmarks=fillrandom,readrandom[X2]";
    good(&["bench", run, &db, "--num=2000", "--seed=1", "--histogram=1", &report], b"");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("<title>AshlarDB, measured</title>") && text.ends_with("</html>\n"));
    assert_eq!(text.matches("<rect class=\"b\"").count(), 2, "a bar per benchmark");
    assert_eq!(text.matches("<polyline ").count(), 2, "a curve of latencies for each");
    assert!(text.contains("<b>entry</b> 16 + 100 bytes"));
}
