//! `pressure()` announces stops: writers are stopped in five ways, four times each, by a steady load on the simulated
//! machine. A forecast is scored at every look from five seconds to one second before a stop. Under loads that background
//! work carries, any announcement of a near stop is an alarm. So no constant passes, and neither does a forecast that
//! announces nothing.

use ashlar_base::ErrorKind;
use ashlar_base::error::IoKind;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::pressure::DiskLimits;
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
/// How long a load that background work carries is looked at.
const CALM: Duration = Duration::from_secs(120);
/// A stop that is announced for a nearer time is an alarm where none comes.
const NEAR: f64 = 30.0;

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

/// What was announced at one time.
struct Look {
    at: Duration,
    /// Writers are slowed.
    slowed: bool,
    /// Seconds to the stop.
    told: Option<f64>,
    /// The same by the formula that the present one replaced: the space in level 0, or below the bound of debt, over the growth
    /// of debt.
    replaced: Option<f64>,
}

impl Look {
    fn new(at: Duration, db: &Db, options: &FamilyOptions) -> Look {
        let now = db.pressure();
        let family = db.family("default").expect("always there");
        let level0 = db.property(&family, "rocksdb.num-files-at-level0").expect("there");
        let level0: u64 = level0.parse().expect("a number");
        let compaction = &options.compaction;
        let level0 = (compaction.l0_stop as u64).saturating_sub(level0) * options.write_buffer_bytes as u64;
        let left = compaction.debt_bounds().1.saturating_sub(now.debt_bytes).min(level0);
        let growth = now.inflow_rate * now.drain_rate / now.sustained_rate - now.drain_rate;
        let replaced = (growth >= 1.0 && compaction.works()).then(|| left as f64 / growth);
        let slowed = !now.delay_per_mebibyte.is_zero();
        Look { at, slowed, told: now.time_to_stop.map(|told| told.as_secs_f64()), replaced }
    }
}

fn stops(db: &Db) -> u64 {
    let family = db.family("default").expect("always there");
    let counts = db.property_map(&family, "rocksdb.cf-write-stall-stats").expect("a map");
    counts["total-stops"].parse().expect("a number")
}

/// A database under a load.
struct Load {
    sim: SimEnv,
    db: Db,
    options: FamilyOptions,
    way: Way,
    /// Bytes per second that writers ask for, at first and later.
    rates: [u64; 2],
    rng: Rng,
    began: Duration,
    /// When the next write is due.
    due: Duration,
    looks: Vec<Look>,
}

impl Load {
    /// Until then the load is the first one.
    const FIRST: Duration = Duration::from_secs(40);

    fn new(way: Way, n: u64) -> Load {
        let sim = SimEnv::new(40 + n);
        let (options, family, load) = settings(way, n);
        let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
        let db = Db::open(sim.env(), Path::new("/data/db"), options, vec![default], family.clone());
        let db = db.expect("opens");
        if matches!(way, Way::Aborted) {
            db.abort_compactions().expect("none begins");
        }
        // The first flushes are measured before the load comes that is too much for them.
        let first = if matches!(way, Way::Memory) { load / 4 } else { load };
        let began = sim.clock().now();
        let (rates, looks) = ([first, load], Vec::new());
        Load { sim, db, options: family, way, rates, rng: Rng::new(n), began, due: began, looks }
    }

    fn now(&self) -> Duration {
        self.sim.clock().now()
    }

    /// Looks if it is time. True: writers are stopped.
    fn look(&mut self) -> bool {
        let now = self.now();
        if self.looks.last().is_some_and(|last| now < last.at + LOOK) {
            return false;
        }
        let is_stopped = self.db.pressure().stopped;
        if !is_stopped {
            self.looks.push(Look::new(now, &self.db, &self.options));
        }
        is_stopped
    }

