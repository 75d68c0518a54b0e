//! The parts of `benches/insides` that are functions of values, and a count of something whose count is known.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test a panic is the report")]
#![allow(clippy::disallowed_methods, reason = "reads its own program")]
#![allow(dead_code, reason = "the rest of these modules is the benchmark's")]

#[path = "../../benches/insides/check.rs"]
mod check;
#[path = "../../benches/insides/locks.rs"]
mod locks;
#[path = "../../benches/insides/profile.rs"]
mod profile;
