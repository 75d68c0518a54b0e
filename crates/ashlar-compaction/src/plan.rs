//! A decided compaction: the result of a picker and the input of a job.

use crate::rewrite::{Beneath, CutLimits, Grandparent, Partitioning, Retention};
use ashlar_base::ext::sst_partitioner::{PartitionerContext, SstPartitionerFactory};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Level, Order, SeqNum};
use ashlar_format::compress::Compression;
use ashlar_tree::version::FileMeta;
use std::fmt;
use std::sync::Arc;

/// Why a compaction was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Level 0 has too many files or bytes.
    Level0,
    /// A level is larger than its target.
    LevelSize,
    /// A caller requested a range.
    Manual,
    /// A caller named the files.
    Chosen,
    /// Level 0 has too many files, and a compaction into the base level is not possible now.
    WithinLevel0,
    /// A table is mostly tombstones.
    Tombstones,
    /// A collector of table properties asked for it.
    Marked,
    /// A bottommost table holds data that no snapshot needs.
    Bottommost,
    /// Too much of the oldest blob files is garbage.
    BlobGarbage,
    /// A table holds data that has reached its ttl.
    Ttl,
    /// A table was written longer ago than the periodic limit.
    Periodic,
    /// The newer runs of a universal tree are large in proportion to the oldest.
    SpaceAmplification,
    /// Runs of a universal tree are about equally large.
    SizeRatio,
    /// A universal tree has too many runs.
    RunCount,
    /// The tables of a FIFO tree are too large together.
    FifoSize,
}

impl Reason {
    /// Whether a caller requested the compaction.
    pub(crate) fn is_manual(self) -> bool {
        matches!(self, Reason::Manual | Reason::Chosen)
    }

    /// A short name for logs.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Level0 => "level0",
            Reason::LevelSize => "level-size",
            Reason::Manual => "manual",
            Reason::Chosen => "chosen",
            Reason::WithinLevel0 => "within-level0",
            Reason::Tombstones => "tombstones",
            Reason::Marked => "marked",
            Reason::Bottommost => "bottommost-files",
            Reason::BlobGarbage => "blob-garbage",
            Reason::Ttl => "ttl",
            Reason::Periodic => "periodic",
            Reason::SpaceAmplification => "space-amplification",
            Reason::SizeRatio => "size-ratio",
            Reason::RunCount => "run-count",
            Reason::FifoSize => "fifo-size",
        }
    }
}

/// How a compaction handles its input files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Merges the inputs and writes new tables to the output level.
    Rewrite,
    /// Moves the inputs to the output level unchanged.
    Move,
    /// Deletes the inputs without reading them: data that the style no longer keeps.
    Drop,
}

/// The claim of a running compaction: no other compaction may write an overlapping range into the same level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The level that the compaction writes to.
    pub output_level: Level,
    /// The last level that is claimed: deeper than `output_level` if tables move up from there. A newer table between the two would lie
    /// below the older ones in the end.
    pub deepest: Level,
    /// The number of merged runs: each file of level 0, each deeper level.
    pub runs: usize,
    /// The smallest user key of the inputs.
    pub smallest: Vec<u8>,
    /// The largest user key of the inputs, or an exclusive end.
    pub largest: Vec<u8>,
}

impl Running {
    /// Whether no other compaction or ingestion may write into `level` within the range.
    pub fn claims(&self, level: Level) -> bool {
        (self.output_level..=self.deepest).contains(&level)
    }
}

/// One decided compaction: everything that its job needs except the I/O.
#[derive(Clone)]
pub struct Compaction {
    /// The input files by level: the level to be emptied first, then the overlapping files of the output level. Level 0
    /// newest first, deeper levels ascending; no level occurs twice, none is empty.
    pub inputs: Vec<(Level, Vec<Arc<FileMeta>>)>,
    /// The level of the outputs.
    pub output_level: Level,
    /// The overlapping files of the first deeper level that has any; they limit the size of outputs.
    pub grandparents: Vec<Arc<FileMeta>>,
    /// Ranges of user keys for which a deeper level has files; ascending, disjoint. Empty: the output is bottommost.
    pub beneath: Vec<(Vec<u8>, Vec<u8>)>,
    /// How the inputs are handled.
    pub action: Action,
    /// The reason of the compaction.
    pub reason: Reason,
    /// An output of this many bytes is full.
    pub target_file_bytes: u64,
    /// Bytes of grandparents that one output may overlap.
    pub overlap_bytes_max: u64,
    /// The largest number of parts; 0: as the database decides.
    pub parts_max: usize,
    /// The compression of the outputs; `None`: that of the family for the level.
    pub compression: Option<Compression>,
}

impl Compaction {
    /// Every input file with its level.
    pub fn files(&self) -> impl Iterator<Item = (Level, &Arc<FileMeta>)> {
        self.inputs.iter().flat_map(|(level, files)| files.iter().map(move |f| (*level, f)))
    }

    /// True when no deeper level has data in the range of the inputs.
    pub fn is_bottommost(&self) -> bool {
        self.beneath.is_empty()
    }

