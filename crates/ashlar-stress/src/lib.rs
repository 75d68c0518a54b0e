//! The reliability rigs: test the promises of the engine under crashes, failing calls and damaged files.
//!
//! A suite is a function from a [`Budget`] to a [`Report`]. The program `rel` runs one with a budget from its command
//! line; `tests/it` runs each with the small budget of an ordinary test run. What a suite finds it names with the words
//! that make it again: `rel SUITE --replay=WORDS`.
//!
//! | suite | question |
//! |---|---|
//! | [`sim`] | does a crash at any moment of any history leave a gapless prefix that holds what was promised? |
//! | [`sweep`] | does a call that fails, once or for good, lose, hang or change anything? |
//! | [`meta`] | does a setting, an option of a read, other words for the same, or a second database change an answer? |
//! | [`corrupt`] | does any damage to any part of any file give a wrong answer, or go unnoticed? |
//! | [`torture`] | do processes that are killed, at any moment, leave all that was acknowledged? |
//! | [`compat`] | do directories pass between us and releases of RocksDB, as the format levels promise? |
//! | [`shuttle`] | does any order of the steps of many threads lose, hang or change anything? |
//! | [`limits`] | what if others have the directory, nothing is left to open, the disk is full, the directory goes? |
//! | [`hostile`] | does the resident memory stay within the promise under hostile workloads? |
//! | [`soak`] | does anything grow - memory, threads, descriptors, files - over hours of the same work? |
//! | [`filter`] | does a compaction filter remove and change what it says, and nothing that a snapshot sees? |
//! | [`txn`] | do transactions read, lock, fail and commit as a model of them says, and lose no update beside threads? |
//! | [`bugs`] | do the suites find the mistakes of other systems, made on purpose? |
//! | [`corrupt::diff`] | of the same damaged directory, do we show less than RocksDB, or otherwise? |
//! | [`power`] | does a power cut of a real file system, or of its device, take what was promised to survive? |
//! | [`fuzz`] | does any decoder panic, hang or swell over damaged files? (the program `ashlar-fuzz`) |

pub mod bugs;
pub mod compat;
mod contents;
pub mod meta;
pub mod power;
pub mod process;
pub mod shuttle;
pub mod sim;
pub mod soak;
pub mod sweep;
pub mod torture;

pub use ashlar_rigs::{corrupt, filter, fuzz, hostile, limits, report, txn};
pub use ashlar_testkit::suite::{Budget, Failure, Harm, Length, Report};
