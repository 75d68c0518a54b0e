//! Values separated, moved and counted, in a directory in memory.

use super::super::drive::tests::MemoryRun;
use super::super::fixture::{TestDir, trailer};
use super::super::{CutLimits, EntrySink, OutputPlan, Progress, Retention, TableOutputs, start};
use super::*;
use ashlar_base::{InternalKeyBuf, Order, RunCursor, Window};
use ashlar_env::Env;
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_tree::version::Version;

use ValueType::{Entity as Row, Put};

fn options(file_bytes: u64) -> BlobOptions {
    BlobOptions { enabled: true, min_blob_bytes: 10, file_bytes, ..BlobOptions::default() }
}

fn plan(place: &TestDir, blobs: BlobPlan) -> OutputPlan {
    OutputPlan { blobs, ..place.plan() }
}

/// Passes entries to a sink as if they had been read; entries with `false` are dropped.
fn rewrite(
    sink: &mut TableOutputs,
    entries: &[(Vec<u8>, ValueType, Vec<u8>, bool)],
) -> (NewFile, BlobOutcome) {
    for (user_key, kind, value, stays) in entries {
        let key = InternalKeyBuf::new(user_key, trailer(7, *kind));
        if matches!(kind, ValueType::BlobIndex | Row) {
            sink.note_read(key.as_key(), value).unwrap();
        }
        if *stays {
            sink.add(key.as_key(), value, true).unwrap();
        }
    }
    sink.finish().unwrap();
    (sink.take().pop().unwrap().file, sink.take_blobs())
}

/// Six values of 4, 8, …, 24 bytes: the last four are large.
fn values() -> Vec<(Vec<u8>, ValueType, Vec<u8>, bool)> {
    (1..=6).map(|n: u8| (vec![b'a' + n], Put, vec![n; usize::from(n) * 4], true)).collect()
}

/// A version as after a flush of [`values`].
fn flushed(place: &TestDir, file_bytes: u64) -> (Version, NewFile, Vec<FileNumber>) {
    let blobs = BlobPlan::new(FamilyId::DEFAULT, &options(file_bytes), 0);
    let mut sink = TableOutputs::new(plan(place, blobs), CutLimits::none(), place.numbers());
    let (file, outcome) = rewrite(&mut sink, &values());
    assert!(outcome.garbage.is_empty());
    let numbers = outcome.added.iter().map(|added| added.number).collect();
    let mut edit = VersionEdit { blob_added: outcome.added, ..VersionEdit::default() };
    edit.add_file(ashlar_base::Level::ZERO, file.clone());
    (place.empty().apply(&[edit]).unwrap(), file, numbers)
}

/// The entries of a table as a rewrite reads them.
fn entries(version: &Version, file: &NewFile) -> Vec<(Vec<u8>, ValueType, Vec<u8>, bool)> {
    let mut cursor =
        version.table(&ashlar_tree::version::FileMeta::new(file.clone())).unwrap().cursor(1 << 16);
    cursor.seek(None).unwrap();
    let (mut all, mut window) = (vec![], Window::new());
    while cursor.window(&mut window).unwrap() {
        for entry in (0..window.len()).filter_map(|i| window.entry(i)) {
            let (user_key, trailer) = entry.key.split();
            all.push((user_key.to_vec(), trailer.value_type().unwrap(), entry.value.to_vec(), true));
        }
    }
    all
}

