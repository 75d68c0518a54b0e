//! Looking for what stands behind damage.

use super::blocks::Blocks;
use ashlar_base::Result;
use ashlar_env::ReadFile;
use ashlar_format::log_record::{BLOCK_SIZE, RecordKind, parse_physical};
use std::sync::Arc;

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
        if start + len as u64 > offset {
            let from = usize::try_from((offset + 1).saturating_sub(start)).unwrap_or(BLOCK_SIZE);
            for at in from..len {
                let rest = blocks.rest().get(at..).unwrap_or_default();
                let begins = |kind| matches!(kind, RecordKind::Full | RecordKind::First);
                if let Ok(record) = parse_physical(rest, 0, true)
                    && record.record_type().is_some_and(|t| begins(t.kind) && !t.recyclable)
                    && !record.payload.is_empty()
                {
                    return Ok(Some(start + at as u64));
                }
            }
        }
        if blocks.ended {
            return Ok(None);
        }
    }
}
