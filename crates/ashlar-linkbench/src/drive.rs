//! The driver: a process per case, engine and repetition, in turns.
//!
//! 1. After every process the driver keeps its records and writes the pages, so that an interrupted run leaves both.
//! 2. A process prints each row when it is measured. If a later row fails, the earlier ones are kept as void: the check at the
//!    end did not see them.

use crate::csv;
use crate::job::{Checked, Job, Said};
use crate::kv::Mode;
use crate::rows;
use ashlar_bench::say;
use ashlar_peers::engine::EngineName;
use ashlar_peers::header::{header, turns};
use ashlar_peers::process::{self, Limits, Scratch, failed, followed};
use ashlar_peers::quiet::{self, Watch};
use ashlar_peers::records::Records;
use ashlar_peers::shown::Shown;
use ashlar_peers::stop::Stop;
use ashlar_peers::{memory, place};
use ashlar_report::record::{CHECKED, Line, Record, Run, Status};
use std::io::Write;
use std::path::{Path, PathBuf};
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
    /// The folder of the CSV files.
    pub csv: Option<PathBuf>,
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

    /// A directory on the disk of the databases: the nearest one above `--keep` that exists, or `--dir`.
    fn disk(&self) -> &Path {
        let kept = self.keep.iter().flat_map(|keep| keep.ancestors());
        let found = kept.filter(|path| !path.as_os_str().is_empty()).find(|path| path.is_dir());
        match (&self.keep, found) {
            (None, _) => &self.dir,
            (Some(_), Some(path)) => path,
            (Some(_), None) => Path::new("."),
        }
    }

    /// Writes the latencies of a record that counts, if the user wants them.
    fn write_csv(&self, record: &Record, job: &Job) -> Result<(), String> {
        let Some(folder) = self.csv.as_deref().filter(|_| record.counts()) else { return Ok(()) };
        let Record { row, engine, rep, latency_us, .. } = record;
        csv::write(folder, &format!("{row}-{}-{}-{rep}", engine.name, job.mode.text()), latency_us)
    }

    /// Refuses a run for which the disk is too small.
    fn fits(&self) -> Result<(), String> {
        let need = self.cases.iter().map(|job| job.settings.data_bytes * DISK_FACTOR).max().unwrap_or(0);
        let have = memory::free_disk(self.disk()).unwrap_or(u64::MAX);
        if need <= have {
            return Ok(());
        }
        let (dir, need, have) = (self.disk().display(), need >> 20, have >> 20);
        Err(format!(
            "too little disk in {dir}: {need} MiB needed, {have} MiB free; a smaller --size or another --dir"
        ))
    }
}

/// What a run was good for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Records that count.
    pub counting: usize,
    /// Whether only a load was asked for, and the directory had the whole graph, which passed the check.
    pub nothing_to_do: bool,
}

/// Runs everything.
///
/// # Errors
/// The disk is too small, or a file cannot be written.
pub fn run(plan: &Plan) -> Result<Outcome, String> {
    std::fs::create_dir_all(&plan.dir).map_err(|e| format!("{}: {e}", plan.dir.display()))?;
    plan.fits()?;
    let mut json = Records::append(plan.json.as_deref())?;
    let mut keep = |line: &Line| json.keep(line);
    let head = header(PROGRAM, plan.disk());
    let mut run = Run { headers: vec![head.clone()], records: Vec::new() };
    keep(&Line::Machine(Box::new(head)))?;
    plan.stop.listen()?;
    if plan.quoted() {
        quiet::wait(&plan.stop);
    }
    let (mut order, mut nothing_to_do) = (0, false);
    for rep in 1..=plan.reps {
        for case in &plan.cases {
            for engine in turns(&plan.engines, rep) {
                order += 1;
                say::line(&format!("{} {rep}: {}", engine.text(), case.case));
                let job = case.on(engine);
                let (records, nothing) = one(plan, &job);
                nothing_to_do |= nothing;
                for record in records {
                    let record = Record { rep, order, ..record };
                    show(&record)?;
                    keep(&Line::Run(Box::new(record.clone())))?;
                    plan.write_csv(&record, &job)?;
                    run.records.push(record);
                }
                // An interrupted run leaves a page too.
                plan.shown.write(&run)?;
                if plan.stop.asked() {
                    return Ok(Outcome { counting: counting(&run), nothing_to_do });
                }
            }
        }
    }
    Ok(Outcome { counting: counting(&run), nothing_to_do })
}

