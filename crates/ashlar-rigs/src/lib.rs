//! Suites of the reliability rigs that share nothing with the others, and [`report`], the table of all. `ashlar-stress` has the others, and the program
//! `rel`, which runs all of them.
//!
//! | suite | question |
//! |---|---|
//! | [`corrupt`] | does any damage to any part of any file give a wrong answer, or go unnoticed? |
//! | [`corrupt::diff`] | of the same damaged directory, do we show less than RocksDB, or otherwise? |
//! | [`filter`] | does a compaction filter remove and change what it says, and nothing that a snapshot sees? |
//! | [`fuzz`] | does any decoder panic, hang or swell over damaged files? (the program `ashlar-fuzz`) |
//! | [`hostile`] | does the resident memory stay within the promise under hostile workloads? |
//! | [`limits`] | what if others have the directory, nothing is left to open, the disk is full, the directory goes? |
//! | [`txn`] | do transactions read, lock, fail and commit as a model of them says, and lose no update beside threads? |

pub mod corrupt;
pub mod filter;
pub mod fuzz;
pub mod hostile;
pub mod limits;
pub mod report;
pub mod txn;
