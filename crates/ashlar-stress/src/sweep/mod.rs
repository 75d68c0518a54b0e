//! Runs one fixed list of steps repeatedly, each time with another failing call: it fails once, or from then on always.
//!
//! A step that meets the failure says so or does its work all the same; nothing acknowledged is lost, then or after a
//! crash; nothing hangs. When the calls work again the store opens and takes writes. The same goes for memory that is
//! refused (`memory`).

pub(crate) mod memory;

use crate::sim::brief;
use crate::sim::check::Crash;
use crate::sim::plan::{Setup, Step, steps};
use crate::sim::store::{Store, open};
use crate::sim::tally::{Tally, flavour};
use ashlar_base::error::{IoKind, ShutdownKind};
use ashlar_engine::health::{Health, Severity};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv, SyncFault};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::Op;
use ashlar_testkit::report::scale;
use ashlar_testkit::suite::{Budget, Length, Report, Watchdog, guarded};
use ashlar_testkit::turns;
use std::time::Duration;

/// Which call fails.
#[derive(Clone, Copy, Debug)]
struct Fault {
    class: CallClass,
    at: u64,
    repeat: Repeat,
    /// What it has done all the same, if it is a file's sync.
    sync: SyncFault,
}

fn script(seed: u64) -> (Setup, Vec<Step>) {
    let mut rng = Rng::new(seed);
    let mut setup = Setup::draw(&mut rng);
    setup.family.write_buffer_bytes = 64 << 10;
    setup.family.max_write_buffers = 2;
    setup.unlogged = false;
    let mut steps = steps(&setup, &mut rng, 70);
    let flush = |name: &str| Step::Op(Op::Flush { family: name.to_owned() });
    for (at, step) in [
        (12, flush("one")),
        (20, Step::SyncWal),
        (26, Step::Drop("one")),
        (31, flush("default")),
        (38, Step::Create("one")),
        (45, Step::Op(Op::Reopen)),
        (52, flush("two")),
        (60, Step::Op(Op::Compact { family: "default".to_owned() })),
        (64, Step::Idle),
    ] {
        steps.insert(at.min(steps.len()), step);
    }
    steps.extend(cold_reads());
    (setup, steps)
}

/// Reads that meet no block in memory: right after the open, of keys that most lists write.
fn cold_reads() -> Vec<Step> {
    let family = || "default".to_owned();
    let mut steps = vec![Step::Idle, Step::Op(Op::Compact { family: family() }), Step::Op(Op::Reopen)];
    steps.extend(
        (0..64).step_by(9).map(|key| {
            Step::Op(Op::Get { family: family(), key: format!("k{key:02}").into_bytes(), at: None })
        }),
    );
    steps.push(Step::Op(Op::Reopen));
    let (from, to) = (b"k".to_vec(), b"l".to_vec());
    steps.push(Step::Op(Op::Scan { family: family(), from, to, reverse: false, at: None }));
    steps
}

/// Runs the script. `Err`: what is wrong.
fn once(seed: u64, fault: Option<Fault>, counts: &mut [u64; 4]) -> Result<(), String> {
    let (setup, steps) = script(seed);
    let sim = SimEnv::new(seed);
    if let Some(Fault { class, at, repeat, sync }) = fault {
        let kind = if at % 3 == 0 { IoKind::NoSpace } else { IoKind::Other };
        sim.set_sync_fault(sync);
        sim.fail_call(class, at, repeat, kind);
    }
    let mut store = match Store::new(sim.clone(), setup.clone()) {
        Ok(store) => store,
        Err(e) if fault.is_none() => return Err(e),
        Err(_) => {
            sim.heal();
            return open(&sim, &setup).map(drop).map_err(|e| format!("after a first open that failed: {e}"));
        }
    };
    store.faulty = fault.is_some();
    for (at, step) in steps.iter().enumerate() {
        store.step(step).map_err(|e| format!("step {at}, {}: {e}", brief(step)))?;
    }
    if fault.is_none() {
        let sim = &store.sim;
        counts.clone_from(
            &[CallClass::Write, CallClass::Sync, CallClass::Change, CallClass::Read].map(|c| sim.calls_of(c)),
        );
        return store.compare_all();
    }
    judge(&mut store)
}

/// The power goes, the process dies, or the store is closed and opened: what was promised is there.
fn judge(store: &mut Store) -> Result<(), String> {
    let mut rng = Rng::new(store.failures);
    let promise = store.promise.clone();
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
        let image = store.sim.crash(mode);
        Crash::of(store, &promise, false).check(&image, mode, &mut rng, &mut Tally::default())?;
    }
    store.sim.heal();
    go_on(store)?;
    let failures = store.failures;
    store.step(&Step::Op(Op::Reopen))?;
    if store.failures > failures {
        let again = open(&store.sim, &store.setup);
        let db = again.map_err(|e| format!("does not open though every call works again: {e}"))?;
        let (m, names) = Crash::of(store, &promise, false).look(&db)?;
        store.adopt(store.sim.clone(), db, m, names);
    }
    store.faulty = false;
    let last = Step::Op(Op::Write { changes: Vec::new(), sync: true });
    for step in [last, Step::Idle, Step::SyncWal, Step::Op(Op::Reopen)] {
        store.step(&step).map_err(|e| format!("when every call works again: {}: {e}", brief(&step)))?;
    }
    store.compare_all()
}

