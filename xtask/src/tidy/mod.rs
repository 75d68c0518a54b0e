//! `tidy`: the project rules that no compiler checks.
//!
//! Each rule is a function from text to findings, so that its tests need no files; `walk` reads the checkout and asks
//! them all. A finding may be excused by a line in `xtask/tidy-exceptions.txt`, `RULE PATH: reason`; an excuse that
//! excuses nothing is a finding itself.

mod finding;
mod layers;
mod order;
mod paths;
mod prose;
mod rows;
mod sizes;
mod source;
mod walk;
mod words;

pub use walk::{HELP, check, main};