    /// Writes once, and waits until the next write is due. True: the write was stopped.
    fn write(&mut self) -> bool {
        let before = self.now();
        let mut batch = WriteBatch::new();
        let key = format!("{:08}", self.rng.below(4000));
        batch.put(ashlar_base::FamilyId::DEFAULT, key.as_bytes(), &[7; VALUE]).expect("small");
        match self.db.write(&mut batch, WriteOptions::default()) {
            Ok(_) => {}
            // Nothing would end the stop; or the quota is used up.
            Err(e) if matches!(e.kind(), ErrorKind::Aborted | ErrorKind::Io(IoKind::NoSpace)) => return true,
            Err(e) => panic!("{e}"),
        }
        if self.now() > before + LOOK && stops(&self.db) > 0 {
            return true;
        }
        let rate = self.rates[usize::from(before - self.began >= Load::FIRST)];
        let pause = Duration::from_secs_f64(VALUE as f64 / rate as f64);
        // A step of a job may end later: then writers catch up. Writers that were slowed do not make up for all of it.
        let behind = if matches!(self.way, Way::Memtables | Way::Memory) { 10_000 } else { 50 };
        self.due = (self.due + pause).max(before.saturating_sub(Duration::from_millis(behind)));
        while self.now() < self.due {
            if self.sim.env().jobs.drive(1) == 0 {
                self.sim.clock().sleep(self.due.saturating_sub(self.now()));
            }
        }
        false
    }
}

/// Writes until the first stop. Returns the looks from five seconds to one second before it, with the seconds to the stop.
fn stopped(way: Way, n: u64) -> Vec<(f64, Look)> {
    let mut load = Load::new(way, n);
    let mut now = load.now();
    while !load.look() && !load.write() {
        now = load.now();
        assert!(now - load.began < LONGEST, "{way:?} {n}: no stop; {:?}", load.db.pressure());
    }
    let looks = load.looks.into_iter().map(|look| ((now.saturating_sub(look.at)).as_secs_f64(), look));
    looks.filter(|(real, _)| (1.0..=5.0).contains(real)).collect()
}

/// A part of the load, in per cent: no stop comes.
fn calm(way: Way, part: u64) -> Vec<Look> {
    let mut load = Load::new(way, 0);
    load.rates = load.rates.map(|rate| rate * part / 100);
    while load.now() - load.began < CALM {
        assert!(!load.look() && !load.write(), "{way:?} is stopped");
    }
    load.looks
}

/// How good a forecast is.
#[derive(Debug, PartialEq)]
struct Score {
    /// Stops that were announced at the last look a second before.
    announced: usize,
    /// The part of the looks before the stops that announce a time within a factor of two, per cent.
    close: usize,
    /// The number of looks under a calm load that announced a near stop.
    alarms: usize,
    /// Announced times over the true ones, at the looks nearest to 5, 3 and 1 seconds: the medians.
    medians: [f64; 3],
}

impl Score {
    fn of(stops: &[Vec<(f64, Look)>], calm: &[Look], told: impl Fn(&Look) -> Option<f64>) -> Score {
        let all: Vec<_> = stops.iter().flatten().map(|(real, look)| (*real, told(look))).collect();
        let close = all
            .iter()
            .filter(|(real, told)| told.is_some_and(|told| told <= real * 2.0 && told >= real / 2.0));
        let median = |at: f64| {
            let nearest = |looks: &Vec<(f64, Look)>| {
                let (real, look) =
                    looks.iter().min_by(|(a, _), (b, _)| (a - at).abs().total_cmp(&(b - at).abs()))?;
                Some(told(look).map_or(f64::INFINITY, |told| told / real))
            };
            let mut ratios: Vec<_> = stops.iter().filter_map(nearest).collect();
            ratios.sort_by(f64::total_cmp);
            ratios.get(ratios.len() / 2).copied().unwrap_or(f64::INFINITY)
        };
        let last = |looks: &&Vec<(f64, Look)>| looks.last().is_some_and(|(_, look)| told(look).is_some());
        Score {
            announced: stops.iter().filter(last).count(),
            close: close.count() * 100 / all.len().max(1),
            alarms: calm.iter().filter(|look| told(look).is_some_and(|told| told < NEAR)).count(),
            medians: [5.0, 3.0, 1.0].map(median),
        }
    }

