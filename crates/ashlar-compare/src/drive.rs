//! The driver: a process per engine and repetition, in turns, and what became of each.

use crate::command::Shown;
use crate::engine::EngineName;
use crate::place;
use crate::report;
use crate::settings::Settings;
use crate::task::{Task, Workload};
use ashlar_report::machine::Machine;
use ashlar_report::record::{Header, Line, Record, Run, SCHEMA, Status};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Engines, in the order of the first repetition.
    pub engines: Vec<EngineName>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// Keys.
    pub keys: u64,
    /// Operations of the random reads.
    pub reads: u64,
    /// Repetitions.
    pub reps: u32,
    /// Arrivals per second of the open loop; `None`: `load` of the engine's own peak.
    pub rate: Option<f64>,
    /// Part of the peak.
    pub load: f64,
    /// Where databases are made.
    pub dir: PathBuf,
    /// Where records are appended.
    pub json: Option<PathBuf>,
    /// Where the page goes.
    pub shown: Shown,
    /// RocksDB's shared object, if it was named.
    pub rocksdb: Option<PathBuf>,
    /// RocksDB runs on jemalloc where that is installed.
    pub jemalloc: bool,
    /// How long one process may take.
    pub timeout: Duration,
    /// How every engine is opened.
    pub settings: Settings,
}

/// All that came out.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was measured.
    pub records: Vec<Record>,
    /// Engines that are not here, and runs that failed: why.
    pub marks: BTreeMap<EngineName, String>,
}

/// Runs everything and prints the table.
///
/// # Errors
/// The records cannot be written, or there is nothing to run.
pub fn run(matrix: &Matrix) -> Result<(), String> {
    let mut outcome = Outcome::default();
    let mut json = match &matrix.json {
        Some(path) => Some(append(path)?),
        None => None,
    };
    let mut keep = |line: Line| json.as_mut().map_or(Ok(()), |file| write_line(file, &line));
    let mut shown = Run { headers: vec![header(matrix)], records: Vec::new() };
    keep(Line::Machine(Box::new(shown.headers[0].clone())))?;
    let mut order = 0;
    for rep in 1..=matrix.reps {
        for session in sessions(&matrix.workloads) {
            for engine in turns(&matrix.engines, rep) {
                if outcome.marks.contains_key(&engine) {
                    continue;
                }
                order += 1;
                eprintln!("{} {}: {}", engine.text(), rep, names(&session));
                let records = one(matrix, engine, &session, &outcome.records).unwrap_or_else(|status| {
                    eprintln!("{}: {}", engine.text(), status.text());
                    outcome.marks.insert(engine, status.text());
                    session.iter().map(|workload| marked(matrix, engine, *workload, &status)).collect()
                });
                for record in records {
                    let workload = record.workload.clone();
                    let (experiment, row) = ("free".to_owned(), workload.clone());
                    let record = Record { experiment, row, title: workload, rep, order, ..record };
                    keep(Line::Run(Box::new(record.clone())))?;
                    shown.records.push(record.clone());
                    outcome.records.push(record);
                }
                // So that a run that is broken off leaves a page too.
                matrix.shown.write(&shown)?;
            }
        }
    }
    println!("{}", report::text(matrix, &outcome));
    Ok(())
}

/// Where and when.
fn header(matrix: &Matrix) -> Header {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let commit = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"]).output();
    let commit = commit.ok().filter(|out| out.status.success());
    Header {
        schema: SCHEMA,
        run_id: format!("{:x}-{:x}", now.as_micros(), std::process::id()),
        time: ashlar_bench::utc(u64::try_from(now.as_micros()).unwrap_or(0)),
        suite_version: env!("CARGO_PKG_VERSION").to_owned(),
        suite_commit: commit.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        machine: Machine::read(&matrix.dir, &|path| std::fs::read_to_string(path).ok()),
    }
}

/// The record of a workload that has no figures.
fn marked(matrix: &Matrix, engine: EngineName, workload: Workload, status: &Status) -> Record {
    Record {
        workload: workload.text().to_owned(),
        params: matrix.settings.params(matrix.keys),
        ..Record::without_figures(engine.text(), status.clone())
    }
}

/// Forwards and backwards in turn.
fn turns(engines: &[EngineName], rep: u32) -> Vec<EngineName> {
    let mut turn = engines.to_vec();
    if rep.is_multiple_of(2) {
        turn.reverse();
    }
    turn
}

/// Workloads that share a process and a database. A fill begins with an empty one; the overwrite comes last, because
/// reads want what the load left.
fn sessions(workloads: &[Workload]) -> Vec<Vec<Workload>> {
    let has = |w: &Workload| workloads.contains(w);
    let loaded = [
        Workload::Fillrandom,
        Workload::Readrandom,
        Workload::Seekrandom,
        Workload::Readseq,
        Workload::Overwrite,
    ];
    let groups: [&[Workload]; 3] = [&[Workload::Fillseq], &loaded, &[Workload::Openloop]];
    let wanted = groups.map(|group| group.iter().copied().filter(has).collect::<Vec<_>>());
    wanted.into_iter().filter(|group| !group.is_empty()).collect()
}

