//! Writes the page of `ashlar bench --report=FILE`: the measurements as records of one engine.

use ashlar_base::Result;
use ashlar_bench::{Done, Measured, Plan, Work};
use ashlar_env::{Env, ReadFile};
use ashlar_report::machine::Machine;
use ashlar_report::record::{
    Engine, Header, Latency, Limit, Ops, Params, Phase, Record, Run, SCHEMA, Series,
};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Writes the page of this run.
///
/// # Errors
/// `Io`.
pub(super) fn write(env: &Env, path: &Path, done: &Done, words: &[String]) -> Result<()> {
    let folder = done.flags.db.as_ref().map_or_else(std::env::temp_dir, |db| Path::new(db).to_path_buf());
    let machine = Machine::read(&folder, &|path| Some(text(&*env.fs.open_read(path).ok()?)));
    let now = env.clock.unix_micros();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let header = Header {
        schema: SCHEMA,
        run_id: format!("{now:x}"),
        time: ashlar_bench::utc(now),
        suite_version: version.clone(),
        suite_commit: None,
        command: format!("ashlar bench {}", words.join(" ")),
        machine,
    };
    let mut reps: HashMap<&str, u32> = HashMap::new();
    let records = (1..).zip(&done.measured).map(|(order, (plan, measured))| {
        let rep = reps.entry(plan.name).and_modify(|rep| *rep += 1).or_insert(1);
        Record { rep: *rep, order, ..record(done, plan, measured, &version) }
    });
    let run = Run { headers: vec![header], records: records.collect() };
    env.fs.create(path)?.write_at(ashlar_report::page(&run).as_bytes(), 0)
}

/// Reads a file whose length is unknown before the read.
fn text(file: &dyn ReadFile) -> String {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(got @ 1..) = file.read_at(&mut part, all.len() as u64) {
        all.extend_from_slice(part.get(..got).unwrap_or_default());
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn record(done: &Done, plan: &Plan, measured: &Measured, version: &str) -> Record {
    let reads =
        matches!(plan.work, Work::Get | Work::MultiGet | Work::Scan { .. } | Work::Seek | Work::NewCursor);
    let mib = measured.mb_per_sec.unwrap_or_default() * measured.seconds;
    let series = Series { interval_s: 1.0, ops: measured.per_second.clone(), ..Series::default() };
    Record {
        schema: SCHEMA,
        experiment: "free".to_owned(),
        row: plan.name.to_owned(),
        title: plan.name.to_owned(),
        workload: plan.name.to_owned(),
        engine: Engine { name: "ashlardb".to_owned(), version: version.to_owned() },
        params: params(done, plan),
        ops: Some(Ops {
            total: measured.operations,
            per_sec: measured.ops_per_sec,
            found: reads.then(|| found(measured)),
            user_bytes: whole(mib * 1_048_576.0),
            us_wall_op: measured.seconds * 1e6 / measured.operations.max(1) as f64,
            us_thread_op: Some(measured.micros_per_op),
            ..Ops::default()
        }),
        phase: Some(Phase { seconds: measured.seconds, ..Phase::default() }),
        latency_us: latencies(measured),
        series: (!series.ops.is_empty()).then_some(series),
        ..Record::default()
    }
}

fn params(done: &Done, plan: &Plan) -> Params {
    let flags = &done.flags;
    let durability = match (flags.disable_wal, flags.sync) {
        (true, _) => "nolog",
        (false, true) => "sync",
        (false, false) => "async",
    };
    Params {
        keys: plan.keys,
        key_bytes: flags.key_bytes(),
        value_bytes: flags.value_size,
        compress_ratio: Some(flags.compression_ratio),
        threads: u32::try_from(plan.threads).unwrap_or(u32::MAX),
        codec: Some(flags.compression_type.to_ascii_lowercase()),
        durability: durability.to_owned(),
        cache_bytes: flags.cache_size,
        write_buffer_bytes: flags.write_buffer_size,
        block_bytes: flags.block_size,
        batch: plan.batch,
        seed: done.seed,
        limit: if plan.duration.is_some() { Limit::Time } else { Limit::Count },
        ..Params::default()
    }
}

/// The 63 of the message `(63 of 100 found)`. Each operation of a scan finds an entry.
fn found(measured: &Measured) -> u64 {
    let message = measured.message.as_deref().and_then(|text| text.strip_prefix('('));
    let first = message.and_then(|text| text.split(' ').next()?.parse().ok());
    first.unwrap_or(measured.operations)
}

fn latencies(measured: &Measured) -> BTreeMap<String, Latency> {
    let latency = |histogram: &ashlar_base::stats::Histogram| Latency {
        count: histogram.count(),
        mean: histogram.average(),
        p50: histogram.percentile(50.0),
        p75: histogram.percentile(75.0),
        p90: histogram.percentile(90.0),
        p95: histogram.percentile(95.0),
        p99: histogram.percentile(99.0),
        p999: histogram.percentile(99.9),
        p9999: histogram.percentile(99.99),
        max: histogram.max() as f64,
        ..Latency::default()
    };
    measured.histograms.iter().map(|(kind, h)| (kind.name().to_owned(), latency(h))).collect()
}

// Sizes are positive and far below 2^53.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}
