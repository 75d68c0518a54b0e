//! The end of a MANIFEST: torn by a crash, or damaged after it was durable.

use super::replay::{batch, link, write_wal};
use super::*;
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_testkit::Rng;

/// A database with `commits` tables, its shape after each commit, and where each commit ended in the MANIFEST.
fn grown(commits: u64) -> (Env, Vec<String>, Vec<usize>) {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let (mut shapes, mut ends) = (Vec::new(), Vec::new());
    for at in 1..=commits {
        flush(&env, &v, "key", at).unwrap();
        shapes.push(shape(&v).join("; "));
        ends.push(get(&*env.fs, &manifest_of(&v)).len());
    }
    (env, shapes, ends)
}

fn manifest_of(v: &VersionSet) -> PathBuf {
    dir().join(FileKind::Manifest(v.manifest_number()).name())
}

#[test]
fn only_the_last_commit_may_be_damaged() {
    let (env, shapes, ends) = grown(4);
    let path = manifest_of(&recover(&env).unwrap().versions);
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let good = get(&*env.fs, &path);
    for (at, zeros) in (0..good.len()).flat_map(|at| [(at, false), (at, true)]) {
        let mut bad = good.clone();
        if zeros {
            bad[at..].fill(0)
        } else {
            bad[at] ^= 0x41
        }
        put(&env, &name, &bad);
        match recover(&env) {
            Ok(r) => {
                assert!(r.report.tail_dropped(), "byte {at}: {}", r.report);
                let kept = ends.iter().rposition(|end| *end <= at).expect("the beginning is not forgiven");
                assert_eq!(shape(&r.versions).join("; "), shapes[kept], "byte {at}");
                assert!(zeros || kept + 2 == shapes.len(), "byte {at}: more than the last commit is gone");
            }
            Err(e) => {
                assert!(e.is_corruption() && e.path().is_some(), "byte {at}: {e}");
                assert!(at < if zeros { ends[0] } else { ends[2] }, "byte {at}: {e}");
            }
        }
    }
    for len in 0..good.len() {
        put(&env, &name, &good[..len]);
        let kept = ends.iter().rposition(|end| *end <= len);
        let found = recover(&env).map(|r| shape(&r.versions).join("; "));
        assert_eq!(found.ok().as_deref(), kept.map(|n| shapes[n].as_str()), "cut to {len}");
    }
}

/// Commits `records` tables at a time and crashes in every call of the commit. Returns how often an open dropped a torn
/// tail.
fn crash_in_any_call(records: u64) -> usize {
    let mut rng = Rng::new(4);
    let modes = CrashMode::all();
    let mut dropped = 0;
    for seed in 0..6 {
        let sim = SimEnv::new(seed);
        let env = sim.env();
        let v = fresh(&env).versions;
        flush(&env, &v, "first", 1).unwrap();
        let mut before = shape(&v);
        for at in 2..60 {
            for call in 1..=6 * records {
                let call = sim.calls_of(CallClass::Change) + call;
                sim.photograph_at(call, *rng.pick(&modes).unwrap());
            }
            let table = |record| {
                let number = v.new_file_number();
                table_file(&env, number).unwrap();
                flush_edit(number, &"x".repeat(rng.between(1, 700)), at * records + record)
            };
            let edits = (0..records).map(table).collect();
            v.commit(edits).unwrap();
            let after = shape(&v);
            for (call, mode, machine) in sim.photographs() {
                let r =
                    recover(&machine.env()).unwrap_or_else(|e| panic!("{seed}, call {call}, {mode:?}: {e}"));
                let found = shape(&r.versions);
                assert!(found == before || found == after, "{seed}, call {call}, {mode:?}: {found:?}");
                dropped += usize::from(r.report.tail_dropped());
            }
            before = after;
        }
    }
    dropped
}

#[test]
fn a_crash_in_any_call_leaves_the_commit_whole_or_none() {
    let dropped = crash_in_any_call(1);
    assert!(dropped > 20, "too few torn commits: {dropped}");
}

/// No record reaches the disk before the previous one: data after a gap would look like damage.
#[test]
fn a_crash_leaves_no_hole_in_a_commit_of_several_records() {
    let dropped = crash_in_any_call(3);
    assert!(dropped > 20, "too few torn commits: {dropped}");
}

#[test]
fn the_logs_are_a_witness_of_the_manifest() {
    let (env, _, ends) = grown(3);
    let path = manifest_of(&recover(&env).unwrap().versions);
    let good = get(&*env.fs, &path);
    put(&env, path.file_name().unwrap().to_str().unwrap(), &good[..ends[2] - 1]);
    let replayed = || {
        let mut r = recover(&env).unwrap();
        assert!(r.report.tail_dropped());
        replay_into(&env, &mut r, RecoveryMode::PointInTime).map(|(_, notes)| notes.ops.len())
    };
    write_wal(&env, 900, &[batch(7, &["a"])]);
    write_wal(
        &env,
        901,
        &[link(8, 900, get(&*env.fs, &dir().join("000900.log")).len() as u64), batch(8, &["b"])],
    );
    assert_eq!(replayed().unwrap(), 2);
    env.fs.remove(&dir().join("000900.log")).unwrap();
    let e = replayed().unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("the WAL file 000900 is gone"), "{e}");
    assert_eq!(
        (e.path(), e.offset()),
        (Some(&*path), Some(ends[1] as u64)),
        "it is the MANIFEST that is damaged"
    );
    env.fs.remove(&dir().join("000901.log")).unwrap();
    let mut stranger = ashlar_format::write_batch::BatchEncoder::new();
    stranger.put(FamilyId(1), b"a", b"b").unwrap();
    write_wal(&env, 902, &[stranger.finish(seq(7)).to_vec()]);
    let e = replayed().unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("family 1"), "{e}");
}
