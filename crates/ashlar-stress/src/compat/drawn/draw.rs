//! Draws a case from a seed: settings out of the whole table, settings that only work together, a history, and rounds.
//!
//! The settings of [`TOGETHER`] come in turn, so that each is met once in so many seeds as there are lines. Numbers of keys
//! are small as often as large: a table of three keys and a log of many blocks show different mistakes.

use super::plan::{Family, Plan, Setting, Step, Turn};
use super::table::{Table, value};
use ashlar_testkit::judge::READ_FLAGS;
use ashlar_testkit::ops::{Bulk, BulkKind, BulkWrite};
use ashlar_testkit::{JudgeVersion, Rng};

/// Keys that are put once, so that a single delete of them is in order.
const ONCE: u32 = 900_000;

/// Settings that RocksDB takes only together, or that show nothing alone. Of the database; of one family.
const TOGETHER: &[(&str, &str)] = &[
    ("allow_mmap_reads=true", "table_factory=PlainTable;prefix_extractor=rocksdb.FixedPrefix.3"),
    ("allow_mmap_reads=true", "table_factory=CuckooTable"),
    ("", "comparator=leveldb.BytewiseComparator.u64ts"),
    ("", "comparator=rocksdb.ReverseBytewiseComparator.u64ts"),
    (
        "allow_concurrent_memtable_write=false",
        "comparator=leveldb.BytewiseComparator.u64ts;persist_user_defined_timestamps=false",
    ),
    ("", "comparator=rocksdb.ReverseBytewiseComparator"),
    ("", "table.user_defined_index_factory=trie_index;table.use_udi_as_primary_index=true"),
    ("", "table.user_defined_index_factory=trie_index;table.use_udi_as_primary_index=false"),
    ("allow_concurrent_memtable_write=false", "memtable_factory=vector"),
    (
        "allow_concurrent_memtable_write=false",
        "memtable_factory=prefix_hash:1000;prefix_extractor=rocksdb.FixedPrefix.3",
    ),
    (
        "allow_concurrent_memtable_write=false",
        "memtable_factory=hash_linkedlist:1000;prefix_extractor=rocksdb.FixedPrefix.3",
    ),
    ("allow_concurrent_memtable_write=false", "inplace_update_support=true"),
    ("recycle_log_file_num=2", ""),
    ("recycle_log_file_num=1;avoid_flush_during_shutdown=true", ""),
    ("wal_dir=@/wal", ""),
    ("db_log_dir=@/log", ""),
    ("db_paths=@/p0:100000,@/p1:1000000000", ""),
    ("db_paths=@/p0:1000000000", ""),
    ("db_paths=@/db:20000,@/p1:1000000000", ""),
    ("", "cf_paths=@/c0:100000,@/c1:1000000000"),
    ("", "enable_blob_files=true;min_blob_size=20;enable_blob_garbage_collection=true"),
    ("", "table.index_type=kHashSearch;prefix_extractor=rocksdb.FixedPrefix.3"),
    (
        "",
        "table.filter_policy=bloomfilter:10;table.partition_filters=true;table.index_type=kTwoLevelIndexSearch",
    ),
    (
        "",
        "compression=kZSTD;compression_opts.max_dict_bytes=4096;compression_opts.zstd_max_train_bytes=65536",
    ),
    ("", "num_levels=1"),
    ("", "num_levels=3;level_compaction_dynamic_level_bytes=false"),
    ("", "num_levels=12"),
    ("", "compaction_style=kCompactionStyleUniversal"),
    ("", "compaction_style=kCompactionStyleFIFO"),
    ("unordered_write=true", ""),
    ("two_write_queues=true", ""),
    ("manual_wal_flush=true", ""),
    ("atomic_flush=true", ""),
    ("wal_compression=kZSTD", ""),
    ("track_and_verify_wals=true;track_and_verify_wals_in_manifest=true", ""),
    ("allow_mmap_writes=true", ""),
    ("", "merge_operator=uint64add"),
    ("", "merge_operator=stringappend"),
    ("", "merge_operator=max"),
];

