//! The plan of a run: settings and steps, drawn from its seed.

use super::expiring::TIMED;
use super::features::Feature;
use super::places::Places;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_engine::OpenFamily;
use ashlar_format::compress::Compression;
use ashlar_options::{
    BlobOptions, CompactionOptions, CompactionStyle, DbOptions, FamilyOptions, FormatLevel, WriteOptions,
};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::{MERGE_OPERATOR, Mix, Op, draw};

/// The family that is always there.
pub const DEFAULT: &str = "default";
/// The families of a history.
pub const NAMES: [&str; 3] = [DEFAULT, "one", "two"];

/// The settings of a store: small, so that a few hundred writes go through every background step.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The settings of the database.
    pub db: DbOptions,
    /// The settings of every family.
    pub family: FamilyOptions,
    /// No write is logged: what was not flushed, a crash takes. With one family only, for each keeps a prefix of its own.
    pub unlogged: bool,
    /// The time to live of the values of one more family, in seconds. Nothing by itself draws it, as the places.
    pub ttl_secs: Option<i32>,
    /// Where the files are. Nothing by itself draws them: a store on a real disk has all in one directory.
    pub places: Places,
}

impl Setup {
    /// Whether writes wait in the process for a flush of the log.
    pub fn holds_back(&self) -> bool {
        self.db.manual_wal_flush && !self.unlogged
    }

    /// Settings drawn from a generator: every size and switch that changes the way a store works.
    pub fn draw(rng: &mut Rng) -> Setup {
        let mut family = FamilyOptions {
            write_buffer_bytes: *rng.pick(&[64 << 10, 64 << 10, 128 << 10, 256 << 10]).unwrap_or(&(64 << 10)),
            max_write_buffers: rng.between(2, 4),
            merge_operator: standard_operator(MERGE_OPERATOR),
            compaction: CompactionOptions {
                l0_trigger: 2,
                l0_slowdown: 4,
                l0_stop: rng.between(5, 8),
                target_file_bytes: 32 << 10,
                base_level_bytes: 128 << 10,
                level_multiplier: 4.0,
                ..CompactionOptions::default()
            },
            blob: blobs(rng),
            ..FamilyOptions::default()
        };
        let max_total_wal_bytes = if rng.percent(30) { 200 << 10 } else { 0 };
        let wal_compression = if rng.percent(25) { Compression::Zstd } else { Compression::None };
        let format_level = if rng.percent(50) { FormatLevel::V7_8 } else { FormatLevel::default() };
        let unlogged = rng.percent(15);
        // These four are not drawn by themselves: known seeds stay what they were.
        if family.write_buffer_bytes == 128 << 10 {
            family.compaction.style = CompactionStyle::Universal;
        }
        let mapped_wal = family.max_write_buffers != 3;
        let max_open_files = [-1, 1, 3, -1][family.compaction.l0_stop - 5];
        let wal_archive_mib = u64::from(family.compaction.l0_stop == 6);
        let db = DbOptions {
            max_open_files,
            block_cache_bytes: 1 << 20,
            max_total_wal_bytes,
            wal_archive_mib,
            wal_compression,
            manual_wal_flush: rng.percent(40),
            mapped_wal,
            format_level,
            ..DbOptions::default()
        };
        Setup { db, family, unlogged, ttl_secs: None, places: Places::default() }
    }
}

impl Setup {
    /// The same settings, the files in places that are drawn.
    pub fn placed(mut self, rng: &mut Rng) -> Setup {
        self.places = Places::draw(rng);
        self
    }

    /// Settings of a family whose files are in `places`; an open does not make it.
    pub fn of(&self, name: &str, places: &Places) -> FamilyOptions {
        let cf_paths = if name == DEFAULT { Vec::new() } else { places.cf_paths.clone() };
        let value_ttl_secs = self.ttl_secs.filter(|_| name == TIMED);
        FamilyOptions { cf_paths, only_if_there: name != DEFAULT, value_ttl_secs, ..self.family.clone() }
    }

