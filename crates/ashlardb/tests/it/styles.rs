//! Trees of the universal and the FIFO style: what is in them, how many runs they have, and what RocksDB makes of them.

use crate::judge::judge;
use crate::store::{FAMILIES, state_of, write};
use ashlar_base::Level;
use ashlar_env::sim::SimEnv;
use ashlar_testkit::judge::{MERGING, Opening};
use ashlar_testkit::ops::{MERGE_OPERATOR, Mix, draw};
use ashlar_testkit::oracle::Model;
use ashlar_testkit::{Change, JudgeVersion, Op, Rng};
use ashlardb::options::UniversalOptions;
use ashlardb::{
    Builder, CompactRangeOptions, CompactionStyle, Db, ErrorKind, Family, FileNumber, FormatLevel,
    IngestOptions, Read as _, Write as _, standard_operator,
};
use std::path::Path;
use std::time::Duration;

fn builder(dir: &Path, level: FormatLevel, style: CompactionStyle) -> Builder {
    let builder = Db::builder(dir).format_level(level).tune(move |_, family| {
        family.write_buffer_bytes = 64 << 10;
        family.merge_operator = standard_operator(MERGE_OPERATOR);
        family.compaction.style = style;
        family.compaction.target_file_bytes = 32 << 10;
        family.compaction.fifo.max_table_files_size = 1 << 30;
    });
    FAMILIES.iter().fold(builder, |builder, name| builder.family(name, |f| f))
}

/// Writes `count` drawn operations, with flushes and snapshots between them, and with requested compactions if it `compacts`.
fn work(db: &Db, model: &mut Model, seed: u64, (count, compacts): (usize, bool)) {
    let mix = Mix {
        families: FAMILIES.map(String::from).to_vec(),
        max_value_bytes: 4000,
        compact_per_mille: if compacts { 8 } else { 0 },
        flush_per_mille: 60,
        reopen_per_mille: 0,
        ..Mix::writes_only()
    };
    let mut held = None;
    for (at, op) in draw(seed, count, &mix).into_iter().enumerate() {
        match op {
            Op::Write { changes, sync } => {
                model.apply(&changes);
                write(db, &changes, sync);
            }
            Op::Flush { family } => db.family(&family).unwrap().flush().unwrap(),
            Op::Compact { family } => {
                db.family(&family).unwrap().compact_range(.., CompactRangeOptions::default()).unwrap();
            }
            _ => {}
        }
        if at % 50 == 0 {
            held = Some(db.snapshot().unwrap());
        }
    }
    drop(held);
}

/// The number of tables in each level.
fn tables(family: &Family) -> Vec<usize> {
    let files = family.live_files().unwrap();
    (0..7).map(|level| files.iter().filter(|file| file.level == Level(level)).count()).collect()
}

fn runs(family: &Family) -> usize {
    let tables = tables(family);
    tables[0] + tables[1..].iter().filter(|count| **count > 0).count()
}

/// A universal tree has the content of the model, forward and backward, after each part of the work, and no more runs
/// than its trigger once the work is done.
#[test]
fn a_universal_tree_holds_what_was_written() {
    for (seed, change) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)] {
        let dir = tempfile::tempdir().unwrap();
        let builder = || {
            builder(dir.path(), FormatLevel::V9_11, CompactionStyle::Universal).tune(move |_, family| {
                family.compaction.universal = UniversalOptions {
                    allow_trivial_move: change == 1,
                    size_ratio: if change == 2 { 50 } else { 1 },
                    max_size_amplification_percent: if change >= 3 { 25 } else { 200 },
                    incremental: change == 4,
                    ..UniversalOptions::default()
                };
            })
        };
        let mut model = Model::new();
        for part in 0..3 {
            let db = builder().open().unwrap();
            assert!(state_of(&db) == *model.now(), "seed {seed}, part {part}, opened");
            work(&db, &mut model, seed * 100 + part, (250, true));
            db.flush().unwrap();
            db.wait_for_background().unwrap();
            assert!(state_of(&db) == *model.now(), "seed {seed}, part {part}");
            for family in db.families() {
                assert!(runs(&family) <= 4, "seed {seed}: {:?}", tables(&family));
            }
            db.verify_db(|_| ()).unwrap();
            db.close().unwrap();
        }
        let db = builder().open().unwrap();
        db.compact().unwrap();
        let all: Vec<_> = db.families().iter().map(tables).collect();
        assert!(all.iter().all(|tables| tables[..6] == [0; 6]), "{all:?}");
        assert!(state_of(&db) == *model.now(), "seed {seed}, compacted");
    }
}

