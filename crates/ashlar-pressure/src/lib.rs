//! Whether and how fast writers may go: errors of background work, limits of memtables and level 0, and how memory is shared.
//!
//! | module | idea |
//! |---|---|
//! | `deadline` | until when a write waits |
//! | `disk` | the quota of disk space and the reserve of free space |
//! | [`health`] | which errors the database has, what still works, and when failed work is retried |
//! | `rates` | what background work carries, and what writers can sustain |
//! | `pace` | the delay of a byte, by the gauges of a family |
//! | `outlook` | when writers will be slowed and stopped |
//! | `pressure` | the pace of a whole database, as the write path reads it |
//! | `resources` | the memory cap, the block cache, the rate limit and the threads of one database or of several |
//! | `memory` | when memtables are switched early, when writers wait, and when writes are refused |
//!
//! 1. Only background work ends a stop, so code that stops a writer must first schedule such work.
//! 2. The fullness of a family is the larger of its two gauges; the fullest family decides for the database.
//! 3. Memtables are no gauge: a full one is switched at once, or its writers wait for a flush.
//!
//! Each module may use only modules above it.

pub mod health;
mod rates;
mod deadline;
mod disk;
mod pace;
mod outlook;
mod pressure;
mod resources;
mod memory;

pub use deadline::Deadline;
pub use disk::{DiskClaim, DiskLimits, DiskSpace, DiskUse};
pub use memory::{ActiveLimit, Memory, largest};
pub use outlook::{Forecast, Outlook};
pub use pace::{Bounds, Gauges, Pace, WritePressure, pace};
pub use pressure::Pressure;
pub use rates::Rates;
pub use resources::{Paced, Resources, lanes};
