//! Whole runs of the program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]

mod interrupt;
mod java;
mod operations;
mod page;

use ashlar_testkit::report::scale;
use std::path::Path;
use std::process::{Command, Output};

fn compare(args: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ashlar-compare"))
        .args(args)
        .arg("--dir")
        .arg(dir)
        .output()
        .expect("the program starts")
}

const SMALL: [&str; 6] = ["--num", "5000", "--reps", "2", "--write-buffer-size", "131072"];

/// Those that share settings.
const EVERY: [&str; 11] = [
    "fillseq",
    "fillrandom",
    "overwrite",
    "deleterandom",
    "readrandom",
    "readmissing",
    "multireadrandom",
    "readseq",
    "readreverse",
    "seekrandom",
    "openloop",
];

/// Also the check of the C functions' types: every one is called.
#[test]
fn the_same_work_on_both() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("records");
    let every = EVERY.join(",");
    let json_text = json.to_string_lossy().into_owned();
    let args = [&SMALL[..], &["--workloads", &every, "--json", &json_text, "--rate", "50000"]].concat();
    let page = dir.path().join("page.html");
    let page_text = page.to_string_lossy().into_owned();
    let args = [&args[..], &["--report", &page_text]].concat();
    let out = compare(&args, dir.path());
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    if text.contains("rocksdb: not here") {
        println!("skipped: RocksDB 11.8.1 is not here");
    }
    assert!(!text.contains("VOID"), "{text}");
    let records = std::fs::read_to_string(&json).unwrap();
    let ours = records.lines().filter(|l| l.contains(r#""name":"ashlardb""#)).count();
    assert_eq!(ours, 2 * EVERY.len(), "{records}");
    for line in records.lines() {
        assert_eq!(ashlar_report::schema::check(line).unwrap(), [""; 0], "{line}");
    }
    let run = ashlar_report::record::parse(&records).unwrap();
    assert_eq!((run.headers.len(), run.records.len() + 1), (1, records.lines().count()));
    let machine = &run.headers[0].machine;
    assert!(machine.threads.unwrap() > 0 && machine.disk.unwrap().sync_us > 0.0, "{machine:?}");
    same_everywhere(&run);
    for line in records.lines().skip(1).filter(|line| !line.contains(r#""state":"not_here""#)) {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(record["ops"]["total"].as_u64().unwrap() >= 5000, "{line}");
        assert!(record["ops"]["us_cpu_op"].as_f64().unwrap() > 0.0, "{line}");
        for count in ["minor_faults", "major_faults", "vol_cs", "invol_cs"] {
            assert!(record["cpu"][count].is_u64(), "{count}: {line}");
        }
        let latencies = record["latency_us"].as_object().unwrap();
        assert!(latencies.values().any(|l| l["count"].as_u64() > Some(0) && l["p50"].as_f64() > Some(0.0)));
        let paced = record["workload"] == "openloop";
        assert_eq!(record["ops"]["driver_overhead_us"].is_null(), paced, "{line}");
        let durability = record["params"]["options"]["durability"].as_str().unwrap();
        assert!(
            durability.starts_with("not checked") || durability.ends_with(" puts that need not wait"),
            "{durability}"
        );
        assert!(["mem", "os"].contains(&record["params"]["regime"].as_str().unwrap()), "{line}");
        let writes = !record["amp"]["wa_proc"].is_null();
        let reads =
            record["workload"].as_str().unwrap().contains("read") || record["workload"] == "seekrandom";
        assert_eq!(writes, !reads, "{line}");
    }
    assert!(std::fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
    let again = Command::new(env!("CARGO_BIN_EXE_ashlar-compare")).arg("report").arg(&json).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stdout).contains("### Workloads, matched settings"));
    std::fs::remove_file(&page).unwrap();
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records"], "databases were left behind");
}

/// Workloads with settings or loads of their own: answers are checked against what was written, so the figures count.
#[test]
fn workloads_with_their_own_settings_run_on_both() {
    let special =
        ["compact", "rangetombstones", "scantombstones", "fillsync", "counters", "bulkload", "fillbatch"];
    let special = &special[..scale(3, 7)];
    let small = ["--num", "300", "--reps", "1", "--write-threads", "2", "--tree-state", "loaded"];
    let (text, run) = run(&[&small[..], &["--workloads", &special.join(",")]].concat());
    assert!(!text.contains("VOID"), "{text}");
    for engine in ["ashlardb", "rocksdb"] {
        let of_engine = || run.records.iter().filter(|r| r.engine.name == engine);
        let of = |row: &str| of_engine().find(|r| r.row == row);
        let compacted = of("compact").expect("it was asked for");
        if compacted.status.text().starts_with("not here") {
            println!("skipped: {engine}: {}", compacted.status.text());
            continue;
        }
        assert!(of_engine().all(|r| r.counts()), "{text}");
        let ops = compacted.ops.as_ref().expect("it counts");
        assert!((200..300).contains(&ops.total), "drawn twice each, {} keys remain", ops.total);
        assert!(ops.us_cpu_op > ops.us_cpu_thread_op, "other threads compact: {ops:?}");
        let among = of("rangetombstones-loaded").and_then(|r| r.ops.as_ref()).expect("it was asked for");
        assert!(among.found < Some(among.total), "{among:?}");
        if let Some(synced) = of("fillsync-2") {
            assert_eq!((synced.params.threads, synced.params.durability.as_str()), (2, "sync"));
            assert_eq!(synced.ops.as_ref().map(|ops| ops.total), Some(300));
        }
        if let Some(sums) = of("counters-1000").and_then(|r| r.ops.as_ref()) {
            assert_eq!(sums.found, Some(sums.total));
        }
    }
}

/// Engines get the same keys of every shape: what they were asked for, read and hold agrees.
#[test]
fn every_shape_of_keys_is_the_same_on_both() {
    for shape in &["be8", "prefix:300", "url", "decimal", "uuid"][..scale(3, 5)] {
        let small = ["--num", "2000", "--reps", "1", "--write-buffer-size", "131072", "--key-shape", shape];
        let (text, run) = run(&[&small[..], &["--workloads", "fillrandom,readrandom,seekrandom"]].concat());
        assert!(!text.contains("VOID"), "{shape}: {text}");
        let counted: Vec<_> = run.records.iter().filter(|record| record.counts()).collect();
        assert!(counted.iter().filter(|record| record.engine.name == "ashlardb").count() == 3, "{text}");
        let data: std::collections::BTreeSet<_> = counted.iter().map(|record| &record.hash.data).collect();
        assert!(data.len() == 1 && !data.contains(&None), "{shape}: {data:?}");
        assert!(counted.iter().all(|record| record.params.options["key_shape"] == *shape), "{text}");
    }
}

/// Reads on a tree as the load left it, and on one that is compacted: two rows, the same answers, other trees.
#[test]
fn reads_find_the_tree_in_the_state_asked_for() {
    let small =
        ["--num", "20000", "--reps", "1", "--write-buffer-size", "131072", "--workloads", "readrandom"];
    let (text, run) = run(&[&small[..], &["--tree-state", "loaded,settled"]].concat());
    assert!(!text.contains("VOID"), "{text}");
    for engine in ["ashlardb", "rocksdb"] {
        let of = |row: &str| {
            let found = run.records.iter().find(|r| r.row == row && r.engine.name == engine);
            found.unwrap_or_else(|| panic!("{engine} has no row {row}: {text}"))
        };
        let (loaded, settled) = (of("readrandom-loaded"), of("readrandom-settled"));
        if !loaded.counts() {
            println!("skipped: {engine}: {}", loaded.status.text());
            continue;
        }
        assert_eq!((&loaded.hash, loaded.workload.as_str()), (&settled.hash, "readrandom"), "{engine}");
        let used = |record: &ashlar_report::record::Record| {
            record.engine_counters.levels.iter().filter(|tables| **tables > 0).count()
        };
        assert!(used(settled) == 1, "{engine}: {:?}", settled.engine_counters.levels);
    }
}

/// The tables of the README are made of records that lie beside it.
#[test]
fn the_tables_of_documents_are_those_of_the_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("docs/results");
    std::fs::create_dir_all(&results).unwrap();
    for entry in std::fs::read_dir(root.join("docs/results")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), results.join(entry.file_name())).unwrap();
    }
    for document in [
        "README.md",
        "docs/results/README.md",
        "docs/results/linkbench-smoke.md",
        "docs/results/linkbench-quarter.md",
    ] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        let copy = dir.path().join(document);
        std::fs::write(&copy, &text).unwrap();
        let made =
            Command::new(env!("CARGO_BIN_EXE_ashlar-compare")).arg("tables").arg(&copy).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        assert!(text.contains("<!-- rates "), "{document} has no table");
        assert!(
            std::fs::read_to_string(&copy).unwrap() == text,
            "cargo run --release -p ashlar-compare -- tables {document}"
        );
    }
}

