//! Reading a family as it was at one moment: a [`super_version::SuperVersion`] and a sequence.
//!
//! | module | idea |
//! |---|---|
//! | [`point`] | one key, or many at once: memtables first, then tables from the newest level down |
//! | [`iter`] | cursors: runs merged in order, versions folded into entries |
//! | [`merge`], [`range_del`], [`visibility`] | what an entry means beside others of its key |
//!
//! Nothing here writes, waits for a writer or knows of background work.
//!
//! Each module may use only modules above it (`cargo xtask tidy` reads this order).

pub mod merge;
pub mod range_del;
pub mod visibility;
pub mod super_version;
pub mod iter;
pub mod point;
