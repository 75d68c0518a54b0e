//! The footer: the last bytes of a table.
//!
//! ```text
//! versions 1-5: | checksum kind: u8 | metaindex handle, index handle, zeros: 40 | version: u32 | magic: u64 |
//! versions 6-7: | checksum kind: u8 | 3e 00 7a 00 | footer checksum: u32 | base context: u32 | metaindex size: u32 |
//!               | zeros: 16 | future features: 8 | version: u32 | magic: u64 |
//! LevelDB:      | metaindex handle, index handle, zeros: 40 | magic: u64 |
//! ```
//! 1. From version 6 on the footer covers itself: its checksum is taken with its own field zeroed, plus the modifier
//!    for the footer's offset; the metaindex block ends at the footer; the index is found through the metaindex.
//! 2. A LevelDB footer implies CRC-32C.
//!
//! Source: RocksDB `table/format.cc` (Footer, FooterBuilder); LevelDB `table/format.cc`.

use super::checksum::{BLOCK_TRAILER_LEN, BlockChecksum, ChecksumKind};
use super::handle::BlockHandle;
use crate::unreadable::Unreadable;
use ashlar_base::Malformed;
use ashlar_base::bytes::Cursor;

const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const LEVELDB_MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const PLAIN_MAGIC: u64 = 0x8242_2296_63bf_9564;
const LEGACY_PLAIN_MAGIC: u64 = 0x4f34_18eb_7a8f_13b8;
const CUCKOO_MAGIC: u64 = 0x9267_89d0_c5f1_7873;
const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0x00, 0x7a, 0x00];
const PARTS_LEN: usize = 40;
/// One restart point and the count.
const SMALLEST_BLOCK: u64 = 8;

/// Whose rules the blocks of a table follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// A RocksDB block-based table.
    BlockBased,
    /// A LevelDB table: no properties, its own meaning of compression type 2.
    LevelDb,
}

/// What a footer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Whose table this is.
    pub kind: TableKind,
    /// Format version: 2 to 7; 0 for LevelDB.
    pub version: u32,
    /// How blocks are checksummed.
    pub checksum: BlockChecksum,
    /// The metaindex block.
    pub metaindex: BlockHandle,
    /// The index block; from version 6 on `None`: its handle is in the metaindex, under `rocksdb.index`.
    pub index: Option<BlockHandle>,
}

impl Footer {
    /// Length of a RocksDB footer, and of the tail to read from a file.
    pub const LEN: usize = 53;
    /// Length of a LevelDB footer: no table is shorter.
    pub const LEVELDB_LEN: usize = 48;
    /// The versions that are read and written.
    pub const VERSIONS: std::ops::RangeInclusive<u32> = 2..=7;

    /// Decodes the footer from the last [`Footer::LEN`] bytes of a file, or from all of a shorter one.
    /// Also returns where the footer starts: no block may reach past it.
    ///
    /// # Errors
    /// `Malformed`: no table, a broken or an impossible footer. `NotSupported`: other table kinds and versions.
    pub fn decode(tail: &[u8], file_len: u64) -> Result<(Footer, u64), Unreadable> {
        let short = Malformed { field: "footer", at: 0, what: "file too short for a table" };
        let (_, magic) = tail.split_last_chunk::<8>().ok_or(short)?;
        let take = |len: usize| -> Result<(&[u8], u64), Malformed> {
            let start = file_len.checked_sub(len as u64).ok_or(short)?;
            let from = tail.len().checked_sub(len).ok_or(short)?;
            Ok((tail.get(from..).unwrap_or_default(), start))
        };
        let (footer, start) = match u64::from_le_bytes(*magic) {
            MAGIC => {
                let (bytes, start) = take(Self::LEN)?;
                (Self::decode_rocksdb(bytes, start)?, start)
            }
            LEVELDB_MAGIC => {
                let (bytes, start) = take(Self::LEVELDB_LEN)?;
                (Self::decode_leveldb(bytes)?, start)
            }
            PLAIN_MAGIC | LEGACY_PLAIN_MAGIC => return Err(Unreadable::NotSupported("PlainTable files")),
            CUCKOO_MAGIC => return Err(Unreadable::NotSupported("CuckooTable files")),
            _ => return Err(Malformed { field: "footer.magic", at: 0, what: "not a table" }.into()),
        };
        footer.metaindex.len_with_trailer(start)?;
        if footer.metaindex.size < SMALLEST_BLOCK {
            return Err(Malformed { field: "footer.metaindex", at: 1, what: "no block is that short" }.into());
        }
        if let Some(index) = footer.index {
            index.len_with_trailer(start)?;
        }
        Ok((footer, start))
    }

    /// Writes this version, and the magic of block-based tables, over the end of a file's last bytes. False: `tail` is too
    /// short for a footer.
    pub fn set_version(tail: &mut [u8], version: u32) -> bool {
        let is_long = tail.len() >= Self::LEN;
        if let Some((rest, magic)) = tail.split_last_chunk_mut::<8>()
            && let Some(stored) = rest.last_chunk_mut::<4>().filter(|_| is_long)
        {
            *magic = MAGIC.to_le_bytes();
            *stored = version.to_le_bytes();
        }
        is_long
    }