fn counting(run: &Run) -> usize {
    run.records.iter().filter(|record| record.counts()).count()
}

/// Prints a line of text.
fn print(text: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{text}").map_err(|e| format!("standard output: {e}"))
}

/// Prints a line about a record.
fn show(record: &Record) -> Result<(), String> {
    let (engine, row) = (&record.engine.name, &record.row);
    print(&match (&record.ops, &record.status) {
        (Some(ops), Status::Ok) => {
            format!("{engine:<16} {row:<14} {:>10.0} operations a second", ops.per_sec)
        }
        (_, status) => format!("{engine:<16} {row:<14} {}", status.text()),
    })
}

/// One engine's part of a case: a record for each row, with figures or with the reason why not. True: there was nothing to do, as in
/// [`Outcome::nothing_to_do`].
fn one(plan: &Plan, job: &Job) -> (Vec<Record>, bool) {
    let watch = Watch::begin();
    let (said, outcome) = match finished(plan, job) {
        Ok(ended) => ended,
        Err(status) => (Vec::new(), Err(status)),
    };
    if said.iter().any(|line| matches!(line, Said::AlreadyLoaded)) {
        say::line(&format!("{}: the directory has the whole graph: nothing was loaded", job.engine.text()));
    }
    let (mut records, nothing_to_do) = judged(job, said, outcome);
    let disturbed = watch.disturbed();
    records.iter_mut().for_each(|record| quiet::mark(record, &disturbed, plan.quoted()));
    (records, nothing_to_do)
}

/// The records of what a process said. True: there was nothing to do.
fn judged(job: &Job, said: Vec<Said>, outcome: Result<(), Status>) -> (Vec<Record>, bool) {
    let (mut records, mut checked, mut already_loaded) = (Vec::new(), None, false);
    for line in said {
        match line {
            Said::Row(record) => records.push(*record),
            Said::AlreadyLoaded => already_loaded = true,
            Said::Checked(found) => checked = Some(found),
        }
    }
    for record in &mut records {
        verify(record, job.mode, checked.as_ref(), outcome.as_ref().err());
    }
    // A load that had nothing to do has no row that the check could make void: the row is added if the check failed.
    let only_load = already_loaded && job.steps.is_empty();
    let failure = match outcome {
        Err(status) => Some(status),
        Ok(()) if only_load => {
            let mut row = Record::default();
            verify(&mut row, job.mode, checked.as_ref(), None);
            Some(row.status).filter(|status| *status != Status::Ok)
        }
        Ok(()) => None,
    };
    if let Some(status) = failure {
        let known: Vec<String> = records.iter().map(|record| record.row.clone()).collect();
        let missing = marked(job, &status).into_iter().filter(|record| !known.contains(&record.row));
        let was_there = |record: &Record| already_loaded && !only_load && record.row == job.load_row();
        records.extend(missing.filter(|record| !was_there(record)));
    }
    let nothing_to_do = only_load && records.is_empty();
    (records, nothing_to_do)
}

/// Applies the check after the last row to a record, which is void if the check found a fault or was not reached. The reason that a row
/// has itself stays the first one.
fn verify(record: &mut Record, mode: Mode, checked: Option<&Checked>, failure: Option<&Status>) {
    let Some(checked) = checked else {
        let why = failure.map_or_else(|| "the process printed no check".to_owned(), Status::text);
        return make_void(record, format!("not checked, because a later step failed: {why}"));
    };
    let options = &mut record.params.options;
    options.insert(CHECKED.into(), checked.fans.to_string());
    if !checked.totals {
        let why = "not known: an earlier request phase was interrupted or failed, so the check cannot see lost batches";
        options.insert("totals".into(), why.to_owned());
    }
    if let Some(why) = checked.why.clone() {
        match mode {
            Mode::Batch | Mode::Txn => make_void(record, why),
            // Without atomicity counts may drift; the page shows by how much.
            Mode::None => drop(options.insert("drift".into(), why)),
        }
    }
}

