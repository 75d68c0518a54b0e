//! Draws a case from a seed: settings out of the whole table, settings that only work together, a history, and rounds.

use super::plan::{Family, Plan, Setting, Step, Turn};
use super::table::{Table, value};
use ashlar_testkit::ops::{Bulk, BulkKind};
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
        history: Vec::new(),
        rounds: Vec::new(),
    };
    let names = ["default", "one", "two"];
    for name in &names[..rng.between(1, names.len())] {
        plan.families.push(Family { name: (*name).to_owned(), settings: Vec::new() });
    }
    for _ in 0..rng.below(3) {
        let at = rng.below(plan.families.len());
        if let Some((db, family)) = rng.pick(TOGETHER) {
            put_all(&mut plan.db, db);
            put_all(&mut plan.families[at].settings, family);
        }
    }
    let how_many = [0, 2, 5, 12][rng.below(4)];
    put(&mut plan.db, Table::draw(&table.db, how_many, &mut rng));
    for family in &mut plan.families {
        put(&mut family.settings, Table::draw(&table.family, how_many, &mut rng));
        // Small buffers and levels, so that short histories make many files.
        if rng.percent(40) {
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
        1 if version == JudgeVersion::V11 => plan.wrapper = "transactions".to_owned(),
        _ => {}
    }
    plan.history = history(&plan, &mut rng);
    for _ in 0..rng.between(1, 3) {
        let ours = our_turn(&plan, &mut rng);
        let theirs = Turn {
            stored: rng.percent(30),
            killed: rng.percent(50),
            steps: (0..rng.between(1, 4)).map(|_| small_step(&plan, &mut rng)).collect(),
        };
        plan.rounds.push((ours, theirs));
    }
    plan
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

fn a_family(plan: &Plan, rng: &mut Rng) -> String {
    rng.pick(&plan.families).map_or_else(String::new, |family| family.name.clone())
}

fn has(plan: &Plan, name: &str, setting: &str) -> bool {
    let family = plan.families.iter().find(|family| family.name == name);
    family.is_some_and(|family| family.settings.iter().any(|own| own.name == setting))
}

fn bulk(kind: BulkKind, family: String, first: u32, count: usize, bytes: usize, rng: &mut Rng) -> Step {
    Step::Bulk(Bulk {
        kind,
        family,
        first,
        count: u32::try_from(count).unwrap_or(0),
        bytes: u32::try_from(bytes).unwrap_or(0),
        seed: rng.next_u64() % 100_000,
        without_log: false,
    })
}

fn puts(plan: &Plan, count: usize, rng: &mut Rng) -> Step {
    let bytes = [1, 20, 120, 500][rng.below(4)];
    let first = u32::try_from(rng.below(3000)).unwrap_or(0);
    let mut step = bulk(BulkKind::Put, a_family(plan, rng), first, count, bytes, rng);
    if let Step::Bulk(bulk) = &mut step {
        bulk.without_log = rng.percent(5);
    }
    step
}

/// Anything but a close or a kill.
fn small_step(plan: &Plan, rng: &mut Rng) -> Step {
    let family = a_family(plan, rng);
    let first = u32::try_from(rng.below(3000)).unwrap_or(0);
    match rng.below(20) {
        0..=6 => {
            let count = rng.between(1, 300);
            puts(plan, count, rng)
        }
        7 => bulk(BulkKind::Delete, family, first, rng.between(1, 100), 0, rng),
        8 => bulk(BulkKind::DeleteRange, family, first, rng.between(1, 500), 0, rng),
        9..=10 if has(plan, &family, "merge_operator") => {
            let count = rng.between(1, 100);
            bulk(BulkKind::Merge, family, first, count, 8, rng)
        }
        11 => bulk(BulkKind::Entity, family, first, rng.between(1, 50), 40, rng),
        12 => bulk(BulkKind::Ingest, family, first, rng.between(1, 50), 40, rng),
        13..=14 if plan.wrapper == "transactions" => {
            let kind = [BulkKind::Prepared, BulkKind::Committed, BulkKind::RolledBack][rng.below(3)];
            bulk(kind, family, first, rng.between(1, 20), 40, rng)
        }
        15 => Step::Compact(family),
        _ => Step::Flush(family),
    }
}

fn history(plan: &Plan, rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    if rng.percent(30) {
        let count = [2000, 5000, 10_000][rng.below(3)];
        steps.push(puts(plan, count, rng));
    }
    for _ in 0..rng.between(1, 8) {
        steps.push(match rng.below(10) {
            0 => Step::Close,
            1 => Step::Kill,
            _ => small_step(plan, rng),
        });
    }
    if rng.percent(10) {
        let family = a_family(plan, rng);
        let once = ONCE + u32::try_from(rng.below(1000)).unwrap_or(0);
        steps.push(bulk(BulkKind::Put, family.clone(), once, 40, 30, rng));
        steps.push(Step::Flush(family.clone()));
        steps.push(bulk(BulkKind::SingleDelete, family, once, 20, 0, rng));
    }
    if rng.percent(30) {
        let count = [500, 2000, 5000][rng.below(3)];
        steps.push(puts(plan, count, rng));
    }
    steps.push(if rng.percent(60) { Step::Kill } else { Step::Close });
    steps
}

fn our_turn(plan: &Plan, rng: &mut Rng) -> Turn {
    let mut steps = Vec::new();
    for _ in 0..rng.below(5) {
        let family = a_family(plan, rng);
        let first = u32::try_from(rng.below(3000)).unwrap_or(0);
        steps.push(match rng.below(6) {
            0..=1 => bulk(BulkKind::Put, family, first, rng.between(1, 200), 40, rng),
            2 => bulk(BulkKind::Delete, family, first, rng.between(1, 200), 0, rng),
            3 => bulk(BulkKind::DeleteRange, family, first, rng.between(1, 200), 0, rng),
            4 => Step::Flush(family),
            _ => Step::Compact(family),
        });
    }
    Turn { stored: rng.percent(50), killed: rng.percent(50), steps }
}
