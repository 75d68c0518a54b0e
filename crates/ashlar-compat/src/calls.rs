//! Options of reads, writes and other calls.

use crate::database::Database;
use crate::iterator::At;
use crate::listener::TableReport;
use crate::options::Texts;
use crate::value::READ_TIER;
use ashlar_base::Level;
use ashlar_env::Clock;
use ashlar_options::Group;
use ashlar_table::{ReadHow, ReadLimit};
use ashlardb::{
    CompactRangeOptions, Error, ErrorKind, Family, Read, ReadTier, Reader, Result, Scan, Snapshot,
};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use ashlardb::WriteOptions;

/// Options of a read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// By RocksDB's names. Change them through [`ReadOptions::change`].
    texts: Texts,
    /// The snapshot that the read sees. It stays alive as long as these options.
    pub snapshot: Option<Snapshot>,
    /// The first key of an iterator.
    pub lower: Option<Vec<u8>>,
    /// The first key behind an iterator.
    pub upper: Option<Vec<u8>>,
    /// A name for those that trace reads.
    pub request_id: Option<Vec<u8>>,
    /// What the texts say.
    read: ashlardb::ReadOptions,
    /// An option that no read keeps.
    refused: Option<&'static str>,
    /// An option without a text that no read keeps.
    refused_part: Option<&'static str>,
    /// Which tables a scan reads.
    table_filter: Option<TableFilter>,
}

/// Which tables a scan reads, by their properties.
#[derive(Clone)]
pub struct TableFilter(Arc<dyn Fn(&TableReport) -> bool + Send + Sync>);

impl TableFilter {
    /// Those for which `keep` answers true. The path in a report is empty.
    pub fn new(keep: impl Fn(&TableReport) -> bool + Send + Sync + 'static) -> TableFilter {
        TableFilter(Arc::new(keep))
    }
}

impl std::fmt::Debug for TableFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TableFilter")
    }
}

/// Options that would change an answer in a way that is not served; any value but RocksDB's default is refused.
const REFUSED: [&str; 4] = [
    "ignore_range_deletions",
    "value_size_soft_limit",
    "merge_operand_count_threshold",
    "max_skippable_internal_keys",
];

impl Default for ReadOptions {
    fn default() -> Self {
        let read = ashlardb::ReadOptions::new();
        ReadOptions {
            texts: Texts::of(Group::Read),
            snapshot: None,
            lower: None,
            upper: None,
            request_id: None,
            read,
            refused: None,
            refused_part: None,
            table_filter: None,
        }
    }
}

