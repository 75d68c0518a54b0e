//! Limits that are kept: the disk's, open files, the cap on memory, of numbers, and what holds writers back.

mod full;
mod memory;
mod metadata;
mod numbers;
mod open_files;
mod pins;
mod stalls;
