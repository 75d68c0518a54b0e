//! The phases of a run: the load, the requests, and the check that counts and links agree.

pub mod bulk;
pub mod check;
pub mod history;
pub mod kept;
pub mod load;
pub mod request;
#[cfg(test)]
mod tests;

/// The wall clock of every run, in milliseconds since 1970: 2026-01-01. It stands still during the load, and an operation of a
/// requester moves that requester's clock by a millisecond. So the same seed writes the same bytes on every engine.
pub const NOW: u64 = 1_767_225_600_000;

/// Digests of one phase, added up over its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Sum of the requested operations, the same in any order of the threads.
    pub asked: u64,
    /// Sum of everything read.
    pub read: u64,
}