#[test]
fn a_missing_engine_is_a_mark() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("records").to_string_lossy().into_owned();
    let args = ["--workloads", "fillseq", "--rocksdb", "/no/such/library.so", "--json", &json];
    let out = compare(&[&SMALL[..], &args].concat(), dir.path());
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success());
    assert!(text.contains("rocksdb: not here: no file /no/such/library.so"), "{text}");
    assert!(text.contains("| fillseq  | ashlardb |"), "{text}");
    let run = ashlar_report::record::parse(&std::fs::read_to_string(json).unwrap()).unwrap();
    let missing: Vec<_> = run.records.iter().filter(|record| record.engine.name == "rocksdb").collect();
    assert_eq!(missing.len(), 2, "one for each repetition");
    assert_eq!(missing[0].status.text(), "not here: no file /no/such/library.so");
    assert!(missing[0].ops.is_none() && missing[0].cpu.process_s.is_none(), "no zeros: {missing:?}");
}

#[test]
fn a_failing_engine_is_a_mark() {
    let dir = tempfile::tempdir().unwrap();
    let args = [&SMALL[..], &["--workloads", "fillseq", "--compression", "brotli"]].concat();
    let out = compare(&args, dir.path());
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success());
    assert!(text.contains("codec brotli: there are none, snappy, lz4, zlib, zstd"), "{text}");
}

