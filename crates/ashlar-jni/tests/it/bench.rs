//! The benchmark program `jdb_bench` over both native halves: its rows and its counts, at no speed.

use crate::java::{JARS, assert_half, jvm, ours};
use ashlar_testkit::judge::{Skip, place};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const NUM: u64 = 50_000;
const READS: u64 = 5_001;

/// Flags of the document of 2014, at the smallest size.
const SMOKE: [&str; 22] = [
    "--num=50000",
    "--reads=5001",
    "--value_size=800",
    "--cache_size=65536",
    "--cache_numshardbits=4",
    "--bloom_bits=10",
    "--open_files=500000",
    "--verify_checksum=true",
    "--mmap_read=false",
    "--sync=false",
    "--compression_ratio=0.50",
    "--write_buffer_size=262144",
    "--target_file_size_base=262144",
    "--max_write_buffer_number=3",
    "--max_background_compactions=20",
    "--level0_file_num_compaction_trigger=4",
    "--level0_slowdown_writes_trigger=8",
    "--level0_stop_writes_trigger=12",
    "--num_levels=6",
    "--delete_obsolete_files_period_micros=300000000",
    "--max_grandparent_overlap_factor=10",
    "--max_bytes_for_level_base=1048576",
];

/// The compiled program and the jar.
struct Bench {
    jar: PathBuf,
    classes: tempfile::TempDir,
}

impl Bench {
    fn compile() -> Result<Bench, Skip> {
        let (javac, jar) = (place("javac")?, place(JARS[4])?);
        let classes = tempfile::tempdir().unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/src/main/java/jdbbench");
        let sources = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut command = Command::new(javac);
        command.args(["--release", "17", "-Xlint:all", "-Werror", "-d"]).arg(classes.path());
        command.arg("-cp").arg(&jar).args(sources);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(Bench { jar, classes })
    }

    /// Runs the program with `flags` on the directory `db`, over RocksDB's native half, or with `ours` over ours.
    fn output(&self, ours: Option<&Path>, db: &Path, flags: &[&str]) -> Output {
        let mut java = jvm(ours, db.parent().unwrap());
        java.arg("-Xmx256m");
        java.arg("-cp").arg(format!("{}:{}", self.jar.display(), self.classes.path().display()));
        java.arg("jdbbench.JdbBench").arg(format!("--db={}", db.display())).args(flags).output().unwrap()
    }

    /// The results by the names of the workloads. The program must end well, over the wanted half.
    fn results(&self, ours: Option<&Path>, db: &Path, flags: &[&str]) -> BTreeMap<String, String> {
        let done = self.output(ours, db, flags);
        let (said, complaints) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{flags:?}: {}\n{complaints}\n{said}", done.status);
        let half = said.lines().find_map(|line| line.strip_prefix("Native half:")).unwrap().trim();
        assert_half(&[half], ours, db.parent().unwrap());
        said.lines().filter(|line| line.ends_with(" task(s) finished.")).map(shape).collect()
    }
}

/// The name, and what stands behind the rates: `fillseq`, `50000 ops done;  1 / 1 task(s) finished.`. The columns are those of
/// the document.
fn shape(line: &str) -> (String, String) {
    let (name, rest) = line.split_at(16);
    let rates: Vec<&str> = rest.splitn(3, ';').collect();
    assert!(rates[0].starts_with(" : ") && rates[0].ends_with(" micros/op"), "{line}");
    assert_eq!(rates[0].len(), " :     2.48233 micros/op".len(), "{line}");
    assert_eq!(rates[0].split('.').nth(1).unwrap().len(), "48233 micros/op".len(), "{line}");
    assert!(rates[1].len() == "  311.2 MB/s".len() && rates[1].ends_with(" MB/s"), "{line}");
    (name.trim_end().to_owned(), rates[2].trim_start().to_owned())
}

/// `100 / 200 found;  1 / 1 task(s) finished.` gives 100.
fn found(results: &BTreeMap<String, String>, name: &str) -> u64 {
    results[name].split(' ').next().unwrap().parse().unwrap()
}

