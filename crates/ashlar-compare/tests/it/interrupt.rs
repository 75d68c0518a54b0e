//! Ctrl-C in the middle of a run.

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// A terminal sends SIGINT to the process group of the driver, so the group gets it here.
#[test]
fn what_was_measured_until_then_is_kept_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let (records, page) = (place("records"), place("page.html"));
    let slow =
        ["--engines", "ashlardb,test-slow", "--workloads", "fillseq", "--num", "100000", "--reps", "3"];
    let running = Command::new(env!("CARGO_BIN_EXE_ashlar-compare"))
        .args(slow)
        .arg("--json")
        .arg(&records)
        .arg("--report")
        .arg(&page)
        .arg("--dir")
        .arg(place("databases"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    // The machine, our own engine, and then the slow one takes its 100 seconds.
    let begun = Instant::now();
    while lines(&records) < 2 {
        assert!(begun.elapsed() < Duration::from_secs(90), "the first process takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    kill_process_group(Pid::from_child(&running), Signal::INT).unwrap();
    let out = running.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(130), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(95), "it ran to its end");
    assert!(text.contains("interrupted: this was process 2 of 6"), "{text}");
    assert!(text.contains("| fillseq  | ashlardb |"), "{text}");

    let written = std::fs::read_to_string(&records).unwrap();
    for line in written.lines() {
        assert_eq!(ashlar_report::schema::check(line).unwrap(), [""; 0], "{line}");
    }
    let run = ashlar_report::record::parse(&written).unwrap();
    let states: Vec<_> = run.records.iter().map(|r| (r.engine.name.as_str(), r.status.text())).collect();
    assert_eq!(states.len(), 2, "{states:?}");
    assert!(run.records[0].counts(), "{states:?}");
    assert!(states[1].0 == "test-slow" && states[1].1.starts_with("failed: interrupted"), "{states:?}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.ends_with("</html>\n") && page.contains("interrupted"), "{page}");
    assert_eq!(std::fs::read_dir(place("databases")).unwrap().count(), 0, "databases were left behind");
}
