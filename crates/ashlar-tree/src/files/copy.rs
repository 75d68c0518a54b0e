//! Copies of database files: hard links where a file never changes and the file system allows it, else copies.

use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::{Fs, ReadFile};
use ashlar_options::{forget_places, read_options_file};
use std::path::Path;

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// Bytes that a failed read gives up at a time.
const PAGE: u64 = 4096;

/// Gives a file that is never written again a second name, or copies it where the file system has no links. Returns whether
/// it copied. A copy is durable, its name is not.
///
/// # Errors
/// `Io`.
pub fn link_or_copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<bool> {
    match fs.link(from, to) {
        Err(e) if e.kind() == ErrorKind::NotSupported => copy_file(fs, from, to, u64::MAX).map(|_| true),
        linked => linked.map(|()| false),
    }
}

/// Copies the first bytes of a file, at `most` that many, and makes them durable, but not the name of the copy. Returns the
/// number of bytes.
///
/// # Errors
/// `Io`.
pub fn copy_file(fs: &dyn Fs, from: &Path, to: &Path, most: u64) -> Result<u64> {
    copy_with(fs, (from, to), most, &mut |_, _, e| Err(e))
}

/// Copies an OPTIONS file without the directories that it names: the copy of a database has all files in one directory, and
/// an open of the copy must not go to the directories of the original.
///
/// # Errors
/// `Corruption`: the file is damaged. `Io`.
pub fn copy_options(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    write_file(fs, to, options_of_copy(fs, from)?.as_bytes())
}

/// Writes a file whole and makes it durable, but not its name.
///
/// # Errors
/// `Io`.
pub fn write_file(fs: &dyn Fs, path: &Path, content: &[u8]) -> Result<()> {
    let file = fs.create(path)?;
    file.write_at(content, 0)?;
    file.sync_all()
}

/// Shows `see` the first bytes of a file, at `most` that many, piece by piece: the offset and the bytes. Returns how many bytes
/// the file had of them.
///
/// # Errors
/// `Io`; the errors of `see`.
pub fn read_pieces(
    source: &dyn ReadFile,
    most: u64,
    see: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<u64> {
    let len = source.len().min(most);
    let mut piece = vec![0; usize::try_from(len.clamp(1, PIECE)).unwrap_or(1)];
    let mut at = 0;
    while at < len {
        let wanted = usize::try_from(PIECE.min(len - at)).unwrap_or(1);
        let Some(buffer) = piece.get_mut(..wanted) else { break };
        let read = source.read_at(buffer, at)?;
        if read == 0 {
            break;
        }
        see(at, buffer.get(..read).unwrap_or_default())?;
        at += read as u64;
    }
    Ok(at)
}

/// The text that [`copy_options`] writes.
///
/// # Errors
/// `Corruption`: the file is damaged. `Io`.
pub fn options_of_copy(fs: &dyn Fs, from: &Path) -> Result<String> {
    let mut file = read_options_file(fs, from)?;
    forget_places(&mut file);
    Ok(file.print())
}

/// [`copy_file`], but a failed read is the decision of `unread`: it gets the offset and length of the page and the error,
/// and zeros replace the page if it answers `Ok`. Length 0: the file cannot be opened.
///
/// # Errors
/// `Io`; the errors of `unread`.
pub fn copy_with(
    fs: &dyn Fs,
    (from, to): (&Path, &Path),
    most: u64,
    unread: &mut dyn FnMut(u64, u64, Error) -> Result<()>,
) -> Result<u64> {
    let source = match fs.open_read(from) {
        Ok(source) => source,
        Err(e) => return unread(0, 0, e).map(|()| 0),
    };
    let (target, len) = (fs.create(to)?, source.len().min(most));
    let mut piece = vec![0; usize::try_from(len.clamp(1, PIECE)).unwrap_or(1)];
    let (mut at, mut step) = (0, PIECE);
    while at < len {
        let wanted = step.min(len - at);
        let Some(buffer) = usize::try_from(wanted).ok().and_then(|n| piece.get_mut(..n)) else { break };
        let read = match source.read_at(buffer, at) {
            // Page by page, up to the next piece.
            Err(_) if step == PIECE => {
                step = PAGE;
                continue;
            }
            Err(e) => {
                unread(at, wanted, e)?;
                buffer.fill(0);
                buffer.len()
            }
            Ok(0) => break,
            Ok(read) => read,
        };
        target.write_at(buffer.get(..read).unwrap_or_default(), at)?;
        at += read as u64;
        if at.is_multiple_of(PIECE) {
            step = PIECE;
        }
    }
    target.sync_all()?;
    Ok(at)
}
