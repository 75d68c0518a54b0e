//! Compresses blocks for a new table.

use super::Compression;
use crate::unreadable::Unreadable;
use ashlar_base::Malformed;
use ashlar_base::bytes::put_varint32;
use flate2::{Compress, FlushCompress, Status};

/// No match of LZ4 is shorter. The encoder does not take a dictionary that is.
const SHORTEST_MATCH: usize = 4;

/// The level that means "the algorithm's own default" in RocksDB's options.
const DEFAULT_LEVEL: i32 = 32767;
/// Readers open deflate streams with this window.
const ZLIB_WINDOW_BITS: u8 = 14;

/// Compresses the blocks of one table; keeps the encoder's tables from block to block.
pub struct Compressor {
    kind: Compression,
    level: i32,
    engine: Engine,
    dictionary: Vec<u8>,
}

enum Engine {
    Raw,
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zlib(Box<Compress>),
    Bzip2,
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compressor").field(&self.kind).finish()
    }
}

impl Compressor {
    /// Blocks must shrink to this many bytes per KiB, or they are stored raw.
    const MAX_BYTES_PER_KIB: u64 = 896;

    /// A compressor at `level`; [`Compressor::DEFAULT`] and levels the algorithm does not have mean its default.
    ///
    /// # Errors
    /// `NotSupported`: algorithms that are only read, or not at all.
    pub fn new(kind: Compression, level: i32) -> Result<Self, Unreadable> {
        let engine = match kind {
            Compression::None => Engine::Raw,
            Compression::Snappy => Engine::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 | Compression::Lz4hc => Engine::Lz4,
            Compression::Bzip2 => Engine::Bzip2,
            Compression::Zlib => {
                let level = u32::try_from(level).ok().filter(|level| *level <= 9).unwrap_or(6);
                let level = flate2::Compression::new(level);
                Engine::Zlib(Box::new(Compress::new_with_window_bits(level, false, ZLIB_WINDOW_BITS)))
            }
            Compression::Zstd => {
                let encoder = zstd::bulk::Compressor::new(zstd_level(level));
                Engine::Zstd(Box::new(encoder.map_err(|_| wrong("no memory for zstd"))?))
            }
            Compression::Xpress => return Err(Unreadable::NotSupported("Xpress compression")),
            Compression::ZstdNotFinal => return Err(Unreadable::NotSupported("writing ZSTDNotFinal")),
            Compression::LevelDbZstd => return Err(Unreadable::NotSupported("writing LevelDB tables")),
        };
        Ok(Compressor { kind, level, engine, dictionary: Vec::new() })
    }

    /// Lets the blocks from here on refer to `dictionary`: raw content, or for zstd a trained one. An algorithm without
    /// dictionaries, and an empty dictionary, change nothing.
    ///
    /// # Errors
    /// `Malformed`: no memory. Bytes that begin like a trained dictionary and are none are found out by the first block:
    /// [`Compressor::compress_always`] refuses it, [`Compressor::compress`] stores it as it is.
    pub fn set_dictionary(&mut self, dictionary: &[u8]) -> Result<(), Malformed> {
        if !self.kind.takes_dictionary() || dictionary.is_empty() {
            return Ok(());
        }
        self.dictionary = dictionary.to_vec();
        if let Engine::Zstd(encoder) = &mut self.engine {
            let with = zstd::bulk::Compressor::with_dictionary(zstd_level(self.level), dictionary);
            **encoder = with.map_err(|_| wrong("no memory for zstd"))?;
        }
        Ok(())
    }

    /// The level that means "the algorithm's own".
    pub const DEFAULT: i32 = DEFAULT_LEVEL;

    /// The algorithm blocks are tried with.
    pub fn kind(&self) -> Compression {
        self.kind
    }

    /// Replaces the content of `out` with the block as it is to be stored, and tells in which form that is:
    /// [`Compressor::kind`], or `None` when it did not shrink enough.
    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Compression {
        out.clear();
        let allowed = (raw.len() as u64).saturating_mul(Self::MAX_BYTES_PER_KIB) >> 10;
        let done = i32::try_from(raw.len()).is_ok() && self.encode(raw, out).is_ok();
        if done && !matches!(self.engine, Engine::Raw) && out.len() as u64 <= allowed {
            return self.kind;
        }
        out.clear();
        out.extend_from_slice(raw);
        Compression::None
    }

