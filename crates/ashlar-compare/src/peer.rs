//! What an engine is to the driver. Everything is dispatched statically: a call costs what the engine costs.

use crate::settings::Settings;
use std::path::Path;

/// The engine's message.
pub type Result<T> = std::result::Result<T, String>;

/// Bytes that an engine says it wrote; `None` where it does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// By flushes.
    pub flush: Option<u64>,
    /// By compactions.
    pub compaction: Option<u64>,
}

/// An open database.
pub trait Peer: Sized {
    /// Its cursors.
    type Cursor<'a>: Cursor
    where
        Self: 'a;

    /// Makes a database in the empty directory `dir`.
    fn open(dir: &Path, settings: &Settings, library: Option<&str>) -> Result<Self>;

    /// Its version, and how it is reached.
    fn version(&self) -> String;

    /// Writes one entry.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Calls `see` with the value of `key`; false when there is none.
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool>;

    /// A new cursor over all entries.
    fn cursor(&self) -> Result<Self::Cursor<'_>>;

    /// Writes what is in memory to tables and waits until no background work is left.
    fn settle(&self) -> Result<()>;

    /// What it says it wrote since the open.
    fn written(&self) -> Written;

    /// How many tables each level has, from level 0.
    fn levels(&self) -> Vec<u64>;

    /// Closes.
    fn close(self) -> Result<()>;
}

/// A position among the entries.
pub trait Cursor {
    /// To the first entry.
    fn first(&mut self) -> Result<()>;
    /// To the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<()>;
    /// To the next entry.
    fn next(&mut self) -> Result<()>;
    /// The entry; `None` off the end.
    fn entry(&self) -> Option<(&[u8], &[u8])>;
    /// What went wrong since the last move that succeeded, for engines that say it late.
    fn check(&self) -> Result<()>;
}