/// Both engines take turns on one directory, and compact it in turn.
#[test]
fn rocksdb_and_we_take_turns_on_a_universal_tree() {
    let test = "rocksdb_and_we_take_turns_on_a_universal_tree";
    for (version, level) in [(JudgeVersion::V7, FormatLevel::V7_8), (JudgeVersion::V11, FormatLevel::V11)] {
        let Some(mut judge) = judge(version, test) else { return };
        let dir = tempfile::tempdir().unwrap();
        let options = format!("compaction_style=kCompactionStyleUniversal;write_buffer_size=65536;{MERGING}");
        let mut model = Model::new();
        for turn in 0..3 {
            let db = builder(dir.path(), level, CompactionStyle::Universal).open().unwrap();
            assert!(state_of(&db) == *model.now(), "{} turn {turn}", version.name());
            work(&db, &mut model, 40 + turn, (200, true));
            db.close().unwrap();
            judge
                .open(dir.path(), Opening::Existing, &options)
                .unwrap_or_else(|e| panic!("{}: {e}", version.name()));
            for (n, family) in FAMILIES.iter().enumerate() {
                let changes = [Change::Put {
                    family: (*family).to_owned(),
                    key: format!("theirs{turn}").into(),
                    value: vec![b'x'; 100 * (n + 1)],
                }];
                model.apply(&changes);
                judge.write(&changes, false).unwrap();
                judge.apply(&[Op::Flush { family: (*family).to_owned() }]).unwrap();
                if turn == 1 {
                    judge.apply(&[Op::Compact { family: (*family).to_owned() }]).unwrap();
                }
                let theirs = judge.dump(family).unwrap();
                let ours = model.now().entries(family);
                assert!(theirs == ours, "{} {family} turn {turn}", version.name());
            }
            judge.close().unwrap();
        }
    }
}

/// A FIFO tree deletes its oldest tables beyond the limit, and nothing else. RocksDB opens what is left.
#[test]
fn a_fifo_tree_keeps_its_newest_tables() {
    let dir = tempfile::tempdir().unwrap();
    let limit = 200 << 10;
    let open = || {
        let builder = builder(dir.path(), FormatLevel::V7_8, CompactionStyle::Fifo);
        builder.options(&format!(
            "compaction_options_fifo={{max_table_files_size={limit};}};compression=kNoCompression"
        ))
    };
    let db = open().open().unwrap();
    let before = db.snapshot().unwrap();
    for round in 0..50u32 {
        for n in 0..10u32 {
            db.put(format!("{round:02}/{n}"), vec![b'v'; 1000]).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_background().unwrap();
    let default = db.default_family();
    let bytes: u64 = default.live_files().unwrap().iter().map(|file| file.bytes).sum();
    assert!((limit - 20_000..=limit).contains(&bytes), "{bytes}");
    let kept: Vec<_> = db.scan(..).map(|entry| entry.unwrap().0.to_vec()).collect();
    assert!(kept.len().is_multiple_of(10) && kept.last().unwrap() == b"49/9", "{}", kept.len());
    assert!((150..=200).contains(&kept.len()), "{}", kept.len());
    let first = 50 - kept.len() / 10;
    assert_eq!(kept[0], format!("{first:02}/0").into_bytes(), "the oldest went, whole tables at a time");
    drop(before);
    // What needs levels is refused, and changes nothing.
    let number: FileNumber = default.live_files().unwrap()[0].number;
    for refused in [
        default.compact_files(&[number], Level(6)),
        default.compact_range(.., CompactRangeOptions::new().target_level(Level(6))),
    ] {
        let e = refused.unwrap_err();
        assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("kCompactionStyleFIFO"), "{e}");
    }
    default.compact_range(.., CompactRangeOptions::default()).unwrap();
    assert_eq!(db.scan(..).count(), kept.len());
    db.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.default_family().options().compaction.style, CompactionStyle::Fifo, "stored");
    assert_eq!(db.default_family().options().compaction.fifo.max_table_files_size, limit);
    db.close().unwrap();
    let Some(mut judge) = judge(JudgeVersion::V7, "a_fifo_tree_keeps_its_newest_tables") else { return };
    let options = format!(
        "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={{max_table_files_size={limit};}};{MERGING}"
    );
    judge.open(dir.path(), Opening::Existing, &options).unwrap();
    assert_eq!(judge.dump("default").unwrap().len(), kept.len());
    judge.close().unwrap();
}

/// The style changes from open to open; the content does not.
#[test]
fn a_tree_changes_its_style() {
    use CompactionStyle::{Fifo, Level, None, Universal};
    let dir = tempfile::tempdir().unwrap();
    let mut model = Model::new();
    for (turn, style) in
        [Level, Universal, Level, None, Universal, Fifo, Level, Fifo, Universal].into_iter().enumerate()
    {
        let db = builder(dir.path(), FormatLevel::V9_11, style).open().unwrap();
        assert!(state_of(&db) == *model.now(), "turn {turn}: opened as {style}");
        work(&db, &mut model, 70 + turn as u64, (150, style != None));
        if style != None {
            db.compact().unwrap();
        }
        db.wait_for_background().unwrap();
        assert!(state_of(&db) == *model.now(), "turn {turn}: as {style}");
        db.verify_db(|_| ()).unwrap();
        db.close().unwrap();
    }
}

