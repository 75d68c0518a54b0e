//! What survives a crash, by its mode: the durable bytes of files, and the durable entries of directories.

use super::inode::{FileEvent, FileState};
use crate::{Rand, SeededRand};
use std::collections::BTreeMap;

/// What happens to bytes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataMode {
    /// M0: all of them are lost.
    DropAll,
    /// M1: per file, a prefix of the events since the last sync survives.
    Prefix,
    /// M2: each 4 KiB page is, independently, at any version it had since the last sync; holes read as zeros.
    Pages,
    /// M3: as M2, with one page of the file torn between two versions at a 512-byte boundary.
    TornPage,
    /// M4: the file has its latest length, and what was not synced reads as zeros where the file grew.
    ZeroTail,
    /// M5: everything survives, as after `kill -9`.
    KeepAll,
}

/// What happens to directory entries that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirMode {
    /// D0: directories are as their last sync left them.
    DropAll,
    /// D1: of all directory changes not synced, in the order they were made, a prefix survives.
    Prefix,
    /// D2: any directory changes survive, of each name a prefix of its own: a rename is one change of two names.
    Subset,
    /// Everything survives, as after `kill -9`.
    KeepAll,
}

/// How a crash treats what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrashMode {
    /// Bytes of files.
    pub data: DataMode,
    /// Entries of directories.
    pub dirs: DirMode,
}

impl CrashMode {
    /// The process is killed, the machine goes on: nothing that was written is lost.
    pub const KILL: CrashMode = CrashMode { data: DataMode::KeepAll, dirs: DirMode::KeepAll };

    /// The hardest power cut: only what was synced survives.
    pub const DROP_ALL: CrashMode = CrashMode { data: DataMode::DropAll, dirs: DirMode::DropAll };

    /// Every combination of a data mode with a directory mode; a kill keeps both, so it is separate.
    pub fn all() -> Vec<CrashMode> {
        let data =
            [DataMode::DropAll, DataMode::Prefix, DataMode::Pages, DataMode::TornPage, DataMode::ZeroTail];
        let dirs = [DirMode::DropAll, DirMode::Prefix, DirMode::Subset, DirMode::KeepAll];
        let pairs =
            data.into_iter().flat_map(|data| dirs.into_iter().map(move |dirs| CrashMode { data, dirs }));
        pairs.chain([CrashMode::KILL]).collect()
    }
}

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// The bytes of a file after a crash.
pub(super) fn surviving(file: &FileState, mode: DataMode, rand: &SeededRand) -> Vec<u8> {
    if file.pending.is_empty() && mode != DataMode::KeepAll {
        return file.base.clone();
    }
    match mode {
        DataMode::KeepAll => file.now.clone(),
        DataMode::DropAll => file.base.clone(),
        DataMode::Prefix => {
            let keep = draw(rand, file.pending.len());
            let mut bytes = file.base.clone();
            for event in file.pending.iter().take(keep) {
                // It fitted into memory when it was done.
                let _ = event.apply(&mut bytes);
            }
            bytes
        }
        DataMode::ZeroTail => {
            let mut bytes = file.base.clone();
            let len = file.pending.iter().fold(bytes.len() as u64, |len, e| e.len_after(len));
            let _ = crate::mem::set_len(&mut bytes, len);
            bytes
        }
        DataMode::Pages => by_pages(file, false, rand),
        DataMode::TornPage => by_pages(file, true, rand),
    }
}

/// A number from 0 to `n`; both ends are drawn more often than the rest, because that is where mistakes live.
fn draw(rand: &SeededRand, n: usize) -> usize {
    match rand.next_u64() % 4 {
        0 => 0,
        1 => n,
        _ => usize::try_from(rand.below(n as u64 + 1)).unwrap_or(n),
    }
}

fn by_pages(file: &FileState, torn: bool, rand: &SeededRand) -> Vec<u8> {
    let touched = events_by_page(file);
    // The length is metadata: it is whatever it was after some event.
    let keep = draw(rand, file.pending.len());
    let len = file.pending.iter().take(keep).fold(file.base.len() as u64, |len, e| e.len_after(len));
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let torn_page = if torn && !touched.is_empty() {
        touched.keys().nth(usize::try_from(rand.below(touched.len() as u64)).unwrap_or(0)).copied()
    } else {
        None
    };
    for (index, out) in bytes.chunks_mut(PAGE).enumerate() {
        let events = touched.get(&index).map_or(&[][..], Vec::as_slice);
        let mut page = page_after(file, index, &events[..draw(rand, events.len())]);
        if torn_page == Some(index) {
            let other = page_after(file, index, &events[..draw(rand, events.len())]);
            let cut = SECTOR * (1 + usize::try_from(rand.below((PAGE / SECTOR - 1) as u64)).unwrap_or(0));
            page[cut..].copy_from_slice(&other[cut..]);
        }
        out.copy_from_slice(&page[..out.len()]);
    }
    bytes
}

/// For each page, which pending events changed it.
fn events_by_page(file: &FileState) -> BTreeMap<usize, Vec<usize>> {
    let mut touched: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut len = file.base.len() as u64;
    for (i, event) in file.pending.iter().enumerate() {
        let after = event.len_after(len);
        let (from, to) = match event {
            FileEvent::Write { offset, data } => (*offset, offset.saturating_add(data.len() as u64)),
            FileEvent::Truncate { len: cut } => (len.min(*cut), len.max(*cut)),
        };
        let page = |at: u64| usize::try_from(at / PAGE as u64).unwrap_or(usize::MAX);
        if from < to {
            for index in page(from)..=page(to - 1) {
                touched.entry(index).or_default().push(i);
            }
        }
        len = after;
    }
    touched
}

/// One page after some of the pending events; beyond the end of the file it is zeros.
fn page_after(file: &FileState, index: usize, events: &[usize]) -> Vec<u8> {
    let start = index * PAGE;
    let mut page = vec![0; PAGE];
    crate::mem::copy_out(&file.base, &mut page, start as u64);
    for event in events.iter().filter_map(|i| file.pending.get(*i)) {
        match event {
            FileEvent::Write { offset, data } => {
                let Ok(offset) = usize::try_from(*offset) else { continue };
                let (from, to) = (offset.max(start), (offset + data.len()).min(start + PAGE));
                if from < to {
                    page[from - start..to - start].copy_from_slice(&data[from - offset..to - offset]);
                }
            }
            FileEvent::Truncate { len } => {
                let keep = usize::try_from(*len).unwrap_or(usize::MAX).saturating_sub(start).min(PAGE);
                page[keep..].fill(0);
            }
        }
    }
    page
}