#[test]
fn large_values_go_to_blob_files_that_are_closed_when_full() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let (version, file, numbers) = flushed(&place, 100);
    // 30 bytes of header; records of 33 bytes and the value: two in the first file, two in the second.
    assert_eq!((numbers.len(), file.oldest_blob_file), (2, numbers[0]));
    let found = entries(&version, &file);
    let kinds: Vec<bool> = found.iter().map(|e| e.1 == ValueType::BlobIndex).collect();
    assert_eq!(kinds, [false, false, true, true, true, true]);
    for ((key, kind, stored, _), (_, _, value, _)) in found.iter().zip(values()) {
        assert_eq!(*version.blobs().value(key, Some(*kind), stored, ReadHow::plain()).unwrap(), value);
    }
    assert!(version.blobs().files().values().all(|f| f.added.count == 2 && f.garbage.is_none()));
    assert_eq!(place.pending.smallest(), None);

    let deep = BlobOptions { starting_level: 1, ..options(100) };
    let blobs = BlobPlan::new(FamilyId::DEFAULT, &deep, 0);
    let mut sink = TableOutputs::new(plan(&place, blobs), CutLimits::none(), place.numbers());
    assert!(rewrite(&mut sink, &values()).1.added.is_empty(), "not at this level");
}

#[test]
fn what_nobody_points_to_any_more_is_garbage() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let (version, file, numbers) = flushed(&place, 100);
    let mut all = entries(&version, &file);
    for at in [2, 3, 5] {
        all[at].3 = false;
    }
    let off = BlobPlan::new(FamilyId::DEFAULT, &BlobOptions::default(), 6);
    let blobs = off.with_inputs(Arc::clone(version.blobs()));
    let mut sink = TableOutputs::new(plan(&place, blobs), CutLimits::none(), place.numbers());
    let (after, outcome) = rewrite(&mut sink, &all);
    assert_eq!(after.oldest_blob_file, numbers[1], "separated or not, what is left is carried");
    let garbage: Vec<_> = outcome.garbage.iter().map(|g| (g.number, g.count, g.bytes)).collect();
    // Records of 33 bytes with values of 12 and 16, and of 24.
    assert_eq!(garbage, [(numbers[0], 2, 33 + 12 + 33 + 16), (numbers[1], 1, 33 + 24)]);
    let mut edit = VersionEdit { blob_garbage: outcome.garbage, ..VersionEdit::default() };
    edit.delete_file(ashlar_base::Level::ZERO, file.number);
    edit.add_file(ashlar_base::Level(6), after);
    let version = version.apply(&[edit]).unwrap();
    assert_eq!(version.blobs().files().keys().collect::<Vec<_>>(), [&numbers[1]], "the first file is gone");
}

#[test]
fn values_leave_old_files() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let (version, file, numbers) = flushed(&place, 100);
    let mut all = entries(&version, &file);
    let place_of = |value: &[u8]| match BlobIndex::decode(value).unwrap() {
        BlobIndex::Blob(place) => place,
        other => panic!("{other:?}"),
    };
    // An entity at the second key with a large value: its columns are blobs, one in the old file and one in the other.
    let (old, young) = (place_of(&all[3].2), place_of(&all[5].2));
    let column = |name, value| Column { name, value };
    let columns = vec![column(&b""[..], ColumnValue::Blob(old)), column(b"young", ColumnValue::Blob(young))];
    let mut row = Vec::new();
    Entity::new(columns).unwrap().encode(&mut row);
    all[3] = (all[3].0.clone(), Row, row, true);

    for (enabled, files) in [(true, 1), (false, 0)] {
        let half = BlobOptions { enabled, collect_garbage: true, age_cutoff: 0.5, ..options(1 << 20) };
        let blobs = BlobPlan::new(FamilyId::DEFAULT, &half, 6).with_inputs(Arc::clone(version.blobs()));
        let mut sink = TableOutputs::new(plan(&place, blobs), CutLimits::none(), place.numbers());
        let (after, outcome) = rewrite(&mut sink, &all);
        assert_eq!(
            (outcome.added.len(), outcome.added.iter().map(|a| a.count).sum::<u64>()),
            (files, 2 * files as u64)
        );
        assert_eq!(
            outcome.garbage.iter().map(|g| (g.number, g.count)).collect::<Vec<_>>(),
            [(numbers[0], 2)]
        );
        assert_eq!(after.oldest_blob_file, numbers[1]);
        let mut edit = VersionEdit {
            blob_added: outcome.added,
            blob_garbage: outcome.garbage,
            ..VersionEdit::default()
        };
        edit.delete_file(ashlar_base::Level::ZERO, file.number);
        edit.add_file(ashlar_base::Level(6), after.clone());
        let version = version.apply(&[edit]).unwrap();
        assert!(!version.blobs().files().contains_key(&numbers[0]));
        let found = entries(&version, &after);
        assert_eq!(found[2].1, if enabled { ValueType::BlobIndex } else { Put });
        for ((key, kind, stored, _), (_, _, value, _)) in found.iter().zip(values()) {
            assert_eq!(*version.blobs().value(key, Some(*kind), stored, ReadHow::plain()).unwrap(), value);
        }
        assert_eq!(found[3].1, Row);
        let row = Entity::decode(&found[3].2).unwrap();
        assert_eq!(row.get(b"young"), Some(ColumnValue::Blob(young)));
        assert_eq!(matches!(row.default_column(), Some(ColumnValue::Inline(_))), !enabled);
    }
}

