//! What databases of one process share.

use ashlar_engine::pressure;
use std::fmt;

/// A memory cap, a block cache, a limit on background writing and threads for background work, which databases of one
/// process share: see [`Builder::resources`](crate::Builder::resources). Clones are handles of one value. The value lives until
/// the last handle and the last database are gone.
///
/// The counts of databases and of memory belong to the engine:
///
/// ```compile_fail
/// ashlardb::Resources::new(64 << 20).leave();
/// ```
#[derive(Clone)]
pub struct Resources(pressure::Resources);

impl Resources {
    /// Resources with a cap of `memory` bytes for all databases together; 0 stands for the default of one database.
    pub fn new(memory: u64) -> Resources {
        Resources(pressure::Resources::new(memory))
    }

    /// With `n` background threads in all, at least two: a quarter of them, and at least one, for flushes. 0, the default: as
    /// many as a database alone has. The first open decides; later calls change nothing.
    pub fn threads(self, n: usize) -> Resources {
        Resources(self.0.threads(n))
    }

    /// With a limit on the bytes per second that flushes and compactions of all databases write together. 0, the default: no
    /// limit. May be changed while databases are open; jobs that pause under the former limit continue under the new one.
    pub fn rate_limit(self, bytes_per_second: u64) -> Resources {
        Resources(self.0.rate_limit(bytes_per_second))
    }

    /// Lets the rate of flushes and compactions follow their need, between a twentieth of [`Resources::rate_limit`] and all of it.
    /// The rate is all of it while writers of one of the databases wait. Off by default.
    pub fn rate_limit_auto_tuned(self, yes: bool) -> Resources {
        Resources(self.0.rate_limit_auto_tuned(yes))
    }

    /// The cap in bytes.
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// The bytes of the cap that are in use: memtables, open tables, buffers and blocks of all databases.
    pub fn memory_used(&self) -> usize {
        self.0.memory_used()
    }

    /// How many databases use them.
    pub fn databases(&self) -> usize {
        self.0.databases()
    }

    pub(crate) fn engine(&self) -> &pressure::Resources {
        &self.0
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
