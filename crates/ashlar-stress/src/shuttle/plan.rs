//! The plan of a case, drawn from its seed: settings, threads, the failing call, the crash.

use super::actors::Actor;
use super::history::FAMILIES;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_blob::BlobOptions;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, CrashMode, DataMode, DirMode, Repeat};
use ashlar_options::{CompactionOptions, DbOptions, FamilyOptions};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::MERGE_OPERATOR;
use std::path::Path;

/// The directory of the database on its machine.
const DIR: &str = "/db";

/// A case.
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// The threads.
    pub actors: Vec<Actor>,
    /// Writers among them.
    pub writers: usize,
    /// Bytes of a value: so large that a few batches fill a memtable, or not.
    pub value_bytes: usize,
    /// Settings, with everything small.
    pub db: DbOptions,
    /// The settings of every family.
    pub family: FamilyOptions,
    /// Threads that compact.
    pub low: usize,
    /// The call that fails, counted from the open, and whether all later ones do.
    pub fault: Option<(CallClass, u64, Repeat)>,
    /// The changing call, counted from the open, that the machine crashes before.
    pub crash: Option<(u64, CrashMode)>,
    /// Decides the rest.
    pub rng: Rng,
}

impl Plan {
    /// The case of a seed.
    pub fn draw(seed: u64) -> Plan {
        let mut rng = Rng::new(seed);
        let writers = rng.between(1, 3);
        let mut actors: Vec<Actor> =
            (0..writers).map(|writer| Actor::Writer { writer, batches: rng.between(3, 16) as u64 }).collect();
        actors.extend((0..rng.between(1, 2)).map(|_| Actor::Reader));
        for (actor, percent) in [(Actor::Upkeep, 75), (Actor::Families, 30), (Actor::Closer, 35)] {
            actors.extend(rng.percent(percent).then_some(actor));
        }
        let (mut fault, mut crash) = (None, None);
        match rng.below(4) {
            0 => {
                let classes = [CallClass::Sync, CallClass::Write, CallClass::Read, CallClass::Any];
                let class = *rng.pick(&classes).unwrap_or(&CallClass::Any);
                let repeat = if rng.percent(30) { Repeat::Sticky } else { Repeat::Once };
                fault = Some((class, rng.between(1, 40) as u64, repeat));
            }
            1 | 2 => crash = Some((rng.between(1, 80) as u64, mode(&mut rng))),
            _ => {}
        }
        Plan {
            seed,
            actors,
            writers,
            value_bytes: *rng.pick(&[10, 3000, 12_000]).unwrap_or(&10),
            db: database(&mut rng),
            family: family(&mut rng),
            low: rng.between(1, 2),
            fault,
            crash,
            rng,
        }
    }

    /// Opens the database of a machine.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self, env: Env) -> Result<Db, String> {
        let listed = |name: &str| OpenFamily { name: name.to_owned(), options: self.family.clone() };
        let families = FAMILIES.map(listed).to_vec();
        Db::open(env, Path::new(DIR), self.db.clone(), families, self.family.clone())
            .map_err(|e| format!("open: {e}"))
    }
}

fn database(rng: &mut Rng) -> DbOptions {
    DbOptions {
        block_cache_bytes: 1 << 20,
        max_open_files: *rng.pick(&[-1, 1, 3]).unwrap_or(&-1),
        atomic_flush: rng.percent(20),
        manual_wal_flush: rng.percent(20),
        max_total_wal_bytes: if rng.percent(30) { 100 << 10 } else { 0 },
        mapped_wal: rng.percent(30),
        ..DbOptions::default()
    }
}

fn family(rng: &mut Rng) -> FamilyOptions {
    FamilyOptions {
        merge_operator: standard_operator(MERGE_OPERATOR),
        write_buffer_bytes: 64 << 10,
        max_write_buffers: rng.between(2, 3),
        compaction: CompactionOptions {
            l0_trigger: 2,
            l0_slowdown: 3,
            l0_stop: rng.between(4, 6),
            target_file_bytes: 16 << 10,
            base_level_bytes: 32 << 10,
            level_multiplier: 4.0,
            ..CompactionOptions::default()
        },
        blob: BlobOptions {
            enabled: rng.percent(25),
            min_blob_bytes: 100,
            file_bytes: 32 << 10,
            collect_garbage: true,
            age_cutoff: 0.5,
            ..BlobOptions::default()
        },
        ..FamilyOptions::default()
    }
}

fn mode(rng: &mut Rng) -> CrashMode {
    match rng.below(3) {
        0 => CrashMode::KILL,
        1 => CrashMode::DROP_ALL,
        _ => CrashMode { data: DataMode::Prefix, dirs: DirMode::Prefix },
    }
}
