//! LevelDB 1.23 writes, is closed or killed, and reads what it wrote.

use ashlar_testkit::judge::{Opening, place};
use ashlar_testkit::ops::{Mix, draw};
use ashlar_testkit::oracle::State;
use ashlar_testkit::{Judge, JudgeVersion, Model, Op, Skip, report};
use std::path::Path;

const SETTINGS: &str = "write_buffer_size=65536;block_size=1024;block_restart_interval=3;compression=0;bloom_bits=10;max_open_files=80";

/// This package's own build of the judge, not the one that setup left.
fn start(version: JudgeVersion) -> Result<Judge, Skip> {
    let library = place(version.name())?;
    Ok(Judge::spawn_with(Path::new(env!("CARGO_BIN_EXE_rocksdb-judge")), &library).expect("the judge starts"))
}

fn state_of(judge: &mut Judge) -> State {
    assert_eq!(judge.families().unwrap(), ["default"]);
    let listing = judge.dump("default").unwrap();
    let mut backwards = judge.dump_backwards("default").unwrap();
    backwards.reverse();
    assert_eq!(backwards, listing);
    for (key, value) in listing.iter().step_by(7) {
        assert_eq!(judge.get("default", key).unwrap().as_ref(), Some(value));
    }
    State::of([("default".to_owned(), listing)])
}

fn written_and_read(seed: u64, killed: bool) -> Result<(), Skip> {
    let dir = tempfile::tempdir().unwrap();
    let mix = Mix { families: vec!["default".into()], max_value_bytes: 2000, ..Mix::writes_only() };
    let mut model = Model::new();
    let mut judge = start(JudgeVersion::LevelDb)?;
    judge.open(dir.path(), Opening::Existing, "").unwrap_err();
    judge.open(dir.path(), Opening::Create, "no_such_setting=1").unwrap_err();
    judge.open(dir.path(), Opening::Create, SETTINGS).unwrap();
    for op in draw(seed, 500, &mix) {
        match &op {
            Op::Write { changes, .. } if judge.apply(std::slice::from_ref(&op)).is_ok() => {
                model.apply(changes);
            }
            Op::Compact { .. } => judge.apply(&[op]).unwrap(),
            _ => {}
        }
    }
    assert!(model.writes() > 100);
    if killed {
        judge.kill()
    } else {
        judge.close().unwrap()
    }
    let mut judge = start(JudgeVersion::LevelDb)?;
    judge.open(dir.path(), Opening::Existing, SETTINGS).unwrap();
    assert_eq!(model.match_prefix(&state_of(&mut judge)), Ok(model.writes()));
    Ok(())
}

#[test]
fn leveldb_reads_what_it_wrote() {
    for (seed, killed) in [(1, false), (2, true)] {
        if let Err(skip) = written_and_read(seed, killed) {
            return report::skipped("leveldb_reads_what_it_wrote", skip.why());
        }
    }
}
