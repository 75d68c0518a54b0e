//! The tree on storage: the files of a database and their contents.
//!
//! ```text
//! CURRENT -> MANIFEST -> version edits -> a version for each family: its tables by level, its blob files
//! ```
//! A version never changes; a [`version::VersionSet`] commits edits and installs new versions. A file leaves the directory
//! when no version and no reader has it ([`files`]). [`places`] finds the directories of the files, [`logs`] tells what a
//! WAL file holds without replaying it, and [`unwritable`] what of a database this engine cannot write.
//! [`direct_blobs`] finds values in blob files that no version has. [`external`] examines files that are to become tables. [`check`] reads
//! the files of a version for damage. No memtable and no background job is known here.
//!
//! Each module may use only modules above it (`cargo xtask tidy` reads this order).

pub mod columns;
pub mod blobs;
pub mod direct_blobs;
pub mod logs;
pub mod version;
pub mod files;
pub mod unwritable;
pub mod places;
pub mod external;
pub mod check;
