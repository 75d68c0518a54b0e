//! Searches for whole records behind damage.

use super::blocks::Blocks;
use ashlar_base::Result;
use ashlar_env::ReadFile;
use ashlar_format::log_record::{
    BLOCK_SIZE, Fault, RecordKind, RecordType, has_its_checksum, parse_physical,
};
use std::sync::Arc;

/// The bytes that may be checksummed during a search in a block, as a multiple of the block's length. Without this
/// limit a block made of headers alone would cost its length squared.
const SUMMED_MAX: usize = 32;

/// The offset of the first intact record after `offset`; `None`: there is no such record. If each write is durable before the
/// next one begins, as in a MANIFEST, such a record proves that the bytes at `offset` were durable and are damaged now.
/// Without such a record they may be the last write, which a crash interrupted. The search ignores records with the
/// long header.
///
/// # Errors
/// `Io`.
/// # Cost
/// Reads from `offset` on, and tries every byte as the start of a record.
pub fn record_behind(file: Arc<dyn ReadFile>, offset: u64) -> Result<Option<u64>> {
    let mut blocks = Blocks::new(file);
    loop {
        blocks.advance()?;
        let start = blocks.offset();
        let len = blocks.rest().len();
        // A sparse file may be long and hold no data.
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

/// The offset of the next intact record of this log in `rest`, which ends with its block. Fragments that continue a
/// record do not count, nor do records without payload; with `legacy_only`, records with the long header do not count
/// either.
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

/// Takes the checksum of a record at the start of `bytes` from the budget; false when the budget is used up.
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

/// What a log of recyclable records holds from some offset on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// A whole record of this log.
    Ours,
    /// No record of this log, but whole records of the file's earlier use.
    FormerLife,
    /// No whole record.
    Unknown,
}

/// Returns the content of the log from `offset` on. The writer of a recycled log may stop in the middle of a record of the
/// earlier use. So the search tries every byte up to the first record, and after every fault.
///
/// # Errors
/// `Io`.
/// # Cost
/// Reads from the block of `offset` to the first record of this log, or to the end.
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
