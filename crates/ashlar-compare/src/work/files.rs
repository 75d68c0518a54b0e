//! SST files: sixteen sorted ones with the entries of a fill in key order, written outside the database and taken into it.

use super::Done;
use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter};
use ashlar_bench::{KeyMaker, Values};
use ashlar_peers::operations::Append;
use ashlar_peers::peer::{Peer, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};

const FILES: u64 = 16;

/// The paths of the files, beside the database.
fn paths(job: &Job) -> Vec<PathBuf> {
    let dir = Path::new(&job.dir).with_file_name("files");
    (0..FILES).map(|file| dir.join(format!("{file:02}.sst"))).collect()
}

/// The numbers of the keys in file `file`.
fn numbers(entries: u64, file: u64) -> Range<u64> {
    entries * file / FILES..entries * (file + 1) / FILES
}

/// The entries of all files, one after the other.
struct Source {
    maker: KeyMaker,
    values: Values,
    value_bytes: usize,
}

impl Source {
    fn new(job: &Job) -> Source {
        let s = &job.settings;
        let values = Values::new(s.seed, s.compress_ratio, s.value_bytes);
        Source { maker: s.keys(), values, value_bytes: s.value_bytes }
    }

    /// Calls `append` with the next entries, those of the keys `range`.
    fn append(&mut self, range: Range<u64>, append: Append<'_>) -> Result<()> {
        for number in range {
            append(self.maker.key(number), self.values.next(self.value_bytes))?;
        }
        Ok(())
    }
}

/// Writes the files, `step.ops` entries in all.
pub fn write<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let paths = paths(job);
    if let Some(dir) = paths.first().and_then(|path| path.parent()) {
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let mut source = Source::new(job);
    meter.begin();
    for (file, path) in (0..).zip(&paths) {
        let range = numbers(step.ops, file);
        let count = range.end - range.start;
        peer.write_sst(path, &mut |append| source.append(range.clone(), append))?;
        meter.ended(Kind::Write, count);
    }
    Ok(done(job, step))
}

/// Takes the files into the database.
pub fn ingest<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let paths = paths(job);
    meter.begin();
    peer.ingest(&paths, step.workload == Workload::Ingest)?;
    meter.ended(Kind::Write, step.ops);
    match paths.iter().find(|path| path.exists()) {
        Some(left) => Err(format!("{} is left, and should have been moved", left.display())),
        None => Ok(done(job, step)),
    }
}

fn done(job: &Job, step: &Step) -> Done {
    let bytes = step.ops.saturating_mul((job.settings.key_bytes + job.settings.value_bytes) as u64);
    Done { ops: step.ops, bytes, asked: step.ops, ..Done::default() }
}

/// Puts the entries of the files.
pub fn replay<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<()> {
    let mut source = Source::new(job);
    (0..FILES)
        .try_for_each(|file| source.append(numbers(step.ops, file), &mut |key, value| peer.put(key, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_have_all_entries_once() {
        let ends: Vec<_> = (0..FILES).map(|file| numbers(1003, file)).collect();
        assert!(ends.windows(2).all(|two| two[0].end == two[1].start));
        assert_eq!((ends[0].start, ends[15].end), (0, 1003));
    }
}
