//! The driver: runs a process per session, engine and repetition, in turns, and collects the results.
//!
//! The driver writes each record to the file at once, so that an interrupted run leaves a valid file.

mod callgrind;
mod durability;
mod needs;
mod process;

use crate::experiment::Session;
use crate::job::{Job, Step, Workload};
use crate::report;
use ashlar_peers::engine::EngineName;
use ashlar_peers::header::{header, turns};
use ashlar_peers::quiet;
use ashlar_peers::records::Records;
use ashlar_peers::settings::Class;
use ashlar_peers::shown::Shown;
use ashlar_peers::stop::Stop;
use ashlar_report::history;
use ashlar_report::record::{Line, Record, Run, Status};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The runs to do.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// `s0`, `s2`, `s3`, `ycsb`, `free`.
    pub experiment: String,
    /// `smoke`, `quarter`, `standard`, `large`; `None` in a free run.
    pub size: Option<String>,
    /// Engines, in the order of the first repetition.
    pub engines: Vec<EngineName>,
    /// Settings that all share, each engine's own, or both.
    pub classes: Vec<Class>,
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Repetitions.
    pub reps: u32,
    /// Arrivals per second of the open loop; `None`: `load` of the engine's own peak.
    pub rate: Option<f64>,
    /// Part of the peak.
    pub load: f64,
    /// The directory of the databases.
    pub dir: PathBuf,
    /// The file of records.
    pub json: Option<PathBuf>,
    /// The output files.
    pub shown: Shown,
    /// RocksDB's shared object, if the user gave one.
    pub rocksdb: Option<PathBuf>,
    /// Whether RocksDB runs with jemalloc, if jemalloc is installed.
    pub jemalloc: bool,
    /// Whether other programs may use the processors meanwhile.
    pub busy: bool,
    /// Counts instructions too.
    pub callgrind: bool,
    /// The memory control group below which processes with a limit run.
    pub memory_group: Option<PathBuf>,
    /// The time limit of one process.
    pub timeout: Duration,
    /// Whether the run should end early.
    pub stop: Stop,
}

impl Matrix {
    /// True if the machine is to be left alone: the figures are more than a check that everything works.
    fn quoted(&self) -> bool {
        !self.busy && self.size.as_deref().is_some_and(|size| size != "smoke")
    }
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The records, also those of unmeasured steps with the reason.
    pub records: Vec<Record>,
    /// Missing engines and failed runs, with the reason.
    pub marks: BTreeMap<EngineName, Vec<String>>,
    /// The observed behaviour of each engine in each class of durability.
    pub durability: BTreeMap<(EngineName, &'static str), durability::Checked>,
}

impl Outcome {
    fn mark(&mut self, engine: EngineName, text: String) {
        let marks = self.marks.entry(engine).or_default();
        if !marks.contains(&text) {
            eprintln!("{}: {text}", engine.text());
            marks.push(text);
        }
    }
}

/// Runs everything and prints the table.
///
/// # Errors
/// There is too little disk or memory, the records cannot be written, or there is nothing to run.
pub fn run(matrix: &Matrix) -> Result<(), String> {
    needs::check(matrix)?;
    let mut json = Records::append(matrix.json.as_deref())?;
    let mut keep = |line: Line| json.keep(&line);
    let mut shown = Run { headers: vec![header("ashlar-compare", &matrix.dir)], records: Vec::new() };
    keep(Line::Machine(Box::new(shown.headers[0].clone())))?;
    let mut outcome = Outcome::default();
    matrix.stop.listen()?;
    if matrix.quoted() {
        quiet::wait(&matrix.stop);
    }
    let all = processes(matrix);
    for (order, Process { rep, session, class, engine }) in (1..).zip(&all) {
        eprintln!("{} {rep} {}: {}", engine.text(), class.text(), names(session));
        for record in one(matrix, *engine, *class, session, &mut outcome) {
            let record = Record { rep: *rep, order, ..record };
            keep(Line::Run(Box::new(record.clone())))?;
            shown.records.push(record.clone());
            outcome.records.push(record);
        }
        // An interrupted run leaves a page too.
        matrix.shown.write(&shown)?;
        if matrix.stop.asked() {
            println!("interrupted: this was process {order} of {}", all.len());
            break;
        }
    }
    println!("{}", report::text(matrix, &outcome));
    Ok(())
}

/// One engine's part of a session.
struct Process<'a> {
    rep: u32,
    session: &'a Session,
    class: Class,
    engine: EngineName,
}

