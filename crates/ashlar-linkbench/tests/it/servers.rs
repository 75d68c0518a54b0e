//! The SQL form: servers that do not start or die, and what they leave.

use super::{CONFIG, full, linkbench, of, records, said};
use ashlar_peers::engine::EngineName;
use ashlar_peers::place;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The most that a wait for a process may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says why a test is skipped, if MariaDB or its plugin is missing.
fn missing(engine: EngineName) -> bool {
    let why = place::library(engine, None).err();
    why.iter().for_each(|why| println!("skipped: {}: {why}", engine.text()));
    why.is_some()
}

/// Waits for `what`. Panics if it takes too long.
fn wait<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A run of many requests on a server of `engine`, which has begun them.
struct Running {
    driver: Option<Child>,
    server: String,
}

impl Running {
    fn driver(&mut self) -> Child {
        self.driver.take().expect("asked once")
    }
}

/// A test that fails leaves no process.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.kill().and_then(|()| driver.wait()).expect("it is a child");
        }
    }
}

/// Starts a run of many requests, and waits until the server has the tables.
fn begun(engine: EngineName, dir: &Path) -> Running {
    let file = dir.join("link.properties");
    std::fs::write(&file, CONFIG.replace("requests = 500", "requests = 100000000")).unwrap();
    let databases = dir.join("databases");
    let driver = Command::new(env!("CARGO_BIN_EXE_ashlar-linkbench"))
        .args(["-c".as_ref(), file.as_os_str(), "--dir".as_ref(), databases.as_os_str()])
        .args(["--engines", engine.text(), "--json"])
        .arg(dir.join("records"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running { driver: Some(driver), server: String::new() };
    running.server = wait("the server", || {
        let runs = std::fs::read_dir(&databases).ok()?.flatten();
        // The driver measures the empty server when the tables are there.
        let of_tables = |home: &PathBuf| home.join("empty-bytes").exists();
        let home = runs.map(|run| run.path().join("db/server")).find(of_tables)?;
        Some(std::fs::read_to_string(home.join("server.pid")).ok()?.trim().to_owned())
    });
    running
}

/// Whether the process is there and no zombie.
fn lives(process: &str) -> bool {
    let stat = std::fs::read_to_string(PathBuf::from("/proc").join(process).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

fn kill(process: &str) {
    assert!(Command::new("kill").args(["-KILL", process]).status().unwrap().success());
}

fn leftovers(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir.join("databases")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_killed_server_makes_rows_void_and_leaves_nothing() {
    let engines = if full() { &EngineName::SERVERS[..] } else { &[EngineName::Innodb] };
    for &engine in engines {
        if missing(engine) {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut running = begun(engine, dir.path());
        kill(&running.server);
        let out = running.driver().wait_with_output().unwrap();
        assert!(!out.status.success(), "{}", said(&out));
        let run = records(dir.path());
        let rows = of(&run, engine.text());
        assert_eq!(rows.len(), 2, "{}", said(&out));
        for record in rows {
            let why = format!("{:?}", record.status);
            assert!(!record.counts() && why.contains("the server ended (signal: 9"), "{}: {why}", record.row);
            assert!(why.contains("error.log ends: ") && why.contains("[Note]"), "{why}");
        }
        assert!(!lives(&running.server));
        assert_eq!(leftovers(dir.path()), Vec::<PathBuf>::new());
    }
}

/// In the full form only.
#[test]
fn a_server_ends_with_a_killed_driver() {
    if !full() || missing(EngineName::Innodb) || place::program("setpriv").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut running = begun(EngineName::Innodb, dir.path());
    assert!(lives(&running.server));
    let mut driver = running.driver();
    driver.kill().unwrap();
    driver.wait().unwrap();
    wait("the end of the server", || (!lives(&running.server)).then_some(()));
}

/// The programs stand in for MariaDB's.
#[test]
fn a_server_that_does_not_start_says_why_and_other_engines_go_on() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (programs, databases) = (dir.path().join("bin"), dir.path().join("databases"));
    for folder in [&programs, &databases] {
        std::fs::create_dir(folder).unwrap();
    }
    let creator = "for a in \"$@\"; do case $a in --datadir=*) mkdir \"${a#*=}\";; esac; done";
    let server = "for a in \"$@\"; do case $a in --log-error=*) echo 'no such tablespace' > \"${a#*=}\";; esac; done; exit 7";
    for (name, text) in [("mariadb-install-db", creator), ("mariadbd", server)] {
        let path = programs.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let file = dir.path().join("link.properties");
    std::fs::write(&file, CONFIG).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar-linkbench"));
    command.env("PATH", path).arg("-c").arg(&file).arg("--dir").arg(&databases);
    command.args(["--engines", "innodb,ashlardb", "--json"]).arg(dir.path().join("records"));
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", said(&out));
    let run = records(dir.path());
    for record in of(&run, "innodb") {
        let why = format!("{:?}", record.status);
        assert!(
            why.contains("the server did not start: exit status: 7; error.log ends: no such tablespace"),
            "{why}"
        );
    }
    assert!(of(&run, "ashlardb").iter().all(|record| record.counts()));
    assert_eq!(leftovers(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn operations_without_transactions_are_not_offered() {
    let dir = tempfile::tempdir().unwrap();
    let out = linkbench(&["--engines", "innodb", "--mode", "none"], dir.path());
    assert!(!out.status.success());
    for record in of(&records(dir.path()), "innodb") {
        let why = record.status.text();
        assert!(why.contains("not offered: operations without transactions"), "{why}");
    }
}

/// A kept database: the load and the requests start a server each. In the full form only.
#[test]
fn a_kept_server_loads_and_runs_in_two_steps() {
    if !full() || missing(EngineName::Innodb) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, kept) = (dir.path().join("link.properties"), dir.path().join("kept"));
    std::fs::write(&file, CONFIG).unwrap();
    let (file, kept) = (file.to_string_lossy(), kept.to_string_lossy());
    let base = ["-c", &file, "--keep", &kept, "--engines", "innodb"];
    for step in ["-l", "-r"] {
        let out = linkbench(&[&base[..], &[step]].concat(), dir.path());
        assert!(out.status.success(), "{step}: {}", said(&out));
    }
    let run = records(dir.path());
    let rows: Vec<_> = run.records.iter().filter(|record| record.counts()).map(|r| r.row.as_str()).collect();
    assert_eq!(rows, ["file-load", "requests"]);
    // Without the files that a server has before the first row.
    assert!(
        run.records.iter().all(|record| record.space.du.is_some_and(|bytes| bytes < 30 << 20)),
        "{run:?}"
    );
}
