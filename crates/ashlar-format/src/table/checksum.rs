//! Checksums of blocks and footers.

use ashlar_base::Malformed;
use ashlar_base::checksum::{crc32c, crc32c_append, mask_crc, xxh3_64, xxh32, xxh64};

/// Bytes after every block: compression type and checksum.
pub const BLOCK_TRAILER_LEN: usize = 5;

/// The last byte enters the XXH3 form by this factor.
const LAST_BYTE_PRIME: u32 = 0x6b90_83d9;

/// The checksum function of a table. The numbers are those of the footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChecksumKind {
    /// None. From version 6 on a misplaced block is still found.
    None = 0,
    /// CRC-32C, masked.
    Crc32c = 1,
    /// XXH32.
    XxHash32 = 2,
    /// Low half of XXH64.
    XxHash64 = 3,
    /// Low half of XXH3 over all but the last byte, which is mixed in.
    #[default]
    Xxh3 = 4,
}

impl ChecksumKind {
    /// `None` for a number that is no kind.
    pub fn from_u8(byte: u8) -> Option<ChecksumKind> {
        Some(match byte {
            0 => ChecksumKind::None,
            1 => ChecksumKind::Crc32c,
            2 => ChecksumKind::XxHash32,
            3 => ChecksumKind::XxHash64,
            4 => ChecksumKind::Xxh3,
            _ => return None,
        })
    }

    /// The checksum of `body` followed by the byte `last`, without copying them together.
    #[inline]
    pub fn of_parts(self, body: &[u8], last: u8) -> u32 {
        match self {
            ChecksumKind::None => 0,
            ChecksumKind::Crc32c => mask_crc(crc32c_append(crc32c(body), &[last])),
            ChecksumKind::XxHash32 | ChecksumKind::XxHash64 => self.of_joined(body, last),
            ChecksumKind::Xxh3 => low32(xxh3_64(body)) ^ u32::from(last).wrapping_mul(LAST_BYTE_PRIME),
        }
    }

    /// The checksum of a whole buffer.
    pub fn of(self, bytes: &[u8]) -> u32 {
        match (self, bytes.split_last()) {
            (ChecksumKind::None, _) => 0,
            (ChecksumKind::Crc32c, _) => mask_crc(crc32c(bytes)),
            (ChecksumKind::XxHash32, _) => xxh32(bytes, 0),
            (ChecksumKind::XxHash64, _) => low32(xxh64(bytes, 0)),
            (ChecksumKind::Xxh3, None) => 0,
            (ChecksumKind::Xxh3, Some((last, body))) => self.of_parts(body, *last),
        }
    }

    fn of_joined(self, body: &[u8], last: u8) -> u32 {
        let mut joined = Vec::with_capacity(body.len() + 1);
        joined.extend_from_slice(body);
        joined.push(last);
        self.of(&joined)
    }
}

fn low32(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

/// How the blocks of one file are checksummed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockChecksum {
    /// The function.
    pub kind: ChecksumKind,
    /// The file's random number from its footer; 0 before version 6.
    pub base_context: u32,
}

impl BlockChecksum {
    /// The number to add to the checksum of a block at `offset`.
    #[inline]
    pub fn modifier(self, offset: u64) -> u32 {
        if self.base_context == 0 {
            return 0;
        }
        self.base_context ^ low32(offset).wrapping_add(low32(offset >> 32))
    }

    /// The trailer of a block at `offset`.
    #[inline]
    pub fn trailer(self, offset: u64, block: &[u8], compression: u8) -> [u8; BLOCK_TRAILER_LEN] {
        let sum = self.kind.of_parts(block, compression).wrapping_add(self.modifier(offset));
        let [a, b, c, d] = sum.to_le_bytes();
        [compression, a, b, c, d]
    }

    /// Splits what was read at `offset` into block and compression byte and verifies the checksum.
    ///
    /// # Errors
    /// `Malformed` when the checksum is wrong or there is no room for a trailer.
    #[inline]
    pub fn verify(self, offset: u64, block_and_trailer: &[u8]) -> Result<(&[u8], u8), Malformed> {
        let (block, compression, stored) = split_trailer(block_and_trailer)?;
        let covered = block_and_trailer.get(..=block.len()).unwrap_or_default();
        if self.kind.of(covered).wrapping_add(self.modifier(offset)) != stored {
            return Err(Malformed { field: "block", at: block.len(), what: "checksum mismatch" });
        }
        Ok((block, compression))
    }

    /// [`BlockChecksum::verify`] without the verification.
    #[inline]
    pub fn split(block_and_trailer: &[u8]) -> Result<(&[u8], u8), Malformed> {
        split_trailer(block_and_trailer).map(|(block, compression, _)| (block, compression))
    }
}

#[inline]
fn split_trailer(bytes: &[u8]) -> Result<(&[u8], u8, u32), Malformed> {
    let short = Malformed { field: "block trailer", at: 0, what: "unexpected end" };
    let (block, [compression, a, b, c, d]) = bytes.split_last_chunk::<BLOCK_TRAILER_LEN>().ok_or(short)?;
    Ok((block, *compression, u32::from_le_bytes([*a, *b, *c, *d])))
}