/// Two small tables are merged in level 0 in front of an older one: a tombstone in them still hides what the older has.
#[test]
fn a_tombstone_outlives_a_merge_in_level_0() {
    let dir = tempfile::tempdir().unwrap();
    let db = builder(dir.path(), FormatLevel::V9_11, CompactionStyle::Universal)
        .tune(|_, family| family.compaction.l0_trigger = 3)
        .open()
        .unwrap();
    for n in 0..50u32 {
        db.put(format!("k{n:02}"), vec![n as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
    for n in 0..2 {
        db.delete("k07").unwrap();
        db.put(format!("small{n}"), "").unwrap();
        db.flush().unwrap();
    }
    db.wait_for_background().unwrap();
    assert_eq!(tables(&db.default_family()), [2, 0, 0, 0, 0, 0, 0], "the small ones were merged");
    assert_eq!((db.get("k07").unwrap(), db.scan(..).count()), (None, 51));
}

/// Files that were ingested beside a memtable are newer than some of its entries and older than others. A merge of such files
/// in level 0 would reach among the entries that a flush brings there later, and RocksDB 7.8.3 would not open the tree.
#[test]
fn ingested_files_in_level_0_stay_in_order() {
    let Some(mut judge) = judge(JudgeVersion::V7, "ingested_files_in_level_0_stay_in_order") else { return };
    for (style, count) in [CompactionStyle::Universal, CompactionStyle::Fifo]
        .into_iter()
        .flat_map(|s| (3..12).map(move |n| (s, n)))
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = builder(&path, FormatLevel::V7_8, style)
            .tune(|_, family| {
                family.compaction.l0_trigger = 4;
                family.compaction.fifo.allow_compaction = true;
            })
            .open()
            .unwrap();
        // So large that the small tables are not merged with it.
        db.put("m", Rng::new(1).bytes(60_000)).unwrap();
        db.flush().unwrap();
        db.put("m0", "older than the files").unwrap();
        for n in 0..count {
            let file = dir.path().join(format!("{n}.sst"));
            let mut writer = db.default_family().sst_writer(&file).unwrap();
            writer.put(format!("x{n}"), "ingested").unwrap();
            writer.finish().unwrap();
            db.ingest(&[&file], IngestOptions::new()).unwrap();
        }
        db.wait_for_background().unwrap();
        db.abort_compactions().unwrap();
        db.put("m1", "newer than the files").unwrap();
        db.flush().unwrap();
        let entries = db.scan(..).count();
        db.close().unwrap();
        judge
            .open(&path, Opening::Existing, MERGING)
            .unwrap_or_else(|e| panic!("{style}, {count} files: {e}"));
        assert_eq!(judge.dump("default").unwrap().len(), entries, "{style}, {count} files");
        judge.close().unwrap();
    }
}

/// A tree that was leveled and becomes a FIFO tree with a ttl: a table that has reached it waits for older versions beneath.
#[test]
fn no_older_version_comes_back_in_a_fifo_tree() {
    let sim = SimEnv::new(42);
    let open = |style| {
        let builder = Db::builder("/db").env(sim.env()).options("disable_auto_compactions=true");
        builder.default_family(|f| f.compaction_style(style)).open().unwrap()
    };
    let later = |seconds| sim.clock().advance(Duration::from_secs(seconds));
    let db = open(CompactionStyle::Level);
    db.put("k", "old").unwrap();
    db.put("gone", "old").unwrap();
    db.compact().unwrap();
    later(10);
    db.put("k", "new").unwrap();
    db.delete("gone").unwrap();
    db.flush().unwrap();
    later(200);
    let default = db.default_family();
    let deep = default.live_files().unwrap().iter().find(|file| file.level == Level(6)).unwrap().number;
    default.compact_files(&[deep], Level(6)).unwrap();
    db.close().unwrap();
    let db = open(CompactionStyle::Fifo);
    db.default_family().set_options(&[("ttl", "100"), ("disable_auto_compactions", "false")]).unwrap();
    for _ in 0..4 {
        db.put("other", "1").unwrap();
        db.flush().unwrap();
        db.wait_for_background().unwrap();
        let k = db.get("k").unwrap();
        assert!(k.as_deref() != Some(&b"old"[..]), "{k:?}");
        assert_eq!(db.get("gone").unwrap(), None);
        later(60);
    }
    assert_eq!(db.get("k").unwrap(), None, "all is over at last");
}

/// A tree with `allow_trivial_move` whose tables are old is rewritten once, and then waits for the next age.
#[test]
fn an_aged_universal_tree_comes_to_rest() {
    let sim = SimEnv::new(43);
    let db = Db::builder("/db")
        .env(sim.env())
        .default_family(|f| f.compaction_style(CompactionStyle::Universal))
        .options("compaction_options_universal={allow_trivial_move=true;};periodic_compaction_seconds=100")
        .open()
        .unwrap();
    db.put("k", "v").unwrap();
    db.compact().unwrap();
    let before = db.default_family().live_files().unwrap()[0].number;
    sim.clock().advance(Duration::from_secs(200));
    db.put("l", "v").unwrap();
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let files = db.default_family().live_files().unwrap();
    assert!(files.iter().all(|file| file.number > before), "the old table was rewritten");
    db.wait_for_background().unwrap();
    assert_eq!(db.default_family().live_files().unwrap().len(), files.len(), "and nothing more happens");
}
