//! Whole runs of the program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]

mod servers;

use ashlar_peers::engine::EngineName;
use ashlar_report::record::{Record, Run, Status, parse};
use std::path::Path;
use std::process::{Command, Output};

fn linkbench(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar-linkbench"));
    command.args(args).arg("--dir").arg(dir).arg("--json").arg(dir.join("records"));
    command.output().expect("the program starts")
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

fn records(dir: &Path) -> Run {
    let text = std::fs::read_to_string(dir.join("records")).unwrap();
    for line in text.lines() {
        assert_eq!(ashlar_report::schema::check(line).unwrap(), [""; 0], "{line}");
    }
    parse(&text).unwrap()
}

/// A graph of 2000 nodes, in the smallest size otherwise.
const SMALL: [&str; 8] = ["--size", "smoke", "-D", "maxid1=2001", "-D", "nlinks_cap=200", "--clients", "1,3"];

fn small(more: &[&str], dir: &Path) -> (Output, Run) {
    let pages = [dir.join("page.html"), dir.join("page.md")].map(|path| path.to_string_lossy().into_owned());
    let shown = ["--report", &pages[0], "--markdown", &pages[1]];
    let out = linkbench(&[&SMALL[..], &shown, more].concat(), dir);
    (out, records(dir))
}

fn of<'a>(run: &'a Run, engine: &str) -> Vec<&'a Record> {
    run.records.iter().filter(|record| record.engine.name == engine).collect()
}

/// Whether tests run in their full form, which `cargo xtask test --all` asks for.
fn full() -> bool {
    std::env::var_os("ASHLAR_HEAVY").is_some_and(|value| value == "1")
}

/// Every engine that is here does the same operations, and passes the check. Servers take seconds to start and to settle: they are in the
/// full form only.
#[test]
fn every_engine_is_consistent() {
    let dir = tempfile::tempdir().unwrap();
    let servers = if full() { &EngineName::SERVERS[..] } else { &[] };
    let engines: Vec<&str> = EngineName::ALL.iter().chain(servers).map(|engine| engine.text()).collect();
    let (out, run) = small(&["--rate", "0", "--engines", &engines.join(",")], dir.path());
    assert!(out.status.success(), "{}", said(&out));
    let mut engines = std::collections::BTreeSet::new();
    for record in &run.records {
        let name = &record.engine.name;
        if let Status::NotHere { why } = &record.status {
            println!("skipped: {name}: {why}");
            continue;
        }
        assert_eq!(record.status.text(), "", "{name} {}", record.row);
        assert_ne!(record.params.options["link lists checked at the end"], "0");
        engines.insert(name.as_str());
    }
    assert!(["ashlardb", "fjall", "redb"].iter().all(|name| engines.contains(name)), "{engines:?}");
    let ours = of(&run, "ashlardb");
    assert_eq!(
        ours.iter().map(|record| record.row.as_str()).collect::<Vec<_>>(),
        ["cached-load", "cached-1", "cached-3"]
    );
    assert_eq!(ours[1].latency_us.len(), 10, "every operation");
    assert!(ours[1].ops.as_ref().unwrap().total == 2500 && ours[1].hash.reads.is_some());
    let sums: std::collections::BTreeSet<_> = run
        .records
        .iter()
        .filter(|record| record.counts() && record.row == "cached-1")
        .map(|r| (&r.hash.ops, &r.hash.reads))
        .collect();
    assert_eq!(sums.len(), 1, "the engines read the same");
    let page = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
    let markdown = std::fs::read_to_string(dir.path().join("page.md")).unwrap();
    assert!(page.ends_with("</html>\n") && markdown.contains("### Linkbench"), "{markdown}");
}

/// Modes with less than the driver's locks: transactions keep the graph consistent, and without atomicity the check only reports.
#[test]
fn other_modes_run_where_an_engine_has_them() {
    for (mode, engines) in [("txn", "ashlardb,rocksdb,fjall"), ("none", "ashlardb")] {
        let dir = tempfile::tempdir().unwrap();
        let (out, run) = small(&["--engines", engines, "--mode", mode, "--rate", "0"], dir.path());
        assert!(out.status.success(), "{}", said(&out));
        for record in
            of(&run, "ashlardb").iter().chain(&of(&run, "rocksdb")).filter(|r| r.row != "cached-load")
        {
            if let Status::NotHere { why } = &record.status {
                println!("skipped: rocksdb: {why}");
                continue;
            }
            assert_eq!(record.status.text(), "", "{} {}", record.engine.name, record.row);
            assert_eq!(record.params.options["mode"], mode);
            // Those of transactions after the row; without atomicity the counts may drift.
            let checked = record.params.options["link lists checked meanwhile"] != "0";
            assert_eq!(checked, mode == "txn", "{}", record.row);
        }
        for record in of(&run, "fjall") {
            assert!(
                record.status.text().starts_with("not here: not offered: transactions"),
                "{:?}",
                record.status
            );
        }
    }
}

