//! The child process: opens one engine, loads the graph, runs the rows of a job, and checks everything.
//!
//! It prints each row when it is measured, so that an error or a kill in a later row loses no earlier one. The outcome of the
//! check comes last.

use crate::config::Config;
use crate::generate::graph::Generators;
use crate::job::{Checked, Job, Said, Step};
use crate::kv::nothing::Nothing;
use crate::kv::{Graph, Locks, Mode};
use crate::phase::check;
use crate::phase::kept::Kept;
use crate::phase::load::{self, Load, Part};
use crate::phase::request::{Done, Requester, Shared};
use crate::progress;
use crate::rows::{self, Row};
use crate::store::{Form, KeyValue, Sql, Store};
use ashlar_peers::memory::Held;
use ashlar_peers::observed::Observed;
use ashlar_peers::peer::{Peer, Result};
use ashlar_peers::peers::{self, Work};
use ashlar_peers::process::end_with_parent;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// Runs that measure the driver's own cost, and the operations of each.
const RUNS_ALONE: usize = 5;
const DRAWN_ALONE: u64 = 5000;

/// Runs `job`, which is JSON.
///
/// # Errors
/// The job is malformed, or the engine failed.
pub fn run(job: &str) -> Result<()> {
    end_with_parent();
    let job: Job = serde_json::from_str(job).map_err(|e| format!("--child: {e}"))?;
    if job.engine.is_server() { on::<Sql>(&job) } else { peers::with(job.engine, On(&job)) }
}

/// The job, on the type of its engine.
struct On<'a>(&'a Job);

impl Work for On<'_> {
    type Output = Result<()>;

    fn on<P: Peer>(self) -> Result<()> {
        on::<KeyValue<P>>(self.0)
    }
}

fn on<F: Form>(job: &Job) -> Result<()> {
    let config = job.source.config()?;
    let mut settings = job.settings.clone();
    settings.clients = job.clients(config.loaders);
    let held = Held::enter(job.engine, &settings, (0, 0), job.group.as_deref())?;
    let peer = F::Peer::open(job.engine, Path::new(&job.dir), &settings, job.shared_object.as_deref())?;
    let options = F::options(&peer);
    let database = Database::<F> {
        peer: &peer,
        job,
        config: &config,
        generators: Generators::new(&config),
        locks: Locks::default(),
    };
    let row = |row: Row| {
        let mut record = row.record(job);
        record.params.options.extend(options.clone());
        held.note(&mut record);
        print(&Said::Row(Box::new(record)))
    };
    if job.loads {
        match database.load(&held)? {
            Some(load) => row(load)?,
            None => print(&Said::AlreadyLoaded)?,
        }
    }
    for step in &job.steps {
        row(held.tight(|| database.request(step))?)?;
    }
    print(&Said::Checked(database.check()?))?;
    peer.close()
}

fn print(said: &Said) -> Result<()> {
    let text = serde_json::to_string(said).map_err(|e| e.to_string())?;
    writeln!(std::io::stdout(), "{text}").map_err(|e| format!("standard output: {e}"))
}

/// An open database with its graph.
struct Database<'a, F: Form> {
    peer: &'a F::Peer,
    job: &'a Job,
    config: &'a Config,
    generators: Generators,
    locks: Locks,
}

/// The client of an engine in form `F`.
type ClientOf<'a, F> = <<F as Form>::Peer as Peer>::Client<'a>;

