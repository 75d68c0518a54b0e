//! The sources of a merge, and which of them a family has.

use super::file_run::FileRun;
use crate::iter::KeyBounds;
use crate::range_del::Mask;
use crate::super_version::SuperVersion;
use ashlar_base::key::Sharing;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Entry, InternalIterator, InternalKey, Level, Order, Result, SeqNum};
use ashlar_format::table::Properties;
use ashlar_memtable::MemtableRep;
use ashlar_options::ReadTier;
use ashlar_table::{ReadHow, TableCursor};
use ashlar_tree::version::FileMeta;
use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

/// The state that a cursor reads, and how.
pub struct ReadState {
    /// The memtables and files.
    pub from: Arc<SuperVersion>,
    /// The options of reads of files.
    pub how: ReadHow,
    /// Which tables are read; `None`: all.
    pub filter: Option<TableFilter>,
}

/// Whether a scan reads the entries of a table with these properties.
pub type TableFilter = Arc<dyn Fn(&Properties) -> bool + Send + Sync>;

/// What the runs of a merge share. Every call that may move to another block is given it, so that a run needs no
/// references of its own.
pub struct RunContext {
    /// The state that the cursor reads.
    pub state: ReadState,
    /// The range tombstones that the runs have met.
    pub mask: Mask,
}

impl RunContext {
    /// The context of a read at `seq`, without range tombstones.
    pub(crate) fn new(from: Arc<SuperVersion>, how: ReadHow, seq: SeqNum) -> Self {
        let mask = Mask::new(from.version.order.clone(), seq);
        RunContext { state: ReadState { from, how, filter: None }, mask }
    }
}

/// One sorted run under a merge.
#[expect(clippy::large_enum_variant, reason = "a box would cost each cursor an allocation per file")]
pub enum Run {
    /// A memtable.
    Mem(Box<dyn InternalIterator>),
    /// Files: a level, or one file of level 0.
    Files(FileRun),
}

impl Run {
    #[inline]
    fn note_seek(&self) {
        perf::add(Metric::SeekChildSeekCount, 1);
        if matches!(self, Run::Mem(_)) {
            perf::add(Metric::SeekOnMemtableCount, 1);
        }
    }

    /// The first part of a seek to `target`; see [`FileRun::seek_begin`].
    ///
    /// # Errors
    /// As the seek.
    #[inline]
    pub(crate) fn seek_begin(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        match self {
            Run::Mem(_) => Ok(()),
            Run::Files(files) => files.seek_begin(cx, target),
        }
    }

    /// The second part of the seek.
    ///
    /// # Errors
    /// As the seek.
    #[inline]
    pub(crate) fn seek_pin(&mut self, cx: &mut RunContext) -> Result<()> {
        match self {
            Run::Mem(_) => Ok(()),
            Run::Files(files) => files.seek_pin(cx),
        }
    }

    /// The third part of the seek.
    #[inline]
    pub(crate) fn seek_start(&mut self, cx: &RunContext, target: InternalKey<'_>) {
        if let Run::Files(files) = self {
            files.seek_start(cx, target);
        }
    }

    /// The last part of the seek.
    ///
    /// # Errors
    /// As the seek.
    #[inline]
    pub(crate) fn seek_finish(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        self.note_seek();
        match self {
            Run::Mem(memtable) => memtable.seek(target),
            Run::Files(files) => files.seek_finish(cx, target),
        }
    }

    /// Moves to the first entry at or after `target`.
    ///
    /// # Errors
    /// As opening and reading a table.
    pub(crate) fn seek(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        self.seek_begin(cx, target)?;
        self.seek_pin(cx)?;
        self.seek_finish(cx, target)
    }

    /// Moves to the last entry at or before `target`.
    ///
    /// # Errors
    /// As [`Run::seek`].
    pub(crate) fn seek_for_prev(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        self.note_seek();
        match self {
            Run::Mem(memtable) => memtable.seek_for_prev(target),
            Run::Files(files) => files.seek_for_prev(cx, target),
        }
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// As [`Run::seek`].
    pub(crate) fn first(&mut self, cx: &mut RunContext) -> Result<()> {
        match self {
            Run::Mem(memtable) => memtable.first(),
            Run::Files(files) => files.first(cx),
        }
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// As [`Run::seek`].
    pub(crate) fn last(&mut self, cx: &mut RunContext) -> Result<()> {
        match self {
            Run::Mem(memtable) => memtable.last(),
            Run::Files(files) => files.last(cx),
        }
    }

    /// Moves one entry on. Returns the new user key beside the old one; `None` off the end, where the run stays.
    ///
    /// # Errors
    /// As [`Run::seek`].
    #[inline]
    pub(crate) fn next_sharing(&mut self, cx: &mut RunContext) -> Result<Option<Sharing>> {
        match self {
            Run::Mem(memtable) => memtable.next_sharing(),
            Run::Files(files) => files.next_sharing(cx),
        }
    }

    /// Moves one entry back. Returns the new user key beside the old one; `None` off the end, where the run stays.
    ///
    /// # Errors
    /// As [`Run::seek`].
    #[inline]
    pub(crate) fn prev_sharing(&mut self, cx: &mut RunContext) -> Result<Option<Sharing>> {
        match self {
            Run::Mem(memtable) => memtable.prev_sharing(),
            Run::Files(files) => files.prev_sharing(cx),
        }
    }

    /// Passes deletions; see [`FileRun::pass_deletions`]. A memtable passes none.
    ///
    /// # Errors
    /// As [`Run::seek`].
    pub(crate) fn pass_deletions(
        &mut self,
        cx: &mut RunContext,
        seq: SeqNum,
        limit: Option<&[u8]>,
    ) -> Result<usize> {
        match self {
            Run::Mem(_) => Ok(0),
            Run::Files(files) => files.pass_deletions(cx, seq, limit),
        }
    }

    /// The entry under the cursor; `None` off the end.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        match self {
            Run::Mem(memtable) => memtable.entry(),
            Run::Files(files) => files.entry(),
        }
    }

