//! Reads entries in the order of the index, within bounds.
//!
//! `--to` and `--prefix` end the scan of a table at the first key beyond them in byte order, as in sst_dump. `--from`
//! follows the comparator of the table if that is a built-in one.

use super::SstArguments;
use crate::Done;
use crate::bytes_text::{Hex, parse_bytes, write_bytes};
use crate::outcome::Outcome;
use ashlar_base::{Error, InternalKey, Order, Result, Trailer, ValueType};
use ashlar_format::blob::BlobIndex;
use ashlar_format::compress::Compression;
use ashlar_table::Anatomy;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

/// The bounds of a scan, and the number of entries still to read.
#[derive(Clone, Debug)]
pub(super) struct Range {
    from: Vec<u8>,
    to: Vec<u8>,
    prefix: Vec<u8>,
    /// `None`: all.
    left: Option<u64>,
}

impl Range {
    pub(super) fn new(arguments: &SstArguments) -> std::result::Result<Range, Outcome> {
        let key = |flag: &Option<OsString>| match flag.as_deref() {
            Some(text) => parse_bytes(text.as_bytes(), arguments.input_key_hex).map_err(Outcome::Usage),
            None => Ok(Vec::new()),
        };
        let prefix = key(&arguments.prefix)?;
        let from = if prefix.is_empty() { key(&arguments.from)? } else { prefix.clone() };
        let left = (arguments.read_num > 0).then_some(arguments.read_num);
        Ok(Range { from, to: key(&arguments.to)?, prefix, left })
    }

    /// The line with the bounds.
    pub(super) fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "from [{}] to [{}]", Hex(&self.from), Hex(&self.to))
    }

    /// Whether the requested number of entries has been read.
    pub(super) fn is_used_up(&self) -> bool {
        self.left == Some(0)
    }

    fn is_before(&self, order: &Order, user_key: &[u8]) -> bool {
        !self.from.is_empty() && order.compare(user_key, &self.from).is_lt()
    }

    fn is_behind(&self, user_key: &[u8]) -> bool {
        (!self.to.is_empty() && user_key >= self.to.as_slice()) || !user_key.starts_with(&self.prefix)
    }
}

/// Why the walk over a table stopped before its end.
enum Stop {
    /// The range or the number of entries is exhausted.
    Enough,
    /// The output failed.
    Output(io::Error),
}

/// Reads the entries in `range`, and prints them when the command is `scan`.
pub(super) fn run(table: &Anatomy, range: &mut Range, arguments: &SstArguments, out: &mut dyn Write) -> Done {
    let shown = arguments.command == super::SstCommand::Scan;
    let properties = table.properties()?;
    let order = properties.comparator.as_deref().and_then(Order::by_name).unwrap_or_default();
    let global_seq = properties.global_seqno.filter(|seq| *seq != 0);
    for place in table.data_blocks()? {
        if range.is_before(&order, place.separator_user_key()) {
            continue;
        }
        let mut stop = None;
        let at_block = |e: Error| e.at(table.path(), place.handle.offset);
        let walked = table.block(place.handle)?.entries(|key, value| {
            if stop.is_some() {
                return Ok(());
            }
            let (user_key, trailer) = InternalKey::decode(key).map_err(|e| e.into_error())?.split();
            if range.is_before(&order, user_key) {
                return Ok(());
            }
            if range.is_behind(user_key) || range.is_used_up() {
                stop = Some(Stop::Enough);
                return Ok(());
            }
            range.left = range.left.map(|left| left.saturating_sub(1));
            if shown {
                let seq = global_seq.unwrap_or(trailer.seq().get());
                let line = print(arguments, (user_key, seq, trailer), value, out);
                stop = line.err().map(Stop::Output);
            }
            Ok(())
        });
        walked.map_err(at_block)?;
        match stop {
            None => {}
            Some(Stop::Enough) => return Ok(()),
            Some(Stop::Output(e)) => return Err(e.into()),
        }
    }
    Ok(())
}

fn print(
    arguments: &SstArguments,
    (user_key, seq, trailer): (&[u8], u64, Trailer),
    value: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    let hex = arguments.output_hex;
    out.write_all(b"'")?;
    write_bytes(out, user_key, hex)?;
    write!(out, "' seq:{seq}, type:{} => ", trailer.type_byte())?;
    match blob_words(arguments, trailer, value) {
        Some(words) => out.write_all(words.as_bytes())?,
        None => write_bytes(out, value, hex)?,
    }
    out.write_all(b"\n")
}

/// A decoded reference into a blob file, if `--decode_blob_index` is given.
fn blob_words(arguments: &SstArguments, trailer: Trailer, value: &[u8]) -> Option<String> {
    if !arguments.decode_blob_index || trailer.value_type() != Some(ValueType::BlobIndex) {
        return None;
    }
    Some(match BlobIndex::decode(value) {
        Ok(BlobIndex::Blob(place)) => {
            let compression = Compression::from_byte(place.compression).map_or("Unknown", Compression::name);
            format!(
                "[blob ref] file:{} offset:{} size:{} compression: {compression}",
                place.file.0, place.offset, place.size
            )
        }
        Ok(_) => format!("[blob with an expiration] {}", Hex(value)),
        Err(e) => format!("[{e}]"),
    })
}

/// All range tombstones of a table, as stored.
pub(super) fn tombstones(table: &Anatomy, mut each: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
    use ashlar_format::table::MetaIndex;
    let Some(handle) = table.meta().get(MetaIndex::RANGE_DELETIONS) else { return Ok(()) };
    table.block(handle)?.entries(&mut each).map_err(|e| e.at(table.path(), handle.offset))
}
