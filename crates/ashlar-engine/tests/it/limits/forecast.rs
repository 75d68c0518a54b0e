//! `pressure()` announces stops: writers are stopped in five ways, four times each, by a steady load on the simulated
//! machine. Of twenty stops, eighteen must be announced a second before, and half of these announcements must be right within
//! a factor of two.

use ashlar_base::ErrorKind;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Clock;
use ashlar_env::sim::SimEnv;
use ashlar_format::compress::Compression;
use ashlar_options::{DbOptions, FamilyOptions, WriteOptions};
use ashlar_testkit::{Rng, report};
use std::path::Path;
use std::time::Duration;

const VALUE: usize = 8000;
const BUFFER: usize = 512 << 10;
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// A load that is not stopped within this time is a mistake of the test.
const LONGEST: Duration = Duration::from_secs(400);

#[derive(Clone, Copy, Debug)]
enum Way {
    /// Level 0 fills beside long compactions.
    Level0,
    /// Level 0 fills while compactions are aborted.
    Aborted,
    /// Debt grows.
    Debt,
    /// Flushes are slower than the writers.
    Memtables,
    /// Flushes are slower than the writers, and the cap on memory is small.
    Memory,
}

const WAYS: [Way; 5] = [Way::Level0, Way::Aborted, Way::Debt, Way::Memtables, Way::Memory];

/// The settings of a way, and the bytes per second that writers ask for. `n` is 0 to 3.
fn settings(way: Way, n: u64) -> (DbOptions, FamilyOptions, u64) {
    let mut family =
        FamilyOptions { write_buffer_bytes: BUFFER, max_write_buffers: 6, ..FamilyOptions::default() };
    family.table.compression = Compression::None;
    let c = &mut family.compaction;
    (c.l0_trigger, c.l0_slowdown, c.l0_stop) = (4, 60, 70);
    let mut db = DbOptions { rate_limit_bytes: 4_000_000, ..DbOptions::default() };
    let mut load = 1_500_000 + 300_000 * n;
    match way {
        Way::Level0 => (c.l0_slowdown, c.l0_stop) = (8, 12),
        Way::Aborted => {
            (c.l0_slowdown, c.l0_stop) = (16, 20);
            db.rate_limit_bytes = 0;
        }
        Way::Debt => {
            (c.soft_debt_bytes, c.hard_debt_bytes) = ((28 + 4 * n) << 20, (30 + 4 * n) << 20);
            (c.l0_slowdown, c.l0_stop) = (900, 1000);
        }
        Way::Memtables => {
            (db.rate_limit_bytes, load) = (400_000 + 50_000 * n, 800_000);
            c.automatic = false;
        }
        Way::Memory => {
            (db.memory_bytes, db.db_write_buffer_bytes) = (32 << 20, (4 << 20) + (n << 20));
            (db.rate_limit_bytes, load) = (500_000, 1_000_000);
            (family.write_buffer_bytes, family.max_write_buffers) = (8 << 20, 16);
            family.compaction.automatic = false;
        }
    }
    (db, family, load)
}

fn stops(db: &Db) -> u64 {
    let family = db.family("default").expect("always there");
    let counts = db.property_map(&family, "rocksdb.cf-write-stall-stats").expect("a map");
    counts["total-stops"].parse().expect("a number")
}

/// Writes until the first stop. Returns its time, and at each look before it the time and what was announced.
fn stopped(way: Way, n: u64) -> (Duration, Vec<(Duration, Option<Duration>)>) {
    let sim = SimEnv::new(40 + n);
    let (options, family, load) = settings(way, n);
    let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
    let db = Db::open(sim.env(), Path::new("/data/db"), options, vec![default], family).expect("opens");
    let id = db.family("default").expect("always there").id();
    if matches!(way, Way::Aborted) {
        db.abort_compactions().expect("none begins");
    }
    let pause = Duration::from_secs_f64(VALUE as f64 / load as f64);
    let (mut looks, mut rng, mut due) = (Vec::new(), Rng::new(n), sim.clock().now());
    let began = due;
    loop {
        let now = sim.clock().now();
        assert!(now - began < LONGEST, "{way:?} {n}: no stop; {:?}", db.pressure());
        if looks.last().is_none_or(|(at, _)| now >= *at + LOOK) {
            let told = db.pressure();
            if told.stopped {
                return (now, looks);
            }
            looks.push((now, told.time_to_stop));
        }
        let mut batch = WriteBatch::new();
        batch.put(id, format!("{:08}", rng.below(4000)).as_bytes(), &[7; VALUE]).expect("small");
        match db.write(&mut batch, WriteOptions::default()) {
            Ok(_) => {}
            // Nothing would end the stop.
            Err(e) if e.kind() == ErrorKind::Aborted => return (now, looks),
            Err(e) => panic!("{e}"),
        }
        if sim.clock().now() > now + LOOK && stops(&db) > 0 {
            return (now, looks);
        }
        // A step of a job may end later: then writers catch up. Writers that were slowed do not make up for all of it.
        let behind = if matches!(way, Way::Memtables | Way::Memory) { 10_000 } else { 50 };
        due = (due + pause).max(now.saturating_sub(Duration::from_millis(behind)));
        while sim.clock().now() < due {
            if sim.env().jobs.drive(1) == 0 {
                sim.clock().sleep(due.saturating_sub(sim.clock().now()));
            }
        }
    }
}

#[test]
fn stops_are_announced() {
    let _readers = crate::beside_others();
    let (mut announced, mut close) = (0, 0);
    for way in WAYS {
        for n in 0..4 {
            let (stop, looks) = stopped(way, n);
            // The announcements from five seconds to one second before the stop.
            let heard: Vec<_> = looks
                .iter()
                .filter(|(at, _)| (Duration::from_secs(1)..Duration::from_secs(5)).contains(&(stop - *at)))
                .map(|(at, told)| ((stop - *at).as_secs_f64(), told.map(|told| told.as_secs_f64())))
                .collect();
            if let Some((real, Some(told))) = heard.last() {
                announced += 1;
                close += usize::from(*told <= real * 2.0 && *told >= real / 2.0);
            }
            let said: Vec<String> = heard
                .iter()
                .step_by(heard.len().div_ceil(6).max(1))
                .map(|(real, told)| format!("{real:.1}: {}", told.map_or("-".into(), |t| format!("{t:.1}"))))
                .collect();
            report::figure(&format!(
                "forecast: {way:?} {n}, seconds before the stop, and what was announced: {}",
                said.join(", ")
            ));
        }
    }
    report::figure(&format!("forecast: {announced} of 20 stops announced, {close} within a factor of two"));
    assert!(announced >= 18 && close >= 10, "{announced} announced, {close} within a factor of two");
}
