//! The record of a row: its figures, and the reason if they do not count.

use crate::config::Config;
use crate::job::{Job, Step};
use crate::phase::load::{Load, Part};
use crate::phase::request::Done;
use ashlar_peers::meter::Second;
use ashlar_peers::observed::{Observation, Observed};
use ashlar_peers::space::Taken;
use ashlar_report::record::{
    Engine, Hashes, Latency, Limit, Memory, Ops, Params, Phase, Record, SCHEMA, Status,
};
use std::collections::BTreeMap;

/// The part of its length by which a row with a rate may end late. A row that ends later did not keep its rate.
const LATE: f64 = 0.1;

/// The workloads of records.
pub const LOAD: &str = "linkbench-load";
/// See [`LOAD`].
pub const REQUESTS: &str = "linkbench-requests";

/// The title of the row of a load.
pub fn load_title(job: &Job) -> String {
    format!("{}, load", job.case)
}

/// The settings of a row of `threads` clients. Keys and values have many lengths.
pub fn params(job: &Job, threads: u32) -> Params {
    let mut params = Params { threads, ..job.settings.params(0) };
    (params.key_bytes, params.value_bytes, params.compress_ratio) = (0, 0, None);
    params.options.extend(job.described());
    // The smallest size. `ashlar_peers::memory::Held` replaces this text where no limit is held.
    if job.settings.memory_limit_bytes.is_some_and(|limit| job.settings.data_bytes <= limit) {
        let why = "not below the data: the size is too small for the device case to reach the device";
        params.options.insert("memory limit".to_owned(), why.to_owned());
    }
    params
}

/// What a phase leaves for its record.
#[derive(Clone, Debug)]
pub struct Row {
    name: String,
    title: String,
    workload: &'static str,
    status: Status,
    ops: Ops,
    seconds: f64,
    clients: u32,
    limit: Limit,
    latencies: BTreeMap<String, Latency>,
    per_second: Vec<Second>,
    observed: Observed,
    taken: Taken,
    live: Option<u64>,
    written: u64,
    hash: Hashes,
    options: BTreeMap<String, String>,
    /// Microseconds of the driver per operation.
    pub driver_us: Option<f64>,
}

/// The row of a load. Its operations are the rows of all tables. The rest of an interrupted load is void: rows, bytes and
/// seconds are those of the rest, and the directory has the whole graph.
pub fn load(job: &Job, config: &Config, load: &Load, observed: &Observed, taken: Taken) -> Row {
    let (loaded, meter) = (load.loaded, &load.meter);
    let whole = load.part == Part::All;
    let seconds = meter.elapsed().as_secs_f64();
    let options = [("nodes", loaded.nodes), ("links", loaded.links), ("counts", loaded.counts)];
    Row {
        name: job.load_row(),
        title: load_title(job),
        workload: LOAD,
        status: if whole {
            Status::Ok
        } else {
            Status::Void { why: "the load continued an interrupted one".to_owned() }
        },
        ops: ops(loaded.rows(), None, loaded.bytes, seconds, config.loaders + 1, observed),
        seconds,
        clients: config.loaders + 1,
        limit: Limit::Count,
        latencies: meter.latencies(),
        // A batch writes many rows in one call, so calls per second are not rows per second.
        per_second: Vec::new(),
        observed: observed.clone(),
        taken,
        live: whole.then_some(loaded.bytes),
        written: loaded.bytes,
        hash: Hashes::default(),
        options: options.map(|(name, rows)| (name.to_owned(), rows.to_string())).into(),
        driver_us: None,
    }
}

/// The digests of requests, as far as they are the same on every engine.
///
/// 1. The operations are the same without a rate and a warm-up, if all were done.
/// 2. A single client has the digests of its first operations, whether or not the clock ended the row: on one engine the clock may end
///    it, and on another not.
/// 3. Only a single client reads the same in every run: with several, results depend on their order. So a row can be compared if
///    it is the `first` one on its database.
fn hashes(config: &Config, done: &Done, first: bool) -> Hashes {
    if config.rate > 0.0 || config.warmup > 0.0 {
        return Hashes::default();
    }
    let hex = |sum: u64| format!("{sum:016x}");
    let single = config.requesters == 1;
    let sums = if single { done.first } else { Some(done.sums).filter(|_| !done.cut) };
    let alone = single && first;
    Hashes {
        ops: sums.map(|sums| hex(sums.asked)),
        reads: sums.filter(|_| alone).map(|sums| hex(sums.read)),
        data: None,
    }
}