    /// The key of that entry.
    #[inline]
    pub(crate) fn key(&self) -> Option<InternalKey<'_>> {
        match self {
            Run::Mem(memtable) => memtable.key(),
            Run::Files(files) => files.key(),
        }
    }

    /// The cursor in a file, for steps inside a block.
    #[inline]
    pub(crate) fn in_file(&self) -> Option<&TableCursor> {
        match self {
            Run::Mem(_) => None,
            Run::Files(files) => Some(files.cursor()),
        }
    }

    #[inline]
    pub(crate) fn in_file_mut(&mut self) -> Option<&mut TableCursor> {
        match self {
            Run::Mem(_) => None,
            Run::Files(files) => Some(files.cursor_mut()),
        }
    }

    /// Bytes of the current block.
    pub(crate) fn block_bytes(&self) -> usize {
        match self {
            Run::Mem(_) => 0,
            Run::Files(files) => files.block_bytes(),
        }
    }

    /// Bytes of its copies of keys.
    pub(crate) fn key_bytes(&self) -> usize {
        match self {
            Run::Mem(_) => 0,
            Run::Files(files) => files.key_bytes(),
        }
    }

    /// The current file, if the run is in one.
    pub(crate) fn path(&self, state: &ReadState) -> Option<PathBuf> {
        match self {
            Run::Mem(_) => None,
            Run::Files(files) => files.path(state),
        }
    }
}

/// The runs of a family in the tier of a read that may hold keys within `bounds`. The range tombstones of memtables are
/// added to the mask here, those of files by the runs.
pub(crate) fn runs(cx: &mut RunContext, bounds: &KeyBounds, tier: ReadTier) -> Vec<Run> {
    let SuperVersion { mem, imm, version, .. } = &*cx.state.from;
    let mut runs: Vec<Run> =
        Vec::with_capacity(1 + imm.len() + version.level(Level::ZERO).len() + version.levels.len());
    // Nothing visible to this read is inserted any more: an empty memtable stays empty for it.
    for memtable in std::iter::once(mem).chain(imm).filter(|m| tier.asks_memtables() && !m.is_empty()) {
        for part in memtable.range_tombstones().iter().flat_map(|parts| parts.iter()) {
            cx.mask.add(Arc::clone(part), None, runs.len());
        }
        runs.push(Run::Mem(MemtableRep::iter(Arc::clone(memtable))));
    }
    if !tier.asks_tables() {
        return runs;
    }
    let prefixes = PrefixedRange::of(&version.order, bounds);
    let may_meet =
        |files: &[Arc<FileMeta>]| prefixes.is_none_or(|range| range.may_meet(files, &cx.state.how));
    for (at, file) in version.level(Level::ZERO).iter().enumerate() {
        if bounds.meets(&version.order, file.smallest().user_key(), file.largest().user_key())
            && may_meet(std::slice::from_ref(file))
        {
            runs.push(Run::Files(FileRun::new(Level::ZERO, at..at + 1, runs.len())));
        }
    }
    for (level, files) in (0u8..).zip(&version.levels).skip(1) {
        if !files.is_empty() && may_meet(files) {
            runs.push(Run::Files(FileRun::new(Level(level), 0..files.len(), runs.len())));
        }
    }
    runs
}

/// A range with both ends, in ascending order of bytes: the filters of tables may hold the prefix of all its keys.
#[derive(Clone, Copy)]
struct PrefixedRange<'a> {
    lower: &'a [u8],
    upper: &'a [u8],
    closed: bool,
}

impl<'a> PrefixedRange<'a> {
    fn of(order: &Order, bounds: &'a KeyBounds) -> Option<Self> {
        let (lower, upper) = (bounds.lower.as_deref()?, bounds.upper.as_deref()?);
        let closed = bounds.upper_closed;
        matches!(order, Order::Bytewise).then_some(PrefixedRange { lower, upper, closed })
    }

    /// Whether one of these files may have a point entry or a range tombstone in the range. The files are disjoint and in
    /// order. Opens no table; a closed one may have both.
    fn may_meet(self, files: &[Arc<FileMeta>], how: &ReadHow) -> bool {
        let from = files.partition_point(|file| file.largest().user_key() < self.lower);
        let behind = |file: &FileMeta| match file.smallest().user_key().cmp(self.upper) {
            Ordering::Less => false,
            Ordering::Equal => !self.closed,
            Ordering::Greater => true,
        };
        let met = files.get(from..).unwrap_or_default().iter().take_while(|file| !behind(file));
        met.into_iter().any(|file| match file.table.get() {
            Some(table) => {
                !table.range_tombstones().is_empty()
                    || table.may_meet(self.lower, self.upper, self.closed, how)
            }
            None => true,
        })
    }
}
