//! Snapshots of the disk at chosen calls: what a crash right before the call would leave.

use super::crash::CrashMode;
use super::disk::Disk;
use crate::SeededRand;

/// A planned photograph.
pub(super) struct Shot {
    /// The number of the changing call, from 1.
    pub(super) at: u64,
    pub(super) mode: CrashMode,
    /// Decides what survives, and everything in the machine made of the photograph.
    pub(super) seed: u64,
}

/// A photograph: the disk that the next boot finds.
pub(super) struct Photograph {
    pub(super) at: u64,
    pub(super) mode: CrashMode,
    pub(super) seed: u64,
    pub(super) disk: Disk,
}

/// The planned photographs and the ones taken.
#[derive(Default)]
pub(super) struct Camera {
    planned: Vec<Shot>,
    taken: Vec<Photograph>,
}

impl Shot {
    /// Crashes a copy of `disk`.
    pub(super) fn take(self, disk: &Disk) -> Photograph {
        let Shot { at, mode, seed } = self;
        let survive = SeededRand::stream(seed, "survive");
        let disk = disk.after_crash(mode, &survive, SeededRand::stream(seed, "faults"));
        Photograph { at, mode, seed, disk }
    }
}

impl Camera {
    pub(super) fn plan(&mut self, shot: Shot) {
        self.planned.push(shot);
    }

    /// The shots for call number `call`, in the order they were planned.
    pub(super) fn due(&mut self, call: u64) -> Vec<Shot> {
        self.planned.extract_if(.., |shot| shot.at == call).collect()
    }

    pub(super) fn keep(&mut self, photograph: Photograph) {
        self.taken.push(photograph);
    }

    /// Hands over the photographs taken so far.
    pub(super) fn develop(&mut self) -> Vec<Photograph> {
        std::mem::take(&mut self.taken)
    }
}
