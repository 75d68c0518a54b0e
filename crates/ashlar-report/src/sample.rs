//! A made-up run, for tests of pages and tables.

use crate::record::{Header, Latency, Ops, Phase, Record, Run, SCHEMA, Series, Status};

/// Five engines, five rows of the page of 2011, three repetitions; one engine is missing.
pub fn comparison() -> Run {
    let rows = [
        ("1A", "sequential reads", "readseq", 6_000_000.0),
        ("1B", "random reads", "readrandom", 900_000.0),
        ("1C", "sequential writes", "fillseq", 1_200_000.0),
        ("1D", "random writes", "fillrandom", 500_000.0),
        ("2D-rand", "random writes, no compression", "fillrandom", 450_000.0),
    ];
    let engines = [("leveldb", 0.6), ("treedb", 0.0), ("rocksdb", 0.8), ("ashlardb", 1.0), ("lmdb", 0.9)];
    let header = Header {
        schema: SCHEMA,
        run_id: "sample".into(),
        time: "2026-01-31T12:00:00Z".into(),
        command: "ashlar-compare --experiment s3".into(),
        suite_version: "0.1.0".into(),
        ..Header::default()
    };
    let mut run = Run { headers: vec![header], records: Vec::new() };
    for rep in 1..=3 {
        for (order, (engine, speed)) in (1..).zip(engines) {
            for (row, title, workload, rate) in rows {
                let mut record = match engine {
                    "treedb" => {
                        let why = "no library libkyotocabinet".into();
                        Record::without_figures(engine, Status::NotHere { why })
                    }
                    _ => measured(engine, workload, rate * speed * (1.0 + f64::from(rep) / 100.0)),
                };
                (record.rep, record.order, record.experiment) = (rep, order, "s3".into());
                (record.row, record.title) = (row.into(), title.into());
                (record.workload, record.size) = (workload.into(), Some("standard".into()));
                run.records.push(record);
            }
        }
    }
    run
}

fn measured(engine: &str, workload: &str, rate: f64) -> Record {
    let mut record = Record { schema: SCHEMA, workload: workload.into(), ..Record::default() };
    (record.engine.name, record.engine.version) = (engine.into(), "1.2.3".into());
    let reads = workload.starts_with("read");
    record.params.keys = 1_000_000;
    (record.params.key_bytes, record.params.value_bytes, record.params.threads) = (16, 100, 1);
    (record.params.durability, record.params.codec) = ("async".into(), Some("snappy".into()));
    (record.params.cache_bytes, record.params.compress_ratio) = (Some(4 << 20), Some(0.5));
    record.ops = Some(Ops {
        total: 1_000_000,
        per_sec: rate,
        found: reads.then_some(632_000),
        us_wall_op: 1e6 / rate,
        us_cpu_op: Some(1.3e6 / rate),
        ..Ops::default()
    });
    record.phase = Some(Phase { seconds: 1e6 / rate, settle_seconds: Some(0.2), load_seconds: None });
    let us = 1e6 / rate;
    let latency = Latency {
        count: 1_000_000,
        mean: us,
        p50: us * 0.8,
        p75: us,
        p90: us * 1.5,
        p95: us * 2.0,
        p99: us * 6.0,
        p999: us * 40.0,
        p9999: us * 300.0,
        max: us * 20_000.0,
        ..Latency::default()
    };
    record.latency_us.insert(if reads { "read" } else { "write" }.into(), latency);
    // Whole numbers of a second's operations, with a stall in the middle.
    let seconds = [1.0, 0.9, 0.95, 0.0, 1.1, 1.0];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ops = seconds.map(|part| (part * rate) as u64).to_vec();
    let longest_us = vec![2000, 3000, 2500, 0, 1_400_000, 900];
    let write_bytes =
        if reads { Vec::new() } else { vec![40 << 20, 90 << 20, 70 << 20, 95 << 20, 30 << 20, 40 << 20] };
    let (rss, du) = (vec![30 << 20; 6], vec![100 << 20; 6]);
    record.series = Some(Series { interval_s: 1.0, ops, longest_us, write_bytes, rss, du });
    record.mem.configured_bytes = Some(4 << 20);
    record.mem.rss_peak = Some(30 << 20);
    (record.cpu.vol_cs, record.cpu.invol_cs) = (Some(100), Some(20));
    record.cpu.minor_faults = Some(1_200_000);
    (record.io.syscw, record.io_end.syscr) = (Some(1000), Some(500_000));
    record.engine_counters.levels = vec![1, 4, 12];
    if reads {
        (record.amp.ra_sys, record.amp.ra_kb, record.amp.ra_blk) = (Some(0.5), Some(2.0), Some(2.1));
    } else {
        (record.amp.wa_proc, record.amp.wa_eng) = (Some(4.5), Some(4.4));
        (record.amp.sa_du, record.amp.sa_app) = (Some(0.9), Some(0.85));
    }
    record.hash.reads = Some("5e".into());
    record
}
