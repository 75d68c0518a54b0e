//! Searches for whole records behind damage.

use super::blocks::Blocks;
use ashlar_base::Result;
use ashlar_env::ReadFile;
use ashlar_format::log_record::{
    BLOCK_SIZE, Fault, RecordKind, RecordType, has_its_checksum, parse_physical,
};
use std::sync::Arc;

/// Bytes of a block that may be summed while records are looked for in it, as a multiple of its length. A block that is made
/// up of headers alone would otherwise cost as much as its length squared.
const SUMMED_MAX: usize = 32;

/// Where an intact record begins behind `offset`, `None` when there is none. Where each write is made durable before the
/// next one, as in a MANIFEST, it proves that what stands at `offset` was durable and is damaged now; without it that
/// may be the last write, which a crash interrupted. Records with the long header are not looked for.
///
/// # Errors
/// `Io`.
/// # Cost
/// Reads from `offset` on. Every byte is tried as the beginning of a record.
pub fn record_behind(file: Arc<dyn ReadFile>, offset: u64) -> Result<Option<u64>> {
    let mut blocks = Blocks::new(file);
    loop {
        blocks.advance()?;
        let start = blocks.offset();
        let len = blocks.rest().len();
        // Sparse files are long for nothing.
        let empty = blocks.rest().iter().all(|byte| *byte == 0);
        if start + len as u64 > offset && !empty {
            let from = usize::try_from((offset + 1).saturating_sub(start)).unwrap_or(BLOCK_SIZE);
            let rest = blocks.rest().get(from..).unwrap_or_default();
            if let Some(at) = next_record(rest, 0, true) {
                return Ok(Some(start + (from + at) as u64));
            }
        }
        if blocks.ended {
            return Ok(None);
        }
    }
}

/// Where the next intact record of this log begins in `rest`, which reaches to the end of a block. Fragments that continue
/// a record do not count, nor do records without payload, and with `legacy_only` none with the long header.
pub(super) fn next_record(rest: &[u8], log_number: u32, legacy_only: bool) -> Option<usize> {
    let mut budget = SUMMED_MAX * BLOCK_SIZE;
    (0..rest.len()).find(|at| {
        let here = rest.get(*at..).unwrap_or_default();
        let begins = here
            .get(6)
            .and_then(|byte| RecordType::from_u8(*byte))
            .is_some_and(|t| matches!(t.kind, RecordKind::Full | RecordKind::First));
        begins
            && afford(here, &mut budget)
            && parse_physical(here, log_number, legacy_only).is_ok_and(|record| !record.payload.is_empty())
    })
}

/// Pays for the checksum of the record that `bytes` would begin with; false when the budget is used up.
fn afford(bytes: &[u8], budget: &mut usize) -> bool {
    let len =
        bytes.get(4..6).and_then(|b| b.first_chunk::<2>()).map_or(0, |b| usize::from(u16::from_le_bytes(*b)));
    if len > bytes.len() {
        return true;
    }
    match budget.checked_sub(len) {
        Some(left) => {
            *budget = left;
            true
        }
        None => false,
    }
}

/// What stands at some offset of a log of recyclable records, and behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// A whole record of this log.
    Ours,
    /// None of this log, but whole records of the file's former life.
    FormerLife,
    /// No whole record.
    Unknown,
}

/// Tells what stands at `offset` and behind it: the writer of a recycled log stops anywhere in a record of the former life,
/// so records are looked for at every byte up to the first, and behind every fault.
///
/// # Errors
/// `Io`.
/// # Cost
/// Reads from the block of `offset` on to the first record of this log, or to the end.
pub(super) fn tail(file: Arc<dyn ReadFile>, offset: u64, log_number: u32) -> Result<Tail> {
    let mut blocks = Blocks::at(file, offset);
    let mut found = Tail::Unknown;
    loop {
        blocks.advance()?;
        let start = blocks.offset();
        blocks.take(usize::try_from(offset.saturating_sub(start)).unwrap_or(BLOCK_SIZE));
        let mut budget = SUMMED_MAX * BLOCK_SIZE;
        while !blocks.rest().is_empty() {
            let rest = blocks.rest();
            let long = rest.get(6).and_then(|byte| RecordType::from_u8(*byte)).is_some_and(|t| t.recyclable);
            let len = match long && afford(rest, &mut budget) {
                false => 1,
                true => match parse_physical(rest, log_number, false) {
                    Ok(_) => return Ok(Tail::Ours),
                    Err(Fault::OldRecord { len }) if rest.get(..len).is_some_and(has_its_checksum) => {
                        found = Tail::FormerLife;
                        len
                    }
                    Err(_) => 1,
                },
            };
            blocks.take(len);
        }
        if blocks.ended {
            return Ok(found);
        }
    }
}
