//! The search for one key.
//!
//! 1. The search asks the memtable, then the immutable memtables newest first, level 0 newest first, and one file of
//!    each deeper level. Each source is older than the preceding one, so the first entry found is the newest visible
//!    one.
//! 2. The search of the memtables runs under a [`ReadPin`]. Table reads may do I/O and merge operators are the user's
//!    code, so both run without a pin.
//! 3. The search asks a source's range tombstones before its entries. A tombstone that covers the key hides the older
//!    entries of the same source and all entries of the following sources. The search then ends. It does not look at
//!    the entries of a source whose newest value is older than the tombstone.
//! 4. If the deciding entry only refers to its value, for example in a blob file, the value is fetched at the end,
//!    without a pin.
//! 5. After a merge operand the search goes on to the next older entry. At the end it combines the operands.

use super::trace::{ProbedRun, Trace};
use crate::merge::Operands;
use crate::point::{MayExist, View};
use crate::super_version::SuperVersion;
use crate::visibility::{EntryKind, entry_kind};
use ashlar_base::error::BusyKind;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{ErrorKind, FileNumber, Level, LookupKey, Result, SeqNum, Trailer, ValueType};
use ashlar_memtable::MemtableRep;
use ashlar_options::{ReadOptions, ReadTier};
use ashlar_sync::ReadPin;
use ashlar_table::{ReadHow, TableFound, TableReader, filter_hash};
use ashlar_tree::columns::Columns;
use ashlar_tree::version::{FileMeta, Version};

/// The value of `key.user_key` for a read at `key.seq`; `None`: the key does not exist. `options` matters only for reading
/// blocks: the bounds and the sequence number in it are ignored.
///
/// # Errors
/// `NotSupported`: the deciding entry needs a feature that is not served; the message names the feature and the file.
/// `InvalidArgument`: the key has merge operands and the family has no operator. `Corruption`, `Io`: a table cannot be
/// read. Also the errors of the merge operator.
/// # Cost
/// At most one filter probe per level-0 table and deeper level, and one block per table whose filter answers yes. A merge
/// operand costs one step from the newer entry of its source.
pub fn get(from: &SuperVersion, key: &LookupKey<'_>, options: &ReadOptions) -> Result<Option<View>> {
    let statistics = from.version.tables().statistics();
    let _time = statistics.and_then(|s| s.time(Distribution::DbGetMicros));
    let how = options.how(from.version.tables().clock())?;
    let mut search = Search::new(key, (&how, options.tier));
    let value = search.run(from)?;
    perf::add(Metric::GetReadBytes, value.as_ref().map_or(0, |v| v.len() as u64));
    if let Some(statistics) = statistics {
        search.count(statistics, value.as_ref());
        // A missing key counts as a value of no bytes, as in RocksDB.
        statistics.measure(Distribution::BytesPerRead, value.as_ref().map_or(0, |v| v.len() as u64));
    }
    Ok(value)
}

/// [`get`] that notes every run that it asks. It does not count in the statistics.
pub(super) fn get_traced(
    from: &SuperVersion,
    key: &LookupKey<'_>,
    options: &ReadOptions,
    trace: &mut Trace,
) -> Result<Option<View>> {
    let how = options.how(from.version.tables().clock())?;
    let mut search = Search { trace: Some(trace), ..Search::new(key, (&how, options.tier)) };
    let value = search.run(from);
    if let Some(trace) = search.trace {
        trace.end();
    }
    value
}

/// A read that must do without files needs one.
const NOT_CACHED: ErrorKind = ErrorKind::Busy(BusyKind::NotCached);

/// Where a search ended.
#[derive(Clone, Copy)]
enum Home {
    Nowhere,
    Memtable,
    Level(u8),
}

