//! The only access to the machine: files, clock, threads, randomness.
//!
//! All code that opens a file, waits, sleeps, reads the clock, draws a random number or starts a thread uses an
//! [`Env`], so that one seed replays a whole run. [`sim`] simulates the machine, with a disk that loses exactly what a
//! power cut may lose. [`DatabaseId`] says for which databases a thread works.

mod clock;
mod database_id;
mod env;
mod fs;
pub mod jobs;
mod mem;
mod os;
mod prefix;
mod rand;
pub mod sim;

pub use clock::{Clock, VirtualClock};
pub use database_id::{DatabaseId, Inside};
pub use env::Env;
pub use fs::{EntryKind, FileLock, Fs, FsEntry, PreparedPiece, ReadFile, STORE_HEAD, WriteFile, folder_of};
pub use jobs::{Job, JobExecutor, JobId, JobKind, Lane, StepBudget, StepResult, ThreadExecutor};
pub use mem::MemFs;
pub use os::{
    OsClock, OsFs, OsRand, Process, kept_by_allocator, kept_by_allocator_now, memory_limit, uncompressed_max,
};
pub use prefix::Prefix;
pub use rand::{Rand, SeededRand};
