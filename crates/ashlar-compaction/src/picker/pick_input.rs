//! What the pickers of a style see.

use super::shape::Shape;
use crate::plan::Running;
use ashlar_base::SeqNum;
use ashlar_blob::BlobOptions;
use ashlar_options::CompactionOptions;
use ashlar_tree::blobs::BlobFiles;

/// What a style picks from.
#[derive(Clone, Copy)]
pub struct PickInput<'a> {
    /// The tables of the family.
    pub shape: Shape<'a>,
    /// The settings of the family's compactions.
    pub options: &'a CompactionOptions,
    /// The claims of the family's running compactions.
    pub running: &'a [Running],
    /// The oldest live snapshot.
    pub oldest_snapshot: Option<SeqNum>,
    /// Seconds since 1970.
    pub now: u64,
    /// The settings of the family's blob files.
    pub blob_options: &'a BlobOptions,
    /// The family's blob files.
    pub blobs: &'a BlobFiles,
}