    /// Replaces the content of `out` with the compressed form, even when it is larger: for files whose parts are all
    /// stored in one form. Without an algorithm nothing is stored.
    ///
    /// # Errors
    /// `Malformed`: 4 GiB or more, or an invalid dictionary.
    pub fn compress_always(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.clear();
        self.encode(raw, out)
    }

    fn encode(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        if !matches!(self.engine, Engine::Raw | Engine::Snappy(_)) {
            put_varint32(out, u32::try_from(raw.len()).map_err(|_| wrong("too long"))?);
        }
        let start = out.len();
        let bound = match &self.engine {
            Engine::Raw => return Ok(()),
            Engine::Snappy(_) => snap::raw::max_compress_len(raw.len()),
            Engine::Lz4 => lz4_flex::block::get_maximum_output_size(raw.len()),
            Engine::Zlib(_) => raw.len() + (raw.len() >> 3) + 64,
            Engine::Bzip2 => raw.len() + (raw.len() >> 6) + 600,
            Engine::Zstd(_) => zstd::zstd_safe::compress_bound(raw.len()),
        };
        if out.capacity() < start + bound {
            // Fresh zeros: their pages take no memory until something is written there.
            let mut roomy = vec![0; start + bound];
            roomy.iter_mut().zip(&*out).for_each(|(to, from)| *to = *from);
            *out = roomy;
        }
        out.resize(start + bound, 0);
        let room = out.get_mut(start..).unwrap_or_default();
        let len = match &mut self.engine {
            Engine::Raw => 0,
            Engine::Snappy(encoder) => encoder.compress(raw, room).map_err(|_| wrong("Snappy failed"))?,
            Engine::Lz4 if self.dictionary.len() < SHORTEST_MATCH => {
                lz4_flex::block::compress_into(raw, room).map_err(|_| wrong("LZ4 failed"))?
            }
            Engine::Lz4 => lz4_flex::block::compress_into_with_dict(raw, room, &self.dictionary)
                .map_err(|_| wrong("LZ4 failed"))?,
            Engine::Zlib(deflate) => deflate_whole(deflate, &self.dictionary, raw, room)?,
            Engine::Bzip2 => bzip2_whole(raw, room)?,
            Engine::Zstd(encoder) => {
                encoder.compress_to_buffer(raw, room).map_err(|_| wrong("zstd failed"))?
            }
        };
        out.truncate(start + len);
        Ok(())
    }
}

fn zstd_level(level: i32) -> i32 {
    let known = zstd::compression_level_range().contains(&level) && level != DEFAULT_LEVEL;
    if known { level } else { 3 }
}

fn deflate_whole(
    deflate: &mut Compress,
    dictionary: &[u8],
    raw: &[u8],
    room: &mut [u8],
) -> Result<usize, Malformed> {
    deflate.reset();
    if !dictionary.is_empty() {
        deflate.set_dictionary(dictionary).map_err(|_| wrong("zlib does not take the dictionary"))?;
    }
    match deflate.compress(raw, room, FlushCompress::Finish) {
        Ok(Status::StreamEnd) => usize::try_from(deflate.total_out()).map_err(|_| wrong("too long")),
        _ => Err(wrong("deflate failed")),
    }
}

/// Blocks of 100 kB and this patience with repetitive input, as RocksDB's.
const BZIP2_WORK_FACTOR: u32 = 30;

fn bzip2_whole(raw: &[u8], room: &mut [u8]) -> Result<usize, Malformed> {
    let mut encoder = bzip2::Compress::new(bzip2::Compression::fast(), BZIP2_WORK_FACTOR);
    match encoder.compress(raw, room, bzip2::Action::Finish) {
        Ok(bzip2::Status::StreamEnd) => usize::try_from(encoder.total_out()).map_err(|_| wrong("too long")),
        _ => Err(wrong("bzip2 failed")),
    }
}

fn wrong(what: &'static str) -> Malformed {
    Malformed { field: "compression", at: 0, what }
}