    /// The families that an open lists which is given these places. The others have the settings of `default`.
    pub fn families(&self, given: &Places) -> Vec<OpenFamily> {
        let listed = NAMES.into_iter().filter(|name| *name == DEFAULT || !given.cf_paths.is_empty());
        let all = listed.chain(self.ttl_secs.map(|_| TIMED));
        all.map(|name| OpenFamily { name: name.to_owned(), options: self.of(name, given) }).collect()
    }

    /// How its writes are done; one that is not logged cannot be synced.
    pub fn how_to_write(&self, sync: bool) -> WriteOptions {
        WriteOptions { sync: sync && !self.unlogged, disable_wal: self.unlogged, ..WriteOptions::default() }
    }
}

/// Small blob files, written and collected in every way.
fn blobs(rng: &mut Rng) -> BlobOptions {
    let pick = |rng: &mut Rng, list: &[u64]| rng.pick(list).copied().unwrap_or_default();
    BlobOptions {
        enabled: rng.percent(60),
        min_blob_bytes: pick(rng, &[1, 50, 3000]),
        file_bytes: pick(rng, &[1, 8 << 10, 256 << 20]),
        compression: if rng.percent(30) { Compression::Lz4 } else { Compression::None },
        collect_garbage: rng.percent(70),
        age_cutoff: *rng.pick(&[0.25, 0.5, 1.0]).unwrap_or(&0.25),
        force_threshold: *rng.pick(&[0.0, 0.5, 1.0]).unwrap_or(&1.0),
        starting_level: u8::from(rng.percent(20)),
        ..BlobOptions::default()
    }
}

/// One step of a run.
#[derive(Clone, Debug)]
pub enum Step {
    /// An operation of the common lists.
    Op(Op),
    /// Make all that is logged durable.
    SyncWal,
    /// Hand what the log holds back to the operating system, or to the device.
    FlushWal {
        /// To the device.
        sync: bool,
    },
    /// Make a family, if it is not there.
    Create(&'static str),
    /// Drop a family, if it is there.
    Drop(&'static str),
    /// So many background steps.
    Drive(usize),
    /// Runs background work until no work is left.
    Idle,
    /// A call beyond writes and reads.
    Feature(Feature),
}

/// Draws `count` operations and what goes on between them.
pub fn steps(setup: &Setup, rng: &mut Rng, count: usize) -> Vec<Step> {
    let mix = Mix {
        families: NAMES.map(String::from).to_vec(),
        sync_percent: *rng.pick(&[2, 10, 30]).unwrap_or(&5),
        flush_per_mille: *rng.pick(&[0, 10, 40]).unwrap_or(&10),
        compact_per_mille: *rng.pick(&[0, 5, 15]).unwrap_or(&5),
        reopen_per_mille: 3,
        batch_percent: 50,
        range_per_mille: *rng.pick(&[0, 8, 40]).unwrap_or(&8),
        max_value_bytes: *rng.pick(&[4 << 10, 12 << 10, 32 << 10]).unwrap_or(&(4 << 10)),
        ..Mix::default()
    };
    let driven = *rng.pick(&[0, 20, 60]).unwrap_or(&20);
    let mut steps = vec![];
    if !setup.unlogged {
        steps.extend(["one", "two"].map(Step::Create));
    }
    for op in draw(rng.next_u64(), count, &mix) {
        steps.push(Step::Op(op));
        match rng.below(1000) {
            10..30 if setup.unlogged => {}
            0..10 => steps.push(Step::SyncWal),
            10..16 => steps.push(Step::Drop(NAMES[rng.between(1, 2)])),
            16..30 => steps.push(Step::Create(NAMES[rng.between(1, 2)])),
            30..34 => steps.push(Step::Idle),
            34..70 if setup.holds_back() => steps.push(Step::FlushWal { sync: rng.percent(30) }),
            _ => {}
        }
        if rng.percent(driven) {
            steps.push(Step::Drive(rng.between(1, 6)));
        }
    }
    steps
}
