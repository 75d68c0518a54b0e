//! What databases of one process may share: the memory cap with the block cache, a limit on background writing, and the
//! threads for background work. A database that is opened alone has such a value of its own.
//!
//! 1. Each open database is guaranteed its part of the memtables' share; what others do not use, it may use beyond that.
//!    So memtables of all databases together hold at most twice the share, which is half of the cap.
//! 2. The databases' jobs wait for the same threads. The executor gives the databases turns, step by step.
//! 3. The first open decides the clock and the threads: they stay until the last database and the last handle are gone.

use ashlar_base::error::BusyKind;
use ashlar_base::memory::MemoryBudget;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_cache::FramePool;
use ashlar_compaction::{Limit, RateLimiter, Written};
use ashlar_env::{Clock, Env, JobExecutor, ThreadExecutor};
use ashlar_options::DbOptions;
use ashlar_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use ashlar_tree::version::OpenTables;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The default cap on a machine with plenty of memory …
const CAP_MAX: u64 = 1 << 30;
/// … and on a small one.
const CAP_MIN: u64 = 64 << 20;
/// The part of the cap that each open database needs; also the smallest cap.
const EACH_MIN: usize = 16 << 20;

/// A memory cap, a block cache, a limit on background writing and threads for background work, which databases of one
/// process share. Clones are handles of one value. It lives until the last handle and the last database are gone.
#[derive(Clone)]
pub struct Resources(Arc<Shared>);

struct Shared {
    budget: Arc<MemoryBudget>,
    /// The share of memtables, for all databases together.
    memtables_max: usize,
    pool: Arc<FramePool>,
    /// The databases that are open.
    users: AtomicUsize,
    /// Their tables, which give memory back when it is short.
    tables: Mutex<Vec<Weak<OpenTables>>>,
    /// `None`: of one database alone, which has its own threads and its own limit.
    common: Option<Common>,
}

/// A database whose jobs may pause under the common rate.
pub trait Paced: Send + Sync {
    /// Called after the rate limit changed. Jobs that pause must compute their pause again.
    fn rate_changed(&self);
}

struct Common {
    /// 0: those of the first database's environment.
    threads: AtomicUsize,
    /// Bytes per second; 0: no limit.
    rate: AtomicU64,
    auto_tuned: AtomicBool,
    limiter: Mutex<RateLimiter>,
    paced: Mutex<Vec<Weak<dyn Paced>>>,
    machine: OnceLock<Machine>,
}

struct Machine {
    clock: Arc<dyn Clock>,
    jobs: Arc<dyn JobExecutor>,
}

/// The cap that `bytes` stands for; 0: the default on a machine where the process may use so much.
fn cap(bytes: u64, machine: Option<u64>) -> usize {
    let cap = match bytes {
        0 => machine.map_or(CAP_MAX, |bytes| (bytes / 4).clamp(CAP_MIN, CAP_MAX)),
        bytes => bytes,
    };
    usize::try_from(cap).unwrap_or(usize::MAX)
}

impl Resources {
    /// Resources with a cap of `memory` bytes for all databases together; 0 stands for the default of one database.
    pub fn new(memory: u64) -> Resources {
        let cap = cap(memory, ashlar_env::memory_limit());
        let common = Common {
            threads: AtomicUsize::new(0),
            rate: AtomicU64::new(0),
            auto_tuned: AtomicBool::new(false),
            limiter: Mutex::new(Rank::Leaf, RateLimiter::default()),
            paced: Mutex::new(Rank::Inner, Vec::new()),
            machine: OnceLock::new(),
        };
        let budget = MemoryBudget::new(cap);
        let pool = FramePool::within(cap / 4 * 3, &budget);
        Resources::make(budget, cap / 4, pool, Some(common))
    }

    /// The resources of a database that shares nothing. `machine`: the bytes that the process may use.
    pub fn alone(options: &DbOptions, machine: Option<u64>) -> Resources {
        let cap = cap(options.memory_bytes, machine);
        let limit = match options.db_write_buffer_bytes {
            0 => options.write_buffers.as_ref().and_then(|shared| shared.most()),
            bytes => Some(usize::try_from(bytes).unwrap_or(usize::MAX)),
        };
        let memtables_max = limit.map_or(cap / 4, |bytes| bytes.min(cap));
        let budget = MemoryBudget::new(cap);
        let pool = match &options.block_cache {
            Some(cache) => FramePool::of_cache(Arc::clone(cache), &budget),
            None => {
                let blocks = usize::try_from(options.block_cache_bytes).unwrap_or(usize::MAX);
                FramePool::within(blocks, &budget)
            }
        };
        Resources::make(budget, memtables_max, pool, None)
    }

