//! Decompressing blocks, in every form that RocksDB, LevelDB or this engine writes.

use super::{Compression, Dictionary, lz4_dictionary};
use crate::unreadable::Unreadable;
use ashlar_base::Malformed;
use ashlar_base::bytes::{Cursor, OutOfMemory, resize};
use ashlar_base::kept::with_kept;
use flate2::{Decompress, FlushDecompress, Status};
use std::cell::RefCell;
use zstd::zstd_safe::DCtx;

/// Window of zlib streams, as bits.
const ZLIB_WINDOW_BITS: u8 = 15;

thread_local! {
    /// A zstd context costs more than most blocks; each thread keeps one.
    static ZSTD: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Decompresses one block without dictionary; the result has at most `limit` bytes.
/// The buffer grows only as the stream fills it, up to `limit`: a false length in the stored bytes takes little memory.
///
/// # Errors
/// `Malformed`: a raw length over the limit or beyond the algorithm's reach, or a stream that is wrong, shorter or
/// longer than its raw length. `NotSupported`: Xpress. `OutOfMemory`: the system has none for the result.
pub fn decompress(kind: Compression, stored: &[u8], limit: usize) -> Result<Vec<u8>, Unreadable> {
    decompress_with(kind, stored, None, limit)
}

/// [`decompress`] for a block that may refer to `dictionary`. Algorithms without dictionaries pass it over.
///
/// # Errors
/// As [`decompress`]; `Malformed` also if the dictionary is not one of the block's algorithm.
pub fn decompress_with(
    kind: Compression,
    stored: &[u8],
    dictionary: Option<&Dictionary>,
    limit: usize,
) -> Result<Vec<u8>, Unreadable> {
    let mut raw = Vec::new();
    decompress_into(kind, stored, dictionary, limit, &mut raw)?;
    Ok(raw)
}

/// [`decompress_with`] into `raw`, whose former bytes are overwritten. After an error its bytes have no meaning.
///
/// # Errors
/// As [`decompress_with`].
/// # Cost
/// Allocates and zeroes only what `raw` is too short for.
pub fn decompress_into(
    kind: Compression,
    stored: &[u8],
    dictionary: Option<&Dictionary>,
    limit: usize,
    raw: &mut Vec<u8>,
) -> Result<(), Unreadable> {
    match kind {
        Compression::None => {
            check_len(stored.len() as u64, 1, stored, limit)?;
            resize(raw, stored.len())?;
            raw.copy_from_slice(stored);
            Ok(())
        }
        Compression::Snappy => snappy(stored, limit, raw),
        Compression::Zlib => proved(stored, limit, 1040, raw, |stream, raw| zlib(stream, dictionary, raw)),
        Compression::Lz4 | Compression::Lz4hc => match dictionary {
            None => framed(stored, limit, 256, raw, lz4),
            Some(d) => {
                framed(stored, limit, 256, raw, |stream, raw| lz4_dictionary::decode(stream, d.bytes(), raw))
            }
        },
        Compression::Zstd | Compression::ZstdNotFinal => {
            proved(stored, limit, ZSTD_RATIO, raw, |stream, raw| zstd(stream, dictionary, raw))
        }
        Compression::Bzip2 => proved(stored, limit, BZIP2_RATIO, raw, bzip2),
        Compression::LevelDbZstd => leveldb_zstd(stored, limit, raw),
        Compression::Xpress => Err(Unreadable::NotSupported("Xpress compression")),
    }
}

/// The length that a stored block says it has when it is uncompressed; `None` where it says nothing that can be read.
/// Nothing is believed yet: a reader asks it to refuse a block, or to charge its memory, before it [decompresses](decompress).
pub fn raw_len(kind: Compression, stored: &[u8]) -> Option<u64> {
    match kind {
        Compression::None => Some(stored.len() as u64),
        Compression::Snappy => snap::raw::decompress_len(stored).ok().map(|len| len as u64),
        Compression::LevelDbZstd => zstd::zstd_safe::get_frame_content_size(stored).ok().flatten(),
        Compression::Xpress => None,
        _ => Cursor::new(stored).varint64("compressed block").ok(),
    }
}

/// 900 kB of runs of 259 equal bytes, five bytes each, from some 40 bytes.
const BZIP2_RATIO: u64 = 2 << 20;
/// A run-length block of zstd: 128 KiB from four bytes.
const ZSTD_RATIO: u64 = 32 << 10;
/// Slack for what a stream needs beyond its ratio.
const SLACK: u64 = 128 << 10;
/// A raw length up to here, or up to [`BELIEVED_RATIO`] for each stored byte, is taken at its word.
const BELIEVED: usize = 16 << 20;
const BELIEVED_RATIO: usize = 64;
/// What libzstd answers when the output does not fit.
const ZSTD_NO_ROOM: usize = 70_usize.wrapping_neg();

/// How far a stream got.
enum Filled {
    /// It ended with the buffer.
    Whole,
    /// The buffer was full before.
    NoRoom,
}

fn wrong(what: &'static str) -> Malformed {
    Malformed { field: "compressed block", at: 0, what }
}

/// Believes a raw length, or refuses it.
fn check_len(raw_len: u64, ratio: u64, stored: &[u8], limit: usize) -> Result<usize, Malformed> {
    if raw_len > limit as u64 {
        return Err(wrong("raw length over the limit"));
    }
    if raw_len > (stored.len() as u64).saturating_mul(ratio).saturating_add(SLACK) {
        return Err(wrong("raw length beyond what the stored bytes can hold"));
    }
    usize::try_from(raw_len).map_err(|_| wrong("raw length over the limit"))
}

/// The common frame: raw length, then a stream that fills a buffer of exactly that length.
fn framed(
    stored: &[u8],
    limit: usize,
    ratio: u64,
    raw: &mut Vec<u8>,
    fill: impl FnOnce(&[u8], &mut [u8]) -> Result<(), Malformed>,
) -> Result<(), Unreadable> {
    let mut c = Cursor::new(stored);
    let raw_len = check_len(c.varint64("compressed block")?, ratio, stored, limit)?;
    resize(raw, raw_len)?;
    Ok(fill(c.rest(), raw)?)
}

/// [`framed`] for algorithms that make much of few bytes.
fn proved(
    stored: &[u8],
    limit: usize,
    ratio: u64,
    raw: &mut Vec<u8>,
    fill: impl Fn(&[u8], &mut [u8]) -> Result<Filled, Unreadable>,
) -> Result<(), Unreadable> {
    let mut c = Cursor::new(stored);
    let raw_len = check_len(c.varint64("compressed block")?, ratio, stored, limit)?;
    grown(raw_len, c.rest(), raw, fill)
}

/// Starts with a small buffer, and grows it only when the stream fills it. A false length costs at most [`BELIEVED`] bytes; a
/// true large length costs repeated work.
fn grown(
    raw_len: usize,
    stream: &[u8],
    raw: &mut Vec<u8>,
    fill: impl Fn(&[u8], &mut [u8]) -> Result<Filled, Unreadable>,
) -> Result<(), Unreadable> {
    let mut room = raw_len.min(BELIEVED.max(stream.len().saturating_mul(BELIEVED_RATIO)));
    loop {
        resize(raw, room)?;
        match fill(stream, raw)? {
            Filled::Whole if room == raw_len => return Ok(()),
            Filled::NoRoom if room < raw_len => room = raw_len.min(room.saturating_mul(8)),
            _ => return Err(wrong("not a stream of its length").into()),
        }
    }
}

fn snappy(stored: &[u8], limit: usize, raw: &mut Vec<u8>) -> Result<(), Unreadable> {
    let raw_len = snap::raw::decompress_len(stored).map_err(|_| wrong("no raw length"))?;
    resize(raw, check_len(raw_len as u64, 32, stored, limit)?)?;
    match snap::raw::Decoder::new().decompress(stored, raw) {
        Ok(len) if len == raw.len() => Ok(()),
        _ => Err(wrong("not a Snappy block of its length").into()),
    }
}

// The default's decoder: on its own, so that the compiler spends its inlining on it.
#[inline(never)]
fn lz4(stream: &[u8], raw: &mut [u8]) -> Result<(), Malformed> {
    match lz4_flex::block::decompress_into(stream, raw) {
        Ok(len) if len == raw.len() => Ok(()),
        _ => Err(wrong("not an LZ4 block of its length")),
    }
}

fn zlib(stream: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<Filled, Unreadable> {
    let mut inflate = Decompress::new_with_window_bits(false, ZLIB_WINDOW_BITS);
    if let Some(d) = dictionary {
        // More than the window is never referred to.
        let tail = d.bytes().len().saturating_sub(1 << ZLIB_WINDOW_BITS);
        let window = d.bytes().get(tail..).unwrap_or_default();
        inflate.set_dictionary(window).map_err(|_| wrong("zlib does not take the dictionary"))?;
    }
    let status = inflate.decompress(stream, raw, FlushDecompress::Finish);
    let full = inflate.total_out() == raw.len() as u64;
    match status {
        Ok(Status::StreamEnd) if full && inflate.total_in() == stream.len() as u64 => Ok(Filled::Whole),
        Ok(Status::Ok | Status::BufError) if full => Ok(Filled::NoRoom),
        _ => Err(wrong("not a deflate stream of its length").into()),
    }
}

fn bzip2(stream: &[u8], raw: &mut [u8]) -> Result<Filled, Unreadable> {
    let mut decoder = bzip2::Decompress::new(false);
    let at = |total: u64| usize::try_from(total).unwrap_or(usize::MAX);
    loop {
        let (read, made) = (decoder.total_in(), decoder.total_out());
        let input = stream.get(at(read)..).unwrap_or_default();
        let status = decoder.decompress(input, raw.get_mut(at(made)..).unwrap_or_default());
        let full = decoder.total_out() == raw.len() as u64;
        match status {
            Ok(bzip2::Status::StreamEnd) if full && decoder.total_in() == stream.len() as u64 => {
                return Ok(Filled::Whole);
            }
            // With the output full the end of the stream may take one more call.
            Ok(bzip2::Status::Ok) if (decoder.total_in(), decoder.total_out()) != (read, made) => {}
            Ok(bzip2::Status::Ok) if full => return Ok(Filled::NoRoom),
            _ => return Err(wrong("not a bzip2 stream of its length").into()),
        }
    }
}

fn zstd(stream: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<Filled, Unreadable> {
    with_kept(&ZSTD, |kept| {
        if kept.is_none() {
            *kept = DCtx::try_create();
        }
        let context = kept.as_mut().ok_or(OutOfMemory)?;
        let done = match dictionary {
            None => context.decompress(raw, stream),
            Some(d) => {
                let prepared = d.zstd().ok_or(wrong("not a zstd dictionary"))?;
                context.decompress_using_ddict(raw, stream, prepared)
            }
        };
        match done {
            Ok(len) if len == raw.len() => Ok(Filled::Whole),
            Err(ZSTD_NO_ROOM) => Ok(Filled::NoRoom),
            _ => Err(wrong("not a zstd frame of its length").into()),
        }
    })
}

/// The raw length is in the frame header, where LevelDB's writer always puts it.
fn leveldb_zstd(stored: &[u8], limit: usize, raw: &mut Vec<u8>) -> Result<(), Unreadable> {
    let raw_len = match zstd::zstd_safe::get_frame_content_size(stored) {
        Ok(Some(len)) => check_len(len, ZSTD_RATIO, stored, limit)?,
        _ => return Err(wrong("no raw length").into()),
    };
    grown(raw_len, stored, raw, |stream, raw| zstd(stream, None, raw))
}
