//! Limits that are kept: the disk's, the cap on memory, and what holds writers back.

mod disk;
mod memory;
mod stalls;