impl<F: Form> Database<'_, F> {
    fn clients(&self, many: u32) -> Result<Vec<ClientOf<'_, F>>> {
        self.peer.expect_clients(many)?;
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
            progress::during(&what, &progress, || {
                load::load(self.config, &self.generators, clients, &progress)
            })
        };
        let settles = |_: &Load| Ok(true);
        let (load, observed) = held.tight(|| Observed::during(self.peer, dir, work, settles))?;
        let row = || rows::load(self.job, self.config, &load, &observed, F::taken(self.peer, dir));
        Ok((load.part != Part::Nothing).then(row))
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
            .map(|client| F::store(client, &self.locks, self.job.mode))
            .collect();
        let Some(first) = graphs.first_mut() else { return Err("a row needs a client".to_owned()) };
        load::must_be_whole(first.client(), self.config)?;
        let before = Kept::begin(first.client())?;
        let shared = Shared {
            config: &config,
            generators: &self.generators,
            next_node: AtomicU64::new(first.next_node(self.config)?),
            done: AtomicU64::new(0),
            mode: self.job.mode,
        };
        if self.job.warm {
            let caches = if self.job.engine.divides_its_cache() { graphs.len() } else { 1 };
            graphs.iter_mut().take(caches).try_for_each(|graph| check::read_all(graph.client()))?;
        }
        let mut requesters: Vec<_> = graphs
            .into_iter()
            .zip(0..)
            .map(|(graph, own)| Requester::new(&shared, graph, own, before.phases + 1))
            .collect();
        requesters = threads(requesters, |mut requester| {
            requester.warm_up();
            requester
        })?;
        let dir = Path::new(&self.job.dir);
        let what = self.says(&step.row);
        let work = || progress::during(&what, &shared.done, || requests(requesters));
        let (mut done, observed) = Observed::during(self.peer, dir, work, |_| Ok(true))?;
        let taken = F::taken(self.peer, dir);
        let mut graph = self.graph()?;
        before.after(done.changed(self.job.mode)).write(graph.client())?;
        for fan in std::mem::take(&mut done.unchecked) {
            done.faults = done.faults.and(graph.check_fan(fan)?);
        }
        let mut row = rows::request(&config, step, &done, &observed, taken, before.phases == 0);
        row.driver_us = Some(self.driver_us());
        Ok(row)
    }

    /// The graph through a client, while there is no other one.
    fn graph(&self) -> Result<F::Store<'_>> {
        self.peer.expect_clients(1)?;
        Ok(F::store(self.peer.client()?, &self.locks, self.job.mode))
    }

    /// Microseconds of the driver per operation of one client, draws included: the time of requests on an engine that does nothing. The
    /// least of some runs, because whatever disturbs one only adds.
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
        let once = || {
            let done = Requester::new(&shared, Graph::new(Nothing, &locks, mode), 0, 1).run();
            done.meter.elapsed().as_secs_f64() * 1e6 / done.ops.max(1) as f64
        };
        least(once)
    }

    fn check(&self) -> Result<Checked> {
        let mut graph = self.graph()?;
        load::must_be_whole(graph.client(), self.config)?;
        let kept = Kept::read(graph.client())?;
        let faults = graph.check_everything(kept.rows)?;
        Ok(Checked { fans: faults.fans, why: faults.why(), totals: kept.rows.is_some() })
    }
}

/// The least time of [`RUNS_ALONE`] runs.
fn least(mut once: impl FnMut() -> f64) -> f64 {
    (0..RUNS_ALONE).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Does `work` with each of `all`, in a thread each.
fn threads<T: Send, R: Send>(all: Vec<T>, work: impl Fn(T) -> R + Sync) -> Result<Vec<R>> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        let panicked = |_| "a requester panicked".to_owned();
        threads.into_iter().map(|thread| thread.join().map_err(panicked)).collect()
    })
}

/// All requesters of a row, until each has ended.
fn requests<S: Store>(requesters: Vec<Requester<'_, S>>) -> Result<Done> {
    let all = threads(requesters, Requester::run)?;
    Ok(all.into_iter().reduce(Done::and).unwrap_or_else(|| Done::new(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever disturbs a run only adds.
    #[test]
    fn the_cost_of_the_driver_is_the_least_of_five_runs() {
        let mut times = [3.0, 9.0, 2.0, 2.5, 4.0].into_iter();
        assert_eq!(least(|| times.next().unwrap()), 2.0);
        assert_eq!(times.next(), None);
    }
}
