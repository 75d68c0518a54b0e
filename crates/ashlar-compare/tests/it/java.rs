//! The measurements under Java, at the smallest size.

use ashlar_report::record::parse;
use std::process::{Command, Output};

fn java(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ashlar-compare")).arg("java").args(args).output().unwrap()
}

#[test]
fn rows_of_the_document_run_over_both_native_halves() {
    const NAME: &str = "rows_of_the_document_run_over_both_native_halves";
    // `cargo test --workspace` builds the library beside the tests.
    let half = std::env::current_exe().unwrap().with_file_name("librocksdbjni.so");
    if !half.exists() {
        return ashlar_testkit::report::skipped(
            NAME,
            "librocksdbjni.so is not built: cargo test -p ashlar-jni",
        );
    }
    if let Some(skip) =
        ["javac", "rocksdbjni-11.8.1"].into_iter().find_map(|name| ashlar_testkit::judge::place(name).err())
    {
        return skip.announce(NAME);
    }
    let dir = tempfile::tempdir().unwrap();
    let (json, half) = (dir.path().join("records"), half.to_string_lossy().into_owned());
    let (json_text, dir_text) =
        (json.to_string_lossy().into_owned(), dir.path().to_string_lossy().into_owned());
    let out = java(&["--rows", "T2,T5", "--native-half", &half, "--json", &json_text, "--dir", &dir_text]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert!(
        said.contains("### RocksJava on flash, smoke size") && said.contains("T2 2.48233 micros/op"),
        "{said}"
    );
    let text = std::fs::read_to_string(&json).unwrap();
    for line in text.lines() {
        assert_eq!(ashlar_report::schema::check(line).unwrap(), [""; 0], "{line}");
    }
    let run = parse(&text).unwrap();
    let rows: Vec<_> = run.records.iter().map(|r| (r.row.as_str(), r.engine.name.as_str())).collect();
    assert_eq!(rows, [("T2", "ashlardb"), ("T2", "rocksdb"), ("T5", "ashlardb"), ("T5", "rocksdb")]);
    for record in &run.records {
        assert!(record.counts(), "{}", record.status.text());
        let ops = record.ops.as_ref().unwrap();
        let wanted = if record.row == "T2" { (50_000, None) } else { (20_000, Some(20_000)) };
        assert_eq!((ops.total, ops.found), wanted);
        assert_eq!(record.params.options.contains_key("puts beside"), record.row == "T5");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records"], "databases were left behind");
}

#[test]
fn what_cannot_be_run_is_said() {
    let why = |args: &[&str]| {
        let out = java(args);
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert!(why(&["--rows", "T3"]).contains("s1 has no row T3: there are T2, T4, T5, T5-10000"));
    assert!(why(&["--engines", "lmdb"]).contains("lmdb has no native half for Java"));
}
