//! The sources of a merge, and which of them a family has.

use super::level::{LevelIter, note_tombstones};
use crate::iter::KeyBounds;
use crate::range_del::Sources;
use crate::super_version::SuperVersion;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Entry, InternalIterator, InternalKey, Level, Result};
use ashlar_memtable::MemtableRep;
use ashlar_options::ReadTier;
use ashlar_table::{ReadHow, TableIter};
use ashlar_tree::version::{FileMeta, FileTable};
use std::path::PathBuf;
use std::sync::Arc;

/// One sorted run under a merge.
pub enum Run {
    /// A memtable.
    Mem(Box<dyn InternalIterator>),
    /// One table of level 0.
    Table(TableIter<FileTable>),
    /// A deeper level.
    Level(LevelIter),
}

impl Run {
    #[inline]
    fn note_seek(&self) {
        perf::add(Metric::SeekChildSeekCount, 1);
        if matches!(self, Run::Mem(_)) {
            perf::add(Metric::SeekOnMemtableCount, 1);
        }
    }

    /// The first half of a [`seek`](InternalIterator::seek) to `target`; see [`TableIter::seek_begin`].
    ///
    /// # Errors
    /// As the seek.
    pub(crate) fn seek_begin(&mut self, target: InternalKey<'_>) -> Result<()> {
        match self {
            Run::Mem(_) => Ok(()),
            Run::Table(table) => table.seek_begin(target),
            Run::Level(level) => level.seek_begin(target),
        }
    }

    /// The second half of the seek.
    ///
    /// # Errors
    /// As the seek.
    pub(crate) fn seek_finish(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.note_seek();
        match self {
            Run::Mem(memtable) => memtable.seek(target),
            Run::Table(table) => table.seek_finish(target),
            Run::Level(level) => level.seek_finish(target),
        }
    }

    /// Bytes of the current block.
    pub(crate) fn block_bytes(&self) -> usize {
        match self {
            Run::Mem(_) => 0,
            Run::Table(table) => table.block_bytes(),
            Run::Level(level) => level.block_bytes(),
        }
    }

    /// The current file, if the run is in one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Run::Mem(_) => None,
            Run::Table(table) => Some(table.source().path()),
            Run::Level(level) => level.path(),
        }
    }
}

macro_rules! dispatch {
    ($self:ident, $run:ident => $call:expr) => {
        match $self {
            Run::Mem($run) => $call,
            Run::Table($run) => $call,
            Run::Level($run) => $call,
        }
    };
}

impl InternalIterator for Run {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.seek_begin(target)?;
        self.seek_finish(target)
    }
    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.note_seek();
        dispatch!(self, run => run.seek_for_prev(target))
    }
    fn first(&mut self) -> Result<()> {
        dispatch!(self, run => run.first())
    }
    fn last(&mut self) -> Result<()> {
        dispatch!(self, run => run.last())
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        dispatch!(self, run => run.next())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        dispatch!(self, run => run.prev())
    }
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        dispatch!(self, run => run.entry())
    }
    #[inline]
    fn key(&self) -> Option<InternalKey<'_>> {
        dispatch!(self, run => run.key())
    }
}

/// The runs of a family in the tier of a read that may hold keys within `bounds`. Opens the tables of level 0. The range
/// tombstones of memtables and of level 0 are added to `sources` here, those of deeper levels by the runs.
///
/// # Errors
/// As opening a table.
pub fn runs(
    from: &SuperVersion,
    bounds: &KeyBounds,
    (how, tier): (&ReadHow, ReadTier),
    sources: &Arc<Sources>,
) -> Result<Vec<Run>> {
    let version = &from.version;
    let mut runs: Vec<Run> = Vec::new();
    // Nothing visible to this read is inserted any more: an empty memtable stays empty for it.
    for memtable in
        std::iter::once(&from.mem).chain(&from.imm).filter(|m| tier.asks_memtables() && !m.is_empty())
    {
        for part in memtable.range_tombstones().iter().flat_map(|parts| parts.iter()) {
            sources.add(Arc::clone(part), None, runs.len());
        }
        runs.push(Run::Mem(MemtableRep::iter(Arc::clone(memtable))));
    }
    if !tier.asks_tables() {
        return Ok(runs);
    }
    let meets =
        |f: &&Arc<FileMeta>| bounds.meets(&version.order, f.smallest().user_key(), f.largest().user_key());
    for file in version.level(Level::ZERO).iter().filter(meets) {
        note_tombstones(&*version.tables().lease(file, how)?, file, sources, runs.len());
        runs.push(Run::Table(TableIter::new(FileTable::new(version.tables(), file), how.clone())));
    }
    for (level, files) in (0u8..).zip(&version.levels).skip(1) {
        if !files.is_empty() {
            runs.push(Run::Level(LevelIter::new(
                Arc::clone(version),
                Level(level),
                how.clone(),
                (Arc::clone(sources), runs.len()),
            )));
        }
    }
    Ok(runs)
}
