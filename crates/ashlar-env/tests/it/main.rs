//! The environment from outside: one conformance suite over three file systems, the directories that the
//! machine's holds, and the LOCK file between processes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod conformance;
mod held;
mod lock;
