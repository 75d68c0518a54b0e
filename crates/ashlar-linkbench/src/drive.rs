//! The driver: a process per case, engine and repetition, in turns. Each record is kept at once, and the pages are written after
//! every process, so that an interrupted run leaves both.

use crate::job::Job;
use ashlar_peers::engine::EngineName;
use ashlar_peers::header::{header, turns};
use ashlar_peers::memory::Group;
use ashlar_peers::process::{Limits, Scratch, failed, jemalloc, watched};
use ashlar_peers::quiet::{self, Watch};
use ashlar_peers::shown::Shown;
use ashlar_peers::stop::Stop;
use ashlar_peers::{memory, place};
use ashlar_report::record::{Line, Record, Run, Status};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PROGRAM: &str = "ashlar-linkbench";

/// Bytes of disk per byte of data: engines rewrite, and some copy all of it.
const DISK_FACTOR: u64 = 5;

/// The runs to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A job for each case, whose engine, library and directory are set when its process starts.
    pub cases: Vec<Job>,
    /// Engines, in the order of the first repetition.
    pub engines: Vec<EngineName>,
    /// Repetitions.
    pub reps: u32,
    /// The parent of the databases.
    pub dir: PathBuf,
    /// The database itself, which is kept: one engine, one case, one repetition.
    pub keep: Option<PathBuf>,
    /// The file of records.
    pub json: Option<PathBuf>,
    /// The pages.
    pub shown: Shown,
    /// RocksDB's shared object, if the user gave one.
    pub rocksdb: Option<PathBuf>,
    /// The memory control group below which processes with a limit run.
    pub memory_group: Option<PathBuf>,
    /// The time limit of one process.
    pub timeout: Duration,
    /// Whether other programs may use the processors meanwhile.
    pub busy: bool,
    /// Whether the run should end early.
    pub stop: Stop,
}

impl Plan {
    /// True if the machine is to be left alone.
    fn quoted(&self) -> bool {
        !self.busy && self.cases.iter().any(|job| job.size.as_deref().is_some_and(|size| size != "smoke"))
    }

    /// Refuses a run for which the disk is too small.
    fn fits(&self) -> Result<(), String> {
        let need = self.cases.iter().map(|job| job.settings.data_bytes * DISK_FACTOR).max().unwrap_or(0);
        let have = memory::free_disk(&self.dir).unwrap_or(u64::MAX);
        if need <= have {
            return Ok(());
        }
        let (dir, need, have) = (self.dir.display(), need >> 20, have >> 20);
        Err(format!(
            "too little disk in {dir}: {need} MiB needed, {have} MiB free; a smaller --size or another --dir"
        ))
    }
}

/// Runs everything. Returns the number of records that count.
///
/// # Errors
/// The disk is too small, or a file cannot be written.
pub fn run(plan: &Plan) -> Result<usize, String> {
    std::fs::create_dir_all(&plan.dir).map_err(|e| format!("{}: {e}", plan.dir.display()))?;
    plan.fits()?;
    let mut json = plan.json.as_deref().map(append).transpose()?;
    let mut keep = |line: &Line| json.as_mut().map_or(Ok(()), |file| write_line(file, line));
    let head = header(PROGRAM, &plan.dir);
    let mut run = Run { headers: vec![head.clone()], records: Vec::new() };
    keep(&Line::Machine(Box::new(head)))?;
    plan.stop.listen()?;
    if plan.quoted() {
        quiet::wait(&plan.stop);
    }
    let mut order = 0;
    for rep in 1..=plan.reps {
        for job in &plan.cases {
            for engine in turns(&plan.engines, rep) {
                order += 1;
                eprintln!("{} {rep}: {}", engine.text(), job.case);
                for record in one(plan, job, engine) {
                    let record = Record { rep, order, ..record };
                    say(&record);
                    keep(&Line::Run(Box::new(record.clone())))?;
                    run.records.push(record);
                }
                // An interrupted run leaves a page too.
                plan.shown.write(&run)?;
                if plan.stop.asked() {
                    return Ok(counting(&run));
                }
            }
        }
    }
    Ok(counting(&run))
}