/// The row of requests; `first` if no others ran on the database before.
pub fn request(
    config: &Config,
    step: &Step,
    done: &Done,
    observed: &Observed,
    taken: Taken,
    first: bool,
) -> Row {
    let seconds = done.meter.elapsed().as_secs_f64();
    let lists = done.meter.latencies().get("GET_LINKS_LIST").map_or(0, |list| list.count);
    let options = [
        ("links per list", format!("{:.1}", done.listed as f64 / lists.max(1) as f64)),
        ("conflicts", done.conflicts.to_string()),
        ("link lists checked meanwhile", done.faults.fans.to_string()),
    ];
    Row {
        name: step.row.clone(),
        title: step.title.clone(),
        workload: REQUESTS,
        status: status(step, done, seconds),
        ops: Ops {
            errors: done.failed,
            ..ops(done.ops, Some(done.found), done.written, seconds, step.clients, observed)
        },
        seconds,
        clients: step.clients,
        limit: if done.cut { Limit::Time } else { Limit::Count },
        latencies: done.meter.latencies(),
        per_second: done.meter.seconds().to_vec(),
        observed: observed.clone(),
        taken,
        live: None,
        written: done.written,
        hash: hashes(config, done, first),
        options: options.map(|(name, text)| (name.to_owned(), text)).into(),
        driver_us: None,
    }
}

/// Why the figures of requests do not count, if they do not.
fn status(step: &Step, done: &Done, seconds: f64) -> Status {
    if let Some(why) = done.faults.why() {
        return Status::Void { why };
    }
    if let Some(why) = &done.failure {
        return Status::Void {
            why: format!("{} of {} operations failed, the first: {why}", done.failed, done.ops),
        };
    }
    let late = done.late.as_secs_f64();
    if step.rate > 0.0 && (done.gave_up || late > LATE * seconds) {
        let why = format!(
            "the clients fell behind: {:.0} operations a second were due, {:.0} were done, and the row ended {late:.3} s late",
            step.rate,
            done.ops as f64 / seconds.max(1e-9)
        );
        return Status::Void { why };
    }
    Status::Ok
}

fn ops(total: u64, found: Option<u64>, bytes: u64, seconds: f64, threads: u32, observed: &Observed) -> Ops {
    let each = |seconds: f64| seconds * 1e6 / total.max(1) as f64;
    Ops {
        total,
        per_sec: total as f64 / seconds.max(1e-9),
        found,
        errors: 0,
        user_bytes: bytes,
        us_wall_op: each(seconds),
        us_thread_op: Some(each(seconds * f64::from(threads))),
        us_cpu_op: Some(each(observed.settled.cpu)),
        us_cpu_thread_op: None,
        driver_overhead_us: None,
        instructions_op: None,
    }
}

