//! Putting the checksums of a damaged table right: footer, every block that can be reached, embedded blobs.

use super::walk::{self, Parts};
use ashlar_base::ValueType;
use ashlar_base::bytes::Cursor;
use ashlar_format::block::{BlockCursor, DataBlock};
use ashlar_format::table::{BlockChecksum, BlockHandle, ChecksumKind, Footer};

const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0x00, 0x7a, 0x00];
/// Bytes summed in one table at most: a damaged index may name large blocks many times.
const MOST_BYTES: u64 = 16 << 20;

/// Gives a table the checksums of its damaged bytes, so that a reader gets past them. What cannot be found stays.
pub fn fix_table(file: &mut [u8]) {
    fix_footer(file);
    let tail = file.len().saturating_sub(Footer::LEN);
    let Ok((footer, _)) = Footer::decode(file.get(tail..).unwrap_or_default(), file.len() as u64) else {
        return;
    };
    let mut room = MOST_BYTES;
    fix_block(file, &footer, footer.metaindex, &mut room);
    // The blocks with handles keep their content, so all handles are known before the first block is fixed.
    let Some(parts) = walk::parts(file, footer) else { return };
    for (_, handle) in parts.meta.iter() {
        fix_block(file, &footer, handle, &mut room);
    }
    for entry in parts.partitions.iter().chain(&parts.filter_partitions).chain(&parts.data) {
        fix_block(file, &footer, entry.handle, &mut room);
    }
    if let Some(root) = parts.root {
        fix_block(file, &footer, root, &mut room);
    }
    if parts.properties.embedded_blob_stats.is_some() {
        for handle in blobs(file, &parts) {
            fix_block(file, &footer, handle, &mut room);
        }
    }
}

/// From format version 6 on a footer has a checksum of its own.
fn fix_footer(file: &mut [u8]) -> Option<()> {
    let start = file.len().checked_sub(Footer::LEN)?;
    let footer = file.get_mut(start..)?;
    let word =
        |at: usize| footer.get(at..at + 4).and_then(|b| b.first_chunk::<4>()).map(|b| u32::from_le_bytes(*b));
    let magic = footer.last_chunk::<8>().map(|magic| u64::from_le_bytes(*magic));
    if magic != Some(MAGIC) || word(41)? < 6 || footer.get(1..5) != Some(&EXTENDED_MAGIC) {
        return None;
    }
    let checksum = BlockChecksum { kind: ChecksumKind::from_u8(*footer.first()?)?, base_context: word(9)? };
    footer.get_mut(5..9)?.fill(0);
    let sum = checksum.kind.of(footer).wrapping_add(checksum.modifier(start as u64));
    footer.get_mut(5..9)?.copy_from_slice(&sum.to_le_bytes());
    Some(())
}

fn fix_block(file: &mut [u8], footer: &Footer, handle: BlockHandle, room: &mut u64) -> Option<()> {
    *room = room.checked_sub(handle.size)?;
    let (block, compression) = walk::stored(file, handle)?;
    let trailer = footer.checksum.trailer(handle.offset, block, compression);
    let at = usize::try_from(handle.offset.checked_add(handle.size)?).ok()?;
    file.get_mut(at..at.checked_add(trailer.len())?)?.copy_from_slice(&trailer);
    Some(())
}

/// The records that values of the blob-index type refer to: kind, file 0, offset, size, compression.
fn blobs(file: &[u8], parts: &Parts) -> Vec<BlockHandle> {
    let mut found = Vec::new();
    for entry in &parts.data {
        let Some(bytes) = walk::load(file, &parts.footer, entry.handle, parts.dictionary.as_ref()) else {
            continue;
        };
        let Ok(block) = DataBlock::parse(&bytes) else { continue };
        let mut cursor = BlockCursor::default();
        let mut fine = cursor.first(&block).is_ok();
        while let Some(key) = cursor.internal_key().filter(|_| fine) {
            if key.trailer().value_type() == Some(ValueType::BlobIndex) {
                let mut c = Cursor::new(cursor.value(&block));
                let skipped = c.u8("kind").and_then(|_| c.varint64("file"));
                found.extend(skipped.and_then(|_| BlockHandle::decode(&mut c)));
            }
            fine = cursor.next(&block).is_ok();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;
    use ashlar_format::Unreadable;
    use ashlar_format::table::MetaIndex;

    #[test]
    fn real_tables_are_right_already() {
        for (at, file) in corpus::tables().into_iter().enumerate() {
            let mut fixed = file.clone();
            fix_table(&mut fixed);
            assert!(fixed == file, "table {at} changed");
        }
    }

    #[test]
    fn damage_in_every_kind_of_block_gets_past_the_checksums() {
        let mut checked = 0;
        for file in corpus::tables() {
            let tail = file.len().saturating_sub(Footer::LEN);
            let footer = Footer::decode(&file[tail..], file.len() as u64);
            // Tables of other kinds (PlainTable, CuckooTable) have no blocks.
            if matches!(footer, Err(Unreadable::NotSupported(_))) {
                continue;
            }
            let (footer, _) = footer.unwrap();
            let parts = walk::parts(&file, footer).unwrap();
            let mut handles: Vec<BlockHandle> = parts.data.iter().map(|e| e.handle).collect();
            handles.extend(parts.partitions.iter().chain(&parts.filter_partitions).map(|e| e.handle));
            handles
                .extend(parts.meta.iter().filter(|(name, _)| *name != MetaIndex::PROPERTIES).map(|(_, h)| h));
            handles.extend([footer.metaindex]);
            for handle in handles.into_iter().filter(|h| h.size > 0) {
                let mut damaged = file.clone();
                // The last byte of an entry area or restart count: the block may not decode, but its checksum is right.
                let at = usize::try_from(handle.offset + handle.size - 1).unwrap();
                damaged[at] ^= 0x10;
                fix_table(&mut damaged);
                let end = at + 6;
                let bytes = &damaged[usize::try_from(handle.offset).unwrap()..end];
                assert!(footer.checksum.verify(handle.offset, bytes).is_ok());
                checked += 1;
            }
        }
        assert!(checked > 200, "{checked} blocks");
    }

    #[test]
    fn a_damaged_footer_of_version_6_is_made_right() {
        let file = corpus::tables().into_iter().find(|f| f.get(f.len() - 12) == Some(&6)).unwrap();
        let mut damaged = file.clone();
        let reserved = file.len() - 20;
        damaged[reserved - 10] = 1;
        let tail = file.len() - Footer::LEN;
        assert!(Footer::decode(&damaged[tail..], file.len() as u64).is_err());
        fix_footer(&mut damaged).unwrap();
        assert!(damaged[tail + 5..tail + 9] != file[tail + 5..tail + 9]);
    }

    #[test]
    fn no_bytes_do_harm() {
        for len in 0..120 {
            for byte in [0, 1, 0x80, 0xff] {
                fix_table(&mut vec![byte; len]);
            }
        }
    }
}
