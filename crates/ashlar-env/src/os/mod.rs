//! The machine: files through system calls, its clock, its randomness.

mod clock;
mod file;
mod fs;
#[cfg(target_arch = "x86_64")]
mod guard;
mod heap;
mod lock;
mod memory;
#[cfg(target_arch = "x86_64")]
mod piece;
mod place;
mod process;
mod rand;
mod sync;

pub use clock::OsClock;
pub use fs::OsFs;
pub use heap::{kept_by_allocator, kept_by_allocator_now};
pub use memory::{memory_limit, uncompressed_max};
pub use process::Process;
pub use rand::OsRand;
