//! A level-0 compaction waits for tables that writers are about to fill, but not for writers that have stopped.

use ashlar_base::FamilyId;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::jobs::InlineExecutor;
use ashlar_env::{
    Clock, Env, Job, JobExecutor, JobId, Lane, MemFs, SeededRand, StepBudget, StepResult, VirtualClock,
};
use ashlar_options::{CompactionOptions, DbOptions, FamilyOptions, WriteOptions};
use ashlar_sync::Signal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const TRIGGER: usize = 2;

struct Busy {
    clock: Arc<VirtualClock>,
    env: Env,
    db: Db,
    written: u32,
}

impl Busy {
    fn new() -> Busy {
        Busy::with(|jobs| Arc::new(jobs))
    }

    /// A database whose base level has many times the bytes of a memtable.
    fn with(executor: impl FnOnce(InlineExecutor) -> Arc<dyn JobExecutor>) -> Busy {
        let clock = Arc::new(VirtualClock::new());
        let jobs = executor(InlineExecutor::new(Arc::clone(&clock), SeededRand::new(3)));
        let env = Env {
            fs: Arc::new(MemFs::new()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            rand: Arc::new(SeededRand::new(3)),
            jobs,
        };
        let compaction = CompactionOptions { l0_trigger: TRIGGER, ..CompactionOptions::default() };
        let family = FamilyOptions { write_buffer_bytes: 64 << 10, compaction, ..FamilyOptions::default() };
        let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
        let db =
            Db::open(env.clone(), Path::new("/db"), DbOptions::default(), vec![default], family).unwrap();
        let mut busy = Busy { clock, env, db, written: 0 };
        (0..80).for_each(|_| busy.write());
        busy.db.flush(&[busy.family()]).unwrap();
        busy.db.compact_range(&busy.family(), None, None).unwrap();
        assert_eq!(busy.level0(), 0);
        busy
    }

    fn family(&self) -> Arc<Family> {
        self.db.family("default").unwrap()
    }

    fn level0(&self) -> usize {
        self.db.shape(&self.family()).levels[0].0
    }

    /// Writes some entries of a hundred thousand keys, about a tenth of a second later; flushes follow.
    fn write(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..50 {
            self.written += 1;
            let key = self.written.wrapping_mul(2_654_435_761) % 100_000;
            let value = u64::from(self.written).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().repeat(25);
            batch.put(FamilyId::DEFAULT, &key.to_be_bytes(), &value).unwrap();
        }
        self.db.write(&mut batch, WriteOptions::default()).unwrap();
        self.clock.advance(Duration::from_millis(100));
        while self.db.property_int(&self.family(), "rocksdb.num-immutable-mem-table") > Some(0) {
            self.env.jobs.drive(1);
        }
    }

    fn gather(&mut self, tables: usize) {
        for _ in 0..200 {
            if self.level0() == tables {
                return;
            }
            self.write();
        }
        panic!("level 0 never has {tables} tables");
    }
}

#[test]
fn a_writer_is_waited_for_until_it_stops() {
    let _readers = crate::beside_others();
    let mut busy = Busy::new();
    busy.gather(TRIGGER * 2);
    // No call is made; only the clock advances.
    let stopped = busy.clock.now();
    busy.env.jobs.drive(100_000);
    assert_eq!(busy.level0(), 0);
    let waited = busy.clock.now() - stopped;
    assert!(waited > Duration::from_millis(100) && waited < Duration::from_secs(5), "{waited:?}");
}

#[test]
fn who_waits_for_background_work_ends_the_waiting() {
    // A purge pauses for the readers of other tests.
    let _alone = crate::alone();
    let mut busy = Busy::new();
    busy.gather(TRIGGER + 1);
    let before = busy.clock.now();
    busy.db.wait_for_background().unwrap();
    assert_eq!((busy.level0(), busy.clock.now()), (0, before));
    busy.gather(TRIGGER + 1);
    busy.db.pause_background_work().unwrap();
    busy.db.continue_background_work().unwrap();
    busy.gather(TRIGGER + 2);
    busy.db.close().unwrap();
}

/// Runs each job as far as possible before its submitter learns the job's id, as threads do on a busy machine.
#[derive(Debug)]
struct Eager {
    jobs: InlineExecutor,
    wakes: AtomicUsize,
}

impl JobExecutor for Eager {
    fn submit(&self, mut job: Box<dyn Job>, lane: Lane) -> JobId {
        loop {
            match job.step(StepBudget::default()) {
                StepResult::Again => {}
                StepResult::Wait(_) => break,
                StepResult::Done => return JobId(u64::MAX),
            }
        }
        let id = self.jobs.submit(job, lane);
        // No other job can run, so this one waits.
        self.jobs.drive(1);
        id
    }

    fn wake(&self, id: JobId) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.jobs.wake(id);
    }

    fn knows(&self, id: JobId) -> bool {
        self.jobs.knows(id)
    }

    fn width(&self, lane: Lane) -> usize {
        self.jobs.width(lane)
    }

    fn widen(&self, lane: Lane, width: usize) {
        self.jobs.widen(lane, width);
    }

    fn signal(&self) -> Signal {
        self.jobs.signal()
    }

    fn drive(&self, steps: usize) -> usize {
        self.jobs.drive(steps)
    }

    fn close(&self) {
        self.jobs.close();
    }
}

/// Regression: a flush that ended before its id was known made the database forget the job that waits for the next
/// table. A close, and a pause of background work, then took as long as that wait.
#[test]
fn a_close_wakes_who_waits_whatever_ended_meanwhile() {
    let _readers = crate::beside_others();
    let mut busy = Busy::with(|jobs| Arc::new(Eager { jobs, wakes: AtomicUsize::new(0) }));
    // The jobs that waited for the first tables have ended too.
    busy.db.pause_background_work().unwrap();
    busy.db.continue_background_work().unwrap();
    busy.gather(TRIGGER + 1);
    let before = busy.clock.now();
    busy.db.pause_background_work().unwrap();
    busy.db.continue_background_work().unwrap();
    assert_eq!(busy.clock.now(), before);
    busy.gather(TRIGGER + 2);
    let before = busy.clock.now();
    busy.db.close().unwrap();
    assert_eq!(busy.clock.now(), before);
}

/// Regression: while one job waited, the ids of all jobs that ended meanwhile were kept, without bound in a database
/// that is never idle.
#[test]
fn what_ended_beside_a_job_that_waits_is_forgotten() {
    const ENDED: usize = 500;
    let _readers = crate::beside_others();
    let mut eager = None;
    let mut busy = Busy::with(|jobs| {
        let jobs = Arc::new(Eager { jobs, wakes: AtomicUsize::new(0) });
        eager = Some(Arc::clone(&jobs));
        jobs
    });
    busy.gather(TRIGGER + 1);
    for n in 0..ENDED {
        let family = busy.db.create_family(&format!("{n}"), FamilyOptions::default()).unwrap();
        busy.db.drop_family(&family).unwrap();
    }
    let wakes = eager.map(|eager| move || eager.wakes.load(Ordering::Relaxed)).unwrap();
    let before = wakes();
    busy.db.close().unwrap();
    // Those that a busy machine has not run yet are noted too.
    assert!((1..ENDED / 2).contains(&(wakes() - before)), "{} jobs were noted", wakes() - before);
}
