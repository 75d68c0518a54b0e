//! Files in memory: fast, without faults and without durability.

mod fs;

pub use fs::MemFs;

use ashlar_base::{Error, Result};
use std::io;
use std::path::{Component, Path};

/// The names on the way to `path` from the root of a file system that has no working directory: `a/./b/../c`, `/a/c`
/// and `a/c` are one place.
///
/// # Errors
/// `InvalidArgument`: a name that is not UTF-8.
pub(crate) fn names_of(path: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                let name =
                    name.to_str().ok_or_else(|| Error::invalid("file name is not UTF-8").at_path(path))?;
                names.push(name.to_owned());
            }
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(names)
}

/// Copies what `bytes` has from `offset` on into `buf`; the count.
pub(crate) fn copy_out(bytes: &[u8], buf: &mut [u8], offset: u64) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
    let n = rest.len().min(buf.len());
    buf[..n].copy_from_slice(&rest[..n]);
    n
}

/// Writes `data` at `offset`, growing `bytes` with zeros as needed.
pub(crate) fn copy_in(bytes: &mut Vec<u8>, data: &[u8], offset: u64) -> io::Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let end = offset.checked_add(data.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
    if end > bytes.len() as u64 {
        set_len(bytes, end)?;
    }
    let end = usize::try_from(end).map_err(|_| io::ErrorKind::FileTooLarge)?;
    bytes[end - data.len()..end].copy_from_slice(data);
    Ok(())
}

/// Cuts or zero-extends `bytes`; a length that memory does not hold is refused.
pub(crate) fn set_len(bytes: &mut Vec<u8>, len: u64) -> io::Result<()> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if let Some(more) = len.checked_sub(bytes.len()) {
        bytes.try_reserve(more).map_err(|_| io::ErrorKind::StorageFull)?;
    }
    bytes.resize(len, 0);
    Ok(())
}
