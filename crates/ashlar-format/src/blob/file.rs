//! The header and the footer of a blob file.

use ashlar_base::checksum::{crc32c, mask_crc};
use ashlar_base::{Cursor, FamilyId, Malformed};

const MAGIC: u32 = 0x0024_8f37;
const VERSION: u32 = 1;
/// The bit of the header's flags that says that blobs expire.
const HAS_TTL: u8 = 1;

/// The earliest and the latest expiration in a file, in seconds since 1970; zeros where nothing expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiration {
    /// The earliest.
    pub first: u64,
    /// The latest.
    pub last: u64,
}

impl Expiration {
    fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let first = c.fixed64("blob file.first expiration")?;
        Ok(Expiration { first, last: c.fixed64("blob file.last expiration")? })
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.last.to_le_bytes());
    }
}

fn magic(c: &mut Cursor<'_>, field: &'static str) -> Result<(), Malformed> {
    let start = *c;
    match c.fixed32(field)? {
        MAGIC => Ok(()),
        _ => Err(start.malformed(field, "not a blob file")),
    }
}

/// The first bytes of a blob file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobHeader {
    /// The family whose values it holds.
    pub family: FamilyId,
    /// The type byte of the compression of every value.
    pub compression: u8,
    /// True in files of the stacked BlobDB whose blobs expire.
    pub has_ttl: bool,
    /// When.
    pub expiration: Expiration,
}

impl BlobHeader {
    /// Bytes it takes.
    pub const LEN: usize = 30;

    /// Reads the first [`BlobHeader::LEN`] bytes of a file.
    ///
    /// # Errors
    /// `Malformed`: not a blob file, an unknown version, or too short.
    pub fn decode(head: &[u8]) -> Result<Self, Malformed> {
        let mut c = Cursor::new(head);
        magic(&mut c, "blob header.magic")?;
        let at_version = c;
        if c.fixed32("blob header.version")? != VERSION {
            return Err(at_version.malformed("blob header.version", "unknown version"));
        }
        Ok(BlobHeader {
            family: FamilyId(c.fixed32("blob header.family")?),
            has_ttl: c.u8("blob header.flags")? & HAS_TTL != 0,
            compression: c.u8("blob header.compression")?,
            expiration: Expiration::decode(&mut c)?,
        })
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.family.0.to_le_bytes());
        out.extend_from_slice(&[u8::from(self.has_ttl), self.compression]);
        self.expiration.encode(out);
    }
}

/// The last bytes of a blob file that was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobFooter {
    /// Blobs in the file.
    pub count: u64,
    /// When they expire.
    pub expiration: Expiration,
}

impl BlobFooter {
    /// Bytes it takes.
    pub const LEN: usize = 32;

    /// Reads the last [`BlobFooter::LEN`] bytes of a file.
    ///
    /// # Errors
    /// `Malformed`: no footer, which a file has that was not closed; or a wrong checksum.
    pub fn decode(tail: &[u8]) -> Result<Self, Malformed> {
        let mut c = Cursor::new(tail);
        magic(&mut c, "blob footer.magic")?;
        let count = c.fixed64("blob footer.count")?;
        let expiration = Expiration::decode(&mut c)?;
        let covered = tail.get(..c.position()).unwrap_or_default();
        let at_crc = c;
        if c.fixed32("blob footer.crc")? != mask_crc(crc32c(covered)) {
            return Err(at_crc.malformed("blob footer.crc", "checksum mismatch"));
        }
        c.finish("blob footer")?;
        Ok(BlobFooter { count, expiration })
    }

    /// Appends the footer.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut footer = Vec::with_capacity(Self::LEN);
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        footer.extend_from_slice(&self.count.to_le_bytes());
        self.expiration.encode(&mut footer);
        let crc = mask_crc(crc32c(&footer));
        footer.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&footer);
    }
}