/// The columns of `key.user_key` for a read at `key.seq`; `None` when there is no such key. A plain value is a row with
/// the default column only. Merge operands apply to the default column and leave the others unchanged.
///
/// # Errors
/// As [`get`].
/// # Cost
/// As [`get`], and a copy of every column.
pub fn get_entity(
    from: &SuperVersion,
    key: &LookupKey<'_>,
    options: &ReadOptions,
) -> Result<Option<Columns>> {
    let statistics = from.version.tables().statistics();
    let _time = statistics.and_then(|s| s.time(Distribution::DbGetMicros));
    let how = options.how(from.version.tables().clock())?;
    let mut search = Search::new(key, (&how, options.tier));
    let base = search.find(from)?;
    let is_entity = base.as_ref().is_some_and(Base::is_entity);
    let mut columns = match base {
        None => None,
        Some(Base { view, wrapped }) => {
            Some(from.version.blobs().columns(key.user_key, wrapped, &view, &how)?)
        }
    };
    if !search.operands.is_empty() {
        perf::add(Metric::InternalMergePointLookupCount, search.operands.len() as u64);
        // An entity without a default column has an empty value for the operands.
        let base = columns.as_ref().map(|columns| columns.default_column().unwrap_or_default());
        let _charge = search.operands.charge(from.version.tables().budget());
        let value = from.merger.fold(key.user_key, base, search.operands.iter().rev())?;
        columns.get_or_insert_with(|| Columns::new(Vec::new())).set_default(&value);
    }
    if let (Some(expiry), Some(stored)) = (from.expiry, &columns)
        && !is_entity
    {
        let now = expiry.now(&**from.version.tables().clock());
        let value = now.open(key.user_key, stored.default_column().unwrap_or_default())?;
        columns = value.map(Columns::of_value);
    }
    if let Some(statistics) = statistics {
        search.count(statistics, None);
    }
    Ok(columns)
}

#[cold]
fn unwrap_value(
    from: &SuperVersion,
    user_key: &[u8],
    wrapped: Option<ValueType>,
    stored: &[u8],
    how: &ReadHow,
) -> Result<View> {
    let value = from.version.blobs().value(user_key, wrapped, stored, how)?;
    Ok(View::copy(&value))
}

/// How a search goes on after a source.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Step {
    /// In the next source.
    GoOn,
    /// Not at all: `Search::base` is final.
    Ended,
}

/// The entry at which the search ends, or to which operands apply.
struct Base {
    /// The bytes of its value.
    view: View,
    /// Its type, if these bytes are not the value itself.
    wrapped: Option<ValueType>,
}

impl Base {
    fn is_entity(&self) -> bool {
        self.wrapped == Some(ValueType::Entity)
    }
}

/// A running search.
pub(super) struct Search<'k> {
    /// The user key, and the largest sequence number of the entries that the search still looks for.
    pub(super) key: LookupKey<'k>,
    /// The hash of the user key, for all filters.
    pub(super) hash: u64,
    how: &'k ReadHow,
    tier: ReadTier,
    /// Up to which sequence the read sees.
    read_seq: SeqNum,
    /// The newest visible range tombstone over the key in the sources so far.
    pub(super) covered_at: Option<SeqNum>,
    /// The entry with the value, if one was found.
    base: Option<Base>,
    /// The merge operands, newest first.
    operands: Operands,
    /// The kind of source that held the key.
    home: Home,
    /// The trace of the search, if the caller wants an explanation.
    trace: Option<&'k mut Trace>,
}