fn names(session: &[Workload]) -> String {
    session.iter().map(|w| w.text()).collect::<Vec<_>>().join(", ")
}

/// One process.
fn one(
    matrix: &Matrix,
    engine: EngineName,
    session: &[Workload],
    so_far: &[Record],
) -> Result<Vec<Record>, Status> {
    let library = place::library(engine, matrix.rocksdb.as_deref()).map_err(|why| Status::NotHere { why })?;
    let dir = Scratch::new(&matrix.dir, engine).map_err(failed)?;
    let mut task = Task {
        engine,
        library: library.map(|path| path.to_string_lossy().into_owned()),
        dir: dir.0.join("db").to_string_lossy().into_owned(),
        settings: matrix.settings.clone(),
        workloads: session.to_vec(),
        keys: matrix.keys,
        reads: matrix.reads,
        rate: matrix.rate.unwrap_or(0.0),
    };
    if session.contains(&Workload::Openloop) && matrix.rate.is_none() {
        task.rate = match peak(so_far, engine) {
            Some(peak) => peak * matrix.load,
            None => {
                let fill = Task { workloads: vec![Workload::Fillrandom], ..task.clone() };
                let peak_dir = Scratch::new(&matrix.dir, engine).map_err(failed)?;
                let fill = Task { dir: peak_dir.0.join("db").to_string_lossy().into_owned(), ..fill };
                let records = process(&fill, matrix)?;
                peak(&records, engine).ok_or_else(|| failed("fillrandom gave no figure".into()))?
                    * matrix.load
            }
        };
    }
    process(&task, matrix)
}

/// The engine's median of fillrandom, in operations per second.
fn peak(records: &[Record], engine: EngineName) -> Option<f64> {
    let of = |r: &&Record| r.engine.name == engine.text() && r.workload == Workload::Fillrandom.text();
    report::median(records.iter().filter(of).filter_map(|r| Some(r.ops.as_ref()?.per_sec)))
}

/// It failed before it could say anything.
fn failed(why: String) -> Status {
    Status::Failed { why, last_output: String::new() }
}

fn process(task: &Task, matrix: &Matrix) -> Result<Vec<Record>, Status> {
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let task_text = serde_json::to_string(task).map_err(|e| failed(e.to_string()))?;
    let mut command = Command::new(program);
    command.arg("--child").arg(task_text).stdout(Stdio::piped()).stderr(Stdio::piped());
    if task.engine == EngineName::Rocksdb
        && matrix.jemalloc
        && let Some(jemalloc) = jemalloc()
    {
        command.env("LD_PRELOAD", jemalloc);
    }
    let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || {
        let lines = out.map(|out| BufReader::new(out).lines().map_while(Result::ok));
        lines.into_iter().flatten().collect::<Vec<_>>()
    });
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut errors) = errors {
            // What cannot be read is not shown.
            let _ = errors.read_to_string(&mut text);
        }
        text
    });
    let ended = wait(&mut child, matrix.timeout);
    let lines = reader.join().unwrap_or_default();
    let said = complaints.join().unwrap_or_default();
    let last_output = tail(&said);
    match ended.map_err(failed)? {
        None => {
            let why = format!("took longer than {} s and was ended", matrix.timeout.as_secs());
            Err(Status::Timeout { why, last_output })
        }
        Some(status) if !status.success() => Err(Status::Failed { why: status.to_string(), last_output }),
        Some(_) => {
            let read = |line: &String| serde_json::from_str(line).map_err(|e| failed(e.to_string()));
            lines.iter().map(read).collect()
        }
    }
}

/// The last lines of what a process said.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.trim().lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// The status, or `None` when it took too long and was ended.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<std::process::ExitStatus>, String> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A folder of one run, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: &Path, engine: EngineName) -> Result<Scratch, String> {
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let name = format!("ashlar-compare-{}-{}-{unique}", engine.text(), std::process::id());
        let path = parent.join(name);
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder for temporary files may keep what cannot be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// jemalloc's shared object, where distributions put it.
fn jemalloc() -> Option<&'static str> {
    ["/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2"]
        .into_iter()
        .find(|path| Path::new(path).is_file())
}

fn append(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|e| format!("{}: {e}", path.display()))
}

fn write_line(file: &mut File, line: &Line) -> Result<(), String> {
    writeln!(file, "{}", line.text()).map_err(|e| format!("the file of records: {e}"))
}

#[cfg(test)]
mod tests;