/// What both halves must say alike about drawn keys: how many entries there are, and how many of the reads find one.
fn walk(bench: &Bench, ours: Option<&Path>, folder: &Path) -> [u64; 2] {
    let (sequential, drawn) = (folder.join("sequential"), folder.join("drawn"));
    let with = |more: &[&'static str]| [&SMOKE[..], more].concat();
    let load = [
        "--benchmarks=fillseq",
        "--key_size=10",
        "--block_size=65536",
        "--disable_wal=true",
        "--statistics=true",
    ];
    let filled = bench.results(ours, &sequential, &with(&load));
    assert_eq!(filled["fillseq"], "50000 ops done;  1 / 1 task(s) finished.");
    let reads = [
        "--benchmarks=waitforcompaction,readseq,readrandom,readwhilewriting",
        "--key_size=10",
        "--threads=32",
        "--compression_type=none",
        "--min_level_to_compress=2",
        "--writes_per_second=2000",
        "--use_existing_db=true",
        "--verify_values",
        "--details",
    ];
    let read = bench.results(ours, &sequential, &with(&reads));
    assert_eq!(read["readseq"], "50000 / 50000 found;  32 / 32 task(s) finished.");
    for name in ["readrandom", "readwhilewriting"] {
        assert_eq!(read[name], format!("{READS} / {READS} found;  32 / 32 task(s) finished."));
    }
    let fill = ["--benchmarks=fillrandom,readrandom,readseq", "--threads=3", "--verify_values", "--seed=7"];
    let some = bench.results(ours, &drawn, &with(&fill));
    assert_eq!(some["fillrandom"], "50000 ops done;  3 / 3 task(s) finished.");
    [found(&some, "readseq"), found(&some, "readrandom")]
}

#[test]
fn both_native_halves_run_jdb_bench_alike() {
    let bench = match Bench::compile() {
        Ok(bench) => bench,
        Err(skip) => return skip.announce("both_native_halves_run_jdb_bench_alike"),
    };
    let (theirs, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = ours();
    let counts = walk(&bench, Some(&library), here.path());
    assert_eq!(counts, walk(&bench, None, theirs.path()), "entries, and reads that found one");
    // Draws with replacement leave a part of 1/e out.
    assert!((NUM * 62 / 100..NUM * 65 / 100).contains(&counts[0]), "{counts:?}");
    assert!((READS * 58 / 100..READS * 68 / 100).contains(&counts[1]), "{counts:?}");
    let keep = [
        "--benchmarks=readseq",
        "--use_existing_db=true",
        "--verify_values",
        "--num=50000",
        "--value_size=800",
    ];
    let crossed = bench.results(None, &here.path().join("drawn"), &keep);
    assert_eq!(found(&crossed, "readseq"), counts[0], "RocksDB's half reads what ours wrote");
}

#[test]
fn jdb_bench_refuses_unknown_flags_and_names_dropped_ones() {
    let bench = match Bench::compile() {
        Ok(bench) => bench,
        Err(skip) => return skip.announce("jdb_bench_refuses_unknown_flags_and_names_dropped_ones"),
    };
    let (folder, library) = (tempfile::tempdir().unwrap(), ours());
    let run = |flags: &[&str]| bench.output(Some(&library), &folder.path().join("db"), flags);
    for (flag, said) in [
        ("--nosuch=1", "there is no flag --nosuch"),
        ("--num=many", "--num='many' is no number"),
        ("--benchmarks=fillall", "there is no benchmark 'fillall'"),
        ("--compression_type=middling", "--compression_type=middling is unknown"),
        ("--key_size=1", "keys of 1 bytes are too short for 1000000 entries"),
        ("--value_size=3000000000", "--value_size=3000000000 is too large"),
        ("--value_size=2000000000", "--key_size and --value_size are at most 67108864"),
        ("--threads=0", "--num and --threads are at least 1"),
        ("num=1", "'num=1' is no flag"),
    ] {
        let done = run(&[flag]);
        let complaints = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{flag}: {complaints}");
        assert!(complaints.contains(said), "{flag}: {complaints}");
    }
    let endless = run(&["--benchmarks=fillseq,waitforcompaction", "--disable_auto_compactions"]);
    assert_eq!(endless.status.code(), Some(2), "{}", String::from_utf8_lossy(&endless.stderr));
    let dropped =
        ["--disable_seek_compaction=true", "--disable_data_sync=1", "--cache_remove_scan_count_limit=16"];
    let done = run(&[&["--num=10", "--benchmarks=fillseq"], &dropped[..]].concat());
    let complaints = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{complaints}");
    assert_eq!(complaints.lines().filter(|line| line.contains(" is ignored: ")).count(), 3, "{complaints}");
    let missing = run(&["--benchmarks=readrandom", "--use_existing_db=true", "--db=/nonexistent/db"]);
    assert_eq!(missing.status.code(), Some(1), "{}", String::from_utf8_lossy(&missing.stderr));
}
