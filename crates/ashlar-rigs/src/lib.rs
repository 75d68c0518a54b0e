//! Suites of the reliability rigs that use the interface for users only. `ashlar-stress` has the others, and the program
//! `rel`, which runs all of them.
//!
//! | suite | question |
//! |---|---|
//! | [`txn`] | do transactions read, lock, fail and commit as a model of them says, and lose no update beside threads? |

pub mod txn;
