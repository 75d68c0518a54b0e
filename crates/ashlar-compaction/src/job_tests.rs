//! Whole compactions on tables in memory: pick, run, apply the edit, check.

use super::*;
use crate::level_run::LevelRun;
use crate::picker::{Shape, pick_overfull};

use crate::rewrite::fixture::{TestDir, dump, trailer};
use crate::rewrite::{CutLimits, EntrySink};
use ashlar_base::error::IoKind;
use ashlar_base::{InternalKeyBuf, Level, Order, RunCursor, ValueType};
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_format::version_edit::NewFile;
use ashlar_options::CompactionOptions;

use ValueType::{Delete, Put};

/// Writes a table. Each entry is a key, a sequence and a type; a put's value is its sequence.
fn table(place: &TestDir, entries: &[(String, u64, ValueType)]) -> NewFile {
    let mut sink = TableOutputs::new(place.plan(), CutLimits::none(), place.numbers());
    let mut last = None;
    for (key, seq, kind) in entries {
        let internal = InternalKeyBuf::new(key.as_bytes(), trailer(*seq, *kind));
        let value = if *kind == Put { seq.to_string() } else { String::new() };
        sink.add(internal.as_key(), value.as_bytes(), last.as_ref() != Some(&key)).unwrap();
        last = Some(key);
    }
    sink.finish().unwrap();
    sink.take().pop().unwrap().file
}

fn keys(range: std::ops::Range<u64>, seq: u64, kind: ValueType) -> Vec<(String, u64, ValueType)> {
    range.map(|i| (format!("key{i:05}"), seq, kind)).collect()
}

fn options() -> CompactionOptions {
    CompactionOptions { target_file_bytes: 4096, base_level_bytes: 4096, ..CompactionOptions::default() }
}

/// All data fit the last level, so it is the base.
fn one_level() -> CompactionOptions {
    CompactionOptions { base_level_bytes: 1 << 20, ..options() }
}

fn picked(version: &Version, options: &CompactionOptions) -> Compaction {
    pick_overfull(&Shape::of(version), options, &[]).unwrap()
}

fn input(place: &TestDir, version: &Arc<Version>, plan: &Compaction, snapshots: &[u64]) -> CompactionInput {
    CompactionInput {
        plan: plan.clone(),
        version: Arc::clone(version),
        snapshots: snapshots.iter().map(|s| SeqNum::new(*s).unwrap()).collect(),
        filter: None,
        partitioner: None,
        output: place.plan(),
        numbers: place.numbers(),
        parts_max: 1,
    }
}

fn run(place: &TestDir, version: &Arc<Version>, plan: &Compaction, snapshots: &[u64]) -> CompactionOutcome {
    run_all(input(place, version, plan, snapshots), 1000).unwrap()
}

/// Steps all parts in turn.
fn run_all(input: CompactionInput, budget: usize) -> Result<CompactionOutcome> {
    let plan = input.plan.clone();
    let mut parts = CompactionPart::start(input)?;
    let mut more = true;
    while more {
        more = false;
        for part in &mut parts {
            more |= part.step(budget)? == Progress::More;
        }
    }
    CompactionPart::finish(FamilyId(2), &plan, parts)
}

fn content(version: &Version) -> Vec<String> {
    version.files().flat_map(|(_, f)| dump(version, &f.file)).collect()
}

/// The table in the last level came behind all others.
#[test]
fn nothing_is_dropped_above_a_level_for_tables_behind_all_others() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let files = [
        (6, table(&place, &keys(0..10, 0, Put))),
        (5, table(&place, &keys(0..50, 3, Put))),
        (0, table(&place, &keys(20..30, 5, Delete))),
        (0, table(&place, &keys(25..35, 7, Put))),
    ];
    let version = place.version(&files);
    let options = CompactionOptions { l0_trigger: 2, keeps_last_level: true, ..one_level() };
    let plan = pick_overfull(&Shape::within(&version, &options), &options, &[]).unwrap();
    assert_eq!(plan.to_string(), "L0[13 12] + L5[11] -> L5 level0");
    let outcome = run(&place, &version, &plan, &[]);
    let after = version.apply(&[epochs(outcome.edit)]).unwrap();
    let left = content(&after);
    assert_eq!(
        left.iter().filter(|entry| entry.contains("#5")).count(),
        5,
        "deletions of keys 20 to 24: {left:?}"
    );
    assert_eq!(
        left.iter().filter(|entry| entry.contains("#0")).count(),
        10,
        "the table behind alone: {left:?}"
    );
    assert!(pick_overfull(&Shape::within(&after, &options), &options, &[]).is_none());
}