    fn decode_leveldb(bytes: &[u8]) -> Result<Footer, Malformed> {
        let mut c = Cursor::new(bytes.get(..PARTS_LEN).unwrap_or_default());
        Ok(Footer {
            kind: TableKind::LevelDb,
            version: 0,
            checksum: BlockChecksum { kind: ChecksumKind::Crc32c, base_context: 0 },
            metaindex: BlockHandle::decode(&mut c)?,
            index: Some(BlockHandle::decode(&mut c)?),
        })
    }

    fn decode_rocksdb(bytes: &[u8], start: u64) -> Result<Footer, Unreadable> {
        let mut c = Cursor::new(bytes);
        let kind = c.u8("footer.checksum_kind")?;
        let mut parts = Cursor::new(c.bytes(PARTS_LEN, "footer.parts")?);
        let version = c.fixed32("footer.version")?;
        if !Self::VERSIONS.contains(&version) {
            return Err(Unreadable::NotSupported("block-based tables of a format version outside 2 to 7"));
        }
        let kind = ChecksumKind::from_u8(kind).ok_or(Malformed {
            field: "footer.checksum_kind",
            at: 0,
            what: "unknown checksum kind",
        })?;
        if version >= 6 {
            return Self::decode_extended(bytes, parts, kind, version, start);
        }
        Ok(Footer {
            kind: TableKind::BlockBased,
            version,
            checksum: BlockChecksum { kind, base_context: 0 },
            metaindex: BlockHandle::decode(&mut parts)?,
            index: Some(BlockHandle::decode(&mut parts)?),
        })
    }

    fn decode_extended(
        bytes: &[u8],
        mut parts: Cursor<'_>,
        kind: ChecksumKind,
        version: u32,
        start: u64,
    ) -> Result<Footer, Unreadable> {
        let bad = |field, at, what| Unreadable::Malformed(Malformed { field, at, what });
        if parts.array::<4>("footer.extended_magic")? != EXTENDED_MAGIC {
            return Err(bad("footer.extended_magic", 1, "wrong magic"));
        }
        let stored = parts.fixed32("footer.checksum")?;
        let checksum = BlockChecksum { kind, base_context: parts.fixed32("footer.base_context")? };
        let size = u64::from(parts.fixed32("footer.metaindex_size")?);
        if checksum.base_context == 0 {
            return Err(bad("footer.base_context", 9, "zero"));
        }
        if self_checksum(bytes, checksum, start) != stored {
            return Err(bad("footer.checksum", 5, "checksum mismatch"));
        }
        parts.bytes(16, "footer.reserved")?;
        if parts.fixed64("footer.features")? != 0 {
            return Err(Unreadable::NotSupported("tables that need a feature newer than format version 7"));
        }
        let offset = start.checked_sub(size + BLOCK_TRAILER_LEN as u64);
        let offset = offset.ok_or_else(|| bad("footer.metaindex_size", 13, "larger than the file"))?;
        let metaindex = BlockHandle { offset, size };
        Ok(Footer { kind: TableKind::BlockBased, version, checksum, metaindex, index: None })
    }

    /// The bytes of the footer at `start`.
    ///
    /// # Errors
    /// `Malformed` when the parts do not fit the version: an index handle missing (up to 5), a metaindex that does
    /// not end at `start` or a zero base context (from 6 on), a version outside 2 to 7.
    pub fn encode(&self, start: u64) -> Result<Vec<u8>, Malformed> {
        let bad = |field, what| Malformed { field, at: 0, what };
        let mut out = Vec::with_capacity(Self::LEN);
        let index = || self.index.ok_or(bad("footer.index", "missing"));
        if self.kind == TableKind::LevelDb {
            self.metaindex.encode(&mut out);
            index()?.encode(&mut out);
            out.resize(PARTS_LEN, 0);
            out.extend_from_slice(&LEVELDB_MAGIC.to_le_bytes());
            return Ok(out);
        }
        if !Self::VERSIONS.contains(&self.version) {
            return Err(bad("footer.version", "outside 2 to 7"));
        }
        out.push(self.checksum.kind as u8);
        if self.version < 6 {
            self.metaindex.encode(&mut out);
            index()?.encode(&mut out);
        } else {
            if self.metaindex.end_with_trailer() != Some(start) || self.checksum.base_context == 0 {
                return Err(bad("footer.metaindex", "not before the footer, or no base context"));
            }
            let size = u32::try_from(self.metaindex.size);
            let size = size.map_err(|_| bad("footer.metaindex", "over 4 GiB"))?;
            out.extend_from_slice(&EXTENDED_MAGIC);
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&self.checksum.base_context.to_le_bytes());
            out.extend_from_slice(&size.to_le_bytes());
        }
        out.resize(1 + PARTS_LEN, 0);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        if self.version >= 6 {
            let sum = self_checksum(&out, self.checksum, start);
            if let Some(field) = out.get_mut(5..9) {
                field.copy_from_slice(&sum.to_le_bytes());
            }
        }
        Ok(out)
    }
}

/// The checksum of an extended footer, its own field taken as zero.
fn self_checksum(footer: &[u8], checksum: BlockChecksum, start: u64) -> u32 {
    let mut zeroed = footer.to_vec();
    if let Some(field) = zeroed.get_mut(5..9) {
        field.fill(0);
    }
    checksum.kind.of(&zeroed).wrapping_add(checksum.modifier(start))
}
