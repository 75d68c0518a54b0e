//! Copies bytes and computes their checksum on the way, at a limited rate and on several threads.

use ashlar_base::checksum::crc32c_append;
use ashlar_base::{Error, Result};
use ashlar_env::{Clock, Fs, ReadFile};
use ashlar_tree::files::read_pieces;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Runs `work` for each item on up to `threads` threads, and `done` in the calling thread, with the place of the item and the
/// result. One thread takes the items in order, and is the calling one, also where the system gives no other.
///
/// # Errors
/// The first of `work` or `done`. Items that no thread has begun by then are left out.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
    mut done: impl FnMut(usize, R),
) -> Result<()> {
    let (threads, next, work) = (threads.min(items.len()), AtomicUsize::new(0), &work);
    std::thread::scope(|scope| {
        let (results, received) = mpsc::channel();
        let mut started = 0;
        while threads > 1 && started < threads {
            let (results, next) = (results.clone(), &next);
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                while let Some((at, item)) = take(next, items) {
                    let result = work(item);
                    let goes_on = result.is_ok();
                    // No receiver: another item failed.
                    if results.send((at, result)).is_err() || !goes_on {
                        break;
                    }
                }
            });
            if thread.is_err() {
                break;
            }
            started += 1;
        }
        drop(results);
        if started == 0 {
            return items.iter().enumerate().try_for_each(|(at, item)| work(item).map(|r| done(at, r)));
        }
        received.iter().try_for_each(|(at, result)| result.map(|result| done(at, result)))
    })
}

fn take<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

/// Keeps copying below a rate: after each piece the copying thread sleeps until the piece is due. Threads share it.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// 0: without a limit.
    bytes_per_second: u64,
    began: Duration,
    bytes: AtomicU64,
}

impl Pace {
    /// Begins now.
    pub(super) fn new(clock: &Arc<dyn Clock>, bytes_per_second: u64) -> Pace {
        let (clock, began) = (Arc::clone(clock), clock.now());
        Pace { clock, bytes_per_second, began, bytes: AtomicU64::new(0) }
    }

    fn passed(&self, bytes: u64) {
        if self.bytes_per_second == 0 {
            return;
        }
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let micros = u128::from(bytes) * 1_000_000 / u128::from(self.bytes_per_second);
        let due = self.began.saturating_add(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)));
        let now = self.clock.now();
        if due > now {
            self.clock.sleep(due - now);
        }
    }
}

/// What was copied or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    /// CRC-32C, unmasked.
    pub(super) crc: u32,
}

/// Reads the first bytes of a file, at `most` that many, and computes their checksum. Writes them to the file `to`, if given,
/// and makes that file durable, but not its name.
///
/// # Errors
/// `Io`.
pub(super) fn copy(
    source: &dyn ReadFile,
    to: Option<(&dyn Fs, &Path)>,
    most: u64,
    pace: &Pace,
) -> Result<Sum> {
    let target = to.map(|(fs, path)| fs.create(path)).transpose()?;
    let mut crc = 0;
    let bytes = read_pieces(source, most, &mut |at, piece| {
        crc = crc32c_append(crc, piece);
        if let Some(target) = &target {
            target.write_at(piece, at)?;
        }
        pace.passed(piece.len() as u64);
        Ok(())
    })?;
    if let Some(target) = target {
        target.sync_all()?;
    }
    Ok(Sum { bytes, crc })
}

/// Checks that a read of `path` found what was expected.
///
/// # Errors
/// `Corruption`: the length or the checksum differs.
pub(super) fn check(path: &Path, found: Sum, bytes: u64, crc: Option<u32>) -> Result<()> {
    if found.bytes != bytes {
        let what = format!("file has {} bytes, not {bytes}", found.bytes);
        return Err(Error::corruption(what).at_path(path));
    }
    match crc {
        Some(crc) if crc != found.crc => {
            let what = format!("file checksum mismatch: {:08x} found, {crc:08x} expected", found.crc);
            Err(Error::corruption(what).at_path(path))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_on_any_number_of_threads() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            let mut seen = vec![0; items.len()];
            each(
                &items,
                threads,
                |item| Ok(item * 2),
                |at, result| {
                    assert_eq!(result, at * 2);
                    seen[at] += 1;
                },
            )
            .unwrap();
            assert!(seen.iter().all(|times| *times == 1), "{threads} threads: {seen:?}");
        }
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let items: Vec<usize> = (0..10_000).collect();
        for threads in [1, 4] {
            let begun = AtomicUsize::new(0);
            let work = |item: &usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                if *item > 50 {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                if *item == 50 { Err(Error::invalid("of fifty")) } else { Ok(()) }
            };
            let e = each(&items, threads, work, |_, ()| ()).unwrap_err();
            assert_eq!(e.message(), "of fifty");
            assert!(begun.load(Ordering::Relaxed) < items.len(), "{threads} threads went on");
        }
    }
}
