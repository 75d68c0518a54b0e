//! Torn tails of WAL files: the bytes behind the last replayed record, saved as `lost/N.log.tail-OFFSET`.
//!
//! A power cut in the middle of a write leaves a torn tail. A damaged length field makes a torn tail of many whole
//! records. The two look the same, so an open saves the bytes. To limit the space after many crashes, it keeps only the
//! newest [`TAILS_KEPT`] tails. A tail of more than [`TAIL_MAX`] bytes stays in its WAL file, which moves to `lost/`
//! and is never removed.

use super::LOST;
use super::copy::write_file;
use ashlar_base::{FileNumber, Result};
use ashlar_env::{Fs, ReadFile};
use ashlar_format::filename::FileKind;
use std::path::Path;

/// The length in bytes of the longest tail that is copied.
pub const TAIL_MAX: u64 = 1 << 20;

/// The number of tails that are kept.
const TAILS_KEPT: usize = 8;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// The file offset after the last nonzero byte from `offset` on; `None` when all are zero.
///
/// # Errors
/// `Io`.
/// # Cost
/// Reads the file from `offset` on.
pub fn used_end(file: &dyn ReadFile, offset: u64) -> Result<Option<u64>> {
    let (mut piece, mut at, mut end) = (vec![0; PIECE], offset, None);
    while at < file.len() {
        let read = file.read_at(&mut piece, at)?;
        if read == 0 {
            break;
        }
        let found = piece.get(..read).unwrap_or_default().iter().rposition(|byte| *byte != 0);
        end = found.map(|last| at + last as u64 + 1).or(end);
        at += read as u64;
    }
    Ok(end)
}

/// Copies the bytes of WAL file `number` from `offset` to `end` into `lost/`, durably, and removes the oldest copies
/// above the limit. Returns the name of the copy. Copying the same tail again changes nothing.
///
/// # Errors
/// `Io`.
pub fn keep_tail(
    fs: &dyn Fs,
    dir: &Path,
    file: &dyn ReadFile,
    number: FileNumber,
    (offset, end): (u64, u64),
) -> Result<String> {
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(offset).min(TAIL_MAX)).unwrap_or(0)];
    file.read_exact_at(&mut bytes, offset)?;
    let (lost, name) = (dir.join(LOST), format!("{}.tail-{offset}", FileKind::Wal(number).name()));
    fs.create_dir_all(&lost)?;
    write_file(fs, &lost.join(&name), &bytes)?;
    let mut tails: Vec<_> =
        fs.list(&lost)?.into_iter().filter_map(|e| Some((tail_of(&e.name)?, e.name))).collect();
    tails.sort_unstable();
    let beyond = tails.len().saturating_sub(TAILS_KEPT);
    for (_, oldest) in tails.into_iter().take(beyond) {
        fs.remove(&lost.join(oldest))?;
    }
    fs.sync_dir(&lost)?;
    fs.sync_dir(dir)?;
    Ok(name)
}

/// The WAL file and the offset in the name of a tail.
fn tail_of(name: &str) -> Option<(FileNumber, u64)> {
    let (log, offset) = name.split_once(".tail-")?;
    match FileKind::parse(log)? {
        FileKind::Wal(number) => Some((number, offset.parse().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::Env;

    #[test]
    fn the_newest_tails_are_kept_and_nothing_else_is_touched() {
        let env = Env::mem();
        let (fs, dir) = (&*env.fs, Path::new("/db"));
        fs.create_dir_all(&dir.join(LOST)).unwrap();
        for other in ["000003.log", "000001.log.tail-", "000001.log.1", "000001.sst.tail-4", "notes"] {
            fs.create(&dir.join(LOST).join(other)).unwrap();
        }
        for n in 1..=20 {
            let name = dir.join(FileKind::Wal(FileNumber(n)).name());
            fs.create(&name).unwrap().write_at(b"used, torn\0\0", 0).unwrap();
            let log = fs.open_read(&name).unwrap();
            let end = used_end(&*log, 6).unwrap().unwrap();
            assert_eq!((end, used_end(&*log, 10).unwrap()), (10, None));
            for _ in 0..2 {
                let kept = keep_tail(fs, dir, &*log, FileNumber(n), (6, end)).unwrap();
                assert_eq!(fs.open_read(&dir.join(LOST).join(kept)).unwrap().len(), 4);
            }
        }
        let names: Vec<_> = fs.list(&dir.join(LOST)).unwrap().into_iter().map(|e| e.name).collect();
        let tails: Vec<_> = (13..=20).map(|n| format!("{n:06}.log.tail-6")).collect();
        assert_eq!(names.iter().filter(|n| tail_of(n).is_some()).cloned().collect::<Vec<_>>(), tails);
        assert_eq!(names.len(), tails.len() + 5);
    }
}