impl Row {
    /// The record of the row.
    pub fn record(self, job: &Job) -> Record {
        let mut params = Params { limit: self.limit, ..params(job, self.clients) };
        params.options.extend(self.options);
        let observed = &self.observed;
        let mut record = Record {
            schema: SCHEMA,
            experiment: job.experiment.clone(),
            row: self.name,
            title: self.title,
            workload: self.workload.to_owned(),
            class: job.settings.class,
            size: job.size.clone(),
            status: self.status,
            engine: Engine { name: job.engine.text().to_owned(), ..Engine::default() },
            params,
            ops: Some(Ops { driver_overhead_us: self.driver_us, ..self.ops }),
            phase: Some(Phase {
                seconds: self.seconds,
                settle_seconds: Some(observed.settling()),
                load_seconds: None,
            }),
            latency_us: self.latencies,
            mem: Memory { configured_bytes: Some(job.settings.memory_bytes()), ..Memory::default() },
            hash: self.hash,
            ..Record::default()
        };
        observed.fill(
            &Observation {
                writes: true,
                bytes: Some(self.written),
                taken: self.taken,
                live: self.live,
                seconds: &self.per_second,
            },
            &mut record,
        );
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::phase::load::Loaded;
    use ashlar_peers::meter::Meter;
    use clap::Parser;
    use std::time::Duration;

    fn job() -> Job {
        Cli::try_parse_from(["ashlar-linkbench"]).unwrap().plan().unwrap().cases.remove(0)
    }

    /// The record of a load that wrote 1000 bytes into a directory of 4000.
    fn loaded(part: Part) -> Record {
        let (job, config) = (job(), Config::builtin(&[], true).unwrap());
        let loaded = Loaded { nodes: 10, links: 30, counts: 5, bytes: 1000, ..Loaded::default() };
        let all = Load { part, loaded, meter: Meter::new(0.0) };
        let taken = Taken { allocated: 4000, apparent: 4000 };
        load(&job, &config, &all, &Observed::default(), taken).record(&job)
    }

    /// Its rows and seconds are those of the rest, and its directory has everything.
    #[test]
    fn the_rest_of_an_interrupted_load_does_not_count() {
        let all = loaded(Part::All);
        assert_eq!((all.counts(), all.space.logical_live, all.amp.sa_du), (true, Some(1000), Some(4.0)));
        let rest = loaded(Part::Rest);
        assert_eq!(rest.status.text(), "void: the load continued an interrupted one");
        assert_eq!((rest.counts(), rest.space.logical_live, rest.amp.sa_du), (false, None, None));
    }

    /// The smallest size shows that the device case works; nothing in it waits for the device.
    #[test]
    fn a_limit_that_the_data_fits_is_said() {
        let said = |size: &str, case: &str| {
            let args = ["ashlar-linkbench", "--size", size, "--cases", case];
            let job = Cli::try_parse_from(args).unwrap().plan().unwrap().cases.remove(0);
            params(&job, 1)
                .options
                .get("memory limit")
                .is_some_and(|text| text.starts_with("not below the data"))
        };
        assert_eq!([said("smoke", "device"), said("smoke", "cached")], [true, false]);
        assert!(!said("quarter", "device"));
    }

    fn step(rate: f64) -> Step {
        let (row, title) = ("r".to_owned(), "t".to_owned());
        Step { row, title, clients: 4, requests: u64::MAX, seconds: 60.0, rate }
    }

    #[test]
    fn a_row_with_a_rate_is_void_if_it_ends_late_or_gives_up_and_not_if_its_gaps_were_long() {
        let done = |late, gave_up| Done { late, gave_up, ops: 100, ..Done::new(60.0) };
        let why = |done: &Done, rate| status(&step(rate), done, 60.0).text();
        assert_eq!(why(&done(Duration::from_millis(5900), false), 1e6), "", "few operations are no reason");
        let late = why(&done(Duration::from_millis(6100), false), 1000.0);
        assert!(
            late.contains("fell behind: 1000 operations a second") && late.contains("6.100 s late"),
            "{late}"
        );
        assert!(why(&done(Duration::ZERO, true), 1000.0).contains("fell behind"));
        assert_eq!(why(&done(Duration::from_secs(60), true), 0.0), "", "without a rate nothing is due");
    }

    /// Rows that the clock ends do different numbers of operations on each engine: their first ones are compared.
    #[test]
    fn one_client_is_compared_at_every_size() {
        let config = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
            Config::builtin(&overrides, true).unwrap()
        };
        let sums = |asked, read| crate::phase::Sums { asked, read };
        let done = Done { cut: true, sums: sums(9, 9), first: Some(sums(1, 2)), ..Done::new(0.0) };
        let texts = |hashes: Hashes| (hashes.ops.is_some(), hashes.reads);
        let first = Some(format!("{:016x}", 2));
        assert_eq!(texts(hashes(&config(&[]), &done, true)), (true, first));
        assert_eq!(texts(hashes(&config(&[]), &done, false)), (true, None), "earlier rows wrote");
        let whole = Done { cut: false, ..done.clone() };
        // Another engine may not have done all: only the first ones can be compared.
        assert_eq!(hashes(&config(&[]), &whole, true), hashes(&config(&[]), &done, true));
        assert!(hashes(&config(&["requesters=2"]), &whole, true).ops.is_some());
        assert_eq!(hashes(&config(&["requesters=2"]), &done, true), Hashes::default());
        assert_eq!(texts(hashes(&config(&["requesters=2"]), &whole, true)), (true, None));
        for other in ["requestrate=5", "warmup_time=1"] {
            assert_eq!(texts(hashes(&config(&[other]), &whole, true)), (false, None), "{other}");
        }
    }
}