#[test]
fn theory_is_asked_by_name() {
    let calc = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_ashlar-compare")).arg("calc").args(args).output().unwrap();
        (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert_eq!(calc(&["btree_wa", "4096", "128"]).0, "33\n");
    assert!(calc(&[]).0.contains("lsm_wa levels per_level"));
    assert!(calc(&["btree"]).1.contains("calc btree: no such function. The functions are:"));
}

/// The same seed asks for the same and reads the same: in every repetition, on every engine.
fn same_everywhere(run: &ashlar_report::record::Run) {
    for row in EVERY {
        let of_row = run.records.iter().filter(|r| r.row == row && r.counts());
        let sums: std::collections::BTreeSet<_> = of_row.map(|r| format!("{:?}", r.hash)).collect();
        assert_eq!(sums.len(), 1, "{row}: {sums:?}");
        let sums = sums.first().unwrap();
        assert!(!sums.contains("None"), "{row}: {sums}");
    }
}

/// The text that was printed, and the records.
fn run(args: &[&str]) -> (String, ashlar_report::record::Run) {
    let dir = tempfile::tempdir().expect("the temporary folder is writable");
    let json = dir.path().join("records").to_string_lossy().into_owned();
    let out = compare(&[args, &["--json", &json]].concat(), dir.path());
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let records = std::fs::read_to_string(json).expect("the run wrote it");
    for line in records.lines() {
        assert_eq!(ashlar_report::schema::check(line).as_deref(), Ok(&[][..]), "{line}");
    }
    (text, ashlar_report::record::parse(&records).expect("checked above"))
}

/// A test of the test: a database that lost what it acknowledged has no figures.
#[test]
fn a_peer_that_loses_a_key_is_caught() {
    let args =
        ["--engines", "ashlardb,test-forgetful", "--workloads", "fillrandom", "--num", "3000", "--reps", "1"];
    let (text, run) = run(&args);
    assert!(run.records[0].counts() && run.records[0].hash.data.is_some(), "{text}");
    let lost = run.records[1].status.text();
    assert!(lost.starts_with("void: wrong data: the key ") && !run.records[1].counts(), "{lost}");
    assert!(text.contains("test-forgetful: void: wrong data"), "{text}");
}

/// A test of the test: an engine that acknowledges synchronous writes without waiting has no figures there.
#[test]
fn a_peer_with_durability_off_is_caught() {
    let sync = ["--workloads", "fillseq", "--num", "100", "--reps", "1", "--sync"];
    let (text, run) = run(&[&sync[..], &["--engines", "ashlardb,test-careless"]].concat());
    let seen = &run.records[0].params.options["durability"];
    if seen.starts_with("not checked") {
        return println!("skipped: {seen}");
    }
    assert!(run.records[0].counts(), "{text}");
    assert!(seen.ends_with(" waits for the device in 64 synchronous puts"), "{seen}");
    let careless = run.records[1].status.text();
    assert!(careless.starts_with("void: not synchronous: "), "{careless}");
    assert!(text.contains("test-careless: void: not synchronous: "), "{text}");
}

/// A test of the test: what an engine wastes is in its figure.
#[test]
fn a_slowed_engine_is_seen() {
    let args = ["--engines", "ashlardb,test-slow", "--workloads", "fillseq", "--num", "200", "--reps", "1"];
    let (text, run) = run(&args);
    let slow = run.records[1].ops.as_ref().unwrap();
    assert!(slow.us_wall_op >= 1000.0 && slow.per_sec <= 1000.0, "each put sleeps a millisecond: {text}");
    let put = &run.records[1].latency_us["write"];
    assert!(put.count == 200 && put.p50 >= 1000.0, "{put:?}");
    let summary: serde_json::Value = serde_json::from_str(&ashlar_report::aggregate(&run)).unwrap();
    let to_best = |row: usize| summary["rows"][row]["to_best"].as_f64().unwrap();
    assert_eq!(to_best(0), 1.0, "{summary}");
    assert!(to_best(1) < 0.5, "its figure and ours are no tie: {summary}");
}

/// The engine and its careless twin do the same here: their counts tell how exact a count is.
#[test]
fn instructions_are_counted_nearly_the_same_every_time() {
    let num = scale(500, 2000).to_string();
    let rows = &["readrandom", "overwrite"][..scale(1, 2)];
    let engines = ["--engines", "ashlardb,test-careless", "--workloads", &rows.join(",")];
    let (text, run) = run(&[&engines[..], &["--num", &num, "--reps", "1", "--callgrind"]].concat());
    if text.contains("instructions not counted") {
        return ashlar_testkit::report::skipped("instructions_are_counted", "no valgrind: see the marks");
    }
    for row in rows {
        let of_row = run.records.iter().filter(|r| r.row == *row);
        let counts: Vec<f64> = of_row.map(|r| r.ops.as_ref().unwrap().instructions_op.unwrap()).collect();
        assert_eq!(counts.len(), 2, "{text}");
        assert!(counts.iter().all(|&count| (500.0..500_000.0).contains(&count)), "{row}: {counts:?}");
        assert!((counts[0] / counts[1] - 1.0).abs() < 0.2, "{row}: {counts:?}");
    }
}

#[test]
fn a_peer_that_hangs_is_a_mark_and_the_run_goes_on() {
    let args = ["--engines", "test-slow,ashlardb", "--workloads", "fillseq", "--num", "10000", "--reps", "1"];
    let (text, run) = run(&[&args[..], &["--timeout", "4"]].concat());
    assert_eq!(run.records[0].status.text(), "timeout: took longer than 4 s and was ended", "{text}");
    assert!(run.records[1].counts(), "{text}");
}

#[test]
fn too_much_is_refused_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let out = compare(&["--num", "1000000000000", "--workloads", "fillseq"], dir.path());
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success());
    assert!(said.contains("too little disk in ") && said.contains(" MiB needed, "), "{said}");
}

/// A row of the LevelDB page on every engine that is here, in both classes of settings.
#[test]
fn every_peer_runs_a_row() {
    let (text, run) = run(&["--experiment", "s3", "--rows", "2A-seq", "--classes", "matched,own"]);
    assert_eq!(run.records.len(), 24, "{text}");
    for record in &run.records {
        let what = record.status.text();
        if what.starts_with("not here") {
            println!("skipped: {}: {what}", record.engine.name);
        } else {
            assert!(record.counts(), "{}: {what}", record.engine.name);
            assert!(record.space.du.unwrap() > 0 && record.space.logical_live.unwrap() > 0);
        }
    }
    let published =
        |engine: &str| run.records.iter().find(|r| r.engine.name == engine).unwrap().published.clone();
    assert_eq!(published("leveldb").unwrap().text, "1,060 (1.17x)");
    assert!(published("redb").is_none());
    assert!(!text.contains("VOID") && !text.contains("FAILED"), "{text}");
}
