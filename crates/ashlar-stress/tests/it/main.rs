//! The quick form of every suite, and single cases on the simulated machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]

mod block_log;
#[cfg(not(shuttle))]
mod doors;
mod mixed;
mod quick;
mod resume;
#[cfg(shuttle)]
mod schedules;
mod syncs;
