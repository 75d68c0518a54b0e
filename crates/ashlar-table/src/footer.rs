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
use ashlar_base::error::BusyKind;
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
        Err(e @ Unreadable::NotSupported(what)) => match with_version(file, file.len())? {
            None => Err(e.in_file(file.path(), tail_at)),
            Some((version, _)) => {
                let text = format!("the footer says {what}, and all else format version {version}");
                Err(Error::corruption(text).at(file.path(), tail_at).damaged_file_hint())
            }
        },
        Err(e) => Err(e.in_file(file.path(), tail_at)),
    }
}

/// Bytes that are read at once when a footer is looked for.
const STRETCH: usize = 256 << 10;
/// At most this many candidate footers are proved: each proof reads an index.
const TRIES: usize = 8;

/// The file with a footer that its other parts prove: with the version and the magic if the stored ones are damaged or cut off, or without
/// bytes that follow the footer. `recorded`: the length of the table, if it is known, which counts first. `None`: the file ends in
/// such a footer, or nothing is proved.
///
/// # Errors
/// `Io`. `Busy(Memory)`: a block of the table at the end does not fit into memory.
/// # Cost
/// If no footer at the end leads to a metaindex, the file is read backward up to the footer that is proved, or whole.
pub fn with_proved_footer(
    file: &Arc<dyn ReadFile>,
    recorded: Option<u64>,
) -> Result<Option<Arc<dyn ReadFile>>> {
    let len = file.len();
    if let Some(recorded) = recorded.filter(|recorded| *recorded != len) {
        if recorded < len {
            let table: Arc<dyn ReadFile> = Prefix::of(Arc::clone(file), recorded);
            if proof_of_end(&table)? != Proof::Nothing {
                return Ok(Some(table));
            }
        }
        if let Some((_, table)) = with_version(file, recorded)? {
            return Ok(Some(table));
        }
    }
    let proof = proof_of_end(file)?;
    if proof == Proof::Whole {
        return Ok(None);
    }
    match with_version(file, len)? {
        Some((_, table)) => Ok(Some(table)),
        // The footer is sound, and some other part is damaged.
        None if proof == Proof::Metaindex => Ok(None),
        None => without_rest(file),
    }
}

/// What the footer at the end of a file leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Nothing,
    /// A sound metaindex, and other blocks that are damaged.
    Metaindex,
    /// All blocks that name others.
    Whole,
}

fn proof_of_end(file: &Arc<dyn ReadFile>) -> Result<Proof> {
    let (tail, _) = read_tail(&**file)?;
    match Footer::decode(&tail, file.len()) {
        Ok((footer, at)) => proof(file, footer, at),
        Err(_) => Ok(Proof::Nothing),
    }
}

/// The file up to the last footer that its other parts prove.
fn without_rest(file: &Arc<dyn ReadFile>) -> Result<Option<Arc<dyn ReadFile>>> {
    let (mut end, mut tries) = (file.len().saturating_sub(1), 0);
    while end >= Footer::LEVELDB_LEN as u64 && tries < TRIES {
        // Footers that end within the last `STRETCH` bytes before `end`.
        let start = end.saturating_sub((STRETCH + Footer::LEN) as u64);
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or_default()];
        file.read_exact_at(&mut bytes, start)?;
        let shortest = if start == 0 { 0 } else { Footer::LEN };
        for len in (shortest..=bytes.len()).rev() {
            let tail = bytes.get(len.saturating_sub(Footer::LEN)..len).unwrap_or_default();
            let table_len = start + len as u64;
            let Ok((footer, at)) = Footer::decode(tail, table_len) else { continue };
            let table = Prefix::of(Arc::clone(file), table_len);
            match proof(&table, footer, at) {
                Ok(Proof::Whole) => return Ok(Some(table)),
                Ok(_) => {}
                // A value that looks like a footer may name a block of any size.
                Err(e) if e.kind() == ErrorKind::Busy(BusyKind::Memory) => {}
                Err(e) => return Err(e),
            }
            tries += 1;
            if tries == TRIES {
                break;
            }
        }
        end = if start == 0 { 0 } else { start + Footer::LEN as u64 - 1 };
    }
    Ok(None)
}

/// The file of `len` bytes with a version and a magic that its other parts prove.
fn with_version(file: &Arc<dyn ReadFile>, len: u64) -> Result<Option<(u32, Arc<dyn ReadFile>)>> {
    for version in TRIED {
        let tail_at = len.saturating_sub(Footer::LEN as u64);
        let mut tail = vec![0; usize::try_from(len - tail_at).unwrap_or_default()];
        let there = file.len().min(len).saturating_sub(tail_at);
        let there = tail.get_mut(..usize::try_from(there).unwrap_or_default()).unwrap_or_default();
        file.read_exact_at(there, tail_at)?;
        if !Footer::set_version(&mut tail, version) {
            return Ok(None);
        }
        let Ok((footer, start)) = Footer::decode(&tail, len) else { continue };
        let mended: Arc<dyn ReadFile> = Arc::new(Mended { file: Arc::clone(file), tail, tail_at });
        if proof(&mended, footer, start)? == Proof::Whole {
            return Ok(Some((version, mended)));
        }
    }
    Ok(None)
}

/// Whether the blocks to which the footer leads are those of a table.
fn proof(file: &Arc<dyn ReadFile>, footer: Footer, start: u64) -> Result<Proof> {
    // What looks like a footer may lead to anything.
    let is_damage = |e: &Error| e.is_corruption() || e.kind() == ErrorKind::NotSupported;
    let table = match Anatomy::with_footer(Arc::clone(file), footer, start) {
        Ok(table) => table,
        Err(e) if is_damage(&e) => return Ok(Proof::Nothing),
        Err(e) => return Err(e),
    };
    let rest = table.properties().and_then(|_| footer.index.map_or(Ok(true), |at| table.checksum_holds(at)));
    match rest {
        Ok(true) => Ok(Proof::Whole),
        Ok(false) => Ok(Proof::Metaindex),
        Err(e) if is_damage(&e) => Ok(Proof::Metaindex),
        Err(e) => Err(e),
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

/// A file up to `tail_at`, and then `tail`.
#[derive(Debug)]
struct Mended {
    file: Arc<dyn ReadFile>,
    tail: Vec<u8>,
    tail_at: u64,
}

impl ReadFile for Mended {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let Some(into) = offset.checked_sub(self.tail_at) else {
            let before = usize::try_from(self.tail_at - offset).unwrap_or(usize::MAX).min(buf.len());
            return self.file.read_at(buf.get_mut(..before).unwrap_or_default(), offset);
        };
        let tail = usize::try_from(into).ok().and_then(|into| self.tail.get(into..)).unwrap_or_default();
        buf.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
        Ok(buf.len().min(tail.len()))
    }

    fn len(&self) -> u64 {
        self.tail_at + self.tail.len() as u64
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
