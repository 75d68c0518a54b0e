//! Each call of a script fails in turn, once or permanently, and then the power is cut: the directory opens, and holds
//! all acknowledged data.

use super::*;
use ashlar_base::error::IoKind;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};

/// The data that the script knows to be durable.
#[derive(Debug, Default)]
struct Acknowledged {
    created: bool,
    tables: Vec<FileNumber>,
    families: Vec<String>,
}

/// Creates a database, opens it, and commits over several MANIFEST switches. Continues after errors where a caller
/// would.
fn script(env: &Env, acked: &mut Acknowledged) -> Result<()> {
    create_database(env, dir(), &Order::Bytewise)?;
    acked.created = true;
    for open in 0..2u64 {
        let r = recover(env)?;
        let v = &r.versions;
        v.set_manifest_bound(0);
        for i in 0..4 {
            // A failed commit is retried with a new file, as a flush would do.
            for _ in 0..2 {
                let at = open * 100 + i + 1;
                let Ok(number) = flush(env, v, "k", at) else { continue };
                acked.tables.push(number);
                break;
            }
        }
        let name = format!("family {open}");
        if v.create_family(&name, Order::Bytewise, 7, FileNumber(0)).is_ok() {
            acked.families.push(name);
        }
        settle_identity(&*env.fs, &r.versions)?;
    }
    Ok(())
}

fn check(env: &Env, acked: &Acknowledged, context: &str) {
    match survey(&*env.fs, dir()) {
        Ok(DirState::Database(_)) => {}
        Ok(_) => {
            assert!(!acked.created, "{context}: the database is gone");
            return;
        }
        Err(e) => panic!("{context}: {e}"),
    }
    let r = recover(env).unwrap_or_else(|e| panic!("{context}: {e}"));
    let families = r.versions.families();
    let tables: Vec<_> = families.iter().flat_map(|f| f.version.files()).map(|(_, f)| f.number()).collect();
    for number in &acked.tables {
        assert!(tables.contains(number), "{context}: table {number} of {:?} is lost", shape(&r.versions));
    }
    for name in &acked.families {
        assert!(families.iter().any(|f| f.name == *name), "{context}: {name} is lost");
    }
    // The database can be used further.
    flush(env, &r.versions, "more", 1000).unwrap_or_else(|e| panic!("{context}: {e}"));
    recover(env).unwrap_or_else(|e| panic!("{context}: {e}"));
}

#[test]
fn the_script_passes_without_faults() {
    let sim = SimEnv::new(1);
    let mut acked = Acknowledged::default();
    script(&sim.env(), &mut acked).unwrap();
    assert_eq!((acked.tables.len(), acked.families.len()), (8, 2));
    for mode in CrashMode::all() {
        check(&sim.crash(mode).env(), &acked, &format!("{mode:?}"));
    }
}

#[test]
fn a_crash_after_any_failing_call() {
    let calls = {
        let sim = SimEnv::new(1);
        script(&sim.env(), &mut Acknowledged::default()).unwrap();
        sim.calls_of(CallClass::Change)
    };
    assert!(calls > 60, "{calls} calls");
    let mut crashes = 0;
    for repeat in [Repeat::Sticky, Repeat::Once] {
        for k in 1..=calls {
            let sim = SimEnv::new(k);
            sim.fail_call(CallClass::Change, k, repeat, IoKind::Other);
            let mut acked = Acknowledged::default();
            let result = script(&sim.env(), &mut acked);
            let modes = CrashMode::all();
            let picked = [
                CrashMode::DROP_ALL,
                CrashMode::KILL,
                modes[usize::try_from(k).unwrap() % modes.len()],
                modes[usize::try_from(k * 7 + 3).unwrap() % modes.len()],
            ];
            for mode in picked {
                let context = format!("call {k} of {calls} fails {repeat:?} ({result:?}), crash {mode:?}");
                check(&sim.crash(mode).env(), &acked, &context);
                crashes += 1;
            }
        }
    }
    assert!(crashes > 500, "{crashes} crashes");
}

#[test]
fn a_failed_manifest_is_never_appended_to() {
    let sim = SimEnv::new(3);
    let env = sim.env();
    let v = fresh(&env).versions;
    let a = flush(&env, &v, "a", 1).unwrap();
    let manifest = v.manifest_number();
    let path = dir().join(FileKind::Manifest(manifest).name());
    // The fsync of the append fails once: it is unknown whether its bytes are on disk.
    let number = v.new_file_number();
    table_file(&env, number).unwrap();
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::NoSpace);
    let e = v.commit(vec![flush_edit(number, "b", 2)]).unwrap_err();
    assert_eq!(e.kind(), ashlar_base::ErrorKind::Io(IoKind::NoSpace));
    assert!(!v.may_unlink() && v.fatal().is_none());
    assert_eq!(shape(&v), [format!("0 default: L0 {} log 0", a.0)], "nothing was installed");
    let len = get(&*env.fs, &path).len();
    // The next commit starts a new file with exactly the valid edits.
    let c = flush(&env, &v, "c", 3).unwrap();
    assert!(v.may_unlink());
    assert!(v.manifest_number() > manifest);
    assert_eq!(get(&*env.fs, &path).len(), len);
    assert_eq!(shape(&recover(&env).unwrap().versions), [format!("0 default: L0 {} {} log 0", c.0, a.0)]);
}

#[test]
fn an_unknown_switch_of_current_is_fatal() {
    let sim = SimEnv::new(4);
    let env = sim.env();
    let r = fresh(&env);
    let v = &r.versions;
    // Finds the rename among the changes of a first commit by trying: a failure before it can be recovered from, a
    // failure from it on cannot.
    let mut healed = 0;
    let mut fatal = 0;
    for k in 1..30 {
        let v = recover(&env).unwrap().versions;
        sim.heal();
        sim.fail_call(CallClass::Change, sim.calls_of(CallClass::Change) + k, Repeat::Once, IoKind::Other);
        if v.commit(Vec::new()).is_ok() {
            break;
        }
        match v.commit(Vec::new()) {
            Ok(()) => healed += 1,
            Err(_) => {
                fatal += 1;
                assert!(v.fatal().is_some() && !v.may_unlink());
            }
        }
    }
    sim.heal();
    assert!(healed >= 5, "{healed} failures before the switch");
    assert_eq!(fatal, 2, "the rename and the fsync of the directory behind it");
    assert!(v.fatal().is_none());
}
