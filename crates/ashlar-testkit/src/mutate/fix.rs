//! Putting checksums right after the damage.

use ashlar_base::checksum;

/// For inputs without checksums.
pub fn fix_nothing(_: &mut [u8]) {}

const BLOCK: usize = 32 << 10;

/// Gives every physical record of a log (WAL or MANIFEST) the checksum of its damaged bytes.
///
/// Walks the records as a reader does, 32 KiB block by block: `crc: u32 LE masked | len: u16 LE | kind: u8`, then four
/// bytes of log number for recyclable kinds. A length that leaves its block ends the walk of that block.
pub fn fix_log(data: &mut [u8]) {
    for block in data.chunks_mut(BLOCK) {
        let mut at = 0;
        while let Some(next) = fix_record(block, at) {
            at = next;
        }
    }
}

fn fix_record(block: &mut [u8], at: usize) -> Option<usize> {
    let header: [u8; 7] = block.get(at..at + 7)?.try_into().ok()?;
    let len = usize::from(u16::from_le_bytes([header[4], header[5]]));
    let kind = header[6];
    // A zero header is the space an allocated file ends with.
    if header == [0; 7] {
        return None;
    }
    let recyclable = matches!(kind, 5..=8 | 11 | 131);
    let end = at + if recyclable { 11 } else { 7 } + len;
    let crc = checksum::mask_crc(checksum::crc32c(block.get(at + 6..end)?));
    block.get_mut(at..at + 4)?.copy_from_slice(&crc.to_le_bytes());
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_log_is_already_right_and_a_damaged_one_becomes_right() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/rocksdb-7.8.3/wal_frag/000004.log");
        let real = std::fs::read(path).unwrap();
        let mut fixed = real.clone();
        fix_log(&mut fixed);
        assert!(fixed == real, "a valid log must not change");
        let mut damaged = real.clone();
        damaged[20] ^= 0x40;
        fix_log(&mut damaged);
        assert!(damaged[..4] != real[..4] && damaged[40..] == real[40..]);
    }

    #[test]
    fn lying_lengths_do_no_harm() {
        for len in 0..40 {
            fix_log(&mut vec![0xff; len]);
            fix_log(&mut vec![0x01; len]);
        }
    }
}
