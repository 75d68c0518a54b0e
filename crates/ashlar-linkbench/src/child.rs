//! The child process: opens one engine, loads the graph, runs the rows of a job, checks everything, and prints a record for each.

use crate::config::Config;
use crate::csv;
use crate::generate::graph::Generators;
use crate::job::{Job, Step};
use crate::kv::nothing::Nothing;
use crate::kv::{Graph, Locks, Mode};
use crate::phase::check::{self, Expected, Faults};
use crate::phase::kept::Kept;
use crate::phase::load::{self, Loaded};
use crate::phase::request::{Done, Requester, Shared};
use crate::progress;
use crate::rows::{self, Row};
use ashlar_peers::engine::EngineName;
use ashlar_peers::memory::Held;
use ashlar_peers::observed::Observed;
use ashlar_peers::peer::{Peer, Result};
#[cfg(feature = "fjall")]
use ashlar_peers::peers::Fjall;
#[cfg(feature = "redb")]
use ashlar_peers::peers::Redb;
use ashlar_peers::peers::{Ashlar, Flawed, RocksDb, Shim};
use ashlar_peers::space::taken;
use ashlar_report::record::{Record, Status};
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// Operations that measure the driver's own cost.
const DRAWN_ALONE: u64 = 5000;

/// Runs `job`, which is JSON.
///
/// # Errors
/// The job is malformed, or the engine failed.
pub fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).map_err(|e| format!("--child: {e}"))?;
    match job.engine {
        EngineName::Ashlardb => on::<Ashlar>(&job),
        EngineName::Rocksdb => on::<RocksDb>(&job),
        #[cfg(feature = "fjall")]
        EngineName::Fjall => on::<Fjall>(&job),
        #[cfg(feature = "redb")]
        EngineName::Redb => on::<Redb>(&job),
        spoilt if spoilt.is_spoilt() => on::<Flawed>(&job),
        _ => on::<Shim>(&job),
    }
}

fn on<P: Peer>(job: &Job) -> Result<()> {
    let config = job.source.config()?;
    let mut settings = job.settings.clone();
    settings.clients = job.clients(config.loaders);
    let held = Held::enter(&settings, 0, job.group.as_deref())?;
    let peer = P::open(job.engine, Path::new(&job.dir), &settings, job.shared_object.as_deref())?;
    let database = Database {
        peer: &peer,
        job,
        config: &config,
        generators: Generators::new(&config),
        locks: Locks::default(),
    };
    let mut records = Vec::new();
    if job.loads {
        records.extend(database.load(&held)?.map(|row| row.record(job)));
    }
    for step in &job.steps {
        records.push(held.tight(|| database.request(step))?.record(job));
    }
    let faults = database.check()?;
    for mut record in records {
        held.note(&mut record);
        print(job, &mut record, &faults)?;
    }
    peer.close()
}

/// Prints a record, void if the check found a fault, and writes its CSV file.
fn print(job: &Job, record: &mut Record, faults: &Faults) -> Result<()> {
    record.params.options.insert("fans checked at the end".into(), faults.fans.to_string());
    if let Some(why) = faults.why() {
        match job.mode {
            Mode::Batch | Mode::Txn => record.status = Status::Void { why },
            // Without atomicity counts may drift; the page shows by how much.
            Mode::None => drop(record.params.options.insert("drift".into(), why)),
        }
    }
    if let Some(folder) = &job.csv {
        csv::write(
            folder,
            &format!("{}-{}-{}", record.row, job.engine.text(), job.mode.text()),
            &record.latency_us,
        )?;
    }
    println!("{}", serde_json::to_string(record).map_err(|e| e.to_string())?);
    Ok(())
}

/// An open database with its graph.
struct Database<'a, P> {
    peer: &'a P,
    job: &'a Job,
    config: &'a Config,
    generators: Generators,
    locks: Locks,
}