    fn make(
        budget: Arc<MemoryBudget>,
        memtables_max: usize,
        pool: Arc<FramePool>,
        common: Option<Common>,
    ) -> Resources {
        let shared = Arc::new(Shared {
            pool,
            budget,
            memtables_max,
            users: AtomicUsize::new(0),
            tables: Mutex::new(Rank::Inner, Vec::new()),
            common,
        });
        let weak = Arc::downgrade(&shared);
        shared.budget.on_shortage(move || {
            if let Some(shared) = weak.upgrade() {
                shared.relieve();
            }
        });
        Resources(shared)
    }

    /// With `n` background threads in all, at least two: a quarter of them, and at least one, for flushes. 0, the default: as
    /// many as a database alone has. The first open decides; later calls change nothing.
    pub fn threads(self, n: usize) -> Resources {
        if let Some(common) = &self.0.common {
            common.threads.store(n, Ordering::Relaxed);
        }
        self
    }

    /// With a limit on the bytes per second that flushes and compactions of all databases write together. 0, the default: no
    /// limit. May be changed while databases are open; jobs that pause under the former limit go on by the new one.
    pub fn rate_limit(self, bytes_per_second: u64) -> Resources {
        if let Some(common) = &self.0.common
            && common.rate.swap(bytes_per_second, Ordering::Relaxed) != bytes_per_second
        {
            // A database takes its own locks.
            let known: Vec<_> = common.paced.lock().iter().filter_map(Weak::upgrade).collect();
            known.iter().for_each(|database| database.rate_changed());
        }
        self
    }

    /// Lets the rate of flushes and compactions follow their need, between a twentieth of [`Resources::rate_limit`] and all of it.
    /// The rate is all of it while writers of one of the databases wait. Off by default.
    pub fn rate_limit_auto_tuned(self, yes: bool) -> Resources {
        if let Some(common) = &self.0.common {
            common.auto_tuned.store(yes, Ordering::Relaxed);
        }
        self
    }

    /// The cap in bytes.
    pub fn memory(&self) -> usize {
        self.0.budget.cap()
    }

    /// The bytes of the cap that are in use: memtables, open tables, buffers and blocks of all databases.
    pub fn memory_used(&self) -> usize {
        self.0.budget.total().saturating_add(self.0.pool.usage().used)
    }

    /// How many databases use them.
    pub fn databases(&self) -> usize {
        self.0.users.load(Ordering::Relaxed)
    }

    /// Whether several databases may use them.
    pub fn are_common(&self) -> bool {
        self.0.common.is_some()
    }

    /// The environment of a database that uses them.
    pub fn environment(&self, env: Env) -> Env {
        let Some(common) = &self.0.common else { return env };
        let machine = common.machine.get_or_init(|| Machine {
            clock: Arc::clone(&env.clock),
            jobs: match common.threads.load(Ordering::Relaxed) {
                0 => Arc::clone(&env.jobs),
                n => {
                    let (high, low) = lanes(n);
                    Arc::new(ThreadExecutor::new(Arc::clone(&env.clock), high, low))
                }
            },
        });
        Env { jobs: Arc::clone(&machine.jobs), ..env }
    }

    /// Counts one more open database.
    ///
    /// # Errors
    /// `InvalidArgument`: the cap is too small for any database. `Busy(Memory)`: for one more.
    pub(crate) fn enter(&self) -> Result<()> {
        let users = &self.0.users;
        if !self.are_common() {
            users.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let cap = self.memory();
        if cap < EACH_MIN {
            return Err(Error::invalid(format!(
                "Resources have {cap} bytes of memory, the least is {EACH_MIN}"
            )));
        }
        let fits = |open: usize| Some(open + 1).filter(|open| *open <= cap / EACH_MIN);
        match users.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(open) => {
                let text = format!(
                    "the Resources have {cap} bytes of memory, each open database needs {EACH_MIN}, and {open} {} open",
                    if open == 1 { "is" } else { "are" }
                );
                let error = Error::new(ErrorKind::Busy(BusyKind::Memory), text);
                Err(error.hint("Close one of the databases, or give the Resources more memory"))
            }
        }
    }

    /// Ends one database's use.
    pub(crate) fn leave(&self) {
        self.0.users.fetch_sub(1, Ordering::Relaxed);
    }

