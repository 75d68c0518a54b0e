//! Medians, order and marks.

use super::*;
use crate::sample;

#[test]
fn medians_and_spread() {
    let of = |values: &[f64]| Spread::of(values.iter().copied());
    let spread = of(&[3.0, 1.0, 2.0]).unwrap();
    assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
    assert!((spread.cv - 0.5).abs() < 1e-9);
    assert_eq!(of(&[4.0, 1.0]).unwrap().median, 2.5);
    assert_eq!(of(&[7.0]).unwrap().cv, 0.0);
    assert_eq!(of(&[]), None);
    assert!(spread.ties(&of(&[3.5, 3.6]).unwrap()));
    assert!(!of(&[1.0, 1.1]).unwrap().ties(&of(&[2.0]).unwrap()));
}

#[test]
fn ours_first_then_the_reference() {
    let run = sample::comparison();
    let summary = Summary::of(&run);
    assert_eq!(summary.engines, ["ashlardb", "rocksdb", "leveldb", "treedb", "lmdb"]);
    assert_eq!(summary.groups.len(), 1);
    let group = &summary.groups[0];
    assert_eq!(group.title(), "LevelDB’s page, standard size, matched settings");
    assert_eq!(group.rows.iter().map(|row| row.id).collect::<Vec<_>>(), ["1A", "1B", "1C", "1D", "2D-rand"]);
    assert_eq!(group.baseline("2D-rand").map(|(row, bytes)| (row.id, bytes)), Some(("1D", false)));
    assert!(group.baseline("1D").is_none());
    let row = &group.rows[0];
    assert_eq!(row.cells.len(), 5);
    assert_eq!(row.history.iter().map(|(engine, _)| *engine).collect::<Vec<_>>(), ["leveldb", "treedb"]);
    assert_eq!(row.of("ashlardb").unwrap().runs.len(), 3);
    assert!(row.best().unwrap().median >= row.of("rocksdb").unwrap().rate().unwrap().median);
}

#[test]
fn what_must_be_known_is_said() {
    let mut run = sample::comparison();
    let marks = |run: &Run| Summary::of(run).marks.join("\n");
    assert_eq!(marks(&run), "treedb: not here: no library libkyotocabinet");
    for record in &mut run.records {
        if record.engine.name == "lmdb" && record.row == "1B" {
            record.hash.reads = Some("other".into());
        }
        if record.engine.name == "leveldb" && record.row == "1C" {
            record.status = Status::Void { why: "swap was used".into() };
        }
        if record.engine.name == "ashlardb" && record.row == "1B" {
            record.params.options.insert("memory limit".into(), "not held: no group".into());
            record.params.options.insert("durability".into(), "64 waits for the device".into());
        }
        if record.row == "1C" {
            record.params.options.insert(CHECKED.into(), "9".into());
        }
        record.size = Some("smoke".into());
    }
    run.records.retain(|record| record.rep < 3);
    let said = marks(&run);
    for part in [
        "leveldb, 1C: void: swap was used",
        "ashlardb, 1B: memory limit not held: no group",
        "the consistency check passed after each of the 6 runs that count, of 3 engines",
        "1B: the engines did not read or do the same",
        "fewer than three repetitions of some figures (the least: 2)",
        "smoke size",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Runs that the clock ended read different things, and say so by having no sum.
#[test]
fn what_was_not_the_same_work_is_not_held_together() {
    let mut run = sample::comparison();
    for (index, record) in (0..).zip(&mut run.records) {
        record.hash.reads = None;
        record.hash.data = Some(format!("{index:x}"));
        if let Some(found) = record.ops.as_mut().and_then(|ops| ops.found.as_mut()) {
            *found += index;
        }
    }
    assert!(!Summary::of(&run).marks.iter().any(|mark| mark.starts_with("void")));
}

/// A run that the clock ends counts its first operations only, and a faster engine finds more in the same time.
#[test]
fn only_whole_runs_found_the_same() {
    let mut run = sample::comparison();
    let found = |run: &mut Run, limit| {
        for (index, record) in (0..).zip(run.records.iter_mut().filter(|record| record.row == "1B")) {
            record.params.limit = limit;
            if let Some(found) = record.ops.as_mut().and_then(|ops| ops.found.as_mut()) {
                *found += index;
            }
        }
        Summary::of(run).marks.iter().any(|mark| mark.starts_with("void"))
    };
    assert!(!found(&mut run, Limit::Time));
    assert!(found(&mut run, Limit::Count));
}

#[test]
fn two_forms_of_one_engine_have_one_history() {
    let mut run = sample::comparison();
    for record in &mut run.records {
        let forms = [("leveldb", "sqlite"), ("lmdb", "sqlite-rollback")];
        if let Some((_, to)) = forms.iter().find(|(from, _)| record.engine.name == *from) {
            record.engine.name = (*to).into();
        }
    }
    run.records.sort_by_key(|record| record.engine.name.clone());
    let summary = Summary::of(&run);
    let row = summary.groups[0].rows.iter().find(|row| row.id == "1A").unwrap();
    assert_eq!(row.history.iter().map(|(engine, _)| *engine).collect::<Vec<_>>(), ["sqlite", "treedb"]);
}
