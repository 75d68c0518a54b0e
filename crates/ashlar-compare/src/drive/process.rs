//! Starts the process of a session, watches it, and ends it when it takes too long.

use super::Matrix;
use crate::engine::EngineName;
use crate::experiment::Session;
use crate::job::{Job, Step, Workload};
use crate::memory::Group;
use crate::place;
use crate::settings::{Class, Settings};
use ashlar_report::record::{Record, Status};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The beginning of an engine's message for a feature that it lacks.
const NOT_OFFERED: &str = "not offered: ";

/// The message of a process that failed without output.
pub fn failed(why: String) -> Status {
    Status::Failed { why, last_output: String::new() }
}

/// The job of the process. The directory is chosen when the process starts.
///
/// # Errors
/// The engine is missing, or lacks a feature that the settings need.
pub fn job(matrix: &Matrix, engine: EngineName, class: Class, session: &Session) -> Result<Job, Status> {
    if let Some(what) = engine.lacks(&session.settings) {
        return Err(Status::NotHere { why: format!("{NOT_OFFERED}{what}") });
    }
    let library = place::library(engine, matrix.rocksdb.as_deref()).map_err(|why| Status::NotHere { why })?;
    Ok(Job {
        experiment: matrix.experiment.clone(),
        size: matrix.size.clone(),
        engine,
        shared_object: library.map(|path| path.to_string_lossy().into_owned()),
        dir: String::new(),
        group: None,
        settings: Settings { class, ..session.settings.clone() },
        steps: session.steps.clone(),
        keys: session.keys,
        rate: 0.0,
        probe: false,
    })
}

/// The same job with a fill in random order, to measure the peak of the engine.
pub fn fill(matrix: &Matrix, job: &Job) -> Result<Job, Status> {
    if matrix.load <= 0.0 {
        return Err(failed("--load is above 0".into()));
    }
    let step = Step::new("fillrandom", Workload::Fillrandom, job.keys);
    Ok(Job { steps: vec![step], ..job.clone() })
}

/// The record of a step that has no figures.
pub fn marked(
    matrix: &Matrix,
    engine: EngineName,
    class: Class,
    session: &Session,
    step: &Step,
    status: &Status,
) -> Record {
    Record {
        experiment: matrix.experiment.clone(),
        row: step.row.clone(),
        title: step.title.clone(),
        workload: step.workload.text().to_owned(),
        class,
        size: matrix.size.clone(),
        params: session.settings.params(session.keys),
        ..Record::without_figures(engine.text(), status.clone())
    }
}

/// Runs `job` in a new process, in a new directory.
///
/// # Errors
/// The failure of the process.
pub fn run(matrix: &Matrix, job: &Job) -> Result<Vec<Record>, Status> {
    let mut command = Command::new(std::env::current_exe().map_err(|e| failed(e.to_string()))?);
    if job.engine == EngineName::Rocksdb
        && matrix.jemalloc
        && let Some(jemalloc) = jemalloc()
    {
        command.env("LD_PRELOAD", jemalloc);
    }
    let limited = job.settings.memory_limit_bytes.and(matrix.memory_group.as_deref());
    let group = limited.map(Group::below).transpose().map_err(failed)?;
    let job = Job { group: group.as_ref().map(|group| group.path().to_path_buf()), ..job.clone() };
    let lines = watched(matrix, &job, command)?;
    let read = |line: &String| serde_json::from_str(line).map_err(|e| failed(e.to_string()));
    lines.iter().map(read).collect()
}

/// Runs `command` with `job` as its last arguments, in a process group of its own. Returns the printed lines.
pub fn watched(matrix: &Matrix, job: &Job, mut command: Command) -> Result<Vec<String>, Status> {
    let dir = Scratch::new(&matrix.dir, job.engine).map_err(failed)?;
    let job = Job { dir: dir.0.join("db").to_string_lossy().into_owned(), ..job.clone() };
    let job_text = serde_json::to_string(&job).map_err(|e| failed(e.to_string()))?;
    command.arg("--child").arg(job_text).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|e| failed(format!("cannot start {program}: {e}")))?;
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || {
        let lines = out.map(|out| BufReader::new(out).lines().map_while(Result::ok));
        lines.into_iter().flatten().collect::<Vec<_>>()
    });
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut errors) = errors {
            // Unreadable output is not shown.
            let _ = errors.read_to_string(&mut text);
        }
        text
    });
    let ended = wait(&mut child, matrix);
    let lines = reader.join().unwrap_or_default();
    let said = complaints.join().unwrap_or_default();
    let last_output = tail(&said);
    match ended.map_err(failed)? {
        Some(status) if status.success() => Ok(lines),
        _ if matrix.stop.asked() => Err(Status::Failed { why: "interrupted".into(), last_output }),
        None => {
            let why = format!("took longer than {} s and was ended", matrix.timeout.as_secs());
            Err(Status::Timeout { why, last_output })
        }
        Some(status) => Err(unsuccessful(status, last_output)),
    }
}

/// Distinguishes an engine without the feature from one that fails.
fn unsuccessful(status: ExitStatus, last_output: String) -> Status {
    let last = last_output.lines().last().unwrap_or_default();
    match last.split_once(NOT_OFFERED) {
        Some((_, why)) => Status::NotHere { why: format!("{NOT_OFFERED}{why}") },
        None => Status::Failed { why: status.to_string(), last_output },
    }
}

/// The last lines of the output of a process.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.trim().lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// The exit status. `None`: the process was ended, because it took too long or the run was interrupted.
fn wait(child: &mut Child, matrix: &Matrix) -> Result<Option<ExitStatus>, String> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(Some(status));
        }
        if start.elapsed() > matrix.timeout || matrix.stop.asked() {
            end(child)?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills the process group. A tracer leaves its program behind, stopped, if it alone is killed: the program then holds
/// the pipes open for ever.
fn end(child: &mut Child) -> Result<(), String> {
    kill_process_group(Pid::from_child(child), Signal::KILL).map_err(|e| e.to_string())?;
    child.wait().map(drop).map_err(|e| e.to_string())
}

/// The directory of one run, removed when dropped.
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
        // Files that cannot be removed stay in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// jemalloc's shared object, at the places that distributions use.
fn jemalloc() -> Option<&'static str> {
    ["/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2"]
        .into_iter()
        .find(|path| Path::new(path).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;
    use std::os::unix::process::ExitStatusExt;

    /// As a tracer that is interrupted before its program has begun leaves it.
    #[test]
    fn a_program_behind_the_process_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let cli = Cli::parse_from(["ashlar-compare", "--workloads", "fillseq", "--timeout", "1"]);
        let mut matrix = cli.matrix().unwrap();
        matrix.dir = dir.path().to_path_buf();
        let session = &matrix.sessions[0];
        let job = job(&matrix, EngineName::Ashlardb, Class::Matched, session).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 50 & wait"]);
        let begun = Instant::now();
        let ended = watched(&matrix, &job, command);
        assert!(matches!(ended, Err(Status::Timeout { .. })), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(40), "the pipe stayed open");
    }

    #[test]
    fn what_is_not_offered_is_no_failure() {
        let status = ExitStatus::from_raw(256);
        let of = |said: &str| unsuccessful(status, tail(said));
        let why = "not offered: no log".to_owned();
        assert_eq!(of("noise\nashlar-compare: not offered: no log\n"), Status::NotHere { why });
        let crashed = of("one\ntwo\nthree\nfour\nfive\nsix\n");
        let last_output = "two\nthree\nfour\nfive\nsix".into();
        assert_eq!(crashed, Status::Failed { why: "exit status: 1".into(), last_output });
    }
}
