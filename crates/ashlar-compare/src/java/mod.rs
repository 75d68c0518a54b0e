//! `ashlar-compare java`: RocksJava's measurements of 2014 (experiment `s1`) under RocksDB's jar, over RocksDB's native half and ours.
//!
//! 1. The program is `jdb_bench` of `ashlar-jni/bench`, compiled once. The jar and the class files are the same for both halves.
//! 2. Each command line of the document is a JVM of its own ([`jvm`]), as in the document: one loads, the next one reads.
//! 3. The halves take turns, forwards and backwards, as the engines of the other experiments do.
//! 4. A figure counts only if all tasks finished, all reads found their entry, and the JVM had mapped the wanted half.

mod jvm;
mod rows;
mod said;

use crate::cli::Files;
use crate::experiment::Size;
use ashlar_peers::engine::EngineName;
use ashlar_peers::header::{header, turns};
use ashlar_peers::memory::free_disk;
use ashlar_peers::process::{Limits, Scratch, failed};
use ashlar_peers::quiet::{self, Watch};
use ashlar_peers::records::Records;
use ashlar_peers::space;
use ashlar_peers::stop::Stop;
use ashlar_report::record::{Cpu, Engine, Line, Memory, Ops, Phase, Record, Run, Space, Status};
use ashlar_report::{history, rates};
use clap::Args;
use jvm::Java;
use rows::{Session, Step};
use said::Measured;
use std::path::PathBuf;
use std::time::Duration;

/// The name of the experiment.
const EXPERIMENT: &str = "s1";

/// The writer's part of the readers' rate in the document: 10,000 of 104,615 a second.
const SHARE: f64 = 10_000.0 / 104_615.0;

/// Bytes of disk for a byte of keys and values.
const DISK_FACTOR: u64 = 2;

/// The flags of the command.
#[derive(Debug, Args)]
pub struct Command {
    /// Size of the experiment
    #[arg(long, value_enum, default_value = "smoke")]
    size: Size,
    /// Rows, separated by commas: T2, T4, T5, T5-10000 [default: all]
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Native halves, separated by commas: ashlardb, rocksdb [default: both]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Repetitions [default: 3; 1 for smoke]
    #[arg(long)]
    reps: Option<u32>,
    /// AshlarDB's native half [default: librocksdbjni.so beside this program, of `cargo build --release -p ashlar-jni`]
    #[arg(long, value_name = "FILE")]
    native_half: Option<PathBuf>,
    /// Where the run works and what it writes
    #[command(flatten)]
    files: Files,
    /// Other programs may use the processors meanwhile: each record notes their share, and the figures count all the same
    #[arg(long)]
    busy: bool,
    /// Seconds after which a JVM is ended and its row marked
    #[arg(long, default_value_t = 1800)]
    timeout: u64,
}

impl Command {
    /// Runs the experiment and prints its table.
    ///
    /// # Errors
    /// The jar, the compiler or a native half is missing, the disk is too small, or a file cannot be written.
    pub fn run(&self) -> Result<(), String> {
        let sessions = rows::sessions(self.size, &self.rows)?;
        let both = [EngineName::Ashlardb, EngineName::Rocksdb];
        let engines = if self.engines.is_empty() { both.to_vec() } else { self.engines.clone() };
        if let Some(other) = engines.iter().find(|engine| !both.contains(engine)) {
            return Err(format!("{} has no native half for Java: ashlardb, rocksdb", other.text()));
        }
        let dir = self.files.folder();
        fits(&dir, &sessions)?;
        let java = Java::prepare(&dir, self.native_half.as_deref())?;
        let mut json = Records::append(self.files.json.as_deref())?;
        let mut run = Run { headers: vec![header("ashlar-compare", &dir)], records: Vec::new() };
        json.keep(&Line::Machine(Box::new(run.headers[0].clone())))?;
        let stop = Stop::default();
        stop.listen()?;
        let quoted = !self.busy && self.size != Size::Smoke;
        if quoted {
            quiet::wait(&stop);
        }
        let mut order = 0;
        for rep in 1..=self.reps.unwrap_or(self.size.reps()) {
            for session in &sessions {
                for engine in turns(&engines, rep) {
                    order += 1;
                    eprintln!("{} {rep}: {}", engine.text(), session.names());
                    let limits = Limits { timeout: Duration::from_secs(self.timeout), stop: &stop };
                    let driver = Driver { java: &java, engine, limits, size: self.size, quoted, dir: &dir };
                    for record in driver.session(session) {
                        let record = Record { rep, order, ..record };
                        json.keep(&Line::Run(Box::new(record.clone())))?;
                        run.records.push(record);
                    }
                    self.files.shown.write(&run)?;
                    if stop.asked() {
                        return Err(format!("interrupted in process {order}"));
                    }
                }
            }
        }
        print!("{}", rates(&run));
        Ok(())
    }
}