impl<'k> Search<'k> {
    #[inline]
    pub(super) fn new(key: &LookupKey<'k>, (how, tier): (&'k ReadHow, ReadTier)) -> Self {
        Search {
            key: *key,
            hash: filter_hash(key.user_key),
            how,
            tier,
            read_seq: key.seq,
            covered_at: None,
            base: None,
            operands: Operands::default(),
            home: Home::Nowhere,
            trace: None,
        }
    }

    /// Finds the entry with the value, and collects merge operands on the way.
    fn find(&mut self, from: &SuperVersion) -> Result<Option<Base>> {
        let time = perf::time(Metric::GetFromMemtableTime);
        let step = self.in_memtables(from)?;
        drop(time);
        if step == Step::GoOn && self.tier.asks_tables() {
            let _time = perf::time(Metric::GetFromOutputFilesTime);
            self.in_tables(&from.version)?;
        }
        Ok(self.base.take())
    }

    /// Ends the search at an entry: a value, a deletion, or a merge operand without a base.
    #[inline]
    fn end_at(&mut self, kind: EntryKind, trailer: Trailer, view: impl FnOnce() -> View) -> Step {
        self.base = match kind {
            EntryKind::Value => Some(Base { view: view(), wrapped: None }),
            EntryKind::Wrapped => Some(Base { view: view(), wrapped: trailer.value_type() }),
            EntryKind::Deleted | EntryKind::Operand => None,
        };
        Step::Ended
    }

    pub(super) fn run(&mut self, from: &SuperVersion) -> Result<Option<View>> {
        let base = self.find(from)?;
        self.value(from, base)
    }

    /// The value of the key, after its sources were asked one by one.
    pub(super) fn finish(&mut self, from: &SuperVersion) -> Result<Option<View>> {
        let base = self.base.take();
        self.value(from, base)
    }

    #[inline]
    fn value(&self, from: &SuperVersion, base: Option<Base>) -> Result<Option<View>> {
        let mut value = match from.expiry {
            None => self.stored_value(from, base)?,
            Some(expiry) => {
                let is_entity = base.as_ref().is_some_and(Base::is_entity);
                match self.stored_value(from, base)? {
                    Some(stored) if !is_entity => {
                        let now = expiry.now(&**from.version.tables().clock());
                        let len = now.open(self.key.user_key, &stored)?.map(<[u8]>::len);
                        len.map(|len| stored.first(len))
                    }
                    other => other,
                }
            }
        };
        if let Some(view) = &mut value {
            view.charge(from.version.tables().budget());
        }
        Ok(value)
    }

    /// The value as it is stored: with its time, if the family's values have times.
    #[inline]
    fn stored_value(&self, from: &SuperVersion, base: Option<Base>) -> Result<Option<View>> {
        let user_key = self.key.user_key;
        let base = match base {
            None => None,
            Some(Base { view, wrapped: None }) => Some(view),
            Some(Base { view, wrapped }) => Some(unwrap_value(from, user_key, wrapped, &view, self.how)?),
        };
        if self.operands.is_empty() {
            return Ok(base);
        }
        perf::add(Metric::InternalMergePointLookupCount, self.operands.len() as u64);
        let _step = perf::time(Metric::MergeOperatorTimeNanos);
        let _charge = self.operands.charge(from.version.tables().budget());
        let value = from.merger.fold(user_key, base.as_deref(), self.operands.iter().rev());
        if value.is_err()
            && let Some(statistics) = from.version.tables().statistics()
        {
            statistics.tick(Ticker::NumberMergeFailures);
        }
        Ok(Some(View::owned(value?)))
    }

    /// Counts a finished search.
    fn count(&self, statistics: &Statistics, value: Option<&View>) {
        let bytes = value.map_or(0, |value| value.len() as u64);
        let (memtable, level) = match self.home {
            Home::Memtable => (Ticker::MemtableHit, (Ticker::L0Hit, 0)),
            Home::Nowhere => (Ticker::MemtableMiss, (Ticker::L0Hit, 0)),
            Home::Level(0) => (Ticker::MemtableMiss, (Ticker::L0Hit, 1)),
            Home::Level(1) => (Ticker::MemtableMiss, (Ticker::L1Hit, 1)),
            Home::Level(_) => (Ticker::MemtableMiss, (Ticker::L2AndUpHit, 1)),
        };
        statistics.add_all([(Ticker::NumberKeysRead, 1), (Ticker::BytesRead, bytes), (memtable, 1), level]);
        if !self.operands.is_empty() {
            statistics.measure(Distribution::ReadNumMergeOperands, self.operands.len() as u64);
        }
    }

    pub(super) fn in_memtables(&mut self, from: &SuperVersion) -> Result<Step> {
        if !self.tier.asks_memtables() {
            return Ok(Step::GoOn);
        }
        let mut pin = ReadPin::enter();
        for (at, memtable) in std::iter::once(&from.mem).chain(&from.imm).enumerate() {
            if let Some(trace) = &mut self.trace {
                trace.begin(at.checked_sub(1).map_or(ProbedRun::Memtable, ProbedRun::Immutable));
            }
            match memtable.cut_tombstones(&pin) {
                Some(parts) => parts.iter().for_each(|tombstones| self.cover(tombstones)),
                None => {
                    // Cutting tombstones takes a lock.
                    drop(pin);
                    let parts = memtable.range_tombstones();
                    parts.iter().flat_map(|parts| parts.iter()).for_each(|part| self.cover(part));
                    pin = ReadPin::enter();
                }
            }
            perf::add(Metric::GetFromMemtableCount, 1);
            if self.covered_at.is_some_and(|tombstone| tombstone > memtable.gap().newest_value()) {
                self.home = Home::Memtable;
                return Ok(Step::Ended);
            }
            if let Some(found) = MemtableRep::get(&**memtable, &self.key)? {
                self.home = Home::Memtable;
                let mut step = self.decide(found.trailer, found.value)?;
                if step == Step::GoOn {
                    memtable.older(&found, &mut |trailer, value| {
                        step = self.decide(trailer, value)?;
                        Ok(step == Step::GoOn)
                    })?;
                }
                if step == Step::Ended {
                    return Ok(step);
                }
            }
            if self.covered_at.is_some() {
                return Ok(Step::Ended);
            }
        }
        Ok(Step::GoOn)
    }

    fn in_tables(&mut self, version: &Version) -> Result<()> {
        for file in version.level_zero_of(self.key.user_key) {
            if self.in_table(version, Level::ZERO, file)? == Step::Ended || self.covered_at.is_some() {
                return Ok(());
            }
        }
        for (level, files) in (0u8..).zip(&version.levels).skip(1) {
            if !files.is_empty() && self.in_level(version, Level(level), None)? == Step::Ended {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Asks the file of a deeper level that can hold the key. After a merge operand the next older version may be in the
    /// next file. `asked` is a file that was asked already.
    #[inline]
    pub(super) fn in_level(
        &mut self,
        version: &Version,
        level: Level,
        mut asked: Option<FileNumber>,
    ) -> Result<Step> {
        while let Some(file) = version.find_file(level, &self.key).filter(|file| asked != Some(file.number()))
        {
            asked = Some(file.number());
            let wanted = self.key.seq;
            if self.in_table(version, level, file)? == Step::Ended {
                return Ok(Step::Ended);
            }
            if self.key.seq == wanted {
                break;
            }
        }
        Ok(if self.covered_at.is_some() { Step::Ended } else { Step::GoOn })
    }

    #[inline]
    fn in_table(&mut self, version: &Version, level: Level, file: &FileMeta) -> Result<Step> {
        if let Some(trace) = &mut self.trace {
            trace.begin(ProbedRun::Table(level, file.number()));
        }
        let open = version.tables().lease(file, self.how)?;
        let table: &TableReader = &open;
        if self.is_hidden_in(table, level, file) {
            return Ok(Step::GoOn);
        }
        match self.look_in(table)? {
            Some(found) => self.settle(table, level, found),
            None => Ok(Step::GoOn),
        }
    }

    /// Adds the table's range tombstones. True when nothing else in the table changes the answer: its entries of the key
    /// are hidden, or delete the key again.
    #[inline]
    pub(super) fn is_hidden_in(&mut self, table: &TableReader, level: Level, file: &FileMeta) -> bool {
        if table.range_tombstones().is_empty() {
            return false;
        }
        self.cover(table.range_tombstones());
        let hidden = self.covered_at.is_some_and(|tombstone| file.is_older_than(tombstone));
        if hidden {
            self.home = Home::Level(level.0);
        }
        hidden
    }

    /// Decides by the newest visible entry in a table. After a merge operand it goes on to the older ones.
    #[inline]
    pub(super) fn settle(&mut self, table: &TableReader, level: Level, found: TableFound) -> Result<Step> {
        self.home = Home::Level(level.0);
        let kind = self.meet(found.trailer, found.value().len()).map_err(|e| e.at_path(table.path()))?;
        if kind != EntryKind::Operand {
            return Ok(self.end_at(kind, found.trailer, || View::found(found.home)));
        }
        self.settle_operand(table, found)
    }

    #[cold]
    fn settle_operand(&mut self, table: &TableReader, found: TableFound) -> Result<Step> {
        if !self.take(found.trailer, found.value()) {
            return Ok(Step::Ended);
        }
        let (user_key, how, mut step) = (self.key.user_key, self.how, Step::GoOn);
        table.older(user_key, found, how, &mut |trailer, pin, value| {
            let kind = self.meet(trailer, value.len()).map_err(|e| e.at_path(table.path()))?;
            let operand = kind == EntryKind::Operand;
            if operand && self.take(trailer, pin.get(value.clone()).unwrap_or_default()) {
                return Ok(true);
            }
            step = self.end_at(kind, trailer, || View::pinned(pin.clone(), value));
            Ok(false)
        })?;
        Ok(step)
    }

    /// Decides by an entry in a memtable. After a merge operand the search goes on.
    #[inline]
    fn decide(&mut self, trailer: Trailer, value: &[u8]) -> Result<Step> {
        let kind = self.meet(trailer, value.len())?;
        if kind == EntryKind::Operand && self.take(trailer, value) {
            return Ok(Step::GoOn);
        }
        Ok(self.end_at(kind, trailer, || View::copy(value)))
    }

    #[inline]
    fn look_in(&self, table: &TableReader) -> Result<Option<TableFound>> {
        let found = table.get_hashed(&self.key, self.hash, self.how);
        if planted(Bug::ReadErrorIsAbsence) { found.or(Ok(None)) } else { found }
    }

    /// Adds the range tombstones of the next source, within whose bounds the key is.
    fn cover(&mut self, tombstones: &FragmentedTombstones) {
        let newest = tombstones.covering_seq(self.key.user_key, self.read_seq);
        self.covered_at = self.covered_at.max(newest);
        if let Some(trace) = &mut self.trace {
            trace.covered(self.covered_at);
        }
    }

    /// Notes an entry of the key in the current run. Returns its meaning.
    #[inline]
    fn meet(&mut self, trailer: Trailer, bytes: usize) -> Result<EntryKind> {
        if let Some(trace) = &mut self.trace {
            trace.met(trailer, bytes);
        }
        match self.covered_at {
            Some(tombstone) if tombstone > trailer.seq() => Ok(EntryKind::Deleted),
            _ => entry_kind(trailer, self.key.user_key),
        }
    }

    /// Whether the key may have a value, by the memtables alone.
    pub(super) fn may_exist(&mut self, from: &SuperVersion) -> Result<MayExist> {
        let step = self.in_memtables(from)?;
        match (step, self.base.take()) {
            _ if !self.operands.is_empty() => return Ok(MayExist::Maybe),
            (Step::Ended, base @ Some(Base { wrapped: None, .. })) => {
                return Ok(self.value(from, base)?.map_or(MayExist::No, MayExist::Value));
            }
            (Step::Ended, Some(_)) => return Ok(MayExist::Maybe),
            (Step::Ended, None) => return Ok(MayExist::No),
            (Step::GoOn, _) => {}
        }
        if !self.tier.asks_tables() {
            return Ok(MayExist::No);
        }
        let version = &from.version;
        let (levels, user_key) = ((1u8..).map(Level).take(version.levels.len()), self.key.user_key);
        let level_zero = version.level_zero_of(user_key);
        let key = self.key;
        let deeper = levels.filter_map(|level| version.find_file(level, &key));
        for file in level_zero.chain(deeper) {
            let table = match version.tables().lease(file, self.how) {
                Err(e) if e.kind() == NOT_CACHED => return Ok(MayExist::Maybe),
                leased => leased?,
            };
            if !table.range_tombstones().is_empty() {
                self.cover(table.range_tombstones());
            }
            if table.may_contain(&self.key, self.how) {
                return Ok(MayExist::Maybe);
            }
            if self.covered_at.is_some() {
                break;
            }
        }
        Ok(MayExist::No)
    }

    /// Adds a merge operand. False when no older entry can exist.
    fn take(&mut self, entry: Trailer, operand: &[u8]) -> bool {
        self.operands.push(operand);
        self.key.seq = entry.seq().before();
        entry.seq() > SeqNum::ZERO
    }
}
