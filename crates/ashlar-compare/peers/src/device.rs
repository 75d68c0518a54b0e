//! How fast the device below the databases is: a short measurement before the run, so that its figures can be read.
//!
//! Writes and syncs one file of 64 MiB. Then reads it in order and at random places, past the page cache. Then writes and
//! syncs single blocks. Each part ends after a fraction of a second: about two seconds in all.

use ashlar_bench::Random;
use ashlar_report::machine::Disk;
use rustix::fs::{Mode, OFlags};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const FILE_MIB: u64 = 64;
const BLOCK: usize = 4096;
/// The duration of each part except the first.
const PART: Duration = Duration::from_millis(400);

/// Measures in `folder`, which is created if it does not exist, and removes the file. `None`: nothing can be written.
pub fn measure(folder: &Path) -> Option<Disk> {
    std::fs::create_dir_all(folder).ok()?;
    let path = folder.join(format!("ashlar-compare-device-{}", std::process::id()));
    let disk = measured(&path);
    // The file may not exist.
    let _ = std::fs::remove_file(&path);
    disk
}

fn measured(path: &Path) -> Option<Disk> {
    let write_mib_s = written(path)?;
    let direct = direct(path);
    Some(Disk {
        write_mib_s,
        read_mib_s: direct.as_ref().and_then(read_in_order),
        read_4k_us: direct.as_ref().and_then(read_at_random),
        sync_us: synced(path)?,
    })
}

/// MiB per second, the sync at the end included. The written bytes do not compress.
fn written(path: &Path) -> Option<f64> {
    let mut random = Random::new(1, 1);
    let part: Vec<u8> = (0..MIB / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
    let mut file = File::create(path).ok()?;
    let start = Instant::now();
    for _ in 0..FILE_MIB {
        file.write_all(&part).ok()?;
    }
    file.sync_data().ok()?;
    Some(FILE_MIB as f64 / start.elapsed().as_secs_f64())
}

/// The file, opened for reads that bypass the page cache. `None`: the file system has no such reads.
fn direct(path: &Path) -> Option<File> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECT, Mode::empty()).ok().map(File::from)
}

/// A part of `memory` of `len` bytes, aligned for a block.
fn aligned(memory: &mut [u8], len: usize) -> Option<&mut [u8]> {
    let from = memory.as_ptr().align_offset(BLOCK);
    memory.get_mut(from..from.checked_add(len)?)
}

fn read_in_order(file: &File) -> Option<f64> {
    let mut memory = vec![0; MIB + BLOCK];
    let part = aligned(&mut memory, MIB)?;
    let start = Instant::now();
    let mut read = 0;
    while read < FILE_MIB && start.elapsed() < PART {
        file.read_exact_at(part, read * MIB as u64).ok()?;
        read += 1;
    }
    Some(read as f64 / start.elapsed().as_secs_f64())
}

/// Microseconds, median.
fn read_at_random(file: &File) -> Option<f64> {
    let mut memory = vec![0; 2 * BLOCK];
    let block = aligned(&mut memory, BLOCK)?;
    let mut random = Random::new(1, 2);
    let blocks = FILE_MIB * (MIB / BLOCK) as u64;
    repeated(|| file.read_exact_at(block, random.below(blocks) * BLOCK as u64))
}

/// Median microseconds to append and sync a block.
fn synced(path: &Path) -> Option<f64> {
    let mut file = OpenOptions::new().append(true).open(path).ok()?;
    let block = [7; BLOCK];
    repeated(|| file.write_all(&block).and_then(|()| file.sync_data()))
}

fn repeated(mut what: impl FnMut() -> std::io::Result<()>) -> Option<f64> {
    let start = Instant::now();
    let mut took = Vec::new();
    while took.is_empty() || start.elapsed() < PART {
        let begun = Instant::now();
        what().ok()?;
        took.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    took.sort_by(f64::total_cmp);
    took.get(took.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_measured_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let disk = measure(&dir.path().join("below")).unwrap();
        assert!(disk.write_mib_s > 0.0 && disk.sync_us > 0.0, "{disk:?}");
        assert!(disk.read_mib_s.is_none_or(|rate| rate > 0.0), "{disk:?}");
        assert!(disk.read_4k_us.is_none_or(|us| us > 0.0), "{disk:?}");
        assert_eq!(std::fs::read_dir(dir.path().join("below")).unwrap().count(), 0);
        assert_eq!(measure(Path::new("/proc/no")), None);
    }
}
