//! The simulated machine: a disk that loses what a power cut may lose, a clock that stands still, and jobs in the
//! caller's thread.
//!
//! One seed decides everything: the same seed and the same calls give the same [`SimEnv::trace_hash`]. Random draws
//! come from named streams of the seed (`jobs`, `faults`, `crash`, `rand`), so more draws from one leave the others
//! unchanged.
//!
//! 1. Reads see the volatile state. What survives is computed only when [`SimEnv::crash`] is called.
//! 2. A crash yields a new machine and leaves this one running, so a test can take many crashes of one moment.
//! 3. Every call of the file system has a number, from 1. [`SimEnv::fail_call`] makes chosen calls fail, and
//!    [`SimEnv::photograph_at`] takes a crash right before a chosen call.
//! 4. [`Watched`] is the file system of a second process, which reads while the first one writes.

mod camera;
mod crash;
mod disk;
mod env;
mod fault;
mod files;
mod inode;
mod watched;

#[cfg(test)]
mod tests;

pub use crash::{CrashMode, DataMode, DirMode};
pub use env::SimEnv;
pub use fault::{CallClass, Repeat, SyncFault};
pub use watched::Watched;