#[test]
fn what_is_not_taken_is_removed() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let blobs = BlobPlan::new(FamilyId::DEFAULT, &options(100), 0);
    let mut sink = TableOutputs::new(plan(&place, blobs), CutLimits::none(), place.numbers());
    for (user_key, kind, value, _) in &values()[..5] {
        sink.add(InternalKeyBuf::new(user_key, trailer(7, *kind)).as_key(), value, true).unwrap();
    }
    assert_eq!(place.files().len(), 3, "a table, a full blob file, one in the making");
    drop(sink);
    assert_eq!(place.files(), [""; 0]);
    assert_eq!(place.pending.smallest(), None);
}

#[test]
fn a_blob_that_cannot_be_read_is_not_moved() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let (version, file, numbers) = flushed(&place, 100);
    let all = entries(&version, &file);
    let path = place.dir.join(FileKind::Blob(numbers[0]).name());
    let file = place.env.fs.open_read(&path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes[64] ^= 1;
    place.env.fs.create(&path).unwrap().write_at(&bytes, 0).unwrap();
    let all_old = BlobOptions { collect_garbage: true, age_cutoff: 1.0, ..options(1 << 20) };
    let blobs = BlobPlan::new(FamilyId::DEFAULT, &all_old, 6).with_inputs(Arc::clone(version.blobs()));
    let mut sink = TableOutputs::new(plan(&place, blobs), CutLimits::none(), place.numbers());
    let key = InternalKeyBuf::new(&all[2].0, trailer(7, ValueType::BlobIndex));
    let e = sink.add(key.as_key(), &all[2].2, true).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains(&FileKind::Blob(numbers[0]).name()), "{e}");
}

#[test]
fn an_entry_that_is_there_twice_makes_no_garbage() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let (version, file, numbers) = flushed(&place, 100);
    let blob = entries(&version, &file).remove(3);
    let run = |seqs: &[u64]| {
        let entry = |seq| (blob.0.clone(), trailer(seq, ValueType::BlobIndex), blob.2.clone());
        let entries = seqs.iter().copied().map(entry).collect();
        Box::new(MemoryRun { entries, at: 0, width: 4 }) as Box<dyn RunCursor>
    };
    for (runs, garbage) in [(vec![run(&[7]), run(&[7])], 0), (vec![run(&[8]), run(&[7])], 1)] {
        let blobs = BlobPlan::new(FamilyId::DEFAULT, &BlobOptions::default(), 6)
            .with_inputs(Arc::clone(version.blobs()));
        let sink = TableOutputs::new(plan(&place, blobs), CutLimits::none(), place.numbers());
        let retention = Retention::above_unknown(vec![], Arc::default());
        let mut rewrite = start(&Order::Bytewise, 0, runs, retention, sink).unwrap();
        assert_eq!(rewrite.step(usize::MAX).unwrap(), Progress::Done);
        let outcome = rewrite.sink().take_blobs();
        assert_eq!(
            outcome.garbage.iter().map(|g| (g.number, g.count)).next(),
            (garbage > 0).then_some((numbers[0], 1))
        );
    }
}