pub(super) fn draw(seed: u64, version: JudgeVersion, table: &Table) -> Plan {
    let mut rng = Rng::new(seed);
    let mut plan = Plan {
        version,
        db: Vec::new(),
        families: Vec::new(),
        wrapper: String::new(),
        reads: Vec::new(),
        history: Vec::new(),
        rounds: Vec::new(),
    };
    let names = ["default", "one", "two"];
    for name in &names[..rng.between(1, names.len())] {
        plan.families.push(Family { name: (*name).to_owned(), settings: Vec::new() });
    }
    let favourite = rng.below(plan.families.len());
    let second = rng.percent(30).then(|| rng.below(TOGETHER.len()));
    for at in [Some(in_turn(seed)), second].into_iter().flatten() {
        let (db, family) = TOGETHER[at];
        put_all(&mut plan.db, db);
        put_all(&mut plan.families[favourite].settings, family);
    }
    let how_many = [0, 3, 8, 16][rng.below(4)];
    put(&mut plan.db, Table::draw(&table.db, how_many, &mut rng));
    // Settings of logs show in logs of many blocks, which no full memtable makes unneeded.
    let of_logs = |setting: &Setting| setting.name.contains("log_file") || setting.name.contains("wal");
    let logs_only = rng.percent(if plan.db.iter().any(of_logs) { 70 } else { 20 });
    for family in &mut plan.families {
        put(&mut family.settings, Table::draw(&table.family, how_many, &mut rng));
        // Small buffers and levels, so that short histories make many files.
        if !logs_only && rng.percent(50) {
            put_all(&mut family.settings, "write_buffer_size=65536;target_file_size_base=65536");
            put_all(&mut family.settings, "max_bytes_for_level_base=131072");
        }
    }
    // Families with merges get an operator. Different operators show whether one family inherits from another.
    for family in &mut plan.families {
        if rng.percent(30) {
            let operator = Setting::new("merge_operator", &value("merge_operator", "", &mut rng));
            put(&mut family.settings, vec![operator]);
        }
    }
    match rng.below(12) {
        0 => plan.wrapper = "ttl 864000".to_owned(),
        1 if version == JudgeVersion::V11 => {
            let policies = ["committed", "prepared", "unprepared"];
            plan.wrapper = format!("transactions {}", policies[rng.below(3)]);
        }
        _ => {}
    }
    if version == JudgeVersion::V11 && rng.percent(30) {
        let both_ways = READ_FLAGS.iter().filter(|name| **name != "tailing");
        plan.reads = both_ways.filter(|_| rng.percent(30)).map(|name| (*name).to_owned()).collect();
    }
    let mut drawer = Drawer { plan: &plan, favourite, logs_only, rng };
    let history = drawer.history();
    let rounds = (0..drawer.rng.between(1, 3)).map(|_| drawer.round()).collect();
    Plan { history, rounds, ..plan }
}

/// The line of [`TOGETHER`] for a seed. Each pass over the lines begins one line later, so that a line meets every remainder
/// by which seeds are distinguished elsewhere.
fn in_turn(seed: u64) -> usize {
    let lines = TOGETHER.len() as u64;
    usize::try_from((seed % lines + seed / lines) % lines).unwrap_or(0)
}

/// Adds settings whose names are not there.
fn put(settings: &mut Vec<Setting>, more: Vec<Setting>) {
    for setting in more {
        if settings.iter().all(|own| own.name != setting.name) {
            settings.push(setting);
        }
    }
}

fn put_all(settings: &mut Vec<Setting>, text: &str) {
    let more = text.split(';').filter_map(|part| part.split_once('='));
    put(settings, more.map(|(name, value)| Setting::new(name, value)).collect());
}

fn bulk(kind: BulkKind, family: String, first: u32, count: usize, bytes: usize, rng: &mut Rng) -> Step {
    Step::Bulk(Bulk {
        kind,
        family,
        first,
        count: u32::try_from(count).unwrap_or(0),
        bytes: u32::try_from(bytes).unwrap_or(0),
        seed: rng.next_u64() % 100_000,
        write: BulkWrite::Plain,
    })
}

/// Draws the steps of a case whose settings are drawn.
struct Drawer<'a> {
    plan: &'a Plan,
    /// The family with the settings that come in turn: half of all steps are about it.
    favourite: usize,
    /// The history ends with a log of many blocks.
    logs_only: bool,
    rng: Rng,
}

