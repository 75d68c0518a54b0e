//! Limits that are kept on the real machine: the disk's, and the cap on memory.

mod disk;
mod memory;