    /// Bytes of all input files.
    pub fn input_bytes(&self) -> u64 {
        self.files().map(|(_, f)| f.size()).fold(0, u64::saturating_add)
    }

    /// Marks the input files as compacting, or clears the marks. Call under the state lock.
    pub fn set_compacting(&self, taken: bool) {
        for (_, file) in self.files() {
            file.set_compacting(taken);
        }
    }

    /// The claim to list while the compaction runs; `None` without inputs.
    pub fn running(&self, order: &Order) -> Option<Running> {
        let range = user_range(order, self.files().map(|(_, f)| f))?;
        let runs =
            self.inputs.iter().map(|(level, files)| if *level == Level::ZERO { files.len() } else { 1 });
        let deepest = self.inputs.iter().map(|(level, _)| *level).fold(self.output_level, Level::max);
        Some(Running {
            runs: runs.sum(),
            output_level: self.output_level,
            deepest,
            smallest: range.smallest.to_vec(),
            largest: range.largest.to_vec(),
        })
    }

    /// What the rewrite must keep, given the live snapshots (ascending) and the range tombstones of the inputs.
    pub fn retention(&self, snapshots: Vec<SeqNum>, tombstones: Arc<FragmentedTombstones>) -> Retention {
        Retention {
            snapshots,
            beneath: Beneath::Ranges(self.beneath.clone()),
            tombstones,
            operator: None,
            blobs: None,
        }
    }

    /// The partitioner that `factory` has for the rewrite; `None`: it has none, or the output stays in level 0 and so is one
    /// table. `is_full`: the compaction reads all tables of the family.
    pub fn partitioning(
        &self,
        order: &Order,
        factory: &dyn SstPartitionerFactory,
        is_full: bool,
    ) -> Option<Box<Partitioning>> {
        let range = user_range(order, self.files().map(|(_, f)| f))?;
        let mut context = PartitionerContext::new(self.output_level, range.smallest, range.largest);
        (context.is_full, context.is_manual) = (is_full, self.reason.is_manual());
        if self.output_level == Level::ZERO { None } else { Partitioning::new(factory, &context) }
    }

    /// The limits by which the rewrite cuts its outputs.
    pub fn cut_limits(&self) -> CutLimits {
        let grandparent = |f: &Arc<FileMeta>| Grandparent {
            largest: f.largest().user_key().to_vec(),
            size_bytes: f.size(),
        };
        CutLimits {
            target_bytes: self.target_file_bytes,
            overlap_bytes_max: self.overlap_bytes_max,
            grandparents: self.grandparents.iter().map(grandparent).collect(),
        }
    }
}

/// Format of scripts and logs: `L0[12] + L6[7 8] -> L6 level0`.
impl fmt::Display for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (level, files)) in self.inputs.iter().enumerate() {
            let numbers: Vec<String> = files.iter().map(|f| f.number().0.to_string()).collect();
            write!(f, "{}{level}[{}]", if i > 0 { " + " } else { "" }, numbers.join(" "))?;
        }
        write!(f, " -> {} {}", self.output_level, self.reason.name())?;
        match self.action {
            Action::Rewrite => {}
            Action::Move => write!(f, " move")?,
            Action::Drop => write!(f, " drop")?,
        }
        if self.is_bottommost() {
            write!(f, " bottommost")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A range of user keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UserRange<'a> {
    /// The first key.
    pub(super) smallest: &'a [u8],
    /// The last key, or the exclusive end.
    pub(super) largest: &'a [u8],
    /// `largest` is exclusive.
    pub(super) exclusive: bool,
}

impl<'a> UserRange<'a> {
    /// The range of a file.
    pub(super) fn of(file: &'a FileMeta) -> Self {
        let (smallest, largest) = (file.smallest().user_key(), file.largest().user_key());
        UserRange { smallest, largest, exclusive: file.ends_exclusive() }
    }

    /// The smallest range that contains both.
    pub(super) fn join(self, order: &Order, other: Self) -> Self {
        let begins_here = order.compare(self.smallest, other.smallest).is_le();
        let ends = order.compare(self.largest, other.largest).then(other.exclusive.cmp(&self.exclusive));
        let last = if ends.is_ge() { self } else { other };
        UserRange { smallest: if begins_here { self.smallest } else { other.smallest }, ..last }
    }

    /// Whether the range ends before `user_key`.
    pub(super) fn ends_before(&self, order: &Order, user_key: &[u8]) -> bool {
        let by_key = order.compare(self.largest, user_key);
        by_key.is_lt() || (by_key.is_eq() && self.exclusive)
    }

    /// Whether both ranges may share a key.
    pub(super) fn meets(&self, order: &Order, other: &UserRange<'_>) -> bool {
        !self.ends_before(order, other.smallest) && !other.ends_before(order, self.smallest)
    }
}

/// The smallest range that contains all files.
pub(super) fn user_range<'a>(
    order: &Order,
    files: impl Iterator<Item = &'a Arc<FileMeta>>,
) -> Option<UserRange<'a>> {
    files.map(|f| UserRange::of(f)).reduce(|a, b| a.join(order, b))
}
