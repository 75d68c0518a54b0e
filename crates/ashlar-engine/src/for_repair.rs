//! What `ashlar-repair` uses of the engine besides the handle and its reports. Other crates do not use this module.
//!
//! | item | purpose |
//! |---|---|
//! | [`Settings`] | a repair combines the settings of its caller with the stored ones as an open does |
//! | [`replay_past_damage`] | a repair writes the readable part of the WAL files to tables as an open does |
//! | [`Claimed`] | a quarantine replaces tables of an open database as a compaction does |

pub use crate::db::{Claimed, HoldsOperand, OptionsOf, Placed, Settings, replay_past_damage};