#[test]
fn level0_and_the_last_level_become_one_run() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let files = [
        (6, table(&place, &keys(0..400, 0, Put))),
        (6, table(&place, &keys(400..800, 0, Put))),
        (0, table(&place, &keys(100..300, 5, Delete))),
        (0, table(&place, &keys(250..500, 7, Put))),
        (0, table(&place, &keys(299..302, 9, Put))),
    ];
    let version = place.version(&files);
    let plan = picked(&version, &CompactionOptions { l0_trigger: 3, ..one_level() });
    assert_eq!(plan.to_string(), "L0[14 13 12] + L6[10 11] -> L6 level0 bottommost");
    let outcome = run(&place, &version, &plan, &[]);
    let c = outcome.counters;
    assert_eq!((outcome.edit.deleted.len(), outcome.edit.family), (5, FamilyId(2)));
    assert_eq!(c.bytes_read, version.files().map(|(_, f)| f.size()).sum::<u64>());
    assert_eq!((c.tables_read, c.tables_written), (5, outcome.edit.added.len() as u64));
    assert_eq!(c.entries.entries_in, 800 + 200 + 250 + 3);
    assert_eq!(c.entries.entries_out, 800 - 150);
    assert!(c.tables_written > 1, "cut at the target");
    assert!(outcome.edit.added.iter().all(|(_, f)| f.oldest_ancestor_time == Some(500)));
    let after = version.apply(&[epochs(outcome.edit)]).unwrap();
    let expected: Vec<String> = (0..800u64)
        .filter(|i| !(100..250).contains(i))
        .map(|i| {
            format!(
                "key{i:05}#0={}",
                if (299..302).contains(&i) {
                    9
                } else if (250..500).contains(&i) {
                    7
                } else {
                    0
                }
            )
        })
        .collect();
    assert_eq!(content(&after), expected);
}

/// Sets epoch numbers as the commit would.
fn epochs(mut edit: VersionEdit) -> VersionEdit {
    for (_, file) in &mut edit.added {
        file.epoch = 1;
    }
    edit
}

#[test]
fn snapshots_and_deeper_levels_keep_what_they_need() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let files = [
        (6, table(&place, &keys(0..2000, 1, Put))),
        (0, table(&place, &keys(1990..2010, 5, Delete))),
        (0, table(&place, &keys(2005..2008, 6, Put))),
        (0, table(&place, &keys(2005..2008, 8, Put))),
    ];
    let version = place.version(&files);
    let mut plan = picked(&version, &CompactionOptions { l0_trigger: 3, ..options() });
    assert!(!plan.is_bottommost() && plan.output_level < Level(6), "{plan}");
    assert_eq!(plan.inputs.len(), 1);
    plan.target_file_bytes = 1 << 20;
    let outcome = run(&place, &version, &plan, &[7]);
    let (_, file) = &outcome.edit.added[0];
    let expected: Vec<String> = (1990..2000)
        .map(|i| format!("key{i:05}#5-"))
        .chain((2005..2008).flat_map(|i| [format!("key{i:05}#8=8"), format!("key{i:05}#6=6")]))
        .collect();
    assert_eq!(dump(&version, file), expected);
    assert_eq!(outcome.counters.entries.dropped_tombstones, 7);
}

#[test]
fn everything_may_vanish() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let files = [(6, table(&place, &keys(0..50, 1, Put))), (0, table(&place, &keys(0..50, 2, Delete)))];
    let version = place.version(&files);
    let plan = picked(&version, &CompactionOptions { l0_trigger: 1, ..one_level() });
    let outcome = run(&place, &version, &plan, &[]);
    assert_eq!((outcome.edit.deleted.len(), outcome.edit.added.len()), (2, 0));
    assert_eq!(content(&version.apply(&[outcome.edit]).unwrap()), [""; 0]);
}

#[test]
fn a_move_changes_nothing_but_the_level() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let files = [(0, table(&place, &keys(0..50, 1, Put))), (0, table(&place, &keys(60..70, 2, Put)))];
    let version = place.version(&files);
    let plan = picked(&version, &CompactionOptions { l0_trigger: 2, ..options() });
    assert_eq!(plan.action, Action::Move, "{plan}");
    let after = version.apply(&[edit_without_io(FamilyId::DEFAULT, &plan).unwrap()]).unwrap();
    assert_eq!((after.level(Level(0)).len(), after.level(Level(6)).len()), (0, 2));
    assert_eq!(content(&after).len(), 60);
}

#[test]
fn a_drop_deletes_its_inputs_only() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let files = [(0, table(&place, &keys(0..50, 1, Put))), (6, table(&place, &keys(60..70, 2, Put)))];
    let version = place.version(&files);
    let options = CompactionOptions { l0_trigger: 1, ..options() };
    let plan = Compaction { action: Action::Drop, ..picked(&version, &options) };
    assert!(plan.to_string().contains(" drop"), "{plan}");
    let after = version.apply(&[edit_without_io(FamilyId::DEFAULT, &plan).unwrap()]).unwrap();
    assert_eq!((after.level(Level(0)).len(), after.level(Level(6)).len()), (0, 1));
    assert_eq!(content(&after).len(), 10);
}

