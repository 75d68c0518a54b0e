//! The simulated machine: a disk that loses what a power cut may lose, a clock that stands still, jobs in the caller.
//!
//! One seed decides everything; the same seed and the same calls give the same [`SimEnv::trace_hash`]. Draws come from
//! named streams of the seed (`jobs`, `faults`, `crash`, `rand`), so that using more of one leaves the others alone.
//!
//! 1. Reads see the volatile state. What survives is computed only when [`SimEnv::crash`] asks for it.
//! 2. A crash is a photograph: it yields a new machine and leaves this one running, so that many crashes can be taken
//!    of one moment.
//! 3. Every call of the file system has a number, from 1; [`SimEnv::fail_call`] makes chosen ones fail, and
//!    [`SimEnv::photograph_at`] crashes a copy right before one.

mod camera;
mod crash;
mod disk;
mod env;
mod fault;
mod files;
mod inode;

#[cfg(test)]
mod tests;

pub use crash::{CrashMode, DataMode, DirMode};
pub use env::SimEnv;
pub use fault::{CallClass, Repeat, SyncFault};
