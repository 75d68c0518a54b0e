//! The names and numbers of the algorithms.

/// A compression algorithm and its framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Stored raw.
    #[default]
    None,
    /// Snappy.
    Snappy,
    /// Raw deflate.
    Zlib,
    /// bzip2.
    Bzip2,
    /// LZ4 block format.
    Lz4,
    /// The same format from a slower encoder. Written here by the fast one, under this number.
    Lz4hc,
    /// Windows only: known by name only.
    Xpress,
    /// Zstandard.
    Zstd,
    /// Zstandard under the number it had before its format was final.
    ZstdNotFinal,
    /// Zstandard as LevelDB stores it: a bare frame, with the number that is zlib's in RocksDB.
    LevelDbZstd,
}

impl Compression {
    /// By the type byte of a RocksDB block; `None` for custom and unknown ones.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Compression> {
        Some(match byte {
            0x00 => Compression::None,
            0x01 => Compression::Snappy,
            0x02 => Compression::Zlib,
            0x03 => Compression::Bzip2,
            0x04 => Compression::Lz4,
            0x05 => Compression::Lz4hc,
            0x06 => Compression::Xpress,
            0x07 => Compression::Zstd,
            0x40 => Compression::ZstdNotFinal,
            _ => return None,
        })
    }

    /// By the type byte of a LevelDB block.
    pub fn from_leveldb_byte(byte: u8) -> Option<Compression> {
        Some(match byte {
            0 => Compression::None,
            1 => Compression::Snappy,
            2 => Compression::LevelDbZstd,
            _ => return None,
        })
    }

    /// True when its blocks may refer to a table's dictionary.
    pub fn takes_dictionary(self) -> bool {
        !matches!(
            self,
            Compression::None
                | Compression::Snappy
                | Compression::Bzip2
                | Compression::Xpress
                | Compression::LevelDbZstd
        )
    }

    /// The type byte.
    pub fn byte(self) -> u8 {
        match self {
            Compression::None => 0x00,
            Compression::Snappy => 0x01,
            Compression::Zlib | Compression::LevelDbZstd => 0x02,
            Compression::Bzip2 => 0x03,
            Compression::Lz4 => 0x04,
            Compression::Lz4hc => 0x05,
            Compression::Xpress => 0x06,
            Compression::Zstd => 0x07,
            Compression::ZstdNotFinal => 0x40,
        }
    }

    /// The name in the properties of tables up to version 6.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "NoCompression",
            Compression::Snappy => "Snappy",
            Compression::Zlib => "Zlib",
            Compression::Bzip2 => "BZip2",
            Compression::Lz4 => "LZ4",
            Compression::Lz4hc => "LZ4HC",
            Compression::Xpress => "Xpress",
            Compression::Zstd | Compression::LevelDbZstd => "ZSTD",
            Compression::ZstdNotFinal => "ZSTDNotFinal",
        }
    }

    /// By that name.
    pub fn from_name(name: &str) -> Option<Compression> {
        (0..=0x40).filter_map(Compression::from_byte).find(|kind| kind.name() == name)
    }
}