/// An engine that loses one link of the load, and none afterwards.
#[test]
fn a_peer_that_loses_a_link_has_void_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (out, run) = small(&["--engines", "ashlardb,test-losing", "--rate", "0"], dir.path());
    assert!(out.status.success(), "the other engine's rows count: {}", said(&out));
    assert!(of(&run, "ashlardb").iter().all(|record| record.counts()));
    let losing = of(&run, "test-losing");
    assert_eq!(losing.len(), 3);
    for record in losing {
        let why = record.status.text();
        assert!(why.starts_with("void: ") && why.contains(" link lists were checked): "), "{why}");
    }
    let (out, run) = small(&["--engines", "test-losing", "--rate", "0"], dir.path());
    assert!(!out.status.success() && said(&out).contains("no row has figures that count"), "{run:?}");
}

/// The load loses a link. A second load finds the graph whole, writes nothing, and must not hide the loss.
#[test]
fn a_load_with_nothing_to_do_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let (file, kept) = (dir.path().join("link.properties"), dir.path().join("kept"));
    std::fs::write(&file, CONFIG).unwrap();
    let (file, kept) = (file.to_string_lossy(), kept.to_string_lossy());
    let args = ["-c", &file, "--keep", &kept, "--engines", "test-losing", "-l"];
    for (loads, wanted) in [(1, "no row has figures that count"), (2, "nothing was loaded")] {
        let out = linkbench(&args, dir.path());
        assert!(!out.status.success() && said(&out).contains(wanted), "{}", said(&out));
        let run = records(dir.path());
        let rows = of(&run, "test-losing");
        let why = rows.last().unwrap().status.text();
        assert!(why.starts_with("void: ") && why.contains(" link lists were checked): "), "{why}");
        assert_eq!(rows.iter().filter(|record| record.row == "file-load").count(), loads);
    }
}

#[test]
fn clients_that_fall_behind_the_rate_are_void() {
    let dir = tempfile::tempdir().unwrap();
    let (out, run) = small(&["--engines", "ashlardb", "--clients", "1", "--rate", "100000000"], dir.path());
    assert!(out.status.success(), "{}", said(&out));
    let rows = of(&run, "ashlardb");
    let behind = rows.last().unwrap();
    assert!(
        rows[1].counts() && behind.status.text().contains("the clients fell behind: 100000000"),
        "{rows:?}"
    );
}

const CONFIG: &str = "\
maxid1 = 1001\nnlinks_func = CONST\nnlinks_default = 3\naddlink = 50\ngetlinklist = 50\nread_function = UniformDistribution\n\
write_function = UniformDistribution\nnode_read_function = UniformDistribution\nnode_update_function = UniformDistribution\n\
node_delete_function = UniformDistribution\nrequesters = 2\nrequests = 500\n";

#[test]
fn property_files_load_and_run_in_two_steps() {
    let dir = tempfile::tempdir().unwrap();
    let (file, kept) = (dir.path().join("link.properties"), dir.path().join("kept"));
    std::fs::write(&file, CONFIG).unwrap();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (file_text, kept_text, csv) = (text(&file), text(&kept), text(&dir.path().join("csv")));
    let base = ["-c", &file_text, "--keep", &kept_text, "--engines", "ashlardb", "--csvstats", &csv];
    let early = linkbench(&[&base[..], &["-r"]].concat(), dir.path());
    assert!(!early.status.success() && said(&early).contains("no graph: load one first"), "{}", said(&early));
    for (step, wanted) in
        [("-l", "file-load"), ("-l", "nothing was loaded"), ("-r", "requests"), ("-r", "requests")]
    {
        let out = linkbench(&[&base[..], &[step]].concat(), dir.path());
        assert!(out.status.success() && said(&out).contains(wanted), "{step}: {}", said(&out));
    }
    let run = records(dir.path());
    let rows: Vec<_> = run.records.iter().filter(|record| record.counts()).map(|r| r.row.as_str()).collect();
    assert_eq!(rows, ["file-load", "requests", "requests"]);
    let csv = std::fs::read_to_string(dir.path().join("csv/requests-ashlardb-batch-1.csv")).unwrap();
    assert!(csv.contains("\nADD_LINK,") && csv.contains("\nGET_LINKS_LIST,"), "{csv}");
    std::fs::write(&file, CONFIG.replace("requesters = 2", "requesters = zwei")).unwrap();
    let out = linkbench(&base, dir.path());
    assert!(!out.status.success(), "{}", said(&out));
    assert!(
        said(&out).contains("link.properties:11: requesters = zwei: not a number from 1 to 1024"),
        "{}",
        said(&out)
    );
}