    fn passes(&self) -> bool {
        self.announced >= 18 && self.close >= CLOSE && self.alarms == 0
    }
}

/// A quota of disk space is used up by a steady load.
#[test]
fn a_full_quota_is_announced() {
    let _readers = crate::beside_others();
    for n in 0..4 {
        let mut load = Load::new(Way::Aborted, n);
        load.db.limit_disk(DiskLimits { quota: 9 << 20, reserve: 0 }).expect("open");
        let mut looks = Vec::new();
        while !load.write() {
            looks.push((load.now(), load.db.pressure().time_to_full));
            assert!(load.now() - load.began < LONGEST, "no refusal; {:?}", load.db.pressure());
        }
        let end = load.now();
        assert_eq!(stops(&load.db), 0, "the quota, not a stop");
        for _ in 0..100 {
            assert_eq!(load.db.pressure().time_to_full, Some(Duration::ZERO), "writes are refused");
            load.sim.clock().sleep(Duration::from_secs(10));
        }
        let near = |(at, told): &(Duration, Option<Duration>)| {
            let real = (end - *at).as_secs_f64();
            (1.0..=3.0).contains(&real).then(|| told.map_or(f64::INFINITY, |told| told.as_secs_f64() / real))
        };
        let ratios: Vec<f64> = looks.iter().filter_map(near).collect();
        let close = ratios.iter().filter(|ratio| (0.5..=2.0).contains(*ratio)).count();
        assert!(close * 100 >= ratios.len() * CLOSE && ratios.len() > 100, "{n}: {close} of {ratios:?}");
    }
}

/// The least part of the looks that are close, per cent.
const CLOSE: usize = 50;

#[test]
fn stops_are_announced() {
    let _readers = crate::beside_others();
    let mut before_stops = Vec::new();
    for way in WAYS {
        for n in 0..4 {
            let looks = stopped(way, n);
            let step = looks.len().div_ceil(6).max(1);
            let said: Vec<String> = looks
                .iter()
                .step_by(step)
                .map(|(real, look)| {
                    format!("{real:.1}: {}", look.told.map_or("-".into(), |t| format!("{t:.1}")))
                })
                .collect();
            report::figure(&format!(
                "forecast: {way:?} {n}, seconds before the stop, and what was announced: {}",
                said.join(", ")
            ));
            before_stops.push(looks);
        }
    }
    let parts = [(Way::Level0, 15), (Way::Debt, 15), (Way::Memtables, 40), (Way::Memory, 25)];
    let quiet: Vec<Look> = parts.into_iter().flat_map(|(way, part)| calm(way, part)).collect();
    assert!(quiet.iter().all(|look| !look.slowed), "writers are slowed");
    for way in [Way::Level0, Way::Debt] {
        let busy = calm(way, 40);
        let slowed = busy.iter().filter(|look| look.slowed).count();
        let alarms = Score::of(&[], &busy, |look| look.told).alarms;
        report::figure(&format!(
            "forecast: a load just below the stop, {way:?}: {} looks, {slowed} while writers were slowed, {alarms} alarms",
            busy.len()
        ));
    }
    let ours = Score::of(&before_stops, &quiet, |look| look.told);
    let replaced = Score::of(&before_stops, &quiet, |look| look.replaced);
    let count = |looks: &[Vec<(f64, Look)>]| looks.iter().map(Vec::len).sum::<usize>();
    report::figure(&format!(
        "forecast: {} looks before 20 stops, {} without: {ours:?}",
        count(&before_stops),
        quiet.len()
    ));
    report::figure(&format!("forecast: the formula that was replaced: {replaced:?}"));
    assert!(ours.passes(), "{ours:?}");
    for constant in [None, Some(0.5), Some(1.5), Some(2.5), Some(4.0), Some(60.0)] {
        let score = Score::of(&before_stops, &quiet, |_| constant);
        assert!(!score.passes(), "{constant:?}: {score:?}");
    }
}
