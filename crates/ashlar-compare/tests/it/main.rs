//! Whole runs of the program.

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
    assert_eq!(missing.len(), 1);
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
    assert!(text.contains("codec brotli: there are none, snappy, lz4, zstd"), "{text}");
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
