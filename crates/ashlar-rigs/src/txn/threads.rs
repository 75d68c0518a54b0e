//! Threads that add to counters in transactions of both kinds: every committed addition counts, whatever runs beside it.

use ashlar_testkit::Rng;
use ashlar_testkit::suite::Report;
use ashlardb::prelude::*;
use ashlardb::{BusyKind, Env, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;

const COUNTERS: usize = 2;

fn number(value: Option<ashlardb::View>) -> u64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The case of a seed. The order of the threads is the machine's.
pub fn run(seed: u64, report: &mut Report) -> Result<(), String> {
    let text = |e: ashlardb::Error| e.to_string();
    let db = Db::builder("/db").env(Env::mem()).open().map_err(text)?;
    let added = [const { AtomicU64::new(0) }; COUNTERS];
    let (db, added) = (&db, &added);
    let refused: u64 = scope(|scope| {
        let adders: Vec<_> =
            (0..4).map(|thread| scope.spawn(move || add(db, added, seed.wrapping_mul(8) + thread))).collect();
        let beside = scope.spawn(move || -> Result<()> {
            for n in 0..300_u32 {
                db.put(format!("beside{}", n % 7), n.to_le_bytes())?;
                if n % 100 == 99 {
                    db.flush()?;
                }
                if n % 10 == 9 {
                    drop(db.prepared_transactions()?);
                }
            }
            Ok(())
        });
        let refused = adders.into_iter().map(|adder| join(adder)).sum::<Result<u64>>();
        join(beside).and(refused)
    })
    .map_err(text)?;
    report.count("additions refused", refused);
    for (at, added) in added.iter().enumerate() {
        let (want, got) = (added.load(Ordering::Relaxed), number(db.get(key(at)).map_err(text)?));
        report.count("additions", want);
        if got != want {
            return Err(format!("{want} additions were committed, and the counter has {got}"));
        }
    }
    db.close().map_err(text)
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn key(counter: usize) -> String {
    format!("counter{counter}")
}

/// Commits a transaction, in two phases now and then. The handle may be dropped in between; another thread may then find the
/// transaction before this one, and gives it back.
fn end(db: &Db, t: Transaction, rng: &mut Rng) -> Result<()> {
    if !rng.percent(30) || t.set_name(t.id().to_le_bytes()).is_err() {
        return t.commit();
    }
    t.prepare()?;
    if rng.percent(50) {
        return t.commit();
    }
    let name = t.name().unwrap_or_default();
    drop(t);
    loop {
        match db.transaction_by_name(&name) {
            Ok(Some(t)) => return t.commit(),
            Ok(None) => return Err(ashlardb::Error::corruption("a prepared transaction is gone")),
            Err(e) if e.kind() == ErrorKind::InvalidArgument => std::thread::yield_now(),
            Err(e) => return Err(e),
        }
    }
}

/// Adds one to random counters, to one or two in a transaction. Returns how often a transaction was refused.
fn add(db: &Db, added: &[AtomicU64; COUNTERS], seed: u64) -> Result<u64> {
    let mut rng = Rng::new(seed);
    let mut refused = 0;
    for _ in 0..150 {
        let locks = rng.below(3) == 0;
        // Without a timeout: a busy machine delays a holder, and circles are detected.
        let pessimistic = || TransactionOptions::new().no_lock_timeout();
        let options = if locks { pessimistic() } else { TransactionOptions::optimistic() };
        let first = rng.below(COUNTERS);
        let count = rng.between(1, 2);
        let t = db.begin_with(options.snapshot(rng.percent(20)))?;
        let range = if locks && rng.percent(25) { t.lock_range("counter".."counter~") } else { Ok(()) };
        let add = |n: usize| {
            let key = key((first + n) % COUNTERS);
            // A shared lock that becomes an exclusive one, now and then.
            let value = if rng.percent(30) { t.get_for_share(&key)? } else { t.get_for_update(&key)? };
            t.put(&key, (number(value) + 1).to_le_bytes())
        };
        let done = range.and_then(|()| (0..count).try_for_each(add));
        match done.and_then(|()| end(db, t, &mut rng)).map_err(|e| (e.kind(), e)) {
            Ok(()) => (0..count).for_each(|n| {
                added[(first + n) % COUNTERS].fetch_add(1, Ordering::Relaxed);
            }),
            Err((ErrorKind::Busy(BusyKind::Conflict | BusyKind::Deadlock), _)) => refused += 1,
            Err((_, e)) => return Err(e),
        }
    }
    Ok(refused)
}
