//! A device that records every write and flush, and what a power cut at any place of that record leaves of it.
//!
//! ```text
//! database > ext4 > loop device > file over FUSE > another process: the device's bytes in memory, and a log
//! ```
//! A flush of ext4 - a journal's commit, an `fdatasync` - is a flush of the loop device, is an `fsync` of its file, and so
//! a record in the log; writes come before it as they came from the file system. From one log any number of crash images
//! are made ([`Replay`]), each to be mounted by itself, so that the real ext4 replays its real journal. The other process
//! can also fail writes and flushes, to see what the kernel makes of that.
//!
//! `log` is the record, `image` what is left of it, `disk` the device for its user, `serve` the other process, `fuse` how
//! it talks with the kernel.

mod disk;
mod fuse;
mod image;
mod log;
mod serve;
#[cfg(test)]
mod tests;

pub use disk::RecordedDisk;
pub use image::{Image, Replay, SECTOR, Survivors};
pub use log::{Event, Log};
pub use serve::serve;

/// What is where in the folder of a device.
mod places {
    /// The device as it was before the log.
    pub(super) const BASE: &str = "base";
    pub(super) const LOG: &str = "log";
    /// Where the file is served.
    pub(super) const FUSE: &str = "fuse";
    /// Where the file system on it is mounted.
    pub(super) const MOUNTED: &str = "mounted";
}
