//! Compactions whose only purpose is to move values out of the oldest blob files.
//!
//! A table that no compaction reaches keeps a whole batch of blob files alive for the few values it refers to. When
//! enough of the batch is garbage, one table that names the batch's oldest file is rewritten in its own level. A
//! level-0 table goes to the base level, with all overlapping files. Its values in old files move to new files. Once
//! the last such table is rewritten, the batch is obsolete. Each rewrite leaves one table fewer that refers to the
//! oldest file, so this ends.
//!
//! Source: RocksDB `db/version_set.cc` (`ComputeFilesMarkedForForcedBlobGC`).

use super::finish::complete;
use super::level0::take_group;
use super::shape::{Shape, any_busy};
use crate::plan::{Compaction, Reason, Running};
use ashlar_base::FileNumber;
use ashlar_blob::{BlobOptions, LiveBlobFile};
use ashlar_options::CompactionOptions;

/// The next blob garbage compaction, if one is due and can start now. `files` are the family's blob files, ascending.
/// Cost: a walk over all tables if blob garbage collection is on.
pub fn pick_blob_garbage(
    shape: &Shape<'_>,
    files: &[LiveBlobFile],
    blobs: &BlobOptions,
    options: &CompactionOptions,
    running: &[Running],
) -> Option<Compaction> {
    let tables = shape.levels.iter().flatten();
    let linked = tables.map(|f| f.file.oldest_blob_file).filter(|n| n.0 != 0).collect();
    let oldest = blobs.forced(files, &linked)?;
    (0..shape.levels.len()).find_map(|level| pick_from(shape, level, oldest, options, running))
}

fn pick_from(
    shape: &Shape<'_>,
    level: usize,
    oldest: FileNumber,
    options: &CompactionOptions,
    running: &[Running],
) -> Option<Compaction> {
    let tables = shape.level(level);
    let mut named = (0..).zip(tables).filter(|(_, f)| f.file.oldest_blob_file == oldest);
    if level > 0 {
        return named.find_map(|(at, _)| {
            let files = shape.slice(level, shape.clean_cut(level, at..at + 1));
            if any_busy(files) {
                return None;
            }
            let inputs = (level, files.to_vec());
            complete(shape, options, running, inputs, (level, 0..0), Reason::BlobGarbage)
        });
    }
    let (_, seed) = named.next()?;
    take_group(shape, options, running, seed, shape.targets(options).base, Reason::BlobGarbage)
}