    /// The budget with the cap.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.0.budget
    }

    /// The share of memtables, for all databases together.
    pub(crate) fn memtables_max(&self) -> usize {
        self.0.memtables_max
    }

    /// Bytes of blocks that readers hold outside the cache.
    pub(crate) fn blocks_beyond_cache(&self) -> usize {
        self.0.pool.beyond()
    }

    /// An empty table cache, with its blocks in the common pool.
    pub fn open_tables(&self) -> Arc<OpenTables> {
        let shared = Arc::clone(&self.0);
        OpenTables::with_share(Arc::clone(&self.0.pool), move || {
            shared.budget.cap() / shared.users.load(Ordering::Relaxed).max(1)
        })
    }

    /// From now on closes tables without a reader when memory is short.
    pub fn heed_shortage(&self, tables: &Arc<OpenTables>) {
        let mut known = self.0.tables.lock();
        known.retain(|tables| tables.strong_count() > 0);
        known.push(Arc::downgrade(tables));
    }

    /// From now on tells the database of a new rate.
    pub fn tell_new_rate(&self, database: Weak<dyn Paced>) {
        if let Some(common) = &self.0.common {
            let mut known = common.paced.lock();
            known.retain(|database| database.strong_count() > 0);
            known.push(database);
        }
    }

    /// The limit for all databases.
    pub fn limit(&self) -> Limit {
        self.0.common.as_ref().map_or(Limit::default(), |common| Limit {
            rate: common.rate.load(Ordering::Relaxed),
            auto_tuned: common.auto_tuned.load(Ordering::Relaxed),
        })
    }

    /// The pause of a job that wrote so much, under the limit for all databases.
    pub fn pause(&self, written: Written) -> Duration {
        match self.0.common.as_ref().and_then(|common| Some((common, common.machine.get()?))) {
            Some((common, machine)) => {
                common.limiter.lock().wrote(written, self.limit(), machine.clock.now())
            }
            None => Duration::ZERO,
        }
    }
}

impl Shared {
    fn relieve(&self) {
        // No table is closed under the lock.
        let known: Vec<_> = self.tables.lock().iter().filter_map(Weak::upgrade).collect();
        known.iter().for_each(|tables| tables.relieve());
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Resources({} of {} bytes, {} databases)",
            self.memory_used(),
            self.memory(),
            self.databases()
        )
    }
}

/// How many of `jobs` background jobs flush, and how many do other work.
/// Source: RocksDB `db/db_impl/db_impl_compaction_flush.cc` (`GetBGJobLimits`).
pub fn lanes(jobs: usize) -> (usize, usize) {
    let high = (jobs / 4).max(1);
    (high, jobs.saturating_sub(high).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_follow_options_and_machine() {
        assert_eq!(cap(0, None), 1 << 30);
        assert_eq!(cap(0, Some(64 << 30)), 1 << 30);
        assert_eq!(cap(0, Some(2 << 30)), 512 << 20);
        assert_eq!(cap(0, Some(1)), 64 << 20);
        assert_eq!(cap(128 << 20, Some(1)), 128 << 20);
    }

    #[test]
    fn no_more_databases_than_the_cap_has_room_for() {
        let small = Resources::new(EACH_MIN as u64 - 1);
        assert_eq!(small.enter().unwrap_err().kind(), ErrorKind::InvalidArgument);
        let two = Resources::new(2 * EACH_MIN as u64);
        two.enter().unwrap();
        two.enter().unwrap();
        assert_eq!(two.enter().unwrap_err().kind(), ErrorKind::Busy(BusyKind::Memory));
        two.leave();
        two.enter().unwrap();
        assert_eq!(two.databases(), 2);
    }

    #[test]
    fn what_all_databases_write_counts_against_one_limit() {
        let of = |is_flush| Written { bytes: 10 << 20, is_flush, is_urgent: false };
        let resources = Resources::new(32 << 20).rate_limit(1 << 20);
        assert_eq!(resources.pause(of(false)), Duration::ZERO, "no database yet");
        let environments = [resources.environment(Env::mem()), resources.environment(Env::mem())];
        let [a, b] = environments.each_ref().map(|env| Arc::as_ptr(&env.jobs).addr());
        assert_eq!(a, b, "one pool of threads");
        let (first, second) = (resources.pause(of(false)), resources.pause(of(true)));
        assert!(first > Duration::from_secs(5) && second > Duration::from_secs(5), "{first:?} {second:?}");
        assert!(resources.pause(of(false)) > first + Duration::from_secs(5));
        let unlimited = resources.rate_limit(0);
        assert_eq!(unlimited.pause(of(false)), Duration::ZERO);
    }
}
