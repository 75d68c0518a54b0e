//! Reads the footer of a table, and tells a damaged one from that of another kind of table.
//!
//! Version and magic are the last 12 bytes. An unknown version, or the magic of another kind of table, is damage if the
//! rest of the file proves what stood there. With a version that is read in its place, the proof is:
//!
//! - up to version 5: the metaindex, the properties and the index have the right checksums;
//! - from version 6 on: the footer, the metaindex and the properties have the right checksums.
//!
//! Without the proof the table is of a kind that is not read, which is no damage. A file that ends in other bytes may have a whole table
//! in front of them: its footer is looked for, and needs the same proof.

use crate::anatomy::Anatomy;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::{Prefix, ReadFile};
use ashlar_format::Unreadable;
use ashlar_format::table::Footer;
use std::path::Path;
use std::sync::Arc;

/// The versions that are tried. The older ones have the footer of version 5, and the blocks say for themselves how their
/// entries are stored.
const TRIED: [u32; 3] = [7, 6, 5];

/// The footer of a file, and where it starts.
///
/// # Errors
/// `Corruption`: no table, or a damaged footer. `NotSupported`: another kind of table, by name. `Io`.
pub(crate) fn read_footer(file: &Arc<dyn ReadFile>) -> Result<(Footer, u64)> {
    let (tail, tail_at) = read_tail(&**file)?;
    match Footer::decode(&tail, file.len()) {
        Ok(found) => Ok(found),
        Err(e @ Unreadable::NotSupported(what)) => match mended_as(file)? {
            None => Err(e.in_file(file.path(), tail_at)),
            Some((version, _)) => {
                let text = format!("the footer says {what}, and all else format version {version}");
                Err(Error::corruption(text).at(file.path(), tail_at).damaged_file_hint())
            }
        },
        Err(e) => Err(e.in_file(file.path(), tail_at)),
    }
}

/// Bytes behind a footer that are looked through for it.
const REST: usize = 64 << 10;
/// What looks like a footer in these bytes is tried so often at most: each try reads an index.
const TRIES: usize = 8;

/// The file with the version and the magic that its other parts prove, if the stored ones are damaged, or without bytes that follow its
/// footer. `None`: the footer is right, or nothing is proved.
///
/// # Errors
/// `Io`.
pub fn mended(file: &Arc<dyn ReadFile>) -> Result<Option<Arc<dyn ReadFile>>> {
    let (tail, _) = read_tail(&**file)?;
    match Footer::decode(&tail, file.len()) {
        Ok(_) => Ok(None),
        Err(_) => match mended_as(file)? {
            Some((_, file)) => Ok(Some(file)),
            None => without_rest(file),
        },
    }
}

/// The file up to the last footer that its other parts prove, if at most [`REST`] bytes follow it.
fn without_rest(file: &Arc<dyn ReadFile>) -> Result<Option<Arc<dyn ReadFile>>> {
    let size = file.len();
    let start = size.saturating_sub((REST + Footer::LEN) as u64);
    let mut bytes = vec![0; usize::try_from(size - start).unwrap_or_default()];
    file.read_exact_at(&mut bytes, start)?;
    let decoded = (1..=REST.min(bytes.len())).filter_map(|rest| {
        let table = bytes.get(..bytes.len() - rest)?;
        let tail = table.get(table.len().saturating_sub(Footer::LEN)..)?;
        let len = size - rest as u64;
        Footer::decode(tail, len).ok().map(|(footer, at)| (len, footer, at))
    });
    for (len, footer, at) in decoded.take(TRIES) {
        let table = Prefix::of(Arc::clone(file), len);
        match proves(&table, footer, at) {
            Ok(true) => return Ok(Some(table)),
            Err(e) if matches!(e.kind(), ErrorKind::Io(_)) => return Err(e),
            // Bytes that look like a footer lead anywhere.
            Ok(false) | Err(_) => {}
        }
    }
    Ok(None)
}

fn mended_as(file: &Arc<dyn ReadFile>) -> Result<Option<(u32, Arc<dyn ReadFile>)>> {
    for version in TRIED {
        let (mut tail, tail_at) = read_tail(&**file)?;
        if !Footer::set_version(&mut tail, version) {
            return Ok(None);
        }
        let Ok((footer, start)) = Footer::decode(&tail, file.len()) else { continue };
        let mended: Arc<dyn ReadFile> = Arc::new(Mended { file: Arc::clone(file), tail, tail_at });
        if proves(&mended, footer, start)? {
            return Ok(Some((version, mended)));
        }
    }
    Ok(None)
}

/// Whether the blocks to which the footer leads are those of a table.
fn proves(file: &Arc<dyn ReadFile>, footer: Footer, start: u64) -> Result<bool> {
    let proved = Anatomy::with_footer(Arc::clone(file), footer, start).and_then(|table| {
        table.properties()?;
        match footer.index {
            Some(index) => table.checksum_holds(index),
            None => Ok(true),
        }
    });
    match proved {
        Err(e) if e.is_corruption() => Ok(false),
        proved => proved,
    }
}

fn read_tail(file: &dyn ReadFile) -> Result<(Vec<u8>, u64)> {
    let size = file.len();
    let tail_len = usize::try_from(size).unwrap_or(usize::MAX).min(Footer::LEN);
    let tail_at = size - tail_len as u64;
    let mut tail = vec![0; tail_len];
    file.read_exact_at(&mut tail, tail_at)?;
    Ok((tail, tail_at))
}

/// A file with other last bytes.
#[derive(Debug)]
struct Mended {
    file: Arc<dyn ReadFile>,
    tail: Vec<u8>,
    tail_at: u64,
}

impl ReadFile for Mended {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.file.read_at(buf, offset)?;
        let bytes = (offset..).zip(buf.iter_mut().take(read)).filter(|(at, _)| *at >= self.tail_at);
        for (at, byte) in bytes {
            let known = usize::try_from(at - self.tail_at).ok().and_then(|at| self.tail.get(at));
            *byte = known.copied().unwrap_or(*byte);
        }
        Ok(read)
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn expect_random(&self) {
        self.file.expect_random();
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.file.will_read(offset, len);
    }
}
