//! Mutation testing of decoders: real files, damaged in many ways, must never make a decoder panic or hang.
//!
//! A plain in-process fuzzer: no coverage feedback, but seeded, on the stable toolchain, and with checksums put right
//! after the damage, so that inputs get past them and reach the code behind.

mod explore;
mod fix;
mod mutator;

pub use explore::{Explored, Finding, Limits, damaged, explore, heap_allowed};
pub use fix::{fix_log, fix_nothing};
pub use mutator::Mutator;