/// Makes a record void, or adds a reason to one that is void.
fn make_void(record: &mut Record, why: String) {
    record.status = match std::mem::take(&mut record.status) {
        Status::Ok => Status::Void { why },
        Status::Void { why: own } => Status::Void { why: format!("{own}; {why}") },
        other => other,
    };
}

/// A record without figures for each row.
fn marked(job: &Job, status: &Status) -> Vec<Record> {
    let load = job.loads.then(|| {
        let loaders = job.source.config().map_or(0, |config| config.loaders);
        (job.load_row(), rows::load_title(job), rows::LOAD, loaders + 1)
    });
    let steps =
        job.steps.iter().map(|step| (step.row.clone(), step.title.clone(), rows::REQUESTS, step.clients));
    let of = |(row, title, workload, threads): (String, String, &str, u32)| Record {
        experiment: job.experiment.clone(),
        row,
        title,
        workload: workload.to_owned(),
        class: job.settings.class,
        size: job.size.clone(),
        params: rows::params(job, threads),
        ..Record::without_figures(job.engine.text(), status.clone())
    };
    load.into_iter().chain(steps).map(of).collect()
}

/// What a process said, and whether it failed.
type Finished = (Vec<Said>, Result<(), Status>);

/// Runs the process of one engine.
///
/// # Errors
/// The engine is missing, or the process could not be started.
fn finished(plan: &Plan, job: &Job) -> Result<Finished, Status> {
    let engine = job.engine;
    let not_here = |why| Status::NotHere { why };
    if let Some(what) = engine.lacks(&job.settings) {
        return Err(not_here(format!("not offered: {what}")));
    }
    if engine.is_server() && job.mode == Mode::None {
        return Err(not_here("not offered: operations without transactions".to_owned()));
    }
    let library = place::library(engine, plan.rocksdb.as_deref()).map_err(not_here)?;
    let command = process::command(engine, true)?;
    let scratch = match &plan.keep {
        Some(_) => None,
        None => Some(Scratch::new(&plan.dir, PROGRAM, engine).map_err(failed)?),
    };
    let dir =
        scratch.as_ref().map_or_else(|| plan.keep.clone().unwrap_or_default(), |dir| dir.path().join("db"));
    let group = process::group(&job.settings, plan.memory_group.as_deref())?;
    let job = Job {
        shared_object: library.map(|path| path.to_string_lossy().into_owned()),
        dir: dir.to_string_lossy().into_owned(),
        group: group.as_ref().map(|group| group.path().to_path_buf()),
        ..job.clone()
    };
    let text = serde_json::to_string(&job).map_err(|e| failed(e.to_string()))?;
    let ended = followed(Limits { timeout: plan.timeout, stop: &plan.stop }, &text, command);
    // A process that is killed may leave half a line.
    let said = ended.lines.iter().map_while(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>();
    let complete = said.len() == ended.lines.len();
    let outcome = ended.outcome.and_then(|()| {
        if complete { Ok(()) } else { Err(failed("the process printed a line of another form".to_owned())) }
    });
    Ok((said, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use ashlar_report::record::Ops;
    use clap::Parser;

    fn job(steps: usize) -> Job {
        let args = ["ashlar-linkbench", "--clients", "1,4", "--rate", "0"];
        let mut job = Cli::try_parse_from(args).unwrap().plan().unwrap().cases.remove(0);
        job.steps.truncate(steps);
        job
    }

    fn row(name: &str, status: Status) -> Said {
        let mut record = Record::without_figures("ashlardb", status);
        (record.row, record.ops) = (name.to_owned(), Some(Ops::default()));
        Said::Row(Box::new(record))
    }

    fn checked(why: Option<&str>) -> Said {
        Said::Checked(Checked { fans: 7, why: why.map(str::to_owned), totals: true })
    }

    fn void(why: &str) -> Status {
        Status::Void { why: why.to_owned() }
    }

    fn judged(job: &Job, said: Vec<Said>, outcome: Result<(), Status>) -> (Vec<(String, String)>, bool) {
        let (records, nothing) = super::judged(&job.on(EngineName::Ashlardb), said, outcome);
        (records.into_iter().map(|record| (record.row, record.status.text())).collect(), nothing)
    }

    fn rows(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(row, why)| ((*row).to_owned(), (*why).to_owned())).collect()
    }

    #[test]
    fn a_load_with_nothing_to_do_is_well_only_if_the_check_is() {
        let job = job(0);
        assert_eq!(judged(&job, vec![Said::AlreadyLoaded, checked(None)], Ok(())), (Vec::new(), true));
        for (said, outcome, why) in [
            (vec![Said::AlreadyLoaded, checked(Some("1 fault"))], Ok(()), "void: 1 fault"),
            (
                vec![Said::AlreadyLoaded],
                Ok(()),
                "void: not checked, because a later step failed: the process printed no check",
            ),
            (vec![Said::AlreadyLoaded], Err(failed("signal 9".to_owned())), "failed: signal 9"),
        ] {
            assert_eq!(judged(&job, said, outcome), (rows(&[("cached-load", why)]), false));
        }
    }

    /// The load was there before: that excuses no row of requests.
    #[test]
    fn requests_on_a_loaded_graph_are_not_excused() {
        let job = job(2);
        let said = vec![Said::AlreadyLoaded, row("cached-1", Status::Ok)];
        let not_checked = "void: not checked, because a later step failed: failed: signal 9";
        assert_eq!(
            judged(&job, said, Err(failed("signal 9".to_owned()))),
            (rows(&[("cached-1", not_checked), ("cached-4", "failed: signal 9")]), false)
        );
        let said = vec![Said::AlreadyLoaded, row("cached-1", void("behind")), checked(None)];
        assert_eq!(judged(&job, said, Ok(())), (rows(&[("cached-1", "void: behind")]), false));
    }

    #[test]
    fn the_reason_of_a_row_stays_before_that_of_the_check() {
        let said = |check| vec![row("cached-1", void("behind")), row("cached-4", Status::Ok), check];
        assert_eq!(
            judged(&job(2), said(checked(Some("1 fault"))), Ok(())).0,
            rows(&[("cached-1", "void: behind; 1 fault"), ("cached-4", "void: 1 fault")])
        );
        let cut = vec![row("cached-1", void("behind"))];
        let (found, _) = judged(&job(1), cut, Err(failed("signal 9".to_owned())));
        assert!(found[0].1.starts_with("void: behind; not checked"), "{found:?}");
    }

    /// Rows with and without figures of one engine stand beside each other.
    #[test]
    fn rows_without_figures_are_described_as_those_with_figures() {
        for (engine, mode, form) in
            [(EngineName::Redb, "batch", None), (EngineName::Innodb, "txn", Some("sql"))]
        {
            let all = marked(&job(1).on(engine), &void("x"));
            let described: Vec<_> =
                all.iter().map(|r| (r.row.as_str(), r.workload.as_str(), r.params.threads)).collect();
            assert_eq!(
                described,
                [("cached-load", "linkbench-load", 2), ("cached-1", "linkbench-requests", 1)]
            );
            for record in &all {
                assert_eq!((record.params.key_bytes, record.params.value_bytes), (0, 0));
                let options = &record.params.options;
                assert_eq!((options["mode"].as_str(), options.get("form").map(String::as_str)), (mode, form));
            }
        }
        // Left as it is: such a job is refused with a reason.
        let none = Job { mode: Mode::None, ..job(1) };
        assert_eq!(none.on(EngineName::Innodb).mode, Mode::None);
    }
}