impl<P: Peer> Database<'_, P> {
    fn clients(&self, many: u32) -> Result<Vec<P::Client<'_>>> {
        (0..many).map(|_| self.peer.client()).collect()
    }

    fn says(&self, what: &str) -> String {
        format!("{} {what}", self.job.engine.text())
    }

    /// Loads what is not loaded. `None`: the load was whole.
    fn load(&self, held: &Held) -> Result<Option<Row>> {
        let dir = Path::new(&self.job.dir);
        let progress = AtomicU64::new(0);
        let what = self.says("load");
        let work = || {
            let clients = self.clients(self.config.loaders + 1)?;
            progress::during(&what, &progress, || load::load(self.config, clients, &progress))
        };
        let settles = |_: &(Loaded, _)| Ok(true);
        let ((loaded, meter), observed) = held.tight(|| Observed::during(self.peer, dir, work, settles))?;
        if loaded == Loaded::default() {
            return Ok(None);
        }
        let rows = Expected::after_load(self.config, &self.generators);
        Kept { phases: 0, rows }.write(&mut self.peer.client()?)?;
        Ok(Some(rows::load(self.job, self.config, loaded, &meter, &observed, taken(dir))))
    }

    fn request(&self, step: &Step) -> Result<Row> {
        let config = Config {
            requesters: step.clients,
            requests: step.requests,
            seconds: step.seconds,
            rate: step.rate / f64::from(step.clients),
            ..self.config.clone()
        };
        let mut graphs: Vec<_> = self
            .clients(step.clients)?
            .into_iter()
            .map(|client| Graph::new(client, &self.locks, self.job.mode))
            .collect();
        let Some(first) = graphs.first_mut() else { return Err("a row needs a client".to_owned()) };
        load::must_be_whole(first.client(), self.config)?;
        let before = Kept::begin(first.client())?;
        let shared = Shared {
            config: &config,
            generators: &self.generators,
            next_node: AtomicU64::new(check::next_node(first, self.config)?),
            done: AtomicU64::new(0),
            mode: self.job.mode,
        };
        let dir = Path::new(&self.job.dir);
        let what = self.says(&step.row);
        let work = || progress::during(&what, &shared.done, || requests(&shared, graphs, before.phases + 1));
        let (done, observed) = Observed::during(self.peer, dir, work, |_| Ok(true))?;
        before.after(done.inserted, done.nodes).write(&mut self.peer.client()?)?;
        let mut row = rows::request(self.job, &config, step, &done, &observed, taken(dir));
        row.driver_us = Some(self.driver_us());
        Ok(row)
    }

    /// Microseconds of the driver per operation of one client, draws included: the time of requests on an engine that does nothing.
    fn driver_us(&self) -> f64 {
        let config = Config {
            requesters: 1,
            requests: DRAWN_ALONE,
            seconds: 0.0,
            rate: 0.0,
            warmup: 0.0,
            ..self.config.clone()
        };
        let (locks, mode) = (Locks::default(), Mode::Batch);
        let shared = Shared {
            config: &config,
            generators: &self.generators,
            next_node: AtomicU64::new(config.graph.end),
            done: AtomicU64::new(0),
            mode,
        };
        let done = Requester::new(&shared, Graph::new(Nothing, &locks, mode), 0, 1).run();
        done.meter.elapsed().as_secs_f64() * 1e6 / done.ops.max(1) as f64
    }

    fn check(&self) -> Result<Faults> {
        let mut graph = Graph::new(self.peer.client()?, &self.locks, self.job.mode);
        load::must_be_whole(graph.client(), self.config)?;
        let kept = Kept::read(graph.client())?;
        check::everything(&mut graph, kept.rows)
    }
}

/// All requesters of a row, until each has ended.
fn requests<C: ashlar_peers::client::Client>(
    shared: &Shared<'_>,
    graphs: Vec<Graph<'_, C>>,
    phase: u64,
) -> Result<Done> {
    let all = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (graph, own) in graphs.into_iter().zip(0..) {
            threads.push(scope.spawn(move || Requester::new(shared, graph, own, phase).run()));
        }
        let panicked = |_| "a requester panicked".to_owned();
        threads.into_iter().map(|thread| thread.join().map_err(panicked)).collect::<Result<Vec<_>>>()
    })?;
    Ok(all.into_iter().reduce(Done::and).unwrap_or_else(|| Done::new(0.0)))
}
