//! Records joined from the physical ones of a log: real payloads for the decoders after the framing.

use ashlar_format::log_record::{BLOCK_SIZE, Fault, RecordKind, parse_physical};

/// Visits every physical record of a log file. Of recyclable ones those count that carry the first one's number.
pub fn walk(file: &[u8], mut each: impl FnMut(RecordKind, &[u8])) {
    let number =
        file.get(7..11).and_then(|bytes| bytes.first_chunk::<4>()).map_or(0, |n| u32::from_le_bytes(*n));
    for block in file.chunks(BLOCK_SIZE) {
        let mut at = 0;
        while let Some(rest) = block.get(at..) {
            match parse_physical(rest, number, false) {
                Ok(record) => {
                    if let Some(kind) = record.record_type() {
                        each(kind.kind, record.payload);
                    }
                    at += record.len;
                }
                Err(Fault::OldRecord { len }) => at += len.max(1),
                Err(_) => break,
            }
        }
    }
}

/// The whole records of log files.
pub fn payloads(files: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut whole = Vec::new();
    for file in files {
        let mut open = Vec::new();
        walk(file, |kind, payload| match kind {
            RecordKind::Full => whole.push(payload.to_vec()),
            RecordKind::First => open = payload.to_vec(),
            RecordKind::Middle => open.extend_from_slice(payload),
            RecordKind::Last => {
                open.extend_from_slice(payload);
                whole.push(std::mem::take(&mut open));
            }
            _ => {}
        });
    }
    whole
}
