//! The leveled style: level 0 for new tables, and below it levels that each hold a multiple of the level above.
//!
//! The pickers are asked in the order of urgency: a level over its limit, marked tables, tombstones, age, garbage in blob
//! files. The first answer counts.

use super::aged::pick_aged;
use super::blob_gc::pick_blob_garbage;
use super::marked::pick_marked;
use super::overfull::pick_overfull;
use super::pick_input::PickInput;
use super::tombstones::pick_tombstones;
use crate::plan::Compaction;

/// The next compaction of a leveled tree.
pub(super) fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let PickInput { shape, options, running, .. } = input;
    pick_overfull(shape, options, running)
        .or_else(|| pick_marked(shape, options, running))
        .or_else(|| pick_tombstones(shape, options, running, input.oldest_snapshot))
        .or_else(|| pick_aged(shape, options, running, input.now))
        .or_else(|| {
            if !input.blob_options.collect_garbage {
                return None;
            }
            let files: Vec<_> = input.blobs.files().values().map(|f| f.live()).collect();
            pick_blob_garbage(shape, &files, input.blob_options, options, running)
        })
}