/// Refuses a run for which the disk is too small.
fn fits(dir: &std::path::Path, sessions: &[Session]) -> Result<(), String> {
    let need = sessions.iter().map(|session| session.bytes() * DISK_FACTOR).max().unwrap_or(0);
    match free_disk(dir) {
        Some(have) if have < need => Err(format!(
            "too little disk in {}: {} MiB needed, {} MiB free",
            dir.display(),
            need >> 20,
            have >> 20
        )),
        _ => Ok(()),
    }
}

/// One half's part of a session.
struct Driver<'a> {
    java: &'a Java,
    engine: EngineName,
    limits: Limits<'a>,
    size: Size,
    quoted: bool,
    dir: &'a std::path::Path,
}

impl Driver<'_> {
    /// A record for each row, with figures or with the reason why not.
    fn session(&self, session: &Session) -> Vec<Record> {
        let scratch = match Scratch::new(self.dir, "ashlar-compare-java", self.engine) {
            Ok(scratch) => scratch,
            Err(why) => return self.marked(&session.steps, &failed(why)),
        };
        let mut records = Vec::new();
        let mut alone = None;
        for (at, step) in session.steps.iter().enumerate() {
            let db = scratch.path().join("db");
            let mut step = step.clone();
            step.writes_per_second = paced(&step, alone);
            let (load, watch) = (load_average(), Watch::begin());
            let done = self.java.run(self.engine, self.limits, scratch.path(), &step.flags(&db));
            let disturbed = watch.disturbed();
            match done {
                Ok(measured) => {
                    alone = Some(measured.per_sec());
                    let Some(row) = step.row else { continue };
                    let mut record = self.record(row, &step, &measured);
                    record.space.du = Some(space::taken(&db).allocated);
                    record.params.options.insert("load average before".into(), load);
                    quiet::mark(&mut record, &disturbed, self.quoted);
                    records.push(record);
                }
                // What follows needs the entries of this step.
                Err(status) => {
                    eprintln!("{}: {}", self.engine.text(), status.text());
                    records.extend(self.marked(session.steps.get(at..).unwrap_or_default(), &status));
                    break;
                }
            }
        }
        records
    }

    fn marked(&self, steps: &[Step], status: &Status) -> Vec<Record> {
        let rows = steps.iter().filter_map(|step| Some((step.row?, step)));
        rows.map(|(row, step)| {
            self.described(row, step, Record::without_figures(self.engine.text(), status.clone()))
        })
        .collect()
    }

    fn described(&self, row: &str, step: &Step, record: Record) -> Record {
        Record {
            experiment: EXPERIMENT.to_owned(),
            row: row.to_owned(),
            title: step.title.to_owned(),
            workload: step.workload.to_owned(),
            size: Some(self.size.text().to_owned()),
            params: step.params(),
            published: history::published(EXPERIMENT, row, self.engine.text()),
            ..record
        }
    }

    fn record(&self, row: &str, step: &Step, measured: &Measured) -> Record {
        let mut record = self.described(
            row,
            step,
            Record::without_figures(self.engine.text(), measured.status(step.operations())),
        );
        record.engine =
            Engine { name: self.engine.text().to_owned(), version: self.java.version(self.engine) };
        let each = |seconds: f64| seconds * 1e6 / measured.done.max(1) as f64;
        record.ops = Some(Ops {
            total: measured.done,
            per_sec: measured.per_sec(),
            found: measured.found,
            user_bytes: measured.bytes,
            us_wall_op: each(measured.seconds),
            us_thread_op: Some(each(measured.seconds) * f64::from(step.threads)),
            us_cpu_op: Some(each(measured.cpu_seconds)),
            ..Ops::default()
        });
        record.phase = Some(Phase { seconds: measured.seconds, ..Phase::default() });
        record.cpu = Cpu { process_s: Some(measured.cpu_seconds), ..Cpu::default() };
        record.mem = Memory { rss_peak: measured.peak_kib.map(|kib| kib * 1024), ..Memory::default() };
        record.space = Space { logical_live: Some(step.bytes()), ..Space::default() };
        if measured.puts_beside > 0 {
            record.params.options.insert("puts beside".into(), measured.puts_beside.to_string());
        }
        record
    }
}

/// The writer's limit: the given one, or the document's share of the rate of the step before.
fn paced(step: &Step, before: Option<f64>) -> Option<u64> {
    match (step.shares, before) {
        // A rate is positive and far below 2^53.
        #[expect(clippy::cast_possible_truncation, reason = "operations a second")]
        (true, Some(rate)) => Some(((rate * SHARE) as u64).max(1)),
        _ => step.writes_per_second,
    }
}

/// The load averages of 1, 5 and 15 minutes.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