#[test]
fn damage_and_early_ends_leave_the_inputs_alone() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let files = [(6, table(&place, &keys(0..3000, 1, Put))), (0, table(&place, &keys(0..3000, 2, Put)))];
    let version = place.version(&files);
    let before = place.files();
    let plan = picked(&version, &CompactionOptions { l0_trigger: 1, ..one_level() });

    let only = |mut parts: Vec<CompactionPart>| parts.pop().unwrap();
    let mut half = only(CompactionPart::start(input(&place, &version, &plan, &[])).unwrap());
    for _ in 0..50 {
        assert_eq!(half.step(1000).unwrap(), Progress::More);
    }
    assert!(place.files().len() > before.len());
    drop(half);
    assert_eq!(place.files(), before);

    let early = CompactionPart::start(input(&place, &version, &plan, &[])).unwrap();
    assert!(CompactionPart::finish(FamilyId(2), &plan, early).is_err());
    assert_eq!(place.files(), before);

    let path = place.dir.join("000010.sst");
    place.env.fs.open_write(&path).unwrap().write_at(&[0xee; 8], files[0].1.size / 3).unwrap();
    let mut damaged = only(CompactionPart::start(input(&place, &version, &plan, &[])).unwrap());
    let error = loop {
        match damaged.step(1000) {
            Ok(progress) => assert_eq!(progress, Progress::More),
            Err(e) => break e,
        }
    };
    assert!(error.is_corruption(), "{error}");
    drop(damaged);
    assert_eq!(place.files(), before);
    assert_eq!(place.pending.smallest(), None);
}

#[test]
fn a_level_of_tables_is_one_run() {
    let place = TestDir::new(Env::mem(), Order::ReverseBytewise);
    let reversed = |range: std::ops::Range<u64>| keys(range, 4, Put).into_iter().rev().collect::<Vec<_>>();
    let files: Vec<(u8, NewFile)> =
        (0..5).rev().map(|i| (6, table(&place, &reversed(i * 100..i * 100 + 100)))).collect();
    let version = place.version(&files);
    let mut level =
        LevelRun::new(Arc::clone(&version), version.levels[6].clone(), KeyRange::default(), 1 << 16);
    let mut window = ashlar_base::Window::new();
    let mut first = |key: Option<&str>| {
        let key = key.map(|k| ashlar_base::LookupKey::new(k.as_bytes(), SeqNum::MAX));
        level.seek(key.as_ref()).unwrap();
        let (mut first, mut count) = (None, 0);
        while level.window(&mut window).unwrap() {
            let key = window.entry(0).unwrap().key.user_key();
            first.get_or_insert_with(|| String::from_utf8(key.to_vec()).unwrap());
            count += window.len();
        }
        (first, count)
    };
    assert_eq!(first(None), (Some("key00499".into()), 500));
    assert_eq!(first(Some("key00300")), (Some("key00300".into()), 301));
    assert_eq!(first(Some("key00299x")), (Some("key00299".into()), 300));
    assert_eq!(first(Some("key")), (None, 0));
}

/// Two small tables that a compaction merges, on a simulated machine.
fn small(sim: &SimEnv) -> (TestDir, Arc<Version>, Compaction) {
    let place = TestDir::new(sim.env(), Order::Bytewise);
    let files = [(6, table(&place, &keys(0..400, 1, Put))), (0, table(&place, &keys(0..400, 2, Put)))];
    let version = place.version(&files);
    let plan = picked(&version, &CompactionOptions { l0_trigger: 1, target_file_bytes: 2000, ..one_level() });
    (place, version, plan)
}

fn attempt(place: &TestDir, version: &Arc<Version>, plan: &Compaction) -> Result<CompactionOutcome> {
    run_all(input(place, version, plan, &[]), 500)
}

#[test]
fn failing_calls_end_in_an_error_and_a_clean_directory() {
    for (class, kind) in [(CallClass::Change, IoKind::NoSpace), (CallClass::Read, IoKind::Other)] {
        let mut at = 1;
        while failing_call(class, at, kind) {
            at += 1;
        }
        assert!(at > 4, "{class:?}: {at} calls");
    }
}