impl ReadOptions {
    /// The options by their names.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Sets options by their names.
    pub fn change(&mut self, set: impl FnOnce(&mut Texts)) {
        set(&mut self.texts);
        let texts = &self.texts;
        let tier = match texts.get_named("read_tier", READ_TIER) {
            1 => ReadTier::BlockCache,
            2 => ReadTier::Persisted,
            3 => ReadTier::Memtable,
            _ => ReadTier::All,
        };
        let mut read = ashlardb::ReadOptions::new()
            .fill_cache(texts.get("fill_cache"))
            .verify_checksums(texts.get("verify_checksums"))
            .read_tier(tier);
        let micros = |name: &str| Some(texts.get::<u64>(name)).filter(|micros| *micros > 0);
        let deadline = micros("deadline").map(Duration::from_micros);
        if let Some(at) = deadline.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)) {
            read = read.deadline(at);
        }
        if let Some(each) = micros("io_timeout") {
            read = read.io_timeout(Duration::from_micros(each));
        }
        self.read = read;
        self.refused = REFUSED.into_iter().find(|name| texts.differs(name));
    }

    /// Refuses every read because of an option without a text; `None`: no longer.
    pub fn refuse(&mut self, part: Option<&'static str>) {
        self.refused_part = part;
    }

    /// Sets which tables scans read; `None`: all. Reads of keys ignore the filter, as in RocksDB.
    pub fn filter_tables(&mut self, filter: Option<TableFilter>) {
        self.table_filter = filter;
    }

    /// The filter of tables.
    pub fn table_filter(&self) -> Option<&TableFilter> {
        self.table_filter.as_ref()
    }

    /// The scan with the filter of tables.
    pub(crate) fn filtered(&self, scan: Scan) -> Scan {
        match self.table_filter.clone() {
            None => scan,
            Some(TableFilter(keep)) => {
                scan.filter_tables(move |stored| keep(&TableReport::of(stored.clone(), "")))
            }
        }
    }

    /// The options with a snapshot, so that several reads see one moment.
    ///
    /// # Errors
    /// Those of [`ashlardb::Db::snapshot`].
    pub fn at_one_moment(&self, db: &Database) -> Result<ReadOptions> {
        let mut options = self.clone();
        if options.snapshot.is_none() {
            options.snapshot = Some(db.db().snapshot()?);
        }
        Ok(options)
    }

    /// Checks the deadline before a read of many keys, also of keys in memory.
    ///
    /// # Errors
    /// `TimedOut`: the deadline has passed.
    pub fn check_deadline(&self, db: &Database) -> Result<()> {
        match self.texts.get::<u64>("deadline") {
            0 => Ok(()),
            at if db.env()?.clock.unix_micros() <= at => Ok(()),
            _ => Err(Error::new(ErrorKind::TimedOut, "the deadline of the read has passed")),
        }
    }

    /// Whether an option that is yes or no is on.
    pub fn flag(&self, name: &str) -> bool {
        self.texts.get(name)
    }

    /// The options without snapshot and bounds.
    ///
    /// # Errors
    /// `NotSupported`: an option that no read keeps.
    #[inline]
    pub fn plain(&self) -> Result<ashlardb::ReadOptions> {
        match self.refused.or(self.refused_part) {
            None => Ok(self.read),
            Some(name) => Err(Error::not_supported(format!("the read option {name}"))),
        }
    }

    /// The options for a table that no database has.
    ///
    /// # Errors
    /// Those of [`ReadOptions::plain`].
    pub(crate) fn how(&self, clock: &Arc<dyn Clock>) -> Result<ReadHow> {
        self.plain().map(drop)?;
        let micros = |name: &str| Some(self.texts.get::<u64>(name)).filter(|micros| *micros > 0);
        let limits = ["deadline", "io_timeout"].map(|name| micros(name).map(Duration::from_micros));
        let limit = match limits {
            [None, None] => None,
            [deadline, each] => Some(ReadLimit::new(clock, deadline, each)?),
        };
        Ok(ReadHow {
            fill_cache: self.flag("fill_cache"),
            verify: self.flag("verify_checksums"),
            cached_only: self.texts.get_named("read_tier", READ_TIER) == 1,
            limit,
        })
    }

    /// The bounds of an iterator over `family`. A lower bound behind the upper one leaves no key, as in RocksDB; the engine
    /// refuses such bounds.
    pub fn bounds(&self, family: &Family) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let (mut lower, upper) = (self.lower.as_deref(), self.upper.as_deref());
        if let (Some(from), Some(to)) = (lower, upper)
            && family.options().order.compare(from, to).is_gt()
        {
            lower = upper;
        }
        (lower.map_or(Bound::Unbounded, Bound::Included), upper.map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// A read of `family` with these options.
    ///
    /// # Errors
    /// `NotSupported`: an option that no read keeps.
    #[inline]
    pub fn of<'a>(&'a self, family: &'a Family) -> Result<Reader<'a>> {
        let read = self.plain()?;
        Ok(match &self.snapshot {
            None => family.reading(read),
            Some(snapshot) => snapshot.family(family).reading(read),
        })
    }

    /// A scan of `family` within the bounds.
    ///
    /// # Errors
    /// `NotSupported`: an option that no read keeps.
    pub fn scan(&self, family: &Family, at: &At) -> Result<Scan> {
        let from = match at {
            At::Options => self.of(family)?,
            At::Newest => family.reading(self.plain()?),
            At::Snapshot(snapshot) => snapshot.family(family).reading(self.plain()?),
        };
        Ok(self.filtered(from.scan(self.bounds(family))))
    }
}

/// The options of a write by RocksDB's names.
pub fn write_options(texts: &Texts) -> WriteOptions {
    WriteOptions::new()
        .sync(texts.get("sync"))
        .disable_wal(texts.get("disableWAL"))
        .no_slowdown(texts.get("no_slowdown"))
        .low_priority(texts.get("low_pri"))
}

/// A range of keys that has its last key, as RocksDB's requests for compactions have it; `None` stands for the end.
pub fn closed_range(first: Option<&[u8]>, last: Option<&[u8]>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bound = |key: Option<&[u8]>| key.map_or(Bound::Unbounded, |key| Bound::Included(key.to_vec()));
    (bound(first), bound(last))
}

/// Options of a compaction on request, by RocksDB's names.
#[derive(Clone, Debug)]
pub struct CompactOptions {
    /// Those that have a name.
    pub texts: Texts,
    /// RocksDB's `BottommostLevelCompaction`; `None`: its default, 1.
    pub bottommost: Option<u8>,
    /// Whether timestamps are to be forgotten.
    pub timestamp: bool,
}

impl Default for CompactOptions {
    fn default() -> Self {
        CompactOptions { texts: Texts::of(Group::CompactRange), bottommost: None, timestamp: false }
    }
}

impl CompactOptions {
    /// The engine's options.
    ///
    /// # Errors
    /// `InvalidArgument`: a target level out of range. `NotSupported`: a target path, timestamps.
    pub fn range(&self) -> Result<CompactRangeOptions> {
        if self.texts.get::<i32>("target_path_id") != 0 {
            return Err(Error::not_supported("the compaction option target_path_id"));
        }
        if self.timestamp {
            return Err(Error::not_supported("the compaction option full_history_ts_low"));
        }
        let bottommost = self.bottommost.unwrap_or(1);
        let mut options = CompactRangeOptions::new()
            .rewrite_deepest(bottommost >= 2)
            .rewrite_deepest_if_filtered(bottommost == 1)
            .exclusive(self.texts.get("exclusive_manual_compaction"));
        options.max_subcompactions = self.texts.get("max_subcompactions");
        if self.texts.get("change_level") {
            let level = self.texts.get::<i32>("target_level");
            if level >= 0 {
                let level = u8::try_from(level).map_err(|_| Error::invalid("a target level out of range"))?;
                options = options.target_level(Level(level));
            }
        }
        Ok(options)
    }
}
