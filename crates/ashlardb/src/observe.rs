//! Observing a database: statistics, properties, the cost of an operation, an explained read.

use crate::{Db, Family, Result};
use ashlar_base::stats::perf::Watch;
pub use ashlar_base::stats::perf::{Context as PerfContext, Level as PerfLevel, Metric};
pub use ashlar_base::stats::{Distribution, Histogram, Statistics, StatsLevel, Ticker};
pub use ashlar_options::{
    BlobsEvent, CompactionEvent, Event, EventListener, FileEvent, FlushEvent, IngestEvent, StallCondition,
};
pub use ashlar_read::point::{GetExplained, ScanExplained};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Db {
    /// The counts since the open or the last reset: a sum per [`Ticker`] and a histogram per [`Distribution`]. By default only
    /// tickers count; [`Statistics::set_level`] turns histograms on. Prints in the form of RocksDB's statistics.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::{Distribution, StatsLevel, Ticker};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let counted = db.statistics();
    /// counted.set_level(StatsLevel::ExceptDetailedTimers);
    /// db.put(b"k", b"v")?;
    /// assert_eq!(counted.ticker(Ticker::NumberKeysWritten), 1);
    /// assert_eq!(counted.distribution(Distribution::DbWriteMicros).count(), 1);
    /// counted.reset();
    /// assert_eq!(counted.ticker(Ticker::NumberKeysWritten), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn statistics(&self) -> &Arc<Statistics> {
        self.engine().statistics()
    }

    /// A ticker by RocksDB's name, e.g. `rocksdb.number.keys.read`; `None` for a name that is not counted.
    pub fn ticker(&self, name: &str) -> Option<u64> {
        Ticker::named(name).map(|ticker| self.statistics().ticker(ticker))
    }

    /// A histogram by RocksDB's name, e.g. `rocksdb.db.get.micros`; `None` for a name that is not counted.
    pub fn distribution(&self, name: &str) -> Option<Histogram> {
        Distribution::named(name).map(|of| self.statistics().distribution(of))
    }

    /// A property by RocksDB's name, e.g. `rocksdb.stats`; a property of a family is that of `default`. `None` for a name
    /// without an answer; [`Db::check_property`] gives the reason.
    pub fn property(&self, name: &str) -> Option<String> {
        self.default_family().property(name)
    }

    /// A property that is a number; `None` also for a property that is not a number.
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.default_family().int_property(name)
    }

    /// A property that is a number, summed over all families.
    pub fn aggregated_int_property(&self, name: &str) -> Option<u64> {
        self.engine().property_int_sum(name)
    }

    /// A property as names and values; `None` also for a property without this form.
    pub fn map_property(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.default_family().map_property(name)
    }

    /// Checks that a family can have an answer for `name`. A property of one level has an answer in the families that have
    /// the level: [`Family::property`] of `rocksdb.num-files-at-level7` is `None` where `num_levels` is 7.
    ///
    /// # Errors
    /// `InvalidArgument`: RocksDB has no property of this name, or no family can have so many levels. `NotSupported`: RocksDB
    /// has the property and AshlarDB does not; the text gives the reason.
    pub fn check_property(name: &str) -> Result<()> {
        ashlar_engine::Db::check_property(name)
    }

    /// Runs `work` and returns the cost of this thread's operations in it: blocks touched, tombstones skipped, time by layer.
    /// Times are measured from [`PerfLevel::EnableWait`] on. Background work and other threads do not count.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::{Metric, PerfLevel};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put(b"k", b"v")?;
    /// let (value, cost) = db.perf_context(PerfLevel::EnableCount, || db.get(b"k"));
    /// assert!(value?.is_some());
    /// assert_eq!(cost.get(Metric::GetFromMemtableCount), 1);
    /// println!("{cost}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn perf_context<T>(&self, level: PerfLevel, work: impl FnOnce() -> T) -> (T, PerfContext) {
        let watch = Watch::begin(level, self.engine().env().ticks());
        let done = work();
        let cost = watch.seen();
        (done, cost)
    }
}

impl Family {
    /// A property by RocksDB's name, e.g. `rocksdb.levelstats`; see [`Db::property`].
    pub fn property(&self, name: &str) -> Option<String> {
        self.db.engine().property(&self.inner, name)
    }

    /// A property that is a number; see [`Db::int_property`].
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.db.engine().property_int(&self.inner, name)
    }

    /// A property as names and values; see [`Db::map_property`].
    pub fn map_property(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.db.engine().property_map(&self.inner, name)
    }
}
