//! Limits: the disk, open files, the memory cap, file and sequence numbers, and delays of writers.

mod batches;
mod forecast;
mod full;
mod memory;
mod metadata;
mod numbers;
mod open_files;
mod pins;
mod quota;
mod stalls;
mod timeouts;