/// Every call works again: the same handle takes writes, unless it says that only a new open helps.
fn go_on(store: &mut Store) -> Result<(), String> {
    let resumed = store.db.resume();
    let Health { severity, cause, .. } = store.db.health();
    match resumed {
        Ok(()) if severity < Severity::Full => {}
        Err(e)
            if severity >= Severity::Fatal
                || e.kind() == ashlar_base::ErrorKind::Shutdown(ShutdownKind::Closed) =>
        {
            return Ok(());
        }
        other => return Err(format!("does not resume: {other:?}, {severity:?}, {cause:?}")),
    }
    store.settle_doubt()?;
    store.faulty = false;
    let last = Step::Op(Op::Write { changes: Vec::new(), sync: true });
    for step in [last, Step::Idle, Step::SyncWal] {
        store.step(&step).map_err(|e| format!("resumed in the same handle: {}: {e}", brief(&step)))?;
    }
    store.compare_all()?;
    // A purge that failed may still pause.
    store.sim.env().jobs.drive(10_000);
    let Health { severity, cause, .. } = store.db.health();
    if severity != Severity::Healthy {
        return Err(format!("stays {severity:?}: {cause:?}"));
    }
    let promise = store.promise.clone();
    let mut rng = Rng::new(7);
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
        let image = store.sim.crash(mode);
        Crash::of(store, &promise, false).check(&image, mode, &mut rng, &mut Tally::default())?;
    }
    store.faulty = true;
    Ok(())
}

fn cases(counts: &[u64; 4]) -> Vec<Fault> {
    let mut cases = Vec::new();
    let [write, sync, _, read] = *counts;
    let mut fail = |class, n, repeats: &[Repeat], sync| {
        for at in 1..=n {
            cases.extend(repeats.iter().map(|repeat| Fault { class, at, repeat: *repeat, sync }));
        }
    };
    let both = [Repeat::Once, Repeat::Sticky];
    for (class, n) in [(CallClass::Write, write), (CallClass::Sync, sync), (CallClass::Read, read)] {
        fail(class, n, &both, SyncFault::Kept);
    }
    // From here on nothing changes any more.
    fail(CallClass::Change, write + sync, &[Repeat::Sticky], SyncFault::Kept);
    for fault in [SyncFault::Reverted, SyncFault::Late, SyncFault::Spurious] {
        fail(CallClass::Sync, sync, &both, fault);
    }
    cases
}

/// Scripts of a long run; a quick one has the first.
const SCRIPTS: u64 = 6;
const FIRST_SCRIPT: u64 = 3;

/// Every call of a script fails in turn, then allocations; `--replay=SCRIPT-CASE` is one of them.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("sweep", budget);
    let watchdog = Watchdog::new("sweep", Duration::from_secs(60));
    let replay = budget.replay.as_deref().and_then(|words| words.split_once('-'));
    let replay = replay.and_then(|(script, case)| Some((script.parse().ok()?, case.parse().ok()?)));
    let first = FIRST_SCRIPT + budget.seed;
    let scripts = match (replay, budget.length) {
        (Some((script, _)), _) => script..script + 1,
        (None, _) if budget.replay.is_some() => 0..0,
        (None, Length::Quick) => first..first + 1,
        (None, Length::For(_)) => first..u64::MAX,
    };
    for script in scripts {
        if script >= first + SCRIPTS && budget.is_over() {
            break;
        }
        let only = replay.map(|(_, case)| case);
        sweep(script, only, budget, &watchdog, &mut report);
    }
    if replay.is_none() && !budget.is_enough(&report) {
        memory::sweep(budget, &watchdog, &mut report);
    }
    drop(watchdog);
    report.done(budget)
}

fn sweep(script: u64, only: Option<u64>, budget: &Budget, watchdog: &Watchdog, report: &mut Report) {
    let mut counts = [0; 4];
    let turn = turns::beside_others();
    let whole = guarded(|| once(script, None, &mut counts));
    drop(turn);
    if let Err(e) = whole {
        report.fail(format!("{script}-0"), format!("no call fails: {e}"));
        return;
    }
    report.count("scripts", 1);
    report.count("calls", counts[0] + counts[1] + counts[3]);
    // A quick run makes one call in `step` fail once, and one in three of those for good, or as a sync that fails in another
    // way.
    let quick = budget.length == Length::Quick && only.is_none();
    let step = scale(6, 1) as u64;
    let plain = |fault: &Fault| [fault.repeat == Repeat::Once, fault.sync == SyncFault::Kept];
    let rare = |fault: &Fault| match plain(fault) {
        _ if !quick => false,
        [false, false] => true,
        [true, true] => !fault.at.is_multiple_of(step),
        _ => fault.at % (3 * step) != fault.sync as u64 % 3,
    };
    let wanted = |case: u64, fault: &Fault| only.map_or(!rare(fault), |only| only == case);
    for (case, fault) in (0..).zip(cases(&counts)).filter(|(case, fault)| wanted(*case, fault)) {
        if budget.is_enough(report) {
            break;
        }
        let _turn = turns::beside_others();
        let _case = watchdog.begins(format!("{script}-{case}"));
        report.count("calls made to fail", 1);
        if fault.class == CallClass::Sync {
            report.count(&format!("syncs made to fail, {}", flavour(fault.sync)), 1);
        }
        if let Err(e) = guarded(|| once(script, Some(fault), &mut [0; 4])) {
            report.fail(format!("{script}-{case}"), format!("{fault:?}: {e}"));
        }
    }
}
