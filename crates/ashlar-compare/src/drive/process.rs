//! The process of a session: its job, its directory, and its memory control group.

use super::Matrix;
use crate::experiment::Session;
use crate::job::{Job, Step, Workload};
use ashlar_peers::engine::EngineName;
use ashlar_peers::place;
use ashlar_peers::process::{self, Limits, NOT_OFFERED, Scratch, failed};
use ashlar_peers::settings::{Class, Settings};
use ashlar_report::record::{Record, Status};
use std::process::Command;

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
    let command = process::command(job.engine, matrix.jemalloc)?;
    let group = process::group(&job.settings, matrix.memory_group.as_deref())?;
    let job = Job { group: group.as_ref().map(|group| group.path().to_path_buf()), ..job.clone() };
    let lines = watched(matrix, &job, command)?;
    let read = |line: &String| serde_json::from_str(line).map_err(|e| failed(e.to_string()));
    lines.iter().map(read).collect()
}

/// Runs `command` with `job` as its last arguments, in a process group of its own. Returns the printed lines.
pub fn watched(matrix: &Matrix, job: &Job, command: Command) -> Result<Vec<String>, Status> {
    let dir = Scratch::new(&matrix.dir, "ashlar-compare", job.engine).map_err(failed)?;
    let job = Job { dir: dir.path().join("db").to_string_lossy().into_owned(), ..job.clone() };
    let job = serde_json::to_string(&job).map_err(|e| failed(e.to_string()))?;
    process::watched(Limits { timeout: matrix.timeout, stop: &matrix.stop }, &job, command)
}