/// Runs a compaction whose call number `at` fails; false when there is no such call.
fn failing_call(class: CallClass, at: u64, kind: IoKind) -> bool {
    let sim = SimEnv::new(at);
    let (place, version, plan) = small(&sim);
    let before = place.files();
    let (calls, injected) = (sim.calls_of(class), sim.injected());
    sim.fail_call(class, calls + at, Repeat::Once, kind);
    let outcome = attempt(&place, &version, &plan);
    if sim.injected() == injected {
        assert!(outcome.is_ok());
        return false;
    }
    // A table whose filter cannot be read is used without the filter: the result must then be complete.
    if let (CallClass::Read, Ok(whole)) = (class, &outcome) {
        assert_eq!(whole.counters.entries.entries_in, 800);
        return true;
    }
    assert!(outcome.is_err(), "{class:?} {at} failed unnoticed");
    drop(outcome);
    assert_eq!(place.files(), before, "{class:?} {at}");
    true
}

#[test]
fn entries_that_were_not_read_stop_a_compaction() {
    let (_, _, plan) = small(&SimEnv::new(1));
    assert!(check_count(&plan, 7).is_ok(), "the number of entries is unknown");
    for (_, file) in plan.files() {
        let counts = TableCounts { entries: 401, range_deletions: 1, ..TableCounts::default() };
        file.counts.set(counts).unwrap();
    }
    for read in 800..=802 {
        assert!(check_count(&plan, read).is_ok(), "with range tombstones or without");
    }
    for read in [0, 799, 803] {
        let e = check_count(&plan, read).unwrap_err();
        assert!(e.is_corruption(), "{e}");
        assert!(e.message().ends_with(&format!("read {read} entries where its inputs have 800")), "{e}");
    }
}

#[test]
fn finished_outputs_survive_any_crash() {
    let sim = SimEnv::new(5);
    let (place, version, plan) = small(&sim);
    let outcome = attempt(&place, &version, &plan).unwrap();
    assert!(outcome.edit.added.len() > 1);
    for mode in CrashMode::all() {
        let after = TestDir::new(sim.crash(mode).env(), Order::Bytewise);
        let survived: usize = outcome.edit.added.iter().map(|(_, f)| dump(&after.empty(), f).len()).sum();
        assert_eq!(survived, 400, "{mode:?}");
    }
}

#[test]
fn parts_make_what_the_whole_makes() {
    for order in [Order::Bytewise, Order::ReverseBytewise] {
        let place = TestDir::new(Env::mem(), order.clone());
        let sorted = |mut entries: Vec<(String, u64, ValueType)>| {
            let trailers = |e: &(String, u64, ValueType)| trailer(e.1, e.2);
            entries.sort_by(|a, b| {
                order.compare_parts(a.0.as_bytes(), trailers(a), b.0.as_bytes(), trailers(b))
            });
            entries
        };
        let mut twice = keys(500..1500, 9, Put);
        twice.extend(keys(700..900, 5, Put));
        let files = [
            (6, table(&place, &sorted(keys(0..1000, 1, Put)))),
            (0, table(&place, &sorted(keys(200..1200, 3, Delete)))),
            (0, table(&place, &sorted(twice))),
        ];
        let version = place.version(&files);
        let mut plan = picked(&version, &CompactionOptions { l0_trigger: 2, ..one_level() });
        plan.target_file_bytes = 3000;
        let whole = run(&place, &version, &plan, &[4, 6]);
        for parts_max in [2, 3, 7] {
            let input = || CompactionInput { parts_max, ..input(&place, &version, &plan, &[4, 6]) };
            let parts = CompactionPart::start(input()).unwrap().len();
            assert!(parts > 1 && parts <= parts_max, "{parts} of {parts_max}");
            let cut = run_all(input(), 777).unwrap();
            assert_eq!(cut.counters.entries, whole.counters.entries);
            let content = |o: &CompactionOutcome| content(&version.apply(&[epochs(o.edit.clone())]).unwrap());
            assert_eq!(content(&cut), content(&whole), "{parts_max} parts");
        }
    }
}

/// Entries that survive such a rewrite (here: operands without an operator) must not cause endless rewrites.
#[test]
fn a_rewrite_at_the_bottom_that_every_snapshot_sees_is_the_last() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let chain: Vec<_> = (1..=9).rev().map(|seq| ("key".to_owned(), seq, ValueType::Merge)).collect();
    let version = place.version(&[(0, table(&place, &chain))]);
    let plan = picked(&version, &CompactionOptions { l0_trigger: 1, ..one_level() });
    let plan = Compaction { action: Action::Rewrite, ..plan };
    for (snapshots, spent) in [(&[][..], true), (&[9], true), (&[20, 30], true), (&[8, 20], false)] {
        let outcome = run(&place, &version, &plan, snapshots);
        let counts = outcome.counts[0].1;
        assert_eq!((counts.spent, counts.entries, counts.older), (spent, 9, 8), "{snapshots:?}");
    }
}
