//! A compaction that was decided on: what a picker returns and a job carries out.

use crate::rewrite::{Beneath, CutLimits, Grandparent, Retention};
use crate::version::FileMeta;
use ashlar_base::{Level, Order, SeqNum};
use std::fmt;
use std::sync::Arc;

/// Why a compaction was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Level 0 has too many files or bytes.
    Level0,
    /// A level is larger than its target.
    LevelSize,
    /// The user asked for a range.
    Manual,
}

impl Reason {
    /// A short name for logs.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Level0 => "level0",
            Reason::LevelSize => "level-size",
            Reason::Manual => "manual",
        }
    }
}

/// The claim of a compaction in progress: no other may write into the same level where the ranges meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The level it writes.
    pub output_level: Level,
    /// The smallest user key of its inputs.
    pub smallest: Vec<u8>,
    /// The largest user key of its inputs.
    pub largest: Vec<u8>,
}

/// One compaction, decided: a value that knows everything its job needs but the I/O.
#[derive(Clone)]
pub struct Compaction {
    /// The input files by level, the level to be emptied first, then those of the output level that it overlaps.
    /// Level 0 newest first, deeper levels ascending; no level occurs twice, none is empty.
    pub inputs: Vec<(Level, Vec<Arc<FileMeta>>)>,
    /// Where the outputs go.
    pub output_level: Level,
    /// The files of the first deeper level that overlaps: they bound the outputs.
    pub grandparents: Vec<Arc<FileMeta>>,
    /// Ranges of user keys for which a deeper level has files; ascending, disjoint. Empty: the output is bottommost.
    pub beneath: Vec<(Vec<u8>, Vec<u8>)>,
    /// The files can be moved as they are: an edit, no I/O.
    pub trivial_move: bool,
    /// Why it was picked.
    pub reason: Reason,
    /// Bytes at which an output is full.
    pub target_file_bytes: u64,
    /// Bytes of grandparents one output may overlap.
    pub overlap_bytes_max: u64,
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

    /// Takes the input files, or gives them back. To be called under the state lock.
    pub fn set_compacting(&self, taken: bool) {
        for (_, file) in self.files() {
            file.set_compacting(taken);
        }
    }

    /// The claim to be listed while the compaction runs; `None` for one without inputs.
    pub fn running(&self, order: &Order) -> Option<Running> {
        let (smallest, largest) = user_range(order, self.files().map(|(_, f)| f))?;
        Some(Running {
            output_level: self.output_level,
            smallest: smallest.to_vec(),
            largest: largest.to_vec(),
        })
    }

    /// What the rewrite has to keep, given the live snapshots (ascending).
    pub fn retention(&self, snapshots: Vec<SeqNum>) -> Retention {
        Retention { snapshots, beneath: Beneath::Ranges(self.beneath.clone()) }
    }

    /// Where the rewrite cuts its outputs.
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

/// As in scripts and logs: `L0[12] + L6[7 8] -> L6 level0`.
impl fmt::Display for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (level, files)) in self.inputs.iter().enumerate() {
            let numbers: Vec<String> = files.iter().map(|f| f.number().0.to_string()).collect();
            write!(f, "{}{level}[{}]", if i > 0 { " + " } else { "" }, numbers.join(" "))?;
        }
        write!(f, " -> {} {}", self.output_level, self.reason.name())?;
        if self.trivial_move {
            write!(f, " move")?;
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

/// The smallest and largest user key of some files.
pub(super) fn user_range<'a>(
    order: &Order,
    files: impl Iterator<Item = &'a Arc<FileMeta>>,
) -> Option<(&'a [u8], &'a [u8])> {
    files.map(|f| (f.smallest().user_key(), f.largest().user_key())).reduce(|(a, b), (c, d)| {
        let smallest = if order.compare(c, a).is_lt() { c } else { a };
        let largest = if order.compare(d, b).is_gt() { d } else { b };
        (smallest, largest)
    })
}