/// All of them, in the order in which they run.
fn processes(matrix: &Matrix) -> Vec<Process<'_>> {
    let mut all = Vec::new();
    for rep in 1..=matrix.reps {
        for session in &matrix.sessions {
            for &class in &matrix.classes {
                let turns = turns(&matrix.engines, rep).into_iter();
                all.extend(turns.map(|engine| Process { rep, session, class, engine }));
            }
        }
    }
    all
}

fn names(session: &Session) -> String {
    let measured = session.steps.iter().filter(|step| step.measured);
    measured.map(|step| step.row.as_str()).collect::<Vec<_>>().join(", ")
}

/// One engine's part of a session: a record for each row, with figures or with the reason why not.
fn one(
    matrix: &Matrix,
    engine: EngineName,
    class: Class,
    session: &Session,
    outcome: &mut Outcome,
) -> Vec<Record> {
    let job = process::job(matrix, engine, class, session);
    let done = job.clone().and_then(|job| {
        let asked = (engine, session.settings.durability());
        let checked =
            outcome.durability.entry(asked).or_insert_with(|| durability::check(matrix, &job)).clone();
        let job = with_rate(matrix, job, &outcome.records)?;
        let watch = quiet::Watch::begin();
        let mut records = process::run(matrix, &job)?;
        let disturbed = watch.disturbed();
        for record in &mut records {
            checked.mark(record);
            quiet::mark(record, &disturbed, matrix.quoted());
        }
        if matrix.callgrind {
            let measured = job.steps.iter().filter(|step| step.measured);
            records
                .iter_mut()
                .zip(measured)
                .for_each(|(record, step)| count(matrix, &job, step, record, outcome));
        }
        Ok(records)
    });
    let records = match done {
        Ok(records) => records,
        Err(status) => {
            let measured = session.steps.iter().filter(|step| step.measured);
            measured.map(|step| process::marked(matrix, engine, class, session, step, &status)).collect()
        }
    };
    for status in records.iter().map(|record| &record.status).filter(|status| **status != Status::Ok) {
        outcome.mark(engine, status.text());
    }
    records
        .into_iter()
        .map(|record| Record {
            published: history::published(&matrix.experiment, &record.row, engine.text()),
            ..record
        })
        .collect()
}

/// Notes the instructions of an operation in `record`. They are counted in the first repetition only.
fn count(matrix: &Matrix, job: &Job, step: &Step, record: &mut Record, outcome: &mut Outcome) {
    let same =
        |r: &&Record| (&r.row, r.class, &r.engine.name) == (&record.row, record.class, &record.engine.name);
    let known = outcome.records.iter().find(same).and_then(|before| before.ops.as_ref());
    let counted = match known {
        Some(before) => before.instructions_op,
        None => match callgrind::instructions(matrix, job, step) {
            Ok(counted) => Some(counted),
            Err(why) => {
                outcome.mark(job.engine, format!("{}: instructions not counted: {why}", step.row));
                None
            }
        },
    };
    if let Some(ops) = &mut record.ops {
        ops.instructions_op = counted;
    }
}

/// The rate of the open loop: the given one, or a part of the engine's peak.
fn with_rate(matrix: &Matrix, job: Job, so_far: &[Record]) -> Result<Job, Status> {
    let paced = job.steps.iter().any(|step| step.workload == Workload::Openloop);
    let rate = match (paced, matrix.rate) {
        (false, _) => 0.0,
        (true, Some(rate)) => rate,
        (true, None) => match peak(so_far, job.engine) {
            Some(peak) => peak * matrix.load,
            None => {
                let records = process::run(matrix, &process::fill(matrix, &job)?)?;
                let peak = peak(&records, job.engine);
                peak.ok_or_else(|| ashlar_peers::process::failed("fillrandom gave no figure".into()))?
                    * matrix.load
            }
        },
    };
    Ok(Job { rate, ..job })
}

/// The engine's median of fillrandom by one thread, in operations per second.
fn peak(records: &[Record], engine: EngineName) -> Option<f64> {
    let of = |r: &&Record| {
        r.engine.name == engine.text() && r.workload == Workload::Fillrandom.text() && r.params.threads == 1
    };
    report::median(records.iter().filter(of).filter_map(|r| Some(r.ops.as_ref()?.per_sec)))
}
