//! The simulated machine, as tests use it.

use super::camera::{Photograph, Shot};
use super::crash::CrashMode;
use super::disk::Disk;
use super::fault::{CallClass, Repeat, SyncFault};
use super::files::SimFs;
use crate::jobs::InlineExecutor;
use crate::{Clock, Env, SeededRand, VirtualClock};
use ashlar_base::Result;
use ashlar_base::error::IoKind;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A simulated machine. Clones share it.
#[derive(Clone, Debug)]
pub struct SimEnv {
    seed: u64,
    fs: Arc<SimFs>,
    clock: Arc<VirtualClock>,
    rand: Arc<SeededRand>,
    crash: Arc<SeededRand>,
    jobs: Arc<InlineExecutor>,
}

impl SimEnv {
    /// A machine with an empty disk.
    pub fn new(seed: u64) -> Self {
        Self::boot(seed, Disk::new(SeededRand::stream(seed, "faults")), Arc::new(VirtualClock::new()))
    }

    fn boot(seed: u64, disk: Disk, clock: Arc<VirtualClock>) -> Self {
        SimEnv {
            seed,
            fs: Arc::new(SimFs::new(disk)),
            rand: Arc::new(SeededRand::stream(seed, "rand")),
            crash: Arc::new(SeededRand::stream(seed, "crash")),
            jobs: Arc::new(InlineExecutor::new(Arc::clone(&clock), SeededRand::stream(seed, "jobs"))),
            clock,
        }
    }

    /// The machine's services. Background work runs inside the caller.
    pub fn env(&self) -> Env {
        Env {
            fs: Arc::clone(&self.fs) as _,
            clock: Arc::clone(&self.clock) as _,
            rand: Arc::clone(&self.rand) as _,
            jobs: Arc::clone(&self.jobs) as _,
        }
    }

    /// The seed of this machine: what a failing test prints.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A generator of the test's own, from this machine's seed.
    pub fn stream(&self, name: &str) -> SeededRand {
        SeededRand::stream(self.seed, name)
    }

    /// The machine after a crash now: what survives by `mode`, no locks, no jobs, no fault plans, the same capacity,
    /// the clock going on from here. This machine is not touched, so that one moment can crash in many ways; each
    /// call draws again.
    pub fn crash(&self, mode: CrashMode) -> SimEnv {
        let shot =
            Shot { at: self.calls_of(CallClass::Change), mode, seed: crate::Rand::next_u64(&*self.crash) };
        let photograph = shot.take(&self.fs.disk.lock());
        self.boot_from(photograph)
    }

    /// Plans a crash of a copy right before the changing call number `at` (from 1, see [`SimEnv::calls_of`] with
    /// [`CallClass::Change`]): in the middle of whatever operation or background step makes it. The machine itself
    /// goes on. Calls that are over, or never come, give no photograph.
    pub fn photograph_at(&self, at: u64, mode: CrashMode) {
        let seed = crate::Rand::next_u64(&*self.crash);
        self.fs.disk.lock().camera.plan(Shot { at, mode, seed });
    }

    /// The photographs taken since the last call: the number of the changing call each was taken before, how it
    /// crashed, and the machine after that crash, as [`SimEnv::crash`] makes it.
    pub fn photographs(&self) -> Vec<(u64, CrashMode, SimEnv)> {
        let taken = self.fs.disk.lock().camera.develop();
        taken.into_iter().map(|p| (p.at, p.mode, self.boot_from(p))).collect()
    }

    fn boot_from(&self, photograph: Photograph) -> SimEnv {
        let clock = VirtualClock::new();
        clock.advance(self.clock.now());
        clock.set_unix_micros(self.clock.unix_micros());
        Self::boot(photograph.seed, photograph.disk, Arc::new(clock))
    }

    /// Makes call number `at` of `class` fail with `Io(kind)`; counted from 1 since the machine was made, see
    /// [`SimEnv::calls_of`]. `Sticky`: that call and all later ones of the class. A failing write leaves a drawn
    /// prefix of its bytes in the file. What a failing sync of a file does, [`SimEnv::set_sync_fault`] says. Any other
    /// failing call does nothing. Plans add up.
    pub fn fail_call(&self, class: CallClass, at: u64, repeat: Repeat, kind: IoKind) {
        self.fs.disk.lock().record.plan(class, at, repeat, kind);
    }

    /// From now on a file's sync that fails does this; [`SyncFault::Kept`] until then. What [`SimEnv::reverted`] says
    /// starts again.
    pub fn set_sync_fault(&self, fault: SyncFault) {
        let mut disk = self.fs.disk.lock();
        (disk.record.sync_fault, disk.record.reverted) = (fault, false);
    }

    /// Syncs of files that failed.
    pub fn failed_syncs(&self) -> u64 {
        self.fs.disk.lock().record.failed_syncs
    }

    /// Whether a failed sync took bytes out of the cache that were not synced ([`SyncFault::Reverted`]): a kill then loses
    /// what a power cut loses.
    pub fn reverted(&self) -> bool {
        self.fs.disk.lock().record.reverted
    }

    /// From now on a read that touches these bytes of a file fails with `Io(Other)`, until the machine crashes. One stretch
    /// of a file at most.
    ///
    /// # Errors
    /// `Io`: there is no such file.
    pub fn spoil(&self, path: &Path, bytes: Range<u64>) -> Result<()> {
        self.fs.disk.lock().spoil(path, bytes)
    }

    /// Drops all plans of [`SimEnv::fail_call`].
    pub fn heal(&self) {
        self.fs.disk.lock().record.forget_plans();
    }

    /// How many calls were made to fail.
    pub fn injected(&self) -> u64 {
        self.fs.disk.lock().record.injected()
    }

    /// How many calls the file system got.
    pub fn calls(&self) -> u64 {
        self.calls_of(CallClass::Any)
    }

    /// How many calls of one class the file system got.
    pub fn calls_of(&self, class: CallClass) -> u64 {
        self.fs.disk.lock().record.count(class)
    }

    /// A hash over every call so far: which, path, offset, length and data. Equal for equal runs.
    pub fn trace_hash(&self) -> u64 {
        self.fs.disk.lock().record.hash()
    }

    /// Limits the bytes of all named files together, with what they have reserved; what does not fit fails with `Io(NoSpace)`.
    pub fn set_capacity(&self, bytes: u64) {
        self.fs.disk.lock().set_capacity(bytes);
    }

    /// Limits the files open at once; one more fails with `Io(TooManyFiles)`.
    pub fn set_open_files(&self, most: usize) {
        self.fs.handles.set_most(most);
    }

    /// Files open now.
    pub fn open_files(&self) -> usize {
        self.fs.handles.open()
    }

    /// Bytes of all named files together, with what they have reserved.
    pub fn used_bytes(&self) -> u64 {
        self.fs.disk.lock().used()
    }

    /// The clock, to be advanced or set by hand.
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// The executor, to see how many jobs are left.
    pub fn jobs(&self) -> &InlineExecutor {
        &self.jobs
    }
}
