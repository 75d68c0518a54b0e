//! Databases that the engine wrote, or carried through, as the check, the level check and the repair see them.
//!
//! | module | question |
//! |---|---|
//! | `carried` | does everything that RocksDB leaves in a directory survive the engine, and still suit its release? |
//! | `numbers` | does a repair make room for a database whose file numbers are used up? |
//! | `places` | does a crash leave a sound database, wherever its files are? |

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]
#![allow(clippy::disallowed_methods, reason = "tests look at files from outside")]

mod carried;
mod numbers;
mod places;