impl Drawer<'_> {
    fn family(&mut self) -> String {
        let families = &self.plan.families;
        let at = if self.rng.percent(50) { self.favourite } else { self.rng.below(families.len()) };
        families.get(at).map_or_else(String::new, |family| family.name.clone())
    }

    fn has(&self, name: &str, setting: &str) -> bool {
        let family = self.plan.families.iter().find(|family| family.name == name);
        family.is_some_and(|family| family.settings.iter().any(|own| own.name == setting))
    }

    /// A number of keys up to `most`, of every order of magnitude.
    fn amount(&mut self, most: usize) -> usize {
        let most = [3, 8, 30, most][self.rng.below(4)].min(most);
        self.rng.between(1, most)
    }

    fn bulk(&mut self, kind: BulkKind, most: usize, bytes: usize) -> Step {
        let (family, count) = (self.family(), self.amount(most));
        let first = u32::try_from(self.rng.below(3000)).unwrap_or(0);
        bulk(kind, family, first, count, bytes, &mut self.rng)
    }

    fn puts(&mut self, count: usize) -> Step {
        let bytes = [1, 20, 120, 500][self.rng.below(4)];
        let first = u32::try_from(self.rng.below(3000)).unwrap_or(0);
        let mut step = bulk(BulkKind::Put, self.family(), first, count, bytes, &mut self.rng);
        if let Step::Bulk(bulk) = &mut step {
            // One in twenty without the log: what such a put wrote is gone with a kill.
            let write = [BulkWrite::WithoutLog, BulkWrite::Synced, BulkWrite::LowPriority, BulkWrite::Hinted];
            bulk.write = write.get(self.rng.below(20)).copied().unwrap_or_default();
        }
        step
    }

    /// Anything but a close or a kill.
    fn small_step(&mut self) -> Step {
        match self.rng.below(20) {
            0..=6 => {
                let count = self.amount(300);
                self.puts(count)
            }
            7 => self.bulk(BulkKind::Delete, 100, 0),
            8 => self.bulk(BulkKind::DeleteRange, 500, 0),
            9..=10 => match self.bulk(BulkKind::Merge, 100, 8) {
                Step::Bulk(bulk) if !self.has(&bulk.family, "merge_operator") => Step::Flush(bulk.family),
                step => step,
            },
            11 => self.bulk(BulkKind::Entity, 50, 40),
            12 => self.bulk(BulkKind::Ingest, 50, 40),
            13..=14 if self.plan.wrapper.starts_with("transactions") => {
                let kinds = [BulkKind::Prepared, BulkKind::Committed, BulkKind::RolledBack];
                let kind = kinds[self.rng.below(3)];
                self.bulk(kind, 20, 40)
            }
            15 => Step::Compact(self.family()),
            _ => Step::Flush(self.family()),
        }
    }

    fn history(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.rng.percent(30) {
            let count = [2000, 5000, 10_000][self.rng.below(3)];
            steps.push(self.puts(count));
        }
        for _ in 0..self.rng.between(1, 8) {
            steps.push(match self.rng.below(10) {
                0 => Step::Close,
                1 => Step::Kill,
                _ => self.small_step(),
            });
        }
        if self.rng.percent(10) {
            let family = self.family();
            let once = ONCE + u32::try_from(self.rng.below(1000)).unwrap_or(0);
            steps.push(bulk(BulkKind::Put, family.clone(), once, 40, 30, &mut self.rng));
            steps.push(Step::Flush(family.clone()));
            steps.push(bulk(BulkKind::SingleDelete, family, once, 20, 0, &mut self.rng));
        }
        let kills = if self.logs_only {
            // Keys behind those of all other steps, in values of many lengths.
            for _ in 0..2 {
                let (family, bytes) = (self.family(), [20, 40, 120][self.rng.below(3)]);
                steps.push(bulk(BulkKind::Put, family, 10_000, 10_000, bytes, &mut self.rng));
            }
            80
        } else {
            if self.rng.percent(30) {
                let count = [500, 2000, 5000][self.rng.below(3)];
                steps.push(self.puts(count));
            }
            60
        };
        steps.push(if self.rng.percent(kills) { Step::Kill } else { Step::Close });
        steps
    }

    fn round(&mut self) -> (Turn, Turn) {
        let ours = (0..self.rng.below(5)).map(|_| self.our_step()).collect();
        let ours = Turn { stored: self.rng.percent(50), killed: self.rng.percent(50), steps: ours };
        let theirs = (0..self.rng.between(1, 4)).map(|_| self.small_step()).collect();
        (ours, Turn { stored: self.rng.percent(30), killed: self.rng.percent(50), steps: theirs })
    }

    fn our_step(&mut self) -> Step {
        match self.rng.below(8) {
            0..=1 => self.bulk(BulkKind::Put, 200, 40),
            7 => self.bulk(BulkKind::Entity, 50, 40),
            2 => self.bulk(BulkKind::Delete, 200, 0),
            3 => self.bulk(BulkKind::DeleteRange, 200, 0),
            4 => Step::Flush(self.family()),
            _ => Step::Compact(self.family()),
        }
    }
}
