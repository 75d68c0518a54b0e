//! Whole runs of the program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]

mod page;

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

/// Also the check of the C functions' types: every one is called.
#[test]
fn the_same_work_on_both() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("records");
    let every = "fillseq,fillrandom,overwrite,readrandom,readseq,seekrandom,openloop";
    let json_text = json.to_string_lossy().into_owned();
    let args = [&SMALL[..], &["--workloads", every, "--json", &json_text, "--rate", "50000"]].concat();
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
    assert_eq!(ours, 14, "{records}");
    for line in records.lines() {
        assert_eq!(ashlar_report::schema::check(line).unwrap(), [""; 0], "{line}");
    }
    let run = ashlar_report::record::parse(&records).unwrap();
    assert_eq!((run.headers.len(), run.records.len() + 1), (1, records.lines().count()));
    assert!(run.headers[0].machine.threads.unwrap() > 0);
    for line in records.lines().skip(1).filter(|line| !line.contains(r#""state":"not_here""#)) {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(record["ops"]["total"].as_u64().unwrap() >= 5000, "{line}");
        assert!(record["ops"]["us_cpu_op"].as_f64().unwrap() > 0.0, "{line}");
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
    assert!(calc(&["btree"]).1.contains("calc btree: there is none. There are:"));
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
}

/// A test of the test: what an engine wastes is in its figure.
#[test]
fn a_slowed_engine_is_seen() {
    let args = ["--engines", "ashlardb,test-slow", "--workloads", "fillseq", "--num", "200", "--reps", "1"];
    let (text, run) = run(&args);
    let slow = run.records[1].ops.as_ref().unwrap();
    assert!(slow.us_wall_op >= 1000.0 && slow.per_sec <= 1000.0, "each put sleeps a millisecond: {text}");
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