fn counting(run: &Run) -> usize {
    run.records.iter().filter(|record| record.counts()).count()
}

/// A line for people.
fn say(record: &Record) {
    let (engine, row) = (&record.engine.name, &record.row);
    match (&record.ops, &record.status) {
        (Some(ops), Status::Ok) => {
            println!("{engine:<16} {row:<14} {:>10.0} operations a second", ops.per_sec)
        }
        (_, status) => println!("{engine:<16} {row:<14} {}", status.text()),
    }
}

/// One engine's part of a case: a record for each row, with figures or with the reason why not.
fn one(plan: &Plan, job: &Job, engine: EngineName) -> Vec<Record> {
    let watch = Watch::begin();
    match process(plan, job, engine) {
        Ok(mut records) => {
            let disturbed = watch.disturbed();
            records.iter_mut().for_each(|record| quiet::mark(record, &disturbed, plan.quoted()));
            records
        }
        Err(status) => marked(job, engine, &status),
    }
}

/// A record without figures for each row.
fn marked(job: &Job, engine: EngineName, status: &Status) -> Vec<Record> {
    let load = job.loads.then(|| {
        (job.load_row(), format!("{}, load", job.case), job.source.config().map_or(1, |c| c.loaders + 1))
    });
    let steps = job.steps.iter().map(|step| (step.row.clone(), step.title.clone(), step.clients));
    let of = |(row, title, threads)| Record {
        experiment: crate::rows::EXPERIMENT.to_owned(),
        row,
        title,
        workload: "linkbench".to_owned(),
        class: job.settings.class,
        size: job.size.clone(),
        params: ashlar_report::record::Params { threads, ..job.settings.params(0) },
        ..Record::without_figures(engine.text(), status.clone())
    };
    load.into_iter().chain(steps).map(of).collect()
}

fn process(plan: &Plan, job: &Job, engine: EngineName) -> Result<Vec<Record>, Status> {
    let not_here = |why| Status::NotHere { why };
    if let Some(what) = engine.lacks(&job.settings) {
        return Err(not_here(format!("not offered: {what}")));
    }
    let library = place::library(engine, plan.rocksdb.as_deref()).map_err(not_here)?;
    let mut command = Command::new(std::env::current_exe().map_err(|e| failed(e.to_string()))?);
    if engine == EngineName::Rocksdb
        && let Some(jemalloc) = jemalloc()
    {
        command.env("LD_PRELOAD", jemalloc);
    }
    let scratch = match &plan.keep {
        Some(_) => None,
        None => Some(Scratch::new(&plan.dir, PROGRAM, engine).map_err(failed)?),
    };
    let dir =
        scratch.as_ref().map_or_else(|| plan.keep.clone().unwrap_or_default(), |dir| dir.path().join("db"));
    let limited = job.settings.memory_limit_bytes.and(plan.memory_group.as_deref());
    let group = limited.map(Group::below).transpose().map_err(failed)?;
    let job = Job {
        engine,
        shared_object: library.map(|path| path.to_string_lossy().into_owned()),
        dir: dir.to_string_lossy().into_owned(),
        group: group.as_ref().map(|group| group.path().to_path_buf()),
        ..job.clone()
    };
    let text = serde_json::to_string(&job).map_err(|e| failed(e.to_string()))?;
    let lines = watched(Limits { timeout: plan.timeout, stop: &plan.stop }, &text, command)?;
    lines.iter().map(|line| serde_json::from_str(line).map_err(|e| failed(e.to_string()))).collect()
}

fn append(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|e| format!("{}: {e}", path.display()))
}

fn write_line(file: &mut File, line: &Line) -> Result<(), String> {
    writeln!(file, "{}", line.text()).map_err(|e| format!("the file of records: {e}"))
}
